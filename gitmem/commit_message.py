"""Messages of the log's commits, such as `Planck → Curie: PROPOSE Approve this boundary?`.

Texts come from peers. Everything that `git log` shows in a terminal is sanitized (`text/sanitize.py`), and no line of a
text can imitate one of our trailers.
"""

from __future__ import annotations

from .log.entry import CommitMessage
from .text.sanitize import is_unsafe as is_unsafe
from .text.sanitize import sanitize as sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .records.record_types import AuditFields, SignalRecord
    from .records.shown_types import AnyShown

SUBJECT_MAX = 72
COLUMNS = 100  # of a record's one-line description
BODY_MAX = 2_000
TRAILERS = ("signal", "thread", "task", "memory", "audit", "wu", "agent", "session", "via", "role")
SCISSORS = "- >8 -"  # git ignores text and trailers below `# ---- >8 ----`


def of_signal(author: str, sender: str, to: Sequence[str], record: SignalRecord) -> CommitMessage:
    """Return the commit message of a signal.

    Args:
        author: The commit's author, `Name <email>`.
        sender: The sender's display name.
        to: Display names of the recipients; empty for a broadcast.
    """
    message, intent = record["message"], record["intent"]
    first = sanitize(_first_line(message).strip())
    head = f"{sanitize(sender)} → {sanitize(several(to)) or 'all'}: " + (
        "" if intent == "INFO" else intent + " "
    )
    trailers = [("Signal", record["signal_id"])]
    trailers += pick(record, ("Task", "task_id"), ("Thread", "thread_id"), ("WU", "wu_id"), ("Role", "target_role"),
                     ("Agent", "sender_identity"), ("Session", "sender_session"), ("Via", "via"))  # fmt: skip
    return CommitMessage(author, cut(head + first, SUBJECT_MAX), body(message), trailers)


def of_audit(author: str, sender: str, past: str, record: AuditFields) -> CommitMessage:
    """Return the commit message of an audit record: a session passed a closed gate.

    Args:
        author: The commit's author, `Name <email>`.
        sender: The session's display name.
        past: What blocked the gate, such as `2 unread signals`.
    """
    reason = record["reason"]
    first = sanitize(_first_line(reason).strip())
    work = record.get("wu_id") or record.get("initiative_id") or ""
    of_work = f" of {sanitize(work)}" if work else ""
    if record["action"].startswith("claim"):
        head = f"{sanitize(sender)} {_verb(record['action'])} {sanitize(past)}: "
    else:
        head = f"{sanitize(sender)} passes the {record['action']}{of_work} with {sanitize(past)}: "
    named = "\n".join(record.get("signal_ids", ()))
    trailers = pick(
        record,
        ("Audit", "audit_id"),
        ("WU", "wu_id"),
        ("Agent", "sender_identity"),
        ("Session", "sender_session"),
    )
    return CommitMessage(
        author, cut(head + first, SUBJECT_MAX), body(f"{reason.strip()}\n\n{named}"), trailers
    )


def several(names: Sequence[str]) -> str:
    """Return names in one line, at most three of them."""
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def pick(record: SignalRecord | AuditFields, *fields: tuple[str, str]) -> list[tuple[str, str]]:
    """Return trailers for those fields of a record that are not empty."""
    return [(key, sanitize(str(value))) for key, field in fields if (value := record.get(field))]


def body(message: str) -> str:
    """Return a message as a commit body: sanitized, and safe from git's trailer, `---` and scissors rules."""
    text = message.replace("\r\n", "\n")
    lines = []
    for line in cut(text, BODY_MAX).split("\n"):
        key = line.lstrip().partition(":")[0].rstrip().lower()
        guard = "    " if key in TRAILERS or line.startswith("---") or SCISSORS in line else ""
        lines.append(guard + sanitize(line, keep="\t").rstrip())
    return "\n".join(lines).strip("\n")


def cut(text: str, longest: int) -> str:
    """Return a text cut to `longest` characters; `…` marks the cut."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def describe(entry: AnyShown) -> str:
    """Describe a record in one line, sanitized for terminals.

    Args:
        entry: The record, with its kind.
    """
    if entry["kind"] == "receipt":
        return sanitize(f"{entry.get('sender_name') or entry['reader_identity']} read {entry['signal_id']}")
    if entry["kind"] == "session":
        verb = {"start": "starts", "end": "ends"}.get(entry["event"], "changes")
        details = [
            each for each in (entry.get("agent_identity"), entry.get("wu_id"), entry.get("lane")) if each
        ]
        said = f": {entry.get('summary')}" if entry.get("summary") else ""
        head = f"{entry['display_name']} {verb}" + (f" ({', '.join(details)})" if details else "")
        return sanitize(cut(head + said, max(COLUMNS, len(head))))
    sender = entry.get("sender_name") or entry["sender_identity"]
    if entry["kind"] == "signal":
        to = several(entry.get("recipient_names", ())) or "all"
        intent = "" if entry["intent"] == "INFO" else f"{entry['intent']} "
        return cut(sanitize(f"{sender} → {to}: {intent}{_first_line(entry['message'])}"), COLUMNS)
    if entry["kind"] == "node":
        return cut(sanitize(f"{sender} notes: {entry['type']} {_first_line(entry['content'])}"), COLUMNS)
    if entry.get("past"):
        reason = (entry["reason"].rpartition(" (")[0] or entry["reason"]).replace("\n", " ")
        return cut(sanitize(f"{sender} {_verb(entry['action'])} {entry['past']}: {reason}"), COLUMNS)
    count = len(entry.get("signal_ids", ()))
    on = entry.get("wu_id") or entry.get("initiative_id")
    past = f"{sender} passes the {entry['action']} of {on} with {count} signal{'' if count == 1 else 's'}"
    return cut(sanitize(f"{past}: {entry['reason']}".replace("\n", " ")), COLUMNS)


def _verb(action: str) -> str:
    return "releases" if action == "claim-release" else "passes"


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
