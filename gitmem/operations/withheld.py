"""Records that a sync did not send for want of consent, as the user is shown them."""

from __future__ import annotations

from .. import records
from ..text.sanitize import sanitize
from . import history, story

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

IDS = ("signal_id", "audit_id", "session_id", "id", "name")
TOLD = ("signal", "node", "audit", "receipt", "session")  # kinds that the story has words for


def of(line: bytes) -> dict[str, str]:
    """Return what a line says: `kind`, `id`, and a `text` of one line."""
    record = records.read(line)
    if record is None:
        return {"kind": "unreadable", "id": "", "text": story.cut(_plain(line), history.COLUMNS)}
    kind = str(record.get("kind"))
    id = next((str(record[field]) for field in IDS if record.get(field)), "")
    return {"kind": sanitize(kind), "id": sanitize(id), "text": _text(kind, record)}


def sentence(count: int, url: str) -> str:
    """Return the sentence that says what was not sent, and what publishing it would mean."""
    what = "1 record was" if count == 1 else f"{count} records were"
    return (
        f"{what} not sent: nobody has agreed yet to publish this log to {url}, where everybody who can read that "
        "repository can read it."
    )


def _text(kind: str, record: Mapping[str, object]) -> str:
    if kind in TOLD:
        to = record.get("requested_to") or record.get("recipients")
        return history.describe({**record, "recipient_names": to if isinstance(to, list) else []})
    about = [
        str(record[field]) for field in ("event", "name", "type", "from_id", "to_id") if record.get(field)
    ]
    return story.cut(sanitize(" ".join([kind, *about])), history.COLUMNS)


def _plain(line: bytes) -> str:
    return sanitize(line.decode("utf-8", "replace"))
