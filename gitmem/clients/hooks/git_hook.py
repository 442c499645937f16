"""Git's hooks: pre-push runs the gate, pre-commit the guard of claims. An existing hook is renamed, and runs after ours."""

from __future__ import annotations

import os

from ...errors import UsageError
from ...outcome import Outcome
from ...text.shell_quote import command
from .. import user_files
from ..managed_files import OwnFile, content
from . import script
from .client_scope import ABSENT, INSTALLED, OUTDATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...repo import Repo

NAMES = PRE_PUSH, PRE_COMMIT = "pre-push", "pre-commit"
_LINES = {
    PRE_PUSH: "gitmem gate --pre-push </dev/null || exit 1",
    PRE_COMMIT: "git diff --cached --name-only --no-renames -z | gitmem gate --pre-commit || exit 1",
}
KEPT = ".before-gitmem"
FOREIGN = "foreign"
CONFIG = r"^core\.hookspath$"


class Hook:
    """A hook of a repository: pre-push or pre-commit.

    Attributes:
        name: Its name in git.
        folder: The folder where git reads hooks.
        path, kept: The hook, and the renamed one that existed before.
        file: The hook, as a file of ours.
    """

    __slots__ = ("file", "folder", "kept", "name", "path")

    def __init__(self, folder: str, top: str | None = None, name: str = PRE_PUSH) -> None:
        self.folder = folder
        self.name = name
        self.path = os.path.join(folder, name)
        self.kept = self.path + KEPT
        self.file = OwnFile(
            self.path, text(name), top=top, runs=True
        )  # no link may lead out of the work tree


class GitHookResult(Outcome):
    """The result of installing or removing a git hook.

    Attributes:
        state: `installed`, `updated`, `unchanged`, `removed` or `absent`.
        path: The hook.
        kept: The hook that existed before and runs after ours, or None.
        files: The files that were changed.
        remarks: Advice for the user.
    """

    __slots__ = ("state", "path", "kept", "files", "remarks", "next")

    def __init__(self, hook: Hook) -> None:
        self.state = "unchanged"
        self.path = hook.path
        self.kept = hook.kept if os.path.lexists(hook.kept) else None
        self.files: list[str] = []
        self.remarks: list[str] = []
        self.next: list[str] = []


def text(name: str = PRE_PUSH) -> str:
    """Return a hook."""
    return content(f"{name}.sh").replace("@IS_LISTED@\n", script.parts()["is_listed"] + "\n")


def find(repo: Repo, configured: str | None, name: str = PRE_PUSH) -> Hook | None:
    """Return the hook of a repository; None if its hooks folder is outside of it, which we must not write to.

    Args:
        configured: The value of `core.hooksPath` in any of git's config files.
    """
    if not configured:
        return Hook(os.path.join(repo.common, "hooks"), name=name)
    top = repo.worktree or repo.common
    folder = os.path.realpath(os.path.join(top, configured))
    if configured.startswith(("~", "%")):
        return None
    if folder.startswith(os.path.join(repo.common, "")):
        return Hook(folder, name=name)
    return Hook(folder, top, name) if folder.startswith(os.path.join(top, "")) else None


def outside(configured: str | None, name: str = PRE_PUSH) -> UsageError:
    """Return the error that refuses to write to a folder that other repositories use, too."""
    return UsageError(
        f"core.hooksPath is outside of this repository: {configured}. Nothing was written.",
        hint=f"Add this line to {configured}/{name} yourself: {_LINES[name]}",
        code="hooks-outside",
        next=["git config --show-origin core.hooksPath"],
    )


def refuse_bare(repo: Repo, name: str = PRE_PUSH) -> None:
    """Refuse a bare repository: no push starts there, so its hooks would never run.

    Raises:
        UsageError: The repository is bare.
    """
    if repo.worktree is None:
        raise UsageError(
            f"{repo.common} is a bare repository, where a {name} hook never runs. Nothing was written.",
            hint="Install it in the clones or worktrees that people and agents push from.",
            code="no-worktree",
            next=["git worktree list"],
        )


def state(hook: Hook) -> str:
    """Return `installed`, `outdated`, `not installed` or `foreign`."""
    content = hook.file.read()
    if content is not None and hook.file.has_ours(content):
        return INSTALLED if hook.file.is_current(content) else OUTDATED
    return ABSENT if content is None and not os.path.lexists(hook.path) else FOREIGN


def install(hook: Hook) -> GitHookResult:
    """Install a git hook.

    Raises:
        UsageError: A hook renamed by an earlier install is in the way; nothing was written.
    """
    was = state(hook)
    result = GitHookResult(hook)
    if was == INSTALLED:
        return result
    if was == FOREIGN:
        if os.path.lexists(hook.kept):
            raise UsageError(
                f"{hook.path} is not gitmem's hook, and {hook.kept} exists from an earlier install. Nothing was written.",
                hint="Another tool has overwritten gitmem's hook. Decide which of the two files to keep, and remove the other.",
                code="foreign-file",
                next=[command("ls", "-l", hook.folder)],
            )
        os.rename(hook.path, hook.kept)
        result.files.append(hook.kept)
    try:
        user_files.write([hook.file.install()])
    except BaseException:
        if was == FOREIGN:
            os.rename(hook.kept, hook.path)
        raise
    result.files.append(hook.path)
    result.kept = hook.kept if os.path.lexists(hook.kept) else None
    result.state = "updated" if was == OUTDATED else "installed"
    if not hook.folder.startswith(os.path.join(os.path.dirname(hook.folder), "hooks")):
        result.remarks.append(
            f"core.hooksPath is {hook.folder}: commit the hook if that folder is checked in."
        )
    result.next = ["gitmem gate --pre-push" if hook.name == PRE_PUSH else "gitmem claim list"]
    return result


def uninstall(hook: Hook) -> GitHookResult:
    """Remove the gate, and restore the hook that existed before."""
    was = state(hook)
    result = GitHookResult(hook)
    result.state = "absent"
    result.next = ["gitmem hooks status"]
    if was in (INSTALLED, OUTDATED):
        if result.kept is not None:
            os.replace(hook.kept, hook.path)
            result.kept = None
        else:
            user_files.write([hook.file.remove()])
        result.files = [hook.path]
        result.state = "removed"
    elif result.kept is not None:
        result.remarks.append(f"Another tool has overwritten gitmem's hook; the earlier hook is {hook.kept}.")
    return result
