"""One answer: as text for people and agents, or as one line of JSON."""

from __future__ import annotations

from .out import say as write
from .out import with_next

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from gitmem.operations.outcome import Outcome

    Answer = TypeVar("Answer", bound=Outcome)


def say(json: bool, outcome: Answer, lines: Callable[[Answer], Sequence[str]]) -> bool:
    """Answer with an outcome. False where nobody reads it."""
    if json:
        from .as_json import as_json

        return write(as_json(outcome))
    return write(with_next(lines(outcome), getattr(outcome, "next", ())))


def say_lines(lines: Sequence[str]) -> bool:
    return write("\n".join(lines))
