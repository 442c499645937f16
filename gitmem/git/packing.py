"""Packs of the log's objects: one for each write and each fetch; small ones are combined.

A new pack has a `.keep`, which every gc and repack respects, until a ref has moved to its objects. After that the
objects are as safe as the user's own: a gc that began earlier does not remove the pack, and a later one finds what the
ref reaches. `<state>/own-packs` has an empty file for each pack of ours. Other packs are never changed.
"""

from __future__ import annotations

import os
import time

from .. import atomic_write, state_files
from ..errors import StoreError
from ..repo import read_small
from . import durable, formats, packfile, queries, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .packfile import Objects

PACKS_MAX = 10  # small packs before they are combined; git's own gc would start at 50
FETCHED_MAX = 50_000  # objects of a fetched pack; a larger one is not registered as ours
GROWTH = 2  # a pack is combined with all smaller ones unless it is this many times as large as their sum
LEFT_SECONDS = 3600.0  # a write whose ref has not moved by then is abandoned
GC_SECONDS = 12 * 3600.0  # as in git: an older gc.pid is stale
ELSEWHERE_SECONDS = 600.0  # maximum age of a gc.pid from another machine, whose process cannot be checked
TIMEOUT_SECONDS = 900.0
KEEP = b"gitmem: until a ref has moved\n"
_PREFIX = "pack-"
_NEW = "gitmem-new"  # prefix of a combined pack that is not registered yet; its objects still exist in other packs
_FILES = (".idx", ".rev", ".pack", ".keep")
_CONFIG = (
    *("-c", "pack.packSizeLimit=0", "-c", "pack.threads=1", "-c", "pack.indexVersion=2"),
    *("-c", "pack.window=10", "-c", "pack.depth=50", "-c", "pack.windowMemory=0"),
)


def write(common: str, objects: Objects, id_length: int) -> str:
    """Write objects into a durable pack of ours, which no gc removes until `release`. Return its name.

    Raises:
        StoreError: nothing is left on the disk.
    """
    name = _PREFIX + os.urandom(id_length // 2).hex()
    packs = _packs(common)
    try:
        os.stat(os.path.dirname(packs))
        state_files.make_dirs(packs)
        _claim(common, name)
        keep(common, name)
        packfile.write(os.path.join(packs, name), objects, id_length)
        durable.fsync_dir(packs)
    except OSError as error:
        remove(common, name)
        raise durable.failed("Objects could not be written", error, common) from error
    return name


def keep(common: str, name: str) -> bool:
    """Let every gc keep a pack that is about to exist; return False if somebody else does so.

    Raises:
        OSError: its `.keep` cannot be written.
    """
    try:
        path = os.path.join(_packs(common), name + ".keep")
        handle = state_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    with os.fdopen(handle, "wb") as file:
        file.write(KEEP)
    return True


def release(common: str, name: str) -> None:
    """Remove a pack's `.keep`: a ref has moved to its objects, or they are no longer needed."""
    atomic_write.remove_quietly(os.path.join(_packs(common), name + ".keep"))


def remove(common: str, name: str) -> None:
    """Remove a pack of ours that is not needed or has been combined into another one."""
    for end in (*_FILES, ".idx.part"):
        atomic_write.remove_quietly(os.path.join(_packs(common), name + end))
    atomic_write.remove_quietly(os.path.join(_own(common), name))


def listed(common: str) -> set[str]:
    """Return the names of all packs of the repository."""
    return {name[:-4] for name in atomic_write.names_in(_packs(common)) if name.endswith(".idx")}


def adopt(common: str, names: Iterable[str]) -> None:
    """Register packs that a fetch of ours brought as ours. If that fails they stay ordinary packs."""
    if not os.path.isdir(os.path.dirname(_own(common))):
        return  # packs of a clone's first sync stay ordinary packs
    try:
        id_length = formats.id_length(common)
        for name in names:
            path = os.path.join(_packs(common), name)
            if (
                not os.path.exists(path + ".promisor")
                and packfile.count(path + ".idx", id_length) <= FETCHED_MAX
            ):
                _claim(common, name)
    except (OSError, StoreError):
        return


def own_packs(common: str) -> list[str]:
    """Return the names of our existing packs."""
    return sorted(listed(common).intersection(atomic_write.names_in(_own(common))))


def objects_due(common: str) -> int:
    """Return the number of objects in packs that should be combined; 0 if there are few packs or a gc runs."""
    if len(atomic_write.names_in(_own(common))) < PACKS_MAX:
        return 0
    chosen = _to_combine(common)
    return sum(chosen.values()) if len(chosen) >= PACKS_MAX and not gc_runs(common) else 0


def combine(common: str) -> int:
    """Combine our small packs into one. The caller holds the lock for it.

    Returns:
        The number of combined packs.

    Raises:
        StoreError: no pack was removed.
    """
    clean_up(common)
    chosen = _to_combine(common)
    if len(chosen) < 2 or gc_runs(common):
        return 0
    packs, id_length = _packs(common), formats.id_length(common)
    found = [packfile.ids(os.path.join(packs, name + ".idx"), id_length) for name in chosen]
    wanted = dict.fromkeys(oid for oids in found for oid in oids)
    if not all(found):
        return 0  # an unreadable index: `gitmem doctor` reports it
    given = "".join(f"{oid}\n" for oid in wanted).encode("ascii")
    args = [*queries.DURABLE, *_CONFIG, "pack-objects", "--quiet", "--delta-base-offset"]
    done = run.run(common, [*args, os.path.join(packs, _NEW)], input=given, timeout=TIMEOUT_SECONDS)
    digest = done.out.decode("ascii").strip()
    made, new = os.path.join(packs, f"{_NEW}-{digest}"), _PREFIX + digest
    if not wanted.keys() <= set(packfile.ids(made + ".idx", id_length)):
        raise StoreError(
            f"git pack-objects left something out of {new}. Nothing was removed.", code="git-failed"
        )
    try:
        _claim(common, new)
        for end in (".pack", ".rev", ".idx"):
            if end != ".rev" or os.path.exists(made + end):
                os.replace(made + end, os.path.join(packs, new + end))
    except OSError as error:
        raise durable.failed("The log's packs could not be united", error, common) from error
    durable.fsync_dir(packs)
    state_files.give_back(common)
    for name in chosen.keys() - {new}:
        remove(common, name)
    return len(chosen)


def clean_up(common: str) -> None:
    """Clean up after killed and abandoned writes, and forget removed packs. The caller holds the lock."""
    packs, folder, now = _packs(common), _own(common), time.time()
    for name in atomic_write.names_in(packs):
        if name.startswith(_NEW):
            atomic_write.remove_quietly(os.path.join(packs, name))
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
    """Return whether a `git gc` is running here, or on another machine that shares this folder."""
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


def _to_combine(common: str) -> dict[str, int]:
    """Return the packs to combine, each with its number of objects.

    Excluded are packs with a `.keep`, packs in git's multi-pack index, and promisor packs of a partial clone.
    """
    packs, id_length = _packs(common), formats.id_length(common)
    indexed = read_small(os.path.join(packs, "multi-pack-index"))
    sized = []
    for name in own_packs(common):
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
    state_files.make_dirs(_own(common))
    os.close(state_files.open_file(os.path.join(_own(common), name), os.O_WRONLY | os.O_CREAT))


def _packs(common: str) -> str:
    return os.path.join(common, "objects", "pack")


def _own(common: str) -> str:
    return os.path.join(common, "gitmem", "own-packs")
