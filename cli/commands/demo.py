"""`gitmem demo`: four agents in two clones agree, delegate, claim files and call in a temporary repository."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

from gitmem.errors import GitmemError
from gitmem.outcome import Outcome, Struct

from ..background import program
from ..environment import MARKERS, SESSION_VARIABLES, Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Annotated

    from .options import Flag


STEP_SECONDS = 60
# The user's own configuration does not reach the sandbox, and the sandbox changes nothing of the user's.
_REMOVED_PREFIXES = ("GIT_", "GITMEM_", "LUMENFLOW_", "XDG_")


class CommandRun(Outcome):
    """One command that was run."""

    where: str
    command: str
    status: int
    output: str


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


class Agent(Struct):
    """An agent in one of the worktrees."""

    name: str
    where: str
    identity: str
    session: str = ""

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


PAGE = "page.html"
LOG_ARGUMENTS = ("log", "--graph", "--format=%h %s", "refs/gitmem/log", "--")


def demo(
    at: Environment,
    keep: Annotated[bool, Flag("--keep", "Keep the demo folder.")] = False,
) -> None:
    """Run a demo in a temporary repository: propose, agree, reject, sync, delegate, claim, call."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="gitmem-demo-")
    sandbox = Sandbox(folder, (lambda lines: None) if at.json else output.write_lines)
    page = sandbox.path(PAGE)
    try:
        _build(sandbox)
        graph = _run_steps(sandbox)
        if not keep:
            page = shutil.move(page, f"{folder}.html")
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    next_commands = _next_commands(sandbox.path("project") if keep else None)
    if at.json:
        kept = folder if keep else None
        answer = {
            "steps": sandbox.steps, "log": graph.splitlines(), "folder": kept, "page": page, "next": next_commands,
        }  # fmt: skip
        output.write_json(answer)
    else:
        output.write_lines(
            [
                "",
                *([f"Demo files kept in {folder}"] if keep else []),
                f"All of it in one page, for your browser: {page}",
                "To start in your own repository: gitmem setup",
                *(f"next: {each}" for each in next_commands),
            ]
        )


def _next_commands(kept: str | None) -> list[str]:
    """Return commands that work in the reader's folder and write nothing there.

    Args:
        kept: The folder of the demo's project; None if it was deleted.
    """
    import sys

    from gitmem.outcome import command

    program = "gitmem"
    found: list[str] = []
    if os.path.basename(sys.prefix) == ".venv":  # run from a checkout: `gitmem` is not on PATH
        checkout = os.path.dirname(sys.prefix)
        if os.path.isfile(os.path.join(checkout, "cli", "app.py")):
            found.append(command("pipx", "install", os.path.relpath(checkout)))
        else:
            found.append("pipx install gitmem-coord")
        program = os.path.relpath(os.path.join(sys.prefix, "bin", "gitmem"))
    if kept:
        found.insert(0, command(program, "-C", kept, "log"))
    else:
        found.append(command(program, "demo", "--keep"))
    return [*found, command(program, "--help")][: output.NEXT_MAX]


def _build(sandbox: Sandbox) -> None:
    """Create one project with a remote, two linked worktrees and a second clone."""
    sandbox.show(["# A project with two worktrees, its remote, and a clone on another machine", ""])
    sandbox.git(".", "init", "--quiet", "--bare", "--initial-branch=main", "hub.git")
    sandbox.git(".", "init", "--quiet", "--initial-branch=main", "project")
    with open(os.path.join(sandbox.path("project"), "README.md"), "w", encoding="utf-8") as file:
        file.write("# The shop\n")
    sandbox.git("project", "add", "README.md")
    sandbox.git("project", "commit", "--quiet", "--message=Start the shop")
    sandbox.git("project", "remote", "add", "origin", sandbox.path("hub.git"))
    sandbox.git("project", "push", "--quiet", "--set-upstream", "origin", "main")
    sandbox.git("project", "worktree", "add", "--quiet", "-b", "prices", "../prices")
    sandbox.git("project", "worktree", "add", "--quiet", "-b", "import", "../import")
    sandbox.git(".", "clone", "--quiet", sandbox.path("hub.git"), "laptop")


def _run_steps(sandbox: Sandbox) -> str:
    """Run the agents' commands; return the git log that the demo ends with."""
    planck = Agent("Planck", "project", "demo:architect:shop")
    curie = Agent("Curie", "prices", "demo:implementer:prices")
    gauss = Agent("Gauss", "import", "demo:implementer:import")
    noether = Agent("Noether", "laptop", "demo:reviewer:shop")
    for agent in (planck, curie, gauss, noether):
        _start(sandbox, agent, *(["--role", _role(gauss)] if agent is gauss else []))
    sandbox.show(["", "# Two machines share one log through their existing remote"])
    sandbox.gitmem(planck, "sync", "--publish")
    sandbox.gitmem(noether, "sync", "--publish")
    sandbox.gitmem(planck, "sync")
    sandbox.gitmem(planck, "roster")

    sandbox.show(["", "# Planck proposes to two agents, one of them in another clone"])
    printed = sandbox.gitmem(
        planck, "signal", "Put the price rules behind one interface?", "--to", "Curie,Noether", "--intent",
        "propose", "--requires-ack", "--wu", "WU-7", "-q",
    )  # fmt: skip
    proposal = printed.splitlines()[-1]
    sandbox.gitmem(curie, "inbox")
    sandbox.gitmem(curie, "reply", proposal, "Yes, I can do that today.", "--agree")
    sandbox.gitmem(
        gauss, "signal", "WU-7 touches the import job; I will not change it until you agree.", "--broadcast"
    )
    sandbox.gitmem(planck, "sync")

    sandbox.show(["", "# Noether, on the laptop, sees a problem"])
    sandbox.gitmem(noether, "sync")
    sandbox.gitmem(noether, "inbox")
    sandbox.gitmem(
        noether, "reply", proposal, "The import job still calls the old rules.", "--reject", "--sync"
    )
    sandbox.gitmem(planck, "sync")
    sandbox.gitmem(planck, "converged", proposal, status=1)
    sandbox.gitmem(planck, "inbox")

    sandbox.show(["", "# A counter-proposal that both accept"])
    printed = sandbox.gitmem(
        planck, "signal", "Keep the old entry point for one release?", "--reply-to", proposal, "--to",
        "Curie,Noether", "--intent", "counter", "--requires-ack", "--sync", "-q",
    )  # fmt: skip
    counter = printed.splitlines()[-1]
    sandbox.gitmem(curie, "reply", counter, "Agreed.", "--agree")
    sandbox.gitmem(noether, "sync")
    sandbox.gitmem(noether, "reply", counter, "Agreed, that closes it.", "--agree", "--sync")
    sandbox.gitmem(planck, "sync")
    sandbox.gitmem(planck, "converged", counter)
    _delegate_and_claim(sandbox, planck, gauss, role=_role(noether))
    _call(sandbox, planck, worktree=curie.where)

    sandbox.show(["", "# Every record is in git"])
    graph = sandbox.git("project", *LOG_ARGUMENTS, quiet=False)
    sandbox.show(["", "# What everybody said and did, in one page"])
    sandbox.gitmem(planck, "view", "--out", f"../{PAGE}")
    return graph


def _role(agent: Agent) -> str:
    """Return the role that an agent's identity names."""
    return agent.identity.split(":")[1]


def _delegate_and_claim(sandbox: Sandbox, planck: Agent, gauss: Agent, *, role: str) -> None:
    """Delegate to an agent with another role, and stop its commit of a file that somebody else has claimed."""
    sandbox.show(["", "# Planck delegates; who takes the task has another role, which both see"])
    printed = sandbox.gitmem(
        planck, "delegate", "Review the new price rules", "--to", "Gauss", "--role", role, "--wu", "WU-7", "-q"
    )  # fmt: skip
    sandbox.gitmem(gauss, "task", "take", printed.splitlines()[-1])
    sandbox.gitmem(planck, "task", "list")
    sandbox.show(["", "# Planck claims a file; a hook refuses Gauss's commit of it"])
    sandbox.gitmem(planck, "setup", "--git", "pre-commit")
    sandbox.gitmem(planck, "claim", "README.md", "--for", "2h", "--reason", "new title")
    sandbox.commit(gauss, "README.md", "Prices are in euros.", "Name the currency", status=1)


def _call(sandbox: Sandbox, planck: Agent, *, worktree: str) -> None:
    """Call an agent that a program serves in another worktree, and hand over what the caller knows."""
    sandbox.show(
        ["", "# Planck calls another agent, and hands over a decision; here grep answers in place of a model"]
    )
    sandbox.gitmem(
        planck,
        "mem",
        "create",
        "Round once per line, as invoices do",
        "--tag",
        "decision",
        "--lifecycle",
        "project",
    )
    with sandbox.in_background(worktree, "serve-agent", "rules", "--exec", "grep -i round"):
        sandbox.gitmem(planck, "call", "rules", "How is it rounded?", "--with-memory", "--timeout", "30s")


def _start(sandbox: Sandbox, agent: Agent, *options: str) -> None:
    """Start an agent's session."""
    printed = sandbox.gitmem(
        agent, "session", "start", "--name", agent.name, "--agent-identity", agent.identity, *options
    )
    agent.session = printed.rpartition("GITMEM_SESSION=")[2].strip()
