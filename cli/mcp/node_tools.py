"""The tools that show, change and export nodes, and the gate. Their docstrings are the descriptions that models read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from gitmem.memory import node_fields
from gitmem.text.sanitize import sanitize_for_model
from gitmem.text.shell_quote import command

from .. import shared_options as shared
from ..render import memory, signals
from . import tool_results
from .calls import Ctx, ToolCalls, Words, Wu
from .mcp_session import CallEnvironment

Ids = Annotated[Words, Field(description=shared.NODE_IDS.help)]
Status = Literal["", "active", "closed", "archived", "deleted"]


class NodeTools(ToolCalls):
    """Tools for single nodes, for the whole memory, and for the gate."""

    async def gate(
        self, ctx: Ctx, wu: Wu = "", new: Annotated[bool, Field(description=shared.NEW_WU.help)] = False
    ) -> CallToolResult:
        """Check before you finish a work unit: the gate is closed while signals to you on it wait."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.signals import gate as operation

            found = operation.check(at.store(), self._session.caller(at), wu=wu or None, new=new)
            whole = command("gitmem", "gate", *(["--wu", found.wu_id] if found.wu_id else []))
            return tool_results.of(found, signals.gate(found), peers=bool(found.signals), whole=whole)

        return await self._do(ctx, "gate", job)

    async def mem_show(
        self, ctx: Ctx, id: Annotated[str, Field(description=shared.NODE_ID.help)]
    ) -> CallToolResult:
        """Show a node in full, with its relations and changes."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import show_node

            found = show_node.show(at.store(), id, private_of=lambda: self._session.reader(at))
            whole = command("gitmem", "mem", "show", found.node.id)
            return tool_results.of(found, memory.shown(found), peers=True, whole=whole)

        return await self._do(ctx, "mem_show", job)

    async def mem_update(
        self,
        ctx: Ctx,
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

        def job(at: CallEnvironment) -> CallToolResult:
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
                at.store(), self._session.caller(at), ids, verified=verified, clear=empty, **options
            )
            return tool_results.of(changed, memory.changed(changed))

        return await self._do(ctx, "mem_update", job)

    async def mem_promote(
        self,
        ctx: Ctx,
        tag: Annotated[str, Field(description=shared.TAXONOMY.help)],
        id: str = "",
        wu: str = "",
    ) -> CallToolResult:
        """Make a node, or the summaries of a work unit, part of every context. Give `id` or `wu`."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import promote

            found = promote.promote(
                at.store(), self._session.caller(at), node=id or None, wu=wu or None, tag=tag
            )
            return tool_results.of(found, memory.promoted(found), peers=True)

        return await self._do(ctx, "mem_promote", job)

    async def mem_delete(self, ctx: Ctx, ids: Ids, reason: str = "") -> CallToolResult:
        """Hide nodes. mem_update with status `active` restores them."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import delete

            deleted = delete.delete(at.store(), self._session.caller(at), ids, reason=reason or None)
            return tool_results.of(deleted, memory.deleted(deleted))

        return await self._do(ctx, "mem_delete", job)

    async def mem_export(
        self,
        ctx: Ctx,
        tags: Words,
        wu: Annotated[str, Field(description=shared.ONLY_WU.help)] = "",
        max_size: Annotated[
            int, Field(ge=512, le=shared.EXPORT_SIZE.tool_most)
        ] = shared.EXPORT_SIZE.tool_default,
    ) -> CallToolResult:
        """Return the memory as one document in Markdown, cut to `max_size` bytes."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.memory import export

            found = export.export(at.store(), wu=wu or None, tags=tags)
            text = sanitize_for_model(found.document, keep="\n\t")
            return tool_results.of(found, [text], peers=True, whole="gitmem mem export", most=max_size)

        return await self._do(ctx, "mem_export", job)
