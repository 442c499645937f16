"""The gate in front of a push: asked first, never in the way of what was there, and gone without a trace."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from cli import environment
from gitmem import repo as place
from gitmem.clients import clients, git_hook
from gitmem.clients.git_hook import Hook
from gitmem.errors import UsageError

from ...hook_agents import user_state
from ...sandbox import worktree

THEIRS = '#!/bin/sh\necho "theirs: $*"\ncat\nexit 7\n'


def hook_of(repo: Path, configured: str | None = None) -> Hook:
    return git_hook.Hook(place.find(str(repo)), configured, git_hook.PRE_PUSH)


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
    assert "asked: gate --hook pre-push" in done.stderr
    assert ("the push continues" in done.stderr) == (answer > 1)
    assert done.stdout == ""


def test_a_push_goes_on_where_gitmem_is_gone(repo: Path, tmp_path: Path) -> None:
    """Neither the program that was noted nor one on the PATH."""
    gitmem(repo, 1).unlink()
    hook = hook_of(repo)
    git_hook.install(hook)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))

    done = subprocess.run(
        [hook.path], cwd=repo, env={"PATH": str(tools)}, capture_output=True, text=True, timeout=30
    )

    assert done.returncode == 0
    assert "no gitmem program found" in done.stderr


def test_the_hook_that_was_there_runs_after_it(repo: Path) -> None:
    """With its arguments, its input, its exit status; and it is as it was once ours is removed."""
    gitmem(repo, 0)
    hook = hook_of(repo)
    Path(hook.path).write_text(THEIRS)
    Path(hook.path).chmod(0o751)

    git_hook.install(hook)
    done = push(repo, hook)

    assert (done.returncode, done.stdout) == (
        7,
        "theirs: origin the url\nrefs/heads/main 1 refs/heads/main 0\n",
    )
    assert git_hook.install(hook).state == "unchanged"
    assert git_hook.uninstall(hook).state == "removed"
    assert Path(hook.path).read_text() == THEIRS
    assert stat.S_IMODE(Path(hook.path).stat().st_mode) == 0o751


@pytest.mark.parametrize("version", ["this", "another"])
def test_lines_that_the_user_adds_to_the_hook_stay(version: str, repo: Path) -> None:
    """When it is set up again, and when it is removed, also by another version than wrote it; they run behind ours."""
    gitmem(repo, 0)
    hook = hook_of(repo)
    git_hook.install(hook)
    path = Path(hook.path)
    text = path.read_bytes() + b"echo mine\n"
    if version == "another":
        text = text.replace(b"gitmem_hook", b"gitmem_script")
        assert git_hook.state(hook_of(repo)) == "installed"
    path.write_bytes(text)
    assert git_hook.state(hook) == ("outdated" if version == "another" else "installed")
    git_hook.install(hook)
    assert path.read_bytes().endswith(b"echo mine\n") and push(repo, hook).stdout == "mine\n"
    git_hook.uninstall(hook)
    assert path.read_bytes() == b"#!/bin/sh\necho mine\n"


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
    hook = hook_of(repo)
    git_hook.install(hook)

    assert git_hook.state(hook) == "not run" and not os.access(script, os.X_OK)
    git_hook.uninstall(hook)
    assert Path(hook.path).readlink() == script and script.read_text() == THEIRS


def test_a_hook_that_other_repositories_have_by_a_link_is_not_written(repo: Path, tmp_path: Path) -> None:
    """As from a template of the user's: what to add is said, and counts once it is there. A folder that is a link works."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "pre-push").write_text(THEIRS)
    (shared / "pre-push").chmod(0o755)
    Path(hook_of(repo).path).symlink_to(shared / "pre-push")

    with pytest.raises(UsageError, match="is outside of this repository") as caught:
        git_hook.install(hook_of(repo))

    assert (shared / "pre-push").read_text() == THEIRS
    line = caught.value.hint.partition("yourself: ")[2]
    (shared / "pre-push").write_text(f"#!/bin/sh\n{line}\n")
    assert git_hook.install(hook_of(repo)).state == "unchanged"
    gitmem(repo, 1)
    assert push(repo, hook_of(repo)).returncode == 1
    hooks = repo / ".git" / "hooks"
    shutil.rmtree(hooks)
    (repo / "hooks").mkdir()
    hooks.symlink_to(repo / "hooks")
    git_hook.install(hook_of(repo))
    assert subprocess.run(["sh", hook_of(repo).path], cwd=repo, capture_output=True).returncode == 1


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
    assert "asked: gate --hook pre-push" in done.stderr
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


def test_each_file_that_a_removal_changes_is_named(repo: Path) -> None:
    """Such as one of husky, from another clone, where this one has git's own folder of hooks."""
    hook = hook_of(repo)
    git_hook.install(hook)
    husky = repo / ".husky" / git_hook.PRE_PUSH
    husky.parent.mkdir()
    husky.write_bytes(Path(hook.path).read_bytes())
    result = git_hook.uninstall(hook)
    assert f"Removed from {husky}, too." in result.remarks and not husky.exists()


def test_a_tool_that_wrote_over_ours_is_left_alone(repo: Path) -> None:
    """Its hook is named, gets our line when it is set up again, and is as it was at the end."""
    hook = hook_of(repo)
    git_hook.install(hook)
    theirs = "#!/bin/sh\n# another tool\n"
    Path(hook.path).write_text(theirs)

    assert git_hook.state(hook) == "foreign" and git_hook.is_replaced(hook)
    assert git_hook.install(hook).state == "installed"
    assert git_hook.state(hook) == "installed" and not git_hook.is_replaced(hook)
    git_hook.uninstall(hook)
    assert Path(hook.path).read_text() == theirs and not git_hook.is_replaced(hook)


def test_an_older_script_is_replaced(repo: Path) -> None:
    """It is ours alone."""
    hook = hook_of(repo)
    git_hook.install(hook)
    Path(hook.script.path).write_text(git_hook.hook_text() + "# old\n")
    assert git_hook.state(hook) == "outdated"

    assert git_hook.install(hook).state == "updated"

    assert Path(hook.script.path).read_text() == git_hook.hook_text()
    assert git_hook.state(hook) == "installed"


# Git's post-commit hook notes who commits: it never stops a commit, and starts gitmem only for a session.


def committed_with(folder: Path, **env: str) -> str:
    (folder / "a b.py").write_text(os.urandom(4).hex())
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    done = subprocess.run(
        ["git", "commit", "-m", "x"],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0 and "gitmem" not in done.stderr, done.stderr
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True
    ).stdout.strip()


def test_it_notes_the_variables_of_each_commit_in_each_worktree(repo: Path, tmp_path: Path) -> None:
    """Nothing before a session was there; odd values as a question mark; the earlier hook runs, and comes back byte for byte."""
    found = place.find(str(repo))
    hook = git_hook.Hook(found, None, git_hook.POST_COMMIT)
    before = b"#!/bin/sh\necho kept >>kept\nexit 3\n"
    Path(hook.path).write_bytes(before)
    Path(hook.path).chmod(0o755)
    program = repo / ".git" / "a gitmem"
    program.write_text(f'#!/bin/sh\necho "$*" >>"{repo}/.git/asked"\n')
    program.chmod(0o755)
    state = Path(found.state, "commits")
    state.mkdir(parents=True)
    assert clients.write_paths(found.state, user=user_state(), program=str(program))
    git_hook.install(hook)
    where = worktree(repo, tmp_path / "linked-tree")
    for folder, name in ((repo, ".git"), (where, "linked-tree")):
        committed_with(folder)
        assert not (state / f"by-{name}").exists()
        (state / f"in-{name}").touch()
        first = committed_with(folder, GITMEM_SESSION="sess-1", CLAUDE_CODE_SESSION_ID="a b", CLAUDECODE="1")
        second = committed_with(folder)
        noted = f"{first} GITMEM_SESSION=sess-1 CLAUDE_CODE_SESSION_ID=? claude-code=1\n{second}\n"
        assert (state / f"by-{name}").read_text() == noted
    assert (repo / "kept").exists()
    asked = repo / ".git" / "asked"
    for _ in range(100):
        if asked.exists() and len(asked.read_text().splitlines()) == 2:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert asked.read_text() == "background note-commits\n" * 2
    (state / "by-.git").unlink()
    (state / "by-.git").mkdir()  # it cannot be written
    committed_with(repo, GITMEM_SESSION="sess-1")
    (state / "by-.git").rmdir()
    os.mkfifo(state / "by-.git")  # nobody reads it
    committed_with(repo, GITMEM_SESSION="sess-1")
    (state / "by-.git").unlink()
    elsewhere = repo.parent / "elsewhere"
    elsewhere.touch()
    (state / "by-.git").symlink_to(elsewhere)
    committed_with(repo, GITMEM_SESSION="sess-1")
    assert not elsewhere.read_text()
    git_hook.uninstall(hook)
    assert Path(hook.path).read_bytes() == before


def test_it_notes_every_variable_and_marker_of_clients() -> None:
    """A client that commands know and the hook does not would make a nested agent's commit its parent's."""
    script = git_hook.hook_text(git_hook.POST_COMMIT)
    assert set(re.findall(r'"([A-Z_]+)=', script)) == {
        "GITMEM_SESSION",
        "GITMEM_TASK",
        *environment.SESSION_VARIABLES,
    }
    for name, client in environment.MARKERS:
        assert not client or re.search(rf'"{client}=[^"]*\${{{name}-}}', script), name


def test_post_merge_comes_and_goes_with_post_commit(repo: Path) -> None:
    """Byte for byte; a hook that existed before runs with its argument; without post-merge the hook is outdated."""
    found = place.find(str(repo))
    hook = git_hook.Hook(found, None, git_hook.POST_COMMIT)
    assert hook.also is not None
    merge = Path(hook.also.path)
    before = b'#!/bin/sh\necho "$1" >>kept\n'
    merge.write_bytes(before)
    merge.chmod(0o755)
    result = git_hook.install(hook)
    assert result.files == [hook.script.path, hook.path, hook.also.script.path, hook.also.path]
    assert git_hook.install(hook).state == "unchanged"
    subprocess.run(["git", "checkout", "-q", "-b", "side"], cwd=repo, check=True)
    committed_with(repo)
    subprocess.run(["git", "checkout", "-q", "-"], cwd=repo, check=True)
    subprocess.run(["git", "merge", "-q", "--squash", "side"], cwd=repo, check=True)
    assert (repo / "kept").read_text() == "1\n"
    merge.unlink()
    assert git_hook.state(hook) == "outdated"
    assert git_hook.install(hook).state == "updated" and git_hook.state(hook) == "installed"
    merge.write_bytes(b"#!/bin/sh\n: a tool\n")
    assert git_hook.is_replaced(hook)
    git_hook.install(hook)
    git_hook.uninstall(hook)
    assert merge.read_bytes() == b"#!/bin/sh\n: a tool\n" and not Path(hook.path).exists()


# The guard of claims as git's pre-commit hook.


@pytest.mark.parametrize(("answer", "status"), [(0, 0), (1, 1), (3, 0)])
def test_the_pre_commit_hook_starts_gitmem_only_for_claims_of_others(
    answer: int, status: int, repo: Path, tmp_path: Path
) -> None:
    """It passes the staged paths, stops only a commit that is refused, and works in a linked worktree."""
    found = place.find(str(repo))
    program = repo / ".git" / "a gitmem"
    program.write_text(f'#!/bin/sh\necho "asked: $*"\ntr "\\0" "\\n"\nexit {answer}\n')
    program.chmod(0o755)
    Path(found.state).mkdir(exist_ok=True)
    assert clients.write_paths(found.state, user=user_state(), program=str(program))
    hook = git_hook.Hook(found, None, git_hook.PRE_COMMIT)
    git_hook.install(hook)
    where = worktree(repo, tmp_path / "linked")
    for folder, name in ((repo, "in-.git"), (where, "in-linked")):
        own = Path(found.state, "claims", "only-own", name)
        own.parent.mkdir(parents=True, exist_ok=True)

        def commit(folder: Path = folder) -> subprocess.CompletedProcess[str]:
            (folder / "a b.py").write_text(os.urandom(4).hex())
            subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
            who = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
            return subprocess.run(
                ["git", *who, "commit", "-m", "x"], cwd=folder, capture_output=True, text=True
            )

        claimed = Path(found.state, "claims", "claimed")
        claimed.unlink(missing_ok=True)
        assert "asked" not in commit().stderr
        claimed.touch()
        own.touch()
        assert "asked" not in commit().stderr
        own.unlink()
        done = commit()
        assert "asked: gate --hook pre-commit\na b.py\n" in done.stderr
        assert done.returncode == status
    git_hook.uninstall(hook)
    assert not os.path.lexists(hook.path)
