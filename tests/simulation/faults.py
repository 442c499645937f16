"""What goes wrong in a run, drawn from its seed: how the network is, who dies when, and what people do by hand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from gitmem.git.objects import Draft, Signature
from gitmem.git.port import Git
from gitmem.log import ref

from .scheduler import Process
from .world import SECOND, Clone, World, state_of

PERSON = Signature("Somebody", "somebody@example.org", 1_795_000_000)


class Faults:
    """How likely each fault is. A seed has some kinds of fault often and others never: so rare ones meet."""

    def __init__(self, random: Random) -> None:
        def sometimes(often: float, chance: float) -> float:
            return random.random() * chance if random.random() < often else 0.0

        self.latency = random.choice([0.02, 0.2, 1.0])
        self.lost_request = sometimes(0.3, 0.1)
        self.lost_reply = sometimes(0.5, 0.2)
        self.hangs = sometimes(0.2, 0.1)
        self.raced = sometimes(0.5, 0.4)
        self.refuses_deletes = random.random() < 0.07
        self.refuses_customs = random.random() < 0.1
        self.killed = sometimes(0.7, 0.5)
        self.stopped = sometimes(0.4, 0.3)
        self.confined = sometimes(0.25, 0.3)
        self.io_errors = sometimes(0.3, 0.06)
        self.has_no_locks = random.random() < 0.1
        self.commit_after = random.choice([0.0, 0.3, 1.0, 1.0])  # seconds; 0 where each command commits
        self.events = {
            name: random.randrange(1, 4) if random.random() < often else 0 for name, often in EVENTS.items()
        }


class Hand:
    """What people, laptops and the power supply do in a run."""

    def __init__(self, world: World, random: Random) -> None:
        self.world = world
        self.random = random
        self.until = 0

    def schedule(self, until: int) -> None:
        self.until = until
        for name, times in self.world.weather.events.items():
            act = getattr(self, name)
            for _ in range(times):
                self.world.turns.at(self.random.randrange(until), self._noted(name, act))

    def doom(self, process: Process) -> None:
        """Draw whether and where a process is killed or stopped."""
        weather = self.world.weather
        if self.random.random() < weather.killed:
            process.kill_at = 1 + int(self.random.expovariate(1 / 30))
        process.is_confined = self.random.random() < weather.confined
        if self.random.random() < weather.stopped:
            process.stop_at = 1 + int(self.random.expovariate(1 / 30))
            process.stop_micros = int(self.random.choice([0.2, 2, 12, 40]) * SECOND)

    def _noted(self, name: str, act: Callable[[], str]) -> Callable[[], None]:
        def call() -> None:
            done = act()
            if done:
                self.world.turns.note(f"{name}: {done}")

        return call

    def _clone(self) -> Clone:
        return self.random.choice(self.world.clones)

    def _for_a_while(self, end: Callable[[], None]) -> None:
        self.world.turns.at(self.world.turns.now + int(self.random.random() * self.until / 5), end)

    # On the remote.

    def rewind(self) -> str:
        """Somebody forces the branch back by some commits, or deletes it."""
        hub = self.world.hub
        tip = hub.tip(ref.BRANCH)
        if tip is None:
            return ""
        self.world.tamper()
        line = hub.history(tip)
        if len(line) < 4 or self.random.random() < 0.2:
            self.world.places.delete_on_hub(ref.BRANCH)
            return "deleted"
        older = line[-2 - self.random.randrange(min(len(line) - 2, 6))]
        assert hub.swap(ref.BRANCH, tip, older, "rewind")
        return older[:12]

    def delete_lines(self) -> str:
        """Somebody edits a file on the remote: some lines go."""
        return self._commit_by_hand(lambda lines: [line for line in lines if self.random.random() < 0.5])

    def mangle_lines(self) -> str:
        """Somebody's editor leaves CRLF, another order, repeats and a line that is none."""
        return self._commit_by_hand(
            lambda lines: [*(line + b"\r" for line in lines[::-1]), *lines[:2], b"<<<<<<< HEAD"]
        )

    def delete_files(self) -> str:
        return self._commit_by_hand(lambda lines: [])

    def _commit_by_hand(self, edit: Callable[[list[bytes]], list[bytes]]) -> str:
        hub = self.world.hub
        tip = hub.tip(ref.BRANCH)
        if tip != self.world.last_good(ref.BRANCH):
            return ""  # what an adversary left there is not edited by hand
        paths = segments(hub, hub.commit(tip).tree) if tip is not None else []
        if tip is None or not paths:
            return ""
        path, oid = self.random.choice(paths)
        lines = edit(hub.blob(oid).split(b"\n")[:-1])
        content = b"\n".join([*lines, b""]) if lines else None
        (new,) = hub.write([Draft({path: content}, PERSON, PERSON, "Tidy up\n")], tip)
        assert hub.swap(ref.BRANCH, tip, new, "by hand")
        self.world.tamper()
        return f"{new[:12]} {path}"

    def delete_outboxes(self) -> str:
        names = [name for name in sorted(self.world.outboxes()) if self.random.random() < 0.6]
        for name in names:
            self.world.places.delete_on_hub(name)
        if names:
            self.world.tamper()
        return " ".join(names)

    def outage(self) -> str:
        """The remote is away for a while."""
        self.world.is_away = True

        def end() -> None:
            self.world.is_away = False

        self._for_a_while(end)
        return "begins"

    # In clones.

    def offline(self) -> str:
        clone = self._clone()
        clone.is_offline = True

        def end() -> None:
            clone.is_offline = False

        self._for_a_while(end)
        return clone.name

    def full_disk(self) -> str:
        clone = self._clone()
        clone.disk.is_full = True

        def end() -> None:
            clone.disk.is_full = False

        self._for_a_while(end)
        return clone.name

    def no_locks(self) -> str:
        """A network file system whose locks are out of order: everybody has them."""
        clone = self._clone()
        clone.cannot_lock = True

        def end() -> None:
            clone.cannot_lock = self.world.weather.has_no_locks

        self._for_a_while(end)
        return clone.name

    def clock_jump(self) -> str:
        clone = self._clone()
        clone.skew += int(
            self.random.choice([-1, 1]) * self.random.choice([0.5, 30, 90, 4_000, 90_000]) * SECOND
        )
        return f"{clone.name} {clone.skew}"

    def power_cut(self) -> str:
        clone = self._clone()
        for process in clone.alive:
            self.world.turns.kill(process)
        clone.disk.cut()
        return clone.name

    def stolen_lock(self) -> str:
        """Somebody removes our lock's file: two may lead."""
        clone = self._clone()
        try:
            import os

            os.unlink(state_of(clone, "lock"))
        except OSError:
            return ""
        return clone.name

    def stale_lock(self) -> str:
        """A git that was killed left its lock on one of our refs."""
        clone = self._clone()
        names = [ref.LOG_REF, ref.PUBLISHED_REF, f"{ref.REMOTES_PREFIX}origin/heads/gitmem"]
        name = self.random.choice(names)
        self.world.places.lock(clone.name, name, clone.now() / 1_000_000)
        return f"{clone.name} {name}"

    def fetch_by_hand(self) -> str:
        clone = self._clone()
        if any(each.inside for each in clone.alive):
            return ""
        self.world.places.fetch_by_hand(clone.name)
        return clone.name

    def copied_clone(self) -> str:
        if len(self.world.clones) > 6:
            return ""
        source = self._clone()
        copy = self.world.copy_clone(source, f"{source.name}{len(self.world.clones)}")
        return f"{source.name} {copy.name}"

    def lost_index(self) -> str:
        clone = self._clone()
        if clone.alive:
            return ""
        for path in sorted((clone.root / ".git" / "gitmem").glob("index-*")):
            path.unlink()
        return clone.name


EVENTS = {
    "rewind": 0.3, "delete_lines": 0.3, "mangle_lines": 0.2, "delete_files": 0.2, "delete_outboxes": 0.3, "outage": 0.3,
    "offline": 0.4, "full_disk": 0.3, "no_locks": 0.2, "clock_jump": 0.4, "power_cut": 0.4, "stolen_lock": 0.3,
    "stale_lock": 0.3, "fetch_by_hand": 0.3, "copied_clone": 0.25, "lost_index": 0.3,
}  # fmt: skip


def segments(git: Git, tree: str, path: str = "") -> list[tuple[str, str]]:
    """Path and id of every segment below a tree."""
    found = []
    for name, entry in sorted(git.tree(tree).items()):
        if entry.is_tree and name != "projects":
            found += segments(git, entry.oid, f"{path}{name}/")
        elif name.endswith(".jsonl"):
            found.append((path + name, entry.oid))
    return found
