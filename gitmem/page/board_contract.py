"""What is open now, of the data of the page: see `contract`."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

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


class Owed(TypedDict):
    """What somebody owes to somebody: `agent`, or one who has the role `target`.

    `what`: an `answer` (a signal asks for a decision), a `reply` (the worker on a task asks its caller for input), a `take` (nobody has
    taken or refused the task), or a `confirmation` (the caller has not decided on the result).
    """

    what: Literal["answer", "reply", "take", "confirmation"]
    agent: NotRequired[str]
    target: NotRequired[str]
    to: str
    since: int
    text: str
    wu: NotRequired[str]
    signal: NotRequired[str]
    thread: NotRequired[str]
    task: NotRequired[str]


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
    owed: list[Owed]
    contested: list[Contest]
    mismatches: list[Mismatch]
    overlaps: list[BranchOverlap]
    open_tasks: list[str]
