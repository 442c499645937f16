"""Call agents: find them, check the limits, record a task for each, wait for the results, and seal them."""

from __future__ import annotations

import time

from ..errors import UsageError
from ..signals.change_watcher import NeverSet
from ..tasks import find_task, give_up, task_signals
from . import DEADLINE_SECONDS, SERVER, agent_lookup, call_tasks
from .call_result import (
    ALL,
    ANY,
    AgentResult,
    CallResult,
    TaskProgress,
    has_ended,
    progress_of,
    take_result,
    time_out,
)
from .log_waiter import LogWaiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Unpack

    from ..agents.caller import Caller
    from ..signals.change_watcher import StopWatching
    from ..store import Store
    from .agent_lookup import Callee
    from .bundle_content import Bundle
    from .call_tasks import CallOptions

TIMEOUT_MAX_SECONDS = 100 * 365 * 86_400  # as of the command line
WAIT_SECONDS = (
    DEADLINE_SECONDS + give_up.GRACE_MICROS / 1_000_000 + 5.0
)  # until a task without an end is given up
_TICK_SECONDS = 0.25  # at most, between two looks at a log that does not change: leases end without a record


def call(
    store: Store, caller: Caller, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]
) -> CallResult:
    """Call agents and return their results; see `CallOptions`.

    The store's lock is free while this waits: workers in other threads may use the store.

    Raises:
        UsageError: `unknown-agent`, `ambiguous-agent`, a limit of `chains`, or another invalid input (also RecordError, SecretError).
            Nothing was written.
        StoreError: It can't be recorded.
    """
    for found in stream(store, caller, agents, message, **options):
        if isinstance(found, CallResult):
            return found
    raise AssertionError("a call ends with its result")


def stream(
    store: Store, caller: Caller, agents: str | Sequence[str], message: str, **options: Unpack[CallOptions]
) -> Iterator[TaskProgress | CallResult]:
    """Call agents and yield their progress in order, and last the result; see `call`."""
    begun = begin(store, caller, agents, message, options)
    options.get("began", list)([each.task_id for each in begun.results])
    if not options.get("wait", True):
        yield begun
        return
    for found in follow(
        store, caller, begun.results, begun.thread_id, join=begun.join, timeout=options.get("timeout"),
        cancel=bool(options.get("cancel_on_timeout")), stop=options.get("stop"), tick=options.get("tick"),
    ):  # fmt: skip
        if isinstance(found, CallResult):
            found.transfer = begun.transfer
        yield found


def begin(
    store: Store, caller: Caller, agents: str | Sequence[str], message: str, options: CallOptions
) -> CallResult:
    """Record the tasks of a call and return them without a result; see `call`. Who waits goes on with `follow` or `wait`."""
    join = options.get("join") or ALL
    if join not in (ALL, ANY):
        raise UsageError(
            f"Invalid join: {join!r}; choose from all, any. Nothing was written.", code="bad-join"
        )
    if options.get("cancel_on_timeout") and not options.get("wait", True):
        raise UsageError(
            "A call that does not wait has no time limit, so nothing cancels it then. Nothing was written.",
            hint="Leave out --no-wait or --cancel-on-timeout.",
            code="contradiction",
        )
    check_timeout(options.get("timeout"))
    named = [agents] if isinstance(agents, str) else agents
    with store.lock:
        same = store.with_one_snapshot(
            lambda: call_tasks.of_key(store, caller, named, message, options), exact=True
        )
        if same is not None:
            return CallResult(join, same[1], same[0])
        handed = bundle_of(
            store, caller, options, lambda: agent_lookup.find(store, caller, named, waits=False)
        )  # before the snapshot: a search may write to the index
        results, thread = store.with_one_snapshot(
            lambda: call_tasks.record(store, caller, named, message, options, handed), exact=True
        )
        for each in results if not options.get("wait", True) else ():
            each.warnings += task_signals.away(store, find_task.require(store, each.task_id, writing=True))
    return CallResult(join, thread, results, handed.transfer if handed is not None else None)


def bundle_of(
    store: Store, caller: Caller, options: CallOptions, callees: Callable[[], Sequence[Callee]]
) -> Bundle | None:
    """Return what a call hands over, or None if nothing was asked for; errors are those of `bundle.build` and `agent_lookup.find`."""
    if all(options.get(name) in (None, False) for name in ("context", "variables", "memory")):
        return None
    from . import bundle

    by_value = options.get("memory") not in (None, False) and any(
        (each.address or "").startswith(SERVER) for each in callees()
    )
    return bundle.build(
        store, caller, context=options.get("context"), variables=options.get("variables"),
        memory_query=options.get("memory"), allow_secret=bool(options.get("allow_secret")), by_value=by_value,
    )  # fmt: skip


def check_timeout(seconds: float | None) -> None:
    """Raise UsageError for a time that can't be waited for."""
    if seconds is not None and not 0 <= seconds <= TIMEOUT_MAX_SECONDS:
        raise UsageError(
            f"Invalid timeout: {seconds}; 0 to {TIMEOUT_MAX_SECONDS} seconds are valid. Nothing was written.",
            code="bad-timeout",
        )


def wait(
    store: Store,
    caller: Caller,
    task_ids: Sequence[str],
    *,
    join: str = ALL,
    timeout: float | None = None,
    stop: StopWatching | None = None,
    tick: Callable[[], object] | None = None,
) -> CallResult:
    """Wait for the results of tasks that were written before, and seal those of the caller's session; see `CallOptions`.

    Raises:
        UsageError: A task is unknown, or none is named.
    """
    check_timeout(timeout)
    if not task_ids:
        raise UsageError("No task to wait for.", code="no-task", next=["gitmem task list --mine"])
    with store.lock:
        tasks = [find_task.require(store, each) for each in task_ids]
    results = [
        AgentResult(task.record["task_id"], agent := task.record.get("agent") or "", task.record.get("requested_to") or agent,
                    task.record.get("resolved_by") or "", ())
        for task in tasks
    ]  # fmt: skip
    found = list(
        follow(
            store,
            caller,
            results,
            tasks[0].record["thread_id"],
            join=join,
            timeout=timeout,
            stop=stop,
            tick=tick,
        )
    )[-1]
    assert isinstance(found, CallResult)
    return found


def follow(
    store: Store,
    caller: Caller,
    results: Sequence[AgentResult],
    thread: str,
    *,
    join: str,
    timeout: float | None = None,
    cancel: bool = False,
    stop: StopWatching | None = None,
    tick: Callable[[], object] | None = None,
) -> Iterator[TaskProgress | CallResult]:
    """Yield the progress of tasks until all of them, or one by `any`, have a result, and last the result of the call."""
    end = time.monotonic() + (WAIT_SECONDS if timeout is None else timeout)
    stopped = stop or NeverSet()
    waiter = LogWaiter(store, stopped)
    open_, others = list(results), set[str]()
    shown: dict[str, set[str]] = {each.task_id: set() for each in results}
    while open_:
        if tick is not None:
            tick()
        stamp = waiter.stamp()  # before reading: what arrives meanwhile is a change
        seen: list[TaskProgress] = []
        with store.lock, store.one_look():
            for each in list(open_):
                task = find_task.require(store, each.task_id, writing=True)
                seen += progress_of(task, shown[each.task_id])
                if has_ended(store, task):
                    take_result(store, caller, each, task)
                    open_.remove(each)
        yield from seen
        if not open_ or (join == ANY and any(each.is_completed for each in results)):
            break
        left = end - time.monotonic()
        if left <= 0 or stopped.is_set():
            with store.lock:
                others = time_out(store, caller, open_, cancel=cancel)
            break
        waiter.wait(stamp, min(left, _TICK_SECONDS))
    yield CallResult(join, thread, results, others=others)
