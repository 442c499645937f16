"""The network of one clone with a hand in it: what is asked is noted, and anything may happen before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from gitmem.errors import RemoteError
from gitmem.git.network import GitNetwork
from tests.clones import Clone

OUTBOX = "refs/gitmem/outbox/"
BRANCHES = "refs/heads/gitmem-outbox-"


class RecordedNetwork(GitNetwork):
    """Notes every call: `fetch`, `push <ref>`, `delete <how many>`, `look`."""

    def __init__(self, clone: Clone) -> None:
        super().__init__(clone.log.repo.common)
        self.calls: list[str] = []
        self.before: Callable[[str], None] = lambda call: None
        self.after: Callable[[str], None] = lambda call: None
        clone.log.network = self

    def fetch(self, url: str, into_prefix: str, timeout: float = 60.0) -> dict[str, tuple[str, str]]:
        self._say("fetch")
        found = super().fetch(url, into_prefix, timeout)
        self.after("fetch")
        return found

    def push(
        self,
        url: str,
        new: str,
        ref: str,
        expected: str | None,
        timeout: float = 60.0,
        *,
        force: bool = False,
        exclusive: bool = False,
        meanwhile: Callable[[], object] | None = None,
    ) -> Literal["pushed", "rejected"]:
        call = f"push {ref.replace(new, '*')}"
        self._say(call)
        done = super().push(
            url, new, ref, expected, timeout, force=force, exclusive=exclusive, meanwhile=meanwhile
        )
        self.after(call)
        return done

    def delete(self, url: str, refs: Mapping[str, str], timeout: float = 60.0) -> None:
        self._say(f"delete {len(refs)}")
        super().delete(url, refs, timeout)
        self.after("delete")

    def has_branches(self, url: str, timeout: float = 60.0) -> bool:
        self._say("look")
        return super().has_branches(url, timeout)

    def _say(self, call: str) -> None:
        self.calls.append(call)
        self.before(call)


def once(action: Callable[[], object], at: str) -> Callable[[str], None]:
    """Do it the first time that a call starts with `at`."""
    left = [action]

    def hook(call: str) -> None:
        if call.startswith(at) and left:
            left.pop()()

    return hook


def cut(at: str) -> Callable[[str], None]:
    """The connection breaks at the first such call: what the other side did is done, and we don't know it."""

    def fail() -> None:
        raise RemoteError("The remote could not be reached: it hung up.", code="offline")

    return once(fail, at)
