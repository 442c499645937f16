"""Conversion of LumenFlow's nodes and relations to lines of the log.

A line has the time in its file, and a sender that does not depend on who imports it: the same files give the same
bytes on every clone, so importing them again adds nothing.
"""

from __future__ import annotations

from ... import records
from ...commit_message import sanitize
from ...errors import UsageError
from ...log.lines import format_at
from ...memory import node_fields
from ...records import ids
from . import read_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Given = Mapping[str, object]

SENDER = "lumenflow:import:memory"
ACCESSES_MAX = (
    100  # of a node: at this count its score is 1.46 times that of an unread one, at 1,000 it is 1.69 times
)
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


class ConvertedLines:
    """The result of converting a line.

    Attributes:
        id: The id of its subject.
        line: The line for the log.
        at: Its time, in microseconds since the epoch.
        more: Further lines that belong to it.
        remarks: Values outside their usual field.
    """

    def __init__(self, id: str, line: bytes, at: int) -> None:
        self.id = id
        self.line = line
        self.at = at
        self.more: list[bytes] = []
        self.remarks: list[str] = []


def node(given: Given, *, allow_secret: bool = False) -> ConvertedLines:
    """Return a node. Values without a field in the log stay in its metadata.

    Raises:
        UsageError: The log can't accept it (RecordError, SecretError).
    """
    at = time_of(given, "created_at")
    remarks: list[str] = []
    metadata = _metadata(given)
    fields: dict[str, object] = {name: given.get(name) for name in ("id", "type", "lifecycle", "content")}
    fields |= {"schema_version": "A2A.V1", "sender_identity": SENDER}
    for name in ("wu_id", "session_id"):
        _move(given, name, name, fields, remarks, metadata)
    for name in ("priority", "lane", "summarized_into"):
        _move(metadata, name, name, fields, remarks)
    _tags(given, fields, metadata, remarks)
    _status(fields, metadata, remarks)
    if given.get("updated_at") is not None:
        updated = read_files.micros(given["updated_at"])
        if updated is None:
            _add_to_metadata(metadata, "updated_at", given["updated_at"])
            remarks.append("its updated_at is not a time; it is kept in the metadata")
        else:
            fields["updated_at"] = format_at(updated)
    count, last = _accesses(metadata, remarks)
    made = ConvertedLines(str(given.get("id")), b"", at)
    older = _replaced(made.id, metadata, remarks)
    fields["metadata"] = metadata
    made.line = records.line("node", at, fields, allow_secret=allow_secret)
    made.more = [_supersedes(made.id, each, at) for each in older]
    made.more += [_access(made.id, number, at) for number in range(1, count)]
    if count:
        made.more.append(_access(made.id, 0, last if last is not None else at))
    made.remarks = remarks
    return made


def time_of(given: Given, name: str, otherwise: int | None = None) -> int:
    """Return a time of the object, in microseconds since the epoch.

    Raises:
        UsageError: It is invalid, or missing without `otherwise`.
    """
    found = read_files.micros(given.get(name))
    if found is None and (otherwise is None or given.get(name) is not None):
        what = "is not a time since 1970" if given.get(name) is not None else "is missing"
        raise UsageError(f"Its {name} {what}. Nothing was written.", code="invalid-record")
    return found if found is not None else int(otherwise or 0)


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


def _move(
    given: Given,
    name: str,
    field: str,
    fields: dict[str, object],
    remarks: list[str],
    metadata: dict[str, object] | None = None,
) -> None:
    """Move a value to a field if it fits; else leave it in the metadata, with a remark."""
    value = given.get(name)
    if value is None or value == "":
        return
    if records.fits("node", field, value):
        fields[field] = value
        if metadata is None and isinstance(given, dict):
            del given[name]
        return
    remarks.append(f"its {name} {sanitize(str(value))[:40]} is not valid here; it is kept in the metadata")
    if metadata is not None:
        _add_to_metadata(metadata, name, value)


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
    if status not in node_fields.STATUSES:
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
    return min(count, ACCESSES_MAX), read_files.micros(access.get("last_accessed_at"))


def _access(id: str, number: int, at: int) -> bytes:
    """Return the line of one read: the last (0), or an earlier one, with the node's time as its own is unknown."""
    return records.line(
        "access",
        at,
        {
            "schema_version": "A2A.V1",
            "id": ids.keyed_id("access", "lumenflow", id, str(number or format_at(at))),
            "node_ids": [id],
            "reader_identity": SENDER,
        },
    )


def _replaced(id: str, metadata: dict[str, object], remarks: list[str]) -> list[str]:
    """Return the nodes that `replaces` in the metadata names; LumenFlow writes it for an indexed file that changed."""
    given = metadata.get("replaces")
    found = [each for each in (given if isinstance(given, list) else [given]) if each is not None]
    if all(isinstance(each, str) and ids.is_id("mem", each) and each != id for each in found):
        metadata.pop("replaces", None)
        return list(dict.fromkeys(map(str, found)))
    remarks.append("its replaces is not the id of another node; it is kept in the metadata")
    return []


def _supersedes(id: str, older: str, at: int) -> bytes:
    """Return the line that says which node this one replaces."""
    return records.line(
        "relation",
        at,
        {
            "schema_version": "A2A.V1",
            "id": ids.keyed_id("rel", "lumenflow", id, "supersedes", older),
            "from_id": id,
            "to_id": older,
            "type": "supersedes",
            "sender_identity": SENDER,
        },
    )


def relation(given: Given, times: Mapping[str, int], *, allow_secret: bool = False) -> ConvertedLines:
    """Return a relation between nodes. Without a start time it is as old as the younger of them.

    Raises:
        UsageError: The log can't accept it (RecordError, SecretError), or it relates a node to itself.
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
    fields = {
        "schema_version": "A2A.V1",
        "id": ids.keyed_id("rel", "lumenflow", *relation_key),
        "from_id": given.get("from_id"),
        "to_id": given.get("to_id"),
        "type": given.get("type"),
        "metadata": {**rest, **(metadata if isinstance(metadata, dict) else {})},
        "sender_identity": SENDER,
    }
    made = ConvertedLines("\n".join(relation_key), b"", at)
    made.line = records.line("relation", at, fields, allow_secret=allow_secret)
    return made
