"""The sandbox of `gitmem demo`: a temporary project, remote, worktrees and clone, where agents run real commands."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

from gitmem.errors import GitmemError
from gitmem.outcome import Outcome

from .background import program
from .environment import MARKERS, SESSION_VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

STEP_SECONDS = 60
# The user's own configuration does not reach the sandbox, and the sandbox changes nothing of the user's.
_REMOVED_PREFIXES = ("GIT_", "GITMEM_", "LUMENFLOW_", "XDG_")


class CommandRun(Outcome):
    """One command that was run."""

    def __init__(self, where: str, command: str, status: int, output: str) -> None:
        self.where = where
        self.command = command
        self.status = status
        self.output = output


class Sandbox:
    """The folders of the demo, and its steps so far.

    Args:
        folder: An empty folder.
        show: Receives the lines for the reader as they are produced.
    """

    def __init__(self, folder: str, show: Callable[[Sequence[str]], object]) -> None:
        self.folder = folder
        self.show = show
        self.steps: list[CommandRun] = []
        self.environment = _environment(folder)

    def path(self, name: str) -> str:
        """Return the path of a file or folder in the demo's folder."""
        return os.path.join(self.folder, name)

    def git(self, where: str, *args: str, quiet: bool = True) -> str:
        """Run git in a folder of the demo; return its output."""
        step = self._run(where, ["git", *args], "git " + shown(args), {}, 0)
        if not quiet:
            self._show_step(step)
        return step.output

    def commit(self, agent: Agent, path: str, text: str, message: str, *, status: int = 0) -> None:
        """Add a line to a file of an agent's worktree and commit it, as the agent; show the command and its output."""
        with open(os.path.join(self.path(agent.where), path), "a", encoding="utf-8") as file:
            file.write(text + "\n")
        args = ["commit", "--quiet", "--all", f"--message={message}"]
        step = self._run(agent.where, ["git", *args], "git " + shown(args), agent.environment(), status)
        self._show_step(step, agent.name)

    def gitmem(self, agent: Agent, *args: str, status: int = 0) -> str:
        """Run gitmem as an agent, show the command and its output, and return the output.

        Args:
            status: The expected exit status.
        """
        command = [*program(), *args]
        step = self._run(agent.where, command, "gitmem " + shown(args), agent.environment(), status)
        self._show_step(step, agent.name)
        return step.output

    @contextlib.contextmanager
    def in_background(self, where: str, *args: str) -> Iterator[None]:
        """Show a command of gitmem that runs on, wait until it has said its first line, and end it afterwards.

        Raises:
            GitmemError: It ended, or said nothing for `STEP_SECONDS`.
        """
        typed = "gitmem " + shown(args) + " &"
        child = subprocess.Popen(
            [*program(), *args], cwd=self.path(where), env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        limit = threading.Timer(STEP_SECONDS, child.kill)
        limit.start()
        try:
            assert child.stderr is not None
            first = child.stderr.readline().decode("utf-8", "replace").rstrip()
            limit.cancel()
            step = CommandRun(where, typed, 0, first)
            self.steps.append(step)
            if not first or child.poll() is not None:
                raise _failed(step.command, where, "ended before its first line", first)
            self._show_step(step)
            yield
        finally:
            limit.cancel()
            child.terminate()
            try:
                child.communicate(timeout=STEP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()

    def _run(
        self, where: str, command: Sequence[str], typed: str, more: dict[str, str], status: int
    ) -> CommandRun:
        try:
            done = subprocess.run(
                command,
                cwd=self.path(where),
                env={**self.environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=STEP_SECONDS,
                check=False,
            )
            found, output = done.returncode, done.stdout.decode("utf-8", "replace").rstrip()
        except (OSError, subprocess.TimeoutExpired) as error:
            found, output = -1, str(error)
        step = CommandRun(where, typed, found, output)
        self.steps.append(step)
        if found != status:
            raise _failed(typed, where, f"exited with {found}, not {status}", output)
        return step

    def _show_step(self, step: CommandRun, name: str = "") -> None:
        lines = [f"{step.where} {name}$ {step.command}" if name else f"{step.where}$ {step.command}"]
        seen = [line for line in step.output.splitlines() if not line.startswith("next:")]
        lines += [f"    {line}".rstrip() for line in "\n".join(seen).rstrip().split("\n") if seen]
        if step.status:
            lines.append(f"    (exit {step.status})")
        self.show(lines)


class Agent:
    """An agent in one of the worktrees."""

    def __init__(self, name: str, where: str, identity: str) -> None:
        self.name = name
        self.where = where
        self.identity = identity
        self.session = ""

    def environment(self) -> dict[str, str]:
        """Return the variables that select the agent's session."""
        return {"GITMEM_SESSION": self.session} if self.session else {}


def _failed(typed: str, where: str, what: str, output: str) -> GitmemError:
    return GitmemError(
        f"The demo failed: `{typed}` in {where} {what}: {output}",
        hint="It ran in a temporary folder; --keep keeps that folder.",
        code="demo-failed",
        next=["gitmem demo --keep"],
    )


def shown(args: Sequence[str]) -> str:
    """Return arguments as a person would type them."""
    from gitmem.outcome import quote

    return " ".join(f'"{arg}"' if " " in arg and not set(arg) & set('"$`\\') else quote(arg) for arg in args)


def _environment(folder: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_REMOVED_PREFIXES) and name not in (*SESSION_VARIABLES, *dict(MARKERS))
    }
    home = os.path.join(folder, "home")
    os.makedirs(home, exist_ok=True)
    kept.update(
        {
            "HOME": home,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "NO_COLOR": "1",
            # Only for the commit of the README: gitmem works without a git identity.
            "GIT_AUTHOR_NAME": "Demo",
            "GIT_AUTHOR_EMAIL": "demo@localhost",
            "GIT_COMMITTER_NAME": "Demo",
            "GIT_COMMITTER_EMAIL": "demo@localhost",
        }
    )
    return kept
