"""What branches changed since their merge base, which pairs of them conflict, and how paths changed since given commits.

Everything is read by ids of commits. Changes of any number of paths take a few runs of git, and are cached. How a path
differs between two commits never changes. But a commit may be missing here and arrive later. So a cached answer is valid
while the files are unchanged that a fetch, a repack, or a change of shallow, graft or replace entries writes.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .. import local_files
from ..outcome import Struct
from ..repo import read_small
from ..text.digests import sha256
from . import processes
from .objects import PathChanges, is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..repo import Repo
    from .fetch import ScratchRepository
    from .processes import Result

    Pair = tuple[str, str]


CLEAN, CONFLICT, CONTAINED, SLOW, UNKNOWN = range(5)
UNKNOWN_MAX = 20  # pairs that git cannot merge, each of which costs a process
FILES_MAX = 20_000  # that a branch changed
NAMES_BYTES_MAX = 4 * 1024 * 1024  # of the names of these files
BATCH = 32  # pairs that one git merges
BATCH_SECONDS = 2.5
CONFLICTS_MAX = 100  # files of one merge that are kept by name; a digest stands for the rest
BATCH_BYTES_MAX = 32 * 1024 * 1024
UNKNOWN_OPTION = 129  # git's exit status for an option that it does not have
STDIN_SINCE = "2.39"  # the version of git whose merge-tree has --stdin
CONFIG_BYTES_MAX, FILTERS_BYTES_MAX = 1024 * 1024, 64 * 1024
_FILTERS = r"^filter\..*\.(clean|process|required)$"
_FILTER_WORDS = (b"filter", b"include")
_NAMES = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv",
          "--ignore-submodules=none")  # fmt: skip


class TooManyFilesError(Exception):
    """A branch changed more files than are compared."""


class NoMergeTreeError(Exception):
    """This git cannot merge without a worktree."""


class Tip(NamedTuple):
    """A commit at the end of a branch: the seconds since the epoch when it was committed, and its tree."""

    seconds: int
    tree: str


class Merge:
    """The result of merging two commits.

    Attributes:
        state: `CLEAN`; `CONFLICT` in `paths`; `CONTAINED` if one has all changes of the other; `SLOW` if git did not end in
            time; `UNKNOWN` if it could not merge them, such as for want of objects.
        paths: The first of the files that conflict, sorted.
        count: The number of all of them.
        digest: The SHA-256 of all of them, in hex, if `paths` has not all; else empty.
    """

    def __init__(self, state: int, paths: Sequence[str] = (), count: int = 0, digest: str = "") -> None:
        self.state = state
        self.paths = list(paths)
        self.count = count or len(self.paths)
        self.digest = digest

    @classmethod
    def conflicting(cls, paths: Iterable[str]) -> Merge:
        """Return a merge that conflicts in these files."""
        every = sorted(paths)
        if len(every) <= CONFLICTS_MAX:
            return cls(CONFLICT, every)
        digest = sha256(b"\0".join(map(os.fsencode, every))).hexdigest()
        return cls(CONFLICT, every[:CONFLICTS_MAX], len(every), digest)


def tips(scratch: ScratchRepository, oids: Iterable[str], seconds: float) -> dict[str, Tip]:
    """Return time and tree of commits; those that are missing here are left out."""
    given = "".join(f"{oid}\n" for oid in oids if is_oid(oid))
    if not given:
        return {}
    args = ["rev-list", "--no-walk=unsorted", "--ignore-missing", "--stdin", "--format=%H %ct %T"]
    done = scratch.run(args, input=given.encode("ascii"), timeout=seconds)
    if done.code != 0:
        raise processes.failure(args, done)
    found = {}
    for row in done.out.decode("ascii", "replace").splitlines():
        words = row.split(" ")
        if len(words) == 3 and words[1].isdigit():
            found[words[0]] = Tip(int(words[1]), words[2])
    return found


def merge_base(scratch: ScratchRepository, tip: str, others: Sequence[str], seconds: float) -> str | None:
    """Return the best common ancestor of a commit and any of the others; None if there is none here."""
    done = scratch.run(["merge-base", tip, *others], timeout=seconds)
    base = done.out.decode("ascii", "replace").strip()
    return base if done.code == 0 and is_oid(base) else None


def changed_files(scratch: ScratchRepository, base: str, tip: str, seconds: float) -> list[str] | None:
    """Return the names of the files that differ between two commits; None if git can't compare them.

    Raises:
        TooManyFilesError: There are more than `FILES_MAX`, or their names are too long.
    """
    try:
        done = scratch.run([*_NAMES, base, tip, "--"], timeout=seconds, out_max=NAMES_BYTES_MAX)
    except processes.GitOutputError:
        raise TooManyFilesError from None
    return _names(done.out) if done.code == 0 else None


def without_filters(common: str, git_dir: str) -> dict[str, str]:
    """Return variables for git that override the clean filters of a repository's config; none if it has none.

    Git would start them to compare the work tree, and whoever wrote the config of a copied repository would choose the program. Filters of
    the user's own config stay, such as LFS.

    Raises:
        StoreError: git's config can't be read, or has too many filters.
    """
    if not _may_have(os.path.join(common, "config")) and not _may_have(
        os.path.join(git_dir, "config.worktree")
    ):
        return {}
    args = [f"--git-dir={git_dir}", "config", "-z", "--show-scope", "--name-only", "--get-regexp", _FILTERS]
    done = processes.run(common, args, check=False, out_max=FILTERS_BYTES_MAX)
    if done.code not in (0, 1):  # 1: there are none
        raise processes.failure(args, done)
    words = done.out.decode("utf-8", "surrogateescape").split("\0")
    pairs = dict.fromkeys(zip(words[::2], words[1::2], strict=False))
    names = [name for scope, name in pairs if scope in ("local", "worktree")]
    own = processes.variable("GIT_CONFIG_COUNT") or ""
    first = int(own) if own.isdecimal() and len(own) < 9 else 0
    found = {"GIT_CONFIG_COUNT": str(first + len(names))} if names else {}
    for at, name in enumerate(names, first):
        found[f"GIT_CONFIG_KEY_{at}"] = name
        found[f"GIT_CONFIG_VALUE_{at}"] = "false" if name.endswith(".required") else ""
    return found


def _may_have(path: str) -> bool:
    """Return whether a config file may name a filter, without starting git."""
    found = read_small(path, CONFIG_BYTES_MAX).lower()
    return len(found) == CONFIG_BYTES_MAX or any(word in found for word in _FILTER_WORDS)


def uncommitted_files(common: str, git_dir: str, folder: str, seconds: float) -> list[str] | None:
    """Return the changed and untracked files of a worktree by name; None if git can't tell.

    The index is not refreshed: `run` switches optional locks off.

    Raises:
        TooManyFilesError: There are more than `FILES_MAX`, or their names are too long.
    """
    args = [f"--git-dir={git_dir}", f"--work-tree={folder}", "status", "--porcelain=v1", "-z",
            "--untracked-files=all", "--ignore-submodules=all", "--no-renames", "--no-ahead-behind"]  # fmt: skip
    try:
        done = processes.run(
            common, args, cwd=folder, timeout=seconds, out_max=NAMES_BYTES_MAX + 3 * FILES_MAX, check=False,
            env_extra=without_filters(common, git_dir),
        )  # fmt: skip
    except processes.GitOutputError:
        raise TooManyFilesError from None
    return _names(done.out, 3) if done.code == 0 else None


def _names(out: bytes, skipped: int = 0) -> list[str]:
    """Return names that end with NUL, without so many bytes in front of each."""
    found = [os.fsdecode(name[skipped:]) for name in out.split(b"\0")[:-1]]
    if len(found) > FILES_MAX:
        raise TooManyFilesError
    return found


def merges(
    scratch: ScratchRepository,
    pairs: Sequence[Pair],
    trees: dict[str, Tip],
    remaining: Callable[[], float],
    *,
    batch_seconds: float = BATCH_SECONDS,
) -> dict[Pair, Merge]:
    """Merge pairs of commits, in few runs of git. Pairs for which there is no time are missing in the result.

    The next call must not begin with the same group again: so all pairs of a group that took too long are `SLOW`, unless a later run
    merges them.

    Args:
        trees: The trees of the commits.
        remaining: Returns the seconds that are left.
        batch_seconds: The limit of one run of git.

    Raises:
        NoMergeTreeError: git is too old.
    """
    found: dict[Pair, Merge] = {}
    waiting = [list(pairs[at : at + BATCH]) for at in range(0, len(pairs), BATCH)]
    slow: set[Pair] = set()  # those of groups for which git took too long
    failed = 0
    while waiting and failed < UNKNOWN_MAX and remaining() > 0:
        group = waiting.pop(0)
        seconds = min(batch_seconds, remaining())
        try:
            done = _merge(scratch, group, seconds)
        except (processes.GitTimeoutError, processes.GitOutputError):
            # One pair is enough to stop all others: find it, and go on without it.
            if seconds == batch_seconds:
                slow.update(group)
            if len(group) > 1:
                middle = len(group) // 2
                waiting += [group[:middle], group[middle:]]
            continue
        if done.code == UNKNOWN_OPTION:
            raise NoMergeTreeError
        answers = _answers(done.out)
        for pair, (status, tree, paths) in zip(group, answers, strict=False):
            contained = tree in {trees[oid].tree for oid in pair if oid in trees}
            state = CONTAINED if contained else CLEAN
            found[pair] = Merge(state) if status == b"1" else Merge.conflicting(paths)
        rest = group[len(answers) :]
        if rest:  # git ends at a pair that it cannot merge
            found[rest[0]] = Merge(UNKNOWN)
            failed += 1
            waiting += [rest[1:]] if rest[1:] else []
    return {**dict.fromkeys(slow, Merge(SLOW)), **found}


def _merge(scratch: ScratchRepository, group: Sequence[Pair], seconds: float) -> Result:
    given = "".join(f"{one} {other}\n" for one, other in group).encode("ascii")
    args = ["merge-tree", "--write-tree", "--stdin", "--name-only", "--no-messages"]
    return scratch.run(args, input=given, timeout=seconds, out_max=BATCH_BYTES_MAX)


def _answers(out: bytes) -> list[tuple[bytes, str, list[str]]]:
    """Return status, tree and conflicting files of each whole answer: fields end with NUL, an answer with an empty one."""
    fields = out.split(b"\0")[:-1]
    found = []
    at = 0
    while at + 2 < len(fields) and fields[at] in (b"0", b"1"):
        try:
            end = fields.index(b"", at + 2)
        except ValueError:
            break
        names = dict.fromkeys(map(os.fsdecode, fields[at + 2 : end]))
        found.append((fields[at], fields[at + 1].decode("ascii", "replace"), list(names)))
        at = end + 1
    return found


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
            [tip, asked.hexdigest(), *(local_files.stamp(os.path.join(repo.common, name)) for name in SHOWS)]
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
