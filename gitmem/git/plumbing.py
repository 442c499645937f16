"""Queries and ref updates that need one run of git each, or none if files have the answer; reflogs and damaged refs; and what makes git's files durable."""

from __future__ import annotations

import os

from .. import local_files
from ..errors import StoreError
from ..outcome import Struct
from ..repo import read_small
from . import files, processes
from .files import REMEMBERED, cached_refs, loose_tip, packed_tip, tables
from .objects import is_oid, null_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .objects import Move


KEPT = "Earlier records are kept."
# What gitmem and its git write to; the last two are folders of files.
_WRITTEN = (
    *("gitmem", "gitmem/key", "objects", "objects/pack", "refs", "logs", "logs/refs"),
    *("refs/gitmem", "logs/refs/gitmem"),
)


def fsync_ref_dir(common: str, ref: str, *, created: bool) -> None:
    """Make the file name of a moved ref durable; a new ref's folder may itself be new."""
    tables = os.path.join(common, "reftable")
    if os.path.isdir(tables):
        local_files.fsync_dir(tables)
        return
    folder = os.path.dirname(os.path.join(common, ref))
    local_files.fsync_dir(folder)
    if created:
        local_files.fsync_dir(os.path.dirname(folder))


def break_stale_lock(common: str, ref: str, age_seconds: float) -> bool:
    """Remove the ref's `.lock` file if its time differs from now by more than `age_seconds`.

    Times in the future count as well: if the clock was set back, a stale lock must not stay until the clock has caught
    up. In a reftable all refs share one lock, which git holds as briefly as that of a file.

    Returns:
        Whether the lock was removed.
    """
    import time

    tables = os.path.join(common, "reftable", "tables.list")
    path = (tables if os.path.exists(tables) else os.path.join(common, ref)) + ".lock"
    try:
        if abs(time.time() - os.stat(path).st_mtime) <= age_seconds:
            return False
        os.unlink(path)
    except OSError:
        return False
    return True


def left_by_another(common: str, outcome: str = "Nothing was recorded.") -> StoreError | None:
    """Return the error for what another user, such as root in a container, left to itself in this user's git folder; None if there is nothing.

    Args:
        outcome: The effect on the data, as a sentence.
    """
    from ..outcome import command

    found, me = os.stat(common), os.geteuid()
    paths = [os.path.join(common, *name.split("/")) for name in _WRITTEN if found.st_uid == me]
    refs, logs = paths[-2:] or ("", "")
    paths += [os.path.join(at, name) for at, folders, _ in os.walk(refs) for name in folders]
    paths += [os.path.join(at, name) for at, folders, files in os.walk(logs) for name in folders + files]
    for path in paths:
        if os.path.islink(path) or not os.path.exists(path):
            continue  # chown would follow a link
        if (owner := os.stat(path).st_uid) == me or os.access(path, os.W_OK):
            continue
        fix = command("sudo", "chown", "-R", f"{me}:{found.st_gid}", path)
        return StoreError(
            f"{path} belongs to user {owner}{' (root)' if not owner else ''}, and you ({me}) may not write there. {outcome}",
            hint=f"A command that this user ran has made it, perhaps in a container. Give it back: {fix}",
            code="read-only",
            next=[fix],
        )
    return None


def failed(what: str, error: OSError, common: str) -> StoreError:
    """Return the error for a file of git's in a git folder that could not be read or written."""
    denied = common and isinstance(error, PermissionError)
    return (left_by_another(common, KEPT) if denied else None) or StoreError(
        f"{what}: {error.strerror or error}. Earlier records are kept.",
        hint="Check for a full disk, missing permissions or a read-only git folder.",
        code="store-files",
    )


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
    done = processes.run(common, ["rev-parse", "--verify", "--quiet", ref], check=False)
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
        raise processes.failure(["rev-parse"], done)
    return done.out.decode("ascii").strip()


def _ask_tables(common: str, listed: bytes) -> dict[str, str]:
    """Return every ref of ours in a reftable, from git, and cache them to save the next process that.

    If refs move meanwhile, the cache belongs to a table list that never occurs again.
    """
    found = refs_below(common, OURS)
    rows = "".join(f"{oid} {ref}\n" for ref, oid in found.items())
    # No state folder yet, or not writable: git is asked each time.
    local_files.try_replace(os.path.join(common, REMEMBERED), listed.strip() + b"\n\n" + os.fsencode(rows))
    return found


def refs_below(common: str, prefix: str) -> dict[str, str]:
    """Return every ref whose full name starts with `prefix` (which ends in `/`), with its target."""
    plain = files.plain_refs_below(common, prefix)
    if plain is not None:
        return plain
    out = processes.run(common, ["for-each-ref", "--format=%(objectname) %(refname)", prefix]).out
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
        done = processes.run(
            common, args, env_extra=here, timeout=timeout, check=False, meanwhile=meanwhile, out_max=LIST_BYTES_MAX
        )  # fmt: skip
    except (processes.GitTimeoutError, processes.GitOutputError):
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
    done = processes.run(common, args, input=os.fsencode(rows), env_extra=REFLOG_IDENTITY, check=False)
    if done.code != 0 and not lost_race(done.err):
        raise update_failure(common, done)
    for ref, old, _ in moves if done.code == 0 else ():
        fsync_ref_dir(common, ref, created=old is None)
    local_files.give_back(common)
    return done.code == 0


def update_failure(common: str, done: processes.Result) -> StoreError:
    """Return the error for refs that git could not move, such as who else owns their files."""
    denied = "Permission denied" in done.err
    found = left_by_another(common, KEPT) if denied else None
    return found or processes.failure(["update-ref"], done)


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
    done = processes.run(common, args, input=hidden.encode("ascii"), check=False)
    if done.code != 0:
        if "bad object" in done.err:
            raise KeyError(tip)
        raise processes.failure(args, done)
    return done.out.decode("ascii").split()


def is_ancestor(common: str, oid: str, tip: str) -> bool:
    """Return whether `oid` is `tip` or an ancestor of it.

    Raises:
        KeyError: `tip` is missing.
    """
    done = processes.run(common, ["merge-base", "--is-ancestor", oid, tip], check=False)
    if done.code in (0, 1):
        return done.code == 0
    for asked in (tip, oid):
        if processes.run(common, ["cat-file", "-e", asked + "^{commit}"], check=False).code != 0:
            if asked == tip:
                raise KeyError(tip)
            return False
    raise processes.failure(["merge-base"], done)


def lost_race(err: str) -> bool:
    """Return whether git did not move a ref because it has another id or is locked."""
    return any(words in err for words in _LOST_RACE)


class RefMove(Struct):
    """A reflog entry: from `old` (None: the ref was created) to `new`, with the reason `why`."""

    old: str | None
    new: str
    why: str


def reflog(common: str, ref: str) -> list[RefMove]:
    """Return a ref's reflog, oldest first, without incomplete entries. A deleted ref has none."""
    if os.path.isdir(os.path.join(common, "reftable")):
        return _asked(common, ref)
    rows = read_small(os.path.join(common, "logs", ref)).decode("utf-8", "replace").split("\n")
    found = []
    for row in rows:
        head, _, why = row.partition("\t")
        old, new = [*head.split(" ")[:2], "", ""][:2]
        if is_oid(old) and is_oid(new) and new.strip("0"):
            found.append(RefMove(old if old.strip("0") else None, new, why))
    return found


def _asked(common: str, ref: str) -> list[RefMove]:
    args = ["log", "--walk-reflogs", "--format=%H%x09%gs", "--end-of-options", ref, "--"]
    done = processes.run(common, args, check=False)
    found: list[RefMove] = []
    for row in reversed(done.out.decode("utf-8", "replace").splitlines() if done.code == 0 else []):
        new, _, why = row.partition("\t")
        found.append(RefMove(found[-1].new if found else None, new, why))
    return found


def expire_broken(common: str, ref: str) -> bool:
    """Remove reflog entries whose commits lack objects: git's gc fails at them. Return whether git succeeded."""
    args = ["reflog", "expire", "--stale-fix", "--expire=never", "--expire-unreachable=never", ref]
    done = processes.run(common, args, check=False)
    local_files.give_back(common)
    return done.code == 0


def expire_unreachable(common: str, refs: Sequence[str]) -> None:
    """Remove the reflog entries of refs with commits that these do not reach any more."""
    args = ["reflog", "expire", "--expire=never", "--expire-unreachable=all", *refs]
    processes.run(common, args, check=False)
    local_files.give_back(common)


def damaged_refs(common: str, prefix: str) -> Iterator[str]:
    """Yield the names of refs below `prefix` (without a trailing slash) whose loose files are invalid."""
    for path in _files(os.path.join(common, prefix)):
        if path.endswith(".lock"):
            continue
        try:
            with open(path, "rb") as file:
                text = file.read(1000).decode("ascii", "replace")
        except OSError:
            continue
        if not is_oid(text.rstrip("\r\n")) and not text.startswith("ref: "):
            yield os.path.relpath(path, common).replace(os.sep, "/")


def _files(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            yield os.path.join(folder, name)


def delete_ref(common: str, ref: str, oid: str) -> bool:
    """Delete a ref that still has the given id. Return False if it has moved or is locked."""
    done = processes.run(common, [*DURABLE, "update-ref", "--no-deref", "-d", ref, oid], check=False)
    local_files.give_back(common)
    return done.code == 0
