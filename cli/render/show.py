"""One answer: as text for people and agents, or as one line of JSON."""

from __future__ import annotations

from .out import say as write
from .out import with_next

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

        return write(as_json(outcome))
    return write(with_next(lines(outcome), getattr(outcome, "next", ())))


def say_values(json: bool, values: Mapping[str, object], lines: Sequence[str], next: Sequence[str]) -> bool:
    """The same for an answer that is put together of several."""
    if json:
        from .as_json import as_json

        return write(as_json({**values, "next": list(next)}))
    return write(with_next(lines, next))


def say_lines(lines: Sequence[str]) -> bool:
    return write("\n".join(lines))
