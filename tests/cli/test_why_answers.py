"""`gitmem why`: commits of a moment ago, and what an answer says of work units, rewritten commits and later changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gitmem.agents import heartbeats
from gitmem.agents.delivery import delivery_lock
from gitmem.git import history
from gitmem.history.commits import LOCK

from ..commits.people import git, store_at
from .conftest import Run
from .test_why import Start, commit
from .test_why import shop as shop


@pytest.mark.parametrize("asks", ["its session", "nobody"])
def test_the_first_answer_has_the_commit_that_was_just_made(
    shop: Path, run: Run, start: Start, asks: str
) -> None:
    """The note of git's hook says who made it, also if no process with a session has recorded it yet."""
    bohr = start("Bohr")
    commit(shop, "a.py", "round\n", "round prices", GITMEM_SESSION=bohr, PATH="/usr/bin:/bin")
    said = run("why", "HEAD", session=bohr if asks == "its session" else None).out
    assert "made by Bohr (test:worker:bohr" in said and "not yet noted" not in said


def test_an_answer_says_that_another_process_still_records_the_commit(
    shop: Path, run: Run, start: Start
) -> None:
    """The hook's own process may hold the lock: the answer waits a moment, and then does not name a person."""
    bohr = start("Bohr")
    commit(shop, "a.py", "round\n", "round prices", GITMEM_SESSION=bohr, PATH="/usr/bin:/bin")
    with delivery_lock(store_at(shop), LOCK) as mine:
        assert mine
        said = run("why", "HEAD", session=bohr).out
    assert "not yet noted: run it again" in said
    assert "made by Bohr" in run("why", "HEAD", session=bohr).out


def test_without_session_and_hook_an_answer_leaves_new_commits_to_the_next_command_of_a_session(
    repo: Path, run: Run, start: Start
) -> None:
    """That command may know from its client that its session has made them."""
    start("Bohr")
    commit(repo, "a.py", "round\n", "round prices")
    assert run("why", "HEAD").status == 0
    assert heartbeats.has_new_commits(store_at(repo).repo)


def test_the_work_unit_of_a_commit_is_that_of_its_task(shop: Path, run: Run, start: Start) -> None:
    """A session of one work unit has a task of another: agreement and memory are those of the task's, as for claims."""
    bohr, curie = start("Bohr"), start("Curie")
    run("session", "set", "--wu", "WU-7", session=curie)
    task = run(
        "delegate", "Round", "--to", "Curie", "--role", "reviewer", "--wu", "WU-8", "-q", session=bohr
    ).out.strip()
    for unit in ("WU-7", "WU-8"):
        run("mem", "create", f"Of {unit}", "--type", "note", "--wu", unit, session=bohr)
    assert run("task", "take", task, session=curie).status == 0
    time.sleep(0.05)
    commit(shop, "a.py", "round\n", "round prices", GITMEM_SESSION=curie, GITMEM_TASK=task)
    (one,) = run("why", "HEAD", "--json", session=curie).json["commits"]
    assert (one["wu_id"], one["made_by"][0]["wu_id"], one["task"]["task_id"]) == ("WU-8", "WU-8", task)
    assert [each["text"] for each in one["nodes"]] == ["Of WU-8"]
    said = run("why", "HEAD").out
    assert f"task {task}" in said and "work unit WU-8" in said and "WU-7" not in said


def test_an_answer_says_which_lines_a_file_has_and_what_shows_an_id(shop: Path, run: Run) -> None:
    commit(shop, "empty.txt", "", "an empty file")
    commit(shop, "a.py", "1\n2\n3\n", "three lines")
    assert run("why", "a.py:2-999", "--json").json["remarks"] == ["a.py has 3 lines: lines 2-3 are shown."]
    assert run("why", "a.py:3-4", "--json").json["remarks"] == ["a.py has 3 lines: line 3 is shown."]
    assert run("why", "a.py:2-3", "--json").json["remarks"] == []
    assert "empty.txt is empty: it has no lines." in run("why", "empty.txt").out
    for id, shows in (("task-3f9k2m", "task show"), ("mem-3f9k2m", "show"), ("sig-3f9k2m", "thread")):
        assert f"gitmem {shows} {id}" in run("why", id).err


def test_only_what_was_known_can_still_hold(shop: Path, run: Run, start: Start) -> None:
    """Without anything that was known the answer does not say so; of a superseded node it names the one that counts."""
    bohr = start("Bohr")
    run("session", "set", "--wu", "WU-7", session=bohr)
    first = commit(shop, "a.py", "1\n", "first", GIT_COMMITTER_DATE="@1790000100 +0000")
    create = ("mem", "create", "--type", "note", "-q")
    run(*create, "Later", "--path", "a.py", session=bohr)
    said = run("why", first).out + run("why", "a.py").out
    assert "since: " in said and "still holds" not in said
    old = run(*create, "Prices are integers", "--wu", "WU-7", session=bohr).out.strip()
    time.sleep(1.1)  # git knows only the second of a commit
    commit(shop, "b.py", "2\n", "second", GITMEM_SESSION=bohr)
    assert "  still holds\n" in run("why", "b.py").out
    new = run(*create, "Prices are decimals", "--supersedes", old, session=bohr).out.strip()
    said = run("why", "b.py").out
    assert f"[superseded by {new}]" in said and "still holds" not in said
    assert f"gitmem show {new}" in said and f"gitmem show {old}" not in said


def test_a_rewritten_commit_says_who_has_done_what(shop: Path, run: Run, start: Start) -> None:
    """Whoever only gave a commit another message has not made it."""
    curie = start("Curie")
    commit(shop, "a.py", "1\n", "first")
    git(shop, "commit", "--quiet", "--amend", "-m", "better words", GITMEM_SESSION=curie)
    said = run("why", "HEAD", session=curie).out
    assert "no record of a session: made by Test Person <" in said
    assert "or by a session that no record links to it; amended by Curie (" in said


class Fork:
    """Two worktrees: on `topic` Bjerknes changed a line, which main has changed differently; Morita is at work on main."""

    def __init__(self, shop: Path, run: Run, start: Start) -> None:
        self.shop, self.here, self.run = shop, shop.parent / "linked", run
        self.bjerknes = start("Bjerknes")
        commit(shop, "a.py", "1\n", "first")
        git(shop, "checkout", "--quiet", "-b", "topic")
        git(shop, "worktree", "add", "--quiet", str(self.here), "main")
        begun = run("session", "start", "--name", "Morita", "--json", cwd=self.here)
        self.env = {"GITMEM_SESSION": begun.json["session_id"]}
        self.picked = commit(shop, "a.py", "2\n", "a change", GITMEM_SESSION=self.bjerknes)
        commit(self.here, "a.py", "3\n", "another change")
        assert "made by Bjerknes" in run("why", "HEAD", session=self.bjerknes).out
        time.sleep(1.1)  # else what repeats a commit is made in the second of the commit

    def resolve(self, *command: str, end: str, **env: str) -> None:
        """Run a command that stops at a conflict, resolve it, and go on."""
        env = env or self.env
        git(self.here, *command, check=False, **env)
        assert git(self.here, "ls-files", "--unmerged")
        (self.here / "a.py").write_text(f"{command} resolved\n")
        git(self.here, "add", "-A")
        git(self.here, *end.split(), **env)

    def why(self, commit: str = "HEAD") -> str:
        return self.run("why", commit, session=self.env["GITMEM_SESSION"], cwd=self.here).out


@pytest.fixture
def fork(shop: Path, run: Run, start: Start) -> Fork:
    return Fork(shop, run, start)


BY_BJERKNES = "  made by Bjerknes (test:worker:bjerknes)"
BY_NOBODY = "  no record of a session: made by Test Person <person@example.org>, or by a session that no record links to it"


@pytest.mark.parametrize("options", [(), ("-x",)])
@pytest.mark.parametrize("end", ["cherry-pick --continue", "commit --no-edit"])
def test_a_cherry_pick_with_a_conflict_keeps_the_maker(
    fork: Fork, options: tuple[str, ...], end: str
) -> None:
    """Its changes are others, but author, time and subject stay; also beside an earlier pick of the same commit, and after an amend."""
    date = git(fork.shop, "show", "-s", "--format=%ad", "--date=raw", fork.picked).strip()
    commit(fork.shop, "b.py", "1\n", "of a person in the same second", GIT_AUTHOR_DATE=date)
    for branch in ("main", "release"):
        git(fork.here, "checkout", "--quiet", "-B", branch, f"{fork.picked}~1")
        commit(fork.here, "a.py", f"{branch}\n", "another change")
        fork.resolve("cherry-pick", *options, fork.picked, end=end)
        assert f"{BY_BJERKNES}; cherry-picked by Morita (" in fork.why()
    git(fork.here, "commit", "--quiet", "--amend", "-m", "other words", **fork.env)
    assert f"{BY_BJERKNES}; amended by Morita (" in fork.why()


def test_a_person_who_picks_with_a_conflict_leaves_the_maker(fork: Fork) -> None:
    fork.resolve("cherry-pick", fork.picked, end="cherry-pick --continue", GITMEM_SESSION="")
    assert f"{BY_BJERKNES}\n" in fork.why()


def test_a_series_of_picks_of_which_one_is_skipped_keeps_the_makers(fork: Fork) -> None:
    commit(fork.shop, "b.py", "1\n", "more", GITMEM_SESSION=fork.bjerknes)
    commit(fork.shop, "b.py", "2\n", "of a person")
    assert fork.run("why", "HEAD~1", session=fork.bjerknes).status == 0
    git(fork.here, "cherry-pick", "main..topic", check=False, **fork.env)
    git(fork.here, "cherry-pick", "--skip", **fork.env)
    assert f"{BY_BJERKNES}; cherry-picked by Morita (" in fork.why("HEAD~1")
    assert f"{BY_NOBODY}; cherry-picked by Morita (" in fork.why()


@pytest.mark.parametrize(
    "place",
    ["a branch", "another clone's branch", "FETCH_HEAD", "the session's branch", "the session's branch then"],
)
def test_a_picked_commit_with_the_author_time_and_subject_of_anothers_is_not_the_others(
    fork: Fork, tmp_path: Path, place: str
) -> None:
    """Anybody can write all three."""
    far = fork.here
    if place in ("another clone's branch", "FETCH_HEAD"):
        far = tmp_path / "far"
        git(tmp_path, "clone", "--quiet", str(fork.shop), str(far))
    git(far, "checkout", "--quiet", "-b", "copy", f"{fork.picked}~1")
    date = git(far, "show", "-s", "--format=%ad", "--date=raw", fork.picked).strip()
    env = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": "@1790000000 +0000"}
    if place.startswith("the session's branch"):
        env |= {
            **fork.env,
            "GIT_COMMITTER_DATE": date if place.endswith("then") else f"@{int(time.time())} +0000",
        }
    copy = commit(far, "a.py", "of somebody else\n", "a change", **env)
    git(fork.here, "checkout", "--quiet", "main")
    if far != fork.here:
        to = "copy:refs/remotes/far/copy" if place != "FETCH_HEAD" else "copy"
        git(fork.here, "fetch", "--quiet", str(far), to)
    fork.resolve("cherry-pick", copy, end="cherry-pick --continue")
    assert f"{BY_NOBODY}; cherry-picked by Morita (" in fork.why()


@pytest.mark.parametrize(("most", "wanted"), [(3, BY_BJERKNES), (2, BY_NOBODY)])
def test_where_too_many_commits_can_be_meant_nobody_is_named(
    fork: Fork, monkeypatch: pytest.MonkeyPatch, most: int, wanted: str
) -> None:
    """Two commits are not in the history of main as it was: the picked one, and the pick. Those of the log do not count."""
    monkeypatch.setattr(history, "RANGE_MAX", most)
    fork.resolve("cherry-pick", fork.picked, end="cherry-pick --continue")
    assert f"{wanted}; cherry-picked by Morita (" in fork.why()


def test_what_only_begins_with_another_commit_is_of_who_makes_it(fork: Fork) -> None:
    """A merge and a revert, each with a conflict. Of a commit with the time and message of another nobody is said to be the maker."""
    fork.resolve("merge", "topic", end="merge --continue")
    assert "  made by Morita (" in (said := fork.why()) and "Bjerknes" not in said
    fork.resolve("revert", "--no-edit", fork.picked, end="revert --continue")
    assert "  made by Morita (" in (said := fork.why()) and "Bjerknes" not in said
    (fork.here / "a.py").write_text("more\n")
    git(fork.here, "commit", "--quiet", "-a", "-C", fork.picked, **fork.env)
    assert f"{BY_NOBODY}; rewritten by Morita (" in fork.why()


def test_a_patch_that_was_applied_with_a_conflict_is_not_said_to_be_of_a_session(fork: Fork) -> None:
    """Git runs no hook for it: its maker is not known."""
    patch = git(fork.shop, "format-patch", "-1", "--output-directory", str(fork.shop.parent)).strip()
    fork.resolve("am", "--3way", patch, end="am --continue")
    assert f"{BY_NOBODY}\n" in fork.why()


def test_ignored_commits_are_passed_over(shop: Path, run: Run) -> None:
    """`blame.ignoreRevsFile` counts as for the user's own `git blame`."""
    first = commit(shop, "a.py", "x = 1\n", "first")
    reformatted = commit(shop, "a.py", "x  =  1\n", "reformat")
    (shop / "ignored").write_text(f"{reformatted}\n")
    git(shop, "config", "blame.ignoreRevsFile", "ignored")
    assert run("why", "a.py:1", "--json").json["commits"][0]["commit"] == first
