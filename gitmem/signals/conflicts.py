"""Lines of one signal id that say different things: all of them are shown, and none is answered.

Anybody who may push can write a second line under an id that exists, with any time. So no line stands for the
others: a reader sees what differs, and who wrote what, before anybody decides.
"""

from __future__ import annotations

from ..mailbox.receipts import is_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

SHOWN_MAX = 4  # lines of one id in one answer
# What may differ, as it is called in answers; `clone` is that of the session that a line names.
COMPARED = {
    "sender_identity": "sender", "sender_session": "session", "sender_name": "name", "created_at": "time",
    "recipients": "recipients", "intent": "intent", "message": "message", "thread_id": "thread",
    "reply_to": "answered signal", "wu_id": "work unit", "requires_ack": "wish for an answer", "clone": "clone",
}  # fmt: skip


class Version:
    """One of the things that the lines of an id say: the lowest line that says it."""

    __slots__ = ("content", "line")

    def __init__(self, line: bytes, content: bytes) -> None:
        self.line = line
        self.content = content


def versions(db: sqlite3.Connection, signal_id: str) -> list[Version]:
    """Return what the lines of an id say, in the order of `(at, bytes)`; more than one is a conflict."""
    found: dict[bytes, Version] = {}
    rows = db.execute(
        "SELECT l.body, s.content FROM signal s JOIN line l ON l.id = s.line WHERE s.signal_id = ? ORDER BY l.body",
        (signal_id,),
    )
    for body, content in rows:
        if content not in found:
            found[content] = Version(str(body).encode(), content)
    return list(found.values())


def chosen(found: Sequence[Version], first: Collection[bytes]) -> list[Version]:
    """Return the versions that one answer shows, in their order.

    Args:
        found: All versions of an id.
        first: Contents that go before the others: what the reader has not read.
    """
    if len(found) <= SHOWN_MAX:
        return list(found)
    kept = sorted(found, key=lambda each: each.content not in first)[:SHOWN_MAX]
    return [each for each in found if each in kept]


def unread(db: sqlite3.Connection, addresses: Sequence[str], signal_id: str) -> set[tuple[str, bytes]]:
    """Return the (address, content) pairs of an id that are unread, of those that have it unread at all."""
    found: set[tuple[str, bytes]] = set()
    for address in addresses:
        values = {"reader": address, "id": signal_id}
        rows = db.execute(
            "SELECT content FROM mail WHERE reader = :reader AND signal_id = :id UNION"
            " SELECT content FROM broadcast b WHERE signal_id = :id AND NOT EXISTS (SELECT 1 FROM receipt r"
            f" WHERE r.signal_id = :id AND r.reader = :reader AND {is_for('b.content')})",
            values,
        )
        found.update((address, content) for (content,) in rows)
    return found


def mark(db: sqlite3.Connection, fields: Sequence[dict[str, object]], total: int) -> None:
    """Mark the versions of one id that are shown together as conflicting, with what differs.

    Args:
        fields: The versions as they are shown, in their order.
        total: How many there are.
    """
    compared = []
    for each in fields:
        row = db.execute(
            "SELECT clone_id FROM session WHERE session_id = ?", (each.get("sender_session"),)
        ).fetchone()
        compared.append({**each, "clone": row[0] if row else None})
    differs = [
        word
        for field, word in COMPARED.items()
        if any(each.get(field) != compared[0].get(field) for each in compared)
    ]
    for number, (each, known) in enumerate(zip(fields, compared, strict=True), 1):
        conflict = {"number": number, "shown": len(fields), "versions": total, "differs": differs}
        each["conflict"] = {**conflict, "clone": known["clone"]} if known["clone"] else conflict


def note(fields: Mapping[str, object]) -> str:
    """Return what the head of a signal says of its conflict; "" where there is none."""
    conflict = fields.get("conflict")
    if not isinstance(conflict, dict):
        return ""
    left = int(conflict["versions"]) - int(conflict["shown"])
    parts = [
        f"CONFLICT {conflict['number']} of {conflict['versions']} different lines with this id",
        f"{left} not shown" if left else "",
        f"they differ in {', '.join(conflict['differs'])}" if conflict["differs"] else "",
        f"written {fields.get('created_at')}",
        f"clone {conflict['clone']}" if conflict.get("clone") else "",
    ]
    return "; ".join(part for part in parts if part)
