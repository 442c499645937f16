"""Calls: whom they name, the tasks they write, the wait for results, and what a call would send."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NotRequired, TypedDict

from ..agents import addressing, presence, vocabulary
from ..commit_message import sanitize
from ..commit_process import NOW
from ..errors import UsageError
from ..outcome import Outcome
from ..signals.watch import LogWaiter, NeverSet
from ..text.addresses import of_writer, words_of
from ..text.name_matching import fold
from ..work import CALL, ONCE, new_task, task_decisions, task_records, task_roles, task_rules
from . import AGENTS_MAX, DEADLINE_SECONDS, SERVER, WORKER, bundle
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
    from typing import Any, Unpack

    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..log.lines import LogEntry
    from ..signals.watch import StopWatching
    from ..store import Store
    from ..work.new_task import TaskOptions
    from .bundle import Transfer


_SHOWN_MAX = 80  # characters of a text that names nobody
_SUGGESTED_MAX = 5
_PREFIX = "gitmem:worker:"


def identity_of(name: str) -> str:
    """Return the agent identity of a worker that is known by a name: an identity stays as it is."""
    return name if name.count(":") == 2 else f"{_PREFIX}{fold(name).replace(' ', '-')}"


def own_address_of(store: Store, name: str) -> str:
    """Return the address of a worker of this writer that is known by a name."""
    return of_writer(identity_of(name), store.writers.writer())


class Callee:
    """Whom one name of a call means: an agent, or any one of those who hold a role.

    Attributes:
        address: The agent's; None for a role with several holders or none.
        role: The role that anybody of `signaled` may take the task for; None for an agent.
        resolved_by: `exact`, `folded`, `alias`, `role` or `prefix`.
        signaled: Who is told about the task.
    """

    def __init__(self, query: str, signaled: Sequence[Resolved], role: str | None = None) -> None:
        one = signaled[0] if role is None else None
        self.query = query
        self.address = one.address if one is not None else None
        self.role = role
        self.name = (
            (one.display_name or one.address) if one is not None else f"{addressing.ROLE_PREFIX}{role}"
        )
        self.resolved_by = signaled[0].resolved_by if signaled else addressing.ROLE
        self.signaled = signaled

    @property
    def key(self) -> str:
        """What differs from that of every other callee."""
        return self.address or f"{addressing.ROLE_PREFIX}{self.role}"


def names_as_typed(agents: Sequence[str]) -> list[str]:
    """Return the names of a call, as typed; at least an empty one."""
    return [part.strip() for text in agents for part in text.split(",")] or [""]


def find_callees(store: Store, caller: Caller, agents: Sequence[str], *, waits: bool = True) -> list[Callee]:
    """Return whom a call names, each once.

    Args:
        waits: Whether the caller waits: then somebody must hold a role now.

    Raises:
        UsageError: `unknown-agent`, `ambiguous-agent`, `no-role-holder` or `too-many-agents`. Nothing was written.
    """
    found: dict[str, Callee] = {}
    for text in names_as_typed(agents):
        one = _find_callee(store, caller, text, waits=waits)
        found.setdefault(one.key, one)
    if len(found) > AGENTS_MAX:
        raise UsageError(
            f"A call has {len(found)} agents; at most {AGENTS_MAX} are allowed. Nothing was written.",
            code="too-many-agents",
        )
    return list(found.values())


def _find_callee(store: Store, caller: Caller, text: str, *, waits: bool) -> Callee:
    try:
        found = addressing.resolve(store, [text], caller=caller)
    except UsageError as error:
        if error.code == "no-role-holder":
            if not waits and (role := _known_role(store, text)):
                return Callee(text, (), role)
            raise
        if error.code == "ambiguous-recipient":
            raise _ambiguous(text, error.suggestions) from error
        if error.code not in ("unknown-recipient", "empty-recipient"):
            raise
        served = own_address_of(store, text) if text else ""
        if (
            served and words_of(served) != text and presence.is_known_reader(store, served)
        ):  # a worker that is away
            one = addressing.from_addresses(store, [served])[0]
            one.query, one.resolved_by = text, "alias"
            return Callee(text, [one])
        raise _not_found(text, error) from error
    if len(found) > 1:
        roles = {each.role for each in found}
        role = roles.pop()
        if roles or role is None:
            raise _ambiguous(text, [each.display_name or each.address for each in found])
        return Callee(text, found, role)
    return Callee(text, found)


def _known_role(store: Store, text: str) -> str | None:
    """Return the role that a text names, if this work tree knows it."""
    typed = text[len(addressing.ROLE_PREFIX) :].strip() if addressing.is_role(text) else text
    found = vocabulary.find(vocabulary.read(store.repo.worktree).pack, typed)
    return found.role_id if found is not None else None


def _ambiguous(text: str, names: Sequence[str]) -> UsageError:
    return UsageError(
        f"Agent '{_shown(text)}' is ambiguous. Nothing was written.",
        hint="Name one agent, by its identity or its session.",
        code="ambiguous-agent",
        suggestions=list(names)[:_SUGGESTED_MAX],
        next=["gitmem roster"],
    )


def _not_found(text: str, error: UsageError | None) -> UsageError:
    return UsageError(
        f"Agent '{_shown(text)}' not found. Nothing was written.",
        hint="An agent can be called once it has started a session, or `gitmem serve-agent` serves it.",
        code="unknown-agent",
        suggestions=error.suggestions if error is not None else (),
        next=[
            "gitmem roster",
            *(each for each in (error.next if error is not None else ()) if each == "gitmem sync"),
        ],
    )


def _shown(text: str) -> str:
    return sanitize(text)[:_SHOWN_MAX]


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
    stop: NotRequired[StopWatching | None]
    began: NotRequired[Callable[[Sequence[str]], object]]
    tick: NotRequired[Callable[[], object] | None]


def tasks_of_key(
    store: Store, caller: Caller, agents: Sequence[str], message: str, options: CallOptions
) -> tuple[list[AgentResult], str] | None:
    """Return the tasks of a call's idempotency key, and their thread, if all of them were recorded before: see `work.new_task.task_of_key`."""
    key = options.get("idempotency_key")
    if not key:
        return None
    texts, thread = names_as_typed(agents), _thread(store, caller, key)
    keys = [(text, key) for text in texts]
    if len(texts) > 1:
        try:
            callees = find_callees(store, caller, agents, waits=False)
        except UsageError:
            return None  # `record_tasks` refuses it
        keys = [(each.query, f"{key} {each.key}" if len(callees) > 1 else key) for each in callees]
    found = [_task_of_key(store, caller, message, text, own, thread, options) for text, own in keys]
    known = [each for each in found if each is not None]
    return (known, thread) if len(known) == len(found) else None


def _task_of_key(
    store: Store, caller: Caller, message: str, text: str, key: str, thread: str, options: CallOptions
) -> AgentResult | None:
    made = new_task.task_of_key(store, caller, message, {
        "purpose": CALL, "to": text, "idempotency_key": key, "thread": thread, "semantics": ONCE if options.get("once") else None,
    })  # fmt: skip
    if made is None:
        return None
    _refuse_other_context(made.task, options)
    return AgentResult.of(made.task, made.warnings)


def _refuse_other_context(task: Mapping[str, Any], options: CallOptions) -> None:
    """Raise UsageError if a call gives other values than the task of its key has; working memory may have changed since."""
    context = options.get("context")
    asked = bundle.given_items(context if isinstance(context, dict) else {}, options.get("variables") or {})
    had = task.get("context") or {}
    new_task.refuse_another(
        {**task, "context": {name: had.get(name) for name in {**asked, "variables": None}}},
        {"context": {"variables": None, **asked}},
        ["context"],
    )


def _thread(store: Store, caller: Caller, key: str) -> str:
    return store.own_id("thread", caller.reader, f"{CALL} {key}")


def record_tasks(
    store: Store,
    caller: Caller,
    agents: Sequence[str],
    message: str,
    options: CallOptions,
    context: Mapping[str, Any] | None,
) -> tuple[list[AgentResult], str]:
    """Record a task for each agent, or nothing; return them, and their thread."""
    waits = options.get("wait", True)
    found = find_callees(store, caller, agents, waits=waits)
    again = bool(options.get("again"))
    _refuse_calling_oneself(caller, found, again=again)
    key = options.get("idempotency_key")
    thread = _thread(store, caller, key) if key else f"thread-{store.new_id('task')[5:]}"
    chain = task_rules.of_new(store, caller, options.get("within"))
    common: TaskOptions = {
        "purpose": CALL, "chain": chain, "within": None if chain else task_rules.NONE, "thread": thread,
        "deadline": _deadline(store, chain, options.get("timeout")), "context": context, "again": again,
        "semantics": ONCE if options.get("once") else None,
        "payload": None if waits else {task_records.TELL: True},
    }  # fmt: skip
    results = []
    with task_rules.turn_to_write(store, is_limited=len(found) > 1):
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

    if callee.role is None:
        options = {**options, "to": callee.query, "resolved": callee.signaled[0]}
    else:
        asked = task_roles.of_text(callee.role)
        options = {**options, "target_role": callee.role, "requested_role": asked,
                   "requested_to": callee.query, "resolved_by": callee.resolved_by}  # fmt: skip
    made = new_task.create(store, caller, message, signaled=told, **options)
    found = AgentResult.of(made.task, made.warnings)
    found.name = callee.name
    return found


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
    first = task_rules.Above(store.db(), chain).deadline if chain else None
    return None if first is not None and first < found else found


def _is_served(store: Store, address: str) -> bool:
    """Return whether a worker serves an agent now: it takes tasks, and reads no signals."""
    return any(
        each.record.get("client") == WORKER and each.ended is None and each.status == "live"
        for each in presence.of_identity(store, address)
    )


TIMEOUT_MAX_SECONDS = 100 * 365 * 86_400  # as of the command line
# Until a task without an end is given up.
WAIT_SECONDS = DEADLINE_SECONDS + task_decisions.GRACE_MICROS / 1_000_000 + 5.0
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
    *_, found = stream(store, caller, agents, message, **options)
    assert isinstance(found, CallResult)  # it ends with that
    return found


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
            hint="Leave out cancel_on_timeout, or wait.",
            code="contradiction",
        )
    check_timeout(options.get("timeout"))
    named = [agents] if isinstance(agents, str) else agents
    with store.lock:
        same = store.with_one_snapshot(
            lambda: tasks_of_key(store, caller, named, message, options), exact=True
        )
        if same is not None:
            return CallResult(join, same[1], same[0])
        context, transfer = bundle_of(
            store, caller, options, lambda: find_callees(store, caller, named, waits=False)
        )  # before the snapshot: a search may write to the index
        results, thread = store.with_one_snapshot(
            lambda: record_tasks(store, caller, named, message, options, context), exact=True
        )
        for each in results if not options.get("wait", True) else ():
            each.warnings += task_records.away(store, task_rules.require(store, each.task_id, writing=True))
    return CallResult(join, thread, results, transfer)


def bundle_of(
    store: Store, caller: Caller, options: CallOptions, callees: Callable[[], Sequence[Callee]]
) -> tuple[dict[str, Any], Transfer] | tuple[None, None]:
    """Return what a call hands over, and what its answer says of it, or None if nothing was asked for.

    Raises:
        UsageError: As in `bundle.build`; for working memory also as in `find_callees`. Nothing was written.
    """
    if all(options.get(name) in (None, False) for name in ("context", "variables", "memory")):
        return None, None
    by_value = options.get("memory") not in (None, False) and any(
        (each.address or "").startswith(SERVER) for each in callees()
    )
    return bundle.build(
        store, caller, context=options.get("context"), variables=options.get("variables"),
        memory_query=options.get("memory"), by_value=by_value,
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
        tasks = [task_rules.require(store, each) for each in task_ids]
    results = [AgentResult.of(task.record) for task in tasks]
    thread = tasks[0].record["thread_id"]
    *_, found = follow(store, caller, results, thread, join=join, timeout=timeout, stop=stop, tick=tick)
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
                task = task_rules.require(store, each.task_id, writing=True)
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


class _Stop:
    """A stop that is set here, or by whoever calls."""

    def __init__(self, given: StopWatching | None) -> None:
        self._given = given
        self._own = threading.Event()

    def set(self) -> None:
        self._own.set()

    def is_set(self) -> bool:
        return self._own.is_set() or (self._given is not None and self._given.is_set())


async def async_stream(
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
    stop = _Stop(options.get("stop"))
    options = {**options, "stop": stop}
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, "gitmem call")
    every = await loop.run_in_executor(thread, lambda: stream(store, caller(), agents, message, **options))
    try:
        while True:
            found = await asyncio.shield(loop.run_in_executor(thread, next, every))
            yield found
            if isinstance(found, CallResult):
                return
    finally:
        stop.set()
        await loop.run_in_executor(thread, list, every)  # it uses the store, which may be closed next
        thread.shutdown()


class PreviewedAgent(Outcome):
    """An agent that would be called, and how its name was found."""

    agent: str
    name: str
    resolved_by: str


class CallPreview(Outcome):
    """What a call would do.

    Attributes:
        agents: Those that it would call.
        context: What each would get.
        transfer: Its counts and size, and what is left out; None if nothing was asked for.
        text: What a program or model that runs the task would read of it.
        recorded: False.
    """

    agents: Sequence[PreviewedAgent]
    context: Mapping[str, Any] = {}
    transfer: Transfer | None = None
    text: str = ""
    recorded: bool = False
    next: list[str] = []


def preview(
    store: Store, caller: Caller, agents: str | Sequence[str], options: CallOptions, server: str | None = None
) -> CallPreview:
    """Return what a call would do; see `call.CallOptions`.

    Args:
        server: The identity of an A2A server, whose URL `agents` is. Nothing is sent there.

    Raises:
        UsageError: As the call itself.
    """
    with store.lock:
        named = [agents] if isinstance(agents, str) else agents
        if server is None:
            callees = find_callees(store, caller, named)
        else:
            callees = [
                Callee(named[0], addressing.from_addresses(store, [of_writer(server, store.own_writer())]))
            ]
            callees[0].name = named[0]
        found = CallPreview(
            [PreviewedAgent(each.address or "", each.name, each.resolved_by) for each in callees]
        )
        context, found.transfer = bundle_of(store, caller, options, lambda: callees)
        if context is not None:
            record = {"task_id": "task-dryrun", "sender_identity": caller.reader, "context": context}
            found.context = context
            is_sent = server is not None and context
            found.text = bundle.shown_json(context) if is_sent else bundle.receive(store, record).text
    return found
