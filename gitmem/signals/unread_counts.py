"""How many signals a reader has not read, and how many of these want an answer from it."""

from __future__ import annotations

from ..agents import mailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

FOLD_MAX_BYTES = 4 * 1024 * 1024  # of the lines of threads; beyond that, what asked counts


def unread_counts(
    db: sqlite3.Connection,
    reader: str,
    session: str | None,
    workspace: str | None,
    now: int,
    *,
    directed: bool = False,
) -> tuple[int, int]:
    """Return how many signals a reader has not read, and how many of these want an answer from it, as its inbox shows.

    Args:
        now: Microseconds.
        directed: Only signals that were sent to it in particular.
    """
    if directed:
        rows = db.execute(*mailbox.directed_to(db, reader, session, workspace, unread=True)).fetchall()
    else:
        rows = mailbox.unread_ids(db, reader, session, workspace, now)
    unread: dict[str, list[str]] = {}
    for address, id in rows:
        unread.setdefault(id, []).append(address)
    if not unread:
        return 0, 0
    asked = {id for _, id in db.execute(*mailbox.directed_to(db, reader, session, workspace, unread=False))}
    cache, count = None, 0
    for id, thread, contents, rejects in mailbox.may_want_answer(db, unread):
        if contents > 1 or not (rejects or id in asked):
            continue
        if mailbox.is_only_signal(db, thread, id):
            count += id in asked
            continue
        if cache is None:
            from .threads import ThreadCache

            cache = ThreadCache(db, FOLD_MAX_BYTES)
        found = cache.of(thread)
        names = dict.fromkeys(filter(None, (reader, session, *unread[id])))
        count += bool(found.asks_about(list(names), id)) if found is not None else id in asked
    return len(unread), count
