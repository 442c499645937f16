"""Options that commands share with the tools for models or with the library, each declared once.

Only typer's declarations and the MCP server import this module: commands name it in annotations. Defaults and allowed
values are those of the library, which knows no caller.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  (nothing that must start fast imports this module)
from typing import Any

from gitmem.agents import roster
from gitmem.calls.call_result import ALL, ANY
from gitmem.memory import context, listing, node_fields, search
from gitmem.memory.node_fields import ALIASES, DEFAULT_TYPE, LIFECYCLES, PRIORITIES, TYPES
from gitmem.order.content import INTENTS
from gitmem.records.table import OPTIONS
from gitmem.signals import inbox, receipt_list, threads
from gitmem.work import stored_tasks


class Option:
    """An option's description, default and allowed values, for people and for models.

    Attributes:
        help: The description.
        default: The value of an option that is not given; None if other things decide it.
        values: The allowed texts; empty if others are allowed.
        metavar: What help shows for the value of an option of signals; None for a flag.
        tool_default: What a tool has by default: a model reads less, and waits less long, than a person or a program.
        tool_most: The greatest number that a tool takes.
        is_choice: Whether models are told the values as a list.
        for_models: Whether models have this option of signals.
        is_plain: Whether models read only its name, which says what it is: each word costs every agent at every start.
    """

    def __init__(
        self,
        help: str,
        *,
        metavar: str | None = None,
        default: Any = None,
        values: Sequence[str] = (),
        for_tools: tuple[int | str, int] = (0, 0),
        is_choice: bool = False,
        for_models: bool = False,
        is_plain: bool = False,
    ) -> None:
        self.tool_default, self.tool_most = for_tools
        self.is_choice = is_choice
        self.for_models = for_models
        self.is_plain = is_plain
        self.help = help
        self.metavar = metavar
        self.default = default
        self.values = tuple(values)


def _listed(values: Sequence[str], word: str = "or") -> str:
    return f"{', '.join(values[:-1])} {word} {values[-1]}"


# In the declaration of a parameter: models have it, too. An `Option` with limits for tools says the same.
MODEL = Option("")
PLAIN = Option("", is_plain=True)
ANY_ID = Option("An id or a unique prefix.")
MILESTONE = Option("Also tell everybody.")
_VALUES = {"intent": INTENTS}
# The options of `SignalOptions`, in the order of help; those of fields are declared in `records/kinds.py`.
SIGNAL_OPTIONS = {
    "to": Option("Recipients: names, identities, session ids or role:ROLE.", metavar="A,B", for_models=True),
    "broadcast": Option("Send to everybody, also in a thread.", for_models=True, is_plain=True),
    "reply_to": Option("Id of the signal to answer.", metavar="ID"),
    "thread": Option(
        "A thread id, or the id of a signal in it.", metavar="ID", for_models=True, is_plain=True
    ),
    **{
        name: Option(
            help,
            metavar=metavar or None,
            values=_VALUES.get(name, ()),
            default=_VALUES.get(name, (None,))[0],
            is_choice=name in _VALUES,
            for_models=for_models,
            is_plain=True,
        )
        for name, (_, help, metavar, for_models) in OPTIONS.items()
    },
    "allow_unseen": Option("Accept an agent identity that is not in the log yet."),
    "insist": Option("Record a decision as --as from a different session, which the record names."),
}
WU, INITIATIVE, LANE, INTENT, THREAD = (
    SIGNAL_OPTIONS[name] for name in ("wu", "initiative", "lane", "intent", "thread")
)
ALREADY_READ = Option("Include signals delivered before.")
INBOX_LIMIT = Option(f"Maximum number of signals (default: {inbox.LIMIT}).", default=inbox.LIMIT)
RECEIPTS_SIGNAL = Option("Only of this signal: an id or a unique prefix.")
READER = Option("Only of this reader: a name, identity or session id.")
RECEIPTS_SINCE = Option("Only after this time: ISO or a duration such as 1h.")
RECEIPTS_LIMIT = Option(
    f"Maximum number of receipts (default: {receipt_list.LIMIT}).",
    default=receipt_list.LIMIT,
    for_tools=(receipt_list.LIMIT, 200),
)
THREAD_LIMIT = Option(
    f"Maximum number of signals, first and last (default: {threads.LIMIT}; JSON all).",
    default=threads.LIMIT,
    for_tools=(20, 100),
)
ROSTER_LIMIT = Option(
    f"Maximum number of sessions (default: {roster.SHOWN}).", default=roster.SHOWN, for_tools=(30, 200)
)
NEW_WU = Option("Accept a work unit that no session, signal or memory node names.")
IDENTITY = Option("Agent identity OWNER:ROLE:PURPOSE, which outlives the session.")
NAME = Option("Display name.")
DONE = Option("Tell everybody that the work unit is done.")
SUMMARY = Option("What the session did, in one line.")
ROLE = Option("Role: LIFECYCLE/PROFILE, an alias or the beginning of one; '' removes it.")
SHOWN_ROLE = Option("A role, an alias or the beginning of one.")
SCOPE = Option(
    "Path, or paths=, wu=, initiative=, lane= or kinds= with values; may be repeated; '' removes it."
)
MODEL = Option("Model that runs the agent; '' removes it.")
CAPABILITIES = Option("What the agent can do; '' removes it. They give no role.")

DELEGATE = Option("Who shall do it: an agent, or role:ROLE for any one with a role.")
REQUESTED_ROLE = Option("Role to work in (default: that of the addressee).")
REQUESTED_SCOPE = Option(
    "What it covers: paths, or KEY=VALUE (default: the work unit, else that of the addressee)."
)
REQUESTED_MODEL = Option("Model that it is for.")
BRIEF = Option("File with the details; its SHA-256 is recorded.")
BLOCKED_BY = Option("Task that must be finished before it; may be repeated.")
TASK_KEY = Option("Repeating a task with the same key records nothing new.")
AGAIN = Option("Allow an agent who is already in the chain of delegations.")
CALL_AGENTS = Option("Agents to call: name, identity or alias of a role, separated by commas.")
CALL_JOIN = Option(
    f"Wait for all results, or return with the first (default: {ALL}).",
    default=ALL,
    values=(ALL, ANY),
    is_choice=True,
)
CALL_CONTEXT = Option(
    "Hand over your working memory: what you wrote in this session, your last checkpoint and signals."
)
CALL_VAR = Option("Hand over a value; VALUE is JSON or text. May be repeated.")
CALL_MEMORY = Option("Name the nodes of your work unit and of the project.")
CALL_DRY_RUN = Option("Show what would be handed over, and what would be left out, without calling.")
CALL_TIMEOUT = Option(
    "Time to wait; the task goes on after it (default: 10m).", for_tools=("45s", 0)
)  # clients end a request after a minute
CALL_KEY = Option("Repeating a call with the same key waits for the same task.")
DEADLINE = Option("Time after which nobody begins it, such as 2h.")
HANDOFF_TO = Option("Who shall go on: an agent, or role:ROLE for any one with a role.")
HANDOFF_WU = Option("Only what belongs to this work unit.")
NEXT_STEPS = Option("The next steps (default: those of your last checkpoint).")
DRY_HANDOFF = Option("Write nothing; show what would be handed over.")
TASK_ID = Option("A task id or a unique prefix.")
TASK_LIMIT = Option(
    f"Maximum number of tasks (default: {stored_tasks.LISTED}).",
    default=stored_tasks.LISTED,
    for_tools=(20, 200),
)

CLAIM_PATHS = Option("Files, folders, or patterns with *, ? and ** in quotes.")
CLAIM_FOR = Option("Time until it ends, at most 24h; it is renewed while you work (default: 1h).")
CLAIM_REASON = Option("What you are about to do.")
OVERLAP_BRANCH = Option("Only pairs with this branch.")
WHY_TARGET = Option("FILE, FILE:LINE, FILE:10-20 or a commit.")

NODE_ID = Option("A node id (mem-…) or a unique prefix.")
NODE_IDS = Option("Node ids or unique prefixes.")
VERIFIED = Option("Confirm that it is still true for the current code; clears `stale`.")
TAXONOMY = Option(f"{_listed(node_fields.TAXONOMY)}.", values=node_fields.TAXONOMY)
NODE_WU = Option("Work unit (default: your session's).")
ONLY_WU = Option("Only nodes of this work unit, or `unlinked`.")
NODE_TYPE = Option(
    f"{_listed(TYPES)}; {_listed(ALIASES, 'and')} create a discovery with that tag.", default=DEFAULT_TYPE
)
LIFECYCLE = Option(f"{_listed(LIFECYCLES)}.", values=LIFECYCLES)
NEW_LIFECYCLE = Option(
    f"{_listed(LIFECYCLES)} (default by type: note and checkpoint session, summary project, all others wu).",
    values=LIFECYCLES,
)
PRIORITY = Option(f"{PRIORITIES[0]} (highest) to {PRIORITIES[-1]}.", values=PRIORITIES)
PATHS = Option("File or folder that it is about.")
PRIVATE = Option("Keep it in this clone, for you alone: it is never on the log, in an export or in a sync.")
SUPERSEDES = Option("Node that it replaces while it is active.")
SEARCH_LIMIT = Option(
    f"Maximum number of nodes (default: {search.LIMIT}).", default=search.LIMIT, for_tools=(search.LIMIT, 50)
)
LIST_LIMIT = Option(f"Maximum number of nodes (default: {listing.LIMIT}).", default=listing.LIMIT)
READY_TYPE = Option(f"Only nodes of this type (default: {', '.join(listing.ACTIONABLE)}); see create.")
READY_LIMIT = Option(
    f"Maximum number of nodes (default: {listing.READY_LIMIT}).",
    default=listing.READY_LIMIT,
    for_tools=(listing.READY_LIMIT, 50),
)
PROFILE_LIMIT = Option(
    f"Maximum number of nodes (default: {context.PROFILE_LIMIT}).", default=context.PROFILE_LIMIT
)
MAX_SIZE = Option(
    f"Maximum size in bytes of UTF-8 (default: {context.MAX_SIZE}).",
    default=context.MAX_SIZE,
    for_tools=(context.MAX_SIZE, context.SUGGESTED_SIZE_MAX),
)
