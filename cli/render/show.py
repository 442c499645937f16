"""One answer: as text for people and agents, or as one line of JSON."""

from __future__ import annotations

from .out import complain, onward, sanitize, with_next
from .out import say as write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from gitmem.operations.outcome import Outcome
    from gitmem.operations.signals import Sent

    Answer = TypeVar("Answer", bound=Outcome)


def say(json: bool, outcome: Answer, lines: Callable[[Answer], Sequence[str]]) -> bool:
    """Answer with an outcome. False where nobody reads it."""
    if json:
        from .as_json import as_json

        values = outcome.as_json()
        if "next" in values:
            values["next"] = onward(getattr(outcome, "next", ()))
        return write(as_json(values))
    return write(with_next(lines(outcome), getattr(outcome, "next", ())))


def say_values(json: bool, values: Mapping[str, object], lines: Sequence[str], next: Sequence[str]) -> bool:
    """The same for an answer that is put together of several."""
    if json:
        from .as_json import as_json

        return write(as_json({**values, "next": onward(next)}))
    return write(with_next(lines, next))


def note(sentences: Sequence[str]) -> None:
    """Say beside the answer, on standard error, what one should know of it."""
    for each in sentences:
        complain(f"note: {sanitize(each)}")


def say_lines(lines: Sequence[str]) -> bool:
    return write("\n".join(lines))


def sent(found: Sent) -> list[str]:
    """A signal that was recorded, as text."""
    from gitmem.operations.frame import SEPARATOR, who

    signal = found.signal
    intent = str(signal.get("intent") or "INFO")
    people = [who(each["display_name"], each["address"]) for each in found.resolved]
    to = ", ".join(people) or ("everybody" if not signal.get("recipients") else "")
    where = f"commit {found.commit[:12]}" if found.commit else "recorded"
    lines = [SEPARATOR.join((str(signal["signal_id"]), intent, f"to {to}", where))]
    if signal.get("thread_id"):
        lines.append(f"thread: {signal['thread_id']}")
    if found.pushed:
        lines.append("pushed")
    lines += [f"note: {sanitize(line)}" for line in found.warnings]
    return lines
