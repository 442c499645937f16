"""`gitmem demo`: four agents in two clones agree, delegate, claim files and call in a temporary repository."""

from __future__ import annotations

import os

from ..demo_sandbox import Agent, Sandbox
from ..environment import Environment
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

PAGE = "page.html"
LOG_ARGUMENTS = ("log", "--graph", "--format=%h %s", "refs/gitmem/log", "--")


def demo(
    at: Environment,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the demo folder.")] = False,
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
                "To start in your own repository: gitmem session start",
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
    sandbox.gitmem(planck, "hooks", "install", "--git", "pre-commit")
    sandbox.gitmem(planck, "claim", "README.md", "--for", "2h", "--reason", "new title")
    sandbox.commit(gauss, "README.md", "Prices are in euros.", "Name the currency", status=1)


def _call(sandbox: Sandbox, planck: Agent, *, worktree: str) -> None:
    """Call an agent that a program serves in another worktree, and hand over what the caller knows."""
    sandbox.show(
        ["", "# Planck calls another agent, and hands over a decision; here grep answers in place of a model"]
    )
    sandbox.gitmem(
        planck, "mem", "create", "Round once per line, as invoices do", "--tag", "decision", "--wu", "WU-7"
    )
    with sandbox.in_background(worktree, "serve-agent", "rules", "--exec", "grep -i round"):
        sandbox.gitmem(
            planck, "call", "rules", "How is it rounded?", "--with-memory", "--memory-query", "round invoices",
            "--timeout", "30s",
        )  # fmt: skip


def _start(sandbox: Sandbox, agent: Agent, *options: str) -> None:
    """Start an agent's session."""
    printed = sandbox.gitmem(
        agent, "session", "start", "--name", agent.name, "--agent-identity", agent.identity, *options
    )
    agent.session = printed.rpartition("GITMEM_SESSION=")[2].strip()
