"""Where a log may be found: on remotes, as sync last saw them, and under names that people make by hand."""

from __future__ import annotations

from ..errors import StoreError
from ..git import partial
from ..git.fork_point import Trunk
from ..git.formats import cut_commits
from ..git.objects import is_oid
from . import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..git.plumbing import Git
    from .local_log import LocalLog


class Tip:
    """A commit that ends the history of a log: its tree, its `format`, and the projects that it belongs to."""

    __slots__ = ("format", "name", "oid", "projects", "tree")

    def __init__(self, name: str, oid: str, tree: str, form: ref.Format, projects: set[str]) -> None:
        self.name = name
        self.oid = oid
        self.tree = tree
        self.format = form
        self.projects = projects


class NotALog(Exception):  # noqa: N818  (a finding, not an error)
    """A ref that has the name of a log's and is none; the text says why."""


def read(log: LocalLog, name: str, oid: str, known: Iterable[str] = ()) -> Tip:
    """The log that ends in a commit.

    Args:
        name: The ref, for messages.
        known: Tips of logs: what contains one of them need not be followed to the first commit.

    Raises: NotALog.
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
        return Tip(name, oid, tree, form, ref.project_ids(git, root))
    except KeyError as error:
        raise NotALog(f"its object {error.args[0]} is missing or damaged") from None
    except StoreError as error:
        raise NotALog(error.message.partition(";")[0].replace("The file", "the file")) from None


def is_rooted(log: LocalLog, oid: str, known: Iterable[str]) -> bool:
    """Whether a history starts with the first commit; near a known log only what lies between is walked."""
    git = log.git
    starts = [start for start in known if git.has(start)]
    if oid in starts or any(_meet(git, start, oid) for start in starts):
        return True
    if any(git.contains(oid, start) or git.contains(start, oid) for start in starts):
        return True
    genesis = ref.genesis(oid)
    if git.has(genesis) and git.contains(oid, genesis):
        return True
    # A shallow clone does not have the first commits of a branch that it was made with: its tree must do.
    return any(git.contains(oid, cut) for cut in cut_commits(log.place.common) if git.has(cut))


def _meet(git: Git, start: str, oid: str) -> bool:
    """Whether two histories plainly meet near their ends: then they have their first commit in common."""
    try:
        return Trunk(git, start).above(oid) is not None
    except KeyError:
        return False


def known(log: LocalLog) -> dict[str, str]:
    """Refs of this clone that may hold a log that came from elsewhere, with their tips."""
    git = log.git
    kept = sorted(git.refs(ref.REMOTES_PREFIX).items())
    found = {name: oid for name, oid in kept if is_place(name)}
    found.update(fetched_by_hand(log))
    own = git.tip(ref.BRANCH)
    if own is not None:
        found[ref.BRANCH] = own
    return found


def fetched_by_hand(log: LocalLog) -> dict[str, str]:
    """Branches `gitmem` of remotes, as an ordinary `git fetch` left them."""
    fetched = sorted(log.git.refs("refs/remotes/").items())
    return {name: oid for name, oid in fetched if name.count("/") >= 3 and name.endswith("/gitmem")}


def of_remote(log: LocalLog, remote: str) -> dict[str, str]:
    """Of these refs, those that belong to one remote, or to this clone alone: what a sync with it reads beside it."""
    tracking = f"refs/remotes/{remote}/gitmem"
    found = {name: oid for name, oid in fetched_by_hand(log).items() if name == tracking}
    own = log.git.tip(ref.BRANCH)
    return {**found, ref.BRANCH: own} if own is not None else found


def is_place(name: str) -> bool:
    """Whether a ref of a remote, or our copy of one, is read by sync."""
    return _there(name) in ref.PUBLISH_PLACES or is_outbox(name)


def is_outbox(name: str) -> bool:
    """Whether it is named like one of the refs that hold what waits for the shared one: after a commit."""
    folder, _, last = _there(name).rpartition("/")
    if folder == "refs/heads" and last.startswith("gitmem-outbox-"):
        last = last.removeprefix("gitmem-outbox-")
    elif folder != "refs/gitmem/outbox":
        return False
    return is_oid(last)


def _there(name: str) -> str:
    """The name that a remote has for what may be our copy of its ref."""
    if not name.startswith(ref.REMOTES_PREFIX):
        return name
    return "refs/" + name.removeprefix(ref.REMOTES_PREFIX).partition("/")[2]


def logs(
    log: LocalLog, refs: Mapping[str, str], trusted: Iterable[str] = ()
) -> tuple[list[Tip], dict[str, str]]:
    """The logs among refs, each tip once, and why the others are none."""
    tips: dict[str, Tip] = {}
    others = {}
    starts = [oid for oid in trusted if oid]
    for name, oid in refs.items():
        if oid in tips:
            continue
        if partial.lacks(log.place.common, oid):
            others[name] = "this partial clone does not have its files; `gitmem sync` brings them"
            continue
        try:
            tips[oid] = read(log, name, oid, starts)
        except NotALog as why:
            others[name] = str(why)
    return list(tips.values()), others


def left_behind(log: LocalLog, oid: str) -> set[str]:
    """Objects of a commit's history that this partial clone has left with a remote: older files, mostly."""
    return partial.promised(log.place.common, oid)


def related(ours: set[str], theirs: set[str]) -> bool:
    """Whether two logs may be united: that can't be undone, so not where both know their projects and share none."""
    return not ours or not theirs or not ours.isdisjoint(theirs)


def own_projects(log: LocalLog) -> set[str]:
    """The root commits of this repository; none in a clone without commits, or a shallow one."""
    from ..git.roots import root_commits

    return root_commits(log.place) - set(ref.GENESES.values())  # of who merged the log into a branch by hand
