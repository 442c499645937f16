"""Record two real clients that agree through gitmem: `python tools/picture_clients.py` writes docs/clients.svg.

Claude Code and Codex come from npm, as in `pytest -m clients`, have a home folder of their own, and run in two windows of
tmux. Their models are scripts: what a person types and what the models answer stand below. Everything else is what the programs show.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.real_clients.clients import CLIENTS, Client  # noqa: E402 - the path comes first
from tests.real_clients.conftest import CACHE, installed  # noqa: E402
from tests.real_clients.desk import Home, until  # noqa: E402
from tests.real_clients.model import Asked, Model, serving  # noqa: E402
from tests.real_clients.wire import Step  # noqa: E402
from tools.terminal_film import Moment, film  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PICTURE = ROOT / "docs/clients.svg"
BYTES_MAX = 300_000
COLUMNS, ROWS = 60, 28
FRAME_SECONDS, KEY_SECONDS, THINKING_SECONDS = 0.12, 0.04, 1.2
PAUSE_SECONDS_MAX, END_SECONDS = 1.8, 7.0
CLAUDE, CODEX = (next(each for each in CLIENTS if each.name == name) for name in ("claude-code", "codex"))
TESTS = """\
import pathlib
import time
import unittest


class Prices(unittest.TestCase):
    def test_rounding(self):
        done = pathlib.Path.home() / f"{pathlib.Path.cwd().name}.done"
        while not done.exists():
            time.sleep(0.1)
"""
RUN_TESTS = "python3 -m unittest 2>&1 | tail -1"
TASK = "Run the tests."
QUESTION = "Ask the agent in the other worktree whether we can drop Python 3.9."
PROPOSAL = "Drop Python 3.9 now?"
COUNTER = "Drop after 2.4?"
CAPTIONS = (
    "A person asks Claude Code. Codex is at work in another worktree.",
    "Claude Code sends a proposal with gitmem, and goes on.",
    "Codex gets it with the result of its tool, by gitmem's hook, and makes a counter-proposal.",
    "Claude Code gets that in the same way, and agrees to it.",
    "Both agreed to one text, and a program can check it: gitmem converged exits with 0.",
)
NAME = "Claude Code and Codex agree through gitmem"
REMARK = "The programs are real and shown as they ran, with shorter waits. Their models are scripts."
SIGNAL = re.compile(r"reply (sig-\w{6})")


class Story:
    """What the models do, what has been shown, and which sentence stands below it.

    Args:
        home: Where it happens. The tests of a worktree end when a file named for it is there.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self.caption = CAPTIONS[0]
        self.over = [Event(), Event()]
        self.asked = Model(CLAUDE.dialect, [self.ask, self.wait, self.agree, self.tell])
        self.answers = Model(CODEX.dialect, [self.work, self.counter, self.end])

    def ask(self, asked: Asked) -> Step:
        """Claude Code's model, at the person's question."""
        time.sleep(THINKING_SECONDS)
        return _shell(CLAUDE, f"gitmem signal '{PROPOSAL}' --to {self.name(CODEX)} --intent propose -q")

    def wait(self, asked: Asked) -> Step:
        """Claude Code's model, after its proposal; the other tests end a little later."""
        self.caption = CAPTIONS[1]
        time.sleep(THINKING_SECONDS)
        Thread(target=self.finish_tests, args=("shop", 3 * THINKING_SECONDS)).start()
        return _shell(CLAUDE, RUN_TESTS, f"I asked {self.name(CODEX)}. Meanwhile I run the tests.")

    def work(self, asked: Asked) -> Step:
        """Codex's model, at its task: its tests run until the proposal is there."""
        return Step(tool="exec_command", arguments={"cmd": RUN_TESTS, "yield_time_ms": 30_000})

    def counter(self, asked: Asked) -> Step:
        """Codex's model, when its tests have ended."""
        signal = _heard(asked, PROPOSAL)
        self.caption = CAPTIONS[2]
        time.sleep(2 * THINKING_SECONDS)
        said = f"{self.name(CLAUDE)} asks: “{PROPOSAL}” Release 2.4 promises 3.9."
        return _shell(CODEX, f"gitmem reply {signal} --counter '{COUNTER}' -q", said)

    def end(self, asked: Asked) -> Step:
        """Codex's model, after its counter-proposal; the other tests end a little later."""
        Thread(target=self.finish_tests, args=("prices", THINKING_SECONDS)).start()
        self.over[1].set()
        return Step("The tests pass. I made a counter-proposal about 3.9.")

    def agree(self, asked: Asked) -> Step:
        """Claude Code's model, when its tests have ended."""
        signal = _heard(asked, COUNTER)
        self.caption = CAPTIONS[3]
        time.sleep(2 * THINKING_SECONDS)
        said = f"{self.name(CODEX)} answers: “{COUNTER}” I agree."
        return _shell(CLAUDE, f"gitmem reply {signal} --agree agreed -q && gitmem converged {signal}", said)

    def tell(self, asked: Asked) -> Step:
        """Claude Code's model, after the check of the agreement."""
        assert "converged: " in asked.text
        time.sleep(THINKING_SECONDS)
        self.caption = CAPTIONS[4]
        self.over[0].set()
        return Step("Yes, after 2.4: both of us agreed to that.")

    def finish_tests(self, worktree: str, seconds: float) -> None:
        """Let the tests of a worktree end after a while."""
        time.sleep(seconds)
        (self.home.home / f"{worktree}.done").touch()

    def name(self, client: Client) -> str:
        """What gitmem calls the agent."""
        found = [
            each["display_name"]
            for each in self.home.gitmem("roster")["sessions"]
            if each["client"] == client.name
        ]
        return str(found[0]) if found else ""


def _shell(client: Client, command: str, before: str = "") -> Step:
    step = client.shell(command)
    return Step(tool=step.tool, arguments=step.arguments, before=before)


def _heard(asked: Asked, message: str) -> str:
    """The id of a signal that gitmem's hook has shown to the model."""
    assert message in asked.text, f"no {message!r}: {asked.text[-2000:]}"
    return str(SIGNAL.findall(asked.text[asked.text.rindex(f"| {message}") :])[0])


class Windows:
    """Two windows of a tmux of their own, whose screens are kept as long as they change."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._tmux = ["tmux", "-S", f"{env['HOME']}/tmux", "-f", "/dev/null"]
        self._env = dict(env)
        self.screens: list[tuple[float, tuple[str, str], str]] = []

    def tmux(self, *words: str) -> str:
        """Run a command of tmux."""
        done = subprocess.run(
            [*self._tmux, *words], env=self._env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def open(self, name: str, work: Path, env: Mapping[str, str], *command: str) -> None:
        """Run a program in a new window."""
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        variables = [f"{key}={value}" for key, value in env.items()]
        self.tmux("new-session", "-d", "-s", name, *size, "-c", str(work), "env", "-i", *variables, *command)
        self.tmux("set", "-g", "status", "off")

    def type(self, name: str, line: str) -> None:
        """Type a line as a person does."""
        for key in line:
            self.tmux("send-keys", "-t", name, "-l", key)
            time.sleep(KEY_SECONDS)
        time.sleep(1)
        self.tmux("send-keys", "-t", name, "Enter")

    def dismiss_warnings(self) -> None:
        """Codex warns of a model that it does not know, and of programs that this machine may not have."""
        time.sleep(2)
        while "f2 to view" in self.plain("codex"):
            self.tmux("send-keys", "-t", "codex", "F2")
            assert until(lambda: "dismiss & close" in self.plain("codex")), self.plain("codex")
            self.tmux("send-keys", "-t", "codex", "Escape")
            assert until(lambda: "dismiss & close" not in self.plain("codex")), self.plain("codex")
            time.sleep(1)

    def plain(self, name: str) -> str:
        """Return what a window shows, as text."""
        return self.tmux("capture-pane", "-p", "-t", name)

    def screen(self, name: str) -> str:
        """Return what a window shows, with its colours."""
        return self.tmux("capture-pane", "-epN", "-t", name)

    @contextmanager
    def filmed(self, story: Story) -> Iterator[None]:
        """Keep what is seen until the context ends."""
        stop = Event()

        def look() -> None:
            while not stop.wait(FRAME_SECONDS):
                self.screens.append(
                    (time.monotonic(), (self.screen("claude"), self.screen("codex")), story.caption)
                )

        camera = Thread(target=look)
        camera.start()
        try:
            yield
        finally:
            stop.set()
            camera.join()

    def moments(self) -> list[Moment]:
        """What was seen, without what stayed equal, and without long waits."""
        found: list[Moment] = []
        for (at, screens, caption), after in zip(self.screens, [*self.screens[1:], None], strict=True):
            seconds = after[0] - at if after else END_SECONDS
            if found and (found[-1].screens, found[-1].caption) == (screens, caption):
                seconds += found.pop().seconds
            found.append(Moment(screens, caption, min(seconds, PAUSE_SECONDS_MAX) if after else END_SECONDS))
        return found


def main() -> int:
    """Play the story, and write the picture."""
    cache = Path(os.environ.get(CACHE) or ROOT / ".pytest_cache/d/clients")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Home(
            Path(folder).resolve(), Path(folder).resolve() / "shop", Path(sys.executable).parent / "gitmem"
        )
        try:
            picture = _played(home, cache)
        finally:
            home.clear()
    for private in (folder, str(ROOT), str(Path.home()), socket.gethostname(), "127.0.0.1"):
        if re.search(rf"\b{re.escape(private)}\b" if private.isalnum() else re.escape(private), picture):
            raise SystemExit(f"the picture would show {private!r}")
    size = len(picture.encode())
    if size > BYTES_MAX:
        raise SystemExit(f"{PICTURE.name} would have {size:,} bytes; at most {BYTES_MAX:,}")
    PICTURE.write_text(picture, encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {size:,} bytes")
    return 0


def _played(home: Home, cache: Path) -> str:
    """Set a repository up, start both clients, and film them."""
    home.env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    (home.work / "test_prices.py").write_text(TESTS)
    home.gitmem("setup", "--yes", "--client", CLAUDE.name, "--client", CODEX.name)
    home.git("add", "--all")
    home.git("commit", "--quiet", "-m", "Set gitmem up")
    linked = home.home / "prices"
    home.git("worktree", "add", "--quiet", str(linked))
    story = Story(home)
    windows = Windows(home.env)
    started: tuple[tuple[Client, str, Path, Model, tuple[str, ...]], ...] = (
        (
            CLAUDE,
            "claude",
            linked,
            story.asked,
            ("--verbose", "--permission-mode", "default", "--allowedTools", "Bash"),
        ),
        (CODEX, "codex", home.work, story.answers, ("-a", "never", "-s", "workspace-write")),
    )
    with serving(story.asked), serving(story.answers):
        for client, name, work, model, words in started:
            program = installed(client, cache)
            env = {**home.env, **client.variables(model.url)}
            client.prepare(program, work, home.home, env, model.url)
            windows.open(name, work, env, str(program), *words)
        assert until(lambda: "❯" in windows.plain("claude") and "Ask Codex" in windows.plain("codex"))
        time.sleep(3)
        windows.type("codex", TASK)
        assert until(lambda: story.answers.asked), windows.plain("codex")
        windows.dismiss_warnings()
        with windows.filmed(story):
            time.sleep(1.5)
            windows.type("claude", QUESTION)
            assert until(
                lambda: (
                    all(each.is_set() for each in story.over) or story.asked.trouble or story.answers.trouble
                )
            )
            time.sleep(2)
        for error in (*story.asked.trouble, *story.answers.trouble):
            raise error
        titles = [
            (brand, f"agent {story.name(client)}, worktree {work.name}")
            for brand, (client, _, work, _, _) in zip(("Claude Code", "Codex"), started, strict=True)
        ]
    return film(windows.moments(), titles, COLUMNS, ROWS, NAME, " ".join((*CAPTIONS, REMARK)), REMARK)


if __name__ == "__main__":
    sys.exit(main())
