"""Check the index against one that is rebuilt from the log, and the queues that are derived from both."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ...agents import delivery, heartbeats, mailbox
from ...errors import StoreError
from ...index import catch_up, compare, index_file
from ...index.engine import StepLimit, sqlite3
from ...index.index_file import Index
from ...store import Store
from ..findings import Check, Finding, Fixed, problem
from .clone_files import move_aside

UNREAD_STEPS = 2_000_000  # SQLite steps for the cursors of readers
ARRIVAL = ("cursor",)  # columns that depend on the order of arrival; results derived from them don't


class IndexContent(Check):
    """Differences between the index and a rebuilt one, and lines that neither could read in full."""

    codes = ("index", "skipped-lines")
    fixes = ("index",)

    def check(self) -> Iterator[Finding]:
        """Yield the findings, with the index that was filled from the lines."""
        where, rebuilt = index_file.path(self.store.repo, self.store.machine), self.run.rebuilt
        lacks = has = 0
        try:
            if self.run.failure is not None:
                raise self.run.failure
            for _ in range(3):  # another process may write in between
                index = self.store.caught_up()
                catch_up.catch_up(rebuilt, self.store.log)
                differs = _differing(index, rebuilt, self.store)
                if not differs:
                    break
            if differs:
                lacks, has = _lacking(index, rebuilt), _lacking(rebuilt, index)
            skipped = rebuilt.skipped()
        except (sqlite3.Error, StoreError) as error:
            yield problem(
                "index",
                f"Cannot read or build the index: {str(error).rstrip('.')}.",
                where,
                "It is rebuilt once the object problems are fixed.",
            )
            return
        if differs:
            what = f"The index lacks {lacks} lines of the log, and has {has} that the log lacks."
            if not lacks and not has:
                what = f"The index has every line, but differs from a rebuilt one in: {', '.join(differs)}."
            yield problem("index", what, where, "--fix rebuilds it from the log.")
        if skipped:
            yield problem(
                "skipped-lines",
                f"{skipped} line{'s' if skipped > 1 else ''} of the log cannot be read completely: "
                "they are kept, but some results lack them.",
                where,
                "A newer gitmem may read them; if it does not, report the output of `gitmem doctor --json`.",
                "pip install --upgrade gitmem-coord",
            )

    def fix(self) -> Iterator[Fixed]:
        """Rebuild the index from the log, in one transaction: other processes use the old index until then."""
        where = index_file.path(self.store.repo, self.store.machine)
        if os.path.isdir(where):
            yield "index", where, f"The old file was moved to {move_aside(self.store, where)}."
        try:
            self.store.index.db.execute("PRAGMA user_version = 0")
            self.store.caught_up()
        except sqlite3.Error:
            self.store.leave_index()
            index_file.remove(where)
            try:
                self.store.caught_up()
            except sqlite3.Error as error:
                raise StoreError(f"Cannot build the index: {error}.", code="index") from error
        yield "index", where, "It was rebuilt."


class Queues(Check):
    """Sessions with unread signals that no flag announces to their hooks."""

    codes = fixes = ("queue",)

    def check(self) -> Iterator[Finding]:
        try:
            silent = delivery.missing_flags(self.store)
        except (sqlite3.Error, StoreError):  # reported by `IndexContent`
            return
        for session_id, count in silent.items():
            yield problem(
                "queue",
                f"{count} signal{'s wait' if count > 1 else ' waits'} for a session without a flag for its hooks.",
                os.path.join(self.store.repo.state, heartbeats.FLAGS, session_id),
                "--fix fills the queue again from the log.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Write the missing event files and flags."""
        self.store.caught_up()
        for session_id in delivery.missing_flags(self.store):
            delivery.queue_all(self.store, session_id)
            flag = os.path.join(self.store.repo.state, heartbeats.FLAGS, session_id)
            yield "queue", flag, "Its queue was filled again."


def _differing(ours: Index, theirs: Index, store: Store) -> list[str]:
    """Return the names of tables that differ, and "unread" if a cursor skips unread signals.

    If the tables are equal but for the cursors, nothing else can make unread signals differ. The readers of this clone
    come first; if there are very many readers, the cursors of some others are not checked.
    """
    found = compare.differing(ours, theirs, but=ARRIVAL)
    if found:
        return found
    readers = ours.db.execute(
        "SELECT r.reader FROM reader r ORDER BY r.reader NOT IN (SELECT coalesce(agent_identity, session_id)"
        " FROM session WHERE clone_id = ?), r.reader",
        (store.log.clone_id(),),
    ).fetchall()
    steps = StepLimit(ours.db, UNREAD_STEPS)
    return (
        ["unread"] if any(steps.ask(mailbox.skips_unread, ours.db, reader) for (reader,) in readers) else []
    )


def _lacking(index: Index, other: Index) -> int:
    """Return how many lines of another index it lacks."""
    ask = index.db.execute
    keys = other.db.execute("SELECT key FROM line")
    return sum(ask("SELECT 1 FROM line WHERE key = ?", row).fetchone() is None for row in keys)
