"""Where a log comes from: what the clone already has, else a new one."""

from __future__ import annotations

from ..errors import StoreError
from ..git.port import Draft, Signature
from . import ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .log import Log


def start(log: Log) -> str:
    """Give this clone a log, without the network: its tip.

    A log that an ordinary fetch brought (`refs/remotes/*/gitmem`), that a sync of a
    deleted ref left, or that somebody checked out as a branch is adopted.
    """
    git = log.git
    tips = [tip for tip in known_tips(log) if why_no_log(log, tip) is None]
    if tips:
        from .trees import merged

        tip = tips[0] if len(tips) == 1 else merged(log, tips)
        if git.swap(ref.LOG_REF, None, tip, "adopt the log that this clone has"):
            return tip
    else:
        nobody = Signature(*(log.committer or ref.NOBODY), log.now() // 1_000_000)
        files = ref.fixed_files(ref.Format.make().content, own_project_ids(log))
        drafts = [ref.genesis_draft(), Draft(files, nobody, nobody, "Start the log of this repository\n")]
        genesis, tip = git.write(drafts, None)
        if genesis != ref.GENESIS:
            raise StoreError(f"git wrote the first commit as {genesis}, not {ref.GENESIS}", code="genesis")
        if git.swap(ref.LOG_REF, None, tip, "start the log"):
            return tip
    found = git.tip(ref.LOG_REF)  # lost the race: somebody else has started it
    if found is None:
        raise StoreError(
            f"{ref.LOG_REF} could not be made: git holds a lock on it; nothing was recorded.",
            hint="Run the command again; `gitmem doctor` shows a lock that stays.",
            code="locked",
            next=["gitmem doctor"],
        )
    return found


def known_tips(log: Log) -> list[str]:
    """Tips of logs that this clone has under other names, each once."""
    found: dict[str, None] = {}
    for name, oid in sorted(log.git.refs("refs/remotes/").items()):
        if name.count("/") >= 3 and name.endswith("/gitmem"):
            found[oid] = None
    for name, oid in sorted(log.git.refs(ref.REMOTES_PREFIX).items()):
        if name.endswith(("/heads/gitmem", "/gitmem/log")) or "/gitmem/outbox/" in name:
            found[oid] = None
    own = log.git.tip(ref.BRANCH)
    if own is not None:
        found[own] = None
    return list(found)


def why_no_log(log: Log, tip: str) -> str | None:
    """Why a tip is not a log, or None where it is one: its history ends in the first commit, its tree has `format`."""
    git = log.git
    try:
        if ref.read_format(git, git.tree(git.commit(tip).tree)) is None:
            return "its tree has no file `format`"
        if not git.has(ref.GENESIS) or not git.contains(tip, ref.GENESIS):
            return "its history does not start with the first commit of every log"
    except KeyError:
        return "objects of it are missing"
    except StoreError as error:
        return error.message
    return None


def own_project_ids(log: Log) -> set[str]:
    """The root commits that this clone's own history starts with; none in a clone without commits."""
    from ..git.roots import root_commits

    return root_commits(log.place)
