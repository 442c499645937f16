"""Why a line or a commit is as it is: who made it, on which task, what was agreed and known, and whether that holds."""

from __future__ import annotations

import os
import re

from ..agents import commit_stamps
from ..commits.made_by import MadeHere
from ..errors import UsageError
from ..git import blame, commit_facts, formats
from ..git.remotes import remotes
from ..git.run import GitOutputError, GitTimeoutError
from ..index.resolve_id import shown_by
from ..log.ref import LOG_REF
from ..memory import anchors
from ..outcome import Outcome
from ..repo import READING
from ..text.sanitize import sanitize
from ..text.shell_quote import command
from . import stories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..git.blame import Lines
    from ..git.commit_facts import CommitFacts
    from ..store import Store
    from .stories import Story

COMMITS_MAX = 10  # that one answer explains, those of most lines
RANGES_MAX = 50  # of lines that one commit is shown with
SECONDS = 10.0
SHORT = 12

_LINES = re.compile(r"(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?", re.DOTALL)
BINARY_BYTES = 8_000  # at the beginning of a file, in which git looks for NUL
SHOWN_MAX = 120


class Why(Outcome):
    """Why lines or a commit are as they are.

    Attributes:
        path: The file, or None for a commit.
        lines: First and last line that were asked about, or None.
        uncommitted: The number of these lines that are not committed.
        commits: The commits behind them, those of most lines first.
        more: The number of further commits.
        remarks: What limits the answer.
    """

    def __init__(self, found: Target) -> None:
        self.path = found.path
        self.lines = list(found.lines) if found.lines is not None else None
        self.uncommitted = 0
        self.commits: list[Story] = []
        self.more = 0
        self.remarks: list[str] = []
        self.next: list[str] = []


def why(store: Store, text: str, *, folder: str, inferred: bool = True, is_early: bool = False) -> Why:
    """Return why lines or a commit are as they are.

    Args:
        text: `FILE`, `FILE:LINE`, `FILE:FIRST-LAST` or a commit.
        folder: The current folder: paths are relative to it.
        inferred: Whether what is only inferred, by time and paths, may be in the answer.
        is_early: Whether commits of a moment ago may not have been recorded yet.

    Raises:
        UsageError: There is no such file, line or commit.
        StoreError: git failed, or did not end in time.
    """
    with store.one_look():
        return _why(store, text, folder, inferred=inferred, is_early=is_early)


def _why(store: Store, text: str, folder: str, *, inferred: bool, is_early: bool) -> Why:
    asked = find(store, folder, text)
    answer = Why(asked)
    if asked.commit is not None:
        behind: dict[str, list[Lines]] = {asked.commit: []}
    else:
        behind = _behind(store, asked, answer)
    shown = sorted(behind, key=lambda oid: -sum(each.length for each in behind[oid]))
    answer.more = len(shown) - len(shown[:COMMITS_MAX])
    common = store.repo.common
    facts = commit_facts.of_commits(common, shown[:COMMITS_MAX], SECONDS)
    shown = [oid for oid in shown[:COMMITS_MAX] if oid in facts]
    patches = commit_facts.patch_ids(common, _without_record(store, shown), SECONDS)
    here = MadeHere(store.repo)
    for oid in shown:
        story = stories.story(
            store, oid, facts[oid], patches.get(oid), _paths(asked, behind[oid]), inferred=inferred, here=here
        )
        story.lines = [[each.first, each.first + each.length - 1] for each in behind[oid][:RANGES_MAX]]
        story.line_count = sum(each.length for each in behind[oid])
        answer.commits.append(story)
    _add_remarks(store, answer, facts)
    lacks_log = store.git.tip(LOG_REF) is None and not store.waits() and bool(remotes(common))
    if lacks_log:
        answer.remarks.append("This clone has no log yet. It may be on the remote: `gitmem sync` fetches it.")
    if is_early and not all(each.made_by for each in answer.commits):
        answer.remarks.append("A commit of a moment ago is not yet noted: run it again.")
    answer.next = _next(answer, has_hook=commit_stamps.has_hook(store.repo), lacks_log=lacks_log)
    return answer


def _behind(store: Store, asked: Target, answer: Why) -> dict[str, list[Lines]]:
    """Return the commits behind lines of a file, each with its lines."""
    repo, path = store.repo, asked.path or ""
    try:
        found = blame.blame(repo.common, repo.git_dir, repo.worktree or "", path, asked.ranges)
    except blame.NotInHistoryError:
        raise not_committed(path) from None
    except blame.TooFewLinesError as error:
        raise too_few(path, int(error.args[0])) from None
    except blame.IgnoreRevsError:
        raise UsageError(
            "git cannot read the file that blame.ignoreRevsFile names.",
            hint="Correct the setting, or create the file.",
            code="ignore-revs",
            next=["git config --show-origin --get-all blame.ignoreRevsFile"],
        ) from None
    except (GitTimeoutError, GitOutputError) as error:
        error.hint = "Ask about a few lines, such as FILE:10-20."
        raise
    if not found:
        if blame.last_change(repo.common, repo.git_dir, path) is None:
            raise not_committed(path)
        answer.remarks.append(f"{sanitize(path, keep='')} is empty: it has no lines.")
    last = max((each.first + each.length - 1 for each in found), default=0)
    if found and asked.lines is not None and last < asked.lines[1]:
        shown = f"line {last} is" if last == asked.lines[0] else f"lines {asked.lines[0]}-{last} are"
        has = "1 line" if last == 1 else f"{last} lines"
        answer.remarks.append(f"{sanitize(path, keep='')} has {has}: {shown} shown.")
    behind: dict[str, list[Lines]] = {}
    for each in found:
        if each.commit is None:
            answer.uncommitted += each.length
        else:
            behind.setdefault(each.commit, []).append(each)
    return behind


def _without_record(store: Store, oids: Sequence[str]) -> list[str]:
    from ..commits import commit_view

    recorded = {commit for commit, _ in commit_view.known(store.db(), oids)}
    return [oid for oid in oids if oid not in recorded]


def _paths(asked: Target, lines: Sequence[Lines]) -> list[str]:
    """Return the names of the file: now, and in the commit."""
    return list(dict.fromkeys([*([asked.path] if asked.path else []), *(each.path for each in lines)]))


def _add_remarks(store: Store, answer: Why, facts: Mapping[str, CommitFacts]) -> None:
    if answer.uncommitted:
        count = answer.uncommitted
        are = "1 line is" if count == 1 else f"{count} lines are"
        answer.remarks.append(f"{are} not committed yet: nobody has recorded why.")
    cut = formats.shallow_commits(store.repo.common)
    for story in answer.commits:
        if story.commit in cut:
            older = "the lines may be older" if answer.path is not None else "it seems to add all files"
            answer.remarks.append(
                f"History ends at {story.commit[:SHORT]}, because this clone is shallow: {older}. `git fetch --unshallow`"
            )
    if answer.path is None and answer.commits and len(facts[answer.commits[0].commit].parents) > 1:
        answer.remarks.append("It is a merge commit: its lines come from the commits that it merges.")


def _next(answer: Why, *, has_hook: bool, lacks_log: bool) -> list[str]:
    """Return the commands that show more: the thread, the node, the task, the memory of that time."""
    found = ["gitmem sync"] if lacks_log else []
    for story in answer.commits[:2]:
        found += [command("gitmem", "thread", each.thread_id) for each in story.threads[:1]]
        found += [command("gitmem", "task", "show", story.task.task_id)] if story.task is not None else []
        found += [command("gitmem", "mem", "show", each.superseded_by or each.id) for each in story.nodes[:1]]
    if answer.path is not None and answer.commits:
        found.append(command("git", "show", answer.commits[0].commit[:SHORT]))
    if answer.commits and not has_hook and not any(story.made_by for story in answer.commits):
        found.append("gitmem hooks install --git post-commit")
    return list(dict.fromkeys(found))[:5] or [command("gitmem", "log")]


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
