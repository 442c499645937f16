"""Forgetting takes texts, never decisions: no state that is folded from lines depends on what they say."""

from __future__ import annotations

import pytest

from gitmem import records
from gitmem.index import catch_up
from gitmem.index.index_file import Index
from tests import hostile_logs
from tests.hostile_logs import FAMILIES
from tests.index.test_any_order import BYTES, ME, empty
from tests.signing import ANNA, AT, SALT, addressed, attest, forget, salted
from tests.tasks.simulated import World

# What is made of bytes, not of meaning; and packed tables, whose rows are of lines that arrived together.
OF_BYTES = ("line", "salted", "held", "awaited", "forgotten", "whole", "file", "meta", "packed_claim")


def rows(index: Index) -> dict[str, list[str]]:
    """The rows of all tables that are folded; a line as its hash in attestations, which forgetting leaves as it is."""
    hash_of = "coalesce((SELECT digest FROM salted s WHERE s.line = t.line), (SELECT key FROM line WHERE id = t.line))"
    found = {}
    for (table,) in index.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if table not in OF_BYTES:
            names = [row[1] for row in index.db.execute(f"PRAGMA table_info({table})") if row[1] != "title"]
            columns = ", ".join(hash_of if name == "line" else f't."{name}"' for name in names)
            found[table] = sorted(map(repr, index.db.execute(f"SELECT {columns} FROM {table} t")))
    return found


def check(lines: list[bytes]) -> None:
    index = empty()
    ours = [line if b'"writer"' in line else addressed(salted(line), ANNA) for line in lines]
    ours = [line for line in ours if records.read(line) is not None]
    catch_up.insert_lines(index, 1, [*ours, attest(ours, ANNA)])
    before = rows(index)
    record = forget(ours, ANNA, AT + 7)
    catch_up.insert_lines(index, 1, [record, attest([record], ANNA, AT + 8)])

    assert index.db.execute("SELECT count(*) FROM whole").fetchone()[0] > 0
    assert rows(index) == before


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_no_fold_of_a_flood_differs(family: str) -> None:
    """Whatever peers may write too much of."""
    lines = [line for _, line in hostile_logs.lines(FAMILIES[family], ME, BYTES)]
    if any(
        line != salted(line) and b'"writer"' not in line and records.read(line) is not None for line in lines
    ):
        check(lines)


@pytest.mark.parametrize("seed", range(12))
def test_no_fold_of_tasks_differs(seed: int) -> None:
    """In random histories of clones that see each other's events late."""
    world = World(seed, signed={"writer": ANNA.writer, "salt": SALT.decode()})
    world.run()
    check(sorted({line for clone in world.clones for line in clone.lines}))
