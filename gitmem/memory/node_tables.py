"""What the index keeps of the memory: the declaration of nodes, and the tables of relations.

`node` has a row for each node id, with the columns that queries need. The rest is folded from the lines when
needed.
"""

from __future__ import annotations

from .. import records
from ..index.entities import EntityKind

HIDDEN = 2  # `state` is an index of `node.STATUSES`: from 2 on a node is archived or deleted
DELETED = 3

NODE = EntityKind(
    "node",
    {"node": "id", "patch": "node_ids"},
    "id",
    # `touched` is the later of created and updated; times are microseconds since the epoch. `patched` is whether a further patch
    # needs all lines. `private` is the only reader of a private node; None in an index on the disk.
    "line INTEGER, type TEXT, lifecycle TEXT, wu_id TEXT, session_id TEXT, lane TEXT, priority TEXT, state INTEGER,"
    " sensitive INTEGER, summarized_into TEXT, created INTEGER, touched INTEGER, patched INTEGER, sender TEXT,"
    " hidden_by_other INTEGER, private TEXT",
    records.read,
    indexes={
        "wu": f"(wu_id, touched) WHERE state < {HIDDEN}",
        # Covers the columns needed to count omitted nodes, so SQLite does not read the table.
        "lifecycle": f"(lifecycle, touched, state, lane, summarized_into) WHERE state < {HIDDEN}",
        "open": "(wu_id, lifecycle, type, lane, state, summarized_into) WHERE state = 0",
        "touched": f"(touched) WHERE state < {HIDDEN}",
        "hidden": "(wu_id) WHERE hidden_by_other",
        # The last checkpoint of a session, for the headline of its signals.
        "checkpoint": "(session_id, created) WHERE type = 'checkpoint'",
    },
    ddl=(
        "CREATE TABLE tag (tag TEXT, id TEXT, PRIMARY KEY (tag, id)) WITHOUT ROWID",
        "CREATE INDEX tag_id ON tag (id)",
        "CREATE TABLE anchor (path TEXT, id TEXT, PRIMARY KEY (path, id)) WITHOUT ROWID",
        "CREATE INDEX anchor_id ON anchor (id)",
        "CREATE TABLE access (id TEXT PRIMARY KEY, count INTEGER, last TEXT) WITHOUT ROWID",
    ),
    touched_by=("access",),
    begins="node",
)

RELATION_KINDS = ("relation", *NODE.of)  # what is superseded depends on the state of nodes
RELATION_DDL = (
    "CREATE TABLE relation_event (from_id TEXT, to_id TEXT, type TEXT, line INTEGER,"
    " PRIMARY KEY (from_id, to_id, type, line)) WITHOUT ROWID",
    # Relations that are not removed, including those to unknown nodes.
    "CREATE TABLE relation (from_id TEXT, to_id TEXT, type TEXT, PRIMARY KEY (from_id, to_id, type)) WITHOUT ROWID",
    "CREATE INDEX relation_to ON relation (to_id, type)",
    # Empty, and so free, where nothing is superseded.
    "CREATE INDEX relation_supersedes ON relation (from_id, to_id) WHERE type = 'supersedes'",
    # Superseded nodes, also unknown ones, and the live ends of their chains; see `relations`.
    "CREATE TABLE superseded (id TEXT PRIMARY KEY, live TEXT) WITHOUT ROWID",
)


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
