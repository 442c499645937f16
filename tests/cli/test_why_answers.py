"""`gitmem why`: commits of a moment ago, and what an answer says of work units, rewritten commits and later changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gitmem.agents import commit_stamps
from gitmem.commits.find_commits import LOCK
from gitmem.log.lines import format_at
from gitmem.mailbox.delivery_lock import delivery_lock

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
    assert commit_stamps.has_news(store_at(repo).repo)


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
    for id, shows in (("task-3f9k2m", "task show"), ("mem-3f9k2m", "mem show"), ("sig-3f9k2m", "thread")):
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
    assert f"gitmem mem show {new}" in said and f"gitmem mem show {old}" not in said


def test_a_rewritten_commit_says_who_has_done_what(shop: Path, run: Run, start: Start) -> None:
    """Whoever only gave a commit another message has not made it."""
    curie = start("Curie")
    commit(shop, "a.py", "1\n", "first")
    git(shop, "commit", "--quiet", "--amend", "-m", "better words", GITMEM_SESSION=curie)
    said = run("why", "HEAD", session=curie).out
    assert "no record of a session: made by Test Person <" in said
    assert "or by a session that was not noted; amended by Curie (" in said


def test_an_answered_question_has_the_time_of_its_answer(shop: Path, run: Run, start: Start) -> None:
    """The state since the caller's answer, or since the taker's question, has the time of that."""
    bohr, curie = start("Bohr"), start("Curie")
    asked = ("delegate", "Round", "--to", "Curie", "--role", "reviewer", "--wu", "WU-8", "-q")
    task = run(*asked, session=bohr).out.strip()
    assert run("task", "take", task, session=curie).status == 0
    time.sleep(0.05)
    commit(shop, "a.py", "1\n", "first", GITMEM_SESSION=curie, GITMEM_TASK=task)
    times = []
    for words, session in ((("ask", task, "Up?"), curie), (("message", task, "Yes."), bohr)):
        before = format_at(int(time.time() * 1e6))
        assert run("task", *words, session=session).status == 0
        (answer,) = run("why", "a.py", "--json").json["commits"][0]["threads"][0]["answers"]
        times.append((answer["state"], answer["at"] >= before))
    assert times == [("input-required", True), ("submitted", True)]


def test_ignored_commits_are_passed_over(shop: Path, run: Run) -> None:
    """`blame.ignoreRevsFile` counts as for the user's own `git blame`."""
    first = commit(shop, "a.py", "x = 1\n", "first")
    reformatted = commit(shop, "a.py", "x  =  1\n", "reformat")
    (shop / "ignored").write_text(f"{reformatted}\n")
    git(shop, "config", "blame.ignoreRevsFile", "ignored")
    assert run("why", "a.py:1", "--json").json["commits"][0]["commit"] == first
