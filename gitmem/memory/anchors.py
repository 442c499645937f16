"""Anchors: the commit, branch and files that a node refers to, and whether they changed since."""

from __future__ import annotations

from ..agents.presence import recordable_branch
from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..outcome import Outcome
from ..text.sanitize import first_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..git.objects import PathChanges
    from ..order.node import VersionedNode
    from ..repo import Repo
    from ..store import Store

PATHS_MAX = 100
PATHS_SHOWN = 3
PATH_SHOWN_MAX = 100  # characters
SUBJECTS_MAX = 10
FILES_MAX = 20
OID_SHOWN = 8


class ChangesSince(Outcome):
    """The changes of the repository since the commit `head`.

    Attributes:
        known: False if this clone lacks the commit; the other attributes are empty then.
        commits: The number of commits in HEAD that `head` lacks.
        subjects: The newest of these commits, one line each.
        files: Files whose content differs.
        more_files: The number of further such files.
    """

    def __init__(
        self, head: str, commits: Sequence[tuple[str, str]] | None, files: Sequence[str] = ()
    ) -> None:
        shown = [f"{oid[:OID_SHOWN]} {sanitize(subject)}" for oid, subject in (commits or ())[:SUBJECTS_MAX]]
        self.head = head
        self.known = commits is not None
        self.commits = len(commits or ())
        self.subjects = shown
        self.files = [_shown(path) for path in files[:FILES_MAX]]
        self.more_files = len(files) - len(self.files)


def head(store: Store) -> tuple[str | None, str | None]:
    """Return the commit and the branch of this worktree's HEAD.

    Each is None if it does not exist. The branch is also None if a record cannot contain its name.
    """
    commit, branch = store.head()
    return commit, recordable_branch(branch)


def validate_paths(paths: Iterable[str]) -> list[str]:
    """Return paths relative to the root of the work tree, in git's form, without duplicates.

    Raises:
        UsageError: A path is outside the work tree or unprintable, or there are more than PATHS_MAX.
    """
    found: dict[str, None] = {}
    for path in paths:
        parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or ":" in path[1:2] or not path.isprintable():
            raise UsageError(
                f"Invalid path: {sanitize(path)[:80]}; it must be below the root of the worktree. Nothing was written.",
                hint="Use a form such as src/parser.py.",
                code="bad-path",
            )
        if parts:
            found["/".join(parts)] = None
    if len(found) > PATHS_MAX:
        raise UsageError(
            f"Too many paths: {len(found)}; the maximum is {PATHS_MAX}. Nothing was written.",
            code="bad-path",
        )
    return list(found)


def from_root(repo: Repo, folder: str, typed: str) -> str:
    """Convert a path typed in a folder to a path relative to the root of the work tree.

    Symbolic links in its folders are resolved; a link as the last component names the link itself.

    Raises:
        UsageError: The path is outside the work tree.
    """
    import os

    if repo.worktree is None or not typed.strip():
        return typed  # an empty path is refused by whoever takes it
    path = os.path.join(os.path.realpath(folder), typed)
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    found = os.path.relpath(os.path.normpath(path), os.path.realpath(repo.worktree)).replace(os.sep, "/")
    if found == ".." or found.startswith("../"):
        raise UsageError(
            f"Path outside of the worktree: {sanitize(typed)[:80]}. Nothing was written.",
            hint="Use paths of files in this repository.",
            code="bad-path",
        )
    return found


def missing_path_warnings(store: Store, nodes: Sequence[VersionedNode]) -> list[str]:
    """Return a warning for each path that is not in the work tree, three at most.

    Such a path is perhaps a typo, and its node can never become stale.
    """
    import os

    top = store.repo.worktree
    if top is None:
        return []
    paths = dict.fromkeys(path for node in nodes for path in node.paths)
    gone = [path for path in paths if not os.path.lexists(os.path.join(top, path))]
    return [f"{path} is not in this worktree." for path in gone[:3]]


def stale(store: Store, nodes: Iterable[VersionedNode]) -> dict[str, str]:
    """Return the nodes whose files changed since, by id: `stale (3 commits behind in a.py, 1 in b.py)`; see `changed`."""
    return {id: stale_text(each) for id, each in changed(store, nodes).items()}


def stale_text(behind: dict[str, PathChanges]) -> str:
    """Return what `stale` says of a node with these changes."""
    return f"stale ({_format_stale(behind)})"


def changed(store: Store, nodes: Iterable[VersionedNode]) -> dict[str, dict[str, PathChanges]]:
    """Return what changed of the files of nodes since, by id and path, of the nodes of which something did.

    A file is stale if its content at HEAD differs from that at the node's commit, and HEAD has commits that changed
    it and that the node's commit lacks. So neither a reverted change nor a file of another branch makes a node
    stale. A file that was uncommitted when the node was written (a new file) counts from the commit that added it.
    A folder means all files in it. Uncommitted changes in the work tree do not count.

    A node is not in the result if this clone lacks its commit (another clone has not pushed it, or it was pruned
    after a rebase). The result is empty without a worktree or a commit at HEAD. At an earlier time (`as_of.py`),
    HEAD is the named commit of the project; if a date was given instead, HEAD is unknown and the result is empty.
    """
    anchored = [node for node in nodes if node.head and node.paths and store.repo.worktree is not None]
    tip = head(store)[0] if anchored else None
    pairs = [(str(node.head), path) for node in anchored if node.head != tip for path in node.paths]
    if tip is None or not pairs:
        return {}
    moved = store.git.behind(tip, pairs)
    found = {}
    for node in anchored:
        behind = {path: moved[key] for path in node.paths if (key := (str(node.head), path)) in moved}
        if behind:
            found[node.id] = behind
    return found


def _format_stale(behind: dict[str, PathChanges]) -> str:
    """Format the changed paths: most commits first, removed files last."""
    order = sorted(behind, key=lambda path: (behind[path].gone, -behind[path].count, path))
    parts = []
    counted = False
    for path in order[:PATHS_SHOWN]:
        each = behind[path]
        if each.gone:
            since = f" since {each.last[:OID_SHOWN]}" if each.last else ""
            parts.append(f"{_shown(path)} is gone{since}")
        elif not each.count:
            parts.append(f"long behind in {_shown(path)}")
        else:
            number = f"{each.count}{'+' if each.at_least else ''}"
            noun = "" if counted else " commit behind" if number == "1" else " commits behind"
            parts.append(f"{number}{noun} in {_shown(path)}")
            counted = True
    return first_of(parts, len(parts), len(order) - len(parts))


def _shown(path: str) -> str:
    return cut(sanitize(path), PATH_SHOWN_MAX)


def since(store: Store, node: VersionedNode) -> ChangesSince | None:
    """Return the changes of the repository since a node was written, for an agent that resumes work.

    Returns:
        None if the node or HEAD has no commit.
    """
    tip = head(store)[0]
    if node.head is None or tip is None:
        return None
    if node.head == tip:
        return ChangesSince(tip, [])
    try:
        return ChangesSince(
            node.head, store.git.commits_since(node.head, tip), store.git.files_between(node.head, tip)
        )
    except KeyError:
        return ChangesSince(node.head, None)
