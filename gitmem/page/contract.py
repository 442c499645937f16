"""The data of the page, `gitmem.page/1`: what the code that collects it and the page's script agree on.

Times are milliseconds since 1970 in UTC. An absent field is unknown. Texts are what peers wrote: limited in length and passed
through `sanitize`; the page shows them as text and never as markup. Agents are named by the ids of `AgentLane`, which are
short, and of which the order says nothing. `Board` is what is open now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

if TYPE_CHECKING:
    from ..history.figures import Statistics


FORMAT = "gitmem.page/1"

Receipt = tuple[str, str, int]  # agent, `delivered`, `acked` or `rejected`, time
Stand = tuple[
    str, str
]  # agent, `agree`, `reject`, `counter`, `stale` (agreed before a later proposal) or `pending`
Omitted = dict[
    str, int
]  # by the name of a list: how many entries the limits left out, the oldest; the filters are not counted


class Filters(TypedDict):
    """What the page was limited to; times are as everywhere."""

    since: NotRequired[int]
    wu: NotRequired[str]
    agent: NotRequired[str]


class You(TypedDict):
    """The caller of the command that made or serves the page; without `agent`, `why` says why nobody knows."""

    agent: NotRequired[str]
    why: NotRequired[str]


class AgentLane(TypedDict):
    """An agent or a person: a lane. Its sessions share it; `person` is true for `human:<mail>`.

    `writer`: The writer whose agent or person it is.
    """

    id: str
    name: str
    identity: str
    writer: NotRequired[str]
    person: bool
    client: NotRequired[str]
    role: NotRequired[str]
    live: bool
    first: int
    last: int


class SessionBar(TypedDict):
    """A session of an agent; `end` is absent while it is open, `last` is its last sign of life. `status`: `live`, `idle`, `gone` or `ended`."""

    id: str
    agent: str
    name: str
    start: int
    end: NotRequired[int]
    last: int
    live: bool
    status: str
    wu: NotRequired[str]
    role: NotRequired[str]
    worktree: NotRequired[str]
    branch: NotRequired[str]
    model: NotRequired[str]
    activity: NotRequired[str]


SignalMark = TypedDict(
    "SignalMark",
    {
        "id": str,
        "at": int,
        "from": str,
        "to": list[str],
        "broadcast": bool,
        "intent": str,
        "text": str,
        "cut": NotRequired[int],  # how many characters are left out
        "thread": str,
        "reply": NotRequired[str],
        "wu": NotRequired[str],
        "task": NotRequired[str],
        "ack": bool,
        "unsigned": NotRequired[bool],  # its line names no writer, so nobody has signed it
        "receipts": list[Receipt],
    },
)


class ProposalMark(TypedDict):
    """A proposal of a thread."""

    signal: str
    agent: str
    text: str


class ThreadState(TypedDict):
    """A thread of which the page has a signal; `more` of its signals are left out.

    `verified`, `writers`: Whether all proposals and answers of the parties are signed, and by which writers, by lane.
    `in_force`: The proposal that all agreed to, else the latest one, or those that conflict; left out for the first signal.
    `state`: `converged` (all agreed), `rejected`, `countered`, `open` (an answer is missing),
    `settled` (somebody has taken its task, or that has ended), `ambiguous` (an id has several texts), `notice` (nobody was asked: information, or a broadcast), or `large` (too large to evaluate).
    """

    id: str
    root: NotRequired[str]
    state: Literal["converged", "rejected", "countered", "open", "settled", "ambiguous", "notice", "large"]
    stands: list[Stand]
    verified: NotRequired[bool]
    writers: NotRequired[list[tuple[str, list[str]]]]
    title: str
    in_force: NotRequired[list[ProposalMark]]
    wu: NotRequired[str]
    signals: int
    more: NotRequired[int]


class HandedOver(TypedDict):
    """What a handoff hands over, by id: tasks, claims, open threads, and the giver's last checkpoint, a memory node."""

    tasks: list[str]
    claims: list[str]
    threads: list[str]
    checkpoint: NotRequired[str]


TaskSpan = TypedDict(
    "TaskSpan",
    {
        "id": str,
        "at": int,
        "from": str,
        "to": NotRequired[str],
        "target": NotRequired[str],
        "state": str,
        "state_text": str,
        "open": bool,
        "purpose": str,
        "priority": NotRequired[str],
        "text": str,
        "wu": NotRequired[str],
        "thread": NotRequired[str],
        "holder": NotRequired[str],
        "taken": NotRequired[int],
        "until": NotRequired[int],
        "ended": NotRequired[int],
        "result": NotRequired[str],
        "blocked_by": list[str],  # of `waits_for`: those without an outcome
        "waits_for": list[str],
        "mismatch": NotRequired[str],
        "notes": list[str],
        "hands": NotRequired[HandedOver],
    },
)


class ClaimSpan(TypedDict):
    """A claim on paths; `until` is its last end, `ended` when it was released, or its session or task ended.

    `state`: `held`, `contested`, `behind` (another claim came first), `perhaps renewed`, `expired`, `released` or `ended`.
    """

    id: str
    agent: str
    session: NotRequired[str]
    paths: list[str]
    mode: str
    start: int
    until: int
    ended: NotRequired[int]
    state: str
    reason: NotRequired[str]
    wu: NotRequired[str]
    task: NotRequired[str]
    against: list[str]


class CommitMark(TypedDict):
    """A commit of the user's history. `agent` and `session` made it if the log has its record; `inferred` if that is a guess.

    `foreign`: only another clone says so. `person` is the lane of the person with the author's mail.
    """

    id: str
    at: int
    author: str
    subject: str
    branches: list[str]
    agent: NotRequired[str]
    session: NotRequired[str]
    wu: NotRequired[str]
    task: NotRequired[str]
    inferred: NotRequired[bool]
    foreign: NotRequired[bool]
    person: NotRequired[str]


class BranchTip(TypedDict):
    """A branch of the user, as it is now."""

    name: str
    commit: str
    at: int


class NodeChange(TypedDict):
    """A line about a node: it was created, updated, closed, archived, related or read."""

    at: int
    agent: str
    what: str


class MemoryNode(TypedDict):
    """A node of the shared memory. `decay` is 1 for a fresh node and goes to 0; `status`: `active`, `closed` or `archived`."""

    id: str
    type: str
    lifecycle: str
    status: str
    text: str
    cut: NotRequired[int]
    at: int
    updated: NotRequired[int]
    agent: str
    wu: NotRequired[str]
    tags: list[str]
    paths: list[str]
    decay: float
    stale: NotRequired[str]
    stale_by: NotRequired[list[str]]  # the newest commit of each path that made it stale
    superseded_by: NotRequired[str]
    history: list[NodeChange]


Relation = TypedDict("Relation", {"from": str, "to": str, "type": str, "supersedes": bool})


class PageData(TypedDict):
    """The whole: `made` is when, `repository` the name of its folder, `notes` are sentences on what the page lacks."""

    format: str
    made: int
    repository: str
    generator: str
    filters: Filters
    omitted: Omitted
    notes: list[str]
    you: You
    agents: list[AgentLane]
    sessions: list[SessionBar]
    signals: list[SignalMark]
    threads: list[ThreadState]
    tasks: list[TaskSpan]
    claims: list[ClaimSpan]
    commits: list[CommitMark]
    branches: list[BranchTip]
    nodes: list[MemoryNode]
    relations: list[Relation]
    board: Board
    statistics: Statistics


Overlap = tuple[str, str]  # a path or pattern of each of two claims: some path may be covered by both


class UnreadSignals(TypedDict):
    """How many signals an agent at work has not read, and how many of them are on each work unit."""

    agent: str
    count: int
    units: dict[str, int]


GateBlocker = TypedDict(
    "GateBlocker",
    {
        "signal": str,
        "why": str,
        "from": str,
        "at": int,
        "thread": NotRequired[str],
    },
)


class ClosedGate(TypedDict):
    """The gate of a work unit that an agent can't pass: signals to it are unread, or (`unanswered`) want AGREE or REJECT.

    The work unit is that of its session, or of a task that the session has. `more` of the signals are left out.
    """

    agent: str
    wu: str
    unread: int
    unanswered: int
    blockers: list[GateBlocker]
    more: NotRequired[int]


class PassedRule(TypedDict):
    """Somebody passed a rule with a reason.

    `rule`: `gate` (`signals` blocked it), `checkpoint-gate`, `claim` (an edit in somebody else's claim) or `claim-release`.
    """

    id: str
    at: int
    agent: str
    rule: str
    reason: str
    past: NotRequired[str]
    session: NotRequired[str]
    wu: NotRequired[str]
    signals: list[str]
    claims: list[str]


class Wait(TypedDict):
    """Somebody waits for somebody, as `gitmem roster` says it.

    `owes`: Who is waited for; without it `anyone` says who may do it, such as one that has a role.
    `yours`: Whether it waits for `you`. `ways`: by which answers the page may end it then.
    `what`: An `answer` (to a signal, or to the question about a task), a `task`, its `acceptance` or a `handoff`; `to_do` says it.
    `text`: A line. `question`: All of what the holder of a task asks `you`.
    `id`: The signal or the task; `thread` is that of the signal.
    """

    waiter: str
    owes: NotRequired[str]
    anyone: NotRequired[str]
    yours: bool
    ways: list[str]
    what: str
    to_do: str
    state: NotRequired[str]
    text: str
    question: NotRequired[str]
    wu: NotRequired[str]
    since: int
    id: str
    thread: NotRequired[str]
    commands: list[str]


class ContestSide(TypedDict):
    """A claim in another one's way."""

    claim: str
    agent: str
    at: int
    wu: NotRequired[str]


class Contest(TypedDict):
    """Two claims in each other's way, that which came first before the other.

    `why`: `unseen` (neither writer had seen the other's claim: their clones had not synced; then the clocks say which came first),
    `behind` (the second one's writer had seen the first) or `both` (each names the other).
    """

    sides: list[ContestSide]
    overlaps: list[Overlap]
    why: Literal["unseen", "behind", "both"]


class Mismatch(TypedDict):
    """A task whose worker is something else than asked; `ended` is when the task ended."""

    task: str
    text: str
    agent: NotRequired[str]
    ended: NotRequired[int]


class BranchOverlap(TypedDict):
    """Two branches that change the same files; `conflicts` is absent where git could not say."""

    branches: list[str]
    paths: list[str]
    conflicts: NotRequired[bool]


class Board(TypedDict):
    """What is open now, of the whole log within the filters."""

    gates: list[ClosedGate]
    passed: list[PassedRule]
    unread: list[UnreadSignals]
    waits: list[Wait]
    contested: list[Contest]
    mismatches: list[Mismatch]
    overlaps: list[BranchOverlap]
    open_tasks: list[str]
