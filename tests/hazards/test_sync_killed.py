"""A sync that is killed at any step, many commits at once, and any order of appends and syncs."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from gitmem.git.objects import Draft, Signature
from tests.clones import Clone, Hub, git

ROOT = Path(__file__).parents[2]
# Dies at the n-th of these moments: before and after each write, swap, fetch, push and settling.
DYING = """
import os, sys
from pathlib import Path
from gitmem.git.network import GitNetwork
from gitmem.git.inprocess import DulwichGit
from gitmem.sync import exchange, rebase
from tests.clones import Clone, Ticks

left = int(sys.argv[2])

def step():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)

def dying(holder, name):
    real = getattr(holder, name)
    def run(*args, **more):
        step()
        done = real(*args, **more)
        step()
        return done
    setattr(holder, name, run)

for holder, name in ((DulwichGit, "write"), (DulwichGit, "swap"), (GitNetwork, "fetch"), (GitNetwork, "push"), (GitNetwork, "delete"),
                     (rebase, "commit_before_sync"), (rebase, "note_published")):
    dying(holder, name)
clone = Clone(Path(sys.argv[1]), Ticks(), 1, DulwichGit)
found = clone.exchange()
print(found.state, found.message)
"""


def exchange_killed_at(clone: Clone, step: int) -> bool:
    """Have a clone exchange in a process of its own that dies at a step. False where it had no more steps."""
    done = subprocess.run(
        [sys.executable, "-c", DYING, str(clone.path), str(step)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode != 0


@pytest.mark.deep
def test_a_sync_that_is_killed_at_any_step_is_made_good_by_the_next(hub: Hub) -> None:
    """Every line is there once afterwards, in all clones, and the repositories are sound."""
    a, b = hub.clone("a"), hub.clone("b")
    said = []
    for step in range(40):
        for clone, name in ((a, "a"), (b, "b")):
            said.append(f"{name}{step:02d}")
            clone.add(said[-1])
        said.append(f"r{step:02d}")
        a.add(said[-1], deferred=True)
        b.exchange()
        if not exchange_killed_at(a, step):
            break
        if step % 3 == 0:
            assert a.exchange().state in ("synced", "up-to-date")
            b.exchange()
            assert a.texts() == b.texts() == hub.texts()
            assert sorted(a.texts()) == sorted(said)
    else:
        pytest.fail("the sync never came to its end")
    assert step > 12, "it had too few steps to die at"
    assert a.exchange().state in ("synced", "up-to-date")
    b.exchange()
    assert a.tip == b.tip == hub.tip()
    assert sorted(a.texts()) == sorted(said)
    assert a.merges() == 0
    git("fsck", "--strict", cwd=a.path)
    git("fsck", "--strict", cwd=hub.path)


def test_a_burst_of_a_thousand_unpublished_commits_becomes_one(hub: Hub) -> None:
    """A clone that was offline for weeks sends one commit, and every line."""
    count = 1_100
    a, b = hub.clone("a"), hub.clone("b")
    for clone in (a, b, a):
        clone.exchange()
    a.add("theirs")
    a.exchange()
    b.add("0")
    tip, drafts = b.tip, []
    content = b""
    for number in range(1, count):
        content += b'{"at":"2026-11-21T20:00:00.%06dZ","kind":"note","text":"%d"}\n' % (number, number)
        who = Signature(f"Agent {number % 3}", "agent@x", 1_790_000_000 + number)
        path = f"notes/2026-11/21/gm-{number // 100}.jsonl"
        if number % 100 == 0:
            content = content.splitlines(keepends=True)[-1]
        drafts.append(Draft({path: content}, who, who, f"Say {number}\n\nNote: {number}\n"))
    new = b.git.write(drafts, tip)[-1]
    assert b.git.swap("refs/gitmem/log", tip, new, "many")
    found = b.exchange()
    assert (found.state, found.sent) == ("synced", count)
    assert b.subjects() == [
        f"0 +{count - 1}",
        "theirs",
        "Start the log of this repository",
        "gitmem log",
    ]
    listed = git("log", "-1", "--format=%(trailers:key=Note,valueonly)", b.tip, cwd=b.path).split()
    assert listed == [str(number) for number in range(count)]
    body = git("log", "-1", "--format=%b", b.tip, cwd=b.path).splitlines()
    assert body[:2] == ["0", "Say 1"] and body[1_000] == "and 100 more"
    assert len(hub.texts()) == count + 1


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 4))])
def test_any_order_of_appends_and_syncs_ends_with_the_same_lines_everywhere(hub: Hub, seed: int) -> None:
    """Three clones, drawn by a seed, with a rewind and a deletion by hand in between."""
    draw = random.Random(seed)
    clones = [hub.clone(name) for name in "abc"]
    said = []
    for number in range(25):
        clone = draw.choice(clones)
        if draw.random() < 0.55:
            said.append(f"{number:02d}")
            clone.add(said[-1], deferred=draw.random() < 0.2)
        else:
            assert clone.exchange().state in ("synced", "up-to-date")
        if draw.random() < 0.06 and hub.tip():
            older = git("rev-parse", "--verify", "--quiet", "gitmem~1", cwd=hub.path, check=False).strip()
            git(
                "update-ref",
                *(["refs/heads/gitmem", older] if older else ["-d", "refs/heads/gitmem"]),
                cwd=hub.path,
            )
    for clone in [*draw.sample(clones, 3), *draw.sample(clones, 3)]:
        clone.exchange()
    for clone in clones:
        clone.exchange()
        assert sorted(clone.texts()) == said
        assert clone.merges() == 0
    assert len({clone.tip for clone in clones} | {hub.tip()}) == 1


BUSY = """
import sys
import time
from pathlib import Path
from gitmem.git.inprocess import DulwichGit
from tests.clones import Clone, Ticks

clone = Clone(Path(sys.argv[1]), Ticks(), int(sys.argv[3]), DulwichGit)
for number in range(10):
    if sys.argv[2] == "sync":
        found = clone.exchange(pause=lambda seconds: time.sleep(seconds / 10))
        assert found.state in ("synced", "up-to-date", "rejected"), found.message
    else:
        clone.add(f"{sys.argv[3]}-{number}")
"""


@pytest.mark.deep
def test_appends_and_syncs_of_several_processes_at_once(hub: Hub) -> None:
    """Two writers and two syncs in one clone, one of each in another: every line arrives, once."""
    a, b = hub.clone("a"), hub.clone("b")
    jobs = [(a, "add"), (a, "add"), (a, "sync"), (a, "sync"), (b, "add"), (b, "sync")]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", BUSY, str(clone.path), what, str(number)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, (clone, what) in enumerate(jobs)
    ]
    errors = [child.communicate(timeout=120)[1] for child in running]
    assert not any(child.returncode for child in running), "".join(errors)
    for clone in (a, b, a):
        clone.exchange()
    said = [
        f"{number}-{each}" for number, (_, what) in enumerate(jobs) if what == "add" for each in range(10)
    ]
    assert sorted(a.texts()) == sorted(b.texts()) == sorted(said)
    assert a.tip == b.tip == hub.tip()
    assert a.merges() == 0
