"""Packs of the log's objects: one for each write and each fetch of ours, and how small ones become one.

A pack that was just written has a `.keep`, which every gc and repack of the user's heeds, until a ref has moved to what is
in it. From then on it is as safe as anything of the user's: a gc that began before does not take it, and one that begins
later finds what the ref reaches. `<state>/own-packs` has an empty file for each pack of ours. Nobody else's are touched.
"""

from __future__ import annotations

import os
import time

from .. import atomic_write, shared_mode
from ..errors import StoreError
from ..repo import read_small
from . import durable, formats, packfile, queries, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .packfile import Objects

PACKS_MAX = 10  # that are united at once; git's own gc would begin at 50
FETCHED_MAX = 50_000  # objects of a fetched pack that becomes our own; a larger one stays git's
GROWTH = 2  # a pack is united with all smaller ones unless it is so many times as large as they together
LEFT_SECONDS = 3600.0  # a write whose ref has not moved by then was given up
GC_SECONDS = 12 * 3600.0  # as git has it: the file of one that runs longer is of the dead
ELSEWHERE_SECONDS = 600.0  # of one on another machine, whose end nobody here sees
TIMEOUT_SECONDS = 900.0
KEEP = b"gitmem: until a ref has moved\n"
_PREFIX = "pack-"
_NEW = "gitmem-new"  # until the one that is made is known as ours; what is in it is elsewhere, too
_FILES = (".idx", ".rev", ".pack", ".keep")
_CONFIG = (
    *("-c", "pack.packSizeLimit=0", "-c", "pack.threads=1", "-c", "pack.indexVersion=2"),
    *("-c", "pack.window=10", "-c", "pack.depth=50", "-c", "pack.windowMemory=0"),
)


def write(common: str, objects: Objects, id_length: int) -> str:
    """Write objects into a durable pack of ours, which no gc takes until `release`. Return its name.

    Raises: StoreError; nothing is left then.
    """
    name = _PREFIX + os.urandom(id_length // 2).hex()
    packs = _packs(common)
    try:
        os.stat(os.path.dirname(packs))
        shared_mode.make_dirs(packs)
        _claim(common, name)
        keep = shared_mode.open_file(
            os.path.join(packs, name + ".keep"), os.O_WRONLY | os.O_CREAT | os.O_EXCL
        )
        with os.fdopen(keep, "wb") as file:
            file.write(KEEP)
        packfile.write(os.path.join(packs, name), objects, id_length)
        durable.fsync_dir(packs)
    except OSError as error:
        remove(common, name)
        raise durable.failed("Objects could not be written", error) from error
    return name


def release(common: str, name: str) -> None:
    """Leave a pack to git: a ref has moved to what is in it, or nobody needs it any more."""
    atomic_write.drop(os.path.join(_packs(common), name + ".keep"))


def remove(common: str, name: str) -> None:
    """Remove a pack of ours, of which nothing is needed or which has become part of another one."""
    for end in (*_FILES, ".idx.part"):
        atomic_write.drop(os.path.join(_packs(common), name + end))
    atomic_write.drop(os.path.join(_own(common), name))


def listed(common: str) -> set[str]:
    """Return the names of all packs here."""
    return {name[:-4] for name in atomic_write.names_in(_packs(common)) if name.endswith(".idx")}


def adopt(common: str, before: set[str], prefix: str) -> None:
    """Make packs our own that a fetch of ours has brought. Where that fails they are git's.

    Args:
        before: What was listed when it began.
        prefix: Where the fetched refs are. A new pack with none of their commits is somebody else's.
    """
    now = listed(common)
    new = now - before
    if not new or not os.path.isdir(os.path.dirname(_own(common))):
        return  # what the first sync of a clone brings stays git's
    if before - now:
        return  # somebody repacks beside us: a new pack may be theirs
    try:
        tips, id_length = set(queries.refs_below(common, prefix).values()), formats.id_length(common)
        for name in new:
            path = os.path.join(_packs(common), name)
            if os.path.exists(path + ".bitmap") or packfile.count(path + ".idx", id_length) > FETCHED_MAX:
                continue
            if tips.intersection(packfile.ids(path + ".idx", id_length)):
                _claim(common, name)
    except (OSError, StoreError):
        return


def own(common: str) -> list[str]:
    """Return the names of our packs that are there."""
    return sorted(listed(common).intersection(atomic_write.names_in(_own(common))))


def due(common: str) -> int:
    """Return how many objects are in packs that should become one; 0 where those are few, or a gc runs."""
    if len(atomic_write.names_in(_own(common))) < PACKS_MAX:
        return 0
    chosen = _to_unite(common)
    return sum(chosen.values()) if len(chosen) >= PACKS_MAX and not gc_runs(common) else 0


def unite(common: str) -> int:
    """Make one pack of our small ones: of how many. The caller holds the lock for it.

    Raises: StoreError; then everything is where it was.
    """
    sweep(common)
    chosen = _to_unite(common)
    if len(chosen) < 2 or gc_runs(common):
        return 0
    packs, id_length = _packs(common), formats.id_length(common)
    found = [packfile.ids(os.path.join(packs, name + ".idx"), id_length) for name in chosen]
    wanted = dict.fromkeys(oid for oids in found for oid in oids)
    if not all(found):
        return 0  # an index that can't be read is for `gitmem doctor`
    given = "".join(f"{oid}\n" for oid in wanted).encode("ascii")
    args = [*queries.DURABLE, *_CONFIG, "pack-objects", "--quiet", "--delta-base-offset"]
    done = run.run(common, [*args, os.path.join(packs, _NEW)], input=given, timeout=TIMEOUT_SECONDS)
    digest = done.out.decode("ascii").strip()
    made, new = os.path.join(packs, f"{_NEW}-{digest}"), _PREFIX + digest
    if not wanted.keys() <= set(packfile.ids(made + ".idx", id_length)):
        raise StoreError(
            f"git pack-objects left something out of {new}; nothing was removed.", code="git-failed"
        )
    try:
        _claim(common, new)
        for end in (".pack", ".rev", ".idx"):
            if end != ".rev" or os.path.exists(made + end):
                os.replace(made + end, os.path.join(packs, new + end))
    except OSError as error:
        raise durable.failed("The log's packs could not be united", error) from error
    durable.fsync_dir(packs)
    for name in chosen.keys() - {new}:
        remove(common, name)
    return len(chosen)


def sweep(common: str) -> None:
    """Tidy up after writes that were killed or given up, and forget packs that have gone. The caller holds the lock."""
    packs, folder, now = _packs(common), _own(common), time.time()
    for name in atomic_write.names_in(packs):
        if name.startswith(_NEW):
            atomic_write.drop(os.path.join(packs, name))
    for name in atomic_write.names_in(folder):
        try:
            if now - os.stat(os.path.join(folder, name)).st_mtime <= LEFT_SECONDS:
                continue
        except OSError:
            continue
        if not os.path.exists(os.path.join(packs, name + ".idx")):
            remove(common, name)
        elif read_small(os.path.join(packs, name + ".keep")) == KEEP:
            release(common, name)


def gc_runs(common: str) -> bool:
    """Return whether a `git gc` runs here now, or on another machine that has this folder."""
    try:
        with open(os.path.join(common, "gc.pid"), encoding="ascii", errors="replace") as file:
            age = time.time() - os.fstat(file.fileno()).st_mtime
            pid, _, host = file.read(300).strip().partition(" ")
    except OSError:
        return False
    if age > GC_SECONDS or not pid.isdecimal():
        return False
    try:
        if host != os.uname().nodename:
            return age <= ELSEWHERE_SECONDS
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError, OverflowError):
        pass
    return True


def _to_unite(common: str) -> dict[str, int]:
    """Return the packs that are to become one, with how many objects they have.

    What is kept stays, what git's index of many packs counts on, and in a partial clone what a remote has promised the
    rest of.
    """
    packs, id_length = _packs(common), formats.id_length(common)
    indexed = read_small(os.path.join(packs, "multi-pack-index"))
    sized = []
    for name in own(common):
        path = os.path.join(packs, name)
        stays = os.path.exists(path + ".keep") or os.path.exists(path + ".promisor")
        if not stays and os.fsencode(name) not in indexed:
            try:
                sized.append((packfile.count(path + ".idx", id_length), name))
            except OSError:
                continue
    sized.sort()
    upto = total = 0
    for at, (count, _) in enumerate(sized):
        if count < GROWTH * total:
            upto = at + 1
        total += count
    return {name: count for count, name in sized[:upto]}


def _claim(common: str, name: str) -> None:
    shared_mode.make_dirs(_own(common))
    os.close(shared_mode.open_file(os.path.join(_own(common), name), os.O_WRONLY | os.O_CREAT))


def _packs(common: str) -> str:
    return os.path.join(common, "objects", "pack")


def _own(common: str) -> str:
    return os.path.join(common, "gitmem", "own-packs")
