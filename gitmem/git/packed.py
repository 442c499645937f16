"""Kind and size of objects in packs, from the first bytes of what stands there: no content is built."""

from __future__ import annotations

import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import IO

    from dulwich.objects import RawObjectID
    from dulwich.pack import Pack

KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
CHAIN_MAX = 4_096  # as long as git makes a chain of deltas
_OFFSET_DELTA, _ID_DELTA = 6, 7
_START_BYTES = 512  # of an entry: its head, and enough of a delta for the two sizes in it
_SIZES_BYTES = 20


def heads(packs: Iterable[Pack], oids: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return kind and size of those objects that are in one of the packs, and can be read there.

    Raises: OSError where a pack is gone.
    """
    found: dict[str, tuple[str, int]] = {}
    for pack in packs:
        rest = [oid for oid in oids if oid not in found and bytes.fromhex(oid) in pack]  # type: ignore[operator]
        if not rest:
            continue
        with open(pack.data.path, "rb", buffering=0) as file:
            for oid in rest:
                head = _head(pack, file, bytes.fromhex(oid))  # type: ignore[arg-type]
                if head is not None:
                    found[oid] = head
    return found


def _head(pack: Pack, file: IO[bytes], oid: RawObjectID) -> tuple[str, int] | None:
    """Return kind and size of an object of a pack: the size of its own delta, the kind of the last one below it."""
    size = None
    try:
        offset = pack.index.object_offset(oid)
        for _ in range(CHAIN_MAX):
            file.seek(offset)
            start = file.read(_START_BYTES)
            kind, length, at = _entry(start)
            if kind in KINDS:
                return KINDS[kind], length if size is None else size
            if kind == _OFFSET_DELTA:
                back, at = _distance(start, at)
                offset -= back
            elif kind == _ID_DELTA:
                offset = pack.index.object_offset(start[at : at + len(oid)])  # type: ignore[arg-type]
                at += len(oid)
            else:
                return None
            if size is None:
                size = _size_after(start[at:])
    except (KeyError, IndexError, OSError, zlib.error):
        pass
    return None


def _entry(start: bytes) -> tuple[int, int, int]:
    """Return type and length of an entry, and where its data begins."""
    kind, length, shift, at = (start[0] >> 4) & 7, start[0] & 15, 4, 1
    while start[at - 1] & 0x80:
        length |= (start[at] & 0x7F) << shift
        shift += 7
        at += 1
    return kind, length, at


def _distance(start: bytes, at: int) -> tuple[int, int]:
    """Return how far back the base of a delta is, and where the delta begins."""
    back = start[at] & 0x7F
    while start[at] & 0x80:
        at += 1
        back = ((back + 1) << 7) | (start[at] & 0x7F)
    return back, at + 1


def _size_after(packed: bytes) -> int:
    """Return the size of what a delta makes: the second number in it."""
    data, at, value = zlib.decompressobj().decompress(packed, _SIZES_BYTES), 0, 0
    while data[at] & 0x80:
        at += 1
    for shift, byte in enumerate(data[at + 1 :]):
        value |= (byte & 0x7F) << (7 * shift)
        if not byte & 0x80:
            return value
    raise IndexError
