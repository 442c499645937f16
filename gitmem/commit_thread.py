"""A thread that commits the records of a program that keeps a log open, once per window."""

from __future__ import annotations

import threading

from . import commit_process
from .errors import GitmemError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .store import Store

STOP_SECONDS = 10.0
RETRY_SECONDS_MAX = 60.0


class BackgroundCommits:
    """A thread that starts with the first record and ends with `close`.

    Args:
        open_store: Opens a store for the thread.
        window: Seconds from a record to its commit.
    """

    def __init__(self, open_store: Callable[[], Store], window: float) -> None:
        self._open_store = open_store
        self._window = window
        self._recorded = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def notify(self) -> None:
        """Commit new entries within the window."""
        self._recorded.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="gitmem commits", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread; the caller commits waiting records."""
        self._stopped.set()
        self._recorded.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        store, pause = None, 0.0
        while self._recorded.wait() and not self._stopped.wait(self._window + pause):
            self._recorded.clear()
            try:
                store = store or self._open_store()
                if store.waits() and commit_process.commit_waiting(store) is None:
                    self._recorded.set()  # another process is committing: check again after a window
                pause = 0.0
            except (GitmemError, OSError):  # the reason is in the state folder
                pause = min(2 * pause + commit_process.RETRY_SECONDS, RETRY_SECONDS_MAX)
                self._recorded.set()
        if store is not None:
            store.close()
