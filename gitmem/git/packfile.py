"""Write and sync packs (gitformat-pack) without git, and read the ids in a pack index.

Objects are stored without deltas. Existing files are never replaced: `packing` gives each pack a unique name.
"""

from __future__ import annotations

import os
import struct
import zlib

from .. import state_files
from ..digests import sha256
from ..repo import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from hashlib import sha1
    from typing import BinaryIO, Protocol

    class Digest(Protocol):
        """A running hash, as in `hashlib`."""

        def update(self, data: bytes, /) -> None:
            """Add bytes to the content."""
            ...

        def digest(self) -> bytes:
            """Return the hash of the content so far, as bytes."""
            ...

        def hexdigest(self) -> str:
            """Return the hash of the content so far, in hexadecimal digits."""
            ...

    Objects = Mapping[str, tuple[bytes, bytes]]
else:
    try:
        from _sha1 import sha1  # without OpenSSL, as in `sha256`
    except ImportError:
        from hashlib import sha1

_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
_MAGIC = b"\377tOc" + struct.pack(">L", 2)
_IDS_AT = 8 + 4 * 256
_IN_TABLE = 1 << 31  # marks an offset in a separate table, for large ones


def digest_of(id_length: int) -> Callable[[bytes], Digest]:
    """Return the hash function of a repository whose object ids have `id_length` hex digits."""
    return sha256 if id_length == 64 else sha1


def object_id(kind: bytes, content: bytes, id_length: int) -> str:
    """Return the id of an object."""
    return digest_of(id_length)(b"%s %d\0%s" % (kind, len(content), content)).hexdigest()


def write(path: str, objects: Objects, id_length: int, *, far: int = _IN_TABLE) -> None:
    """Write `<path>.pack`, and then atomically `<path>.idx`, which makes it visible to git.

    Both files are synced, but not their folder.

    Args:
        objects: Kind and content by id.
        far: Larger offsets are in a table of their own.

    Raises:
        OSError: a file cannot be written.
    """
    digest = digest_of(id_length)(b"")
    rows: list[tuple[bytes, int, int]] = []
    with _create(path + ".pack") as file:
        at = _put(file, digest, b"PACK" + struct.pack(">LL", 2, len(objects)))
        for oid, (kind, content) in objects.items():
            packed = _head(_KINDS[kind], len(content)) + zlib.compress(content)
            rows.append((bytes.fromhex(oid), zlib.crc32(packed), at))
            at += _put(file, digest, packed)
        trailer = digest.digest()
        file.write(trailer)
        _sync(file)
    rows.sort()
    temporary = path + ".idx.part"  # a name that git and its prune ignore
    with _create(temporary) as file:
        index = _index(rows, far) + trailer
        file.write(index + digest_of(id_length)(index).digest())
        _sync(file)
    os.rename(temporary, path + ".idx")


def ids(index: str, id_length: int) -> list[str]:
    """Return the ids in a pack index; empty if it is missing, damaged, or in version 1 format."""
    data = read_small(index)
    size = id_length // 2
    count = struct.unpack(">L", data[_IDS_AT - 4 : _IDS_AT])[0] if len(data) > _IDS_AT else 0
    if not data.startswith(_MAGIC) or len(data) < _IDS_AT + count * size:
        return []
    return [data[at : at + size].hex() for at in range(_IDS_AT, _IDS_AT + count * size, size)]


def count(index: str, id_length: int) -> int:
    """Return the number of objects in a pack, from the size of its index.

    Raises:
        OSError: the index cannot be read.
    """
    size = id_length // 2
    return max(0, os.stat(index).st_size - _IDS_AT - 2 * size) // (size + 8)


def _create(path: str) -> BinaryIO:
    handle = state_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    return os.fdopen(handle, "wb")


def _put(file: BinaryIO, digest: Digest, data: bytes) -> int:
    digest.update(data)
    return file.write(data)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _head(kind: int, size: int) -> bytes:
    """Return an object's header: kind and 4 bits of the size, then 7 bits per byte, lowest first."""
    byte, size = kind << 4 | size & 15, size >> 4
    found = bytearray()
    while size:
        found.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    found.append(byte)
    return bytes(found)


def _index(rows: list[tuple[bytes, int, int]], far_from: int) -> bytes:
    """Return an index without its two checksums, for sorted rows of id, checksum and offset."""
    first = [0] * 256
    for oid, _, _ in rows:
        first[oid[0]] += 1
    for byte in range(1, 256):
        first[byte] += first[byte - 1]
    far = [at for _, _, at in rows if at >= far_from]
    number = iter(range(len(far)))
    return b"".join(
        [
            _MAGIC,
            struct.pack(">256L", *first),
            *(oid for oid, _, _ in rows),
            *(struct.pack(">L", check) for _, check, _ in rows),
            *(struct.pack(">L", at if at < far_from else _IN_TABLE | next(number)) for _, _, at in rows),
            *(struct.pack(">Q", at) for at in far),
        ]
    )
