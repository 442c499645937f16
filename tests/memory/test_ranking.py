"""What counts for the order of hits: every field of a node, rare words, neighbours, and no order of arrival."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.memory import edit, fts, search

from ..sandbox import HOUR, MINUTE, carry, new_repo
from .desk import Desk, raw


@pytest.fixture
def desk(repo: Path) -> Desk:
    """Somebody in a log that is there already: the process that begins one has its index in memory."""
    Desk(repo, name="Curie").store.close()
    return Desk(repo, name="Lovelace")


def ids(desk: Desk, query: str, **options: object) -> list[str]:
    return [hit.node.id for hit in search.recall(desk.store, query, **options)]


def test_a_node_is_found_by_what_it_belongs_to(desk: Desk) -> None:
    """By its sender, work unit, lane, type and path; what it says is not in the question."""
    raw(desk.store, "node", id="mem-other0", content="nothing of it", sender_name="Planck")
    one = desk.write(
        "It drops tabs", wu="WU-7", lane="Billing: Core", type="checkpoint", paths=["src/payments.py"]
    )

    for query in ("what did Lovelace find", "WU-7", "wu7", "payments.py", "billing core", "checkpoint"):
        assert ids(desk, query) == [one], query


def test_a_changed_work_unit_is_found_by_its_new_name_alone(desk: Desk) -> None:
    one = desk.write("It drops tabs", wu="WU-7", lane="Billing")
    assert ids(desk, "WU-7") == ids(desk, "billing") == [one]

    desk.change(one, wu="WU-8", lane="Shipping", type="note")

    assert [ids(desk, query) for query in ("WU-7", "billing", "discovery")] == [[], [], []]
    assert [ids(desk, query) for query in ("WU-8", "shipping", "note")] == [[one], [one], [one]]


def test_who_changed_the_content_is_found_too(desk: Desk) -> None:
    one = desk.write("It drops tabs")
    assert ids(desk, "Curie") == []

    raw(desk.store, "patch", id="patch-0001", node_ids=[one], content="It keeps tabs", sender_name="Curie")

    assert ids(desk, "Curie") == ids(desk, "Lovelace") == [one]


def test_a_rare_word_counts_more_than_many_common_ones(desk: Desk) -> None:
    """BM25 alone prefers a short text that repeats the common words."""
    many = [desk.write(f"parser tabs number {number} parser") for number in range(30)]
    rare = desk.write(
        "the zebra of the parser, which nobody has ever seen on a walk through the long grass at noon"
    )

    first, *others = ids(desk, "zebra parser lexer")

    assert first == rare and set(others) <= set(many)


def beside(desk: Desk, *texts: str, apart: int = MINUTE) -> list[str]:
    """Nodes of one session, one after the other."""
    written = []
    for text in texts:
        written.append(desk.write(text))
        desk.clock.forward(apart)
    return written


def test_a_match_beside_a_better_one_comes_first(desk: Desk) -> None:
    far, near, best = (
        desk.write("the parser is here", session="sess-other1"),
        *beside(desk, "the parser is there", "parser drops tabs"),
    )

    found = search.recall(desk.store, "tabs drops parser lexer")

    assert [hit.node.id for hit in found] == [best, near, far]
    assert found[1].bm25 == pytest.approx(found[2].bm25)
    assert found[1].score > found[2].score


def test_only_nodes_of_one_session_within_an_hour_are_beside_each_other(desk: Desk) -> None:
    best, late = beside(desk, "the parser drops tabs", "the parser is there", apart=HOUR + MINUTE)
    alone = desk.write("the parser is here", session="sess-other1")

    found = {hit.node.id: hit.score for hit in search.recall(desk.store, "tabs drops parser lexer")}

    assert found[late] == pytest.approx(found[alone], rel=1e-3) and found[best] > found[late]


def test_a_neighbour_without_a_word_is_no_hit(desk: Desk) -> None:
    one, _ = beside(desk, "the parser drops tabs", "and something else")

    assert ids(desk, "parser lexer") == [one]


def test_a_neighbour_that_is_hidden_or_filtered_is_no_hit(desk: Desk) -> None:
    one, hidden = beside(desk, "the parser drops tabs", "the parser is there")
    desk.change(hidden, archived=True)
    other = desk.write("the parser elsewhere", wu="WU-2")

    assert ids(desk, "parser tabs lexer") == [one, other]
    assert ids(desk, "parser tabs lexer", wu="WU-2") == [other]


def test_a_neighbour_beyond_the_candidates_is_found(desk: Desk) -> None:
    """It has a common word of the question alone, as hundreds of others."""
    given = [{"content": f"the parser {number}", "session": f"sess-many{number}"} for number in range(250)]
    edit.append(desk.store, desk.caller, given)
    one, answer = beside(
        desk, "zebra tabs in the parser", "so the parser is what we have to look at in the end, all of it"
    )

    assert ids(desk, "zebra tabs parser lexer", limit=5)[:2] == [one, answer]


def test_equal_matches_do_not_depend_on_the_order_of_arrival(repo: Path, tmp_path: Path) -> None:
    """More nodes match equally well than candidates are taken; each clone read its own first."""
    one, two = Desk(repo), Desk(new_repo(tmp_path / "two"))
    for desk, number in ((one, 1), (two, 2)):
        desk.clock.forward(number * HOUR)
        edit.append(desk.store, desk.caller, [{"content": "parser tabs"} for _ in range(450)])
        ids(desk, "parser")

    carry(one.store, two.store)

    one.clock.value = two.clock.value
    for query in ("parser", "parser lexer"):
        found = [
            [(hit.node.id, hit.score) for hit in search.recall(each.store, query)] for each in (one, two)
        ]
        assert found[0] == found[1], query


def test_one_wrong_letter_is_forgiven(desk: Desk) -> None:
    one = desk.write("It drops tabs")

    for typed in ("lovelase", "lovelce", "lovellace", "lovealce", "olvelace"):
        found = search.search(desk.store, f"what did {typed} find")
        assert [hit.node.id for hit in found.hits] == [one]
        assert list(found.similar) == [typed]


def test_words_with_endings_are_forgiven_too(desk: Desk) -> None:
    """Though the full-text index has only their stems."""
    one = desk.write("A universe of convergence, rounding happily")

    for typed in ("univrese", "convergance", "roundign", "happilly"):
        assert ids(desk, typed) == [one], typed


def test_a_word_that_matches_is_not_replaced(desk: Desk) -> None:
    """Nor one that is a prefix or short; and nothing is two letters away."""
    one, two = desk.write("parser"), desk.write("parsers7 tab")
    desk.write("lexer")

    assert not search.search(desk.store, "parser").similar
    for query, expected in (("pars", {one, two}), ("tac", set()), ("lxeerr", set())):
        found = search.search(desk.store, query)
        assert {hit.node.id for hit in found.hits} == expected and not found.similar, query


def test_of_several_similar_words_the_most_frequent_counts(desk: Desk) -> None:
    desk.write("the carver")
    more = {desk.write("the server"), desk.write("a server")}

    assert set(ids(desk, "serverr")) == more
    assert fts.find_similar(desk.store.db(), ["sarver"], lambda word: True) == {"sarver": "server"}


@pytest.mark.parametrize("hidden", ["deleted", "archived", "filtered"])
def test_a_word_of_nodes_that_are_not_shown_replaces_none(desk: Desk, hidden: str) -> None:
    """It isn't told either: a deleted node may have been a secret."""
    some = [desk.write("the salver", wu="WU-8"), desk.write("a salver", wu="WU-8")]
    if hidden != "filtered":
        desk.change(*some, **{hidden: True})
    asked = {"wu": "WU-7"} if hidden == "filtered" else {}
    assert search.search(desk.store, "sarver", **asked).similar == {}  # type: ignore[arg-type]

    shown = desk.write("the server", wu="WU-7")

    found = search.search(desk.store, "sarver", **asked)  # type: ignore[arg-type]
    assert found.similar == {"sarver": "server"} and [hit.node.id for hit in found.hits] == [shown]


def test_the_vocabulary_is_that_of_the_present_words(desk: Desk) -> None:
    """As an index that is built anew would have it."""

    def vocabulary() -> list[tuple[str, int]]:
        return desk.store.db().execute(f"SELECT * FROM {fts.VOCABULARY}").fetchall()

    one, _ = desk.write("The parser drops tabs", tags=["lexer"]), desk.write("Another parser")
    ids(desk, "parser")
    desk.change(one, content="The lexer keeps spaces", clear=["tags"])
    ids(desk, "parser")

    found = vocabulary()
    assert dict(found)["parser"] == dict(found)["lexer"] == 1 and "tabs" not in dict(found)
    desk.store.index.reshape()
    desk.store.db()
    ids(desk, "parser")
    assert vocabulary() == found
