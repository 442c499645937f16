"""Files in the state folder about claims, for hooks that cannot wait for Python, and for commands of a session.

They are derived from the index, and written where lines arrive. Below `claims/`:

- `claimed`: exists while an exclusive claim stands, or was perhaps renewed elsewhere. Without it a guard ends at once;
- `only-own/in-<git folder>`: exists for a worktree while all exclusive claims are of its only session;
- `seen/<claim id>`: its time is when this clone first saw the claim, its content are the worktrees and files that the claim covers
  and that were changed and not committed then;
- `due/<session id>`, `due/<client's session>`: its time is when half the lease of a claim of that session is over;
- `notices/<session id>` and `told/<session id>`: see `session_notices`, which also tells sessions about contested claims;
- `warned/<claim id>.<digest>`: a session was warned about the claim before it edited a path.
"""

from __future__ import annotations

import os
import time
from functools import partial

from .. import atomic_write, state_files
from ..agents import delivery, heartbeats
from ..agents.heartbeats import ONLY_OWN
from ..repo import is_gone
from . import branches, claimed_edits, owner_notices, path_patterns, standing_claims
from .claim_answers import contest_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ..store import Store
    from .standing_claims import StandingClaim

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


def path(state: str, *names: str) -> str:
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
    _, newest = heartbeats.claims_until(db)
    found = standing_claims.standing(store, forged=False, db=db)
    folder = path(state)
    if found or os.path.isdir(folder):
        state_files.make_dirs(folder)
        for name in (SEEN, DUE):
            state_files.make_dirs(path(state, name))
        state_files.make_dirs(os.path.join(state, ONLY_OWN))
        exclusive = [each for each in found if each.claim.record["mode"] == standing_claims.EXCLUSIVE]
        _set(path(state, CLAIMED), bool(exclusive))
        _see(store, [each for each in found if not os.path.lexists(path(state, SEEN, each.id))])
        ids = {each.id for each in found}
        _keep(path(state, SEEN), ids)
        for name in atomic_write.names_in(path(state, WARNED)):
            if name.partition(".")[0] not in ids:
                atomic_write.remove_quietly(path(state, WARNED, name))
        _keep(os.path.join(state, ONLY_OWN), set(_only_own(store, exclusive)), create=True)
        _tell(store, [each for each in found if each.is_here])
        delivery.forget_others(store)
        delivery.tell_once(store, lambda: owner_notices.news(store))
    ends = [each.claim.until + (standing_claims.GRACE_MICROS if each.is_over else 0) for each in found]
    again = min([now + AGAIN_MICROS, *ends]) if found else ""
    if newest is None:
        db.execute("DELETE FROM meta WHERE key = ?", (heartbeats.CLAIMS,))
    else:
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (heartbeats.CLAIMS, f"{newest} {again}"))


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
        delivery.tell_once(store, partial(claimed_edits.news, store, claim, rows))
        content = os.fsencode("".join(f"{folder}\0{file}\0" for folder, file in rows))
        atomic_write.replace(
            path(store.repo.state, SEEN, claim.id), content if len(content) <= CHANGES_BYTES_MAX else b""
        )
        _touch(path(store.repo.state, SEEN, claim.id), store.now())


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
    _keep(path(state, DUE), names)
    for name, at in names.items():
        _touch(path(state, DUE, name), at)


def _names(store: Store, session: str) -> list[str]:
    return heartbeats.flag_names(session, heartbeats.client_of(store, session))


def postpone(store: Store, session: str) -> None:
    """Let a session try to renew its claims in a minute, not at its next hook: it tries now."""
    for name in _names(store, session):
        _touch(path(store.repo.state, DUE, name), store.now() + AGAIN_MICROS)


def seen_at(state: str, claim_id: str) -> int:
    """Return when this clone first saw a claim, in microseconds; 0 if that is not known."""
    try:
        return os.stat(path(state, SEEN, claim_id)).st_mtime_ns // 1000
    except OSError:
        return 0


def changed_before(state: str, claim_id: str, worktree: str) -> set[str]:
    """Return the files of a worktree that were changed before this clone first saw a claim, and that it covers."""
    names = os.fsdecode(state_files.read(path(state, SEEN, claim_id), CHANGES_BYTES_MAX)).split("\0")
    return {file for folder, file in zip(names[::2], names[1::2], strict=False) if folder == worktree}


def _set(where: str, wanted: bool) -> None:
    if not wanted:
        atomic_write.remove_quietly(where)
    elif not os.path.lexists(where) or state_files.link_at(os.path.dirname(where)):
        os.close(state_files.open_file(where, os.O_WRONLY | os.O_CREAT))


def _keep(folder: str, names: Collection[str], *, create: bool = False) -> None:
    """Remove the files of a folder with other names; create those that are missing."""
    for name in set(atomic_write.names_in(folder)) - set(names):
        atomic_write.remove_quietly(os.path.join(folder, name))
    for name in names if create else ():
        _set(os.path.join(folder, name), True)


def _touch(where: str, at: int) -> None:
    _set(where, True)
    state_files.utime(where, (at * 1000, at * 1000))
