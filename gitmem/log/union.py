"""Union, the only merge: a set operation on lines of bytes.

Commutative, associative and idempotent, and byte-identical from either side.
No line is read, so none can be refused or dropped.
"""

from __future__ import annotations


def canon(content: bytes) -> bytes:
    """The canonical form of a segment: its lines sorted, once each, a LF after every one.

    CRs that end a line go (a work tree with CRLF conversion adds them), and so do empty lines.
    """
    lines = content.split(b"\n")
    if b"\r" in content:
        # All of them, not one: else a second union would strip another, and union of a and a would not be a.
        lines = [line.rstrip(b"\r") for line in lines]
    once = set(lines)
    once.discard(b"")
    return b"\n".join([*sorted(once), b""])


def union(*contents: bytes) -> bytes:
    """Every line of every content, in canonical form."""
    return canon(b"\n".join(contents))
