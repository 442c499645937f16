"""Audits: records that a caller passed a rule, with the reason. They change no state."""

from __future__ import annotations

from .. import commit_message, records
from ..index import entities
from ..outcome import Struct
from ..records.ids import unit_key
from ..text.sanitize import first_of
from ..text.strict_json import json_list
from . import waiting_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from ..log.lines import CommitMessage
    from ..records.record_types import AuditFields, AuditRecord
    from ..store import Store
    from .caller import Caller

GATE, CHECKPOINT_GATE = "gate", "checkpoint-gate"  # the rules
CLAIM, CLAIM_RELEASE = (
    "claim",
    "claim-release",
)  # the guard of claims, and the release of somebody else's claim
PATHS_SHOWN = 3


class Audit(Struct):
    """An audit that is not recorded yet: its id, its line, and the message of its commit."""

    id: str
    line: tuple[str, bytes]
    message: CommitMessage


def prepare(
    store: Store,
    caller: Caller,
    action: str,
    past: str,
    reason: str,
    *,
    wu: str | None,
    initiative: str | None = None,
    signal_ids: Sequence[str] = (),
) -> Audit:
    """Return an audit to record, together with what it allows.

    Args:
        action: The rule.
        past: What is passed, such as `2 unread signals`, for the commit message.
        reason: The reason, in the caller's words.
        signal_ids: The signals that blocked.

    Raises:
        UsageError: The reason is invalid (RecordError, SecretError).
    """
    audit_id = store.new_id("audit")
    fields: AuditFields = {
        "audit_id": audit_id,
        "action": action,
        "reason": reason,
        "reader_identity": caller.reader,
        "signal_ids": list(signal_ids),
        "wu_id": wu,
        "initiative_id": initiative,
        "sender_identity": caller.reader,
        "sender_session": caller.session_id,
        "sender_name": caller.name,
    }
    line = store.line("audit", fields)
    message = commit_message.of_audit(caller.author, caller.name or caller.reader, past, fields)
    return Audit(audit_id, line, message)


def passed_at_gate(store: Store, caller: Caller, wu: str | None) -> dict[str, str]:
    """Return the signals on a work unit that the caller passed at the gate with a reason, with the ids of the audits.

    Only the caller's own audits count: an address names its writer, so a peer can't open the gate of somebody here.
    """
    found: dict[str, str] = {}
    for audit in of_readers(store, caller.ids):
        if unit_key(audit.get("wu_id")) == unit_key(wu):
            found.update(dict.fromkeys(audit.get("signal_ids") or (), audit["audit_id"]))
    return found


def of_readers(store: Store, readers: Sequence[str], *, since: str = "") -> Iterator[AuditRecord]:
    """Return the audits of these readers.

    Args:
        since: The earliest time of an audit, as lines have it.
    """
    of = f"l.kind = 'audit' AND l.at >= ? AND json_extract(l.body, '$.reader_identity') {entities.AMONG}"
    return _read(entities.bodies(store.db(), of, (since, json_list(readers))))


def of_action(
    db: sqlite3.Connection, action: str, since: str, until: str, most: int
) -> Iterator[AuditRecord]:
    """Return the newest audits of a rule between two times."""
    condition = "l.kind = 'audit' AND l.at >= ? AND l.at <= ? AND json_extract(l.body, '$.action') = ?"
    lines = entities.bodies(db, condition, (since, until, action), order="l.at DESC", limit=most)
    return _read(list(lines))


def newest(db: sqlite3.Connection, most: int, most_bytes: int) -> list[AuditRecord]:
    """Return the newest audits of the log.

    Args:
        most: How many are read, and how many bytes of lines: peers may have written any number.
    """
    kept: list[bytes] = []
    for line in entities.bodies(db, "l.kind = 'audit'", (), order="l.at DESC, l.body DESC", limit=most):
        most_bytes -= len(line)
        kept += [line] if most_bytes >= 0 else []
    return [*_read(kept)]


def _read(lines: Iterable[bytes]) -> Iterator[AuditRecord]:
    return (audit for line in lines if (audit := records.read_kind("audit", line)) is not None)


def claim_ids(audit: AuditFields) -> list[str]:
    """Return the claims that an audit of claims is about; its reason ends with their ids."""
    _, _, named = audit["reason"].rpartition(" (")
    return named.rstrip(")").split(", ")


def past_claims(db: sqlite3.Connection, audit: AuditFields) -> str:
    """Return which claims were passed or released, such as `Curie's claim on src/**`; their ids if they are not in this log."""
    ids = claim_ids(audit)
    line = waiting_work.line_of_claim(db, ids[0])
    claim = records.read_kind("claim", line) if line is not None else None
    if claim is None:
        return first_of(ids, 1, shown=lambda id: id[:80])
    more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
    paths = list(claim["paths"])
    further = f" and {len(paths) - PATHS_SHOWN} more paths" if len(paths) > PATHS_SHOWN else ""
    return f"{claim.get('sender_name') or claim['sender_identity']}'s claim on {', '.join(paths[:PATHS_SHOWN])}{further}{more}"
