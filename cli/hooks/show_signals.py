"""Show unread signals to the agent: between tool calls, with the user's prompt, and at the end of a turn."""

from __future__ import annotations

from gitmem.agents import delivery, mailbox, waking
from gitmem.clients import hook_state
from gitmem.clients.events import PROMPT, READS, START, STOP, TOOL
from gitmem.log.lines import format_at
from gitmem.signals import inbox, message_frame

from ..render import output
from ..render.text import format_ago
from . import hook_call
from .hook_call import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitmem.agents.caller import Caller
    from gitmem.records.record_types import ShownSignal
    from gitmem.store import Store

    from ..environment import Environment
    from .hook_call import HookInput, HookTimer


OLD_MICROS = 10 * 60 * 1_000_000  # an older signal is shown with its age
BUDGET = 2048  # bytes of one injection; Codex cuts the middle out of more than 10,000
TOP_BYTES = 160  # the injection's first and last line


def show_unread(at: Environment, call: HookInput, clock: HookTimer) -> bool:
    """Show unread signals within the budget; the rest waits for the next call.

    Returns:
        Whether a session must be started first: the client's session began before the log, or before the hooks.
    """
    store = at.store()
    if not hook_state.update_index(store):
        return False
    caller = hook_call.caller(at, call)
    at.reads_signals = caller is not None
    if caller is None:
        if call.kind == PROMPT and call.session:
            return True
        if call.session:
            hook_state.remove_flag(store, call.session)
    elif call.kind != STOP or not call.again:
        if call.kind == PROMPT:
            waking.skip_word(store, caller.session_id, call.fields.get("prompt"))
        introduces = START not in READS[call.client] and not mailbox.has_read(store.db(), caller.reader)
        intro = ""
        if introduces:
            from gitmem.agents import lifecycle

            words = (hook_call.introduction(at, call, caller), lifecycle.offer(store, caller))
            intro = "\n\n".join(filter(None, words))
        via = hook_call.reply_program(at, call, caller)
        told = ""
        if delivery.has_news(store.repo.state, caller.session_id or "", store.now()):
            from gitmem.work import claim_work

            told = output.sanitize("\n".join(claim_work.at_command(store, caller)), keep="\n")
        if call.edited:
            from . import tool_use

            told = "\n".join(filter(None, (told, tool_use.after_edit(at, call, store, caller))))
        deliver(store, caller, call, clock, via=via, directed=call.kind == STOP, intro=intro, before=told)
    limit_retries(store, call)
    return False


def deliver(
    store: Store,
    caller: Caller,
    call: HookInput,
    clock: HookTimer,
    *,
    via: str,
    directed: bool = False,
    before: str = "",
    intro: str = "",
    variables: Mapping[str, str] | None = None,
) -> None:
    """Print a reader's unread signals in its client's form, old ones with their age, then record the receipts.

    Args:
        via: The program of the reply lines, see `hook_call.reply_program`.
        directed: Whether to show only signals that may interrupt.
        before: A text that comes first, even without signals.
        intro: A text that comes first only with signals.
        variables: See `hook_call.answer`.
    """
    now = store.now()

    def text_of(fields: ShownSignal) -> str:
        sent_at = fields["created_at"]
        age = format_ago(sent_at, now) if sent_at < format_at(now - OLD_MICROS) else None
        text = message_frame.signal_text(
            fields, reader=caller.reader, workspace=caller.workspace, age=age, via=via
        )
        return output.plain(text)

    with delivery.delivery_lock(store, caller.reader) as free:
        mine = free and call.kind in READS[call.client]
        if not mine and not before:
            return
        reading, news = None, ""
        if mine:
            reading = inbox.read(
                store, caller, directed=directed, max_text=BUDGET - TOP_BYTES,
                measure=lambda fields: len(text_of(fields).encode("utf-8", "replace")) + 2,
            )  # fmt: skip
        if reading is not None and reading.signals:
            shown = [text_of(fields) for fields in reading.signals]
            news = message_frame.injection(shown, more=reading.more, via=via)
        parts = [before, intro if news else "", news]
        text = answer(call, "\n\n".join(filter(None, parts)), variables or {})
        if text is not None:
            if not clock.is_waited_for():
                return
            clock.end()
            if not output.write(text):
                return
            if call.kind == STOP:
                waking.note_turn(store.repo.state, call.process, is_over=False)
        if reading is not None:
            inbox.mark(store, reading)


def limit_retries(store: Store, call: HookInput) -> None:
    """Limit retries of a failed commit to once a turn; signals must still be shown at every tool call."""
    hook_state.mark(store.repo.state, hook_state.LEFT, hook_state.has_waiting_entries(store))
    if call.kind != TOOL:
        hook_state.mark(store.repo.state, hook_state.STUCK, False)
