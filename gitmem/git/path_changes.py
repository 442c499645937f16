"""Changes of the user's paths since given commits, for any number of paths in a few runs of git, and cached.

How a path differs between two commits never changes. But a commit may be missing here and arrive later. So a cached answer
is valid while the files are unchanged that a fetch, a repack, or a change of shallow, graft or replace entries writes.
"""

from __future__ import annotations

import os

from .. import local_files
from ..outcome import Struct
from ..text.digests import sha256
from . import processes
from .objects import PathChanges, is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..repo import Repo

    Pair = tuple[str, str]


WALK_MAX = 5_000  # commits; beyond that `at_least` is reported instead of an exact count
BASES_AT_ONCE = 2_000
# Git compares every name with every requested path: for more paths, listing all changes is faster.
PATHS_ASKED_MAX = 32
# The user's configuration may change what `git log` does; these options override it.
_LOG = (
    "log", "--stdin", "-z", "--raw", "-r", "--full-history", "--sparse", "--diff-merges=combined", "--no-renames",
    "--no-follow", "--no-ext-diff", "--no-textconv", "--no-color", "--no-notes", "--no-mailmap",
    "--no-show-signature", "--ignore-submodules=none", "-O/dev/null", "--format=%H %P",
)  # fmt: skip


class _Step(Struct):
    """A commit of the walk: its parents, and which of the wanted paths it changed."""

    oid: str
    parents: Sequence[str]
    touched: set[str] = set()


def behind(
    common: str, tip: str, pairs: Iterable[Pair], *, walk_max: int = WALK_MAX
) -> dict[Pair, PathChanges]:
    """Return the pairs of commit and path that differ at `tip`, with the changes that the commit lacks.

    Args:
        walk_max: The number of commits to look at.
    """
    wanted = [
        (commit, path)
        for commit, path in dict.fromkeys(pairs)
        if commit != tip and is_oid(commit) and _is_plain(path)
    ]
    differing = _differing(common, tip, wanted)
    if not differing:
        return {}
    commits = list(dict.fromkeys(commit for commit, _ in differing))
    steps = _walk(common, tip, commits, {path for _, path in differing}, walk_max + 1)
    cut = len(steps) > walk_max
    steps = steps[:walk_max]
    reached = _ancestors_as_bits(steps)
    touching = _touching(steps)
    found = {}
    for (commit, path), (was_there, is_there) in differing.items():
        missed = touching.get(path, 0) & reached.get(tip, 0) & ~reached.get(commit, 0)
        last = steps[(missed & -missed).bit_length() - 1].oid if missed else None
        at_least = cut and commit not in reached
        count = missed.bit_count()
        if not was_there and is_there and not at_least:
            count -= 1  # the commit that added the path contains knowledge from before the commit
        if count > 0 or at_least:
            found[commit, path] = PathChanges(count, last, not is_there, at_least)
    return found


def _is_plain(path: str) -> bool:
    """Return whether git looks the path up literally: it resolves `./a` against a folder of its choice."""
    return not {"", ".", ".."} & set(path.split("/")) and "\0" not in path


def _needs_nul(name: str) -> bool:
    """Return whether a name does not survive as one line: git takes a CR before the LF as part of the line end."""
    return "\n" in name or name.endswith("\r")


def _differing(common: str, tip: str, pairs: Sequence[Pair]) -> dict[Pair, tuple[bool, bool]]:
    """Return the pairs whose commit exists here and whose path differs at `tip`.

    Returns:
        For each pair, whether the path exists in the commit and at `tip`.
    """
    if not pairs:
        return {}
    asked: dict[Pair, None] = {(commit, ""): None for commit, _ in pairs}
    asked |= {(tip, path): None for _, path in pairs}
    asked |= dict.fromkeys(pairs)
    oids = _objects(common, list(asked))
    found = {}
    for commit, path in pairs:
        old, new = oids[commit, path], oids[tip, path]
        if oids[commit, ""] is not None and old != new:
            found[commit, path] = (old is not None, new is not None)
    return found


def _objects(common: str, asked: Sequence[Pair]) -> dict[Pair, str | None]:
    """Return the object id of each commit and path (empty: the commit itself); None if missing."""
    names = [f"{commit}:{path}" if path else f"{commit}^{{commit}}" for commit, path in asked]
    wide = any(_needs_nul(name) for name in names)
    end = b"\0" if wide else b"\n"
    words = [name.encode("utf-8", "surrogateescape") for name in names]
    args = ["cat-file", "--batch-check=%(objectname)", *(["-z"] if wide else [])]
    done = processes.run(common, args, input=b"".join(word + end for word in words), check=not wide)
    if done.code != 0:  # git before 2.38 cannot look up such names
        lines = [pair for pair in asked if not _needs_nul(pair[1])]
        return dict.fromkeys(asked) | _objects(common, lines)
    out = done.out
    found: dict[Pair, str | None] = {}
    at = 0
    for pair, word in zip(asked, words, strict=True):
        gone = word + b" missing\n"  # git repeats the name, including its newlines
        if out.startswith(gone, at):
            found[pair] = None
            at += len(gone)
            continue
        stop = out.index(b"\n", at)
        found[pair] = out[at:stop].split(b" ")[0].decode("ascii", "replace")
        at = stop + 1
    return found


def _walk(common: str, tip: str, commits: Sequence[str], paths: set[str], most: int) -> list[_Step]:
    """Return the commits reachable from `tip` and the commits, down to their common base, newest first."""
    base = _common_base(common, [tip, *commits])
    asked = sorted(paths) if len(paths) <= PATHS_ASKED_MAX else []
    lines = [path for path in asked if not _needs_nul(path)]
    rest = [path for path in asked if _needs_nul(path)]
    revisions = [tip, *commits, *([f"^{base}"] if base else []), "--"]
    words = "".join(f"{line}\n" for line in [*revisions, *lines]).encode("utf-8", "surrogateescape")
    args = ["--literal-pathspecs", "-c", "log.showRoot=true", *_LOG, f"--max-count={most}"]
    out = processes.run(common, [*args, "--", *rest], input=words).out
    return _steps(out, paths)


def _common_base(common: str, commits: Sequence[str]) -> str | None:
    """Return a common ancestor of all commits, or None."""
    base = commits[0]
    for start in range(1, len(commits), BASES_AT_ONCE):
        some = commits[start : start + BASES_AT_ONCE]
        done = processes.run(common, ["merge-base", "--octopus", base, *some], check=False)
        base = done.out.decode("ascii", "replace").strip()
        if done.code != 0 or not is_oid(base):
            return None
    return base


def _steps(out: bytes, paths: set[str]) -> list[_Step]:
    """Parse git's output: `oid parents`, then a `:…` row and a path for each changed file."""
    steps: list[_Step] = []
    tokens = iter(out.split(b"\0"))
    for token in tokens:
        word = token.lstrip(b"\n")
        if word.startswith(b":"):
            steps[-1].touched |= _above(next(tokens, b"").decode("utf-8", "surrogateescape"), paths)
        elif word:
            oid, *parents = word.decode("ascii").split(" ")
            steps.append(_Step(oid, parents))
    return steps


def _above(path: str, wanted: set[str]) -> set[str]:
    """Return those of the wanted paths that are the file or a parent folder of it."""
    found = {path} & wanted
    at = path.find("/")
    while at != -1:
        if path[:at] in wanted:
            found.add(path[:at])
        at = path.find("/", at + 1)
    return found


def _touching(steps: Sequence[_Step]) -> Mapping[str, int]:
    """Return for each wanted path the steps that changed it, as a bit mask over `steps`."""
    found: dict[str, int] = {}
    for at, step in enumerate(steps):
        for path in step.touched:
            found[path] = found.get(path, 0) | 1 << at
    return found


def _ancestors_as_bits(steps: Sequence[_Step]) -> Mapping[str, int]:
    """Return for each commit of the walk the commits that it reaches, including itself, as a bit mask over `steps`."""
    number = {step.oid: at for at, step in enumerate(steps)}
    reached: dict[str, int] = {}
    todo = [step.oid for step in steps]
    while todo:  # parents first, whatever the order of their dates
        oid = todo[-1]
        if oid in reached:
            todo.pop()
            continue
        parents = [parent for parent in steps[number[oid]].parents if parent in number]
        waiting = [parent for parent in parents if parent not in reached]
        if waiting:
            todo += waiting
            continue
        todo.pop()
        mask = 1 << number[oid]
        for parent in parents:
            mask |= reached[parent]
        reached[oid] = mask
    return reached


FOLDER = "behind"  # below the state folder; at most 256 files, named by two hex digits
SHOWS = (
    "FETCH_HEAD",
    "shallow",
    "packed-refs",
    "objects/pack",
    "objects/info/alternates",
    "info/grafts",
    "refs/replace",
)
ROW_MAX = 200  # characters
BYTES_MAX = 1024 * 1024
_HEX = frozenset("0123456789abcdef")


class CachedPathChanges:
    """The cached answer to one query.

    Args:
        repo: Where the repository is.
        tip: The commit that is compared with.
        pairs: Pairs of commit and path, each once.
    """

    def __init__(self, repo: Repo, tip: str, pairs: Sequence[Pair]) -> None:
        asked = sha256("\0".join(word for pair in pairs for word in pair).encode("utf-8", "surrogateescape"))
        self._pairs = pairs
        self._path = os.path.join(repo.state, FOLDER, asked.hexdigest()[:2])
        self._head = " ".join(
            [tip, asked.hexdigest(), *(_stamp(os.path.join(repo.common, name)) for name in SHOWS)]
        )

    def read(self) -> dict[Pair, PathChanges] | None:
        """Return the answer; None if it is not cached or not valid."""
        head, *rows = local_files.read(self._path, BYTES_MAX).decode("utf-8", "replace").split("\n")
        if head != self._head or not rows or rows.pop():
            return None
        found = {}
        try:
            for row in rows:
                number, count, last, gone, at_least = row.split(" ")
                if len(row) > ROW_MAX or not _HEX.issuperset(last):
                    return None
                found[self._pairs[int(number)]] = PathChanges(
                    int(count), last or None, gone == "1", at_least == "1"
                )
        except (ValueError, IndexError):
            return None
        return found

    def write(self, found: Mapping[Pair, PathChanges]) -> None:
        """Cache an answer. Never raise an error."""
        rows = [
            f"{number} {each.count} {each.last or ''} {each.gone:d} {each.at_least:d}"
            for number, pair in enumerate(self._pairs)
            if (each := found.get(pair)) is not None
        ]
        try:
            local_files.make_dir(os.path.dirname(self._path))
            local_files.replace(self._path, "\n".join([self._head, *rows, ""]).encode())
        except OSError:
            return


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"
