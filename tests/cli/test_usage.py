"""Command lines that are wrong: the answer says what was meant, in the shape that works."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Run

Start = Callable[..., str]


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["reply", "sig-1", "two", "words"], "Quote the message"),
        (["signal", "two", "words", "--to", "Curie"], "Quote the message"),
        (["reply", "sig-1"], "gitmem reply ID 'your message'"),
        (["signal"], "gitmem signal 'your message' --to NAME"),
        (["signal", "-1 for this"], "gitmem signal --to NAME -- '-1 for this'"),
        (["reply", "sig-1", "-1 for this"], "gitmem reply ID -- '-1 for this'"),
        (["reply", "sig-1", "Yes", "--wu", "WU-1"], "gitmem signal 'your message' --reply-to ID"),
        (["mem", "create", "two", "words"], "Quote the text"),
        (["mem", "checkpoint", "two", "words"], "gitmem mem checkpoint 'your whole text'"),
        (["mem", "create", "-1 for this"], "gitmem mem create -- '-1 for this'"),
        (["mem", "create", "text", "--wu"], "`gitmem mem create --help` for its usage"),
        (["--as", "x", "-C", ".", "session", "start", "--wu"], "`gitmem session start --help` for its usage"),
        (["session"], "gitmem session start --json"),
    ],
    ids=" ".join,
)
def test_a_mistake_with_a_message_gets_its_own_hint(args: list[str], hint: str, run: Run) -> None:
    """Each its own: the advice about `--` only helps where a dash stands first."""
    said = run(*args)

    assert said.status == 2
    assert hint in said.err
    assert ("Put -- before" in said.err) == ("'-1 for this'" in hint)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("send", "gitmem signal"), ("agree", "--agree"), ("status", "gitmem whoami"), ("status", "gitmem roster"),
     ("read", "gitmem inbox"), ("ready", "gitmem mem ready"), ("lock", "gitmem claim PATH"),
     ("redact", "gitmem forget"), ("mem:init", "gitmem setup"), ("wu:create", "gitmem delegate"), ("wu:claim", "--wu ID"),
     ("hooks", "gitmem setup")],
)  # fmt: skip
def test_words_that_people_try_lead_to_the_command(word: str, meant: str, run: Run) -> None:
    """In the hint, and in the suggestions of the JSON; each line says it once."""
    assert 1 <= run(word).err.count(meant) <= 2
    assert any(meant in each for each in run(word, "--json").json["error"]["suggestions"])


@pytest.mark.parametrize(
    ("word", "meant"),
    [("status", "gitmem task show ID"), ("complete", "gitmem task done ID 'the result'"), ("send", "gitmem signal 'your message' --to NAME")],
)  # fmt: skip
def test_a_wrong_word_of_a_group_means_one_of_its_commands_first(run: Run, word: str, meant: str) -> None:
    assert run("task", word, "task-1", "--json").json["error"]["suggestions"] == [meant]
    assert run("mem", "show", "mem-1", "--json").json["error"]["suggestions"] == ["gitmem show ID"]


def test_an_option_is_likened_by_its_letters(run: Run) -> None:
    """The dashes, which all have, make two of them no more alike."""
    assert "Did you mean" not in run("inbox", "--question").err
    assert "Did you mean --thread?" in run("inbox", "--tread").err


def test_a_group_without_a_command_answers_in_json(run: Run) -> None:
    """With its commands, and exit status 2."""
    said = run("session", "--json")

    assert said.status == 2
    assert "start, set, note, end" in said.json["error"]["message"]
    assert said.json["next"] == ["gitmem session --help"]


@pytest.mark.parametrize(
    "args",
    [["roster"], ["inbox"], ["whoami"], ["log"], ["session", "start"], ["signal", "Hello"], ["doctor"]],
    ids=" ".join,
)
@pytest.mark.parametrize("before", [False, True])
def test_an_empty_as_is_refused_everywhere(before: bool, args: list[str], run: Run, start: Start) -> None:
    """A script's unset variable must not make somebody else of the caller."""
    start("Planck")
    said = run(*(["--as", "", *args] if before else [*args, "--as", ""]))

    assert said.status == 2
    assert "--as is empty" in said.err
