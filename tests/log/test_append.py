"""Append and commit: what a commit has, which segments lines go to, what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git.objects import Draft
from gitmem.log import committer, ref
from gitmem.log.committer import combine_messages
from gitmem.log.lines import LogEntry
from gitmem.log.local_log import LocalLog
from gitmem.log.tree_union import differing

from .logs import FakeClock, all_lines, entry, open_log, record


def test_an_append_is_one_commit_on_the_ref(repo: Path) -> None:
    """The answer names the commit, and the ref is at it."""
    log = open_log(repo)

    done = record(log, entry(log, "hello"))

    assert done.commit == log.git.tip(ref.LOG_REF)
    assert [b'"hello"' in line for line in all_lines(log)] == [True]


def test_every_log_starts_with_the_same_commit(repo: Path) -> None:
    """Logs that are started apart are related."""
    log = open_log(repo)
    record(log, entry(log, "hello"))

    assert log.git.history(log.git.tip(ref.LOG_REF) or "")[0] == ref.GENESIS


def test_the_same_entry_twice_is_there_once(repo: Path) -> None:
    """Equal bytes are one line, also when they are committed again."""
    log = open_log(repo)
    once = entry(log, "hello")

    record(log, once)
    record(log, once)

    assert len(all_lines(log)) == 1


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


def test_a_newer_format_is_read_and_never_written(repo: Path) -> None:
    """A clone that meets a higher format says which version to install; what was recorded before waits."""
    log = open_log(repo)
    tip = record(log, entry(log, "hello")).commit
    newer = _draft_format(log, b'{"format":2,"epoch":0,"turn":0}\n')
    assert tip and log.git.advance(ref.LOG_REF, tip, newer, "test")

    with pytest.raises(StoreError, match="format 2"):
        record(log, entry(log, "world"))

    assert len(all_lines(log)) == 1


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


def test_the_message_of_a_shared_commit_counts(repo: Path) -> None:
    """Several entries are told as one and a count, with the trailers of all."""
    log = open_log(repo)
    told = combine_messages([entry(log, "a"), entry(log, "b"), entry(log, "c", deferred=True)])

    assert told.subject.endswith(" +2")


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


def _draft_format(log, content: bytes):  # type: ignore[no-untyped-def]  # a helper of two tests
    from gitmem.git.objects import Draft, Signature

    nobody = Signature("a", "b", 0)
    return Draft({"format": content}, nobody, nobody, "a newer gitmem\n")
