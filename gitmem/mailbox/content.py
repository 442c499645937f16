"""What the lines of one signal id say, and which of these lines a receipt or a reply answers.

A receipt or a reply names the digest of the line that its writer had seen. It counts once the log has a line
with this digest under the id, whichever of the two arrives first.
"""

from __future__ import annotations

from ..digests import hash_of, sha256
from ..log.lines import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping

# Two clones may create one signal from one idempotency key: what it says, to whom, for whom and what it asks must be equal
# then. Not so what depends on where and when it was recorded: session and name of the sender, what it had seen, how the
# recipients were found, and the interrupt class, which the loop brake of one clone may lower.
KEYED_FIELDS = ("sender_identity", "thread_id", "message", "recipients", "intent", "reply_to", "wu_id", "initiative_id", "lane", "target_role",
                "delegation_id", "artifact_path", "requires_ack", "workspace_id", "via", "origin")  # fmt: skip


def keyed_content(record: Mapping[str, object]) -> tuple[str, ...]:
    """Return what two signals with one idempotency key must have in common to be the same."""
    missing = {
        "thread_id": record.get("signal_id"),
        "origin": "local",
    }  # the signal's id names the thread then
    return tuple(str(record.get(field) or missing.get(field) or "") for field in KEYED_FIELDS)


def is_keyed(record: Mapping[str, object]) -> bool:
    """Return whether an idempotency key gave a signal its id: only then may lines that differ be one signal."""
    key = record.get("idempotency_key")
    if not key:
        return False
    from ..records.ids import keyed_id

    return record.get("signal_id") == keyed_id("sig", str(record.get("sender_identity")), str(key))


def content_of(record: Mapping[str, object], line_digest: bytes) -> bytes:
    """Return a key of what a line says: lines of one id with different keys conflict.

    Args:
        record: The signal.
        line_digest: The digest of its line, 32 bytes.
    """
    if not is_keyed(record):
        return line_digest
    return sha256(
        repr((str(record["idempotency_key"]), keyed_content(record))).encode("utf-8", "surrogatepass")
    ).digest()


def digest_bytes(line: bytes) -> bytes:
    """Return the digest of a line as 32 bytes."""
    return hash_of(1)(said(line)).digest()


def is_imported(record: Mapping[str, object]) -> bool:
    """Whether an adapter wrote the record: such a reply may lack a digest."""
    return (record.get("origin") or "local") != "local"


def counts(record: Mapping[str, object], digests: Mapping[str, Collection[bytes]]) -> bool:
    """Whether a signal answers nothing, or a line that exists.

    Args:
        record: The signal.
        digests: The digests of the lines of each id that is answered.
    """
    answered = record.get("reply_to")
    if not answered:
        return True
    given = record.get("answers_digest")
    if not given:
        return is_imported(record)
    return bytes.fromhex(str(given)) in digests.get(str(answered), ())


def digests_of(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, set[bytes]]:
    """Return the digests of every line of these signals; ids that the log lacks have none."""
    wanted = ",".join(f'"{id}"' for id in sorted(set(ids)))  # ids are letters, digits and dashes
    found: dict[str, set[bytes]] = {}
    rows = db.execute(
        "SELECT signal_id, digest FROM signal WHERE signal_id IN (SELECT value FROM json_each(?))",
        (f"[{wanted}]",),
    )
    for signal_id, line_digest in rows:
        found.setdefault(signal_id, set()).add(line_digest)
    return found
