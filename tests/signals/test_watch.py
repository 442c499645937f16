"""A watch: each signal once, over restarts too; nothing is marked that was not shown; what goes wrong is told once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.agents import delivery, lifecycle, presence
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.api.log import Log
from gitmem.errors import StoreError, UsageError
from gitmem.index import index_file
from gitmem.log.write_ahead import Owner
from gitmem.signals import inbox, send
from gitmem.signals import watch as watching
from gitmem.signals.watch import ChangeWatcher, Watch
from tests.file_faults import at, full
from tests.sandbox import Clock, acting, annas, new_repo, open_store, worktree

LONG = 60.0  # seconds: for what comes at once


class Stop:
    """A stop that a test sets."""

    def __init__(self) -> None:
        self.now = False

    def is_set(self) -> bool:
        return self.now


class Desk:
    """Planck writes with one store, Curie is watched with another, as in two processes."""

    def __init__(self, repo: Path, other: Path) -> None:
        self.repo = repo
        self.clock = Clock()
        self.writer = open_store(repo, self.clock)
        self.watcher = open_store(other, self.clock)
        self.planck = self.start("Planck", agent_identity=annas("claude:architect:shop"))
        self.curie = self.start("Curie", agent_identity=annas("codex:builder:host"))
        self.told: list[str] = []
        self.stop = Stop()
        self.opened: list[Watch] = []

    def start(self, name: str, **options: str) -> Caller:
        self.clock.forward(1_000_000)
        return acting(self.writer, lifecycle.start(self.writer, CallerClaims(), name=name, **options))

    def say(self, text: str, *to: str) -> str:
        self.clock.forward(1_000_000)
        return str(send.send(self.writer, self.planck, text, to=to).signal["signal_id"])

    def watch(
        self, name: str = "Curie", *, by: Caller | None = None, one_by_one: bool = False, **waits: float
    ) -> Watch:
        """A watch as a person at a terminal starts it, or as an agent does."""
        who = CallerClaims(as_=name, session=by.session_id if by else None, terminal=by is None)
        of = watching.watch_owner(self.watcher, who)
        tell = self.told.append
        found = Watch(self.watcher, of, self.stop, events=False, one_by_one=one_by_one, report=tell, **waits)
        self.opened.append(found)
        return found

    def unread(self) -> set[str]:
        """What the log says that Curie has not read."""
        found = inbox.read(self.writer, self.curie)
        return {str(fields["signal_id"]) for fields in found.signals}

    def close(self) -> None:
        for each in self.opened:
            each.close()
        self.writer.close()
        self.watcher.close()


@pytest.fixture
def desk(repo: Path, tmp_path: Path) -> Iterator[Desk]:
    found = Desk(repo, worktree(repo, tmp_path / "other"))
    yield found
    found.close()


def shown(seen: Watch) -> list[str]:
    """The ids of what a watch shows now, read to the end."""
    return [str(fields["signal_id"]) for batch in seen.unread() for fields in batch.signals]


def test_each_signal_is_shown_once_over_restarts_too(desk: Desk) -> None:
    """What waited, what comes, a broadcast; and a second watch shows nothing of it."""
    waited = desk.say("waited", "Curie")
    seen = desk.watch()
    assert shown(seen) == [waited]
    came, to_all = desk.say("came", "Curie"), desk.say("to all")
    assert seen.wait(LONG)
    assert shown(seen) == [came, to_all]
    assert shown(seen) == []
    assert desk.unread() == set()

    assert shown(desk.watch()) == []


def test_what_was_not_shown_to_the_end_is_shown_again(desk: Desk) -> None:
    """Whoever dies with a batch in hand has marked nothing of it."""
    ids = [desk.say("one", "Curie"), desk.say("two", "Curie")]
    batches = desk.watch().unread()
    next(batches)
    batches.close()
    assert desk.unread() == set(ids)

    assert shown(desk.watch()) == ids


def test_one_by_one_marks_each_before_the_next(desk: Desk) -> None:
    """A command that takes long holds back the receipt of its own signal alone."""
    first, second = desk.say("one", "Curie"), desk.say("two", "Curie")
    batches = desk.watch(one_by_one=True).unread()
    next(batches)
    assert desk.unread() == {first, second}
    next(batches)

    assert desk.unread() == {second}


def test_what_is_left_stays_unread_and_is_not_shown_again_in_this_watch(desk: Desk) -> None:
    """A later watch tries once more; others of the batch are read."""
    left, read = desk.say("one", "Curie"), desk.say("two", "Curie")
    seen = desk.watch()
    for batch in seen.unread():
        seen.leave(batch, left)
    assert desk.unread() == {left}
    third = desk.say("three", "Curie")
    assert shown(seen) == [third]

    assert shown(desk.watch()) == [left]
    assert read not in desk.unread()


def test_receipts_that_can_not_be_recorded_are_told_of_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: nothing is shown twice by this watch, and it says so when it works again."""
    seen = desk.watch()
    ids: list[str] = []
    for number in ("one", "two"):
        ids.append(desk.say(number, "Curie"))
        with monkeypatch.context() as patch:
            at(patch, "write", "*/wal/*", full)
            assert shown(seen) == ids[-1:]
    assert len(desk.told) == 1
    assert "No space left on device" in desk.told[0]
    assert desk.unread() == set(ids)
    third = desk.say("three", "Curie")

    assert shown(seen) == [third]
    assert desk.told[1:] == ["Displayed signals are marked as delivered again."]
    assert third not in desk.unread()


def test_a_log_that_can_not_be_read_is_tried_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told once, also when it fails again, and once when it is over."""

    def broken() -> None:
        raise StoreError("It is broken.")

    seen = desk.watch(again_seconds=0.01)
    with monkeypatch.context() as patch:
        patch.setattr(desk.watcher, "db", broken)
        for _ in range(2):
            assert shown(seen) == []
            assert seen.wait(LONG)
    said = desk.say("one", "Curie")

    assert shown(seen) == [said]
    assert ["It is broken" in told for told in desk.told] == [True, False]
    assert desk.told[1] == "The log is readable again."


def test_an_agent_that_names_another_only_looks_on(desk: Desk) -> None:
    """Nobody marks another's mail: each is shown once by this watch, and stays unread."""
    signal_id = desk.say("for Curie", "Curie")
    seen = desk.watch("Curie", by=desk.planck)
    assert seen.of.peek is not None
    assert "Nothing is marked" in seen.of.peek
    assert shown(seen) == [signal_id]
    assert shown(seen) == []
    assert desk.unread() == {signal_id}
    assert watching.steps({"signal_id": signal_id, "requires_ack": True}, seen.of) == [
        f"gitmem thread {signal_id}"
    ]

    assert shown(desk.watch("Curie")) == [signal_id]


def test_an_agent_that_watches_as_another_only_looks_on(desk: Desk) -> None:
    """With `--as` it acts as the other, and still marks nothing; without a session of its own it does."""
    for as_ in ["Curie", annas("codex:builder:host")]:
        signal_id = desk.say("for Curie", "Curie")
        of = watching.watch_owner(desk.watcher, CallerClaims(as_=as_, session=desk.planck.session_id))
        seen = Watch(desk.watcher, of, desk.stop, events=False)
        desk.opened.append(seen)
        assert of.peek is not None and "Nothing is marked" in of.peek
        assert shown(seen) == [signal_id] and shown(seen) == []
        assert desk.unread() == {signal_id}

        own = Watch(
            desk.watcher, watching.watch_owner(desk.watcher, CallerClaims(as_=as_)), desk.stop, events=False
        )
        desk.opened.append(own)
        assert own.of.peek is None
        assert shown(own) == [signal_id] and shown(own) == []
        assert desk.unread() == set()


def test_an_agent_that_names_itself_is_itself(desk: Desk) -> None:
    """By its session, its identity or its name."""
    names = {"session": desk.curie.session_id, "identity": desk.curie.reader, "name": "Curie"}
    for name in ["session", "identity", "name"]:
        signal_id = desk.say("for Curie", "Curie")
        seen = desk.watch(str(names[name]), by=desk.curie)

        assert seen.of.peek is None
        assert shown(seen) == [signal_id]
        assert desk.unread() == set()


def test_nobody_in_particular_can_not_be_watched(desk: Desk) -> None:
    """A name that is nobody's, and a session that has ended: nothing is shown, and it says why."""
    with pytest.raises(UsageError) as unknown:
        watching.watch_owner(desk.watcher, CallerClaims(terminal=True, as_="Nobody"))
    assert unknown.value.code == "unknown-session"
    assert unknown.value.message.startswith("--as: unknown session, identity or name: Nobody")
    lifecycle.end(desk.writer, desk.curie)
    with pytest.raises(UsageError) as ended:
        watching.watch_owner(desk.watcher, CallerClaims(terminal=True, as_=str(desk.curie.session_id)))
    assert ended.value.code == "ended-session"


def test_the_end_of_its_session_is_the_end_of_a_watch(desk: Desk) -> None:
    """After what came before it was shown."""
    seen = desk.watch()
    last = desk.say("last", "Curie")
    assert not seen.ended
    lifecycle.end(desk.writer, desk.curie)

    assert shown(seen) == [last]
    assert seen.ended


def test_a_session_that_gets_an_identity_is_watched_as_that(desk: Desk) -> None:
    """Mail to either is shown, and marked for the new reader."""
    gauss = desk.start("Gauss")
    seen = desk.watch("Gauss")
    assert shown(seen) == []
    lifecycle.change(desk.writer, gauss, agent_identity=annas("a:b:gauss"), name="Weber")
    gauss = acting(desk.writer, str(gauss.session_id))
    ids = [desk.say("one", str(gauss.session_id)), desk.say("two", annas("a:b:gauss"))]

    assert shown(seen) == ids
    assert (seen.of.reader, seen.of.name) == (annas("a:b:gauss"), "Weber")
    assert inbox.count(desk.writer, gauss).unread == 0


def test_a_day_of_watching_does_not_write_a_line_for_each_signal(desk: Desk) -> None:
    """The sign of life that keeps a name is written when the last one is old, not by the watch's own memory."""
    seen = desk.watch()
    desk.clock.forward(25 * 3600 * 1_000_000)
    for number in range(3):
        desk.say(f"hello {number}", str(desk.curie.session_id))
        shown(seen)
    found = presence.get(desk.writer, str(desk.curie.session_id))

    (count,) = desk.writer.db().execute(
        "SELECT count(*) FROM entity_line WHERE kind = 'session' AND id = ?", (desk.curie.session_id,)
    ).fetchone()  # fmt: skip
    assert found is not None
    assert count == 2


@pytest.mark.usefixtures("commits")
def test_the_log_need_not_be_there_yet(tmp_path: Path) -> None:
    """A person who waits for the first word in a repository gets it."""
    clock, where = Clock(), new_repo(tmp_path / "empty")
    watcher, stop = open_store(where, clock), Stop()
    seen = Watch(watcher, watching.watch_owner(watcher, CallerClaims(terminal=True)), stop, events=False)
    assert shown(seen) == []
    assert not (where / ".git/refs/gitmem/log").exists()
    writer = open_store(where, clock)
    planck = acting(writer, lifecycle.start(writer, CallerClaims(), name="Planck"))
    first = str(send.send(writer, planck, "the first word").signal["signal_id"])

    assert seen.wait(LONG)
    assert shown(seen) == [first]
    assert shown(seen) == []
    (_, _, file), *_ = watcher.index.db.execute("PRAGMA database_list").fetchall()
    assert file, "what began in memory goes on in the file"
    seen.close()
    writer.close()
    watcher.close()


def test_git_may_pack_and_collect_meanwhile(desk: Desk) -> None:
    """The ref's file and folder go, and come again."""
    seen = desk.watch()
    assert shown(seen) == []
    for number in range(2):
        subprocess.run(["git", "pack-refs", "--all", "--prune"], cwd=desk.repo, check=True)
        subprocess.run(["git", "gc", "--quiet", "--prune=now"], cwd=desk.repo, check=True)
        said = desk.say(f"hello {number}", "Curie")
        assert seen.wait(LONG)
        assert shown(seen) == [said]


@pytest.mark.parametrize("with_wal", [False, True], ids=["the file", "all of it"])
def test_the_index_may_be_deleted_meanwhile(desk: Desk, with_wal: bool) -> None:
    """It is derived: nothing is lost, and nothing shown again."""
    seen = desk.watch()
    desk.say("one", "Curie")
    assert len(shown(seen)) == 1
    where = index_file.path(desk.writer.repo, "test")
    for suffix in ("", "-wal", "-shm") if with_wal else ("",):
        if os.path.exists(where + suffix):
            os.unlink(where + suffix)
    desk.writer.close()
    desk.writer = open_store(desk.repo, desk.clock)

    two = desk.say("two", "Curie")

    assert shown(seen) == [two]
    assert desk.unread() == set()
    assert shown(desk.watch()) == []


def test_the_end_of_the_repository_is_the_end_of_a_watch(desk: Desk) -> None:
    """There is nothing to wait for."""
    seen = desk.watch()
    shutil.rmtree(desk.repo / ".git")

    with pytest.raises(StoreError) as gone:
        shown(seen)

    assert gone.value.code == "gone"


def test_a_write_ahead_log_that_appears_later_is_read(desk: Desk, tmp_path: Path) -> None:
    """An agent in a sandbox leaves its first line in a folder that was not there when the watch began."""
    seen = desk.watch()
    folder = tmp_path / "elsewhere"
    seen.store.log.read_also([str(folder)])
    before = seen._waker.stamp()
    folder.mkdir(mode=0o700)
    Owner(seen.store.repo).mark(str(folder))
    (folder / f"{1:017d}.wal1").write_text("no line")

    assert seen._waker.stamp() != before
    assert [wal.folder for wal in seen.store.log.others] == [str(folder)]


def test_somebody_elses_turn_is_waited_for_and_then_not(desk: Desk) -> None:
    """An inbox that shows them now is let finish; one that hangs keeps nobody from being shown anything."""
    said = desk.say("one", "Curie")
    seen = desk.watch(lock_seconds=0.05)
    with delivery.delivery_lock(desk.writer, desk.curie.reader) as mine:
        assert mine
        assert shown(seen) == [said]


def test_the_library_gives_batches_until_it_is_stopped(desk: Desk) -> None:
    """As an iterator: what it gave is read when the next batch is asked for."""
    one = desk.say("one", "Curie")
    log = Log(desk.watcher, CallerClaims(as_="Curie"))
    batches = log.watch(stop=desk.stop, events=False)
    assert [fields["signal_id"] for fields in next(batches).signals] == [one]
    assert desk.unread() == {one}
    two = desk.say("two", "Curie")
    assert [fields["signal_id"] for fields in next(batches).signals] == [two]
    assert desk.unread() == {two}
    desk.stop.now = True

    assert list(batches) == []


class Events:
    """Stands for the events of the system: gives what a test put there, or fails."""

    made: list[Events] = []
    fails = ""
    tried = 0

    def __init__(self, paths: list[str], *rest: object) -> None:
        Events.tried += 1
        if Events.fails == "begin":
            raise OSError("no more watches")
        self.paths = paths
        self.closed = False
        self.answers: list[object] = []
        Events.made.append(self)

    def watch(self, debounce: int, step: int, timeout: int, stop: object) -> object:
        if Events.fails == "wait":
            raise RuntimeError("the watcher died")
        return self.answers.pop(0) if self.answers else "timeout"

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> type[Events]:
    import watchfiles._rust_notify

    monkeypatch.setattr(watchfiles._rust_notify, "RustNotify", Events)
    monkeypatch.setattr(Events, "made", [])
    monkeypatch.setattr(Events, "fails", "")
    monkeypatch.setattr(Events, "tried", 0)
    return Events


@pytest.mark.usefixtures("commits")
def test_events_are_asked_for_where_something_may_come(desk: Desk, events: type[Events]) -> None:
    """In the folders of the ref, of the packed refs and of the write-ahead log, those that are there."""
    waker = ChangeWatcher(desk.watcher, desk.stop, poll_seconds=0.001)
    seen = waker.stamp()

    assert not waker.wait(seen, 0.01)

    (watcher,) = events.made
    common = desk.watcher.repo.common
    assert set(watcher.paths) >= {common, f"{common}/refs/gitmem"}
    waker.close()
    assert watcher.closed


def test_a_change_is_seen_without_any_event(desk: Desk, events: type[Events]) -> None:
    """As on a network file system, where events of other machines never come."""
    waker = ChangeWatcher(desk.watcher, desk.stop, poll_seconds=0.001)
    seen = waker.stamp()
    desk.say("hello", "Curie")

    assert waker.wait(seen, LONG)
    assert not any(watcher.answers for watcher in events.made)


@pytest.mark.parametrize("fails", ["begin", "wait"])
def test_where_events_can_not_be_had_files_are_looked_at(
    desk: Desk, events: type[Events], monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """And events are asked for again only later."""
    monkeypatch.setattr(events, "fails", fails)
    waker = ChangeWatcher(desk.watcher, desk.stop, poll_seconds=0.001)
    seen = waker.stamp()

    assert not waker.wait(seen, 0.05)
    assert events.tried == 1
    desk.say("hello", "Curie")
    assert waker.wait(seen, LONG)


def test_a_folder_that_was_made_anew_is_watched_anew(desk: Desk, events: type[Events]) -> None:
    """Events of the old one would never come."""
    waker = ChangeWatcher(desk.watcher, desk.stop, poll_seconds=0.001)
    assert not waker.wait(waker.stamp(), 0.01)
    subprocess.run(["git", "pack-refs", "--all", "--prune"], cwd=desk.repo, check=True)
    folder = Path(desk.watcher.repo.common, "refs/gitmem")
    if folder.exists():
        folder.rename(folder.with_name("old"))
    folder.mkdir()

    assert not waker.wait(waker.stamp(), 0.01)

    assert [watcher.closed for watcher in events.made] == [True, False]


def test_an_interrupt_that_came_while_it_waited_is_one(desk: Desk, events: type[Events]) -> None:
    """The waiting is in a program of another language, which says only that there was a signal."""
    waker = ChangeWatcher(desk.watcher, desk.stop, poll_seconds=0.001)
    waker.wait(waker.stamp(), 0.01)
    events.made[0].answers.append("signal")

    with pytest.raises(KeyboardInterrupt):
        waker.wait(waker.stamp(), LONG)


def test_a_stop_ends_a_wait(desk: Desk, events: type[Events]) -> None:
    """At once, however long it would have been."""
    waker = ChangeWatcher(desk.watcher, desk.stop, poll_seconds=0.001)
    desk.stop.now = True

    assert not waker.wait(waker.stamp(), 3600.0)


@pytest.mark.usefixtures("commits")
def test_two_changes_at_one_moment_are_two(desk: Desk) -> None:
    """The stamp is made of what the files hold, not of their times."""
    common = Path(desk.watcher.repo.common)
    waker = ChangeWatcher(desk.watcher, desk.stop, poll_seconds=0.001)
    found = set()
    for number in range(3):
        desk.say(f"hello {number}", "Curie")
        os.utime(common / "refs/gitmem/log", (1, 1))
        found.add(repr(waker.stamp()))

    assert len(found) == 3


def test_two_entries_at_one_moment_are_two(desk: Desk) -> None:
    """Nor is the time of a folder."""
    folder = Path(desk.watcher.repo.state, "wal")
    folder.mkdir(exist_ok=True)
    waker = ChangeWatcher(desk.watcher, desk.stop, poll_seconds=0.001)
    found = set()
    for number in range(3):
        with (folder / f"{1:017d}.deferred1").open("a") as file:
            file.write(f"no line {number}")
        os.utime(file.name, (1, 1))
        os.utime(folder, (1, 1))
        found.add(repr(waker.stamp()))

    assert len(found) == 3
