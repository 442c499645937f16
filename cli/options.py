"""The options that commands share, with their help; and what every command takes."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .surroundings import Surroundings
from .syncing import TIMEOUT as TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable

Json = Annotated[bool, typer.Option("--json", help="Answer with one line of JSON.")]
Directory = Annotated[str | None, typer.Option("-C", metavar="DIR", help="Run as if started in DIR.")]
As = Annotated[
    str | None, typer.Option("--as", metavar="WHO", help="Act as this session id, identity or live name.")
]

Wu = Annotated[str | None, typer.Option("--wu", metavar="ID", help="The work unit, such as WU-123.")]
Initiative = Annotated[str | None, typer.Option("--initiative", metavar="ID", help="The initiative.")]
Lane = Annotated[str | None, typer.Option("--lane", metavar="LANE", help="The lane.")]
To = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="A,B", help="Recipients: names, identities, session ids. May be repeated."),
]
Thread = Annotated[str | None, typer.Option("--thread", metavar="ID", help="A thread, or a signal of it.")]
From = Annotated[str | None, typer.Option("--from", metavar="NAME", help="Only what this one wrote.")]
RequiresAck = Annotated[bool, typer.Option("--requires-ack", help="Ask for AGREE or REJECT.")]
Key = Annotated[
    str | None,
    typer.Option("--idempotency-key", metavar="K", help="The same key and content again is the same signal."),
]
SyncToo = Annotated[bool, typer.Option("--sync", help="Sync with the remote, too.")]
AllowSecret = Annotated[
    bool, typer.Option("--allow-secret", help="A person decides: record text that looks like a secret.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only the id.")]
Everyone = Annotated[bool, typer.Option("--all", help="Those that are gone or ended, too.")]
Message = Annotated[str, typer.Argument(metavar="MESSAGE", help="The text; - reads standard input.")]
SignalId = Annotated[str, typer.Argument(metavar="ID", help="A signal id, or a unique prefix of it.")]
AnyId = Annotated[str, typer.Argument(metavar="ID", help="An id, or a unique prefix of it.")]

AllowForeign = Annotated[
    bool, typer.Option("--allow-foreign", help="Join a log of another project; that can't be undone.")
]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="30s", help="How long a remote may take each time.")
]

_COMMON = (
    inspect.Parameter("directory", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Directory),
    inspect.Parameter("as_", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=As),
    inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json),
)


def with_common(body: Callable[..., int]) -> Callable[..., int]:
    """A command for typer from a body whose first parameter is its surroundings.

    Every command takes -C, --as and --json, which may also stand before its name, as with git.
    """
    signature = inspect.signature(body, eval_str=True)
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in list(signature.parameters.values())[1:]
    ]

    @functools.wraps(body)
    def command(
        *, ctx: typer.Context, directory: str | None, as_: str | None, json: bool, **values: Any
    ) -> int:
        before: Before = ctx.obj or Before()
        who = as_ if as_ is not None else before.as_
        with Surroundings(before.folder(directory), who, json or before.json) as at:
            return body(at, **values)

    parameters = [context, *own, *_COMMON]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    del command.__wrapped__  # or its annotations would be read instead
    return command


class Before:
    """The common options that stood before the command's name."""

    def __init__(self, directory: str | None = None, as_: str | None = None, json: bool = False) -> None:
        self.directory = directory
        self.as_ = as_
        self.json = json

    def folder(self, directory: str | None) -> str | None:
        """-C before the command and after it: the second is relative to the first, as with git."""
        import os

        return os.path.join(self.directory or "", directory) if directory else self.directory
