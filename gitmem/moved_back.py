"""Whether the log's ref was moved back or deleted behind this clone: lines are missing then, and answers must say so."""

from __future__ import annotations

from .index import query
from .log import ledger, ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from .store import Store

    class Answer(Protocol):
        """An outcome that may be wrong where lines are missing."""

        warnings: list[str]
        next: list[str]


FIX = "gitmem doctor --fix"  # the command that repairs the log


def warning(store: Store) -> str | None:
    """Return the sentence for a log that lacks lines which this clone has accepted; None where it has all of them.

    Two witnesses are asked. The index keeps lines that it had and the log has no more. The ledger names the commit that
    this clone accepted last: the tip must be that commit or have it in its history.
    """
    if query.has_all(store.db(), ledger.last_commit(store.place.state)):
        return None
    from .index import lost_lines

    count = lost_lines.count(store.db()) or _behind(store)
    if not count:
        return None
    lines = (
        "1 line that this clone had accepted is"
        if count == 1
        else f"{count} lines that this clone had accepted are"
    )
    return (
        f"{lines} missing from the log, as if {ref.LOG_REF} had been moved back or deleted: this answer may lack "
        f"signals. `{FIX}` puts back what is still in this clone."
    )


def tell(store: Store, answer: Answer) -> None:
    """Add the warning to an answer, and put the command that repairs the log in front, where lines are missing."""
    missing = warning(store)
    if missing is not None:
        answer.warnings.append(missing)
        answer.next = repair_first(answer.next)


def repair_first(next: Sequence[str]) -> list[str]:
    """Return the commands to run next, with the one that repairs the log in front."""
    return [FIX, *(each for each in next if each != FIX)][:3]


def _behind(store: Store) -> int:
    """How many lines the commit that was accepted last has and the tip does not; 0 where it is in the tip's history."""
    from .log import tree_union

    git = store.git
    accepted = ledger.last_commit(store.place.state)  # before the tip, which other processes move on
    tip = git.tip(ref.LOG_REF)
    if accepted is None or accepted == tip:
        return 0
    try:
        if tip is not None and git.contains(tip, accepted):
            return 0
        known = [git.commit(tip).tree] if tip is not None else []
        return tree_union.new_lines(git, git.commit(accepted).tree, known)
    except KeyError:
        return 0  # an object is missing: `doctor` looks at what is left of it
