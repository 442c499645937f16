"""Read LumenFlow's files, and convert its nodes, relations and delegations to lines of the log."""

from __future__ import annotations

import os

from .. import records
from ..commit_message import sanitize
from ..errors import UsageError
from ..log.lines import format_at
from ..order.node import STATUSES
from ..outcome import command
from ..records import ids
from .json_lines import ConvertedLines, micros_of, put, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .json_lines import Given


# In reading order: receipts name signals, relations name nodes.
NAMES = {
    "nodes": "memory.jsonl",
    "relations": "relationships.jsonl",
    "signals": "signals.jsonl",
    "receipts": "signal-receipts.jsonl",
    "delegations": "delegation-registry.jsonl",
}


def find_folder(folder: str) -> str:
    """Return the folder with the files.

    Args:
        folder: That folder, or one that contains it: a project or its `.lumenflow`.

    Raises:
        UsageError: `no-such-folder`, or `nothing-to-import` if it has none of the files.
    """
    shown = sanitize(os.path.normpath(folder))[:200]
    if not os.path.isdir(folder):
        what = "is not a folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(
            f"{shown} {what}. Nothing was written.",
            hint="Name the project's folder, or the folder .lumenflow/memory in it.",
            code="no-such-folder",
            next=[command("gitmem", "import", "lumenflow", ".")],
        )
    for below in ((".lumenflow", "memory"), ("memory",), (), (".lumenflow", "state"), ("state",)):
        found = os.path.normpath(os.path.join(folder, *below))
        if any(os.path.isfile(os.path.join(found, name)) for name in NAMES.values()):
            return found
    raise UsageError(
        f"No LumenFlow memory in {shown}. Nothing was written.",
        hint=f"Its files are {', '.join(NAMES.values())}, in .lumenflow/memory and .lumenflow/state of the checkout where it ran: "
        "each worktree has its own.",
        code="nothing-to-import",
        next=["gitmem mem list", "git worktree list"],
    )


def file_of(folder: str, kind: str) -> str:
    """Return the path of a kind's file; the registry of delegations is beside the folder of the memory."""
    path = os.path.join(folder, NAMES[kind])
    if kind == "delegations" and not os.path.isfile(path) and os.path.basename(folder) == "memory":
        return os.path.join(os.path.dirname(folder), "state", NAMES[kind])
    return path


def other_files(folder: str) -> list[str]:
    """Return the other files of the folder, which are not read."""
    return sorted(name for name in os.listdir(folder) if name not in NAMES.values() and name[:1] != ".")


SENDER = "lumenflow:import:memory"
# Of a node: at this count its score is 1.46 times that of an unread one, at 1,000 it is 1.69 times.
ACCESSES_MAX = 100
_OWN = (
    "id",
    "type",
    "lifecycle",
    "content",
    "created_at",
    "updated_at",
    "wu_id",
    "session_id",
    "metadata",
    "tags",
)
_REASONS = ("archive_reason", "delete_reason", "close_reason", "reason")


def convert_node(given: Given) -> ConvertedLines:
    """Return a node. Values without a field in the log stay in its metadata.

    Raises:
        UsageError: It is invalid.
    """
    at = time_of(given, "created_at")
    remarks: list[str] = []
    metadata = _metadata(given)
    fields: dict[str, object] = {name: given.get(name) for name in ("id", "type", "lifecycle", "content")}
    fields["sender_identity"] = SENDER
    beside: dict[str, object] = {}
    for name in ("wu_id", "session_id"):
        put("node", fields, beside, remarks, name, given.get(name))
    for name, value in beside.items():
        _add_to_metadata(metadata, name, value)
    for name in ("priority", "lane", "summarized_into"):
        put("node", fields, metadata, remarks, name, metadata.get(name))
        if name in fields:
            del metadata[name]
    _tags(given, fields, metadata, remarks)
    _status(fields, metadata, remarks)
    if given.get("updated_at") is not None:
        updated = micros_of(given["updated_at"])
        if updated is None:
            _add_to_metadata(metadata, "updated_at", given["updated_at"])
            remarks.append("its updated_at is not a time; it is kept in the metadata")
        else:
            fields["updated_at"] = format_at(updated)
    count, last = _accesses(metadata, remarks)
    made = ConvertedLines(str(given.get("id")), "node", at, fields, remarks=remarks)
    named = [
        *((made.id, "supersedes", each) for each in _named(made.id, "replaces", metadata, remarks)),
        *((each, "blocks", made.id) for each in _named(made.id, "blocked_by", metadata, remarks)),
    ]
    fields["metadata"] = metadata
    made.more = [_relation(*ends, at) for ends in named]
    made.more += [_access(made.id, number, at) for number in range(1, count)]
    if count:
        made.more.append(_access(made.id, 0, last if last is not None else at))
    return made


def _metadata(given: Given) -> dict[str, object]:
    """Return the metadata, with the fields beside it that LumenFlow would drop on its next write."""
    own = given.get("metadata")
    if own is not None and not isinstance(own, dict):
        raise UsageError("Its metadata is not an object. Nothing was written.", code="invalid-record")
    found: dict[str, object] = dict(own or {})
    for name, value in given.items():
        if name not in _OWN:
            _add_to_metadata(found, name, value)
    return found


def _add_to_metadata(metadata: dict[str, object], name: str, value: object) -> None:
    """Add a value from beside the metadata to it, without replacing another value."""
    metadata[f"{name} (beside the metadata)" if name in metadata else name] = value


def _tags(given: Given, fields: dict[str, object], metadata: dict[str, object], remarks: list[str]) -> None:
    tags = given.get("tags")
    if tags is None:
        return
    every = tags if isinstance(tags, list) else [tags]
    clean = [each.strip() if isinstance(each, str) else each for each in every]
    fit = [each for each in clean if records.fits("node", "tags", [each])]
    if fit:
        fields["tags"] = list(dict.fromkeys(fit))
    unfit = [each for each in clean if each not in fit and each != ""]
    if unfit:
        _add_to_metadata(metadata, "tags", unfit)
        remarks.append("some of its tags are not valid here; they are kept in the metadata")


def _status(fields: dict[str, object], metadata: dict[str, object], remarks: list[str]) -> None:
    """Move status, sensitivity and reason from the metadata to their fields."""
    sensitive = metadata.get("sensitive")
    if isinstance(sensitive, bool):
        fields["sensitive"] = sensitive
        del metadata["sensitive"]
    elif sensitive is not None:
        remarks.append("its sensitive is neither true nor false; it is kept in the metadata")
    status = metadata.get("status")
    if status not in STATUSES:
        if status is not None:
            remarks.append(f"its status {sanitize(str(status))[:40]} is unknown; it is kept in the metadata")
        return
    del metadata["status"]
    if status == "active":
        return
    fields[str(status)] = True
    decay = metadata.get("decay")
    reasons = {name: metadata[name] for name in _REASONS if name in metadata}
    if isinstance(decay, dict) and not reasons:
        reasons = {"": decay.get("reason")}
    for name, value in reasons.items():
        if records.fits("node", "reason", value):
            fields["reason"] = value
            metadata.pop(name, None)
            return


def _accesses(metadata: dict[str, object], remarks: list[str]) -> tuple[int, int | None]:
    """Return how often and when a node was last read: LumenFlow keeps a count, gitmem one event for each read."""
    access = metadata.get("access")
    if access is None:
        return 0, None
    count = access.get("count") if isinstance(access, dict) else None
    if not isinstance(access, dict) or type(count) is not int or count < 0:
        remarks.append("its access is not a count; it is kept in the metadata")
        return 0, None
    rest = {name: value for name, value in access.items() if name not in ("count", "last_accessed_at")}
    del metadata["access"]
    if count > ACCESSES_MAX:
        rest["count"] = count
        remarks.append(f"it was read {count} times, and {ACCESSES_MAX} of them count")
    if rest:
        metadata["access"] = rest
    return min(count, ACCESSES_MAX), micros_of(access.get("last_accessed_at"))


def _access(id: str, number: int, at: int) -> bytes:
    """Return the line of one read: the last (0), or an earlier one, with the node's time as its own is unknown."""
    return records.line(
        "access",
        at,
        {
            "id": ids.keyed_id("access", "lumenflow", id, str(number or format_at(at))),
            "node_ids": [id],
            "reader_identity": SENDER,
        },
    )


def _named(id: str, name: str, metadata: dict[str, object], remarks: list[str]) -> list[str]:
    """Return the other nodes that an entry of the metadata names, and remove it.

    LumenFlow writes `replaces` for an indexed file that changed; `blocked_by` stands for relations.
    """
    given = metadata.get(name)
    found = [each for each in (given if isinstance(given, list) else [given]) if each is not None]
    if all(isinstance(each, str) and ids.is_id("mem", each) and each != id for each in found):
        metadata.pop(name, None)
        return list(dict.fromkeys(map(str, found)))
    remarks.append(f"its {name} is not the id of another node; it is kept in the metadata")
    return []


def _relation(from_id: str, type: str, to_id: str, at: int) -> bytes:
    """Return the line of a relation that the metadata of a node names."""
    return records.line(
        "relation",
        at,
        {
            "id": ids.keyed_id("rel", "lumenflow", from_id, type, to_id),
            "from_id": from_id,
            "to_id": to_id,
            "type": type,
            "sender_identity": SENDER,
        },
    )


def convert_relation(given: Given, times: Mapping[str, int]) -> ConvertedLines:
    """Return a relation between nodes. Without a start time it is as old as the younger of them.

    Raises:
        UsageError: A time is invalid, or it relates a node to itself.
    """
    relation_key = [str(given.get(name) or "") for name in ("from_id", "type", "to_id")]
    if relation_key[0] == relation_key[2]:
        raise UsageError("It relates a node to itself. Nothing was written.", code="invalid-record")
    at = time_of(given, "created_at", max(times.get(relation_key[0], 0), times.get(relation_key[2], 0)))
    metadata = given.get("metadata")
    rest = {
        name: value
        for name, value in given.items()
        if name not in ("from_id", "type", "to_id", "created_at", "metadata")
    }
    if metadata is not None and not isinstance(metadata, dict):
        rest["metadata"] = metadata
    fields: dict[str, object] = {
        "id": ids.keyed_id("rel", "lumenflow", *relation_key),
        "from_id": given.get("from_id"),
        "to_id": given.get("to_id"),
        "type": given.get("type"),
        "metadata": {**rest, **(metadata if isinstance(metadata, dict) else {})},
        "sender_identity": SENDER,
    }
    return ConvertedLines("\n".join(relation_key), "relation", at, fields)


DELEGATION_SENDER = "lumenflow:import:delegation"
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


def merge_delegations(
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


def convert_delegation(first: Given, last: Given) -> ConvertedLines:
    """Return a delegation as a task, with the events of its state.

    Args:
        first: The first line about it.
        last: The fields of all its lines, of which the last ones count.

    Raises:
        UsageError: It is invalid.
    """
    at = time_of(first, "delegatedAt")
    id = first.get("id")
    if not isinstance(id, str) or not 0 < len(id) <= ID_MAX:
        raise UsageError("Its id is missing or not a text of at most 100 characters. Nothing was written.")
    task_id = ids.keyed_id("task", DELEGATION_SENDER, id, format_at(at))
    kept = {name: value for name, value in first.items() if name not in (*_USED, *_CHANGING)}
    fields: dict[str, object] = {
        "task_id": task_id,
        "thread_id": f"thread-{task_id[5:]}",
        "purpose": "delegation",
        "sender_identity": DELEGATION_SENDER,
    }
    made = ConvertedLines(task_id, "task", at, fields)
    for name, given in (
        ("wu_id", "targetWuId"),
        ("lane", "lane"),
        ("requested_role", "requested_role"),
        ("requested_ownership_scope", "requested_ownership_scope"),
    ):
        put("task", fields, kept, made.remarks, name, first.get(given), given=given)
    _put_brief(made, fields, kept, first.get("briefAttestation"))
    fields["message"] = f"{fields.get('wu_id') or id}: delegated in LumenFlow"
    fields["lumenflow"] = {"id": id, **kept}
    _add_events(made, last, at)
    return made


def _put_brief(
    made: ConvertedLines, fields: dict[str, object], kept: dict[str, object], given: object
) -> None:
    """Set the digest of the brief, and what else is known of it."""
    if given is None:
        return
    brief = dict(given) if isinstance(given, dict) else {"value": given}
    if brief.get("algorithm") == "sha256":
        digest = brief.get("promptHash")
        put("task", fields, kept, made.remarks, "brief_digest", digest, given="promptHash")
    kept["briefAttestation"] = given


def _add_events(made: ConvertedLines, last: Given, at: int) -> None:
    """Add the take, and the caller's seal of a delegation that has ended."""
    seen: list[str] = []
    taker, picked = last.get("pickedUpBy"), at
    if last.get("pickedUpAt") is not None or taker is not None:
        picked = max(time_of(last, "pickedUpAt", at), at)
        who = taker if records.fits("task_event", "sender_identity", taker) else DELEGATION_SENDER
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
        content: dict[str, object] = {"event": "seal", "state": state, "sender_identity": DELEGATION_SENDER}
        if status != state:
            content["reason"] = status
        _add_event(made, content, seen, ended)
    elif status == ESCALATED:
        _add_event(
            made, {"event": "escalate", "level": "error", "sender_identity": DELEGATION_SENDER}, seen, ended
        )
    elif status not in (PENDING, None):
        made.remarks.append("its status is unknown here; the delegation stays open")


def _add_event(made: ConvertedLines, content: Mapping[str, object], seen: list[str], at: int) -> str:
    event_id = ids.keyed_id("tev", made.id, str(content["event"]), str(content.get("state") or ""))
    fields = {"event_id": event_id, "task_id": made.id, "after": list(seen), **content}
    made.more.append(records.line("task_event", at, fields))
    return event_id
