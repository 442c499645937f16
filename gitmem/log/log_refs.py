"""Refs that may hold a log: the copies of remote refs that sync keeps, and branches that people fetched or made."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import StoreError
from ..git import fetch
from ..git.files import shallow_commits
from ..git.objects import is_oid
from ..git.port import HistoryWalk
from . import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..git.port import Git
    from .local_log import LocalLog


class LogTip(NamedTuple):
    """The tip of a log: a commit with its tree, its `format`, and the projects that it belongs to."""

    name: str
    oid: str
    tree: str
    format: ref.Format
    projects: set[str]


class NotALog(Exception):  # noqa: N818  (a finding, not an error)
    """A ref with the name of a log's ref that does not hold a log; the text is the reason."""


def read(log: LocalLog, name: str, oid: str, known: Iterable[str] = ()) -> LogTip:
    """Read the log that ends in a commit.

    Args:
        name: The ref, for messages.
        known: Tips of logs. A history that contains one of them is not followed to its first commit.

    Raises:
        NotALog: The commit is not the tip of a log.
    """
    git = log.git
    try:
        tree = git.commit(oid).tree
        root = git.tree(tree)
        form = ref.read_format(git, root)
        if form is None:
            raise NotALog("its tree has no file `format`")
        if not is_rooted(log, oid, known):
            raise NotALog("its history does not start with the first commit of every log")
        return LogTip(name, oid, tree, form, ref.project_ids(git, root))
    except KeyError as error:
        raise NotALog(f"its object {error.args[0]} is missing or damaged") from None
    except StoreError as error:
        what = error.message.removesuffix(". Nothing was written.").partition(";")[0]
        raise NotALog(what.replace("The file", "the file")) from None


def is_rooted(log: LocalLog, oid: str, known: Iterable[str]) -> bool:
    """Return whether a history starts with the first commit of every log; stop at a known log if possible."""
    git = log.git
    starts = [start for start in known if git.has(start)]
    if oid in starts or any(_have_common_commit(git, start, oid) for start in starts):
        return True
    if any(git.contains(oid, start) or git.contains(start, oid) for start in starts):
        return True
    genesis = ref.genesis(oid)
    if git.has(genesis) and git.contains(oid, genesis):
        return True
    # A shallow clone lacks the first commits of the branch that it was made with; accept the end of its history.
    return any(git.contains(oid, cut) for cut in shallow_commits(log.repo.common) if git.has(cut))


def _have_common_commit(git: Git, start: str, oid: str) -> bool:
    """Return whether two histories meet near their tips; then they have the same first commit."""
    try:
        return HistoryWalk(git, start).above(oid) is not None
    except KeyError:
        return False


def known_log_refs(log: LocalLog) -> dict[str, str]:
    """Return the refs of this clone that may hold a log from elsewhere, with their tips."""
    git = log.git
    kept = sorted(git.refs(ref.REMOTES_PREFIX).items())
    found = {name: oid for name, oid in kept if is_synced_ref(name)}
    found.update(fetched_branches(log))
    own = git.tip(ref.BRANCH)
    if own is not None:
        found[ref.BRANCH] = own
    return found


def fetched_branches(log: LocalLog) -> dict[str, str]:
    """Return the branches `gitmem` of remotes that an ordinary `git fetch` stored."""
    fetched = sorted(log.git.refs("refs/remotes/").items())
    return {name: oid for name, oid in fetched if name.count("/") >= 3 and name.endswith("/gitmem")}


def of_remote(log: LocalLog, remote: str) -> dict[str, str]:
    """Return the local refs that a sync with a remote also reads: its fetched branch and this clone's own branch."""
    tracking = f"refs/remotes/{remote}/gitmem"
    found = {name: oid for name, oid in fetched_branches(log).items() if name == tracking}
    own = log.git.tip(ref.BRANCH)
    return {**found, ref.BRANCH: own} if own is not None else found


def is_synced_ref(name: str) -> bool:
    """Return whether sync reads this ref of a remote, or this copy of one."""
    return _remote_name(name) in ref.PUBLISH_REFS or is_outbox(name)


def is_outbox(name: str) -> bool:
    """Return whether a ref has the name of an outbox, which ends in a commit id."""
    folder, _, last = _remote_name(name).rpartition("/")
    if folder == "refs/heads" and last.startswith("gitmem-outbox-"):
        last = last.removeprefix("gitmem-outbox-")
    elif folder != "refs/gitmem/outbox":
        return False
    return is_oid(last)


def _remote_name(name: str) -> str:
    """Return the name that a ref has on the remote if this is a copy of it."""
    if not name.startswith(ref.REMOTES_PREFIX):
        return name
    return "refs/" + name.removeprefix(ref.REMOTES_PREFIX).partition("/")[2]


def logs(
    log: LocalLog, refs: Mapping[str, str], trusted: Iterable[str] = ()
) -> tuple[list[LogTip], dict[str, str]]:
    """Return the logs among refs, each tip once, and by name the reason why another ref is not a log."""
    tips: dict[str, LogTip] = {}
    others = {}
    starts = [oid for oid in trusted if oid]
    for name, oid in refs.items():
        if oid in tips:
            continue
        if fetch.is_incomplete(log.repo.common, oid):
            others[name] = "this partial clone does not have its files; `gitmem sync` fetches them"
            continue
        try:
            tips[oid] = read(log, name, oid, starts)
        except NotALog as why:
            others[name] = str(why)
    return list(tips.values()), others


def can_merge(ours: set[str], theirs: set[str]) -> bool:
    """Return whether two logs may be merged. Not if both name projects and share none: a merge is irreversible."""
    return not ours or not theirs or not ours.isdisjoint(theirs)


def own_projects(log: LocalLog) -> set[str]:
    """Return the root commits of this repository; empty in a shallow clone or one without commits."""
    from ..git.repository import root_commits

    return root_commits(log.repo) - set(ref.GENESES.values())  # if a user merged the log into a branch
