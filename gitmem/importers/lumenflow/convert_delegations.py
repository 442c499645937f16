"""Conversion of LumenFlow's registry of delegations to tasks of the log.

The registry has a line for each change of a delegation; the last one has its state. A line of the log depends on the registry
alone, so that importing again, or on another clone, adds only what has changed.
"""

from __future__ import annotations

from ... import records
from ...errors import UsageError
from ...log.lines import format_at
from ...records import ids
from .convert_nodes import ConvertedLines, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Given = Mapping[str, object]

SENDER = "lumenflow:import:delegation"
ID_MAX = 100  # characters
HOUR_MICROS = 3600 * 1_000_000
PENDING, ESCALATED = "pending", "escalated"
STATES = {"completed": "completed", "timeout": "failed", "crashed": "failed"}
_CHANGING = ("status", "completedAt", "pickedUpAt", "pickedUpBy")
_USED = (
    "id",
    "delegatedAt",
    "targetWuId",
    "lane",
    "requested_role",
    "requested_ownership_scope",
    "briefAttestation",
)


def merge(
    lines: Iterable[tuple[int, dict[str, object]]],
) -> tuple[list[tuple[int, dict[str, object], Given]], int]:
    """Return each delegation: the number of its first line, that line, and the fields of all; and how many lines are changes."""
    found: dict[str, tuple[int, dict[str, object], dict[str, object]]] = {}
    repeated = 0
    for number, given in lines:
        id = str(given.get("id"))[: ID_MAX + 1]
        if id in found:
            repeated += 1
            found[id][2].update(given)
        else:
            found[id] = (number, given, dict(given))
    return [(number, first, last) for number, first, last in found.values()], repeated


def task(first: Given, last: Given, *, allow_secret: bool = False) -> ConvertedLines:
    """Return a delegation as a task, with the events of its state.

    Args:
        first: The first line about it.
        last: The fields of all its lines, of which the last ones count.

    Raises:
        UsageError: The log can't accept it (RecordError, SecretError).
    """
    at = time_of(first, "delegatedAt")
    id = first.get("id")
    if not isinstance(id, str) or not 0 < len(id) <= ID_MAX:
        raise UsageError("Its id is missing or not a text of at most 100 characters. Nothing was written.")
    task_id = ids.keyed_id("task", SENDER, id, format_at(at))
    made = ConvertedLines(task_id, b"", at)
    kept = {name: value for name, value in first.items() if name not in (*_USED, *_CHANGING)}
    fields: dict[str, object] = {
        "task_id": task_id,
        "thread_id": f"thread-{task_id[5:]}",
        "purpose": "delegation",
        "sender_identity": SENDER,
    }
    for name, given in (
        ("wu_id", "targetWuId"),
        ("lane", "lane"),
        ("requested_role", "requested_role"),
        ("requested_ownership_scope", "requested_ownership_scope"),
    ):
        _put(made, fields, kept, name, given, first.get(given))
    _put_brief(made, fields, kept, first.get("briefAttestation"))
    fields["message"] = f"{fields.get('wu_id') or id}: delegated in LumenFlow"
    fields["lumenflow"] = {"id": id, **kept}
    made.line = records.line("task", at, fields, allow_secret=allow_secret)
    _add_events(made, last, at)
    return made


def _put(
    made: ConvertedLines,
    fields: dict[str, object],
    kept: dict[str, object],
    name: str,
    given: str,
    value: object,
) -> None:
    """Set a field of the task, or keep a value that does not fit."""
    if value is None or value == "":
        return
    if records.fits("task", name, value):
        fields[name] = value
    else:
        kept[given] = value
        made.remarks.append(f"its {given} is not valid here; it is kept as an additional field")


def _put_brief(
    made: ConvertedLines, fields: dict[str, object], kept: dict[str, object], given: object
) -> None:
    """Set the digest of the brief, and what else is known of it."""
    if given is None:
        return
    brief = dict(given) if isinstance(given, dict) else {"value": given}
    if brief.get("algorithm") == "sha256":
        _put(made, fields, kept, "brief_digest", "promptHash", brief.get("promptHash"))
    kept["briefAttestation"] = given


def _add_events(made: ConvertedLines, last: Given, at: int) -> None:
    """Add the take, and the caller's seal of a delegation that has ended."""
    seen: list[str] = []
    taker, picked = last.get("pickedUpBy"), at
    if last.get("pickedUpAt") is not None or taker is not None:
        picked = max(time_of(last, "pickedUpAt", at), at)
        who = taker if records.fits("task_event", "sender_identity", taker) else SENDER
        if who is not taker:
            made.remarks.append("its pickedUpBy is not valid here; the take is by the importer")
        taken: dict[str, object] = {
            "event": "take",
            "sender_identity": who,
            "until": format_at(picked + HOUR_MICROS),
        }
        seen.append(_add_event(made, taken, seen, picked))
    status = last.get("status")
    ended = max(time_of(last, "completedAt", picked), picked)
    state = STATES.get(status) if isinstance(status, str) else None
    if state is not None:
        content: dict[str, object] = {"event": "seal", "state": state, "sender_identity": SENDER}
        if status != state:
            content["reason"] = status
        _add_event(made, content, seen, ended)
    elif status == ESCALATED:
        _add_event(made, {"event": "escalate", "level": "error", "sender_identity": SENDER}, seen, ended)
    elif status not in (PENDING, None):
        made.remarks.append("its status is unknown here; the delegation stays open")


def _add_event(made: ConvertedLines, content: Mapping[str, object], seen: list[str], at: int) -> str:
    event_id = ids.keyed_id("tev", made.id, str(content["event"]), str(content.get("state") or ""))
    fields = {"event_id": event_id, "task_id": made.id, "after": list(seen), **content}
    made.more.append(records.line("task_event", at, fields))
    return event_id
