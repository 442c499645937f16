"""The work units of the checked-out branch, and whether the log knows them."""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import Outcome, command
from ..records.ids import UNIT_FORM, is_work_unit, unit_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store


SETTING = "gitmem.wu"
SUGGESTIONS_MAX = 3
SIMILARITY_MIN = 0.6
COMPARED_MAX = 10_000  # names: peers can write any number


class GateUnchecked(Outcome, kw_only=True):
    """The answer about a push that could not be checked because the work unit or the caller is unknown.

    Attributes:
        open: True: the push continues.
        wu_id: The work unit; None if unknown.
        reason: A sentence about what is unknown.
    """

    open: bool = True
    wu_id: str | None
    reason: str
    warnings: list[str] = []
    next: list[str]


def unchecked(store: Store) -> GateUnchecked:
    """Return the answer if neither the branch nor `gitmem.wu` names the work unit of the push."""
    branch = store.branch()
    where = (
        f"branch {branch} does not contain the id of a work unit in the log"
        if branch
        else "no branch is checked out"
    )
    reason = f"{where}, and {SETTING} is not set; signals were not checked, and the push continues."
    named = _keys_in(branch or "")
    setting = ["git", "config", SETTING, named[0] if named else "WU-123"]
    return GateUnchecked(wu_id=None, reason=reason, next=[command(*setting), "gitmem inbox"])


def unknown_pusher(wu: str) -> GateUnchecked:
    """Return the answer about a push by an unknown caller, to whom no signal can have been sent."""
    reason = (
        "no session and no user.email say who pushes, so signals were not looked for and the push continues."
    )
    return GateUnchecked(wu_id=wu, reason=reason, next=["gitmem session start", "gitmem gate --help"])


def of_checkout(store: Store, setting: str | None) -> list[str]:
    """Return the work units of the branch's name that the log knows; else the configured one or none."""
    known = [wu for wu in named_by(store.branch() or "") if is_known(store, wu)]
    return known or ([setting.strip()] if setting and setting.strip() else [])


def named_by(branch: str) -> list[str]:
    """Return the possible work units in a branch's name.

    `lane/wu-12-retry-3` may be about WU-12, about RETRY-3 and about itself: only the log can tell.
    """
    import re

    numbers = re.findall(r"(?:^|/)#?([0-9]+)(?=-|$)", branch)  # as GitHub names branches for issues
    names = [*_keys_in(branch), branch, branch.rpartition("/")[2], *numbers]
    found: dict[str, str] = {}
    for name in filter(is_work_unit, names):
        found.setdefault(unit_key(name), name)
    return list(found.values())


def _keys_in(branch: str) -> list[str]:
    """Return the parts of a branch's name that look like `WU-123`, in upper case."""
    import re

    form = r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]*-[0-9]+)(?![A-Za-z0-9])"
    return [key.upper() for key in re.findall(form, branch)]


def is_known(store: Store, wu: str) -> bool:
    """Return whether a session, a signal or a memory node names this work unit."""
    from . import session_view

    return session_view.is_unit(store.db(), unit_key(wu))


def missing() -> UsageError:
    """Return the error about a caller who names no work unit, and whose session has none."""
    return UsageError(
        "Missing work unit.",
        hint="Name it with --wu WU-123, or set your session's.",
        code="no-work-unit",
        next=["gitmem session set --wu WU-123", "gitmem gate --help"],
    )


def unnamed(store: Store, wu: str) -> UsageError | None:
    """Return the error about a work unit that no record names; None if one does.

    Raises:
        UsageError: `bad-work-unit`.
    """
    if not is_work_unit(wu):
        raise UsageError(
            f"Invalid work unit: {sanitize(wu)[:60]}.", hint=f"Use {UNIT_FORM}.", code="bad-work-unit"
        )
    if is_known(store, wu):
        return None
    similar = _similar(store, wu)
    return UsageError(
        _not_named(wu),
        hint="Check its spelling. To name a new one, set it for your session.",
        code="unknown-work-unit",
        suggestions=similar,
        next=[
            *(command("gitmem", "gate", "--wu", each) for each in similar[:1]),
            command("gitmem", "session", "set", "--wu", wu),
            command("gitmem", "gate", "--wu", wu, "--new"),
        ],
    )


def remark(store: Store, wu: str | None) -> str | None:
    """Return a sentence about a work unit that no record names yet: it may be a typing error; None if one does."""
    if not wu or not is_work_unit(wu) or is_known(store, wu):
        return None
    return f"{_not_named(wu)} Check its spelling."


def _not_named(wu: str) -> str:
    return f"No session, signal or memory node names the work unit {wu} yet."


def _similar(store: Store, wu: str) -> list[str]:
    """Return known work units that are spelt alike, the most similar first."""
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    from . import session_view

    choices = session_view.units(store.db(), COMPARED_MAX)
    best = process.extract(
        unit_key(wu), choices, scorer=Levenshtein.normalized_similarity, limit=SUGGESTIONS_MAX,
        score_cutoff=SIMILARITY_MIN,
    )  # fmt: skip
    return [name for _, _, name in best]
