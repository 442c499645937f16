"""The work units that what is checked out here is about."""

from __future__ import annotations

from ..outcome import Outcome
from ..text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store


SETTING = "gitmem.wu"


class Unchecked(Outcome):
    """The answer about a push of which nothing could be checked, because no work unit or nobody is known.

    Attributes:
        open: True: the push goes on.
        wu_id: The work unit; None where none is known.
        reason: What is not known, as a sentence.
    """

    __slots__ = ("open", "wu_id", "reason", "warnings", "next")

    def __init__(self, wu: str | None, reason: str, next: list[str]) -> None:
        self.open = True
        self.wu_id = wu
        self.reason = reason
        self.warnings: list[str] = []
        self.next = next


def unchecked(store: Store) -> Unchecked:
    """Return the answer where neither the branch nor `gitmem.wu` says which work unit is pushed."""
    branch = store.branch()
    where = f"the branch {branch} names no work unit" if branch else "no branch is checked out"
    reason = (
        f"{where} that the log knows, and {SETTING} is not set, so signals on a work unit were not looked for "
        "and the push goes on."
    )
    named = named_by(branch or "")
    setting = ["git", "config", SETTING, named[0] if named else "WU-123"]
    return Unchecked(None, reason, [command(*setting), "gitmem inbox"])


def of_nobody(wu: str) -> Unchecked:
    """Return the answer where nobody pushes to whom signals could have been sent."""
    reason = (
        "no session and no user.email say who pushes, so signals were not looked for and the push goes on."
    )
    return Unchecked(wu, reason, ["gitmem session start", "gitmem gate --help"])


def of_checkout(store: Store, setting: str | None) -> list[str]:
    """Of the branch's name those that the log knows, whatever their case; else the one that is set; else none.

    Args:
        setting: The value of `gitmem.wu`.
    """
    known = [wu for wu in named_by(store.branch() or "") if is_known(store, wu)]
    return known or ([setting.strip().upper()] if setting and setting.strip() else [])


def named_by(branch: str) -> list[str]:
    """Return what in a branch's name may be a work unit.

    `lane/wu-12-retry-3` may be about WU-12 and about RETRY-3: only the log can tell.
    """
    import re

    form = r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]*-[0-9]+)(?![A-Za-z0-9])"
    return list(dict.fromkeys(each.upper() for each in re.findall(form, branch)))


def is_known(store: Store, wu: str) -> bool:
    """Whether a session or a signal of the log names this work unit."""
    queries = (
        "SELECT 1 FROM session WHERE wu_id = ? LIMIT 1",
        "SELECT 1 FROM signal WHERE wu_id = ? LIMIT 1",
    )
    return any(store.db().execute(query, (wu,)).fetchone() for query in queries)
