"""The typer app: help, completion and errors. `main.py` runs the command lines that need none of them.

This module and the signatures of the functions are the only declaration of commands. `tools/compile_parser.py`
generates the parser's table from the app.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from gitmem.errors import UsageError

from . import COMPLETION
from . import shared_options as shared
from .commands.options import As, Commit, Directory, Json  # noqa: TC001  (typer evaluates the annotations of `before`)
from .render.output import write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Execute = Callable[[Callable[..., int], dict[str, Any], dict[str, Any]], int]

ABOUT = """Signals, agreement and shared memory for agents and people in one git repository.

Every record is a line on one ref of the repository; `git log gitmem/log` shows the history. Start with
`gitmem session start`, then `gitmem roster`, `gitmem signal` and `gitmem inbox`.

`git mem X` is `gitmem mem X` if the memory has a command X, otherwise `gitmem X`."""
GROUPS = {
    "session": "Start, change, end and list sessions of agents.",
    "role": "List and check the roles of agents.",
    "mem": "Create, search and maintain memory nodes that agents share.",
    "hooks": "Install and test hooks that show signals to coding agents.",
    "import": "Import the records of another tool into the log.",
    "claim": "Claim the paths that you are about to change; `gitmem claim PATH` is `gitmem claim paths PATH`.",
    "task": "List tasks, take and do them, and decide their outcome.",
    "a2a": "Serve agents to clients of the A2A protocol, and manage the tokens of these.",
    "name": "Manage the pool of display names for sessions.",
}
# The function of each command, below `commands`, in the order of first use.
COMMANDS = {
    "session start": "session:start",
    "session set": "session:change",
    "session note": "session:note",
    "session end": "session:end",
    "session list": "session:listing",
    "whoami": "session:whoami",
    "roster": "session:roster",
    "role list": "role:listing",
    "role show": "role:show",
    "role check": "role:check",
    "signal": "signal:signal",
    "reply": "signal:reply",
    "inbox": "inbox:inbox",
    "watch": "watch:watch",
    "top": "top:top",
    "thread": "history:thread",
    "show": "history:show",
    "receipts": "receipts:receipts",
    "converged": "history:converged",
    "gate": "gate:gate",
    "claim paths": "claim:paths",
    "claim list": "claim:listing",
    "claim check": "claim:check",
    "claim release": "claim:release",
    "overlap": "overlap:overlap",
    "why": "why:why",
    "call": "call:call",
    "serve-agent": "serve_agent:serve_agent",
    "delegate": "delegate:delegate",
    "handoff": "handoff:handoff",
    "task list": "task:listing",
    "task wait": "call:wait",
    "task input": "call:input",
    "task show": "task:show",
    "task tree": "task_views:tree",
    "task stats": "task_views:stats",
    "task verify": "task:verify",
    "task launch": "task_launch:launch",
    "task relaunch": "task_launch:relaunch",
    "task take": "task:take",
    "task renew": "task:renew",
    "task release": "task:release",
    "task done": "task:done",
    "task ask": "task:ask",
    "task message": "task:message",
    "task reject": "task:reject",
    "task cancel": "task:cancel",
    "task seal": "task:seal",
    "task close": "task:close",
    "mem create": "mem.nodes:create",
    "mem update": "mem.nodes:update",
    "mem relate": "mem.nodes:relate",
    "mem checkpoint": "mem.nodes:checkpoint",
    "mem show": "mem.listing:show",
    "mem list": "mem.listing:listing",
    "mem ready": "mem.listing:ready",
    "mem search": "mem.listing:search",
    "mem context": "mem.context:context",
    "mem recover": "mem.context:recover",
    "mem profile": "mem.context:profile",
    "mem promote": "mem.knowledge:promote",
    "mem summarize": "mem.knowledge:summarize",
    "mem triage": "mem.knowledge:triage",
    "mem index": "mem.knowledge:index",
    "mem archive": "mem.upkeep:archive",
    "mem cleanup": "mem.upkeep:cleanup",
    "mem delete": "mem.upkeep:delete",
    "mem export": "mem.listing:export",
    "mem access": "mem.upkeep:access",
    "log": "history:log",
    "view": "view:view",
    "stats": "view:stats",
    "sync": "sync:sync",
    "hooks install": "hooks:install",
    "hooks uninstall": "hooks:uninstall",
    "hooks status": "hooks:status",
    "hooks test": "hooks:test",
    "agents-md": "agents_md:agents_md",
    "mcp": "mcp:mcp",
    "a2a serve": "a2a:serve",
    "a2a token": "a2a:token",
    "a2a tokens": "a2a:tokens",
    "a2a revoke": "a2a:revoke",
    "import lumenflow": "importing:lumenflow",
    "init": "init:init",
    "doctor": "doctor:doctor",
    "name add": "session:add_names",
    "name remove": "session:remove_names",
    "name list": "session:list_names",
    "schema": "schema:schema",
    "completion": "completion:completion",
    "demo": "demo:demo",
    "upkeep": "upkeep:upkeep",
    "commit-waiting": "upkeep:commit_waiting",
    "note-commits": "upkeep:note_commits",
}
PROGRAM = "gitmem"
HIDDEN = ("upkeep", "commit-waiting", "note-commits")
ORDER = tuple(dict.fromkeys(path.partition(" ")[0] for path in COMMANDS))


class OrderedCommands(typer.core.TyperGroup):
    """A group that lists the commands in the order of first use."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # typer hands its own
        """Return the names of the commands, sorted by first use."""
        return sorted(self.commands, key=ORDER.index)


def before(
    ctx: typer.Context,
    directory: Directory = None,
    as_: As = None,
    json: Json = False,
    commit: Commit = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> int:
    """Handle the options before a command: print the version or the help, or keep them in `ctx.obj` for the command."""
    if version:
        from gitmem import __version__

        write_lines([f"gitmem {__version__}"])
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        if json:
            raise UsageError("Missing command before --json.", next=["gitmem --help"])
        write_lines([ctx.get_help()])
        raise typer.Exit
    ctx.obj = {"directory": directory, "as_": as_, "json": json, "commit": commit}
    return 0


# Each command has these options, too: `ctx` first, without --version.
_CONTEXT, *_COMMON = (
    each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    for name, each in inspect.signature(before, eval_str=True).parameters.items()
    if name != "version"
)


def parameters_of(body: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a command without the first, with the options of signals in the place of `**options`.

    The annotations are evaluated here, with the names of the `options` module beside the function's module.
    """
    options = import_module(".options", body.__module__.rpartition(".")[0])
    _, *own = inspect.signature(body, locals=vars(options), eval_str=True).parameters.values()
    if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD:
        position = sum(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in own)
        own[position:] = [*_signal_options(own.pop().annotation), *own[position:]]
    return own


def _signal_options(annotation: Any) -> Iterator[inspect.Parameter]:
    """Yield the parameters for `**options: Unpack[SignalOptions]`, or another class of options of signals."""
    (options,) = get_args(annotation)
    types = get_type_hints(options)
    for name, declared in shared.SIGNAL_OPTIONS.items():
        if name not in types:
            continue
        type = types[name]
        is_list = type == Sequence[str] | None
        flag = f"--{name.replace('_', '-')}"
        help = declared.help + (" May be repeated." if is_list else "")
        yield inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if type is bool else None,
            annotation=Annotated[list[str] | None if is_list else type, typer.Option(flag, metavar=declared.metavar, help=help)],
        )  # fmt: skip


def _declared(body: Callable[..., int], execute: Execute | None) -> Callable[..., int]:
    """Return a command for typer: the parameters of the function without the first, and the common options."""

    @functools.wraps(body)
    def command(*, ctx: typer.Context, **values: Any) -> int:
        assert execute is not None
        return execute(body, ctx.obj, values)

    own = (each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters_of(body))
    parameters = [_CONTEXT, *own, *_COMMON]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    del command.__wrapped__  # otherwise typer would read its annotations instead
    return command


def build(args: Sequence[str] | None = None, execute: Execute | None = None) -> typer.core.TyperGroup:
    """Build the app.

    Args:
        args: Only the groups named in them get commands: the modules of others are not imported. None: all groups.
        execute: Runs the function of a command: `main.run_command`. None if no command will run.
    """
    app = typer.Typer(
        cls=OrderedCommands,
        help=ABOUT,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(before)
    groups = {"": app}
    for group, help in GROUPS.items():
        groups[group] = typer.Typer(help=help, rich_markup_mode=None)
        app.add_typer(groups[group], name=group)
    for path, function in COMMANDS.items():
        group, _, word = path.rpartition(" ")
        if not group or args is None or group in args:
            module, _, name = function.partition(":")
            body = getattr(import_module(f".commands.{module}", __package__), name)
            groups[group].command(word, hidden=path in HIDDEN)(_declared(body, execute))
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    return root


def run(args: Sequence[str], execute: Execute) -> int:
    """Run a command line and return its exit status. Typer's own errors are raised, not printed."""
    status = build(args, execute).main(args=list(args), prog_name=PROGRAM, standalone_mode=False)
    return status if isinstance(status, int) else 0


def complete() -> int:
    """Answer a shell that asks for completions by its variables. Typer prints them and exits."""
    from typer.completion import completion_init  # type: ignore[attr-defined]  # typer calls it for its own options

    completion_init()
    build().main(args=[], prog_name=PROGRAM, standalone_mode=False)
    return 0


def completion_script(shell: str) -> str:
    """Return the script with which a shell asks for completions."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # typer has no other name for it

    return str(get_completion_script(prog_name=PROGRAM, complete_var=COMPLETION, shell=shell))
