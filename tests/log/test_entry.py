"""Entries: what is read is what was written, and nothing that is no entry passes for one."""

from __future__ import annotations

import pytest

from gitmem.log import lines
from gitmem.log.lines import CommitMessage, LogEntry

from .logs import START

AT = lines.format_at(START).encode()
LINE = b'{"at":"' + AT + b'","kind":"note","text":"hello"}'
HEAD = b'["7d2kq0ze", "Planck <a@gitmem>", "hello", "", []]\n'
ROW = b"signals\t" + LINE + b"\n"


@pytest.mark.parametrize("deferred", [False, True])
def test_what_is_read_is_what_was_written(deferred: bool) -> None:
    """The lines byte for byte, and what the commit will say, whoever commits it."""
    tabbed = b'{"at":"' + AT + b'",\t"kind":"note"}'
    story = CommitMessage(
        "Planck <a@gitmem>", 'to "all"', "a body\n\\ of two lines", [("Signal", "sig-1"), ("To", "Ada")]
    )
    rows = [("signals", LINE), ("receipts", tabbed)]

    found = LogEntry.decode(LogEntry(rows, story, token="7d2kq0ze").encode(), deferred=deferred)

    assert found.lines == rows
    assert (found.deferred, found.token) == (deferred, "7d2kq0ze")
    assert vars(found.message) == vars(story)


def test_half_a_character_in_a_story_does_not_refuse_the_lines() -> None:
    """A name from a terminal may have a lone surrogate."""
    one = LogEntry([("signals", LINE)], CommitMessage("Planck <a@gitmem>", "to \udce9ric"), token="7d2kq0ze")

    assert LogEntry.decode(one.encode()).message.subject == "to ?ric"


@pytest.mark.parametrize("good", ["signals", "7d2kq0ze", "a" * 64])
def test_names_of_streams_and_tokens(good: str) -> None:
    """What another version may write, too."""
    found = LogEntry.decode(HEAD.replace(b"7d2kq0ze", good.encode()) + good.encode() + b"\t" + LINE + b"\n")

    assert (found.token, found.lines) == (good, [(good, LINE)])


@pytest.mark.parametrize(
    "bad", ["", "format", "projects", "..", "a/b", "A/b", "Signals", "signale\u0301", "sign\u00e4l", "a" * 65, "a b"]
)  # fmt: skip
def test_an_entry_cannot_name_a_path_of_its_own(bad: str) -> None:
    """A stream and a token become names in the log's tree: neither may climb, nor hide one of the fixed names."""
    with pytest.raises(ValueError):
        LogEntry.decode(HEAD + bad.encode() + b"\t" + LINE + b"\n")
    with pytest.raises(ValueError):
        LogEntry.decode(HEAD.replace(b"7d2kq0ze", bad.encode()) + ROW)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "its end is missing"),
        (HEAD + ROW[:-1], "its end is missing"),
        (HEAD + b"signals\n", "no valid stream"),
        (HEAD + ROW.replace(b"}", b""), "does not start with"),
        (HEAD + ROW.replace(AT, AT.replace(b"-10-", b"-13-")), "bad time"),
        (b'["7d2kq0ze", "Planck <a@gitmem>", "hello", ""]\n' + ROW, "not enough values"),
        (b'["7d2kq0ze", "Planck <a@gitmem>", "hello", "", 7]\n' + ROW, "its head is not"),
        (b"7\n" + ROW, "its head is not a list"),
        (b"[]\n" + ROW, "its head is not a list"),
        (b"[" * 100_000 + b"\n" + ROW, "its head is not a list"),
        (b"\xff" + HEAD + ROW, "utf-8"),
    ],
    ids=[
        "empty",
        "no end",
        "no tab",
        "no object",
        "no day",
        "four",
        "trailers",
        "number",
        "nothing",
        "deep",
        "bytes",
    ],
)
def test_what_is_no_entry_says_why(content: bytes, why: str) -> None:
    """Foreign or damaged: whoever reads goes on, and `gitmem doctor` tells of it."""
    with pytest.raises(ValueError, match=why):
        LogEntry.decode(content)
