"""What a person does on the screen: each function is one operation of a domain package; it returns what was recorded."""

from __future__ import annotations

from gitmem.agents import delivery
from gitmem.errors import UsageError
from gitmem.signals import INTENTS, inbox, send
from gitmem.signals import gate as gates
from gitmem.signals import reply as reply_context
from gitmem.signals.inbox_owner import resolve_owner
from gitmem.tasks import task_decisions

from .. import remote_call
from ..commands.signal import lines_of
from ..render import tasks as task_text
from ..render.text import sender_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gitmem.agents.caller import Caller
    from gitmem.signals.gate import Gate
    from gitmem.store import Store

MARK_BYTES = 64 * 1024 * 1024  # no message that was shown is cut when it is read again to be marked


def reply(store: Store, caller: Caller, signal_id: str, text: str, intent: str | None) -> list[str]:
    """Answer a signal, with a decision if `intent` is one.

    Raises:
        UsageError: The answer is invalid. Nothing was written.
        StoreError: It can't be recorded.
    """
    return lines_of(send.send(store, caller, text, reply_to=signal_id, intent=intent))


def look_at_reply(
    store: Store, caller: Caller, signal_id: str, intent: str | None
) -> tuple[str, Sequence[str]]:
    """Return whom an answer would go to, for people, and why its decision would not count.

    Raises:
        UsageError: It cannot be answered so.
    """
    to, remarks = reply_context.look_ahead(store, caller, signal_id, intent or INTENTS[0])
    return ", ".join(sender_text(each.display_name, each.address) for each in to), remarks


def write_to(store: Store, caller: Caller, address: str, text: str) -> list[str]:
    """Send a signal to an agent, which begins a thread.

    Raises:
        UsageError: The signal is invalid. Nothing was written.
        StoreError: It can't be recorded.
    """
    return lines_of(send.send(store, caller, text, to=[address]))


def answer_task(store: Store, caller: Caller, task_id: str, text: str) -> list[str]:
    """Write to the other side of a task, such as the answer to its question.

    Raises:
        UsageError: The answer is invalid, or the task is done by a server, which gets it only while a command waits. Nothing
            was written.
        StoreError: It can't be recorded.
    """
    if remote_call.of_servers(store, [task_id]):
        raise UsageError(
            f"{task_id} is done by a server, which gets an answer only while somebody waits. Nothing was written.",
            hint=f"Run `gitmem task input {task_id} 'your answer'` in a shell.",
            code="remote-task",
        )
    return task_text.change(task_decisions.message(store, caller, task_id, text))


def look_at_gate(store: Store, caller: Caller, wu: str) -> Gate:
    """Return whether the gate of a work unit is open for the caller.

    Raises:
        UsageError: The work unit is invalid or unknown.
    """
    return gates.check(store, caller, wu=wu)


def pass_gate(store: Store, caller: Caller, wu: str, reason: str) -> Gate:
    """Pass the closed gate of a work unit; return it as it is now.

    Raises:
        UsageError: The reason is empty, or the work unit invalid. Nothing was written.
        StoreError: It can't be recorded.
    """
    return gates.check(store, caller, wu=wu, reason=reason)


def mark_shown(store: Store, caller: Caller, shown: Mapping[str, Collection[str]]) -> int:
    """Record deferred receipts for signals that were shown whole; return their number.

    As in an inbox, one process at a time reads the caller's signals. What is read again here is marked only if exactly
    its texts were shown: another line with the same id may have arrived meanwhile.

    Args:
        shown: The texts that were shown, by the id of the signal.

    Raises:
        StoreError: They can't be recorded; the signals stay unread.
    """
    whose = resolve_owner(store, caller, None)
    if whose.peek is not None:
        return 0
    with delivery.delivery_lock(store, whose.reader, wait_seconds=delivery.WAIT_SECONDS):
        reading = inbox.read(
            store, caller, whose=whose, only=shown, limit=max(1, len(shown)), max_bytes=MARK_BYTES
        )
        hidden = {
            each["signal_id"] for each in reading.signals if each["message"] not in shown[each["signal_id"]]
        }
        reading.signals = [each for each in reading.signals if each["signal_id"] not in hidden]
        reading.to_mark = [each for each in reading.to_mark if each[1] not in hidden]
        if not reading.to_mark:
            return 0
        return inbox.mark(store, reading)
