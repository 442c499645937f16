"""Detection of a log ref that was moved back or deleted: lines are missing then, and answers must report it."""

from __future__ import annotations

from .index import index_file
from .log import ledger, ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from .store import Store

    class Answer(Protocol):
        """An outcome that may be wrong if lines are missing."""

        warnings: list[str]
        next: list[str]


FIX = "gitmem doctor --fix"  # the command that repairs the log


def warning(store: Store) -> str | None:
    """Return a warning if the log lacks lines that this clone has accepted; None if it has all of them.

    Two sources are compared. The index keeps lines that the log no longer has. The ledger names the commit that this
    clone accepted last: the tip must be that commit or a descendant of it.
    """
    if index_file.has_accepted(store.db(), ledger.last_commit(store.repo.state)):
        return None
    from .index import lost_lines

    count = lost_lines.count(store.db()) or _count_missing(store)
    if not count:
        return None
    lines = (
        "1 record that this clone had accepted is"
        if count == 1
        else f"{count} records that this clone had accepted are"
    )
    return (
        f"{lines} missing from the log: {ref.LOG_REF} may have been moved back or deleted. This output may lack "
        f"signals. `{FIX}` restores what is still in this clone."
    )


def add_warning(store: Store, answer: Answer) -> None:
    """Add a warning to an answer if lines are missing, with the repair command as the first one to run."""
    missing = warning(store)
    if missing is not None:
        answer.warnings.append(missing)
        answer.next = repair_first(answer.next)


def repair_first(next: Sequence[str]) -> list[str]:
    """Return the commands to run next, with the repair command first."""
    return [FIX, *(each for each in next if each != FIX)][:3]


def _count_missing(store: Store) -> int:
    """Return how many lines of the last accepted commit the tip lacks; 0 if the tip descends from that commit."""
    from .log import tree_union

    git = store.git
    accepted = ledger.last_commit(store.repo.state)  # read before the tip, which other processes advance
    tip = git.tip(ref.LOG_REF)
    if accepted is None or accepted == tip:
        return 0
    try:
        if tip is not None and git.contains(tip, accepted):
            return 0
        known = [git.commit(tip).tree] if tip is not None else []
        return tree_union.new_lines(git, git.commit(accepted).tree, known)
    except KeyError:
        return 0  # an object is missing: `doctor` checks what remains
