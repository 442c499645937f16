"""Call agents: find them, check the limits, record a task for each, wait for the results, and seal them."""

from __future__ import annotations

import time

from ..agents import presence
from ..errors import UsageError
from ..records import ids
from ..signals.change_watcher import NeverSet
from ..tasks import ONCE, chains, delegate, find_task, new_task
from . import CALL, DEADLINE_SECONDS, WORKER, agent_lookup
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
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, NotRequired, TypedDict, Unpack

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..log.entry import LogEntry
    from ..records.record_types import SignalFields
    from ..signals.change_watcher import StopWatching
    from ..store import Store
    from ..tasks.task_options import TaskOptions
    from .bundle_content import Bundle

    class CallOptions(TypedDict):
        """The options of a call.

        Attributes:
            timeout: Seconds to wait for results; by default until the task's deadline. The task goes on after it.
            join: `all`, or `any` to return with the first result.
            wait: Whether to wait at all (default).
            idempotency_key: The same key is the same call.
            cancel_on_timeout: Cancel what has no result in time.
            once: Begin at most once, of all clones of the usual remote; offline, and after the death of a worker, nothing begins.
            again: Call an agent that works or waits in this chain of calls already.
            within: The task that the caller works on; by default the only one that its session holds.
            context: True to hand over the caller's working memory, or the parts to hand over; see `bundle.build`.
            variables: Further values to hand over, by name.
            memory: True to hand over nodes of the caller's work unit, words to search for, or ids of nodes.
            allow_secret: Record text that looks like a secret.
            stop: Ends the wait early, as a timeout does.
        """

        timeout: NotRequired[float | None]
        join: NotRequired[str]
        wait: NotRequired[bool]
        idempotency_key: NotRequired[str | None]
        cancel_on_timeout: NotRequired[bool]
        once: NotRequired[bool]
        again: NotRequired[bool]
        within: NotRequired[str | None]
        context: NotRequired[bool | Mapping[str, Any] | None]
        variables: NotRequired[Mapping[str, Any] | None]
        memory: NotRequired[bool | str | Sequence[str] | None]
        allow_secret: NotRequired[bool]
        stop: NotRequired[StopWatching | None]


_TICK_SECONDS = 1.0  # at most, between two looks at a log that does not change: leases end without a record


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
    join = options.get("join") or ALL
    if join not in (ALL, ANY):
        raise UsageError(
            f"Invalid join: {join!r}; choose from all, any. Nothing was written.", code="bad-join"
        )
    timeout = options.get("timeout")
    named = [agents] if isinstance(agents, str) else agents
    with store.lock:
        handed = bundle_of(store, caller, options)  # before the snapshot: a search may write to the index
        results, thread = store.with_one_snapshot(
            lambda: _record(store, caller, named, message, options, handed), exact=True
        )
    transfer = handed.transfer if handed is not None else None
    if not options.get("wait", True):
        yield CallResult(join, thread, results, transfer)
        return
    for found in follow(
        store, caller, results, thread, join=join, timeout=timeout, cancel=bool(options.get("cancel_on_timeout")),
        stop=options.get("stop"),
    ):  # fmt: skip
        if isinstance(found, CallResult):
            found.transfer = transfer
        yield found


def bundle_of(store: Store, caller: Caller, options: CallOptions) -> Bundle | None:
    """Return what a call hands over, or None if nothing was asked for; errors are those of `bundle.build`."""
    if all(options.get(name) in (None, False) for name in ("context", "variables", "memory")):
        return None
    from . import bundle

    return bundle.build(
        store, caller, context=options.get("context"), variables=options.get("variables"),
        memory_query=options.get("memory"), allow_secret=bool(options.get("allow_secret")),
    )  # fmt: skip


def wait(
    store: Store,
    caller: Caller,
    task_ids: Sequence[str],
    *,
    timeout: float | None = None,
    stop: StopWatching | None = None,
) -> CallResult:
    """Wait for the results of tasks that were written before, and seal those of the caller's session.

    Raises:
        UsageError: A task is unknown, or none is named.
    """
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
        follow(store, caller, results, tasks[0].record["thread_id"], join=ALL, timeout=timeout, stop=stop)
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
) -> Iterator[TaskProgress | CallResult]:
    """Yield the progress of tasks until all of them, or one by `any`, have a result, and last the result of the call."""
    end = time.monotonic() + (DEADLINE_SECONDS if timeout is None else timeout)
    stopped = stop or NeverSet()
    waiter = LogWaiter(store, stopped)
    open_ = list(results)
    shown: dict[str, set[str]] = {each.task_id: set() for each in results}
    while open_:
        stamp = waiter.stamp()  # before reading: what arrives meanwhile is a change
        seen: list[TaskProgress] = []
        with store.lock:
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
                time_out(store, caller, open_, cancel=cancel)
            break
        waiter.wait(stamp, min(left, _TICK_SECONDS))
    yield CallResult(join, thread, results)


def _record(
    store: Store,
    caller: Caller,
    agents: Sequence[str],
    message: str,
    options: CallOptions,
    handed: Bundle | None,
) -> tuple[list[AgentResult], str]:
    """Record a task for each agent, or nothing; return them, and their thread."""
    found = agent_lookup.find(store, caller, agents)
    again = bool(options.get("again"))
    _refuse_calling_oneself(caller, found, again=again)
    key = options.get("idempotency_key")
    thread = (
        ids.keyed_id("thread", caller.reader, f"{CALL} {key}") if key else ids.new_id("thread", store.random)
    )
    chain = chains.of_new(store, caller, options.get("within"))
    common: TaskOptions = {
        "purpose": CALL, "chain": chain, "thread": thread, "allow_secret": bool(options.get("allow_secret")),
        "deadline": _deadline(store, chain, options.get("timeout")), "context": handed.context if handed else None, "again": again,
        "semantics": ONCE if options.get("once") else None,
    }  # fmt: skip
    results = []
    entries: list[LogEntry] = []
    if len(found) > 1:
        store.collect(entries.append)
    try:
        for each in found:
            own = key if key is None or len(found) == 1 else f"{key} {each.address}"
            results.append(_record_one(store, caller, message, each, {**common, "idempotency_key": own}))
    finally:
        if len(found) > 1:
            store.collect(None)
    if entries:
        store.record_all(entries)
    return results, thread


def _record_one(
    store: Store, caller: Caller, message: str, agent: Resolved, options: TaskOptions
) -> AgentResult:
    """Record the task of one agent, and unless a worker serves it, a signal to it."""
    told = () if _is_served(store, agent.address) else (agent,)

    def signal(fields: Mapping[str, Any]) -> SignalFields:
        return delegate.signal_about(store, caller, fields, told)

    own: TaskOptions = {**options, "to": agent.query, "resolved": agent}
    made = new_task.create_with_signal(store, caller, message, signal if told else None, told, **own)
    name = agent.display_name or agent.address
    return AgentResult(made.task["task_id"], agent.address, name, agent.resolved_by, made.warnings)


def _refuse_calling_oneself(caller: Caller, agents: Sequence[Resolved], *, again: bool) -> None:
    own = next((each.address for each in agents if each.address in caller.ids), None)
    if own is not None and not again:
        raise UsageError(
            f"You are {own}, and an agent that calls itself waits for itself. Nothing was written.",
            hint="--again allows it, where another session of yours takes the task.",
            code="chain-cycle",
            next=["gitmem roster"],
        )


def _deadline(store: Store, chain: Sequence[str], timeout: float | None) -> int | None:
    """Return the deadline of a call; None for that of the tasks within which it is made, if that is earlier."""
    found = store.now() + int(max(DEADLINE_SECONDS, timeout or 0.0) * 1_000_000)
    first = chains.Above(store.db(), chain).deadline if chain else None
    return None if first is not None and first < found else found


def _is_served(store: Store, address: str) -> bool:
    """Return whether a worker serves an agent now: it takes tasks, and reads no signals."""
    return any(
        each.record.get("client") == WORKER and each.ended is None and each.status == "live"
        for each in presence.of_identity(store, address)
    )
