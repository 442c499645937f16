"""Which commits the lines of a file come from."""

from __future__ import annotations

import re
from typing import NamedTuple

from . import branch_changes, run
from .objects import is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..errors import StoreError

SECONDS = 30.0
OUT_MAX = 64 * 1024 * 1024
_BEYOND = re.compile(r"has only ([0-9]+) lines?")
_ESCAPE = re.compile(r'\\([abtnvfr"\\]|[0-7]{3})')
_PLAIN = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


class Lines(NamedTuple):
    """Lines of a file that come from one commit.

    Attributes:
        commit: The commit; None for lines that are not committed.
        first, length: Their numbers in the file as it is now.
        path: The file's name in that commit.
    """

    commit: str | None
    first: int
    length: int
    path: str


class TooFewLinesError(Exception):
    """The file has fewer lines; the argument is their number."""


class NotInHistoryError(Exception):
    """HEAD does not have the file."""


class IgnoreRevsError(Exception):
    """The file that `blame.ignoreRevsFile` names can't be read."""


def blame(
    common: str,
    git_dir: str,
    worktree: str,
    path: str,
    ranges: Sequence[tuple[int, int]],
    *,
    seconds: float = SECONDS,
) -> list[Lines]:
    """Return the lines of a file as it is in the work tree, with the commits that they come from, in their order.

    Moved lines and renamed files are followed. `blame.ignoreRevsFile` is read as for the user's own `git blame`.

    Args:
        path: From the top of the work tree.
        ranges: First and last line; empty for the whole file.

    Raises:
        TooFewLinesError, NotInHistoryError, IgnoreRevsError: See there.
        GitTimeoutError, GitOutputError: It took too long, or the file has too many lines.
        StoreError: git failed.
    """
    args = [
        f"--git-dir={git_dir}", f"--work-tree={worktree}", "-c", "core.quotePath=false", "blame", "--incremental", "--root", "-M", "-C",
        "--no-textconv", *(f"-L{first},{last}" for first, last in ranges), "--", path,
    ]  # fmt: skip
    done = run.run(
        common,
        args,
        cwd=worktree,
        timeout=seconds,
        out_max=OUT_MAX,
        check=False,
        env_extra=branch_changes.without_filters(common, git_dir),
    )
    if done.code != 0:
        raise _error(args, done)
    return sorted(_parse(done.out), key=lambda each: each.first)


def _error(args: Sequence[str], done: run.Result) -> Exception:
    beyond = _BEYOND.search(done.err)
    if beyond is not None:
        return TooFewLinesError(int(beyond[1]))
    if "no such path" in done.err or "no such ref" in done.err or "bad revision 'HEAD'" in done.err:
        return NotInHistoryError()
    if "could not open object name list" in done.err:
        return IgnoreRevsError()
    found: StoreError = run.failure(["blame", *args[-1:]], done)
    return found


def _parse(out: bytes) -> list[Lines]:
    """Return the groups of `git blame --incremental`: each begins with commit and numbers, and ends with a file name."""
    found = []
    head: list[str] = []
    for line in out.split(b"\n"):
        word, _, rest = line.partition(b" ")
        if word == b"filename" and len(head) == 4:
            commit = None if set(head[0]) == {"0"} else head[0]
            found.append(Lines(commit, int(head[2]), int(head[3]), _unquoted(rest)))
            head = []
        elif not head:
            words = line.decode("ascii", "replace").split(" ")
            head = words if len(words) == 4 and is_oid(words[0]) else []
    return found


def _unquoted(name: bytes) -> str:
    """Return a file name as git quotes it: odd characters as escapes, within double quotes."""
    text = name.decode("utf-8", "surrogateescape")
    if not (text.startswith('"') and text.endswith('"') and len(text) > 1):
        return text

    def plain(found: re.Match[str]) -> str:
        return chr(_PLAIN[found[1]] if found[1] in _PLAIN else int(found[1], 8) & 255)

    return _ESCAPE.sub(plain, text[1:-1])


def last_change(common: str, git_dir: str, path: str, *, seconds: float = SECONDS) -> str | None:
    """Return the last commit in HEAD's history that changed a file, also one that HEAD does not have; None if none did."""
    args = [
        f"--git-dir={git_dir}", "--literal-pathspecs", "rev-list", "--max-count=1", "HEAD", "--", path,
    ]  # fmt: skip
    done = run.run(common, args, timeout=seconds, check=False, out_max=1_000)
    oid = done.out.decode("ascii", "replace").strip()
    return oid if done.code == 0 and is_oid(oid) else None
