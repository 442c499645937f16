"""The port and the network of a simulated process: each call is a step, and may go wrong as the weather says."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from gitmem.errors import RemoteError
from gitmem.git import plumbing
from gitmem.git.network import GitNetwork
from gitmem.git.objects import Draft, TreeEntry
from gitmem.git.port import Git
from gitmem.log import ref as names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitmem.git.objects import Move

    from .scheduler import Scheduler
    from .world import Clone, World

T = TypeVar("T")


@contextmanager
def inside(turns: Scheduler) -> Iterator[None]:
    """What happens in here are no steps."""
    process = turns.mine()
    process.inside += 1
    try:
        yield
    finally:
        process.inside -= 1


def short(value: object) -> str:
    """A value as a trace has it."""
    if isinstance(value, list):
        return f"[{' '.join(map(short, value))}]"
    text = str(value)
    return text[:12] if len(text) == 40 else text


class SteppingGit:
    """The port, where whatever others could notice is a step before it is done, and one after it."""

    def __init__(self, git: Git, turns: Scheduler, clone: Clone) -> None:
        self._git = git
        self._turns = turns
        self._clone = clone

    def __getattr__(self, name: str) -> Any:
        """Reading what never changes, or what is nobody's business, is no step."""
        method = getattr(self._git, name)

        def call(*args: Any, **options: Any) -> Any:
            with inside(self._turns):
                return method(*args, **options)

        return call

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """In the order of names: the contract leaves that open, and rows of the index are numbered by it."""
        with inside(self._turns):
            return dict(sorted(self._git.tree(oid).items()))

    def tip(self, ref: str) -> str | None:
        self._turns.step(f"tip {ref}")
        with inside(self._turns):
            return self._git.tip(ref)

    def refs(self, prefix: str) -> dict[str, str]:
        self._turns.step(f"refs {prefix}")
        with inside(self._turns):
            return self._git.refs(prefix)

    def write(self, drafts: Sequence[Draft], onto: str | None) -> list[str]:
        return self._change(f"write {len(drafts)} on {short(onto)}", lambda: self._git.write(drafts, onto))

    def swap(self, ref: str, old: str | None, new: str, why: str, also: Sequence[Move] = ()) -> bool:
        what = f"swap {ref} {short(old)} {short(new)} {len(also)}"
        return self._change(what, lambda: self._git.swap(ref, old, new, why, also))

    def advance(self, ref: str, old: str, draft: Draft, why: str) -> str | None:
        return self._change(f"advance {ref} {short(old)}", lambda: self._git.advance(ref, old, draft, why))

    def break_stale_lock(self, ref: str, age_seconds: float) -> bool:
        return self._change(f"break {ref}", lambda: self._git.break_stale_lock(ref, age_seconds))

    def _change(self, what: str, act: Callable[[], T]) -> T:
        self._turns.step(what)
        try:
            if self._turns.mine().is_confined:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            self._clone.disk.refuse()
        except OSError as error:
            raise plumbing.failed("Objects could not be written", error, "") from error
        with inside(self._turns):
            result = act()
        self._turns.step(f"= {short(result)}")
        return result


class SteppingNetwork:
    """The network: slow, sometimes away, sometimes without an answer, and with rules of its own."""

    def __init__(self, network: GitNetwork, turns: Scheduler, clone: Clone, world: World) -> None:
        self._network = network
        self._turns = turns
        self._clone = clone
        self._world = world

    def fetch(self, url: str, into_prefix: str, timeout: float) -> Mapping[str, tuple[str, str]] | None:
        if self._turns.mine().is_confined:
            raise self._offline("our copies of its refs can't be written")
        return self._reach("fetch", timeout, lambda: self._network.fetch(url, into_prefix, timeout))

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
        def act() -> Literal["pushed", "rejected"]:
            if self._draw("raced"):
                return "rejected"  # another push holds the server's lock on the ref
            before = self._world.hub.tip(ref)
            done = self._network.push(url, new, ref, expected, timeout, force=force)
            if not force:
                self._world.pushed(ref, before)
            return done

        if meanwhile is not None:
            meanwhile()
        self._refuse([ref], deletes=False)
        return self._reach(f"push {ref} {short(expected)} {short(new)}", timeout, act)

    def delete(self, url: str, refs: Mapping[str, str], timeout: float) -> None:
        def act() -> None:
            self._network.delete(url, refs, timeout)
            self._world.pushed(names.BRANCH, None)

        self._refuse(refs, deletes=True)
        self._reach(f"delete {' '.join(sorted(refs))}", timeout, act)

    def has_branches(self, url: str, timeout: float) -> bool:
        return self._reach("has branches", timeout, lambda: self._network.has_branches(url, timeout))

    def _reach(self, what: str, timeout: float, act: Callable[[], T]) -> T:
        """One call: the way there, what the server does, and the way back."""
        self._turns.step(what)
        self._travel(timeout)
        if self._draw("lost_request"):
            raise self._offline("the connection was reset")
        self._turns.step("arrives")
        with inside(self._turns):
            result = act()
        self._turns.step(f"= {short(result)}")
        self._travel(timeout)
        if self._draw("lost_reply"):
            raise self._offline("the connection was reset")
        return result

    def _travel(self, timeout: float) -> None:
        if self._clone.is_offline or self._world.is_away:
            raise self._offline("there is no way to it")
        weather = self._world.weather
        seconds = weather.latency * (0.5 + self._turns.random.random())
        if self._draw("hangs"):
            seconds = timeout
        self._turns.sleep(min(seconds, timeout))
        if seconds >= timeout:
            raise self._offline(f"no answer within {timeout:g} seconds")

    def _refuse(self, refs: Iterable[str], *, deletes: bool) -> None:
        """What this host never takes: deletions, or names that are no branches."""
        weather = self._world.weather
        if deletes and weather.refuses_deletes:
            raise RemoteError("The remote refused the push: deletion prohibited", code="refused")
        if weather.refuses_customs and any(not ref.startswith("refs/heads/") for ref in refs):
            raise RemoteError("The remote refused the push: only branches are allowed", code="refused")

    def _draw(self, fault: str) -> bool:
        chance: float = getattr(self._world.weather, fault)
        return chance > 0 and self._turns.random.random() < chance

    def _offline(self, why: str) -> RemoteError:
        return RemoteError(f"The remote could not be reached: {why}.", code="offline")
