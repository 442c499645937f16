"""Write packs, and read their indexes, through dulwich. Objects are stored without deltas.

Existing files are never replaced: `packing` gives each pack a unique name.
"""

from __future__ import annotations

import os
import struct
from contextlib import closing

from dulwich.object_format import get_object_format
from dulwich.pack import UnpackedObject, load_pack_index, write_pack_data, write_pack_index

from .. import state_files
from .formats import ALGORITHMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from dulwich.object_format import ObjectFormat

    Objects = Mapping[str, tuple[bytes, bytes]]

_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
_DAMAGED = (OSError, ValueError, AssertionError, IndexError, KeyError, struct.error)


def object_id(kind: bytes, content: bytes, id_length: int) -> str:
    """Return the id of an object."""
    data = b"%s %d\0%s" % (kind, len(content), content)
    return _form(id_length).hash_object_hex(data).decode("ascii")


def write(path: str, objects: Objects, id_length: int) -> None:
    """Write `<path>.pack`, and then atomically `<path>.idx`, which makes it visible to git.

    Both files are synced, but not their folder.

    Args:
        objects: Kind and content by id.

    Raises:
        OSError: a file cannot be written.
    """
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


def ids(index: str, id_length: int) -> list[str]:
    """Return the ids in a pack index; empty if it is missing or damaged."""
    try:
        with closing(load_pack_index(index, _form(id_length))) as found:
            return [oid.decode("ascii") for oid in found]
    except _DAMAGED:
        return []


def count(index: str, id_length: int) -> int:
    """Return the number of objects in a pack, from its index; 0 if that is missing or damaged."""
    try:
        with closing(load_pack_index(index, _form(id_length))) as found:
            return len(found)
    except _DAMAGED:
        return 0


def _form(id_length: int) -> ObjectFormat:
    return get_object_format(ALGORITHMS[id_length])


def _create(path: str) -> BinaryIO:
    handle = state_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    return os.fdopen(handle, "wb")


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
