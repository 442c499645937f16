"""The log that a gateway serves: the sessions of its callers, their tasks, and waiting for changes.

All of it runs in one thread, because reading a log takes milliseconds that the event loop has no time for.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from a2a.utils.errors import (
    InternalError,
    InvalidParamsError,
    UnsupportedOperationError,
)

from ..agents import addressing, lifecycle, presence
from ..agents import caller as callers
from ..agents.caller import CallerClaims
from ..errors import GitmemError, StoreError, UsageError
from ..signals.watch import ChangeWatcher
from ..text.addresses import of_writer
from ..work import new_task, stored_tasks, task_decisions, task_rules, task_state
from ..work.task_work import sender_of
from . import (
    A2A_CLIENT,
)
from .a2a_files import caller_identity
from .a2a_tasks import thread_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from ..agents.caller import Caller
    from ..order.task import FoldedTask
    from ..store import Store
    from .a2a_tasks import Incoming
    from .push import Push

    T = TypeVar("T")

POLL_SECONDS = 0.02  # between two looks at the files of the log, of which each takes about 50 µs
TICK_SECONDS = 1.0  # leases end and syncs become due without a record
DEADLINE_SECONDS = 600.0
_QUOTA = ("too-many-open", "quota")


class ServedLog:
    """The log of one repository.

    Args:
        store: The store, which only this object uses.
        tick: Called about once a second, such as to sync.
        push: What notifies clients; None if nothing does.
        report: Called with a sentence about each error of the store.
    """

    def __init__(
        self,
        store: Store,
        tick: Callable[[], object] = lambda: None,
        push: Push | None = None,
        report: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self.store = store
        self.push = push
        self._tick = tick
        self._report = report
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gitmem a2a")
        self._stop = threading.Event()
        self._changed = asyncio.Event()
        self._watch: threading.Thread | None = None

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job with the store, in its thread.

        Raises:
            InternalError: The store can't be used.
            InvalidParamsError, UnsupportedOperationError: What was asked for is refused.
        """

        def locked() -> T:
            with self.store.lock:
                return job()

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, locked)
        except StoreError as error:
            self._report(error.message)  # it may name paths of this machine, which clients are not told
            raise InternalError(message=f"The log can't be used now: {error.code}.") from error
        except UsageError as error:
            refused = UnsupportedOperationError if error.code in _QUOTA else InvalidParamsError
            raise refused(message=error.message) from error

    def start(self) -> None:
        """Begin to watch the log, in the running event loop."""
        loop = asyncio.get_running_loop()
        self._watch = threading.Thread(target=self._watching, args=(loop,), daemon=True)
        self._watch.start()

    def close(self) -> None:
        """End the threads; the caller closes the store."""
        self._stop.set()
        self._notify()
        if self._watch is not None:
            self._watch.join(2 * TICK_SECONDS)
        self._thread.shutdown()

    def change(self) -> asyncio.Event:
        """Return an event that is set at the next change; get it before reading."""
        return self._changed

    def caller(self, name: str) -> Caller:
        """Return the caller with a name: its open session in this clone, or a new one."""
        identity = of_writer(caller_identity(name), self.store.writers.writer())
        known = [
            each for each in presence.of_identity(self.store, identity) if each.ended is None and each.here
        ]
        if known:
            session = min(each.session_id for each in known)
        else:
            started = lifecycle.start(self.store, CallerClaims(), agent_identity=identity, client=A2A_CLIENT)
            session = started.session_id
        found = callers.find(self.store, CallerClaims(as_=session, session=session))
        assert found is not None  # the session is open
        return found

    def create(self, caller: Caller, agent: str, message: Incoming) -> FoldedTask:
        """Record a task for an agent.

        Raises:
            InvalidParamsError: It refers to a task that is not the caller's, or not here. Nothing was written.
            UsageError: See `new_task.create` (also RecordError, SecretError). Nothing was written.
            StoreError: It can't be recorded.
        """
        for each in message.references:
            task = task_state.load_task(self.store.db(), each)
            if task is None or task.caller[0] != caller.reader:
                raise InvalidParamsError(message=f"No such task: {each!r}.")
        (resolved,) = addressing.from_addresses(self.store, [agent])
        made = new_task.create(
            self.store,
            caller,
            message.text,
            to=resolved.address,
            allow_unseen=True,
            purpose="call",
            deadline=self.store.now() + int(DEADLINE_SECONDS * 1_000_000),
            payload=message.payload,
            references=message.references,
            thread=self._thread_of(caller, message.context_id),
            idempotency_key=message.key,
        )
        return task_rules.require(self.store, made.task["task_id"], writing=True)

    def write(self, caller: Caller, task: FoldedTask, message: Incoming) -> FoldedTask:
        """Record a message in a task of the caller.

        Raises:
            UsageError, StoreError: See `task_decisions.message`.
        """
        id = task.record["task_id"]
        task_decisions.message(self.store, caller, id, message.text, payload=message.payload)
        return task_state.load_task(self.store.db(), id) or task

    def find(self, caller: Caller, agent: str, task_id: str) -> FoldedTask | None:
        """Return a task of a caller for an agent; None for another one, whether it is here or not."""
        task = task_state.load_task(self.store.db(), task_id)
        if task is None or task.caller[0] != caller.reader or task.record.get("agent") != agent:
            return None
        return task

    def look(self, caller: Caller, agent: str, task_id: str) -> tuple[FoldedTask, bool] | None:
        """Return a task and whether its state is the last word; seal it then, if the caller's session wrote it."""
        task = self.find(caller, agent, task_id)
        if task is None:
            return None
        is_over = task_rules.is_over(task, self.store.now())
        if task_rules.seal(task, sender_of(caller)) is None:
            try:
                if is_over:
                    task_decisions.seal_task(self.store, caller, task_id)
                    task = task_state.load_task(self.store.db(), task_id) or task
                elif (why := task_decisions.reason_to_give_up(self.store, task)) is not None:
                    task, is_over = task_decisions.give_up(self.store, caller, task, why), True
            except GitmemError:
                pass  # the next look seals it
        return task, is_over

    def ids(self, caller: Caller, agent: str, limit: int) -> Sequence[str]:
        """Return the ids of the caller's tasks for an agent, at most the last ones; tasks that nobody may begin any more are given up before."""
        task_decisions.give_up_lost(self.store, caller)
        return stored_tasks.asked_of(self.store.db(), caller.reader, agent, limit)

    def list(self, ids: Sequence[str]) -> Sequence[FoldedTask]:
        """Return tasks by their ids."""
        found = (task_state.load_task(self.store.db(), id) for id in ids)
        return [each for each in found if each is not None]

    def _thread_of(self, caller: Caller, context_id: str) -> str | None:
        """Return the thread of a conversation: one of the caller's, or the one that it names."""
        if not context_id:
            return None
        known = stored_tasks.has_thread(self.store.db(), caller.reader, context_id)
        return context_id if known else thread_of(self.store, caller.reader, context_id)

    def _watching(self, loop: asyncio.AbstractEventLoop) -> None:
        watcher = ChangeWatcher(self.store, self._stop, events=False, poll_seconds=POLL_SECONDS)
        stamp = watcher.stamp()
        while not self._stop.is_set():
            watcher.wait(stamp, TICK_SECONDS)
            stamp = watcher.stamp()
            try:
                self._tick()
                loop.call_soon_threadsafe(self._notify)
            except RuntimeError:  # the loop is closed
                return

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
