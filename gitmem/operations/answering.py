"""What a signal answers: the signal, its thread, whom the answer goes to, and what its writer had seen."""

from __future__ import annotations

from ..errors import UsageError
from ..text.sanitize import sanitize
from . import addressing, advice, causality, known_ids, threads
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from .addressing import Resolved
    from .caller import Caller
    from .causality import Said
    from .store import Store


def answered(db: sqlite3.Connection, text: str) -> Said:
    id = known_ids.find_id(db, text, writing=True)
    thread = threads.load(db, known_ids.thread_of(db, id))
    if id not in thread:
        raise UsageError(
            f"{id} is a thread; --reply-to wants the signal that you answer. Nothing was written.",
            hint="`gitmem thread` shows its signals.",
            code="not-a-signal",
            next=[command("gitmem", "thread", id)],
        )
    return thread[id]


def refuse_conflicting(answered: Said | None, intent: str) -> None:
    """Raise UsageError for a decision about an id whose lines say different things."""
    if answered is None or intent not in causality.DECISIONS or not threads.is_conflicting(answered):
        return
    raise UsageError(
        f"{answered.id} has different lines with this id, so nobody can tell what an {intent} answers. "
        "Nothing was written.",
        hint="Compare the lines, ask their senders, and have the right one sent again as a new signal.",
        code="conflicting-lines",
        next=advice.compare(answered.id),
    )


def thread_id(db: sqlite3.Connection, thread: str | None, answered: Said | None) -> str | None:
    if thread:
        try:
            return known_ids.thread_of(db, known_ids.find_id(db, thread, writing=True))
        except UsageError as error:
            if error.code != "unknown-id":
                raise
            return thread
    if answered is not None:
        return answered.text("thread_id") or answered.id
    return None


def recipients(
    store: Store,
    caller: Caller,
    to: Sequence[str],
    broadcast: bool,
    answered: Said | None,
    said: dict[str, Said],
    thread: str | None,
    allow_unseen: bool,
    fuzzy: bool,
) -> list[Resolved]:
    if broadcast:
        return []
    if to:
        return addressing.resolve(store, to, caller=caller, allow_unseen=allow_unseen, fuzzy=fuzzy)
    if answered is not None:
        members = [answered.text("sender_identity") or ""]
        if any(answered.is_by(each) for each in caller.ids):  # a second word goes where the first went
            members = answered.names("recipients")
    elif said:
        root = causality.root(said)
        members = [root.text("sender_identity") or "", *root.names("recipients")]
    elif thread:
        raise UsageError(
            f"This log has no signal of the thread {sanitize(thread)}, so nobody is in it; nothing was written.",
            hint="It may be on another machine: `gitmem sync` brings it. --to opens a thread of that name.",
            code="unknown-id",
            next=["gitmem sync", "gitmem log"],
        )
    else:
        return []
    others = [each for each in dict.fromkeys(members) if each and each not in caller.ids]
    # Where only oneself is in it the word stays there: nobody means everybody in a record.
    return addressing.known(store, others or [each for each in members if each])


def after(db: sqlite3.Connection, caller: Caller, said: dict[str, Said], answered: Said | None) -> list[str]:
    if not said:
        return []
    has_receipt = "SELECT 1 FROM receipt WHERE reader = ? AND signal_id = ? AND content <> x'' LIMIT 1"
    read = {id for id in said if any(db.execute(has_receipt, (each, id)).fetchone() for each in caller.ids)}
    return causality.seen_before(caller.reader, said, read, answered.id if answered else None)
