"""Encode what a call hands over: as JSON, without loss, with its size, and a digest of each node.

Values are copied, so that nobody's later change reaches the other side.
"""

from __future__ import annotations

import json

from ..commit_message import cut, sanitize
from ..digests import sha256
from ..errors import UsageError
from ..records.lines import DEPTH, is_json_safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..memory.versioned_node import VersionedNode

FORMAT = "gitmem.context/1"
NESTED = 3  # lists and objects around a value, in the record
NAME_MAX = 60  # characters of a name in a message


def encode(value: object) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces, characters as they are.

    Raises:
        ValueError: JSON cannot represent it.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def shown(value: object) -> str:
    """Return the JSON text of a value for a reader: keys in their order, on several lines."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)


def size(value: object) -> int:
    """Return the bytes of a value as JSON in UTF-8."""
    return len(encode(value).encode())


def copy(name: str, value: object) -> Any:
    """Return a copy of a value that JSON keeps exactly.

    Raises:
        UsageError: It is not JSON; the message has its name. Nothing was written.
    """
    wrong = _problem(value)
    if wrong:
        raise UsageError(
            f"Failed to serialize context: {cut(sanitize(name), NAME_MAX)} {wrong}. Nothing was written.",
            hint="Use null, true, false, numbers, texts, lists, and objects with texts as keys.",
            code="bad-context",
        )
    return json.loads(encode(value))


def _problem(value: object, depth: int = NESTED) -> str:
    """Return why JSON cannot keep a value exactly, as the rest of a sentence; "" if it can."""
    if depth > DEPTH:
        return f"is nested more than {DEPTH - NESTED} levels deep, or contains itself"
    if isinstance(value, list):
        return next(filter(None, (_problem(item, depth + 1) for item in value)), "")
    if isinstance(value, dict):
        key = next((key for key in value if type(key) is not str), None)
        if key is not None:
            return f"has a key of type {type(key).__name__}, not a text"
        return next(filter(None, (_problem(item, depth + 1) for pair in value.items() for item in pair)), "")
    if value is None or type(value) in (bool, int, float, str):
        return "" if is_json_safe(value) else f"has a {type(value).__name__} that JSON cannot represent"
    return f"has a {type(value).__name__}, which is not JSON"


def texts(value: object) -> list[str]:
    """Return the texts in a JSON value, keys included."""
    found: list[str] = []
    left = [value]
    while left:
        each = left.pop()
        if type(each) is str:
            found.append(each)
        elif isinstance(each, (list, tuple)):
            left += each
        elif isinstance(each, dict):
            left += [*each, *each.values()]
    return found


def node_values(node: VersionedNode) -> dict[str, Any]:
    """Return what makes up a node, as JSON: its type, text, place and metadata, but not who changed or read it."""
    found = {
        "type": node.type, "lifecycle": node.lifecycle, "content": node.content, "priority": node.priority,
        "tags": sorted(node.tags), "wu_id": node.wu_id, "lane": node.lane, "paths": sorted(node.paths),
        "metadata": node.metadata,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value not in (None, [], {})}


def node_digest(node: VersionedNode) -> str:
    """Return the SHA-256 of a node as it is now, in hex."""
    return sha256(encode(node_values(node)).encode("utf-8", "backslashreplace")).hexdigest()
