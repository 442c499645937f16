"""What peers write and what somebody asks makes no search run for long."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.errors import UsageError
from gitmem.memory import edit, search

from ..memory.desk import Desk
from ..sandbox import SECOND

SECONDS = 3.0  # of CPU for a question; most take a tenth of a second on the machine of the benchmarks
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def desk(repo: Path) -> Desk:
    Desk(repo).store.close()
    return Desk(repo)


def ask(desk: Desk, query: str, *, seconds: float = SECONDS, **options: object) -> search.SearchResult:
    """The answer, after the index of words was made; within the time."""
    before = time.process_time()
    found = search.search(desk.store, query, **options)
    took = time.process_time() - before
    assert took < seconds, f"{query[:40]}: {took:.2f} s"
    return found


def test_a_question_of_a_million_characters(desk: Desk) -> None:
    """Only its first words count, and they are few."""
    one = desk.write("the parser drops tabs")
    search.recall(desk.store, "parser")

    for query in (
        "parser " * 150_000,
        "parser " + "x" * 1_000_000,
        "parser " + "x_1" * 300_000,
        '"parser" ' * 110_000,
        "parser " + '"' * 1_000_000,
        "parser " + "世" * 1_000_000,
        "parser " + "e\u0301" * 500_000,
        "parser " + " ".join(f"word{number}" for number in range(10_000)),
        "parser " + " ".join(map("".join, itertools.product(LETTERS[:22], repeat=3))),
    ):
        assert [hit.node.id for hit in ask(desk, query).hits] in ([one], []), query[:40]
    with pytest.raises(UsageError):
        search.recall(desk.store, "?" * 1_000_000)


@pytest.mark.deep
def test_nodes_of_one_long_word(desk: Desk) -> None:
    texts = ["a" * 61_000, "a1" * 30_000, "a_b" * 20_000, "aB" * 30_000, "-" * 60_000 + "a", "é" * 30_000]
    edit.append(desk.store, desk.caller, [{"content": text} for text in [*texts * 3, *texts[2:3] * 30]])
    search.recall(desk.store, "a")

    for query in ("a" * 61_000, "a1", "a b", "aaaaaaaab", "a_b" * 20_000, "é"):
        ask(desk, query, limit=100)


def distinct_words() -> Iterator[str]:
    """Words of five letters, all with the same first one."""
    return ("q" + "".join(letters) for letters in itertools.product(LETTERS, repeat=4))


@pytest.mark.deep
def test_a_vocabulary_of_hundreds_of_thousands_of_words(desk: Desk) -> None:
    """A wrong letter is looked for among those with the same first letter, and not among all of them."""
    words = distinct_words()
    texts = [" ".join(itertools.islice(words, 10_000)) for _ in range(45)]
    edit.append(desk.store, desk.caller, [{"content": text} for text in texts])
    search.recall(desk.store, "parser")

    for query in ("qaaaax", "qzzzzz1 qqqqqqq", "qabcx qdefx qghix qjklx parser", "qaa", "q"):
        ask(desk, query, seconds=1.0)


@pytest.mark.deep
def test_one_session_of_many_equal_nodes(desk: Desk) -> None:
    """Nodes of one session within an hour, each with all words of the question, are found in time.

    So are nodes of as many sessions with one node each.
    """
    for number in range(2):
        edit.append(desk.store, desk.caller, [{"content": "the parser drops tabs"} for _ in range(20_000)])
        sessions = [{"content": "parser", "session": f"sess-s{number}x{each}"} for each in range(5_000)]
        edit.append(desk.store, desk.caller, sessions)
        desk.clock.forward(SECOND)
    search.recall(desk.store, "lexer")

    for query in ("parser tabs", "parser tabs lexer", "parser", '"drops tabs" parser'):
        assert len(ask(desk, query).hits) == 10
    assert len(ask(desk, "parser tabs lexer", limit=1_000).hits) == 1_000
