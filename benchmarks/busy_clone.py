"""One of many clones of one remote that write at once. It reads commands from standard input, one a line.

It prints `ready` at its start. `meet` syncs. `go TIME` sends signals from that time on, at the clone's own intervals,
and prints how long each took to reach the remote. `heal` syncs again, without the delay.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

from gitmem.log import ref

from . import workbench

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal

    from gitmem.api.log import Log
    from gitmem.git.network import GitNetwork as Network

GIVE_UP_SECONDS = 120.0
SAFE = ("synced", "up-to-date")


class SlowNetwork:
    """A network that waits before each command, and records when each commit arrived."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.delay = 0.0
        self.arrived: list[tuple[float, str]] = []  # monotonic time of git's answer, and the commit
        self.asked = {"fetch": 0, "push": 0, "rejected": 0, "delete": 0}

    def fetch(self, url: str, into_prefix: str, timeout: float) -> Mapping[str, tuple[str, str]] | None:
        """See `GitNetwork.fetch`."""
        self._wait("fetch")
        return self.network.fetch(url, into_prefix, timeout)

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
        """See `GitNetwork.push`."""
        self._wait("push")
        found = self.network.push(url, new, ref, expected, timeout, force=force, meanwhile=meanwhile)
        if found == "pushed":
            self.arrived.append((time.monotonic(), new))
        else:
            self.asked["rejected"] += 1
        return found

    def delete(self, url: str, refs: Mapping[str, str], timeout: float) -> None:
        """See `GitNetwork.delete`."""
        self._wait("delete")
        self.network.delete(url, refs, timeout)

    def has_branches(self, url: str, timeout: float) -> bool:
        """See `GitNetwork.has_branches`."""
        time.sleep(self.delay)
        return self.network.has_branches(url, timeout)

    def _wait(self, what: str) -> None:
        self.asked[what] += 1
        time.sleep(self.delay)


class Clone:
    """A clone that sends signals and syncs."""

    def __init__(self, log: Log, number: int, delay: float) -> None:
        self.log = log
        self.number = number
        self.delay = delay
        self.network = SlowNetwork(log.store.log.network)
        log.store.log.given_network = self.network  # type: ignore[assignment]  # it passes calls on
        # When each signal was due, when it was sent, and its id.
        self.sent: list[tuple[float, float, str]] = []

    def sync(self) -> bool:
        """Sync; return whether all local lines are on the remote now."""
        (remote,) = self.log.sync(publish=True).remotes
        return remote.state in SAFE

    def push_own(self) -> bool:
        """Do the floor's work: push to a ref that no other clone writes."""
        time.sleep(self.delay)
        tip = self.log.store.git.tip(ref.LOG_REF)
        own = f"{ref.LOG_REF}:refs/heads/own-{self.number}"
        subprocess.run(
            ["git", "push", "--quiet", "origin", own], cwd=self.log.store.repo.worktree, check=True
        )
        self.network.arrived.append((time.monotonic(), str(tip)))
        return True

    def run(self, start: float, count: int, gap: float, publish: Callable[[], bool]) -> None:
        """Send signals, each at its due time, or after a sync that still runs then; sync after each.

        Args:
            start: The monotonic time of the start.
            count: The number of signals.
            gap: The mean of the seconds between two due times.
            publish: Syncs; returns whether all lines are on the remote.

        Raises:
            RuntimeError: The signals could not be published in time.
        """
        dice = random.Random(self.number)
        at = start + gap * dice.random()
        due = []
        for _ in range(count):
            due.append(at)
            at += gap * dice.uniform(0.5, 1.5)
        done, safe = 0, True
        while done < count or not safe:
            if done < count and due[done] > time.monotonic() and safe:
                time.sleep(due[done] - time.monotonic())
            while done < count and due[done] <= time.monotonic():
                text = f"Clone {self.number} has looked at the parser, part {done} of {count}."
                began = time.monotonic()
                signal = self.log.signals.send(text).signal
                self.sent.append((due[done], began, str(signal["signal_id"])))
                done += 1
            safe = publish()
            if time.monotonic() > due[-1] + GIVE_UP_SECONDS:
                raise RuntimeError(f"clone {self.number} could not publish its signals")

    def waits(self) -> list[tuple[float, float]]:
        """Return the seconds until the first push that contained each signal, from its send and from its due time."""
        found = []
        for due, began, signal in self.sent:
            there = next(
                at for at, commit in self.network.arrived if at > began and self._has(commit, signal)
            )
            found.append((there - began, there - due))
        return found

    def _has(self, commit: str, signal: str) -> bool:
        look = ["git", "grep", "--quiet", "-F", signal, commit, "--", "signals"]
        return subprocess.run(look, cwd=self.log.store.repo.worktree, check=False).returncode == 0


def main() -> None:
    """Obey the commands on standard input."""
    kind, where, session, number, count, gap, delay = sys.argv[1:]
    clone = Clone(workbench.open_log(where, session), int(number), float(delay))
    clone.log.inbox(mark=False)  # open the index and import everything before the start
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        answer: object = None
        if word == "meet":
            while not clone.sync():
                pass
        elif word == "go":
            clone.network.delay = clone.delay
            publish = clone.sync if kind == "shared" else clone.push_own
            clone.run(float(rest[0]), int(count), float(gap), publish)
            answer = {"waits": clone.waits(), "asked": clone.network.asked}
        elif word == "heal":
            clone.network.delay = 0.0
            clone.sync()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
