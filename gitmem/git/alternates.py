"""Where objects are borrowed: the object folders of other repositories (`git clone --shared`, `--reference`)."""

from __future__ import annotations

import os

from ..place import read_small

DEPTH_MAX = 5  # as git's: an alternate may have alternates


def folders(objects: str) -> list[str]:
    """The object folders that an object folder borrows from, in git's order."""
    found: dict[str, None] = {}
    _collect(objects, found, DEPTH_MAX)
    found.pop(os.path.realpath(objects), None)  # two may borrow from each other
    return list(found)


def _collect(objects: str, found: dict[str, None], depth: int) -> None:
    for row in read_small(os.path.join(objects, "info", "alternates")).split(b"\n"):
        if not row or row.startswith(b"#"):
            continue
        folder = os.path.realpath(os.path.join(objects, os.fsdecode(_unquoted(row))))
        if folder not in found and os.path.isdir(folder):
            found[folder] = None
            if depth:
                _collect(folder, found, depth - 1)


def _unquoted(row: bytes) -> bytes:
    """A path that git has quoted as in C, because it begins with a quote or a newline is in it."""
    if not (row.startswith(b'"') and row.endswith(b'"') and len(row) > 1):
        return row
    return row[1:-1].decode("unicode_escape").encode("latin-1")
