"""Git's own hook: the gate in front of a push. A hook that is there already is kept aside, and runs after it."""

from __future__ import annotations

import os

from ...errors import UsageError
from ...outcome import Outcome
from ...text.shell_quote import command
from .. import user_files
from ..user_files import FileChange
from . import marked_files, script
from .client_scope import ABSENT, INSTALLED, OUTDATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...repo import Repo

PRE_PUSH = "pre-push"
KEPT = ".before-gitmem"
FOREIGN = "foreign"
CONFIG = r"^core\.hookspath$"
TEXT = f"""#!/bin/sh
# {marked_files.WORDS} --git pre-push
# A push waits while signals on its work unit are unread or unanswered. The hook that was here before runs after that.
nl='
'
{script.IS_LISTED}
common=$(git rev-parse --git-common-dir 2>/dev/null)
program=''
if [ -r "$common/gitmem/program" ]; then IFS= read -r program <"$common/gitmem/program"; fi
[ -x "$program" ] && is_listed "$program" 2>/dev/null || program=$(command -v gitmem)
case $program in
  /* | [A-Za-z]:*)
    "$program" gate --pre-push </dev/null >&2
    status=$?
    case $status in
      0) ;;
      1) exit 1 ;;
      *) echo "gitmem: the gate could not be asked (exit status $status), and the push goes on" >&2 ;;
    esac
    ;;
  *) echo "gitmem: there is no gitmem here to ask, and the push goes on" >&2 ;;
esac
kept=${{0%/*}}/{PRE_PUSH}{KEPT}
[ -x "$kept" ] || exit 0
exec "$kept" "$@"
"""


class Hook:
    """The hook of a repository.

    Attributes:
        folder: Where git looks for hooks.
        path, kept: The hook, and the one that was there before.
        top: The work tree, where the folder is in it: links there must not lead out of it.
    """

    __slots__ = ("folder", "kept", "path", "top")

    def __init__(self, folder: str, top: str | None = None) -> None:
        self.folder = folder
        self.top = top
        self.path = os.path.join(folder, PRE_PUSH)
        self.kept = self.path + KEPT


class Gated(Outcome):
    """What became of git's hook.

    Attributes:
        state: `installed`, `updated`, `unchanged`, `removed` or `absent`.
        path: The hook.
        kept: The hook that was there before and runs after ours, or None.
        files: The files that were changed.
        remarks: What its user must know.
    """

    __slots__ = ("state", "path", "kept", "files", "remarks", "next")

    def __init__(self, hook: Hook) -> None:
        self.state = "unchanged"
        self.path = hook.path
        self.kept = hook.kept if os.path.lexists(hook.kept) else None
        self.files: list[str] = []
        self.remarks: list[str] = []
        self.next: list[str] = []


def find(place: Repo, configured: str | None) -> Hook | None:
    """The hook of a repository; None where its folder of hooks is outside of it, and so not ours to write to.

    Args:
        configured: The value of `core.hooksPath`, from wherever git has it.
    """
    if not configured:
        return Hook(os.path.join(place.common, "hooks"))
    top = place.worktree or place.common
    folder = os.path.realpath(os.path.join(top, configured))
    if configured.startswith(("~", "%")):
        return None
    if folder.startswith(os.path.join(place.common, "")):
        return Hook(folder)
    return Hook(folder, top) if folder.startswith(os.path.join(top, "")) else None


def outside(configured: str | None) -> UsageError:
    """The refusal to write to a folder that other repositories use too."""
    return UsageError(
        f"core.hooksPath is {configured}, outside of this repository; nothing was written.",
        hint=f"Put this line into {configured}/{PRE_PUSH} yourself: gitmem gate --pre-push </dev/null || exit 1",
        code="hooks-outside",
        next=["git config --show-origin core.hooksPath"],
    )


def refuse_bare(place: Repo) -> None:
    """UsageError in a bare repository: nobody pushes from there, so its hook would never run."""
    if place.worktree is None:
        raise UsageError(
            f"{place.common} is a bare repository, and nobody pushes from there: a pre-push hook would never run; nothing was written.",
            hint="Install it in the clones, or the worktrees, that people and agents push from.",
            code="no-worktree",
            next=["git worktree list"],
        )


def state(hook: Hook) -> str:
    """`installed`, `outdated`, `not installed` or `foreign`."""
    content = user_files.read(hook.path, hook.top)
    if marked_files.is_marked(content):
        return INSTALLED if content == TEXT.encode() else OUTDATED
    return ABSENT if content is None and not os.path.lexists(hook.path) else FOREIGN


def install(hook: Hook) -> Gated:
    """Put the gate in front of a push. UsageError where an old kept hook is in the way; nothing was written then."""
    was = state(hook)
    said = Gated(hook)
    if was == INSTALLED:
        return said
    made: list[str] = []
    if was == FOREIGN:
        if os.path.lexists(hook.kept):
            raise UsageError(
                f"{hook.path} is somebody's, and {hook.kept} is there from before; nothing was written.",
                hint="Another tool has written its hook over gitmem's. Decide which of the two is yours, and remove the other.",
                code="foreign-file",
                next=[command("ls", "-l", hook.folder)],
            )
        os.rename(hook.path, hook.kept)
        said.files.append(hook.kept)
    try:
        user_files.apply(
            FileChange(hook.path, user_files.read(hook.path), TEXT.encode(), True, top=hook.top), made
        )
    except BaseException:
        if was == FOREIGN:
            os.rename(hook.kept, hook.path)
        raise
    said.files.append(hook.path)
    said.kept = hook.kept if os.path.lexists(hook.kept) else None
    said.state = "updated" if was == OUTDATED else "installed"
    if not hook.folder.startswith(os.path.join(os.path.dirname(hook.folder), "hooks")):
        said.remarks.append(f"core.hooksPath is {hook.folder}: commit the hook if that folder is checked in.")
    said.next = ["gitmem gate --pre-push"]
    return said


def uninstall(hook: Hook) -> Gated:
    """Take the gate out; the hook that was there before is there again."""
    was = state(hook)
    said = Gated(hook)
    said.state = "absent"
    said.next = ["gitmem hooks status"]
    if was in (INSTALLED, OUTDATED):
        if said.kept is not None:
            os.replace(hook.kept, hook.path)
            said.kept = None
        else:
            user_files.apply(FileChange(hook.path, user_files.read(hook.path), None, top=hook.top), [])
        said.files = [hook.path]
        said.state = "removed"
    elif said.kept is not None:
        said.remarks.append(
            f"Another tool has written over gitmem's hook; the one from before is {hook.kept}."
        )
    return said
