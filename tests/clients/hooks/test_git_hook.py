"""The gate in front of a push: asked first, never in the way of what was there, and gone without a trace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gitmem import repo as place
from gitmem.clients import clients, git_hook
from gitmem.clients.git_hook import Hook
from gitmem.errors import UsageError

from ...hook_agents import user_state

THEIRS = '#!/bin/sh\necho "theirs: $*"\ncat\nexit 7\n'


def hook_of(repo: Path, configured: str | None = None) -> Hook:
    return git_hook.find_hook(place.find(str(repo)), configured)


def gitmem(repo: Path, status: int) -> Path:
    """A program in gitmem's place that says how it was called."""
    program = repo / ".git" / "a gitmem"
    program.write_text(f'#!/bin/sh\necho "asked: $*"\ncat\nexit {status}\n')
    program.chmod(0o755)
    state = Path(place.find(str(repo)).state)
    state.mkdir(exist_ok=True)
    assert clients.write_paths(str(state), user=user_state(), program=str(program))
    return program


def push(repo: Path, hook: Hook) -> subprocess.CompletedProcess[str]:
    """The hook as git runs it for a push."""
    return subprocess.run(
        [hook.path, "origin", "the url"], cwd=repo, input="refs/heads/main 1 refs/heads/main 0\n",
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip


@pytest.mark.parametrize(("answer", "status"), [(0, 0), (1, 1), (2, 0), (3, 0), (4, 0)])
def test_only_a_closed_gate_stops_a_push(answer: int, status: int, repo: Path) -> None:
    """A gitmem that fails is told on standard error, and the push continues."""
    gitmem(repo, answer)
    hook = hook_of(repo)
    git_hook.install(hook)

    done = push(repo, hook)

    assert done.returncode == status
    assert "asked: gate --pre-push" in done.stderr
    assert ("the push continues" in done.stderr) == (answer > 1)
    assert done.stdout == ""


def test_a_push_goes_on_where_gitmem_is_gone(repo: Path, tmp_path: Path) -> None:
    """Neither the program that was noted nor one on the PATH."""
    gitmem(repo, 1).unlink()
    hook = hook_of(repo)
    git_hook.install(hook)
    tools = tmp_path / "tools"
    tools.mkdir()
    git = subprocess.run(
        ["sh", "-c", "command -v git"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (tools / "git").symlink_to(git)

    done = subprocess.run(
        [hook.path], cwd=repo, env={"PATH": str(tools)}, capture_output=True, text=True, timeout=30
    )

    assert done.returncode == 0
    assert "no gitmem program found" in done.stderr


def test_the_hook_that_was_there_runs_after_it(repo: Path) -> None:
    """With its arguments, its input, its exit status; and it comes back as it was."""
    gitmem(repo, 0)
    hook = hook_of(repo)
    Path(hook.path).write_text(THEIRS)
    Path(hook.path).chmod(0o751)
    before = Path(hook.path).stat()

    said = git_hook.install(hook)
    done = push(repo, hook)

    assert said.kept == hook.kept
    assert (done.returncode, done.stdout) == (
        7,
        "theirs: origin the url\nrefs/heads/main 1 refs/heads/main 0\n",
    )
    assert git_hook.install(hook).state == "unchanged"
    assert git_hook.uninstall(hook).state == "removed"
    after = Path(hook.path).stat()
    assert Path(hook.path).read_text() == THEIRS
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ino,
    )
    assert not os.path.lexists(hook.kept)


def test_a_closed_gate_comes_before_theirs(repo: Path) -> None:
    """Theirs may take minutes."""
    gitmem(repo, 1)
    hook = hook_of(repo)
    Path(hook.path).write_text(THEIRS)
    Path(hook.path).chmod(0o755)
    git_hook.install(hook)

    assert "theirs" not in push(repo, hook).stdout


def test_a_hook_that_is_switched_off_stays_so(repo: Path) -> None:
    """Git runs no hook that is not executable; a link stays a link."""
    gitmem(repo, 0)
    hook = hook_of(repo)
    script = repo / "tools.sh"
    script.write_text(THEIRS)
    Path(hook.path).symlink_to(script)
    git_hook.install(hook)

    assert push(repo, hook).returncode == 0
    git_hook.uninstall(hook)
    assert Path(hook.path).readlink() == script


def test_git_itself_runs_it_from_a_linked_worktree(repo: Path, tmp_path: Path) -> None:
    """Hooks are in the common folder; the program is found from every worktree."""
    gitmem(repo, 1)
    git_hook.install(hook_of(repo))
    hub, other = tmp_path / "hub.git", tmp_path / "other"
    subprocess.run(["git", "init", "--quiet", "--bare", str(hub)], check=True)
    subprocess.run(["git", "worktree", "add", "--quiet", "-b", "side", str(other)], cwd=repo, check=True)

    assert hook_of(other).path == hook_of(repo).path
    done = subprocess.run(
        ["git", "push", str(hub), "side"], cwd=other, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "asked: gate --pre-push" in done.stderr
    gitmem(repo, 0)
    done = subprocess.run(
        ["git", "push", str(hub), "side"], cwd=other, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_a_folder_of_hooks_in_the_repository_is_heeded(repo: Path) -> None:
    """`core.hooksPath`, which is relative to the top of the worktree."""
    gitmem(repo, 1)
    subprocess.run(["git", "config", "core.hooksPath", ".githooks"], cwd=repo, check=True)
    hook = hook_of(repo, ".githooks")

    git_hook.install(hook)

    assert hook.path == str(repo / ".githooks" / "pre-push")
    git_hook.uninstall(hook)
    assert not os.path.exists(hook.path)


def test_a_tool_that_wrote_over_ours_is_left_alone(repo: Path) -> None:
    """What it wrote stays, and so does the kept hook; neither is thrown away by guess."""
    hook = hook_of(repo)
    Path(hook.path).write_text(THEIRS)
    git_hook.install(hook)
    Path(hook.path).write_text("#!/bin/sh\n# another tool\n")

    said = git_hook.uninstall(hook)

    assert said.state == "absent" and hook.kept in said.remarks[0]
    assert git_hook.state(hook) == "foreign"
    with pytest.raises(UsageError):
        git_hook.install(hook)
    assert Path(hook.kept).read_text() == THEIRS
    assert Path(hook.path).read_text() == "#!/bin/sh\n# another tool\n"


def test_an_older_gate_is_replaced(repo: Path) -> None:
    """And the hook from before stays the one from before."""
    hook = hook_of(repo)
    Path(hook.path).write_text(THEIRS)
    git_hook.install(hook)
    Path(hook.path).write_text(git_hook.hook_text() + "# old\n")
    assert git_hook.state(hook) == "outdated"

    assert git_hook.install(hook).state == "updated"

    assert Path(hook.path).read_text() == git_hook.hook_text()
    git_hook.uninstall(hook)
    assert Path(hook.path).read_text() == THEIRS
