"""The network in memory, as `gitmem.git.network` describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from gitmem.errors import RemoteError, StoreError

from .memory import Repository


class MemoryNetwork:
    """Remotes in memory, by their urls, as the repository `here` reaches them."""

    def __init__(self, here: Repository, remotes: Mapping[str, Repository]) -> None:
        self.here = here
        self.remotes = remotes

    def fetch(self, url: str, into_prefix: str, timeout: float) -> dict[str, tuple[str, str]]:
        there = self.remotes[url]
        found = {}
        for name, oid in there.refs.items():
            heads = name.startswith("refs/heads/gitmem")
            if heads or (name.startswith("refs/gitmem/") and not name.startswith("refs/gitmem/remotes/")):
                found[into_prefix + name.removeprefix("refs/")] = oid
        for oid in found.values():
            self.here.take(there, oid)
        for name in [*self.here.refs]:
            if name.startswith((into_prefix + "heads/gitmem", into_prefix + "gitmem/")) and name not in found:
                del self.here.refs[name]
        # As git does it: what is locked stays as it was, the rest is brought, and then it says that it failed.
        locked = {
            name
            for name, oid in found.items()
            if self.here.refs.get(name) != oid and self.here.is_locked(name)
        }
        self.here.refs.update((name, oid) for name, oid in found.items() if name not in locked)
        if locked:
            raise RemoteError("cannot lock ref", code="offline")
        return {}

    def push(
        self,
        url: str,
        new: str,
        ref: str,
        expected: str | None,
        timeout: float,
        *,
        force: bool = False,
        meanwhile: Callable[[], object] | None = None,
    ) -> Literal["pushed", "rejected"]:
        if meanwhile is not None:
            meanwhile()
        there = self.remotes[url]
        if expected is not None and not force and not self.here.reaches(new, expected):
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
        names = [name for name in self.remotes[url].refs if name.startswith("refs/heads/")]
        return any(
            name != "refs/heads/gitmem" and not name.startswith("refs/heads/gitmem-outbox-") for name in names
        )
