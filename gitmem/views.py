"""The views of the index. Those of memory and tasks import their converters only if there are lines to add."""

from __future__ import annotations

from . import records
from .agents import mailbox, session_view
from .index import entities
from .index.entities import View
from .memory import node_tables
from .trust import own_sessions
from .work import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from .index.entities import Fold, Rows
    from .trust.own_sessions import Own


def _nodes() -> Fold:
    from .memory import stored_nodes

    return stored_nodes.FOLD


def _add_relations(db: sqlite3.Connection, rows: Rows) -> None:
    from .memory import relations

    relations.add_relations(db, rows)


def _tasks() -> Fold:
    from .work import task_state

    return task_state.FOLD


def _add_commits(db: sqlite3.Connection, rows: Rows) -> None:
    from .history import commits

    commits.add(db, rows)


def own_view(own: Callable[[], Own]) -> View:
    """Return the view of the sessions of these writers in a clone."""

    def add(db: sqlite3.Connection, rows: Rows) -> None:
        own_sessions.add(db, rows, own())

    return View(records.KINDS, own_sessions.DDL, add, version=7)


# Stored contents depend on the keyed fields.
MAIL = View(("signal", "receipt", "session"), mailbox.DDL, mailbox.add, version=(14, records.KEYED["signal"]))
UNITS = View(session_view.UNIT_KINDS, session_view.UNIT_DDL, session_view.add_units, version=2)
NODES = entities.view(node_tables.NODE, _nodes)
RELATIONS = View(node_tables.RELATION_KINDS, node_tables.RELATION_DDL, _add_relations)
SESSIONS = entities.view(session_view.SESSION, lambda: session_view.FOLD)
TASKS = entities.view(tables.TASK, _tasks, version=4)
CLAIMS = entities.view(tables.CLAIM, lambda: tables.CLAIM_FOLD)
COMMITS = View(
    ("commit",),
    entities.table(
        "made_commit",
        "line INTEGER PRIMARY KEY, commit_id TEXT, patch_id TEXT, session TEXT",
        {"of": "(commit_id)", "patch": "(patch_id)"},
    ),
    _add_commits,
)
OWN = own_view(lambda: own_sessions.Own(frozenset(), ""))
VIEWS = (MAIL, SESSIONS, UNITS, NODES, RELATIONS, TASKS, CLAIMS, COMMITS, OWN)


def checked(own: Callable[[], Own]) -> tuple[View, ...]:
    """Return the views of an index whose lines are checked for this user's writers; same tables as `VIEWS`."""
    return (*VIEWS[:-1], own_view(own))
