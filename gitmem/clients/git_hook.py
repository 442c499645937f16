"""Git's hooks, and lines of ours in those of others: pre-push runs the gate, pre-commit the guard of claims, post-commit notes who commits.

What stands in git's hook is decided by who writes it:

- nobody, or the user: our script, which then runs the hook that was there before, renamed;
- the user, in a folder of the work tree (`core.hooksPath`) or of husky: a line in the user's script;
- pre-commit: our script as `NAME.legacy`, the name under which pre-commit keeps and runs hooks of others;
- lefthook: a command in lefthook's settings;
- outside of the repository: a line that the user adds.

Git runs post-commit for each commit except those of `git merge`, for which it runs post-merge: the two are installed and removed together.

A line of ours in the files of others: in a hook script of the user's, or in the settings of lefthook.

The line starts the script that `gitmem setup --git` keeps in the git folder. Where that has not been done, it does nothing, so a
line that is committed is harmless to others. Each line of ours ends with the same remark, by which it is found and removed. It also keeps
a CR at the end of the line from being read.
"""

from __future__ import annotations

import json
import os
import re

from ..errors import StoreError, UsageError
from ..outcome import Outcome, command
from ..repo import read_small
from . import client_scope, managed_files
from .client_scope import ABSENT, INSTALLED, OUTDATED
from .managed_files import ManagedFile, OwnFile, installed_content

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..repo import Repo


FOLDER = "git-hooks"  # in the repository's state
_ENDS = ("yml", "yaml", "toml", "json", "jsonc")
LEFTHOOK_FILES = [f"{start}lefthook.{end}" for end in _ENDS for start in ("", ".", ".config/")]
_RUNS = {"pre-push": "gitmem gate --pre-push", "pre-commit": "gitmem gate --pre-commit"}
_SHELL = re.compile(rb"#!.*[/ \t](ba|da|z|k|a|mk)?sh\b")
_HUSKY_8 = re.compile(rb"\. .*/husky\.sh\b")
_PLAIN = re.compile(r"\s*(#.*)?\s*")  # after a key of YAML: its value is on the next lines


def hook_line(name: str, arguments: str = '"$@"') -> str:
    """Return the line of a hook. Only the status 1 of our script ends the hook: not that of a script that can't run."""
    find = f"gitmem_hook=$(git rev-parse --git-common-dir)/gitmem/{FOLDER}/{name}"
    run = f'[ ! -r "$gitmem_hook" ] || sh "$gitmem_hook" {arguments} || [ $? -ne 1 ] || exit 1'
    return f"{find}; {run} {_remark(name)}"


def lefthook_lines(name: str) -> list[str]:
    """Return the entry of a hook for `lefthook.yml`, without our remarks."""
    return [f"{name}:", "  commands:", "    gitmem:", "      run: |", f"        {hook_line(name, '{0}')}"]


def is_shell(content: bytes) -> bool:
    """Return whether a hook is a shell script, which git and husky also take one without a first line `#!` for."""
    return b"\0" not in content and (not content.startswith(b"#!") or _SHELL.match(content) is not None)


def _remark(name: str) -> str:
    return f"# gitmem: added by gitmem setup --git {name}"


class _LineOfOurs(ManagedFile):
    """A file of others with lines of ours.

    Attributes:
        name: The hook.
    """

    def __init__(self, path: str, name: str, *, top: str | None, runs: bool = False) -> None:
        super().__init__(path, top=top, runs=runs and not os.path.lexists(path))
        self.name = name
        self._end = _remark(name).encode()

    def is_ours(self, line: bytes) -> bool:
        """Return whether a line is ours."""
        return line.rstrip(b"\r\n").endswith(self._end)

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether our line is there, perhaps within a longer one of the user's, which is not removed."""
        return content is not None and self._end in content


class HookScript(_LineOfOurs):
    """A hook script of the user's, or one that consists of our line. Without `#!`, a CR does no harm."""

    @property
    def line(self) -> str:
        """The line that calls our script."""
        return hook_line(self.name)

    def is_current(self, content: bytes) -> bool:
        """Return whether the line is that of this version."""
        return self.line.encode() in content.splitlines()

    def with_ours(self, content: bytes | None) -> bytes:
        """Return the script with our line before its first command.

        Raises:
            UsageError: It is not a shell script.
        """
        if content is None:
            return f"{_remark(self.name)}\n{self.line}\n".encode()
        if not is_shell(content):
            raise by_hand_refusal(f"{self.path} is not a shell script", self)
        lines = [each for each in content.splitlines(keepends=True) if not self.is_ours(each)]
        # The shell's name stays first, and husky 8, which runs the hook once more.
        before = [
            at
            for at, each in enumerate(lines)
            if (at == 0 and each.startswith(b"#!")) or _HUSKY_8.match(each)
        ]
        at = before[-1] + 1 if before and lines[before[-1]].endswith(b"\n") else 0
        return b"".join([*lines[:at], self.line.encode() + b"\n", *lines[at:]])

    def without_ours(self, content: bytes) -> bytes | None:
        """Return the script without our line; None if install created it, and nothing else is in it."""
        rest = b"".join(each for each in content.splitlines(keepends=True) if not self.is_ours(each))
        return rest if rest or not content.startswith(self._end) else None


class LefthookSettings(_LineOfOurs):
    """The settings of lefthook with a command of ours."""

    @property
    def line(self) -> str:
        """The entry that calls our script."""
        run = json.dumps(hook_line(self.name, "{0}"))  # text of JSON is also one of YAML and TOML
        if self.path.endswith(".toml"):
            return f"{self.name}.commands.gitmem.run = {run}"
        return f'"{self.name}": {{"commands": {{"gitmem": {{"run": {run}}}}}}}'

    def is_current(self, content: bytes) -> bool:
        """Return whether the command calls our script, in whatever form the user has added it."""
        return f"/gitmem/{FOLDER}/{self.name}".encode() in content

    def with_ours(self, content: bytes | None) -> bytes:
        """Return the settings with our command first in its hook.

        Raises:
            UsageError: They have a form that is not edited here.
        """
        before = self.without_ours(content) if content is not None else b""
        lines = [each.decode(errors="replace") for each in before.splitlines(keepends=True)]
        place = self._place(lines) if self.path.endswith((".yml", ".yaml")) else None
        if content is None or place is None or not "".join(["\n", *lines[: place[0]]]).endswith("\n"):
            raise by_hand_refusal(f"{self.path} has a form that gitmem does not edit", self)
        at, indents = place
        end = "\r\n" if b"\r\n" in before else "\n"
        words = [each.strip() for each in lefthook_lines(self.name)][-len(indents) :]
        for number, word in enumerate(words):
            remark = "" if self.is_ours(word.encode()) else f" {_remark(self.name)}"
            words[number] = f"{indents[number]}{word}{remark}{end}"
        whole = before.splitlines(keepends=True)
        return b"".join([*whole[:at], *map(str.encode, words), *whole[at:]])

    def _place(self, lines: Sequence[str]) -> tuple[int, list[str]] | None:
        """Return before which line ours go, and the indents of ours; None if the text has another form than a plain one."""
        keys = [at for at, each in enumerate(lines) if re.match(rf"""["']?{self.name}["']?[ \t]*:""", each)]
        starts = [at for at, each in enumerate(lines) if each.startswith("---")]
        odd = any(each.startswith(("\t", "...", "%", "{", "[", "- ", "?", "\ufeff")) for each in lines)
        if odd or len(keys) > 1 or len(starts) > 1:
            return None
        if not keys:
            first = starts[0] + 1 if starts else 0
            before = [each for each in lines[:first] if each.strip() and each[0] not in "#-"]
            return None if before else (first, ["", "  ", "    ", "      ", "        "])
        return self._within(lines, keys[0])

    def _within(self, lines: Sequence[str], key: int) -> tuple[int, list[str]] | None:
        """Return the same within the hook's own lines, which begin at `key`."""
        if not _PLAIN.fullmatch(lines[key].partition(":")[2]):
            return None
        inner = []
        for at, each in enumerate(lines[key + 1 :], key + 1):
            if each.strip() and each[0] not in " #":
                break
            if each.strip() and not each.lstrip().startswith("#"):
                inner.append((at, len(each) - len(each.lstrip(" ")), each))
        step = inner[0][1] if inner else 2
        children = [(at, each) for at, indent, each in inner if indent == step]
        if any(re.match(r" *[<?]", each) for _, each in children) or (
            inner and inner[0][2].lstrip()[0] == "-"
        ):
            return None
        named = [(at, each) for at, each in children if re.match(r""" *["']?commands["']?[ \t]*:""", each)]
        if not named:
            return key + 1, [" " * step * depth for depth in (1, 2, 3, 4)]
        at, text = named[0]
        more = next((indent - step for place, indent, _ in inner if place > at and indent > step), 2)
        if not _PLAIN.fullmatch(text.partition(":")[2]) or len(named) > 1:
            return None
        return at + 1, [" " * (step + more * depth) for depth in (1, 2, 3)]

    def without_ours(self, content: bytes) -> bytes:
        """Return the settings without our command. A key that we have added stays, without our remark, if the user has put something below it."""
        kept: list[bytes] = []
        for each in reversed(content.splitlines(keepends=True)):
            if not self.is_ours(each):
                kept.append(each)
                continue
            after = next((other for other in reversed(kept) if other.strip()), b"")
            key = each[: each.index(self._end)].rstrip()
            if key.endswith(b":") and _indent(after) > _indent(each):
                kept.append(key + each[len(each.rstrip(b"\r\n")) :])
        return b"".join(reversed(kept))


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" "))


def by_hand_refusal(what: str, file: HookScript | LefthookSettings, code: str = "hook-by-hand") -> UsageError:
    """Return the error that says what to add by hand, where we don't write."""
    return UsageError(
        f"{what}. It was not changed, and nothing calls gitmem's {file.name} hook yet.",
        hint=f"It runs `{_RUNS.get(file.name, 'gitmem background note-commits')}`. Add this to {file.path} yourself: {file.line}",
        code=code,
    )


NAMES = PRE_PUSH, PRE_COMMIT, POST_COMMIT = "pre-push", "pre-commit", "post-commit"
POST_MERGE = "post-merge"
KEPT = ".before-gitmem"
EDITED = ".edited"
FOREIGN = "foreign"
NOT_RUN = "not run"
HALF = "only in files"
HUSKY, LEFTHOOK, PRE_COMMIT_TOOL = "husky", "lefthook", "pre-commit"
# Tools that write git's hooks themselves, by a text in their hooks. `prek` does what `pre-commit` does.
WRITERS = (
    (PRE_COMMIT_TOOL, b"file generated by pre"), (LEFTHOOK, b"call_lefthook"), (HUSKY, b"husky"),
)  # fmt: skip
READ_MAX = 4_096  # bytes of a hook
CONFIG = r"^core\.hookspath$"


class Hook:
    """A hook of a repository: pre-push, pre-commit, post-commit or post-merge.

    Attributes:
        name: Its name in git.
        folder: The folder where git reads hooks.
        path: The hook that git runs.
        kept: The renamed hook that existed before.
        is_outside: Whether other repositories use that folder, too, so that we don't write there.
        is_husky: Whether the folder is husky's: its hooks run those of the folder above.
        top: The work tree, if the folder is in it; no link may lead out of it.
        direct, legacy: Our script in git's hook, and as the hook that pre-commit runs.
        script, line, entry: Our script in the git folder, and what calls it: a line of a script, or a command of lefthook.
        also: The hook that is installed and removed with it, or None.
    """

    __slots__ = ("also", "direct", "entry", "folder", "is_husky", "is_outside", "kept", "legacy", "line",
                 "name", "path", "repo", "script", "top")  # fmt: skip

    def __init__(self, repo: Repo, configured: str | None, name: str) -> None:
        tree = repo.worktree or repo.common
        self.repo = repo
        self.folder = os.path.join(repo.common, "hooks")
        if configured:
            self.folder = os.path.realpath(os.path.join(tree, configured))
        in_git, in_tree = (self.folder.startswith(os.path.join(top, "")) for top in (repo.common, tree))
        self.is_outside = not (in_git or in_tree) or bool(configured and configured.startswith(("~", "%")))
        self.top = tree if in_tree and not in_git else None
        above = os.path.dirname(self.folder)
        self.is_husky = os.path.basename(self.folder) == "_" and (
            os.path.basename(above) == ".husky" or os.path.isfile(os.path.join(self.folder, "h"))
        )
        self.name = name
        self.path = os.path.join(self.folder, name)
        self.kept = self.path + KEPT
        self.direct, self.legacy = (
            OwnFile(self.path + end, hook_text(name), top=self.top, runs=True) for end in ("", ".legacy")
        )
        self.script = OwnFile(
            os.path.join(repo.state, FOLDER, name), hook_text(name), top=repo.state, runs=True
        )
        path = os.path.join(above, name) if self.is_husky else self.path
        self.line = HookScript(path, name, top=self.top, runs=not self.is_husky)
        settings = [os.path.join(tree, *each.split("/")) for each in LEFTHOOK_FILES]
        path = next(filter(os.path.isfile, settings), settings[0])
        self.entry = LefthookSettings(path, name, top=tree)
        self.also = Hook(repo, configured, POST_MERGE) if name == POST_COMMIT else None

    def writer(self) -> str | None:
        """Return the tool that writes this hook; None if none is known."""
        found = read_small(self.path, READ_MAX).lower()
        return HUSKY if self.is_husky else next((name for name, words in WRITERS if words in found), None)

    def files(self) -> list[ManagedFile]:
        """Return the files with something of ours that this hook needs, the one that is called by others last."""
        writer = self.writer()
        if self.is_husky or self.is_outside:
            return [self.script, self.line]
        if writer in (PRE_COMMIT_TOOL, LEFTHOOK):
            return [self.legacy] if writer == PRE_COMMIT_TOOL else [self.script, self.entry]
        found = self.direct.read()
        is_theirs = self.top is not None and not self.direct.has_ours(found)
        if is_theirs and (found is None or is_shell(found)):
            return [self.script, self.line]
        return [self.direct]

    def copies(self) -> Iterator[OwnFile]:
        """Return our scripts in folders of hooks, also those that another tool has renamed or that git no longer runs."""
        for folder in dict.fromkeys((self.folder, os.path.join(self.repo.common, "hooks"))):
            top = self.top if folder == self.folder else None
            for end in ("", ".legacy", ".old") if folder != self.folder or not self.is_outside else ():
                file = OwnFile(
                    os.path.join(folder, self.name + end), hook_text(self.name), top=top, runs=True
                )
                if file.has_ours(read_small(file.path, READ_MAX)):
                    yield file


class GitHookResult(Outcome):
    """The result of installing or removing a git hook.

    Attributes:
        state: `installed`, `updated`, `unchanged`, `removed` or `absent`.
        path: The hook.
        kept: The hook that existed before and runs after ours, or None.
        files: The files that were changed.
        remarks: Advice for the user.
    """

    __slots__ = ("state", "path", "kept", "files", "remarks")

    def __init__(self, hook: Hook) -> None:
        self.state = "unchanged"
        self.path = hook.files()[-1].path
        self.kept = hook.kept if os.path.lexists(hook.kept) else None
        self.files: list[str] = []
        self.remarks: list[str] = []


def hook_text(name: str = PRE_PUSH) -> str:
    """Return a hook."""
    file = POST_COMMIT if name == POST_MERGE else name
    return (
        installed_content(f"{file}.sh")
        .replace("@REPOSITORY@\n", installed_content("git-hook-repository.sh"))
        .replace("@IS_LISTED@\n", client_scope.script_parts()["is_listed"] + "\n")
        .replace("@KEPT@\n", installed_content("git-hook-kept.sh"))
        .replace("@HOOK@", name)
    )


def find_hook(repo: Repo, configured: str | None, name: str = PRE_PUSH) -> Hook:
    """Return the hook of a repository.

    Args:
        configured: The value of `core.hooksPath` in any of git's config files.
    """
    return Hook(repo, configured, name)


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
    """Return `installed`, `outdated`, `not run`, `only in files`, `not installed` or `foreign`; `outdated` also without the hook that belongs to it.

    `only in files`: a checkout brought the line that calls our script, which this clone does not have. `not run` is a hook that git does not run: it is missing or not executable, and does not belong to us.
    """
    files = hook.files()
    found = [(file, file.read()) for file in files]
    if not all(file.has_ours(there) for file, there in found):
        path = hook.line.path if hook.is_husky or hook.is_outside else hook.path
        if files[-1].has_ours(found[-1][1]):
            return HALF
        return FOREIGN if os.path.lexists(path) else ABSENT
    runs = os.access(hook.path, os.X_OK)
    if not runs and hook.direct not in files:
        return NOT_RUN
    is_whole = hook.also is None or state(hook.also) in (INSTALLED, NOT_RUN)
    runs = runs and (hook.legacy not in files or os.access(hook.legacy.path, os.X_OK))
    is_current = all(there is not None and file.is_current(there) for file, there in found)
    return INSTALLED if is_whole and runs and is_current else OUTDATED


def is_run(hook: Hook) -> bool:
    """Return whether git runs this version of ours."""
    return state(hook) == INSTALLED


def is_there(hook: Hook) -> bool:
    """Return whether it is installed, in any version and whether or not git runs it."""
    return state(hook) in (INSTALLED, OUTDATED, NOT_RUN)


def is_replaced(hook: Hook) -> bool:
    """Return whether another tool has put its hook in the place of ours, or of the one that belongs to it."""
    if hook.also is not None and is_replaced(hook.also):
        return True
    return state(hook) in (FOREIGN, ABSENT) and (os.path.lexists(hook.kept) or any(hook.copies()))


def manager(hooks: Sequence[Hook]) -> str | None:
    """Return the tool that writes git's hooks here; None if none is known."""
    return next((found for hook in hooks if (found := hook.writer()) is not None), None)


def install(hook: Hook) -> GitHookResult:
    """Install a git hook, and the one that belongs to it.

    Raises:
        UsageError: A hook renamed by an earlier install is in the way, and nothing was written; or the hook's file is not ours to
            write: the error has what to add to it, and our script is ready for that.
        StoreError: A file can't be written.
    """
    every = [hook, *([hook.also] if hook.also is not None else [])]
    for each in every:
        _refuse_two_others(each)
    was = state(hook)
    result = GitHookResult(hook)
    if was != INSTALLED:
        for each in every:
            result.files += _put(each)
        result.kept = hook.kept if os.path.lexists(hook.kept) else None
        if result.files or was == HALF:
            result.state = "updated" if was == OUTDATED else "installed"
    if hook.also is not None:
        result.remarks.append(
            f"Git runs post-merge in its place for merges, also installed: {hook.also.files()[-1].path}"
        )
    shared = [file.path for each in every if (file := each.files()[-1]) not in (each.direct, each.legacy)]
    if shared and result.files and not hook.is_outside:
        result.remarks.append(
            f"Commit {' and '.join(dict.fromkeys(os.path.relpath(path, hook.repo.worktree) for path in shared))}: other worktrees and clones run it only once they have it. Each clone also needs, once: {command('gitmem', 'setup', '--git', hook.name)}"
        )
    if state(hook) == NOT_RUN:
        by = f" {hook.writer()} makes it." if hook.is_husky else ""
        result.remarks.append(f"Git does not run it yet: {hook.path} is missing or not executable.{by}")
    return result


def _refuse_two_others(hook: Hook) -> None:
    """Refuse to choose between a hook that is not ours and the one that an earlier install has renamed."""
    file = hook.files()[-1]
    if file in (hook.direct, hook.legacy) and os.path.lexists(hook.kept) and _is_theirs(file):
        raise UsageError(
            f"{file.path} is not gitmem's hook, and {hook.kept} exists from an earlier install. Nothing was written.",
            hint="Another tool has overwritten gitmem's hook. Decide which of the two files to keep, and remove the other.",
            code="foreign-file",
            next=[command("ls", "-l", hook.folder)],
        )


def _is_theirs(file: ManagedFile) -> bool:
    return os.path.lexists(file.path) and not file.has_ours(file.read())


def _put(hook: Hook) -> list[str]:
    """Write what a hook needs, and rename the hook that is there; return the files that were changed."""
    *before, file = hook.files()
    if not before:
        return _put_in_place(hook, file)
    managed_files.write_files(
        [each.install() for each in before]
    )  # also where the rest is for the user to do
    if hook.is_outside and not file.has_ours(file.read()):
        what = f"{file.path} is outside of this repository (core.hooksPath)"
        raise by_hand_refusal(what, hook.line, "hooks-outside")
    try:
        written = [] if hook.is_outside else managed_files.write_files([file.install()])
    except StoreError as error:
        if error.code == "unwritable-file":
            error.hint = by_hand_refusal("", hook.line if file is hook.line else hook.entry).hint
        raise
    return [*written, *_give_back(hook)]


def _put_in_place(hook: Hook, file: ManagedFile) -> list[str]:
    """Write our script as git's hook, or as the one that pre-commit runs."""
    is_theirs = _is_theirs(file)
    if is_theirs:
        os.rename(file.path, hook.kept)
    try:
        written = managed_files.write_files([file.install()])
    except BaseException:
        if is_theirs:
            os.rename(hook.kept, file.path)
        raise
    return [*([hook.kept] if is_theirs else []), *written]


def _give_back(hook: Hook) -> list[str]:
    """Remove our scripts from folders of hooks, and restore the hooks that existed before; return the files that were changed."""
    changed = []
    for file in hook.copies():
        kept = os.path.join(os.path.dirname(file.path), hook.name + KEPT)
        if os.path.lexists(kept):
            change = file.remove()
            if change.after is not None:  # the user's lines, which the hook that comes back does not have
                managed_files.write_files([change._replace(path=file.path + EDITED, before=None)])
                changed.append(file.path + EDITED)
            os.replace(kept, file.path)
        else:
            managed_files.write_files([file.remove()])
        changed.append(file.path)
    return changed


def uninstall(hook: Hook, *, dry_run: bool = False) -> GitHookResult:
    """Remove a git hook and the one that belongs to it, and restore those that existed before.

    Args:
        dry_run: Whether to write nothing: the result has the files that would be changed.
    """
    result = GitHookResult(hook)
    tree = hook.entry.top or hook.folder
    husky = HookScript(os.path.join(tree, ".husky", hook.name), hook.name, top=tree)
    lines = ([] if hook.is_outside else [hook.line]) + [husky, hook.entry, hook.script]
    lines = [each for each in lines if each.has_ours(read_small(each.path, managed_files.SIZE_MAX))]
    if dry_run:
        result.files = [each.path for each in (*hook.copies(), *lines)]
        result.files += uninstall(hook.also, dry_run=True).files if hook.also is not None else []
        return result
    result.files = _give_back(hook)
    for each in lines:
        result.files += managed_files.write_files([each.remove()])
    managed_files.remove_folders([os.path.dirname(hook.script.path)])
    result.state = "removed" if result.files else "absent"
    result.kept = hook.kept if os.path.lexists(hook.kept) else None
    if result.kept is not None:
        result.remarks.append(f"Another tool has overwritten gitmem's hook; the earlier hook is {hook.kept}.")
    for file in (hook.line, hook.entry):
        if file.has_ours(read_small(file.path, managed_files.SIZE_MAX)):
            result.remarks.append(
                f"{file.path} still has gitmem's line, which does nothing now. Remove it yourself."
            )
    if hook.also is not None:
        removed = uninstall(hook.also)
        result.files += removed.files
        result.remarks += [
            *(["Its post-merge hook was removed with it."] if removed.files else []),
            *removed.remarks,
        ]
    return result
