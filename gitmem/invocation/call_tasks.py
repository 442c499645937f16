"""Record the tasks of a call: one for each callee, all in one entry, or none."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from ..agents import presence
from ..commit_process import NOW
from ..errors import UsageError
from ..records import ids
from ..tasks import CALL, ONCE, chains, delegate, keyed_task, new_task, open_tasks, task_roles, task_signals
from . import DEADLINE_SECONDS, WORKER, agent_lookup, working_memory
from .call_result import AgentResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..log.lines import LogEntry
    from ..records.record_types import SignalFields
    from ..signals.change_watcher import StopWatching
    from ..store import Store
    from ..tasks.task_options import TaskOptions
    from .agent_lookup import Callee
    from .bundle_content import Bundle


class CallOptions(TypedDict):
    """The options of a call.

    Attributes:
        timeout: Seconds to wait for results; by default until a task that has its deadline by default is given up. The task goes on after it.
        join: `all`, or `any` to return with the first result.
        wait: Whether to wait at all (default); without it the caller gets a signal about the result.
        idempotency_key: The same key is the same call.
        cancel_on_timeout: Cancel what has no result in time.
        once: Begin at most once, of all clones of the usual remote; offline, and after the death of a worker, nothing begins.
        again: Call an agent that works or waits in this chain of calls already.
        within: The task that the caller works on, or `none`; by default the only one that its session holds.
        context: True to hand over the caller's working memory, or the parts to hand over; see `bundle.build`.
        variables: Further values to hand over, by name.
        memory: True to hand over nodes of the caller's work unit, words to search for, or ids of nodes.
        allow_secret: Record text that looks like a secret.
        stop: Ends the wait early, as a timeout does.
        began: Called with the ids of the tasks, once they are recorded.
        tick: Called while it waits, at each look at the log and at least once a second, such as to sync.
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
    began: NotRequired[Callable[[Sequence[str]], object]]
    tick: NotRequired[Callable[[], object] | None]


def of_key(
    store: Store, caller: Caller, agents: Sequence[str], message: str, options: CallOptions
) -> tuple[list[AgentResult], str] | None:
    """Return the tasks of a call's idempotency key, and their thread, if all of them were recorded before: see `keyed_task.find`."""
    key = options.get("idempotency_key")
    if not key:
        return None
    texts, thread = agent_lookup.typed(agents), _thread(caller, key)
    if len(texts) == 1:
        found = [_of_key(store, caller, message, texts[0], [key], thread, options)]
    else:
        found = [
            _of_key(
                store,
                caller,
                message,
                text,
                [f"{key} {text}", f"{key} {agent_lookup.identity_of(text)}"],
                thread,
                options,
            )
            for text in texts
        ]
    if None in found:
        try:
            callees = agent_lookup.find(store, caller, agents, waits=False)
        except UsageError:
            return None  # `record` refuses it
        keys = [key if len(callees) == 1 else f"{key} {each.key}" for each in callees]
        found = [
            _of_key(store, caller, message, each.query, [own], thread, options)
            for each, own in zip(callees, keys, strict=True)
        ]
    known = [each for each in found if each is not None]
    return (known, thread) if len(known) == len(found) else None


def _of_key(
    store: Store,
    caller: Caller,
    message: str,
    text: str,
    keys: Sequence[str],
    thread: str,
    options: CallOptions,
) -> AgentResult | None:
    for key in keys:
        made = new_task.of_key(store, caller, message, {
            "purpose": CALL, "to": text, "idempotency_key": key, "thread": thread, "semantics": ONCE if options.get("once") else None,
        })  # fmt: skip
        if made is not None:
            _refuse_other_context(made.task, options)
            address = made.task.get("agent") or ""
            name = made.task.get("requested_to") or address
            return AgentResult(
                made.task["task_id"], address, name, made.task.get("resolved_by") or "", made.warnings
            )
    return None


def _refuse_other_context(task: Mapping[str, Any], options: CallOptions) -> None:
    """Raise UsageError if a call gives other values than the task of its key has; working memory may have changed since."""
    context = options.get("context")
    asked = working_memory.given(context if isinstance(context, dict) else {}, options.get("variables") or {})
    had = task.get("context") or {}
    keyed_task.refuse_another(
        {**task, "context": {name: had.get(name) for name in {**asked, "variables": None}}},
        {"context": {"variables": None, **asked}},
        ["context"],
    )


def _thread(caller: Caller, key: str) -> str:
    return ids.keyed_id("thread", caller.reader, f"{CALL} {key}")


def record(
    store: Store,
    caller: Caller,
    agents: Sequence[str],
    message: str,
    options: CallOptions,
    handed: Bundle | None,
) -> tuple[list[AgentResult], str]:
    """Record a task for each agent, or nothing; return them, and their thread."""
    waits = options.get("wait", True)
    found = agent_lookup.find(store, caller, agents, waits=waits)
    again = bool(options.get("again"))
    _refuse_calling_oneself(caller, found, again=again)
    key = options.get("idempotency_key")
    thread = _thread(caller, key) if key else ids.new_id("thread", store.random)
    chain = chains.of_new(store, caller, options.get("within"))
    common: TaskOptions = {
        "purpose": CALL, "chain": chain, "within": None if chain else chains.NONE, "thread": thread, "allow_secret": bool(options.get("allow_secret")),
        "deadline": _deadline(store, chain, options.get("timeout")), "context": handed.context if handed else None, "again": again,
        "semantics": ONCE if options.get("once") else None,
        "payload": None if waits else {task_signals.TELL: True},
    }  # fmt: skip
    results = []
    with open_tasks.turn(store, is_limited=len(found) > 1):
        entries: list[LogEntry] = []
        if len(found) > 1:
            store.collect(entries.append)
        try:
            for each in found:
                own = key if key is None or len(found) == 1 else f"{key} {each.key}"
                results.append(_record_one(store, caller, message, each, {**common, "idempotency_key": own}))
        finally:
            if len(found) > 1:
                store.collect(None)
        if entries:
            store.record_all(entries)
    store.wrote = NOW
    return results, thread


def _record_one(
    store: Store, caller: Caller, message: str, callee: Callee, options: TaskOptions
) -> AgentResult:
    """Record the task of one callee, and a signal to those whom no worker serves."""
    told = [each for each in callee.signaled if not _is_served(store, each.address)]

    def signal(fields: Mapping[str, Any]) -> SignalFields:
        return delegate.signal_about(store, caller, fields, told)

    if callee.role is None:
        options = {**options, "to": callee.query, "resolved": callee.signaled[0]}
    else:
        asked = task_roles.of_text(callee.role)
        options = {**options, "target_role": callee.role, "requested_role": asked,
                   "requested_to": callee.query, "resolved_by": callee.resolved_by}  # fmt: skip
    made = new_task.create_with_signal(store, caller, message, signal if told else None, told, **options)
    return AgentResult(
        made.task["task_id"], callee.address or "", callee.name, callee.resolved_by, made.warnings
    )


def _refuse_calling_oneself(caller: Caller, agents: Sequence[Callee], *, again: bool) -> None:
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
