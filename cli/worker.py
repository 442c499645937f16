"""A thread that runs one job after another, for an event loop that must not block."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Answer = TypeVar("Answer")


class Worker:
    """A thread that runs jobs in the order of their submission. It does not keep the process alive.

    Args:
        name: The thread's name.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], Answer]) -> Future[Answer]:
        """Queue a job. A job that is cancelled before its turn never runs; a running job is not interrupted."""
        future: Future[Answer] = Future()
        self._jobs.put((future, job))
        return future

    async def run(self, job: Callable[[], Answer]) -> Answer:
        """Run a job and return its result. Cancelling stops only the wait."""
        return await asyncio.wrap_future(self.submit(job))

    def stop(self, seconds: float) -> bool:
        """End the thread after the queued jobs.

        Args:
            seconds: How long to wait for that.

        Returns:
            Whether the thread has ended.
        """
        self._jobs.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None:
            future, job = entry
            if not future.set_running_or_notify_cancel():
                continue
            try:
                answer = job()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(answer)
            del entry, future, job  # otherwise the last answer would live until the next job
