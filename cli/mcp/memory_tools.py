"""The tools of the memory, and the gate. Their docstrings are the descriptions that models read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from gitmem.memory import node_fields
from gitmem.outcome import command
from gitmem.text.sanitize import sanitize_for_model

from .. import shared_options as shared
from ..render import memory, signals
from . import tool_results
from .calls import ToolCalls, Words, Wu
from .mcp_session import CallEnvironment

Files = Annotated[Words, Field(description=shared.PATHS.help)]
NodeWu = Annotated[str, Field(description=shared.NODE_WU.help)]  # `session` and `signal` say what it may be


class MemoryTools(ToolCalls):
    """Tools that write and find nodes."""

    def mem_create(
        self,
        at: CallEnvironment,
        content: str,
        tags: Words,
        paths: Files,
        type: Annotated[str, Field(description=shared.NODE_TYPE.help)] = shared.NODE_TYPE.default,
        wu: NodeWu = "",
        priority: Annotated[str, Field(description=shared.PRIORITY.help)] = "",
        lifecycle: Annotated[str, Field(description=shared.NEW_LIFECYCLE.help)] = "",
        supersedes: Annotated[str, Field(description=shared.SUPERSEDES.help)] = "",
    ) -> CallToolResult:
        """Record a finding, bug or decision for later agents.
        With `paths`, the node is shown as stale when these files change."""
        from gitmem.memory import edit as operation

        created = operation.create(
            self._memory(at), self._session.caller(at), content, type=type or None, wu=wu or None, tags=tags,
            paths=at.paths(paths), priority=priority or None, lifecycle=lifecycle or None,
            supersedes=supersedes,
        )  # fmt: skip
        return tool_results.of(created, memory.created(created))

    def mem_search(
        self,
        at: CallEnvironment,
        query: str,
        tags: Words,
        wu: Annotated[str, Field(description=shared.ONLY_WU.help)] = "",
        limit: Annotated[
            int, Field(ge=1, le=shared.SEARCH_LIMIT.tool_most)
        ] = shared.SEARCH_LIMIT.tool_default,
    ) -> CallToolResult:
        """Search the memory, best match first, before you decide or repeat work. Double quotes make a phrase."""
        from gitmem.memory import search

        found = search.search(
            self._memory(at), query, wu=wu or None, tags=tags, limit=limit,
        )  # fmt: skip
        return tool_results.of(found, memory.matching(found), peers=bool(found.hits))

    def mem_context(
        self,
        at: CallEnvironment,
        wu: str = "",
        max_size: Annotated[int, Field(ge=512, le=shared.MAX_SIZE.tool_most)] = shared.MAX_SIZE.tool_default,
    ) -> CallToolResult:
        """Return the memory nodes for a work unit, within `max_size` bytes. Call it before you start on one."""
        from gitmem.memory import context as operation

        found = operation.context(at.store(), self._session.reader(at), wu=wu or None, max_size=max_size)
        return tool_results.of(
            found, [found.block or tool_results.NOTHING], peers=bool(found.block), most=None
        )

    def mem_recover(self, at: CallEnvironment, wu: str = "") -> CallToolResult:
        """Return what you need after a compaction or restart: identity, last checkpoint, changes since then, context."""
        from gitmem.memory import context

        found = context.recover(at.store(), self._session.caller(at), wu=wu or None)
        return tool_results.of(found, memory.packed(found), peers=True, most=None)

    def mem_checkpoint(
        self,
        at: CallEnvironment,
        note: str,
        next_steps: str = "",
        progress: str = "",
        wu: str = "",
        metadata: dict[str, Any] | None = None,
        done: Annotated[bool, Field(description=shared.DONE.help)] = False,
    ) -> CallToolResult:
        """Record the state of the work for mem_recover, before a pause, hand-over or compaction."""
        from gitmem.memory import checkpoints as operation

        created = operation.checkpoint(
            at.store(), self._session.caller(at), note, progress=progress or None,
            next_steps=next_steps or None, wu=wu or None, metadata=metadata, done=done,
        )  # fmt: skip
        return tool_results.of(created, memory.checkpointed(created))

    def mem_ready(
        self,
        at: CallEnvironment,
        wu: NodeWu = "",
        limit: Annotated[int, Field(ge=1, le=shared.READY_LIMIT.tool_most)] = shared.READY_LIMIT.tool_default,
    ) -> CallToolResult:
        """List the nodes of a work unit that are ready, what blocks the others, and the tasks that you may take."""
        from gitmem.work import task_views

        found = task_views.ready_work(self._memory(at), self._session.reader(at), wu or None, limit=limit)
        return tool_results.of(found, memory.ready(found), peers=True)


Ids = Annotated[Words, Field(description=shared.NODE_IDS.help)]
Status = Literal["", "active", "closed", "archived", "deleted"]


class NodeTools(ToolCalls):
    """Tools for single nodes, for the whole memory, and for the gate."""

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

    def mem_show(
        self, at: CallEnvironment, id: Annotated[str, Field(description=shared.NODE_ID.help)]
    ) -> CallToolResult:
        """Show a node in full, with its relations and changes."""
        from gitmem.memory import listing

        found = listing.show(self._memory(at), id)
        whole = command("gitmem", "mem", "show", found.node.id)
        return tool_results.of(found, memory.shown(found), peers=True, whole=whole)

    def mem_update(
        self,
        at: CallEnvironment,
        ids: Ids,
        tags: Words,
        content: str = "",
        status: Status = "",
        priority: Annotated[str, Field(description=shared.PRIORITY.help)] = "",
        wu: str = "",
        reason: str = "",
        verified: Annotated[bool, Field(description=shared.VERIFIED.help)] = False,
    ) -> CallToolResult:
        """Change nodes; what is not given stays. `tags` replaces all tags."""
        from gitmem.memory import edit

        given: dict[str, Any] = {
            "content": content,
            "tags": tags,
            "priority": priority,
            "wu": wu,
            "reason": reason,
        }
        options = {name: value for name, value in given.items() if value}
        empty = [name for name in node_fields.STATUSES[1:] if status == "active"]
        options |= {status: True} if status not in ("", "active") else {}
        changed = edit.change(
            self._memory(at), self._session.caller(at), ids, verified=verified, clear=empty, **options
        )
        return tool_results.of(changed, memory.changed(changed))

    def mem_promote(
        self,
        at: CallEnvironment,
        tag: Annotated[str, Field(description=shared.TAXONOMY.help)],
        id: str = "",
        wu: str = "",
    ) -> CallToolResult:
        """Make a node, or the summaries of a work unit, part of every context. Give `id` or `wu`."""
        from gitmem.memory import knowledge

        found = knowledge.promote(
            at.store(), self._session.caller(at), node=id or None, wu=wu or None, tag=tag
        )
        return tool_results.of(found, memory.promoted(found), peers=True)

    def mem_delete(self, at: CallEnvironment, ids: Ids, reason: str = "") -> CallToolResult:
        """Hide nodes. mem_update with status `active` restores them."""
        from gitmem.memory import upkeep

        deleted = upkeep.delete(self._memory(at), self._session.caller(at), ids, reason=reason or None)
        return tool_results.of(deleted, memory.deleted(deleted))

    def mem_export(
        self,
        at: CallEnvironment,
        tags: Words,
        wu: Annotated[str, Field(description=shared.ONLY_WU.help)] = "",
        max_size: Annotated[
            int, Field(ge=512, le=shared.EXPORT_SIZE.tool_most)
        ] = shared.EXPORT_SIZE.tool_default,
    ) -> CallToolResult:
        """Return the memory as one document in Markdown, cut to `max_size` bytes."""
        from gitmem.memory import listing

        found = listing.export(at.store(), wu=wu or None, tags=tags)
        text = sanitize_for_model(found.document, keep="\n\t")
        return tool_results.of(found, [text], peers=True, whole="gitmem mem export", most=max_size)
