"""Records of the write-ahead log: how an entry lies in a file, and how a damaged file is read.

    NUL wal1 SP <kind> SP <length> SP <checksum> LF <payload>

`kind` is `e` for an entry or `v` for a void, `length` the payload's in bytes (ten digits), `checksum` the hex SHA-256 of
kind and payload. A void's payload is the checksum of an entry in the same file that counts as never written. Neither an
entry nor a line can hold a NUL, so after damage of any kind reading goes on at the next marker.
"""

from __future__ import annotations

from ..digests import hash_of

MARK = b"\0wal1 "
ENTRY, VOID = b"e", b"v"
HASHED_AT_ONCE = 256  # bytes that take as long as the hash of a line
HEAD_BYTES = len(MARK) + 2 + 11 + 65
PAYLOAD_BYTES_MAX = (
    64 * 1024 * 1024
)  # one entry; a batch that is larger is refused before anything is written


class Tail:
    """What was read of a file.

    Attributes:
        entries: Payloads of entries that no void names, oldest first, with their checksums.
        voids: Checksums that voids name, and whose entries were not among those read.
        end: Offset behind the last whole record: where to go on reading.
        damaged: Bytes that are part of no record and stand before `end`.
    """

    __slots__ = ("damaged", "end", "entries", "voids")

    def __init__(self, entries: list[tuple[bytes, bytes]], voids: set[bytes], end: int, damaged: int) -> None:
        self.entries = entries
        self.voids = voids
        self.end = end
        self.damaged = damaged


def encode(payload: bytes, kind: bytes = ENTRY) -> bytes:
    """Return the record of a payload."""
    return MARK + b"%s %010d %s\n" % (kind, len(payload), checksum(payload, kind)) + payload


def checksum(payload: bytes, kind: bytes = ENTRY) -> bytes:
    """Return the checksum of a record in hex."""
    hashed = hash_of(len(payload) // HASHED_AT_ONCE)(kind)
    hashed.update(payload)
    return hashed.hexdigest().encode()


def parse(content: bytes, start: int = 0) -> Tail:
    """Read the records of a file's content.

    Args:
        content: The bytes of the file from offset `start` on.
        start: The offset of an earlier reading's end; 0 for the whole file.
    """
    found: dict[int, tuple[bytes, bytes]] = {}
    places: dict[bytes, list[int]] = {}  # of the entries with a checksum, until a void names it
    voids: set[bytes] = set()
    at = end = damaged = 0
    while True:
        at = content.find(MARK, at)
        if at < 0:
            break
        record = _record(content, at)
        if record is None:
            at += 1
            continue
        kind, payload, digest = record
        damaged += at - end
        at = end = at + HEAD_BYTES + len(payload)
        if kind == VOID:
            named = places.pop(payload, None)
            if named is None:
                voids.add(payload)
            for place in named or ():
                del found[place]
        else:
            found[at] = (payload, digest)
            places.setdefault(digest, []).append(at)
    return Tail(list(found.values()), voids, start + end, damaged)


def _record(content: bytes, at: int) -> tuple[bytes, bytes, bytes] | None:
    """Return kind, payload and checksum of the record at an offset; None where it is torn or damaged."""
    head = content[at : at + HEAD_BYTES]
    words = head[len(MARK) : -1].split(b" ")
    if len(head) < HEAD_BYTES or head[-1:] != b"\n" or len(words) != 3:
        return None
    kind, length, digest = words
    if kind not in (ENTRY, VOID) or not length.isdigit() or int(length) > PAYLOAD_BYTES_MAX:
        return None
    start, end = at + HEAD_BYTES, at + HEAD_BYTES + int(length)
    if end > len(content) or content.find(b"\0", start, end) >= 0:
        return None  # before its checksum: else a file full of markers would be hashed once for each
    payload = content[start:end]
    if checksum(payload, kind) != digest:
        return None
    return kind, payload, digest
