"""Which writers may write as whose addresses, and as whom they go on: by records of the kind `trust`, in whatever order they came."""

from __future__ import annotations

from ..outcome import Struct
from ..text.addresses import of_writer, words_of, writer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from typing import Any

_ALL = ""  # in place of words: all that a writer has


def note(db: sqlite3.Connection, found: Iterable[Any]) -> bool:
    """Note records of the kind `trust` that count; return whether there is any new grant."""
    is_new = False
    for record in found:
        writer, other = record.get("writer"), record["other"]
        if writer and writer != other and record["event"] == "grant":
            for words in record.get("words") or [_ALL]:
                cursor = db.execute("INSERT OR IGNORE INTO granted VALUES (?, ?, ?)", (words, other, writer))
                is_new |= cursor.rowcount > 0
        elif writer and record["event"] == "accept":
            db.execute(
                "INSERT INTO accepted VALUES (?, ?, ?)"
                " ON CONFLICT (writer, other) DO UPDATE SET at = max(at, excluded.at)",
                (writer, other, record["at"]),
            )
    return is_new


class Grants:
    """What the grants of an index allow. Make one for each batch, since it remembers what it has read.

    A number stands for a set of writers, with a bit for each that grants anything: thousands of grants from and to
    thousands of writers then cost milliseconds.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._bits: dict[str, int] = {}
        self._before: dict[str, int] | None = None  # the writers from which grants of all words lead to one
        self._before_of: dict[tuple[str, str], int] = {}

    def allow(self, writer: str, addresses: Iterable[str]) -> bool:
        """Return whether a writer may write as all of these addresses: its own, and those to which a chain of grants leads."""
        return all(self._allow_one(writer, address) for address in addresses)

    def allow_all(self, writer: str, other: str) -> bool:
        """Return whether a writer may write as each address of another."""
        return writer == other or bool(self._all_before(writer) & self._bits.get(other, 0))

    def _allow_one(self, writer: str, address: str) -> bool:
        other = writer_of(address)
        if not other or self.allow_all(writer, other):
            return True
        return bool(self._before_with(writer, words_of(address)) & self._bits.get(other, 0))

    def _all_before(self, writer: str) -> int:
        """Return the writers from which grants of all words lead to a writer, and itself."""
        if self._before is None:
            self._before = self._read()
        return self._before.get(writer, self._bits.get(writer, 0))

    def _read(self) -> dict[str, int]:
        from ..order.causal import components

        writers = self._db.execute("SELECT DISTINCT writer FROM granted")
        self._bits = {writer: 1 << number for number, (writer,) in enumerate(writers)}
        givers: dict[str, list[str]] = {}
        for other, writer in self._db.execute("SELECT other, writer FROM granted WHERE words = ''"):
            givers.setdefault(other, []).append(writer)
            givers.setdefault(writer, [])
        found: dict[str, int] = {}
        for circle in components(givers):
            before = 0
            for one in circle:
                before |= self._bits.get(one, 0)
                for giver in givers[one]:
                    before |= found.get(giver, 0)
            found.update(dict.fromkeys(circle, before))
        return found

    def _before_with(self, writer: str, words: str) -> int:
        """Return the writers from which grants of all words or of these lead to a writer, and itself."""
        if (writer, words) not in self._before_of:
            self._before_of[writer, words] = self._read_before(writer, words)
        return self._before_of[writer, words]

    def _read_before(self, writer: str, words: str) -> int:
        found = self._all_before(writer)
        givers: dict[int, list[str]] = {}
        for other, giver in self._db.execute("SELECT other, writer FROM granted WHERE words = ?", (words,)):
            if other == writer:
                found |= self._all_before(giver)
            elif other in self._bits:
                givers.setdefault(self._bits[other], []).append(giver)
        left = sum(givers)
        while ready := found & left:
            other = ready & -ready
            left -= other
            for giver in givers[other]:
                found |= self._all_before(giver)
        return found


class Relation(Struct):
    """What two writers have recorded of each other, first of a writer and then of the other one.

    Attributes:
        gives: The words of its addresses that it lets the other one write as; `ALL` for all of them.
        takes: The words of the other one's addresses that it may write as, by grants of that one.
        accepts: Whether it goes on as the other one, if that one allows it.
        is_accepted: Whether the other one goes on as it.
    """

    gives: set[str] = set()
    takes: set[str] = set()
    accepts: bool = False
    is_accepted: bool = False


ALL = "*"


def relations(db: sqlite3.Connection, writer: str) -> dict[str, Relation]:
    """Return what a writer and others have recorded of each other, by the other one."""
    found: dict[str, Relation] = {}
    for words, other, giver in db.execute("SELECT * FROM granted WHERE ?1 IN (other, writer)", (writer,)):
        of = found.setdefault(giver if other == writer else other, Relation())
        (of.takes if other == writer else of.gives).add(words or ALL)
    for (by,) in db.execute("SELECT writer FROM accepted WHERE other = ?", (writer,)).fetchall():
        if _last_accepted(db, by) == writer:
            found.setdefault(by, Relation()).is_accepted = True
    if (last := _last_accepted(db, writer)) is not None:
        found.setdefault(last, Relation()).accepts = True
    found.pop(writer, None)
    return found


def _last_accepted(db: sqlite3.Connection, writer: str) -> str | None:
    query = "SELECT other FROM accepted WHERE writer = ? ORDER BY at DESC, other LIMIT 1"
    row = db.execute(query, (writer,)).fetchone()
    return None if row is None else str(row[0])


def is_any_accepted(db: sqlite3.Connection) -> bool:
    """Return whether any writer goes on as another one."""
    return db.execute("SELECT 1 FROM accepted LIMIT 1").fetchone() is not None


def own_address(db: sqlite3.Connection, writer: str, words: str) -> str:
    """Return the address that these words are if a writer writes them: its own, or that of the one as whom it goes on.

    It goes on as the last one (itself, if it has accepted itself) that it has accepted and that allows these words, and so on from there. Of writers that go on
    as each other in a circle the lowest counts, for all of them.
    """
    chain, grants = [writer], Grants(db)
    query = "SELECT other FROM accepted WHERE writer = ? ORDER BY at DESC, other"
    while True:
        others = (other for (other,) in db.execute(query, (chain[-1],)).fetchall())
        found = next((each for each in others if grants.allow(writer, [of_writer(words, each)])), None)
        if found is None:
            return of_writer(words, chain[-1])
        if found in chain:
            return of_writer(words, min(chain[chain.index(found) :]))
        chain.append(found)
