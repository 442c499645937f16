"""The options that commands share, with their help. A command declares its own options in its signature.

Texts, defaults and values that the tools for models or the library share come from `shared_options.py`, which also
declares the options of signals: a command has those by `**options: Unpack[SignalOptions]`. Only typer evaluates the
annotations of a command (`cli/app.py`). Command modules import this module, typer and `Annotated` only for the type
checker, so running a command imports none of them.
"""

from __future__ import annotations

from typing import Annotated
from typing import Unpack as Unpack

import typer

from gitmem.signals.signal_options import SignalOptions as SignalOptions

from .. import shared_options as shared

Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
Directory = Annotated[str | None, typer.Option("-C", metavar="DIR", help="Run as if started in DIR.")]
As = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="WHO",
        help="Act as this session id (gitmem's or the client's), agent identity or name in use.",
    ),
]
Commit = Annotated[
    bool, typer.Option("--commit", help="Commit new records before returning (default: within a second).")
]

Wu = Annotated[str | None, typer.Option("--wu", metavar=shared.WU.metavar, help=shared.WU.help), shared.PLAIN]
Initiative = Annotated[
    str | None, typer.Option("--initiative", metavar=shared.INITIATIVE.metavar, help=shared.INITIATIVE.help)
]
Lane = Annotated[str | None, typer.Option("--lane", metavar=shared.LANE.metavar, help=shared.LANE.help)]
Thread = Annotated[
    str | None, typer.Option("--thread", metavar=shared.THREAD.metavar, help=shared.THREAD.help)
]
From = Annotated[
    str | None, typer.Option("--from", metavar="NAME", help="Only records of this sender or author.")
]
ThreadId = Annotated[str | None, typer.Argument(metavar="ID", help=shared.THREAD.help), shared.PLAIN]
ThreadLimit = Annotated[
    str | None, typer.Option("--limit", metavar="N", help=shared.THREAD_LIMIT.help), shared.THREAD_LIMIT
]
RosterLimit = Annotated[
    str | None, typer.Option("--limit", metavar="N", help=shared.ROSTER_LIMIT.help), shared.ROSTER_LIMIT
]
AlreadyRead = Annotated[bool, typer.Option("--all", help=shared.ALREADY_READ.help), shared.MODEL]
InboxLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.INBOX_LIMIT.help)]
ReceiptsSignal = Annotated[
    str | None, typer.Argument(metavar="ID", help=shared.RECEIPTS_SIGNAL.help), shared.PLAIN
]
Reader = Annotated[
    str | None, typer.Option("--reader", metavar="NAME", help=shared.READER.help), shared.MODEL
]
ReceiptsSince = Annotated[
    str | None, typer.Option("--since", metavar="1h|ISO", help=shared.RECEIPTS_SINCE.help), shared.MODEL
]
Since = Annotated[str | None, typer.Option("--since", metavar="1h|ISO", help=shared.RECEIPTS_SINCE.help)]
OnlyAgent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="Only what this agent did or was asked for: a name, identity or session id.",
    ),
]
ReceiptsLimit = Annotated[
    str | None, typer.Option("--limit", metavar="N", help=shared.RECEIPTS_LIMIT.help), shared.RECEIPTS_LIMIT
]
Insist = Annotated[bool, typer.Option("--insist", help=shared.SIGNAL_OPTIONS["insist"].help)]
SyncToo = Annotated[bool, typer.Option("--sync", help="Also sync with the remote.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only the id.")]
For = Annotated[str | None, typer.Option("--for", metavar="READER", help="Reader whose inbox to show.")]
Intents = Annotated[
    list[str] | None, typer.Option("--intent", metavar="A,B", help="Only signals with these intents.")
]
NewWu = Annotated[bool, typer.Option("--new", help=shared.NEW_WU.help), shared.MODEL]
Done = Annotated[bool, typer.Option("--done", help=shared.DONE.help), shared.MODEL]
Summary = Annotated[
    str | None, typer.Option("--summary", metavar="TEXT", help=shared.SUMMARY.help), shared.PLAIN
]
Milestone = Annotated[bool, typer.Option("--milestone", help=shared.MILESTONE.help), shared.MODEL]
Everyone = Annotated[bool, typer.Option("--all", help="Include gone and ended sessions."), shared.MODEL]
Message = Annotated[
    str, typer.Argument(metavar="MESSAGE", help="Text; - reads standard input."), shared.PLAIN
]
SignalId = Annotated[str, typer.Argument(metavar="ID", help="A signal id or a unique prefix."), shared.PLAIN]
AnyId = Annotated[str, typer.Argument(metavar="ID", help=shared.ANY_ID.help), shared.PLAIN]

Paths = Annotated[list[str], typer.Argument(metavar="PATH", help=shared.CLAIM_PATHS.help), shared.MODEL]

Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why; it is recorded, and everybody can read it."),
    shared.PLAIN,
]
LastReason = Annotated[
    str | None,
    typer.Argument(metavar="[TEXT]", help="Why; it is recorded, and everybody can read it."),
    shared.PLAIN,
]
TaskId = Annotated[str, typer.Argument(metavar="ID", help=shared.TASK_ID.help), shared.PLAIN]
TaskIds = Annotated[list[str], typer.Argument(metavar="ID", help=shared.TASK_ID.help)]
CallTimeout = Annotated[
    str | None, typer.Option("--timeout", metavar="2m", help=shared.CALL_TIMEOUT.help), shared.CALL_TIMEOUT
]
CallKey = Annotated[
    str | None, typer.Option("--idempotency-key", metavar="K", help=shared.CALL_KEY.help), shared.MODEL
]
BlockedBy = Annotated[
    list[str] | None, typer.Option("--blocked-by", metavar="TASK", help=shared.BLOCKED_BY.help), shared.MODEL
]
TaskKey = Annotated[str | None, typer.Option("--idempotency-key", metavar="K", help=shared.TASK_KEY.help)]
TaskText = Annotated[str, typer.Argument(metavar="TEXT", help="Text; - reads standard input."), shared.PLAIN]

LaunchAttempt = Annotated[
    str | None, typer.Option("--attempt", metavar="LABEL", help="A label of this attempt.")
]
LaunchBranch = Annotated[str | None, typer.Option("--branch", metavar="NAME", help="Branch of the worker.")]
LaunchWorktree = Annotated[
    str | None,
    typer.Option("--worktree", metavar="DIR", help="Worktree of the worker; its folder's name is recorded."),
]
LaunchClient = Annotated[
    str | None, typer.Option("--client", metavar="NAME", help="Program that runs the worker.")
]
LaunchModel = Annotated[
    str | None, typer.Option("--model", metavar="M", help="Model that it is started with.")
]
AllowLarge = Annotated[bool, typer.Option("--allow-large", help="Accept files of any size and number.")]
Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="30s", help="Time limit for each access to a remote (default: 30s)."),
]
AllowForeign = Annotated[
    bool, typer.Option("--allow-foreign", help="Join the log of another project; this cannot be undone.")
]
Identity = Annotated[
    str | None,
    typer.Option(
        "--agent-identity",
        metavar="OWNER:ROLE:PURPOSE",
        help=shared.IDENTITY.help,
    ),
    shared.MODEL,
]
Name = Annotated[str | None, typer.Option("--name", metavar="N", help=shared.NAME.help), shared.PLAIN]
Client = Annotated[
    str | None, typer.Option("--client", metavar="C", help="Client: the program that runs the agent.")
]
ActualRole = Annotated[
    str | None, typer.Option("--role", metavar="ROLE", help=shared.ROLE.help), shared.MODEL
]
ActualScope = Annotated[
    list[str] | None, typer.Option("--scope", metavar="SCOPE", help=shared.SCOPE.help), shared.MODEL
]
Model = Annotated[str | None, typer.Option("--model", metavar="M", help=shared.MODEL.help)]
Capabilities = Annotated[
    list[str] | None, typer.Option("--capabilities", metavar="A,B", help=shared.CAPABILITIES.help)
]
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
GitHooks = Annotated[
    list[str] | None,
    typer.Option(
        "--git",
        metavar="pre-push|pre-commit|post-commit",
        help="The gate before a push, the guard of claims before a commit, or the note of who commits, as git's hook; may be repeated.",
    ),
]
ServeTrust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Run the command of .gitmem/roles.toml for NAME, as it is now: you trust it."
    ),
]
ServeLease = Annotated[
    str | None,
    typer.Option(
        "--lease",
        metavar="60s",
        help="Time until another worker may take a task of a dead one (default: 60s).",
    ),
]
ServeWorktree = Annotated[
    bool,
    typer.Option(
        "--worktree",
        help="Run CMD for each task in a new git work tree from HEAD; commits are kept on a branch named as the task.",
    ),
]
ServeClient = Annotated[
    str | None,
    typer.Option(
        "--client",
        metavar="claude|codex|gemini|opencode",
        help="Run this coding agent for each task; quote it with further arguments of its own.",
    ),
]

NodeId = Annotated[str, typer.Argument(metavar="ID", help=shared.NODE_ID.help), shared.PLAIN]
NodeIds = Annotated[list[str], typer.Argument(metavar="ID...", help=shared.NODE_IDS.help), shared.PLAIN]
Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help=shared.NODE_TYPE.help,
    ),
    shared.MODEL,
]
Lifecycle = Annotated[str | None, typer.Option("--lifecycle", metavar="L", help=shared.LIFECYCLE.help)]
NewLifecycle = Annotated[
    str | None,
    typer.Option(
        "--lifecycle",
        metavar="L",
        help=shared.NEW_LIFECYCLE.help,
    ),
]
NodeWu = Annotated[str | None, typer.Option("--wu", metavar="ID", help=shared.NODE_WU.help), shared.PLAIN]
Verified = Annotated[bool, typer.Option("--verified", help=shared.VERIFIED.help)]
TaxonomyTag = Annotated[
    str | None, typer.Option("--tag", metavar="TAG", help=f"Required: {shared.TAXONOMY.help}"), shared.PLAIN
]
NewNodeWu = Annotated[str | None, typer.Option("--wu", metavar="ID", help="New work unit."), shared.PLAIN]
OnlyWu = Annotated[str | None, typer.Option("--wu", metavar="ID", help=shared.ONLY_WU.help)]
Priority = Annotated[
    str | None, typer.Option("--priority", metavar="P", help=shared.PRIORITY.help), shared.PLAIN
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="A,B", help="Tags. May be repeated."),
    shared.PLAIN,
]
NewTags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="A,B", help="New tags, replacing the present ones."),
    shared.PLAIN,
]
OnlyTags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="A,B", help="Only nodes with all of these tags."),
]
Tag = Annotated[str | None, typer.Option("--tag", metavar="T", help="Only nodes with this tag.")]
NodePaths = Annotated[
    list[str] | None,
    typer.Option("--path", metavar="FILE", help=f"{shared.PATHS.help} May be repeated."),
    shared.MODEL,
]
NewPaths = Annotated[
    list[str] | None,
    typer.Option(
        "--path",
        metavar="FILE",
        help="New paths, replacing the present ones. May be repeated.",
    ),
]
Path = Annotated[
    str | None, typer.Option("--path", metavar="P", help="Only nodes about this file or folder.")
]
Meta = Annotated[
    list[str] | None,
    typer.Option(
        "--meta", metavar="KEY=VALUE", help="Metadata entry; VALUE is JSON or text. May be repeated."
    ),
]
NewMeta = Annotated[
    list[str] | None,
    typer.Option(
        "--meta", metavar="KEY=VALUE", help="Set a metadata entry; null removes it. May be repeated."
    ),
]
Archived = Annotated[bool, typer.Option("--include-archived", help="Include archived and deleted nodes.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done without doing it.")]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="COMMIT|DATE", help="Use the log as of this time, such as 2026-11-21 or 2d."
    ),
]
NodeReason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Reason, one line."), shared.PLAIN
]
TrackAccess = Annotated[bool, typer.Option("--track-access", help="Record an access of each node shown.")]
MaxSize = Annotated[
    str | None, typer.Option("--max-size", metavar="N", help=shared.MAX_SIZE.help), shared.MAX_SIZE
]
SearchLimit = Annotated[
    str | None, typer.Option("--limit", metavar="N", help=shared.SEARCH_LIMIT.help), shared.SEARCH_LIMIT
]
ListLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.LIST_LIMIT.help)]
ProfileLimit = Annotated[str | None, typer.Option("--limit", metavar="N", help=shared.PROFILE_LIMIT.help)]
NoRoster = Annotated[bool, typer.Option("--no-roster", help="Omit the roster and the unread count.")]
Private = Annotated[bool, typer.Option("--private", help=shared.PRIVATE.help)]
Sensitive = Annotated[bool, typer.Option("--sensitive", help="Exclude it from cleanup.")]
Supersedes = Annotated[
    list[str] | None,
    typer.Option("--supersedes", metavar="ID", help=f"{shared.SUPERSEDES.help} May be repeated."),
]
ReadyType = Annotated[str | None, typer.Option("--type", metavar="TYPE", help=shared.READY_TYPE.help)]
ReadyLimit = Annotated[
    str | None, typer.Option("--limit", metavar="N", help=shared.READY_LIMIT.help), shared.READY_LIMIT
]
CallJoin = Annotated[
    str | None, typer.Option("--join", metavar="all|any", help=shared.CALL_JOIN.help), shared.CALL_JOIN
]
WithContext = Annotated[bool, typer.Option("--with-context", help=shared.CALL_CONTEXT.help), shared.MODEL]
WithMemory = Annotated[bool, typer.Option("--with-memory", help=shared.CALL_MEMORY.help), shared.MODEL]
NoMark = Annotated[
    bool, typer.Option("--no-mark", help="Do not mark the signals as delivered."), shared.MODEL
]
Deadline = Annotated[
    str | None, typer.Option("--deadline", metavar="2h", help=shared.DEADLINE.help), shared.MODEL
]
CallAgents = Annotated[
    str, typer.Argument(metavar="AGENT[,AGENT…]", help=shared.CALL_AGENTS.help), shared.MODEL
]
CallVariables = Annotated[list[str] | None, typer.Option("--var", metavar="K=V", help=shared.CALL_VAR.help)]
