"""A hook that crashes is nobody's business but ours: exit 0, not a word, and a note for whoever looks after it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.agents import delivery
from gitmem.clients import client_scope, events, hook_state
from gitmem.signals import inbox, message_frame

from .. import templates
from ..file_faults import at, full
from ..hook_agents import ROOT, SHELL, Agent, note_program, program, said
from .conftest import Desk, Said, persons_desk


class Told:
    """A session of Codex in a desk's repository that somebody has signalled."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.state = desk.repo / ".git" / "gitmem"
        self.peer = desk.start("Planck")
        self.hook("SessionStart")
        (self.ours,) = {path.name for path in (self.state / "sessions").iterdir()} - {self.peer}
        desk.send(self.peer, "The parser drops tabs", "--to", self.ours)

    def hook(self, event: str, *, client: str = "codex", raw: bytes | None = None, **more: object) -> Said:
        data = json.dumps(said(client, event, "c-1", self.desk.repo, **more)).encode() if raw is None else raw
        return self.desk("hook", client, event, stdin=data)

    @property
    def error(self) -> str:
        path = self.state / "hook-error"
        return path.read_text() if path.exists() else ""

    def is_silent(self, said: Said) -> bool:
        return (said.status, said.raw, said.err) == (0, b"", "")


@pytest.fixture
def told(desk: Desk) -> Told:
    found = templates.copy("told", desk.repo.parent, lambda root: Told(persons_desk(root / "repo")))
    found.desk, found.state = desk, desk.repo / ".git" / "gitmem"
    return found


RAISED = [
    RuntimeError("what nobody thought of"), OSError(28, "No space left on device"), MemoryError(), RecursionError(),
    KeyError("id"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), AssertionError(),
]  # fmt: skip


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_every_exception_is_silence_and_a_note(
    told: Told, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Wherever it comes from: the signal stays unread, and the next hook hands it over."""

    def fail(*args: object, **values: object) -> None:
        raise error

    for owner, name in (
        (hook_state, "catch_up"),
        (delivery, "delivery_lock"),
        (inbox, "read"),
        (message_frame, "injection"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, fail)
            assert told.is_silent(told.hook("PostToolUse"))
        at, _, sentence = told.error.partition(" codex PostToolUse: ")
        assert at.endswith("Z") and sentence.strip()
        (told.state / "hook-error").unlink()

    assert "| The parser drops tabs" in told.hook("PostToolUse").out


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr)
def test_being_stopped_is_silence_too(
    told: Told, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail() -> None:
        raise error

    tried = at(monkeypatch, "open", "*/deliver/*", fail)

    assert told.is_silent(told.hook("PostToolUse")) and tried


@pytest.mark.parametrize("client", events.EVENTS)
def test_garbage_is_silence(told: Told, client: str) -> None:
    """Every event of every client: nothing is started, read or ended for it."""
    sessions = sorted(path.name for path in (told.state / "sessions").iterdir())

    for event in events.EVENTS[client]:
        for raw in (
            b"",
            b"{",
            b"\xff\xfe\xfd",
            b"null",
            b'{"session_id":{}}',
            b'{"session_id":"c-1","agent_id":"a"}',
        ):
            assert told.is_silent(told.hook(event, client=client, raw=raw))

    assert sorted(path.name for path in (told.state / "sessions").iterdir()) == sessions
    assert "| The parser drops tabs" in told.hook("PostToolUse").out


@pytest.mark.parametrize("words", [(), ("codex",), ("codex", ""), ("nobody", "PostToolUse"), ("codex", "NoSuchEvent"),
                                   ("codex", "Wake"), ("--help",), ("codex", "PostToolUse", "more"), ("\udcff", "x")])  # fmt: skip
def test_what_nobody_asks_for_is_silence(desk: Desk, words: tuple[str, ...]) -> None:
    """A script of another version, a hand-written line: exit 2 would stop the agent's tools."""
    answered = desk("hook", *words)

    assert (answered.status, answered.raw) == (0, b"")


@pytest.mark.parametrize("kind", ["garbage", "cut", "empty", "a folder", "gone"])
def test_a_damaged_index_costs_no_signal(told: Told, kind: str) -> None:
    """It is derived: the hook builds it anew, or does without, and hands over what waits."""
    (index,) = told.state.glob("index-*.sqlite3")
    for path in told.state.glob("index-*.sqlite3-*"):
        path.unlink()
    if kind == "garbage":
        index.write_bytes(b"not a database at all" * 500)
    elif kind == "cut":
        index.write_bytes(index.read_bytes()[:5000])
    elif kind == "empty":
        index.write_bytes(b"")
    else:
        index.unlink()
        if kind == "a folder":
            index.mkdir()

    assert "The parser drops tabs" in told.hook("PostToolUse").out
    assert told.is_silent(told.hook("PostToolUse"))


def test_a_log_that_cannot_be_read_is_silence(told: Told) -> None:
    """A ref that is at nothing, objects that are gone."""
    import shutil

    for path in told.state.glob("index-*"):
        path.unlink()
    shutil.rmtree(told.desk.repo / ".git" / "objects")
    (told.desk.repo / ".git" / "objects").mkdir()

    assert told.is_silent(told.hook("PostToolUse"))
    assert told.is_silent(told.hook("SessionStart"))
    assert told.error


@pytest.mark.parametrize("why", ["the client is gone", "its time is over"])
def test_an_answer_that_comes_too_late_is_not_given(
    told: Told, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The client reads no more: what it would not see stays unread."""
    parent = os.getppid()

    with monkeypatch.context() as patch:

        def slow() -> None:
            if why == "the client is gone":
                patch.setattr(os, "getppid", lambda: parent + 1)
            else:
                patch.setattr(time, "monotonic", lambda: time.perf_counter() + 1_000_000)

        taken = at(patch, "open", "*/deliver/*", slow)
        assert told.is_silent(told.hook("PostToolUse")) and taken

    assert "| The parser drops tabs" in told.hook("PostToolUse").out


def real(told: Told, tmp_path: Path) -> Agent:
    note_program(told.state, program(tmp_path))
    return Agent("codex", "c-1", told.desk.repo)


def test_an_answer_that_nobody_reads_leaves_the_signal_unread(told: Told, tmp_path: Path) -> None:
    """The client has gone: no receipt, no trace; the next hook hands it over."""
    agent = real(told, tmp_path)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [str(told.state / "program") and str(tmp_path / "gitmem"), "hook", "codex", "PostToolUse"],
        cwd=told.desk.repo, input=json.dumps(said("codex", "PostToolUse", "c-1", told.desk.repo)).encode(),
        stdout=write, stderr=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")

    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" hook codex PostToolUse >&-', str(tmp_path / "gitmem")],
        cwd=told.desk.repo, input=json.dumps(said("codex", "PostToolUse", "c-1", told.desk.repo)).encode(),
        stderr=subprocess.PIPE, timeout=60,
    )  # fmt: skip
    assert (closed.returncode, closed.stderr) == (0, b"")

    assert "| The parser drops tabs" in agent.reads("PostToolUse")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_an_answer_that_cannot_be_written_leaves_the_signal_unread(told: Told, tmp_path: Path) -> None:
    agent = real(told, tmp_path)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [str(tmp_path / "gitmem"), "hook", "codex", "PostToolUse"],
            cwd=told.desk.repo, input=json.dumps(said("codex", "PostToolUse", "c-1", told.desk.repo)).encode(),
            stdout=full, stderr=subprocess.PIPE, timeout=60,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")

    assert agent.call("PostToolUse").is_silent  # once a turn after a trouble
    assert "| The parser drops tabs" in agent.reads("Stop")


def test_on_a_full_disk_no_hook_shows_it_at_every_call(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt can't be written: no flag starts a hook until the next signal, which brings it once more."""
    with monkeypatch.context() as patch:
        at(patch, "write", "*/wal/*", full)
        assert "| The parser drops tabs" in told.hook("PostToolUse").out
        assert "No space left" in told.error
        assert not list((told.state / "flags").iterdir())
    assert "| The parser drops tabs" in told.hook("PostToolUse").out
    assert told.is_silent(told.hook("PostToolUse"))
    assert told.desk("inbox", "--count", session=told.ours).out == "0\n"


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGPIPE, signal.SIGHUP]
)
def test_killed_before_it_speaks_it_has_said_nothing(
    told: Told, tmp_path: Path, number: signal.Signals
) -> None:
    """While it reads: the script ends with 0 and not a word, and the signal stays unread."""
    agent = real(told, tmp_path)
    dying = tmp_path / "dying"
    dying.write_text(
        f"#!{sys.executable}\nimport os, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from cli import main\nfrom gitmem.signals import inbox\n"
        f"inbox.read = lambda *a, **b: os.kill(os.getpid(), {int(number)})\n"
        "sys.exit(main.main())\n"
    )
    dying.chmod(0o755)
    note_program(told.state, dying)

    assert agent.call("PostToolUse").is_silent

    note_program(told.state, f"{tmp_path}/gitmem")
    (told.state / "hook-stuck").unlink(missing_ok=True)
    assert "| The parser drops tabs" in agent.reads("PostToolUse")


def test_no_home_no_temporary_folder_and_no_language_are_no_trouble(told: Told, tmp_path: Path) -> None:
    agent = real(told, tmp_path)

    text = agent.reads("PostToolUse", env={"HOME": "", "TMPDIR": "/no/such", "LANG": "C", "LC_ALL": "C"})

    assert "| The parser drops tabs" in text


def test_variables_that_are_no_text_are_no_trouble(told: Told, tmp_path: Path) -> None:
    """GITMEM_SESSION with bytes that are not UTF-8 is an error of a command, not of a hook."""
    agent = real(told, tmp_path)

    assert "| The parser drops tabs" in agent.reads(
        "PostToolUse", env={"GITMEM_SESSION": os.fsdecode(b"\xff\xfe")}
    )


# A hook that slows is torn out: where there is nothing new the script starts nothing, reads nothing and waits for nobody.

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
    """A tool's output may be a megabyte: the hook reads none of it, and does not wait for a client that never closes it."""
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
        "looking.update_index = lambda store: (signal.setitimer(signal.ITIMER_REAL, 0.01), time.sleep(60))\n"
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


# A hook that nags is torn out: what was said is said once, whatever follows.

CALLS = 1000


@pytest.mark.deep
@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_thousand_tool_calls_after_a_delivery_print_nothing(
    desk: Desk, tmp_path: Path, client: str
) -> None:
    """Nor do they start anything: the program is gone by then, and nobody notices."""
    peer = desk.start("Planck")
    state = desk.repo / ".git" / "gitmem"
    note_program(state, program(tmp_path))
    agent = Agent(client, "c-1", desk.repo)
    agent.reads("SessionStart")
    (ours,) = {path.name for path in (state / "sessions").iterdir()} - {peer}
    for text in ("The parser drops tabs", "And so does the printer"):
        desk.send(peer, text, "--to", ours)
    desk.send(peer, "For everybody", "--broadcast")
    text = agent.reads("PostToolUse")
    assert text.count("\n| ") == 3
    started = tmp_path / "started"
    (tmp_path / "gitmem").write_text(f'#!/bin/sh\necho "$@" >>"{started}"\n')

    variable = events.SESSION_VARIABLES.get(client)
    done = subprocess.run(
        [SHELL, "-c", f'i=0; while [ $i -lt {CALLS} ]; do {SHELL} "$0" PostToolUse </dev/null || echo no; i=$((i+1)); done',
         str(agent.script)],
        cwd=desk.repo, env={**os.environ, **({variable: "c-1"} if variable else {})}, capture_output=True, timeout=300,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not started.exists()


@pytest.mark.deep
def test_ten_signals_in_many_calls_come_once_each_to_every_agent(desk: Desk, tmp_path: Path) -> None:
    """Two agents of different clients, tool calls without end: each reads each signal that is for it once."""
    peer = desk.start("Planck")
    state = desk.repo / ".git" / "gitmem"
    note_program(state, program(tmp_path))
    agents = {}
    for client in ("claude-code", "gemini"):
        before = {path.name for path in (state / "sessions").iterdir()}
        agent = Agent(client, f"{client}-1", desk.repo)
        agent.reads("SessionStart")
        (agents[agent],) = {path.name for path in (state / "sessions").iterdir()} - before
    read: dict[Agent, str] = dict.fromkeys(agents, "")
    for number in range(10):
        desk.send(peer, f"Message {number} of ten", "--to", ",".join(agents.values()))
        for agent in agents:
            for _ in range(3):
                (event, *_) = events.names(agent.client, events.TOOL)
                read[agent] += agent.reads(event)

    for text in read.values():
        assert [text.count(f"| Message {number} of ten") for number in range(10)] == [1] * 10


def test_two_hooks_of_one_call_hand_it_over_once(desk: Desk, tmp_path: Path) -> None:
    """A client that runs hooks of the user and of the project, or of several tools at once."""
    peer = desk.start("Planck")
    state = desk.repo / ".git" / "gitmem"
    note_program(state, program(tmp_path))
    agent = Agent("claude-code", "c-1", desk.repo)
    agent.reads("SessionStart")
    (ours,) = {path.name for path in (state / "sessions").iterdir()} - {peer}
    desk.send(peer, "The parser drops tabs", "--to", ours)
    env = {**os.environ, "CLAUDE_CODE_SESSION_ID": "c-1"}

    several = [
        subprocess.Popen(
            [SHELL, str(agent.script), event], cwd=desk.repo, env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for event in ("PostToolUse", "PostToolUse", "PostToolBatch", "PostToolUse")
    ]  # fmt: skip
    answers = [each.communicate(b'{"session_id":"c-1"}', timeout=60) for each in several]

    assert sorted(len(out) > 0 for out, _ in answers) in ([False, False, False, True],)
    assert all(err == b"" for _, err in answers)
    assert agent.call("PostToolUse").is_silent


def test_the_script_says_nothing_in_words(desk: Desk) -> None:
    """No echo, no printf, but to the files of counts and turns: what reaches an agent is gitmem's answer alone."""
    files = ('  printf . >>"$calls" || return 1', '  echo "$kind" >"$turn"')
    for client in events.EVENTS:
        lines = client_scope.script_text(client).split("\n")
        assert not [
            line for line in lines if line.lstrip().startswith(("echo", "printf")) and line not in files
        ]
