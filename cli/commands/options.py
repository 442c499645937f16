"""The parameters of commands: what one is, and those that several commands share. A command declares its own in its signature.

A command has the options of signals by `**options: Unpack[SignalOptions]`. Only `cli/app.py` evaluates the annotations of a command, for typer and for
the tools of models. Command modules import this module only for the type checker, so running a command does not import it. Defaults and allowed
values are those of the library, which knows no caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from typing import Unpack as Unpack

from gitmem.agents import roster
from gitmem.calls.call_result import ALL, ANY
from gitmem.memory import context, listing, node_fields, search
from gitmem.memory.node_fields import ALIASES, LIFECYCLES, PRIORITIES, TYPES
from gitmem.order.content import INTENTS
from gitmem.outcome import Struct
from gitmem.records.table import OPTIONS
from gitmem.signals import history, inbox, threads
from gitmem.signals.signal_options import SignalOptions as SignalOptions
from gitmem.work import stored_tasks


class Option(Struct):
    """An option of a command.

    Attributes:
        flags: Its names, separated by spaces; "" for an argument.
        metavar: What help shows for its value; "" for a flag.
        help: What it says, for people and for models.
    """

    flags: str
    metavar: str
    help: str


class Flag(Option):
    """An option without a value."""

    def __init__(self, flags: str, help: str) -> None:
        super().__init__(flags, "", help)


class Argument(Option):
    """An argument of a command."""

    def __init__(self, metavar: str, help: str) -> None:
        super().__init__("", metavar, help)


class ForModels(Struct):
    """In the declaration of a parameter: the tools for models have it, too.

    Attributes:
        is_plain: Whether models read only its name, which says what it is: each word costs every agent at every start.
        values: The texts that it can be, as a list for models.
        default: What a tool has by default: a model reads less, and waits less long, than a person or a program.
        most: The greatest number that a tool takes; 0 for another value than a number.
    """

    is_plain: bool = False
    values: Sequence[str] = ()
    default: int | str = ""
    most: int = 0


MODEL, PLAIN = ForModels(), ForModels(is_plain=True)
# The options of `SignalOptions`, in the order of help; those of fields are declared in `records/kinds.py`.
SIGNAL_OPTIONS = {
    "to": Option("--to", "A,B", "Recipients: names, identities, session ids or role:ROLE."),
    "broadcast": Flag("--broadcast", "Send to everybody, also in a thread."),
    "reply_to": Option("--reply-to", "ID", "Id of the signal to answer."),
    "thread": Option("--thread", "ID", "A thread id, or the id of a signal in it."),
    **{
        name: Option(f"--{name.replace('_', '-')}", metavar, help)
        for name, (_, help, metavar, _) in OPTIONS.items()
    },
    "allow_unseen": Flag("--allow-unseen", "Accept an agent identity that is not in the log yet."),
    "insist": Flag("--insist", "Record a decision as --as from a different session, which the record names."),
}
FOR_MODELS = {
    "to": MODEL,
    "broadcast": PLAIN,
    "thread": PLAIN,
    **{name: PLAIN for name, (*_, for_models) in OPTIONS.items() if for_models},
    "intent": ForModels(is_plain=True, values=INTENTS),
    "need": ForModels(most=9_999),
}
TASK_ID = "A task id or a unique prefix."


def _listed(values: Sequence[str], word: str = "or") -> str:
    return f"{', '.join(values[:-1])} {word} {values[-1]}"


Json = Annotated[bool, Flag("--json", "Print one line of JSON.")]
Directory = Annotated[str | None, Option("-C", "DIR", "Run as if started in DIR.")]
As = Annotated[
    str | None,
    Option(
        "--as", "WHO", "Act as this session id (gitmem's or the client's), agent identity or name in use."
    ),
]
Commit = Annotated[bool, Flag("--commit", "Commit new records before returning (default: within a second).")]

Wu = Annotated[str | None, SIGNAL_OPTIONS["wu"], PLAIN]
Initiative = Annotated[str | None, SIGNAL_OPTIONS["initiative"]]
Lane = Annotated[str | None, SIGNAL_OPTIONS["lane"]]
Thread = Annotated[str | None, SIGNAL_OPTIONS["thread"]]
From = Annotated[str | None, Option("--from", "NAME", "Only records of this sender or author.")]
ThreadId = Annotated[str, Argument("ID", SIGNAL_OPTIONS["thread"].help), PLAIN]
ThreadLimit = Annotated[
    str | None,
    Option(
        "--limit", "N", f"Maximum number of signals, first and last (default: {threads.LIMIT}; JSON all)."
    ),
    ForModels(default=20, most=100),
]
RosterLimit = Annotated[
    str | None,
    Option("--limit", "N", f"Maximum number of sessions (default: {roster.SHOWN})."),
    ForModels(default=30, most=200),
]
AlreadyRead = Annotated[bool, Flag("--all", "Include signals delivered before."), MODEL]
InboxLimit = Annotated[
    str | None, Option("--limit", "N", f"Maximum number of signals (default: {inbox.LIMIT}).")
]
ReceiptsSignal = Annotated[
    str | None, Argument("ID", "Only of this signal: an id or a unique prefix."), PLAIN
]
Reader = Annotated[
    str | None, Option("--reader", "NAME", "Only of this reader: a name, identity or session id."), MODEL
]
Since = Annotated[
    str | None, Option("--since", "1h|ISO", "Only after this time: ISO or a duration such as 1h.")
]
OnlyAgent = Annotated[
    str | None,
    Option("--agent", "NAME", "Only what this agent did or was asked for: a name, identity or session id."),
]
ReceiptsLimit = Annotated[
    str | None,
    Option("--limit", "N", f"Maximum number of receipts (default: {history.RECEIPTS_LIMIT})."),
    ForModels(default=history.RECEIPTS_LIMIT, most=200),
]
Insist = Annotated[bool, SIGNAL_OPTIONS["insist"]]
SyncToo = Annotated[bool, Flag("--sync", "Also sync with the remote.")]
Quiet = Annotated[bool, Flag("-q --quiet", "Print only the id.")]
For = Annotated[str | None, Option("--for", "READER", "Reader whose inbox to show.")]
Intents = Annotated[list[str] | None, Option("--intent", "A,B", "Only signals with these intents.")]
Done = Annotated[bool, Flag("--done", "Tell everybody that the work unit is done."), MODEL]
Summary = Annotated[str | None, Option("--summary", "TEXT", "What the session did, in one line."), PLAIN]
Milestone = Annotated[bool, Flag("--milestone", "Also tell everybody."), MODEL]
Everyone = Annotated[bool, Flag("--all", "Include gone and ended sessions."), MODEL]
Message = Annotated[str, Argument("MESSAGE", "Text; - reads standard input."), PLAIN]
SignalId = Annotated[str, Argument("ID", "A signal id or a unique prefix."), PLAIN]
AnyId = Annotated[str, Argument("ID", "An id or a unique prefix."), PLAIN]

Paths = Annotated[
    list[str], Argument("PATH", "Files, folders, or patterns with *, ? and ** in quotes."), MODEL
]

Reason = Annotated[
    str | None, Option("--reason", "TEXT", "Why; it is recorded, and everybody can read it."), PLAIN
]
LastReason = Annotated[
    str | None, Argument("[TEXT]", "Why; it is recorded, and everybody can read it."), PLAIN
]
TaskId = Annotated[str, Argument("ID", TASK_ID), PLAIN]
TaskLimit = Annotated[
    str | None,
    Option("--limit", "N", f"Maximum number of tasks (default: {stored_tasks.LISTED})."),
    ForModels(default=20, most=200),
]
TaskIds = Annotated[list[str], Argument("ID", TASK_ID)]
CallTimeout = Annotated[
    str | None,
    Option("--timeout", "2m", "Time to wait; the task goes on after it (default: 10m)."),
    ForModels(default="45s"),
]
CallKey = Annotated[
    str | None,
    Option("--idempotency-key", "K", "Repeating a call with the same key waits for the same task."),
    MODEL,
]
BlockedBy = Annotated[
    list[str] | None,
    Option("--blocked-by", "TASK", "Task that must be finished before it; may be repeated."),
    MODEL,
]
TaskText = Annotated[str, Argument("TEXT", "Text; - reads standard input."), PLAIN]

LaunchAttempt = Annotated[str | None, Option("--attempt", "LABEL", "A label of this attempt.")]
LaunchBranch = Annotated[str | None, Option("--branch", "NAME", "Branch of the worker.")]
LaunchWorktree = Annotated[
    str | None, Option("--worktree", "DIR", "Worktree of the worker; its folder's name is recorded.")
]
LaunchClient = Annotated[str | None, Option("--client", "NAME", "Program that runs the worker.")]
LaunchModel = Annotated[str | None, Option("--model", "M", "Model that it is started with.")]
AllowLarge = Annotated[bool, Flag("--allow-large", "Accept files of any size and number.")]
Timeout = Annotated[
    str | None, Option("--timeout", "30s", "Time limit for each access to a remote (default: 30s).")
]
AllowForeign = Annotated[
    bool, Flag("--allow-foreign", "Join the log of another project; this cannot be undone.")
]
Identity = Annotated[
    str | None,
    Option(
        "--agent-identity",
        "OWNER:ROLE:PURPOSE",
        "Agent identity OWNER:ROLE:PURPOSE, which outlives the session.",
    ),
    MODEL,
]
Name = Annotated[str | None, Option("--name", "N", "Display name."), PLAIN]
Client = Annotated[str | None, Option("--client", "C", "Client: the program that runs the agent.")]
ActualRole = Annotated[
    str | None,
    Option("--role", "ROLE", "Role: LIFECYCLE/PROFILE, an alias or the beginning of one; '' removes it."),
    MODEL,
]
ActualScope = Annotated[
    list[str] | None,
    Option(
        "--scope",
        "SCOPE",
        "Path, or paths=, wu=, initiative=, lane= or kinds= with values; may be repeated; '' removes it.",
    ),
    MODEL,
]
Model = Annotated[str | None, Option("--model", "M", "Model that runs the agent; '' removes it.")]
Capabilities = Annotated[
    list[str] | None,
    Option("--capabilities", "A,B", "What the agent can do; '' removes it. They give no role."),
]
CLIENTS = "claude-code|codex|gemini|cursor|opencode|cline|copilot|windsurf|aider|all-found"
ClientOption = Annotated[
    list[str] | None, Option("--client", CLIENTS, "Client; may be repeated (default: all clients found).")
]
InstalledOption = Annotated[
    list[str] | None, Option("--client", CLIENTS, "Client; may be repeated (default: all installed).")
]
Scope = Annotated[str, Option("--scope", "project|user", "This project, or all projects of this user.")]
GitHooks = Annotated[
    list[str] | None,
    Option(
        "--git",
        "pre-push|pre-commit|post-commit",
        "The gate before a push, the guard of claims before a commit, or the note of who commits, as git's hook; may be repeated.",
    ),
]
ServeTrust = Annotated[
    bool, Flag("--trust", "Run the command of .gitmem/roles.toml for NAME, as it is now: you trust it.")
]
ServeLease = Annotated[
    str | None,
    Option("--lease", "60s", "Time until another worker may take a task of a dead one (default: 60s)."),
]
ServeWorktree = Annotated[
    bool,
    Flag(
        "--worktree",
        "Run CMD for each task in a new git work tree from HEAD; commits are kept on a branch named as the task.",
    ),
]
ServeClient = Annotated[
    str | None,
    Option(
        "--client",
        "claude|codex|gemini|opencode",
        "Run this coding agent for each task; quote it with further arguments of its own.",
    ),
]

NodeId = Annotated[str, Argument("ID", "A node id (mem-…) or a unique prefix."), PLAIN]
NodeIds = Annotated[list[str], Argument("ID...", "Node ids or unique prefixes."), PLAIN]
Type = Annotated[
    str | None,
    Option(
        "--type", "TYPE", f"{_listed(TYPES)}; {_listed(ALIASES, 'and')} create a discovery with that tag."
    ),
    MODEL,
]
Lifecycle = Annotated[str | None, Option("--lifecycle", "L", f"{_listed(LIFECYCLES)}.")]
NewLifecycle = Annotated[
    str | None,
    Option(
        "--lifecycle",
        "L",
        f"{_listed(LIFECYCLES)} (default by type: note and checkpoint session, summary project, all others wu).",
    ),
]
NodeWu = Annotated[str | None, Option("--wu", "ID", "Work unit (default: your session's)."), PLAIN]
Verified = Annotated[
    bool, Flag("--verified", "Confirm that it is still true for the current code; clears `stale`.")
]
TaxonomyTag = Annotated[
    str | None, Option("--tag", "TAG", f"Required: {_listed(node_fields.TAXONOMY)}."), PLAIN
]
NewNodeWu = Annotated[str | None, Option("--wu", "ID", "New work unit."), PLAIN]
OnlyWu = Annotated[str | None, Option("--wu", "ID", "Only nodes of this work unit, or `unlinked`.")]
Priority = Annotated[
    str | None, Option("--priority", "P", f"{PRIORITIES[0]} (highest) to {PRIORITIES[-1]}."), PLAIN
]
Tags = Annotated[list[str] | None, Option("--tag", "A,B", "Tags. May be repeated."), PLAIN]
NewTags = Annotated[list[str] | None, Option("--tag", "A,B", "New tags, replacing the present ones."), PLAIN]
OnlyTags = Annotated[list[str] | None, Option("--tag", "A,B", "Only nodes with all of these tags.")]
Tag = Annotated[str | None, Option("--tag", "T", "Only nodes with this tag.")]
NodePaths = Annotated[
    list[str] | None, Option("--path", "FILE", "File or folder that it is about. May be repeated."), MODEL
]
NewPaths = Annotated[
    list[str] | None, Option("--path", "FILE", "New paths, replacing the present ones. May be repeated.")
]
Path = Annotated[str | None, Option("--path", "P", "Only nodes about this file or folder.")]
Meta = Annotated[
    list[str] | None, Option("--meta", "KEY=VALUE", "Metadata entry; VALUE is JSON or text. May be repeated.")
]
NewMeta = Annotated[
    list[str] | None, Option("--meta", "KEY=VALUE", "Set a metadata entry; null removes it. May be repeated.")
]
Archived = Annotated[bool, Flag("--include-archived", "Include archived and deleted nodes.")]
DryRun = Annotated[bool, Flag("--dry-run", "Show what would be done without doing it.")]
AsOf = Annotated[
    str | None, Option("--as-of", "COMMIT|DATE", "Use the log as of this time, such as 2026-11-21 or 2d.")
]
NodeReason = Annotated[str | None, Option("--reason", "TEXT", "Reason, one line."), PLAIN]
TrackAccess = Annotated[bool, Flag("--track-access", "Record an access of each node shown.")]
MaxSize = Annotated[
    str | None,
    Option("--max-size", "N", f"Maximum size in bytes of UTF-8 (default: {context.MAX_SIZE})."),
    ForModels(default=context.MAX_SIZE, most=context.SUGGESTED_SIZE_MAX),
]
SearchLimit = Annotated[
    str | None,
    Option("--limit", "N", f"Maximum number of nodes (default: {search.LIMIT})."),
    ForModels(default=search.LIMIT, most=50),
]
ListLimit = Annotated[
    str | None, Option("--limit", "N", f"Maximum number of nodes (default: {listing.LIMIT}).")
]
ProfileLimit = Annotated[
    str | None, Option("--limit", "N", f"Maximum number of nodes (default: {context.PROFILE_LIMIT}).")
]
NoRoster = Annotated[bool, Flag("--no-roster", "Omit the roster and the unread count.")]
Private = Annotated[
    bool,
    Flag(
        "--private",
        "Keep it in this clone, for you alone: it is never on the log, in an export or in a sync.",
    ),
]
Sensitive = Annotated[bool, Flag("--sensitive", "Exclude it from cleanup.")]
Supersedes = Annotated[
    list[str] | None,
    Option("--supersedes", "ID", "Node that it replaces while it is active. May be repeated."),
]
ReadyType = Annotated[
    str | None,
    Option(
        "--type", "TYPE", f"Only nodes of this type (default: {', '.join(listing.ACTIONABLE)}); see create."
    ),
]
ReadyLimit = Annotated[
    str | None,
    Option("--limit", "N", f"Maximum number of nodes (default: {listing.READY_LIMIT})."),
    ForModels(default=listing.READY_LIMIT, most=50),
]
CallJoin = Annotated[
    str | None,
    Option("--join", "all|any", f"Wait for all results, or return with the first (default: {ALL})."),
    ForModels(values=(ALL, ANY)),
]
WithContext = Annotated[
    bool,
    Flag(
        "--with-context",
        "Hand over your working memory: what you wrote in this session, your last checkpoint and signals.",
    ),
    MODEL,
]
WithMemory = Annotated[
    bool, Flag("--with-memory", "Name the nodes of your work unit and of the project."), MODEL
]
NoMark = Annotated[bool, Flag("--no-mark", "Do not mark the signals as delivered."), MODEL]
Deadline = Annotated[
    str | None, Option("--deadline", "2h", "Time after which nobody begins it, such as 2h."), MODEL
]
CallAgents = Annotated[
    str,
    Argument("AGENT[,AGENT…]", "Agents to call: name, identity or alias of a role, separated by commas."),
    MODEL,
]
CallVariables = Annotated[
    list[str] | None, Option("--var", "K=V", "Hand over a value; VALUE is JSON or text. May be repeated.")
]
