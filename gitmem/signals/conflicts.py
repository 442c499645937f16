"""Lines with one signal id and different content: all are displayed, and none can be answered.

Anybody who may push can append a second line with an existing id and any time. So no line represents the others:
the reader sees the differences and the senders before a decision.
"""

from __future__ import annotations

from ..agents import mailbox
from ..outcome import Struct
from ..records import KEYED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from ..records.kinds import Conflict
    from ..records.record_types import ShownSignal

SHOWN_MAX = 4  # lines of one id in one answer
CLONE = "clone"  # may differ, too: that of the session that the line names
OTHER = "other fields"  # if no compared field differs
_BESIDE = ("sender_session", "sender_name", "created_at")  # compared fields beside the keyed ones
# The names in answers of fields that may differ, where those are not the fields' own.
WORDS = {
    "sender_identity": "sender", "sender_session": "session", "sender_name": "name", "via": "recording session",
    "created_at": "time", "reply_to": "answered signal", "wu_id": "work unit", "artifact_path": "artifact",
    "requires_ack": "wish for an answer",
}  # fmt: skip


class Version(Struct):
    """One of the contents of an id, with the lowest line that has it."""

    line: bytes
    content: bytes


def versions(db: sqlite3.Connection, signal_id: str) -> list[Version]:
    """Return the contents of an id in the order of `(at, bytes)`; more than one is a conflict."""
    found: dict[bytes, Version] = {}
    for line, content in mailbox.contents_of(db, signal_id):
        if content not in found:
            found[content] = Version(line, content)
    return list(found.values())


def chosen(found: Sequence[Version], first: Collection[bytes]) -> list[Version]:
    """Return the versions that one answer displays, in their order.

    Args:
        found: All versions of an id.
        first: Contents to prefer: those that the reader has not read.
    """
    if len(found) <= SHOWN_MAX:
        return list(found)
    kept = sorted(found, key=lambda each: each.content not in first)[:SHOWN_MAX]
    return [each for each in found if each in kept]


def unread(db: sqlite3.Connection, addresses: Sequence[str], signal_id: str) -> set[tuple[str, bytes]]:
    """Return the (address, content) pairs of an id that are unread at these addresses."""
    from ..agents import signal_rows

    return {
        (address, content)
        for address in addresses
        for content in signal_rows.unread_contents(db, address, signal_id)
    }


def mark(db: sqlite3.Connection, fields: Sequence[ShownSignal], total: int) -> None:
    """Add `conflict` to the versions of one id that are displayed together, with the fields that differ.

    Args:
        fields: The versions as displayed, in their order.
        total: The number of all versions.
    """
    from ..agents import session_view

    clones = [session_view.clone_of(db, each.get("sender_session")) for each in fields]
    differs = [
        WORDS.get(field, field.removesuffix("_id").replace("_", " "))
        for field in (*_BESIDE, *KEYED["signal"])
        if any(each.get(field) != fields[0].get(field) for each in fields)
    ]
    differs += [CLONE] if len(set(clones)) > 1 else []
    if len(fields) > 1 and not differs:
        differs = [OTHER]
    for number, (each, clone) in enumerate(zip(fields, clones, strict=True), 1):
        conflict: Conflict = {"number": number, "shown": len(fields), "versions": total, "differs": differs}
        if clone:
            conflict["clone"] = clone
        each["conflict"] = conflict


def note(fields: ShownSignal) -> str:
    """Return the description of a conflict for the head of a signal."""
    conflict = fields["conflict"]
    left = conflict["versions"] - conflict["shown"]
    parts = [
        f"CONFLICT {conflict['number']} of {conflict['versions']} different lines with this id",
        f"{left} not shown" if left else "",
        f"they differ in {', '.join(conflict['differs'])}" if conflict["differs"] else "",
        f"written {fields['created_at']}",
        f"clone {conflict['clone']}" if conflict.get("clone") else "",
    ]
    return "; ".join(part for part in parts if part)
