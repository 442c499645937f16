"""The tool of the memory, and the gate. Their docstrings are the descriptions that models read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from gitmem.errors import UsageError, bad_number
from gitmem.memory import node_fields
from gitmem.outcome import command
from gitmem.text.sanitize import sanitize_for_model

from .. import shared_options as shared
from ..render import memory, signals
from . import tool_results
from .calls import ToolCalls, Words, Wu
from .mcp_session import CallEnvironment

if TYPE_CHECKING:
    from collections.abc import Mapping

Action = Literal[
    "create", "search", "context", "recover", "checkpoint", "ready", "show", "update", "promote", "delete", "export"
]  # fmt: skip
Status = Literal["", "active", "closed", "archived", "deleted"]
LIMITS = {"search": shared.SEARCH_LIMIT, "ready": shared.READY_LIMIT}
SIZES = {"context": shared.MAX_SIZE, "export": shared.EXPORT_SIZE}
SIZE_LEAST = 512
# What each action takes beside `wu`, which all do but those with ids; what it needs comes first.
TAKES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "create": (("text",), ("tags", "paths", "type", "priority", "wu")),
    "search": (("text",), ("tags", "limit", "wu")),
    "context": ((), ("max_size", "wu")),
    "recover": ((), ("wu",)),
    "checkpoint": (("text",), ("next_steps", "progress", "metadata", "done", "wu")),
    "ready": ((), ("limit", "wu")),
    "show": (("ids",), ()),
    "update": (("ids",), ("text", "tags", "priority", "status", "wu", "reason")),
    "promote": (("tags",), ("ids", "wu")),
    "delete": (("ids",), ("reason",)),
    "export": ((), ("tags", "max_size", "wu")),
}


class MemoryTools(ToolCalls):
    """The memory, and the gate."""

    def mem(
        self,
        at: CallEnvironment,
        action: Action,
        tags: Words,
        paths: Annotated[Words, Field(description=shared.PATHS.help)],
        ids: Annotated[Words, Field(description=shared.NODE_IDS.help)],
        text: str = "",
        type: Annotated[str, Field(description=shared.NODE_TYPE.help)] = "",
        wu: Annotated[str, Field(description=shared.NODE_WU.help)] = "",
        priority: Annotated[str, Field(description=shared.PRIORITY.help)] = "",
        status: Status = "",
        next_steps: str = "",
        progress: str = "",
        metadata: dict[str, Any] | None = None,
        done: Annotated[bool, Field(description=shared.DONE.help)] = False,
        reason: str = "",
        limit: int = 0,
        max_size: int = 0,
    ) -> CallToolResult:
        """The memory that agents share. create a finding, bug or decision (text); with `paths` it is marked stale when these change. search (text)
        before you decide, context before you start on a work unit, checkpoint (text) before a pause, recover after a compaction. ready: what can be
        taken up. show, update (active restores), promote (tags: a kind of knowledge), delete nodes (ids). export all."""
        given: dict[str, Any] = {
            "text": text, "tags": tags, "paths": at.paths(paths), "ids": ids, "type": type, "wu": wu, "priority": priority, "status": status,
            "next_steps": next_steps, "progress": progress, "metadata": metadata, "done": done, "reason": reason, "limit": limit, "max_size": max_size,
        }  # fmt: skip
        _check(action, given)
        answer: CallToolResult = getattr(self, f"_{action}")(at, {**given, "wu": wu or None})
        return answer

    def _create(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import edit

        created = edit.create(
            self._memory(at), self._session.caller(at), given["text"], type=given["type"] or shared.NODE_TYPE.default, wu=given["wu"],
            tags=given["tags"], paths=given["paths"], priority=given["priority"] or None,
        )  # fmt: skip
        return tool_results.of(created, memory.created(created))

    def _search(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import search

        limit = given["limit"] or shared.SEARCH_LIMIT.tool_default
        found = search.search(
            self._memory(at), given["text"], wu=given["wu"], tags=given["tags"], limit=limit
        )
        return tool_results.of(found, memory.matching(found), peers=bool(found.hits))

    def _context(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import context

        most = given["max_size"] or shared.MAX_SIZE.tool_default
        found = context.context(at.store(), self._session.reader(at), wu=given["wu"], max_size=most)
        return tool_results.of(
            found, [found.block or tool_results.NOTHING], peers=bool(found.block), most=None
        )

    def _recover(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import context

        found = context.recover(at.store(), self._session.caller(at), wu=given["wu"])
        return tool_results.of(found, memory.packed(found), peers=True, most=None)

    def _checkpoint(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import checkpoints

        created = checkpoints.checkpoint(
            at.store(), self._session.caller(at), given["text"], progress=given["progress"] or None,
            next_steps=given["next_steps"] or None, wu=given["wu"], metadata=given["metadata"], done=given["done"],
        )  # fmt: skip
        return tool_results.of(created, memory.checkpointed(created))

    def _ready(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.work import task_views

        limit = given["limit"] or shared.READY_LIMIT.tool_default
        found = task_views.ready_work(self._memory(at), self._session.reader(at), given["wu"], limit=limit)
        return tool_results.of(found, memory.ready(found), peers=True)

    def _show(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import listing

        found = listing.show(self._memory(at), given["ids"][0])
        whole = command("gitmem", "mem", "show", found.node.id)
        return tool_results.of(found, memory.shown(found), peers=True, whole=whole)

    def _update(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import edit

        status = given["status"]
        names = {"text": "content", "tags": "tags", "priority": "priority", "wu": "wu", "reason": "reason"}
        options = {name: given[of] for of, name in names.items() if given[of]}
        empty = [name for name in node_fields.STATUSES[1:] if status == "active"]
        options |= {status: True} if status not in ("", "active") else {}
        changed = edit.change(
            self._memory(at), self._session.caller(at), given["ids"], clear=empty, **options
        )
        return tool_results.of(changed, memory.changed(changed))

    def _promote(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import knowledge

        (node,) = given["ids"][:1] or [None]
        found = knowledge.promote(
            at.store(), self._session.caller(at), node=node, wu=given["wu"], tag=given["tags"][0]
        )
        return tool_results.of(found, memory.promoted(found), peers=True)

    def _delete(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import upkeep

        deleted = upkeep.delete(
            self._memory(at), self._session.caller(at), given["ids"], reason=given["reason"] or None
        )
        return tool_results.of(deleted, memory.deleted(deleted))

    def _export(self, at: CallEnvironment, given: Mapping[str, Any]) -> CallToolResult:
        from gitmem.memory import listing

        found = listing.export(at.store(), wu=given["wu"], tags=given["tags"])
        text = sanitize_for_model(found.document, keep="\n\t")
        most = given["max_size"] or shared.EXPORT_SIZE.tool_default
        return tool_results.of(found, [text], peers=True, whole="gitmem mem export", most=most)

    def gate(
        self,
        at: CallEnvironment,
        wu: Wu = "",
        new: Annotated[bool, Field(description=shared.NEW_WU.help)] = False,
    ) -> CallToolResult:
        """Check before you finish a work unit: the gate is closed while signals to you on it wait."""
        from gitmem.signals import gate as operation

        found = operation.check(at.store(), self._session.caller(at), wu=wu or None, new=new)
        whole = command("gitmem", "gate", *(["--wu", found.wu_id] if found.wu_id else []))
        return tool_results.of(found, signals.gate(found), peers=bool(found.signals), whole=whole)


def _check(action: str, given: Mapping[str, Any]) -> None:
    """Raise UsageError for an argument that an action needs and has not, or has and does not use; or for a bad number."""
    needs, takes = TAKES[action]
    if missing := [name for name in needs if not given[name]]:
        raise UsageError(
            f"The action {action} needs {missing[0]}. Nothing was written.", code="usage", next=[]
        )
    if unused := [name for name, value in given.items() if value and name not in (*needs, *takes)]:
        raise UsageError(
            f"The action {action} takes no {unused[0]}. Nothing was written.", code="usage", next=[]
        )
    if (limit := given["limit"]) and not 1 <= limit <= LIMITS[action].tool_most:
        raise bad_number("limit", limit, LIMITS[action].tool_most)
    if (size := given["max_size"]) and not SIZE_LEAST <= size <= SIZES[action].tool_most:
        raise bad_number("max_size", size, SIZES[action].tool_most, SIZE_LEAST)
