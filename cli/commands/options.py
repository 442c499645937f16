"""The options that commands share, with their help.

Only typer evaluates the annotations of a command (`cli/app.py`): command modules import this module, typer and
`Annotated` for the type checker alone, so that running a command imports none of them.
"""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Answer with one line of JSON.")]
Directory = Annotated[str | None, typer.Option("-C", metavar="DIR", help="Run as if started in DIR.")]
As = Annotated[
    str | None, typer.Option("--as", metavar="WHO", help="Act as this session id, identity or live name.")
]
Commit = Annotated[
    bool, typer.Option("--commit", help="Commit what this records before answering; else within a second.")
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
Name = Annotated[str | None, typer.Option("--name", metavar="N", help="A display name of your choice.")]
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
