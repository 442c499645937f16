"""Anchors: the commit, branch and files that a node is about, and whether they moved on since."""

from __future__ import annotations

from ...errors import UsageError
from ..story import harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...place import Place
    from ..store import Store
    from .fold import Node

PATHS_MAX = 100


def head(store: Store) -> tuple[str | None, str | None]:
    """The commit and the branch that this worktree's HEAD is at; None for what there is not."""
    return store.git.head(store.place.git_dir)


def checked(paths: Iterable[str]) -> list[str]:
    """Paths from the root of the work tree, in git's form. UsageError for one that leaves it."""
    found: dict[str, None] = {}
    for path in paths:
        parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or ":" in path[1:2] or not path.isprintable():
            raise UsageError(
                f"{harmless(path)[:80]} is no path below the root of the work tree; nothing was written.",
                hint="Such as src/parser.py.",
                code="bad-path",
            )
        if parts:
            found["/".join(parts)] = None
    if len(found) > PATHS_MAX:
        raise UsageError(
            f"There are {len(found)} paths, and at most {PATHS_MAX} are allowed; nothing was written.",
            code="bad-path",
        )
    return list(found)


def from_root(place: Place, folder: str, typed: str) -> str:
    """A path that was typed in a folder, from the root of the work tree. UsageError for one outside of it.

    Links on the way to the work tree do not matter; a link inside it is the file that is meant.
    """
    import os

    if place.worktree is None:
        return typed
    path = os.path.join(os.path.realpath(folder), typed)
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    found = os.path.relpath(os.path.normpath(path), os.path.realpath(place.worktree)).replace(os.sep, "/")
    if found == ".." or found.startswith("../"):
        raise UsageError(
            f"{harmless(typed)[:80]} lies outside of the work tree; nothing was written.",
            hint="A node is about files of this repository.",
            code="bad-path",
        )
    return found


def missing(store: Store, nodes: Sequence[Node]) -> list[str]:
    """A remark for each path that is not in the work tree: perhaps a slip, and it can never be stale."""
    import os

    top = store.place.worktree
    if top is None:
        return []
    paths = dict.fromkeys(path for node in nodes for path in node.paths)
    gone = [path for path in paths if not os.path.lexists(os.path.join(top, path))]
    return [f"{path} is not in this work tree." for path in gone[:3]]
