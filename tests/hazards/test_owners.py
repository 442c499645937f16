"""Root writes in a repository of somebody else, as in a container: its owner is not locked out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .conftest import Desk, powerless, process

OWNER = 12_345
pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act for others"
)


def give(folder: Path, owner: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def not_the_owners(folder: Path, *shared: str) -> list[str]:
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.lstat().st_uid != OWNER
        and path.suffix not in (".pack", ".idx", ".keep")
        and str(path.relative_to(folder)) not in shared
    )


def test_what_root_writes_belongs_to_the_owner_of_the_git_folder(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State, index, refs, reflogs and folders of objects; `config` and `info` are git's, in folders of the owner."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    give(desk.repo, OWNER)

    ada, ben = desk.start("Ada"), desk.start("Ben")
    desk.send(ada, "Tabs?", "--to", "Ben")
    assert "Tabs?" in desk("inbox", session=ben).out
    desk("claim", "src/*.py", session=ada)
    desk("mem", "create", "The parser drops tabs", session=ada)
    desk("mem", "create", "Mine", "--private", session=ada)
    assert desk("log", "--commit", session=ada).status == 0

    git = desk.repo / ".git"
    assert (git / "refs" / "gitmem" / "log").exists()
    assert [each for each in not_the_owners(git) if not each.startswith("gitmem/private-0")] == []
    assert (git / "gitmem" / "key").stat().st_mode & 0o777 == 0o600


def test_the_owner_is_told_what_root_has_made_and_how_to_get_it_back(desk: Desk) -> None:
    """Where an older root process has left `.git/gitmem` to itself. Here the second user is the one who made it."""
    session = desk.start("Ada")
    state = desk.repo / ".git" / "gitmem"
    give(state, OWNER)
    for path in state.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    (state / "key").unlink()  # which the owner can't read, but this process may

    told = process(
        "signal",
        "Tabs?",
        "--to",
        session,
        "--json",
        cwd=desk.repo,
        env={"GITMEM_SESSION": session},
        before=powerless,
    )

    assert told.status == 4, told
    assert told.error["code"] == "read-only"
    assert f"{state} belongs to user {OWNER}" in told.error["message"]
    assert "Nothing was recorded" in told.error["message"]
    assert told.json["next"] == [f"sudo chown -R 0:0 {state}"]
