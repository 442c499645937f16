"""Remarks on a new signal, the next commands, and the decision that a reader is asked for."""

from __future__ import annotations

from ..agents import presence
from ..errors import UsageError
from ..order.content import ASKS, DECISIONS, asks, has_conflict
from ..outcome import command
from ..text.addresses import is_words, words_of, writer_of
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from ..agents.addressing import Resolved
    from ..order.thread import FoldedThread
    from ..records.record_types import ShownSignal, SignalRecord
    from ..store import Store


def remarks(record: SignalRecord) -> list[str]:
    """Return sentences about likely mistakes in a signal, as recorded."""
    intent, answers = record["intent"], record.get("reply_to")
    own = (record["sender_identity"], record.get("sender_session"))
    asks_nobody = all(each in own for each in record["recipients"])
    found = []
    if not answers and asks_nobody and asks(record):
        found.append("This signal asks nobody, so the thread cannot converge; ask somebody with --to NAME.")
    if not answers and intent in DECISIONS:
        flag = f"--{intent.lower()}"
        found.append(f"This {intent} does not answer a signal; use `gitmem reply ID 'your words' {flag}`.")
    return found


def not_counted(
    intent: str, answers: str | None, found: FoldedThread, readers: Collection[str | None]
) -> list[str]:
    """Return why a proposal or a decision in a thread does not count, or what it counts for.

    Args:
        answers: The id of the answered signal.
        found: The thread before it.
        readers: The names under which its sender may have been addressed.
    """
    if answers is None or answers not in found.signals or intent == "INFO":
        return []
    if not found.parties:
        return [f"The root of this thread asks nobody, so this {intent} does not count."]
    if not any(reader in found.parties for reader in readers):
        said = f"You are no party of this thread, so this {intent} does not count; its parties are {', '.join(found.parties)}."
        words = {words_of(reader) for reader in readers if reader and is_words(words_of(reader))}
        same = next((each for each in found.parties if writer_of(each) and words_of(each) in words), None)
        if same is None:
            return [said]
        accept = command("gitmem", "trust", writer_of(same), "--accept")
        return [
            f"{said} Under another key your name is one: if that is you, {accept} goes on as it, once it lets you."
        ]
    answered = found.answered.get(answers)
    if answered is None and intent not in ASKS:
        return [
            f"{answers} leads to no proposal of a party of this thread, so this {intent} decides nothing."
        ]
    if intent in ASKS or answered is None:
        return []
    if why := found.end_text(answered):
        author = found.proposals[answered].record["sender_identity"]
        is_withdrawn = found.ended(answered) == "withdrawn"
        if is_withdrawn and intent == "AGREE" and author in readers:
            return [f"You had withdrawn {answered}; this AGREE takes that back."]
        by = f" by {author}" if is_withdrawn else ""
        return [f"{answered} was {why.replace(';', by + ';', 1)}; this {intent} counts for {answered} alone."]
    positions = [at for each in readers if each and (at := found.position(each))]
    if intent == "AGREE" and any(at.agrees_to(answered) for at in positions):
        return [f"You agree to {answered} already, so this AGREE changes nothing."]
    return []


def refuse_other_workspaces(store: Store, workspace: str, resolved: Sequence[Resolved]) -> None:
    """Raise UsageError for recipients whose inbox never shows signals of this workspace."""
    for each in resolved:
        if theirs := presence.other_workspaces(store, each.address, workspace):
            name = sanitize(each.display_name or each.address)
            others = ", ".join(map(sanitize, theirs))
            raise UsageError(
                f"{name} is in workspace {others} and never sees signals of workspace {sanitize(workspace)}, yours. "
                "Nothing was written.",
                hint="A workspace is a routing label of inboxes, not a border of access. "
                "Send from a session without a workspace, or from one of theirs: `git config gitmem.workspace NAME` is for new sessions.",
                code="other-workspace",
                next=["gitmem roster --json"],
            )


def after(
    store: Store, signal: ShownSignal, resolved: Sequence[Resolved], *, counts: bool = True
) -> list[str]:
    """Return the commands after a signal: sync it, wait for answers, display the thread.

    Args:
        counts: Whether its sender may propose and decide in its thread.
    """
    found = []
    thread_id = signal.get("thread_id")
    if any(each.elsewhere for each in resolved) or (not resolved and is_unpublished(store)):
        from ..sync import autosync, consent, sync_remotes

        if sync_remotes.unpublished(store) is not None:
            found.append(consent.BY_SYNC)
        elif autosync.interval(store.repo) is None:
            found.append("gitmem sync")
    senders = (signal["sender_identity"], signal.get("sender_session"))
    asks_others = not resolved or any(each.address not in senders for each in resolved)
    if not counts:
        pass
    elif thread_id and signal["intent"] in ASKS and asks_others:
        found.append(command("gitmem", "converged", signal["signal_id"], "--wait", "60s"))
    elif signal["intent"] == "AGREE" and (answered := signal.get("reply_to")):
        found.append(command("gitmem", "converged", answered))
    return [*found, command("gitmem", "thread", thread_id or signal["signal_id"])]


def is_unpublished(store: Store) -> bool:
    """Return whether a remote to which this log is published may lack lines of this clone."""
    if not store.has_remote():
        return False
    from ..log import ref

    return store.git.tip(ref.PUBLISHED_REF) not in (None, store.git.tip(ref.LOG_REF))


def last_open_question(signals: Sequence[ShownSignal]) -> ShownSignal | None:
    """Return the last of these signals, as displayed to a reader, to which it owes an answer, or None."""
    owed = (each for each in reversed(signals) if each.get("owed"))
    return next((each for each in owed if not has_conflict(each) and not each.get("settled")), None)


def compare(signal_id: str) -> list[str]:
    """Return the commands for an id whose lines conflict: it can't be answered."""
    return [command("gitmem", "thread", signal_id), "gitmem doctor"]


def decide_now(store: Store, signal: SignalRecord) -> list[str]:
    """Return the commands of `decide`, of a task whose deadline is over without the one that takes it."""
    from ..agents import mailbox

    is_over = mailbox.is_overdue(store.db(), signal.get("task_id"), store.now())
    return decide(signal, is_over=is_over)


def decide(signal: ShownSignal | SignalRecord, *more: str, is_over: bool = False) -> list[str]:
    """Return the commands that agree and reject; those that take and refuse a task if the signal is about one."""
    about: Any = signal.get("asks_about")
    signal_id, task_id = about or signal["signal_id"], None if about else signal.get("task_id")
    verb = "show" if is_over or signal.get("overdue") else "take"
    yes = ["task", verb, task_id] if task_id else ["reply", signal_id, "agreed", "--agree"]
    return [
        command("gitmem", *yes, *more),
        command("gitmem", "reply", signal_id, "rejected", "--reject", *more),
    ]
