"""Peers write any number of lines: what others wrote still counts, the rest is counted, and every clone reads the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from gitmem import records, views
from gitmem.agents import session_view
from gitmem.index import catch_up, entities, index_file
from gitmem.index.entities import fair_share
from gitmem.memory import node_tables, stored_nodes
from gitmem.order.thread import FoldedThread
from gitmem.signals import threads
from gitmem.trust.own_sessions import Own
from gitmem.work import tables
from tests.hostile_logs import Victim, Writer, iso

NOW = 1_793_000_000_000_000
ME = Victim("sess-000000000001", "me:coder:x", NOW, "victim0000")
MOST, MANY = 60, 300
Db = index_file.sqlite3.Connection


def writer(start: int) -> Writer:
    return Writer(ME, 10_000_000, start=NOW + start)


def names(number: int, kind: str) -> dict[str, str]:
    return {"sender_identity": f"x:y:p{number}" if kind == "many" else "x:y:mallory"}


def thread(w: Writer, flood: Writer, kind: str) -> Callable[[Db], object]:
    """A proposal and its answer."""
    w.signal(
        "sig-aaaa",
        thread_id="thread-x",
        intent="PROPOSE",
        sender_identity="a:b:planck",
        recipients=["a:b:curie"],
    )
    w.signal(
        "sig-bbbb",
        thread_id="thread-x",
        intent="AGREE",
        sender_identity="a:b:curie",
        reply_to="sig-aaaa",
        after=["sig-aaaa"],
    )
    for at in range(MANY):
        flood.signal(f"sig-{at:06d}", thread_id="thread-x", reply_to="sig-aaaa", **names(at, kind))

    def state(db: Db) -> object:
        lines = threads.ThreadLines(db)
        folded = FoldedThread("thread-x", lines.load("thread-x") or {}, lines.left_out.get("thread-x", 0))
        assert folded.agreed_on is not None and folded.agreed_on.id == "sig-aaaa"
        assert folded.left_out == MANY + 2 - MOST
        return sorted(folded.signals)

    return state


def node(w: Writer, flood: Writer, kind: str) -> Callable[[Db], object]:
    """A finding, changed by its author."""
    w.node("mem-000000", sender_identity="a:b:planck")
    w.patch("patch-aaaa", ["mem-000000"], sender_identity="a:b:planck", priority="P1")
    for at in range(MANY if kind == "one" else MOST - 2):  # beside the two lines of the author
        flood.patch(f"patch-{at:06d}", ["mem-000000"], lane=f"l{at}", **names(at, kind))
    for at in range(MANY):
        flood.patch(f"patch-x{at:06d}", ["mem-000000"], lane=f"l{at}", **names(at % 7, kind))

    def state(db: Db) -> object:
        (found,) = stored_nodes.load(db, ["mem-000000"])
        assert found.priority == "P1"
        assert entities.lines(db, node_tables.NODE, "mem-000000").left_out > MANY / 2
        return found.as_json()

    return state


def claim(w: Writer, flood: Writer, kind: str) -> Callable[[Db], object]:
    """A claim that its owner has renewed."""
    w.add(
        "claim",
        claim_id="claim-000000",
        event="claim",
        paths=["src"],
        until=iso(NOW + 1_000),
        sender_identity="a:b:planck",
    )
    w.add(
        "claim",
        claim_id="claim-000000",
        event="renew",
        paths=["src"],
        until=iso(NOW + 9_000_000),
        sender_identity="a:b:planck",
    )
    for at in range(MANY):
        who = names(at % (MOST // 3), kind)
        flood.add(
            "claim", claim_id="claim-000000", event="renew", paths=["src"], until=iso(NOW + 1_000), **who
        )

    def state(db: Db) -> object:
        found = tables.folded_claim(db, "claim-000000")
        assert found is not None
        assert (found.owner, found.until, found.left_out) == (
            ("a:b:planck", None),
            NOW + 9_000_000,
            MANY + 2 - MOST,
        )
        return found.line

    return state


def session(w: Writer, flood: Writer, kind: str) -> Callable[[Db], object]:
    """A session that has changed its work unit."""
    w.session("sess-000000000002", clone_id="clone00000", display_name="Planck")
    w.session("sess-000000000002", event="change", clone_id="clone00000", display_name="Planck", wu_id="WU-7")
    for at in range(MANY):
        clone = f"other{at % 20:05d}" if kind == "many" else "mallory000"
        flood.session(
            "sess-000000000002", event="change", clone_id=clone, display_name="Planck", activity=f"a{at}"
        )

    def state(db: Db) -> object:
        (found,) = db.execute("SELECT wu_id FROM session WHERE session_id = 'sess-000000000002'").fetchall()
        assert found == ("WU-7",)
        assert len([*entities.lines(db, session_view.SESSION, "sess-000000000002")]) == MOST
        return db.execute("SELECT * FROM session").fetchall()

    return state


@pytest.mark.parametrize("kind", ["one", "many"])
@pytest.mark.parametrize("made", [thread, node, claim, session])
def test_a_flood_silences_nobody(
    made: Callable[[Writer, Writer, str], Callable[[Db], object]], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one name or in many, dated before or after, in whatever order it arrives."""
    monkeypatch.setattr(threads, "LINES_MAX", MOST)
    for declared in node_tables.NODE, tables.CLAIM, session_view.SESSION:
        monkeypatch.setattr(declared, "most", MOST)
    for start in -10_000_000, 1:
        w, flood = writer(-1_000_000), writer(start)
        state = made(w, flood, kind)
        lines = [line for _, line in (*w.lines, *flood.lines)]
        found = []
        for seed in range(2):
            random.Random(seed).shuffle(lines)
            index = index_file.in_memory(
                (*views.VIEWS[:-1], views.own_view(lambda: Own(frozenset(), ""))), records.read
            )
            index.reshape()
            for part in lines[:40], lines[40:]:
                catch_up.insert_lines(index, catch_up.OWN_FILE, part)
            assert index.db.execute("SELECT count(*) FROM skipped").fetchone() == (0,)
            found.append(state(index.db))
            index.close()
        assert found[0] == found[1]


def test_each_sender_has_its_turn_and_those_who_come_first_all_theirs() -> None:
    """So of a sender its sessions."""
    lines = [("x", "s1", 1), ("x", "s1", 2), ("x", "s2", 3), ("y", None, 4), ("z", None, 5), ("z", None, 6)]

    def sender(line: tuple[str, str | None, int]) -> tuple[str, str | None]:
        return line[0], line[1]

    assert [each[2] for each in fair_share(lines, 5, sender)] == [1, 4, 5, 3, 6]
    assert [each[2] for each in fair_share(lines, 3, sender, lambda each: each[0] == "z")] == [5, 6, 1]
    assert fair_share(lines, 6, sender) == lines
