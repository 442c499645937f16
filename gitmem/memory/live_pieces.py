"""What is going on, as pieces of a context: who works on what, the other sessions, and the threads that wait for the reader."""

from __future__ import annotations

from ..agents import descriptions, presence
from ..commit_message import cut
from ..index.engine import StepLimit
from ..text.sanitize import sanitize_for_model
from . import candidates, open_threads
from .budgeted_text import Section, quote_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..outcome import PartOfAnswer
    from ..store import Store

ROSTER = "Roster"
WORK_NOW = "Work now"  # who works on what
WORK_MAX = 60  # lines
SMALL = 1_024  # bytes: below this budget, nodes rank before the roster
ROSTER_LINE_MAX = 200  # characters
ROSTER_STEPS = 2_000_000  # of SQLite, for the headlines


def live_pieces(
    store: Store,
    reader: Caller | None,
    max_size: int,
    *,
    roster: bool,
    work: PartOfAnswer | None = None,
) -> list[Section]:
    """Return the threads and the work that wait for the reader, and with `roster` the other active sessions.

    Args:
        store: The store.
        reader: The reader, if known.
        max_size: The budget of the context, in bytes.
        roster: Include what depends on more than the log and the time.
        work: Who works on what.
    """
    threads = open_threads.find(store, reader) if reader is not None else []
    found = open_threads.pieces(store, reader, threads, live=roster) if reader is not None else []
    rank = candidates.HERE if max_size >= SMALL or not roster else candidates.LAST
    said = [task_id for each in threads if (task_id := each.record.get("task_id"))]
    waiting = None
    if reader is not None:
        waiting = (store.domain.waiting_work if roster else store.domain.own_work)(store, reader)
    found += _work_pieces(waiting, work, said, rank)
    if not roster:
        return found
    own = reader.ids if reader is not None else []
    others = [one for one in presence.shown(store).values() if one.is_current and one.reader not in own]
    db = store.db()
    steps = StepLimit(db, ROSTER_STEPS)
    for place, one in enumerate(descriptions.by_role(others)):
        about = cut(sanitize_for_model(descriptions.description(store, db, one, steps)), ROSTER_LINE_MAX)
        line = quote_lines(f"- {about}, {one.status}", "")
        found.append(Section(ROSTER, (rank, place, one.session_id), one.session_id, line))
    return found


def _work_pieces(
    waiting: PartOfAnswer | None, work: PartOfAnswer | None, said: Sequence[str], rank: int
) -> list[Section]:
    """Return a line for each kind of work that waits for the reader, then one for each task, handoff and claim of anybody.

    Args:
        waiting: What waits for the reader.
        work: Who works on what. Neither part says what the other says.
        said: The tasks that the open threads name.
        rank: The rank of the lines.
    """
    named = [*said, *(work.said if work is not None else ())]
    lines = waiting.lines(named, whole=work is None) if waiting is not None else []
    lines += work.lines([*said, *(waiting.said if waiting is not None else ())]) if work is not None else []
    return [
        Section(WORK_NOW, (rank, place - len(lines), ""), f"{place + 1}",
                quote_lines(f"- {cut(sanitize_for_model(line), ROSTER_LINE_MAX)}", ""))
        for place, line in enumerate(lines[:WORK_MAX])
    ]  # fmt: skip
