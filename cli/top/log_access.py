"""The screen's access to the log: one thread runs all operations, another waits for changes."""

from __future__ import annotations

import threading
import time

from gitmem.agents import caller as callers
from gitmem.signals.change_watcher import ChangeWatcher

from .. import autosync, background, failure
from ..render import output
from ..wal_folders import external_wals
from ..worker import Worker
from . import board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from gitmem.agents.caller import Caller
    from gitmem.store import Store

    from ..environment import Environment
    from .board import Board

    Answer = TypeVar("Answer")

TICK_SECONDS = 2.0
AGES_SECONDS = 30.0  # without a change: ages and who is live are shown anew
PAUSE_SECONDS, PAUSES = (
    0.2,
    3.0,
)  # between two looks: at least the first, and this many times what a look takes
STOP_SECONDS = 5.0


class LogAccess:
    """The log as the screen uses it. It is read on the first look, and after each change of the log.

    Args:
        at: The environment. Its store is used by this object's thread alone from now on.
    """

    def __init__(self, at: Environment) -> None:
        self._at = at
        self._who = at.who()
        self._store = at.store()
        self._store.after_record = lambda: background.start_committer(at)
        output.begin()  # lines for the screen have no colours of their own and any width
        output.set_options(at.directory, at.as_)
        self._worker = Worker("gitmem top")
        self._stop = threading.Event()
        self._again = threading.Event()

    async def run(self, job: Callable[[Store, Caller], Answer]) -> Answer:
        """Run an operation as the caller; return its outcome.

        Raises:
            GitmemError: It failed; also OSError and errors of SQLite.
        """
        return await self._worker.run(lambda: self._do(job))

    def _do(self, job: Callable[[Store, Caller], Answer]) -> Answer:
        with self._store.lock:
            caller = callers.find(self._store, self._who)
            assert caller is not None
            return job(self._store, caller)

    def follow(
        self, limits: Mapping[str, int], show: Callable[[Board], object], fail: Callable[[str], object]
    ) -> None:
        """Read the lists now and after each change of the log, in a thread that ends with `close`.

        Args:
            limits: The number of rows of each list; it may change.
            show: Receives the lists, in another thread.
            fail: Receives a sentence when they can't be read.
        """
        threading.Thread(
            target=self._follow, args=(limits, show, fail), name="gitmem top log", daemon=True
        ).start()

    def look_again(self) -> None:
        """Read the lists soon, although nothing has changed."""
        self._again.set()

    def _follow(
        self, limits: Mapping[str, int], show: Callable[[Board], object], fail: Callable[[str], object]
    ) -> None:
        waker = ChangeWatcher(self._store, self._stop)
        try:
            while not self._stop.is_set():
                self._again.clear()
                stamp, began = waker.stamp(), time.monotonic()
                try:
                    show(
                        self._worker.submit(
                            lambda: self._do(lambda store, caller: self._look(store, caller, limits))
                        ).result()
                    )
                except Exception as error:
                    fail(sentence(error))
                took = time.monotonic() - began
                self._stop.wait(max(PAUSE_SECONDS, PAUSES * took))
                self._wait(waker, stamp)
        finally:
            waker.close()

    def _look(self, store: Store, caller: Caller, limits: Mapping[str, int]) -> Board:
        store.log.read_also(external_wals(self._at.repo)[1])
        return board.read(store, caller, limits)

    def _wait(self, waker: ChangeWatcher, stamp: object) -> None:
        """Wait for a change, at most until ages are old; meanwhile sync if that is due."""
        until = time.monotonic() + AGES_SECONDS
        first = True
        while not (self._stop.is_set() or self._again.is_set()) and time.monotonic() < until:
            autosync.start_if_due(self._at)
            if waker.wait(stamp, TICK_SECONDS):
                return
            if first:
                first = False
                self._worker.submit(self._store.git.close)  # ends its idle child process

    def close(self) -> None:
        """End the threads after the operations that were asked for."""
        self._stop.set()
        self._worker.stop(STOP_SECONDS)


def sentence(error: Exception) -> str:
    """Return an error as one sanitized line for the screen, with its hint."""
    known = failure.own_error_of(error) or failure.unexpected(error, "`gitmem doctor` checks the log.")
    return output.sanitize(" ".join(filter(None, (known.message, known.hint))), keep="")
