"""Write lines of the memory to the log: sender, commit message and the earlier lines they name."""

from __future__ import annotations

from ..commit_message import SUBJECT_MAX, body, cut, sanitize
from ..log.lines import CommitMessage
from ..order.causal import CausalOrder, by_id
from ..order.node import too_large
from . import stored_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from ..agents.caller import Caller
    from ..log.local_log import Appended as Written
    from ..records.record_types import PatchContent, PatchFields
    from ..store import Store

    Lines = list[tuple[str, bytes]]

NAMES_MAX = 6_000  # node and patch ids in one patch: a line has at most 256 KiB
TRAILERS_MAX = 20


def record(
    store: Store,
    caller: Caller,
    lines: Sequence[tuple[str, bytes]],
    what: str,
    *,
    text: str = "",
    nodes: Sequence[str] = (),
    wu: str | None = None,
) -> Written:
    """Append lines in one commit.

    Args:
        what: The action, for the subject: `discovery The parser drops tabs`.
        text: The body of the commit.
        nodes: The ids for its trailers.

    Raises:
        StoreError: The store could not be written. Nothing was recorded.
    """
    trailers = [("Memory", id) for id in nodes[:TRAILERS_MAX]]
    who = [(key, value) for key, value in caller.trailers() if key != "WU"]
    message = CommitMessage(
        caller.author,
        cut(sanitize(f"{caller.name or caller.reader}: {what}"), SUBJECT_MAX),
        body(text),
        [*trailers, *([("WU", wu)] if wu else []), *who],
    )
    every = [*lines, *caller.keepalive(store)]
    caller.touch(store)
    return store.record(every, message)


def patches(
    store: Store,
    caller: Caller,
    node_ids: Iterable[str],
    content: PatchContent,
    *,
    clear: Sequence[str] = (),
    names_max: int = NAMES_MAX,
) -> Lines:
    """Return the lines that change fields of nodes: usually one, whatever the number of nodes.

    If a field is too large for a patch of several nodes, each node gets its own patch.

    Args:
        names_max: The number of node and patch ids in one patch.

    Raises:
        RecordError, SecretError: A value is invalid.
    """
    db = store.db()
    lines = []
    alone = bool(too_large(content))
    for some, after in _portions(db, sorted(set(node_ids)), 1 if alone else names_max, names_max):
        fields: PatchFields = {
            **content,
            "sender_identity": caller.reader,
            "sender_session": caller.session_id,
            "sender_name": caller.name,
            "id": store.new_id("patch"),
            "node_ids": some,
            "after": after,
            "clear": list(clear),
        }
        lines.append(store.line("patch", fields))
    return lines


def _portions(
    db: sqlite3.Connection, node_ids: Sequence[str], most: int, names_max: int
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield node ids and their latest patches, in portions that fit in a line.

    Args:
        most: The maximum number of nodes in a portion.
        names_max: The maximum number of nodes and patches in it.
    """
    heads = _latest_patches(db, node_ids)
    some: list[str] = []
    after: dict[str, None] = {}
    for id in node_ids:
        more = heads.get(id, [])
        if some and (len(some) >= most or len(some) + len(after) + 1 + len(more) > names_max):
            yield some, list(after)
            some, after = [], {}
        some.append(id)
        after.update(dict.fromkeys(more))
    if some:
        yield some, list(after)


def _latest_patches(db: sqlite3.Connection, node_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the patches of each node that no other patch of it follows, by node id."""
    patches = stored_nodes.patches_of(db, node_ids)
    order = stored_nodes.order_of(patches)
    found: dict[str, list[str]] = {}
    known: dict[tuple[bytes, ...], list[str]] = {}
    for id, of in patches.items():
        changes = by_id(of).values()
        lines = tuple(change.line for change in changes)
        if lines not in known:
            known[lines] = sorted(change.id for change in CausalOrder(changes, order).heads(changes))
        found[id] = known[lines]
    return found
