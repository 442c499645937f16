"""A read-only store with the state of the log at an earlier time.

The time at which lines were recorded counts. A line that one clone recorded by then and others got later, by sync,
is included: somebody could have known it. Lines still in the write-ahead log are not included.
"""

from __future__ import annotations

import math

from .. import records
from ..commit_message import cut, sanitize
from ..errors import ELSEWHERE, UsageError
from ..index import catch_up, index_file
from ..log import ref
from ..log.lines import format_at
from ..outcome import command
from ..settings import UNITS
from ..store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from ..index.index_file import Index
    from ..log.lines import CommitMessage, LogEntry
    from ..log.local_log import Appended
    from ..records.record_types import AnyFields

SECOND = 1_000_000
DAY = 86_400 * SECOND
ABBREVIATED_MIN = 5  # characters: `2d` is a time, `2d0f1` is a commit prefix if such a commit exists


class StoreAsOf(Store):
    """A read-only store at an earlier time. Its index exists only in the memory of this process.

    It reads through the git of the original store, which closes that git.
    """

    def __init__(self, store: Store, commit: str, at: int, head: str | None, *, all_of_it: bool) -> None:
        """Open the log at a commit.

        Args:
            commit: The commit of the log that was its tip.
            at: The value of `now()`, in microseconds since the epoch.
            head: The commit of the project at HEAD then, if known.
            all_of_it: The log's commit itself was named: all its lines count, also lines dated later.
        """
        super().__init__(
            store.repo, store.git, store.domain, machine=store.machine, now=lambda: at, random=store.random,
            progress=store.progress,
        )  # fmt: skip
        self._head = head
        until = None if all_of_it else format_at(at).encode()
        opened = index_file.in_memory(store.domain.views(), records.read)
        try:
            catch_up.read_commit(opened, self.log, commit, until=until, progress=store.progress)
        except BaseException:
            opened.close()
            raise
        self._index = opened

    def db(self) -> sqlite3.Connection:
        """Return the index of that time."""
        return self.index.db

    def caught_up(self) -> Index:
        """Return the index of that time."""
        return self.index

    def head(self) -> tuple[str | None, str | None]:
        """Return the project's commit that `--as-of` named, or None; and no branch."""
        return self._head, None

    def line(
        self, kind: str, fields: AnyFields, *, allow_secret: bool = False, at: int | None = None
    ) -> tuple[str, bytes]:
        """Reject the write: this store is read-only."""
        _refuse()

    def record(
        self, lines: Sequence[tuple[str, bytes]], message: CommitMessage, *, deferred: bool = False
    ) -> Appended:
        """Reject the write: this store is read-only."""
        _refuse()

    def record_all(self, entries: Sequence[LogEntry]) -> Appended:
        """Reject the write: this store is read-only."""
        _refuse()

    def collect(self, to: Callable[[LogEntry], None] | None) -> None:
        """Reject the write: this store is read-only."""
        _refuse()

    def close(self, *, closes_index: bool = True) -> None:
        """Close the index. The git stays open."""
        self.index.close()


def _refuse() -> NoReturn:
    raise UsageError(
        "The log of an earlier time is read-only. Nothing was written.",
        hint="Omit --as-of to write.",
        code="as-of-writes",
    )


def at(store: Store, text: str | int) -> StoreAsOf:
    """Return the store as it was at a commit or at a time. Close it before the original store.

    Args:
        text: A commit or a time. A text that git resolves to a commit is a commit, except full dates and short
            forms such as `2d`.
            - A commit of the log: the state is its content.
            - A commit of the project: the state is that at its commit time.
            - A time such as `2026-11-21` (the end of that day, in UTC), `2026-11-21T20:00:00+01:00` or `2d` (two
              days ago).
            - An integer: microseconds since the epoch.

    Raises:
        UsageError: There is no such commit or time, or the log did not exist then.
    """
    store.adopt()
    git = store.git
    tip = git.tip(ref.LOG_REF)
    if tip is None:
        raise UsageError(
            "This clone has no log yet.",
            hint=ELSEWHERE,
            code="no-log",
            next=["gitmem sync"],
        )
    moment = text if isinstance(text, int) else _time(text, store.now(), sure=True)
    head = None
    if moment is None:
        assert isinstance(text, str)
        named = git.find_commit(store.repo.git_dir, text)
        # The last microsecond of the second in which a commit was made: git stores whole seconds.
        made = (git.commit(named).committer.seconds + 1) * SECOND - 1 if named is not None else None
        if named in ref.GENESES.values():
            raise _before(store, tip, 0)
        if named is not None and made is not None and git.contains(tip, named):
            return StoreAsOf(store, named, made, None, all_of_it=True)
        moment = made if made is not None else _time(text, store.now(), sure=False)
        head = named
    if moment is None:
        raise _unknown(text)
    if moment > store.now() and head is None:
        raise UsageError(
            f"Time in the future: {sanitize(str(text))[:80]}.",
            hint="Give a past time, such as 2d for two days ago.",
            code="bad-as-of",
        )
    if moment < 0:
        raise _before(store, tip, moment)
    # Read the current tip, not an older commit: lines of a clone that was offline then were committed later.
    past = StoreAsOf(store, tip, moment, head, all_of_it=False)
    if not catch_up.has_records(past.db()) and moment < _log_start(store, tip):
        past.close()
        raise _before(store, tip, moment)
    return past


def _time(text: str, now: int, *, sure: bool) -> int | None:
    """Parse a time as people type it.

    Args:
        sure: Only accept what is unlikely to be a commit's name: a date, or a short form such as `2d`.

    Returns:
        Microseconds since the epoch, or None if the text is not a time.
    """
    word = text.strip()
    unit = UNITS.get(word[-1:].lower())
    if unit and word[:-1].replace(".", "", 1).isdecimal() and word.isascii():
        if sure and len(word) >= ABBREVIATED_MIN:
            return None
        found = now - int(float(word[:-1]) * unit * SECOND) if len(word) < 20 else -1
        return found if found >= 0 else None
    if word[4:5] != "-":
        return None
    from datetime import UTC, datetime

    try:
        date = datetime.fromisoformat(word)
        date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        since = date - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    micros = (since.days * 86_400 + since.seconds) * SECOND + since.microseconds
    if len(word) == len("2026-11-21"):
        micros = min(micros + DAY - 1, now) if micros <= now else micros  # a date means the end of that day
    return micros if micros >= 0 else None


def _unknown(text: str | int) -> UsageError:
    return UsageError(
        f"Invalid commit or time: {cut(sanitize(str(text)), 80) or '(empty)'}.",
        hint="Use a form such as 2d, 2026-11-21, 2026-11-21T20:00:00Z, HEAD~3 or a commit of the log.",
        code="bad-as-of",
        next=["git log -10 --format='%h %cI' " + ref.LOG_REF + " --"],
    )


def _log_start(store: Store, tip: str) -> float:
    """Return the start of the log in microseconds since the epoch; infinite if the log is empty."""
    first = store.git.history(tip)[1:2]
    return store.git.commit(first[0]).committer.seconds * SECOND if first else math.inf


def _before(store: Store, tip: str, moment: int) -> UsageError:
    began = _log_start(store, tip)
    asked = f"at {format_at(moment)[:19]}Z" if 0 < moment < 253_402_300_800 * SECOND else "then"
    return UsageError(
        f"No records {asked}: this log begins at {format_at(int(began))[:19]}Z."
        if began < math.inf
        else "This log has no records yet.",
        hint="Name a later time or commit.",
        code="before-the-log",
        next=[command("git", "log", "--reverse", "--format=%h %cI", ref.LOG_REF, "--")],
    )
