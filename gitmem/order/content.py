"""The content of the lines of one signal id, and which of these lines a reply answers.

A receipt or a reply names the digest of the line that its writer had seen. It counts once the log has a line with this
digest under the id, in either order of arrival.
"""

from __future__ import annotations

from ..log.lines import content_without_time
from ..records import KEYED, is_forgotten
from ..text.digests import hash_function_for, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ..records.record_types import ShownSignal, SignalFields, SignalRecord

LOCAL = "local"  # the origin of signals that no importer wrote

# Texts of notices, which depend on nothing but their key. `idempotency_key` is the kind, a space and the key.
OVERLAP, ESCALATION = (
    "overlap",
    "escalation",
)  # their keys begin with a digest and a space, which the texts leave out
NOTICES = {
    "completion": "{} is done.",
    OVERLAP: "The branches {}. Agree on who changes what before you merge; `gitmem overlap` shows more.",
    ESCALATION: "The task {}. `gitmem task list --stuck` shows why, and how to go on.",
}
STOP = "Please stop"  # begins the signal that a task is canceled
ANNOUNCER = "gitmem"  # in the place of the sender in the key of a notice's id
OF_SENDER = ("sender_identity", "via")  # of a notice they may differ: whoever sends it, it is the same


# The kinds of signal in a thread; the first is the default.
INTENTS = ("INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT")
ASKS = ("PROPOSE", "COUNTER")  # intents that ask for decisions
DECISIONS = ("AGREE", "REJECT", "COUNTER")


def asks(record: SignalRecord | ShownSignal) -> bool:
    """Return whether a signal asks its recipients, or the parties of its thread, for a decision."""
    return bool(record.get("requires_ack")) or record["intent"] in ASKS


def check_intent(name: str) -> str:
    """Return an intent in upper case.

    Raises:
        UsageError: It is not one of INTENTS.
    """
    upper = name.upper()
    if upper not in INTENTS:
        from ..errors import UsageError
        from ..text.sanitize import sanitize

        raise UsageError(
            f"Invalid intent: {sanitize(upper)}. Nothing was written.",
            hint=f"Choose from {', '.join(INTENTS)}.",
            code="bad-intent",
            suggestions=[each for each in INTENTS if each[:1] == upper[:1]],
        )
    return upper


def may_contradict(record: SignalRecord) -> bool:
    """Return whether a signal names a task, or may say that a work unit is done: see `task_records`."""
    return bool(
        record.get("task_id")
        or record.get("delegation_id")
        or (record.get("idempotency_key") and not record["recipients"])
    )


def has_conflict(fields: ShownSignal) -> bool:
    """Return whether a signal is displayed as one of several conflicting lines. No command answers these."""
    return "conflict" in fields


def notice_text(kind: str, key: str) -> str:
    """Return the text of a notice."""
    return NOTICES[kind].format(key.partition(" ")[2] if kind in (OVERLAP, ESCALATION) else key)


def is_notice(record: SignalRecord | SignalFields) -> bool:
    """Return whether a signal is a notice: its text and its id are functions of its key alone."""
    kind, _, key = (record.get("idempotency_key") or "").partition(" ")
    if kind not in NOTICES or record["message"] != notice_text(kind, key):
        return False
    from ..records.ids import keyed_id

    return record["signal_id"] == keyed_id("sig", ANNOUNCER, kind, key)


def keyed_content(record: SignalRecord | SignalFields) -> tuple[str, ...]:
    """Return the values that must be equal in two signals with one idempotency key; see `kinds.Known`."""
    # Without a thread id, the signal's id names the thread.
    missing = {"thread_id": record["signal_id"], "origin": LOCAL}
    left_out = OF_SENDER if is_notice(record) else ()
    return tuple(
        str(record.get(field) or missing.get(field) or "")
        for field in KEYED["signal"]
        if field not in left_out
    )


def is_keyed(record: SignalRecord) -> bool:
    """Return whether a signal's id comes from an idempotency key. Only then may different lines be one signal."""
    key = record.get("idempotency_key")
    if not key:
        return False
    from ..records.ids import own_id

    return record["signal_id"] == own_id("sig", record.get("writer") or "", record["sender_identity"], key)


def content_of(record: SignalRecord | None, line_digest: bytes) -> bytes:
    """Return a key of a line's content. Lines of one id with different keys conflict.

    The index stores it: after any other change here than of the keyed fields, raise the version of `views.MAIL`.

    Args:
        record: The signal; None if this version can't read it.
        line_digest: The digest of its line, 32 bytes.
    """
    # Without its text a line is equal to no other one: else a sender could make one signal of two that differ.
    if record is None or is_forgotten(record) or not (is_keyed(record) or is_notice(record)):
        return line_digest
    return sha256(
        repr((record["idempotency_key"], keyed_content(record))).encode("utf-8", "surrogatepass")
    ).digest()


def digest_bytes(line: bytes) -> bytes:
    """Return the digest of a line as 32 bytes."""
    return hash_function_for(1)(content_without_time(line)).digest()


def is_imported(record: SignalRecord) -> bool:
    """Return whether an importer wrote the record. Such a reply may lack a digest."""
    return record["origin"] != LOCAL


def answers_a_line(
    answered: str | None, given: str | None, origin: str | None, digests: Mapping[str, Collection[bytes]]
) -> bool:
    """Return whether a signal answers nothing, or a line that exists.

    Args:
        answered: The id that it answers.
        given: The digest of the answered line.
        origin: Where the signal was written; None for here.
        digests: The digests of the lines of each answered id.
    """
    if not answered:
        return True
    if not given:
        return origin not in (None, LOCAL)
    return bytes.fromhex(given) in digests.get(answered, ())
