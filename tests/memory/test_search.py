"""Search: what is written is found at once and rightly, whatever becomes of the index; what is hidden is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gitmem.doctor.doctor import examine
from gitmem.errors import StoreError, UsageError
from gitmem.index import index_file
from gitmem.memory import decay, edit, fts, search
from gitmem.store import Store

from ..sandbox import DAY, Clock, carry, new_repo, open_store
from .desk import Desk, raw

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def desk(repo: Path) -> Desk:
    """Somebody in a log that is there already: the process that begins one has its index in memory."""
    Desk(repo).store.close()
    return Desk(repo)


def ids(store: Store, query: str, **options: object) -> list[str]:
    return [hit.node.id for hit in search.recall(store, query, **options)]


@pytest.mark.usefixtures("commits")
def test_a_node_is_found_at_once(desk: Desk) -> None:
    one = desk.write("The parser drops tabs in gitmem/log/union.py")
    desk.write("Nothing of interest")

    assert ids(desk.store, "parser tabs") == [one]
    two = desk.write("Another parser")
    assert set(ids(desk.store, "parser")) == {one, two}


def test_nodes_are_found_by_content_tag_path_and_name(desk: Desk) -> None:
    one = desk.write("It drops them", tags=["lexer-rewrite"], paths=["src/tokenStream.py"])

    for query in (
        "drops",
        "lexer",
        "lexerrewrite",
        "token stream",
        "tokenstream",
        "src/tokenStream.py",
        "token_stream",
    ):
        assert ids(desk.store, query) == [one], query


def test_a_changed_node_is_found_by_its_new_words_alone(desk: Desk) -> None:
    one = desk.write("The parser drops tabs", tags=["old-tag"], paths=["old.py"])
    assert ids(desk.store, "parser") == [one]

    desk.change(one, content="The lexer keeps spaces", tags=["fresh"], paths=["quokka.py"])

    assert [ids(desk.store, query) for query in ("parser", "oldtag", "old")] == [[], [], []]
    assert [ids(desk.store, query) for query in ("lexer", "fresh", "quokka")] == [[one], [one], [one]]
    desk.change(one, clear=["tags", "paths"])
    assert [ids(desk.store, query) for query in ("fresh", "quokka", "lexer")] == [[], [], [one]]


def test_a_change_that_came_before_its_node_counts(repo: Path, tmp_path: Path) -> None:
    """Lines arrive in any order."""
    desk, other = Desk(repo), open_store(new_repo(tmp_path / "other"), Clock())
    one = desk.write("The parser drops tabs")
    desk.change(one, content="The lexer keeps spaces")
    lines = dict(desk.store.db().execute("SELECT kind, body FROM line WHERE kind IN ('node', 'patch')"))
    from gitmem.log.lines import CommitMessage

    for kind in ("patch", "node"):
        other.record([("memory", lines[kind].encode())], CommitMessage("A <a@gitmem>", "sync"))
        assert ids(other, "parser") == []

    assert ids(other, "lexer") == [one]


def test_hidden_nodes_are_hidden(desk: Desk) -> None:
    """Archived and deleted ones are shown where they are asked for, and nowhere else."""
    kept, archived, deleted = (desk.write(f"parser {word}") for word in ("kept", "archived", "deleted"))
    assert len(ids(desk.store, "parser")) == 3

    desk.change(archived, archived=True)
    desk.change(deleted, deleted=True)

    assert ids(desk.store, "parser") == [kept]
    assert set(ids(desk.store, "parser", include_archived=True)) == {kept, archived, deleted}
    desk.change(archived, clear=["archived"])
    assert set(ids(desk.store, "parser")) == {kept, archived}


def test_hidden_nodes_do_not_push_out_the_others(desk: Desk) -> None:
    """The best matches are all archived, more of them than candidates are taken."""
    many = edit.append(desk.store, desk.caller, [{"content": "parser parser"} for _ in range(250)])
    kept = [desk.write(f"parser {'and more words ' * 5} {number}") for number in range(12)]
    desk.change(*(node.id for node in many.nodes), archived=True)

    found = search.search(desk.store, "parser")

    assert len(found.hits) == 10 and found.more
    assert {hit.node.id for hit in found.hits} <= set(kept)


def test_every_filter(desk: Desk) -> None:
    one = desk.write("parser one", type="bug", wu="WU-1", tags=["x"], paths=["src/a.py"], lifecycle="project")
    two = desk.write("parser two", type="note", wu="WU-2", tags=["x", "y"], paths=["src/deep/b.py"])

    for options, expected in (
        ({"wu": "WU-1"}, {one}),
        ({"type": "bug"}, {one}),
        ({"type": "note"}, {two}),
        ({"tags": ["x"]}, {one, two}),
        ({"tags": ["x", "y"]}, {two}),
        ({"lifecycle": "project"}, {one}),
        ({"path": "src"}, {one, two}),
        ({"path": "src/deep"}, {two}),
        ({"path": "src/a.py"}, {one}),
        ({"path": "sr"}, set()),
    ):
        assert set(ids(desk.store, "parser", **options)) == expected, options


def test_of_equal_matches_the_newer_comes_first(desk: Desk) -> None:
    old = desk.write("the parser drops tabs")
    desk.clock.forward(90 * DAY)
    new = desk.write("the parser drops tabs")
    assert ids(desk.store, "parser") == [new, old]

    desk.change(old, priority="P0")  # said anew: as young as the other, and more important

    assert ids(desk.store, "parser") == [old, new]


def test_what_was_read_often_comes_before_its_equal(desk: Desk) -> None:
    one, two = desk.write("the parser drops tabs"), desk.write("the parser drops tabs")
    first, second = ids(desk.store, "parser")
    for _ in range(10):
        decay.record_accesses(desk.store, desk.caller, [second])

    assert ids(desk.store, "parser") == [second, first]
    assert {one, two} == {first, second}


def test_an_old_node_that_says_it_is_found_before_a_new_one_that_mentions_it(desk: Desk) -> None:
    """Decay alone would put it last: after a year it is a two hundred thousandth."""
    old = desk.write("The parser drops tabs: parser bug with tabs in the parser")
    for number in range(20):
        desk.write(f"filler {number}")
    desk.clock.forward(365 * DAY)
    new = desk.write(
        "We talked of plans for the summer, the parser, the weather, tabs, and of who will do what and when"
    )

    assert ids(desk.store, "parser tabs") == [old, new]
    assert ids(desk.store, "parser tabs", by_decay=True) == [new, old]
    assert ids(desk.store, "parser tabs", by_decay=True, half_life=100_000 * DAY) == [old, new]


def test_all_words_come_before_beginnings_and_those_before_some(desk: Desk) -> None:
    some = desk.write("tabs tabs tabs")
    begin = desk.write("parsers dropped tabstops")
    every = desk.write(
        "a long text in which the parser is named once and so is tab, among much else that matters less"
    )

    found = search.recall(desk.store, "parser tab")

    assert [(hit.node.id, hit.matched) for hit in found] == [(every, "all"), (begin, "begin"), (some, "some")]


def test_the_figures_of_a_hit(desk: Desk) -> None:
    desk.write("filler one")
    desk.write("filler two")
    desk.write("the parser drops tabs", priority="P1")
    desk.clock.forward(30 * DAY)

    (hit,) = search.recall(desk.store, "parser")

    assert hit.bm25 > 0
    assert hit.decay == pytest.approx(1.5 / 2.718281828, rel=1e-6)
    assert hit.score == pytest.approx(hit.bm25 * (0.875 + 0.125 * hit.decay))
    assert hit.snippet == "the parser drops tabs" and hit.marks == [(4, 10)]
    assert "marks" not in hit.as_json() and hit.as_json()["stale"] is None


@pytest.mark.usefixtures("commits")
def test_a_node_whose_file_moved_on_steps_back_and_says_so(desk: Desk, repo: Path) -> None:
    def commit(text: str) -> None:
        (repo / "a.py").write_text(text)
        subprocess.run(["git", "add", "a.py"], cwd=repo, check=True)
        subprocess.run(["git", "commit", "-qm", text], cwd=repo, check=True)

    commit("one")
    stale = desk.write("the parser drops tabs", paths=["a.py"], priority="P0")
    current = desk.write("the parser drops tabs")
    assert ids(desk.store, "parser") == [stale, current]
    commit("two")

    found = search.recall(desk.store, "parser")

    assert [hit.node.id for hit in found] == [current, stale]
    assert found[0].stale is None and "1 commit behind in a.py" in str(found[1].stale)
    assert found[1].decay == pytest.approx(1.0, rel=1e-3)  # a half of that of P0
    assert ids(desk.store, "parser", limit=1) == [current]  # it goes behind what would not have been shown


def test_the_limit_and_what_comes_next(desk: Desk) -> None:
    for number in range(12):
        desk.write(f"parser {number}", wu="WU-1", tags=["x"])

    found = search.search(desk.store, "parser", wu="WU-1", tags=["x"])

    assert len(found.hits) == 10 and found.more
    assert found.next == [
        f"gitmem show {found.hits[0].node.id}",
        "gitmem mem search parser --wu WU-1 --tag x --limit 50",
    ]
    assert not search.search(desk.store, "parser", limit=50).more
    nothing = search.search(desk.store, "zebra 'quoted'")
    assert nothing.hits == [] and nothing.next[0].endswith(" --include-archived")
    for limit in (0, -1, 1_001):
        with pytest.raises(UsageError):
            search.recall(desk.store, "parser", limit=limit)


def test_writing_pays_nothing_for_it(desk: Desk) -> None:
    """The tables are made by the first search, and no write adds to them."""
    desk.write("the parser")
    tables = "SELECT count(*) FROM sqlite_master WHERE name LIKE ?"
    assert desk.store.db().execute(tables, (fts.TABLE + "%",)).fetchone() == (0,)

    ids(desk.store, "parser")
    desk.write("another parser")

    assert desk.store.db().execute(f"SELECT count(*) FROM {fts.ROWS}").fetchone() == (1,)


def test_a_search_that_finds_nothing_new_writes_nothing(desk: Desk) -> None:
    desk.write("the parser")
    ids(desk.store, "parser")
    before = desk.store.db().total_changes

    decay.record_accesses(desk.store, desk.caller, [])
    ids(desk.store, "parser")

    assert desk.store.db().total_changes == before


def test_a_status_changes_no_words(desk: Desk) -> None:
    """An archive pass over many nodes must not split all of their words again."""
    many = [desk.write(f"parser {number}") for number in range(5)]
    ids(desk.store, "parser")
    desk.change(*many, archived=True)
    db = desk.store.db()
    before = db.total_changes

    assert ids(desk.store, "parser") == []

    assert db.total_changes - before <= 1  # how far it has come


def test_an_index_that_is_emptied_is_filled_again(desk: Desk) -> None:
    """`reshape` drops the tables of FTS5 as well, also those that it keeps behind its own."""
    one = desk.write("the parser drops tabs")
    assert ids(desk.store, "parser") == [one]

    desk.store.index.reshape()

    found = desk.store.index.db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'memory_words%'")
    assert found.fetchall() == []
    assert ids(desk.store, "parser") == [one]


def test_a_deleted_index_gives_the_same_answers(desk: Desk) -> None:
    """Figures and all: what was changed leaves no trace."""
    many = [desk.write(f"parser {'tabs ' * number}") for number in range(6)]
    ids(desk.store, "parser")
    desk.change(many[2], content="parser tabs spaces")
    desk.change(many[3], deleted=True)
    desk.write("and more of the parser")
    before = [hit.as_json() for hit in search.recall(desk.store, "parser tabs")]

    desk.store.close()
    index_file.remove(index_file.path(desk.store.repo, "test"))
    store = open_store(Path(str(desk.store.repo.worktree)), desk.clock)

    assert [hit.as_json() for hit in search.recall(store, "parser tabs")] == before


def test_two_clones_answer_alike(repo: Path, tmp_path: Path) -> None:
    """Lines came to each in another order."""
    one, two = Desk(repo), Desk(new_repo(tmp_path / "two"))
    for number in range(4):
        one.write(f"parser one {'tabs ' * number}")
        two.write(f"parser two {'tabs ' * number}")
    ids(one.store, "parser"), ids(two.store, "parser")

    carry(one.store, two.store)

    figures = [
        [(hit.node.id, hit.bm25) for hit in search.recall(each.store, "parser tabs")] for each in (one, two)
    ]
    assert figures[0] == figures[1] and len(figures[0]) == 8


def test_another_version_of_the_words_is_built_anew(desk: Desk) -> None:
    one = desk.write("the parser drops tabs")
    ids(desk.store, "parser")
    desk.store.db().execute(f"DELETE FROM {fts.TABLE}")
    assert ids(desk.store, "parser") == []

    older = (f"{fts.VERSION - 1} ", f"{fts.VERSION} ", fts.KEY)
    desk.store.db().execute("UPDATE meta SET value = replace(value, ?2, ?1) WHERE key = ?3", older)

    assert ids(desk.store, "parser") == [one]


def test_portions_make_one_index(desk: Desk) -> None:
    many = [desk.write(f"parser {number}") for number in range(7)]
    desk.change(many[0], content="lexer")
    desk.change(many[6], content="lexer")
    told: list[int] = []
    fts.catch_up(desk.store.db(), lambda _, done, __: told.append(done), portion=3)

    assert told[:2] == [3, 6]
    assert set(ids(desk.store, "parser")) == set(many[1:6])
    assert set(ids(desk.store, "lexer")) == {many[0], many[6]}


def test_in_a_batch_what_was_just_written_is_found(desk: Desk) -> None:
    before = desk.write("the parser")
    ids(desk.store, "parser")
    collected: list[object] = []
    desk.store.collect(collected.append)
    inside = desk.write("another parser")

    assert set(ids(desk.store, "parser")) == {before, inside}

    desk.store.collect(None)
    assert ids(desk.store, "parser") == [before]  # it was never recorded


def test_two_stores_at_once(desk: Desk, repo: Path) -> None:
    """Each takes in the same nodes, while somebody writes more: each node is found once."""
    for number in range(30):
        desk.write(f"parser {number}")
    failures: list[BaseException] = []

    def look() -> None:
        try:
            store = open_store(repo, desk.clock, mail=None)
            for _ in range(10):
                found = ids(store, "parser", limit=100)
                assert len(found) == len(set(found)) >= 30
            store.close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(10):
        desk.write(f"parser and more {number}")
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(ids(desk.store, "parser", limit=100)) == 40


KILLED = """
import os, signal, sys
from pathlib import Path
from gitmem.memory import fts
from tests.sandbox import Clock, open_store
real, calls = fts._replace_rows, []
def put(db, ids):
    real(db, ids)
    calls.append(ids)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
fts._replace_rows = put
fts.catch_up(open_store(Path.cwd(), Clock()).db(), portion=4)
"""


def test_a_process_that_was_killed_leaves_whole_portions(desk: Desk, repo: Path) -> None:
    many = [desk.write(f"parser {number}") for number in range(10)]

    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=repo, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )

    assert done.returncode == -signal.SIGKILL
    assert desk.store.db().execute(f"SELECT count(*) FROM {fts.ROWS}").fetchone() == (4,)
    assert set(ids(desk.store, "parser")) == set(many)


def test_an_index_that_cannot_be_written_is_searched_in_memory(desk: Desk, repo: Path) -> None:
    """The file stays as it is: what it lacks of the words is made in a copy."""
    one = desk.write("the parser drops tabs")
    store = open_store(repo, desk.clock)
    store.db().execute("PRAGMA query_only = ON")

    assert ids(store, "parser") == [one]
    assert ids(store, "tabs") == [one]
    assert not store.index.writable
    tables = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'memory_words%'"
    assert desk.store.db().execute(tables).fetchone() == (0,)


def test_without_fts5_the_answer_says_so_and_the_rest_works(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fts, "DDL", tuple(each.replace("fts5(", "fts5_is_not_here(") for each in fts.DDL))

    with pytest.raises(StoreError) as caught:
        search.recall(desk.store, "parser")

    assert caught.value.code == "no-full-text" and "FTS5" in caught.value.message
    one = desk.write("the parser")
    assert desk.node(one).content == "the parser"
    assert not desk.store.db().in_transaction


def test_the_doctor_is_not_confused_by_it(desk: Desk) -> None:
    desk.write("the parser drops tabs")
    ids(desk.store, "parser")

    assert desk.tip()
    assert "index" not in {each.code for each in examine(desk.store).findings}


def test_a_damaged_index_of_words_is_built_anew(desk: Desk) -> None:
    one = desk.write("the parser drops tabs")
    ids(desk.store, "parser")
    desk.store.db().execute(f"UPDATE {fts.TABLE}_data SET block = x'00'")

    assert ids(desk.store, "parser") == [one]


def test_lines_that_are_no_nodes_are_no_hindrance(desk: Desk) -> None:
    """A node of a newer version with fields that nobody knows, one of an id twice, and a patch of nobody."""
    raw(desk.store, "node", id="mem-new0", content="the parser of tomorrow", shape={"round": True})
    raw(desk.store, "node", id="mem-two0", content="the parser, first")
    raw(desk.store, "node", id="mem-two0", content="the parser, second")
    raw(desk.store, "patch", id="patch-x000", node_ids=["mem-gone"], content="the parser is gone")

    assert sorted(ids(desk.store, "parser")) == ["mem-new0", "mem-two0"]


@pytest.mark.usefixtures("commits")
def test_track_access_rides_and_counts(desk: Desk) -> None:
    one = desk.write("the parser drops tabs")
    tip = desk.tip()

    search.search(desk.store, "parser", reader=desk.caller)
    search.search(desk.store, "zebra", reader=desk.caller)

    assert decay.stats(desk.store, one).count == 1
    assert desk.tip() == tip
