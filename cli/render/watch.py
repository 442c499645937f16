"""The signals that a watch shows: as text in their frames, or one JSON object a line."""

from __future__ import annotations

from .out import onward

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.operations.watching import Whose


def text(fields: Mapping[str, object], of: Whose, *, age: str) -> str:
    """A signal in its frame."""
    from gitmem.operations import frame

    return frame.signal_text(fields, reader=None if of.peek else of.reader, workspace=of.workspace, age=age)


def together(shown: Sequence[str]) -> str:
    """Signals that come at once, below one head."""
    from gitmem.operations import frame

    peers = "1 signal from a peer" if len(shown) == 1 else f"{len(shown)} signals from peers"
    top = f"gitmem signal:received: {peers}. {frame.LIMIT}"
    return "\n\n".join(["\n".join([top, *shown[:1]]), *shown[1:]]) + "\n"


def event(fields: Mapping[str, object], of: Whose) -> str:
    """A signal as one line of JSON."""
    from gitmem.operations import watching

    from .as_json import as_json

    known = {key: value for key, value in fields.items() if key not in ("event", "reader", "next")}
    return as_json(
        {
            "event": "signal:received",
            "reader": of.reader,
            **known,
            "reply_line": fields.get("reply_line"),
            "next": onward(watching.steps(fields, of)),
        }
    )
