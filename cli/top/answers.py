"""The dialogs for answers, each with the operation that records it."""

from __future__ import annotations

from gitmem.signals import message_frame
from gitmem.text.sanitize import SEPARATOR, within

from ..render import signals as signal_text
from ..render.output import sanitize
from . import actions, details
from .board import TASKS
from .dialogs import Write, WriteDialog
from .log_access import sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from textual.app import App

    from gitmem.agents.caller import Caller
    from gitmem.records.record_types import ShownSignal
    from gitmem.signals.gate import Gate
    from gitmem.store import Store

    from .details import Detail
    from .log_access import LogAccess

TITLE_COLUMNS = 200
QUESTION_LINES = 20
LOW = 14  # lines of a screen on which a dialog takes all
REPLY = "REPLY"
WORDS = {"AGREE": "agreed"}  # the text that is proposed


class Answers:
    """Opens the dialog for each answer. A text that was not recorded is proposed the next time.

    Args:
        app: The screen.
        log_access: Runs the operations.
        say: Shows what was recorded.
        show: Shows the state of a gate.

    Attributes:
        who: Who answers, for people.
    """

    def __init__(
        self,
        app: App[None],
        log_access: LogAccess,
        say: Callable[[str], object],
        show: Callable[[Detail], object],
    ) -> None:
        self.who = "you"
        self._app = app
        self._log_access = log_access
        self._say = say
        self._show = show
        self._drafts: dict[str, str] = {}

    async def signal(self, signal: ShownSignal, intent: str | None) -> None:
        """Answer a signal.

        Args:
            intent: The decision; None for a reply without one.
        """
        signal_id, word = signal["signal_id"], intent or REPLY
        asked = within(message_frame.quote_lines(signal["message"])[0], TITLE_COLUMNS)

        async def send(text: str) -> str | None:
            return await self._record(
                lambda store, caller: actions.reply(store, caller, signal_id, text, intent)
            )

        async def look() -> tuple[list[str], str]:
            try:
                to, remarks = await self._log_access.run(
                    lambda store, caller: actions.look_at_reply(store, caller, signal_id, intent)
                )
            except Exception as error:
                return [f"{word}, as {self.who}", asked], sentence(error)
            title = [f"{word} to {within(to, TITLE_COLUMNS)}, as {self.who}", asked]
            return _clean(title), " ".join(_clean(remarks))

        what = Write(
            f"{word} {signal_id}",
            [f"{word}, as {self.who}", asked],
            f"Record {word}",
            send,
            WORDS.get(word, ""),
            look,
        )
        await self._ask(what)

    async def detail(self, detail: Detail) -> None:
        """Write about a task to its other side, or a signal to an agent."""
        id, to = detail.id, detail.to
        if detail.kind == TASKS:
            word = "Answer the question of" if detail.asks else "Write to the other side of"

            async def answer(text: str) -> str | None:
                return await self._record(lambda store, caller: actions.answer_task(store, caller, id, text))

            about = message_frame.quote_lines(detail.question) if detail.question else [detail.head]
            title = [
                f"{word} {id}, as {self.who}",
                *(within(each, TITLE_COLUMNS) for each in about[:QUESTION_LINES]),
            ]
            await self._ask(Write(f"task {id}", title, "Record answer", answer))
        elif to is not None:

            async def write(text: str) -> str | None:
                return await self._record(lambda store, caller: actions.write_to(store, caller, to, text))

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
                found = await self._log_access.run(
                    lambda store, caller: actions.look_at_gate(store, caller, wu)
                )
            except Exception as error:
                return sentence(error)
            self._show(details.gate(found))
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
            found.append(actions.pass_gate(store, caller, wu, text))
            return signal_text.gate(found[0])

        async def passed(text: str) -> str | None:
            if not text.strip():
                return "Type the reason; without one the gate is not passed."
            wrong = await self._record(lambda store, caller: record(store, caller, text))
            if wrong is None:
                self._show(details.gate(found[0]))
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
            return sentence(error)
        self._say(SEPARATOR.join(said))
        self._log_access.look_again()
        return None


def _clean(lines: Iterable[str]) -> list[str]:
    return [sanitize(each, keep="") for each in lines]
