"""The error that ends an operation when its index is damaged, and whether the operation may be repeated."""

from __future__ import annotations

from .errors import GitmemError, StoreError
from .index import index_file, remove_damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .repo import Repo


class IndexDamagedError(StoreError):
    """The index was damaged and was moved aside; the log is intact.

    Attributes:
        may_repeat: Whether nothing was recorded before, so the whole operation may run once more.
    """

    code = "index-damaged"

    def __init__(self, *, recorded: bool) -> None:
        super().__init__(
            "The index was damaged and has been moved aside. "
            + (
                "The command's records are safe; only its output is incomplete."
                if recorded
                else "Nothing was recorded; the log is intact."
            ),
            hint="The next command rebuilds the index from the log."
            + (" Do not repeat this command without checking its result first." if recorded else ""),
            next=["gitmem log" if recorded else "gitmem doctor"],
        )
        self.may_repeat = not recorded


def error_for(error: Exception, repo: Repo, machine: str, *, recorded: bool) -> IndexDamagedError | None:
    """Return the error to raise for a failure caused by a damaged index, and move that index aside; else None.

    Args:
        error: The failure that ended an operation.
        repo: Where the repository is.
        machine: Name of this machine.
        recorded: Whether the operation had recorded anything.
    """
    if isinstance(error, (GitmemError, OSError)) or not remove_damaged.remove_if_damaged(
        index_file.path(repo, machine), error
    ):
        return None
    return IndexDamagedError(recorded=recorded)
