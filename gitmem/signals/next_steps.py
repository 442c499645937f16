"""Remarks on a new signal, the next commands, and the decision that a reader is asked for."""

from __future__ import annotations

from ..agents import own_sessions
from ..errors import UsageError
from ..text.sanitize import sanitize
from ..text.shell_quote import command
from . import ASKS, DECISIONS, has_conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ..agents.addressing import Resolved
    from ..records.record_types import SignalRecord
    from ..records.shown_types import ShownSignal
    from ..store import Store
    from .causality import ThreadSignal

ANSWERED = ("acked", "rejected")


def remarks(
    record: SignalRecord, thread: Mapping[str, ThreadSignal], readers: Collection[str | None]
) -> list[str]:
    """Return sentences about likely mistakes in a signal.

    Args:
        record: The signal as recorded.
        thread: The earlier signals of its thread; empty for a new thread.
        readers: The names under which its sender may have been addressed.
    """
    intent, answers = record["intent"], record.get("reply_to")
    found = []
    if not answers and not record["recipients"] and (record.get("requires_ack") or intent in ASKS):
        found.append(
            "This signal has no recipients, so the thread cannot converge; ask somebody with --to NAME."
        )
    if not answers and intent in DECISIONS:
        flag = f"--{intent.lower()}"
        found.append(f"This {intent} does not answer a signal; use `gitmem reply ID 'your words' {flag}`.")
    return [*found, *not_counted(intent, answers, thread, readers)]


def not_counted(
    intent: str, answers: str | None, thread: Mapping[str, ThreadSignal], readers: Collection[str | None]
) -> list[str]:
    """Return why an AGREE or REJECT in a thread does not count; see `remarks`.

    Args:
        answers: The id of the answered signal.
    """
    if not (answers and thread and intent in ("AGREE", "REJECT")):
        return []
    from . import causality

    asked = causality.root(thread).record["recipients"]
    if not asked:
        return [f"The root of this thread has no recipients, so this {intent} does not count."]
    if any(reader in asked for reader in readers):
        return []
    return [
        f"You are not a recipient of this thread's root, so this {intent} does not count; "
        f"its recipients are {', '.join(asked)}."
    ]


def refuse_other_workspaces(store: Store, workspace: str, resolved: Sequence[Resolved]) -> None:
    """Raise UsageError for recipients whose inbox never shows signals of this workspace."""
    for each in resolved:
        if theirs := own_sessions.other_workspaces(store, each.address, workspace):
            name = sanitize(each.display_name or each.address)
            others = ", ".join(map(sanitize, theirs))
            raise UsageError(
                f"{name} is in workspace {others} and never sees signals of workspace {sanitize(workspace)}, yours. "
                "Nothing was written.",
                hint="A workspace is a routing label of inboxes, not a border of access. "
                "Send from a session without a workspace, or change yours: gitmem session set --workspace NAME.",
                code="other-workspace",
                next=["gitmem roster --json"],
            )


def after(store: Store, signal: ShownSignal, resolved: Sequence[Resolved]) -> list[str]:
    """Return the commands after a signal: sync it, wait for answers, display the thread."""
    found = []
    thread_id = signal.get("thread_id")
    if any(each.elsewhere for each in resolved) or (not resolved and is_unpublished(store)):
        from ..sync import autosync

        if autosync.interval(store.repo) is None:
            found.append("gitmem sync")
    senders = (signal["sender_identity"], signal.get("sender_session"))
    asks_others = not resolved or any(each.address not in senders for each in resolved)
    if thread_id and signal["intent"] in ASKS and asks_others:
        found.append(command("gitmem", "converged", thread_id, "--wait", "60s"))
    return [*found, command("gitmem", "thread", thread_id or signal["signal_id"])]


def is_unpublished(store: Store) -> bool:
    """Return whether a remote may lack lines of this clone: only a sync publishes them."""
    if not store.has_remote():
        return False
    from ..log import ref

    return store.git.tip(ref.PUBLISHED_REF) != store.git.tip(ref.LOG_REF)


def asks_for_decision(fields: ShownSignal | SignalRecord) -> bool:
    """Return whether a signal asks its recipients for AGREE or REJECT."""
    return bool(fields.get("requires_ack") or (fields["intent"] in ASKS and fields.get("recipients")))


def last_open_question(signals: Sequence[ShownSignal], states: Sequence[str | None]) -> ShownSignal | None:
    """Return the last signal that asks for a decision and has none, or None.

    Args:
        signals: Records as displayed to a reader, in order.
        states: The reader's delivery state of each; `""` if the reader is not asked.
    """
    for fields, state in reversed(list(zip(signals, states, strict=True))):
        is_open = asks_for_decision(fields) and not has_conflict(fields) and not fields.get("settled")
        if is_open and state != "" and state not in ANSWERED:
            return fields
    return None


def compare(signal_id: str) -> list[str]:
    """Return the commands for an id whose lines conflict: it can't be answered."""
    return [command("gitmem", "thread", signal_id), "gitmem doctor"]


def decide(signal: ShownSignal | SignalRecord, *more: str) -> list[str]:
    """Return the commands that agree and reject; those that take and refuse a task if the signal is about one."""
    signal_id, task_id = signal["signal_id"], signal.get("task_id")
    yes = ["task", "take", task_id] if task_id else ["reply", signal_id, "agreed", "--agree"]
    return [
        command("gitmem", *yes, *more),
        command("gitmem", "reply", signal_id, "your reason", "--reject", *more),
    ]
