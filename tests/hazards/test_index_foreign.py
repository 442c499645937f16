"""An index that somebody else has put there: with the number of its shape, but tables, views and triggers of theirs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from .. import templates
from ..sandbox import new_repo
from .conftest import Desk
from .test_state_files import limit

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
SCHEMAS = {
    "a trigger": (f"CREATE TRIGGER t AFTER INSERT ON line BEGIN SELECT ({ENDLESS}); END",),
    "a trigger on a deletion": (f"CREATE TRIGGER t AFTER DELETE ON file BEGIN SELECT ({ENDLESS}); END",),
    "a view in place of a table": ("DROP TABLE session", f"CREATE VIEW session AS SELECT i AS session_id FROM ({ENDLESS.replace('max(i)', 'i')})"),
    "a view in place of ours": ("DROP VIEW claim", f"CREATE VIEW claim AS {ENDLESS}"),
    "an index on an expression": ("CREATE INDEX slow ON line (length(hex(zeroblob(400000000))))",),
    "a column that is computed": ("DROP TABLE skipped", "CREATE TABLE skipped (line INTEGER PRIMARY KEY, x AS (hex(zeroblob(400000000))) STORED)"),
    "a table more": ("CREATE TABLE more (x)",),
    "lost lines that never end": (f"CREATE VIEW lost AS SELECT i AS key, 0 AS epoch, '' AS path, '' AS body FROM ({ENDLESS.replace('max(i)', 'i')})",),
    "words that never end": (f"CREATE VIEW memory_words_row AS {ENDLESS}",),
    "a name with a quote": ('CREATE TABLE "a""b" (x)',),
}  # fmt: skip


def statements(path: Path) -> set[str]:
    db = sqlite3.connect(path)
    found = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    db.close()
    return found


@pytest.fixture
def used(tmp_path: Path) -> tuple[Desk, str, str]:
    """A repository with a signal and a node, and the sessions of Ada and Ben."""

    def make(root: Path) -> None:
        desk = Desk(new_repo(root / "used"))
        desk("init")
        ada, ben = desk.start("Ada"), desk.start("Ben")
        desk.send(ada, "Tabs?", "--to", "Ben")
        desk("mem", "create", "The parser drops tabs", session=ada)
        desk("log", "--commit")
        (root / "sessions").write_text(f"{ada} {ben}")

    templates.copy("used-index", tmp_path / "day", make)
    ada, ben = (tmp_path / "day" / "sessions").read_text().split()
    return Desk(tmp_path / "day" / "used"), ada, ben


@pytest.mark.parametrize("version", [True, False], ids=["ours", "other"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_an_index_with_a_foreign_schema_is_rebuilt(
    used: tuple[Desk, str, str], schema: tuple[str, ...], version: bool
) -> None:
    """Every command answers as before, and the index is gitmem's again; `version`: whether it has our number."""
    desk, ada, ben = used
    (path,) = (desk.repo / ".git" / "gitmem").glob("index-*.sqlite3")
    before = statements(path)
    db = sqlite3.connect(path)
    for statement in schema:
        db.execute(statement)
    if not version:
        db.execute("PRAGMA user_version = 7")
    db.commit()
    db.close()
    assert statements(path) != before

    with limit(str(schema)):
        assert "Tabs?" in desk("inbox", session=ben).out
        desk.send(ben, "Spaces.", "--to", "Ada")
        for command in (
            ("log",),
            ("roster",),
            ("claim", "list"),
            ("mem", "ready"),
            ("doctor",),
            ("mem", "search", "parser"),
        ):
            assert desk(*command, session=ada).status == 0, command
        desk("log", "--commit", session=ada)

    assert {each for each in statements(path) if "memory_words" not in each and "TABLE lost" not in each} == {
        each for each in before if "memory_words" not in each
    }


def test_a_search_leaves_the_index_as_it_is(desk: Desk) -> None:
    """What SQLite itself makes for the words is not foreign."""
    desk("init")
    ada = desk.start("Ada")
    desk("mem", "create", "The parser drops tabs", session=ada)
    (path,) = (desk.repo / ".git" / "gitmem").glob("index-*.sqlite3")
    before = path.stat().st_ino
    for _ in range(2):
        assert "parser" in desk("mem", "search", "parser", session=ada).out
        assert {"memory_words", "memory_words_idx"} <= {
            each.split("(")[0].split()[2 if "VIRTUAL" not in each else 3].strip("'")
            for each in statements(path)
        }
    assert path.stat().st_ino == before
