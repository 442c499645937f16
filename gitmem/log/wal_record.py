"""Records of the write-ahead log: the form of an entry in a file, and how a damaged file is read.

    NUL wal1 SP <kind> SP <length> SP <checksum> LF <payload>

`kind` is `e` for an entry or `v` for a void, `length` is that of the payload in bytes (ten digits), `checksum` is the
hex SHA-256 of kind and payload. The payload of a void is the checksum of an entry in the same file that counts as never
written. Entries and lines contain no NUL, so after any damage reading continues at the next marker.
"""

from __future__ import annotations

from ..digests import hash_function_for

MARK = b"\0wal1 "
ENTRY, VOID = b"e", b"v"
HASHED_AT_ONCE = 256  # bytes that take as long as the hash of a line
HEAD_BYTES = len(MARK) + 2 + 11 + 65
PAYLOAD_BYTES_MAX = 64 * 1024 * 1024  # of one entry; a larger batch is rejected before the write


class WalContent:
    """The result of reading a file.

    Attributes:
        entries: Payloads of entries that are not voided, oldest first, with their checksums.
        voids: Checksums in voids whose entries were not among those read.
        end: The offset behind the last complete record, where the next read starts.
        damaged: The number of bytes before `end` that are not part of a record.
    """

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
    hashed = hash_function_for(len(payload) // HASHED_AT_ONCE)(kind)
    hashed.update(payload)
    return hashed.hexdigest().encode()


def parse(content: bytes, start: int = 0) -> WalContent:
    """Parse the records in a file's content.

    Args:
        content: The bytes of the file from offset `start` on.
        start: The end of an earlier read; 0 for the whole file.
    """
    found: dict[int, tuple[bytes, bytes]] = {}
    offsets: dict[bytes, list[int]] = {}  # offsets of the entries with a checksum, until a void names it
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
            named = offsets.pop(payload, None)
            if named is None:
                voids.add(payload)
            for place in named or ():
                del found[place]
        else:
            found[at] = (payload, digest)
            offsets.setdefault(digest, []).append(at)
    return WalContent(list(found.values()), voids, start + end, damaged)


def _record(content: bytes, at: int) -> tuple[bytes, bytes, bytes] | None:
    """Return kind, payload and checksum of the record at an offset; None if it is torn or damaged."""
    head = content[at : at + HEAD_BYTES]
    words = head[len(MARK) : -1].split(b" ")
    if len(head) < HEAD_BYTES or head[-1:] != b"\n" or len(words) != 3:
        return None
    kind, length, digest = words
    if kind not in (ENTRY, VOID) or not length.isdigit() or int(length) > PAYLOAD_BYTES_MAX:
        return None
    start, end = at + HEAD_BYTES, at + HEAD_BYTES + int(length)
    if end > len(content) or content.find(b"\0", start, end) >= 0:
        return None  # checked before the checksum: else a file full of markers would be hashed once for each of them
    payload = content[start:end]
    if checksum(payload, kind) != digest:
        return None
    return kind, payload, digest
