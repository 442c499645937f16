"""Import GitHub's issues with a label as tasks, and tell GitHub what became of them, through the user's own `gh`: it alone has credentials.

Each event is told once: its comment ends with a mark, and who finds that in a comment of somebody who may write there says nothing. The clone in which a
task was taken or ended tells it at once, others only an hour later, so that two clones do not look at the same moment.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial

from ..errors import RemoteError, UsageError
from ..git import processes
from ..git.config import scrubbed
from ..log.lock import Lock
from ..outcome import Struct, command
from ..text.addresses import words_of
from ..text.sanitize import sanitize
from ..trust import own_sessions
from ..work import task_state
from .imported import Imported, next_commands, write_lines
from .issues import COUNTED, Issue, IssueRun, Tracker
from .json_lines import time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..order.task import FoldedTask, TaskEvent
    from ..store import Store


TRACKER = Tracker("github", "GitHub", has_past=False)
LABEL = "gitmem"
LABEL_MAX = 100  # characters
ISSUES_MAX = 1_000
SECONDS = 60.0  # for one run of gh
OUT_MAX = 64 * 1024 * 1024  # bytes: an issue has at most 64 KiB
TOLD_MAX = 50  # issues in one run
HOUR_MICROS = 3600 * 1_000_000
ERROR_MAX = 200  # characters of what gh says
FIELDS = "number,title,body,url,state,stateReason,labels,createdAt,updatedAt,closedAt,author,assignees"
URL = re.compile(r"https://[\w.:-]+/[\w.-]+/[\w.-]+/issues/([0-9]{1,12})", re.ASCII)
TRUSTED = ("OWNER", "MEMBER", "COLLABORATOR")  # authors of comments
WORDS = {
    "completed": "has completed it",
    "failed": "tried it, and it failed",
    "rejected": "has rejected it",
    "canceled": "has given it up",
}
TAKEN = "has taken it"
_VARIABLES = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "GH_PAGER": "cat", "NO_COLOR": "1"}


def import_issues(
    store: Store,
    caller: Caller,
    label: str = LABEL,
    *,
    dry_run: bool = False,
    report: bool = False,
    seconds: float = SECONDS,
) -> Imported:
    """Import the issues with a label; those that are closed only if their task is here.

    Args:
        dry_run: Only report what would be done.
        report: Also tell GitHub which tasks were taken and how they ended, and close the issues of those that are completed.
        seconds: The time that one run of gh has.

    Raises:
        UsageError: The label is invalid, or the program gh was not found.
        RemoteError: gh failed. What was imported and told before stays.
    """
    if not 0 < len(label) <= LABEL_MAX or not label.isprintable():
        raise UsageError(
            f"Invalid label: {sanitize(label)[:LABEL_MAX]}; it is one line of at most {LABEL_MAX} characters. Nothing was written.",
            code="usage",
        )
    hub = GitHub(store.repo.worktree or store.repo.common, seconds)
    given = hub.issues(label)
    found = Imported(
        folder=f"GitHub, label {label}", dry_run=dry_run, counts={"issues": dict.fromkeys(COUNTED, 0)}
    )
    run = IssueRun(store, found, TRACKER, "issue")
    for each in given:
        number = each.get("number") if isinstance(each, dict) else None
        run.read(number if isinstance(number, int) and 0 < number < 10**12 else 0, partial(_issue, each))
    run.settle()
    if len(given) == ISSUES_MAX:
        found.remark(
            "GitHub", 0, f"only the newest {ISSUES_MAX} issues were read; use another label for some of them"
        )
    again = command(
        "gitmem", "import", "github", *([label] if label != LABEL else []), *(["--report"] if report else [])
    )
    if not dry_run:
        write_lines(store, caller, found, run.lines, TRACKER.title)
    if report:
        lock = Lock(os.path.join(store.repo.state, "github.lock"))
        if lock.take():  # else both would look before either tells
            with lock:
                _report(store, hub, run, again, dry_run=dry_run)
        else:
            found.warnings.append(
                f"Another process of this clone tells GitHub now. `{again}` tells what is left."
            )
    found.warnings += filter(None, [caller.remark])
    found.next = next_commands(found, again, "gitmem task list --open")
    return found


class GitHub(Struct):
    """The repository of a folder, as gh finds it."""

    _folder: str
    _seconds: float

    def issues(self, label: str) -> list[object]:
        """Return the issues with a label, the newest first."""
        found = self._json(
            "issue", "list", f"--label={label}", "--state=all", f"--limit={ISSUES_MAX}", f"--json={FIELDS}"
        )
        if not isinstance(found, list):
            raise _failed("gh has not printed a list of issues")
        return found[:ISSUES_MAX]

    def is_told(self, url: str, mark: str) -> bool:
        """Return whether an issue is closed, or has a comment with a mark by somebody who may write there."""
        found = self._json("issue", "view", url, "--json=state,comments")
        if not isinstance(found, dict) or not isinstance(found.get("comments"), list):
            raise _failed("gh has not printed the comments of an issue")
        return found.get("state") != "OPEN" or any(
            isinstance(each, dict)
            and mark in str(each.get("body"))
            and (each.get("viewerDidAuthor") is True or each.get("authorAssociation") in TRUSTED)
            for each in found["comments"]
        )

    def tell(self, url: str, text: str, *, closes: bool) -> None:
        """Comment on an issue, and close it."""
        if closes:
            self._run("issue", "close", url, f"--comment={text}")
        else:
            self._run("issue", "comment", url, f"--body={text}")

    def _json(self, *args: str) -> object:
        out = self._run(*args)
        try:
            return json.loads(out)
        except (ValueError, RecursionError):
            return None

    def _run(self, *args: str) -> bytes:
        variables = processes.environment(_VARIABLES, online=True)
        # No program of the repository, which a relative folder of PATH may be in.
        folders = filter(os.path.isabs, variables.get("PATH", "").split(os.pathsep))
        variables["PATH"] = os.pathsep.join(folders) or os.defpath
        try:
            done = processes.run_program(["gh", *args], self._folder, variables, self._seconds, OUT_MAX)
        except processes.ProgramError as error:
            if error.is_missing:
                raise UsageError(
                    "gh, GitHub's command line tool, is not on PATH. Nothing was written.",
                    hint="Install it from https://cli.github.com and run `gh auth login`; gitmem itself has no credentials.",
                    code="gh-missing",
                ) from None
            raise _failed(str(error), "Try again, or look with `gh issue list`.") from None
        if done.code:
            said = next(
                (line.strip() for line in done.err.splitlines() if line.strip()), f"exit status {done.code}"
            )
            is_out = done.code == 4 or "gh auth login" in done.err
            raise _failed(
                f"gh {args[0]} {args[1]} failed: {sanitize(scrubbed(said))[:ERROR_MAX].rstrip('.')}",
                "Run `gh auth login`, then again."
                if is_out
                else "Run `gh issue list` in this folder: it must work there first.",
            )
        return done.out


def _failed(what: str, hint: str = "Is it GitHub's command line tool? `gh --version` tells.") -> RemoteError:
    """Return the error about gh; the command to run next is the first one of the hint."""
    return RemoteError(
        f"{what}. What was imported and told before is kept.",
        hint=hint,
        code="gh-failed",
        next=hint.split("`")[1:2],
    )


def _issue(given: object) -> Issue:
    """Return an issue as gh describes it.

    Raises:
        UsageError: It is invalid.
    """
    if not isinstance(given, dict):
        raise UsageError("it is not a JSON object")
    url, title, state = given.get("url"), given.get("title"), given.get("state")
    named = URL.fullmatch(url) if isinstance(url, str) else None
    if named is None or not isinstance(title, str) or state not in ("OPEN", "CLOSED"):
        raise UsageError("its url, title or state is missing or invalid")
    created = time_of(given, "createdAt")
    updated = max(created, time_of(given, "updatedAt", created))
    labels = [str(each["name"]) for each in given.get("labels") or ()]
    people = [str(each["login"]) for each in given.get("assignees") or ()]
    author = str((given.get("author") or {}).get("login") or "")
    facts = [
        f"GitHub #{named[1]}",
        f"by {author}",
        f"labels {', '.join(labels)}",
        *([f"assigned to {', '.join(people)}"] if people else []),
    ]
    ended = None
    if state == "CLOSED":
        reason = str(given.get("stateReason") or "COMPLETED")
        ended = (
            "completed" if reason == "COMPLETED" else "canceled",
            time_of(given, "closedAt", updated),
            f"closed on GitHub: {reason}",
        )
    return Issue(
        id=named[0], texts=[title, str(given.get("body") or ""), " · ".join(facts)], created=created, updated=updated,
        unit=f"GH-{named[1]}", ended=ended, kept={"author": author, "labels": labels},
    )  # fmt: skip


def _report(store: Store, hub: GitHub, run: IssueRun, again: str, *, dry_run: bool) -> None:
    """Tell GitHub what became of the tasks of open issues."""
    db, count = store.db(), 0
    for task_id, made in ((each.task_id, each) for each in run.every.values() if each.end is None):
        task = task_state.load_task(db, task_id)
        event = _due(task) if task is not None else None
        if task is None or event is None:
            continue
        own = own_sessions.is_own(db, event.record.get("sender_session") or "")
        if not own and event.at + HOUR_MICROS > store.now():
            run.remark(
                "issues",
                made.number,
                "what became of it was recorded outside of this clone's sessions; it is told from here an hour after that",
            )
            continue
        mark = f"<!-- gitmem {event.id} -->"
        if hub.is_told(made.issue.id, mark):
            continue
        if count == TOLD_MAX:
            run.found.warnings.append(f"{TOLD_MAX} issues were told. `{again}` tells the others.")
            return
        count += 1
        what = WORDS.get(task.state, TAKEN) if task.is_finished else TAKEN
        who = sanitize(event.record.get("sender_name") or words_of(event.sender[0])).replace("`", "'")[
            :LABEL_MAX
        ]
        if not dry_run:
            hub.tell(
                made.issue.id,
                f"`{who}` {what} (`gitmem task show {task_id}`).\n\n{mark}",
                closes=task.state == "completed",
            )
        run.remark("issues", made.number, f"{'would tell' if dry_run else 'told'} GitHub: {who} {what}")


def _due(task: FoldedTask) -> TaskEvent | None:
    """Return the event that GitHub should know: who has a task, or how it ended here."""
    if task.decided_by == "seal":  # GitHub said so itself
        return None
    return (task.outcome or task.close) if task.is_finished else task.holder
