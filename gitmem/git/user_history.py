"""List the newest commits of the user's branches. Whatever their subjects, authors and dates say is data."""

from __future__ import annotations

from typing import NamedTuple

from . import run
from .objects import is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SECONDS = 5.0
OUT_BYTES_MAX = 8 * 1024 * 1024
AUTHOR_COLUMNS, MAIL_COLUMNS, SUBJECT_COLUMNS = 80, 254, 200
SECONDS_MAX = 253_402_300_799  # the end of the year 9999
_FIELDS = 6
# The user's configuration may change what `git log` does; these options override it.
_LOG = (
    "-c", "log.showRoot=true", "-c", "log.excludeDecoration=", "log", "--stdin", "-z", "--date-order", "--source", "--no-color", "--no-notes",
    "--no-mailmap", "--no-show-signature", "--no-patch", "--ignore-missing", "--encoding=UTF-8",
    f"--format=%H%x00%ct%x00%S%x00%<({AUTHOR_COLUMNS},trunc)%an%x00%<({MAIL_COLUMNS},trunc)%ae%x00%<({SUBJECT_COLUMNS},trunc)%s",
)  # fmt: skip


class UserCommit(NamedTuple):
    """A commit.

    Attributes:
        seconds: Since the epoch, when it was committed.
        tip: The commit from which it was reached first.
    """

    oid: str
    seconds: int
    tip: str
    author: str
    mail: str
    subject: str


def newest(common: str, tips: Iterable[str], most: int, *, seconds: float = SECONDS) -> list[UserCommit]:
    """Return the newest commits that are reachable from some commits, children before parents.

    Nothing is fetched in a partial clone; a shallow clone ends where it ends.

    Args:
        common: The repository.
        tips: The commits; missing ones are ignored.
        most: How many to return.
        seconds: Time limit.

    Raises:
        StoreError: git failed, did not end in time or wrote too much.
    """
    given = "".join(f"{oid}\n" for oid in dict.fromkeys(tips) if is_oid(oid))
    if not given:
        return []
    out = run.run(
        common,
        [*_LOG, f"--max-count={most}"],
        input=given.encode("ascii"),
        timeout=seconds,
        out_max=OUT_BYTES_MAX,
    ).out
    words = out.decode("utf-8", "replace").split("\0")
    found = []
    for at in range(0, len(words) - _FIELDS + 1, _FIELDS):
        oid, when, tip, author, mail, subject = words[at : at + _FIELDS]
        if is_oid(oid) and when.isdigit():
            found.append(
                UserCommit(oid, _within(when), tip, author.rstrip(), mail.rstrip(), subject.rstrip())
            )
    return found


def _within(seconds: str) -> int:
    """Return a time that other programs can show: a commit may have any."""
    return min(int(seconds[:12]), SECONDS_MAX)
