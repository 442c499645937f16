"""Whom `--to` and `--as` mean if lines of the log disagree about a session.

What others see of a session is shared: every line counts. A new signal is written here. If forged lines contradict
the own lines of a session of this clone, the signal goes to the recipient by the own lines, or is not written. For
sessions of other clones this clone can't tell which line is genuine: anybody who may push can write a line that gives
such a session another identity. Signals to it then go to its id, which the session itself reads.
"""

from __future__ import annotations

from ..errors import UsageError
from ..text.name_matching import fold, mixes_scripts
from ..text.sanitize import sanitize
from ..trust import sender_tables
from . import own_sessions, presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store import Store
    from .presence import Presence

_IDENTITIES = (
    "SELECT DISTINCT coalesce(agent_identity, '') FROM session_event"
    " WHERE session_id = ? AND (agent_identity IS NOT NULL OR event = 'start') LIMIT 3"
)
_FORGED = "SELECT DISTINCT name FROM forged WHERE name > 'sess-' AND name < 'sess.'"


def corrected(store: Store, found: Presence) -> tuple[Presence, str | None]:
    """Return a session named by its id as its own lines show it, and a warning if forged lines differ."""
    if not sender_tables.is_forged(store.db(), (found.session_id,)):
        return found, None
    own = own_sessions.trusted(store, found.session_id) or found
    if own.reader == found.reader:
        return own, _difference(found, own)
    return own, (
        f"Records not written in this clone claim that {found.session_id} is {sanitize(found.reader)}; by its own records "
        f"it is {own.reader}, which receives this. `gitmem doctor` lists them."
    )


def named(store: Store, name: str) -> list[Presence]:
    """Return this clone's open sessions with forged lines that have this name by their own lines."""
    return [own for _, own in _forged_sessions(store) if own.ended is None and _has_name(own, name)]


def of_identity(store: Store, identity: str) -> list[Presence]:
    """Return the sessions of an agent identity; those of this clone by their own lines alone."""
    forged = {own.session_id: own for _, own in _forged_sessions(store)}
    others = [one for one in presence.of_identity(store, identity) if one.session_id not in forged]
    return [*others, *(own for own in forged.values() if own.agent_identity == identity)]


def of_role(store: Store, lifecycle_role: str, specialty_profile: str | None) -> list[Presence]:
    """Return the open sessions with a role as `presence.of_role` does; those of this clone by their own lines alone."""
    forged = {own.session_id: own for _, own in _forged_sessions(store)}
    found = [*presence.of_role(store, lifecycle_role, specialty_profile)]
    found = [one for one in found if one.session_id not in forged]
    wanted = (lifecycle_role, specialty_profile)
    for own in forged.values():
        stated, profile = (own.record.get(name) for name in ("lifecycle_role", "specialty_profile"))
        if own.ended is None and wanted in ((stated, profile), (stated, None)):
            found.append(own)
    return found


def warning(store: Store, session_id: str | None = None) -> str | None:
    """Return what forged lines change about open sessions of this clone, or None.

    Args:
        session_id: The only session to check. Without it, the first one found is described and the others counted.
    """
    found = []
    for shown, own in _forged_sessions(store):
        difference = _difference(shown, own) if session_id in (None, own.session_id) else None
        if difference is not None:
            found.append(difference)
    if not found:
        return None
    return found[0] + (f" {len(found) - 1} more sessions of this clone are affected." if found[1:] else "")


def _difference(shown: Presence, own: Presence) -> str | None:
    """Return what the log shows of an open session against its own lines, or None."""
    if own.ended is not None:
        return None
    claims = []
    if shown.ended is not None:
        claims.append("has ended")
    if fold(shown.asked) != fold(own.asked):
        claims.append(f"is called {sanitize(shown.asked)[:80]}")
    if shown.reader != own.reader:
        claims.append(f"is {sanitize(shown.reader)}")
    if not claims:
        return None
    return (
        f"FORGED: records not written in this clone claim that {own.session_id} {' and '.join(claims)}. By its own records it "
        f"is open, and is {own.name} ({own.reader}). `gitmem doctor` lists them."
    )


def refuse_redirected(store: Store, text: str, found: Sequence[Presence]) -> None:
    """Reject a name that forged lines gave to a session of this clone, or took from one.

    Args:
        text: The name as typed.
        found: The sessions that the log shows for it.

    Raises:
        UsageError: The own lines of the session differ.
    """
    shown = {one.session_id: one for one in found}
    for _, own in _forged_sessions(store):
        other = shown.get(own.session_id)
        is_own = own.ended is None and _has_name(own, text)
        if other is not None and (not is_own or other.reader != own.reader):
            raise _refusal(text, other.reader, own)
        if other is None and is_own and found:
            raise _refusal(text, found[0].reader, own)


def of_published_client(store: Store, value: str) -> Presence | None:
    """Return the latest open session that was started here under the published id of a client of this clone."""
    if not sender_tables.is_own(store.db(), value):
        return None
    rows = store.db().execute(
        "SELECT DISTINCT session_id FROM session_event WHERE harness_session = ?", (value,)
    )
    ids = [
        str(session_id)
        for (session_id,) in rows.fetchall()
        if sender_tables.is_own(store.db(), str(session_id))
    ]
    every = [own_sessions.trusted(store, session_id) for session_id in ids]
    own = [one for one in every if one is not None and one.ended is None and one.harness_session == value]
    return max(own, key=lambda one: (one.started, one.session_id), default=None)


def _forged_sessions(store: Store) -> Iterator[tuple[Presence, Presence]]:
    """Yield each session of this clone with forged lines: as the log shows it, and by its own lines."""
    for (name,) in store.db().execute(_FORGED).fetchall():
        shown = presence.get(store, str(name)) if sender_tables.is_own(store.db(), str(name)) else None
        own = own_sessions.trusted(store, shown.session_id) if shown is not None else None
        if shown is not None and own is not None:
            yield shown, own


def _has_name(own: Presence, text: str) -> bool:
    return fold(text) == fold(own.name)


def _refusal(text: str, shared: str, own: Presence) -> UsageError:
    shown = sanitize(text)[:80]
    return UsageError(
        f"{shown} means {sanitize(shared)} according to records not written in this clone; its session {own.session_id} "
        f"is {own.reader} ({sanitize(own.name)}) by its own records. Nothing was written.",
        hint="Use the session id or the identity that you mean. `gitmem doctor` lists the records.",
        code="ambiguous-recipient",
        suggestions=[own.session_id, sanitize(shared)],
        next=["gitmem doctor", "gitmem roster --all"],
    )


def trusted_only(store: Store, found: Sequence[Presence]) -> list[Presence]:
    """Return sessions as `own_sessions.trusted` does, without those whose identity or name is forged."""
    kept = []
    for one in found:
        if not sender_tables.is_forged(store.db(), (one.session_id,)):
            kept.append(one)
            continue
        own = own_sessions.trusted(store, one.session_id)
        if (
            own is not None
            and own.ended is None
            and (own.reader, fold(own.asked)) == (one.reader, fold(one.asked))
        ):
            kept.append(own)
    return kept


def changed_identity(store: Store, session: Presence) -> str | None:
    """Return why signals to a session go to its id and not to its identity, or None if they go to the identity."""
    if session.agent_identity is None or sender_tables.is_own(store.db(), session.session_id):
        return None
    if len(_identities(store, session)) < 2:
        return None
    return (
        f"The identity of {session.session_id} has changed to {sanitize(session.agent_identity)}. The session "
        "itself receives this, by its id; if you trust the identity, send with --to and that identity."
    )


def took_first_identity(store: Store, session: Presence) -> bool:
    """Return whether a session has had no other identity than its present one, but none when it began."""
    return _identities(store, session) == {"", session.agent_identity}


def _identities(store: Store, session: Presence) -> set[str]:
    rows = store.db().execute(_IDENTITIES, (session.session_id,)).fetchall()
    return {str(row[0]) for row in rows}


def refuse_changed_identity(store: Store, name: str, identity: str, holder: Presence, code: str) -> None:
    """Reject a name of another clone's session that has changed its identity since the name was pinned here.

    Args:
        name: The name as typed.
        identity: The pinned identity; "" for none: the pin then means the session.
        holder: The session that the pin names.
        code: The code of the error.

    Raises:
        UsageError: The identity differs from the pinned one.
    """
    if (
        not identity
        or identity == holder.agent_identity
        or sender_tables.is_own(store.db(), holder.session_id)
    ):
        return
    shown = sanitize(name)[:80]
    raise UsageError(
        f"{shown} meant {sanitize(identity)} in this clone, but its session {holder.session_id} is "
        f"now {sanitize(holder.reader)}. Nothing was written.",
        hint="Anybody who can push can write such a change. Ask the agent you mean, and use its identity or the id of "
        "the session.",
        code=code,
        suggestions=[holder.session_id, sanitize(identity), sanitize(holder.reader)],
        next=["gitmem roster --all"],
    )


def refuse_mixed(text: str) -> None:
    """Reject a text that mixes scripts.

    Raises:
        UsageError: `unknown-recipient`.
    """
    if not any(mixes_scripts(part) for part in text.split(":")):
        return
    raise UsageError(
        f"{ascii(text)[:80]} mixes letters of several scripts and could imitate another name. "
        "Nothing was written.",
        hint="Type the name, or use the session id from the roster.",
        code="unknown-recipient",
        next=["gitmem roster"],
    )
