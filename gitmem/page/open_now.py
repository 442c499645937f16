"""The board of the page: what is open now."""

from __future__ import annotations

from ..index.engine import StepLimit
from ..mailbox import mailbox_view
from .gate_marks import GateMarks
from .owed_rows import OwedRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..agents.presence import Presence
    from ..signals.many_threads import ManyThreads, Selection
    from ..store import Store
    from .board_contract import Board, UnreadSignals
    from .lanes import Lanes
    from .signal_marks import SignalMarks
    from .work_spans import ClaimSpans, TaskSpans

UNITS_MAX = 100  # of one agent, those with the most
UNREAD_STEPS = 20_000_000  # of SQLite for all sessions


class OpenNow:
    """What is open now.

    Attributes:
        board: The board, without the branches that overlap.
        notes: Sentences on what was not looked at.
        omitted: How many entries of its lists are left out.
    """

    def __init__(
        self,
        store: Store,
        only: Selection,
        current: list[Presence],
        threads: ManyThreads,
        signals: SignalMarks,
        tasks: TaskSpans,
        claims: ClaimSpans,
        lanes: Lanes,
    ) -> None:
        spans = {each["id"]: each for each in tasks.spans}
        gates = GateMarks(store, only, current, tasks.rows, threads, lanes)
        owed = OwedRows(store.db(), threads, tasks.rows, spans, lanes, store.now())
        self.omitted = {
            "passed": gates.omitted,
            "gates": gates.unseen,
            "owed": owed.omitted,
            "contested": claims.omitted_contests,
        }
        self.notes = gates.notes
        units = {each["id"]: each.get("wu", "") for each in signals.marks}
        self.board: Board = {
            "gates": gates.closed,
            "passed": gates.passed,
            "unread": _unread(store, only, current, lanes, units, self.notes),
            "owed": owed.rows,
            "contested": claims.contests,
            "mismatches": tasks.mismatches,
            "overlaps": [],
            "open_tasks": tasks.open,
        }


def _unread(
    store: Store,
    only: Selection,
    current: list[Presence],
    lanes: Lanes,
    units: dict[str, str],
    notes: list[str],
) -> list[UnreadSignals]:
    """Return how many signals agents at work have not read, those with the most first, as the roster counts.

    Args:
        units: The work unit of each signal of the page; with a work unit only its signals count.
    """
    db, now = store.db(), store.now()
    steps = StepLimit(db, UNREAD_STEPS)
    found: dict[str, UnreadSignals] = {}
    for one in current:
        ids = steps.ask(_unread_ids, db, one, now)
        if ids is None:
            notes.append("The unread signals of some agents were not counted: there are too many.")
            break
        of_units: dict[str, int] = {}
        for unit in (units.get(id, "") for id in ids if not only.unit or only.has_unit(units.get(id))):
            of_units[unit] = of_units.get(unit, 0) + 1
        count = sum(of_units.values())
        lane = lanes.of(one.reader) if count else ""
        if count and (lane not in found or count > found[lane]["count"]):
            units_shown = sorted(of_units.items(), key=lambda unit: -unit[1])[:UNITS_MAX]
            found[lane] = {"agent": lane, "count": count, "units": dict(units_shown)}
    return sorted(found.values(), key=lambda each: -each["count"])


def _unread_ids(db: sqlite3.Connection, one: Presence, now: int) -> set[str]:
    workspace = one.record.get("workspace_id")
    rows = mailbox_view.unread_ids(db, one.reader, one.session_id, workspace, now, shared=True)
    return {id for _, id in rows}
