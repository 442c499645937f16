"""`gitmem handoff` on the command line: offered, accepted, refused, withdrawn, without an answer, and between clones."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clones import git as git_in

from .conftest import Run, Said

Start = Callable[..., str]
DAY_NANOS = 24 * 3600 * 1_000_000_000
SCOPE = ("--role", "implementer/test", "--wu", "WU-7")


class Scene:
    """Planck asked Bohr for tests; Bohr has the task, a claim and a checkpoint. Curie can go on."""

    def __init__(self, run: Run, start: Start) -> None:
        self.run = run
        self.planck, self.bohr, self.curie = (start(name) for name in ("Planck", "Bohr", "Curie"))
        self.task_id = self.said(
            self.planck, "delegate", "Write the tests", "--to", "Bohr", *SCOPE, "-q"
        ).out.strip()
        self.said(self.bohr, "task", "take", self.task_id, "--for", "24h")
        self.said(self.bohr, "claim", "src/**", "--for", "24h", "--wu", "WU-7")
        checkpoint = ("mem", "checkpoint", "half is done", "--next-steps", "The other half", "--wu", "WU-7")
        self.said(self.bohr, *checkpoint)
        self.said(self.bohr, "inbox")

    def said(self, session: str, *args: str) -> Said:
        found = self.run(*args, session=session)
        assert found.status == 0, found
        return found

    def give(self, *more: str) -> str:
        said = self.said(self.bohr, "handoff", "--to", "Curie", *more, "--json")
        return str(said.json["task"]["task_id"])

    def unread(self, session: str) -> list[tuple[str, str]]:
        found = self.said(session, "inbox", "--json").json["signals"]
        return [(each["intent"], each["message"]) for each in found]

    def holder(self) -> str:
        found = self.run("task", "list", "--json").json["tasks"]
        return str(next(each["holder_name"] for each in found if each["task_id"] == self.task_id))

    def owners(self) -> list[str]:
        return [each["name"] for each in self.run("claim", "list", "--json").json["claims"]]


@pytest.fixture
def scene(run: Run, start: Start) -> Scene:
    return Scene(run, start)


def test_a_dry_run_says_what_would_be_offered_and_writes_nothing(scene: Scene) -> None:
    """The same lines as the offer; the next command is the one without --dry-run."""
    tried = scene.said(scene.bohr, "handoff", "--to", "Curie", "--dry-run")
    assert tried.out.startswith("not written · from Bohr · to Curie · WU-7 · ") or tried.out.startswith(
        "not written · from Bohr · to Curie"
    )
    for line in (
        "checkpoint mem-",
        f"task {scene.task_id} · working · Write the tests",
        "claim src/** until ",
    ):
        assert line in tried.out
    assert "next: gitmem handoff --to Curie\n" in tried.out
    assert scene.unread(scene.curie) == []
    assert [each["task_id"] for each in scene.run("task", "list", "--json").json["tasks"]] == [scene.task_id]


def test_an_offer_says_what_it_has_before_it_is_accepted(scene: Scene) -> None:
    """In `task show`, and in a line of the inbox beside the message about it; after it what came is shown."""
    id = scene.give()
    shown = scene.said(scene.curie, "task", "show", id).out
    for line in (
        "| half is done\n",
        "| The other half\n",
        f"task {scene.task_id} · working · Write the tests\n",
    ):
        assert line in shown
    assert re.search(r"^checkpoint mem-\w+ of \d{4}-\d\d-\d\d \d\d:\d\d UTC\. ", shown, re.MULTILINE)
    assert re.search(r"^claim src/\*\* until ", shown, re.MULTILINE)
    line = f"handoff: Bohr offers (gitmem task show {id}): {scene.task_id} (WU-7) Write the tests · claims src/** · checkpoint mem-"
    inbox = scene.said(scene.curie, "inbox").out
    assert line in inbox and "next steps: The other half\n" in inbox
    assert line in scene.said(scene.curie, "inbox").out
    scene.said(scene.curie, "task", "take", id)
    assert (
        f"task {scene.task_id} · working · Write the tests\n"
        in scene.said(scene.bohr, "task", "show", id).out
    )


def test_an_offer_changes_nothing_until_it_is_accepted(scene: Scene) -> None:
    """Both see it in the roster; then task and claim are the taker's, and the giver is told."""
    id = scene.give()
    assert (scene.holder(), scene.owners()) == ("Bohr", ["Bohr"])
    sessions = {
        each["display_name"]: each["handoffs"] for each in scene.run("roster", "--json").json["sessions"]
    }
    assert sessions["Bohr"] == [f"handed over to Curie, waiting ({id})"]
    assert sessions["Curie"] == [f"offered by Bohr ({id})"]

    taken = scene.said(scene.curie, "task", "take", id)
    assert taken.out.startswith(f"{id} · accepted; its tasks are yours until ")
    assert "| half is done" in taken.out and "| The other half" in taken.out
    assert (scene.holder(), scene.owners()) == ("Curie", ["Curie"])
    assert scene.unread(scene.bohr) == [("AGREE", f"I accept {id}")]
    late = scene.run("task", "done", scene.task_id, "12 cases", session=scene.bohr)
    assert (late.status, "Nothing was written." in late.err) == (2, True)
    assert scene.run("claim", "list", "src/a.py", session=scene.bohr).status == 1
    scene.said(scene.curie, "task", "done", scene.task_id, "12 cases")


@pytest.mark.parametrize("by_reply", [False, True])
def test_a_refusal_leaves_the_work_with_the_giver_who_is_told(scene: Scene, by_reply: bool) -> None:
    """By `task reject`, and by a reply with REJECT; it can be offered again."""
    id = scene.give()
    (signal,) = scene.said(scene.curie, "inbox", "--json").json["signals"]
    refusal = ("reply", signal["signal_id"], "no time", "--reject")
    scene.said(scene.curie, *(refusal if by_reply else ("task", "reject", id, "no time")))
    assert scene.unread(scene.bohr) == [("REJECT", "no time")]
    assert (scene.holder(), scene.owners()) == ("Bohr", ["Bohr"])
    gone = scene.run("task", "take", id, session=scene.curie)
    assert (gone.status, "rejected" in gone.err) == (2, True), gone
    assert scene.give() != id


def test_a_withdrawn_offer_cannot_be_accepted(scene: Scene) -> None:
    """`gitmem task cancel` takes it back."""
    id = scene.give()
    scene.said(scene.bohr, "task", "cancel", id)
    gone = scene.run("task", "take", id, session=scene.curie)
    assert (gone.status, "is finished: canceled" in gone.err) == (2, True), gone
    assert (scene.holder(), scene.owners()) == ("Bohr", ["Bohr"])


def test_an_offer_without_an_answer_is_returned_after_a_day(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The giver's inbox says so, and names the command that withdraws it; nobody accepts it any more."""
    id = scene.give()
    now = time.time_ns
    assert "returned" not in scene.said(scene.bohr, "inbox").out
    monkeypatch.setattr(time, "time_ns", lambda: now() + DAY_NANOS)
    assert "to Curie, returned: nobody has answered in 24 hours" in scene.said(scene.bohr, "inbox").out
    late = scene.run("task", "take", id, session=scene.curie)
    assert (late.status, "had to begin before" in late.err) == (2, True), late
    scene.said(scene.bohr, "task", "cancel", id)
    assert "returned" not in scene.said(scene.bohr, "inbox").out


def test_the_end_of_a_session_names_what_it_leaves_and_the_command_that_hands_it_over(scene: Scene) -> None:
    """Nothing of it when everything was handed over."""
    scene.said(scene.curie, "task", "take", scene.give())
    assert "Left open" not in scene.said(scene.bohr, "session", "end").out
    ended = scene.said(scene.curie, "session", "end")
    assert "Left open: 1 task. Ended with it: 1 claim." in ended.out
    assert "`gitmem handoff --to NAME`" in ended.out


def test_open_work_goes_through_two_worktrees_and_a_second_clone(
    run: Run, start: Start, repo: Path, tmp_path: Path
) -> None:
    """Over a bare remote: offered in one worktree, accepted in a clone, handed on there to the other worktree."""
    hub, other, far = tmp_path / "hub.git", tmp_path / "other", tmp_path / "far"
    git_in("init", "--quiet", "--bare", "--initial-branch=main", str(hub), cwd=tmp_path)
    git_in("remote", "add", "origin", str(hub), cwd=repo)
    git_in("push", "--quiet", "origin", "HEAD:main", cwd=repo)
    git_in("worktree", "add", "--quiet", "--detach", str(other), cwd=repo)
    git_in("clone", "--quiet", str(hub), str(far), cwd=tmp_path)
    for name, value in (("name", "Far Person"), ("email", "far@example.org")):
        git_in("config", f"user.{name}", value, cwd=far)

    def at(place: Path, session: str | None, *args: str) -> Any:
        said = run(*args, "--json", session=session, cwd=place)
        assert said.status == 0, said
        return said.json

    def begin(place: Path, name: str) -> str:
        identity = ("--agent-identity", f"test:worker:{name.lower()}")
        return str(at(place, None, "session", "start", "--name", name, *identity)["session_id"])

    def sync() -> None:
        for place in (repo, far, repo):
            at(place, None, "sync", "--publish")

    def holder(place: Path) -> str:
        (row,) = (each for each in at(place, None, "task", "list")["tasks"] if each["task_id"] == task)
        return str(row["holder_name"])

    bohr, curie = begin(repo, "Bohr"), begin(other, "Curie")
    dirac = begin(far, "Dirac")
    sync()
    task = at(other, curie, "delegate", "Write the tests", "--to", "Bohr", *SCOPE)["task"]["task_id"]
    at(repo, bohr, "task", "take", task)
    at(repo, bohr, "claim", "src/**")
    first = at(repo, bohr, "handoff", "--to", "Dirac", "The tables")["task"]["task_id"]
    sync()
    accepted = at(far, dirac, "task", "take", first)["handoff"]
    assert [each["task_id"] for each in accepted["tasks"]] == [task]
    second = at(far, dirac, "handoff", "--to", "Curie", "The rest")["task"]["task_id"]
    sync()
    told = at(repo, bohr, "inbox")["signals"]
    assert [each["message"] for each in told] == ["Write the tests", f"I accept {first}"]
    assert [each["paths"] for each in at(other, curie, "task", "take", second)["handoff"]["claims"]] == [
        ["src/**"]
    ]
    sync()
    for place in (repo, other, far):
        assert holder(place) == "Curie"
        (claim,) = at(place, None, "claim", "list")["claims"]
        assert (claim["name"], claim["status"]) == ("Curie", "held")
