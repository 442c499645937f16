"""`gitmem why`: who made a line, what was agreed and known, and whether that holds; and a clear sentence for everything else."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ..commits.people import git, install_hook
from .conftest import Run

Start = Callable[..., str]


@pytest.fixture
def shop(repo: Path) -> Path:
    """A repository with the post-commit hook, and its first commit long ago."""
    git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
    install_hook(repo)
    return repo


def commit(repo: Path, path: str, text: str, subject: str, **env: str) -> str:
    where = repo / path
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "--quiet", "-m", subject, **env)
    return git(repo, "rev-parse", "HEAD").strip()


def test_the_whole_story_of_a_line(shop: Path, run: Run, start: Start) -> None:
    """Session, role and work unit, the agreement, what was known; a rename; then what has changed since."""
    bohr, curie = start("Bohr"), start("Curie")
    run("session", "set", "--wu", "WU-7", session=bohr)
    proposed = run(
        "signal",
        "Round half up?",
        "--to",
        "Curie",
        "--intent",
        "PROPOSE",
        "--wu",
        "WU-7",
        "--json",
        session=bohr,
    )
    assert proposed.status == 0, proposed
    asked = proposed.json["signal"]["signal_id"]
    assert run("reply", asked, "yes", "--agree", session=curie).status == 0
    commit(shop, "src/a.py", "first\n", "first line")
    noted = run(
        "mem",
        "create",
        "Prices are integers",
        "--type",
        "note",
        "--path",
        "src/a.py",
        "--json",
        session=curie,
    )
    node = noted.json["node"]["id"]
    made = commit(shop, "src/a.py", "first\nround\n", "round prices", GITMEM_SESSION=bohr)
    git(shop, "mv", "src/a.py", "b.py")
    git(shop, "commit", "--quiet", "-m", "moved")
    assert run("whoami", session=bohr).status == 0

    found = run("why", "b.py:2", "--json").json
    (one,) = found["commits"]
    assert (one["commit"], one["lines"], one["paths"]) == (made, [[2, 2]], ["b.py", "src/a.py"])
    (maker,) = one["made_by"]
    assert (maker["session_id"], maker["name"], maker["wu_id"], maker["evidence"], maker["here"]) == (
        bohr,
        "Bohr",
        "WU-7",
        "environment",
        True,
    )
    assert one["threads"][0]["agreed"] == ["Curie"] and one["threads"][0]["by"] == "work unit"
    assert [(each["id"], each["known_then"]) for each in one["nodes"]] == [(node, True)]
    said = run("why", "b.py:2").out
    assert (
        f"{made[:12]} round prices" in said
        and "made by Bohr (test:worker:bohr" in said
        and "agreed: Curie" in said
    )

    time.sleep(1.1)  # git knows only the second of a commit
    assert run("reply", asked, "no", "--reject", session=curie).status == 0
    assert run("mem", "update", node, "--content", "Prices are decimals", session=curie).status == 0
    (later,) = run("why", made, "--json").json["commits"]
    assert later["threads"][0]["reversed"] == ["Curie"]
    assert any("no longer agrees" in each for each in later["now"])
    (then,) = run("why", "b.py:2", "--json").json["commits"][0]["nodes"]
    assert then["text"] == "Prices are integers" and then["now"] != "holds"
    assert "no longer as it was" in run("why", "b.py:2").out


def test_the_first_commit_of_an_agent_in_a_new_repository_is_the_agents(
    repo: Path, run: Run, start: Start
) -> None:
    """A person's commit a moment before, without the hook, casts no doubt on what the agent's own hook has noted."""
    second = f"@{int(time.time()) + 5} +0000"
    dates = {"GIT_AUTHOR_DATE": second, "GIT_COMMITTER_DATE": second}
    git(repo, "commit", "--quiet", "--amend", "--no-edit", **dates)
    install_hook(repo)
    bohr = start("Bohr")
    made = commit(repo, "a.py", "one\n", "first of the agent", GITMEM_SESSION=bohr, **dates)
    assert run("whoami", session=bohr).status == 0
    (one,) = run("why", made, "--json").json["commits"]
    assert [each["session_id"] for each in one["made_by"]] == [bohr]


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (("done", "Rounded."), "completed"),
        (("message", "Up or down?", "--ask"), "taken by test:worker:curie"),
    ],
)
def test_taking_a_delegation_answers_it(
    shop: Path, run: Run, start: Start, words: tuple[str, ...], state: str
) -> None:
    """Who took it has answered, whatever became of it since; nobody of the others for whom it was is asked any more."""
    bohr, curie = start("Bohr"), start("Curie")
    asked = ("delegate", "Round the prices", "--to", "Curie", "--role", "reviewer", "--wu", "WU-7", "-q")
    task = run(*asked, session=bohr).out.strip()
    assert run("task", "take", task, session=curie).status == 0
    time.sleep(0.05)
    commit(shop, "a.py", "round\n", "round prices", GITMEM_SESSION=curie)
    time.sleep(0.05)  # in this process the next command comes sooner than a new one would
    assert run("task", words[0], task, *words[1:], session=curie).status == 0
    (one,) = run("why", "a.py:1", "--json").json["commits"]
    assert one["task"]["task_id"] == task
    (thread,) = one["threads"]
    assert (thread["by"], thread["pending"]) == ("task", [])
    assert thread["settled"].startswith(state)
    said = run("why", "a.py:1").out
    assert f"({state}" in said and "no answer" not in said


def test_lines_ranges_and_uncommitted_lines(shop: Path, run: Run) -> None:
    first = commit(shop, "a:10", "one\ntwo\n", "first of all")
    second = commit(shop, "a:10", "one\ntwo\nthree\n", "second")
    (shop / "a:10").write_text("one\ntwo\nthree\nfour\n")
    found = run("why", "a:10", "--json").json  # a file of that name, not a line
    assert [each["commit"] for each in found["commits"]] == [first, second]
    assert (found["uncommitted"], found["commits"][0]["line_count"]) == (1, 2)
    assert [each["commit"] for each in run("why", "a:10:2-3", "--json").json["commits"]] == [first, second]
    found = run("why", "a:10:4", "--json").json
    assert (found["commits"], found["remarks"]) == (
        [],
        ["1 line is not committed yet: nobody has recorded why."],
    )


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("../elsewhere", "bad-path", "outside"),
        ("new.txt", "untracked", "in no commit"),
        ("new.txt:1", "untracked", "in no commit"),
        ("blob:3", "binary", "is binary"),
        ("README:99", "no-such-line", "README has 1 line."),
        ("README:0", "bad-lines", "lines begin with 1"),
        ("README:9-2", "bad-lines", "smaller number"),
        ("empty", None, ""),
        ("empty:1", "no-such-line", "is empty"),
        ("folder", "folder", "is a folder"),
        ("gone.txt", "deleted", "last commit that changed it"),
        ("gone.txt:5", "deleted", "last commit that changed it"),
        ("nothing", "unknown-target", "No such file or commit: nothing"),
        ("", "unknown-target", "(empty)"),
        ("--", None, None),
        ("staged", "untracked", "in no commit"),
        ("task-3f9k2m", "unknown-target", "neither a file nor a commit"),
        ("a\tb\x1b[2J", "unknown-target", "No such file"),
        (":(top)*", "unknown-target", "No such file"),
        ("HEAD:README", "unknown-target", "No such file"),
        ("x" * 5_000, "unknown-target", "No such file"),
        ("f" * 40, "unknown-target", "No such file"),
    ],
)
def test_what_has_no_answer_gets_a_sentence(
    shop: Path, run: Run, target: str, code: str | None, words: str | None
) -> None:
    """No traceback, no shell, no pathspec, and the next command where there is one."""
    commit(shop, "gone.txt", "x\n", "to be removed")
    git(shop, "rm", "--quiet", "gone.txt")
    (shop / "blob").write_bytes(b"\0\1\2" * 9)
    (shop / "empty").touch()
    (shop / "folder").mkdir()
    (shop / "folder" / "x").touch()
    git(shop, "add", "-A")
    git(shop, "commit", "--quiet", "-m", "odd files")
    (shop / "staged").touch()
    git(shop, "add", "staged")
    (shop / "new.txt").write_text("x\n")
    Path(shop.parent, "elsewhere").touch()
    said = run("why", "--json", "--", target)
    if code is None:
        assert said.status in (0, 2)
        return
    assert said.status == 2
    error = json.loads(said.out)["error"]
    assert (error["code"], words in error["message"]) == (code, True), error


def test_odd_names_a_merge_a_shallow_clone_and_a_missing_list_of_commits(
    shop: Path, run: Run, tmp_path: Path
) -> None:
    """File names are data; where history ends, the answer says so."""
    for name in ("-n", 'ä "q" \t.txt', "$(touch x)", "a;b\n.txt"):
        commit(shop, name, "x\n", "odd")
        assert run("why", "--json", "--", f"{name}:1").json["commits"][0]["subject"] == "odd"
    git(shop, "checkout", "--quiet", "-b", "side", "HEAD~1")
    commit(shop, "side", "x\n", "side")
    git(shop, "checkout", "--quiet", "main")
    git(shop, "merge", "--quiet", "--no-ff", "-m", "merged", "side")
    assert "merge commit" in run("why", "HEAD").out
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{shop}", "shallow")
    said = run("why", "README", cwd=tmp_path / "shallow").out
    assert "this clone is shallow: the lines may be older" in said and "next: gitmem sync" in said
    said = run("why", "HEAD", cwd=tmp_path / "shallow").out
    assert "this clone is shallow: it seems to add all files" in said and "lines" not in said
    git(shop, "config", "blame.ignoreRevsFile", "nowhere")
    said = run("why", "README")
    assert said.status == 2 and "blame.ignoreRevsFile" in said.err
    git(shop, "config", "--unset", "blame.ignoreRevsFile")
    git(tmp_path, "clone", "--quiet", "--bare", str(shop), "bare.git")
    assert run("why", "HEAD", cwd=tmp_path / "bare.git").status == 0
    assert run("why", "README", cwd=tmp_path / "bare.git").status == 2


def test_it_runs_without_a_log_and_starts_none(shop: Path, run: Run) -> None:
    """Only commands that record something start a log."""
    before = sorted(os.listdir(shop / ".git"))
    assert run("why", "README").status == 0
    assert sorted(os.listdir(shop / ".git")) == before or not (shop / ".git" / "refs" / "gitmem").exists()
