"""What an operation is ended with when its index turns out to be damaged, and whether it may run again."""

from __future__ import annotations

from .errors import GitmemError, StoreError
from .index import damage, schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .repo import Repo


class IndexDamagedError(StoreError):
    """The index was damaged and was put away; the log is whole.

    Attributes:
        may_repeat: Whether nothing was recorded before, so that the whole operation may run once more.
    """

    code = "index-damaged"

    def __init__(self, *, recorded: bool) -> None:
        super().__init__(
            "The index was damaged and was put away. "
            + (
                "What the command records is recorded; only its answer could not be completed."
                if recorded
                else "Nothing was recorded, and the log is whole."
            ),
            hint="The next command builds it again from the log."
            + (" Don't repeat this one: look first." if recorded else ""),
            next=["gitmem log" if recorded else "gitmem doctor"],
        )
        self.may_repeat = not recorded


def of(error: Exception, place: Repo, machine: str, *, recorded: bool) -> IndexDamagedError | None:
    """Return what to raise instead of an error that a damaged index has caused, and put that index away; else None.

    Args:
        error: What ended an operation.
        place: Where the repository is.
        machine: Name of this machine.
        recorded: Whether the operation had recorded anything.
    """
    if isinstance(error, (GitmemError, OSError)) or not damage.put_away(schema.path(place, machine), error):
        return None
    return IndexDamagedError(recorded=recorded)
