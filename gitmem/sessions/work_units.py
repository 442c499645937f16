"""The work units of the checked-out branch."""

from __future__ import annotations

from ..outcome import Outcome
from ..text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store


SETTING = "gitmem.wu"


class GateUnchecked(Outcome):
    """The answer about a push that could not be checked because the work unit or the caller is unknown.

    Attributes:
        open: True: the push continues.
        wu_id: The work unit; None if unknown.
        reason: A sentence about what is unknown.
    """

    __slots__ = ("open", "wu_id", "reason", "warnings", "next")

    def __init__(self, wu: str | None, reason: str, next: list[str]) -> None:
        self.open = True
        self.wu_id = wu
        self.reason = reason
        self.warnings: list[str] = []
        self.next = next


def unchecked(store: Store) -> GateUnchecked:
    """Return the answer if neither the branch nor `gitmem.wu` names the work unit of the push."""
    branch = store.branch()
    where = (
        f"branch {branch} does not contain the id of a work unit in the log"
        if branch
        else "no branch is checked out"
    )
    reason = f"{where}, and {SETTING} is not set; signals were not checked, and the push continues."
    named = named_by(branch or "")
    setting = ["git", "config", SETTING, named[0] if named else "WU-123"]
    return GateUnchecked(None, reason, [command(*setting), "gitmem inbox"])


def unknown_pusher(wu: str) -> GateUnchecked:
    """Return the answer about a push by an unknown caller, to whom no signal can have been sent."""
    reason = (
        "no session and no user.email say who pushes, so signals were not looked for and the push continues."
    )
    return GateUnchecked(wu, reason, ["gitmem session start", "gitmem gate --help"])


def of_checkout(store: Store, setting: str | None) -> list[str]:
    """Return the work units of the branch's name that the log knows, ignoring case; else the configured one or none."""
    known = [wu for wu in named_by(store.branch() or "") if is_known(store, wu)]
    return known or ([setting.strip().upper()] if setting and setting.strip() else [])


def named_by(branch: str) -> list[str]:
    """Return the possible work units in a branch's name.

    `lane/wu-12-retry-3` may be about WU-12 and about RETRY-3: only the log can tell.
    """
    import re

    form = r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]*-[0-9]+)(?![A-Za-z0-9])"
    return list(dict.fromkeys(each.upper() for each in re.findall(form, branch)))


def is_known(store: Store, wu: str) -> bool:
    """Return whether a session or a signal of the log names this work unit."""
    queries = (
        "SELECT 1 FROM session WHERE wu_id = ? LIMIT 1",
        "SELECT 1 FROM signal WHERE wu_id = ? LIMIT 1",
    )
    return any(store.db().execute(query, (wu,)).fetchone() for query in queries)
