"""One answer: as text for people and agents, or as one line of JSON."""

from __future__ import annotations

from .out import complain, onward, sanitize, with_next
from .out import say as write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from gitmem.operations.outcome import Outcome

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
