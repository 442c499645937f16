"""What the index keeps of the memory: the declaration of nodes, and the tables of relations; and the last checkpoint of a session.

`node` has a row for each node id, with the columns that queries need. The rest is folded from the lines when
needed. Each signal asks for the last checkpoint of its session, and most sessions have none: this imports little.
"""

from __future__ import annotations

from .. import records
from ..index.entities import EntityKind, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

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
        *table("tag", "tag TEXT, id TEXT, PRIMARY KEY (tag, id)", {"id": "(id)"}),
        *table("anchor", "path TEXT, id TEXT, PRIMARY KEY (path, id)", {"id": "(id)"}),
        *table("access", "id TEXT PRIMARY KEY, count INTEGER, last TEXT"),
    ),
    touched_by=("access",),
    begins="node",
)

RELATION_KINDS = ("relation", *NODE.of)  # what is superseded depends on the state of nodes
RELATION_DDL = (
    *table(
        "relation_event",
        "from_id TEXT, to_id TEXT, type TEXT, line INTEGER, PRIMARY KEY (from_id, to_id, type, line)",
    ),
    # Relations that are not removed, including those to unknown nodes.
    *table(
        "relation",
        "from_id TEXT, to_id TEXT, type TEXT, PRIMARY KEY (from_id, to_id, type)",
        # The second is empty, and so free, where nothing is superseded.
        {"to": "(to_id, type)", "supersedes": "(from_id, to_id) WHERE type = 'supersedes'"},
    ),
    # Superseded nodes, also unknown ones, and the live ends of their chains; see `relations`.
    *table("superseded", "id TEXT PRIMARY KEY, live TEXT"),
)

PREFIX = "Checkpoint: "  # of the content of a checkpoint
AUTOMATIC = "auto-"  # begins the trigger of a checkpoint that a hook wrote, see `automatic_checkpoints`
_TRIGGER = "coalesce(json_extract(l.body, '$.metadata.trigger'), '')"
IS_WRITTEN = f"{_TRIGGER} NOT LIKE '{AUTOMATIC}%'"
# Of the nodes `n` and their lines `l`: checkpoints that count.
IS_LIVE = f"n.type = 'checkpoint' AND n.state < {HIDDEN} AND NOT EXISTS (SELECT 1 FROM superseded s WHERE s.id = n.id)"
# By the session that they are about: others may claim anything about it.
BY_SESSION = "json_extract(l.body, '$.sender_session') = n.session_id"
_LAST = (
    f"SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE n.session_id = ? AND {BY_SESSION} AND {IS_LIVE}"
    f" AND NOT n.sensitive AND {IS_WRITTEN} ORDER BY n.created DESC, n.id LIMIT 1"
)


def last_checkpoint_id(db: sqlite3.Connection, session_id: str) -> str | None:
    """Return the last checkpoint that a session wrote about itself, if it has one that is not sensitive."""
    row = db.execute(_LAST, (session_id,)).fetchone()
    return None if row is None else str(row[0])
