"""Union, the only merge: a set operation on lines of bytes.

Commutative, associative and idempotent, and byte-identical from either side.
No line is read, so none can be refused or dropped.
"""

from __future__ import annotations


def canon(content: bytes) -> bytes:
    """The canonical form of a segment: its lines sorted, once each, a LF after every one.

    CRs that end a line go (a work tree with CRLF conversion adds them), and so do empty lines.
    """
    return b"\n".join([*sorted(lines(content)), b""])


def lines(content: bytes) -> set[bytes]:
    """The lines of a segment, in whatever form it is, without their ends."""
    found = content.split(b"\n")
    # All CRs, not one: else a second union would strip another, and union of a and a would not be a.
    once = {line.rstrip(b"\r") for line in found} if b"\r" in content else set(found)
    once.discard(b"")
    return once


def union(*contents: bytes) -> bytes:
    """Every line of every content, in canonical form."""
    return canon(b"\n".join(contents))
