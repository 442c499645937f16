"""The indexes of the database: each costs every catch-up, so a query of the program uses it."""

from __future__ import annotations

import _sqlite3
import re
import sqlite3
from typing import Any

import pytest

from gitmem import records, views
from gitmem.history import why
from gitmem.index import catch_up, index_file
from gitmem.work import task_state
from tests.sandbox import Clock, open_store
from tests.signing import ANNA, attest

from .conftest import Desk

COMMANDS = """
why HEAD
roster
roster --all
roster pla
whoami
signal one? --to Curie --intent propose --requires-ack
signal two
signal again
signal three --to {curie}
signal four --to test:worker:curie --thread {thread}
reply {root} yes --agree
inbox --for Curie
inbox
inbox --all
inbox --wu WU-1
thread {thread}
converged {root}
show {root}
show {planck}
log
log --wu WU-1
roster
session set --wu WU-1 --lane a
mem create a_node --wu WU-1 --tag x --path README
mem create another --lifecycle project --tag x --priority P0
mem create third --wu WU-1 --tag bug
mem checkpoint half --wu WU-1
signal five --to Curie
inbox --for Curie
mem list
mem list --wu WU-1
mem list --lifecycle wu
mem list --tag x
mem list --path README
mem ready --wu WU-1
mem ready
mem relate {node} blocks {other}
show {node}
show {other}
mem relate {node} supersedes {other}
mem create fourth --supersedes {node}
mem context --wu WU-1
mem context --wu WU-1 --max-size 300
mem recover
mem recover --wu WU-1
mem profile
mem profile --tag x
mem search node
mem summarize --wu WU-1
mem triage
mem promote {node} --tag pattern
mem archive --dry-run
mem cleanup --dry-run
mem delete {other}
mem export
delegate tests --to Curie --role implementer/test --scope paths=tests --wu WU-1
task list
task list --mine
task list --open --wu WU-1
task list --tree
session set --role implementer/test
inbox
claim src --wu WU-1 --for 2h
claim list src
claim list
claim list --mine
gate src/new.py
handoff go_on --to Curie
claim release
roster
gate
doctor
session end
"""


def explained(db: sqlite3.Connection, statement: str) -> set[str]:
    """The indexes that a statement needs. To count rows, any index does that is smaller than the table."""
    try:
        plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + statement)]
    except sqlite3.Error:  # of another database
        return set()
    counts = re.compile("SCAN .* USING COVERING INDEX" if "ORDER BY" not in statement else "$^")
    return {name for step in plan if not counts.match(step) for name in re.findall(r"INDEX (\w+)", step)}


def recorded(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The statements that SQLite runs from now on."""
    statements: set[str] = set()
    real = _sqlite3.connect

    def recording(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = real(*args, **options)
        connection.set_trace_callback(statements.add)
        return connection

    monkeypatch.setattr(_sqlite3, "connect", recording)
    return statements


def test_each_index_is_used_by_a_query_of_the_program(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the commands ask is recorded; add the command to the list that needs a new index."""
    statements = recorded(monkeypatch)
    planck, curie = desk.start("Planck"), desk.start("Curie")
    asked = desk.send(planck, "zero?", "--to", "Curie", "--intent", "propose", "--requires-ack")["signal"]
    names = {"planck": planck, "curie": curie, "root": asked["signal_id"], "thread": asked["thread_id"]}
    for place in ("node", "other"):
        made = desk("mem", "create", f"a {place}", "--wu", "WU-1", "--json", session=planck)
        names[place] = made.json["node"]["id"]
    for line in COMMANDS.split("\n")[1:-1]:
        said = desk(*line.format(**names).split(), session=curie if line.startswith("reply") else planck)
        assert said.status in (0, 1), (line, said)
    assert desk("session", "end", session=curie).status == 0
    assert desk("inbox").status == 0, "of a reader that the log does not know"
    assert desk("session", "start").status == 0, "with a name from the pool"
    where = open_store(desk.repo, Clock())  # a commit on a work unit
    assert why.threads_of(where.db(), None, "WU-1", Clock()()) == []
    catch_up.insert_lines(where.index, 7, [attest([b"a line that has not arrived"], ANNA)])
    assert task_state.only_held_at(where.db(), ("a:b:c", planck), 0, 1, known={}) is None  # of a commit
    where.close()

    index = index_file.in_memory(views.VIEWS, records.read)
    index.reshape()
    every = index.db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    used = set().union(*(explained(index.db, statement) for statement in statements))
    assert {str(name) for (name,) in every} - used == set()


EVERYDAY = """
whoami
inbox
signal one --to Curie
roster
mem context
mem ready --wu WU-1
delegate tests --to Curie --role implementer/test --scope paths=tests --wu WU-1
claim src --for 2h
claim list src
gate src/new.py
claim release
"""
GROWING = ("line", "signal", "task", "task_launch", "task_link", "path_claim", "entity_line", "mail", "asked")  # fmt: skip


def test_no_everyday_command_reads_a_whole_table_that_grows(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that are sealed, claims that have ended, and signals that were read stay in the tables for ever."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    desk("delegate", "one", "--to", "Curie", "--role", "implementer/test", "--scope", "x", session=planck)
    statements = recorded(monkeypatch)
    for line in EVERYDAY.split("\n")[1:-1]:
        said = desk(*line.split(), session=planck)
        assert said.status in (0, 1), (line, said)

    index = index_file.in_memory(views.VIEWS, records.read)
    index.reshape()
    found = {(table, each) for each in statements for table in scanned(index.db, each) if table in GROWING}
    assert found == set()


def scanned(db: sqlite3.Connection, statement: str) -> set[str]:
    """The tables that a statement reads from one end to the other."""
    try:
        plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + statement)]
    except sqlite3.Error:  # of another database
        return set()
    names = {
        alias or table: table
        for table, alias in re.findall(r"(?:FROM|JOIN) (\w+)(?: (?:AS )?([a-z]\w*)\b)?", statement)
    }
    return {names.get(step.split()[1], step.split()[1]) for step in plan if re.fullmatch(r"SCAN \w+", step)}
