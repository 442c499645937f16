"""The guard of claims as git's pre-commit hook."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gitmem import repo as place
from gitmem.clients import clients, git_hook
from tests.hook_agents import user_state
from tests.sandbox import worktree


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
    hook = git_hook.find_hook(found, None, git_hook.PRE_COMMIT)
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
        assert "asked: gate --pre-commit\na b.py\n" in done.stderr
        assert done.returncode == status
    git_hook.uninstall(hook)
    assert not os.path.lexists(hook.path)


def test_what_other_tools_do_to_the_hook_is_reported(repo: Path) -> None:
    """Another hook is kept and comes back byte for byte; one that replaces ours is named."""
    text = "#!/bin/sh\n"
    hook = git_hook.find_hook(place.find(str(repo)), None, git_hook.PRE_COMMIT)
    path = Path(hook.path)
    path.write_text(text)

    def state() -> tuple[str, bool, str | None]:
        return git_hook.state(hook), git_hook.is_replaced(hook), git_hook.manager([hook])

    assert state() == ("foreign", False, None)
    git_hook.install(hook)
    assert state() == ("installed", False, None)
    ours = path.read_bytes()
    path.write_text(text)
    assert state() == ("foreign", True, None)
    path.write_bytes(ours)
    git_hook.uninstall(hook)
    assert (path.read_text(), state()) == (text, ("foreign", False, None))
