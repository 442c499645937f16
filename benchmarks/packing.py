"""The log's size on disk: packed at the end, and packed automatically while it grows."""

from __future__ import annotations

import gzip
import time

from gitmem.git import packs
from gitmem.log import ref

from . import workbench as workbenches
from .measure import Figure
from .workbench import Workbench

BURST_MAX = 5
GROUP = 4
MOST_BYTES = 600.0  # for a signal: 60 MB for 100,000


def bursts(workbench: Workbench) -> list[Figure]:
    """Measure a month of signals in one pack; the signals of one second are in one commit."""
    packed, lines = _packed(workbench, "bursts")
    base = len(gzip.compress(b"".join(line + b"\n" for line in sorted(lines)))) / 1e3
    return [Figure(_what(workbench), "their lines, gzipped together", packed, base, 6, "kB")]


def attested(workbench: Workbench) -> list[Figure]:
    """Measure the same month with attestations against one without."""
    (packed, _), (base, _) = (
        _packed(workbench, "attested"), _packed(workbench, "unattested", attests=False)
    )  # fmt: skip
    what = f"{_what(workbench)}, with their attestations"
    return [Figure(what, "the same without attestations", packed, base, 1.2, "kB")]


def _what(workbench: Workbench) -> str:
    count = workbench.size.packed
    return f"{count:,} signals in bursts of 1 to {BURST_MAX} a second, a commit for each burst, packed"


def _packed(workbench: Workbench, name: str, *, attests: bool = True) -> tuple[float, list[bytes]]:
    """Return the kilobytes of a month of signals in one pack, and their lines.

    Args:
        attests: Whether the committer attests them.
    """
    where = workbench.repository(name)
    caller = workbenches.start(where, "Caller")
    names = workbenches.NAMES[1:5]
    for each in names:
        workbenches.start(where, each)
    count = workbench.size.packed
    begin, dice = workbenches.now(), workbenches.dice(8)
    at, sent, commits = begin, 0, _commits(workbench, where)
    with workbenches.open_log(where, caller, now=lambda: at) as log:
        if not attests:
            log.store.log.sealer = None
        while sent < count:
            burst = min(dice.randint(1, BURST_MAX), count - sent)
            at = begin + 30 * workbenches.DAY * sent // count
            with log.batch():
                for _ in range(burst):
                    to = workbenches.identity(dice.choice(names))
                    log.signals.send(workbenches.message(dice), to=[to], wu=f"WU-{dice.randint(1, 400)}")
            sent += burst
            commits += 1
        lines = [body.encode() for (body,) in log.store.db().execute("SELECT body FROM line")]
    assert _commits(workbench, where) == commits, "a burst is not one commit"
    workbench.git(where, "reflog", "expire", "--expire=now", "--all")
    workbench.git(where, "repack", "-adfq")
    workbench.git(where, "prune-packed", "-q")
    return _counted(workbench, where)["size-pack"] * 1.024, lines


def kept_up(workbench: Workbench) -> list[Figure]:
    """Measure the log's objects after many signals, with one or several in each commit, without any gc."""
    count = workbench.size.packed
    found = []
    for group, at_most in ((1, None), (GROUP, 1)):
        size, most, packs, seconds, share = _grown(workbench, f"kept-up-{group}", count, group)
        how = "a commit each" if group == 1 else f"{group} in a commit, as when many write at once"
        what = f"objects on the disk, {count:,} signals, {how}; packed by itself"
        found.append(Figure(what, "600 bytes a signal", size / 1e3, count * MOST_BYTES / 1e3, at_most, "kB"))
        if group == 1:
            what = f"the same in packs at the end; {most} at most"
            found.append(Figure(what, "packs that git's gc waits for", packs, 50, None, "packs"))
            found.append(
                Figure("the same in time, for packing", "all the writing", share, seconds, None, "s")
            )
    return found


def _grown(workbench: Workbench, name: str, count: int, group: int) -> tuple[float, int, int, float, float]:
    """Send signals over the course of a month.

    Returns:
        The bytes of all objects, the greatest number of packs, the packs at the end, and the seconds of everything and
        of packing.
    """
    where = workbench.repository(name)
    caller = workbenches.start(where, "Caller")
    names = workbenches.NAMES[1:5]
    for each in names:
        workbenches.start(where, each)
    begin, dice = workbenches.now(), workbenches.dice(8)
    at, most, spent = begin, 0, 0.0
    began = time.perf_counter()
    with workbenches.open_log(where, caller, now=lambda: at) as log:
        unite = packs.combine

        def timed(common: str) -> int:
            nonlocal most, spent
            most = max(most, len(packs.own_packs(common)))
            before = time.perf_counter()
            done = unite(common)
            spent += time.perf_counter() - before
            return done

        packs.combine = timed
        for number in range(0, count, group):
            at = begin + 30 * workbenches.DAY * number // count
            with log.batch():
                for _ in range(group):
                    to = workbenches.identity(dice.choice(names))
                    log.signals.send(workbenches.message(dice), to=[to], wu=f"WU-{dice.randint(1, 400)}")
        took = time.perf_counter() - began
        packs.combine = unite
    workbench.git(where, "fsck", "--no-dangling", "--no-progress")
    after = _counted(workbench, where)
    return (after["size"] + after["size-pack"]) * 1024.0, most, after["packs"], took, spent


def _counted(workbench: Workbench, where: str) -> dict[str, int]:
    rows = (row.split(": ") for row in workbench.git(where, "count-objects", "-v").splitlines())
    return {key: int(value) for key, value in rows}


def _commits(workbench: Workbench, where: str) -> int:
    return int(workbench.git(where, "rev-list", "--count", ref.LOG_REF))
