"""From a client's start to a wake: what hooks note, the committer does, and `roster` and `receipts` say."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem.agents import doors, waking

from ...clones import agree, git
from ...hook_agents import SHELL
from ...in_process import background_starts, gitmem
from ..conftest import Run
from .conftest import Hook

THREAD = "01a072a7-6d07-76a1-828b-300553a73a70"
COMMIT = ("background", "commit-waiting")


@pytest.fixture
def codex(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A running Codex, whose program notes what it is asked: the variables of its hooks."""
    folder = tmp_path / "codex-home"
    folder.mkdir()
    program = tmp_path / "programs" / "codex"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nshift 4\nprintf "%s\\n" "$@" >>"{folder}/asked"\n')
    program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    with subprocess.Popen(["sleep", "600"]) as client:
        yield {
            "GITMEM_CLIENT_PROCESS": str(client.pid), "CODEX_HOME": str(folder), "PATH": f"{program.parent}:{os.environ['PATH']}",
        }  # fmt: skip
        client.kill()


@pytest.fixture
def tell(run: Run) -> Callable[..., str]:
    """A signal from another session: its id."""
    peer = run("session", "start", "--name", "Curie", "--json").json["session_id"]
    return lambda text, to, *more: str(
        run("signal", text, "--to", to, *more, "--json", session=peer).json["signal"]["signal_id"]
    )


def asked(codex: dict[str, str]) -> list[str]:
    path = Path(codex["CODEX_HOME"], "asked")
    return path.read_text().splitlines() if path.exists() else []


def test_a_session_is_woken_shows_its_mail_and_says_so(
    hook: Hook, run: Run, codex: dict[str, str], tell: Callable[..., str]
) -> None:
    """Stored, woken, shown, answered: each is said when it is so, and not before."""
    session = hook.start("codex", THREAD, env=codex)
    (one,) = [each for each in run("roster", "--json").json["sessions"] if each["session_id"] == session]
    assert one["wakes"] == "yes, by `codex queue`"
    assert "wakes: yes, by `codex queue`" in run("roster").out
    signal = tell("quartz", session, "--requires-ack")
    (stage,) = run("receipts", signal, "--json").json["stages"]
    assert (stage["woken_at"], stage["shown_at"], stage["answered"]) == (None, None, None)

    assert run(*COMMIT, GITMEM_COMMIT_AFTER="0").status == 0
    (line,) = asked(codex)
    assert signal in line and "quartz" not in line
    (stage,) = run("receipts", "--json").json["stages"]
    assert stage["signal_id"] == signal and stage["woken_at"] and not stage["shown_at"]
    assert "· woken" in run("receipts", signal).out and "· not shown yet" in run("receipts", signal).out
    assert run(*COMMIT, GITMEM_COMMIT_AFTER="0").status == 0 and len(asked(codex)) == 1

    assert "quartz" in hook.reads("codex", "UserPromptSubmit", THREAD, prompt=line, env=codex)
    assert run("receipts", "--json").json["stages"] == []
    assert run("reply", signal, "yes", "--agree", session=session).status == 0
    (stage,) = run("receipts", signal, "--json").json["stages"]
    assert stage["shown_at"] and stage["answered"] == "acked"
    assert "· answered (acked)" in run("receipts", signal).out


def test_an_ended_session_is_not_woken(
    hook: Hook, run: Run, codex: dict[str, str], tell: Callable[..., str]
) -> None:
    """Nor is one of a client that was killed; `roster` says why."""
    session = hook.start("codex", THREAD, env=codex)
    os.kill(int(codex["GITMEM_CLIENT_PROCESS"]), 9)
    until = time.monotonic() + 5
    while doors.started(int(codex["GITMEM_CLIENT_PROCESS"])) and time.monotonic() < until:
        time.sleep(0.01)
    assert "wakes: no, its client does not run" in run("roster").out
    tell("quartz", session)
    run(*COMMIT, GITMEM_COMMIT_AFTER="0")
    hook("codex", "SessionEnd", THREAD, env=codex)

    assert (
        asked(codex) == []
        and doors.sessions(os.path.join(os.environ["XDG_STATE_HOME"], "gitmem", "doors")) == []
    )


def test_a_turn_that_goes_on_after_its_end_is_no_rest(
    hook: Hook, run: Run, codex: dict[str, str], tell: Callable[..., str]
) -> None:
    """Signals that a hook hands over at the end of a turn keep the agent at work."""
    session = hook.start("codex", THREAD, env=codex)
    process = int(codex["GITMEM_CLIENT_PROCESS"])
    waking.note_turn(str(hook.state), process, is_over=True)
    tell("quartz", session)
    assert "quartz" in hook.reads("codex", "Stop", THREAD, env=codex)
    tell("another", session)
    run(*COMMIT, GITMEM_COMMIT_AFTER="0")

    assert asked(codex) == [] and not waking.Turn(str(hook.state), process, 0).is_over(time.time_ns() // 1000)


@pytest.mark.parametrize("found", [".", "{repo}/bin", "/nowhere"])
def test_a_program_of_the_project_is_never_run(
    hook: Hook,
    run: Run,
    codex: dict[str, str],
    tell: Callable[..., str],
    found: str,
) -> None:
    """It may be on the PATH of the session."""
    for folder in (hook.repo / "bin", hook.repo):
        folder.mkdir(exist_ok=True)
        (folder / "codex").write_text(Path(codex["PATH"].split(":")[0], "codex").read_text())
        (folder / "codex").chmod(0o755)
    session = hook.start(
        "codex", THREAD, env={**codex, "PATH": f"{found.format(repo=hook.repo)}:/usr/bin:/bin"}
    )
    tell("quartz", session)
    run(*COMMIT, GITMEM_COMMIT_AFTER="0")

    assert asked(codex) == [] and "there is no codex on the PATH" in run("roster").out


@pytest.mark.parametrize("client", ["codex", "claude-code"])
def test_the_script_notes_the_turns_of_its_client(hook: Hook, tmp_path: Path, client: str) -> None:
    """The parent of the script is the client, as which this test acts."""
    from gitmem.clients import client_scope

    script = tmp_path / "hook.sh"
    script.write_text(client_scope.script_text(client))
    turns, beat = hook.state / "turns", hook.state / "beats" / THREAD
    env = {each: os.environ[each] for each in ("PATH", "XDG_STATE_HOME")} | {"CLAUDE_CODE_SESSION_ID": THREAD}
    has_id = client == "claude-code"

    def event(name: str) -> None:
        done = subprocess.run(
            [SHELL, str(script), name], cwd=hook.repo, env=env, input=b"{}", capture_output=True, timeout=30
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    event("Stop")
    assert not turns.exists()
    for folder in (turns, beat.parent):
        folder.mkdir(parents=True)
    turn, word = turns / str(os.getpid()), turns / f"{os.getpid()}.word"
    for name, noted in (
        ("PostToolUse", ""),
        ("Stop", "over\n"),
        ("PostToolUse", ""),
        ("Stop", "over\n"),
        ("UserPromptSubmit", ""),
    ):
        assert not word.exists()
        event(name)
        assert turn.read_text() == noted
    assert word.exists()
    for path in (turn, *([beat] if has_id else [])):
        os.utime(path, (1, 1))
    event("PostToolUse")  # the heartbeat of a session that is known says that its turn goes on
    assert (turn.stat().st_mtime == 1, has_id and beat.stat().st_mtime > 1) == (has_id, has_id)
    for path in (word, turn):
        path.unlink()
        path.symlink_to(hook.repo / "precious")
        event("UserPromptSubmit")
        path.unlink()
    assert not (hook.repo / "precious").exists()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The jobs that commands have started."""
    jobs = background_starts(monkeypatch)

    def take() -> list[str]:
        found = [args[-1] for args in jobs]
        jobs.clear()
        return found

    return take


@pytest.mark.parametrize("has_doors", [False, True])
def test_a_sync_that_brings_something_wakes(
    hook: Hook, tmp_path: Path, codex: dict[str, str], started: Callable[[], list[str]], has_doors: bool
) -> None:
    """If anybody here has a door; a sync that brings nothing starts no process."""
    git("init", "--quiet", "--bare", str(tmp_path / "hub"), cwd=tmp_path)
    git("remote", "add", "origin", str(tmp_path / "hub"), cwd=hook.repo)
    git("push", "--quiet", "origin", "HEAD:main", cwd=hook.repo)
    git("clone", "--quiet", str(tmp_path / "hub"), str(tmp_path / "other"), cwd=tmp_path)

    def gitmem_in(folder: Path, *args: str) -> None:
        done = gitmem(*args, cwd=folder, env={"GITMEM_COMMIT_AFTER": "0"})
        assert done.returncode == 0, done

    if has_doors:
        hook.start("codex", THREAD, env=codex)
    for folder in (hook.repo, tmp_path / "other"):
        from gitmem.repo import find

        agree(find(str(folder)))
    gitmem_in(hook.repo, "sync")
    gitmem_in(tmp_path / "other", "session", "start", "--name", "Curie")
    gitmem_in(tmp_path / "other", "sync")
    started()
    gitmem_in(hook.repo, "sync")
    assert started() == ["commit-waiting"] * has_doors
    gitmem_in(hook.repo, "sync")
    assert started() == []
