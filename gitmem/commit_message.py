"""Messages of the log's commits, such as `Planck → Curie: PROPOSE Approve this boundary?`.

Texts come from peers. Everything that `git log` shows in a terminal is sanitized (`text/sanitize.py`), and no line of a
text can imitate one of our trailers.
"""

from __future__ import annotations

from .log.lines import SUBJECT_MAX as SUBJECT_MAX
from .log.lines import CommitMessage
from .text.addresses import shortened, words_of
from .text.sanitize import sanitize as sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .records.record_types import AuditFields, SignalRecord

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
    trailers += pick(
        record,
        ("Task", "task_id"),
        ("Thread", "thread_id"),
        ("WU", "wu_id"),
        ("Role", "target_role"),
        ("Agent", "sender_identity"),
        ("Session", "sender_session"),
        ("Via", "via"),
    )
    return CommitMessage(author, cut(head + first, SUBJECT_MAX), body(message), trailers)


def of_forget(author: str, sender: str, id: str, reason: str) -> CommitMessage:
    """Return the commit message of a record by which a sender forgets texts of its own.

    Args:
        author: The commit's author, `Name <email>`.
        sender: The sender's display name.
        id: What was named.
    """
    head = f"{sanitize(sender)} forgets the texts of {sanitize(id)}: {sanitize(reason)}"
    return CommitMessage(author, cut(head, SUBJECT_MAX), body(reason))


def of_trust(author: str, sender: str, event: str, other: str) -> CommitMessage:
    """Return the commit message of a record about another writer.

    Args:
        author: The commit's author, `Name <email>`.
        sender: The sender's display name.
    """
    return CommitMessage(author, cut(f"{sanitize(sender)} {_trust(event, other)}", SUBJECT_MAX), "")


def _trust(event: str, other: str) -> str:
    said = {
        "grant": "lets {} act as its writer",
        "accept": "goes on as {}",
        "endorse": "vouches for {} with an SSH key",
    }
    return said.get(event, "says something of {}").format(other)


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
    """Return a text cut to `longest` characters, addresses without their writer; `…` marks the cut."""
    return clip(shortened(text, words_of), longest)


def clip(text: str, longest: int) -> str:
    """Return a text cut to `longest` characters; `…` marks the cut."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def describe(entry: Mapping[str, Any]) -> str:
    """Describe a record in one line, sanitized for terminals.

    Args:
        entry: The record as it is shown, with its kind.
    """
    sender = (
        entry.get("sender_name") or entry.get("sender_identity") or entry.get("reader_identity") or "somebody"
    )
    said, keeps = DESCRIBED.get(entry["kind"], _other)(entry), False
    if entry["kind"] == "session":
        sender, keeps = entry["display_name"], not entry.get("summary")
    text = f"{sender} {said.strip()}".replace("\n", " ")
    return sanitize(text if keeps else cut(text, COLUMNS))


def _signal(entry: Mapping[str, Any]) -> str:
    intent = "" if entry["intent"] == "INFO" else f"{entry['intent']} "
    return f"→ {several(entry.get('recipient_names', ())) or 'all'}: {intent}{_first_line(entry['message'])}"


def _session(entry: Mapping[str, Any]) -> str:
    verb = {"start": "starts", "end": "ends"}.get(entry["event"], "changes")
    details = [each for each in (entry.get("agent_identity"), entry.get("wu_id"), entry.get("lane")) if each]
    said = f": {entry['summary']}" if entry.get("summary") else ""
    return verb + (f" ({', '.join(details)})" if details else "") + said


def _audit(entry: Mapping[str, Any]) -> str:
    if entry.get("past"):
        return f"{_verb(entry['action'])} {entry['past']}: {entry['reason'].rpartition(' (')[0] or entry['reason']}"
    count, on = len(entry.get("signal_ids", ())), entry.get("wu_id") or entry.get("initiative_id")
    return f"passes the {entry['action']} of {on} with {count} signal{'' if count == 1 else 's'}: {entry['reason']}"


def _task(entry: Mapping[str, Any]) -> str:
    to = entry.get("requested_to") or entry.get("agent") or entry.get("target_role")
    return f"→ {to}: {entry['purpose'].upper()} {_first_line(entry['message'])}"


def _task_event(entry: Mapping[str, Any]) -> str:
    event = entry["event"]
    verb = entry.get("state") or "reports on" if event == "status" else _THIRD_PERSON.get(event, f"{event}s")
    said = _first_line(entry.get("message") or entry.get("reason") or "")
    return f"{verb} {entry['task_id']}" + (f": {said}" if said else "")


def _claim(entry: Mapping[str, Any]) -> str:
    paths = several(entry.get("paths", ())) or entry["claim_id"]
    return f"{entry['event']}s {paths}" + (f": {entry['reason']}" if entry.get("reason") else "")


def _patch(entry: Mapping[str, Any]) -> str:
    done = next((each for each in ("deleted", "archived", "closed") if entry.get(each)), "changed")
    return f"{done} {several(entry['node_ids'])}" + (f": {entry['reason']}" if entry.get("reason") else "")


def _relation(entry: Mapping[str, Any]) -> str:
    verb = "unlinks" if entry.get("removed") else "links"
    return f"{verb} {entry['from_id']} and {entry['to_id']}: {entry['type']}"


_THIRD_PERSON = {"launch": "launches", "artifact": "adds a result to", "message": "writes about"}
# What follows the writer's name in the description of a record of each kind.
DESCRIBED: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "signal": _signal, "session": _session, "audit": _audit, "task": _task, "task_event": _task_event, "claim": _claim,
    "patch": _patch, "relation": _relation,
    "receipt": lambda entry: f"read {entry['signal_id']}",
    "node": lambda entry: f"notes: {entry['type']} {_first_line(entry['content'])}",
    "access": lambda entry: f"read {several(entry.get('node_ids', ()))}",
    "commit": lambda entry: f"made commit {entry['commit'][:12]}",
    "attestation": lambda entry: f"writes attestation {entry['number']} in clone {entry['clone']}",
    "forget": lambda entry: f"forgets the texts of {entry['about']}: {entry['reason']}",
    "trust": lambda entry: _trust(entry["event"], entry["other"]),
}  # fmt: skip


def _other(entry: Mapping[str, Any]) -> str:
    return f"records a {entry['kind'].replace('_', ' ')}"


def _verb(action: str) -> str:
    return "releases" if action == "claim-release" else "passes"


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
