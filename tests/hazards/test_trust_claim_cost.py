"""What lines in the name of an agent of this clone cost where each of them is looked at once more: steps of SQLite's machine."""

from __future__ import annotations

import json
import sqlite3

import pytest

from gitmem.index import index_file
from gitmem.trust import own_identities, sender_tables

NAME, SINCE = "a:b:c", "2026-11-23T00:00:00.000000Z"
STEPS = 100


@pytest.mark.parametrize("among", [False, True])
def test_older_lines_in_an_own_name_are_looked_up_once_each(among: bool) -> None:
    """Not one list of claims for each line of the log: 10,000 lines took 6 s."""
    db = sqlite3.connect(":memory:")
    for statement in (
        *index_file.CORE,
        *sender_tables.DDL,
        "CREATE TABLE signal (line INTEGER, signal_id TEXT)",
    ):
        db.execute(statement)

    def steps(count: int) -> int:
        db.execute("DELETE FROM line")
        db.execute("DELETE FROM packed_claim")
        rows = [
            (number, b"%d" % number, "2026-11-22", "receipt", '{"signal_id":"sig"}')
            for number in range(1, count + 1)
        ]
        db.executemany("INSERT INTO line VALUES (?, 1, ?, ?, ?, ?)", rows)
        db.execute("INSERT INTO packed_claim VALUES (?, 1, ?)", (NAME, json.dumps(list(range(1, count + 1)))))
        seen = [0]

        def tick() -> int:
            seen[0] += STEPS
            return 0

        db.set_progress_handler(tick, STEPS)
        own_identities._forged(db, NAME, SINCE, list(range(1, count + 1)) if among else None)
        db.set_progress_handler(None, STEPS)
        return seen[0]

    assert steps(800) < 6 * steps(200)
