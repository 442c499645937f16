"""Git's post-commit hook notes who commits: it never stops a commit, and starts gitmem only for a session."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from cli import environment
from gitmem import repo as place
from gitmem.clients import clients, git_hook
from gitmem.errors import UsageError
from tests.hook_agents import user_state
from tests.sandbox import worktree


def commit(folder: Path, **env: str) -> str:
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
    hook = git_hook.find_hook(found, None, git_hook.POST_COMMIT)
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
        commit(folder)
        assert not (state / f"by-{name}").exists()
        (state / f"in-{name}").touch()
        first = commit(folder, GITMEM_SESSION="sess-1", CLAUDE_CODE_SESSION_ID="a b", CLAUDECODE="1")
        second = commit(folder)
        noted = f"{first} GITMEM_SESSION=sess-1 CLAUDE_CODE_SESSION_ID=? claude-code=1\n{second}\n"
        assert (state / f"by-{name}").read_text() == noted
    assert (repo / "kept").exists()
    asked = repo / ".git" / "asked"
    for _ in range(100):
        if asked.exists() and len(asked.read_text().splitlines()) == 2:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert asked.read_text() == "note-commits\n" * 2
    (state / "by-.git").unlink()
    (state / "by-.git").mkdir()  # it cannot be written
    commit(repo, GITMEM_SESSION="sess-1")
    (state / "by-.git").rmdir()
    os.mkfifo(state / "by-.git")  # nobody reads it
    commit(repo, GITMEM_SESSION="sess-1")
    (state / "by-.git").unlink()
    elsewhere = repo.parent / "elsewhere"
    elsewhere.touch()
    (state / "by-.git").symlink_to(elsewhere)
    commit(repo, GITMEM_SESSION="sess-1")
    assert not elsewhere.read_text()
    git_hook.uninstall(hook)
    assert Path(hook.path).read_bytes() == before and not os.path.lexists(hook.kept)


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
    hook = git_hook.find_hook(found, None, git_hook.POST_COMMIT)
    assert hook.also is not None
    merge = Path(hook.also.path)
    before = b'#!/bin/sh\necho "$1" >>kept\n'
    merge.write_bytes(before)
    merge.chmod(0o755)
    result = git_hook.install(hook)
    assert result.files == [hook.path, hook.also.kept, hook.also.path]
    assert git_hook.install(hook).state == "unchanged"
    subprocess.run(["git", "checkout", "-q", "-b", "side"], cwd=repo, check=True)
    commit(repo)
    subprocess.run(["git", "checkout", "-q", "-"], cwd=repo, check=True)
    subprocess.run(["git", "merge", "-q", "--squash", "side"], cwd=repo, check=True)
    assert (repo / "kept").read_text() == "1\n"
    merge.unlink()
    assert git_hook.state(hook) == "outdated"
    assert git_hook.install(hook).state == "updated" and git_hook.state(hook) == "installed"
    merge.write_bytes(b"#!/bin/sh\n: a tool\n")
    assert git_hook.is_replaced(hook)
    with pytest.raises(UsageError, match="Nothing was written"):
        git_hook.install(hook)
    merge.write_text(git_hook.hook_text(git_hook.POST_MERGE))
    git_hook.uninstall(hook)
    assert merge.read_bytes() == before and not Path(hook.path).exists()
