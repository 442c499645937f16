"""A second store of the same clone, for work that waits for the network: recording never does."""

from __future__ import annotations

from contextlib import contextmanager

from .git.repository import open_port
from .store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def apart(store: Store) -> Iterator[Store]:
    """Yield another store of the same clone; other threads may use the first one meanwhile, as other processes may.

    A batch is of one thread: in it the first store stays locked.

    Raises:
        StoreError: The repository can't be opened.
    """
    elsewhere, read = store.wal_folders
    found = Store(
        store.repo, open_port(store.repo, long_lived=False), store.domain, machine=store.machine, now=store.now, random=store.random,
        commit_after=store.commit_after, wal_elsewhere=elsewhere, wals_read=read, progress=store.progress,
    )  # fmt: skip
    found.log.given_network, found.log.limits = store.log.given_network, store.log.limits
    found.log.wal_parents, found.log.lock_seconds = store.log.wal_parents, store.log.lock_seconds
    found.starts_upkeep = store.starts_upkeep
    try:
        if store.collecting is not None:
            yield found
        else:
            with _unlocked(store):
                yield found
    finally:
        found.close()


@contextmanager
def _unlocked(store: Store) -> Iterator[None]:
    """Release a store's lock in the block, however often this thread holds it.

    Who uses the store meanwhile sees it up to date, and so does this thread after the block, also in `one_look`.
    """
    with store.lock:  # only its holder may change how often the store looks
        asked_once, store.asks_once = store.asks_once, False
        held = 0
        try:
            while True:
                store.lock.release()
                held += 1
        except RuntimeError:  # this thread does not hold it any more
            pass
        try:
            yield
        finally:
            for _ in range(held):
                store.lock.acquire()
            store.asks_once, store.has_asked = asked_once, False
