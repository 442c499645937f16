"""A hook that slows is torn out: where there is nothing new the script starts nothing, reads nothing and waits for nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.clients import client_scope, events

from ..hook_agents import SHELL, Agent, note_program, program
from .conftest import Desk

ID = "0b1c2d3e"
SHELLS = [shell for shell in (("dash",), ("bash",), ("busybox", "sh")) if shutil.which(shell[0])] or [("sh",)]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A repository, as far as a script is concerned, that every user may look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name in ("objects", "refs", "gitmem/flags", "gitmem/beats", "gitmem/wal"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git" / "gitmem" / "autosync").mkdir()
    (folder / ".git" / "gitmem" / "autosync").chmod(0o777)
    in_an_hour(folder)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for client in events.EVENTS:
        (folder / f"{client}.sh").write_text(client_scope.script_text(client))
    yield folder
    shutil.rmtree(folder)


def in_an_hour(folder: Path, hours: int = 1) -> None:
    """When the next automatic sync is due."""
    path = folder / ".git" / "gitmem" / "autosync" / "next"
    path.touch()
    at = time.time() + 3600 * hours
    os.utime(path, (at, at))


def alone() -> None:
    """For `preexec_fn`: this process is of a user of its own, who may not have another one."""
    import resource

    user = 1_000_000 + os.getpid()
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    os.setgid(user)
    os.setuid(user)


def run(
    folder: Path, client: str, event: str, shell: tuple[str, ...], **options: object
) -> tuple[int, bytes, bytes]:
    variable = events.SESSION_VARIABLES.get(client)
    done = subprocess.run(
        [shutil.which(shell[0]) or shell[0], *shell[1:], str(folder / f"{client}.sh"), event],
        cwd=folder, env={"PATH": "/nowhere", **({variable: ID} if variable else {})},
        capture_output=True, timeout=30, **options,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


QUIET = [
    (client, event)
    for client in events.EVENTS
    for kind in (events.TOOL, events.STOP)
    for event in events.names(client, kind)
]


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="another user without processes")
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(("client", "event"), QUIET)
def test_with_nothing_new_there_is_no_other_process(
    open_folder: Path, client: str, event: str, shell: tuple[str, ...]
) -> None:
    """Run as a user who may not have another process, without a program on the PATH: it makes none, it needs none."""
    assert run(open_folder, client, event, shell, preexec_fn=alone, input=b"{}") == (0, b"", b"")


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="another user without processes")
@pytest.mark.parametrize(
    ("event", "shell"),
    [
        (event, shell)
        for event in ("Stop", "PostToolUse", "UserPromptSubmit", "SessionStart")
        for shell in SHELLS
        if event == "Stop" or shell != ("bash",)  # that one tries for 15 seconds
    ],
)
def test_a_system_without_room_for_a_process_is_silence_too(
    open_folder: Path, event: str, shell: tuple[str, ...]
) -> None:
    """A shell that can't fork ends with 2, by which Claude Code stops a tool, a prompt, or the end of a turn."""
    in_an_hour(open_folder, -1)  # a sync is due, too
    assert run(open_folder, "claude-code", event, shell, preexec_fn=alone, input=b"{}") == (0, b"", b"")


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="another user without processes")
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_counting_tool_calls_needs_no_other_process(open_folder: Path, shell: tuple[str, ...]) -> None:
    """Nor is any input read; the user of this clone has asked for it."""
    state = open_folder / ".git" / "gitmem"
    (state / "checkpoint-every").write_text("30\n")
    (state / "tool-calls").mkdir()
    (state / "tool-calls").chmod(0o777)
    (state / "tool-calls" / ID).touch()
    (state / "tool-calls" / ID).chmod(0o666)
    with (state / "tool-calls" / ID).open("wb+") as file:
        for _ in range(3):
            done = run(open_folder, "claude-code", "PostToolUse", shell, preexec_fn=alone, stdin=file)
            assert done == (0, b"", b"")
        assert (file.read(), os.lseek(file.fileno(), 0, os.SEEK_CUR)) == (b"...", 3)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(("client", "event"), QUIET)
def test_with_nothing_new_no_input_is_read(
    open_folder: Path, client: str, event: str, shell: tuple[str, ...]
) -> None:
    """A tool's output may be a megabyte: not a byte of it is touched, and a client that never closes it is no wait."""
    file = open_folder / "input"
    file.write_bytes(b'{"tool_response":"' + b"x" * 1_000_000 + b'"}')
    with file.open("rb", buffering=0) as stdin:
        assert run(open_folder, client, event, shell, stdin=stdin) == (0, b"", b"")
        assert os.lseek(stdin.fileno(), 0, os.SEEK_CUR) == 0

    read, write = os.pipe()
    assert run(open_folder, client, event, shell, stdin=read) == (0, b"", b"")
    os.close(read)
    os.close(write)


def test_an_index_that_others_keep_busy_is_left_alone(desk: Desk, tmp_path: Path) -> None:
    """Somebody builds it for minutes: a tool call does not wait for that, and the news come with a later one."""
    from gitmem.index import index_file
    from gitmem.repo import find

    session, other = desk.start("Planck"), desk.start("Curie")
    note_program(desk.repo / ".git" / "gitmem", program(tmp_path))
    agent = Agent("codex", "c-1", desk.repo)
    assert agent.reads("SessionStart").startswith("You are ")
    (ours,) = {path.name for path in (desk.repo / ".git/gitmem/sessions").iterdir()} - {session, other}
    desk.send(session, "The parser drops tabs", "--to", ours)
    desk("inbox", session=session)  # the queue has been fed
    from cli.environment import machine

    (path,) = [index_file.path(find(str(desk.repo)), machine())]
    busy = index_file.connect(path)
    busy.execute("BEGIN EXCLUSIVE")
    busy.execute("UPDATE meta SET value = 'elsewhere' WHERE key = 'tip'")
    busy.execute("COMMIT")
    busy.execute("BEGIN IMMEDIATE")
    try:
        assert agent.call("PostToolUse").is_silent
    finally:
        busy.execute("ROLLBACK")
        busy.close()

    assert "| The parser drops tabs" in agent.reads("PostToolUse")


def test_what_takes_too_long_is_given_up_and_asked_for_once_a_turn(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client stops reading at some time; what it did not read stays unread, and no tool call pays again."""
    (desk.repo / ".git/gitmem").mkdir(exist_ok=True)
    session = desk.start("Planck")
    agent = Agent("codex", "c-1", desk.repo)
    wrapper = tmp_path / "slow"
    wrapper.write_text(
        f"#!{sys.executable}\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\n"
        "import signal, time\nfrom cli import main\nfrom gitmem.clients import hook_state as looking\n"
        "looking.update_index = lambda store, busy: (signal.setitimer(signal.ITIMER_REAL, 0.01), time.sleep(60))\n"
        "sys.exit(main.main())\n"
    )
    wrapper.chmod(0o755)
    state = desk.repo / ".git" / "gitmem"
    note_program(state, program(tmp_path))
    agent.call("SessionStart")
    (ours,) = {path.name for path in (state / "sessions").iterdir()} - {session}
    desk.send(session, "The parser drops tabs", "--to", ours)
    note_program(state, wrapper)

    assert agent.call("PostToolUse").is_silent
    assert "timed out after 6 s" in (state / "hook-error").read_text()
    note_program(state, program(tmp_path))
    assert agent.call("PostToolUse").is_silent  # it does not even ask
    assert "| The parser drops tabs" in agent.reads("UserPromptSubmit")
    assert not (state / "hook-stuck").exists()


def test_the_front_door_takes_a_hook_before_anything_else() -> None:
    """No command line is parsed, no typer and no pydantic is imported for it."""
    code = (
        "import sys; from cli import main; main.main(['hook', 'codex', 'Nonsense']);"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('typer', 'pydantic', 'click', 'rich')))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert done.stdout == "[]\n"


def test_the_shell_of_the_tests_is_there() -> None:
    assert shutil.which(SHELL)
