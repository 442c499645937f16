"""A claim on paths that another session of this clone has changed and not committed: both are told, once for each claim."""

from __future__ import annotations

import os

from ..agents import delivery, edited_paths, presence
from ..log.lines import format_at
from ..outcome import command
from ..text.sanitize import sanitize_for_model
from . import standing_claims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..agents.caller import Caller
    from ..store import Store
    from .standing_claims import StandingClaim

SHOWN_MAX = 5
FILES_MAX = 200  # changed files of one claim whose sessions are looked up


def news(
    store: Store, claim: StandingClaim, changed: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield what sessions of this clone should be told once: see `delivery.tell_once`.

    Args:
        store: The store.
        claim: A claim that this clone sees for the first time.
        changed: The files that it covers and that are changed and not committed, each after the top folder of its worktree.
    """
    if claim.is_over or claim.claim.record["mode"] != standing_claims.EXCLUSIVE:
        return
    owner, claimer = claim.claim.owner
    files: dict[tuple[str, str], list[str]] = {}
    for folder, file in changed[:FILES_MAX]:
        where = edited_paths.EditedPaths(folder, 0, {}, 0)
        sessions = edited_paths.sessions_of(store, where, file)
        for session in (
            () if claimer in sessions else sessions
        ):  # else the change is perhaps the claimer's own
            files.setdefault((session, folder), []).append(file)
    editors = []
    for (session, folder), names in files.items():
        one = presence.get(store, session)
        if one is None or one.reader == owner:
            continue
        editors.append(_by(names, one.name or one.reader, folder))
        yield session, f"claimed/{claim.id}", _to_editor(claim, names)
    if editors and claim.is_here and claimer is not None:
        more = f"; and by {len(editors) - SHOWN_MAX} more" if len(editors) > SHOWN_MAX else ""
        text = f"{_to_claimer(claim.id)}{'; '.join(editors[:SHOWN_MAX])}{more}. Agree before you change them."
        yield claimer, f"edited/{claim.id}", text


def of_answer(store: Store, caller: Caller, claim_id: str) -> list[str]:
    """Return the sentence for the answer to whoever made a claim, who is not told again then."""
    store.db()  # as lines arrive, this clone sees the claim for the first time
    return delivery.drop_notices(store.repo.state, caller.session_id or "", _to_claimer(claim_id))


def _by(files: Sequence[str], name: str, folder: str) -> str:
    where = os.path.basename(folder)
    return f"{_shown(files)} by {sanitize_for_model(name)} in the worktree {sanitize_for_model(where)}"


def _to_editor(claim: StandingClaim, files: Sequence[str]) -> str:
    ask = command(
        "gitmem", "signal", f"I have changed {files[0]}. How do we go on?", "--to", claim.claim.owner[0]
    )
    since = format_at(claim.claim.since)
    return (
        f"claimed: {sanitize_for_model(claim.who)} claims {_shown(files)} since {since[:10]} {since[11:16]} UTC; you have changed "
        f"{'it' if len(files) == 1 else 'them'} since your last commit. Agree: `{sanitize_for_model(ask)}`"
    )


def _to_claimer(claim_id: str) -> str:
    return f"edited before your claim {claim_id} and not committed: "


def _shown(files: Sequence[str]) -> str:
    more = f" and {len(files) - SHOWN_MAX} more" if len(files) > SHOWN_MAX else ""
    return ", ".join(sanitize_for_model(each) for each in files[:SHOWN_MAX]) + more
