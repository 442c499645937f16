"""New lines of the index, the views that get them, and entities: what a set of lines says now, such as a claim, a task or a session.

A kind of entity is one declaration: the records that it is folded from and how they name it, and the columns of its state that queries
need. `entity_line` has the lines of all entities; `event` is what a line does: the field `event` of a record that is said to have one, else
the kind of the record. The state of an entity is a row of its kind's table, made again by its `Fold` whenever lines of it arrive, in any order.
"""

from __future__ import annotations

from itertools import chain

from ..outcome import Struct
from ..text.strict_json import json_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    # The index does not know records. Views declare the type of those of their kinds, see `records.record_types`.
    Record = Any
    Sender = tuple[str | None, str | None]  # identity and session
    L = TypeVar("L")
    Reader = Callable[[bytes], Record | None]
    Choice = Callable[[sqlite3.Connection, str, str], Sequence[int]]


# Which lines of an entity are read if there are too many: a fair share of each sender. A peer may write any number of lines, in any name and with
# any time. The choice depends on the lines alone, so every clone folds the same ones; the rest is counted, as `left_out`. An entity with too
# many lines in too many names keeps those of the senders that it names itself, such as the parties of a thread.
LINES_MAX = 10_000  # signals of a thread, patches of a node, records of a session


def fair_share(
    lines: Iterable[L], most: int, sender: Callable[[L], Sender], is_first: Callable[[L], bool] | None = None
) -> list[L]:
    """Return the lines that are read.

    Args:
        lines: All lines, by `(at, bytes)`.
        most: How many are read.
        sender: Returns the sender of a line.
        is_first: Returns whether a line comes before others.
    """
    every = list(lines)
    if len(every) <= most:
        return every
    turns = in_turn(every, sender)
    return (turns if is_first is None else first_ones(turns, is_first))[:most]


def in_turn(lines: Iterable[L], sender: Callable[[L], Sender]) -> list[L]:
    """Return the first line of each identity, then the second of each; so of an identity its sessions."""
    by_session = rounds(lines, sender)
    return rounds(by_session, lambda each: sender(each)[0])


def first_ones(lines: Iterable[L], is_first: Callable[[L], bool]) -> list[L]:
    """Return lines, some of them first, else in the same order."""
    return sorted(lines, key=lambda each: not is_first(each))


def rounds(lines: Iterable[L], of: Callable[[L], object]) -> list[L]:
    """Return the first line of each of whatever it is of, then the second of each."""
    counts: dict[object, int] = {}
    placed = []
    for each in lines:
        who = of(each)
        counts[who] = count = counts.get(who, 0) + 1
        placed.append((count, each))
    placed.sort(key=lambda pair: pair[0])  # stable
    return [each for _, each in placed]


class LineRow:
    """A line that is new to the index: its row id, its bytes and its record."""

    __slots__ = ("id", "line", "record")

    def __init__(self, id: int, line: bytes, record: Record) -> None:
        self.id = id
        self.line = line
        self.record = record

    @property
    def at(self) -> str:
        """The time in the line, in ISO 8601 with microseconds, in UTC."""
        at: str = self.record["at"]
        return at


class NewLines(Struct):
    """New lines of one kind. Each attribute has one item for each line."""

    ids: list[int] = []
    lines: list[bytes] = []
    records: list[Record] = []
    _columns: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[LineRow]:
        return map(LineRow, self.ids, self.lines, self.records)

    def column(self, name: str) -> list[Any]:
        """Return a field of each line, None if a line lacks it. Views share the list."""
        if name not in self._columns:
            self._columns[name] = [record.get(name) for record in self.records]
        return self._columns[name]


class Rows:
    """New lines, grouped by kind."""

    def __init__(self, rows: Iterable[LineRow] = ()) -> None:
        self.by_kind: dict[str, NewLines] = {}
        for row in rows:
            self.add(row)

    def add(self, row: LineRow) -> None:
        """Add a line."""
        kind = row.record["kind"]
        if kind not in self.by_kind:
            self.by_kind[kind] = NewLines()
        lines = self.by_kind[kind]
        lines.ids.append(row.id)
        lines.lines.append(row.line)
        lines.records.append(row.record)

    def __len__(self) -> int:
        return sum(map(len, self.by_kind.values()))

    def __iter__(self) -> Iterator[LineRow]:
        return chain.from_iterable(self.by_kind.values())

    def of(self, kind: str) -> NewLines:
        """Return the lines of a kind."""
        return self.by_kind.get(kind) or NewLines()

    def of_kinds(self, kinds: Collection[str]) -> Rows:
        """Return the lines of some kinds, with the same columns."""
        found = Rows()
        found.by_kind = {kind: of for kind, of in self.by_kind.items() if kind in kinds}
        return found


class View(Struct):
    """Tables that are derived from lines.

    `add` is called inside the transaction of `catch_up` with all new lines of the view's kinds. Lines arrive in any
    order, and the resulting tables must not depend on it. Change `version`, any value with a constant `repr`, when `add` changes
    and `ddl` does not.
    """

    kinds: Sequence[str]
    ddl: Sequence[str]
    add: Callable[[sqlite3.Connection, Rows], None]
    version: object = 1


_PUT = "INSERT OR IGNORE INTO entity_line VALUES (?, ?, ?, ?, ?, ?)"
LIMIT_MAX = 1 << 62  # rows of a list
AMONG = "IN (SELECT value FROM json_each(?))"  # the condition that a value is in a list of `json_list`


class EntityKind(Struct):
    """A kind of entity.

    Attributes:
        name: Its name in `entity_line`.
        of: The kinds of record that it is folded from, each with the field that has the id of its entity, or the ids of several.
        key: The column of its id in its table.
        columns: The other columns and their types, as in a statement that creates a table.
        read: Returns the record of a line, None if it is not one.
        indexes: The indexes of its table: name, and columns with the condition, if any.
        table: The name of its table, if that is not `name`.
        ddl: Statements for further tables, which its fold writes.
        line_indexes: Indexes of `entity_line` for it: name, and columns with the condition.
        events: The kinds of record with a field `event`; in others a peer may have written anything under this name.
        touched_by: Further kinds of record that `Fold.also` reads.
        begins: The event that begins an entity: of too many lines its lowest one is always read.
        senders: The fields of records with identity and session of their writer.
        shares: The fields of records that say whose share a line counts for, if there are too many; None for `senders`.
        most: How many lines of one entity are read.
    """

    name: str
    of: Mapping[str, str]
    key: str
    columns: str
    read: Reader
    indexes: Mapping[str, str]
    table: str = ""
    ddl: Sequence[str] = ()
    line_indexes: Mapping[str, str] = {}
    events: Sequence[str] = ()
    touched_by: Sequence[str] = ()
    begins: str = ""
    senders: tuple[str, str] = ("sender_identity", "sender_session")
    shares: tuple[str, str] | None = None
    most: int = LINES_MAX


class Fold(Struct):
    """How states are made of lines.

    Attributes:
        rows: Makes the rows of the table, for as many of the given entities as have a state.
        also: Writes what else new lines say, and returns further entities whose state depends on these.
        direct: Writes the rows of entities that need no fold, and returns those among the given ones that need one.
        choose: Chooses the lines that are read of too many, instead of a fair share: by the id, and a condition on a row `e`.
    """

    rows: Callable[[sqlite3.Connection, Mapping[str, Lines]], Iterable[Sequence[object]]]
    also: Callable[[sqlite3.Connection, Rows], Collection[str]] | None = None
    direct: Callable[[sqlite3.Connection, Rows, set[str]], set[str]] | None = None
    choose: Choice | None = None


def table(name: str, columns: str, indexes: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the statements that create a table of a view.

    Args:
        name: Its name.
        columns: Its columns and their types, with the primary key.
        indexes: As for `EntityKind`.
    """
    made = f"CREATE TABLE {name} ({columns}) WITHOUT ROWID"
    return made, *(f"CREATE INDEX {name}_{index} ON {name} {on}" for index, on in (indexes or {}).items())


def view(kind: EntityKind, fold: Callable[[], Fold], version: object = 2) -> View:
    """Return the view of a kind.

    Args:
        fold: Returns its fold. It is called only if there are lines to add.
        version: As for `View`.
    """
    columns = f"{kind.key} TEXT PRIMARY KEY, {kind.columns}"
    name = kind.table or kind.name
    of_lines = (f"CREATE INDEX {name}_{index} ON entity_line {on}" for index, on in kind.line_indexes.items())
    ddl = (*table(name, columns, kind.indexes), *of_lines, *kind.ddl)
    return View((*kind.of, *kind.touched_by), ddl, lambda db, new: _add(db, new, kind, fold()), version)


def _add(db: sqlite3.Connection, new: Rows, kind: EntityKind, fold: Fold) -> None:
    """Add new lines, and make the rows of the entities that they are of again."""
    named: list[tuple[str, str, int, str, str | None, str | None]] = []
    for record_kind, field in kind.of.items():
        lines = new.of(record_kind)
        event = "event" if record_kind in kind.events else "kind"
        columns = map(lines.column, (field, event, *kind.senders))
        for number, ids, does, sender, session in zip(lines.ids, *columns, strict=True):
            about = (does, sender, session or None)
            named += [(kind.name, id, number, *about) for id in ([ids] if isinstance(ids, str) else set(ids))]
    db.executemany(_PUT, sorted(named))
    changed = {id for _, id, *_ in named}
    if fold.also is not None:
        changed.update(fold.also(db, new))
    if fold.direct is not None:
        changed = fold.direct(db, new, changed)
    whole = {id: Lines(found) for id, found in _only_new(db, kind, new, changed).items()}
    whole.update(lines_of(db, kind, changed - whole.keys(), choose=fold.choose))
    rows = [*fold.rows(db, {id: whole[id] for id in sorted(whole)})]
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        db.executemany(f"INSERT OR REPLACE INTO {kind.table or kind.name} VALUES ({marks})", rows)


def _only_new(
    db: sqlite3.Connection, kind: EntityKind, new: Rows, ids: Collection[str]
) -> dict[str, list[LineRow]]:
    """Return the new lines of those entities that have no other ones, and not too many."""
    found: dict[str, list[LineRow]] = {}
    for record_kind, field in kind.of.items() if ids else ():
        lines = new.of(record_kind)
        for row, named in zip(lines, lines.column(field), strict=True):
            for id in (named,) if isinstance(named, str) else set(named):
                if id in ids:
                    found.setdefault(id, []).append(row)
    first = min((row.id for rows in found.values() for row in rows), default=0)
    known = f"SELECT DISTINCT id FROM entity_line WHERE kind = ? AND id {AMONG} AND line < ?"
    for (id,) in db.execute(known, (kind.name, json_list(sorted(found)), first)):
        del found[id]
    return {id: rows for id, rows in found.items() if len(rows) <= kind.most}


class Lines:
    """The lines of one entity that are read, by `(at, bytes)`.

    Attributes:
        left_out: The number of lines that are not read, because there are too many.
    """

    __slots__ = ("left_out", "rows")

    def __init__(self, rows: Iterable[LineRow], left_out: int = 0) -> None:
        self.rows = sorted(rows, key=lambda row: row.line)
        self.left_out = left_out

    def __iter__(self) -> Iterator[LineRow]:
        return iter(self.rows)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def of(self, record_kind: str) -> list[LineRow]:
        """Return those whose records are of a kind."""
        return [row for row in self.rows if row.record["kind"] == record_kind]

    def number(self, line: bytes) -> int:
        """Return the number of a line in the index."""
        return next(row.id for row in self.rows if row.line == line)


def lines(db: sqlite3.Connection, kind: EntityKind, id: str, *, choose: Choice | None = None) -> Lines:
    """Return the lines of one entity, as `lines_of` does; none if it is unknown."""
    return lines_of(db, kind, (id,), choose=choose).get(id) or Lines(())


def lines_of(
    db: sqlite3.Connection,
    kind: EntityKind,
    ids: Iterable[str],
    *,
    event: str | None = None,
    known: dict[int, LineRow] | None = None,
    choose: Choice | None = None,
) -> dict[str, Lines]:
    """Return the lines of entities by their ids: all, or of too many a fair share of each sender.

    Each line is read once, however many entities it is of.

    Args:
        event: Only lines with this event.
        known: Lines that several entities share, by their numbers: what one call finds the next one need not read.
        choose: As for `Fold`.
    """
    but = "" if event is None else f" AND e.event = '{event}'"
    rows = db.execute(
        f"SELECT e.id, e.line FROM entity_line e WHERE e.kind = ? AND e.id {AMONG}{but}",
        (kind.name, json_list(sorted(ids))),
    )
    numbers: dict[str, list[int]] = {}
    for id, number in rows:
        numbers.setdefault(id, []).append(number)
    left_out: dict[str, int] = {}
    for id, found in numbers.items():
        if len(found) > kind.most:
            numbers[id] = [*(choose(db, id, but) if choose else _fair_share(db, kind, id, but))]
            left_out[id] = len(found) - len(numbers[id])
    every = {number for found in numbers.values() for number in found}
    read = _read(db, kind.read, every - known.keys() if known else every)
    if known is not None:
        read.update((number, known[number]) for number in every & known.keys())
        count = sum(map(len, numbers.values())) - len(every)
        if count:
            known.update(_shared(numbers.values(), read))
    return {
        id: Lines([read[number] for number in found if number in read], left_out.get(id, 0))
        for id, found in numbers.items()
    }


def _shared(numbers: Iterable[Iterable[int]], read: Mapping[int, LineRow]) -> dict[int, LineRow]:
    """Return those of the lines that are of several entities."""
    once: set[int] = set()
    found: dict[int, LineRow] = {}
    for own in numbers:
        found.update((number, read[number]) for number in own if number in once and number in read)
        once.update(own)
    return found


def _fair_share(db: sqlite3.Connection, kind: EntityKind, id: str, but: str) -> list[int]:
    """Return the numbers of the lines that are read of an entity with too many."""
    fields = ", ".join(f"json_extract(l.body, '$.{field}')" for field in kind.shares or kind.senders)
    # With the body, by which they are ordered: else SQLite makes a table of all lines, where `line` is a view of two tables.
    rows = db.execute(
        f"SELECT e.line, e.event, {fields}, l.body FROM entity_line e JOIN line l ON l.id = e.line"
        f" WHERE e.kind = ? AND e.id = ?{but} ORDER BY l.body",
        (kind.name, id),
    ).fetchall()
    begin = next((row for row in rows if row[1] == kind.begins), None)
    rest = [row for row in rows if row is not begin]  # who begins an entity loses no turn by that
    begun = [] if begin is None else [begin]
    chosen = begun + fair_share(rest, kind.most - len(begun), lambda row: (row[2], row[3]))
    return [row[0] for row in chosen]


def _read(db: sqlite3.Connection, read: Reader, numbers: Collection[int]) -> dict[int, LineRow]:
    """Return lines by their numbers; those that this version can't read are missing."""
    found = {}
    rows = db.execute(f"SELECT id, body FROM line WHERE id {AMONG}", (json_list(sorted(numbers)),))
    for number, body in rows:
        line = body.encode()
        record = read(line)
        if record is not None:
            found[number] = LineRow(number, line, record)
    return found


def select(
    db: sqlite3.Connection, query: str, values: Mapping[str, Any] | Sequence[Any], *, order: str, limit: int
) -> tuple[list[Any], int]:
    """Return the first rows of a query in an order, and how many more there are."""
    rows = db.execute(f"{query} ORDER BY {order} LIMIT {min(limit, LIMIT_MAX) + 1}", values).fetchall()
    if len(rows) <= limit:
        return rows, 0
    (total,) = db.execute(f"SELECT count(*) FROM ({query})", values).fetchone()
    return rows[:limit], total - limit


def bodies(
    db: sqlite3.Connection,
    condition: str,
    values: Sequence[Any],
    *,
    order: str = "l.at, l.body",
    limit: int = -1,
) -> Iterable[bytes]:
    """Return the lines of the log that fulfil a condition on the table `line l`, of whatever kind, in an order.

    Args:
        limit: At most so many; -1 for all.
    """
    query = f"SELECT CAST(l.body AS BLOB) FROM line l WHERE {condition} ORDER BY {order} LIMIT {limit}"
    return chain.from_iterable(db.execute(query, values))


def count(db: sqlite3.Connection, kind: str) -> int:
    """Return how many lines of a kind the log has."""
    found: int = db.execute("SELECT count(*) FROM line WHERE kind = ?", (kind,)).fetchone()[0]
    return found


def file_of(db: sqlite3.Connection, line: bytes) -> str | None:
    """Return the file of the log that has a line; None while the line waits for a commit."""
    row = db.execute(
        "SELECT f.parent || f.name FROM line l JOIN file f ON f.id = l.file WHERE l.file > 0 AND l.at = ?"
        " AND l.body = ? LIMIT 1",
        (line[7:34].decode(), line.decode()),
    ).fetchone()
    return str(row[0]) if row else None
