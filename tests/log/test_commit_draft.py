"""What the commit of an append says: who wrote, when, and the story, as `git log` shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.log.committer import combine_messages, split_author
from gitmem.log.lines import CommitMessage, LogEntry

from ..conftest import Git
from .logs import FakeClock, entry, open_log, record


def told(
    number: int, *trailers: tuple[str, str], author: str = "Planck <a:b:c@gitmem>", deferred: bool = False
) -> LogEntry:
    line = b'{"at":"2026-10-26T07:33:2%d.000000Z","kind":"note"}' % number
    return LogEntry(
        [("signals", line)],
        CommitMessage(author, f"subject {number}", f"body {number}", trailers),
        deferred=deferred,
    )


def test_a_commit_is_told_as_git_shows_it(repo: Path, git: Git) -> None:
    """Subject, body and trailers apart by one empty line; the author's time is the line's, the committer's is now."""
    clock = FakeClock()
    log = open_log(repo, clock=clock)
    one = entry(log, "hello")
    clock.forward(100)
    one.message = CommitMessage(
        "Planck <a:b:c@gitmem>",
        "Planck → all",
        "\nX marks\n\n  the spot  \n",
        [("Signal", "sig-1"), ("To", "Ada")],
    )

    record(log, one)

    shown = git("log", "-1", "--format=%an|%ae|%at|%cn|%ce|%ct%n%B", "refs/gitmem/log", cwd=repo)
    assert shown == (
        "Planck|a:b:c@gitmem|1793000000|Test Person|person@example.org|1793000100\n"
        "Planck → all\n\nX marks\n\n  the spot  \n\nSignal: sig-1\nTo: Ada\n\n"
    )
    assert (
        git("log", "-1", "--format=%(trailers:key=To,valueonly)", "refs/gitmem/log", cwd=repo).strip()
        == "Ada"
    )


def test_where_nobody_is_known_the_author_commits(repo: Path, git: Git) -> None:
    """A clone without an identity of git."""
    log = open_log(repo)
    log.committer = None

    record(log, entry(log, "hello"))

    shown = git("log", "-1", "--format=%an|%cn|%ce", "refs/gitmem/log", cwd=repo)
    assert shown == "Planck|Planck|a:b:c@gitmem\n"


def test_one_that_speaks_tells_its_own_story_with_the_trailers_of_those_that_ride(repo: Path) -> None:
    """A receipt is nothing to tell of; trailers of one key stand together, each once."""
    found = combine_messages(
        [
            told(1, ("Reader", "Ada"), ("Signal", "sig-1"), deferred=True),
            told(2, ("Signal", "sig-2"), ("Reader", "Bob"), ("Signal", "sig-1")),
        ]
    )

    assert (found.subject, found.body) == ("subject 2", "body 2")
    assert found.trailers == [("Signal", "sig-2"), ("Signal", "sig-1"), ("Reader", "Bob"), ("Reader", "Ada")]


def test_where_all_ride_the_only_one_tells_its_story(repo: Path) -> None:
    """A receipt that must be committed at once."""
    assert combine_messages([told(1, deferred=True)]).subject == "subject 1"


@pytest.mark.parametrize(
    ("subjects", "shown"),
    [
        (["A starts", "A: note x", "A → B: hello", "A → B: PROPOSE x", "B → A: AGREE x"], "B → A: AGREE x +4"),
        (["B → A: REJECT x", "A → B: COUNTER x", "A → B: AGREE x"], "B → A: REJECT x +2"),
        (["A: note x", "A → B: COUNTER x", "A → B: AGREEMENT x"], "A → B: COUNTER x +2"),
        (["A: note x", "B → A: they said: AGREE x"], "B → A: they said: AGREE x +1"),
        (["A starts", "A: note x"], "A: note x +1"),
        (["A: note x", "A completed: ok"], "A completed: ok +1"),
        (["B → A: hello", "A passes the gate of WU-1 with 1 signal: late"], "A passes the gate of WU-1 with 1 signal: late +1"),
        (["A starts", "A ends"], "A starts +1"),
    ],
)  # fmt: skip
def test_several_are_told_by_the_most_telling_of_them(subjects: list[str], shown: str) -> None:
    """A decision before a proposal before a signal before a note; all are listed, in the order in which they came."""
    entries = [
        told(number, ("Signal", f"sig-{number}"), author=f"{each[0]} <m>")
        for number, each in enumerate(subjects)
    ]
    for each, subject in zip(entries, subjects, strict=True):
        each.message.subject = subject
    found = combine_messages(entries)

    assert (found.author, found.subject) == (f"{shown[0]} <m>", shown)
    assert found.body == "\n".join(subjects)
    assert found.trailers == [("Signal", f"sig-{number}") for number in range(len(subjects))]


@pytest.mark.parametrize(
    ("author", "kept"),
    [
        ("Planck <codex:implementer:host@gitmem>", ("Planck", "codex:implementer:host@gitmem")),
        ("X", ("X", "gitmem")),
        ("Xenia X <x@x.x>", ("Xenia X", "x@x.x")),
        ("", ("gitmem", "gitmem")),
        (" . <;>", ("gitmem", "gitmem")),
        ("Pl\x1b[31m\u202eanck\n <a\0b>", ("Pl[31manck", "ab")),
        ("Planck <one> <two>", ("Planck", "one two")),
        ("'Planck.' <\"a\\>", ("Planck", "a")),
    ],
)
def test_an_author_is_split_as_git_can_keep_it(author: str, kept: tuple[str, str]) -> None:
    """No angle brackets, control or bidi characters; git strips the same marks from both ends, and wants neither empty."""
    assert split_author(author) == kept
