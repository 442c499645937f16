"""Update the index: read only the files that differ from those already read, and insert their lines.

This needs neither ancestry nor the old tree, so replayed, rewound and repaired tips need no special code. Lines are
only ever added. Where the log has lost a line (a redaction, a rewound ref, a withdrawn entry) everything is read again.
"""

from __future__ import annotations

import gc

from ..errors import StoreError
from ..log import ledger, ref
from ..log.lines import HEAD_BYTES, SALT, is_attestation, is_reduced, reduced
from ..log.ref import LOG_REF
from ..log.tree_union import below_stream, is_too_deep
from ..log.union import canonical
from ..text.addresses import ADDRESS_FIELDS, spoken_for
from ..text.digests import hash_function_for
from . import index_file
from .entities import LineRow, Rows
from .grants import Grants
from .grants import note as note_trust
from .index_file import Index, LostLineError, Snapshot, WalTails, sqlite3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ..log.local_log import LocalLog
    from ..outcome import Progress
    from .entities import Reader, Record, View

    # The number of a line's file, the line, its key, its digest in attestations, and its record.
    Judged = tuple[int, bytes, bytes, bytes, Record | None]


OWN_FILE = -1  # the number of a file of lines that count at once, as of a write-ahead log
BODY_MAX_BYTES = 256 * 1024
MANY = 1_000  # lines of a batch that gets a larger SQLite log
VALUES_AT_ONCE = 500  # in one query
PAGES = 4_000  # of SQLite's own log: 16 MB. With the default of 1,000 a batch waits for the disk twice more
_INSERT = (
    "INSERT INTO line (file, key, at, kind, body) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET file = excluded.file WHERE line.file < 0"
)


def insert_lines(index: Index, file: int, found: Sequence[bytes]) -> None:
    """Insert the lines of a file, and update the views with the new ones.

    Equal bytes are one line. A line that waited for its commit until now becomes one of this file.
    """
    insert_lines_of_files(index, [(file, line) for line in found])
    settle(index)


def insert_lines_of_files(
    index: Index, found: Sequence[tuple[int, bytes]], records: Sequence[Record | None] | None = None
) -> None:
    """Insert lines as `insert_lines` does, each with the number of its file. Call `settle` after the last ones.

    Args:
        records: The result of `index.read` for each line, if known.
    """
    if not found:
        return
    with WithoutCollector():
        if records is None:  # of an attestation `_judged` makes one
            records = [None if is_attestation(line) else index.read(line) for _, line in found]
        _add(index, found, records)


def insert_lines_above(index: Index, number: int, found: Sequence[bytes]) -> None:
    """Insert lines of this user's own, numbered above a number."""
    index.db.execute("INSERT INTO line (id) VALUES (?)", (number,))
    insert_lines(index, OWN_FILE, found)
    index.db.execute("DELETE FROM line WHERE id = ?", (number,))


def last_line(db: sqlite3.Connection) -> int:
    """Return the number of the last line; 0 if there is none."""
    (number,) = db.execute("SELECT coalesce(max(id), 0) FROM line").fetchone()
    return int(number)


def has_records(db: sqlite3.Connection) -> bool:
    """Return whether there is any line but attestations."""
    return db.execute("SELECT 1 FROM line WHERE kind != 'attestation' LIMIT 1").fetchone() is not None


class WithoutCollector:
    """A context without the garbage collector.

    Insertion creates many objects without cycles, and the collector would visit all of them repeatedly.
    """

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_enabled:
            gc.enable()


def _add(index: Index, found: Sequence[tuple[int, bytes]], records: Sequence[Record | None]) -> None:
    db = index.db
    if len(found) >= MANY:
        # SQLite's log is checkpointed by the next committer, or when the index is closed: see `Store.tidy_index`.
        db.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
    hashed = hash_function_for(len(found))
    keys = [hashed(line).digest()[: ledger.KEY_BYTES] for _, line in found]
    new = [
        (file, line, key, _digest(line, key), record)
        for (file, line), key, record in zip(found, keys, records, strict=True)
    ]
    judged = _judged(db, new, index)
    before = last_line(db)
    # sqlite3 binds a bytearray four times as fast as bytes.
    db.executemany(
        _INSERT,
        [
            (file, bytearray(key), record["at"], record["kind"], line.decode())
            if record is not None
            else (file, bytearray(key), "", "", line[:BODY_MAX_BYTES].decode("utf-8", "replace"))
            for file, line, key, _, record in judged
        ],
    )
    last = last_line(db)
    ids = dict(zip((key for _, _, key, _, _ in judged), range(before + 1, last + 1), strict=False))
    if last - before < len(judged):  # some were there already, or are duplicates
        ids = {key: id for id, key in db.execute("SELECT id, key FROM line WHERE id > ?", (before,))}
    rows, salted = Rows(), []
    for _, line, key, digest, record in judged:
        id = ids.pop(key, None)
        if id is not None and record is not None:
            rows.add(LineRow(id, line, record))
            if digest != key:
                salted.append((bytearray(digest), id))
    db.executemany("INSERT INTO salted VALUES (?, ?)", salted)
    _feed_all(index, rows)


def _feed_all(index: Index, rows: Rows) -> None:
    for view in index.views:
        mine = rows.of_kinds(view.kinds)
        if mine:
            _feed(index.db, view, mine)


def _judged(db: sqlite3.Connection, found: Sequence[Judged], index: Index) -> list[Judged]:
    """Return the lines that count now: of new ones, and of those that new attestations release; hold the others.

    Args:
        db: The index, inside a transaction.
        found: New lines. A file with a negative number is of a write-ahead log.
    """
    valid, attested = _attested(db, found)
    signed = {digest for digest, _ in attested}  # by whomever: that is enough for a line that names no writer
    counts: list[Judged] = []
    cut: list[Judged] = []
    matched: set[tuple[bytes, str]] = set()
    unknown: list[tuple[Judged, str]] = []
    for each in found:
        file, line, key, digest, record = each
        writer = "" if record is None else record.get("writer") or ""
        if is_attestation(line):
            counts.append((file, line, key, digest, _record_of(line) if key in valid else None))
        elif record is not None and record["kind"] == "attestation":  # in another form
            counts.append((file, line, key, digest, None))
        elif writer and is_reduced(line):
            cut.append(each)
        elif record is None or file < 0 or (not writer and digest in signed):
            counts.append(each)
        elif (digest, writer) in attested:
            matched.add((digest, writer))
            counts.append(each)
        else:
            unknown.append((each, writer))
    counts += _known(db, unknown)
    counts += _released(db, attested - matched, index.read)
    trust = [record for *_, record in counts if record is not None and record["kind"] == "trust"]
    is_new = bool(trust) and note_trust(db, trust)
    grants = Grants(db)
    forgets = [record for *_, record in counts if record is not None and record["kind"] == "forget"]
    if is_new:
        forgets += _forgets_of_others(db, index.read)
    pairs = _note_forgotten(db, forgets, grants)  # whomever they speak for, as a replay of the log does
    counts, freed = _allowed(db, counts, attested, grants, index.read, is_new=is_new)
    if cut or _is_any_forgotten(db):
        counts += _reduced(db, cut, pairs | attested | freed, grants, index.read)
    settled = _present(db, "held", "key", [each[2] for each in counts])
    db.executemany("DELETE FROM held WHERE key = ?", [(key,) for key in settled])
    # Of a line that is no record the reduced form may be one.
    there = [key if record is None else digest for _, _, key, digest, record in counts]
    settled = _present(db, "awaited", "digest", there)
    db.executemany("DELETE FROM awaited WHERE digest = ?", [(digest,) for digest in settled])
    for digest, writer in sorted(pairs):
        index.has_forgotten |= _forget(db, digest, writer, index.read)
    return _without_texts(db, counts, index.read) if _is_any_forgotten(db) else counts


def _known(db: sqlite3.Connection, unknown: Sequence[tuple[Judged, str]]) -> list[Judged]:
    """Return those lines that count already, perhaps in their reduced form, or were attested before; hold the others.

    Args:
        unknown: Each with its writer; "" for none.
    """
    keys = {key for (_, _, *both, _), _ in unknown for key in both}
    known = _present(db, "line", "key", sorted(keys))
    awaited = set(_rows_with(db, "digest, writer", "awaited", "digest", [each[3] for each, _ in unknown]))
    awaited |= {(digest, "") for digest, _ in awaited}
    counts = []
    for each, writer in unknown:
        _, _, key, digest, record = each
        if key in known or digest in known or (digest, writer) in awaited:
            counts.append(each)
        elif record is not None:
            _hold(db, each, record)
    return counts


def _allowed(
    db: sqlite3.Connection,
    counts: Sequence[Judged],
    attested: set[tuple[bytes, str]],
    grants: Grants,
    read: Reader,
    *,
    is_new: bool,
) -> tuple[list[Judged], set[tuple[bytes, str]]]:
    """Return those that count of some lines, and the held ones that new grants allow; hold those that speak for a writer that has not allowed it.

    Args:
        attested: What was attested now, by digest and writer.
        is_new: Whether there are new grants.

    Returns:
        Lines, and digest and writer of each reduced one that is allowed now.
    """
    found: list[Judged] = []
    for each in counts:
        file, _, _, digest, record = each
        writer = record.get("writer") if record is not None else None
        spoken = _spoken_for(record) if record is not None and writer else ""
        if record is None or not spoken or grants.allow(record["writer"], spoken.split(" ")):
            found.append(each)
            continue
        _hold(db, each, record)
        if file >= 0 or (digest, record["writer"]) in attested:
            db.execute("INSERT OR IGNORE INTO awaited VALUES (?, ?)", (digest, record["writer"]))
    freed = set()
    query = "SELECT DISTINCT speaks, writer FROM held WHERE speaks > ''"
    for speaks, writer in db.execute(query).fetchall() if is_new else ():
        if not grants.allow(writer, speaks.split(" ")):
            continue
        query = (
            "SELECT key, digest, file, line FROM held JOIN awaited USING (digest, writer)"
            " WHERE speaks = ? AND writer = ?"
        )
        for key, digest, file, line in db.execute(query, (speaks, writer)).fetchall():
            if is_reduced(line):
                freed.add((digest, writer))
            else:
                found.append((file, line, key, digest, read(line)))
    return found, freed


def _spoken_for(record: Record) -> str:
    return " ".join(sorted(spoken_for(map(record.get, ADDRESS_FIELDS), record["writer"])))


def _hold(db: sqlite3.Connection, judged: Judged, record: Record) -> None:
    file, line, key, digest, _ = judged
    writer = record.get("writer") or ""
    values = (key, digest, writer, file, line, _spoken_for(record) if writer else "")
    db.execute("INSERT OR IGNORE INTO held VALUES (?, ?, ?, ?, ?, ?)", values)


def _record_of(attestation: bytes) -> Record:
    """Return what the index needs of the record of a valid attestation."""
    return {"at": attestation[len(AT) : HEAD_BYTES - 2].decode(), "kind": "attestation"}


def _digest(line: bytes, key: bytes) -> bytes:
    """Return what attestations have of a line."""
    return ledger.key(reduced(line)) if SALT in line else key


def _released(db: sqlite3.Connection, attested: set[tuple[bytes, str]], read: Reader) -> list[Judged]:
    """Return the held lines that are attested now, but no reduced ones; note what has not arrived yet."""
    digests = sorted({digest for digest, _ in attested})
    found: list[Judged] = []
    columns = "key, digest, writer, file, line"
    for key, digest, writer, file, line in _rows_with(db, columns, "held", "digest", digests):
        if (not writer or (digest, writer) in attested) and not is_reduced(line):
            found.append((file, line, key, digest, read(line)))
    known = {digest for _, _, _, digest, _ in found}
    known |= _present(db, "line", "key", digests) | _present(db, "salted", "digest", digests)
    missing = [each for each in sorted(attested) if each[0] not in known]
    db.executemany("INSERT OR IGNORE INTO awaited VALUES (?, ?)", missing)
    return found


def _is_any_forgotten(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM forgotten LIMIT 1").fetchone() is not None


def _forgotten_among(db: sqlite3.Connection, digests: Iterable[bytes]) -> set[tuple[bytes, str]]:
    """Return those of some lines that are forgotten, each with its writer."""
    return set(_rows_with(db, "digest, writer", "forgotten", "digest", sorted(digests)))


def _forgets_of_others(db: sqlite3.Connection, read: Reader) -> list[Record]:
    """Return the attested records that forget lines of other writers, also held ones."""
    found = db.execute(
        "SELECT CAST(body AS BLOB) FROM line WHERE kind = 'forget' AND instr(body, '\"of\":')"
        " UNION ALL SELECT line FROM held JOIN awaited USING (digest, writer)"
        " WHERE speaks > '' AND instr(line, CAST('\"kind\":\"forget\"' AS BLOB))"
    )
    records = (read(line) for (line,) in found.fetchall())
    return [record for record in records if record is not None and record["kind"] == "forget"]


def _note_forgotten(
    db: sqlite3.Connection, forgets: Iterable[Record], grants: Grants
) -> set[tuple[bytes, str]]:
    """Note which lines their writers have forgotten by these records, or who may write as them; return those that are new, each with its writer."""
    found = set()
    for record in forgets:
        writer = record.get("writer")
        of = record.get("of") or writer
        if writer and (of == writer or grants.allow_all(writer, of)):
            found |= {(bytes.fromhex(digest), of) for digest in record["lines"]}
    found -= _forgotten_among(db, {digest for digest, _ in found})
    db.executemany("INSERT INTO forgotten VALUES (?, ?)", sorted(found))
    return found


def _reduced(
    db: sqlite3.Connection,
    cut: Sequence[Judged],
    changed: set[tuple[bytes, str]],
    grants: Grants,
    read: Reader,
) -> list[Judged]:
    """Return the reduced lines that count: their writer has attested and forgotten them; hold the others.

    Args:
        cut: New ones.
        changed: What was attested, forgotten or allowed now.
    """
    there = _present(db, "line", "key", [each[2] for each in cut])
    counts = [each for each in cut if each[2] in there]
    for each in cut:
        _, _, key, digest, record = each
        if key not in there and record is not None:
            _hold(db, each, record)
            changed = changed | {(digest, record["writer"])}
    digests = sorted({digest for digest, _ in changed})
    ready = changed & _forgotten_among(db, digests)
    ready &= set(_rows_with(db, "digest, writer", "awaited", "digest", digests))
    columns = "key, digest, writer, file, line, speaks"
    for key, digest, writer, file, line, speaks in _rows_with(
        db, columns, "held", "digest", sorted({d for d, _ in ready})
    ):
        if (digest, writer) in ready and is_reduced(line) and grants.allow(writer, speaks.split()):
            counts.append((file, line, key, digest, read(line)))
    return counts


def _without_texts(db: sqlite3.Connection, counts: Sequence[Judged], read: Reader) -> list[Judged]:
    """Return lines that count; of those that their writers have forgotten the reduced forms."""
    forgotten = _forgotten_among(db, {each[3] for each in counts})
    found = []
    for each in counts:
        file, line, key, digest, record = each
        if key != digest and record is not None and (digest, record.get("writer")) in forgotten:
            _stand_for(db, key, digest, file)
            left = reduced(line)
            found.append((file, left, digest, digest, read(left)))
        else:
            found.append(each)
    return found


def _stand_for(db: sqlite3.Connection, key: bytes, digest: bytes, file: int) -> None:
    """Note that the reduced form counts instead of a line of the log."""
    db.execute("DELETE FROM held WHERE key = ?", (digest,))
    db.execute(
        "INSERT INTO whole VALUES (?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET file = excluded.file WHERE whole.file < 0",
        (key, digest, file),
    )


def _forget(db: sqlite3.Connection, digest: bytes, writer: str, read: Reader) -> bool:
    """Put the reduced form in the place of a line of the index that its writer has forgotten; return whether there is one."""
    id = line_with(db, digest)
    if id is None:
        return False
    key, file, body = db.execute("SELECT key, file, body FROM line WHERE id = ?", (id,)).fetchone()
    record = read(body.encode())
    if record is None or record.get("writer") != writer:
        return False
    _stand_for(db, key, digest, file)
    values = (bytearray(digest), reduced(body.encode()).decode(), id)
    db.execute("UPDATE line SET key = ?, body = ? WHERE id = ?", values)
    db.execute("DELETE FROM salted WHERE digest = ?", (digest,))
    return True


def settle(index: Index) -> None:
    """Make the rows of all views again, inside a transaction, if some were made of texts that are forgotten now."""
    if not index.has_forgotten:
        return
    from . import lost_lines

    index.has_forgotten = False
    db = index.db
    db.execute("PRAGMA secure_delete = ON")
    db.execute("DELETE FROM meta WHERE key NOT IN ('tip', 'format')")
    index.reshape((*index_file.OF_LINES, *index_file.KEPT))
    query = "SELECT id, CAST(body AS BLOB) FROM line WHERE id > ? AND kind <> '' ORDER BY id LIMIT ?"
    last = 0
    with WithoutCollector():
        while found := db.execute(query, (last, LINES_AT_ONCE)).fetchall():
            last = found[-1][0]
            read = (
                (id, line, _record_of(line) if is_attestation(line) else index.read(line))
                for id, line in found
            )
            _feed_all(index, Rows(LineRow(*each) for each in read))
    lost_lines.forget(db)


def _attested(db: sqlite3.Connection, found: Sequence[Judged]) -> tuple[set[bytes], set[tuple[bytes, str]]]:
    """Return the keys of the valid attestations among lines, and of the new ones the digests, each with its writer."""
    new = [(key, line) for _, line, key, _, _ in found if is_attestation(line)]
    if not new:
        return set(), set()
    from ..log import attestations

    valid = _present(db, "line", "key", [key for key, _ in new])
    digests: set[tuple[bytes, str]] = set()
    for key, line in new:
        attestation = attestations.read(line) if key not in valid else None
        if attestation is not None:
            valid.add(key)
            digests.update((digest, attestation.writer) for digest in attestation.digests)
    return valid, digests


def _present(db: sqlite3.Connection, table: str, column: str, values: Sequence[bytes]) -> set[bytes]:
    """Return those of some values that a column has."""
    few = db.execute(f"SELECT {column} FROM {table} LIMIT ?", (len(values) + 1,)).fetchall() if values else ()
    if len(few) <= len(values):  # nearly always few lines wait
        return {value for (value,) in few}.intersection(values)
    return {value for (value,) in _rows_with(db, column, table, column, values)}


def _rows_with(
    db: sqlite3.Connection, columns: str, table: str, column: str, values: Sequence[bytes]
) -> Iterator[Any]:
    """Yield the rows of a table that have one of these values in a column."""
    for start in range(0, len(values), VALUES_AT_ONCE):
        some = values[start : start + VALUES_AT_ONCE]
        marks = ", ".join("?" * len(some))
        yield from db.execute(f"SELECT {columns} FROM {table} WHERE {column} IN ({marks})", some)


def line_with(db: sqlite3.Connection, digest: bytes) -> int | None:
    """Return the number of the line with a salt that attestations have by this digest; None if there is none."""
    found = db.execute("SELECT line FROM salted WHERE digest = ?", (digest,)).fetchone()
    return None if found is None else int(found[0])


def count_held(db: sqlite3.Connection) -> int:
    """Return how many lines are held: no attestation of their writer covers them, or another one has not allowed them."""
    return int(db.execute("SELECT count(*) FROM held").fetchone()[0])


def count_unallowed(db: sqlite3.Connection) -> int:
    """Return how many of these lines are attested, and speak for a writer that has not allowed it."""
    query = "SELECT count(*) FROM held JOIN awaited USING (digest, writer) WHERE speaks > ''"
    return int(db.execute(query).fetchone()[0])


def is_held(db: sqlite3.Connection, line: bytes) -> bool:
    """Return whether a line counts for nothing until it is attested or allowed."""
    return db.execute("SELECT 1 FROM held WHERE key = ?", (ledger.key(line),)).fetchone() is not None


def is_whole(db: sqlite3.Connection, digest: bytes) -> bool:
    """Return whether the log has the text of a line that counts in its reduced form, by its digest in attestations."""
    return db.execute("SELECT 1 FROM whole WHERE digest = ? AND file > 0", (digest,)).fetchone() is not None


def held_lines(db: sqlite3.Connection) -> list[bytes]:
    """Return those lines, in the order of `(at, bytes)`."""
    return [bytes(line) for (line,) in db.execute("SELECT line FROM held ORDER BY line")]


def _feed(db: sqlite3.Connection, view: View, rows: Rows) -> None:
    """Add rows to a view. A row that the view cannot process is missing in this view and recorded in `skipped`."""
    db.execute("SAVEPOINT feed")
    try:
        view.add(db, rows)
    except Exception as error:
        if index_file.is_file_error(error):
            raise
        db.execute("ROLLBACK TO feed")
        db.execute("RELEASE feed")
        every = sorted(rows, key=lambda row: row.id)
        if len(every) == 1:
            db.execute("INSERT OR IGNORE INTO skipped VALUES (?)", (every[0].id,))
            return
        middle = len(every) // 2
        _feed(db, view, Rows(every[:middle]))
        _feed(db, view, Rows(every[middle:]))
    else:
        db.execute("RELEASE feed")


class IndexFill:
    """One run of filling an index. It skips the parts of a tree that hold no lines, as `catch_up` does."""

    def __init__(self, index: Index) -> None:
        self.index = index
        index.db.execute("BEGIN")
        index.reshape()

    def folder(self, path: str, oid: str) -> None:
        """Record a folder that was read. Its path ends in a slash."""
        if _is_read(path):
            self._note(path, path.rstrip("/").rpartition("/")[0], oid)

    def segment(self, path: str, oid: str) -> int | None:
        """Record a segment and return its number for `add`; None if its lines are not read."""
        return self._note(path, path.rpartition("/")[0], oid) if _is_read(path) else None

    def _note(self, path: str, folder: str, oid: str) -> int:
        parent = index_file.as_text(folder + "/" if folder else "")
        name = index_file.as_text(path)[len(parent) :]
        cursor = self.index.db.execute(
            "INSERT INTO file (parent, name, oid) VALUES (?, ?, ?)", (parent, name, oid)
        )
        return int(cursor.lastrowid or 0)

    def add(self, found: Sequence[tuple[int, bytes]], records: Sequence[Record | None] | None = None) -> None:
        """Add lines, each with the number of its segment; `records` as for `insert_lines_of_files`."""
        insert_lines_of_files(self.index, found, records)

    def end(self, commit: str | None) -> None:
        """Commit the added lines.

        Args:
            commit: The commit if it was read completely; later updates start there. None makes them check every folder.
        """
        if commit is not None:
            self.index.db.execute("INSERT OR REPLACE INTO meta VALUES ('tip', ?)", (commit,))
        else:
            self.index.db.execute("UPDATE file SET oid = '' WHERE name LIKE '%/'")
        settle(self.index)
        self.index.db.execute("COMMIT")

    def segment_of(self, line: bytes) -> tuple[str, str] | None:
        """Return path and object id of the segment of a line; None if the index does not have the line."""
        found: tuple[str, str] | None = self.index.db.execute(
            "SELECT f.parent || f.name, f.oid FROM line l JOIN file f ON f.id = l.file WHERE l.key = ?",
            (ledger.key(line),),
        ).fetchone()
        return found


def _is_read(path: str) -> bool:
    return "/" in path and not path.startswith("projects/")


LINES_AT_ONCE = 10_000  # inserted together; one file at a time takes twice as long
AT = b'{"at":"'


def catch_up(index: Index, log: LocalLog, *, progress: Progress | None = None) -> None:
    """Update the index to the ref's tip and the write-ahead logs.

    Args:
        progress: Called now and then with the lines read so far, and with all.

    Raises:
        sqlite3.DatabaseError: The index file is damaged or not writable.
        StoreError: An object of the log is missing.
    """
    if index_file.is_current(index, log):
        return
    db = index.db
    db.execute("BEGIN IMMEDIATE")
    try:
        if not index.is_shaped():
            index.reshape()
        try:
            _Reader(index, log, progress).read()
        except LostLineError:
            from . import lost_lines

            is_aside = lost_lines.set_tables_aside(index, log)
            index.reshape()
            _Reader(index, log, progress).read()
            lost_lines.store_missing(index, is_aside)
            lost_lines.forget(db)
        settle(index)
        db.execute("COMMIT")
    except BaseException as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        if isinstance(error, KeyError):
            raise ref.missing_object(error, "nothing was changed") from error
        raise


def preview(index: Index, log: LocalLog) -> Snapshot | None:
    """Return a snapshot with the lines that wait in the write-ahead logs, by a transaction that is never committed.

    Returns:
        None if the index lacks more than these lines.

    Raises:
        sqlite3.DatabaseError: The index file is damaged, busy or not writable.
    """
    if not (index.writable and index.is_shaped()):
        return None
    index.db.execute("BEGIN IMMEDIATE")
    try:
        tails = WalTails(index.db, log)
        if log.git.tip(LOG_REF) == index.tip:
            insert_lines_of_files(index, tails.apply())
            if not index.has_forgotten:
                return Snapshot(index.db)
            index.has_forgotten = False
    except LostLineError:
        pass
    except BaseException:
        index.db.rollback()
        raise
    index.db.rollback()
    return None


def read_commit(
    index: Index,
    log: LocalLog,
    commit: str,
    *,
    until: bytes | None = None,
    progress: Progress | None = None,
) -> None:
    """Fill an empty index with the lines of one commit of the log, without the write-ahead logs.

    Args:
        until: The last `at` to include. Lines without a time are included.
        progress: As for `catch_up`.

    Raises:
        StoreError: An object of the log is missing.
    """
    index.db.execute("BEGIN")
    index.reshape()
    try:
        reader = _Reader(index, log, progress, until)
        reader.read_tree(commit)
        settle(index)
    except KeyError as error:
        raise ref.missing_object(error, "nothing was changed") from error
    index.db.execute("COMMIT")


class _Reader:
    """One pass over everything that differs, inside the transaction of `catch_up`."""

    def __init__(
        self, index: Index, log: LocalLog, progress: Progress | None, until: bytes | None = None
    ) -> None:
        self.index = index
        self.db = index.db
        self.log = log
        self.git = log.git
        self.progress = progress
        self.until = until
        self.done = self.total = 0
        # To read: path below the stream, number, object id, whether the file is new.
        self.segments: list[tuple[str, int, str, bool]] = []
        self.waiting: list[tuple[int, bytes]] = []

    def read(self) -> None:
        tails = WalTails(self.db, self.log)
        tip = self.git.tip(LOG_REF)
        if tip is not None and tip != self.index.tip:
            self.read_tree(tip)
        elif tip is None and self.index.tip is not None:
            raise LostLineError
        self.waiting = tails.apply()
        self._flush()

    def read_tree(self, commit: str) -> None:
        tree = self.git.commit(commit).tree
        self._folder("", tree, top=True)
        if self.progress is not None:
            self.total = sum(self._count_new(file, oid, is_new) for _, file, oid, is_new in self.segments)
            self.progress("indexing lines", 0, self.total)
        # By days: few are held meanwhile.
        for _, file, oid, is_new in sorted(self.segments):
            self._segment(file, self.git.blob(oid), is_new=is_new)
        self._flush()
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('format', ?)", (self._format(tree),))
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('tip', ?)", (commit,))

    def _format(self, tree: str) -> str:
        """Return the id of the tip's `format` if this gitmem can write to the log, else ""; see `index_file.can_write`."""
        entry = self.git.tree(tree).get("format")
        known = self.db.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()
        if entry is None or known == (entry.oid,):
            return entry.oid if entry is not None else ""
        try:
            form = ref.read_format(self.git, {"format": entry})
            if form is None:
                return ""
            form.refuse_newer()
        except StoreError:
            return ""
        return entry.oid

    def _folder(self, path: str, oid: str, *, top: bool = False) -> None:
        entries = self.git.tree(oid)
        known = {
            name: (file, known_oid)
            for file, name, known_oid in self.db.execute(
                "SELECT id, name, oid FROM file WHERE parent = ? AND id > 0", (path,)
            )
        }
        for name, entry in entries.items():
            if top and (name == "projects" or not entry.is_tree):
                continue
            if not entry.is_tree and not (name.endswith(".jsonl") and entry.mode.startswith("100")):
                continue
            key = index_file.as_text(name) + ("/" if entry.is_tree else "")
            if is_too_deep(path + key):
                continue
            file, known_oid = known.pop(key, (None, None))
            if known_oid == entry.oid:
                continue
            if file is None:
                cursor = self.db.execute(
                    "INSERT INTO file (parent, name, oid) VALUES (?, ?, ?)", (path, key, entry.oid)
                )
                file = int(cursor.lastrowid or 0)
            else:
                self.db.execute("UPDATE file SET oid = ? WHERE id = ?", (entry.oid, file))
            if entry.is_tree:
                self._folder(path + key, entry.oid)
            else:
                self.segments.append((below_stream(path + key), file, entry.oid, known_oid is None))
        if known:
            raise LostLineError

    def _count_new(self, file: int, oid: str, is_new: bool) -> int:
        """Return about how many lines of a segment are new."""
        known = self.db.execute("SELECT count(*) FROM line WHERE file = ?", (file,)).fetchone()[0]
        return max(0, self.git.blob(oid).count(b"\n") - (0 if is_new else known))

    def _segment(self, file: int, content: bytes, *, is_new: bool) -> None:
        found = canonical(content).split(b"\n")[:-1]
        if is_new:
            self._add(file, found)
            return
        query = "SELECT key FROM line WHERE file = ?1 UNION ALL SELECT key FROM held WHERE file = ?1"
        whole = dict(self.db.execute("SELECT key, digest FROM whole WHERE file = ?", (file,)))
        old = {*(key for (key,) in self.db.execute(query, (file,))), *whole}
        keyed = {ledger.key(line): line for line in found}
        gone = {key for key, digest in whole.items() if key not in keyed and digest in keyed}
        if not old <= keyed.keys() | whole.values() | gone:
            raise LostLineError
        self.db.executemany("DELETE FROM whole WHERE key = ?", [(key,) for key in sorted(gone)])
        self._add(file, [line for key, line in keyed.items() if key not in old])

    def _add(self, file: int, found: Sequence[bytes]) -> None:
        if self.until is not None:
            found = [line for line in found if _is_until(line, self.until)]
        self.waiting += [(file, line) for line in found]
        if len(self.waiting) >= LINES_AT_ONCE // (1 if self.progress is None else 4):
            self._flush()

    def _flush(self) -> None:
        insert_lines_of_files(self.index, self.waiting)
        self.done += len(self.waiting)
        self.waiting = []
        if self.progress is not None:
            self.progress("indexing lines", self.done, max(self.done, self.total))


def _is_until(line: bytes, until: bytes) -> bool:
    """Return whether a line is of a time or earlier, or covers such lines: it is attested when it is committed."""
    return not line.startswith(AT) or line[len(AT) :][:27] <= until or is_attestation(line)
