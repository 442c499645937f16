"""The options that commands share, with their help.

Only typer evaluates the annotations of a command (`cli/app.py`): command modules import this module, typer and
`Annotated` for the type checker alone, so that running a command imports none of them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .. import shared_options as shared

Json = Annotated[bool, typer.Option("--json", help="Answer with one line of JSON.")]
Directory = Annotated[str | None, typer.Option("-C", metavar="DIR", help="Run as if started in DIR.")]
As = Annotated[
    str | None, typer.Option("--as", metavar="WHO", help="Act as this session id, identity or live name.")
]
Commit = Annotated[
    bool, typer.Option("--commit", help="Commit what this records before answering; else within a second.")
]

Wu = Annotated[str | None, typer.Option("--wu", metavar="ID", help=shared.WU.help)]
Initiative = Annotated[str | None, typer.Option("--initiative", metavar="ID", help="The initiative.")]
Lane = Annotated[str | None, typer.Option("--lane", metavar="LANE", help=shared.LANE.help)]
To = Annotated[
    list[str] | None,
    typer.Option("--to", metavar="A,B", help=f"{shared.TO.help} May be repeated."),
]
Thread = Annotated[str | None, typer.Option("--thread", metavar="ID", help=shared.THREAD.help)]
From = Annotated[str | None, typer.Option("--from", metavar="NAME", help="Only what this one wrote.")]
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
SyncToo = Annotated[bool, typer.Option("--sync", help="Sync with the remote, too.")]
AllowSecret = Annotated[
    bool, typer.Option("--allow-secret", help="A person decides: record text that looks like a secret.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only the id.")]
Everyone = Annotated[bool, typer.Option("--all", help="Those that are gone or ended, too.")]
Message = Annotated[str, typer.Argument(metavar="MESSAGE", help="The text; - reads standard input.")]
SignalId = Annotated[str, typer.Argument(metavar="ID", help="A signal id, or a unique prefix of it.")]
AnyId = Annotated[str, typer.Argument(metavar="ID", help=shared.ANY_ID.help)]

AllowForeign = Annotated[
    bool, typer.Option("--allow-foreign", help="Join a log of another project; that can't be undone.")
]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="30s", help="How long a remote may take each time.")
]
Insist = Annotated[
    bool,
    typer.Option(
        "--insist", help="Record a decision under --as though your session is another; it is named."
    ),
]
Identity = Annotated[
    str | None,
    typer.Option("--agent-identity", metavar="OWNER:ROLE:PURPOSE", help="Who you are beyond this session."),
]
Name = Annotated[str | None, typer.Option("--name", metavar="N", help=shared.NAME.help)]
Client = Annotated[str | None, typer.Option("--client", metavar="C", help="The program that runs you.")]
Workspace = Annotated[str | None, typer.Option("--workspace", metavar="W", help="The workspace.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME", help="1 to 64 characters each.")]

CLIENTS = "claude-code|codex|gemini|cursor|opencode|cline|copilot|windsurf|aider|all-found"
ClientOption = Annotated[
    list[str] | None,
    typer.Option(
        "--client", metavar=CLIENTS, help="Which client; may be repeated. Without it: all that are found."
    ),
]
InstalledOption = Annotated[
    list[str] | None,
    typer.Option(
        "--client", metavar=CLIENTS, help="Which client; may be repeated. Without it: all that are installed."
    ),
]
Scope = Annotated[
    str, typer.Option("--scope", metavar="project|user", help="For this project, or for all of yours.")
]
GitHook = Annotated[
    str | None,
    typer.Option("--git", metavar="pre-push", help="The gate in front of a push, as git's own hook."),
]
