"""Warn a session before it edits paths that somebody else has claimed: once for each path and claim.

Below `claims/` in the state folder, `warned/<claim id>.<digest>` is an empty file for each session and path that a warning
was given for.
"""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..commit_message import cut
from ..digests import sha256
from ..outcome import command
from ..text.sanitize import sanitize_for_model
from . import claim_guard, local_state, path_patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..agents.caller import Caller
    from ..store import Store
    from .claim_answers import ClaimRow

REASON_MAX = 120
SHOWN_MAX = 5  # warnings in one text
WARNED_MAX = 5_000  # files; with more nobody is warned again


class EditWarnings:
    """What to tell a session that is about to edit files.

    Attributes:
        text: The warnings, a line each; "" without one.
        is_refused: Whether `gitmem.guard` is `block` and a claim blocks the edit.
    """

    def __init__(self, text: str = "", *, is_refused: bool = False) -> None:
        self.text = text
        self.is_refused = is_refused


def of_edit(store: Store, caller: Caller, paths: Sequence[str], *, may_refuse: bool = True) -> EditWarnings:
    """Return the warnings for an edit that is about to happen, or, without `may_refuse`, that has perhaps happened.

    Args:
        store: The store.
        caller: Who edits.
        paths: From the top of the work tree.
        may_refuse: Whether the client can keep the edit from happening.

    Raises:
        StoreError: The log can't be read.
    """
    mode = claim_guard.mode(store, claim_guard.WARN)
    if mode == claim_guard.OFF or not paths:
        return EditWarnings()
    mode = mode if may_refuse else claim_guard.WARN
    guard = claim_guard.check(store, [caller], paths, mode=mode, before_edit=True)
    refused = [_line(path, each) for path, each in _touched(paths, guard.blocks)]
    if refused:
        anyway = command("gitmem", "gate", "--paths", *paths[:1], "--anyway", "why")
        last = f"Nothing was changed: gitmem.guard is block. To edit nevertheless: `{anyway}`."
        return EditWarnings("\n".join([*_cut(refused), last]), is_refused=True)
    warned = [
        _line(path, each)
        for path, each in _touched(paths, guard.warns)
        if _is_first(store.repo.state, each.claim_id, caller.session_id or "", path)
    ]
    invalid = claim_guard.invalid_mode(store) if warned else ""
    return EditWarnings("\n".join([*_cut(warned), *filter(None, [invalid])]))


def _touched(paths: Sequence[str], found: Iterable[ClaimRow]) -> Iterator[tuple[str, ClaimRow]]:
    """Yield each path with the claims that cover it."""
    for each in found:
        patterns = path_patterns.prepared(each.paths)
        yield from ((path, each) for path in paths if any(one.matches(path) for one in patterns))


def _line(path: str, found: ClaimRow) -> str:
    who = sanitize_for_model(found.name or found.owner)
    why = f': "{cut(sanitize_for_model(found.reason), REASON_MAX)}"' if found.reason else ""
    status = "" if found.status == "held" else f" ({found.status})"
    ask = command("gitmem", "signal", f"May I change {path}?", "--to", found.owner)
    until = f"{found.until[:10]} {found.until[11:16]} UTC"
    return f"{sanitize_for_model(path)}: {who} claims it until {until}{status}{why}. Ask first: `{sanitize_for_model(ask)}`"


def _cut(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN_MAX
    return [*lines[:SHOWN_MAX], *([f"{more} more: `gitmem claim list`"] if more > 0 else [])]


def _is_first(state: str, claim_id: str, session: str, path: str) -> bool:
    """Note a warning; return False if it was noted before. Of hooks that run at once one gets True."""
    folder = local_state.path(state, local_state.WARNED)
    digest = sha256(f"{session}\0{path}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    try:
        state_files.make_dirs(folder)
        if len(atomic_write.names_in(folder)) >= WARNED_MAX:
            return False
    except OSError:
        return True  # nothing can be noted: better twice than never
    try:
        os.close(
            state_files.open_file(
                os.path.join(folder, f"{claim_id}.{digest}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL
            )
        )
    except FileExistsError:
        return False
    except OSError:
        return True
    return True
