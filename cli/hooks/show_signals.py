"""Hand over what waits for the agent: between two tool calls, with the user's words, and once at the end of a turn."""

from __future__ import annotations

from gitmem.agents import presence
from gitmem.clients.hooks import cached_settings, hook_catch_up, hook_errors
from gitmem.clients.hooks.events import PROMPT, READS, START, STOP, TOOL
from gitmem.mailbox import delivery_lock, receipts
from gitmem.signals import inbox, message_frame

from ..render import out
from ..render.text import ago
from . import who
from .answers import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitmem.agents.caller import Caller
    from gitmem.store import Store

    from ..environment import Environment
    from .clock import HookTimer
    from .hook_input import HookInput

    Text = Callable[[Mapping[str, object]], str]

BUSY_MILLISECONDS = 500
OLD_MICROS = 10 * 60 * 1_000_000  # a signal of that age says so
BUDGET = 2048  # bytes of one injection
BUDGET_MAX = 7000  # Codex cuts what is longer than 10,000 bytes in the middle, and a start has more to say
TOP_BYTES = 160  # the injection's first and last line


def drain(at: Environment, call: HookInput, clock: HookTimer) -> bool:
    """Show what waits, within the budget; the rest stays for the next time.

    Returns: Whether a session has to be started first: its start was before the log's, or before the hooks'.
    """
    store = at.store()
    if not hook_catch_up.ready(store, BUSY_MILLISECONDS):
        return False
    caller = who.caller(at, call)
    at.looks = caller is not None
    if caller is None:
        if call.kind == PROMPT and call.session:
            return True
        if call.session:
            hook_catch_up.forget(store, call.session)
    elif call.kind != STOP or not call.again:
        untold = START not in READS[call.client] and not receipts.has_read(store.db(), caller.reader)
        intro = who.you(at, call, caller) if untold else ""
        via = who.via(at, call, caller)
        hand_over(store, caller, call, clock, via=via, directed=call.kind == STOP, intro=intro)
    settle(store, call)
    return False


def hand_over(
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
    """Print what a reader has not read in its client's form, and record the receipts once that is out.

    Args:
        via: The program of the reply lines, see `who.via`.
        directed: Only what may interrupt.
        before: A text that comes first, and comes in any case.
        intro: One that comes first where there is something to hand over.
        variables: See `answers.answer`.
    """
    with delivery_lock.turn(store, caller.reader) as free:
        mine = free and call.kind in READS[call.client]
        if not mine and not before:
            return
        text_of = shown(store, caller, via)
        reading = unread(store, caller, text_of, directed=directed) if mine else None
        news = injection(reading, text_of) if reading is not None else ""
        parts = [before, intro if news else "", news]
        text = answer(call, "\n\n".join(filter(None, parts)), variables or {})
        if text is not None:
            if not clock.is_waited_for():
                return
            clock.end()
            if not out.say(text):
                return
        if reading is not None:
            inbox.mark(store, reading)


def shown(store: Store, caller: Caller, via: str) -> Text:
    """How signals are shown now: those that waited for long with their age."""
    now = store.now()

    def text(fields: Mapping[str, object]) -> str:
        said = str(fields.get("created_at"))
        age = ago(said, now) if said < presence.iso(now - OLD_MICROS) else None
        return message_frame.signal_text(
            fields, reader=caller.reader, workspace=caller.workspace, age=age, via=via
        )

    return text


def unread(store: Store, caller: Caller, text_of: Text, *, directed: bool) -> inbox.InboxResult:
    """What fits into one injection. What was shown when no receipt could be recorded is not shown again."""

    def measure(fields: Mapping[str, object]) -> int:
        return len(text_of(fields).encode("utf-8", "replace")) + 2

    most = budget(store) - TOP_BYTES
    return inbox.read(store, caller, directed=directed, max_text=most, measure=measure, again=False)


def injection(reading: inbox.InboxResult, text_of: Text) -> str:
    if not reading.signals:
        return ""
    return message_frame.injection([text_of(fields) for fields in reading.signals], more=reading.more)


def budget(store: Store) -> int:
    """Bytes of one injection: `gitmem.hookBudget` as it was when a session last started."""
    return max(512, min(cached_settings.budget(store) or BUDGET, BUDGET_MAX))


def settle(store: Store, call: HookInput) -> None:
    """Ask no more at every tool call for what could not be committed. It must not cost anybody the mail in between."""
    hook_errors.leave(store.place.state, hook_catch_up.is_left(store))
    if call.kind != TOOL:
        hook_errors.go_on(store.place.state)
