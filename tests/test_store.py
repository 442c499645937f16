"""The store: what is derived, what is waited for, and what a batch sees of itself."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitmem import records, views
from gitmem.agents import heartbeats, lifecycle, roster
from gitmem.agents.caller import CallerClaims
from gitmem.api import log
from gitmem.api.log import Log
from gitmem.errors import UsageError
from gitmem.index import index_file

from .git_on_path import GitOnPath
from .log.logs import entry
from .sandbox import Clock, acting, bodies, open_store, say


@contextmanager
def no_insertion() -> Iterator[None]:
    """Let a view fail."""

    def fails(*_: object) -> None:
        raise RuntimeError("a view with a bug")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gitmem.index.catch_up.insert_lines_of_files", fails)
        yield


@pytest.mark.usefixtures("commits")
def test_a_view_that_fails_does_not_undo_a_write(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is committed and the answer says so; the next look answers as if nothing had been."""
    store = open_store(repo, Clock())
    planck = acting(store, lifecycle.start(store, CallerClaims(identity="a:b:planck"), name="Planck"))
    before = store.git.tip("refs/gitmem/log")
    with no_insertion():
        say(store, planck)
        assert store.git.tip("refs/gitmem/log") != before
        with pytest.raises(RuntimeError):
            store.db()

    assert any(b"hello" in body for body in bodies(store))


@pytest.mark.usefixtures("commits")
def test_a_view_that_fails_does_not_undo_what_was_recorded(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receipt is recorded once it is on the disk."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(identity="a:b:planck"), name="Planck")
    rides = entry(store.log, "rides", deferred=True)
    with no_insertion():
        assert store.log.append(rides).commit is None

    assert [file.is_deferred for file in store.log.wal.files() if file.size] == [True]
    assert any(b"rides" in body for body in bodies(store))


def test_who_reads_while_a_write_fails_to_be_derived_goes_on_reading(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operation that has the index in its hand still has it after the write."""
    store = open_store(repo, Clock())
    planck = acting(store, lifecycle.start(store, CallerClaims(identity="a:b:planck"), name="Planck"))
    db = store.db()
    with no_insertion():
        say(store, planck)

    assert db.execute("SELECT count(*) FROM session").fetchone() == (1,)
    store.close()


@pytest.mark.usefixtures("commits")
def test_a_reader_spends_little_on_what_others_left(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ref that git holds is tried twice and no more, however often one looks; the answer has the line that waits."""
    store = open_store(repo, Clock())
    say(store, acting(store, lifecycle.start(store, CallerClaims(identity="a:b:planck"), name="Planck")))
    waiting = entry(store.log, "waits")
    store.log.append(waiting)
    tried: list[object] = []
    monkeypatch.setattr(store.git, "advance", lambda *args: tried.append(args))

    for _ in range(5):
        assert any(b"waits" in body for body in bodies(store))
    assert len(tried) == 2


def opened(repo: Path) -> Log:
    open_store(repo, Clock()).close()
    return log.open(str(repo), identity="a:b:planck", machine="test", commit_after=0)


def commits(log: Log) -> int:
    return len(log.store.git.history(log.store.git.tip("refs/gitmem/log") or ""))


def test_a_session_starts_acts_changes_and_ends_in_a_batch(repo: Path) -> None:
    """What was recorded in a batch counts in it: one commit has all, and the names are settled as ever."""
    with opened(repo) as log:
        other = log.sessions.start(name="Curie", agent_identity="a:b:curie")
        before = commits(log)
        with log.batch() as batch:
            log.who = CallerClaims(identity="a:b:planck", terminal=True)
            started = log.sessions.start(name="Planck")
            with pytest.raises(UsageError, match="planck is in use"):
                lifecycle.start(log.store, CallerClaims(identity="a:b:other"), name="planck")
            changed = lifecycle.change(log.store, log.caller, name="Max", wu="WU-1")
            assert (changed.display_name, changed.wu_id, changed.recorded) == ("Max", "WU-1", True)
            sent = log.signals.send("hello", to=["Curie"])
            again = log.signals.reply(sent.signal["signal_id"], "and more", to=["Curie"])
            assert {each["display_name"] for each in log.roster().sessions} == {"Max", "Curie"}
            ended = log.sessions.end()
            assert (started.commit, ended.display_name) == (None, "Max")
            assert commits(log) == before
        assert commits(log) == before + 1
        assert batch.commit
        log.who = CallerClaims(as_=other.session_id)
        assert [each["signal_id"] for each in log.inbox().signals] == [
            sent.signal["signal_id"], again.signal["signal_id"],
        ]  # fmt: skip
        statuses = {row["display_name"]: row["status"] for row in roster.roster(log.store, all=True).sessions}
        assert statuses == {"Max": "ended", "Curie": "live"}


def test_a_batch_that_comes_to_nothing_leaves_nothing(repo: Path) -> None:
    """Its session was never there: the caller is who it was before, and goes on."""
    with opened(repo) as log:
        mine = log.sessions.start(name="Curie")
        before = bodies(log.store)
        with pytest.raises(RuntimeError), log.batch():  # noqa: PT012  (what was done in it before is the point)
            log.sessions.end()
            log.who = CallerClaims(identity="a:b:planck", terminal=True)
            log.sessions.start(name="Planck")
            raise RuntimeError("no")

        assert bodies(log.store) == before
        assert log.caller.session_id == mine.session_id
        assert mine.session_id in heartbeats.all_last_seen(log.store), "it is still at work here"
        assert [row["status"] for row in roster.roster(log.store).sessions] == ["live"]
        assert log.sessions.start(name="Planck").display_name == "Planck"


def test_a_process_that_begins_a_log_leaves_an_index(repo: Path) -> None:
    """The folder for its file comes with the first write; from then on it is no index of this process alone."""
    store = open_store(repo, Clock())
    assert store.db() is not None  # looked at before there is anything

    lifecycle.start(store, CallerClaims(identity="a:b:planck"), name="Planck")

    assert store.index.writable
    assert list((repo / ".git" / "gitmem").glob("index-*.sqlite3"))


def test_git_is_asked_once_for_the_person_and_the_settings(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: object
) -> None:
    """Every write needs the one, most need the other; keys are in small letters, as git compares them."""
    git("config", "gitmem.checkpointEvery", "14", cwd=repo)  # type: ignore[operator]
    git("config", "gitmem.headline", "prompt", cwd=repo)  # type: ignore[operator]
    store = open_store(repo, Clock())
    program = GitOnPath(tmp_path, monkeypatch)

    assert store.person() == ("Test Person", "person@example.org")
    assert store.settings() == {
        "user.name": "Test Person", "user.email": "person@example.org", "gitmem.checkpointevery": "14",
        "gitmem.headline": "prompt",
    }  # fmt: skip
    assert store.committer() == ("Test Person", "person@example.org")
    assert len([args for _, args in program.started if args.endswith("--list")]) == 1


def test_the_shape_of_the_index_is_known_without_its_views() -> None:
    """A view that changes its tables or its version changes this number: `python tools/compile_shape.py` writes it."""
    assert index_file.in_memory(views.VIEWS, records.read).shape() == index_file.SHAPE


def test_an_index_in_memory_serves_other_threads_too(repo: Path) -> None:
    """As one in a file does: before its first record a clone has no folder for an index."""
    store = open_store(repo, Clock())
    store.db()

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: store.db().execute("SELECT count(*) FROM line").fetchone()).result()

    assert (found, store.index.writable) == ((0,), False)
    store.close()


def test_a_second_store_reads_git_as_the_first(repo: Path) -> None:
    """A sync of the library works through a second store, and reads the same trees again and again."""
    log = opened(repo)
    assert log.store.git.is_long_lived
    with log.store.second() as own:
        assert own.git.is_long_lived
