"""The decay score of a node by its age, its priority and its accesses; and the records of which nodes readers were shown.

A node that is read often decays more slowly.
"""

from __future__ import annotations

from ..errors import UsageError
from ..log.lines import CommitMessage
from ..outcome import Outcome, command
from . import stored_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..order.node import VersionedNode
    from ..records.record_types import AccessFields
    from ..store import Store


DAY_MICROS = 24 * 3600 * 1_000_000
HALF_LIFE_MICROS = 30 * DAY_MICROS
THRESHOLD = 0.1
STALE = 0.5  # factor of the score of a node whose files changed since
IMPORTANCE = {"P0": 2.0, "P1": 1.5, "P2": 1.0, "P3": 0.5}


def recency(touched: int, now: int, half_life: int = HALF_LIFE_MICROS) -> float:
    """Return 1 for a new node, or one dated ahead of the clock; less with age, towards 0. All in microseconds."""
    from math import exp

    return exp(-max(0, now - touched) / half_life)


def access(count: int) -> float:
    """Return the access part of a score: 0 for a node never read, 0.24 after ten accesses."""
    from math import log1p

    return log1p(max(0, count)) / 10


def importance(priority: str | None) -> float:
    """Return the factor of a priority; none counts as P2."""
    return IMPORTANCE.get(priority or "P2", 1.0)


def score_of(
    touched: int, count: int, priority: str | None, *, now: int, half_life: int = HALF_LIFE_MICROS
) -> float:
    """Return the score of a node changed at `touched`, with `count` accesses and a priority."""
    return recency(touched, now, half_life) * (1 + access(count)) * importance(priority)


def score(node: VersionedNode, *, now: int, half_life: int = HALF_LIFE_MICROS) -> float:
    """Return the score of a node at a time, in microseconds since the epoch."""
    return score_of(node.touched, node.accesses, node.priority, now=now, half_life=half_life)


def stale_age(half_life: int = HALF_LIFE_MICROS) -> int:
    """Return the microseconds to add to the age of a stale node when ranking by recency. Equivalent to `STALE`."""
    from math import log

    return int(-log(STALE) * half_life)


def validate(half_life: int, threshold: float = THRESHOLD) -> None:
    """Validate a half-life and a threshold.

    Raises:
        UsageError: A value is not a number above 0.
    """
    if not 0 < half_life < float("inf"):
        raise UsageError("The half-life must be a time above 0. Nothing was written.", code="bad-half-life",
                         hint="Use a form such as 30d (the default).")  # fmt: skip
    if not 0 < threshold < float("inf"):
        raise UsageError("The threshold must be a number above 0. Nothing was written.", code="bad-threshold",
                         hint="Use a number such as 0.1 (the default); a new node without a priority has the score 1.")  # fmt: skip


class Stats(Outcome):
    """The access count of a node, its last access and its decay score now."""

    node_id: str
    count: int
    last_accessed_at: str | None
    score: float


class Accessed(Outcome):
    """The accesses of some nodes; `recorded` is true if an access was added just now."""

    accesses: list[Stats]
    recorded: bool
    next: list[str]


def record_accesses(
    store: Store,
    caller: Caller,
    node_ids: Sequence[str],
    *,
    half_life: int = HALF_LIFE_MICROS,
    names_max: int = stored_nodes.NAMES_MAX,
) -> Accessed:
    """Record that nodes were shown to the caller, once each, but not of private ones.

    The record is deferred to the next commit: reading makes no commit.

    Args:
        node_ids: Ids, or prefixes of six characters or more after the dash; none records nothing.
        half_life: Microseconds, for the returned scores.
        names_max: The number of nodes that one line names.

    Raises:
        UsageError: An id is unknown here. Nothing was recorded.
        StoreError: The store could not be read or written.
    """
    validate(half_life)
    db = store.db()
    found = list(dict.fromkeys(stored_nodes.find_node(db, text, writing=True) for text in node_ids))
    shared = [id for id in found if not stored_nodes.is_private(db, id)]
    lines = []
    for start in range(0, len(shared), names_max):
        fields: AccessFields = {
            "id": store.new_id("access"),
            "node_ids": shared[start : start + names_max],
            "reader_identity": caller.reader,
            "reader_session": caller.session_id,
        }
        lines.append(store.line("access", fields))
    if lines:
        caller.touch(store)
        lines += caller.keepalive(store)
        count = f"{len(shared)} node{'s' if len(shared) > 1 else ''} of the memory"
        subject = f"{caller.name or caller.reader} read {count}"
        store.record(
            lines, CommitMessage(caller.author, subject, "", [("Agent", caller.reader)]), deferred=True
        )
    shown = [command("gitmem", "show", id) for id in found[:1]]
    return Accessed(_stats(store, found, half_life), bool(lines), shown)


def stats(store: Store, id: str, *, half_life: int = HALF_LIFE_MICROS) -> Stats:
    """Return the accesses of one node.

    Raises:
        UsageError: The id is unknown here.
    """
    validate(half_life)
    found = stored_nodes.find_node(store.db(), id)
    return _stats(store, [found], half_life)[0]


def _stats(store: Store, ids: Sequence[str], half_life: int) -> list[Stats]:
    now = store.now()
    return [
        Stats(node.id, node.accesses, node.last_accessed_at, score(node, now=now, half_life=half_life))
        for node in stored_nodes.load(store.db(), ids)
    ]
