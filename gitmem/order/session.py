"""Reduce the records of a session: its fields, when it began and ended, and the periods in which it holds a name.

Of each field the latest value counts. A name is held from the record that asked for it to the end of the session, or to 48
hours after a record that had no successor in that time. If periods of one name overlap, the first keeps the name, and the
others get the lowest free `-2`, `-3`, … Clocks of readers decide nothing.
"""

from __future__ import annotations

from ..records import CLEARABLE
from ..records.lines import as_json
from ..text.name_matching import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..records.record_types import SessionRecord

    Period = tuple[int, int]  # from a time until another one, which is not in it


HOLD_MICROS = 48 * 3600 * 1_000_000
NEVER = 1 << 62
FIELDS = (
    "agent_identity", "display_name", "clone_id", "worktree", "wu_id", "initiative_id", "lane", "client",
    "workspace_id", "harness_session", "activity", "summary", "name_chosen", "lifecycle_role", "specialty_profile",
    "role_alias", "role_pack", "capabilities", "actual_ownership_scope", "model", "branch", "task_id",
)  # fmt: skip


class FoldedSession:
    """A session by its records.

    Args:
        events: The number, the time in microseconds, and the record of each of its lines by `(at, bytes)`, at least one.

    Attributes:
        started, ended: Microseconds since the epoch; `ended` is None while it is open.
        fields: Its fields without empty ones, with the name that it asked for last; lists and objects as JSON.
        claims: The line, the time and the name of each record that asked for another name.
    """

    def __init__(self, events: Sequence[tuple[int, int, SessionRecord]]) -> None:
        self.started = next((at for _, at, record in events if record["event"] == "start"), events[0][1])
        self.ended: int | None = None
        self.fields: dict[str, str] = {}
        self.claims: list[tuple[int, int, str]] = []
        for line, at, record in events:
            for name in record.get("clear", ()):
                if name in CLEARABLE["session"]:
                    self.fields.pop(name, None)
            for name in FIELDS:
                value: object = record.get(name)
                if isinstance(value, str):
                    self.fields[name] = value
                elif value:
                    self.fields[name] = as_json(value)
            name = self.fields["display_name"]
            if not self.claims or (self.claims[-1][2] != name and record["event"] != "end"):
                self.claims.append((line, at, name))
            if record["event"] == "end":
                self.ended = at
                break
        self.fields["display_name"] = self.claims[-1][2]

    def name_periods(self, alive: Sequence[Period]) -> dict[tuple[int, int], tuple[int, str]]:
        """Return (line, claimed) → (until, name) in the order of time; at least one.

        Args:
            alive: When it was at work, in the order of time and without overlaps.
        """
        ends = [at for _, at, _ in self.claims[1:]] + [self.ended if self.ended is not None else NEVER]
        found = {}
        past = 0  # periods that ended before this claim, and so before all later ones
        for (line, at, name), end in zip(self.claims, ends, strict=True):
            while past < len(alive) and alive[past][1] <= at:
                past += 1
            for place in range(past, len(alive)):
                begin, until = alive[place]
                if begin >= end:
                    break
                if max(at, begin) < min(end, until):
                    found[line, max(at, begin)] = (min(end, until), name)
        line, at, name = self.claims[-1]
        return found or {(line, at): (at, name)}


def united(periods: Iterable[Period]) -> list[Period]:
    """Return periods in the order of time, those that overlap or meet as one."""
    found: list[Period] = []
    for begin, until in sorted(periods):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((begin, until))
    return found


class HeldNames:
    """The names in use at one time, in their folded forms.

    For each taken name, all numbers below `_next` were tried, and those free now are in `_free`. The lowest free number
    is thus found without a scan of all taken names.
    """

    def __init__(self, rows: Iterable[tuple[int, str]]) -> None:
        from heapq import heapify

        self._ends = list(rows)
        heapify(self._ends)
        self._count: dict[str, int] = {}
        for _, folded in self._ends:
            self._count[folded] = self._count.get(folded, 0) + 1
        self._next: dict[str, int] = {}
        self._free: dict[str, list[int]] = {}

    def end(self, at: int) -> None:
        """Release the names that are held until this time or less."""
        from heapq import heappop, heappush

        while self._ends and self._ends[0][0] <= at:
            _, folded = heappop(self._ends)
            self._count[folded] -= 1
            if not self._count[folded]:
                del self._count[folded]
                base, _, number = folded.rpartition("-")
                if base in self._next and number.isascii() and number.isdigit() and number[0] != "0":
                    heappush(self._free[base], int(number))

    def take(self, name: str, until: int) -> str:
        """Hold a name until a time and return it, with the lowest free number after it if it is taken."""
        from heapq import heappush

        shown, folded = name, fold(name)
        if folded in self._count:
            number = self._number(folded)
            shown, folded = f"{name}-{number}", f"{folded}-{number}"
        self._count[folded] = self._count.get(folded, 0) + 1
        heappush(self._ends, (until, folded))
        return shown

    def _number(self, base: str) -> int:
        from heapq import heappop

        first = self._next.setdefault(base, 2)
        free = self._free.setdefault(base, [])
        while free:
            number = heappop(free)
            if 2 <= number < first and f"{base}-{number}" not in self._count:
                return number
        while f"{base}-{first}" in self._count:
            first += 1
        self._next[base] = first + 1
        return first
