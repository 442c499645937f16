"""`gitmem claim`, `overlap` and `why`: who is about to change which paths, which branches conflict, and why lines are as they are."""

from __future__ import annotations

import os

from gitmem.errors import UsageError
from gitmem.outcome import command
from gitmem.settings import BLOCK, GUARD
from gitmem.text.sanitize import sanitize

from ..environment import Environment
from ..render import claims as render
from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Annotated

    from .options import MODEL, PLAIN, Argument, Flag, Option, Paths, Reason, Wu


CLAIMED = 1
STAGED_MAX = 16 * 1024 * 1024  # bytes of names that git's pre-commit hook passes


def paths(
    at: Environment,
    paths: Paths,
    lease: Annotated[
        str,
        Option("--for", "2h", "Time until it ends, at most 24h; it is renewed while you work (default: 1h)."),
        PLAIN,
    ] = "1h",
    shared: Annotated[bool, Flag("--shared", "Let others claim them as shared, too.")] = False,
    wu: Wu = None,
    reason: Annotated[str | None, Option("--reason", "TEXT", "What you are about to do."), PLAIN] = None,
    anyway: Annotated[
        str | None, Option("--anyway", "REASON", "Claim what others have claimed; it is recorded.")
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
        list[str] | None, Argument("PATH...", "Only who claims these; exit 1 if somebody else does."), MODEL
    ] = None,
    mine: Annotated[bool, Flag("--mine", "Only your own claims.")] = False,
    edited: Annotated[
        bool, Flag("--edited", "Also what sessions of this clone change without a claim.")
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
    from gitmem.work.claims import paths_text

    store = at.store()
    mode = GUARD.value(store.settings()) or BLOCK
    if pre_commit:
        import sys

        names = [os.fsdecode(each) for each in sys.stdin.buffer.read(STAGED_MAX).split(b"\0") if each]
        index = os.environ.get("GIT_INDEX_FILE")  # relative to the top of the work tree, where git runs hooks
        names = history.own_paths(at.repo, names, os.path.abspath(index) if index else None)
        callers = pushing(store, at.who())
        if os.environ.get("GIT_PREFIX") and at.repo.worktree:  # git has left the caller's folder for the hook
            output.set_top(at.repo.worktree)
        missing = []
    else:
        names, callers = at.paths(paths), [at.caller()]
        missing = _missing(at, paths, names)
    found = edit_guard.check_guard(store, callers, names, mode=mode, anyway=anyway)
    if missing and not (found.blocks or found.warns or found.warnings):
        found.warnings = [f"{render.OPEN}; nothing is there yet: {paths_text(missing)}"]
    if not pre_commit or found.blocks or found.warns:
        at.answer(found, lambda found: render.guard(found, pre_commit=pre_commit))
    return 0 if found.open else CLAIMED


def _missing(at: Environment, typed: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the paths that nothing is at.

    Raises:
        UsageError: `no-path`: one is a signal, a work unit or empty; nobody claims that, and the gate would be open.
    """
    from gitmem.agents import session_view
    from gitmem.records.ids import is_id
    from gitmem.work.claim_work import is_missing

    found = []
    for text, name in zip(typed, names, strict=True):
        if text and (at.repo.worktree is None or not is_missing(at.repo.worktree, name)):
            continue
        what, instead = "empty", ["gitmem", "gate", "--help"]
        if is_id("sig", text):
            what, instead = "a signal", ["gitmem", "converged", text]
        elif text and session_view.is_known_unit(at.store(), text):
            what, instead = "a work unit", ["gitmem", "gate", "--wu", text]
        elif text:
            found.append(name)
            continue
        raise UsageError(
            f"PATH is {what}: {sanitize(text) or '(empty)'}; a file, folder or pattern is one. Nothing was checked.",
            code="no-path",
            next=[command(*instead)],
        )
    return found


def release(
    at: Environment,
    id: Annotated[
        list[str] | None,
        Argument(
            "ID|PATH",
            "Claims of yours (default: all of your session); or one of somebody else's, with --reason.",
        ),
        PLAIN,
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
    branch: Annotated[str | None, Argument("BRANCH", "Only pairs with this branch."), MODEL] = None,
    notify: Annotated[
        bool, Flag("--notify", "Tell the sessions on branches that conflict; each pair once a day at most.")
    ] = False,
) -> int:
    """List branches and worktrees that change the same files; exit with 1 if two of them conflict."""
    from gitmem.history import overlap as overlaps

    at.note_top()
    found = overlaps.overlap(at.store(), branch, notify=at.caller() if notify else None)
    at.answer(found, render.overlap)
    return CONFLICTS if found.conflicts else 0


def why(
    at: Environment,
    target: Annotated[str, Argument("FILE[:LINE]|COMMIT", "FILE, FILE:LINE, FILE:10-20 or a commit."), PLAIN],
    export: Annotated[
        str | None,
        Option("--export", "F", "git-ai: write its notes; agent-trace: print records of what sessions made."),
    ] = None,
) -> None:
    """Show why a line or commit is as it is: who made it, on which task, what was agreed and known, and whether that holds."""
    from gitmem.history import why as operation

    from .. import environment

    at.note_top()
    is_early = environment.look_before_answer(at)
    if export is not None:
        from gitmem.history import export as exports

        made = exports.export(at.store(), target, export, folder=at.folder)
        if at.json or made.commits:  # without any the output is empty, for a file of such lines
            at.answer(made, render.exported)
        if not at.json:
            output.note(made.remarks)
        return
    found = operation.why(at.store(), target, folder=at.folder, is_early=is_early)
    at.answer(found, render.why)
