"""Restore objects that earlier versions kept in `<state>/held`.

Those versions made hard links of objects there. A `git gc --prune=now` may have removed the originals since.
"""

from __future__ import annotations

import os
import time

from .. import atomic_write, state_files
from ..errors import StoreError
from . import run
from .objects import is_empty_tree, is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

YOUNG_SECONDS = 600.0  # an earlier version running now may be about to move a ref to it
_LEFT = ("gitmem/packs", "gitmem/packing-unreached", "objects/tmp_gitmem")


def restore(common: str) -> None:
    """Restore missing objects from `<state>/held` and remove the other links.

    Never raise an error: a later process tries again.
    """
    folder, objects = os.path.join(common, "gitmem", "held"), os.path.join(common, "objects")
    try:
        names = os.listdir(folder)
    except OSError:
        return
    loose = {name: os.path.join(objects, name[:2], name[2:]) for name in names if is_oid(name)}
    try:
        lost = _missing(common, [name for name, path in loose.items() if not os.path.exists(path)])
    except StoreError:
        return
    for name in sorted(names, reverse=True):  # a pack's `.pack` before its `.idx`
        held = os.path.join(folder, name)
        first = loose.get(name, os.path.join(objects, "pack", name))
        try:
            if name in lost or (name.startswith("pack-") and not os.path.exists(first)):
                state_files.make_dirs(os.path.dirname(first))
                os.replace(held, first)
            elif time.time() - os.stat(held).st_mtime > YOUNG_SECONDS:
                os.unlink(held)
        except OSError:
            continue
    for name in _LEFT:
        atomic_write.remove_quietly(os.path.join(common, name))
    for top in (folder, os.path.join(common, "gitmem", "packing")):
        _remove_folders(top)


def _remove_folders(top: str) -> None:
    """Remove a folder tree and files of an interrupted packing; keep young links."""
    for folder, _, names in os.walk(top, topdown=False):
        for name in names if top.endswith("packing") else ():
            atomic_write.remove_quietly(os.path.join(folder, name))
        try:
            os.rmdir(folder)
        except OSError:
            return


def _missing(common: str, oids: Sequence[str]) -> set[str]:
    """Return the objects that are not in a pack either."""
    if not oids:
        return set()
    given = "".join(f"{oid}\n" for oid in oids).encode("ascii")
    rows = run.run(common, ["cat-file", "--batch-check"], input=given, check=False).out.splitlines()
    found = {row[:-8].decode("ascii") for row in rows if row.endswith(b" missing")}
    return found.union(filter(is_empty_tree, oids))  # git has it built in, but its fsck reports it as missing
