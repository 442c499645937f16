"""The library's interface to calls: `log.call`, `log.call_stream`, their async twins and `log.serve`. They wait without the store's lock."""

from __future__ import annotations

from .argument_types import checked_methods

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence
    from typing import Unpack

    from .agents.caller import Caller
    from .invocation.call_result import CallResult, TaskProgress
    from .invocation.call_tasks import CallOptions
    from .invocation.runs import Function
    from .signals.change_watcher import StopWatching
    from .store import Store


@checked_methods
class Invocation:
    """Calls of a log's caller. `Log` inherits it: methods of its own would hold the lock while they wait."""

    store: Store

    if TYPE_CHECKING:

        @property
        def caller(self) -> Caller:
            """The caller in whose name records are written."""
            ...

    def call(self, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]) -> CallResult:
        """Call agents and wait for their results; see `CallOptions`. `check` of the result raises the error of an agent.

        Raises:
            UsageError: `unknown-agent`, or another invalid input. Nothing was written.
        """
        from .invocation import call

        return call.call(self.store, self.caller, agents, message, **options)

    def call_stream(
        self, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]
    ) -> Iterator[TaskProgress | CallResult]:
        """Call agents, and yield their progress in order and last the result; see `call`."""
        from .invocation import call

        return call.stream(self.store, self.caller, agents, message, **options)

    async def acall(
        self, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]
    ) -> CallResult:
        """Call agents from asyncio; see `call`. Cancellation ends the wait as a timeout does."""
        from .invocation import async_call

        return await async_call.call(self.store, lambda: self.caller, agents, message, **options)

    def acall_stream(
        self, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[TaskProgress | CallResult, None]:
        """Call agents from asyncio, and yield what `call_stream` does."""
        from .invocation import async_call

        return async_call.stream(self.store, lambda: self.caller, agents, message, **options)

    def wait_for(
        self, *task_ids: str, timeout: float | None = None, stop: StopWatching | None = None
    ) -> CallResult:
        """Wait for the results of earlier calls, and seal those of the caller's session."""
        from .invocation import call

        return call.wait(self.store, self.caller, task_ids, timeout=timeout, stop=stop)

    def serve(self, function: Function, *, stop: StopWatching, lease: float = 60.0) -> None:
        """Run tasks for the caller with a function, one at a time, until the stop is set.

        Args:
            function: Takes a `ServedTask` and returns the result. What it raises is the error of the task.
            lease: Seconds until another worker may take a task of a worker that has died.
        """
        from .invocation.runs import FunctionRun
        from .invocation.worker import Worker

        Worker(
            self.store, lambda: self.caller, lambda task: FunctionRun(function, task), stop=stop, lease=lease
        ).serve()
