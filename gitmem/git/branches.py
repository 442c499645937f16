"""What branches changed since their merge base, and which pairs of them conflict. Everything is read by ids of commits."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..repo import read_small
from ..text.digests import sha256
from . import processes
from .objects import is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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
