"""Show unread signals to the agent: between tool calls, with the user's prompt, at the end of a turn, and while it is idle."""

from __future__ import annotations

import os
import sys
import time

from gitmem import commit_process, local_files
from gitmem.agents import delivery, mailbox
from gitmem.agents.heartbeats import PROMPTS, WAKES
from gitmem.clients import hook_state
from gitmem.clients.events import PROMPT, READS, START, STOP, TOOL
from gitmem.log.lines import format_at
from gitmem.signals import inbox, message_frame

from ..render import output
from ..render.text import format_ago
from . import hook_caller
from .hook_call import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitmem.agents.caller import Caller
    from gitmem.records.record_types import ShownSignal
    from gitmem.signals.inbox import InboxResult
    from gitmem.store import Store

    from ..environment import Environment
    from .hook_call import HookInput, HookTimer

    Text = Callable[[ShownSignal], str]


BUSY_MILLISECONDS = 500
OLD_MICROS = 10 * 60 * 1_000_000  # an older signal is shown with its age
BUDGET = 2048  # bytes of one injection
BUDGET_MAX = 7000  # Codex cuts the middle out of more than 10,000 bytes, and a start has further texts
TOP_BYTES = 160  # the injection's first and last line


def show_unread(at: Environment, call: HookInput, clock: HookTimer) -> bool:
    """Show unread signals within the budget; the rest waits for the next call.

    Returns:
        Whether a session must be started first: the client's session began before the log, or before the hooks.
    """
    store = at.store()
    if not hook_state.update_index(store, BUSY_MILLISECONDS):
        return False
    caller = hook_caller.caller(at, call)
    at.reads_signals = caller is not None
    if caller is None:
        if call.kind == PROMPT and call.session:
            return True
        if call.session:
            hook_state.remove_flag(store, call.session)
    elif call.kind != STOP or not call.again:
        introduces = START not in READS[call.client] and not mailbox.has_read(store.db(), caller.reader)
        intro = hook_caller.introduction(at, call, caller) if introduces else ""
        offer = hook_caller.offer_identity(store, caller) if introduces else ""
        intro = "\n\n".join(filter(None, (intro, offer)))
        via = hook_caller.reply_program(at, call, caller)
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
    """Print a reader's unread signals in its client's form, then record the receipts.

    Args:
        via: The program of the reply lines, see `hook_caller.reply_program`.
        directed: Whether to show only signals that may interrupt.
        before: A text that comes first, even without signals.
        intro: A text that comes first only with signals.
        variables: See `hook_call.answer`.
    """
    with delivery.delivery_lock(store, caller.reader) as free:
        mine = free and call.kind in READS[call.client]
        if not mine and not before:
            return
        text_of = shown(store, caller, via)
        reading = unread(store, caller, text_of, directed=directed) if mine else None
        news = injection(reading, text_of, via) if reading is not None else ""
        parts = [before, intro if news else "", news]
        text = answer(call, "\n\n".join(filter(None, parts)), variables or {})
        if text is not None:
            if not clock.is_waited_for():
                return
            clock.end()
            if not output.write(text):
                return
        if reading is not None:
            inbox.mark(store, reading)


def shown(store: Store, caller: Caller, via: str) -> Text:
    """Return the function that formats signals; old ones get their age."""
    now = store.now()

    def text(fields: ShownSignal) -> str:
        sent_at = fields["created_at"]
        age = format_ago(sent_at, now) if sent_at < format_at(now - OLD_MICROS) else None
        shown = message_frame.signal_text(
            fields, reader=caller.reader, workspace=caller.workspace, age=age, via=via
        )
        return output.plain(shown)

    return text


def unread(store: Store, caller: Caller, text_of: Text, *, directed: bool) -> InboxResult:
    """Read the signals that fit into one injection, without those that were shown before a receipt failed."""

    def measure(fields: ShownSignal) -> int:
        return len(text_of(fields).encode("utf-8", "replace")) + 2

    most = budget(store) - TOP_BYTES
    return inbox.read(store, caller, directed=directed, max_text=most, measure=measure, again=False)


def injection(reading: InboxResult, text_of: Text, via: str) -> str:
    """Return the text for the model, or "" without signals."""
    if not reading.signals:
        return ""
    return message_frame.injection(
        [text_of(fields) for fields in reading.signals], more=reading.more, via=via
    )


def budget(store: Store) -> int:
    """Return the bytes of one injection: `gitmem.hookBudget` as of the last session start."""
    return max(512, min(hook_state.budget(store) or BUDGET, BUDGET_MAX))


def limit_retries(store: Store, call: HookInput) -> None:
    """Limit retries of a failed commit to once a turn; signals must still be shown at every tool call."""
    hook_state.set_left(store.repo.state, hook_state.has_waiting_entries(store))
    if call.kind != TOOL:
        hook_state.lift_limit(store.repo.state)


SLEEP_SECONDS = 30 * 60.0
POLL_SECONDS = 0.5
EXIT_WAKE = 2


class StopWait:
    """The sleeper of a session.

    Args:
        state: The folder of gitmem's own files.
        session_id: Our session.
        client_session: The client's id of it.
    """

    __slots__ = ("_flag", "_mark", "_parent", "_prompt", "_said", "_session", "_token")

    def __init__(self, state: str, session_id: str, client_session: str) -> None:
        self._flag = os.path.join(state, "flags", session_id)
        self._session = os.path.join(state, "sessions", session_id)
        self._prompt = os.path.join(state, PROMPTS, os.path.basename(client_session) or "-")
        self._mark = os.path.join(state, WAKES, session_id)
        self._said = _changed(self._prompt)
        self._parent = os.getppid()
        self._token = f"{os.getpid()} {time.time_ns()}\n".encode()

    def acquire_turn(self) -> None:
        """Become the session's only sleeper. After a failed write `is_over` is true: it might wake again and again."""
        local_files.try_replace(self._mark, self._token, folders=True)

    def is_over(self) -> bool:
        """Return whether to stop: another sleeper, a new prompt, or the session or its client has ended."""
        try:
            if local_files.read(self._mark) != self._token:
                return True
            os.stat(self._session)
        except OSError:
            return True
        return os.getppid() != self._parent or _changed(self._prompt) != self._said

    def is_called(self) -> bool:
        """Return whether there is a signal that may interrupt."""
        try:
            return os.stat(self._flag).st_size > 0
        except OSError:
            return False

    def release_turn(self) -> None:
        """Remove the mark of this sleeper."""
        if local_files.read(self._mark) == self._token:
            local_files.remove_quietly(self._mark)


def wait(
    at: Environment, call: HookInput, *, seconds: float = SLEEP_SECONDS, poll: float = POLL_SECONDS
) -> int:
    """Sleep, then wake the agent; return 2 if signals were shown, otherwise 0."""
    from .. import syncing

    caller = hook_caller.caller(at, call)
    if caller is None or caller.session_id is None:
        return 0
    sleep = StopWait(at.repo.state, caller.session_id, call.session or "")
    at.close()
    sleep.acquire_turn()
    deadline = time.monotonic() + seconds
    try:
        while not sleep.is_over():
            syncing.start_autosync(at, commit_process.IF_DUE)  # an idle agent starts no other command
            if sleep.is_called() and _deliver_unread(at, call):
                return EXIT_WAKE
            if time.monotonic() >= deadline:
                return 0
            time.sleep(poll)
        return 0
    finally:
        sleep.release_turn()


def _deliver_unread(at: Environment, call: HookInput) -> bool:
    """Show the unread signals; return False if there are none, or another process delivers them."""
    try:
        store = at.store()
        caller = hook_caller.caller(at, call)
        if caller is None:
            return False
        with delivery.delivery_lock(store, caller.reader) as mine:
            if not mine:
                return False
            via = hook_caller.reply_program(at, call, caller)
            text_of = shown(store, caller, via)
            reading = unread(store, caller, text_of, directed=True)
            text = injection(reading, text_of, via)
            if text and not _write_stderr(text):
                return False
            inbox.mark(store, reading)
            return bool(text)
    finally:
        at.close()


def _write_stderr(text: str) -> bool:
    """Write to standard error and flush; return whether that succeeded."""
    err = sys.stderr
    try:
        output.write_whole(err.buffer, (text + "\n").encode("utf-8", "replace"))
        err.flush()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
