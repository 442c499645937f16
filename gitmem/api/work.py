"""The library's interface to tasks and claims: `log.tasks` and `log.claims`."""

from __future__ import annotations

from ..agents import caller as callers
from ..outcome import Struct
from ..work import (
    accept_handoff,
    claim_work,
    give_handoff,
    handoffs,
    stored_tasks,
    stuck,
    task_decisions,
    task_list,
    task_views,
    task_work,
)
from ..work import task_roles as briefs
from .guard import serialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Unpack

    from ..work.claims import ClaimChange, ClaimCheck, ClaimPage
    from ..work.give_handoff import NewHandoff
    from ..work.new_task import NewTask
    from ..work.stuck import StuckPage
    from ..work.task_list import TaskDetail, TaskPage
    from ..work.task_options import TaskOptions
    from ..work.task_records import TakeFacts, TaskChange
    from ..work.task_roles import BriefCheck
    from ..work.task_views import TaskStats, TaskTree
    from ..work.task_work import Launched, LaunchOptions
    from .guard import Opened


@serialized
class Tasks(Struct):
    """The tasks of a log, for its caller. Each method calls a function in `gitmem.work`; ids may be unique beginnings."""

    _log: Opened

    def delegate(
        self,
        message: str,
        *,
        role: str | None = None,
        scopes: Sequence[str] = (),
        **options: Unpack[TaskOptions],
    ) -> NewTask:
        """Ask somebody (`to`) or whoever has a role (`target_role`) to do something, and send the signal that tells about it.

        Args:
            role: The role that is requested; by default that of `to`.
            scopes: The scope that is requested; by default the work unit, else that of `to`.
            options: See `TaskOptions`.
        """
        from ..work import new_task

        store = self._log.store
        return new_task.delegate(store, self._log.caller, message, role=role, scopes=scopes, **options)

    def handoff(
        self, to: str, message: str | None = None, *, wu: str | None = None, dry_run: bool = False
    ) -> NewHandoff:
        """Offer the caller's open work to somebody, by reference; nothing changes hands before it is accepted."""
        return give_handoff.hand_over(self._log.store, self._log.caller, to, message, wu=wu, dry_run=dry_run)

    def list(
        self,
        *,
        mine: bool = False,
        open: bool = False,
        blocked: bool = False,
        wu: str | None = None,
        limit: int = stored_tasks.LISTED,
    ) -> TaskPage:
        """List tasks: all, or those of the caller, without an outcome, waiting for others, or on a work unit."""
        caller = self._log.caller if mine else None
        return task_list.list_tasks(self._log.store, caller, open=open, blocked=blocked, wu=wu, limit=limit)

    def show(self, task_id: str) -> TaskDetail:
        """Return a task with its state and its events."""
        return handoffs.show_handoff(self._log.store, task_id)

    def stuck(
        self, *, mine: bool = False, wu: str | None = None, limit: int = stored_tasks.LISTED
    ) -> StuckPage:
        """List tasks that wait for somebody for too long, and escalate those that nobody has escalated yet."""
        found = stuck.find(self._log.store, self._log.caller if mine else None, wu=wu, limit=limit)
        stuck.escalate(self._log.store, self._log.caller, found)
        return found

    def tree(
        self,
        task_id: str | None = None,
        *,
        wu: str | None = None,
        initiative: str | None = None,
        limit: int = task_views.TREE_LISTED,
    ) -> TaskTree:
        """Return tasks with those that were written within them, by initiative and work unit."""
        return task_views.tree(self._log.store, task_id, wu=wu, initiative=initiative, limit=limit)

    def stats(self, *, wu: str | None = None, initiative: str | None = None) -> TaskStats:
        """Count tasks by state, outcome and role, and how long they wait and take."""
        return task_views.stats(self._log.store, wu=wu, initiative=initiative)

    def verify(self, task_id: str, brief: str | None = None) -> BriefCheck:
        """Compare a file, by default the one that the task names, with the brief that its caller attested."""
        return briefs.verify_brief(self._log.store, task_id, brief)

    def launch(self, task_id: str, **options: Unpack[LaunchOptions]) -> Launched:
        """Record that the caller starts a worker for a task; it is refused while somebody has it."""
        return task_work.launch(self._log.store, self._log.caller, task_id, **options)

    def relaunch(self, task_id: str, reason: str, **options: Unpack[LaunchOptions]) -> Launched:
        """Record that the caller starts another worker for a task, and why; it is refused while its worker is live."""
        return task_work.relaunch(self._log.store, self._log.caller, task_id, reason, **options)

    def take(self, task_id: str, *, lease: int | None = None, **facts: Unpack[TakeFacts]) -> TaskChange:
        """Take a task, for a lease in microseconds, by default an hour. To take a handoff accepts it."""
        return accept_handoff.take_handoff(self._log.store, self._log.caller, task_id, lease=lease, **facts)

    def renew(self, task_id: str) -> TaskChange:
        """Extend the lease of the caller's take."""
        return task_work.renew(self._log.store, self._log.caller, task_id)

    def release(self, task_id: str, *, reason: str | None = None) -> TaskChange:
        """Give a task back."""
        return task_work.release(self._log.store, self._log.caller, task_id, reason=reason)

    def report(
        self,
        task_id: str,
        state: str,
        message: str | None = None,
        *,
        payload: Mapping[str, Any] | None = None,
    ) -> TaskChange:
        """Report progress (`working`), or how the work ended: `completed`, `failed` or `canceled`."""
        return task_work.report(
            self._log.store,
            self._log.caller,
            task_id,
            state,
            message,
            payload=payload,
        )

    def artifact(
        self,
        task_id: str,
        content: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        name: str | None = None,
        artifact_id: str | None = None,
        append: bool = False,
        last_chunk: bool = True,
    ) -> TaskChange:
        """Add an artifact to the task that the caller works on: a text, or parts as A2A has them; see `work.task_work`."""
        from ..work import task_work

        artifact = task_work.artifact_of(content, name, artifact_id)
        return task_work.add_artifact(
            self._log.store, self._log.caller, task_id, artifact, append=append, last_chunk=last_chunk
        )

    def ask(self, task_id: str, question: str) -> TaskChange:
        """Ask the task's caller, and wait for an answer by `message`."""
        return task_work.report(self._log.store, self._log.caller, task_id, "input-required", question)

    def reject(self, task_id: str, reason: str | None = None) -> TaskChange:
        """Refuse a task that is for the caller."""
        return task_work.reject(self._log.store, self._log.caller, task_id, reason)

    def message(self, task_id: str, text: str) -> TaskChange:
        """Write to the other side of a task."""
        return task_decisions.message(self._log.store, self._log.caller, task_id, text)

    def cancel(self, task_id: str, *, reason: str | None = None) -> TaskChange:
        """Cancel a task that nobody has taken, else ask its holder to stop."""
        return task_decisions.cancel(self._log.store, self._log.caller, task_id, reason=reason)

    def seal(self, task_id: str, *, give_up: str | None = None) -> TaskChange:
        """Pin the outcome that the caller acts on; `give_up` is the reason for failing a task without one."""
        return task_decisions.seal_task(self._log.store, self._log.caller, task_id, give_up=give_up)

    def close(self, task_id: str, reason: str, *, state: str | None = None) -> TaskChange:
        """Close a task whose caller has ended."""
        return task_decisions.close(self._log.store, self._log.caller, task_id, reason, state=state)


@serialized
class Claims(Struct):
    """The claims of a log, for its caller. Paths are from the top of the work tree; each method calls a function in `gitmem.claims`."""

    _log: Opened

    def claim(
        self,
        paths: Sequence[str],
        *,
        lease: int = claim_work.HOUR,
        shared: bool = False,
        wu: str | None = None,
        task_id: str | None = None,
        reason: str | None = None,
        anyway: str | None = None,
    ) -> ClaimChange:
        """Claim paths for some time, in microseconds; `GateError` if somebody else has them, but for the reason `anyway`."""
        return claim_work.claim_paths(
            self._log.store,
            self._log.caller,
            paths,
            lease=lease,
            shared=shared,
            wu=wu,
            task_id=task_id,
            reason=reason,
            anyway=anyway,
        )

    def list(self, *, mine: bool = False, limit: int = 50, edited: bool = False) -> ClaimPage:
        """Return the claims that stand now, or the caller's; `edited` adds what sessions change without one."""
        caller = self._log.caller if mine else callers.find(self._log.store, self._log.who, must=False)
        return claim_work.list_claims(self._log.store, caller, mine=mine, limit=limit, edited=edited)

    def check(self, paths: Sequence[str]) -> ClaimCheck:
        """Return who else claims some of these paths."""
        return claim_work.check_paths(self._log.store, self._log.caller, paths)

    def release(self, *named: str) -> Sequence[ClaimChange]:
        """Release the caller's claims with these ids or paths; without any, all of its session."""
        return claim_work.release(self._log.store, self._log.caller, named)

    def release_of(self, claim_id: str, reason: str) -> ClaimChange:
        """Release somebody else's claim; everybody can read the reason."""
        return claim_work.release_of(self._log.store, self._log.caller, claim_id, reason)
