"""The network in memory, as `gitmem.git.network` describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gitmem.errors import RemoteError, StoreError

from .memory import Repository


class MemoryNetwork:
    """Remotes in memory, by their urls, as the repository `here` reaches them."""

    def __init__(self, here: Repository, remotes: Mapping[str, Repository]) -> None:
        self.here = here
        self.remotes = remotes

    def fetch(self, url: str, into_prefix: str, timeout: float) -> None:
        there = self.remotes[url]
        found = {}
        for name, oid in there.refs.items():
            heads = name.startswith("refs/heads/gitmem")
            if heads or (name.startswith("refs/gitmem/") and not name.startswith("refs/gitmem/remotes/")):
                found[into_prefix + name.removeprefix("refs/")] = oid
        if any(self.here.refs.get(name) != oid and self.here.is_locked(name) for name, oid in found.items()):
            raise RemoteError("cannot lock ref", code="offline")
        for oid in found.values():
            self.here.take(there, oid)
        for name in [*self.here.refs]:
            if name.startswith((into_prefix + "heads/gitmem", into_prefix + "gitmem/")):
                del self.here.refs[name]
        self.here.refs.update(found)

    def push(
        self, url: str, new: str, ref: str, expected: str | None, timeout: float
    ) -> Literal["pushed", "rejected"]:
        there = self.remotes[url]
        if expected is not None and not self.here.reaches(new, expected):
            raise StoreError(f"{new} does not contain {expected}", code="not-fast-forward")
        if there.refs.get(ref) != new:
            if there.refs.get(ref) != expected:
                return "rejected"
            there.take(self.here, new)
            there.refs[ref] = new
        return "pushed"

    def delete(self, url: str, refs: Mapping[str, str], timeout: float) -> None:
        there = self.remotes[url]
        for ref, oid in refs.items():
            if there.refs.get(ref) == oid:
                del there.refs[ref]

    def has_branches(self, url: str, timeout: float) -> bool:
        return any(name.startswith("refs/heads/") for name in self.remotes[url].refs)
