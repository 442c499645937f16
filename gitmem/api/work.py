"""The library's interface to tasks and claims: `log.tasks` and `log.claims`."""

from __future__ import annotations

from ..agents import caller as callers
from ..outcome import Struct
from ..work import (
    claim_work,
    give_handoff,
    handoffs,
    stored_tasks,
    stuck,
    task_decisions,
    task_list,
    task_work,
)
from ..work import task_roles as briefs
from . import method, serialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Unpack

    from ..work.claims import ClaimChange, ClaimPage
    from ..work.new_task import NewTask, TaskOptions
    from ..work.stuck import StuckPage
    from ..work.task_list import TaskDetail, TaskPage, TaskStats, TaskTree
    from ..work.task_records import TaskChange
    from ..work.task_roles import BriefCheck
    from . import Opened


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

    handoff = method(give_handoff.hand_over)

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
        limit: int = task_list.TREE_LISTED,
    ) -> TaskTree:
        """Return tasks with those that were written within them, by initiative and work unit."""
        return task_list.tree(self._log.store, task_id, wu=wu, initiative=initiative, limit=limit)

    def stats(self, *, wu: str | None = None, initiative: str | None = None) -> TaskStats:
        """Count tasks by state, outcome and role, and how long they wait and take."""
        return task_list.stats(self._log.store, wu=wu, initiative=initiative)

    def verify(self, task_id: str, brief: str | None = None) -> BriefCheck:
        """Compare a file, by default the one that the task names, with the brief that its caller attested."""
        return briefs.verify_brief(self._log.store, task_id, brief)

    launch = method(task_decisions.launch)

    take = method(handoffs.take_handoff)

    renew = method(task_work.renew)

    release = method(task_work.release)
    report = method(task_work.report)

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
        artifact = task_work.artifact_of(content, name, artifact_id)
        return task_work.add_artifact(
            self._log.store, self._log.caller, task_id, artifact, append=append, last_chunk=last_chunk
        )

    def ask(self, task_id: str, question: str) -> TaskChange:
        """Ask the task's caller, and wait for an answer by `message`."""
        return task_work.report(self._log.store, self._log.caller, task_id, "input-required", question)

    reject = method(task_work.reject)

    message = method(task_decisions.message)

    cancel = method(task_decisions.cancel)

    seal = method(task_decisions.seal_task)

    close = method(task_decisions.close)


@serialized
class Claims(Struct):
    """The claims of a log, for its caller. Paths are from the top of the work tree; each method calls a function in `gitmem.claims`."""

    _log: Opened

    claim = method(claim_work.claim_paths)

    def list(self, *, mine: bool = False, limit: int = 50, edited: bool = False) -> ClaimPage:
        """Return the claims that stand now, or the caller's; `edited` adds what sessions change without one."""
        caller = self._log.caller if mine else callers.find(self._log.store, self._log.who, must=False)
        return claim_work.list_claims(self._log.store, caller, mine=mine, limit=limit, edited=edited)

    check = method(claim_work.check_paths)

    def release(self, *named: str, reason: str | None = None) -> Sequence[ClaimChange]:
        """Release the caller's claims with these ids or paths; without any, all of its session; or somebody else's, with a reason."""
        return claim_work.release(self._log.store, self._log.caller, named, reason=reason)
