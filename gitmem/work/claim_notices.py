"""What owners of claims are told once: that somebody passed a claim of theirs with a reason, or released it."""

from __future__ import annotations

import os
import time
from functools import partial

from .. import local_files
from ..agents import audits, delivery, edited_paths, heartbeats, presence
from ..agents.heartbeats import ONLY_OWN
from ..commit_message import cut, sanitize
from ..index import index_file
from ..log.lines import format_at
from ..order import claim as claim_fold
from ..outcome import command
from ..repo import is_gone
from ..text.digests import sha256
from ..text.sanitize import first_of, sanitize_for_model
from . import branches, claims, path_patterns, tables
from .claims import contest_text, paths_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ..agents.caller import Caller
    from ..order.claim import FoldedClaim
    from ..store import Store
    from .claims import StandingClaim


LOOKED_MAX = 50  # newest releases, and audits
OF_AUDIT_MAX = 20  # claims that an audit names
REASON_MAX = 200


def owner_news(store: Store) -> Iterator[tuple[str, str, str]]:
    """Yield what sessions of this clone should be told once: the session, a word for what it is about, and a sentence."""
    db, now = store.index.db, store.now()
    here = heartbeats.known_sessions(store).keys()
    for claim_id in claims.released_here(db, now, LOOKED_MAX):
        claim = tables.folded_claim(db, claim_id)
        record = claim.released if claim is not None else None
        if claim is None or record is None or record["sender_identity"] == claim.owner[0]:
            continue
        if (session := claim.owner[1] or "") in here:
            who = record.get("sender_name") or record["sender_identity"]
            text = _sentence("released", who, claim, record.get("reason") or "")
            yield session, f"released/{claim_id}", text
    since = format_at(max(0, now - claim_fold.LEASE_MAX_MICROS))
    until = format_at(now + claim_fold.AHEAD_MICROS)
    for audit in audits.of_action(db, audits.CLAIM, since, until, LOOKED_MAX):
        for claim_id in audits.claim_ids(audit)[:OF_AUDIT_MAX]:
            claim = tables.folded_claim(db, claim_id)
            if claim is None or audit["sender_identity"] == claim.owner[0]:
                continue
            if (session := claim.owner[1] or "") in here:
                who = audit.get("sender_name") or audit["sender_identity"]
                about = sha256(audit["sender_identity"].encode()).hexdigest()[:12]
                reason = audit["reason"].rpartition(" (")[0]
                yield session, f"passed/{claim_id}/{about}", _sentence("passed", who, claim, reason)


def _sentence(what: str, who: str, claim: FoldedClaim, reason: str) -> str:
    shown = paths_text(claim.record["paths"])
    why = cut(sanitize(reason.replace("\n", " ")), REASON_MAX)
    return f"{what}: {sanitize(who)} {what} your claim {claim.record['claim_id']} on {shown}: {why}"


SHOWN_MAX = 5
FILES_MAX = 200  # changed files of one claim whose sessions are looked up


def edit_news(
    store: Store, claim: StandingClaim, changed: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield what sessions of this clone should be told once: see `delivery.tell_once`.

    Args:
        store: The store.
        claim: A claim that this clone sees for the first time.
        changed: The files that it covers and that are changed and not committed, each after the top folder of its worktree.
    """
    if claim.is_over or claim.claim.record["mode"] != claims.EXCLUSIVE:
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


def edits_of_answer(store: Store, caller: Caller, claim_id: str) -> list[str]:
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
    return first_of(files, SHOWN_MAX, shown=sanitize_for_model)


FOLDER, CLAIMED, SEEN, DUE, WARNED = (
    "claims",
    "claimed",
    "seen",
    os.path.basename(delivery.DUE),
    "warned",
)
CHANGES_SECONDS = 1.0  # for git to list the uncommitted files of all worktrees
CHANGES_STEPS = 200_000  # of matches of these files
CHANGES_BYTES_MAX = 256 * 1024  # of one claim
AGAIN_MICROS = 60 * 1_000_000
SESSION_MICROS = 24 * 3600 * 1_000_000


def state_path(state: str, *names: str) -> str:
    """Return a path in the folder of claims."""
    return os.path.join(state, FOLDER, *names)


def update(store: Store) -> None:
    """Bring the files in line with the index. They are derived: after an error the next call repeats the work."""
    try:
        _update(store)
    except Exception:
        return


def _update(store: Store) -> None:
    db, now, state = store.index.db, store.now(), store.repo.state
    _, newest = index_file.mark(db, *heartbeats.CLAIMS_MARK)
    found = claims.standing(store, db=db)
    folder = state_path(state)
    if found or os.path.isdir(folder):
        local_files.make_dirs(folder)
        for name in (SEEN, DUE):
            local_files.make_dirs(state_path(state, name))
        local_files.make_dirs(os.path.join(state, ONLY_OWN))
        exclusive = [each for each in found if each.claim.record["mode"] == claims.EXCLUSIVE]
        _set(state_path(state, CLAIMED), bool(exclusive))
        _see(store, [each for each in found if not os.path.lexists(state_path(state, SEEN, each.id))])
        ids = {each.id for each in found}
        _keep(state_path(state, SEEN), ids)
        for name in local_files.names_in(state_path(state, WARNED)):
            if name.partition(".")[0] not in ids:
                local_files.remove_quietly(state_path(state, WARNED, name))
        _keep(os.path.join(state, ONLY_OWN), set(_only_own(store, exclusive)), create=True)
        _tell(store, [each for each in found if each.is_here])
        delivery.forget_others(store)
        delivery.tell_once(store, lambda: owner_news(store))
    ends = [each.claim.until + (claims.GRACE_MICROS if each.is_over else 0) for each in found]
    again = min([now + AGAIN_MICROS, *ends]) if found else None
    heartbeats.note_claims(db, newest, again)


def _see(store: Store, new: Collection[StandingClaim]) -> None:
    """Note when this clone first sees claims, and which of the files that they cover have been changed before, and tell who did."""
    if not new:
        return
    until = time.monotonic() + CHANGES_SECONDS
    places, _ = branches.checkouts(store, lambda: until - time.monotonic())
    given = [(place.folder, [(each, path_patterns.normal(each)) for each in place.files]) for place in places]
    budget = path_patterns.Budget(CHANGES_STEPS)
    for claim in sorted(new, key=lambda each: each.weight):
        rows = [(folder, file) for folder, files in given for file in claim.touched(files, budget)]
        delivery.tell_once(store, partial(edit_news, store, claim, rows))
        content = os.fsencode("".join(f"{folder}\0{file}\0" for folder, file in rows))
        local_files.replace(
            state_path(store.repo.state, SEEN, claim.id),
            content if len(content) <= CHANGES_BYTES_MAX else b"",
        )
        _touch(state_path(store.repo.state, SEEN, claim.id), store.now())


def _only_own(store: Store, found: Collection[StandingClaim]) -> Iterable[str]:
    """Yield the names of the git folders of worktrees whose only session has made all claims that stand."""
    worktrees: dict[str, set[str]] = {}
    for session_id, (where, at) in heartbeats.known_sessions(store).items():
        if at > store.now() - SESSION_MICROS:
            worktrees.setdefault(where, set()).add(session_id)
    for where, sessions in worktrees.items():
        name = "in-" + (where.rpartition(" ")[0] or where)
        own_only = len(sessions) == 1 and all(each.claim.owner[1] in sessions for each in found)
        if own_only and heartbeats.is_safe(name) and not is_gone(where, store.repo.common):
            yield name


def _tell(store: Store, own: Collection[StandingClaim]) -> None:
    """Write what sessions of this clone have to be told, and when their claims are to be renewed."""
    state = store.repo.state
    due: dict[str, int] = {}
    for each in own:
        session = each.claim.owner[1] or ""
        half = (each.claim.renewed + each.claim.until) // 2
        due[session] = min(half, due.get(session, half))
        told = delivery.told(state, session)
        new = [other for other in each.against if f"{each.id}/{other.id}" not in told]
        if not new:
            continue
        line = f"contested: {contest_text(each, new[0])}. Agree with {new[0].who}."
        delivery.tell(store, session, line)
        delivery.note_told(state, session, [f"{each.id}/{other.id}" for other in new])
    names = {name: at for session, at in due.items() for name in _names(store, session)}
    _keep(state_path(state, DUE), names)
    for name, at in names.items():
        _touch(state_path(state, DUE, name), at)


def _names(store: Store, session: str) -> list[str]:
    return heartbeats.flag_names(session, heartbeats.client_of(store, session))


def postpone(store: Store, session: str) -> None:
    """Let a session try to renew its claims in a minute, not at its next hook: it tries now."""
    for name in _names(store, session):
        _touch(state_path(store.repo.state, DUE, name), store.now() + AGAIN_MICROS)


def seen_at(state: str, claim_id: str) -> int:
    """Return when this clone first saw a claim, in microseconds; 0 if that is not known."""
    try:
        return os.stat(state_path(state, SEEN, claim_id)).st_mtime_ns // 1000
    except OSError:
        return 0


def changed_before(state: str, claim_id: str, worktree: str) -> set[str]:
    """Return the files of a worktree that were changed before this clone first saw a claim, and that it covers."""
    names = os.fsdecode(local_files.read(state_path(state, SEEN, claim_id), CHANGES_BYTES_MAX)).split("\0")
    return {file for folder, file in zip(names[::2], names[1::2], strict=False) if folder == worktree}


def _set(where: str, wanted: bool) -> None:
    if not wanted:
        local_files.remove_quietly(where)
    elif not os.path.lexists(where) or local_files.link_at(os.path.dirname(where)):
        os.close(local_files.open_file(where, os.O_WRONLY | os.O_CREAT))


def _keep(folder: str, names: Collection[str], *, create: bool = False) -> None:
    """Remove the files of a folder with other names; create those that are missing."""
    for name in set(local_files.names_in(folder)) - set(names):
        local_files.remove_quietly(os.path.join(folder, name))
    for name in names if create else ():
        _set(os.path.join(folder, name), True)


def _touch(where: str, at: int) -> None:
    _set(where, True)
    local_files.utime(where, (at * 1000, at * 1000))
