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
    from collections.abc import Mapping, Sequence

SUBJECT_MAX = 72
COLUMNS = 100  # of a record's one-line description
BODY_MAX = 2_000
TRAILERS = ("signal", "thread", "memory", "audit", "wu", "agent", "session", "via")
SCISSORS = "- >8 -"  # git ignores text and trailers below `# ---- >8 ----`


def of_signal(author: str, sender: str, to: Sequence[str], record: Mapping[str, object]) -> CommitMessage:
    """Return the commit message of a signal.

    Args:
        author: The commit's author, `Name <email>`.
        sender: The sender's display name.
        to: Display names of the recipients; empty for a broadcast.
    """
    message = str(record["message"])
    intent = str(record.get("intent") or "INFO")
    first = sanitize(message.strip().split("\n", 1)[0].strip())
    head = f"{sanitize(sender)} → {sanitize(several(to)) or 'all'}: " + (
        "" if intent == "INFO" else intent + " "
    )
    trailers = [("Signal", str(record["signal_id"]))]
    trailers += pick(record, ("Thread", "thread_id"), ("WU", "wu_id"), ("Agent", "sender_identity"),
                     ("Session", "sender_session"), ("Via", "via"))  # fmt: skip
    return CommitMessage(author, cut(head + first, SUBJECT_MAX), body(message), trailers)


def of_audit(author: str, sender: str, past: str, record: Mapping[str, object]) -> CommitMessage:
    """Return the commit message of an audit record: a session passed a closed gate.

    Args:
        author: The commit's author, `Name <email>`.
        sender: The session's display name.
        past: What blocked the gate, such as `2 unread signals`.
    """
    reason = str(record["reason"])
    first = sanitize(reason.strip().split("\n", 1)[0].strip())
    about = str(record.get("wu_id") or record.get("initiative_id") or "")
    head = f"{sanitize(sender)} passes the {record['action']} of {sanitize(about)} with {past}: "
    ids = record.get("signal_ids")
    named = "\n".join(map(str, ids)) if isinstance(ids, list) else ""
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


def pick(record: Mapping[str, object], *fields: tuple[str, str]) -> list[tuple[str, str]]:
    """Return trailers for those fields of a record that are not empty."""
    return [(key, sanitize(str(record[field]))) for key, field in fields if record.get(field)]


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


def describe(entry: Mapping[str, object]) -> str:
    """Describe a record in one line, sanitized for terminals."""
    sender = str(
        entry.get("sender_name") or entry.get("sender_identity") or entry.get("reader_identity") or "?"
    )
    if entry["kind"] == "signal":
        names = entry.get("recipient_names")
        to = several([str(each) for each in names]) if isinstance(names, list) else ""
        intent = "" if entry.get("intent") in (None, "INFO") else f"{entry['intent']} "
        message = str(entry.get("message", "")).strip().split("\n", 1)[0]
        return cut(sanitize(f"{sender} → {to or 'all'}: {intent}{message}"), COLUMNS)
    if entry["kind"] == "node":
        first = str(entry.get("content", "")).strip().split("\n", 1)[0]
        return cut(sanitize(f"{sender} notes: {entry.get('type')} {first}"), COLUMNS)
    if entry["kind"] == "audit":
        ids = entry.get("signal_ids")
        count = len(ids) if isinstance(ids, list) else 0
        about = entry.get("wu_id") or entry.get("initiative_id")
        past = f"{sender} passes the {entry.get('action')} of {about} with {count} signal{'' if count == 1 else 's'}"
        return cut(sanitize(f"{past}: {entry.get('reason')}".replace("\n", " ")), COLUMNS)
    if entry["kind"] == "receipt":
        return sanitize(f"{sender} read {entry['signal_id']}")
    verb = {"start": "starts", "end": "ends"}.get(str(entry.get("event")), "changes")
    about = [str(entry[field]) for field in ("agent_identity", "wu_id", "lane") if entry.get(field)]
    return sanitize(
        f"{entry.get('display_name') or sender} {verb}" + (f" ({', '.join(about)})" if about else "")
    )
