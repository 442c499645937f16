"""Packs of the log's objects: one for each write and each fetch, written and indexed by dulwich; small ones are combined.

A new pack has a `.keep`, which every gc and repack respects, until a ref has moved to its objects. After that the
objects are as safe as the user's own: a gc that began earlier does not remove the pack, and a later one finds what the
ref reaches. `<state>/own-packs` has an empty file for each pack of ours. Other packs are never changed.

Borrowed objects (alternates) may be lost in the repository that lends them, and a gc here drops copies of them. In a
partial clone a gc drops promised objects, including those written here, because the remote has them by then. Git leaves
both cases to the user. But the log must be readable and writable without the network, so `localize` packs its objects with a
`.keep`.
"""

from __future__ import annotations

import os
import struct
import time
from contextlib import closing, suppress

from .. import local_files
from ..errors import StoreError
from ..outcome import Struct
from ..repo import read_small
from . import files, plumbing, processes
from .files import ALGORITHMS
from .objects import (
    EMPTY_TREES,
    FILE_MODE,
    TREE_MODE,
    TreeEntry,
    format_commit,
    format_tree,
    is_empty_tree,
    path_parts,
    plain_mode,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import BinaryIO

    from dulwich.object_format import ObjectFormat

    from .objects import Draft, ObjectReads

    Objects = Mapping[str, tuple[bytes, bytes]]
    Folder = dict[str, "TreeEntry | Folder"]


_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
_DAMAGED = (OSError, ValueError, AssertionError, IndexError, KeyError, struct.error)


def object_id(kind: bytes, content: bytes, id_length: int) -> str:
    """Return the id of an object."""
    data = b"%s %d\0%s" % (kind, len(content), content)
    return _form(id_length).hash_object_hex(data).decode("ascii")


def write_pack(path: str, objects: Objects, id_length: int) -> None:
    """Write `<path>.pack`, and then atomically `<path>.idx`, which makes it visible to git.

    Both files are synced, but not their folder.

    Args:
        objects: Kind and content by id.

    Raises:
        OSError: a file cannot be written.
    """
    from dulwich.pack import UnpackedObject, write_pack_data, write_pack_index

    records = (
        UnpackedObject(_KINDS[kind], sha=bytes.fromhex(oid), decomp_chunks=[content])
        for oid, (kind, content) in objects.items()
    )
    with _create(path + ".pack") as file:
        places, digest = write_pack_data(file.write, records, _form(id_length), num_records=len(objects))
        _sync(file)
    rows = sorted((oid, at, check) for oid, (at, check) in places.items())
    temporary = path + ".idx.part"  # a name that git and its prune ignore
    with _create(temporary) as file:
        write_pack_index(file, rows, digest, version=2)
        _sync(file)
    os.rename(temporary, path + ".idx")


def ids_in(index: str, id_length: int) -> list[str]:
    """Return the ids in a pack index; empty if it is missing or damaged."""
    from dulwich.pack import load_pack_index

    try:
        with closing(load_pack_index(index, _form(id_length))) as found:
            return [oid.decode("ascii") for oid in found]
    except _DAMAGED:
        return []


def count_in(index: str, id_length: int) -> int:
    """Return the number of objects in a pack, from its index; 0 if that is missing or damaged."""
    from dulwich.pack import load_pack_index

    try:
        with closing(load_pack_index(index, _form(id_length))) as found:
            return len(found)
    except _DAMAGED:
        return 0


def _form(id_length: int) -> ObjectFormat:
    from dulwich.object_format import get_object_format

    return get_object_format(ALGORITHMS[id_length])


def _create(path: str) -> BinaryIO:
    handle = local_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    return os.fdopen(handle, "wb")


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


_LINK = "160000"  # a submodule; its commit is in another repository


class DraftObjects(Struct):
    """The objects of commits to be written: kind and content by id.

    Attributes:
        git: The repository that is read from and written to.
        id_length: Number of hex digits of an object id there.
    """

    _git: ObjectReads
    _id_length: int
    objects: dict[str, tuple[bytes, bytes]] = {}
    _trees: dict[str, dict[str, TreeEntry]] = {}

    def add(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        """Add a commit for each draft, the first on `onto` (None: a root), and return their ids.

        Raises:
            KeyError: with the id of a missing object.
            ValueError: git would reject a path.
        """
        tree = EMPTY_TREES[self._id_length] if onto is None else self._git.commit(onto).tree
        self._check(drafts)
        oids: list[str] = []
        for draft in drafts:
            tree = self._add_tree(draft, tree)
            parents = [] if onto is None else [onto]
            data = format_commit(tree, parents, draft.author, draft.committer, draft.message)
            onto = self._add(b"commit", data)
            oids.append(onto)
        return oids

    def _check(self, drafts: Sequence[Draft]) -> None:
        """Raise KeyError if an object that a draft refers to is missing."""
        entries = [each for draft in drafts for each in draft.changes.values() if isinstance(each, TreeEntry)]
        wanted = [each.oid for each in entries if each.mode != _LINK and not is_empty_tree(each.oid)]
        found = self._git.heads(wanted) if wanted else {}
        for oid in wanted:
            if oid not in found:
                raise KeyError(oid)

    def _add(self, kind: bytes, content: bytes) -> str:
        oid = object_id(kind, content, self._id_length)
        self.objects[oid] = (kind, content)
        return oid

    def _tree(self, oid: str) -> dict[str, TreeEntry]:
        if is_empty_tree(oid):
            return {}
        known = self._trees.get(oid)
        return dict(self._git.tree(oid) if known is None else known)

    def _add_tree(self, draft: Draft, parent: str) -> str:
        """Add the changed trees and blobs of a draft, and return the id of the root tree."""
        root: Folder = dict(self._tree(draft.tree or parent))
        for path, change in draft.changes.items():
            names = path_parts(path)
            if isinstance(change, bytes):
                change = TreeEntry(FILE_MODE, self._add(b"blob", change))
            elif change is not None:  # git stores no empty folders
                change = None if is_empty_tree(change.oid) else TreeEntry(plain_mode(change), change.oid)
            self._change(root, names, change)
        return self._add_folder(root)

    def _change(self, folder: Folder, names: list[str], change: TreeEntry | None) -> None:
        for name in names[:-1]:
            inner = folder.get(name)
            if isinstance(inner, TreeEntry) and inner.is_tree:
                inner = dict(self._tree(inner.oid))
            elif not isinstance(inner, dict):
                if change is None:
                    return
                inner = {}
            folder[name] = inner
            folder = inner
        if change is None:
            folder.pop(names[-1], None)
        else:
            folder[names[-1]] = change

    def _add_folder(self, folder: Folder) -> str:
        entries: dict[str, TreeEntry] = {}
        for name, inner in folder.items():
            if isinstance(inner, TreeEntry):
                entries[name] = inner
            else:
                oid = self._add_folder(inner)
                if not is_empty_tree(oid):
                    entries[name] = TreeEntry(TREE_MODE, oid)
        oid = self._add(b"tree", format_tree(entries))
        self._trees[oid] = entries
        return oid


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
        local_files.make_dirs(packs)
        _claim(common, name)
        keep(common, name)
        write_pack(os.path.join(packs, name), objects, id_length)
        local_files.fsync_dir(packs)
    except OSError as error:
        remove(common, name)
        raise plumbing.failed("Objects could not be written", error, common) from error
    return name


def keep(common: str, name: str) -> bool:
    """Let every gc keep a pack that is about to exist; return False if somebody else does so.

    Raises:
        OSError: its `.keep` cannot be written.
    """
    try:
        path = os.path.join(_packs(common), name + ".keep")
        handle = local_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    with os.fdopen(handle, "wb") as file:
        file.write(KEEP)
    return True


def release(common: str, name: str) -> None:
    """Remove a pack's `.keep`: a ref has moved to its objects, or they are no longer needed."""
    local_files.remove_quietly(os.path.join(_packs(common), name + ".keep"))


def remove(common: str, name: str) -> None:
    """Remove a pack of ours that is not needed or has been combined into another one."""
    for end in (*_FILES, ".idx.part"):
        local_files.remove_quietly(os.path.join(_packs(common), name + end))
    local_files.remove_quietly(os.path.join(_own(common), name))


def listed(common: str) -> set[str]:
    """Return the names of all packs of the repository."""
    return {name[:-4] for name in local_files.names_in(_packs(common)) if name.endswith(".idx")}


def adopt(common: str, names: Iterable[str]) -> None:
    """Register packs that a fetch of ours brought as ours. If that fails they stay ordinary packs."""
    if not os.path.isdir(os.path.dirname(_own(common))):
        return  # packs of a clone's first sync stay ordinary packs
    with suppress(OSError, StoreError):
        id_length = files.id_length(common)
        for name in names:
            path = os.path.join(_packs(common), name)
            if not os.path.exists(path + ".promisor") and count_in(path + ".idx", id_length) <= FETCHED_MAX:
                _claim(common, name)


def own_packs(common: str) -> list[str]:
    """Return the names of our existing packs."""
    return sorted(listed(common).intersection(local_files.names_in(_own(common))))


def objects_due(common: str) -> int:
    """Return the number of objects in packs that should be combined; 0 if there are few packs or a gc runs."""
    if len(local_files.names_in(_own(common))) < PACKS_MAX:
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
    packs, id_length = _packs(common), files.id_length(common)
    found = [ids_in(os.path.join(packs, name + ".idx"), id_length) for name in chosen]
    wanted = dict.fromkeys(oid for oids in found for oid in oids)
    if not all(found):
        return 0  # an unreadable index: `gitmem doctor` reports it
    given = "".join(f"{oid}\n" for oid in wanted).encode("ascii")
    args = [*plumbing.DURABLE, *_CONFIG, "pack-objects", "--quiet", "--delta-base-offset"]
    done = processes.run(common, [*args, os.path.join(packs, _NEW)], input=given, timeout=TIMEOUT_SECONDS)
    digest = done.out.decode("ascii").strip()
    made, new = os.path.join(packs, f"{_NEW}-{digest}"), _PREFIX + digest
    if not wanted.keys() <= set(ids_in(made + ".idx", id_length)):
        raise StoreError(
            f"git pack-objects left something out of {new}. Nothing was removed.", code="git-failed"
        )
    try:
        _claim(common, new)
        for end in (".pack", ".rev", ".idx"):
            if end != ".rev" or os.path.exists(made + end):
                os.replace(made + end, os.path.join(packs, new + end))
    except OSError as error:
        raise plumbing.failed("The log's packs could not be united", error, common) from error
    local_files.fsync_dir(packs)
    local_files.give_back(common)
    for name in chosen.keys() - {new}:
        remove(common, name)
    return len(chosen)


def clean_up(common: str) -> None:
    """Clean up after killed and abandoned writes, and forget removed packs. The caller holds the lock."""
    packs, folder, now = _packs(common), _own(common), time.time()
    for name in local_files.names_in(packs):
        if name.startswith(_NEW):
            local_files.remove_quietly(os.path.join(packs, name))
    for name in local_files.names_in(folder):
        if now - local_files.modified(os.path.join(folder, name), now) <= LEFT_SECONDS:
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
    packs, id_length = _packs(common), files.id_length(common)
    indexed = read_small(os.path.join(packs, "multi-pack-index"))
    sized = []
    for name in own_packs(common):
        path = os.path.join(packs, name)
        stays = os.path.exists(path + ".keep") or os.path.exists(path + ".promisor")
        if not stays and os.fsencode(name) not in indexed:
            try:
                sized.append((count_in(path + ".idx", id_length), name))
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
    local_files.make_dirs(_own(common))
    local_files.mark(os.path.join(_own(common), name))


def _packs(common: str) -> str:
    return os.path.join(common, "objects", "pack")


def _own(common: str) -> str:
    return os.path.join(common, "gitmem", "own-packs")


LOCAL_PACKS_MAX = 10  # with more, one new pack replaces them


def localize(common: str, tip: str) -> None:
    """Ensure that all objects of a commit and of our refs are in packs of this repository that no gc removes.

    Objects that a partial clone has left with a remote stay there. In repositories without alternates and promisors
    this costs two file reads.

    Raises:
        StoreError: an object is already lost.
    """
    objects = os.path.join(common, "objects")
    borrows = read_small(os.path.join(objects, "info", "alternates")).strip()
    if not borrows and not files.promisors(common):
        return
    state = os.path.join(common, "gitmem", "own")  # line 1: the tips of the last run; line 2: its packs
    known, packs = [*_words(state), [], []][:2]
    tips = sorted({tip, *plumbing.refs_below(common, plumbing.OURS).values()})
    if set(tips) <= set(known):
        return
    stale: list[str] = []
    if len(packs) >= LOCAL_PACKS_MAX:
        known, packs, stale = [], [], packs
    oids = _reachable_objects(common, tips, known)
    pack = os.path.join(objects, "pack", "pack")
    if oids:
        args = [*plumbing.DURABLE, "pack-objects", "--quiet", "--delta-base-offset", pack]
        packs.append(processes.run(common, args, input=b"\n".join(oids) + b"\n").out.decode("ascii").strip())
    try:
        if oids:
            keep = f"{pack}-{packs[-1]}.keep"
            with open(local_files.open_file(keep, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
                file.write("gitmem: the log's objects, which a gc here would leave to others\n")
        local_files.replace(state, f"{' '.join(tips)}\n{' '.join(packs)}\n".encode("ascii"))
    except OSError as error:
        raise plumbing.failed(
            "The log's objects could not be made this repository's own", error, common
        ) from error
    for name in set(stale) - set(packs):
        local_files.remove_quietly(f"{pack}-{name}.keep")  # the next gc removes the pack


def _reachable_objects(common: str, tips: list[str], known: list[str]) -> list[bytes]:
    """Return the objects reachable from commits, without those reachable from known commits."""
    args = ["rev-list", "--objects", "--missing=allow-promisor", "--stdin"]
    wanted = "".join(f"{oid}\n" for oid in tips)
    without = "".join(f"^{oid}\n" for oid in known)
    done = processes.run(common, args, input=(wanted + without).encode("ascii"), check=False)
    if done.code != 0:  # a known commit may have been removed
        done = processes.run(common, args, input=wanted.encode("ascii"))
    return [row.split(b" ")[0] for row in done.out.splitlines()]


def _words(path: str) -> list[list[str]]:
    return [line.split() for line in local_files.read(path).decode("ascii", "replace").splitlines()]


def move_aside(common: str, oid: str, folder: str, read: Callable[[str], tuple[bytes, bytes]]) -> str | None:
    """Move the file of a damaged object to a folder.

    Git uses a file of that name as the object: it would not write the fetched one, nor read another pack. If the object
    is in a pack of ours, all readable objects are first written to another pack.

    Args:
        read: Returns kind and content of an object, or raises KeyError.

    Returns:
        The new path, or None if there is no such file and no pack of ours with it.

    Raises:
        OSError: a file cannot be moved.
        StoreError: objects cannot be read or written.
    """
    path, to = os.path.join(common, "objects", oid[:2], oid[2:]), os.path.join(folder, oid)
    if os.path.exists(path):
        local_files.make_dirs(folder)
        os.replace(path, to)
        return to
    id_length = len(oid)
    for name in own_packs(common):
        pack = os.path.join(common, "objects", "pack", name)
        oids = ids_in(pack + ".idx", id_length)
        if oid not in oids:
            continue
        local_files.make_dirs(folder)
        whole = _readable(read, oids)
        if whole:
            release(common, write(common, whole, id_length))
        to = os.path.join(folder, name + ".pack")
        os.replace(pack + ".pack", to)
        remove(common, name)
        return to
    return None


def _readable(
    read: Callable[[str], tuple[bytes, bytes]], oids: Iterable[str]
) -> dict[str, tuple[bytes, bytes]]:
    found = {}
    for oid in oids:
        with suppress(KeyError):
            found[oid] = read(oid)
    return found
