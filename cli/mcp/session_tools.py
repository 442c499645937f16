"""The MCP tools for the own session, and for roles."""

from __future__ import annotations

from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from gitmem.errors import UsageError

from .. import shared_options as shared
from ..render import sessions
from . import tool_results
from .calls import Ctx, ToolCalls, Words
from .mcp_session import CallEnvironment

ENDS = "`summary` and `done` end the session and change nothing else. Nothing was written."


class SessionTools(ToolCalls):
    """Tools for the session and roles."""

    async def session(
        self,
        ctx: Ctx,
        scope: Annotated[Words, Field(description=shared.SCOPE.help)],
        agent_identity: Annotated[str, Field(description=shared.IDENTITY.help)] = "",
        name: Annotated[str, Field(description=shared.NAME.help)] = "",
        wu: Annotated[str, Field(description=shared.WU.help)] = "",
        lane: str = "",
        activity: str = "",
        milestone: Annotated[bool, Field(description=shared.MILESTONE.help)] = False,
        role: Annotated[str, Field(description=shared.ROLE.help)] = "",
        model: Annotated[str, Field(description=shared.MODEL.help)] = "",
        summary: Annotated[str, Field(description=f"Ends it. {shared.SUMMARY.help}")] = "",
        done: Annotated[bool, Field(description=f"Ends it. {shared.DONE.help}")] = False,
    ) -> CallToolResult:
        """Show your session as others see it. Arguments change it; set your work unit when you begin."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.agents import roster
            from gitmem.signals import completion

            caller = self._session.caller(at)
            given: dict[str, Any] = {
                "name": name, "wu": wu, "lane": lane, "activity": activity.strip(), "role": role, "scope": scope,
                "model": model, "agent_identity": agent_identity,
            }  # fmt: skip
            if summary or done:
                if any(given.values()):
                    raise UsageError(ENDS, code="usage")
                ended = self._session.end(at, caller, summary=summary, done=done)
                return tool_results.of(ended, sessions.ended(ended))
            if any(given.values()):
                values = {key: value for key, value in given.items() if value}
                changed = completion.change_session(at.store(), caller, milestone=milestone, **values)
                return tool_results.of(changed, sessions.session(changed))
            found = roster.whoami(at.store(), caller)
            return tool_results.of(found, sessions.whoami(found))

        return await self._do(ctx, "session", job)

    async def role(
        self, ctx: Ctx, role: Annotated[str, Field(description=shared.SHOWN_ROLE.help)] = ""
    ) -> CallToolResult:
        """List roles, their holders and aliases; or show what `role` means. To reach all holders: signal, `to` role:NAME."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.agents import role_list

            if not role:
                found = role_list.listing(at.store())
                return tool_results.of(found, sessions.roles(found))
            shown = role_list.show(at.store(), role)
            return tool_results.of(shown, sessions.role(shown))

        return await self._do(ctx, "role", job)
