"""Record which nodes readers were shown, and count it. A node that is read often decays more slowly."""

from __future__ import annotations

from ..log.lines import CommitMessage
from ..outcome import Outcome, command
from ..records import ids
from . import decay, load, private_nodes, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..order.node import VersionedNode
    from ..records.record_types import AccessFields
    from ..store import Store


class Stats(Outcome):
    """The access count of a node, its last access and its decay score now."""

    def __init__(self, node: VersionedNode, score: float) -> None:
        self.node_id = node.id
        self.count = node.accesses
        self.last_accessed_at = node.last_accessed_at
        self.score = score


class Accessed(Outcome):
    """The accesses of some nodes; `recorded` is true if an access was added just now."""

    def __init__(self, accesses: Sequence[Stats], recorded: bool) -> None:
        self.accesses = list(accesses)
        self.recorded = recorded
        self.next = [command("gitmem", "mem", "show", each.node_id) for each in self.accesses[:1]]


def record(
    store: Store,
    caller: Caller,
    node_ids: Sequence[str],
    *,
    half_life: int = decay.HALF_LIFE_MICROS,
    names_max: int = write.NAMES_MAX,
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
    decay.validate(half_life)
    db = store.db()
    found = list(dict.fromkeys(private_nodes.find_node(db, text, writing=True) for text in node_ids))
    shared = [id for id in found if not load.is_private(db, id)]
    lines = []
    for start in range(0, len(shared), names_max):
        fields: AccessFields = {
            "id": ids.new_id("access", store.random),
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
    return _answer(store, found, half_life, recorded=bool(lines))


def accesses_of(
    store: Store, node_ids: Sequence[str], *, half_life: int = decay.HALF_LIFE_MICROS
) -> Accessed:
    """Return the accesses of nodes, without recording any.

    Raises:
        UsageError: An id is unknown here.
    """
    decay.validate(half_life)
    db = store.db()
    found = list(dict.fromkeys(private_nodes.find_node(db, text) for text in node_ids))
    return _answer(store, found, half_life, recorded=False)


def stats(store: Store, id: str, *, half_life: int = decay.HALF_LIFE_MICROS) -> Stats:
    """Return the accesses of one node.

    Raises:
        UsageError: The id is unknown here.
    """
    return accesses_of(store, [id], half_life=half_life).accesses[0]


def _answer(store: Store, found: Sequence[str], half_life: int, *, recorded: bool) -> Accessed:
    now = store.now()
    nodes = load.load(store.db(), found)
    each = [Stats(node, decay.score(node, now=now, half_life=half_life)) for node in nodes]
    return Accessed(each, recorded)
