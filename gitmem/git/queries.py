"""Queries and ref updates that need one run of git each, or none if files have the answer."""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..errors import StoreError
from . import durable, read_ref, run
from .objects import null_id
from .read_ref import REMEMBERED, cached_refs, loose_tip, packed_tip, tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .port import Move

DURABLE = ["-c", "core.fsync=loose-object,pack,pack-metadata,reference", "-c", "core.logAllRefUpdates=always"]
# For the reflog's identity git would otherwise look up this host's name on the network.
REFLOG_IDENTITY = {"GIT_COMMITTER_NAME": "gitmem", "GIT_COMMITTER_EMAIL": "gitmem@localhost"}
_LOST_RACE = (
    ".lock': File exists",
    "but expected",
    "reference already exists",
    "unable to resolve reference",
    "reference is missing",
    "cannot lock references",  # the lock of a reftable
)
OURS = "refs/gitmem/"
LIST_BYTES_MAX = 4 * 1024 * 1024


def tip_of(common: str, ref: str) -> str | None:
    """Return the commit of a ref, or None: from its files if they have the answer, else from git."""
    listed = tables(common)
    if listed is not None and ref.startswith(OURS):
        return (cached_refs(common, listed) or _ask_tables(common, listed)).get(ref)
    if listed is None:
        oid = loose_tip(common, ref) or packed_tip(common, ref)
        path = os.path.join(common, ref)
        if oid is not None or (not os.path.isfile(path) and os.path.isdir(os.path.join(common, "refs"))):
            return oid  # else it is symbolic or damaged, or this is not a repository
    done = run.run(common, ["rev-parse", "--verify", "--quiet", ref], check=False)
    if done.code == 1:
        oid = loose_tip(common, ref) if listed is None else None  # created in the meantime?
        if oid is None and listed is None and os.path.isfile(os.path.join(common, ref)):
            raise StoreError(
                f"The file of {ref} is damaged, perhaps by a power loss. Nothing was written.",
                hint=f"Its last value is in the last line of {os.path.join(common, 'logs', ref)}; "
                "`gitmem doctor --fix` continues from there.",
                code="damaged-ref",
                next=["gitmem doctor --fix"],
            )
        return oid
    if done.code != 0:
        raise run.failure(["rev-parse"], done)
    return done.out.decode("ascii").strip()


def _ask_tables(common: str, listed: bytes) -> dict[str, str]:
    """Return every ref of ours in a reftable, from git, and cache them to save the next process that.

    If refs move meanwhile, the cache belongs to a table list that never occurs again.
    """
    found = refs_below(common, OURS)
    rows = "".join(f"{oid} {ref}\n" for ref, oid in found.items())
    # No state folder yet, or not writable: git is asked each time.
    atomic_write.try_replace(os.path.join(common, REMEMBERED), listed.strip() + b"\n\n" + os.fsencode(rows))
    return found


def refs_below(common: str, prefix: str) -> dict[str, str]:
    """Return every ref whose full name starts with `prefix` (which ends in `/`), with its target."""
    plain = read_ref.refs_below(common, prefix)
    if plain is not None:
        return plain
    out = run.run(common, ["for-each-ref", "--format=%(objectname) %(refname)", prefix]).out
    rows = (line.partition(" ") for line in out.decode("utf-8", "surrogateescape").splitlines())
    return {ref: oid for oid, _, ref in rows}


def refs_of_folder(
    common: str, path: str, prefixes: Sequence[str], timeout: float, meanwhile: Callable[[], object]
) -> dict[str, str] | None:
    """Return the refs below some prefixes of another repository on this machine, in fewer processes than a fetch.

    Args:
        common: The asking repository.
        path: The folder of the other one.
        timeout: Seconds.
        meanwhile: Called once, while the other processes answer.

    Returns:
        Object id by ref; None if only a fetch can tell.
    """
    if not os.path.isabs(path) or not os.path.isdir(path):
        meanwhile()
        return None
    args = ["ls-remote", "--quiet", "--refs", "--", path, *(f"{prefix}*" for prefix in prefixes)]
    try:
        # Whatever `url.*.insteadOf` makes of the path: only a fetch goes to another machine.
        here = {"GIT_ALLOW_PROTOCOL": "file"}
        done = run.run(
            common, args, env_extra=here, timeout=timeout, check=False, meanwhile=meanwhile, out_max=LIST_BYTES_MAX
        )  # fmt: skip
    except (run.GitTimeoutError, run.GitOutputError):
        return None
    rows = (row.partition("\t") for row in os.fsdecode(done.out).splitlines())
    found = {ref: oid for oid, _, ref in rows if ref.startswith(tuple(prefixes))}
    return found if done.code == 0 else None


def update_ref(common: str, ref: str, old: str | None, new: str, why: str, also: Sequence[Move] = ()) -> bool:
    """Move a ref from `old` (None: it must not exist) to `new`, durably.

    Args:
        also: Further moves (ref, old, new). Either all refs move or none.

    Returns:
        False if a race was lost.
    """
    moves = [(ref, old, new), *also]
    rows = "".join(f"update {ref}\0{new}\0{old or null_id(new)}\0" for ref, old, new in moves)
    args = [*DURABLE, "update-ref", "--no-deref", "--create-reflog", "-m", why, "--stdin", "-z"]
    done = run.run(common, args, input=os.fsencode(rows), env_extra=REFLOG_IDENTITY, check=False)
    if done.code != 0 and not lost_race(done.err):
        raise update_failure(common, done)
    for ref, old, _ in moves if done.code == 0 else ():
        durable.fsync_ref_dir(common, ref, created=old is None)
    state_files.give_back(common)
    return done.code == 0


def update_failure(common: str, done: run.Result) -> StoreError:
    """Return the error for refs that git could not move, such as who else owns their files."""
    denied = "Permission denied" in done.err
    found = durable.left_by_another(common, durable.KEPT) if denied else None
    return found or run.failure(["update-ref"], done)


def rev_list(common: str, tip: str, without: Iterable[str], first_parents: int = 0) -> list[str]:
    """Return the commits reachable from `tip` and from none of `without`, parents before children.

    Args:
        first_parents: The greatest number of commits, along first parents; 0 returns all.

    Raises:
        KeyError: `tip` is missing.
    """
    hidden = "".join(f"^{oid}\n" for oid in without)
    args = [
        "rev-list",
        "--reverse",
        "--topo-order",
        tip,
        *(["--first-parent", f"--max-count={first_parents}"] if first_parents else []),
        *(["--ignore-missing", "--stdin"] if hidden else []),
    ]
    done = run.run(common, args, input=hidden.encode("ascii"), check=False)
    if done.code != 0:
        if "bad object" in done.err:
            raise KeyError(tip)
        raise run.failure(args, done)
    return done.out.decode("ascii").split()


def is_ancestor(common: str, oid: str, tip: str) -> bool:
    """Return whether `oid` is `tip` or an ancestor of it.

    Raises:
        KeyError: `tip` is missing.
    """
    done = run.run(common, ["merge-base", "--is-ancestor", oid, tip], check=False)
    if done.code in (0, 1):
        return done.code == 0
    for asked in (tip, oid):
        if run.run(common, ["cat-file", "-e", asked + "^{commit}"], check=False).code != 0:
            if asked == tip:
                raise KeyError(tip)
            return False
    raise run.failure(["merge-base"], done)


def lost_race(err: str) -> bool:
    """Return whether git did not move a ref because it has another id or is locked."""
    return any(words in err for words in _LOST_RACE)
