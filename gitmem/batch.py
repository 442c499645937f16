"""A batch of the library: several calls whose records are committed together.

A log without a batch does not load this module.
"""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    from .agents.caller import CallerClaims
    from .log.local_log import Appended
    from .store import Store

    class HasCaller(Protocol):
        """The log of a batch."""

        store: Store
        who: CallerClaims


class Batch:
    """The entries that a `Log.batch()` has collected."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: list[Any] = []
        self.appended: Appended | None = None

    def add(self, entry: Any) -> None:
        """Add an entry, to be recorded at the end of the block."""
        self._entries.append(entry)

    @property
    def commit(self) -> str | None:
        """The commit of the batch; None inside the block and until it is committed."""
        return self.appended.commit if self.appended else None

    def record(self) -> None:
        """Record all collected entries at once; do nothing if there are none."""
        if self._entries:
            self.appended = self._store.record_all(self._entries)


@contextmanager
def collect(log: HasCaller) -> Iterator[Batch]:
    """Collect the records of a `with` block, and record them together at its end.

    If the block raises or the commit fails, nothing is recorded and the caller of the log is restored.
    """
    with log.store.lock:
        batch = Batch(log.store)
        who = log.who
        log.store.collect(batch.add)
        try:
            try:
                yield batch
            finally:
                log.store.collect(None)
            batch.record()
        except BaseException:
            log.who = who
            raise
