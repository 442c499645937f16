"""Autosync on the command line: which commands have it happen, what it costs them (nothing), and where its errors show."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli import background
from cli import syncing as front
from gitmem.sync import autosync

from ..clones import git
from ..in_process import background_starts
from .conftest import Run

pytestmark = pytest.mark.usefixtures("commits")

Started = list[list[str]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The processes that commands would have started."""
    return background_starts(monkeypatch)


@pytest.fixture
def hub(run: Run, repo: Path, tmp_path: Path) -> Path:
    """A remote of the repository, which has its branch."""
    path = tmp_path / "hub.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(path), cwd=tmp_path)
    git("remote", "add", "origin", str(path), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)
    return path


@pytest.fixture
def be(monkeypatch: pytest.MonkeyPatch, run: Run) -> Iterator[Callable[[], None]]:
    """Be the process that was started, in this one."""
    chdir = os.chdir
    monkeypatch.setattr(os, "chdir", lambda path: None if path == os.sep else chdir(path))
    monkeypatch.setattr(os, "setsid", lambda: None)

    def sync() -> None:
        said = run("background", "autosync")
        assert (said.status, said.out, said.err) == (0, "", "")

    yield sync
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def quiet(repo: Path) -> None:
    """As if nobody had asked for a sync in the last while."""
    for name in ("asked", "hurry"):
        (repo / ".git" / "gitmem" / "autosync" / name).unlink(missing_ok=True)


def in_an_hour(repo: Path) -> None:
    at = time.time() + 240
    os.utime(repo / ".git" / "gitmem" / "autosync" / "next", (at, at))


def test_setup_switches_it_on_and_off_and_gives_every_byte_back(run: Run, repo: Path, hub: Path) -> None:
    config = repo / ".git" / "config"
    run("setup")
    before = config.read_bytes()

    said = run("setup", "--autosync", "90", "--json").json
    assert (said["log"]["autosync"], said["changed"]) == ("90s", [str(config)])
    assert git("config", "gitmem.autosync", cwd=repo) == "90s\n"
    assert run("setup", "--json").json["log"]["autosync"] == "90s"
    assert "automatic sync interval: 90s" in run("setup", "--autosync", "90s").out
    assert run("setup", "--autosync", "off", "--json").json["log"]["autosync"] is None
    assert config.read_bytes() == before


def test_remove_takes_it_out_too(run: Run, repo: Path, hub: Path) -> None:
    config = repo / ".git" / "config"
    before = config.read_bytes()
    run("setup", "--autosync", "30s")

    run("remove")
    assert config.read_bytes() == before
    assert not (repo / ".git" / "gitmem" / "autosync" / "next").exists()


def test_what_is_no_interval_changes_nothing(run: Run, repo: Path) -> None:
    before = (repo / ".git" / "config").read_bytes()

    said = run("setup", "--autosync", "often", "--json")
    assert (said.status, said.json["error"]["code"]) == (2, "bad-autosync")
    assert (repo / ".git" / "config").read_bytes() == before
    assert not (repo / ".git" / "gitmem").exists()


def test_without_a_remote_it_says_when_it_begins(run: Run, started: Started, be: Callable[[], None]) -> None:
    said = run("setup", "--autosync", "30s")
    assert "Automatic syncs begin once there is a remote." in said.out

    be()
    assert run("roster", "--json").json["autosync"] is None


def test_every_command_that_writes_has_it_synced(
    run: Run, start: Callable[..., str], repo: Path, hub: Path, started: Started
) -> None:
    """Not only signals. Those that only look do not, and where it is off none does."""
    planck = start("Planck")
    run("signal", "Off", "--broadcast", session=planck)
    assert started == []
    run("setup", "--autosync", "30s")
    writes = (
        ["session", "start", "--name", "Curie"],
        ["signal", "Hello", "--broadcast"],
        ["session", "set", "--wu", "WU-1"],
        ["mem", "create", "Tabs are dropped", "--type", "discovery"],
        ["session", "note", "reading"],
    )
    for args in writes:
        quiet(repo)
        said = run(*args, session=planck)
        assert said.status == 0, said
        assert started == [["background", "autosync"]], args
        started.clear()
    for args in (["roster"], ["log"], ["doctor"], ["thread"], ["roster"]):
        quiet(repo)
        run(*args, session=planck)
        assert started == [], args


def test_nobody_is_told_to_do_what_happens_by_itself(
    run: Run, start: Callable[..., str], hub: Path, started: Started
) -> None:
    planck = start("Planck")
    run("sync", "--publish")
    assert "gitmem sync" in run("signal", "Hello", "--broadcast", "--json", session=planck).json["next"]

    run("setup", "--autosync", "30s")
    assert "gitmem sync" not in run("signal", "Again", "--broadcast", "--json", session=planck).json["next"]


def test_an_inbox_of_a_live_session_has_it_synced_when_it_is_due(
    run: Run, start: Callable[..., str], repo: Path, hub: Path, started: Started
) -> None:
    """With something to read, and with nothing, on the quickest way. An inbox that somebody else looks into does not."""
    planck, curie = start("Planck"), start("Curie")
    run("setup", "--autosync", "30s")
    run("signal", "Hello", "--to", "Planck", session=curie)
    for args in (["inbox"], ["inbox"], ["inbox", "--count"]):
        quiet(repo)
        started.clear()
        run(*args, session=planck)
        assert started == [["background", "autosync"]], args
    quiet(repo)
    started.clear()
    run("inbox", "--for", "Curie")
    assert started == []
    in_an_hour(repo)
    run("inbox", session=planck)
    assert started == []


@pytest.mark.parametrize(
    "args",
    [
        ["signal", "Shall we?", "--to", "Planck", "--intent", "propose"],
        ["signal", "Seen?", "--to", "Planck", "--requires-ack"],
        ["reply", "ROOT", "Yes", "--agree"],
        ["reply", "ROOT", "No", "--reject"],
        ["reply", "ROOT", "Rather so", "--counter"],
        ["signal", "As you like", "--reply-to", "ROOT", "--intent", "agree"],
    ],
    ids=" ".join,
)
def test_proposals_and_decisions_go_at_once(
    run: Run, start: Callable[..., str], repo: Path, hub: Path, started: Started, args: list[str]
) -> None:
    planck, curie = start("Planck"), start("Curie")
    root = run("signal", "Well?", "--to", "Curie", "--json", session=planck).json["signal"]["signal_id"]
    run("setup", "--autosync", "30s")
    in_an_hour(repo)

    assert run(*(root if each == "ROOT" else each for each in args), session=curie).status == 0
    assert started == [["background", "autosync"]]
    assert (repo / ".git" / "gitmem" / "autosync" / "hurry").exists()


def test_every_call_of_an_mcp_client_is_a_look(
    run: Run,
    start: Callable[..., str],
    repo: Path,
    hub: Path,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have no hooks that would see to it. Whoever waits for others to agree looks, too."""
    from cli.mcp.calls import McpSession

    planck = start("Planck")
    root = run("signal", "Shall we?", "--to", "Planck", "--json", session=start("Curie")).json["signal"]
    run("setup", "--autosync", "30s")
    desk = McpSession(None, planck)
    desk.do(lambda at: None)
    desk.close()
    assert started == [["background", "autosync"]]

    quiet(repo)
    assert run("converged", root["signal_id"], "--wait", "0s").status == 1
    assert len(started) == 2


def test_a_sync_by_hand_leaves_nothing_to_do(
    run: Run, start: Callable[..., str], repo: Path, hub: Path, started: Started
) -> None:
    """Neither the whole one, nor the one that finds nothing new."""
    planck = start("Planck")
    run("setup", "--publish", "yes", "--autosync", "30s")
    folder = repo / ".git" / "gitmem" / "autosync"
    run("signal", "Shall we?", "--broadcast", "--requires-ack", session=planck)
    for _ in range(3):
        (folder / "asked").touch()
        assert run("sync").status == 0
        assert sorted(path.name for path in folder.iterdir()) == ["lock", "look", "next"]
        assert (folder / "next").stat().st_mtime > time.time() + 5
        os.utime(folder / "next", (1, 1))


def test_worktrees_of_a_clone_share_one(
    run: Run, start: Callable[..., str], repo: Path, hub: Path, started: Started, tmp_path: Path
) -> None:
    planck = start("Planck")
    run("setup", "--autosync", "30s")
    git("worktree", "add", "--quiet", str(tmp_path / "linked"), cwd=repo)

    run("signal", "From here", "--broadcast", session=planck)
    run("signal", "From there", "--broadcast", session=planck, cwd=tmp_path / "linked")
    assert started == [["background", "autosync"]]


def test_nothing_that_goes_wrong_with_it_is_the_command_s(
    run: Run, start: Callable[..., str], hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planck = start("Planck")
    run("setup", "--autosync", "30s")

    def fail() -> None:
        raise RuntimeError("no process today")

    tried = background_starts(monkeypatch, fail)
    said = run("signal", "Hello", "--broadcast", "-q", session=planck)
    assert (said.status, said.err, tried) == (0, "", [["background", "autosync"]])


def test_its_last_error_shows_until_a_sync_is_good(
    run: Run,
    start: Callable[..., str],
    repo: Path,
    hub: Path,
    tmp_path: Path,
    started: Started,
    be: Callable[[], None],
) -> None:
    """In the roster, in doctor and in the next sync, with the command to run."""
    planck = start("Planck")
    run("sync")
    run("setup", "--publish", "yes", "--autosync", "30s")
    git("remote", "set-url", "origin", str(tmp_path / "gone.git"), cwd=repo)
    run("signal", "Hello", "--broadcast", "--requires-ack", session=planck)
    be()

    roster = run("roster", "--json").json
    assert (roster["autosync"]["code"], roster["autosync"]["times"]) == ("offline", 1)
    assert roster["next"][0] == "gitmem sync"
    said = run("roster").out
    assert "The last sync failed, just now: Cannot reach the remote " in said
    assert "next: gitmem sync\n" in said
    (finding,) = [each for each in run("doctor", "--json").json["findings"] if each["code"] == "sync-failed"]
    assert (finding["severity"], finding["command"]) == ("note", "gitmem sync")
    failed = run("sync", "--json")
    assert (failed.status, failed.json["autosync"]["times"]) == (5, 1)
    assert run("sync").out.count("Cannot reach the remote") == 1

    git("remote", "set-url", "origin", str(hub), cwd=repo)
    good = run("sync")
    assert good.status == 0
    assert "failed" not in good.out
    assert run("sync", "--json").json["autosync"] is None
    assert run("roster", "--json").json["autosync"] is None
    assert "sync-failed" not in run("doctor", "--json").out


@pytest.fixture
def hangs(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A remote that takes the connection and says nothing; the file has the process that hangs."""
    pid = tmp_path / "pid"
    program = tmp_path / "ssh"
    program.write_text(f'#!/bin/sh\necho $$ >"{pid}"\nexec sleep 600\n')
    program.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(program))
    git("remote", "set-url", "origin", "ssh://nobody@nowhere.invalid/hub.git", cwd=repo)
    return pid


@pytest.mark.deep
@pytest.mark.parametrize(("git_seconds", "limit", "code"), [(0.5, 300.0, "offline"), (300.0, 0.5, "timeout")])
def test_a_remote_that_hangs_is_cut_off(
    run: Run,
    start: Callable[..., str],
    hub: Path,
    hangs: Path,
    be: Callable[[], None],
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    git_seconds: float,
    limit: float,
    code: str,
) -> None:
    """Each run of git has its limit, and so has all of it together; what ran is gone then."""
    monkeypatch.setattr(front, "GIT_SECONDS", git_seconds)
    monkeypatch.setattr(front, "LIMIT_SECONDS", limit)
    planck = start("Planck")
    run("setup")
    run("setup", "--autosync", "30s")
    run("signal", "Hello", "--broadcast", "--requires-ack", session=planck)

    be()
    assert run("roster", "--json").json["autosync"]["code"] == code
    pid = int(hangs.read_text())
    until(
        lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]
    )


def test_for_real_a_signal_goes_to_the_remote_and_another_clone_gets_it(
    run: Run, start: Callable[..., str], repo: Path, hub: Path, tmp_path: Path
) -> None:
    """Nobody says sync: the sender signals, the other one looks into its inbox."""
    planck = start("Planck")
    run("setup", "--publish", "yes", "--autosync", "1s")
    other = tmp_path / "other"
    git("clone", "--quiet", str(hub), str(other), cwd=tmp_path)
    git("config", "user.email", "other@example.org", cwd=other)
    run("setup", "--publish", "yes", "--autosync", "1s", cwd=other)
    curie = run("session", "start", "--name", "Curie", "--json", cwd=other).json["session_id"]
    run("signal", "The parser drops tabs", "--broadcast", session=planck)

    until(lambda: "The parser drops tabs" in run("inbox", session=curie, cwd=other).out)
    for folder in (repo, other):
        run("setup", "--autosync", "off", cwd=folder)
        held = autosync.lock(front_place(folder))
        until(held.take)
        held.release()


def front_place(folder: Path) -> autosync.Repo:
    from gitmem.repo import find

    return find(str(folder))


def test_what_is_started_belongs_to_nobody_and_holds_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for the end of a pipe, or ends our process group, does not meet it."""
    said = tmp_path / "said"
    code = (
        "import os, sys, time\n"
        "ends = [os.readlink(f'/proc/self/fd/{each}') for each in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{each}')]\n"
        f"open({str(said)!r} + '-', 'w').write(f'{{os.getsid(0) == os.getpid()}} {{sorted(set(ends))}}')\n"
        f"os.rename({str(said)!r} + '-', {str(said)!r})\n"
    )
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\n{code}")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    read, write = os.pipe()
    os.set_inheritable(write, True)
    background.start([])
    os.close(write)

    assert os.read(read, 1) == b""  # the end, and so it does not hold the other one
    os.close(read)
    until(said.exists)
    assert said.read_text() == "True ['/dev/null']"
    first = background._started[-1]
    until(lambda: "Z" in Path(f"/proc/{first}/stat").read_text().split()[2])
    background.start([])
    assert first not in background._started  # no zombie is kept by who lives long


def until(what: Callable[[], object]) -> None:
    """Wait for a condition that will come true."""
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_relative_remote_that_is_away_keeps_its_consent(
    run: Run, hub: Path, repo: Path, tmp_path: Path
) -> None:
    """Such as a folder on a drive: the sync fails, and nobody has to agree again."""
    git("remote", "set-url", "origin", os.path.relpath(hub, repo), cwd=repo)
    assert run("setup", "--autosync", "30s").status == 0
    assert run("sync", "--publish").status == 0
    hub.rename(tmp_path / "away.git")
    assert run("sync").status == 5
    found = {each["code"] for each in run("doctor", "--json").json["findings"]}
    assert "sync-failed" in found and "autosync-only-fetches" not in found


def test_doctor_names_what_does_not_count(run: Run, repo: Path) -> None:
    """And how to correct it; what counts is not named."""
    with Path(repo, ".git", "config").open("a") as file:
        file.write("[gitmem]\n\tautosync = yes\n\tcommits = no\n\troles = maybe\n\tpager = true\n")

    found = [each for each in run("doctor", "--json").json["findings"] if each["code"] == "setting"]

    assert {each["where"]: each["command"] for each in found} == {
        "gitmem.autosync": "git config gitmem.autosync 30s",
        "gitmem.roles": "git config gitmem.roles warn",
        "gitmem.pager": "",
    }
