"""The typer app: this module and the signatures of the functions are the only declaration of commands.

`tools/compile_all.py` generates the parser's table, the help, the reference and the man page from it; only a shell's
completion needs it when gitmem runs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from . import COMPLETION
from .commands import options
from .commands.options import As, Commit, Directory, Json  # noqa: TC001  (typer evaluates the annotations of `before`)
from .parser import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Execute = Callable[[Callable[..., int], dict[str, Any], dict[str, Any]], int]

ABOUT = "Agents and people in one git repository: messages, agreement, work, memory."
BEGIN = {
    "gitmem setup": "once in a repository: connect your agents",
    "gitmem roster": "who waits for whom, and who is here",
    "gitmem signal 'Hello' --broadcast": "say something to everybody",
}
# The first screen of help: what each of its commands is for.
FIRST = {
    "Start": {
        "setup": "set up this repository and your agents",
        "roster": "who waits for whom, who is here, and on what",
    },
    "Talk": {
        "signal": "send a message to agents, or to everybody",
        "inbox": "show your unread messages",
        "reply": "answer one: agree, reject or counter a proposal",
        "converged": "exit with 0 once all have agreed to a proposal",
    },
    "Work": {
        "claim": "say which files you are about to change",
        "delegate": "ask an agent for work; `gitmem task` takes and does it",
    },
    "Remember": {"mem": "findings that agents share: create, search, context"},
    "Share, look": {
        "sync": "exchange records with the remote",
        "view": "see all of it in a browser",
        "doctor": "check everything, and repair it",
    },
}
# All commands, each in one group.
TOPICS = {
    "Start": ("setup", "remove", "session", "roster", "role", "trust"),
    "Talk": ("signal", "inbox", "reply", "converged", "thread", "show", "receipts", "watch", "gate", "call"),
    "Work": ("claim", "delegate", "task", "handoff", "overlap", "why", "serve-agent", "a2a"),
    "Remember": ("mem", "forget", "import"),
    "Share, look": ("sync", "view", "top", "log", "doctor", "verify"),
    "Connect": ("mcp", "schema", "completion", "demo"),
}
GROUPS = {
    "session": "Start, change, end and list sessions of agents.",
    "mem": "Create, search and maintain memory nodes that agents share.",
    "claim": "Claim the paths that you are about to change; `gitmem claim PATH` is `gitmem claim paths PATH`.",
    "task": "List tasks, take and do them, and decide their outcome.",
    "a2a": "Serve agents to clients of the A2A protocol, and manage the tokens of these.",
}
# The function of each command, below `commands`, in the order of first use.
COMMANDS = {
    "session start": "sessions:start",
    "session set": "sessions:change",
    "session note": "sessions:note",
    "session end": "sessions:end",
    "whoami": "sessions:whoami",
    "trust": "sessions:trust",
    "roster": "sessions:roster",
    "role": "sessions:role",
    "signal": "signals:signal",
    "reply": "signals:reply",
    "inbox": "signals:inbox",
    "watch": "watch:watch",
    "top": "view:top",
    "thread": "threads:thread",
    "show": "threads:show",
    "receipts": "threads:receipts",
    "converged": "threads:converged",
    "gate": "threads:gate",
    "claim paths": "claims:paths",
    "claim list": "claims:listing",
    "claim release": "claims:release",
    "overlap": "claims:overlap",
    "why": "claims:why",
    "call": "calls:call",
    "serve-agent": "calls:serve_agent",
    "delegate": "tasks:delegate",
    "handoff": "tasks:handoff",
    "task list": "tasks:listing",
    "task wait": "calls:wait",
    "task show": "tasks:show",
    "task launch": "tasks:launch",
    "task take": "tasks:take",
    "task release": "tasks:release",
    "task done": "tasks:done",
    "task message": "tasks:message",
    "task accept": "tasks:accept",
    "task reject": "tasks:reject",
    "task cancel": "tasks:cancel",
    "mem create": "memory:create",
    "mem update": "memory:update",
    "mem relate": "memory:relate",
    "mem checkpoint": "memory:checkpoint",
    "mem list": "memory:listing",
    "mem ready": "memory:ready",
    "mem search": "memory:search",
    "mem context": "memory:context",
    "mem recover": "memory:recover",
    "mem profile": "memory:profile",
    "mem promote": "memory:promote",
    "mem summarize": "memory:summarize",
    "mem triage": "memory:triage",
    "mem index": "memory:index",
    "mem archive": "memory:archive",
    "mem cleanup": "memory:cleanup",
    "mem delete": "memory:delete",
    "mem export": "memory:export",
    "forget": "threads:forget",
    "log": "threads:log",
    "view": "view:view",
    "sync": "repository:sync",
    "mcp": "setup:mcp",
    "a2a serve": "calls:a2a_serve",
    "a2a token": "calls:token",
    "import": "repository:import_",
    "setup": "setup:setup",
    "remove": "setup:remove",
    "doctor": "repository:doctor",
    "verify": "repository:verify",
    "schema": "repository:schema",
    "completion": "repository:completion",
    "demo": "demo:demo",
    "background": "repository:background",
}
PROGRAM = "gitmem"


class OrderedCommands(typer.core.TyperGroup):
    """A group that lists the commands in the order of first use."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # typer hands its own
        """Return the names of the commands, sorted by first use."""
        order = dict.fromkeys(path.partition(" ")[0] for path in COMMANDS)
        return sorted(self.commands, key=[*order].index)


def before(
    ctx: typer.Context,
    directory: Directory = None,
    as_: As = None,
    json: Json = False,
    commit: Commit = False,
) -> None:
    """Keep the options before a command in `ctx.obj` for it."""
    ctx.obj = {"directory": directory, "as_": as_, "json": json, "commit": commit}


# Each command has these options, too: `ctx` first.
_CONTEXT, *_COMMON = (
    each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    for each in inspect.signature(before, eval_str=True).parameters.values()
)


def parameters_of(body: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a command without the first, with the options of signals in the place of `**options`.

    The annotations are evaluated here, with the names of `commands.options`.
    """
    _, *own = inspect.signature(body, locals=vars(options), eval_str=True).parameters.values()
    if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD:
        position = sum(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in own)
        own[position:] = [*_signal_options(own.pop().annotation), *own[position:]]
    return own


def _signal_options(annotation: Any) -> Iterator[inspect.Parameter]:
    """Yield the parameters for `**options: Unpack[SignalOptions]`, or another class of options of signals."""
    types = get_type_hints(*get_args(annotation))
    for name, declared in options.SIGNAL_OPTIONS.items():
        if name in types:
            is_list = types[name] == Sequence[str] | None
            type = list[str] | None if is_list else bool if types[name] is bool else str | None
            help = declared.help + (" May be repeated." if is_list else "")
            option = options.Option(declared.flags, declared.metavar, help)
            yield inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if type is bool else None,
                annotation=Annotated[type, option, options.FOR_MODELS.get(name)],
            )


def option_of(parameter: inspect.Parameter) -> options.Option:
    """Return the declaration of a parameter of a command."""
    return next(each for each in parameter.annotation.__metadata__ if isinstance(each, options.Option))


def _for_typer(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter of a command as typer reads it."""
    type, declared = get_args(parameter.annotation)[0], option_of(parameter)
    info: Any = (
        typer.Option(*declared.flags.split(), metavar=declared.metavar or None, help=declared.help)
        if declared.flags
        else typer.Argument(metavar=declared.metavar, help=declared.help)
    )
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[type, info])


def _signed(function: Callable[..., Any], parameters: Iterable[inspect.Parameter]) -> Callable[..., Any]:
    """Give a function the context of typer and these parameters."""
    declared = [_CONTEXT, *map(_for_typer, parameters)]
    function.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]  # typer reads it
    function.__annotations__ = {each.name: each.annotation for each in declared}
    return function


def _declared(body: Callable[..., int], execute: Execute | None) -> Callable[..., int]:
    """Return a command for typer: the parameters of the function without the first, and the common options."""

    @functools.wraps(body)
    def command(*, ctx: typer.Context, **values: Any) -> int:
        assert execute is not None
        return execute(body, ctx.obj, values)

    del command.__wrapped__  # otherwise typer would read its annotations instead
    return _signed(command, [*parameters_of(body), *_COMMON])


def build(execute: Execute | None = None) -> typer.core.TyperGroup:
    """Build the app.

    Args:
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
    app.callback()(_signed(before, _COMMON))
    groups = {"": app}
    for group, help in GROUPS.items():
        groups[group] = typer.Typer(help=help, rich_markup_mode=None)
        app.add_typer(groups[group], name=group)
    for path, function in COMMANDS.items():
        group, _, word = path.rpartition(" ")
        module, _, name = function.partition(":")
        body = getattr(import_module(f".commands.{module}", __package__), name)
        groups[group].command(word, hidden=path in HIDDEN)(_declared(body, execute))
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    return root


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
