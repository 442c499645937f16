"""`gitmem claim`, `overlap` and `why`: who is about to change which paths, which branches conflict, and why lines are as they are."""

from __future__ import annotations

import os

from gitmem.errors import UsageError
from gitmem.settings import BLOCK, GUARD

from ..environment import Environment
from ..render import claims as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .. import shared_options as shared
    from .options import Paths, Reason, Wu


CLAIMED = 1
STAGED_MAX = 16 * 1024 * 1024  # bytes of names that git's pre-commit hook passes


def paths(
    at: Environment,
    paths: Paths,
    lease: Annotated[
        str, typer.Option("--for", metavar="2h", help=shared.CLAIM_FOR.help), shared.PLAIN
    ] = "1h",
    shared: Annotated[bool, typer.Option("--shared", help="Let others claim them as shared, too.")] = False,
    wu: Wu = None,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help=shared.CLAIM_REASON.help), shared.PLAIN
    ] = None,
    anyway: Annotated[
        str | None,
        typer.Option("--anyway", metavar="REASON", help="Claim what others have claimed; it is recorded."),
    ] = None,
) -> None:
    """Claim files, folders and patterns before you change them; exit 1 if somebody else has claimed them."""
    from gitmem.work import claim_work

    from .. import values

    found = claim_work.claim_paths(
        at.store(),
        at.caller(),
        at.paths(paths),
        lease=values.lease("--for", lease),
        shared=shared,
        wu=wu,
        reason=reason,
        anyway=anyway,
    )
    at.answer(found, render.change)


def listing(
    at: Environment,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH...", help="Only who claims these; exit 1 if somebody else does."),
        shared.MODEL,
    ] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only your own claims.")] = False,
    edited: Annotated[
        bool, typer.Option("--edited", help="Also what sessions of this clone change without a claim.")
    ] = False,
) -> int:
    """List what is claimed now, by whom and until when."""
    from gitmem.work import claim_work

    if paths and (mine or edited):
        raise UsageError("Paths exclude --mine and --edited. Nothing was written.", code="contradiction")
    if paths:
        check = claim_work.check_paths(at.store(), at.caller_if_any(), at.paths(paths))
        at.answer(check, render.check)
        return 0 if check.free else CLAIMED
    caller = at.caller() if mine else at.caller_if_any()
    found = claim_work.list_claims(at.store(), caller, mine=mine, edited=edited)
    at.answer(found, render.page)
    return 0


def guard(at: Environment, paths: list[str], anyway: str | None, *, pre_commit: bool) -> int:
    """Check paths against the claims of others: those given, or those that git's pre-commit hook passes.

    Print nothing for the hook if no claim is on them.
    """
    from gitmem.agents.caller import pushing
    from gitmem.git import history
    from gitmem.work import edit_guard

    if not paths and not pre_commit:
        raise UsageError("--anyway needs --paths. Nothing was written.", code="usage")
    store = at.store()
    mode = GUARD.value(store.settings()) or BLOCK
    if pre_commit:
        import sys

        names = [os.fsdecode(each) for each in sys.stdin.buffer.read(STAGED_MAX).split(b"\0") if each]
        index = os.environ.get("GIT_INDEX_FILE")  # relative to the top of the work tree, where git runs hooks
        names = history.own_paths(at.repo, names, os.path.abspath(index) if index else None)
        callers = pushing(store, at.who())
    else:
        names, callers = at.paths(paths), [at.caller()]
    found = edit_guard.check_guard(store, callers, names, mode=mode, anyway=anyway)
    if not pre_commit or found.blocks or found.warns:
        at.answer(found, lambda found: render.guard(found, pre_commit=pre_commit))
    return 0 if found.open else CLAIMED


def release(
    at: Environment,
    id: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID|PATH",
            help="Claims of yours (default: all of your session); or one of somebody else's, with --reason.",
        ),
        shared.PLAIN,
    ] = None,
    reason: Reason = None,
) -> None:
    """Release claims, so that others may change the paths."""
    from gitmem.work import claim_work
    from gitmem.work.claims import ClaimsReleased

    named = [each if each.startswith("claim-") else at.paths([each])[0] for each in id or ()]
    found = claim_work.release(at.store(), at.caller(), named, reason=reason)
    at.answer(ClaimsReleased(found), render.released)


CONFLICTS = 1


def overlap(
    at: Environment,
    branch: Annotated[
        str | None, typer.Argument(metavar="BRANCH", help=shared.OVERLAP_BRANCH.help), shared.MODEL
    ] = None,
    notify: Annotated[
        bool,
        typer.Option(
            "--notify", help="Tell the sessions on branches that conflict; each pair once a day at most."
        ),
    ] = False,
) -> int:
    """List branches and worktrees that change the same files; exit with 1 if two of them conflict."""
    from gitmem.history import overlap as overlaps

    found = overlaps.overlap(at.store(), branch, notify=at.caller() if notify else None)
    at.answer(found, render.overlap)
    return CONFLICTS if found.conflicts else 0


def why(
    at: Environment,
    target: Annotated[
        str, typer.Argument(metavar="FILE[:LINE]|COMMIT", help=shared.WHY_TARGET.help), shared.PLAIN
    ],
) -> None:
    """Show why a line or commit is as it is: who made it, on which task, what was agreed and known, and whether that holds."""
    from gitmem.history import why as operation

    from .. import environment

    is_early = environment.look_before_answer(at)
    found = operation.why(at.store(), target, folder=at.folder, is_early=is_early)
    at.answer(found, render.why)
