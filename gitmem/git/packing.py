"""Packs of the log's objects: what is loose of them becomes a pack of ours, and small packs of ours become one.

Nothing of the user's is touched, and nothing goes before the pack that has it is on the disk and to be seen. A pack
that is made after a ref reached its objects is taken by no gc: one that began before does not know the
pack, and one that begins later finds what the ref reaches. Only therefore `held` may let them go.
"""

from __future__ import annotations

import os
import time

from .. import aside
from ..errors import StoreError
from ..place import read_small
from . import durable, formats, held, queries, run
from .objects import is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

OBJECTS_MAX = 5_000  # some 830 commits; git's own gc would begin at 6,700 loose objects
PACKS_MAX = 20  # that were made while a gc ran
GROWTH = 2  # packs are united with all newer ones as long as they are not so many times as large as those
HELD_SECONDS = 24 * 3600.0  # what no ref has reached by then is of a command that failed
TIMEOUT_SECONDS = 900.0
_FILES = (".idx", ".rev", ".pack")
_CONFIG = (
    *("-c", "pack.packSizeLimit=0", "-c", "pack.threads=1", "-c", "pack.indexVersion=2"),
    *("-c", "pack.window=10", "-c", "pack.depth=50", "-c", "pack.windowMemory=0"),
)


class Own:
    """A pack that we made, `pack-<hash>`, and the log's tip then: all that the tip reached is in a pack."""

    __slots__ = ("name", "tip")

    def __init__(self, name: str, tip: str) -> None:
        self.name = name
        self.tip = tip


def is_due(common: str) -> bool:
    """Whether enough lies about to be packed, and no gc runs that would have it wait."""
    objects = os.path.join(common, "objects")
    packs = sum(name.startswith(held.PACK) for name in held.names(objects)) // 2
    return (waiting(common) >= OBJECTS_MAX or packs >= PACKS_MAX) and not held.gc_runs(objects)


def waiting(common: str) -> int:
    """How many loose objects have been written since the last pack, without those that it found no ref to reach."""
    count = sum(not name.startswith(held.PACK) for name in held.names(os.path.join(common, "objects")))
    try:
        with open(_unreached(common), encoding="ascii", errors="replace") as file:
            text = file.read(20).strip()
    except OSError:
        return count
    return max(0, count - int(text)) if text.isdecimal() else count


def own_packs(common: str) -> list[Own]:
    """The packs that we made and that are still there, oldest first."""
    found = []
    try:
        with open(os.path.join(common, "gitmem", "packs"), encoding="ascii", errors="replace") as file:
            rows = [row.split() for row in file]
    except OSError:
        return []
    for row in rows:
        plain = len(row) == 2 and row[0].startswith(held.PACK) and is_oid(row[0][5:]) and is_oid(row[1])
        if plain and os.path.exists(os.path.join(common, "objects", "pack", row[0] + ".idx")):
            found.append(Own(*row))
    return found


def pack(common: str, tip: str, *, least: int = 1) -> int:
    """Pack what is loose of all that the log reaches: how many objects; 0 where they are fewer than `least`.

    The caller holds the lock for it.

    Raises: StoreError; then everything is where it was.
    """
    objects = os.path.join(common, "objects")
    if held.gc_runs(objects):
        return 0
    held.give_back_all(objects)
    sweep(common)
    own = own_packs(common)
    _finish(common, tip, own)
    reached = _reached(common, tip, own[-1].tip if own else "")
    loose, second = _loose(objects), set(held.names(objects))
    mine = [oid for oid in reached if oid in loose or oid in second]
    made_in_gc = sorted({name.partition(".")[0] for name in second if name.startswith(held.PACK)})
    _let_old_go(common, set(mine))
    if len(mine) < least and len(made_in_gc) < PACKS_MAX:
        return 0
    united, rest = _to_unite(objects, own, len(mine))
    if united:
        reached = _reached(common, tip, rest[-1].tip if rest else "")
    packs = [*made_in_gc, *(each.name for each in united)]
    wanted = dict.fromkeys(mine)
    for name in packs:
        wanted.update(dict.fromkeys(_contents(common, os.path.join(objects, "pack", name))))
    if not wanted:
        return 0
    try:
        new = _make(common, [(oid, reached.get(oid, b"")) for oid in wanted])
        if not wanted.keys() <= set(_contents(common, os.path.join(_folder(common), "pack", new))):
            raise StoreError(
                f"git pack-objects left something out of {new}; nothing was removed.", code="git-failed"
            )
        # Listed before it is there: one that we are killed over is known as ours.
        rows = [f"{each.name} {each.tip}\n" for each in (*own, Own(new, tip))]
        aside.replace(os.path.join(common, "gitmem", "packs"), "".join(rows).encode("ascii"))
        _put(common, new)
    except OSError as error:
        raise durable.failed("The log's objects could not be packed", error) from error
    finally:
        sweep(common)
    for name in packs:
        if name != new and not os.path.exists(os.path.join(objects, "pack", name + ".keep")):
            for end in _FILES:
                aside.drop(os.path.join(objects, "pack", name + end))
    _drop(objects, mine)
    held.let_go(objects, (name for name in second if name.partition(".")[0] in made_in_gc))
    return len(mine)


def _finish(common: str, tip: str, own: Sequence[Own]) -> None:
    """Drop what is in a pack of ours and loose too: one that was killed left it, or somebody wrote it once more."""
    objects = os.path.join(common, "objects")
    twice = _loose(objects).union(held.names(objects))
    packs = [os.path.join(objects, "pack", each.name) for each in own]
    twice &= {oid for path in packs if os.path.exists(path + ".pack") for oid in _contents(common, path)}
    if twice:
        durable.fsync_dir(os.path.join(objects, "pack"))  # it may have been killed before it did
        # A pack that is all the log's tip reaches no gc takes; of the rest somebody may be about to make use.
        _drop(objects, twice & _reached(common, tip, "").keys())


def _drop(objects: str, oids: Collection[str]) -> None:
    for oid in oids:
        aside.drop(os.path.join(objects, oid[:2], oid[2:]))
    held.let_go(objects, oids)


def _reached(common: str, tip: str, base: str) -> dict[str, bytes]:
    """What a tip of the log reaches and `base` does not: ids, and the paths that git groups by."""
    args = ["rev-list", "--objects", "--missing=allow-any", "--ignore-missing", "--stdin"]
    asked = f"{tip}\n" + (f"^{base}\n" if base else "")
    out = run.run(common, args, input=asked.encode("ascii"), timeout=TIMEOUT_SECONDS).out
    rows = (row.partition(b" ") for row in out.splitlines())
    return {oid.decode("ascii"): path for oid, _, path in rows}


def _loose(objects: str) -> set[str]:
    found: set[str] = set()
    for number in range(256):
        start = f"{number:02x}"
        try:
            found.update(start + name for name in os.listdir(os.path.join(objects, start)))
        except OSError:
            continue
    return found


def _to_unite(objects: str, own: Sequence[Own], count: int) -> tuple[list[Own], list[Own]]:
    """The newest packs that are to become one with so many new objects, and those that stay.

    What somebody told git to keep stays, and what git's index of many packs counts on.
    """
    indexed = read_small(os.path.join(objects, "pack", "multi-pack-index"))
    at = len(own)
    while at:
        path = os.path.join(objects, "pack", own[at - 1].name)
        if os.path.exists(path + ".keep") or own[at - 1].name.encode("ascii") in indexed:
            break
        size = _size(path + ".idx", len(own[at - 1].tip) // 2)
        if size >= GROWTH * count:
            break
        count += size
        at -= 1
    return list(own[at:]), list(own[:at])


def _size(index: str, id_bytes: int) -> int:
    """How many objects a pack has, by the size of its index."""
    return (os.stat(index).st_size - 8 - 4 * 256 - 2 * id_bytes) // (id_bytes + 8)


def _contents(common: str, path: str) -> list[str]:
    """The ids of the objects of a pack, given without its ending."""
    try:
        with open(path + ".idx", "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return []
    args = ["show-index", f"--object-format={formats.ALGORITHMS[formats.id_length(common)]}"]
    return [row.split(b" ")[1].decode("ascii") for row in run.run(common, args, input=data).out.splitlines()]


def _make(common: str, rows: Iterable[tuple[str, bytes]]) -> str:
    """Make a durable pack of objects, given with their paths: its name.

    It is made in a folder of ours, where a gc doesn't take what is not finished, and where we find leftovers.
    """
    folder = _folder(common)
    for name in ("pack", "info"):
        durable.make_folder(os.path.join(folder, name))
    with open(os.path.join(folder, "info", "alternates"), "w") as file:
        file.write("../../objects\n")
    args = [*queries.DURABLE, *_CONFIG, "pack-objects", "--quiet", "--delta-base-offset"]
    args.append(os.path.join(folder, "pack", "pack"))
    asked = b"".join(b"%s %s\n" % (oid.encode("ascii"), path) for oid, path in rows)
    extra = {"GIT_OBJECT_DIRECTORY": folder}
    done = run.run(common, args, input=asked, env_extra=extra, timeout=TIMEOUT_SECONDS)
    return held.PACK + done.out.decode("ascii").strip()


def _put(common: str, name: str) -> None:
    """Let git see a pack that was made."""
    packs = os.path.join(common, "objects", "pack")
    durable.make_folder(packs)
    for end in reversed(_FILES):  # git looks for the .idx
        path = os.path.join(_folder(common), "pack", name + end)
        if os.path.exists(path):
            try:
                durable.add_name(path, os.path.join(packs, name + end))
            except FileExistsError:
                pass  # the same objects, packed the same way
    durable.fsync_dir(packs)


def _unreached(common: str) -> str:
    return os.path.join(common, "gitmem", "packing-unreached")


def _folder(common: str) -> str:
    return os.path.join(common, "gitmem", "packing")


def sweep(common: str) -> None:
    """Remove what we, or a git of ours, left unfinished."""
    for path in left_half(common):
        aside.drop(path)
    held.drop_keeps(os.path.join(common, "objects"))


def left_half(common: str) -> list[str]:
    """What a packing left that is over."""
    packs = os.path.join(_folder(common), "pack")
    return [os.path.join(packs, name) for name in _listed(packs)]


def _let_old_go(common: str, reached: Collection[str]) -> None:
    """Of what is held and not reached: it is of a command that failed, or it is in a pack for long.

    What stays is counted: it would make a packing due that can't pack it.
    """
    now, folder, left = time.time(), held.folder(os.path.join(common, "objects")), 0
    for name in _listed(folder):
        if name in reached or name.startswith(held.PACK):
            continue
        try:
            if now - os.stat(os.path.join(folder, name)).st_mtime > HELD_SECONDS:
                os.unlink(os.path.join(folder, name))
                continue
        except OSError:
            continue
        left += not name.startswith(held.TEMPORARY)
    try:
        aside.replace(_unreached(common), b"%d\n" % left)
    except OSError:
        return


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
