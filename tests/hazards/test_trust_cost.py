"""What a peer pushes makes no command take more than five seconds of CPU time, and hides no signal."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from .. import hostile_logs
from ..conftest import Git
from ..hostile_logs import FAMILIES, Victim
from ..sandbox import annas
from ..signing import own_key
from .peers import BRANCH, Answer, Peer, Town, git

PROGRAM = shutil.which("gitmem", path=str(Path(sys.executable).parent)) or "gitmem"
LOG = "refs/gitmem/log"
SIZE = 5_000_000
SECONDS = 5.0  # on the machine of the benchmarks; a slower one gets as much more as it takes for `WORK`
WORK = "import json, hashlib; l = json.dumps({'a': 'x' * 200, 'b': [1] * 50}); [hashlib.sha256(json.dumps(json.loads(l)).encode()) for _ in range(60_000)]"
WORK_SECONDS = 0.34
ME = annas("me:coder:x")
HOOK = json.dumps(
    {"session_id": "harness-9", "hook_event_name": "PostToolUse", "tool_name": "Bash", "cwd": "."}
)

# What `gitmem top` reads before it shows anything.
TOP = """
from cli.environment import Environment
from cli.top import board
from gitmem.agents import caller
store = (at := Environment(None, None, False, False)).store()
board.read(store, caller.find(store, at.who()), dict.fromkeys(board.PANES, board.LISTED))
"""
FAR = f"x:{'b' * 100}:{'c' * 99}"

# Every command that reads the log, in an order in which those that mark come late.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("log",), ("log", "--from", "Planck"), ("inbox", "--count"), ("gate", "--wu", "WU-1"), ("roster",), ("roster", "--all"), ("roster", "Plnck"),
    ("whoami",), ("roster"), ("roster", "--all"), ("name"), ("thread", "THREAD"),
    ("converged", "THREAD"), ("converged", "THREAD"), ("show", "SIGNAL"), ("show", "NODE"),
    ("mem", "list"), ("mem", "list", "--wu", "WU-1"), ("mem", "ready", "--wu", "WU-1"), ("mem", "search", "find c"),
    ("mem", "context", "--wu", "WU-1"), ("mem", "recover"), ("mem", "profile"), ("mem", "triage"),
    ("mem", "export"), ("inbox", "--for", ME), ("inbox", "--all", "--limit", "50"),
    ("signal", "hello", "--to", "Planck"), ("signal", "hello", "--to", "Plamkc"), ("signal", "hello", "--to", FAR),
    ("signal", "hello all", "--broadcast"), ("reply", "SIGNAL", "yes", "--agree"), ("reply", "SIGNAL", "once more"),
    ("hook",), ("inbox",), ("session", "start", "--name", "Planck"), ("session", "start"),
    ("mem", "create", "a finding", "--wu", "WU-1"), ("mem", "update", "NODE", "--priority", "P1"),
    ("mem", "relate", "mem-000001", "blocks", "NODE"), ("mem", "checkpoint", "so far"), ("mem", "promote", "NODE"),
    ("mem", "summarize", "--wu", "WU-1"), ("mem", "index"), ("mem", "archive"), ("mem", "cleanup"),
    ("mem", "delete", "NODE"), ("view",), ("view", "--stats"), ("top",), ("why", "README"), ("why", "HEAD"), ("doctor",), ("verify",), ("verify", "THREAD"), ("session", "end"),
)  # fmt: skip

# The shapes nearest to the limit, and of each the commands that take longest. All of them also build the index (`log`)
# and take in the log of a remote (`sync`), and `doctor` reads everything: docs/decisions/0072 has the figures. Of shapes
# that are alike the costlier one; how the cost of the others grows is measured in test_trust_limits.py.
COSTLY: dict[str, tuple[tuple[str, ...], ...]] = {
    "dense_after": (("thread", "THREAD"), ("converged", "THREAD")),
    "one_id": (("thread", "THREAD"), ("show", "SIGNAL")),
    "keyed_id": (("inbox", "--for", ME), ("thread", "THREAD")),
    "sessions_of_one_name": (("roster",), ("log", "--from", "Planck")),
    "patch_chain": (("mem", "context", "--wu", "WU-1"), ("show", "NODE")),
    "patches_of_all": (("mem", "list"), ("mem", "export")),
    "bulk_small_values": (("mem", "search", "find c"), ("mem", "export")),
    "dense_metadata": (("mem", "export"), ("mem", "context", "--wu", "WU-1")),
    "clears_and_keys": (("show", "NODE"), ("mem", "export")),
    "block_chain": (("mem", "triage"), ("mem", "ready", "--wu", "WU-1")),
    "one_commit": (("why", "HEAD"), ("why", "README"), ("view",)),
    "broadcasts_and_sessions": (("top",), ("view",), ("view", "--stats")),
    "own_threads": (("top",), ("view",), ("view", "--stats")),
    "small_attestations": (("verify",),),
    "full_attestations": (("verify",),),
}


class Target:
    """A clone with a session, on whose log a peer's lines were put."""

    def __init__(self, repo: Path, git: Git) -> None:
        self.repo = repo
        self.git = git
        own_key(repo)
        done = self.run(
            "--json", "session", "start", "--agent-identity", ME, "--name", "Planck", "--wu", "WU-1"
        )
        self.session = str(json.loads(done.stdout)["session_id"])

    def put(self, family: str, size: int) -> None:
        clone = (self.repo / ".git/gitmem/clone").read_text().strip()
        head = self.git("rev-parse", "HEAD", cwd=self.repo).strip()
        victim = Victim(self.session, annas(ME), time.time_ns() // 1_000, clone, head)
        hostile_logs.put(self.repo, LOG, hostile_logs.lines(FAMILIES[family], victim, size))

    def run(self, *args: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        named = {"THREAD": "thread-x", "SIGNAL": "sig-000000", "NODE": "mem-000000"}
        given = [named.get(arg, arg) for arg in args]
        text = ""
        if args == ("hook",):
            given, text = ["hook", "claude-code", "PostToolUse"], HOOK
        env = dict(os.environ)
        if hasattr(self, "session"):
            env["GITMEM_SESSION"] = self.session
        program = [PROGRAM, *given]
        if args == ("top",):
            program = [sys.executable, "-c", TOP]
            env["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
        return subprocess.run(
            program, cwd=self.repo, env=env, input=text, capture_output=True, text=True, timeout=timeout
        )  # fmt: skip

    def seconds(self, *args: str) -> float:
        """The CPU time of a command and of the processes that it waited for; it must end without a traceback."""
        before = _children()
        done = self.run(*args)
        assert done.returncode in (0, 1, 2), (args, done.returncode, done.stderr)
        assert "Traceback" not in done.stderr
        return _children() - before


@cache
def limit() -> float:
    """Return the limit for this machine, from the CPU time of fixed work: the least of three runs."""
    took = []
    for _ in range(3):
        before = _children()
        subprocess.run([sys.executable, "-c", WORK], check=True, timeout=120)
        took.append(_children() - before)
    return SECONDS * max(1.0, min(took) / WORK_SECONDS)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture
def target(repo: Path, git: Git) -> Target:
    return Target(repo, git)


def _check(target: Target, commands: Sequence[tuple[str, ...]], other: Path) -> None:
    """A sync of another clone, and these commands in turn: none takes more than five seconds."""
    git, hub = target.git, other.with_suffix(".git")
    git("clone", "--quiet", "--bare", str(target.repo), str(hub))
    git("push", "--quiet", str(hub), f"{LOG}:refs/heads/gitmem", cwd=target.repo)
    git("clone", "--quiet", str(hub), str(other))
    before = _children()
    subprocess.run([PROGRAM, "sync"], cwd=other, capture_output=True, timeout=120, check=False)
    used = {"sync": _children() - before}
    for command in commands:
        used[" ".join(command)] = target.seconds(*command)

    assert {command: took for command, took in used.items() if took > limit()} == {}


@pytest.mark.soak
@pytest.mark.parametrize("family", FAMILIES)
def test_five_megabytes_of_a_peer_cost_no_command_five_seconds(
    target: Target, family: str, tmp_path: Path
) -> None:
    """Whatever shape they have: cycles, chains, one id, one name, one node, names of everything."""
    target.put(family, SIZE)

    _check(target, COMMANDS, tmp_path / "other")


@pytest.mark.deep
@pytest.mark.parametrize("family", COSTLY)
def test_the_costliest_commands_stay_below_five_seconds(target: Target, family: str, tmp_path: Path) -> None:
    """The shapes of which some command takes longest, each with these commands; the others are for the soak profile."""
    target.put(family, SIZE)

    _check(target, (("log",), *COSTLY[family], ("doctor",)), tmp_path / "other")


@pytest.mark.parametrize("family", ["reply_cycle", "sessions_of_one_name", "dense_patches"])
def test_a_small_attack_is_answered_at_once(target: Target, family: str) -> None:
    """A hundredth of the lines must not take a tenth of the time: the commands that took longest."""
    target.put(family, SIZE // 50)

    for command in (
        ("inbox", "--for", ME),
        ("roster",),
        ("thread", "THREAD"),
        ("mem", "context", "--wu", "WU-1"),
    ):
        assert target.seconds(*command) < limit() / 2


def test_a_thread_beyond_the_budget_is_shown_as_it_was_said(target: Target) -> None:
    """With a note, framed, and marked as read: nothing is lost and nothing comes twice."""
    target.put("deep_replies", 3_200_000)

    first = target.run("--json", "inbox", "--limit", "1")
    shown = json.loads(first.stdout)
    assert shown["unread"] > 9_000
    (signal,) = shown["signals"]
    assert signal["thread_too_large"] == "thread-x"
    text = target.run("inbox", "--limit", "1").stdout
    assert "thread too large to evaluate here; full thread: gitmem thread thread-x" in text
    again = json.loads(target.run("--json", "inbox", "--limit", "1").stdout)
    assert again["unread"] == shown["unread"] - 2
    assert again["signals"][0]["signal_id"] != signal["signal_id"]


# A peer pushes thousands of refs that git refuses to fetch: everybody else goes on exchanging lines.

WHO = "Mallory <mallory@example.org>"


@pytest.fixture
def two(town: Town) -> tuple[Peer, Peer]:
    """Two clones that have synced, and have a line each that the other lacks."""
    a, b = town.clone("a"), town.clone("b")
    a.say("one")
    assert a.sync().code == 0
    assert b.sync().code == 0
    a.say("from a")
    b.say("from b")
    return a, b


def bad_commits(town: Town, count: int) -> list[str]:
    """Commits on the branch whose tree has a folder `.git`."""
    inner = town.object("tree", b"100644 x\0" + bytes.fromhex(town.blob(b"x")))
    rows = git("ls-tree", BRANCH, cwd=town.hub) + f"\n040000 tree {inner}\t.git\n"
    root = git("mktree", cwd=town.hub, input=rows.encode())
    folder = town.root / "commits"
    folder.mkdir()
    for number in range(count):
        text = f"tree {root}\nparent {town.tip()}\nauthor {WHO} {number} +0000\ncommitter {WHO} {number} +0000\n\nx\n"
        (folder / str(number)).write_text(text)
    names = "".join(f"{folder / str(number)}\n" for number in range(count))
    return git(
        "hash-object", "-t", "commit", "-w", "--stdin-paths", cwd=town.hub, input=names.encode()
    ).splitlines()


def flood(town: Town, count: int) -> list[str]:
    """Outboxes that git refuses."""
    made = bad_commits(town, count)
    moves = "".join(f"create refs/gitmem/outbox/{oid} {oid}\n" for oid in made)
    git("update-ref", "--stdin", cwd=town.hub, input=moves.encode())
    git("pack-refs", "--all", cwd=town.hub)
    return made


def cpu(peer: Peer) -> tuple[Answer, float]:
    """Sync; the CPU seconds of the program and of what it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = peer.sync()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def remembered(peer: Peer) -> list[str]:
    """The rows of what the next sync does not fetch again."""
    (file,) = (peer.path / ".git/gitmem/refused-commits").iterdir()
    return file.read_text().splitlines()


@pytest.mark.deep
def test_a_flood_of_refused_outboxes_stops_no_exchange(town: Town, two: tuple[Peer, Peer]) -> None:
    """Each clone's first sync sends and brings lines, in seconds; the answer names some refs and the number of the rest."""
    a, b = two
    made = flood(town, 2_500)

    for peer in (a, b):
        answer, seconds = cpu(peer)
        assert answer.remote["state"] == "synced" and answer.code == 0, answer.text
        assert seconds < 5 * 2, seconds  # 2 s on an idle machine
        left = answer.remote["left_out"]
        assert left and {each["commit"] for each in left} <= set(made) and len(left) <= 20
        said = answer.remote["message"]
        assert f"To remove it: git push origin :{left[0]['ref']}" in said and len(said) < 4_000
        assert "outboxes of origin were not fetched yet" in said and "author unknown (not fetched)" in said
    assert b.messages() >= {"one", "from a", "from b"}
    a.sync()
    assert a.messages() >= {"one", "from a", "from b"}
    assert len(remembered(a)) > 20, "the second sync goes on"


@pytest.mark.deep
def test_an_honest_outbox_among_refused_ones_is_taken_in(town: Town, two: tuple[Peer, Peer]) -> None:
    """In the end every ref was tried once, and what git refused is not tried again."""
    a, _ = two
    made = flood(town, 60)
    line = b'{"message":"waiting"}\n'
    _, honest = town.break_with({"signals/2026-11-21/gm-7d2kq0ze.jsonl": line}, box=True)

    answers = [a.sync() for _ in range(6)]

    assert "waiting" in a.messages()
    assert not town.tip(f"refs/gitmem/outbox/{honest}"), "it was folded"
    assert "not fetched yet" not in answers[-1].text and "55 more" in answers[-1].remote["message"]
    assert sorted(row.partition(" ")[0] for row in remembered(a)) == sorted(made)


def test_a_name_that_only_ends_like_a_place_is_none(town: Town, two: tuple[Peer, Peer]) -> None:
    """Names that nobody's gitmem makes neither stop a sync nor bring lines."""
    a, _ = two
    (bad,) = bad_commits(town, 1)
    town.point("refs/gitmem/$(touch x)/heads/gitmem".replace(" ", "-"), bad)
    tree = town.tree(BRANCH, {"signals/2026-11-21/gm-7d2kq0ze.jsonl": b'{"message":"smuggled"}\n'})
    town.point("refs/gitmem/x/gitmem/log", town.commit(tree, town.tip()))

    answer = a.sync()

    assert answer.code == 0 and answer.remote["left_out"] == [], answer.text
    assert "smuggled" not in a.messages() and "from a" in town.messages()


@pytest.mark.parametrize("kind", ["tag", "tree", "blob"])
def test_a_place_at_no_commit_is_called_what_it_is(kind: str, town: Town, two: tuple[Peer, Peer]) -> None:
    """With the command that removes it, which works."""
    a, _ = two
    oid = {
        "tag": lambda: town.object("tag", f"object {town.tip()}\ntype commit\ntag x\ntagger {WHO} 1 +0000\n\nx\n".encode()),
        "tree": lambda: town.tree(BRANCH, {}),
        "blob": lambda: town.blob(b"x\n"),
    }[kind]()  # fmt: skip
    ref = f"refs/gitmem/outbox/{oid}"
    town.point(ref, oid)

    answer = a.sync()

    (left,) = answer.remote["left_out"]
    assert (left["ref"], left["why"]) == (ref, f"it is a {kind}, not a commit"), answer.text
    assert f"git push origin :{ref}" in answer.remote["message"]
    git("push", "--quiet", "origin", f":{ref}", cwd=a.path)
    assert a.sync().remote["left_out"] == []
    assert "from a" in town.messages()
