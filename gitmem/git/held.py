"""Second names for objects that were written here: hard links in a folder of ours, where git removes nothing.

`git gc --prune=now` removes what no ref reached when it looked, also what a ref reaches by then: whoever
writes objects and then moves a ref can neither see nor stop it. So an object that is written has a second
name until it lies in a pack that was made after the ref had moved (`packing`): such a pack no gc takes away.
What loses its first name gets it back, where it is read or once the gc has ended.
"""

from __future__ import annotations

import os
import time

from .. import aside, shared_mode
from ..errors import GitmemError
from .durable import add_name, make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TEMPORARY = "tmp-"
GC_SECONDS = 12 * 3600.0  # as git has it: the file of one that runs longer is of the dead
ELSEWHERE_SECONDS = 600.0  # of one on another machine, whose end nobody here sees
KEEP_SECONDS = 60.0  # a fast-import that lives needs far less from its `.keep` to its pack
PAUSE_SECONDS = 0.3
PACK = "pack-"
# Git takes it for a leftover of its own: a prune removes it as the last thing it does. So where it is missing, one ended.
_CANARY = "tmp_gitmem"

# What git says where a `git gc --prune=now` takes the file that it is just writing, or an object that it needs.
_UNFINISHED = ("No such file or directory", "cannot store pack", "cannot create keep")
_TAKEN = ("missing", "nonexistent object", "bad object", "bad tree", "valid object", "valid commit", "parse object", "parse commit",
          "load tree", "not read ", "unable to read", "sha1 pointer")  # fmt: skip


def folder(objects: str) -> str:
    """Where the second names are, of an object folder's objects."""
    return os.path.join(os.path.dirname(objects), "gitmem", "held")


def names(objects: str) -> list[str]:
    """The ids and the packs (`pack-<hash>.pack` and so on) that have a second name."""
    try:
        found = os.listdir(folder(objects))
    except OSError:
        return []
    return [name for name in found if not name.startswith(TEMPORARY)]


def hold(objects: str, oid: str) -> bool:
    """Give a loose object its second name. False where it is not loose."""
    return _link(os.path.join(objects, oid[:2], oid[2:]), os.path.join(folder(objects), oid))


def hold_packs(objects: str, packs: Iterable[str]) -> bool:
    """The same for the files of packs, `pack-<hash>`. False where one is gone."""
    files = [name + end for name in packs for end in (".pack", ".idx")]
    return all(
        _link(os.path.join(objects, "pack", file), os.path.join(folder(objects), file)) for file in files
    )


class Edges:
    """Asks fast-import which packs it makes, where it is to make any."""

    def __init__(self, objects: str, wanted: bool) -> None:
        self._path = os.path.join(folder(objects), TEMPORARY + os.urandom(8).hex()) if wanted else ""
        self.options = [f"--export-pack-edges={self._path}"] if wanted else []

    def __enter__(self) -> Edges:
        if self._path:
            make_folder(os.path.dirname(self._path))
        return self

    def __exit__(self, *error: object) -> None:
        aside.drop(self._path)

    def packs(self) -> list[str]:
        try:
            with open(self._path, encoding="utf-8", errors="surrogateescape") as file:
                paths = [row.partition(".pack:")[0] for row in file]
        except OSError:
            return []
        return [os.path.basename(path) for path in paths]


def _link(path: str, name: str) -> bool:
    try:
        add_name(path, name)
    except FileExistsError:
        return True
    except FileNotFoundError:
        return False
    return True


def give_back(objects: str, oid: str) -> bool:
    """Give an object its first name back, or a pack that may have it. False where there is no second one."""
    first, second = os.path.join(objects, oid[:2], oid[2:]), os.path.join(folder(objects), oid)
    if os.path.exists(second):
        return _link(second, first)
    return _give_packs_back(objects, names(objects)) > 0


def gc_runs(objects: str) -> bool:
    """Whether a `git gc` runs here now, or on another machine that has this folder."""
    try:
        with open(
            os.path.join(os.path.dirname(objects), "gc.pid"), encoding="ascii", errors="replace"
        ) as file:
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


def look_after(objects: str) -> None:
    """Called whenever a ref has moved, and when a process begins: a prune may have taken what the ref reaches.

    Raises nothing: what moved the ref has been done. The next one tries again.
    """
    if not was_pruned(objects):
        return
    try:
        give_back_all(objects)
    except (OSError, GitmemError):
        aside.drop(os.path.join(objects, _CANARY))


def was_pruned(objects: str) -> bool:
    """Whether a prune ended since `give_back_all` last ran."""
    return not os.path.exists(os.path.join(objects, _CANARY)) and os.path.isdir(folder(objects))


def give_back_all(objects: str) -> int:
    """Give back whatever is missing: how many objects and packs that were."""
    try:
        os.close(shared_mode.open_file(os.path.join(objects, _CANARY), os.O_WRONLY | os.O_CREAT))
    except OSError:
        return 0
    held = names(objects)
    lost = [oid for oid in held if not oid.startswith(PACK) and not _is_loose(objects, oid)]
    count = sum(give_back(objects, oid) for oid in _missing(objects, lost))
    return count + _give_packs_back(objects, held)


def _give_packs_back(objects: str, held: Iterable[str]) -> int:
    count = 0
    for name in {name.partition(".")[0] for name in held if name.startswith(PACK)}:
        there, here = os.path.join(objects, "pack", name), os.path.join(folder(objects), name)
        if not os.path.exists(there + ".idx"):
            count += all(_link(here + end, there + end) for end in (".pack", ".idx"))
    return count


def put_right(objects: str, err: str) -> bool:
    """Whether what a git died of may have been taken by a gc, and is mended: it should run once more."""
    if any(words in err for words in _UNFINISHED):
        # The same objects make a pack of the same name, so the one that just failed must go: another's gets its pack.
        left = _left_keeps(objects)
        if left:
            time.sleep(PAUSE_SECONDS)
        for path in left & _left_keeps(objects):
            aside.drop(path)
        return True
    return any(words in err for words in _TAKEN) and give_back_all(objects) > 0


def drop_keeps(objects: str) -> None:
    """Remove the `.keep` files that a fast-import leaves whose pack was taken before it was finished.

    One that has just begun is somebody's who still makes the pack.
    """
    for path in _left_keeps(objects):
        try:
            if time.time() - os.stat(path).st_mtime > KEEP_SECONDS:
                os.unlink(path)
        except OSError:
            continue


def _left_keeps(objects: str) -> set[str]:
    packs, left = os.path.join(objects, "pack"), set()
    for name in os.listdir(packs):
        path = os.path.join(packs, name)
        if not name.endswith(".keep") or os.path.exists(path[:-5] + ".pack"):
            continue
        try:
            with open(path, "rb") as file:
                ours = file.read(20).strip() == b"fast-import"
        except OSError:
            continue
        if ours:
            left.add(path)
    return left


def _is_loose(objects: str, oid: str) -> bool:
    return os.path.exists(os.path.join(objects, oid[:2], oid[2:]))


def _missing(objects: str, oids: Iterable[str]) -> list[str]:
    """Those that are in no pack either."""
    asked = "".join(f"{oid}\n" for oid in oids)
    if not asked:
        return []
    from . import run

    args = ["cat-file", "--batch-check"]
    out = run.once(os.path.dirname(objects), args, input=asked.encode("ascii")).out
    return [row[:-8].decode("ascii") for row in out.splitlines() if row.endswith(b" missing")]


def let_go(objects: str, gone: Iterable[str]) -> None:
    """Take second names away: of what is safe by now."""
    for name in gone:
        try:
            os.unlink(os.path.join(folder(objects), name))
        except OSError:
            continue
