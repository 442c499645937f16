"""Syncs: with nothing new, and after a long separation."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import islice

from gitmem.log import ref

from . import workbench as workbenches
from .measure import Figure, in_turn
from .workbench import Workbench

PERSON = "human:person@example.org"
ROUNDS = 5
PORTIONS = (None, 900, 90, 1)  # numbers of commits for the lines; None: one for each signal, about 4,500
KEPT = "refs/heads/kept"


def nothing(workbench: Workbench) -> list[Figure]:
    """Measure `gitmem sync` without changes on either side, against git's fetch of that branch."""
    first, where, hub = met(workbench, "sync-nothing")
    workbenches.publish(first, workbenches.history(workbench.size.few))
    _push(workbench, first)
    environment = workbench.environment
    _run([workbench.program("gitmem"), "sync"], where, environment)
    sync = _wall_of([workbench.program("gitmem"), "sync"], where, environment)
    fetch = _wall_of(["git", "fetch", "--quiet", "origin", "gitmem"], where, environment)
    got, base = in_turn(workbench.size.rounds, sync, fetch, warm=2)
    assert workbench.git(hub, "rev-parse", ref.BRANCH) == workbench.git(where, "rev-parse", ref.LOG_REF)
    return [Figure("`gitmem sync` with nothing new, wall", "`git fetch origin gitmem`", got, base, 2, "ms")]


def apart(workbench: Workbench) -> list[Figure]:
    """Measure a clone and a remote that each have many lines which the other lacks."""
    lines = workbench.size.bulk
    clones = met(workbench, "apart")
    found = []
    for commits in PORTIONS:
        how = "a commit for each signal" if commits is None else f"in {commits} commit{'s' * (commits > 1)}"
        got, base = _apart(workbench, clones, f"apart-{commits}", lines, commits)
        what = f"`gitmem sync` with {lines:,} lines each way, {how}, wall"
        found.append(Figure(what, "`git fetch` + `git push` of the same commits", got, base, 2, "ms"))
    return found


def _apart(
    workbench: Workbench, met: tuple[str, str, str], name: str, count: int, commits: int | None
) -> tuple[float, float]:
    first, where, hub = (f"{workbench.folder}/{name}-{each}" for each in ("first", "second", "hub.git"))
    for each, copy in zip(met, (first, where, hub), strict=True):
        shutil.copytree(each, copy)
    for seed, each in enumerate((first, where), start=1):
        workbench.git(each, "remote", "set-url", "origin", hub)
        _record(workbench, each, count, commits, seed)
    _push(workbench, first)
    with workbenches.open_log(where, PERSON) as log:
        log.store.db()  # the local lines are in the index already
    ours, theirs = [], []
    for number in range(min(ROUNDS, workbench.size.rounds)):
        pair = [os.path.join(workbench.folder, f"{name}-{number}-{each}") for each in ("ours", "floor")]
        for each in pair:
            shutil.copytree(hub, each + ".git")
            shutil.copytree(where, each)
            workbench.git(each, "remote", "set-url", "origin", each + ".git")
        one, other = pair
        program = workbench.program("gitmem")
        _run([program, "whoami", "--as", PERSON], one, workbench.environment)  # detects that it is a copy
        ours.append(_wall_of([program, "sync", "--publish"], one, workbench.environment)())
        fetch = ["git", "fetch", "--quiet", "origin", f"gitmem:{KEPT}"]
        took = _wall_of(fetch, other, workbench.environment)()
        _copy_objects(one, other)
        tip = workbench.git(one, "rev-parse", ref.LOG_REF).strip()
        push = ["git", "push", "--quiet", "origin", f"{tip}:{ref.BRANCH}"]
        theirs.append(took + _wall_of(push, other, workbench.environment)())
        assert workbench.git(one + ".git", "rev-parse", ref.BRANCH) == workbench.git(
            other + ".git", "rev-parse", ref.BRANCH
        )
        for each in pair:
            shutil.rmtree(each, ignore_errors=True)  # its own committer may still write
            shutil.rmtree(each + ".git")
    return statistics.median(ours), statistics.median(theirs)


def _copy_objects(one: str, other: str) -> None:
    """Copy the objects that another repository lacks, as files."""
    for folder, _, names in os.walk(os.path.join(one, ".git", "objects")):
        into = os.path.join(other, os.path.relpath(folder, one))
        os.makedirs(into, exist_ok=True)
        for name in set(names) - set(os.listdir(into)):
            shutil.copy(os.path.join(folder, name), into)


def met(workbench: Workbench, name: str) -> tuple[str, str, str]:
    """Return two clones that have synced with one remote, and that remote."""
    first = workbench.repository(name + "-first")
    workbenches.start(first, workbenches.NAMES[0])
    hub = os.path.join(workbench.folder, name + ".git")
    workbench.git(workbench.folder, "clone", "--quiet", "--bare", first, hub)
    workbench.git(first, "remote", "add", "origin", hub)
    sync = [workbench.program("gitmem"), "sync", "--publish"]
    _run(sync, first, workbench.environment)
    where = os.path.join(workbench.folder, name)
    workbench.git(workbench.folder, "clone", "--quiet", hub, where)
    workbench.git(where, "config", "user.name", "A Person")
    workbench.git(where, "config", "user.email", "person@example.org")
    workbenches.start(where, workbenches.NAMES[1])
    for each in (where, first):
        _run(sync, each, workbench.environment)
    return first, where, hub


def _push(workbench: Workbench, where: str) -> None:
    workbench.git(where, "push", "--quiet", "origin", f"{ref.LOG_REF}:{ref.BRANCH}")


def _record(workbench: Workbench, where: str, count: int, commits: int | None, seed: int) -> None:
    """Write lines as one clone does, at the ends of its open segments.

    Args:
        workbench: The workbench.
        where: The repository.
        count: The number of lines.
        commits: The number of commits; None for one commit for each signal.
        seed: The seed of the lines.
    """
    lines = workbenches.attested(islice(workbenches.history(count, seed=seed), count))
    parent = workbench.git(where, "rev-parse", ref.LOG_REF).strip()
    program = b"".join(_stream(_portions(lines, count, commits), parent, workbenches.dice(seed)))
    subprocess.run(
        ["git", "fast-import", "--quiet", "--force"],
        cwd=where,
        env=workbench.environment,
        input=program,
        check=True,
    )


def _portions(
    lines: Iterator[tuple[str, bytes]], count: int, commits: int | None
) -> Iterator[list[tuple[str, bytes]]]:
    """Yield the lines of each commit."""
    portion: list[tuple[str, bytes]] = []
    for stream, line in lines:
        full = stream == "signals" if commits is None else len(portion) >= -(-count // commits)
        if portion and full:
            yield portion
            portion = []
        portion.append((stream, line))
    yield portion


def _stream(portions: Iterator[list[tuple[str, bytes]]], parent: str, dice: random.Random) -> Iterator[bytes]:
    tokens: dict[str, str] = {}
    segments: dict[str, list[bytes]] = {}
    start = f"from {parent}\n".encode()
    for number, portion in enumerate(portions):
        at = workbenches.START // 1_000_000 + number
        yield f"commit {ref.LOG_REF}\ncommitter A Person <person@example.org> {at} +0000\n".encode()
        message = f"Planck → Curie: part {number}\n".encode()
        yield b"data %d\n%s\n" % (len(message), message) + start
        start = b""
        for stream, line in portion:
            folder = ref.segment_path(stream, line, "").rpartition("/")[0]
            segments.setdefault(folder, []).append(line)
            tokens.setdefault(folder, workbenches.token(dice))
        for folder in {ref.segment_path(stream, line, "").rpartition("/")[0] for stream, line in portion}:
            content = b"".join(each + b"\n" for each in sorted(segments[folder]))
            yield f"M 100644 inline {folder}/gm-{tokens[folder]}.jsonl\n".encode()
            yield b"data %d\n%s\n" % (len(content), content)
            if len(content) >= ref.SEGMENT_MAX_BYTES:
                del segments[folder], tokens[folder]


def _run(command: list[str], where: str, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")


def _wall_of(command: list[str], where: str, environment: dict[str, str]) -> Callable[[], float]:
    def once() -> float:
        start = time.perf_counter()
        _run(command, where, environment)
        return (time.perf_counter() - start) * 1e3

    return once
