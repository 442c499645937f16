"""Read the user's own history and worktree: HEAD, commits and changes. Nothing is written."""

from __future__ import annotations

import os

from ..repo import read_small
from . import formats, run
from .objects import EMPTY_TREES, is_oid
from .port import WorkTree
from .read_ref import loose_tip, packed_tip

WORK_TREE_SECONDS = 30.0
ARGUMENT_BYTES = 64 * 1024  # with longer names the whole tree is compared, which may add lines with count 0
STAT_LINES = 40
_BRANCHES = "refs/heads/"
REFTABLE = ".invalid"  # branch name in the HEAD file of a repository with a reftable
_STAT = (
    "--stat=80,56", "--stat-graph-width=16", f"--stat-count={STAT_LINES}", "--no-renames", "--no-ext-diff",
    "--no-textconv", "--no-color", "--ignore-submodules=dirty",
)  # fmt: skip


class Project:
    """The port's queries about the user's own history and worktrees. `common` is the common git folder."""

    common: str

    def head(self, git_dir: str) -> tuple[str | None, str | None]:
        """Return the commit of a worktree's HEAD and its branch such as `main`; None for each that does not exist.

        Args:
            git_dir: The worktree's own git folder.
        """
        text = _head_file(git_dir)
        if not text.startswith("ref: "):
            return loose_tip(git_dir, "HEAD"), None
        ref = text.removeprefix("ref: ")
        in_tables = branch_of(text) == REFTABLE
        oid = None if in_tables else loose_tip(self.common, ref) or packed_tip(self.common, ref)
        if oid is None:  # an unborn branch, or refs in a reftable
            args = [f"--git-dir={git_dir}", "rev-parse", "--verify", "--quiet", "HEAD^{commit}"]
            oid = run.run(self.common, args, check=False).out.decode("ascii", "replace").strip() or None
        return oid, _branch_in_tables(git_dir) if in_tables else branch_of(text)

    def branch(self, git_dir: str) -> str | None:
        """Return the branch of a worktree, see `branch`."""
        return branch(git_dir)

    def find_commit(self, git_dir: str, text: str) -> str | None:
        """Return the commit that a revision such as `HEAD~3` names in that worktree, or None."""
        if not text or "\0" in text or text.startswith("-"):
            return None
        args = [f"--git-dir={git_dir}", "rev-parse", "--verify", "--quiet", "--end-of-options"]
        oid = (
            run.run(self.common, [*args, text + "^{commit}"], check=False)
            .out.decode("ascii", "replace")
            .strip()
        )
        return oid if is_oid(oid) else None

    def commits_since(self, old: str, new: str) -> list[tuple[str, str]]:
        """Return id and subject of the commits that `new` reaches and `old` does not, newest first.

        Raises:
            KeyError: one of both is missing.
        """
        form = "--format=%H %s"
        args = ["-c", "log.showSignature=false", "log", "-z", "--no-color", "--encoding=UTF-8", form,
                f"{_checked(old)}..{_checked(new)}", "--"]  # fmt: skip
        out = _asked(self.common, args, old, new).decode("utf-8", "replace")
        rows = (row.strip("\n").partition(" ") for row in out.split("\0") if row.strip("\n"))
        return [(oid, subject) for oid, _, subject in rows]

    def files_between(self, old: str, new: str) -> list[str]:
        """Return the files that differ between two commits.

        Raises:
            KeyError: one of the commits is missing.
        """
        args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv",
                "--ignore-submodules=none", _checked(old), _checked(new), "--"]  # fmt: skip
        return [os.fsdecode(name) for name in _asked(self.common, args, old, new).split(b"\0") if name]

    def work_tree(self, git_dir: str, folder: str, *, seconds: float = WORK_TREE_SECONDS) -> WorkTree:
        """Return the changes of a worktree against its HEAD, without ignored files.

        `git diff` would update the user's index with refreshed stat data, even with optional locks disabled. So `git
        status`, which respects that setting, lists the changed files, and `git diff-index` counts the lines of those
        files alone.

        Args:
            git_dir: The worktree's own git folder.
            folder: Its top folder.
            seconds: The limit of each of the two git processes.
        """
        place = [f"--git-dir={git_dir}", f"--work-tree={folder}", "-c", "diff.orderFile=/dev/null"]
        args = [*place, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=dirty",
                "--no-renames", "--no-ahead-behind"]  # fmt: skip
        out = run.run(self.common, args, cwd=folder, timeout=seconds).out
        changed, untracked = _status(out)
        if not changed:
            return WorkTree("", 0, untracked)
        tree = self.head(git_dir)[0] or EMPTY_TREES[formats.id_length(self.common)]
        named = changed if sum(map(len, changed)) <= ARGUMENT_BYTES else []
        args = [*place, "-c", "core.quotePath=false", "--literal-pathspecs", "diff-index", *_STAT, tree, "--"]
        out = run.run(self.common, [*args, *named], cwd=folder, timeout=seconds).out
        return WorkTree(out.decode("utf-8", "replace").rstrip("\n"), len(changed), untracked)


def branch(git_dir: str) -> str | None:
    """Return the branch of a worktree from its HEAD file, or None. git is asked only in a reftable."""
    found = branch_of(_head_file(git_dir))
    return _branch_in_tables(git_dir) if found == REFTABLE else found


def _branch_in_tables(git_dir: str) -> str | None:
    done = run.run(git_dir, ["symbolic-ref", "--quiet", "HEAD"], check=False)
    found = branch_of("ref: " + done.out.decode("utf-8", "surrogateescape").rstrip("\n"))
    return None if found == REFTABLE else found


def branch_of(text: str) -> str | None:
    """Return the branch that the content of a HEAD file names."""
    ref = text.removeprefix("ref: ")
    return ref.removeprefix(_BRANCHES) if ref != text and ref.startswith(_BRANCHES) else None


def _head_file(git_dir: str) -> str:
    return read_small(os.path.join(git_dir, "HEAD"), 4096).decode("utf-8", "surrogateescape").strip()


def _status(out: bytes) -> tuple[list[str], int]:
    """Return the tracked files that differ from HEAD, and the number of untracked files."""
    changed = []
    untracked = 0
    for row in out.split(b"\0"):
        kind = row[:2]
        if kind == b"? ":
            untracked += 1
        elif kind == b"1 ":
            changed.append(os.fsdecode(row.split(b" ", 8)[8]))
        elif kind == b"u ":
            changed.append(os.fsdecode(row.split(b" ", 10)[10]))
    return changed, untracked


def _checked(oid: str) -> str:
    if not is_oid(oid):
        raise KeyError(oid)  # not a name that git would resolve, nor an option
    return oid


def _asked(common: str, args: list[str], *oids: str) -> bytes:
    done = run.run(common, args, check=False)
    if done.code == 0:
        return done.out
    for oid in oids:
        if run.run(common, ["cat-file", "-e", oid + "^{commit}"], check=False).code != 0:
            raise KeyError(oid)
    raise run.failure(args, done)
