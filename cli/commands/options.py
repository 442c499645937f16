"""The options that commands share, with their help.

Only typer evaluates the annotations of a command (`cli/app.py`). Command modules import this module, typer and
`Annotated` only for the type checker, so running a command imports none of them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .. import shared_options as shared

Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Directory = Annotated[str | None, typer.Option("-C", metavar="DIR", help="Run as if started in DIR.")]
As = Annotated[
    str | None,
    typer.Option("--as", metavar="WHO", help="Act as this session id, agent identity or name in use."),
]
Commit = Annotated[
    bool, typer.Option("--commit", help="Commit new records before returning (default: within a second).")
]

Wu = Annotated[str | None, typer.Option("--wu", metavar="ID", help=shared.WU.help)]
Initiative = Annotated[str | None, typer.Option("--initiative", metavar="ID", help="Initiative.")]
Lane = Annotated[str | None, typer.Option("--lane", metavar="LANE", help=shared.LANE.help)]
To = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="A,B", help=f"{shared.TO.help} May be repeated."),
]
Thread = Annotated[str | None, typer.Option("--thread", metavar="ID", help=shared.THREAD.help)]
From = Annotated[
    str | None, typer.Option("--from", metavar="NAME", help="Only records of this sender or author.")
]
RequiresAck = Annotated[bool, typer.Option("--requires-ack", help=shared.REQUIRES_ACK.help)]
Key = Annotated[
    str | None,
    typer.Option("--idempotency-key", metavar="K", help=shared.IDEMPOTENCY_KEY.help),
]
ThreadId = Annotated[str | None, typer.Argument(metavar="ID", help=shared.THREAD.help)]
ReplyTo = Annotated[str | None, typer.Option("--reply-to", metavar="ID", help=shared.REPLY_TO.help)]
Intent = Annotated[str | None, typer.Option("--intent", metavar="INTENT", help=shared.INTENT.help)]
AlreadyRead = Annotated[bool, typer.Option("--all", help=shared.ALREADY_READ.help)]
Strict = Annotated[bool, typer.Option("--strict", help=shared.STRICT.help)]
InboxLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.INBOX_LIMIT.help)]
InboxBytes = Annotated[str | None, typer.Option("--max-bytes", metavar="N", help=shared.INBOX_BYTES.help)]
SyncToo = Annotated[bool, typer.Option("--sync", help="Also sync with the remote.")]
AllowSecret = Annotated[
    bool,
    typer.Option(
        "--allow-secret", help="Record text even if it looks like a secret; a person must decide this."
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only the id.")]
Everyone = Annotated[bool, typer.Option("--all", help="Include gone and ended sessions.")]
Message = Annotated[str, typer.Argument(metavar="MESSAGE", help="Text; - reads standard input.")]
SignalId = Annotated[str, typer.Argument(metavar="ID", help="A signal id or a unique prefix.")]
AnyId = Annotated[str, typer.Argument(metavar="ID", help=shared.ANY_ID.help)]

AllowForeign = Annotated[
    bool, typer.Option("--allow-foreign", help="Join the log of another project; this cannot be undone.")
]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="30s", help="Time limit for each access to a remote.")
]
Insist = Annotated[
    bool,
    typer.Option(
        "--insist", help="Record a decision as --as from a different session, which the record names."
    ),
]
Identity = Annotated[
    str | None,
    typer.Option(
        "--agent-identity",
        metavar="OWNER:ROLE:PURPOSE",
        help="Agent identity OWNER:ROLE:PURPOSE, which outlives the session.",
    ),
]
Name = Annotated[str | None, typer.Option("--name", metavar="N", help=shared.NAME.help)]
Client = Annotated[
    str | None, typer.Option("--client", metavar="C", help="Client: the program that runs the agent.")
]
Workspace = Annotated[str | None, typer.Option("--workspace", metavar="W", help="Workspace.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME", help="Names of 1 to 64 characters.")]

CLIENTS = "claude-code|codex|gemini|cursor|opencode|cline|copilot|windsurf|aider|all-found"
ClientOption = Annotated[
    list[str] | None,
    typer.Option("--client", metavar=CLIENTS, help="Client; may be repeated (default: all clients found)."),
]
InstalledOption = Annotated[
    list[str] | None,
    typer.Option("--client", metavar=CLIENTS, help="Client; may be repeated (default: all installed)."),
]
Scope = Annotated[
    str, typer.Option("--scope", metavar="project|user", help="This project, or all projects of this user.")
]
GitHook = Annotated[
    str | None,
    typer.Option("--git", metavar="pre-push", help="The gate as git's pre-push hook."),
]
