"""A sync that is killed at any step, many commits at once, and any order of appends and syncs."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem.git.objects import Draft, Signature
from gitmem.log import ledger, ref
from gitmem.signals import history

from ..clones import Clone, Hub, git
from ..conftest import Git
from .conftest import Desk

ROOT = Path(__file__).parents[2]

# Dies at the n-th of these moments: before and after each write, swap, fetch, push and settling.
DYING = """
import os, sys
from pathlib import Path
from gitmem.git.network import GitNetwork
from gitmem.git.port import DulwichGit
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
from gitmem.git.port import DulwichGit
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


# People who use plain git on the log's branch: nothing is lost, and the next sync puts it right.


def two_that_shared(hub: Hub) -> tuple[Clone, Clone]:
    a, b = hub.clone("a"), hub.clone("b")
    a.add("first")
    a.exchange()
    b.exchange()
    return a, b


def worktree(clone: Clone, start: str) -> Path:
    """A worktree of a local branch `gitmem`, as a person makes one."""
    path = clone.path.parent / f"{clone.path.name}-log"
    git("worktree", "add", "--quiet", "-B", "gitmem", str(path), start, cwd=clone.path)
    return path


def test_fetch_merge_and_push_by_plain_git(hub: Hub) -> None:
    """A merge commit on the shared branch is what history stands on, and nobody adds another."""
    a, b = two_that_shared(hub)
    a.add("from a")
    b.add("from b")
    b.exchange()
    git("fetch", "--quiet", "origin", cwd=a.path)
    at = worktree(a, "refs/gitmem/log")
    git("merge", "--quiet", "--no-edit", "origin/gitmem", cwd=at)
    git("push", "--quiet", "origin", "gitmem", cwd=at)
    found = a.exchange()
    assert (found.received, found.sent) == (1, 0)
    assert b.exchange().received == 1
    assert a.tip == b.tip == hub.tip()
    assert a.texts() == ["first", "from a", "from b"]
    assert a.merges() == 1


def test_a_merge_that_was_not_pushed_is_flattened(hub: Hub) -> None:
    """What a person merged locally is replayed as single commits, without the merge."""
    a, b = two_that_shared(hub)
    a.add("from a")
    b.add("from b")
    b.exchange()
    git("fetch", "--quiet", "origin", cwd=a.path)
    at = worktree(a, "refs/gitmem/log")
    git("merge", "--quiet", "--no-edit", "origin/gitmem", cwd=at)
    git("update-ref", ref.LOG_REF, "HEAD", cwd=at)
    assert a.exchange().sent == 1
    assert a.merges() == 0
    assert a.texts() == hub.texts() == ["first", "from a", "from b"]


def test_a_fetch_alone_brings_lines_to_an_offline_sync(hub: Hub) -> None:
    """`refs/remotes/*/gitmem` counts as a place, also where the remote can't be reached now."""
    a, b = two_that_shared(hub)
    b.add("from b")
    b.exchange()
    git("fetch", "--quiet", "origin", cwd=a.path)
    git("remote", "set-url", "--push", "origin", str(hub.root / "nowhere.git"), cwd=a.path)
    found = a.exchange()
    assert found.state == "offline"
    assert a.texts() == ["first", "from b"]


def test_a_line_that_somebody_deleted_by_hand_comes_back(hub: Hub) -> None:
    """Also where it would be a fast-forward: trees are compared, not only histories."""
    a, b = two_that_shared(hub)
    a.add("second")
    a.exchange()
    b.exchange()
    git("fetch", "--quiet", "origin", cwd=a.path)
    at = worktree(a, "origin/gitmem")
    (segment,) = at.glob("notes/**/*.jsonl")
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[1:]))
    git("commit", "--quiet", "-am", "Tidy up", cwd=at)
    git("push", "--quiet", "origin", "gitmem", cwd=at)
    assert hub.texts() == ["second"]
    assert b.exchange().sent == 1
    assert hub.texts() == b.texts() == ["first", "second"]
    assert b.subjects()[:2] == ["Repair: 1 line that was missing", "Tidy up"]
    a.exchange()
    assert a.tip == b.tip


def test_a_segment_that_somebody_deleted_by_hand_comes_back(hub: Hub) -> None:
    """A whole file, and the fixed files too."""
    a, b = two_that_shared(hub)
    at = worktree(b, "refs/gitmem/log")
    git("rm", "--quiet", "-r", "notes", "README.md", cwd=at)
    git("commit", "--quiet", "-m", "Remove", cwd=at)
    git("push", "--quiet", "origin", "gitmem", cwd=at)
    assert a.exchange().sent == 1
    assert hub.texts() == ["first"]
    assert "README.md" in git("ls-tree", "--name-only", "gitmem", cwd=hub.path)


def test_conflict_markers_duplicates_and_crlf_lose_nothing(hub: Hub) -> None:
    """A merge of one segment without our driver, and an editor that rewrote it."""
    a, b = two_that_shared(hub)
    at = worktree(b, "refs/gitmem/log")
    (segment,) = at.glob("notes/**/*.jsonl")
    line, seal = segment.read_bytes().splitlines()
    other = line.replace(b'"first"', b'"other"')
    merged = (b"<<<<<<< HEAD", line, line, b"=======", other, b">>>>>>> x", seal)
    segment.write_bytes(b"".join(each + b"\r\n" for each in merged))
    git("commit", "--quiet", "-am", "Merge by hand", cwd=at)
    git("push", "--quiet", "origin", "gitmem", cwd=at)
    a.add("second")
    a.exchange()
    assert a.texts() == hub.texts()
    assert [text for text in a.texts() if text[0].islower()] == ["first", "other", "second"]
    assert {"<<<<<<< HEAD", "=======", ">>>>>>> x"} < set(a.texts())
    b.exchange()
    assert b.tip == a.tip


def test_a_branch_that_a_person_keeps_is_left_alone(hub: Hub) -> None:
    """Sync reads `refs/heads/gitmem` and never moves it, nor its worktree."""
    a, b = two_that_shared(hub)
    at = worktree(a, "refs/gitmem/log")
    before = git("rev-parse", "gitmem", cwd=at)
    b.add("from b")
    b.exchange()
    a.exchange()
    assert git("rev-parse", "gitmem", cwd=at) == before
    assert not git("status", "--porcelain", cwd=at)
    assert a.texts() == ["first", "from b"]


def test_a_copied_clone_writes_the_same_segment_and_loses_nothing(hub: Hub) -> None:
    """`cp -r` of a clone: two clones with one open segment unite line by line."""
    import shutil

    a, b = two_that_shared(hub)
    copied = hub.root / "copied"
    shutil.copytree(a.path, copied)
    c = hub.open(copied)
    a.add("from a")
    c.add("from the copy")
    for clone in (a, c, b, a):
        clone.exchange()
    assert a.texts() == c.texts() == b.texts() == ["first", "from a", "from the copy"]
    assert a.tip == c.tip == b.tip


def test_sync_leaves_the_users_repository_alone(hub: Hub) -> None:
    """HEAD, branches, index, work tree, config and FETCH_HEAD are as they were; hooks do not fire."""
    a, b = two_that_shared(hub)
    b.add("from b")
    b.exchange()
    git("tag", "-a", "v1", "-m", "v1", cwd=a.path)
    for hook in ("pre-push", "reference-transaction", "post-merge", "pre-auto-gc"):
        path = a.path / ".git" / "hooks" / hook
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    git("config", "push.default", "matching", cwd=a.path)
    git("config", "push.followTags", "true", cwd=a.path)
    git("config", "push.gpgSign", "true", cwd=a.path)
    before = [
        git("for-each-ref", "refs/heads", "refs/remotes", "refs/tags", cwd=a.path),
        git("symbolic-ref", "HEAD", cwd=a.path),
        (a.path / ".git/config").read_text(),
        (a.path / ".git/index").read_bytes(),
        git("ls-remote", "origin", "refs/tags/*", "refs/heads/main", cwd=a.path),
    ]
    a.add("from a")
    assert a.exchange().state == "synced"
    assert before == [
        git("for-each-ref", "refs/heads", "refs/remotes", "refs/tags", cwd=a.path),
        git("symbolic-ref", "HEAD", cwd=a.path),
        (a.path / ".git/config").read_text(),
        (a.path / ".git/index").read_bytes(),
        git("ls-remote", "origin", "refs/tags/*", "refs/heads/main", cwd=a.path),
    ]
    assert not (a.path / ".git/FETCH_HEAD").exists()
    assert not (a.path / ".git/shallow").exists()
    git("fsck", "--strict", cwd=a.path)
    git("fsck", "--strict", cwd=hub.path)


# A clone that an ordinary fetch brought a log to has that log, also for who only reads.


def _git(*args: str) -> None:
    subprocess.run(["git", *args], check=True, capture_output=True)


def test_a_fresh_clone_reads_what_came_with_it(repo: Path, tmp_path: Path) -> None:
    """No init, no sync, no write: `git clone` brought `origin/gitmem`, and the first look shows it."""
    hub, other = tmp_path / "hub.git", tmp_path / "other"
    _git("clone", "--quiet", "--bare", str(repo), str(hub))
    _git("-C", str(repo), "remote", "add", "origin", str(hub))
    with gitmem.open(str(repo), identity="a:b:c") as log:
        log.sessions.start()
        log.signals.send("hello")
        log.sync(publish=True)
    _git("clone", "--quiet", str(hub), str(other))

    with gitmem.open(str(other)) as log:
        told = [entry.get("message") for entry in history.log(log.store).entries]

    assert told == [None, "hello"]


def test_a_look_at_a_clone_without_a_log_starts_none(repo: Path) -> None:
    """Reading makes nothing."""
    with gitmem.open(str(repo)) as log:
        assert history.log(log.store).entries == []

        assert log.store.git.refs("refs/gitmem/") == {}


# The log's ref moved back or deleted behind a clone: the answers that work depends on say so, and name the repair.

FIX = "gitmem doctor --fix"
ASK = ["--intent", "propose", "--requires-ack", "--wu", "WU-7"]


@pytest.fixture
def curie(desk: Desk) -> str:
    """A session that has read a proposal of another, and a second proposal that she has not read."""
    planck, curie = desk.start("Planck"), desk.start("Curie", "--wu", "WU-7")
    desk.send(planck, "Approve the boundary?", "--to", "Curie", *ASK)
    assert desk("inbox", session=curie).status == 0
    desk.send(planck, "And the retry?", "--to", "Curie", *ASK)
    assert desk("gate", session=curie).status == 1
    return curie


def move_back(desk: Desk, git: Git) -> None:
    git("update-ref", ref.LOG_REF, f"{ref.LOG_REF}~1", cwd=desk.repo)


def warned(answer: Any) -> bool:
    """Whether an answer says that lines are missing, with the repair as its next command."""
    assert not answer["warnings"] or answer["next"][0] == FIX, answer
    return any("missing from the log" in each for each in answer["warnings"])


@pytest.mark.parametrize("index", ["kept", "deleted"])
def test_gate_inbox_and_converged_say_that_lines_are_missing(
    desk: Desk, curie: str, git: Git, index: str
) -> None:
    planck = desk.start("Noether")
    sent = desk.send(planck, "Shall we?", "--to", "Curie", "--intent", "propose")
    thread = sent["signal"]["thread_id"]
    desk.send(planck, "One more.", "--to", "Curie", "--wu", "WU-7")
    move_back(desk, git)
    if index == "deleted":
        for path in (desk.repo / ".git" / "gitmem").glob("index-*"):
            path.unlink()

    for args in (["gate"], ["inbox", "--no-mark"], ["inbox", "--thread", thread], ["converged", thread]):
        assert warned(desk(*args, "--json", session=curie).json), args
    assert "note: 1 record" in desk("gate", session=curie).out
    assert FIX in desk("gate", session=curie).next

    assert desk(*FIX.split()[1:]).status == 0
    for args in (["gate"], ["inbox"], ["converged", thread]):
        assert not warned(desk(*args, "--json", session=curie).json), args


def test_the_quick_answer_of_an_inbox_with_nothing_new_says_it_too(desk: Desk, curie: str, git: Git) -> None:
    assert desk("inbox", session=curie).status == 0
    desk.send(desk.start("Noether"), "One more.", "--to", "Curie")
    move_back(desk, git)

    first, again = (desk("inbox", "--json", session=curie).json for _ in range(2))

    assert not first["signals"] and not again["signals"]
    assert warned(first) and warned(again)


def test_lines_that_are_written_afterwards_do_not_end_the_warning(desk: Desk, curie: str, git: Git) -> None:
    move_back(desk, git)
    assert warned(desk("gate", "--json", session=curie).json)
    desk.send(curie, "I go on.", "--broadcast")

    assert warned(desk("gate", "--json", session=curie).json)
    assert warned(desk("inbox", "--json", session=curie).json)


def test_a_push_hears_that_lines_are_missing_though_the_gate_is_open(
    desk: Desk, curie: str, git: Git
) -> None:
    git("config", "gitmem.wu", "WU-7", cwd=desk.repo)
    assert desk("inbox", session=curie).status == 0
    desk.send(desk.start("Noether"), "Stop, please.", "--to", "Curie", "--wu", "WU-9")
    for each in desk("inbox", "--all", "--json", session=curie).json["signals"]:
        if each.get("requires_ack"):
            assert desk("reply", each["signal_id"], "Yes.", "--agree", session=curie).status == 0
    assert desk("gate", "--hook", "pre-push", session=curie).out == ""
    move_back(desk, git)

    said = desk("gate", "--hook", "pre-push", session=curie)

    assert "missing from the log" in said.out and FIX in said.next


def test_a_deleted_ref_is_repaired_and_no_new_session_is_advised(desk: Desk, curie: str, git: Git) -> None:
    git("update-ref", "-d", ref.LOG_REF, cwd=desk.repo)

    said = desk("gate", "--json", session=curie)

    assert said.status == 2 and said.json["next"][0] == FIX
    assert "missing from the log" in said.error["hint"]
    assert desk(*FIX.split()[1:]).status == 0
    assert desk("gate", session=curie).status == 1


def test_an_honest_log_is_never_reported(desk: Desk, curie: str) -> None:
    """Writes, receipts, waiting lines and reads of several sessions."""
    for number in range(3):
        desk.send(curie, f"Word {number}.", "--broadcast")
        for args in (["gate"], ["inbox"]):
            assert not warned(desk(*args, "--json", session=curie).json), args


@pytest.mark.parametrize("digests", [0, 1, 500])
def test_the_last_accepted_commit_is_found_behind_long_records(tmp_path: Path, digests: int) -> None:
    """A record of many lines is longer than what is read of the end of the ledger; lines that wait name no commit."""
    records = [
        f"\n0 {'a' * 40}\n",
        f"\n0 {'b' * 40} {' '.join(['c' * 32] * digests)}\n",
        f"\n- - {'d' * 32}\n",
    ]
    (tmp_path / ledger.NAME).write_text("".join(records))

    assert ledger.last_commit(str(tmp_path)) == "b" * 40


def test_the_last_accepted_commit_is_found_in_the_older_ledger(tmp_path: Path) -> None:
    assert ledger.last_commit(str(tmp_path)) is None
    (tmp_path / ledger.OLDER).write_text(f"\n0 {'a' * 40}\n")
    (tmp_path / ledger.NAME).write_text(f"\n- - {'d' * 32}\n\n0 torn")

    assert ledger.last_commit(str(tmp_path)) == "a" * 40
