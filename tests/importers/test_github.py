"""GitHub's issues as tasks, and back: through a program on PATH that is `gh`, is not, fails, asks, hangs or floods."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from gitmem.errors import RemoteError, UsageError
from gitmem.importers import github
from gitmem.importers.imported import Imported
from gitmem.log.lock import Lock
from gitmem.records.ids import keyed_id
from gitmem.store import Store
from gitmem.work import task_list, task_work
from tests.sandbox import HOUR, Agent, Clock, bodies, carry, new_repo, open_store, person

URL = "https://github.com/shop/prices/issues/"
OTHER = "mine"


def issue(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "number": number, "title": f"Issue {number}", "body": "It drops tabs.", "url": f"{URL}{number}", "state": "OPEN", "stateReason": "",
        "labels": [{"name": "gitmem"}], "createdAt": "2025-11-21T10:00:00Z", "updatedAt": "2025-11-22T10:00:00Z", "closedAt": None,
        "author": {"login": "octocat"}, "assignees": [], **fields,
    }  # fmt: skip


CLOSED = {"state": "CLOSED", "stateReason": "COMPLETED", "closedAt": "2025-11-24T10:00:00Z"}


class Gh:
    """A `gh` that has issues and comments in files, and notes how it was run."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = tmp_path / "gh-on-path"
        self.folder.mkdir()
        self.clones: list[Store] = []
        self.has()
        self.comments()
        here = shlex.quote(str(self.folder))
        self.does(
            f'printf "%s\\n" "$*" >>{here}/notes; env >{here}/env; pwd >{here}/pwd\n'
            f'case "$1 $2" in "issue list") cat {here}/list;; "issue view") cat {here}/view;; esac'
        )
        patch.setenv("PATH", f"{self.folder}{os.pathsep}{os.environ['PATH']}")

    def does(self, script: str) -> None:
        (self.folder / "gh").write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / "gh").chmod(0o755)

    def has(self, *issues: object) -> None:
        (self.folder / "list").write_text(json.dumps(issues) + "\n")

    def comments(self, *bodies: str, state: str = "OPEN", **author: Any) -> None:
        every = [
            {"body": each, "authorAssociation": "MEMBER", "viewerDidAuthor": False, **author}
            for each in bodies
        ]
        (self.folder / "view").write_text(json.dumps({"state": state, "comments": every}))

    def told(self) -> str:
        notes = (self.folder / "notes").read_text()
        (self.folder / "notes").write_text("")
        return "".join(part for part in notes.split("issue ") if part.startswith(("comment", "close")))


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gh:
    return Gh(tmp_path, monkeypatch)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    return open_store(new_repo(tmp_path / "clone"), clock)


def bring(store: Store, *args: str, **options: Any) -> Imported:
    return github.import_issues(store, person(store), *args, **options)


def counts(found: Imported) -> dict[str, int]:
    return {name: count for name, count in found.counts["issues"].items() if count}


def task_of(number: int) -> str:
    return keyed_id("task", "github:import:issues", f"{URL}{number}")


def take(store: Store, number: int = 1, *, end: str | None = None) -> Any:
    agent = Agent(store, "codex:worker:bohr", name="Bohr").caller
    task_work.take(store, agent, task_of(number))
    if end is not None:
        task_work.report(store, agent, task_of(number), end, "as asked")
    return agent


def test_an_open_issue_is_a_task_that_anybody_may_take(store: Store, gh: Gh) -> None:
    """gh runs in the worktree, cannot ask, and is asked for the label alone."""
    gh.has(issue(1, assignees=[{"login": "hubot"}]), issue(2, **CLOSED))
    assert counts(bring(store)) == {"read": 2, "imported": 1, "left": 1}
    shown = task_list.show(store, task_of(1))
    task: Any = shown.task
    assert (
        task["message"]
        == "Issue 1\n\nIt drops tabs.\n\nGitHub #1 · by octocat · labels gitmem · assigned to hubot"
    )
    assert (shown.state, task["wu_id"], task["payload"]["github"]["id"], "writer" in task) == (
        "submitted",
        "GH-1",
        f"{URL}1",
        False,
    )
    variables = (gh.folder / "env").read_text().splitlines()
    assert {"GH_PROMPT_DISABLED=1", "GIT_TERMINAL_PROMPT=0"} <= set(variables)
    assert (gh.folder / "pwd").read_text().strip() == store.repo.worktree
    assert "--label=gitmem --state=all" in (gh.folder / "notes").read_text()
    bring(store, OTHER)
    assert "--label=mine" in (gh.folder / "notes").read_text()


def test_text_comes_in_again_only_if_it_changed(store: Store, gh: Gh, tmp_path: Path) -> None:
    """Once closed there, its task ends; two clones make the same lines."""
    other = open_store(new_repo(tmp_path / "other"), Clock())
    gh.has(issue(1), issue(2))
    bring(store)
    bring(other)
    assert counts(bring(store)) == {"read": 2, "present": 2}
    gh.has(
        issue(1, title="Now", updatedAt="2025-11-23T10:00:00Z"),
        issue(2, **CLOSED | {"stateReason": "NOT_PLANNED"}),
    )
    for each in (store, other):
        assert counts(bring(each)) == {"read": 2, "updated": 2}
    assert [each["event"] for each in task_list.show(store, task_of(1)).events] == ["message"]
    assert task_list.show(store, task_of(2)).state == "canceled"
    lines = [[each for each in bodies(one) if b"github:import" in each] for one in (store, other)]
    assert lines[0] == lines[1]
    carry(store, other)
    assert [each for each in bodies(store) if b"github:import" in each] == lines[0]


def test_nothing_is_told_unless_it_is_asked_for(store: Store, gh: Gh) -> None:
    gh.has(issue(1))
    bring(store)
    take(store)
    bring(store)
    assert gh.told() == ""
    found = bring(store, report=True, dry_run=True)
    assert (gh.told(), found.remarks[-1].reason) == ("", "would tell GitHub: Bohr has taken it")


@pytest.mark.parametrize(
    ("end", "words"),
    [(None, "comment {} --body=`Bohr` has taken it"), ("completed", "close {} --comment=`Bohr` has completed it"),
     ("failed", "comment {} --body=`Bohr` tried it, and it failed")],
)  # fmt: skip
def test_state_goes_out_once(store: Store, gh: Gh, end: str | None, words: str) -> None:
    """Without the text of the result: the comment names the task, and ends with a mark that no other event has."""
    gh.has(issue(1), issue(2))
    bring(store)
    take(store, end=end)
    assert bring(store, report=True).remarks[-1].reason.startswith("told GitHub: Bohr")
    told = gh.told()
    assert told.startswith(words.format(f"{URL}1"))
    assert told.count("<!-- gitmem tev-") == 1
    assert "as asked" not in told
    gh.comments(told)
    bring(store, report=True)
    assert gh.told() == ""
    gh.comments(told, authorAssociation="NONE")  # anybody may write there
    bring(store, report=True)
    assert gh.told() == told
    gh.comments(state="CLOSED")  # since the list was made
    bring(store, report=True)
    assert gh.told() == ""


def test_two_clones_do_not_both_tell(store: Store, gh: Gh, tmp_path: Path, clock: Clock) -> None:
    """The clone of the session tells at once; another one an hour later, if it did not."""
    other = open_store(new_repo(tmp_path / "other"), clock)
    gh.has(issue(1))
    bring(store)
    take(store, end="completed")
    carry(store, other)
    found = bring(other, report=True)
    assert gh.told() == ""
    assert "an hour after" in found.remarks[-1].reason
    bring(store, report=True)
    assert "close" in gh.told()
    clock.forward(2 * HOUR)
    bring(other, report=True)
    assert "close" in gh.told()


def test_two_processes_of_a_clone_do_not_both_tell(store: Store, gh: Gh) -> None:
    """Both would look before either tells."""
    gh.has(issue(1))
    bring(store)
    take(store)
    other = Lock(os.path.join(store.repo.state, "github.lock"))
    assert other.take()
    with other:
        found = bring(store, report=True)
    assert (gh.told(), "Another process" in found.warnings[0]) == ("", True)
    bring(store, report=True)
    assert gh.told().count("Bohr") == 1


def test_a_name_calls_nobody_on_github(store: Store, gh: Gh) -> None:
    """It stands in a span of code, which it cannot end."""
    gh.has(issue(1))
    bring(store)
    agent = Agent(store, "codex:worker:bohr", name="a`b`c").caller
    task_work.take(store, agent, task_of(1))
    bring(store, report=True)
    assert "`a'b'c` has taken it" in gh.told()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'Welcome to gh, a game!'", "gh has not printed a list of issues"),
        ("echo '{}'", "gh has not printed a list of issues"),
        ("printf '\\377\\376'", "gh has not printed a list of issues"),
        ("exit 0", "gh has not printed a list of issues"),
        ("echo 'To get started, run:  gh auth login' >&2; exit 4", "gh issue list failed: To get started"),
        ("printf 'no git remotes\\033[2J\\n' >&2; exit 1", r"gh issue list failed: no git remotes\\u001b"),
        ("exit 7", "gh issue list failed: exit status 7"),
        ("echo 'no access to https://me:ghp_x@github.com/a' >&2; exit 1", "no access to https://github.com/a"),
        ("read answer && echo \"$answer\"", "gh issue list failed: exit status 1"),
        ("sleep 60", "gh did not end within 0.5 seconds and was stopped"),
        ("kill -9 $$", "gh issue list failed"),
        ("yes", "gh wrote more than 67,108,864 bytes"),
    ],
)  # fmt: skip
def test_another_gh_is_a_sentence(store: Store, gh: Gh, script: str, says: str) -> None:
    """One that is another program, asks, fails, hangs or floods; nothing is written."""
    before = bodies(store)
    gh.does(script)
    with pytest.raises(RemoteError, match=says) as caught:
        bring(store, seconds=0.5 if "sleep" in script else 20.0)
    assert caught.value.hint and [each[:3] for each in caught.value.next] == ["gh "]
    assert "\x1b" not in caught.value.message
    assert bodies(store) == before


def test_without_gh_it_is_named(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in a relative folder of PATH is the repository's, and never run."""
    assert store.repo.worktree is not None
    who = person(store)
    bad = Path(store.repo.worktree, "bin")
    bad.mkdir()
    (bad / "gh").write_text(f"#!/bin/sh\ntouch {shlex.quote(str(tmp_path))}/ran\n")
    (bad / "gh").chmod(0o755)
    monkeypatch.chdir(store.repo.worktree)
    monkeypatch.setenv("PATH", f"bin{os.pathsep}.{os.pathsep}{tmp_path}/empty")
    with pytest.raises(UsageError, match=r"is not on PATH\. Nothing was written") as caught:
        github.import_issues(store, who)
    assert "gh auth login" in caught.value.hint
    assert not (tmp_path / "ran").exists()


def test_hostile_issues_cost_themselves(store: Store, gh: Gh) -> None:
    """A url that is an option or of another kind, texts of other types, secrets, control characters."""
    gh.has(
        issue(1), 7, {}, issue(2, url="--web"), issue(3, url="https://github.com/a/b/pull/3"), issue(4, title=None), issue(5, state="ODD"),
        issue(6, labels="x"), issue(7, createdAt="soon"), issue(8, body="ghp_" + "a1B2" * 9), issue(9, title="\x1b[2J", body=None, author=None),
        issue(10, url=f"{URL}10\n"),
    )  # fmt: skip
    found = bring(store)
    assert counts(found) == {"read": 12, "imported": 2, "bad": 10}
    assert {each.line for each in found.problems} == {0, 2, 3, 4, 5, 6, 7, 8, 10}


@pytest.mark.parametrize("label", ["", "a\nb", "x" * 101])
def test_a_label_is_one_line(store: Store, gh: Gh, label: str) -> None:
    with pytest.raises(UsageError, match="Invalid label"):
        bring(store, label)


def test_what_fails_halfway_keeps_what_was_told(store: Store, gh: Gh) -> None:
    """The import is recorded before anything is told; the next run tells the rest."""
    gh.has(issue(1), issue(2))
    bring(store)
    take(store, 1)
    gh.has(issue(1), issue(2), issue(3))
    here = shlex.quote(str(gh.folder))
    gh.does(
        f'case "$1 $2" in "issue list") cat {here}/list;; "issue view") cat {here}/view;; *) echo "HTTP 403" >&2; exit 1;; esac'
    )
    with pytest.raises(
        RemoteError, match=r"gh issue comment failed: HTTP 403\. What was imported and told before is kept"
    ):
        bring(store, report=True)
    assert task_list.show(store, task_of(3)).state == "submitted"


def test_a_garbled_view_tells_nothing(store: Store, gh: Gh) -> None:
    gh.has(issue(1))
    bring(store)
    take(store)
    (gh.folder / "view").write_text("[]")
    with pytest.raises(RemoteError, match="gh has not printed the comments"):
        bring(store, report=True)
    assert gh.told() == ""
