"""Calls from asyncio: the loop goes on, errors and cancellation arrive, and nothing is left running."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from gitmem.api.log import Log
from gitmem.calls.call_result import CallResult
from gitmem.calls.served_task import ServedTask
from gitmem.errors import UsageError
from gitmem.work import task_rules

from .conftest import Serve


def test_calls_wait_together_while_the_loop_goes_on(log: Log, serve: Serve) -> None:
    """Two calls of one log, of which each ends only when the other one has begun."""
    both = threading.Barrier(2)
    turns = 0

    def meet(task: ServedTask) -> str:
        both.wait(20)
        return task.message.upper()

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    async def run() -> tuple[CallResult, CallResult]:
        counting = asyncio.create_task(count())
        found = await asyncio.gather(
            log.acall("prices", "a", timeout=20), log.acall("stock", "b", timeout=20)
        )
        counting.cancel()
        return found

    serve(meet)
    serve(meet, name="stock", identity="claude:stock:shop")

    assert [each.check().message for each in asyncio.run(run())] == ["A", "B"]
    assert turns > 5


def test_the_stream_has_progress_in_order_and_ends_with_the_result(log: Log, serve: Serve) -> None:
    """As `call_stream`."""
    serve()

    async def run() -> list[object]:
        return [each async for each in log.acall_stream("prices", "add", timeout=20)]

    *progress, result = asyncio.run(run())

    assert [getattr(each, "state", None) for each in progress] == ["working", "completed"]
    assert isinstance(result, CallResult)
    assert result.message == "ADD"


def test_an_error_is_raised_to_who_awaits(log: Log) -> None:
    """Of an unknown agent, and nothing is written."""
    with pytest.raises(UsageError, match="not found"):
        asyncio.run(log.acall("nobody-here", "add"))

    assert log.tasks.list().tasks == []


@pytest.mark.parametrize("cancels", [False, True])
def test_a_cancellation_ends_the_wait_as_a_timeout_does(log: Log, serve: Serve, cancels: bool) -> None:
    """The task goes on, or its cancellation is asked for; the thread has ended when the await has."""
    begun, end = threading.Event(), threading.Event()

    def wait(task: ServedTask) -> str:
        begun.set()
        end.wait(20)
        return "done"

    async def run() -> None:
        calling = asyncio.create_task(log.acall("prices", "add", timeout=20, cancel_on_timeout=cancels))
        while not begun.is_set():
            await asyncio.sleep(0.005)
        calling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await calling
        assert calling.cancelled()

    serve(wait)
    try:
        asyncio.run(run())
        assert not [each for each in threading.enumerate() if each.name == "gitmem call"]
        (listed,) = log.tasks.list().tasks
        task = task_rules.require(log.store, str(listed.task_id))
        assert (task.state, bool(task.cancels)) == ("working", cancels)
    finally:
        end.set()
