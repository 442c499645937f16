"""What a bundle has, and how it is kept within its budget: whole parts only, and a reason for each that is left out."""

from __future__ import annotations

from ..errors import UsageError
from ..outcome import Outcome
from . import bundle_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BUDGET_BYTES = 16 * 1024
OMITTED_MAX = 20  # reasons in the record; the answer has all of them
OMITTED_BYTES = 1024  # of the budget, kept for them
STAGES = ("acquisition", "encoding", "derivation", "retrieval", "relations", "utilization")
MEMORY, CHECKPOINT = "memory", "checkpoint"


class Omitted(Outcome):
    """Something that is not handed over, and why. `id` is that of a node or signal, or the name of a part."""

    def __init__(self, id: str, reason: str) -> None:
        self.id = id
        self.reason = reason


class Transfer(Outcome):
    """What a call has handed over, as its answer says it: see `Bundle`."""

    def __init__(self, made: Bundle) -> None:
        self.bytes = made.bytes
        self.budget = made.budget
        self.counts = made.counts()
        self.stages = made.stages
        self.omitted = made.omitted


class Bundle(Outcome):
    """What a call hands over.

    Attributes:
        context: The field of the task; empty if nothing is handed over.
        bytes: Its size as JSON in UTF-8.
        budget: The most bytes.
        stages: Counts of each stage.
        omitted: What was left out.
    """

    def __init__(self, budget: int) -> None:
        self.context: dict[str, Any] = {}
        self.bytes = 0
        self.budget = budget
        self.stages: dict[str, dict[str, int]] = {name: {} for name in STAGES}
        self.omitted: list[Omitted] = []

    def leave_out(self, id: str, reason: str) -> None:
        """Note what is not handed over, once: a node may be asked for by value and by reference."""
        if not any((each.id, each.reason) == (id, reason) for each in self.omitted):
            self.omitted.append(Omitted(id, reason))

    @property
    def transfer(self) -> Transfer:
        """What an answer says of it."""
        return Transfer(self)

    def counts(self) -> dict[str, int]:
        """Return the number of items of each part that is handed over, and of those left out."""
        found = {name: len(value) for name, value in self.context.items() if isinstance(value, list)}
        found.pop("omitted", None)
        found |= {"variables": len(self.context.get("variables", ())), "omitted": len(self.omitted)}
        return {name: count for name, count in sorted(found.items()) if count}


class PackedContext:
    """The context of a bundle while parts are added to it.

    Args:
        own: What the caller gives itself.

    Raises:
        UsageError: That alone exceeds the budget (`bad-context`). Nothing was written.
    """

    def __init__(self, bundle: Bundle, own: dict[str, Any]) -> None:
        self.bundle = bundle
        self.ids: set[str] = set()
        self.context: dict[str, Any] = own
        self.used = bundle_encoding.size(own)
        if self.used > bundle.budget:
            raise UsageError(
                f"Failed to serialize context: it has {self.used} bytes; at most {bundle.budget} are valid."
                " Nothing was written.",
                hint="Commit large values, or name their paths instead.",
                code="bad-context",
            )

    def add(self, section: str, id: str, value: Mapping[str, Any]) -> None:
        """Add a part if it fits, else leave it out as a whole."""
        size = bundle_encoding.size(value) + 1 + (0 if section in self.context else len(section) + 6)
        if section == CHECKPOINT:
            value_, fits = dict(value), self._fits(size)
            self.context |= {section: value_} if fits else {}
        else:
            fits = self._fits(size)
            if fits:
                self.context.setdefault(section, []).append(dict(value))
        if fits:
            self.used += size
            self.ids.add(id)
        else:
            self.bundle.leave_out(
                id, f"has {size} bytes, and of the {self.bundle.budget} of the bundle {self.used} are used"
            )

    def _fits(self, size: int) -> bool:
        return self.used + size <= self.bundle.budget - OMITTED_BYTES

    def finish(self) -> None:
        """Add what was left out, as far as it fits, and the counts."""
        bundle, shown = self.bundle, []
        for each in bundle.omitted[:OMITTED_MAX]:
            shown.append(each.as_json())
            if self.used + bundle_encoding.size(shown) + 80 > bundle.budget:
                shown.pop()
                break
        if bundle.omitted:
            rest = len(bundle.omitted) - len(shown)
            self.context["omitted"] = [*shown, *([{"id": "", "reason": f"and {rest} more"}] if rest else [])]
        is_empty = self.context.keys() == {"format"}
        bundle.context = {} if is_empty else self.context
        bundle.bytes = 0 if is_empty else bundle_encoding.size(bundle.context)
        bundle.stages["utilization"] = {
            "sent": len(self.ids),
            "omitted": len(bundle.omitted),
            "bytes": bundle.bytes,
        }
