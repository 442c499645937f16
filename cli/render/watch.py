"""The signals that a watch shows: as text in their frames, or one JSON object a line."""

from __future__ import annotations

from .out import onward, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.operations.watching import Whose


def text(fields: Mapping[str, object], of: Whose, *, age: str) -> str:
    """A signal in its frame."""
    from gitmem.operations import frame

    reader = None if of.peek else of.reader
    return frame.signal_text(fields, reader=reader, workspace=of.workspace, age=age, via=program())


def together(shown: Sequence[str]) -> str:
    """Signals that come at once, below one head."""
    from gitmem.operations import frame

    return frame.injection(shown) + "\n"


def event(fields: Mapping[str, object], of: Whose) -> str:
    """A signal as one line of JSON."""
    from gitmem.operations import frame, watching

    from .as_json import as_json

    reader = None if of.peek else of.reader
    known = {key: value for key, value in fields.items() if key not in ("event", "reader", "next")}
    return as_json(
        {
            "event": "signal:received",
            "reader": of.reader,
            **known,
            "reply_line": frame.reply_line(fields, reader=reader, workspace=of.workspace, via=program()),
            "next": onward(watching.steps(fields, of)),
        }
    )
