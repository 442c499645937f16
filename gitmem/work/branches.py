"""The branches that are compared: those with a recent commit, a session or uncommitted files, and the default branch."""

from __future__ import annotations

import os

from .. import repo as repo_module
from ..agents import presence
from ..errors import GitmemError, UsageError
from ..git.branches import TooManyFilesError, uncommitted_files
from ..outcome import Struct
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..agents.presence import Presence
    from ..git.branches import Tip
    from ..store import Store


BRANCHES_MAX = 100
WORKTREES_MAX = 50
REFS_MAX = 20_000
RECENT_SECONDS = 14 * 24 * 3600
WORKTREE_SECONDS = 10.0
LOCAL, REMOTE = "refs/heads/", "refs/remotes/"
OURS = ("gitmem", "gitmem-outbox-")  # branches of the log: the name of one, and how others begin
USUAL = ("main", "master", "trunk")


class Branch(Struct):
    """A branch, or the detached HEAD of a worktree.

    Attributes:
        name: Its name without the remote; of a detached HEAD the folder of the worktree.
        revision: What git commands of the user call it; None if they can't.
        tip: Its commit; None before the first one.
        changed: The files that it changed since its merge base with the default branch.
        uncommitted: The files that differ from HEAD in its worktrees.
        sessions: The sessions that work on it.
    """

    name: str
    revision: str | None
    tip: str | None
    changed: list[str] = []
    uncommitted: list[str] = []
    sessions: list[Presence] = []
    is_checked_out: bool = False


class Refs:
    """The branches of this clone: the local ones, and those of remotes by name, each with its commits."""

    def __init__(self, store: Store) -> None:
        self.local = {
            ref.removeprefix(LOCAL): oid
            for ref, oid in store.git.refs(LOCAL).items()
            if not _is_ours(ref.removeprefix(LOCAL))
        }
        self.remote: dict[str, dict[str, str]] = {}  # name -> remote -> commit
        for ref, oid in store.git.refs(REMOTE).items():
            remote, _, name = ref.removeprefix(REMOTE).partition("/")
            if name and name != "HEAD" and not _is_ours(name):
                self.remote.setdefault(name, {})[remote] = oid
        self.default = _default(store, self)

    def names(self) -> list[str]:
        """Return the names of all branches, the local ones first."""
        return list(dict.fromkeys([*self.local, *self.remote]))

    def commits(self) -> list[str]:
        """Return the commits of all branches, of at most `REFS_MAX` of them."""
        found = dict.fromkeys(
            [*self.local.values(), *(oid for of in self.remote.values() for oid in of.values())]
        )
        return list(found)[:REFS_MAX]

    def default_tips(self) -> list[str]:
        """Return the commits of the default branch, here and at remotes."""
        if self.default is None:
            return []
        found = [self.local.get(self.default), *self.remote.get(self.default, {}).values()]
        return list(dict.fromkeys(oid for oid in found if oid is not None))

    def newest(self, name: str, tips: Mapping[str, Tip], *, checked_out: bool) -> Branch:
        """Return a branch as it is here; as a remote has it if that is newer, and it is not checked out here."""
        own = self.local.get(name)
        if own is not None and (checked_out or own not in tips):
            return Branch(name, name, own)
        known = [(tips[own].seconds, True, name, own)] if own is not None else []
        known += [
            (tips[oid].seconds, False, f"{remote}/{name}", oid)
            for remote, oid in self.remote.get(name, {}).items()
            if oid in tips
        ]
        if not known:
            return Branch(name, name, own)
        _, _, revision, oid = max(known)
        return Branch(name, revision, oid)


def _is_ours(name: str) -> bool:
    return name == OURS[0] or name.startswith((OURS[1], f"{OURS[0]}/"))


def _default(store: Store, refs: Refs) -> str | None:
    """Return the name of the default branch: what a remote says, else the setting of git, else a usual name."""
    known = {*refs.local, *refs.remote}
    for remote in ("origin", *sorted({remote for of in refs.remote.values() for remote in of})):
        text = os.fsdecode(
            repo_module.read_small(os.path.join(store.repo.common, f"{REMOTE}{remote}/HEAD"), 4096)
        )
        name = text.strip().removeprefix(f"ref: {REMOTE}{remote}/")
        if name in known:
            return name
    setting = store.git.config("^init\\.defaultbranch$").get("init.defaultbranch")
    return next((name for name in (setting, *USUAL) if name in known), None)


def need_default(refs: Refs) -> str:
    """Return the name of the default branch.

    Raises:
        UsageError: `no-default-branch`: nothing says which it is.
    """
    if refs.default is None:
        raise UsageError(
            f"No default branch: there is none of {', '.join(USUAL)}, and no remote names one. Nothing was compared.",
            hint="Name it in git's setting init.defaultBranch.",
            code="no-default-branch",
            next=["git remote set-head origin --auto"],
        )
    return refs.default


def sessions_by_branch(store: Store) -> dict[str, list[Presence]]:
    """Return the sessions of the last 24 hours that state a branch, at most `presence.READ_MAX` of the log, last seen first."""
    found: dict[str, list[Presence]] = {}
    current = [one for one in presence.shown(store, stating="branch").values() if one.is_current]
    for one in sorted(current, key=lambda one: (-one.last_seen, one.session_id)):
        name = one.record.get("branch")
        if name:
            found.setdefault(name, []).append(one)
    return found


class Checkout(Struct):
    """A worktree of this clone: its folder, branch, commit and uncommitted files."""

    folder: str
    branch: str | None
    head: str | None
    files: Sequence[str]


def checkouts(store: Store, remaining: Callable[[], float]) -> tuple[list[Checkout], list[str]]:
    """Return the worktrees of this clone, and a sentence about each whose uncommitted files are not known."""
    common = store.repo.common
    try:
        linked = sorted(os.listdir(os.path.join(common, "worktrees")))
    except OSError:
        linked = []
    folders = [common, *(os.path.join(common, "worktrees", name) for name in linked)]
    found, warnings = [], []
    for git_dir in folders[:WORKTREES_MAX]:
        try:
            own = store.repo if git_dir == store.repo.git_dir else repo_module.find(common, git_dir=git_dir)
            top = own.worktree
            if top is None or top == common or not os.path.isdir(top):
                continue
            head, branch = store.git.head(git_dir)
            seconds = max(0.01, min(WORKTREE_SECONDS, remaining()))
            files = uncommitted_files(common, git_dir, top, seconds)
        except TooManyFilesError:
            warnings.append(
                f"Uncommitted files of {sanitize(top or git_dir)} were left out: there are too many."
            )
            files = []
        except GitmemError:
            files = None
        if files is None:
            warnings.append(
                f"Uncommitted files of {sanitize(git_dir)} were left out: git could not list them."
            )
            continue
        found.append(Checkout(top or "", branch, head, files))
    if len(folders) > WORKTREES_MAX:
        warnings.append(
            f"{len(folders) - WORKTREES_MAX} worktrees were left out: at most {WORKTREES_MAX} are compared."
        )
    return found, warnings


def detached_name(place: Checkout, places: Sequence[Checkout]) -> str:
    """Return what a worktree without a branch is called: its folder, in full if another one has the same name."""
    name = os.path.basename(place.folder)
    count = sum(os.path.basename(each.folder) == name for each in places)
    return f"{name if count == 1 else place.folder} (detached)"


def select(
    refs: Refs,
    tips: Mapping[str, Tip],
    held: Mapping[str, Sequence[Presence]],
    places: Sequence[Checkout],
    now_seconds: int,
) -> tuple[list[Branch], int]:
    """Return the branches to compare, and how many more are recent.

    Args:
        refs: The branches of this clone.
        tips: The commits of these branches that exist here.
        held: Sessions by the name of their branch.
        places: The worktrees of this clone.
        now_seconds: The time, seconds since the epoch.
    """
    out: dict[str, Branch] = {}
    on = {place.branch for place in places}

    def seconds(branch: Branch) -> int:
        return tips[branch.tip].seconds if branch.tip is not None and branch.tip in tips else 0

    for name in refs.names():
        branch = refs.newest(name, tips, checked_out=name in on)
        if name in held or name in on or now_seconds - seconds(branch) < RECENT_SECONDS:
            out[name] = branch
    for place in places:
        name = place.branch if place.branch is not None else detached_name(place, places)
        branch = out.setdefault(name, Branch(name, None, place.head))
        branch.uncommitted += place.files
        branch.is_checked_out = True
    if refs.default in out and not out[refs.default].uncommitted:
        del out[refs.default]
    for name, branch in out.items():
        branch.sessions = list(held.get(name, ()))

    def rank(branch: Branch) -> tuple[bool, int, str]:
        return not (branch.sessions or branch.is_checked_out), -seconds(branch), branch.name

    ranked = sorted(out.values(), key=rank)
    compared = sorted(ranked[:BRANCHES_MAX], key=lambda branch: branch.name)
    return compared, len(ranked) - len(compared)
