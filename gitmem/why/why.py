"""Why a line or a commit is as it is: who made it, on which task, what was agreed and known, and whether that holds."""

from __future__ import annotations

from ..agents import commit_stamps
from ..commits.made_by import MadeHere
from ..errors import UsageError
from ..git import blame, commit_facts, formats
from ..git.remotes import remotes
from ..git.run import GitOutputError, GitTimeoutError
from ..log.ref import LOG_REF
from ..outcome import Outcome
from ..text.sanitize import sanitize
from ..text.shell_quote import command
from . import stories, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..git.blame import Lines
    from ..git.commit_facts import CommitFacts
    from ..store import Store
    from .stories import Story
    from .target import Target

COMMITS_MAX = 10  # that one answer explains, those of most lines
RANGES_MAX = 50  # of lines that one commit is shown with
SECONDS = 10.0
SHORT = 12


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
    asked = target.find(store, folder, text)
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
        raise target.not_committed(path) from None
    except blame.TooFewLinesError as error:
        raise target.too_few(path, int(error.args[0])) from None
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
            raise target.not_committed(path)
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
