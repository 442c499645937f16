"""What is known of commits and pairs of commits, in a file of the clone: a commit never changes, so it stays valid.

The file has a checksum. A damaged one counts as empty, and everything is found again.
"""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..digests import sha256
from ..errors import GitmemError
from ..git.branch_changes import UNKNOWN, Merge, Tip
from ..git.objects import is_oid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    Pair = tuple[str, str]

FILE = "overlap"
VERSION = 2
BYTES_MAX = 32 * 1024 * 1024
PATHS_KEPT_MAX = 400_000  # of all lists; those with the same files are one list


class OverlapCache:
    """Tips, changed files and merges by commits.

    Attributes:
        tips: Time and tree by commit.
        files: The files that a commit changed since the merge base with the default branch; None if there are too many or
            no merge base.
        merges: Results by pair of commits.
    """

    def __init__(self, state: str, default_tips: Sequence[str]) -> None:
        self._path = os.path.join(state, FILE)
        self._default = list(default_tips)
        self.tips: dict[str, Tip] = {}
        self.files: dict[str, list[str] | None] = {}
        self.merges: dict[Pair, Merge] = {}
        self._read = state_files.read(self._path, BYTES_MAX + 1)
        try:
            self._load(self._read)
        except (GitmemError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.tips, self.files, self.merges = {}, {}, {}

    def _load(self, content: bytes) -> None:
        digest, _, body = content.partition(b"\n")
        if len(content) > BYTES_MAX or sha256(body).hexdigest().encode() != digest:
            return
        import json

        found = json.loads(body)
        if found["version"] != VERSION:
            return
        self.tips = {str(oid): Tip(int(seconds), str(tree)) for oid, (seconds, tree) in found["tips"].items()}
        lists = [[str(path) for path in paths] for paths in found["lists"]]
        self.merges = {
            (str(one), str(other)): Merge(int(state), lists[place], int(count), str(digest))
            for one, other, state, place, count, digest in found["merges"]
        }
        if found["default"] == self._default:
            self.files = {
                str(oid): None if place is None else lists[place] for oid, place in found["files"].items()
            }

    def write(self, branches: Collection[str]) -> None:
        """Write what is known of these branches' tips, if that differs from the file. Never raise an error.

        Args:
            branches: The commits that were compared. Merges and files of others are dropped; times are kept, if the
                caller has left only those of existing refs.
        """
        import json

        kept = set(branches)
        lists = _Lists()
        files: dict[str, int | None] = {}
        for oid in sorted(kept & self.files.keys(), key=lambda oid: (len(self.files[oid] or ()), oid)):
            paths = self.files[oid]
            if paths is None:
                files[oid] = None
            elif (place := lists.place(paths)) is not None:
                files[oid] = place
        merges: list[list[Any]] = []
        for (one, other), merge in sorted(
            self.merges.items(), key=lambda item: (len(item[1].paths), item[0])
        ):
            if merge.state == UNKNOWN or not {one, other} <= kept:
                continue
            if (place := lists.place(merge.paths)) is not None:
                merges.append([one, other, merge.state, place, merge.count, merge.digest])
        values = {
            "version": VERSION,
            "default": self._default,
            "tips": {oid: [tip.seconds, tip.tree] for oid, tip in sorted(self.tips.items()) if is_oid(oid)},
            "lists": lists.all,
            "files": dict(sorted(files.items())),
            "merges": merges,
        }
        body = json.dumps(values, separators=(",", ":")).encode("ascii")
        content = sha256(body).hexdigest().encode() + b"\n" + body
        if content != self._read and len(content) <= BYTES_MAX:
            atomic_write.try_replace(self._path, content, folders=True, private=True)


class _Lists:
    """Lists of files, each once: branches with the same files are no more than one of them."""

    def __init__(self) -> None:
        self.all: list[list[str]] = []
        self._places: dict[tuple[str, ...], int] = {}
        self._room = PATHS_KEPT_MAX

    def place(self, paths: Sequence[str]) -> int | None:
        """Return the place of a list; None if there is no room for it."""
        key = tuple(paths)
        if key not in self._places:
            if len(key) > self._room:
                return None
            self._room -= len(key)
            self._places[key] = len(self.all)
            self.all.append(list(key))
        return self._places[key]
