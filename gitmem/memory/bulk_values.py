"""Limit the size of values in a patch of several nodes: each of perhaps thousands of nodes gets a copy.

docs/format.md, section 11, specifies the rule. Every clone folds by it, so it uses parsed values, never their
bytes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from ..records.record_types import PatchContent, PatchRecord

    Field = Literal["content", "tags", "paths", "metadata"]

FIELDS: tuple[Field, ...] = ("content", "tags", "paths", "metadata")
SIZE_MAX = 128  # of each of these fields, in a patch of several nodes
ENTRY = 16  # added for each entry of a list or an object


def too_large(fields: PatchRecord | PatchContent) -> list[Field]:
    """Return the names of fields that are too large for a patch of several nodes."""
    return [name for name in FIELDS if fields.get(name) and _exceeds(fields[name])]


def ignored_fields(record: PatchRecord) -> list[Field]:
    """Return the fields of a patch that readers ignore."""
    if not any(record.get(name) for name in FIELDS) or not _several(record["node_ids"]):
        return []
    return too_large(record)


def without_ignored(record: PatchRecord) -> PatchRecord:
    """Return a patch without the fields that readers ignore."""
    aside = ignored_fields(record)
    if aside:
        record = record.copy()
        for name in aside:
            del record[name]
    return record


def _several(ids: Iterable[str]) -> bool:
    first = None
    for id in ids:
        if first is None:
            first = id
        elif id != first:
            return True
    return False


def _exceeds(value: object) -> bool:
    """Return whether the size of a value is above the limit. Stop reading as soon as it is."""
    size = 0
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            size += len(each) if len(each) > SIZE_MAX else len(each.encode())
        elif isinstance(each, dict):
            size += ENTRY * len(each)
            if size <= SIZE_MAX:
                todo += [*each, *each.values()]
        elif isinstance(each, (list, tuple)):
            size += ENTRY * len(each)
            if size <= SIZE_MAX:
                todo += each
        else:
            size += 8  # a number, true, false or null
        if size > SIZE_MAX:
            return True
    return False
