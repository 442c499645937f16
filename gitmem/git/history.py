"""The user's history: commits, who made them and their patch ids, the reflog of HEAD, and which commits lines come from.

Whatever subjects, authors and dates of commits say is data.
"""

from __future__ import annotations

import os
import re
import time
from typing import NamedTuple

from .. import local_files
from ..repo import read_small
from . import branches, files, processes
from .objects import is_oid
from .plumbing import REFLOG_IDENTITY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..errors import StoreError
    from ..repo import Repo

    Pair = tuple[str, str]


SECONDS = 5.0
OUT_BYTES_MAX = 8 * 1024 * 1024
AUTHOR_COLUMNS, MAIL_COLUMNS, SUBJECT_COLUMNS = 80, 254, 200
SECONDS_MAX = 253_402_300_799  # the end of the year 9999
_FIELDS = 6
# The user's configuration may change what `git log` does; these options override it.
_LOG = (
    "-c", "log.showRoot=true", "-c", "log.excludeDecoration=", "log", "--stdin", "-z", "--date-order", "--source", "--no-color", "--no-notes",
    "--no-mailmap", "--no-show-signature", "--no-patch", "--ignore-missing", "--encoding=UTF-8",
    f"--format=%H%x00%ct%x00%S%x00%<({AUTHOR_COLUMNS},trunc)%an%x00%<({MAIL_COLUMNS},trunc)%ae%x00%<({SUBJECT_COLUMNS},trunc)%s",
)  # fmt: skip


class UserCommit(NamedTuple):
    """A commit.

    Attributes:
        seconds: Since the epoch, when it was committed.
        tip: The commit from which it was reached first.
    """

    oid: str
    seconds: int
    tip: str
    author: str
    mail: str
    subject: str


def newest_commits(common: str, tips: Iterable[str], most: int) -> list[UserCommit]:
    """Return the newest commits that are reachable from some commits, children before parents.

    Nothing is fetched in a partial clone; a shallow clone ends where it ends.

    Args:
        common: The repository.
        tips: The commits; missing ones are ignored.
        most: How many to return.

    Raises:
        StoreError: git failed, did not end in time or wrote too much.
    """
    given = "".join(f"{oid}\n" for oid in dict.fromkeys(tips) if is_oid(oid))
    if not given:
        return []
    out = processes.run(
        common,
        [*_LOG, f"--max-count={most}"],
        input=given.encode("ascii"),
        timeout=SECONDS,
        out_max=OUT_BYTES_MAX,
    ).out
    words = out.decode("utf-8", "replace").split("\0")
    found = []
    for at in range(0, len(words) - _FIELDS + 1, _FIELDS):
        oid, when, tip, author, mail, subject = words[at : at + _FIELDS]
        if is_oid(oid) and when.isdigit():
            found.append(
                UserCommit(oid, _within(when), tip, author.rstrip(), mail.rstrip(), subject.rstrip())
            )
    return found


def _within(seconds: str) -> int:
    """Return a time that other programs can show: a commit may have any."""
    return min(int(seconds[:12]), SECONDS_MAX)


PATCHES_AT_ONCE = 50
PATCHES_BYTES_MAX = 32 * 1024 * 1024
FACTS_BYTES_MAX = 16 * 1024 * 1024
RANGE_MAX = 2_000
_HUNK = re.compile(rb"@@ -[0-9,]+ \+([0-9]{1,9})(?:,([0-9]{1,9}))? @@")
PERSON_COLUMNS, LONG_SUBJECT_COLUMNS, PARENTS_MAX = (
    200,
    500,
    100,
)  # of a commit; texts are cut, as others wrote them
_PERSON = f"%<({PERSON_COLUMNS},trunc)%an%x00%<({PERSON_COLUMNS},trunc)%ae"
_FORMAT = f"--format=%H%x00%P%x00%T%x00{_PERSON}%x00%at%x00%ct%x00%<({LONG_SUBJECT_COLUMNS},trunc)%s"
# What the user has configured must not change the ids: they are compared with those of other clones.
_DIFF = (
    "diff-tree", "--stdin", "-r", "-p", "--root", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index", "-U3",
    "--diff-algorithm=myers", "--no-indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none",
    "-O/dev/null",
)  # fmt: skip


class CommitFacts(NamedTuple):
    """A commit: its first parents, its tree, and who made it, with times in seconds since the epoch. Long texts are cut."""

    parents: tuple[str, ...]
    tree: str
    author: str
    authored: int
    committed: int
    subject: str

    @property
    def is_fresh(self) -> bool:
        """Whether it was authored when it was committed: its changes were not made in another commit before."""
        return self.authored == self.committed


def facts_of(
    common: str, oids: Iterable[str], seconds: float, *, out_max: int = FACTS_BYTES_MAX
) -> dict[str, CommitFacts]:
    """Return the facts of commits; those that are missing here, and those that are too large, are left out.

    Raises:
        StoreError: git failed, or did not end in time.
    """
    asked = [oid for oid in dict.fromkeys(oids) if is_oid(oid)]
    until = time.monotonic() + seconds
    waiting, found = [asked] if asked else [], {}
    while waiting:
        some = waiting.pop(0)
        try:
            found.update(_facts(common, ["--no-walk=unsorted"], some, until - time.monotonic(), out_max))
        except processes.GitOutputError:  # one with millions of parents must not hide the others
            if len(some) > 1:
                waiting[:0] = [some[: len(some) // 2], some[len(some) // 2 :]]
    return found


def written_at(common: str, oid: str) -> int | None:
    """Return when the file of a commit was written, in microseconds since the epoch; None if it is in a pack or elsewhere."""
    if not is_oid(oid):
        return None
    try:
        return os.lstat(os.path.join(common, "objects", oid[:2], oid[2:])).st_mtime_ns // 1000
    except OSError:
        return None


def facts_between(
    common: str, revisions: Sequence[str], seconds: float, *options: str
) -> dict[str, CommitFacts]:
    """Return the facts of the commits that revisions and options of `git rev-list` select, at most 2,000.

    Args:
        revisions: Object ids and names of refs, with `^` for those whose history is left out; missing ones are ignored.

    Raises:
        StoreError: git failed, or did not end in time.
    """
    return _facts(common, [f"--max-count={RANGE_MAX}", *options], revisions, seconds)


def _facts(
    common: str,
    options: Sequence[str],
    revisions: Sequence[str],
    seconds: float,
    out_max: int = FACTS_BYTES_MAX,
) -> dict[str, CommitFacts]:
    given = "".join(f"{each}\n" for each in revisions).encode("ascii")
    done = processes.run(
        common,
        ["rev-list", "--ignore-missing", *options, "--stdin", _FORMAT],
        input=given,
        timeout=max(0.1, seconds),
        out_max=out_max,
    )
    found = {}
    for line in done.out.decode("utf-8", "replace").split("\n"):
        words = line.split("\0")
        if len(words) == 8:
            oid, parents, tree, name, mail, authored, committed, subject = words
            author = f"{name.rstrip()} <{mail.rstrip()}>"
            first = tuple(parents.split(" ", PARENTS_MAX)[:PARENTS_MAX]) if parents else ()
            found[oid] = CommitFacts(first, tree, author, _time(authored), _time(committed), subject.rstrip())
    return found


def _time(text: str) -> int:
    """Return a time that can be shown, in seconds: a commit may have any number, or none."""
    return min(int(text), SECONDS_MAX) if text.isdecimal() else 0


def patch_ids(common: str, oids: Iterable[str], seconds: float) -> dict[str, str]:
    """Return the patch ids of commits. Merges, commits without changes and those that take too long are left out."""
    return {
        oid: found for (oid, _), found in _patch_ids(common, [(oid, "") for oid in oids], seconds).items()
    }


def step_ids(common: str, trees: Iterable[Pair], seconds: float) -> dict[Pair, str]:
    """Return the patch ids of what changes one tree into another, for pairs of trees."""
    found: dict[Pair, str] = {}
    until = time.monotonic() + seconds
    waiting = [pair for pair in dict.fromkeys(trees) if pair[0] != pair[1]]
    while waiting:  # git names only the first tree in its answer: one pair of each first tree at a time
        some = {pair[0]: pair for pair in waiting}
        found.update(_patch_ids(common, list(some.values()), until - time.monotonic()))
        waiting = [pair for pair in waiting if some[pair[0]] != pair]
    return found


def _patch_ids(common: str, asked: Sequence[Pair], seconds: float) -> dict[Pair, str]:
    until = time.monotonic() + seconds
    pairs = [pair for pair in dict.fromkeys(asked) if is_oid(pair[0]) and (not pair[1] or is_oid(pair[1]))]
    waiting = [pairs[at : at + PATCHES_AT_ONCE] for at in range(0, len(pairs), PATCHES_AT_ONCE)]
    found: dict[Pair, str] = {}
    while waiting and (left := until - time.monotonic()) > 0:
        group = waiting.pop(0)
        given = "".join(f"{' '.join(filter(None, pair))}\n" for pair in group).encode("ascii")
        try:
            diff = processes.run(
                common, list(_DIFF), input=given, timeout=left, out_max=PATCHES_BYTES_MAX, check=False
            ).out
            left = max(0.1, until - time.monotonic())
            done = (
                processes.run(common, ["patch-id", "--stable"], input=diff, timeout=left, check=False)
                if diff
                else None
            )
        except (processes.GitTimeoutError, processes.GitOutputError):
            if len(group) > 1:  # one commit may be enough to stop all others
                middle = len(group) // 2
                waiting[:0] = [group[:middle], group[middle:]]
            continue
        first = {pair[0]: pair for pair in group}
        for line in done.out.decode("ascii", "replace").splitlines() if done is not None else ():
            patch, _, oid = line.partition(" ")
            if oid in first and is_oid(patch):
                found[first[oid]] = patch
    return found


def added_lines(common: str, asked: Sequence[Pair], path: str, seconds: float) -> dict[str, list[int]]:
    """Return the numbers of the lines that commits add to a file, by the commit.

    Args:
        asked: A commit, and the one that it is compared with; "" for its parent.

    Raises:
        StoreError: git failed, did not end in time, or wrote too much.
    """
    given = "".join(f"{' '.join(filter(None, pair))}\n" for pair in asked).encode("ascii")
    args = ["--literal-pathspecs", *_DIFF, "-U0", "--", path]
    out = processes.run(common, args, input=given, timeout=seconds, out_max=PATCHES_BYTES_MAX).out
    found: dict[str, list[int]] = {}
    at = ""
    for line in out.split(b"\n"):
        hunk = _HUNK.match(line)
        if hunk is not None:
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(at, []).extend(range(first, first + count))
        elif line[:1] not in b"+-" and is_oid(name := line.decode("ascii", "replace")):
            at = name
    return found


_WRITER = {**REFLOG_IDENTITY, "GIT_AUTHOR_NAME": "gitmem", "GIT_AUTHOR_EMAIL": "gitmem@localhost"}


def write_note(common: str, ref: str, oid: str, note: bytes) -> None:
    """Write a note about a commit, in place of the one that it has.

    Raises:
        StoreError: git failed, or did not end in time.
    """
    args = ["notes", f"--ref={ref}", "add", "--force", "--file=-", oid]
    processes.run(common, args, input=note, timeout=SECONDS, env_extra=_WRITER)


READ_MAX = 1024 * 1024  # bytes of the end of the file
POST_COMMIT, POST_MERGE = "post-commit", "post-merge"  # git's hooks
# What git writes in front of the subject. The groups name how the commit was made.
_COMMIT = re.compile(r"commit(?: \((initial|amend|merge|cherry-pick|rebase)\))?: ")
_STEP = re.compile(r"(?:rebase|pull)\b.*?\((?:pick|reword|edit|squash|fixup|continue|merge)\): ")
_MERGE = re.compile(r"(?:merge|pull)\b.*?: Merge made by ")
_START = re.compile(r"(?:rebase|pull)\b.*?\(start\): ")
_PLAIN = (("cherry-pick: ", "cherry-pick"), ("revert: ", "revert"), ("am: ", "apply"))
_ZERO = frozenset("0")


class ReflogEntry(NamedTuple):
    """An entry of a reflog.

    Attributes:
        old: The commit at HEAD before; None in the first entry.
        new: The commit after.
        seconds: When, since the epoch, by the committer's clock.
        action: `commit`, `amend`, `merge`, `revert`, `cherry-pick`, `rebase` or `apply`; `start` for the beginning of a rebase; ""
            for everything that makes no commit.
        end: The number of bytes of the file up to the end of this entry.
        hook: The hook that git has run after the commit: `post-commit`, of `git merge` and `git pull` `post-merge`, or "".
    """

    old: str | None
    new: str
    seconds: int
    action: str
    end: int
    hook: str


def read_reflog(git_dir: str) -> list[ReflogEntry]:
    """Return the last entries, oldest first; none if there is no such file. Lines that are no entries are left out."""
    data, start = read_tail(files.reflog(git_dir), READ_MAX)
    found = []
    at = data.find(b"\n") + 1 if start else 0
    while (end := data.find(b"\n", at)) >= 0:
        entry = _entry(data[at:end], start + end + 1)
        if entry is not None:
            found.append(entry)
        at = end + 1
    return found


def read_tail(path: str, most: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, at most so many, and where they begin; none if it is missing, unreadable or not a regular file."""
    try:
        with open(local_files.open_file(path, os.O_RDONLY), "rb") as file:
            start = file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read(most), start
    except OSError:
        return b"", 0


def _entry(line: bytes, end: int) -> ReflogEntry | None:
    head, _, message = line.decode("utf-8", "replace").partition("\t")
    old, _, rest = head.partition(" ")
    new, _, who = rest.partition(" ")
    words = who.rsplit(" ", 2)
    if not (is_oid(old) and is_oid(new) and len(words) == 3 and words[1].isdecimal() and len(words[1]) < 12):
        return None
    return ReflogEntry(None if _ZERO.issuperset(old) else old, new, int(words[1]), *_action(message, end))


def _action(message: str, end: int) -> tuple[str, int, str]:
    """Return what made the commit of an entry, its end, and the hook that ran after it: see `Entry`."""
    made = _COMMIT.match(message)
    if made is not None:
        how = made[1] or "commit"
        return "commit" if how == "initial" else how, end, POST_COMMIT
    for start, action in _PLAIN:
        if message.startswith(start) and message != "cherry-pick: fast-forward":
            return action, end, "" if action == "apply" else POST_COMMIT
    if _START.match(message):
        return "start", end, ""
    if _STEP.match(message):
        return "rebase", end, POST_COMMIT
    return ("merge", end, POST_MERGE) if _MERGE.match(message) else ("", end, "")


AT_ONCE = 5_000  # commits per git process
_COMPARE = ("diff-tree", "--stdin", "-r", "-m", "--numstat", "-z", "--no-renames", "--diff-filter=a")


def removals(common: str, commits: Sequence[str], at_once: int = AT_ONCE) -> list[tuple[str, str]] | None:
    """Return the commits that removed lines from files, each with the file's path, in the order of the commits.

    git does not count lines of binary files, so they are included whenever they changed. For every other changed or
    deleted file git reads both versions.

    Args:
        commits: Full object ids.
        at_once: The number of commits for one git process.

    Returns:
        Pairs of commit and path; None if git could not read an object.

    Raises:
        StoreError: git could not be started or timed out.
    """
    found: list[tuple[str, str]] = []
    for start in range(0, len(commits), at_once):
        given = "".join(f"{oid}\n" for oid in commits[start : start + at_once]).encode("ascii")
        done = processes.run(common, [*processes.SMALL_DELTA_CACHE, *_COMPARE], input=given, check=False)
        if done.code != 0:
            return None
        found += _parsed(done.out)
    return found


def _parsed(out: bytes) -> Iterator[tuple[str, str]]:
    """Yield commit and path of the rows `<added> TAB <removed> TAB <path>` whose removed count is not 0."""
    commit = ""
    for row in out.split(b"\0"):
        _, tab, rest = row.partition(b"\t")
        if not tab:
            commit = row.decode("ascii")
            continue
        removed, _, path = rest.partition(b"\t")
        if removed != b"0":
            yield commit, path.decode("utf-8", "surrogateescape")


# What git names in each of these operations. The other side of a revert is the state before the reverted commit.
_OTHERS = ("CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD^")
MERGE_HEADS_MAX = 16  # heads of a merge


def own_paths(repo: Repo, staged: Sequence[str], index: str | None = None) -> list[str]:
    """Return the staged paths whose content is that of no side of the operation that is in progress; else all.

    Args:
        repo: The worktree in which git commits.
        staged: The paths that differ from HEAD.
        index: The file that git commits, if it is not the worktree's own.
    """
    heads = os.fsdecode(read_small(os.path.join(repo.git_dir, "MERGE_HEAD"), 4_096)).split()
    env = {"GIT_INDEX_FILE": index} if index else None
    found = list(staged)
    for other in (*heads[:MERGE_HEADS_MAX], *_OTHERS):
        args = ["diff-index", "--cached", "--name-only", "--no-renames", "-z", other, "--"]
        done = processes.run(repo.git_dir, args, env_extra=env, check=False) if found else None
        if done is not None and done.code == 0:  # otherwise there is no such side
            differing = set(os.fsdecode(done.out).split("\0"))
            found = [each for each in found if each in differing]
    return found


BLAME_SECONDS = 30.0
OUT_MAX = 64 * 1024 * 1024
_BEYOND = re.compile(r"has only ([0-9]+) lines?")


class Lines(NamedTuple):
    """Lines of a file that come from one commit.

    Attributes:
        commit: The commit; None for lines that are not committed.
        first, length: Their numbers in the file as it is now.
        path: The file's name in that commit.
        was: The number of the first one in that commit.
    """

    commit: str | None
    first: int
    length: int
    path: str
    was: int


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
    revision: str | None = None,
    seconds: float = BLAME_SECONDS,
) -> list[Lines]:
    """Return the lines of a file as it is in the work tree, with the commits that they come from, in their order.

    Moved lines and renamed files are followed. `blame.ignoreRevsFile` is read as for the user's own `git blame`.

    Args:
        path: From the top of the work tree.
        ranges: First and last line; empty for the whole file.
        revision: A commit, whose file is meant instead.

    Raises:
        TooFewLinesError, NotInHistoryError, IgnoreRevsError: See there.
        GitTimeoutError, GitOutputError: It took too long, or the file has too many lines.
        StoreError: git failed.
    """
    args = [
        f"--git-dir={git_dir}", f"--work-tree={worktree}", "-c", "core.quotePath=false", "blame", "--incremental", "--root", "-M", "-C",
        "--no-textconv", *(f"-L{first},{last}" for first, last in ranges), *([revision] if revision else []), "--", path,
    ]  # fmt: skip
    done = processes.run(
        common,
        args,
        cwd=worktree,
        timeout=seconds,
        out_max=OUT_MAX,
        check=False,
        env_extra=branches.without_filters(common, git_dir),
    )
    if done.code != 0:
        raise _error(args, done)
    return sorted(_parse(done.out), key=lambda each: each.first)


def _error(args: Sequence[str], done: processes.Result) -> Exception:
    beyond = _BEYOND.search(done.err)
    if beyond is not None:
        return TooFewLinesError(int(beyond[1]))
    if "no such path" in done.err or "no such ref" in done.err or "bad revision 'HEAD'" in done.err:
        return NotInHistoryError()
    if "could not open object name list" in done.err:
        return IgnoreRevsError()
    found: StoreError = processes.failure(["blame", *args[-1:]], done)
    return found


def _parse(out: bytes) -> list[Lines]:
    """Return the groups of `git blame --incremental`: each begins with commit and numbers, and ends with a file name."""
    found = []
    head: list[str] = []
    for line in out.split(b"\n"):
        word, _, rest = line.partition(b" ")
        if word == b"filename" and len(head) == 4:
            commit = None if set(head[0]) == {"0"} else head[0]
            found.append(Lines(commit, int(head[2]), int(head[3]), _unquoted(rest), int(head[1])))
            head = []
        elif not head:
            words = line.decode("ascii", "replace").split(" ")
            head = words if len(words) == 4 and is_oid(words[0]) else []
    return found


def _unquoted(name: bytes) -> str:
    """Return a file name as git quotes it: odd characters as escapes, within double quotes."""
    if name[:1] == name[-1:] == b'"' and len(name) > 1:
        name = name[1:-1].decode("unicode_escape").encode("latin-1")
    return name.decode("utf-8", "surrogateescape")


def last_change(common: str, git_dir: str, path: str) -> str | None:
    """Return the last commit in HEAD's history that changed a file, also one that HEAD does not have; None if none did."""
    args = [
        f"--git-dir={git_dir}", "--literal-pathspecs", "rev-list", "--max-count=1", "HEAD", "--", path,
    ]  # fmt: skip
    done = processes.run(common, args, timeout=BLAME_SECONDS, check=False, out_max=1_000)
    oid = done.out.decode("ascii", "replace").strip()
    return oid if done.code == 0 and is_oid(oid) else None
