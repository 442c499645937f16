"""Collect the data of the page from one snapshot of the log."""

from __future__ import annotations

import os

from .. import __version__
from . import signal_marks
from .contract import FORMAT
from .lanes import Lanes, bars, latest_sessions
from .texts import TextBudget, millis, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .contract import Omitted, PageData

SIGNAL_TEXT_BYTES = 2_000_000


class PageFilter:
    """What a page is limited to.

    Args:
        since: Only what happened from this time on, microseconds since the epoch; sessions, tasks and claims that lasted until then.
        wu: Only what is on this work unit.
        agent: Only what this agent did, or what was meant for it: a name, an identity, a session id or a person.
    """

    def __init__(self, *, since: int | None = None, wu: str | None = None, agent: str | None = None) -> None:
        self.since = since
        self.wu = wu
        self.agent = agent


def collect(store: Store, only: PageFilter | None = None) -> PageData:
    """Return the data of the page.

    Args:
        store: The log.
        only: What it is limited to.
    """
    with store.one_look():
        db = store.db()
        sessions, more_sessions = latest_sessions(store)
        lanes = Lanes(db, sessions)
        bars_of = bars(sessions, lanes)
        signals, more_signals = signal_marks.marks(db, lanes, TextBudget(SIGNAL_TEXT_BYTES))
    omitted: Omitted = {}
    if more_sessions:
        omitted["sessions"] = more_sessions
    if more_signals:
        omitted["signals"] = more_signals
    if lanes.omitted:
        omitted["agents"] = lanes.omitted
    top = store.repo.worktree or store.repo.common
    return {
        "format": FORMAT,
        "made": millis(store.now()),
        "repository": short(os.path.basename(top)),
        "generator": f"gitmem {__version__}",
        "filters": {},
        "omitted": omitted,
        "notes": [],
        "agents": lanes.lanes(),
        "sessions": bars_of,
        "signals": signals,
        "threads": [],
        "tasks": [],
        "claims": [],
        "commits": [],
        "branches": [],
        "nodes": [],
        "relations": [],
        "board": {
            "unread": [],
            "owed": [],
            "contested": [],
            "mismatches": [],
            "overlaps": [],
            "open_tasks": [],
        },
        "statistics": {
            "days": [],
            "first_answer": {"n": 0},
            "agreement": {"n": 0},
            "unread_age": {"n": 0},
            "unanswered": 0,
            "tasks": {},
        },
    }
