"""Warnings about forged lines, which claim to come from this clone but were not written in it."""

from __future__ import annotations

from .. import records
from ..log import ledger
from ..outcome import Struct
from ..trust import sender_tables
from .caller import is_own_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable

    from ..records.record_types import ShownSignal
    from ..store import Store

ELSEWHERE = "from another clone"
NOT_THE_SESSION = "not written by this session"
NOT_THE_AGENT = "not written in this clone, where this agent works"
WARNINGS_MAX = 20


class Forgery:
    """A forged line.

    Attributes:
        record: None if this version can't read it.
        name: The session or client that the line claims to come from.
        where: The file of the log that contains it.
    """

    def __init__(self, name: str, kind: str, at: str, line: bytes, where: str) -> None:
        self.name = name
        self.line = line
        self.kind = kind
        self.at = at
        self.record = records.read(line)
        self.where = where


def all_forged_lines(db: sqlite3.Connection) -> list[Forgery]:
    """Return every forged line of the log."""
    return [Forgery(*each) for each in sender_tables.forged_lines(db)]


def of_reader(db: sqlite3.Connection, names: Iterable[str]) -> str | None:
    """Return a warning if forged lines claim to come from a session, client or agent; else None."""
    known = [name for name in dict.fromkeys(names) if name]
    count = sender_tables.count_forged(db, known)
    if not count:
        return None
    what = "1 record uses the name of" if count == 1 else f"{count} records use the name of"
    return (
        f"FORGED: {what} {known[0]} and {'was' if count == 1 else 'were'} not written in this clone. "
        "They have no effect here; other clones show them. `gitmem doctor` lists them."
    )


def in_thread(db: sqlite3.Connection, ids: Collection[str]) -> list[str]:
    """Return warnings about forged signals and receipts of a thread that name a session of this clone."""
    found: list[str] = []
    for each in all_forged_lines(db):
        record = each.record
        if record is None or not (record["kind"] == "signal" or record["kind"] == "receipt"):
            continue
        if record["signal_id"] not in ids:
            continue
        if len(found) == WARNINGS_MAX:
            found.append("More were found; `gitmem doctor` counts them.")
            break
        what = f"a receipt for {record['signal_id']}"
        if record["kind"] == "signal":
            what = f"{record['signal_id']} ({record['intent']})"
        found.append(
            f"FORGED: {what} claims to be from {each.name} of this clone but was not written here. "
            "Other clones cannot detect this and count it; inform their users."
        )
    return found


class SenderWarnings(Struct):
    """The warnings displayed beside the sender of a signal, for one answer."""

    _store: Store
    _acknowledged: set[str] | None = None

    def put(self, fields: ShownSignal, line: bytes) -> None:
        """Add a warning about the sender to a signal's fields, if there is one."""
        unverified = self._of(line, fields)
        if unverified:
            fields["unverified"] = unverified

    def _of(self, line: bytes, fields: ShownSignal) -> str | None:
        if self._store.is_own_line(line):
            return None
        from ..trust import line_checks

        identity, session = fields["sender_identity"], fields.get("sender_session")
        names = [name for name in (session, identity) if name and name.startswith(sender_tables.PREFIXES)]
        db = self._store.index.db
        if any(sender_tables.is_own(db, name) for name in names):
            return NOT_THE_SESSION
        if line_checks.is_agent(identity) and line_checks.is_forged(db, identity, line):
            return NOT_THE_AGENT
        if names or session or not is_own_person(self._store, identity):
            return None
        return None if self._was_acknowledged(line) else ELSEWHERE

    def _was_acknowledged(self, line: bytes) -> bool:
        """Return whether the ledger has a line. It may, of another writer: the key may have been another one."""
        if self._acknowledged is None:
            self._acknowledged = {each for row in ledger.read(self._store.log.repo) for each in row.digests}
        return ledger.digest(line) in self._acknowledged
