"""Check gitmem's refs as files, local copies of remote refs, outboxes, and lines missing from the log."""

from __future__ import annotations

from ...errors import StoreError
from ...log import damaged_objects, log_refs, ref, tree_union
from .. import missing_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...log.dropped_lines import LogReadResult
    from ...store import Store
    from ..findings import Findings


def check_names(store: Store, found: Findings) -> None:
    """Report gitmem's refs with damaged files, and refs whose names conflict with gitmem's."""
    for name in damaged_objects.damaged_refs(store.log):
        found.problem(
            "damaged-ref",
            f"The file of {name} is damaged, perhaps by a power loss.",
            name,
            "Its file is moved aside. The log goes on from where its reflog says that it was; other refs of gitmem's "
            "are made anew by the next sync.",
            mends=True,
        )
    for name, oid in damaged_objects.blocking_refs(store.log).items():
        found.problem(
            "ref-in-the-way",
            f"{name} and a ref of gitmem's can't both be: one is a folder for the other.",
            name,
            f"It (at {oid[:12]}) gets a name below {damaged_objects.ASIDE} instead."
            if oid
            else "The empty folder is removed.",
            mends=True,
        )


def tip_of(store: Store) -> tuple[str | None, bool]:
    """Return the tip of the log, and whether its ref could be read."""
    try:
        return store.git.tip(ref.LOG_REF), True
    except StoreError:
        return None, False


def check_copies(store: Store, survey: LogReadResult, found: Findings) -> None:
    """Report unreadable local copies of remote refs: a sync would build on them."""
    for name in damaged_objects.damaged_copies(store.log, survey.commits):
        found.problem(
            "damaged-copy",
            f"Objects of {name} are missing or damaged.",
            name,
            "It is forgotten, and the next sync brings it anew.",
            mends=True,
        )


def check_outboxes(store: Store, found: Findings) -> None:
    """Report outboxes of the last sync without lines that the shared log lacks."""
    git = store.git
    shared = git.tip(ref.PUBLISHED_REF)
    if shared is None:
        return
    left = []
    for name, oid in git.refs(ref.REMOTES_PREFIX).items():
        try:
            if not log_refs.is_outbox(name) or not name.endswith(oid):
                continue
            if not tree_union.new_lines(git, git.commit(oid).tree, [git.commit(shared).tree]):
                left.append(name)
        except KeyError:
            continue  # reported by `check_copies`
    if left:
        one = len(left) == 1
        found.note(
            "outbox-left",
            f"{len(left)} outbox{'' if one else 'es'} of a remote {'holds' if one else 'hold'} nothing that the log lacks.",
            left[0],
            "The next sync deletes what is still there.",
            "gitmem sync",
        )


def check_missing_lines(store: Store, tip: str | None, survey: LogReadResult, found: Findings) -> None:
    """Report acknowledged lines, and lines of earlier tips, that are missing from the log and not yet reported."""
    lost = missing_lines.find(store, tip, survey=survey)
    if lost.found:
        one = len(lost.found) == 1
        found.problem(
            "lost-lines",
            f"{len(lost.found)} line{'' if one else 's'} that the log had {'is' if one else 'are'} in it no more, as if "
            f"its ref had been moved back. {'It is' if one else 'They are'} still in {' and in '.join(lost.sources)}.",
            ref.LOG_REF,
            f"{'It is' if one else 'They are'} put back, byte for byte.",
            mends=True,
        )
    if lost.gone:
        one = len(lost.gone) == 1
        found.problem(
            "gone-lines",
            f"{len(lost.gone)} line{'' if one else 's'} that this clone has acknowledged {'is' if one else 'are'} nowhere "
            f"in it any more; the first by its SHA-256 is {min(lost.gone).hex()}….",
            ref.LOG_REF,
            "A sync brings back what was sent before. Else look for a copy of the .git folder.",
            "gitmem sync",
        )
