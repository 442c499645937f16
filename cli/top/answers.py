"""What a person does on the screen: dialogs that show what is about to be recorded, and the operations that record it.

Keys that are typed ahead are for the dialog that opens.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

from rich.text import Text
from textual import events, work
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static, TextArea

from gitmem.agents import delivery
from gitmem.errors import UsageError
from gitmem.order.content import INTENTS
from gitmem.outcome import Struct
from gitmem.signals import gate as gates
from gitmem.signals import inbox, message_frame, send
from gitmem.signals import reply as reply_context
from gitmem.signals.inbox import resolve_owner
from gitmem.text.sanitize import SEPARATOR, within
from gitmem.work import task_decisions

from .. import a2a
from ..commands.signals import lines_of
from ..render import signals as signal_text
from ..render import tasks as task_text
from ..render.output import sanitize
from ..render.text import sender_text
from . import board
from .board import TASKS, error_sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from textual.app import ComposeResult

    from gitmem.agents.caller import Caller
    from gitmem.records.record_types import ShownSignal
    from gitmem.signals.gate import Gate
    from gitmem.store import Store

    from .board import Detail, LogAccess


CANCEL = "Cancel"


class Write(Struct):
    """Something that can be recorded.

    Attributes:
        title: What is recorded, to whom, and as whom, in sanitized lines.
        label: What the button says, such as `Record AGREE`.
        key: What a draft of the text is kept for.
        text: The text that is proposed.
        record: Records the text; returns an error as a sentence, or None.
        look: Returns the title once it is known, and a warning about what is recorded or an empty text.
    """

    key: str
    title: Sequence[str]
    label: str
    record: Callable[[str], Awaitable[str | None]]
    text: str = ""
    look: Callable[[], Awaitable[tuple[Sequence[str], str]]] | None = None


class WriteDialog(ModalScreen[str | None]):
    """Asks for a text and records it only at its button. It ends with None, or with the draft if nothing was recorded.

    Attributes:
        looked: Is set once the title and a warning are complete.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", CANCEL),
        Binding("ctrl+s", "record", "Record"),
    ]

    def __init__(self, what: Write, draft: str | None) -> None:
        super().__init__()
        self.what = what
        self._draft = draft
        self._is_busy = False
        self.looked = asyncio.Event()

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Vertical(id="dialog"):
            yield Static(Text("\n".join(self.what.title)), id="title", markup=False)
            text = self.what.text if self._draft is None else self._draft
            yield TextArea(text, soft_wrap=True, tab_behavior="focus", compact=True)
            yield Static("", id="wrong", markup=False)
            yield Static("^s records · Esc cancels", id="hint", markup=False)
            with Horizontal(id="buttons"):
                yield Button(self.what.label, id="record", compact=True, variant="primary")
                yield Button(CANCEL, id="cancel", compact=True)

    def on_mount(self) -> None:
        """Begin at the end of a draft; a text that is only proposed is selected, so that typing replaces it."""
        area = self.query_one(TextArea)
        if area.text == self.what.text:
            area.select_all()
        else:
            area.move_cursor(area.document.end)
        self.set_focus(area)
        self._look()

    @work(group="look")
    async def _look(self) -> None:
        """Complete the title."""
        if self.what.look is not None:
            self.what.title, warning = await self.what.look()
            self.query_one("#title", Static).update(Text("\n".join(self.what.title)))
            self.query_one("#wrong", Static).update(Text(warning))
        self.looked.set()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Do what the button says."""
        if event.button.id == "record":
            self.action_record()
        else:
            self.action_cancel()

    @work(exclusive=True)
    async def action_record(self) -> None:
        """Record the text; after an error the dialog stays, with the text."""
        if self._is_busy:
            return
        if not self.looked.is_set():  # what was not on the screen is not recorded
            await self.looked.wait()
            if self.query_one("#wrong", Static).content:
                return
        self._is_busy = True
        try:
            wrong = await self.what.record(self.query_one(TextArea).text)
        finally:
            self._is_busy = False
        if wrong is None:
            self.dismiss(None)
        else:
            self.query_one("#wrong", Static).update(Text(wrong))

    def action_cancel(self) -> None:
        """End without a record; what was written is kept as a draft."""
        if not self._is_busy:
            self.dismiss(self.query_one(TextArea).text)


class Help(ModalScreen[None]):
    """The keys and marks.

    Args:
        said: Its lines.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "close", "Close"),
        Binding("j", "scroll(1)", "Down", show=False),
        Binding("k", "scroll(-1)", "Up", show=False),
    ]

    def __init__(self, said: Sequence[str]) -> None:
        super().__init__()
        self._said = list(said)

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with VerticalScroll(id="dialog", classes="help"):
            yield Static(Text("\n".join(self._said)), markup=False)

    def action_scroll(self, rows: int) -> None:
        """Scroll by this many rows."""
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)

    def action_close(self) -> None:
        """End the dialog."""
        self.dismiss(None)


class KeyOrderApp(App[None]):
    """An application whose keys take effect one after the other.

    Textual hands all keys of a burst to the widget that has the focus before the first of them takes effect. Here a key has
    opened its field or dialog before the next one is looked at.
    """

    async def on_event(self, event: events.Event) -> None:
        """Run the action of a key at once; a field for text gets its keys as usual."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            is_text = isinstance(self.focused, (Input, TextArea))
            found = None if is_text else self.active_bindings.get(event.key)
            if found is not None and found.enabled:
                await self.run_action(found.binding.action, found.node)
                return
        await super().on_event(event)


MARK_BYTES = 64 * 1024 * 1024  # no message that was shown is cut when it is read again to be marked


def look_at_reply(
    store: Store, caller: Caller, signal_id: str, intent: str | None
) -> tuple[str, Sequence[str]]:
    """Return whom an answer would go to, for people, and why its decision would not count.

    Raises:
        UsageError: It cannot be answered so.
    """
    to, remarks = reply_context.look_ahead(store, caller, signal_id, intent or INTENTS[0])
    return ", ".join(sender_text(each.display_name, each.address) for each in to), remarks


def answer_task(store: Store, caller: Caller, task_id: str, text: str) -> list[str]:
    """Write to the other side of a task, such as the answer to its question.

    Raises:
        UsageError: The answer is invalid, or the task is done by a server, which gets it only while a command waits. Nothing
            was written.
        StoreError: It can't be recorded.
    """
    if a2a.with_servers(store, [task_id]):
        raise UsageError(
            f"{task_id} is done by a server, which gets an answer only while somebody waits. Nothing was written.",
            hint=f"Run `gitmem task message {task_id} 'your answer'` in a shell.",
            code="remote-task",
        )
    return task_text.change(task_decisions.message(store, caller, task_id, text))


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


TITLE_COLUMNS = 200
QUESTION_LINES = 20
LOW = 14  # lines of a screen on which a dialog takes all
REPLY = "REPLY"
WORDS = {"AGREE": "agreed"}  # the text that is proposed


class Answers(Struct):
    """Opens the dialog for each answer. A text that was not recorded is proposed the next time.

    Attributes:
        app: The screen.
        log_access: Runs the operations.
        say: Shows what was recorded.
        show: Shows the state of a gate.
        who: Who answers, for people.
    """

    _app: App[None]
    _log_access: LogAccess
    _say: Callable[[str], object]
    _show: Callable[[Detail], object]
    who: str = "you"
    _drafts: dict[str, str] = {}

    async def signal(self, signal: ShownSignal, intent: str | None) -> None:
        """Answer a signal.

        Args:
            intent: The decision; None for a reply without one.
        """
        signal_id, word = signal["signal_id"], intent or REPLY
        asked = within(message_frame.quote_lines(signal["message"])[0], TITLE_COLUMNS)

        async def answer(text: str) -> str | None:
            return await self._record(
                lambda store, caller: lines_of(
                    send.send(store, caller, text, reply_to=signal_id, intent=intent)
                )
            )

        async def look() -> tuple[list[str], str]:
            try:
                to, remarks = await self._log_access.run(
                    lambda store, caller: look_at_reply(store, caller, signal_id, intent)
                )
            except Exception as error:
                return [f"{word}, as {self.who}", asked], error_sentence(error)
            title = [f"{word} to {within(to, TITLE_COLUMNS)}, as {self.who}", asked]
            return _clean(title), " ".join(_clean(remarks))

        what = Write(
            f"{word} {signal_id}",
            [f"{word}, as {self.who}", asked],
            f"Record {word}",
            answer,
            WORDS.get(word, ""),
            look,
        )
        await self._ask(what)

    async def detail(self, detail: Detail) -> None:
        """Write about a task to its other side, or a signal to an agent."""
        id, to = detail.id, detail.to
        if detail.kind == TASKS:
            word = "Answer the question of" if detail.question else "Write to the other side of"

            async def answer(text: str) -> str | None:
                return await self._record(lambda store, caller: answer_task(store, caller, id, text))

            about = message_frame.quote_lines(detail.question) if detail.question else [detail.head]
            title = [
                f"{word} {id}, as {self.who}",
                *(within(each, TITLE_COLUMNS) for each in about[:QUESTION_LINES]),
            ]
            await self._ask(Write(f"task {id}", title, "Record answer", answer))
        elif to is not None:

            async def write(text: str) -> str | None:
                return await self._record(
                    lambda store, caller: lines_of(send.send(store, caller, text, to=[to]))
                )

            title = [f"Signal to {detail.to_name}, as {self.who}"]
            await self._ask(Write(f"to {to}", title, "Record signal", write))

    async def gate(self, wu: str) -> None:
        """Ask for a work unit, show its gate, and ask for the reason to pass it if it is closed.

        Args:
            wu: The work unit that is proposed.
        """
        closed: list[str] = []

        async def check(typed: str) -> str | None:
            wu = typed.strip()
            if not wu:
                return "Type a work unit, such as WU-123."
            try:
                found = await self._log_access.run(lambda store, caller: gates.check(store, caller, wu=wu))
            except Exception as error:
                return error_sentence(error)
            self._show(board.gate_detail(found))
            closed.extend([] if found.open else [wu])
            return None

        async def then() -> None:
            if closed:
                await self._pass(closed[0])

        title = ["The work unit whose gate to check; nothing is recorded by that."]
        await self._ask(Write("", title, "Check", check, wu), then)

    async def _pass(self, wu: str) -> None:
        """Ask for the reason to pass a closed gate, and show it as passed."""
        found: list[Gate] = []

        def record(store: Store, caller: Caller, text: str) -> list[str]:
            found.append(gates.check(store, caller, wu=wu, reason=text))
            return signal_text.gate(found[0])

        async def passed(text: str) -> str | None:
            if not text.strip():
                return "Type the reason; without one the gate is not passed."
            wrong = await self._record(lambda store, caller: record(store, caller, text))
            if wrong is None:
                self._show(board.gate_detail(found[0]))
            return wrong

        title = [
            f"Pass the closed gate of {wu}, as {self.who}",
            "Why its signals may wait; everybody can read it:",
        ]
        await self._ask(Write(f"gate {wu}", title, "Record pass", passed))

    async def _ask(self, what: Write, then: Callable[[], Awaitable[object]] | None = None) -> None:
        async def ended(draft: str | None) -> None:
            self._drafts.pop(what.key, None)
            if draft and what.key:
                self._drafts[what.key] = draft
            if then is not None:
                await then()

        what.title = _clean(what.title)
        dialog = WriteDialog(what, self._drafts.get(what.key))
        dialog.set_class(self._app.size.height < LOW, "low")
        await self._app.push_screen(dialog, ended)  # keys that were typed ahead are for its text

    async def _record(self, job: Callable[[Store, Caller], list[str]]) -> str | None:
        """Run an operation and say what it has recorded; return an error as a sentence."""
        try:
            said = await self._log_access.run(job)
        except Exception as error:
            return error_sentence(error)
        self._say(SEPARATOR.join(said))
        self._log_access.look_again()
        return None


def _clean(lines: Iterable[str]) -> list[str]:
    return [sanitize(each, keep="") for each in lines]
