"""gitmem's git hooks beside the real husky, lefthook and pre-commit: each hook runs once, in any order of the installations."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import compile_plugins

from .conftest import NAMES, Repository

pytestmark = pytest.mark.tools


def husky(repository: Repository) -> None:
    folder = repository.top / ".husky"
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        (folder / name).write_text(f'echo {name} >>"$RAN"')
    repository.run("husky")


def lefthook(repository: Repository) -> None:
    texts = [f'{name}:\n  commands:\n    user:\n      run: echo {name} >>"$RAN"\n' for name in NAMES]
    (repository.top / "lefthook.yml").write_text("".join(texts))
    repository.run("lefthook", "install")


def lefthook_jobs(repository: Repository) -> None:
    texts = [f'{name}:\n    jobs:\n    - run: echo {name} >>"$RAN"' for name in NAMES]
    (repository.top / "lefthook.yml").write_text("---\n" + "\n".join(texts))
    repository.run("lefthook", "install")


def pre_commit(repository: Repository) -> None:
    hook = "    - {{id: {0}, name: {0}, language: system, entry: sh -c 'echo {0} >>\"$RAN\"', always_run: true, pass_filenames: false, stages: [{0}]}}\n"
    text = "repos:\n  - repo: local\n    hooks:\n" + "".join(hook.format(name) for name in NAMES)
    (repository.top / ".pre-commit-config.yaml").write_text(text)
    repository.run("git", "add", ".pre-commit-config.yaml")
    repository.run("pre-commit", "install", *(word for name in NAMES for word in ("--hook-type", name)))


Tool = Callable[[Repository], None]
TOOLS = [husky, lefthook, lefthook_jobs, pre_commit]


def committed(repository: Repository) -> None:
    """Commit the tool's settings, as its user does; gitmem's hooks are not asked."""
    repository.run("git", "add", "-A")
    repository.run("git", "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "Settings")


@pytest.mark.parametrize("tool", TOOLS)
def test_after_the_tool(tool: Tool, tools: Path, repository: Callable[..., Repository]) -> None:
    """Installed after it, twice; the tool again; taken out: the files are as before."""
    here = repository(tools)
    tool(here)
    committed(here)
    here.check(user=1, ours=0)
    before = here.seen()

    for _ in range(2):
        here.hooks("setup")
    assert here.states() == {"installed"}
    committed(here) if tool is not pre_commit else None
    here.check(user=1, ours=1)
    with_ours = here.seen()
    if tool is pre_commit:
        pre_commit(here)
    else:
        here.run("husky") if tool is husky else here.run("lefthook", "install")
    assert here.seen() == with_ours and here.states() == {"installed"}
    here.check(user=1, ours=1)

    here.hooks("remove")
    changed = {path for path, _ in before.items() ^ here.seen().items() if not path.endswith(".txt")}
    assert changed == set()
    assert here.states() <= {"not installed", "foreign"}
    committed(here) if tool is not pre_commit else None
    here.check(user=1, ours=0)


@pytest.mark.parametrize("tool", TOOLS)
def test_before_the_tool(tool: Tool, tools: Path, repository: Callable[..., Repository]) -> None:
    """Where the tool has switched ours off, the status says so, and its next commands bring it back; nothing of ours is left at the end."""
    here = repository(tools)
    here.hooks("setup")
    here.check(user=0, ours=1)
    tool(here)
    committed(here)

    assert here.states() == ({"installed"} if tool is pre_commit else {"replaced"})
    here.follow()
    assert here.states() == {"installed"}
    committed(here) if tool is not pre_commit else None
    here.check(user=1, ours=1)

    here.hooks("remove")
    left = [path for path, (content, _) in here.seen().items() if b"gitmem" in content]
    assert left == []
    committed(here) if tool is not pre_commit else None
    here.check(user=1, ours=0)


@pytest.mark.parametrize("first", ["user", "gitmem"])
def test_a_hook_that_pre_commit_keeps(first: str, tools: Path, repository: Callable[..., Repository]) -> None:
    """A hook of the user's from before runs once beside pre-commit and ours, and comes back, whoever leaves first."""
    here = repository(tools)
    theirs = here.top / ".git" / "hooks" / "pre-commit"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text('#!/bin/sh\necho theirs >>"$RAN"\n')
    theirs.chmod(0o755)
    if first == "gitmem":
        here.hooks("setup")
    pre_commit(here)
    committed(here)
    here.hooks("setup")

    (here.top / "b.txt").write_text("new")
    ran, calls = here.do("git", "commit", "-m", "x", "b.txt", calls=False)
    assert (ran["theirs"], ran["pre-commit"], calls["gate --hook pre-commit"]) == (1, 1, 1)
    (here.top / "a.txt").write_text("new")
    here.run("git", "commit", "-m", "x", "a.txt", status=1)

    here.run("pre-commit", "uninstall")
    assert "installed" in here.states()
    ran, calls = here.do("git", "commit", "--allow-empty", "-m", "x", "b.txt", calls=False)
    assert (ran["theirs"], ran.get("pre-commit"), calls["gate --hook pre-commit"]) == (1, None, 1)
    here.hooks("remove")
    assert theirs.read_text() == '#!/bin/sh\necho theirs >>"$RAN"\n'
    assert [
        path.name
        for path in theirs.parent.iterdir()
        if path.name.startswith("pre-commit.") and path.suffix != ".sample"
    ] == []


def test_a_deletion_is_guarded_by_lefthook(tools: Path, repository: Callable[..., Repository]) -> None:
    """lefthook skips commands where it finds no staged files."""
    here = repository(tools)
    lefthook(here)
    here.hooks("setup")
    committed(here)
    here.run("git", "rm", "--quiet", "a.txt")

    assert "claim" in here.run("git", "commit", "-m", "x", status=1)


def test_pre_commit_takes_our_hooks_from_this_repository(
    tools: Path, repository: Callable[..., Repository], tmp_path: Path
) -> None:
    """They stop what those of setup stop; where both are installed each asks gitmem once."""
    here, source = repository(tools), tmp_path / "source"
    wanted = compile_plugins.git_hooks()
    for path in wanted:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(compile_plugins.ROOT / path, source / path)
    for words in (("init", "--quiet"), ("add", "-A"), ("commit", "--quiet", "-m", "Hooks")):
        here.run("git", "-C", str(source), *words)
    (here.top / "a.txt").write_text("new")
    here.run("git", "add", "a.txt")
    tried = here.run("pre-commit", "try-repo", str(source), "gitmem-pre-commit", status=1)
    assert "Ann claims a.txt" in tried
    here.run("git", "reset", "--quiet", "--hard")
    here.run("pre-commit", "try-repo", str(source), "gitmem-pre-push", "--hook-stage", "pre-push")

    rev = here.run("git", "-C", str(source), "rev-parse", "HEAD").strip()
    ids = "".join(f"      - id: gitmem-{name}\n" for name in NAMES[:2])
    config = here.top / ".pre-commit-config.yaml"
    config.write_text(f"repos:\n  - repo: {source}\n    rev: {rev}\n    hooks:\n{ids}")
    here.run("pre-commit", "install", *(word for name in NAMES[:2] for word in ("--hook-type", name)))
    committed(here)
    for _ in range(2):
        (here.top / "a.txt").write_text("new")
        _, calls = here.do("git", "commit", "-m", "x", "a.txt", status=1, calls=False)
        assert calls["gate --hook pre-commit"] == 1
        here.run("git", "checkout", "--quiet", "HEAD", "a.txt")
        _, calls = here.do("git", "push", "--quiet", "hub", "main", calls=False)
        assert calls["gate --hook pre-push"] == 1
        for name in NAMES[:2]:
            here.run("gitmem", "setup", "--git", name)
