"""The tables of the memory in the index: nodes as they are now, and what leads to them.

`node` has a row for each node id, with what queries ask for. The rest is folded from the lines when a node is shown.
"""

from __future__ import annotations

HIDDEN = 2  # `state` counts as `fold.STATUSES` does: from here on a node is archived or deleted
DELETED = 3

DDL = (
    # `touched` is the later of created and updated; times are microseconds since the epoch.
    "CREATE TABLE node (id TEXT PRIMARY KEY, line INTEGER, type TEXT, lifecycle TEXT, wu_id TEXT, session_id TEXT,"
    " lane TEXT, priority TEXT, state INTEGER, sensitive INTEGER, summarized_into TEXT, created INTEGER,"
    " touched INTEGER, patched INTEGER, sender TEXT, hidden_by_other INTEGER) WITHOUT ROWID",
    f"CREATE INDEX node_wu ON node (wu_id, touched) WHERE state < {HIDDEN}",
    # With what is counted of those that a text has no room for: SQLite then looks up no rows.
    f"CREATE INDEX node_lifecycle ON node (lifecycle, touched, state, lane, summarized_into) WHERE state < {HIDDEN}",
    "CREATE INDEX node_open ON node (wu_id, lifecycle, type, lane, state, summarized_into) WHERE state = 0",
    f"CREATE INDEX node_touched ON node (touched) WHERE state < {HIDDEN}",
    "CREATE INDEX node_hidden ON node (wu_id) WHERE hidden_by_other",
    # What a session does now, for the headline of its signals.
    "CREATE INDEX node_checkpoint ON node (session_id, created) WHERE type = 'checkpoint'",
    # Further lines of an id that `node` has already: the lowest is the one that counts.
    "CREATE TABLE node_again (id TEXT, line INTEGER, PRIMARY KEY (id, line)) WITHOUT ROWID",
    "CREATE TABLE tag (tag TEXT, id TEXT, PRIMARY KEY (tag, id)) WITHOUT ROWID",
    "CREATE INDEX tag_id ON tag (id)",
    "CREATE TABLE anchor (path TEXT, id TEXT, PRIMARY KEY (path, id)) WITHOUT ROWID",
    "CREATE INDEX anchor_id ON anchor (id)",
    "CREATE TABLE patch_of (id TEXT, line INTEGER, PRIMARY KEY (id, line)) WITHOUT ROWID",
    "CREATE TABLE relation_event (from_id TEXT, to_id TEXT, type TEXT, line INTEGER,"
    " PRIMARY KEY (from_id, to_id, type, line)) WITHOUT ROWID",
    # The relations that stand now, also those to nodes that are not here.
    "CREATE TABLE relation (from_id TEXT, to_id TEXT, type TEXT, PRIMARY KEY (from_id, to_id, type)) WITHOUT ROWID",
    "CREATE INDEX relation_to ON relation (to_id, type)",
    "CREATE TABLE access (id TEXT PRIMARY KEY, count INTEGER, last TEXT) WITHOUT ROWID",
)  # fmt: skip


def covered(node: str) -> str:
    """The SQL condition that a summary has what a row of `node` says: one that is visible itself.

    A summary that is closed, archived, deleted or under another one, as in a circle, hides nothing.
    """
    return (
        f"EXISTS (SELECT 1 FROM node s WHERE s.id = {node}.summarized_into AND s.id <> {node}.id"
        " AND s.type = 'summary' AND s.state = 0 AND s.summarized_into IS NULL)"
    )
