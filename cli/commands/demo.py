"""`gitmem demo`: four agents in two clones agree, delegate, claim files and call in a temporary repository."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import threading

from gitmem.errors import GitmemError
from gitmem.outcome import Outcome, Struct, command

from ..background import program
from ..environment import MARKERS, SESSION_VARIABLES, Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

STEP_SECONDS = 60
# The user's own configuration does not reach the sandbox, and the sandbox changes nothing of the user's.
_REMOVED_PREFIXES = ("GIT_", "GITMEM_", "LUMENFLOW_", "XDG_")


class CommandRun(Outcome):
    """One command that was run."""

    where: str
    command: str
    status: int
    output: str


class Agent(Struct):
    """An agent in one of the worktrees, or with no name nobody."""

    where: str
    name: str = ""
    identity: str = ""
    session: str = ""

    @property
    def role(self) -> str:
        """The role that its identity names."""
        return self.identity.split(":")[1]


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

    def run(self, agent: Agent, typed: str, *, status: int = 0, shown: bool = True) -> str:
        """Run git or gitmem as an agent, show the command and its output, and return the output.

        Args:
            typed: The command, as a person would type it.
            status: The expected exit status.
            shown: Whether the reader sees it.

        Raises:
            GitmemError: It ended with another status.
        """
        session = {"GITMEM_SESSION": agent.session} if agent.session else {}
        try:
            done = subprocess.run(
                _words(typed),
                cwd=self.path(agent.where),
                env={**self.environment, **session},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=STEP_SECONDS,
                check=False,
            )
            step = CommandRun(
                agent.where, typed, done.returncode, done.stdout.decode("utf-8", "replace").rstrip()
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            step = CommandRun(agent.where, typed, -1, str(error))
        self._note(step, agent, shown=shown)
        if step.status != status:
            raise self._failed(step, f"exited with {step.status}, not {status}")
        return step.output

    @contextlib.contextmanager
    def in_background(self, agent: Agent, typed: str) -> Iterator[None]:
        """Show a command of gitmem that runs on, wait until it has said its first line, and end it afterwards.

        Raises:
            GitmemError: It ended, or said nothing for `STEP_SECONDS`.
        """
        child = subprocess.Popen(
            _words(typed), cwd=self.path(agent.where), env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        limit = threading.Timer(STEP_SECONDS, child.kill)
        limit.start()
        try:
            assert child.stderr is not None
            step = CommandRun(agent.where, f"{typed} &", 0, child.stderr.readline().decode().rstrip())
            limit.cancel()
            self._note(step, agent)
            if not step.output or child.poll() is not None:
                raise self._failed(step, "ended before its first line")
            yield
        finally:
            limit.cancel()
            child.terminate()
            child.communicate()

    def _failed(self, step: CommandRun, what: str) -> GitmemError:
        project = self.path("project")
        return GitmemError(
            f"The demo failed: `{step.command}` in {step.where} {what}: {step.output}",
            hint=f"It ran in {self.folder}, which stays.",
            code="demo-failed",
            next=[command("gitmem", "-C", project, "doctor") if os.path.isdir(project) else "gitmem demo"],
        )

    def _note(self, step: CommandRun, agent: Agent, *, shown: bool = True) -> None:
        self.steps.append(step)
        if shown:
            seen = [line for line in step.output.splitlines() if not line.startswith("next:")]
            lines = [f"    {line}".rstrip() for line in "\n".join(seen).rstrip().split("\n") if seen]
            status = [f"    (exit {step.status})"] if step.status else []
            self.show([f"{step.where} {agent.name}".rstrip() + f"$ {step.command}", *lines, *status])


def _words(typed: str) -> list[str]:
    first, *words = shlex.split(typed)
    return [*program(), *words] if first == "gitmem" else [first, *words]


def _environment(folder: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_REMOVED_PREFIXES) and name not in (*SESSION_VARIABLES, *dict(MARKERS))
    }
    home = os.path.join(folder, "home")
    os.makedirs(home, exist_ok=True)
    # Only for the commit of the README: gitmem works without a git identity.
    names = {f"GIT_{who}_NAME": "Demo" for who in ("AUTHOR", "COMMITTER")}
    addresses = {f"GIT_{who}_EMAIL": "demo@localhost" for who in ("AUTHOR", "COMMITTER")}
    return {
        **kept,
        "HOME": home,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "NO_COLOR": "1",
        **names,
        **addresses,
    }


PAGE = "page.html"


def demo(at: Environment) -> None:
    """Run a demo in a temporary repository, which stays: propose, agree, reject, sync, delegate, claim, call."""
    import tempfile

    folder = tempfile.mkdtemp(prefix="gitmem-demo-")
    sandbox = Sandbox(folder, (lambda lines: None) if at.json else output.write_lines)
    page = sandbox.path(PAGE)
    _build(sandbox)
    graph = _run_steps(sandbox)
    next_commands = _next_commands(sandbox.path("project"))
    if at.json:
        answer = {
            "steps": sandbox.steps, "log": graph.splitlines(), "folder": folder, "page": page, "next": next_commands,
        }  # fmt: skip
        output.write_json(answer)
    else:
        output.write_lines(
            [
                "",
                f"All of it in one page, for your browser: {page}",
                f"Look around in {folder}, and delete it when you like.",
                "To start in your own repository: gitmem setup",
                *(f"next: {each}" for each in next_commands),
            ]
        )


def _next_commands(project: str) -> list[str]:
    """Return commands that work in the reader's folder and write nothing there.

    Args:
        project: The folder of the demo's project.
    """
    import sys

    program = "gitmem"
    if os.path.basename(sys.prefix) == ".venv":  # perhaps not active
        program = os.path.relpath(os.path.join(sys.prefix, "bin", "gitmem"))
    return [command(program, "-C", project, "log"), command(program, "--help")]


def _build(sandbox: Sandbox) -> None:
    """Create one project with a remote, two linked worktrees and a second clone."""
    sandbox.show(["# A project with two worktrees, its remote, and a clone on another machine", ""])
    above, project = Agent("."), Agent("project")
    hub = shlex.quote(sandbox.path("hub.git"))
    sandbox.run(above, "git init --quiet --bare --initial-branch=main hub.git", shown=False)
    sandbox.run(above, "git init --quiet --initial-branch=main project", shown=False)
    with open(sandbox.path("project/README.md"), "w", encoding="utf-8") as file:
        file.write("# The shop\n")
    for typed in (
        "git add README.md",
        "git commit --quiet --message='Start the shop'",
        f"git remote add origin {hub}",
        "git push --quiet --set-upstream origin main",
        "git worktree add --quiet -b prices ../prices",
        "git worktree add --quiet -b import ../import",
    ):
        sandbox.run(project, typed, shown=False)
    sandbox.run(above, f"git clone --quiet {hub} laptop", shown=False)


def _run_steps(sandbox: Sandbox) -> str:
    """Run the agents' commands; return the git log that the demo ends with."""
    run = sandbox.run
    planck = Agent("project", "Planck", "demo:architect:shop")
    curie = Agent("prices", "Curie", "demo:implementer:prices")
    gauss = Agent("import", "Gauss", "demo:implementer:import")
    noether = Agent("laptop", "Noether", "demo:reviewer:shop")
    for agent in (planck, curie, gauss, noether):
        role = f" --role {agent.role}" if agent is gauss else ""
        typed = f"gitmem session start --name {agent.name} --agent-identity {agent.identity}{role}"
        agent.session = run(agent, typed).rpartition("GITMEM_SESSION=")[2].strip()
    sandbox.show(["", "# Two machines share one log through their existing remote"])
    run(planck, "gitmem sync --publish")
    run(noether, "gitmem sync --publish")
    run(planck, "gitmem sync")
    run(planck, "gitmem roster")

    sandbox.show(["", "# Planck proposes to two agents, one of them in another clone"])
    said = run(
        planck,
        'gitmem signal "Put the price rules behind one interface?" --to Curie,Noether --intent propose --requires-ack --wu WU-7 -q',
    )
    proposal = said.splitlines()[-1]
    run(curie, "gitmem inbox")
    run(curie, f'gitmem reply {proposal} "Yes, I can do that today." --agree')
    run(
        gauss,
        'gitmem signal "WU-7 touches the import job; I will not change it until you agree." --broadcast',
    )
    run(planck, "gitmem sync")

    sandbox.show(["", "# Noether, on the laptop, sees a problem"])
    run(noether, "gitmem sync")
    run(noether, "gitmem inbox")
    run(noether, f'gitmem reply {proposal} "The import job still calls the old rules." --reject --sync')
    run(planck, "gitmem sync")
    run(planck, f"gitmem converged {proposal}", status=1)
    run(planck, "gitmem inbox")

    sandbox.show(["", "# A counter-proposal that both accept"])
    said = run(
        planck,
        f'gitmem signal "Keep the old entry point for one release?" --reply-to {proposal} --to Curie,Noether --intent counter --requires-ack --sync -q',
    )
    counter = said.splitlines()[-1]
    run(curie, f"gitmem reply {counter} Agreed. --agree")
    run(noether, "gitmem sync")
    run(noether, f'gitmem reply {counter} "Agreed, that closes it." --agree --sync')
    run(planck, "gitmem sync")
    run(planck, f"gitmem converged {counter}")
    _delegate_and_claim(sandbox, planck, gauss, noether.role)

    sandbox.show(
        ["", "# Planck calls another agent, and hands over a decision; here grep answers in place of a model"]
    )
    run(
        planck,
        'gitmem mem create "Round once per line, as invoices do" --tag decision --lifecycle project',
    )
    with sandbox.in_background(Agent("prices"), 'gitmem serve-agent rules --exec "grep -i round"'):
        run(planck, 'gitmem call rules "How is it rounded?" --with-memory --timeout 30s')

    sandbox.show(["", "# Every record is in git"])
    graph = run(Agent("project"), 'git log --graph "--format=%h %s" refs/gitmem/log --')
    sandbox.show(["", "# What everybody said and did, in one page"])
    run(planck, f"gitmem view --out ../{PAGE}")
    return graph


def _delegate_and_claim(sandbox: Sandbox, planck: Agent, gauss: Agent, role: str) -> None:
    """Delegate to an agent with another role, and stop its commit of a file that somebody else has claimed."""
    sandbox.show(["", "# Planck delegates; who takes the task has another role, which both see"])
    said = sandbox.run(
        planck, f'gitmem delegate "Review the new price rules" --to Gauss --role {role} --wu WU-7 -q'
    )
    sandbox.run(gauss, f"gitmem task take {said.splitlines()[-1]}")
    sandbox.run(planck, "gitmem task list")
    sandbox.show(["", "# Planck claims a file; a hook refuses Gauss's commit of it"])
    sandbox.run(planck, "gitmem setup --git pre-commit")
    sandbox.run(planck, 'gitmem claim README.md --for 2h --reason "new title"')
    with open(sandbox.path("import/README.md"), "a", encoding="utf-8") as file:
        file.write("Prices are in euros.\n")
    sandbox.run(gauss, 'git commit --quiet --all "--message=Name the currency"', status=1)
