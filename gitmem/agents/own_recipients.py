"""Whom `--to` means where forged lines say something else of a session of this clone than its own lines do.

What others see of such a session is shared, and every line counts for it. A new signal is written here: it goes to
whom the session's own lines name, or it is not written.
"""

from __future__ import annotations

from ..errors import UsageError
from ..operations.spelling import fold
from ..text.sanitize import sanitize
from . import authenticity, own_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from ..operations.presence import Presence
    from ..operations.store import Store

_FORGED = "SELECT DISTINCT name FROM forged WHERE name > 'sess-' AND name < 'sess.'"


def by_id(store: Store, found: Presence) -> tuple[Presence, str | None]:
    """Return a session that was named by its id as its own lines say it is, and a warning where others differ."""
    if not authenticity.is_forged(store.db(), (found.session_id,)):
        return found, None
    own = own_sessions.trusted(store, found.session_id) or found
    if own.reader == found.reader:
        return own, None
    return own, (
        f"Lines that were not written here say that {found.session_id} is {sanitize(found.reader)}; by its own lines "
        f"it is {own.reader}, which gets this. `gitmem doctor` lists them."
    )


def refuse_redirected(store: Store, text: str, found: Sequence[Presence]) -> None:
    """Refuse a name that forged lines gave to a session of this clone, or took from one.

    Args:
        text: The name as it was typed.
        found: The sessions that the log shows for it.

    Raises: UsageError where the own lines of the session say something else.
    """
    shown = {one.session_id: one for one in found}
    for session_id in _forged_sessions(store.db()):
        own = own_sessions.trusted(store, session_id)
        if own is None:
            continue
        other = shown.get(session_id)
        is_own = own.ended is None and _is_called(own, text)
        if other is not None and (not is_own or other.reader != own.reader):
            raise _refusal(text, other.reader, own)
        if other is None and is_own and found:
            raise _refusal(text, found[0].reader, own)


def of_published_client(store: Store, value: str) -> Presence | None:
    """Return the latest open session that was started here under the published id of a client of this clone."""
    if not authenticity.is_own(store.db(), value):
        return None
    rows = store.db().execute(
        "SELECT DISTINCT session_id FROM session_event WHERE harness_session = ?", (value,)
    )
    ids = [
        str(session_id)
        for (session_id,) in rows.fetchall()
        if authenticity.is_own(store.db(), str(session_id))
    ]
    every = [own_sessions.trusted(store, session_id) for session_id in ids]
    own = [one for one in every if one is not None and one.ended is None and one.harness_session == value]
    return max(own, key=lambda one: (one.started, one.session_id), default=None)


def _forged_sessions(db: sqlite3.Connection) -> list[str]:
    return [str(name) for (name,) in db.execute(_FORGED).fetchall() if authenticity.is_own(db, str(name))]


def _is_called(own: Presence, text: str) -> bool:
    return fold(text) == fold(own.name)


def _refusal(text: str, shared: str, own: Presence) -> UsageError:
    shown = sanitize(text)[:80]
    return UsageError(
        f"{shown} names {sanitize(shared)} by lines that were not written here; the session {own.session_id} of this "
        f"clone is {own.reader} ({sanitize(own.name)}) by its own lines; nothing was written.",
        hint="Use the id of the session, or the identity, that you mean. `gitmem doctor` lists the lines.",
        code="ambiguous-recipient",
        suggestions=[own.session_id, sanitize(shared)],
        next=["gitmem doctor", "gitmem roster --all"],
    )


def trusted_only(store: Store, found: Sequence[Presence]) -> list[Presence]:
    """Return sessions as `own_sessions.trusted` has them, without those whose identity or name is forged."""
    kept = []
    for one in found:
        if not authenticity.is_forged(store.db(), (one.session_id,)):
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
