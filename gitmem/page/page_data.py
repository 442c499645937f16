"""Collect the data of the page from one snapshot of the log."""

from __future__ import annotations

import os

from .. import __version__
from ..errors import GitmemError
from ..index.insert import WithoutCollector
from ..log import ref
from ..signals.many_threads import ManyThreads, Selection
from ..statistics.figures import statistics
from . import history_marks, life_signs
from .contract import FORMAT
from .history_marks import HistoryMarks
from .lanes import Lanes, SessionBars
from .node_marks import NodeMarks
from .open_now import OpenNow
from .signal_marks import SIGNALS_MAX, SignalMarks
from .texts import TextBudget, millis, short
from .work_spans import ClaimSpans, TaskSpans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .contract import Filters, Omitted, PageData

# Of texts in bytes, so that no log makes a page of more than 8 MB: base64 needs four thirds of what can't be compressed.
SIGNAL_BYTES, TASK_BYTES, NODE_BYTES = 2_000_000, 400_000, 1_000_000


def collect(
    store: Store, *, since: int | None = None, wu: str | None = None, agent: str | None = None
) -> PageData:
    """Return the data of the page.

    Args:
        store: The log.
        since: As for `Selection`; so `wu` and `agent`.

    Raises:
        UsageError: `unknown-agent`.
    """
    with store.one_look(), WithoutCollector():
        db = store.db()
        only = Selection(store, since=since, wu=wu, agent=agent)
        sessions = SessionBars(store, only)
        lanes = Lanes(db, sessions.found)
        bars = sessions.bars(lanes)
        threads = ManyThreads(db, only, SIGNALS_MAX)
        signals = SignalMarks(db, threads, lanes, TextBudget(SIGNAL_BYTES))
        tasks = TaskSpans(db, only, lanes, TextBudget(TASK_BYTES))
        claims = ClaimSpans(store, only, lanes)
        open_now = OpenNow(store, only, sessions.current, threads, signals, tasks, claims, lanes)
        nodes = NodeMarks(store, only, lanes, TextBudget(NODE_BYTES))
        history = HistoryMarks(store, only, lanes)
        notes = [*filter(None, [only.remark(db)]), *_format_note(store), *history.notes, *open_now.notes]
        figures = statistics(store, only, threads)
        signs = life_signs.find(db, tasks.spans, claims.spans, history.commits, open_now.board["passed"])
        life_signs.extend(bars, signs, millis(store.now()))
        open_now.board["overlaps"] = history_marks.overlaps(store, notes)
    left = {
        "sessions": sessions.omitted,
        "signals": signals.omitted,
        "tasks": tasks.omitted,
        "claims": claims.omitted,
        "nodes": nodes.omitted,
        "relations": nodes.omitted_relations,
        "branches": history.omitted,
        "agents": lanes.omitted,
        **open_now.omitted,
    }
    omitted: Omitted = {name: count for name, count in left.items() if count > 0}
    if history.is_cut:
        notes.append(f"Only the newest {history_marks.COMMITS_MAX:,} commits are here.")
    return {
        "format": FORMAT,
        "made": millis(store.now()),
        "repository": short(os.path.basename(store.repo.worktree or store.repo.common)),
        "generator": f"gitmem {__version__}",
        "filters": _filters(only),
        "omitted": omitted,
        "notes": notes,
        "agents": lanes.lanes(),
        "sessions": bars,
        "signals": signals.marks,
        "threads": signals.states,
        "tasks": tasks.spans,
        "claims": claims.spans,
        "commits": history.commits,
        "branches": history.branches,
        "nodes": nodes.nodes,
        "relations": nodes.relations,
        "board": open_now.board,
        "statistics": figures,
    }


def _format_note(store: Store) -> list[str]:
    """Return a sentence about a log of a newer format, of which this version may not understand all."""
    tip = store.git.tip(ref.LOG_REF)
    try:
        form = (
            ref.read_format(store.git, store.git.tree(store.git.commit(tip).tree))
            if tip is not None
            else None
        )
    except (GitmemError, KeyError):
        return ["The format of the log can't be read: gitmem doctor has the reason."]
    if form is None or form.format <= ref.FORMAT:
        return []
    return [
        f"The log has format {form.format}, and this gitmem knows format {ref.FORMAT}: something may be missing here."
    ]


def _filters(only: Selection) -> Filters:
    found: Filters = {}
    if only.since is not None:
        found["since"] = millis(only.since)
    if only.wu:
        found["wu"] = short(only.wu)
    if only.agent:
        found["agent"] = short(only.agent)
    return found
