"""Nodes in the index: their rows, made of their lines in any order of arrival; reading them; ids; who has written and changed them; and new lines.

A node without patches, or with one patch that only changes its status, is written directly: archiving 50,000 nodes must not
load them. Every other node is folded again from all of its lines.
"""

from __future__ import annotations

from .. import records
from ..agents import presence
from ..commit_message import SUBJECT_MAX, body, cut, sanitize
from ..errors import UsageError
from ..index import entities
from ..index.entities import Fold
from ..index.resolve_id import choose
from ..log.lines import CommitMessage, parse_all, parse_at
from ..order.causal import CausalOrder, by_id
from ..order.node import STATUS, PatchChange, VersionedNode, add_signature, fold, fold_changes, too_large
from ..records.ids import unit_key
from ..text.addresses import words_of, writer_of
from ..text.sanitize import first_of
from ..text.strict_json import json_list
from .node_tables import BY_SESSION, DELETED, HIDDEN, IS_LIVE, IS_WRITTEN, NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ..agents.caller import Caller
    from ..index.entities import LineRow, Lines, NewLines, Rows
    from ..log.local_log import Appended
    from ..order.node import WinningPatches
    from ..records.record_types import PatchContent, PatchFields
    from ..store import Store

    Values = Mapping[str, str | int | None] | Sequence[object]


# SQL conditions on a row `n` of `node`.
IS_AMONG = "n.id IN (SELECT value FROM json_each(?))"
HAS_PATHS = "n.id IN (SELECT id FROM anchor)"


def has_path(condition: str) -> str:
    """Return the condition that a node has a path that meets one."""
    return f"n.id IN (SELECT id FROM anchor WHERE {condition})"


def has_tag(count: int = 1) -> str:
    """Return the condition that a node has one of a number of tags."""
    return f"n.id IN (SELECT id FROM tag WHERE tag IN ({', '.join('?' * count)}))"


# The SQL condition that a visible summary covers a row `n` of `node`. A summary that is closed, archived, deleted or
# itself summarized, as in a cycle, covers nothing.
IS_SUMMARIZED = (
    "EXISTS (SELECT 1 FROM node s WHERE s.id = n.summarized_into AND s.id <> n.id"
    " AND s.type = 'summary' AND s.state = 0 AND s.summarized_into IS NULL)"
)

NAMED_MAX = 2  # names of other writers in one line
CONFLICT = "CONFLICT"  # several lines with this node's id have different content
NO_BRACKETS = str.maketrans("()[]", "    ")  # a name must not close gitmem's brackets or fake an identity
_SHOWN = (
    "SELECT s.session_id, coalesce(s.agent_identity, s.session_id), t.shown FROM json_each(?) i"
    " JOIN session s ON s.session_id = i.value JOIN tenure t INDEXED BY tenure_last"
    " ON t.session_id = s.session_id AND t.last"
)


def set_own_names(db: sqlite3.Connection, nodes: Collection[VersionedNode]) -> None:
    """Set which names in nodes are the display names of sessions of the same identity, now or at their end, and which words are several agents'."""
    from ..records.ids import is_id

    for node in nodes:
        add_signature(node, node.sender_identity, node.sender_name, node.sender_session)
    writers = {each for node in nodes for each in _writers(node) if writer_of(each)}
    shared = {each for each in writers if {*presence.addresses_with(db, words_of(each))} - {each}}
    for node in nodes:
        node.shared = shared
    sessions = {session for node in nodes for *_, session in node.signed if is_id("sess", session)}
    if not sessions:
        return
    rows = db.execute(_SHOWN, (json_list(sorted(sessions)),))
    shown = {session: (sender, name) for session, sender, name in rows}
    for node in nodes:
        node.own_names = {
            (sender, name) for sender, name, session in node.signed if shown.get(session) == (sender, name)
        }


def _writers(node: VersionedNode) -> list[str]:
    return [
        node.sender_identity,
        node.content_by or "",
        *(each["sender_identity"] for each in node.changed_by),
    ]


def format_writer(node: VersionedNode, name: object, identity: object) -> str:
    """Return the name if it is its session's own, else the name with the identity, or the identity alone."""
    exact = str(identity or "")
    exact = exact if exact in node.shared else words_of(exact)
    plain, exact = (str(each or "").translate(NO_BRACKETS) for each in (name, exact))
    if not plain or plain == exact:
        return exact
    return plain if (identity, name) in node.own_names else f"{plain} ({exact})"


def byline(node: VersionedNode) -> str:
    """Return the writers of a node, and whether its lines conflict: `Curie, CONFLICT: different lines by Curie and Planck`."""
    return ", ".join([writer_names(node), *conflict_marks(node)])


def conflict_marks(node: VersionedNode) -> list[str]:
    """Return that the lines of a node conflict, if they do. `gitmem show` lists who wrote which."""
    if not node.conflicting:
        return []
    return [f"{CONFLICT}: different lines by {first_of(node.conflicting, NAMED_MAX, joint=' and ')}"]


def writer_names(node: VersionedNode) -> str:
    """Return the writer of the content and other writers: `Curie in a node of Planck, changed by Meitner`."""
    author = format_writer(node, node.sender_name, node.sender_identity)
    if node.content_by:
        author = f"{format_writer(node, node.content_by_name, node.content_by)} in a node of {author}"
    others = [
        format_writer(node, each.get("sender_name"), each["sender_identity"])
        for each in node.changed_by
        if each["sender_identity"] != node.content_by
    ]
    if not others:
        return author
    return f"{author}, changed by {first_of(others, NAMED_MAX)}"


def is_changed(node: VersionedNode) -> bool:
    """Return whether writers other than the author changed it, or its lines conflict."""
    return bool(node.content_by or node.changed_by or node.conflicting)


AT_ONCE = 300  # nodes that callers fold at once, where there may be very many
SHARED_LEAST = 1_000  # pairs of a node and a patch, from which on a common order is considered
SHARED_TIMES = 4  # average number of nodes of a patch, from which on a common order is cheaper
ORDERED_MOST = 16_384  # patches in one order: its size grows with the square of their number


class PatchCache:
    """Patches that calls share: one patch may name thousands of nodes, and to parse it for each would take quadratic time."""

    def __init__(self) -> None:
        self.lines: dict[int, LineRow] = {}
        self._changes: dict[int, PatchChange] = {}

    def change(self, row: LineRow) -> PatchChange:
        """Return the patch of a line."""
        found = self._changes.get(row.id)
        if found is None:
            found = self._changes[row.id] = PatchChange(row.record, row.line)
        return found


def load(
    db: sqlite3.Connection, ids: Iterable[str], cache: PatchCache | None = None, *, whole: bool = True
) -> list[VersionedNode]:
    """Return the nodes with these ids, in this order; unknown ids are skipped.

    Args:
        whole: Whether to load the metadata, too.
    """
    wanted = list(dict.fromkeys(ids))
    cache = cache or PatchCache()
    found = fold_all(entities.lines_of(db, NODE, wanted, known=cache.lines), cache, whole=whole)
    rows = db.execute(
        "SELECT n.id, a.count, a.last, n.private IS NOT NULL FROM json_each(?) i JOIN node n ON n.id = i.value"
        " LEFT JOIN access a ON a.id = n.id WHERE a.id IS NOT NULL OR n.private IS NOT NULL",
        (json_list(found),),
    )
    for id, count, last, private in rows:
        found[id].accesses, found[id].last_accessed_at, found[id].private = count or 0, last, bool(private)
    if whole:
        set_own_names(db, found.values())
    return [found[id] for id in wanted if id in found]


OLDEST = "n.created, n.id"


def select(
    db: sqlite3.Connection,
    where: str,
    values: Values = (),
    *,
    order: str = OLDEST,
    limit: int = entities.LIMIT_MAX,
) -> list[VersionedNode]:
    """Return the nodes whose rows `n` meet a condition, in an order."""
    return load(db, select_ids(db, where, values, order=order, limit=limit))


def select_page(
    db: sqlite3.Connection, where: str, values: Values, *, order: str, limit: int
) -> tuple[list[VersionedNode], int]:
    """Return the first nodes that meet a condition, in an order, and how many more there are."""
    rows, more = entities.select(
        db, f"SELECT n.id FROM node n WHERE {where}", values, order=order, limit=limit
    )
    return load(db, [id for (id,) in rows]), more


def select_ids(
    db: sqlite3.Connection,
    where: str,
    values: Values = (),
    *,
    order: str = OLDEST,
    limit: int = entities.LIMIT_MAX,
) -> list[str]:
    """Return the ids of the nodes whose rows `n` meet a condition, in an order."""
    rows = db.execute(f"SELECT n.id FROM node n WHERE {where} ORDER BY {order} LIMIT {limit}", values)
    return [id for (id,) in rows]


def is_known(db: sqlite3.Connection, id: str) -> bool:
    """Return whether a node is in these tables."""
    return db.execute("SELECT 1 FROM node WHERE id = ?", (id,)).fetchone() is not None


def rows_to_score(db: sqlite3.Connection) -> Iterator[tuple[str, int, str | None, int, str, int]]:
    """Yield id, last change, priority, state, lifecycle and accesses of the nodes that are not deleted, oldest first."""
    yield from db.execute(
        "SELECT n.id, n.touched, n.priority, n.state, n.lifecycle, coalesce(a.count, 0) FROM node n"
        f" LEFT JOIN access a ON a.id = n.id WHERE n.state < {DELETED} ORDER BY {OLDEST}"
    )


def rows_to_clean_up(db: sqlite3.Connection) -> Iterator[tuple[str, str, str, str | None, bool, int]]:
    """Yield id, type, lifecycle, session, whether it is summarized, and time of the nodes that are not deleted, oldest first."""
    yield from db.execute(
        f"SELECT n.id, n.type, n.lifecycle, n.session_id, {IS_SUMMARIZED}, n.created FROM node n"
        f" WHERE n.state < {DELETED} ORDER BY {OLDEST}"
    )


def last_checkpoints(db: sqlite3.Connection, until: int) -> dict[str | None, str]:
    """Return the last checkpoint up to a time of each work unit, and of each session without one."""
    rows = db.execute(
        "SELECT coalesce(wu_id, session_id), id FROM node WHERE type = 'checkpoint'"
        f" AND state < {HIDDEN} AND touched <= ? ORDER BY touched, id",
        (until,),
    )
    return dict(rows.fetchall())


def open_of_priority(db: sqlite3.Connection, priorities: Iterable[str]) -> list[tuple[str, str]]:
    """Return id and priority of the open nodes of some priorities."""
    listed = json_list(priorities)
    query = "SELECT id, priority FROM node WHERE state = 0 AND priority IN (SELECT value FROM json_each(?))"
    return db.execute(query, (listed,)).fetchall()


def values_of_tagged(
    db: sqlite3.Connection, tag: str, where: str, table: str, column: str
) -> Iterator[tuple[str, str | None, int, str]]:
    """Yield id, lane and time of the nodes with a tag that meet a condition, with each of their paths or other tags."""
    yield from db.execute(
        f"SELECT n.id, n.lane, n.created, v.{column} FROM tag d JOIN node n ON n.id = d.id JOIN {table} v ON v.id = n.id"
        f" WHERE d.tag = ?1 AND {where} AND v.{column} <> ?1 ORDER BY 4",
        (tag,),
    )


def units(db: sqlite3.Connection) -> list[str]:
    """Return the work units that records name, and those that discoveries have become."""
    rows = db.execute(
        "SELECT name FROM unit UNION SELECT json_extract(l.body, '$.metadata.promoted_to') FROM line l WHERE l.kind = 'patch'"
        " AND l.body LIKE '%promoted_to%' AND json_valid(l.body)"
    )
    return [str(unit) for (unit,) in rows]


def count(db: sqlite3.Connection, where: str, values: Values = ()) -> int:
    """Return the number of the nodes whose rows `n` meet a condition."""
    (found,) = db.execute(f"SELECT count(*) FROM node n WHERE {where}", values).fetchone()
    return int(found)


def tag_counts(db: sqlite3.Connection, where: str) -> dict[str, int]:
    """Return the tags of the nodes that meet a condition, each with their number, the most used first."""
    query = f"SELECT t.tag, count(*) FROM node n JOIN tag t ON t.id = n.id WHERE {where} GROUP BY t.tag"
    return dict(db.execute(f"{query} ORDER BY 2 DESC, 1").fetchall())


def fold_all(
    lines: Mapping[str, Lines],
    cache: PatchCache | None = None,
    until: str | None = None,
    *,
    whole: bool = True,
) -> dict[str, VersionedNode]:
    """Return the nodes that these lines give, by id.

    Args:
        until: Only patches of this time or earlier count.
        whole: Whether to fold the metadata, too.
    """
    patches = changes_of(lines, cache or PatchCache(), until)
    order = order_of(patches)
    sets: dict[tuple[bytes, ...], WinningPatches] = {}
    found = {}
    for id, own in lines.items():
        made = [(row.record, row.line) for row in own.of("node")]
        if made:
            found[id] = fold_changes(made, patches[id], sets, order, whole=whole)
    return found


def changes_of(
    lines: Mapping[str, Lines], cache: PatchCache, until: str | None = None
) -> dict[str, list[PatchChange]]:
    """Return the patches among the lines of nodes, by id."""
    return {
        id: [cache.change(row) for row in own.of("patch") if until is None or row.at <= until]
        for id, own in lines.items()
    }


def patches_of(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, list[PatchChange]]:
    """Return the patches of nodes, by node id."""
    return changes_of(entities.lines_of(db, NODE, ids, event="patch"), PatchCache())


def batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ids for one call each."""
    for start in range(0, len(ids), AT_ONCE):
        yield ids[start : start + AT_ONCE]


def order_of(patches: Mapping[str, Sequence[PatchChange]]) -> CausalOrder[PatchChange] | None:
    """Return the causal order of all patches if nodes share many; None if ordering them by node is cheaper."""
    pairs = sum(len(of) for of in patches.values() if len(of) > 1)
    if pairs < SHARED_LEAST:
        return None
    every = {each.line: each for of in patches.values() for each in of}
    if pairs < SHARED_TIMES * len(every) or len(every) > ORDERED_MOST:
        return None
    return CausalOrder(every.values())


def node_of_line(line: bytes) -> VersionedNode:
    """Return the node that a line creates, without patches.

    Raises:
        ValueError: The line is not a node.
    """
    record = records.read_kind("node", line)
    if record is None:
        raise ValueError("no node")
    return fold([(record, line)], [])


def is_private(db: sqlite3.Connection, id: str) -> bool:
    """Return whether a node is private to the reader of these tables."""
    row = db.execute("SELECT private FROM node WHERE id = ?", (id,)).fetchone()
    return row is not None and row[0] is not None


def private_ids(db: sqlite3.Connection) -> set[str]:
    """Return the ids of the nodes that are private to the reader of these tables."""
    return {id for (id,) in db.execute("SELECT id FROM node WHERE private IS NOT NULL")}


def mark_private(db: sqlite3.Connection, reader: str, after: int) -> None:
    """Mark the nodes that lines above a number create as private to a reader."""
    own = "SELECT id FROM entity_line WHERE kind = 'node' AND event = 'node' AND line > ?"
    db.execute(f"UPDATE node SET private = ? WHERE id IN ({own})", (reader, after))


def unite(db: sqlite3.Connection, log: str) -> None:
    """Let the names of the memory's tables stand for the rows of the attached index of the log and those of `db` itself.

    `superseded` has no rows of both: see `relations.unite_superseded`.
    """
    for (name,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
        if name not in ("meta", "file", "skipped", "superseded"):
            db.execute(
                f"CREATE TEMP VIEW {name} AS SELECT * FROM {log}.{name} UNION ALL SELECT * FROM main.{name}"
            )


def load_one(db: sqlite3.Connection, id: str) -> VersionedNode:
    """Return the node with an id that `find_node` returned."""
    (node,) = load(db, [id])
    return node


NODE_PREFIX = "mem-"


def find_node(db: sqlite3.Connection, text: str, *, writing: bool = False) -> str:
    """Return the node id for an id or a unique prefix; hidden nodes count, too.

    Raises:
        UsageError: None or several match; the error has the candidates.
    """
    text = validate_id(text)
    if is_known(db, text):
        return text
    start = NODE_PREFIX + text.removeprefix(NODE_PREFIX)
    found: list[str] = []
    if start != NODE_PREFIX:
        found = select_ids(db, "n.id >= ? AND n.id < ?", (start, start + "\U0010ffff"), order="n.id", limit=5)
    lists = ("gitmem mem list", "gitmem mem list --include-archived")
    return choose(start if found else text, found, "node", "show", lists, writing=writing)


def validate_id(id: object) -> str:
    """Check that an id is a string: callers of the library may pass other objects.

    Raises:
        UsageError: The id is not a string.
    """
    if not isinstance(id, str):
        raise UsageError(
            f"Invalid id of type {type(id).__name__}; it must be text such as mem-0123456789ab. "
            "Nothing was written.",
            hint="Use `.id` of a node, or `.node.id` of the result that created it.",
            code="bad-id",
        )
    return id


AUTOMATIC_MAX = 200  # automatic checkpoints to read: peers can write any number about a work unit
CLOCK_SKEW_MAX = 24 * 3600 * 1_000_000  # how far a node's time may be ahead of the clock, in microseconds
_EARLIER = (
    "SELECT n.id FROM session s CROSS JOIN node n ON n.session_id = s.session_id JOIN line l ON l.id = n.line"
    " WHERE (s.agent_identity = :identity OR s.harness_session = :client) AND s.session_id <> :session"
    f" AND s.session_id IN (SELECT name FROM own) AND {BY_SESSION} AND {IS_LIVE} AND {IS_WRITTEN} AND n.touched <= :until"
    " AND CASE WHEN :asked IS NOT NULL THEN n.wu_id = :asked WHEN :unit IS NULL OR s.harness_session = :client THEN true"
    " ELSE coalesce(n.wu_id, :unit) = :unit END ORDER BY n.touched DESC, n.id DESC LIMIT 1"
)


def last_checkpoint(
    store: Store, session: str | None, unit: str | None, asked: str | None, writer: str | None = None
) -> VersionedNode | None:
    """Return the last checkpoint of a session, else of the work unit, else of the writer.

    Args:
        asked: A work unit that the caller named: only checkpoints of this unit count then.
        writer: A reader identity that works without a session.
    """
    db = store.db()
    said_by = "n.session_id IS NULL AND json_extract(l.body, '$.sender_identity') = ?1"
    for condition, value in (
        (f"n.session_id = ?1 AND {BY_SESSION}", session),
        ("n.wu_id = ?1", unit_key(unit) or None),
        (said_by, writer),
    ):
        if value is None:
            continue
        row = db.execute(
            f"SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE {condition} AND {IS_LIVE} AND {IS_WRITTEN}"
            " AND (?2 IS NULL OR n.wu_id = ?2) AND n.touched <= ?3 ORDER BY n.touched DESC, n.id DESC LIMIT 1",
            (value, unit_key(asked) or None, _until(store)),
        ).fetchone()
        if row is not None:
            return load_one(db, row[0])
    return None


def earlier_checkpoint(
    store: Store, session: str, unit: str | None, asked: str | None
) -> VersionedNode | None:
    """Return the last checkpoint that earlier sessions of the same agent, or of the same conversation, wrote in this clone.

    Args:
        session: The present session, of this clone.
        unit: Its work unit: a checkpoint of another one counts only in the same conversation.
        asked: As in `last_checkpoint`.
    """
    own = presence.get(store, session)
    if own is None:
        return None
    values = {
        "identity": own.agent_identity, "client": own.harness_session, "session": session, "until": _until(store),
        "unit": unit_key(unit) or None, "asked": unit_key(asked) or None,
    }  # fmt: skip
    row = store.db().execute(_EARLIER, values).fetchone()
    return load_one(store.db(), row[0]) if row else None


def automatic_ids(store: Store, session: str | None, unit: str | None) -> list[str]:
    """Return the live automatic checkpoints that a session wrote itself, and those of a work unit, last first.

    Peers write about a work unit, too: a time that is too far ahead of the clock would stay the last one.
    """
    rows = store.db().execute(
        f"SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE ((n.session_id = ?1 AND {BY_SESSION}) OR n.wu_id = ?2)"
        f" AND {IS_LIVE} AND NOT {IS_WRITTEN} AND n.touched <= ?3"
        " ORDER BY n.touched DESC, n.id DESC LIMIT ?4",
        (session, unit_key(unit) or None, _until(store), AUTOMATIC_MAX),
    )
    return [str(id) for (id,) in rows]


def notes_changed(store: Store, session: str) -> int:
    """Return when the nodes that a session wrote itself last changed, without automatic checkpoints; 0 without any."""
    (at,) = (
        store.db()
        .execute(
            "SELECT max(n.touched) FROM node n JOIN line l ON l.id = n.line WHERE n.session_id = ?1"
            f" AND {BY_SESSION} AND n.touched <= ?2 AND {IS_WRITTEN}",
            (session, _until(store)),
        )
        .fetchone()
    )
    return at or 0


def _until(store: Store) -> int:
    """Return the latest time of a node that counts: peers' clocks may be ahead, and they can claim any time."""
    return store.now() + CLOCK_SKEW_MAX


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
) -> Appended:
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


def patch_lines(
    store: Store,
    caller: Caller,
    node_ids: Iterable[str],
    content: PatchContent,
    *,
    clear: Sequence[str] = (),
    names_max: int = NAMES_MAX,
) -> list[tuple[str, bytes]]:
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
    changes_by_id = patches_of(db, node_ids)
    order = order_of(changes_by_id)
    found: dict[str, list[str]] = {}
    known: dict[tuple[bytes, ...], list[str]] = {}
    for id, of in changes_by_id.items():
        changes = by_id(of).values()
        lines = tuple(change.line for change in changes)
        if lines not in known:
            known[lines] = sorted(change.id for change in CausalOrder(changes, order).heads(changes))
        found[id] = known[lines]
    return found


# For a node without patches. Binding an empty text is four times as fast as binding None.
_NEW = (
    "INSERT OR IGNORE INTO node VALUES (?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?, nullif(?, ''),"
    " ?, ?, 0, ?, 0, NULL)"
)
_TEXTS = ("wu_id", "session_id", "lane", "priority", "summarized_into")


def _write_unfolded(db: sqlite3.Connection, new: Rows, _: set[str]) -> set[str]:
    """Write the nodes that need no fold, and return those that do."""
    nodes, again = new.of("node"), set()
    if len(nodes):
        _add_fresh(db, nodes)
        _add_tags_and_paths(
            db, zip(nodes.column("id"), nodes.column("tags"), nodes.column("paths"), strict=True)
        )
        several = (
            f"SELECT id FROM entity_line WHERE kind = 'node' AND {_among(nodes.column('id'))}"
            " GROUP BY id HAVING count(*) > 1"
        )
        again = {id for (id,) in db.execute(several)}
    return again | _mark(db, new.of("patch"))


def _add_fresh(db: sqlite3.Connection, nodes: NewLines) -> None:
    """Add the nodes whose ids are new. The rows equal those of `_values` for a node without other lines."""
    ids, column = nodes.column("id"), nodes.column
    work_units, sessions, lanes, priorities, summaries = (
        [each or "" for each in column(name)] for name in _TEXTS
    )
    created = parse_all(column("at"))
    touched = [
        max(at, parse_at(updated)) if updated else at
        for at, updated in zip(created, column("updated_at"), strict=True)
    ]
    marks = zip(column("deleted"), column("archived"), column("closed"), strict=True)
    ranks = [3 if deleted else 2 if archived else 1 if closed else 0 for deleted, archived, closed in marks]
    sensitive = [1 if each else 0 for each in column("sensitive")]
    values = zip(
        ids, nodes.ids, column("type"), column("lifecycle"), map(unit_key, work_units), sessions, lanes, priorities, ranks, sensitive,
        summaries, created, touched, column("sender_identity"), strict=True,
    )  # fmt: skip
    db.executemany(_NEW, sorted(values))  # sorted by key, as below: takes half the time


def _values(node: VersionedNode, lines: Lines) -> Sequence[object]:
    return (
        node.id, lines.of("node")[0].id, node.type, node.lifecycle, unit_key(node.wu_id) or None, node.session_id, node.lane,
        node.priority, node.rank, int(node.sensitive), node.summarized_into, node.created, node.touched,
        int(bool(lines.of("patch")) or len(lines.rows) >= NODE.most), node.sender_identity, node.hidden_by_other, None,
    )  # fmt: skip


def _add_tags_and_paths(
    db: sqlite3.Connection, nodes: Iterable[tuple[str, Sequence[str], Sequence[str]]]
) -> None:
    """Add the tags and paths of nodes."""
    tags, paths = [], []
    for id, own_tags, own_paths in nodes:
        tags += [(tag, id) for tag in own_tags or ()]
        paths += [(path, id) for path in own_paths or ()]
    db.executemany("INSERT OR IGNORE INTO tag VALUES (?, ?)", sorted(tags))
    db.executemany("INSERT OR IGNORE INTO anchor VALUES (?, ?)", sorted(paths))


def _mark(db: sqlite3.Connection, patches: Iterable[LineRow]) -> set[str]:
    """Write the status that patches set, if they change nothing else, and return the ids of nodes to fold again."""
    changed: set[str] = set()
    for row in patches:
        change = PatchChange(row.record, row.line)
        among = _among(sorted(set(row.record["node_ids"])))
        if change.clears or change.touches("summarized_into") or not change.only_marks:
            changed.update(id for (id,) in db.execute(f"SELECT id FROM node WHERE {among}"))
            continue
        changed.update(id for (id,) in db.execute(f"SELECT id FROM node WHERE patched AND {among}"))
        values = (change.rank, row.record["sender_identity"])
        db.execute(
            "UPDATE node SET state = max(state, ?1), patched = 1, hidden_by_other ="
            f" (?1 >= {HIDDEN} AND ?1 >= state AND sender <> ?2) * {STATUS} WHERE {among}",
            values,
        )
    return changed


def _among(ids: Iterable[str]) -> str:
    """Return an SQL condition on any number of ids. They need no escaping: the models allow only letters and digits."""
    return f"id IN (SELECT value FROM json_each('{json_list(ids)}'))"


def _folded(db: sqlite3.Connection, lines: Mapping[str, Lines]) -> list[Sequence[object]]:
    """Return the rows of nodes that are folded from all of their lines."""
    nodes = fold_all(lines, whole=False)
    among = _among(nodes)
    db.execute(f"DELETE FROM tag WHERE {among}")
    db.execute(f"DELETE FROM anchor WHERE {among}")
    _add_tags_and_paths(db, ((node.id, node.tags, node.paths) for node in nodes.values()))
    return [_values(node, lines[id]) for id, node in nodes.items()]


def _add_accesses(db: sqlite3.Connection, new: Rows) -> tuple[str, ...]:
    seen = [(id, row.at) for row in new.of("access") for id in sorted(set(row.record["node_ids"]))]
    db.executemany(
        "INSERT INTO access VALUES (?, 1, ?) ON CONFLICT (id) DO UPDATE"
        " SET count = count + 1, last = max(last, excluded.last)",
        seen,
    )
    return ()


FOLD = Fold(_folded, also=_add_accesses, direct=_write_unfolded)
