"""Lost: a signal that was accepted is shown, whoever dies on the way and whatever is deleted."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.agents import delivery, lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.index import index_file
from tests.clones import git
from tests.file_faults import at, die

from .conftest import Desk, powerless, process
from .faults import (
    ALL_STEPS,
    EACH_STEP,
    STEPS_MAX,
    SystemCall,
    age_locks,
    check_index,
    child,
    command,
    open_store,
)
from .readers import Reader

needs_bounds = pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)


def killed(act: Callable[[], object]) -> None:
    assert child(act).died


def test_killed_between_the_commit_and_the_queue(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal is in the log; the next command of anybody tells its reader."""
    reader = Reader(repo)
    with monkeypatch.context() as patch:
        at(patch, "mkdir", "*/queue/*", die)
        killed(lambda: reader.send("said before it died"))
    assert not reader.flag.exists()
    reader.look()
    assert reader.is_told() and reader.flag.exists()
    assert reader.drain() == ["said before it died"]


@pytest.mark.parametrize("folder", ["queue", "flags"])
def test_killed_while_the_queue_is_made(repo: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Before the event, and between it and its flag."""
    reader = Reader(repo)
    with monkeypatch.context() as patch:
        at(patch, "replace", f"*/{folder}/*", die)
        killed(lambda: reader.send("said before it died"))
    assert bool(reader.events) is (folder == "flags")
    assert not reader.flag.exists()
    reader.look()
    assert reader.is_told() and reader.flag.exists()


@EACH_STEP
def test_killed_at_each_step_of_a_send(repo: Path, stride: int) -> None:
    """Whatever came of it: after the next look just what is unread waits, and the flags say so."""
    reader = Reader(repo)
    for step in range(1, STEPS_MAX, stride):
        end = child(lambda step=step: reader.send(f"line {step}"), SystemCall(step, ALL_STEPS, kills=True))
        age_locks(repo)
        reader.look()
        assert reader.is_told(), f"killed at step {step}"
        if not end.died:
            break
        if step % 5 == 1:
            reader.drain()
    assert step > 20
    assert f"line {step}" in reader.drain()


@EACH_STEP
def test_killed_at_each_step_of_a_drain(repo: Path, stride: int) -> None:
    """It is shown again rather than never; what has a receipt is not shown again, and no flag is left for it."""
    reader = Reader(repo)
    for step in range(1, STEPS_MAX, stride):
        text = f"line {step}"
        reader.send(text)
        end = child(reader.drain, SystemCall(step, ALL_STEPS, kills=True))
        age_locks(repo)
        has_receipt = text in reader.receipts()
        again = reader.drain()
        assert text in reader.printed(), f"killed at step {step}"
        assert again == ([] if has_receipt else [text])
        assert reader.is_told() and not reader.flag.exists()
        if not end.died:
            break
    assert step > 8
    assert reader.receipts() == sorted(f"line {number}" for number in range(1, step + 1, stride))


def test_killed_between_the_print_and_the_receipt(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether it was seen, so it is shown again; and nobody else waits for the dead one's turn."""
    reader = Reader(repo)
    reader.send("seen, perhaps")
    with monkeypatch.context() as patch:
        at(patch, "write", "*/wal/*", die)
        killed(reader.drain)
    assert reader.printed() == ["seen, perhaps"]
    assert reader.is_told()
    store = open_store(repo)
    with delivery.delivery_lock(store, reader.caller(store).reader) as mine:
        assert mine
    assert reader.drain(store) == ["seen, perhaps"]
    assert reader.drain(store) == []


@pytest.mark.parametrize("what", ["index", "queue", "flags", "index and queue"])
def test_what_is_derived_can_be_deleted(repo: Path, what: str) -> None:
    """The next command makes it again; what was read stays read."""
    reader = Reader(repo)
    reader.send("read")
    assert reader.drain() == ["read"]
    reader.send("unread")
    if "index" in what:
        index_file.remove(next(str(path) for path in Path(reader.state).glob("index-*.sqlite3")))
    for name in ("queue", "flags"):
        if name in what:
            shutil.rmtree(os.path.join(reader.state, name))
    reader.look()
    assert reader.is_told() and len(reader.events) == 1
    assert reader.drain() == ["unread"]
    assert not reader.flag.exists()
    check_index(open_store(repo))


def test_a_signal_that_a_sync_brings_waits(tmp_path: Path, repo: Path) -> None:
    """By the network from another clone, in the library and by the command."""
    from gitmem.sync import sync_remotes

    hub = tmp_path / "hub.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(hub), cwd=tmp_path)
    git("remote", "add", "origin", str(hub), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)
    git("clone", "--quiet", str(hub), "there", cwd=tmp_path)
    reader = Reader(repo)
    here, there = open_store(repo), open_store(tmp_path / "there")
    away = lifecycle.start(there, CallerClaims(), name="Noether")
    for store in (here, there):
        sync_remotes.sync(store, publish=True)
    reader.planck = away.session_id
    reader.send("from afar", there)
    sync_remotes.sync(there)
    assert not reader.flag.exists()
    sync_remotes.sync(here)

    assert reader.is_told() and reader.flag.exists()
    assert reader.drain() == ["from afar"]


@needs_bounds
def test_a_signal_from_a_sandbox_waits_once_it_is_committed(desk: Desk) -> None:
    """Recorded elsewhere where the git folder can't be written; whoever may write commits it, and tells its reader."""
    reader = Reader(desk.repo)
    folders = [desk.repo / ".git", *(path for path in (desk.repo / ".git").rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    try:
        said = process(
            "signal", "from the sandbox", "--to", "Curie", "--json",
            cwd=desk.repo, env={"GITMEM_SESSION": reader.planck}, before=powerless,
        )  # fmt: skip
        assert (said.status, said.json["recorded"]) == (0, True), said
        seen = process("inbox", "--json", "--no-mark", cwd=desk.repo, env={"GITMEM_SESSION": reader.session},
                       before=powerless)  # fmt: skip
        assert "from the sandbox" in seen.out
        assert not reader.flag.exists()
    finally:
        for path in folders:
            path.chmod(0o700)
    assert desk("roster").status == 0
    assert reader.is_told() and reader.flag.exists()
    assert "from the sandbox" in desk("inbox", session=reader.session).out
    assert not reader.flag.exists()


@needs_bounds
def test_where_nothing_can_be_written_mail_is_read_all_the_same(desk: Desk) -> None:
    """No queue, no turn, no error: the receipt waits outside, and the signal is not shown twice."""
    reader = Reader(desk.repo)
    reader.send("hello")
    folders = [desk.repo / ".git", *(path for path in (desk.repo / ".git").rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    try:
        seen = [
            process(
                "inbox", "--json", cwd=desk.repo, env={"GITMEM_SESSION": reader.session}, before=powerless
            )
            for _ in range(2)
        ]
    finally:
        for path in folders:
            path.chmod(0o700)
    assert ["hello" in each.out for each in seen] == [True, False]
    assert "hello" not in desk("inbox", session=reader.session).out
    assert not reader.flag.exists()


def test_an_event_that_comes_between_the_flag_and_the_list_has_its_flag(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who tidies takes the flag away first, and looks only then at what is left."""
    reader = Reader(repo)
    reader.send("first")
    store = open_store(repo)
    came: list[str] = []

    def comes() -> None:
        if not came:
            came.append(child(lambda: reader.send("second")).answer)

    with monkeypatch.context() as patch:
        at(patch, "unlink", "*/flags/*", comes, after=True)
        assert reader.drain(store) == ["first"]
    assert came and reader.events == set(came)
    assert reader.is_told()
    assert reader.drain() == ["second"]


def test_an_event_that_comes_after_the_list_keeps_its_flag(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flag that its writer sets is not taken away by who tidies."""
    reader = Reader(repo)
    reader.send("first")
    store = open_store(repo)
    lists: list[str] = []

    def comes() -> None:
        if len(lists) == 2:  # the list that counts was made
            child(lambda: reader.send("second"))

    with monkeypatch.context() as patch:
        lists = at(patch, "listdir", f"*/queue/{reader.session}", comes, after=True)
        assert reader.drain(store) == ["first"]
    assert len(lists) == 2
    assert reader.is_told() and reader.flag.exists()


def test_a_turn_that_somebody_holds_for_ever_loses_nothing(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook says nothing and the flag stays; who was asked goes on without after a while."""
    reader = Reader(repo)
    reader.send("hello")
    store = open_store(repo)
    skipped, monotonic, sleep = [0.0], time.monotonic, time.sleep

    def skip(seconds: float) -> None:
        sleep(seconds)  # another process may hold another lock for a moment
        skipped.append(10 * seconds)

    monkeypatch.setattr(time, "sleep", skip)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(skipped))
    with delivery.delivery_lock(store, reader.caller(store).reader) as mine:
        assert mine
        assert reader.drain() == [] and reader.is_told() and reader.flag.exists()
        said = child(command(repo, "inbox", session=reader.session)).answer
        assert said["status"] == 0 and "hello" in said["out"]
    assert reader.drain() == [] and not reader.flag.exists()
