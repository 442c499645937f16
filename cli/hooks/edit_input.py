"""The paths that a tool changes, from the input of a client's hook, and where they are in this repository."""

from __future__ import annotations

import os

from gitmem import strict_json
from gitmem.errors import GitmemError
from gitmem.repo import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gitmem.repo import Repo

PATHS_MAX = 100
PATH_MAX = 4_096  # characters
PATCH_MAX = 4_000_000  # characters of a patch that are searched for paths
FOLDERS_MAX = 64  # folders above a new file
# Where clients put a tool's arguments, and the names of a path and of a patch among them.
_ARGUMENTS = ("tool_input", "toolArgs", "args")
_PATHS = ("file_path", "filePath", "path", "notebook_path")
_PATCHES = ("command", "input", "patch", "patchText")
_PATCH = "*** Begin Patch"
_FILES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def edited(fields: Mapping[str, object]) -> list[str]:
    """Return the paths that a tool changes, as its client names them, and those of a patch."""
    found: dict[str, None] = {}
    for path in _paths(_arguments(fields)):
        if 0 < len(path) <= PATH_MAX and "\0" not in path:
            found[path] = None
        if len(found) == PATHS_MAX:
            break
    return list(found)


def within(repo: Repo, folder: str | None, paths: Sequence[str]) -> list[str]:
    """Return paths from the top of the worktree that each is in, without those outside of this repository.

    Args:
        repo: The repository of the hook.
        folder: The folder that relative paths start from; None for the top of the worktree.
        paths: Paths as `edited` returns them.
    """
    start = folder if folder is not None and os.path.isabs(folder) else repo.worktree or ""
    found: dict[str, None] = {}
    for path in paths:
        try:
            inside = _inside(repo, os.path.normpath(os.path.join(start, path)))
        except (OSError, ValueError, GitmemError):
            continue
        if inside is not None:
            found[inside] = None
    return list(found)


def _arguments(fields: Mapping[str, object]) -> Mapping[str, object]:
    value = next((fields[key] for key in _ARGUMENTS if key in fields), None)
    call = fields.get("preToolUse") or fields.get("postToolUse")  # Cline
    if isinstance(call, dict):
        value = call.get("parameters")
    if isinstance(value, str):  # Copilot, in earlier versions
        try:
            value = strict_json.read(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def _paths(arguments: Mapping[str, object]) -> Iterator[str]:
    for key in _PATHS:
        value = arguments.get(key)
        if isinstance(value, str):
            yield value
    for key in _PATCHES:
        value = arguments.get(key)
        if isinstance(value, str) and _PATCH in value[:PATCH_MAX]:
            for line in value[:PATCH_MAX].split("\n"):
                name = next((each for each in _FILES if line.startswith(each)), None)
                if name is not None:
                    yield line.removeprefix(name).strip()


def _inside(repo: Repo, path: str) -> str | None:
    """Return an absolute path from the top of its worktree; None outside of the repository's worktrees.

    An agent may change files of another worktree of the clone. A link is followed: what it names is changed.
    """
    path = os.path.realpath(path)
    nearest = os.path.dirname(path)
    for _ in range(FOLDERS_MAX):
        if os.path.isdir(nearest):
            break
        nearest = os.path.dirname(nearest)
    place = find(nearest)
    if place.common != repo.common or place.worktree is None:
        return None
    name = os.path.relpath(path, place.worktree).replace(os.sep, "/")
    return None if name == ".." or name.startswith(("../", ".git/")) else name
