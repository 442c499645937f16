"""`gitmem thread`, `show`, `forget`, `log`, `converged`, `receipts` and `gate`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output, signals
from ..render.output import with_options
from ..values import choice, duration, number, parse_moment
from .signals import note_unknown_sender

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Annotated

    from gitmem.signals.gate import Gate, GateUnchecked

    from .options import (
        MODEL,
        AnyId,
        Argument,
        Flag,
        From,
        Initiative,
        Option,
        Reader,
        ReceiptsLimit,
        ReceiptsSignal,
        SyncToo,
        ThreadId,
        ThreadLimit,
        Wu,
    )


ENTRIES = 20
SYNC_EVERY_SECONDS = 5.0


def thread(at: Environment, id: AnyId, limit: ThreadLimit = None) -> None:
    """Show a thread and the decision of each recipient. Does not mark signals as delivered."""
    from gitmem.signals import threads

    at.store().asks_once = True
    most = None if at.json and limit is None else number("--limit", limit, threads.LIMIT)
    found = threads.thread(at.store(), id, at.caller_if_any(), limit=most)
    at.answer(found, signals.thread)


def show(at: Environment, id: AnyId) -> int:
    """Show one record or memory node in full, and its commit. Does not mark signals as delivered."""
    if id.startswith("mem-"):
        from . import memory

        return memory.show(at, id)
    from gitmem.signals import history

    found = history.show(at.store(), id)
    at.answer(found, signals.one)
    return 0


def forget(
    at: Environment,
    id: Annotated[str, Argument("ID", "A signal, thread, node or task, or the beginning of its id.")],
    reason: Annotated[str, Argument("REASON", "Why; others are told, and it is recorded.")],
) -> None:
    """Take back the texts of your records, such as a leaked secret; what they decided stays. Ask others to take back theirs.

    Every clone that syncs shows `(forgotten)` instead. `gitmem sync --forget` then takes them out of git's history, too. No program can take back what clones that never sync, forks and a
    host's caches have: replace the secret.
    """
    from gitmem.history import forget as operation

    found = operation.forget(at.store(), at.caller(), id, reason)
    at.answer(found, signals.forgotten)


def log(
    at: Environment,
    n: Annotated[str | None, Option("-n", "N", "Maximum number of records (default: 20).")] = None,
    wu: Wu = None,
    from_: From = None,
    since: Annotated[
        str | None, Option("--since", "1h|ISO", "Only records after this time: ISO or a duration such as 1h.")
    ] = None,
    role: Annotated[
        str | None, Option("--role", "ROLE", "Only signals of or for a role, and sessions that state it.")
    ] = None,
    receipts: Annotated[bool, Flag("--receipts", "Include receipts, reads of nodes and renewals.")] = False,
    audits: Annotated[
        bool, Flag("--audits", "Only passes of gates and guards, releases of others' claims, and --insist.")
    ] = False,
) -> None:
    """Show the history of the log, newest last."""
    from gitmem.signals import history

    most = number("-n", n, ENTRIES)
    at.store().try_commit_waiting()  # afterwards `git log gitmem/log` shows the same records
    oldest = parse_moment(since) if since is not None else None
    found = history.log(
        at.store(),
        n=most,
        wu=wu,
        from_=from_,
        since=oldest,
        role=role,
        receipts=receipts,
        audits=audits,
    )
    note_unknown_sender(at, from_)
    at.answer(found, signals.format_history)


def converged(
    at: Environment,
    id: ThreadId,
    wait: Annotated[str | None, Option("--wait", "30s", "Wait up to this long for agreement."), MODEL] = None,
    sync: SyncToo = False,
) -> int:
    """Exit 0 if all parties of a thread, or as many as its root needs, agreed to this proposal, or to any if the id is of something else; else 1."""
    import time

    from gitmem.signals import threads, watch

    from ..syncing import sync_after_command

    stop = at.stop or watch.NeverSet()
    waker = watch.ChangeWatcher(at.store(), stop, events=False)
    deadline = time.monotonic() + (duration(wait, "--wait") if wait is not None else 0.0)
    sync_at = time.monotonic() if sync or wait is not None else deadline
    failures: list[str] = []
    while True:
        if time.monotonic() >= sync_at:
            if sync:
                failures, _, _ = sync_after_command(at)
            else:
                at.sync_if_due()
            sync_at = time.monotonic() + SYNC_EVERY_SECONDS
        seen = waker.stamp()  # before the read: a signal that arrives during it counts as a change
        with at.store().one_look():
            found = threads.converged(at.store(), id, caller=at.caller_if_any())
        if found.is_settled or stop.is_set() or time.monotonic() >= deadline:
            break
        waker.wait(seen, min(deadline, sync_at) - time.monotonic())
    if at.json:
        found.warnings += failures
    else:
        output.note(failures)
    at.answer(found, signals.converged)
    return 0 if found.converged else 1


def receipts(
    at: Environment,
    id: ReceiptsSignal = None,
    reader: Reader = None,
    limit: ReceiptsLimit = None,
) -> None:
    """Show who has received which signal, when, and what became of it, newest last."""
    from gitmem.signals import history

    most = number("--limit", limit, history.RECEIPTS_LIMIT)
    found = history.receipt_list(at.store(), id, reader=reader, limit=most)
    at.answer(found, signals.receipts)


CLOSED = 1


def gate(
    at: Environment,
    wu: Wu = None,
    initiative: Initiative = None,
    ci: Annotated[
        bool,
        Flag(
            "--ci",
            "For CI: check proposals on the work unit of a pull request's branch, whoever they are to.",
        ),
    ] = False,
    paths: Annotated[list[str] | None, Argument("PATH", "Check claims on these paths instead.")] = None,
    anyway: Annotated[
        str | None, Option("--anyway", "REASON", "Pass the gate, or claims on PATH; it is recorded.")
    ] = None,
    hook: Annotated[
        str | None,
        Option(
            "--hook",
            "pre-push|pre-commit",
            "As git's hook: check the work unit of the branch, or of `gitmem.wu`; or claims on the paths on standard input.",
        ),
    ] = None,
) -> int:
    """Exit 1 while signals to you on a work unit are unread or need your AGREE or REJECT, or others claim PATH."""
    choice("--hook", hook, ("pre-push", "pre-commit"))
    if (
        (hook and (wu or ci))
        or ((hook or ci) and (paths or initiative or anyway is not None))
        or (paths and (wu or initiative))
    ):
        raise UsageError(
            "--hook goes with no other option or PATH, --ci with --wu alone, PATH with --anyway alone. Nothing was checked.",
            code="usage",
        )
    if hook == "pre-push":
        return _before_push(at)
    if ci:
        return _before_merge(at, wu)
    if paths or hook:
        from .claims import guard

        return guard(at, paths or [], anyway, pre_commit=hook is not None)
    from gitmem.signals import gate as operation

    at.store().asks_once = anyway is None
    found = operation.check(
        at.store(),
        at.caller(),
        wu=wu,
        initiative=initiative,
        reason=anyway,
    )
    _print_answer(at, found)
    return 0 if found.open else CLOSED


def _before_push(at: Environment) -> int:
    """Check the gate for git's pre-push hook, which passes no options.

    Print nothing if the gate is open. A gate that the caller has passed with a reason counts as open. Report what could
    not be checked.
    """
    from gitmem.agents import session_view
    from gitmem.agents.caller import pushing
    from gitmem.signals import gate as operation

    store = at.store()
    status = 0
    units = session_view.units_of_checkout(store)
    if not units:
        _print_unchecked(at, operation.unchecked(store))
    for wu in units:
        callers = pushing(store, at.who())
        if not callers:
            _print_unchecked(at, operation.unknown_pusher(wu))
        for caller in callers:
            found = operation.check(store, caller, wu=wu, push=True)
            if not found.open:
                status = CLOSED
                found.next = [*found.next[:2], operation.pass_command(wu)]
            if not found.open or found.warnings:
                _print_answer(at, found, ["--as", caller.reader] if len(callers) > 1 else [])
    return status


def _before_merge(at: Environment, wu: str | None) -> int:
    """Check the merge gate, and append the answer to the summary of the job, if there is one."""
    from gitmem.signals import merge_gate

    target, branch = at.merge_request()
    found = merge_gate.check(at.store(), target, branch, wu=wu)
    at.answer(found, signals.merge_gate)
    if at.job_summary is not None:
        why = output.append_summary(at.job_summary, signals.merge_gate(found))
        output.note([f"GITHUB_STEP_SUMMARY was not written: {why}."] if why else [])
    return 0 if found.open else CLOSED


def _print_unchecked(at: Environment, found: GateUnchecked) -> None:
    """Print what was not checked, with a warning if records are missing from the log."""
    from gitmem.store import add_lost_records

    add_lost_records(at.store(), found)
    at.answer(found, signals.unchecked)


def _print_answer(at: Environment, found: Gate, who: Sequence[str] = ()) -> None:
    """Print the result, with next commands that act as the checked session.

    Args:
        at: The environment.
        found: The result.
        who: The options that select the session, if the environment does not.
    """
    from gitmem.outcome import command

    def acting(commands: Sequence[str]) -> list[str]:
        words = f" {command(*who)}" if who else ""
        return [each + words if output.acts(each) else each for each in commands]

    for signal in found.signals:
        listed = signal["commands"]
        assert isinstance(listed, list)
        signal["commands"] = with_options(acting(listed))
    found.next = acting(found.next)
    at.answer(found, signals.gate)
