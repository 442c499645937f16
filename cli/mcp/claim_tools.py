"""The MCP tools for claims on paths, for branches that change the same files, and for the origin of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult
from pydantic import Field

from gitmem.errors import UsageError
from gitmem.text.shell_quote import command

from .. import after_command, values
from .. import shared_options as shared
from ..render import claims
from . import tool_results
from .calls import Ctx, ToolCalls, Words, Wu

if TYPE_CHECKING:
    from .mcp_session import CallEnvironment

Action = Literal["", "list", "claim", "check", "release"]


class ClaimTools(ToolCalls):
    """Tools for claims, overlaps and the origin of lines."""

    async def claim(
        self,
        ctx: Ctx,
        paths: Annotated[Words, Field(description=shared.CLAIM_PATHS.help)],
        action: Annotated[Action, Field(description="Default: claim with paths, else list.")] = "",
        lease: Annotated[str, Field(description="Such as 2h, at most 24h.")] = "",
        reason: str = "",
        id: Annotated[
            str, Field(description="With release: one claim; somebody else's needs a reason.")
        ] = "",
        wu: Wu = "",
    ) -> CallToolResult:
        """Claim the files that you are about to change, release when done; list all, check paths."""

        def job(at: CallEnvironment) -> CallToolResult:
            wanted = action or ("claim" if paths else "list")
            _check(wanted, paths, id)
            if wanted == "claim":
                return self._claim(at, paths, lease, reason, wu)
            return (
                self._release(at, id, paths, reason) if wanted == "release" else self._show(at, wanted, paths)
            )

        return await self._do(ctx, "claim", job)

    def _claim(
        self, at: CallEnvironment, paths: list[str], lease: str, reason: str, wu: str
    ) -> CallToolResult:
        from gitmem.claims import claim_work

        made = claim_work.claim(
            at.store(), self._session.caller(at), at.paths(paths), lease=values.lease("time", lease) if lease else claim_work.HOUR,
            wu=wu or None, reason=reason or None,
        )  # fmt: skip
        return tool_results.of(made, claims.change(made), peers=bool(made.warnings))

    def _release(self, at: CallEnvironment, id: str, paths: list[str], reason: str) -> CallToolResult:
        from gitmem.claims import claim_work
        from gitmem.claims.claim_answers import ClaimsReleased

        store, caller = at.store(), self._session.caller(at)
        try:
            found = claim_work.release(store, caller, [*([id] if id else []), *at.paths(paths)])
        except UsageError as error:
            if error.code != "not-your-claim" or not (reason and id):
                raise
            found = [claim_work.release_of(store, caller, id, reason)]
        released = ClaimsReleased(found)
        return tool_results.of(released, claims.released(released))

    def _show(self, at: CallEnvironment, action: str, paths: list[str]) -> CallToolResult:
        from gitmem.claims import claim_list

        if action == "check":
            checked = claim_list.check(at.store(), self._session.caller(at), at.paths(paths))
            return tool_results.of(checked, claims.check(checked), peers=not checked.free)
        found = claim_list.list_claims(at.store(), self._session.reader(at))
        return tool_results.of(found, claims.page(found), peers=bool(found.claims), is_part=found.more > 0)

    async def overlap(self, ctx: Ctx, branch: str = "") -> CallToolResult:
        """List branches that change the same files, conflicts first."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.history import overlap as overlaps

            found = overlaps.overlap(at.store(), branch or None)
            return tool_results.of(
                found, claims.overlap(found), peers=bool(found.overlaps), whole="gitmem overlap"
            )

        return await self._do(ctx, "overlap", job)

    async def why(self, ctx: Ctx, target: str) -> CallToolResult:
        """Who made FILE[:LINE] or COMMIT, and what was agreed."""

        def job(at: CallEnvironment) -> CallToolResult:
            from gitmem.history import why as operation

            is_early = after_command.look_before_answer(at)
            found = operation.why(at.store(), target, folder=at.folder, is_early=is_early)
            return tool_results.of(
                found, claims.why(found), peers=bool(found.commits), whole=command("gitmem", "why", target)
            )

        return await self._do(ctx, "why", job)


def _check(action: str, paths: list[str], id: str) -> None:
    """Raise UsageError for an argument that the action needs and has not, or has and does not use."""
    if action in ("claim", "check") and not paths:
        problem = f"Missing paths: which to {action}."
    elif action == "list" and paths:
        problem = "The action list takes no paths."
    elif id and action != "release":
        problem = f"The action {action} takes no id; release does."
    else:
        return
    raise UsageError(
        f"{problem} Nothing was written.",
        hint="Arguments: paths for claim, check and release; id for release.",
        code="usage",
    )
