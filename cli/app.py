"""The typer app: the commands by name, and the options that may stand before them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gitmem.errors import UsageError

from .commands import (
    agents_md,
    converged,
    demo,
    doctor,
    gate,
    hooks,
    importing,
    inbox,
    init,
    log,
    mcp,
    name,
    roster,
    schema,
    session,
    signal,
    sync,
    thread,
    upkeep,
    watch,
)
from .options import As, Before, Directory, Json, with_common
from .render.show import say_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ORDER = (
    "session", "whoami", "roster", "signal", "reply", "inbox", "watch", "thread", "show", "converged", "gate", "mem", "log", "sync",
    "hooks", "agents-md", "mcp",
    "import", "init", "doctor", "name", "schema", "demo", "upkeep",
)  # fmt: skip
ABOUT = """Agents and people who share a git repository signal each other, agree and remember.

Everything is a line on one ref of the repository: `git log gitmem/log` tells the story. Start with
`gitmem session start`, then `gitmem roster`, `gitmem signal` and `gitmem inbox`."""


class Ordered(typer.core.TyperGroup):
    """Lists the commands in the order in which one meets them."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # typer hands its own
        return sorted(self.commands, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    name="gitmem",
    cls=Ordered,
    help=ABOUT,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def before(
    ctx: typer.Context,
    directory: Directory = None,
    as_: As = None,
    json: Json = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> int:
    if version:
        from gitmem import __version__

        say_lines([f"gitmem {__version__}"])
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        if json:
            raise UsageError("There is no command to answer with JSON.", next=["gitmem --help"])
        say_lines([ctx.get_help()])
        raise typer.Exit
    ctx.obj = Before(directory, as_, json)
    return 0


def _add(to: typer.Typer, body: Callable[..., int], name: str | None = None, *, hidden: bool = False) -> None:
    to.command(name or body.__name__, hidden=hidden)(with_common(body))


def _group(name: str, help: str, *bodies: tuple[str, Callable[..., int]]) -> None:
    group = typer.Typer(help=help, rich_markup_mode=None)
    for command, body in bodies:
        _add(group, body, command)
    app.add_typer(group, name=name)


_group(
    "session",
    "Start, change, end and list sessions of agents.",
    ("start", session.start),
    ("set", session.change),
    ("note", session.note),
    ("end", session.end),
    ("list", session.listing),
)
_add(app, roster.whoami)
_add(app, roster.roster)
_add(app, signal.signal)
_add(app, signal.reply)
_add(app, inbox.inbox)
_add(app, watch.watch)
_add(app, thread.thread)
_add(app, thread.show)
_add(app, converged.converged)
_add(app, gate.gate)
_add(app, log.log)
_add(app, sync.sync)
_group(
    "hooks",
    "Have coding agents see signals by themselves.",
    ("install", hooks.install),
    ("uninstall", hooks.uninstall),
    ("status", hooks.status),
    ("test", hooks.test),
)
_add(app, agents_md.agents_md, "agents-md")
_add(app, mcp.mcp)
_group(
    "import",
    "Bring what another tool remembers into the log.",
    ("lumenflow", importing.lumenflow),
)
_add(app, init.init)
_add(app, doctor.doctor)
_group(
    "name",
    "The names that sessions get.",
    ("add", name.add),
    ("remove", name.remove),
    ("list", name.listing),
)
_add(app, schema.schema)
_add(app, demo.demo)
_add(app, upkeep.upkeep, hidden=True)


class InOrder(typer.core.TyperGroup):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # typer hands its own
        return list(self.commands)


memory = typer.Typer(
    cls=InOrder,
    help="Remember, look up, hand on: notes of agents, with the code they are about.",
    rich_markup_mode=None,
)
app.add_typer(memory, name="mem")


def _add_memory() -> None:
    """Its commands are half of all: they are imported where one of them is meant."""
    from .commands.mem import COMMANDS

    for word, body in COMMANDS if not memory.registered_commands else ():
        _add(memory, body, word)


def run(args: Sequence[str]) -> int:
    """Run a command line; its exit status. Typer's own errors are raised, not printed."""
    if "mem" in args:
        _add_memory()
    status = typer.main.get_command(app).main(args=list(args), prog_name="gitmem", standalone_mode=False)
    return status if isinstance(status, int) else 0
