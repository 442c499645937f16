"""The working memory of a caller: what it wrote in its session, its last checkpoint, and the last signals of its thread."""

from __future__ import annotations

from .. import records
from ..commit_message import sanitize
from ..errors import UsageError
from ..memory import load, session_checkpoints
from ..memory.node_tables import HIDDEN
from ..memory.session_checkpoints import PREFIX
from . import bundle_encoding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..memory.versioned_node import VersionedNode
    from ..store import Store

DECISIONS, QUESTIONS, THOUGHTS = "decisions", "open_questions", "thoughts"
LISTS = (DECISIONS, QUESTIONS, THOUGHTS)
GIVEN = ("goal", "variables", *LISTS)  # what callers may give themselves
LOOKED_AT_MAX = 200  # nodes of a session that are read, last changed first
SIGNALS_MAX = 5
# A session's nodes are younger than it: without that, all nodes would be read.
_NODES = (
    f"SELECT id FROM node WHERE state < {HIDDEN} AND state = 0 AND touched >= coalesce((SELECT min(started) FROM session WHERE"
    " session_id = ?1), 0) AND session_id IS ?1 AND sender = ?2 AND type <> 'checkpoint' ORDER BY touched DESC, id LIMIT ?3"
)
_THREAD = (
    "SELECT s.thread FROM signal s JOIN line l ON l.id = s.line WHERE (s.sender_session = ?1 OR s.sender = ?2)"
    " AND s.thread IS NOT NULL ORDER BY l.body DESC LIMIT 1"
)
_SIGNALS = (
    "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? AND NOT EXISTS"
    " (SELECT 1 FROM forged f WHERE f.line = s.line) ORDER BY l.body DESC LIMIT ?"
)


class Item:
    """One thing that is handed over by value.

    Attributes:
        section: The field of the context.
        id: Of the node or signal; "" for what the caller gave.
        value: Its JSON.
        node: The node that it was made of, if any.
    """

    def __init__(
        self, section: str, id: str, value: Mapping[str, Any], node: VersionedNode | None = None
    ) -> None:
        self.section = section
        self.id = id
        self.value = value
        self.node = node


def given(values: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a caller gives itself, copied.

    Raises:
        UsageError: A name is unknown, or a value is not JSON. Nothing was written.
    """
    unknown = next((name for name in values if name not in GIVEN), None)
    if unknown is not None:
        raise UsageError(
            f"Failed to serialize context: unknown part {sanitize(str(unknown))[:60]}. Nothing was written.",
            hint=f"Valid parts: {', '.join(GIVEN)}. Anything else is a variable.",
            code="bad-context",
        )
    found: dict[str, Any] = {}
    if values.get("goal") is not None:
        found["goal"] = {"text": _text("goal", values["goal"])}
    own = values.get("variables")
    own = {} if own is None else own
    if not isinstance(own, dict):
        raise _not("variables", "an object")
    named = {**own, **variables}
    if named:
        found["variables"] = {
            str(bundle_encoding.copy("a name of a variable", name)): bundle_encoding.copy(
                f"variable {name}", value
            )
            for name, value in named.items()
        }
    for section in LISTS:
        items = values.get(section) or []
        if not isinstance(items, (list, tuple)):
            raise _not(section, "a list")
        made = [_given_item(f"{section} {number}", item) for number, item in enumerate(items, 1)]
        found.update({section: made} if made else {})
    return found


def _given_item(name: str, item: object) -> Any:
    if isinstance(item, dict):
        return {**bundle_encoding.copy(name, item), "text": _text(name, item.get("text"))}
    return {"text": _text(name, item)}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _not(name, "a text")
    return str(bundle_encoding.copy(name, value))


def _not(name: str, what: str) -> UsageError:
    return UsageError(
        f"Failed to serialize context: {name} is not {what}. Nothing was written.", code="bad-context"
    )


def goal(caller: Caller) -> dict[str, Any]:
    """Return what the caller's session says that it is about; empty without it."""
    record: Mapping[str, Any] = caller.record or {}
    found = {"text": record.get("activity"), "wu_id": caller.wu_id, "lane": record.get("lane")}
    return {name: value for name, value in found.items() if value}


def items(store: Store, caller: Caller) -> Iterator[Item]:
    """Yield the working memory of a caller, what matters most first; also what is sensitive: it is filtered later."""
    nodes = _nodes(store, caller)
    for section in (DECISIONS, QUESTIONS):
        yield from _of_section(nodes, section)
    checkpoint = session_checkpoints.last_checkpoint(
        store, caller.session_id, caller.wu_id, None, None if caller.session_id else caller.reader
    )
    if checkpoint is not None:
        yield Item("checkpoint", checkpoint.id, _checkpoint(checkpoint), checkpoint)
    yield from _signals(store, caller)
    yield from _of_section(nodes, THOUGHTS)


def _of_section(nodes: Iterable[VersionedNode], section: str) -> Iterator[Item]:
    return (Item(section, node.id, _value(node), node) for node in nodes if _section(node) == section)


def _nodes(store: Store, caller: Caller) -> list[VersionedNode]:
    db = store.db()
    rows = db.execute(_NODES, (caller.session_id, caller.reader, LOOKED_AT_MAX))
    return [node for node in load.load(db, [id for (id,) in rows]) if not node.unverified]


def _section(node: VersionedNode) -> str | None:
    if "decision" in node.tags:
        return DECISIONS
    if "question" in node.tags:
        return QUESTIONS
    return THOUGHTS if node.type == "note" else None


def _value(node: VersionedNode) -> dict[str, Any]:
    found = {
        "id": node.id, "type": node.type, "at": node.created_at, "text": node.content,
        "tags": list(node.tags), "metadata": node.metadata,
    }  # fmt: skip
    return {name: value for name, value in found.items() if value}


def _checkpoint(node: VersionedNode) -> dict[str, Any]:
    found = {
        "id": node.id, "at": node.created_at, "text": node.content.removeprefix(PREFIX),
        "progress": node.metadata.get("progress"), "next_steps": node.metadata.get("nextSteps"),
    }  # fmt: skip
    return {name: value for name, value in found.items() if value}


def _signals(store: Store, caller: Caller) -> Iterator[Item]:
    """Yield the last signals of the thread that the caller wrote in last, oldest first."""
    db = store.db()
    row = db.execute(_THREAD, (caller.session_id, caller.reader)).fetchone()
    rows = db.execute(_SIGNALS, (row[0], SIGNALS_MAX)).fetchall() if row is not None else []
    for (body,) in reversed(rows):
        record = records.read_kind("signal", body.encode())
        if record is not None and not record.get("task_id"):
            yield Item("signals", record["signal_id"], {
                "id": record["signal_id"], "at": record["at"], "from": record["sender_identity"], "intent": record["intent"],
                "text": record["message"],
            })  # fmt: skip
