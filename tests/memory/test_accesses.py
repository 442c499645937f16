"""Accesses: what was shown is counted, by every reader on every clone, and reading makes no commits."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gitmem.errors import UsageError
from gitmem.memory import decay

from ..sandbox import DAY, Clock, carry, new_repo
from .desk import Desk


@pytest.mark.usefixtures("commits")
def test_a_reading_counts_at_once_and_makes_no_commit(desk: Desk) -> None:
    """It rides with the next commit, as receipts do."""
    id = desk.write("one")
    before = desk.tip()

    found = decay.record_accesses(desk.store, desk.caller, [id])

    assert desk.tip() == before
    assert found.recorded
    assert found.accesses[0].count == 1
    assert decay.stats(desk.store, id).count == 1
    desk.write("two")
    lines = desk.store.db().execute("SELECT count(*) FROM line WHERE kind = 'access' AND file > 0").fetchone()
    assert lines == (1,)


def test_an_id_that_is_shown_twice_in_one_reading_counts_once(desk: Desk) -> None:
    id = desk.write("one")

    found = decay.record_accesses(desk.store, desk.caller, [id, id, id[:12]])

    (body,) = desk.store.db().execute("SELECT body FROM line WHERE kind = 'access'").fetchone()
    assert f'"node_ids":["{id}"]' in body
    assert len(found.accesses) == 1
    assert decay.stats(desk.store, id).count == 1


def test_what_nobody_read_has_no_time(desk: Desk) -> None:
    id = desk.write("one")

    found = decay.stats(desk.store, id)

    assert (found.count, found.last_accessed_at, found.score) == (0, None, 1.0)


def test_a_reading_says_who_read_and_when(desk: Desk) -> None:
    id = desk.write("one")
    desk.clock.forward(DAY)

    decay.record_accesses(desk.store, desk.caller, [id])

    (body,) = desk.store.db().execute("SELECT body FROM line WHERE kind = 'access'").fetchone()
    assert f'"reader_identity":"{desk.caller.reader}","reader_session":"{desk.session.session_id}"' in body
    assert decay.stats(desk.store, id).last_accessed_at == body[7:34]


def test_readings_of_two_clones_add_up(tmp_path: Path) -> None:
    """The existing tool keeps a counter in the node: of two clones one wins, and the nodes of the other are lost."""
    clock = Clock()
    one, other = Desk(new_repo(tmp_path / "one"), clock), Desk(new_repo(tmp_path / "other"), clock)
    id = one.write("said once")
    carry(one.store, other.store)

    for _ in range(3):
        decay.record_accesses(one.store, one.caller, [id])
    clock.forward(DAY)
    decay.record_accesses(other.store, other.caller, [id])
    carry(one.store, other.store)

    stats = [decay.stats(desk.store, id).as_json() for desk in (one, other)]
    assert stats[0] == stats[1]
    assert stats[0]["count"] == 4
    carry(one.store, other.store)
    assert decay.stats(one.store, id).count == 4


def test_reading_harms_neither_archived_nodes_nor_what_is_written_meanwhile(tmp_path: Path) -> None:
    """W5, W6: tracking accesses rewrote the file there: archived nodes and new ones were lost."""
    clock = Clock()
    one, other = Desk(new_repo(tmp_path / "one"), clock), Desk(new_repo(tmp_path / "other"), clock)
    kept, archived = one.write("kept"), one.write("archived")
    one.change(archived, archived=True)
    carry(one.store, other.store)

    decay.record_accesses(one.store, one.caller, [kept])
    written = other.write("meanwhile")
    carry(one.store, other.store)

    for desk in (one, other):
        assert [desk.node(id).content for id in (kept, archived, written)] == [
            "kept",
            "archived",
            "meanwhile",
        ]


def test_an_unknown_id_records_nothing_of_any(desk: Desk) -> None:
    id = desk.write("one")

    with pytest.raises(UsageError, match="No such node in this log: mem-0000000000zz") as error:
        decay.record_accesses(desk.store, desk.caller, [id, "mem-0000000000zz"])

    assert error.value.next
    assert decay.stats(desk.store, id).count == 0


def test_nothing_shown_records_nothing(desk: Desk) -> None:
    """An empty context is no reading."""
    found = decay.record_accesses(desk.store, desk.caller, [])

    assert (found.accesses, found.recorded) == ([], False)
    assert desk.store.db().execute("SELECT count(*) FROM line WHERE kind = 'access'").fetchone() == (0,)


def test_more_ids_than_a_line_holds_are_several_lines(desk: Desk) -> None:
    ids = [desk.write(f"node {number}") for number in range(5)]

    decay.record_accesses(desk.store, desk.caller, ids, names_max=2)

    assert [decay.stats(desk.store, id).count for id in ids] == [1] * 5
    assert desk.store.db().execute("SELECT count(*) FROM line WHERE kind = 'access'").fetchone() == (3,)


def test_what_is_read_scores_higher(desk: Desk) -> None:
    id = desk.write("one")
    decay.record_accesses(desk.store, desk.caller, [id])

    assert decay.stats(desk.store, id).score == pytest.approx(1 + math.log(2) / 10)
