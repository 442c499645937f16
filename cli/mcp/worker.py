"""A thread that does one job after the other, for an event loop that must not wait."""

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
    """Jobs run in the order in which they were given. The thread does not keep the process alive."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], Answer]) -> Future[Answer]:
        """Queue a job. One that is cancelled before its turn never runs; one that runs, runs to its end."""
        future: Future[Answer] = Future()
        self._jobs.put((future, job))
        return future

    async def run(self, job: Callable[[], Answer]) -> Answer:
        """What a job gives. Who is cancelled stops waiting for it."""
        return await asyncio.wrap_future(self.submit(job))

    def stop(self, seconds: float) -> bool:
        """Let it end after what is queued, and wait so long for that. False where it still works."""
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
            del entry, future, job  # or the last answer would live until the next job
