"""Conversion of LumenFlow's signals and receipts to lines of the log.

They are history: no inbox shows these broadcasts as new (`IMPORTED_ORIGIN`), and a directed signal is unread only if
LumenFlow has no receipt for it.
"""

from __future__ import annotations

from ... import records
from ...log.lines import digest
from ...trust.sender_tables import IMPORTED_ORIGIN as ORIGIN
from .convert_nodes import ConvertedLines, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Given = Mapping[str, object]

# The reader in a receipt that names none and is for a signal to everybody.
UNKNOWN_READER = "lumenflow:import:reader"
NOBODY = "system"  # LumenFlow's own word for an unknown sender
# Fields with the same meaning in the contract. Unknown ones are kept together in `lumenflow`.
SAME = (
    "thread_id", "reply_to", "intent", "interrupt_class", "requires_ack", "wu_id", "initiative_id", "lane",
    "sender_role", "target_role", "delegation_id", "artifact_path", "workspace_id", "sender_name",
    "idempotency_key",
)  # fmt: skip
_GONE = ("id", "signal_id", "created_at", "at", "kind", "schema_version", "mac", "read", "message", "content",
         "sender", "sender_identity", "recipients", "target_agent", *SAME)  # fmt: skip


class ImportedSignal(ConvertedLines):
    """A signal with its recipients; `read` says whether its own line marks it as read."""

    def __init__(self, id: str, line: bytes, at: int, recipients: Sequence[str], read: bool) -> None:
        super().__init__(id, line, at)
        self.recipients = list(recipients)
        self.read = read


def signal(given: Given, *, allow_secret: bool = False) -> ImportedSignal:
    """Return a signal: an INFO to its `target_agent`, or to everybody.

    Raises:
        UsageError: The log can't accept it (RecordError, SecretError).
    """
    at = time_of(given, "created_at")
    id = given.get("signal_id") or given.get("id")
    kept = {name: value for name, value in given.items() if name not in _GONE and value not in (None, "")}
    remarks: list[str] = []
    sender = _address(given.get("sender_identity") or given.get("sender") or NOBODY, "sender", kept, remarks)
    to = given.get("recipients") or given.get("target_agent") or []
    recipients = [
        _address(each, "recipient", kept, remarks) for each in (to if isinstance(to, list) else [to])
    ]
    if id is not None and kept.get("remote_id") == id:
        del kept["remote_id"]
    if kept.get("origin") == "local":
        del kept["origin"]
    fields: dict[str, object] = {
        "schema_version": "A2A.V1",
        "signal_id": id,
        "sender_identity": sender,
        "recipients": list(dict.fromkeys(recipients)),
        "message": given.get("message") or given.get("content"),
        "origin": ORIGIN,
    }
    for name in SAME:
        value = given.get(name)
        if value is None or value == "":
            continue
        if records.fits("signal", name, value):
            fields[name] = value
        else:
            kept[name] = value
            remarks.append(f"its {name} is not valid here; it is kept as an additional field")
    if kept:
        fields["lumenflow"] = kept
    line = records.line("signal", at, fields, allow_secret=allow_secret)
    made = ImportedSignal(str(id), line, at, recipients, given.get("read") is True)
    made.remarks = remarks
    return made


def _address(given: object, what: str, kept: dict[str, object], remarks: list[str]) -> str:
    """Return a name as an address, without spaces or commas. The original is kept."""
    text = str(given)
    if records.fits("signal", "sender_identity", text):
        return text
    words = "".join(char if char.isprintable() and char not in ", " else " " for char in text).split()
    found = "-".join(words)[:200] or NOBODY
    kept.setdefault(f"{what}_was", given)
    remarks.append(f"its {what} is not valid here; it becomes {found}")
    return found


def receipts(given: Given, of: ImportedSignal) -> ConvertedLines:
    """Return the receipts for one of LumenFlow's: for its reader, or else for the recipients of the signal.

    LumenFlow's own receipt names no reader: one receipt marks a signal as read for all.

    Raises:
        UsageError: It is not a receipt (RecordError).
    """
    at = time_of(given, "read_at", of.at)
    reader = given.get("reader_identity") or given.get("reader")
    remarks: list[str] = []
    readers = [_address(reader, "reader", {}, remarks)] if reader else of.recipients or [UNKNOWN_READER]
    made = ConvertedLines(of.id, b"", at)
    made.remarks = remarks
    fields: dict[str, object] = {
        "schema_version": "A2A.V1",
        "signal_id": of.id,
        "delivery_state": "delivered",
        "answers_digest": digest(of.line),
        "origin": ORIGIN,
    }
    kept = {}
    for name in ("delivery_state", "idempotency_key"):
        value = given.get(name)
        if value in (None, ""):
            continue
        if records.fits("receipt", name, value):
            fields[name] = value
        else:
            kept[name] = value
            made.remarks.append(f"its {name} is not valid here; it is kept as an additional field")
    if kept:
        fields["lumenflow"] = kept
    for each in dict.fromkeys(readers):
        made.more.append(records.line("receipt", at, {**fields, "reader_identity": each}))
    return made
