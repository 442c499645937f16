"""The MCP tools for tasks, calls, claims, branches that conflict, and the origin of lines."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from gitmem.errors import UsageError
from gitmem.outcome import command

from .. import a2a, environment, values
from .. import shared_options as shared
from ..render import claims
from ..render import tasks as render
from ..values import duration, own_task
from . import tool_results
from .calls import Ctx, Name, ToolCalls, Words, Wu
from .mcp_session import CallEnvironment

if TYPE_CHECKING:
    from gitmem.agents.caller import Caller
    from gitmem.calls.call import CallOptions
    from gitmem.calls.call_result import CallResult
    from gitmem.store import Store
    from gitmem.work.task_records import TaskChange


Action = Literal["list", "show", "take", "release", "ask", "done", "reject", "message", "cancel", "accept"]  # fmt: skip
Filter = Literal["", "mine", "open", "blocked", "stuck"]
READS = ("list", "show")
NEED_TEXT = {"ask": "the question", "done": "the result", "message": "the message"}
TAKE_TEXT = (*NEED_TEXT, "release", "reject", "cancel", "accept")
MAY_FAIL = ("done", "accept")


class TaskTools(ToolCalls):
    """Tools for tasks."""

    def delegate(
        self,
        at: CallEnvironment,
        message: str,
        scope: Annotated[Words, Field(description=shared.REQUESTED_SCOPE.help)],
        blocked_by: Words,
        to: Annotated[Name, Field(description=shared.DELEGATE.help)] = "",
        role: Annotated[str, Field(description=shared.REQUESTED_ROLE.help)] = "",
        brief: Annotated[str, Field(description=shared.BRIEF.help)] = "",
        model: Annotated[str, Field(description=shared.REQUESTED_MODEL.help)] = "",
        priority: Annotated[str, Field(description=shared.PRIORITY.help)] = "",
        deadline: Annotated[str, Field(description=shared.DEADLINE.help)] = "",
        within: Annotated[str, Field(description=shared.WITHIN.help)] = "",
        again: bool = False,
        wu: Wu = "",
        initiative: str = "",
        lane: str = "",
    ) -> CallToolResult:
        """Ask an agent, or whoever has a role, to do something; don't wait. Follow it with task."""
        from gitmem.work import new_task as tasks
        from gitmem.work import task_roles as briefs

        store, caller = at.store(), self._session.caller(at)
        attested = briefs.attest_brief(at.repo.worktree, at.paths([brief])[0]) if brief else {}
        made = tasks.delegate(
            store, caller, message, within=within or own_task(), again=again, blocked_by=blocked_by, to=to or None, role=role or None, scopes=scope, requested_model=model or None,
            priority=priority.upper() or None, wu=wu or None, initiative=initiative or None, lane=lane or None,
            deadline=store.now() + int(duration(deadline) * 1_000_000) if deadline else None, **attested,
        )  # fmt: skip
        return tool_results.of(made, render.delegated(made))

    def task(
        self,
        at: CallEnvironment,
        action: Action = "list",
        id: Annotated[str, Field(description=shared.TASK_ID.help)] = "",
        text: Annotated[str, Field(description="Result, question, message or reason.")] = "",
        failed: Annotated[bool, Field(description="With done: it failed; with accept: give it up.")] = False,
        only: Filter = "",
        wu: Wu = "",
        limit: Annotated[int, Field(ge=1, le=shared.TASK_LIMIT.tool_most)] = shared.TASK_LIMIT.tool_default,
    ) -> CallToolResult:
        """Who does a task: take it (or a handoff) before you begin, again for more time, ask, then done; release or
        reject it. Who asked for it: answer with message, cancel, accept its result; with a text also if its writer has ended."""
        _check_task(action, id, text, failed=failed, filtered=bool(only or wu))
        if action == "list":
            return self._list(at, only, wu, limit)
        if action == "show":
            return self._show(at, id)
        found = _change(at.store(), self._session.caller(at), action, id, text, failed=failed)
        if action in ("message", "cancel"):
            found.warnings += a2a.remark(at.store(), found.task_id)
        peers = found.handoff is not None or found.received is not None
        return tool_results.of(found, render.change(found), peers=peers, is_framed=True)

    def handoff(
        self,
        at: CallEnvironment,
        to: Annotated[Name, Field(description=shared.HANDOFF_TO.help)],
        message: Annotated[str, Field(description=shared.NEXT_STEPS.help)] = "",
        wu: Annotated[str, Field(description=shared.HANDOFF_WU.help)] = "",
        dry_run: Annotated[bool, Field(description=shared.DRY_HANDOFF.help)] = False,
    ) -> CallToolResult:
        """Offer your checkpoint, tasks, claims and threads to another agent before your session ends. They stay yours until taken with task."""
        from gitmem.work import give_handoff

        store, caller = at.store(), self._session.caller(at)
        made = give_handoff.hand_over(store, caller, to, message or None, wu=wu or None, dry_run=dry_run)
        return tool_results.of(made, render.handoff_given(made), peers=bool(made.handoff.threads))

    def _list(self, at: CallEnvironment, only: str, wu: str, limit: int) -> CallToolResult:
        from gitmem.work import task_list

        if only == "stuck":
            return self._stuck(at, wu, limit)
        caller = self._session.caller(at) if only == "mine" else None
        found = task_list.list_tasks(
            at.store(), caller, open=only == "open", blocked=only == "blocked", wu=wu or None, limit=limit
        )
        flags = [*([f"--{only}"] if only else []), *(["--wu", wu] if wu else [])]
        every = command("gitmem", "task", "list", *flags, "--limit", str(len(found.tasks) + found.more))
        lines = render.page(found)
        return tool_results.of(found, lines, peers=bool(found.tasks), whole=every, is_part=found.more > 0)

    def _stuck(self, at: CallEnvironment, wu: str, limit: int) -> CallToolResult:
        from gitmem.work import stuck

        found = stuck.find(at.store(), wu=wu or None, limit=limit)
        stuck.escalate(at.store(), self._session.caller(at), found)
        every = command("gitmem", "task", "list", "--stuck", *(["--wu", wu] if wu else []),
                        "--limit", str(len(found.stuck) + found.more))  # fmt: skip
        lines = render.stuck(found)
        return tool_results.of(found, lines, peers=bool(found.stuck), whole=every, is_part=found.more > 0)

    def _show(self, at: CallEnvironment, id: str) -> CallToolResult:
        from gitmem import calls
        from gitmem.work import handoffs

        found = handoffs.show_handoff(at.store(), id, self._session.reader(at))
        calls.attach_received(at.store(), found, found.task)
        whole = command("gitmem", "task", "show", found.task["task_id"])
        return tool_results.of(found, render.detail(found), peers=True, is_framed=True, whole=whole)


def _change(store: Store, caller: Caller, action: str, id: str, text: str, *, failed: bool) -> TaskChange:
    """Record what a caller does with a task."""
    from gitmem import calls
    from gitmem.work import accept_handoff, task_decisions, task_rules, task_work

    reason = text or None
    if action == "done":
        return task_work.report(store, caller, id, "failed" if failed else "completed", text)
    if action == "ask":
        return task_work.report(store, caller, id, "input-required", text)
    if action == "message":
        return task_decisions.message(store, caller, id, text)
    if action == "accept" and text and not failed:
        return task_decisions.close(store, caller, id, text)
    if action == "accept":
        return task_decisions.seal_task(store, caller, id, give_up=reason if failed else None)
    if action == "reject":
        return task_work.reject(store, caller, id, reason)
    if action == "cancel":
        return task_decisions.cancel(store, caller, id, reason=reason)
    if action == "release":
        return task_work.release(store, caller, id, reason=reason)
    taken = accept_handoff.take_handoff(store, caller, id)
    calls.attach_received(store, taken, task_rules.require(store, taken.task_id).record)
    return taken


def _check_task(action: str, id: str, text: str, *, failed: bool, filtered: bool) -> None:
    """Raise UsageError for an argument that the action needs and has not, or has and does not use."""
    if action != "list" and not id:
        problem = f"Missing id: which task to {action}."
    elif (action in NEED_TEXT or (action == "accept" and failed)) and not text.strip():
        problem = f"Missing text: {NEED_TEXT.get(action, 'the reason')}."
    elif text and action not in TAKE_TEXT:
        problem = f"The action {action} takes no text."
    elif failed and action not in MAY_FAIL:
        problem = f"The action {action} takes no failed; only {' and '.join(MAY_FAIL)} do."
    elif action == "list" and id:
        problem = "The action list takes no id; show does."
    elif filtered and action != "list":
        problem = f"The action {action} takes neither only nor wu; list does."
    else:
        return
    raise UsageError(f"{problem} Nothing was written.", code="usage", next=[])


WAIT_SECONDS = 45  # below the limit of clients, of which some end a request after a minute
POLL_SECONDS = 0.1
PROGRESS_SECONDS = 1.0


class CallTools(ToolCalls):
    """The tool for calls."""

    async def call(
        self,
        ctx: Ctx,
        agent: Name,
        message: str,
        with_context: bool = False,
        with_memory: bool = False,
        memory_query: str = "",
        idempotency_key: str = "",
        join: Literal["all", "any"] = "all",
        once: bool = False,
        wait_seconds: Annotated[int, Field(ge=0, le=600)] = WAIT_SECONDS,
    ) -> CallToolResult:
        """Call agents (names, with commas) when you need their answer, or any one's (join), to go on. with_context hands over your decisions and notes,
        with_memory the nodes of your work unit. once: begins at most once. After wait_seconds the task goes on; with 0 a signal tells the result."""

        def begin(at: CallEnvironment) -> CallResult:
            from gitmem.calls import call as calls

            options: CallOptions = {
                "wait": wait_seconds > 0, "within": own_task(), "context": with_context, "memory": memory_query or with_memory,
                "idempotency_key": idempotency_key or None, "timeout": wait_seconds, "join": join, "once": once,
            }  # fmt: skip
            return calls.begin(at.store(), self._session.caller(at), agent, message, options)

        self._note_client(ctx)
        try:
            await self._delivery.wait_until_marked()
            found = await self._session.run(begin)
            if wait_seconds:
                found = await self._wait(ctx, found, wait_seconds)
            peers = any(each.message or each.error for each in found.results)
            answer = tool_results.of(found, render.call_result(found), peers=peers, is_framed=True)
            return await self._session.run(partial(tool_results.with_notice, answer=answer))
        except Exception as error:
            return tool_results.of_error(error, "call")

    async def _wait(self, ctx: Ctx, begun: CallResult, seconds: int) -> CallResult:
        """Return the results of tasks, or after some time what there is of them; report progress meanwhile."""
        from gitmem.calls import call as calls

        ids = [each.task_id for each in begun.results]

        def look(at: CallEnvironment) -> CallResult:
            return calls.wait(at.store(), self._session.caller(at), ids, join=begun.join, timeout=0)

        began = reported = time.monotonic()
        while True:
            found = await self._session.run(look)
            waited = time.monotonic() - began
            if not found.timed_out or waited >= seconds:
                found.transfer = begun.transfer
                return found
            if time.monotonic() - reported >= PROGRESS_SECONDS:
                reported = time.monotonic()
                await ctx.report_progress(waited, seconds, f"{found.completed} of {len(ids)} completed")
            await asyncio.sleep(min(POLL_SECONDS, seconds - waited))


ClaimAction = Literal["", "list", "claim", "check", "release"]


class ClaimTools(ToolCalls):
    """Tools for claims, overlaps and the origin of lines."""

    def claim(
        self,
        at: CallEnvironment,
        paths: Annotated[Words, Field(description=shared.CLAIM_PATHS.help)],
        action: Annotated[ClaimAction, Field(description="Default: claim with paths, else list.")] = "",
        lease: Annotated[str, Field(description="Such as 2h, at most 24h.")] = "",
        reason: str = "",
        id: Annotated[
            str, Field(description="With release: one claim; somebody else's needs a reason.")
        ] = "",
        wu: Wu = "",
    ) -> CallToolResult:
        """Claim the files that you are about to change, release when done; list all, check paths."""
        wanted = action or ("claim" if paths else "list")
        _check_claim(wanted, paths, id)
        if wanted == "claim":
            return self._claim(at, paths, lease, reason, wu)
        return self._release(at, id, paths, reason) if wanted == "release" else self._show(at, wanted, paths)

    def _claim(
        self, at: CallEnvironment, paths: list[str], lease: str, reason: str, wu: str
    ) -> CallToolResult:
        from gitmem.work import claim_work

        made = claim_work.claim_paths(
            at.store(), self._session.caller(at), at.paths(paths), lease=values.lease("time", lease) if lease else claim_work.HOUR,
            wu=wu or None, reason=reason or None,
        )  # fmt: skip
        return tool_results.of(made, claims.change(made), peers=bool(made.warnings))

    def _release(self, at: CallEnvironment, id: str, paths: list[str], reason: str) -> CallToolResult:
        from gitmem.work import claim_work
        from gitmem.work.claims import ClaimsReleased

        store, caller = at.store(), self._session.caller(at)
        try:
            found = claim_work.release(store, caller, [*([id] if id else []), *at.paths(paths)])
        except UsageError as error:
            if error.code != "not-your-claim" or not (reason and id):
                raise
            found = [claim_work.release_of(store, caller, id, reason)]
        released = ClaimsReleased(found)
        return tool_results.of(released, claims.released(released))

    def _show(self, at: CallEnvironment, action: str, paths: list[str]) -> CallToolResult:
        from gitmem.work import claim_work

        if action == "check":
            checked = claim_work.check_paths(at.store(), self._session.caller(at), at.paths(paths))
            return tool_results.of(checked, claims.check(checked), peers=not checked.free)
        found = claim_work.list_claims(at.store(), self._session.reader(at))
        return tool_results.of(found, claims.page(found), peers=bool(found.claims), is_part=found.more > 0)

    def overlap(self, at: CallEnvironment, branch: str = "") -> CallToolResult:
        """List branches that change the same files, conflicts first."""
        from gitmem.history import overlap as overlaps

        found = overlaps.overlap(at.store(), branch or None)
        return tool_results.of(
            found, claims.overlap(found), peers=bool(found.overlaps), whole="gitmem overlap"
        )

    def why(self, at: CallEnvironment, target: str) -> CallToolResult:
        """Who made FILE[:LINE] or COMMIT, and what was agreed."""
        from gitmem.history import why as operation

        is_early = environment.look_before_answer(at)
        found = operation.why(at.store(), target, folder=at.folder, is_early=is_early)
        return tool_results.of(
            found, claims.why(found), peers=bool(found.commits), whole=command("gitmem", "why", target)
        )


def _check_claim(action: str, paths: list[str], id: str) -> None:
    """Raise UsageError for an argument that the action needs and has not, or has and does not use."""
    if action in ("claim", "check") and not paths:
        problem = f"Missing paths: which to {action}."
    elif action == "list" and paths:
        problem = "The action list takes no paths."
    elif id and action != "release":
        problem = f"The action {action} takes no id; release does."
    else:
        return
    raise UsageError(
        f"{problem} Nothing was written.",
        hint="Arguments: paths for claim, check and release; id for release.",
        code="usage",
    )
