"""Cached answers of `behind`, which save a memory query three git processes.

How a path differs between two commits never changes. But a commit may be missing here and arrive later. So an answer is
valid while the files are unchanged that a fetch, a repack, or a change of shallow, graft or replace entries writes.
"""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..digests import sha256
from .port import PathChanges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..repo import Repo

    Pair = tuple[str, str]

FOLDER = "behind"  # below the state folder; at most 256 files, named by two hex digits
SHOWS = (
    "FETCH_HEAD",
    "shallow",
    "packed-refs",
    "objects/pack",
    "objects/info/alternates",
    "info/grafts",
    "refs/replace",
)
ROW_MAX = 200  # characters
BYTES_MAX = 1024 * 1024
_HEX = frozenset("0123456789abcdef")


class CachedPathChanges:
    """The cached answer to one query.

    Args:
        repo: Where the repository is.
        tip: The commit that is compared with.
        pairs: Pairs of commit and path, each once.
    """

    def __init__(self, repo: Repo, tip: str, pairs: Sequence[Pair]) -> None:
        asked = sha256("\0".join(word for pair in pairs for word in pair).encode("utf-8", "surrogateescape"))
        self._pairs = pairs
        self._path = os.path.join(repo.state, FOLDER, asked.hexdigest()[:2])
        self._head = " ".join(
            [tip, asked.hexdigest(), *(_stamp(os.path.join(repo.common, name)) for name in SHOWS)]
        )

    def read(self) -> dict[Pair, PathChanges] | None:
        """Return the answer; None if it is not cached or not valid."""
        head, *rows = state_files.read(self._path, BYTES_MAX).decode("utf-8", "replace").split("\n")
        if head != self._head or not rows or rows.pop():
            return None
        found = {}
        try:
            for row in rows:
                number, count, last, gone, at_least = row.split(" ")
                if len(row) > ROW_MAX or not _HEX.issuperset(last):
                    return None
                found[self._pairs[int(number)]] = PathChanges(
                    int(count), last or None, gone == "1", at_least == "1"
                )
        except (ValueError, IndexError):
            return None
        return found

    def write(self, found: Mapping[Pair, PathChanges]) -> None:
        """Cache an answer. Never raise an error."""
        rows = [
            f"{number} {each.count} {each.last or ''} {each.gone:d} {each.at_least:d}"
            for number, pair in enumerate(self._pairs)
            if (each := found.get(pair)) is not None
        ]
        try:
            state_files.make_dir(os.path.dirname(self._path))
            atomic_write.replace(self._path, "\n".join([self._head, *rows, ""]).encode())
        except OSError:
            return


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"
