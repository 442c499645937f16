"""A user with a home folder and a project, for hooks to be installed in."""

from __future__ import annotations

from pathlib import Path

from gitmem import repo as repo_module
from gitmem.clients.clients import CLIENTS, FLAT, GROUPS, Client, ClientFolders

JSON_CLIENTS = [each for each in CLIENTS.values() if each.form in (GROUPS, FLAT)]
ALL = [each for each in CLIENTS.values() if each.form != "nothing"]
PROGRAM = "/opt/gitmem/bin/gitmem"


def at(repo: Path, home: Path, **programs: str) -> ClientFolders:
    """The folders of a user in a worktree."""
    home.mkdir(exist_ok=True)
    found = repo_module.find(str(repo))
    linked = found.git_dir != found.common
    return ClientFolders(
        worktree=found.worktree,
        main=str(Path(found.common).parent) if linked else None,
        state=found.state,
        user=str(home.parent / "user state" / "gitmem"),
        home=str(home),
        moved={},
        programs=programs,
    )


def settings_of(client: Client, folders: ClientFolders, scope: str) -> Path:
    base = folders.base(client, scope)
    assert base is not None
    return Path(base, *client.settings.split("/"))


def everything(*folders: Path) -> dict[str, object]:
    """Every file, link and folder below, with content and mode; git's own folder and our state left out."""
    found: dict[str, object] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if ".git" in path.relative_to(folder).parts[:1]:
                continue
            if path.is_symlink():
                found[str(path)] = ("link", str(path.readlink()))
            elif path.is_dir():
                found[str(path)] = "folder"
            else:
                found[str(path)] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return found
