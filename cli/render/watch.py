"""The signals of a watch: as text in their frames, or as one JSON object a line."""

from __future__ import annotations

from .output import program, with_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.records.shown_types import ShownSignal
    from gitmem.signals.watch import WatchOwner


def text(fields: ShownSignal, of: WatchOwner, *, age: str) -> str:
    """Return a signal in its frame."""
    from gitmem.signals import message_frame

    reader = None if of.peek else of.reader
    return message_frame.signal_text(fields, reader=reader, workspace=of.workspace, age=age, via=program())


def together(shown: Sequence[str]) -> str:
    """Return signals that arrive together, below one heading."""
    from gitmem.signals import message_frame

    return message_frame.injection(shown) + "\n"


def event(fields: ShownSignal, of: WatchOwner) -> str:
    """Return a signal as one line of JSON."""
    from gitmem.signals import message_frame, watch

    from .as_json import as_json

    reader = None if of.peek else of.reader
    known = {key: value for key, value in fields.items() if key not in ("event", "reader", "next")}
    return as_json(
        {
            "event": "signal:received",
            "reader": of.reader,
            **known,
            "reply_line": message_frame.reply_line(
                fields, reader=reader, workspace=of.workspace, via=program()
            ),
            "next": with_options(watch.steps(fields, of)),
        }
    )
