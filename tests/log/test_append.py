"""Append and commit: what a commit has, which segments lines go to, what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git.objects import Draft
from gitmem.log import committer, lines, ref
from gitmem.log.committer import combine_messages, split_author
from gitmem.log.lines import CommitMessage, LogEntry
from gitmem.log.local_log import LocalLog
from gitmem.log.tree_union import differing

from ..conftest import Git
from .logs import START, FakeClock, all_lines, entry, open_log, record


def sizes(log: LocalLog) -> list[int]:
    """The sizes of all segments, the largest first."""
    tree = log.git.commit(log.git.tip(ref.LOG_REF) or "").tree
    found = [len(log.git.blob(each.oid)) for path, each, _ in differing(log.git, tree, []) if "gm-" in path]
    return sorted(found, reverse=True)


def test_a_segment_that_a_peer_has_filled_is_not_added_to(repo: Path) -> None:
    """Else the next append makes a file above the limit, and everybody else leaves this clone's log out."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    tip = log.git.tip(ref.LOG_REF) or ""
    tree = log.git.commit(tip).tree
    ((path, _, _),) = [each for each in differing(log.git, tree, []) if "gm-" in each[0]]
    filled = b"x" * ref.SEGMENT_BYTES_MAX + b"\n"
    nobody = log.signature()
    (new,) = log.git.write([Draft({path: filled}, nobody, nobody, "Fill it")], tip)
    assert log.git.swap(ref.LOG_REF, tip, new, "sync")
    waiting = entry(log, "second")

    record(log, waiting)
    record(log, waiting)  # as after a crash between swap and removal

    assert sizes(log)[0] == len(filled)
    assert len(all_lines(log)) == 2 and any(b"second" in line for line in all_lines(log))


def test_one_append_of_many_lines_makes_many_segments(repo: Path) -> None:
    """An import may add more than a file may hold; repeated it adds nothing."""
    log = open_log(repo)
    many = entry(log, "y" * 60_000)
    many.lines.extend(line for _ in range(60) for line in entry(log, "y" * 60_000).lines)

    record(log, many)
    record(log, many)

    assert len(all_lines(log)) == 61
    assert ref.SEGMENT_BYTES_MAX <= sizes(log)[0] <= ref.SEGMENT_BYTES_MAX + 61_000


def test_a_segment_closes_at_its_limit(repo: Path) -> None:
    """Files stay small: the next line after 16 KiB goes to a new one, and not before."""
    log = open_log(repo)
    assert log.make_state()
    first = log.token()

    record(log, entry(log, "hello"))
    committer.notify_moved(log)  # as a sync does
    assert log.token() == first
    long, short = entry(log, "x" * ref.SEGMENT_MAX_BYTES), entry(log, "y", stream="receipts")
    record(log, LogEntry([*long.lines, *short.lines], long.message))

    assert log.token() != first
    tree = log.git.commit(log.git.tip(ref.LOG_REF) or "").tree
    for stream in ("signals", "receipts"):
        found = ref.lookup(log.git, tree, f"{stream}/2026-10/26/gm-{first}.jsonl")
        assert found is not None and not found.is_tree


def test_where_nothing_takes_a_line_it_has_failed_with_a_way_out(repo: Path) -> None:
    """The git folder can't be written, and there is no write-ahead log elsewhere."""
    log = open_log(repo)
    log.make_state = lambda: False  # type: ignore[method-assign]

    with pytest.raises(StoreError, match=r"cannot be written\. Nothing was recorded") as failed:
        record(log, entry(log, "hello"))

    assert failed.value.code == "read-only" and failed.value.hint


def test_somebody_elses_ref_is_left_alone(repo: Path, git) -> None:  # type: ignore[no-untyped-def]  # a fixture
    """A ref of our name that is no log is reported, and nothing is written."""
    head = git("rev-parse", "HEAD", cwd=repo).strip()
    git("update-ref", ref.LOG_REF, head, cwd=repo)
    log = open_log(repo)

    with pytest.raises(StoreError, match=rf"{ref.LOG_REF} is at {head[:12]}.*not a gitmem log") as failed:
        record(log, entry(log, "hello"))

    assert failed.value.code == "not-a-log" and failed.value.hint
    assert failed.value.next == ["gitmem doctor"]
    assert git("rev-parse", ref.LOG_REF, cwd=repo).strip() == head


def test_the_log_is_readable_with_git(repo: Path) -> None:
    """`git log gitmem/log` and the reflog work."""
    log = open_log(repo)
    record(log, entry(log, "hello"))

    shown = subprocess.run(
        ["git", "log", "-g", "--format=%an %s", "gitmem/log"],
        cwd=repo,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "Planck Planck → all: hello" in shown.stdout


def test_times_never_repeat_in_a_clone(repo: Path) -> None:
    """Two processes' worth of ticks at one instant differ, and a remembered future is not believed."""
    clock = FakeClock()
    ticks = [open_log(repo, clock=clock).clock.tick() for _ in range(3)]
    log = open_log(repo, clock=clock)
    log.make_state()
    ticks += [log.clock.tick() for _ in range(3)]
    clock.forward(-3600)

    assert open_log(repo, clock=clock).clock.tick() == clock()
    assert ticks[3:] == sorted(set(ticks[3:]))


# What the commit of an append says: who wrote, when, and the story, as `git log` shows it.


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


# Entries: what is read is what was written, and nothing that is no entry passes for one.

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
