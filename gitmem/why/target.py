"""What `gitmem why` is asked about: a file, some of its lines, or a commit."""

from __future__ import annotations

import os
import re

from ..errors import UsageError
from ..git import blame
from ..index.resolve_id import shown_by
from ..memory import anchors
from ..repo import READING
from ..text.sanitize import sanitize
from ..text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store

_LINES = re.compile(r"(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?", re.DOTALL)
BINARY_BYTES = 8_000  # at the beginning of a file, in which git looks for NUL
SHOWN_MAX = 120


class Target:
    """A commit, or a file and perhaps a range of its lines.

    Attributes:
        commit: The commit, or None.
        path: The file, from the top of the work tree; or None.
        lines: First and last line, or None for the whole file.
    """

    def __init__(
        self, commit: str | None = None, path: str | None = None, lines: tuple[int, int] | None = None
    ) -> None:
        self.commit = commit
        self.path = path
        self.lines = lines

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The range of lines, if there is one."""
        return [self.lines] if self.lines is not None else []


def find(store: Store, folder: str, text: str) -> Target:
    """Return what a text means: a file that exists, with or without lines, else a commit.

    Args:
        folder: The current folder: paths are relative to it.

    Raises:
        UsageError: It is none of these, or nothing that lines can be asked of.
    """
    top = store.repo.worktree
    parts = _LINES.fullmatch(text)
    if top is not None and text.strip():
        if os.path.lexists(os.path.join(folder, text)):
            return Target(path=_file(store, folder, text))
        if parts is not None and os.path.lexists(os.path.join(folder, parts[1])):
            return Target(path=_file(store, folder, parts[1]), lines=_range(text, parts))
    commit = store.git.find_commit(store.repo.git_dir, text)
    if commit is not None:
        return Target(commit=commit)
    if top is None:
        raise UsageError(
            f"Unknown commit: {_shown(text)}. A bare repository has no files to ask about.",
            hint="Give a commit, or run it in a worktree.",
            code="unknown-commit",
        )
    if own := shown_by(text):
        raise UsageError(
            f"{_shown(text)} is neither a file nor a commit.",
            hint="Ask about a file, a line as FILE:LINE, or a commit.",
            code="unknown-target",
            next=[own],
        )
    raise _missing(store, folder, parts[1] if parts is not None else text)


def _file(store: Store, folder: str, typed: str) -> str:
    path = anchors.from_root(store.repo, folder, typed)
    where = os.path.join(store.repo.worktree or "", path)
    if os.path.isdir(where) and not os.path.islink(where):
        raise UsageError(
            f"{_shown(typed)} is a folder.",
            hint="Ask about a file, a line as FILE:LINE, or a commit.",
            code="folder",
            next=[command("git", "log", "--oneline", "-10", "--", path)],
        )
    if not os.path.islink(where):
        if not os.path.isfile(where):
            raise UsageError(
                f"{_shown(typed)} is not a regular file: it has no lines.",
                hint="Ask about a file, a line as FILE:LINE, or a commit.",
                code="special-file",
            )
        if b"\0" in _beginning(where, typed):
            raise UsageError(
                f"{_shown(typed)} is binary: it has no lines.",
                hint="Ask about a commit that changed it.",
                code="binary",
                next=[command("git", "log", "--oneline", "-10", "--", path)],
            )
    return path


def _beginning(where: str, typed: str) -> bytes:
    try:
        with open(os.open(where, READING), "rb") as file:  # by now it may be a pipe
            return file.read(BINARY_BYTES) or b""
    except OSError as error:
        raise UsageError(f"Cannot read {_shown(typed)}: {error.strerror}.", code="unreadable") from error


def _range(text: str, parts: re.Match[str]) -> tuple[int, int]:
    first, last = int(parts[2]), int(parts[3] or parts[2])
    if first < 1 or last < first:
        raise UsageError(
            f"Invalid lines: {_shown(text)}; lines begin with 1, and a range with the smaller number.",
            hint="Use a form such as src/parser.py:10 or src/parser.py:10-20.",
            code="bad-lines",
        )
    return first, last


def _missing(store: Store, folder: str, typed: str) -> UsageError:
    """Return the error for a file that is not there, with the commit that removed it."""
    path = anchors.from_root(store.repo, folder, typed) if typed.strip() else ""
    commit = blame.last_change(store.repo.common, store.repo.git_dir, path) if path else None
    if commit is not None:
        return UsageError(
            f"{_shown(typed)} is not in the work tree. The last commit that changed it is {commit[:12]}.",
            hint="Ask about that commit, or restore the file.",
            code="deleted",
            next=[command("gitmem", "why", commit[:12])],
        )
    return UsageError(
        f"No such file or commit: {_shown(typed) or '(empty)'}.",
        hint="Use a file, a line as FILE:LINE, lines as FILE:10-20, or a commit.",
        code="unknown-target",
    )


def not_committed(path: str) -> UsageError:
    """Return the error for a file that no commit at HEAD has."""
    return UsageError(
        f"{_shown(path)} is in no commit of this branch.",
        hint="Commit it first; then its lines have an origin.",
        code="untracked",
        next=[command("git", "status", "--short", "--", path)],
    )


def too_few(path: str, count: int) -> UsageError:
    """Return the error for a line beyond the end of a file."""
    has = "is empty" if not count else f"has {count} line{'' if count == 1 else 's'}"
    return UsageError(
        f"{_shown(path)} {has}.",
        hint="Ask about a line that it has.",
        code="no-such-line",
        next=[command("gitmem", "why", f"{path}:{count}" if count else path)] if count else [],
    )


def _shown(text: str) -> str:
    return sanitize(text)[:SHOWN_MAX]
