"""The full-text index: an FTS5 table in the index file, which only `search` creates and updates.

It is not part of the view: SQLite without FTS5 supports everything else, and writing nodes costs nothing extra.
`meta` has `VERSION` and the number of the last line indexed. Any operation that empties the index empties `meta`,
too.
"""

from __future__ import annotations

from . import bulk_values, load, tokenize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..index.engine import sqlite3
    from ..outcome import Progress
    from .versioned_node import VersionedNode

VERSION = 3  # of the tables, and of the rules in `tokenize` and `bulk_values`
TABLE, ROWS, VOCABULARY = "memory_words", "memory_words_row", "memory_words_vocabulary"
KEY = TABLE  # in `meta`
SPLIT_MAX = 4_096  # short texts in the cache
SIMILAR_LEAST = 4  # letters of a word that similar ones are found for
COUNTED_MAX = 50_000  # words counted before they are written
LINES_AT_ONCE = 5_000  # in one transaction: other writers wait for it
IDLE_LINES = 10_000  # lines of other kinds that may be rescanned before the mark is moved
# Weights of hits. Tags are chosen deliberately. Paths are short, and many nodes share their folders. Whole
# names also match by their parts, so their weight is that of content. The last four tell what a node belongs to.
WEIGHTS = {
    "content": 1.0,
    "names": 1.0,
    "tags": 2.0,
    "paths": 0.5,
    "sender": 0.5,
    "unit": 0.5,
    "lane": 0.5,
    "type": 0.5,
}
WEIGHED = ", ".join(map(str, WEIGHTS.values()))
# Fields of a patch that change the row of a node.
CHANGES = ("content", "tags", "paths", "wu_id", "session_id", "lane", "type")
DDL = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5({', '.join(WEIGHTS)}, tokenize = 'porter ascii')",
    # The session and the time of a node tell which nodes are beside it.
    f"CREATE TABLE {ROWS} (row INTEGER PRIMARY KEY, id TEXT UNIQUE, session TEXT, created INTEGER)",
    f"CREATE INDEX {ROWS}_session ON {ROWS} (session, created, id) WHERE session IS NOT NULL",
    # Words as they are written, with the number of nodes that have them, for `search`.
    f"CREATE TABLE {VOCABULARY} (word TEXT PRIMARY KEY, nodes INTEGER) WITHOUT ROWID",
)


def is_missing(error: sqlite3.Error) -> bool:
    """Return whether an error means that this SQLite has no FTS5."""
    return "no such module" in str(error)


def is_current(db: sqlite3.Connection) -> bool:
    """Return whether the index has the present words of every node."""
    mark = _last_indexed(db)
    if mark is None:
        return False
    (newest,) = db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    return newest == mark or (newest - mark < IDLE_LINES and not _lines(db, mark, 1))


def catch_up(db: sqlite3.Connection, progress: Progress | None = None, portion: int = LINES_AT_ONCE) -> None:
    """Index the nodes that are new or changed since the last call.

    It commits in portions, so an interrupted process leaves complete portions; concurrent processes take turns.

    Args:
        progress: Called now and then with the lines read so far, and with all.
        portion: The number of lines in one transaction.

    Raises:
        sqlite3.Error: There is no FTS5 (see `is_missing`), or the file cannot be written.
    """
    done, total, more = 0, 0 if progress is None else _count_left(db), True
    while more:
        db.execute("BEGIN IMMEDIATE")
        try:
            taken = _index_portion(db, portion)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        done += taken
        more = taken == portion
        if progress is not None and taken:
            progress("indexing words", done, total)


def _count_left(db: sqlite3.Connection) -> int:
    """Return the number of lines that are not indexed yet."""
    (count,) = db.execute(
        "SELECT count(*) FROM line WHERE id > ? AND +kind IN ('node', 'patch')", (_last_indexed(db) or 0,)
    ).fetchone()
    return int(count)


def _index_portion(db: sqlite3.Connection, portion: int) -> int:
    """Index a portion of lines and return their number."""
    mark = _last_indexed(db)
    if mark is None:
        for table in (TABLE, ROWS, VOCABULARY):
            db.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in DDL:
            db.execute(statement)
        mark = 0
    (newest,) = db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    lines = _lines(db, mark, portion)
    _replace_rows(db, _changed(db, lines))
    mark = lines[-1][0] if len(lines) == portion else newest
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, f"{VERSION} {mark}"))
    return len(lines)


def _last_indexed(db: sqlite3.Connection) -> int | None:
    """Return the number of the last line indexed, or None if there is no index of this version."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
    version, _, mark = (row[0] if row else "").partition(" ")
    return int(mark) if version == str(VERSION) else None


def _lines(db: sqlite3.Connection, after: int, most: int) -> list[tuple[int, str]]:
    """Return lines of nodes and patches by number. `+kind` prevents using the index by kind, which would read all."""
    return db.execute(
        "SELECT id, kind FROM line WHERE id > ? AND +kind IN ('node', 'patch') ORDER BY id LIMIT ?",
        (after, most),
    ).fetchall()


def _changed(db: sqlite3.Connection, lines: Sequence[tuple[int, str]]) -> list[str]:
    """Return the ids of the nodes that lines create or change."""
    if not lines:
        return []
    first, last = lines[0][0], lines[-1][0]
    between = "id BETWEEN ? AND ?"
    found = db.execute(
        f"SELECT json_extract(body, '$.id') FROM line WHERE {between} AND +kind = 'node'", (first, last)
    ).fetchall()
    says = " OR ".join(f"json_extract(body, '$.{field}') IS NOT NULL" for field in CHANGES)
    clears = f"EXISTS (SELECT 1 FROM json_each(body, '$.clear') WHERE value IN {CHANGES})"
    found += db.execute(
        f"SELECT value FROM (SELECT body FROM line WHERE {between} AND +kind = 'patch' AND ({says} OR {clears})),"
        " json_each(body, '$.node_ids')",
        (first, last),
    ).fetchall()
    return list(dict.fromkeys(str(id) for (id,) in found))


def _replace_rows(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Replace the rows of nodes."""
    (row,) = db.execute(f"SELECT coalesce(max(row), 0) FROM {ROWS}").fetchone()
    parsed: load.Parsed = {}
    split = _Split()
    counts = _Counts(db)
    every = ", ".join(WEIGHTS)
    for some in load.batches(ids):
        marks = ", ".join("?" * len(some))
        old = dict(db.execute(f"SELECT id, row FROM {ROWS} WHERE id IN ({marks})", some).fetchall())
        for columns in db.execute(f"SELECT {every} FROM {TABLE} WHERE rowid IN ({_listed(old.values())})"):
            counts.add(columns, -1)
        db.executemany(f"DELETE FROM {TABLE} WHERE rowid = ?", [(each,) for each in old.values()])
        rows, words = [], []
        for node in load.load(db, some, parsed, whole=False):
            if node.id not in old:
                row += 1
                old[node.id] = row
            rows.append((old[node.id], node.id, node.session_id, node.created))
            words.append((old[node.id], *_columns(node, split)))
            counts.add(words[-1][1:], 1)
        db.executemany(f"INSERT OR REPLACE INTO {ROWS} VALUES (?, ?, ?, ?)", rows)
        values = ", ".join("?" * (1 + len(WEIGHTS)))
        db.executemany(f"INSERT INTO {TABLE} (rowid, {every}) VALUES ({values})", words)
    counts.write()


def _listed(rows: Iterable[int]) -> str:
    return ", ".join(map(str, rows))


class _Counts:
    """Changes of the numbers of nodes that have a word."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._changes: dict[str, int] = {}

    def add(self, columns: Sequence[str], change: int) -> None:
        """Add the words of a node's columns, each once."""
        changes = self._changes
        for word in set(" ".join(columns).split(" ")):
            if len(word) >= SIMILAR_LEAST and word.isalpha():
                changes[word] = changes.get(word, 0) + change
        if len(changes) > COUNTED_MAX:
            self.write()

    def write(self) -> None:
        """Write the changes."""
        self._db.executemany(
            f"INSERT INTO {VOCABULARY} VALUES (?, ?) ON CONFLICT (word) DO UPDATE SET nodes = nodes + excluded.nodes",
            sorted(self._changes.items()),
        )
        gone = [(word,) for word, change in self._changes.items() if change < 0]
        self._db.executemany(f"DELETE FROM {VOCABULARY} WHERE word = ? AND nodes <= 0", gone)
        self._changes.clear()


class _Split:
    """A cache of texts split into words: thousands of nodes may have the texts of one patch."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, list[str]]] = {}

    def of(self, text: str) -> tuple[str, list[str]]:
        """Return the words of a text, joined by spaces, and its names as one word each."""
        found = self._known.get(text)
        if found is None:
            names = tokenize.named(text)
            found = (
                " ".join(part for name in names for part in name.parts),
                [name.whole for name in names if name.whole],
            )
            if len(text) <= bulk_values.SIZE_MAX:
                if len(self._known) > SPLIT_MAX:
                    self._known.clear()
                self._known[text] = found
        return found


def _columns(node: VersionedNode, split: _Split) -> tuple[str, ...]:
    """Return the words of a node by column, in the order of `WEIGHTS`."""
    columns = (
        (node.content,),
        node.tags,
        node.paths,
        (node.sender_name or node.sender_identity, node.content_by_name or node.content_by),
        (node.wu_id,),
        (node.lane,),
        (node.type,),
    )
    content, *others = [[split.of(text) for text in texts if text] for texts in columns]
    whole = dict.fromkeys(name for texts in (content, *others) for _, names in texts for name in names)
    return (_joined(content), " ".join(whole), *map(_joined, others))


def _joined(texts: Iterable[tuple[str, list[str]]]) -> str:
    return " ".join(text for text, _ in texts if text)
