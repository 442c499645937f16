"""The world of a run: clones, one remote, what was acknowledged, and who acts in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from gitmem import records, repo, views
from gitmem.errors import GitmemError
from gitmem.git.port import Git
from gitmem.index import index_file
from gitmem.log import ref
from gitmem.log.lines import CommitMessage, LogEntry, reduced
from gitmem.log.local_log import Appended
from gitmem.open_store import DOMAIN
from gitmem.store import Store
from tests.signing import key_of, own_key

from .disk import Disk
from .memory import MemoryConfig
from .scheduler import Process, Scheduler
from .stepping import SteppingGit, SteppingNetwork
from .storage import Storage

if TYPE_CHECKING:
    from gitmem.log.local_log import Sealer

    from .faults import Faults, Hand
    from .quorum import Said

BEGINNING = 1_795_000_000_000_000  # microseconds: in November 2026
SECOND = 1_000_000
UNKNOWN = "wal-unknown"  # the error of a write of which nobody can say whether it counts


class Clone:
    """One clone. `has` are the lines that were acknowledged in it, and must be seen in it from then on."""

    def __init__(self, world: World, name: str, root: Path) -> None:
        self.world = world
        self.name = name
        self.root = root
        self.repo = repo.find(str(root))
        self.key = key_of(Random(f"{world.seed} key {name}").randbytes(32))
        own_key(root, self.key)
        (root / "tmp").mkdir(exist_ok=True)  # where a sandbox may write; it is older than the run
        self.disk = Disk(str(root), Random(f"{world.seed} disk {name}"))
        self.skew = 0
        self.is_offline = False
        self.cannot_lock = False
        self.has: dict[bytes, None] = {}
        self.sessions: dict[str, str] = {}  # agent → its session
        self.processes: list[Process] = []

    def now(self) -> int:
        """What its clock says: microseconds since the epoch."""
        return BEGINNING + self.world.turns.now + self.skew

    def owns(self, path: object) -> bool:
        """Whether a path is in its git folder."""
        return isinstance(path, str) and path.startswith(self.repo.common)

    def on_disk(self, path: str) -> Disk | None:
        """Its disk, for a file of gitmem's: in the git folder, or in a write-ahead log elsewhere."""
        is_ours = path.startswith((self.repo.state, str(self.root / "tmp"))) or path == self.repo.common
        return self.disk if is_ours else None

    @property
    def alive(self) -> list[Process]:
        return [each for each in self.processes if not each.is_dead and not each.has_ended and each.ident]


class WatchedSealer:
    """A sealer that notes the attestations that it makes."""

    def __init__(self, world: World, sealer: Sealer) -> None:
        self.world = world
        self.sealer = sealer

    def lacks(self, writer: str) -> bool:
        return self.sealer.lacks(writer)

    def seal(self, entries: Sequence[LogEntry], content_at: Callable[[str], bytes]) -> list[LogEntry]:
        sealed = self.sealer.seal(entries, content_at)
        self.world.begun.update(dict.fromkeys(line for entry in sealed for _, line in entry.lines))
        return sealed


class WatchedStore(Store):
    """A store that notes what it acknowledged, what it reported as failed, and how it attested lines."""

    def __init__(self, clone: Clone, process: Process, git: Git, network: Any) -> None:
        self.clone = clone
        elsewhere = [str(clone.root / "tmp" / "gitmem-0" / "project")]
        random = process.random.randbytes
        super().__init__(
            clone.repo, git, DOMAIN, machine="sim", now=clone.now, random=random, wal_elsewhere=elsewhere,
            commit_after=clone.world.weather.commit_after, config=MemoryConfig(clone.repo.common, clone.repo.state),
        )  # fmt: skip
        if process.is_confined:
            self.log.make_state = lambda: False  # type: ignore[method-assign]
            self._index = index_file.open_copy(clone.repo, "sim", views.VIEWS, records.read)
        self.log._network = network
        self.log.committer = (clone.name, f"{clone.name}@example.org")

    def _sealer(self) -> Sealer:
        return WatchedSealer(self.clone.world, super()._sealer())

    def record(
        self, lines: Sequence[tuple[str, bytes]], story: CommitMessage, *, deferred: bool = False
    ) -> Appended:
        world, said = self.clone.world, [line for _, line in lines]
        world.begun.update(dict.fromkeys(said))
        try:
            appended = super().record(lines, story, deferred=deferred)
        except GitmemError as error:
            if error.code != UNKNOWN:
                world.failed.update(dict.fromkeys(said))
            world.turns.note(f"failed: {error.code}")
            raise
        world.acknowledged.update(dict.fromkeys(said))
        self.clone.has.update(dict.fromkeys(said))
        world.turns.note(f"recorded {appended.commit or 'in the write-ahead log'}")
        return appended


class World:
    """Clones and a remote.

    Attributes:
        begun: Every line that somebody began to record, and every attestation that a clone made.
        failed: Those that were reported as failed; unless they are in `loose` they may be nowhere.
        loose: Lines that were on their way when a clone was copied: who voided them voided them there.
        forgetful: Whether texts are forgotten, and the log is written anew.
        voting: Whether agents propose with need and veto; `yes` is where somebody was told that they agreed.
        safe: Lines of which a sync has said since the last tampering that the remote has them.
        tampered: How often somebody changed the remote by hand.
        forged: Every line that an adversary pushed, whoever wrote it first.
        stranger: The writer that an adversary is; "" without one.
        hostile: The commits that an adversary pushed.
        bad: Those of them that nobody may take in.
        newer: Those of the bad ones that say they need a newer gitmem, which this one does not repair.
        cpu_seconds: The most CPU time that one deed took.
    """

    def __init__(self, seed: int, turns: Scheduler, places: Storage) -> None:
        self.seed = seed
        self.turns = turns
        self.places = places
        self.hub = places.hub()
        self.weather: Faults = None  # type: ignore[assignment]
        self.hand: Hand = None  # type: ignore[assignment]
        self.clones: list[Clone] = []
        self.begun: dict[bytes, None] = {}
        self.acknowledged: dict[bytes, None] = {}
        self.failed: dict[bytes, None] = {}
        self.loose: dict[bytes, None] = {}
        self.safe: dict[bytes, None] = {}
        self.outcomes: list[str] = []
        self.wrong: list[str] = []
        self.is_away = False
        self.tampered = 0
        self.forged: dict[bytes, None] = {}
        self.stranger = ""
        self.hostile: set[str] = set()
        self.bad: set[str] = set()
        self.newer: set[str] = set()
        self.forgetful = False
        self.voting = False
        self.yes: list[Said] = []
        self.cpu_seconds = 0.0
        self._lines: dict[str, frozenset[bytes]] = {}

    def add_clone(self, name: str) -> Clone:
        clone = Clone(self, name, self.places.clone(name))
        self.clones.append(clone)
        return clone

    def copy_clone(self, source: Clone, name: str) -> Clone:
        """`cp -r` of a clone with all that is in its git folder, at one instant."""
        shutil.copytree(source.root, self.places.root / name, symlinks=True)
        self.places.copied(source.name, name)
        clone = Clone(self, name, self.places.root / name)
        clone.skew, clone.cannot_lock = source.skew, source.cannot_lock
        clone.disk.errors = source.disk.errors
        clone.has = dict(source.has)
        clone.sessions = dict(source.sessions)
        self.loose.update(self.begun)
        self.clones.append(clone)
        return clone

    def open(self, clone: Clone, process: Process) -> WatchedStore:
        """A store as one process of that clone has it."""
        git: Any = SteppingGit(self.places.port(clone.name), self.turns, clone)
        network = SteppingNetwork(self.places.network(clone.name), self.turns, clone, self)
        return WatchedStore(clone, process, git, network)

    def pushed(self, name: str, before: str | None) -> None:
        """The remote took a push or a deletion: its branch only grew, and it still has all that was safe there."""
        at = self.hub.tip(name)
        if (
            before is not None
            and at is not None
            and not self.hub.contains(at, before)
            and not self._is_anew(at, before)
        ):
            self.wrong.append(f"a push took {before[:12]} off {name}")
        there = self.on_remote()
        for line in [line for line in self.safe if not self.has(line, there)]:
            self.wrong.append(f"{self.turns.mine().name} took this off the remote: {line[:160]!r}")
            del self.safe[line]

    def _is_anew(self, at: str, before: str) -> bool:
        form, old = (
            ref.read_format(self.hub, self.hub.tree(self.hub.commit(oid).tree)) for oid in (at, before)
        )
        return self.forgetful and form is not None and old is not None and form.epoch == old.epoch + 1

    def has(self, line: bytes, there: Container[bytes]) -> bool:
        """Whether a line is there, perhaps without its text."""
        return line in there or (self.forgetful and reduced(line) in there)

    def tamper(self) -> None:
        """Somebody changes the remote by hand: what was safe there may not be now."""
        self.tampered += 1
        self.safe.clear()

    def on_remote(self) -> set[bytes]:
        """Every line that the remote has, wherever, and whatever line ends an editor gave it."""
        tips = {
            oid
            for prefix in ("refs/heads/", "refs/gitmem/")
            for name, oid in self.hub.refs(prefix).items()
            if "gitmem" in name and oid not in self.bad
        }
        found: set[bytes] = set()
        for oid in tips:
            found.update(line.rstrip(b"\r") for line in self.lines(self.hub, self.hub.commit(oid).tree))
        return found

    def lines(self, git: Git, tree: str) -> frozenset[bytes]:
        """The lines below a tree, each once."""
        if tree not in self._lines:
            found: set[bytes] = set()
            for name, entry in git.tree(tree).items():
                if entry.is_tree and name != "projects":
                    found |= self.lines(git, entry.oid)
                elif name.endswith(".jsonl"):
                    found.update(git.blob(entry.oid).split(b"\n"))
            self._lines[tree] = frozenset(found - {b""})
        return self._lines[tree]

    def last_good(self, name: str) -> str | None:
        """The last commit of a ref of the remote whose tree is not bad; None where there is none."""
        tip = self.hub.tip(name)
        line = self.hub.history(tip) if tip is not None else []
        return next((oid for oid in reversed(line) if oid not in self.bad), None)

    def outboxes(self) -> dict[str, str]:
        found = {**self.hub.refs("refs/gitmem/"), **self.hub.refs("refs/heads/")}
        return {name: oid for name, oid in found.items() if "outbox" in name}

    def local_tip(self, clone: Clone) -> str | None:
        return self.places.port(clone.name).tip(ref.LOG_REF)

    def committed(self, clone: Clone) -> list[bytes]:
        """What was acknowledged in a clone and is in its log: the rest waits in a write-ahead log."""
        tip = self.local_tip(clone)
        if tip is None:
            return []
        git = self.places.port(clone.name)
        there = self.lines(git, git.commit(tip).tree)
        return [line for line in clone.has if self.has(line, there)]

    def close(self) -> None:
        self.places.close()
        for clone in self.clones:
            shutil.rmtree(clone.root, ignore_errors=True)
        shutil.rmtree(self.places.root, ignore_errors=True)


def state_of(clone: Clone, *names: str) -> str:
    return os.path.join(clone.repo.state, *names)
