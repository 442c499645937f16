"""A session that acts with `--as` of another: whose mail is read, and what shows who it was."""

from __future__ import annotations

import pytest

from .test_trust_caller import Place, here

__all__ = ["here"]
PERSON = "human:person@example.org"


@pytest.fixture
def sessions(here: Place) -> tuple[str, str, str]:
    """Planck, Curie and Noether."""
    return here.start("Planck"), here.start("Curie"), here.start("Noether")


def ask(here: Place, session: str, to: str) -> str:
    words = ("--to", to, "--intent", "PROPOSE", "--requires-ack", "--json")
    return str(here("signal", "Shall we?", *words, session=session).json["signal"]["signal_id"])


@pytest.mark.parametrize("answer", [("ok", "--agree", "--insist"), ("hm",)])
def test_an_answer_in_anothers_name_reads_nothing_for_it(
    here: Place, sessions: tuple[str, str, str], answer: tuple[str, ...]
) -> None:
    """What was answered stays in the inbox of who was asked, and stands in the way of its push."""
    planck, curie, noether = sessions
    id = ask(here, planck, "Curie")
    said = here("reply", id, *answer, "--as", "Curie", "--json", session=noether)
    assert said.json["signal"]["via"] == noether, said
    assert here("inbox", "--count", session=curie).out == "1\n"
    assert [each["signal_id"] for each in here("inbox", "--json", session=curie).json["signals"]] == [id]
    assert here("inbox", "--count", session=curie).out == "0\n"


@pytest.mark.parametrize("as_", ["Curie", PERSON])
def test_every_signal_in_anothers_name_says_who_recorded_it(
    here: Place, sessions: tuple[str, str, str], as_: str
) -> None:
    """A proposal and a plain word too, and the reader sees it in its inbox, in the thread and in a watch."""
    planck, _, noether = sessions
    for words in (("--intent", "PROPOSE"), ()):
        said = here("signal", "As you like", "--to", "Planck", *words, "--as", as_, "--json", session=noether)
        assert said.json["signal"]["via"] == noether, said
    mark = f"recorded by {noether} in the sender's name"
    assert here("inbox", "--for", "Planck", session=noether).out.count(mark) == 2
    assert here("thread", said.json["signal"]["signal_id"], session=planck).out.count(mark) == 1
    assert here("inbox", session=planck).out.count(mark) == 2


def test_reading_as_another_only_looks(here: Place, sessions: tuple[str, str, str]) -> None:
    """A session that a variable names sees the mail of another, is told so, and leaves it unread."""
    planck, curie, noether = sessions
    ask(here, planck, "Curie")
    for as_ in ("Curie", curie):
        said = here("inbox", "--as", as_, session=noether)
        assert "Shall we?" in said.out and "Noether. Nothing is marked as delivered." in said.out, said
    assert here("inbox", "--count", session=curie).out == "1\n"
    assert "Shall we?" in here("inbox", "--as", "Curie", session=curie).out  # itself
    assert here("inbox", "--count", session=curie).out == "0\n"


def test_without_a_variable_as_says_who_reads(here: Place, sessions: tuple[str, str, str]) -> None:
    """A script that works for several agents in turn names each of them."""
    planck, curie, _ = sessions
    ask(here, planck, "Curie")
    assert "a look" not in here("inbox", "--as", curie).out
    assert here("inbox", "--count", session=curie).out == "0\n"
