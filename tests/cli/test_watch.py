"""`gitmem watch` as people and programs run it: in a terminal, in a pipe, killed, left alone, with others beside it."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cli.commands import watch
from cli.commands import watch as watching
from cli.main import main
from gitmem.errors import UsageError
from gitmem.signals.watch import NeverSet
from tests import in_process

from .conftest import Run

ROOT = Path(__file__).resolve().parents[2]
WAIT_MAX_SECONDS = 120.0
# Under load a turn may take long: here no watch ever goes on without.
PATIENT = "import gitmem.agents.delivery as d; d.WAIT_SECONDS = 100.0;"
PROGRAM = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); {PATIENT}"
    "{before} from cli.main import main; sys.exit(main())"
)


def until(what: Callable[[], object], why: str = "") -> None:
    """Wait for a condition that will come true."""
    deadline = time.monotonic() + WAIT_MAX_SECONDS
    while not what():
        assert time.monotonic() < deadline, f"waited in vain: {why}"
        time.sleep(0.02)


def program_at(folder: Path) -> Path:
    """The program as a file that a shell can run."""
    program = folder / "gitmem"
    program.write_text(
        f"#!{sys.executable} -P\n" + PROGRAM.format(before="").replace(";", "\n").replace("\n ", "\n")
    )
    program.chmod(0o755)
    return program


class Running:
    """A watch in a process of its own, with its output as it comes."""

    def __init__(
        self, where: Path, args: tuple[str, ...], env: dict[str, str], before: str = "", pty: bool = False
    ) -> None:
        env = {**os.environ, **env}
        fork = partial(in_process.become, ["watch", *args], env, f"{PATIENT}{before}")
        command = [sys.executable, "-P", "-c", PROGRAM.format(before=before), "watch", *args]
        self.out, self.err = "", ""
        if pty:
            self.fd, inside = os.openpty()
            stdio: Any = {"stdin": inside, "stdout": inside}
        else:
            self.fd, inside = os.pipe()
            stdio = {"stdin": subprocess.DEVNULL, "stdout": inside}
        self.process = subprocess.Popen(
            command, cwd=where, env=env, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=take_terminal if pty else None if env.get("PYTHONUNBUFFERED") else fork, **stdio,  # noqa: PLW1509 - there are no threads
        )  # fmt: skip
        os.close(inside)
        assert self.process.stderr is not None
        self._stderr = self.process.stderr.fileno()

    def look(self, seconds: float = 0.05) -> None:
        """Take in what there is."""
        fds = [fd for fd in (self.fd, self._stderr) if fd >= 0]
        for fd in select.select(fds, [], [], seconds)[0]:
            try:
                found = os.read(fd, 65536).decode()
            except OSError:  # the other end of a terminal is gone
                found = ""
            if fd == self.fd:
                self.out += found
            else:
                self.err += found
            if not found:
                self._close(fd)

    def _close(self, fd: int) -> None:
        os.close(fd) if fd == self.fd else None
        if fd == self.fd:
            self.fd = -1
        else:
            self._stderr = -1

    def until_said(self, *texts: str) -> None:
        def said() -> bool:
            self.look()
            assert self.process.poll() is None or all(each in self.out + self.err for each in texts), self
            return all(each in self.out + self.err for each in texts)

        until(said, f"{texts} in {self}")

    def until_ready(self) -> Running:
        self.until_said("press Ctrl-C to end")
        return self

    def end(self, number: int = signal.SIGINT) -> int:
        """Ask it to end: its exit status."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        def over() -> bool:
            self.look()
            return self.process.poll() is not None

        until(over, str(self))
        while self.fd >= 0 or self._stderr >= 0:
            before = (self.fd, self._stderr, self.out, self.err)
            self.look(0.2)
            if before == (self.fd, self._stderr, self.out, self.err):
                break  # a child of it holds the other end
        return int(self.process.returncode)

    @property
    def ids(self) -> list[str]:
        """The signals whose heads were shown, in order."""
        return re.findall(
            r"^(?:\[.* · (?=sig-\w+\])|(?:— from session .*|  To reply: .*)reply )(sig-\w+)",
            self.out,
            re.MULTILINE,
        )

    def __repr__(self) -> str:
        return f"out {self.out!r}, err {self.err!r}"


def take_terminal() -> None:
    """Make standard input the terminal of this process: Ctrl-C in it is for us."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Desk:
    """Planck writes in one worktree, Curie is watched in another."""

    def __init__(self, repo: Path, other: Path, run: Any, start: Any) -> None:
        self.repo, self.other, self.run = repo, other, run
        self.planck = start("Planck")
        self.curie = start("Curie")
        self.running: list[Running] = []

    def watch(self, *args: str, before: str = "", pty: bool = False, **env: str) -> Running:
        found = Running(self.other, args, env or {"GITMEM_SESSION": self.curie}, before, pty)
        self.running.append(found)
        return found

    def say(self, text: str, *more: str) -> str:
        said = self.run("signal", text, *more, "--json", session=self.planck)
        assert said.status == 0, said
        return str(said.json["signal"]["signal_id"])

    def to_curie(self, text: str, *more: str) -> str:
        return self.say(text, "--to", "Curie", *more)

    def unread(self) -> list[str]:
        found = self.run("inbox", "--no-mark", "--limit", "9999", "--json", session=self.curie).json[
            "signals"
        ]
        return [str(each["signal_id"]) for each in found]


@pytest.fixture
def desk(repo: Path, tmp_path: Path, git: Any, run: Any, start: Any) -> Iterator[Desk]:
    other = tmp_path / "other"
    git("worktree", "add", "--quiet", "--detach", str(other), cwd=repo)
    found = Desk(repo, other, run, start)
    yield found
    for each in found.running:
        if each.process.poll() is None:
            each.process.kill()
        each.process.wait()


def test_a_terminal_gets_the_intent_in_colour_and_nothing_else_does(desk: Desk) -> None:
    """No escape code of a peer, no code with NO_COLOR, and none in the file of --write."""
    seen = desk.watch(
        "--as", "Curie", "--write", "kept", pty=True, TERM="xterm", NO_COLOR="", FORCE_COLOR=""
    ).until_ready()
    desk.to_curie("\x1b[31mred\x07\x9b2J", "--intent", "propose")
    seen.until_said("red")
    assert seen.end() == 0, seen
    assert "\x1b[33mPROPOSE\x1b[0m" in seen.out
    assert not set(re.sub("\x1b\\[[0-9]+m", "", seen.out)) & set("\x1b\x07\x9b")
    assert "\\u001b[31mred" in seen.out
    assert "\x1b" not in (desk.other / "kept").read_text()

    seen = desk.watch("--as", "Curie", pty=True, TERM="xterm", NO_COLOR="1").until_ready()
    desk.to_curie("And this?", "--intent", "propose")
    seen.until_said("And this?")
    assert seen.end() == 0, seen
    assert "· PROPOSE ·" in seen.out


def test_in_a_terminal_a_signal_appears_once_and_ctrl_c_ends_it(desk: Desk) -> None:
    """A person watches for Curie; another watch shows nothing of it again, and only what is new.

    The line to reply by answers as Curie, as the watch does.
    """
    seen = desk.watch("--as", "Curie", pty=True, TERM="xterm").until_ready()
    first = desk.to_curie("Does this reach you?", "--wu", "WU-7")
    seen.until_said("| Does this reach you?", f"gitmem --as {desk.curie} reply {first} - <<'EOF'")
    os.write(seen.fd, b"\x03")
    assert seen.wait() == 0, seen
    assert seen.ids == [first]
    assert "Traceback" not in seen.out + seen.err
    assert desk.unread() == []

    again = desk.watch("--as", "Curie", pty=True, TERM="xterm").until_ready()
    second = desk.to_curie("And this?")
    again.until_said("| And this?")
    os.write(again.fd, b"\x03")

    assert again.wait() == 0
    assert again.ids == [second]


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")
def test_a_person_is_told_how_to_watch_for_an_agent(desk: Desk) -> None:
    """Where agents work here; the first line says whom it watches for."""
    alone = desk.watch(pty=True, TERM="xterm").until_ready()
    assert "--as" not in alone.err and alone.end() == 0
    desk.run("session", "start", "--name", "Franklin", cwd=desk.other)

    seen = desk.watch(pty=True, TERM="xterm").until_ready()
    seen.until_said(
        "watching for signals to Test Person; press Ctrl-C to end; use `--as NAME` to watch for an agent"
    )
    assert seen.end() == 0


def test_in_tmux(desk: Desk, tmp_path: Path) -> None:
    """A real terminal program, with a real Ctrl-C."""
    socket = str(tmp_path / "tmux")
    program = program_at(tmp_path)

    def tmux(*args: str) -> str:
        return subprocess.run(
            ["tmux", "-S", socket, *args], capture_output=True, text=True, cwd=desk.other, timeout=60
        ).stdout

    def screen() -> str:
        return tmux("capture-pane", "-p", "-J", "-t", "w")

    tmux("-f", "/dev/null", "new-session", "-d", "-s", "w", "-x", "200", "-y", "50", "sh")
    try:
        tmux("send-keys", "-t", "w", f"{program} watch --as Curie; echo ended with $?", "Enter")
        until(lambda: "press Ctrl-C to end" in screen(), "tmux")
        desk.to_curie("Do you see this?")
        until(lambda: "| Do you see this?" in screen(), "tmux")
        tmux("send-keys", "-t", "w", "C-c")
        until(lambda: "ended with 0" in screen(), "tmux")
        assert screen().count("| Do you see this?") == 1
    finally:
        tmux("kill-server")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_of_the_system_end_it_cleanly(desk: Desk, number: int) -> None:
    """Status 0, nothing half-said, and what was shown is read."""
    seen = desk.watch().until_ready()
    said = desk.to_curie("one")
    seen.until_said("| one")

    assert seen.end(number) == 0
    assert seen.ids == [said]
    assert seen.out.endswith("\n")
    assert seen.err.count("\n") == 1
    assert desk.unread() == []


def test_it_goes_on_when_whoever_started_it_said_so(desk: Desk) -> None:
    """`nohup gitmem watch &`: a hang-up is not for it."""
    before = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
    seen = desk.watch(before=before).until_ready()
    seen.process.send_signal(signal.SIGHUP)
    desk.to_curie("still here?")
    seen.until_said("| still here?")

    assert seen.end() == 0


def test_killed_between_showing_and_marking_it_shows_again(desk: Desk) -> None:
    """Twice is better than never: the command runs when the signal is shown and not yet marked."""
    seen = desk.watch("--exec", "kill -9 $PPID")
    said = desk.to_curie("one")
    assert seen.wait() == -signal.SIGKILL
    assert seen.ids == [said]
    assert desk.unread() == [said]

    again = desk.watch()
    again.until_said("| one")

    assert again.end() == 0
    assert again.ids == [said]
    assert desk.unread() == []


def test_watches_and_inboxes_that_race_show_each_signal_to_one_of_them(desk: Desk) -> None:
    """Two watches and inboxes of one reader: nothing is lost, and nothing is shown twice."""
    both = [desk.watch().until_ready() for _ in range(2)]
    sent, shown = [], []
    for number in range(12):
        sent.append(desk.to_curie(f"number {number}"))
        found = desk.run("inbox", "--json", session=desk.curie).json["signals"]
        shown += [each["signal_id"] for each in found]

    def all_shown() -> bool:
        for each in both:
            each.look()
        return len(shown) + sum(len(each.ids) for each in both) >= len(sent)

    until(all_shown, str(both))
    assert [each.end() for each in both] == [0, 0]
    assert sorted([*shown, *both[0].ids, *both[1].ids]) == sorted(sent)


def test_when_nobody_reads_it_ends_and_leaves_the_rest_unread(desk: Desk) -> None:
    """The other end of the pipe is gone: also while nothing is said."""
    seen = desk.watch().until_ready()
    os.close(seen.fd)
    seen.fd = -1

    assert seen.wait() == 0
    assert "Traceback" not in seen.err
    said = desk.to_curie("too late")
    assert desk.unread() == [said]


def test_what_nobody_took_is_not_marked(desk: Desk) -> None:
    """The pipe breaks as the signal is written."""
    before = "import cli.render.output as o; o.is_read = lambda: True;"
    seen = desk.watch(before=before).until_ready()
    os.close(seen.fd)
    seen.fd = -1
    said = desk.to_curie("too late")

    assert seen.wait() == 0
    assert desk.unread() == [said]


def test_as_json_each_event_is_a_line(desk: Desk) -> None:
    """With the signal's fields, the reply line, and what to do next."""
    seen = desk.watch("--json").until_ready()
    plain = desk.to_curie("one\nand two")
    asked = desk.to_curie("agree?", "--requires-ack", "--intent", "propose", "--wu", "WU-7")
    to_all = desk.say("to all")
    seen.until_said(plain, asked, to_all)
    assert seen.end() == 0

    events = [json.loads(line) for line in seen.out.splitlines()]

    assert [(each["event"], each["signal_id"]) for each in events] == [
        ("signal:received", plain), ("signal:received", asked), ("signal:received", to_all),
    ]  # fmt: skip
    assert {each["reader"] for each in events} == {"test:worker:curie"}
    assert events[0]["message"] == "one\nand two"
    assert f"gitmem reply {plain} - <<'EOF'" in events[0]["reply_line"]
    assert events[0]["next"] == [f"gitmem thread {plain}"]
    assert events[1]["next"] == [
        f"gitmem reply {asked} agreed --agree", f"gitmem reply {asked} rejected --reject",
    ]  # fmt: skip
    assert events[1]["wu_id"] == "WU-7"


def test_next_acts_as_the_session_that_was_named(desk: Desk) -> None:
    """Whoever sits at the terminal is not Curie."""
    seen = desk.watch("--as", "Curie", "--json", GITMEM_SESSION="").until_ready()
    said = desk.to_curie("one")
    seen.until_said(said)
    assert seen.end() == 0

    assert json.loads(seen.out)["next"] == [f"gitmem --as {desk.curie} thread {said}"]


def test_an_agent_that_names_another_marks_nothing(desk: Desk) -> None:
    """It says so, and shows each once all the same; and runs no command for it."""
    seen = desk.watch("--as", "Curie", GITMEM_SESSION=desk.planck)
    seen.until_said("Nothing is marked")
    said = desk.to_curie("for Curie alone")
    seen.until_said("| for Curie alone")
    assert seen.end() == 0
    assert "gitmem reply" not in seen.out
    assert desk.unread() == [said]

    refused = desk.run("watch", "--as", "Curie", "--exec", "true", session=desk.planck)

    assert refused.status == 2
    assert "--exec runs no commands" in refused.err


def test_a_command_gets_each_directed_signal(desk: Desk, tmp_path: Path) -> None:
    """On its standard input and in its environment, never in its command line; broadcasts wake nobody."""
    told = tmp_path / "told"
    script = f'cat >> {told}; echo "$GITMEM_SIGNAL_ID $GITMEM_THREAD_ID $GITMEM_INTENT $GITMEM_SENDER" >> {told}; echo said'
    seen = desk.watch("--exec", script).until_ready()
    to_all = desk.say("to all")
    text = "$(touch oops); `touch oops`"
    said = desk.to_curie(text, "--intent", "propose")
    seen.until_said("| $(touch", to_all)
    until(lambda: desk.unread() == [], "the receipts")
    assert seen.end() == 0

    event, words = told.read_text().splitlines()

    assert json.loads(event)["message"] == text
    assert json.loads(event)["event"] == "signal:received"
    thread = json.loads(event)["thread_id"]
    assert words == f"{said} {thread} PROPOSE test:worker:planck"
    assert "said" in seen.err
    assert "said" not in seen.out.replace(said, "")
    assert not (desk.other / "oops").exists()


def test_a_command_answers_for_the_reader(desk: Desk, tmp_path: Path) -> None:
    """`gitmem reply` in it acts as the session that is watched."""
    answer = f'{program_at(tmp_path)} reply "$GITMEM_SIGNAL_ID" seen'
    seen = desk.watch("--as", "Curie", "--exec", answer, GITMEM_SESSION="").until_ready()
    said = desk.to_curie("please answer")

    def answered() -> bool:
        seen.look()
        found = desk.run("thread", said, "--json").json["signals"]
        return len(found) == 2 and found[1]["sender_session"] == desk.curie

    until(answered, str(seen))
    assert seen.end() == 0


def test_a_command_that_fails_leaves_its_signal_unread(desk: Desk, tmp_path: Path) -> None:
    """Told on standard error; not tried again by this watch; another one does."""
    count = tmp_path / "count"
    script = f'echo x >> {count}; test "$GITMEM_INTENT" = INFO'
    seen = desk.watch("--exec", script).until_ready()
    bad = desk.to_curie("bad", "--intent", "propose")
    seen.until_said(f"--exec: exit status 1; {bad} remains unread")
    good = desk.to_curie("good")
    until(lambda: desk.unread() == [bad], "the receipt")
    assert seen.end() == 0
    assert seen.ids == [bad, good]
    assert count.read_text() == "x\nx\n"

    again = desk.watch("--exec", "true")
    again.until_said("| bad")
    until(lambda: desk.unread() == [], "the receipt")
    assert again.end() == 0


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """Within the time that a command has."""
    pids = tmp_path / "pids"
    said = watch.run(
        f"sleep 1000 & echo $! $$ > {pids}; wait", input=b"", environment={}, folder=str(tmp_path), seconds=1.0,
        stop=NeverSet(),
    )  # fmt: skip

    assert said == "timed out after 1 seconds"
    until(lambda: not any(map(is_alive, pids.read_text().split())), "the end of its children")


def test_a_command_dies_with_the_watch(desk: Desk, tmp_path: Path) -> None:
    """Its signal remains unread: nobody knows how far it came."""
    pids = tmp_path / "pids"
    seen = desk.watch(
        "--exec", f"sleep 1000 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"
    ).until_ready()
    said = desk.to_curie("one")
    until(pids.exists, "the command")

    assert seen.end(signal.SIGTERM) == 0

    until(lambda: not any(map(is_alive, pids.read_text().split())), "the end of its children")
    assert desk.unread() == [said]


def waiting_in(fd: int) -> int:
    """Bytes that wait in a pipe."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
        state = Path(f"/proc/{pid}/stat")
        return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_file_has_the_last_signals(desk: Desk, tmp_path: Path) -> None:
    """For a client that reads a file again and again; what an earlier watch left there stays."""
    file = desk.other / "signals.md"
    for number in range(2):
        seen = desk.watch("--write", "signals.md").until_ready()
        desk.to_curie(f"text of {number}")
        seen.until_said(f"| text of {number}")
        until(lambda: desk.unread() == [], "the receipt")
        assert seen.end() == 0

    text = file.read_text()

    assert text.startswith(watch.MARK)
    assert text.index("| text of 0") < text.index("| text of 1")
    assert text.count("\n— from session ") == 2
    assert "just now" not in text
    assert [each.name for each in desk.other.iterdir() if each.name.startswith("signals.md")] == [
        "signals.md"
    ]


def test_a_file_that_can_not_be_written_leaves_its_signals_unread(desk: Desk, tmp_path: Path) -> None:
    """They are shown once by this watch; it says so once, and the file has them when it can."""
    folder = tmp_path / "folder"
    folder.mkdir()
    seen = desk.watch("--write", str(folder / "signals")).until_ready()
    folder.rename(tmp_path / "away")
    said = []
    for text in (
        "one",
        "two",
        "three",
    ):  # that one is shown says that the one before it was tried to be written
        said.append(desk.to_curie(text))
        seen.until_said(f"| {text}", "cannot write")
    folder.mkdir()
    desk.to_curie("four")
    seen.until_said("| four")
    until(lambda: desk.unread()[:2] == said[:2] and len(desk.unread()) <= 3, "the receipt")

    assert seen.end() == 0
    assert seen.err.count("cannot write") == 1
    assert re.findall(r"^\| (.*)$", (folder / "signals").read_text(), re.MULTILINE) == [
        "one",
        "two",
        "three",
        "four",
    ]


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A slip in a name must not cost a text."""
    file = tmp_path / "NOTES.md"
    file.write_text("# My notes\n")

    for wrong in (file, tmp_path, tmp_path / "none" / "file"):
        with pytest.raises(UsageError):
            watch.SignalFile(str(wrong), "")

    assert file.read_text() == "# My notes\n"


def test_a_file_stays_small_and_whole(tmp_path: Path) -> None:
    """16 KiB of the newest; one that is larger by itself is there whole; each once."""
    file = tmp_path / "signals"
    signals = [f"[sig-{number:04} · INFO]\n| {'x' * 1000}\n\n— from session" for number in range(40)]
    found = watch.SignalFile(str(file), "head")
    for text in signals:
        found.add([text])
    content = file.read_text()
    assert len(content) < watch.MAX_BYTES + 200
    assert content.endswith(f"{signals[-1]}\n")

    again = watch.SignalFile(str(file), "head")
    again.add([signals[-1]])
    assert file.read_text() == content
    again.add(["[sig-9999 · INFO]\n| " + "y" * 2 * watch.MAX_BYTES])

    assert file.read_text().count("[sig-") == 1


@pytest.mark.deep
def test_sync_runs_beside_and_a_failing_remote_holds_up_nobody(desk: Desk, tmp_path: Path, git: Any) -> None:
    """It is told once that it fails, and once that it works again; what others pushed comes."""
    hub = tmp_path / "hub.git"
    git("remote", "add", "origin", str(hub), cwd=desk.repo)
    assert desk.run("sync", "--publish").status == 5
    seen = desk.watch("--sync", "1s").until_ready()
    seen.until_said("sync failed (")
    desk.to_curie("from here")
    seen.until_said("| from here")
    git("init", "--quiet", "--bare", str(hub), cwd=tmp_path)
    git("push", "--quiet", "origin", "main", cwd=desk.repo)
    seen.until_said("sync works again")
    far = tmp_path / "far"
    git("clone", "--quiet", str(hub), str(far), cwd=tmp_path)
    desk.run("sync", "--publish", cwd=far)
    faraday = desk.run("session", "start", "--json", cwd=far).json["session_id"]
    said = desk.run("signal", "from far", "--to", "test:worker:curie", "--sync", cwd=far, session=faraday)
    assert said.status == 0, said
    seen.until_said("| from far")

    assert seen.end() == 0
    assert seen.err.count("sync failed") == 1
    assert seen.err.count("sync works again") == 1


def test_in_a_clone_that_is_to_sync_by_itself_it_sees_to_that(desk: Desk, tmp_path: Path, git: Any) -> None:
    """Nobody says sync here, and nothing is written."""
    hub, far = tmp_path / "hub.git", tmp_path / "far"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(hub), cwd=tmp_path)
    git("remote", "add", "origin", str(hub), cwd=desk.repo)
    git("push", "--quiet", "origin", "main", cwd=desk.repo)
    desk.run("sync", "--publish")
    desk.run("setup", "--publish", "yes", "--autosync", "1s")
    seen = desk.watch().until_ready()
    git("clone", "--quiet", str(hub), str(far), cwd=tmp_path)
    desk.run("sync", "--publish", cwd=far)
    faraday = desk.run("session", "start", "--json", cwd=far).json["session_id"]
    said = desk.run("signal", "from far", "--to", "test:worker:curie", "--sync", cwd=far, session=faraday)
    assert said.status == 0, said

    seen.until_said("| from far")
    assert seen.end() == 0


def test_the_end_of_the_session_ends_it(desk: Desk) -> None:
    """It says so."""
    seen = desk.watch().until_ready()
    desk.to_curie("last")
    desk.run("session", "end", session=desk.curie)

    assert seen.wait() == 0
    assert "| last" in seen.out
    assert "the session of Curie has ended" in seen.err


@pytest.mark.parametrize("how", ["variable", "no watchfiles"])
def test_without_events_it_looks_at_the_files(desk: Desk, how: str) -> None:
    """Asked for by the variable, or because the package can't be had."""
    before = "" if how == "variable" else "import sys; sys.modules['watchfiles'] = None;"
    more = {"WATCHFILES_FORCE_POLLING": "1"} if how == "variable" else {}
    seen = desk.watch(before=before, GITMEM_SESSION=desk.curie, **more).until_ready()
    said = desk.to_curie("one")
    seen.until_said("| one")

    assert seen.end() == 0
    assert seen.ids == [said]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_second_ctrl_c_ends_what_takes_too_long(desk: Desk, unbuffered: str) -> None:
    """A pipe that nobody empties: asked once it waits, asked twice it goes, and nothing of it is marked.

    Unbuffered, a write that a signal interrupts takes a part of the text, and is no error.
    """
    seen = desk.watch(PYTHONUNBUFFERED=unbuffered, GITMEM_SESSION=desk.curie).until_ready()
    ids = [desk.to_curie(f"{number} " + "x" * 60_000) for number in range(4)]
    until(lambda: waiting_in(seen.fd) > 60_000, "a full pipe")

    def over() -> bool:
        seen.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        return seen.process.poll() is not None

    until(over, "the end")
    assert seen.process.returncode != 3
    left = desk.unread()
    assert set(left) <= set(ids)
    seen.wait()
    assert all(each in seen.out for each in set(ids) - set(left))


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["--as", "Nobody"], 2),
        (["--sync", "soon"], 2),
        (["--sync", "0"], 2),
        (["--write", "/"], 2),
        (["extra"], 2),
    ],
)
def test_what_was_asked_wrongly_ends_at_once(desk: Desk, args: list[str], status: int) -> None:
    """With a sentence and no traceback."""
    found = desk.run("watch", *args, session=desk.curie)

    assert found.status == status
    assert found.out == ""
    assert "Traceback" not in found.err


def test_outside_a_repository_it_says_so(tmp_path: Path, run: Any) -> None:
    """There is nothing to watch."""
    assert run("watch", cwd=tmp_path).status == 2


def test_the_stop_gives_the_handlers_back() -> None:
    """A process may watch and then do something else."""
    before = signal.getsignal(signal.SIGTERM)
    with watching.WatchEnded() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        until(stop.is_set, "the signal")

    assert signal.getsignal(signal.SIGTERM) is before
    assert callable(main)


def test_the_desktop_tells_of_signals_to_the_reader_and_runs_nothing_of_them(desk: Desk) -> None:
    """As arguments of its program, which reads no markup in them; a broadcast disturbs nobody."""
    folder = desk.other.parent / "programs"
    folder.mkdir()
    told = folder / "told"
    (folder / "notify-send").write_text(f'#!/bin/sh\nprintf "%s|" "$@" >> {told}\necho >> {told}\n')
    (folder / "notify-send").chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    seen = desk.watch("--as", "Curie", "--notify", PATH=path).until_ready()
    desk.say("to all")
    seen.until_said("to all")
    desk.to_curie("$(touch x) <b>\x1b[31mred\nnext", "--intent", "propose")
    seen.until_said("red")
    assert seen.end() == 0, seen
    assert told.read_text() == (
        "--app-name=gitmem|--|gitmem: Planck · PROPOSE|$(touch x) ‹b&gt;\\u001b[31mred next|\n"
    )
    assert not list(desk.other.glob("x")) and not list(folder.glob("x"))


def test_a_desktop_without_a_program_is_refused_and_no_text_is_in_a_script(run: Run, tmp_path: Path) -> None:
    """Before anything is watched; scripts of another desktop are the same for every text."""
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    said = run("watch", "--notify", PATH=str(tmp_path))
    assert said.status == 2 and "notify-send or osascript" in said.err
    evil = '"; do shell script "x'
    one, other = (watch.notification("osascript", "gitmem: a", text) for text in (evil, "b"))
    assert one.count(evil) == 1 and [word for word in one if word != evil] == other[:-1]
