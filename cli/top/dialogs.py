"""Dialogs: what is about to be recorded, with its text, and the keys; typed ahead they are for the dialog that opens."""

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from textual.app import ComposeResult

CANCEL = "Cancel"


class Write:
    """Something that can be recorded.

    Attributes:
        title: What is recorded, to whom, and as whom, in sanitized lines.
        label: What the button says, such as `Record AGREE`.
        key: What a draft of the text is kept for.
        text: The text that is proposed.
        record: Records the text; returns an error as a sentence, or None.
        look: Returns the title once it is known, and a warning about what is recorded or an empty text.
    """

    def __init__(
        self,
        key: str,
        title: Sequence[str],
        label: str,
        record: Callable[[str], Awaitable[str | None]],
        text: str = "",
        look: Callable[[], Awaitable[tuple[Sequence[str], str]]] | None = None,
    ) -> None:
        self.key = key
        self.title: Sequence[str] = list(title)
        self.label = label
        self.record = record
        self.text = text
        self.look = look


class WriteDialog(ModalScreen[str | None]):
    """Asks for a text and records it only at its button. It ends with None, or with the draft if nothing was recorded."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", CANCEL),
        Binding("ctrl+s", "record", "Record"),
    ]

    def __init__(self, what: Write, draft: str | None) -> None:
        super().__init__()
        self.what = what
        self._draft = draft
        self._is_busy = False
        self._looked = asyncio.Event()

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
        self._looked.set()

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
        if not self._looked.is_set():  # what was not on the screen is not recorded
            await self._looked.wait()
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
