"""Union, the only merge: a set operation on lines of bytes.

It is commutative, associative and idempotent, and gives the same bytes from either side. Lines are not parsed, so none
is rejected or dropped.
"""

from __future__ import annotations


def canonical(content: bytes) -> bytes:
    """Return the canonical form of a segment: sorted lines, each once and with a final LF.

    Empty lines and CRs at line ends are removed (a worktree with CRLF conversion adds them).
    """
    return b"\n".join([*sorted(lines(content)), b""])


def lines(content: bytes) -> set[bytes]:
    """Return the lines of a segment in any form, without line ends."""
    found = content.split(b"\n")
    # Strip all CRs. Stripping one would make a second union strip another, and union(a, a) would not be a.
    once = {line.rstrip(b"\r") for line in found} if b"\r" in content else set(found)
    once.discard(b"")
    return once


def union(*contents: bytes) -> bytes:
    """Return every line of every content, in canonical form."""
    return canonical(b"\n".join(contents))
