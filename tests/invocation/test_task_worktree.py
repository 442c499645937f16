"""Each task in a git work tree of its own: what is kept, what is removed, and what is never touched."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gitmem import repo as place
from gitmem.calls import process_guard
from gitmem.calls.client_run import ChildRun
from gitmem.calls.process_guard import ProcessTree, all_processes
from gitmem.calls.worker import ServedTask
from gitmem.calls.worktree_runs import WorktreeRuns

from ..clones import git
from ..sandbox import worktree
from .test_serve_agent import Call, run, serving, wait_for  # noqa: F401  (run is a fixture)

TASK = "task-3f9k2m7q1x0z"
Work = Callable[[Path], object]


class Asked:
    """What a run needs of a task."""

    def __init__(self, task_id: str = TASK) -> None:
        self.task_id = task_id


class Done:
    """A run that has done its work when it started."""

    def poll(self, seconds: float) -> None:
        """It has no end of its own."""

    def end(self) -> None:
        """Nothing runs."""


class Clone:
    """A clone with one file and one commit, and its work trees of tasks."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.state = state
        self.said: list[str] = []
        (folder / "prices.txt").write_text("1\n")
        (folder / ".gitignore").write_text("*.o\n")
        self.git("add", ".")
        self.git("commit", "-qm", "Prices")
        (folder / "mine.txt").write_text("unfinished\n")
        self.before = self.users()

    def git(self, *args: str) -> str:
        return git(*args, cwd=self.folder)

    def users(self) -> tuple[str, ...]:
        """What is the user's: branches, HEAD, and the state of the work tree."""
        mine = self.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/main", "refs/stash")
        return mine, self.git("rev-parse", "--symbolic-full-name", "HEAD"), self.git("status", "--porcelain")

    def run(self, work: Work, task_id: str = TASK) -> dict[str, Any]:
        """Run a task in a work tree of its own; return what its result names."""
        started = self.start(work, task_id)
        left: dict[str, Any] = started.end()
        assert self.users() == self.before
        return left

    def start(self, work: Work, task_id: str = TASK) -> Any:
        def begin(task: ServedTask, folder: str) -> Done:
            assert Path(folder).parent.parent.parent == self.state
            work(Path(folder))
            return Done()

        return WorktreeRuns(place.find(str(self.folder)), str(self.state), begin, self.said.append)(
            Asked(task_id)
        )  # type: ignore[arg-type]

    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads/task-*").split()

    def is_clean(self) -> bool:
        """Whether no work tree is left, nor git's notes of one, nor a lock."""
        left = [each for each in self.state.glob("worktrees/*/*") if each.name != "lock"]
        return not left and len(self.git("worktree", "list").splitlines()) == 1


@pytest.fixture
def clone(repo: Path, tmp_path: Path) -> Clone:
    return Clone(repo, tmp_path / "state")


def commit(folder: Path, text: str = "2\n", *, name: str = "prices.txt") -> str:
    (folder / name).write_text(text)
    git("add", name, cwd=folder)
    git("commit", "-qm", "Change", cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder).strip()


def test_i9_a_run_that_changes_nothing_leaves_nothing(clone: Clone) -> None:
    """Also no branch; files that are ignored go with the work tree."""
    assert clone.run(lambda folder: (folder / "made.o").write_text("x")) == {}
    assert clone.branches() == [] and clone.is_clean() and clone.said == []


def test_commits_are_kept_on_a_branch_named_as_the_task(clone: Clone) -> None:
    """The result names branch and commit."""
    made: list[str] = []
    left = clone.run(lambda folder: made.append(commit(folder)))
    assert left == {"branch": TASK, "commit": made[0]}
    assert clone.git("rev-parse", TASK).strip() == made[0] and clone.is_clean()


def test_commits_that_a_run_has_left_are_kept(clone: Clone) -> None:
    """It went back to where it began, or on from there; what it has replaced itself is not."""
    made: list[str] = []

    def work(folder: Path) -> None:
        commit(folder, "of no use\n")
        git("commit", "--amend", "-qm", "Other", cwd=folder)
        made.append(git("rev-parse", "HEAD", cwd=folder).strip())
        git("checkout", "-q", "--detach", "main", cwd=folder)

    assert clone.run(work) == {"branch": TASK, "commit": made[0]}
    assert clone.git("rev-parse", TASK).strip() == made[0]
    assert clone.branches() == [TASK] and clone.is_clean()

    def go_on(folder: Path) -> None:
        assert git("rev-parse", "HEAD", cwd=folder).strip() == made[0]
        git("checkout", "-q", "--detach", "main", cwd=folder)
        made.append(commit(folder, "3\n"))

    assert clone.run(go_on) == {"branch": f"{TASK}-2", "commit": made[1]}
    assert clone.branches() == [TASK, f"{TASK}-2"] and clone.is_clean()


def test_commits_of_an_unfinished_rebase_are_kept(clone: Clone) -> None:
    """Git has gone to where it puts them; what could not be applied yet is on no branch either."""
    made: list[str] = []

    def work(folder: Path) -> None:
        git("checkout", "-q", "-b", "other", cwd=folder)
        commit(folder, "others\n")
        git("checkout", "-q", "--detach", "main", cwd=folder)
        made.append(commit(folder, "mine\n"))
        git("rebase", "-q", "other", cwd=folder, check=False)  # it stops at a conflict

    kept = clone.run(work)
    assert kept is not None and clone.git("rev-parse", TASK).strip() == made[0]
    assert clone.is_clean()


def test_what_is_not_committed_is_kept_on_a_second_branch_and_restored(clone: Clone) -> None:
    """Changed, deleted and untracked files; the next run of the task goes on with them, and may undo them."""

    def first(folder: Path) -> None:
        commit(folder)
        (folder / "prices.txt").unlink()
        (folder / "new.txt").write_text("new\n")

    left = clone.run(first)
    assert (left["branch"], left["uncommitted"]) == (TASK, f"{TASK}-uncommitted")
    assert clone.git("ls-tree", "--name-only", left["uncommitted"]).split() == [
        ".gitignore",
        "README",
        "new.txt",
    ]
    seen: list[str] = []

    def second(folder: Path) -> None:
        seen.append(git("status", "--porcelain", cwd=folder))
        git("checkout", "-q", ".", cwd=folder)
        (folder / "new.txt").unlink()

    again = clone.run(second)
    assert seen == [" D prices.txt\n?? new.txt\n"]
    assert again == {"branch": TASK, "commit": left["commit"]}
    assert clone.branches() == [TASK] and clone.is_clean()


def test_commits_on_no_branch_and_on_others_are_named(clone: Clone) -> None:
    """A detached HEAD goes to the task's branch, and one beside it to another; a branch that the run made stays its own."""

    def detached(folder: Path) -> None:
        git("checkout", "-q", "--detach", cwd=folder)
        commit(folder)

    def beside(folder: Path) -> None:
        git("checkout", "-q", "--detach", "main", cwd=folder)
        commit(folder, "3\n")

    def other(folder: Path) -> None:
        git("checkout", "-qb", "feature", cwd=folder)
        commit(folder, "4\n")

    assert clone.run(detached)["branch"] == TASK
    found = clone.run(beside)
    assert found["branch"] == f"{TASK}-2"
    assert (
        clone.git("show", f"{TASK}-2:prices.txt") == "3\n"
        and clone.git("show", f"{TASK}:prices.txt") == "2\n"
    )
    assert clone.run(other, "task-other")["branch"] == "feature"
    assert clone.branches() == [TASK, f"{TASK}-2"] and clone.is_clean()


def test_a_repository_inside_stays_with_its_work_tree(clone: Clone) -> None:
    """No commit can have it: it is named, not deleted, and no later worker deletes it."""

    def nested(folder: Path) -> None:
        git("init", "-q", "inner", cwd=folder)
        git("config", "user.email", "a@example.org", cwd=folder / "inner")
        git("config", "user.name", "a", cwd=folder / "inner")
        commit(folder / "inner", name="deep.txt")

    left = clone.run(nested)
    assert (Path(left["worktree"]) / "inner" / "deep.txt").exists()
    assert clone.run(lambda folder: None, "task-other") == {}
    assert (Path(left["worktree"]) / "inner" / "deep.txt").exists() and len(clone.said) == 1
    with pytest.raises(OSError, match="Save what you need"):
        clone.run(lambda folder: None)


def test_a_file_git_of_the_work_tree_is_not_believed(clone: Clone, tmp_path: Path) -> None:
    """A run that points it at another repository changes nothing there, and loses nothing."""
    other = tmp_path / "other"
    git("init", "-q", str(other), cwd=tmp_path)

    def hostile(folder: Path) -> None:
        (folder / "new.txt").write_text("new\n")
        (folder / ".git").write_text(f"gitdir: {other}/.git\n")

    assert clone.run(hostile) == {"uncommitted": f"{TASK}-uncommitted"}
    assert not (other / ".git" / "index").exists() and clone.is_clean()


def test_a_branch_that_the_user_has_checked_out_is_left_alone(clone: Clone, tmp_path: Path) -> None:
    """The run goes on with a branch from there."""
    clone.run(commit)
    clone.git("worktree", "add", "-q", str(tmp_path / "look"), TASK)
    tip = clone.git("rev-parse", TASK)
    left = clone.start(lambda folder: commit(folder, "5\n")).end()
    assert left["branch"] == f"{TASK}-2" and clone.git("rev-parse", TASK) == tip
    assert clone.git("rev-parse", f"{TASK}-2^") == tip


def test_a_repository_without_commits_and_an_open_folder_are_refused(clone: Clone, tmp_path: Path) -> None:
    """With what to do; nothing is left."""
    clone.git("checkout", "-q", "--orphan", "empty")
    with pytest.raises(OSError, match="Commit something first"):
        clone.start(lambda folder: None)
    assert clone.is_clean()
    clone.git("symbolic-ref", "HEAD", "refs/heads/main")
    for folder in clone.state.glob("worktrees/*"):
        folder.chmod(0o777)
    with pytest.raises(OSError, match="Run: chmod 700"):
        clone.start(lambda folder: None)


def test_a_program_that_can_not_start_leaves_nothing(clone: Clone) -> None:
    """What it failed with goes on to the worker."""

    def fails(folder: Path) -> None:
        raise OSError("no such program")

    with pytest.raises(OSError, match="no such program"):
        clone.start(fails)
    assert clone.is_clean() and clone.branches() == []


def test_i11_what_a_killed_worker_has_left_is_kept_and_cleaned(
    repo: Path,
    tmp_path: Path,
    run: Call,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kill -9 while a program runs in the work tree; the next run goes on from there, and the result names the branch."""
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    git("config", "user.name", "Test Person", cwd=repo)
    shop = tmp_path / "shop"
    script = "test -e b && { git add b; git commit -qm b; echo done; exit; }; pwd > b; sleep 300"
    with serving(repo, shop, "--exec", script, "--worktree", "--lease", "1s") as worker:
        made = run("call", "prices", "x", "--no-wait", "--json").json
        task_id = made["results"][0]["task_id"]
        wait_for(lambda: list(state.glob("gitmem/worktrees/*/*/b")))
        worker.send_signal(signal.SIGKILL)
        worker.wait(10)
    with serving(repo, shop, "--exec", script, "--worktree", "--lease", "1s"):
        later = run("task", "wait", task_id, "--timeout", "30s", "--json")
        assert (later.status, later.json["message"]) == (0, "done"), later.out + later.err
        payload = later.json["results"][0]["payload"]
    assert payload["branch"] == task_id
    assert git("show", f"{payload['commit']}:b", cwd=repo).strip().endswith(task_id)
    assert not list(state.glob("gitmem/worktrees/*/task*"))
    assert not (shop / "b").exists() and os.path.isdir(repo)
    assert (
        len(
            subprocess.run(
                ["git", "worktree", "list"], cwd=repo, capture_output=True, text=True, check=True
            ).stdout.splitlines()
        )
        == 2
    )


def test_a_result_says_where_the_work_is(
    repo: Path,
    tmp_path: Path,
    run: Call,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As text, in the same folder of the work tree as the worker's; also of a run that fails."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shop = worktree(repo, tmp_path / "shop")
    (shop / "sub").mkdir()
    commit(shop, name="sub/file")
    with serving(repo, shop / "sub", "--exec", "pwd; echo 1 > made; echo wrong >&2; exit 3", "--worktree"):
        found = run("call", "prices", "x", "--timeout", "30s")
    assert found.status == 1 and "wrong" in found.out
    name = git("for-each-ref", "--format=%(refname:short)", "refs/heads/task-*", cwd=repo).strip()
    assert f"its work: uncommitted {name}" in found.out
    assert git("show", f"{name}:sub/made", cwd=repo) == "1\n" and not (shop / "sub" / "made").exists()


# Which processes end with a run: its group, and what its processes have started in other groups, and no others.


def test_a_tree_keeps_what_it_has_seen_and_takes_no_others() -> None:
    """Children of an ended process, the rest of their group, and no process that has a number again."""
    every = {
        1: (0, 1, ""), 50: (1, 50, ""), 51: (50, 50, ""),  # somebody else's
        100: (50, 100, ""), 101: (50, 100, "a"),  # the guard, and the command in its group
        200: (101, 200, "b"), 201: (1, 200, "c"), 202: (200, 202, "d"),  # a tool, an orphan of its group, a session
    }  # fmt: skip
    tree = ProcessTree(100, excluded=(100, 50), processes=lambda: every)
    assert tree.look() == [101, 200, 201, 202]
    del every[101], every[200]
    every[202] = (1, 202, "d")
    every[203] = (202, 203, "e")
    every[201] = (1, 201, "f")  # the orphan has ended, and its number is that of another process
    assert tree.look() == [202, 203]
    sent: list[tuple[int, int]] = []

    def send(pid: int, number: int) -> None:
        sent.append((pid, number))
        every.pop(pid)
        raise ProcessLookupError

    process_guard.end_tree(tree, send)
    assert sent == [(202, signal.SIGTERM), (203, signal.SIGTERM)]


@pytest.mark.skipif(sys.platform != "linux", reason="of /proc")
def test_a_programs_name_cannot_hide_it(tmp_path: Path) -> None:
    """The kernel shows the name in brackets before the other fields."""
    program = tmp_path / "x) Z 1 (\n"
    program.symlink_to(str(shutil.which("sleep")))
    with subprocess.Popen([program, "60"], process_group=0) as child:
        try:
            end = time.monotonic() + 20
            while (found := all_processes()[child.pid])[:2] != (os.getpid(), child.pid):
                assert time.monotonic() < end
        finally:
            child.kill()
    assert found[2].isdecimal()


def test_without_proc_ps_lists_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS; neither ended ones nor `ps` itself, which is in the group of the guard."""
    if shutil.which("ps") is None:
        pytest.skip("no ps on PATH")
    before = all_processes()
    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    found = all_processes()
    assert found[os.getpid()][:2] == (os.getppid(), os.getpgrp())
    assert not [pid for pid, each in found.items() if each[0] == os.getpid() and pid not in before]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[tuple[ChildRun, int]]:
    """A run that has started a daemon: in a session of its own, without its parent, as by a double fork; and its process id."""
    note = tmp_path / "pid"
    start = f"(setsid sh -c 'echo $$ > {note}.new; mv {note}.new {note}; exec sleep 300' </dev/null >/dev/null 2>&1 &)"
    tool = f"setsid sleep 300 & echo $! > {tmp_path}/tool"
    child = ChildRun(f"{tool}; {start}; cat; sleep 300", b"", os.environ, str(tmp_path))
    wait_for(note.exists)
    pid = int(note.read_text())
    wait_for(lambda: all_processes()[pid][1] == pid)
    yield child, pid
    child.end()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone lets a process adopt orphans")
def test_a_daemon_that_a_run_has_started_ends_with_it(daemon: tuple[ChildRun, int]) -> None:
    """Nothing but the kernel knows then who has started it."""
    child, pid = daemon
    assert child.poll(0) is None
    child.end()
    assert pid not in all_processes()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone lets a process adopt orphans")
def test_a_run_whose_guard_is_killed_ends_with_its_group(
    daemon: tuple[ChildRun, int], tmp_path: Path
) -> None:
    """Its worker ends what it finds; a daemon is not found any more, and docs/invocation.md says so."""
    child, pid = daemon
    guard, tool = child._guard.pid, int((tmp_path / "tool").read_text())
    wait_for(lambda: all_processes()[tool][1] == tool)
    os.kill(guard, signal.SIGKILL)
    wait_for(child._exited.is_set)
    child.end()
    assert not [each for each in all_processes().values() if each[1] == guard]
    assert pid in all_processes() and tool not in all_processes()


def test_a_run_cannot_draw_the_group_of_another_program_into_its_end(tmp_path: Path) -> None:
    """Such as the user's shell and what it runs beside the worker: a process may join each group of its session."""
    with subprocess.Popen(["sleep", "300"], process_group=0) as other:
        note = tmp_path / "joined"
        join = f"import os, sys\ntry: os.setpgid(0, {other.pid})\nexcept OSError: pass\nopen(sys.argv[1], 'w').close()\nos.execvp('sleep', ['sleep', '300'])"
        child = ChildRun(shlex.join([sys.executable, "-c", join, str(note)]), b"", os.environ, str(tmp_path))
        try:
            wait_for(note.exists)
            child.end()
            assert other.poll() is None
        finally:
            child.end()
            other.kill()


def test_what_a_program_that_ends_by_itself_has_left_in_another_session_goes_on(tmp_path: Path) -> None:
    """Such as a server, or the process that commits the log."""
    note = tmp_path / "pid"
    command = f"(setsid sh -c 'echo $$ > {note}; exec sleep 300' </dev/null >/dev/null 2>&1 &); while [ ! -s {note} ]; do sleep 0.01; done; echo done"
    child = ChildRun(command, b"", os.environ, str(tmp_path))
    wait_for(child._exited.is_set)
    ended = child.poll(5)
    assert ended is not None and (ended.state, ended.message) == ("completed", "done")
    pid = int(note.read_text())
    assert pid in all_processes()
    os.kill(pid, signal.SIGKILL)
