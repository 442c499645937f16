"""Calls from asyncio: a thread waits for the results, so that the event loop goes on."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from . import call as calls
from .call_result import CallResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from typing import Unpack

    from ..agents.caller import Caller
    from ..signals.change_watcher import StopWatching
    from ..store import Store
    from .call_result import TaskProgress
    from .call_tasks import CallOptions

_PAUSE_SECONDS = 0.005  # between two looks at whether the thread has ended


class _Stop:
    """A stop that is set here, or by whoever calls."""

    def __init__(self, given: StopWatching | None) -> None:
        self._given = given
        self._own = threading.Event()

    def set(self) -> None:
        self._own.set()

    def is_set(self) -> bool:
        return self._own.is_set() or (self._given is not None and self._given.is_set())


async def call(
    store: Store,
    caller: Callable[[], Caller],
    agents: str | Sequence[str],
    message: str,
    **options: Unpack[CallOptions],
) -> CallResult:
    """Call agents and return their results; see `stream`."""
    async with contextlib.aclosing(stream(store, caller, agents, message, **options)) as every:
        async for found in every:
            if isinstance(found, CallResult):
                return found
    raise AssertionError("a call ends with its result")


async def stream(
    store: Store,
    caller: Callable[[], Caller],
    agents: str | Sequence[str],
    message: str,
    **options: Unpack[CallOptions],
) -> AsyncGenerator[TaskProgress | CallResult, None]:
    """Call agents and yield their progress in order, and last the result; see `call.stream`.

    A cancellation ends the wait as a timeout does: the tasks go on, or with `cancel_on_timeout` are canceled.

    Args:
        caller: Returns who calls; it runs in the thread.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[TaskProgress | CallResult | BaseException] = asyncio.Queue()
    stop = _Stop(options.get("stop"))
    options = {**options, "stop": stop}

    def hand_over(found: TaskProgress | CallResult | BaseException) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(arrived.put_nowait, found)

    def run() -> None:
        try:
            for found in calls.stream(store, caller(), agents, message, **options):
                hand_over(found)
        except BaseException as error:  # it is raised to who awaits
            hand_over(error)

    waiting = threading.Thread(target=run, name="gitmem call", daemon=True)
    waiting.start()
    try:
        while True:
            found = await arrived.get()
            if isinstance(found, BaseException):
                raise found
            yield found
            if isinstance(found, CallResult):
                return
    finally:
        stop.set()
        while waiting.is_alive():  # it uses the store, which may be closed next
            await asyncio.sleep(_PAUSE_SECONDS)
