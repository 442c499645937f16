"""The workbench of measurements: new repositories, sessions in them, and logs of any length."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gitmem
from gitmem import records
from gitmem.api.log import Log
from gitmem.git.objects import Draft, Signature
from gitmem.log import attestations, ref
from gitmem.log.lines import digest, line_hash, parse_at, writer_of
from gitmem.records import ids
from gitmem.repo import find
from gitmem.text import ed25519
from gitmem.text.digests import b32, sha256
from gitmem.trust import keys
from gitmem.trust.keys import SigningKey

SEED = bytes(range(32))
KEY = SigningKey(attestations.writer_id(ed25519.public_of(SEED)), ed25519.public_of(SEED), SEED)
WRITER = KEY.writer  # of all clones here: the user has one key
ATTESTED = 10  # lines of a commit, which has one attestation
COMMIT_SECONDS = 30.0  # the limit for recorded lines to be committed
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DAY = 24 * 3600 * 1_000_000
START = time.time_ns() // 1000 - 60 * DAY  # microseconds since 1970: two months of history, until now
NAMES = [f"Agent{chr(65 + number)}" for number in range(20)]
WORDS = [
    "boundary", "index", "store", "merge", "review", "parser", "queue", "test", "figure", "name", "session", "branch",
    "commit", "reader", "line", "answer", "please", "look", "at", "the", "a", "of", "in", "with", "before", "after", "it",
    "breaks", "works", "needs", "your", "agreement", "where", "nobody", "waits",
]  # fmt: skip


class Size:
    """How much is measured. The targets of the project hold for `FULL`."""

    def __init__(
        self, *, rounds: int, sends: int, writers: int, each: int, many: int, few: int, fresh: int, lines: int,
        packed: int, nodes: int, few_nodes: int, batch: int, calls: int, clones: int, many_clones: int,
        clone_rounds: int, pace: float, bulk: int, most: int, checked: int,
    ) -> None:  # fmt: skip
        self.rounds = rounds
        self.sends = sends
        self.writers = writers
        self.each = each
        self.many = many
        self.few = few
        self.fresh = fresh
        self.lines = lines
        self.packed = packed
        self.nodes = nodes
        self.few_nodes = few_nodes
        self.batch = batch
        self.calls = calls
        self.clones = clones
        self.many_clones = many_clones
        self.clone_rounds = clone_rounds
        self.pace = pace
        self.bulk = bulk
        self.most = most
        self.checked = checked


FULL = Size(rounds=41, sends=2_000, writers=20, each=20, many=100_000, few=1_000, fresh=1_000, lines=2_000,
            packed=10_000, nodes=50_000, few_nodes=500, batch=10_000, calls=1_000,
            clones=20, many_clones=50, clone_rounds=3, pace=1, bulk=10_000, most=1_000_000, checked=120_000)  # fmt: skip
QUICK = Size(rounds=15, sends=300, writers=20, each=10, many=20_000, few=1_000, fresh=1_000, lines=2_000,
             packed=1_000, nodes=10_000, few_nodes=500, batch=2_000, calls=200,
             clones=20, many_clones=50, clone_rounds=1, pace=1, bulk=2_000, most=100_000, checked=20_000)  # fmt: skip


class Workbench:
    """A temporary folder.

    Args:
        folder: An empty folder.
        programs: The folder of the console scripts.
        size: How much to measure.
        sources: The checkout whose history contains earlier versions.
    """

    def __init__(self, folder: str, programs: str, size: Size, *, sources: str = HERE) -> None:
        self.folder = folder
        self.programs = programs
        self.size = size
        self.sources = sources
        self.environment = environment(folder)
        if size.pace != 1:  # otherwise the default wait before a commit applies
            self.environment["GITMEM_COMMIT_AFTER"] = f"{size.pace:g}"

    def program(self, name: str) -> str:
        """Return the path of a console script."""
        return os.path.join(self.programs, name)

    def repository(self, name: str) -> str:
        """Create a repository with one commit and a user in its config."""
        where = os.path.join(self.folder, name)
        self.git(self.folder, "init", "--quiet", "--initial-branch=main", where)
        self.git(where, "config", "user.name", "A Person")
        self.git(where, "config", "user.email", "person@example.org")
        self.git(where, "commit", "--quiet", "--allow-empty", "-m", "First")
        return where

    def git(self, where: str, *args: str) -> str:
        """Run git in a folder; return its output."""
        done = subprocess.run(
            ["git", *args], cwd=where, env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def signals(self, where: str, commit: str = ref.LOG_REF) -> int:
        """Return the number of signals in a commit of the log."""
        look = ["grep", "-hoE", '"signal_id":"[^"]*"', commit, "--", "signals"]
        return len(set(self.git(where, *look).split()))

    def await_signals(self, where: str, count: int) -> None:
        """Wait until the log's commits contain this many signals.

        Raises:
            TimeoutError: Some are still missing after `COMMIT_SECONDS`.
        """
        subprocess.run(
            [self.program("gitmem"), "log", "-n", "1"],  # commits waiting records
            cwd=where, env=self.environment, stdout=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        until = time.monotonic() + COMMIT_SECONDS
        while (found := self.signals(where)) != count:
            if time.monotonic() > until:
                raise TimeoutError(f"{found} of {count} signals are in {ref.LOG_REF}")
            time.sleep(0.05)


def environment(folder: str) -> dict[str, str]:
    """Return an environment without the user's configuration and without a client's session."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return {**kept, "HOME": folder, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def start(where: str, name: str, wu: str | None = None) -> str:
    """Start a session of an agent in a repository, perhaps on a work unit; return its id."""
    with open_log(where) as log:
        return str(log.sessions.start(name=name, agent_identity=identity(name), wu=wu).session_id)


def identity(name: str) -> str:
    """Return the agent identity of a name."""
    return f"bench:worker:{name.lower()}"


def open_log(
    where: str,
    session: str | None = None,
    *,
    commit_after: float | None = 0,
    now: Callable[[], int] | None = None,
) -> Log:
    """Open a repository's log.

    Args:
        where: The repository.
        session: The session that acts.
        commit_after: Seconds between an answer and its commit. By default each commit precedes its answer, so a
            measurement finds its preparations in the ref. None means gitmem's own default.
        now: The wall clock in microseconds since 1970; by default the real one.
    """
    _own_key(where)
    options: dict[str, Any] = {"session": session}
    if now is not None:
        options["now"] = now
    if commit_after is not None:
        options["commit_after"] = commit_after
    return gitmem.open(where, **options)


def _own_key(where: str) -> None:
    """Let `WRITER` be the user of a clone that nobody has used yet."""
    state = find(where).state
    path = os.path.join(state, f"writer-{os.geteuid()}.key")
    if keys.all_noted(state) or os.path.exists(path):
        return
    os.makedirs(state, exist_ok=True)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
        file.write(f"gitmem-key ed25519 {SEED.hex()}\n")


def now() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def day(seconds: int) -> str:
    """Return the day of a time, such as `2026-11/21`."""
    return time.strftime("%Y-%m/%d", time.gmtime(seconds))


def dice(seed: int) -> random.Random:
    """Return a seeded random generator."""
    return random.Random(seed)


def message(dice: random.Random) -> str:
    """Return a random message."""
    return " ".join(dice.choices(WORDS, k=dice.randint(6, 30))).capitalize() + "."


def id_of(prefix: str, dice: random.Random) -> str:
    """Return an id of `WRITER`."""
    return ids.new_id(prefix, WRITER, dice.randbytes)


def token(dice: random.Random) -> str:
    """Return the random part of a segment's name."""
    return b32(dice.randbytes(5), 8)


def line(kind: str, at: int, fields: Mapping[str, object]) -> bytes:
    """Return a line of `WRITER`, as its clone writes it."""
    salt = b32(sha256(repr((at, fields)).encode()).digest(), records.SALT_CHARACTERS)
    whole = records.addressed(kind, fields, WRITER)
    return records.line(kind, at, whole, writer=WRITER, salt=salt if kind in records.TEXTS else "")


def unsigned(kind: str, at: int, fields: Mapping[str, object]) -> bytes:
    """Return a line with the same fields and no writer; its ids are as long as those of imported records."""

    def free(value: object) -> object:
        if isinstance(value, list):
            return [free(each) for each in value]
        is_bound = isinstance(value, str) and value.partition("-")[0] in ("sig", "sess", "thread")
        return str(value)[:-10] if is_bound else value

    return records.line(kind, at, {name: free(value) for name, value in fields.items()})


def attested(lines: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield lines, and behind so many as a commit has the attestation of those of `WRITER` and of those that it imports."""
    last, clone = None, ""
    while some := list(itertools.islice(lines, ATTESTED)):
        yield from some
        own = [line for _, line in some if writer_of(line) in ("", WRITER)]
        clone = clone or b32(sha256(some[0][1]).digest(), 10)
        stream, latest = some[-1]
        at = parse_at(latest[7:34].decode()) + 1
        for made in attestations.seal(KEY, own, lambda at=at: at, clone, last):  # type: ignore[misc]
            last = ((last[0] if last else 0) + 1, line_hash(made).hex())
            yield stream, made


def signal_fields(dice: random.Random, sender: str, session: str, recipients: list[str]) -> dict[str, object]:
    """Return the fields of a signal as `signals.send` writes them."""
    id = id_of("sig", dice)
    return {
        "schema_version": "A2A.V1", "signal_id": id, "sender_identity": identity(sender),
        "sender_session": session, "sender_name": sender, "sender_role": "worker",
        "recipients": [identity(each) for each in recipients],
        "requested_to": recipients, "resolved_by": ["exact"] * len(recipients),
        "thread_id": f"thread-{id[4:]}" if recipients else None, "intent": "INFO",
        "interrupt_class": "priority" if recipients else "advisory", "message": message(dice),
        "origin": "local", "wu_id": f"WU-{dice.randint(1, 400)}",
    }  # fmt: skip


def history(
    count: int,
    *,
    unread: int = 0,
    first: int = START,
    last: int | None = None,
    seed: int = 20,
    make: Callable[[str, int, Mapping[str, object]], bytes] = line,
) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of 20 busy agents: nine signals in ten have one recipient, and nearly all are read.

    A broadcast has receipts of the first two agents and of one more. The last `unread` signals to the first agent have
    no receipt. `make` makes the lines: `line` or `unsigned`.
    """
    dice = random.Random(seed)
    last = last if last is not None else now()
    reader = NAMES[0]
    later = {number for number in range(count) if number >= count - 20 * unread and number % 20 == 0}
    for number in range(count):
        at = first + (last - first) * number // count
        sender, to = dice.sample(NAMES[1:], 2)
        if number in later or (number % 20 == 0):
            to = reader
        recipients = [] if number % 10 == 5 else [to]
        fields = signal_fields(dice, sender, session_of(NAMES.index(sender)), recipients)
        signal = make("signal", at, fields)
        yield "signals", signal
        readers = [] if number in later else recipients or [*NAMES[:2], dice.choice(NAMES[2:])]
        for number_of, each in enumerate(readers):
            receipt = {
                "schema_version": "A2A.V1",
                "signal_id": fields["signal_id"],
                "reader_identity": identity(each),
                "delivery_state": "delivered",
                "answers_digest": digest(signal),
            }
            yield "receipts", make("receipt", at + 1_000 + number_of, receipt)


def sessions(
    at: int, make: Callable[[str, int, Mapping[str, object]], bytes] = line
) -> Iterator[tuple[str, bytes]]:
    """Yield the starts of the 20 agents' sessions."""
    for number, name in enumerate(NAMES):
        fields = {"session_id": session_of(number), "event": "start", "display_name": name,
                  "clone_id": "elsewhere0", "agent_identity": identity(name)}  # fmt: skip
        yield "sessions", make("session", at + number, fields)


def session_of(number: int) -> str:
    """Return the session id of an agent."""
    return ids.own_id("sess", WRITER, str(number))


def publish(
    where: str, lines: Iterator[tuple[str, bytes]], *, commits: int = 1, attests: bool = True
) -> list[bytes]:
    """Write lines and their attestations to a log as a sync does: segments of 16 KiB in a few commits. Return all lines.

    Args:
        attests: Whether there are attestations; an earlier version reads lines without them.
    """
    open_segments: dict[str, list[bytes]] = {}
    sizes: dict[str, int] = {}
    files: list[tuple[str, bytes]] = []
    every = []
    for stream, line in attested(lines) if attests else lines:
        every.append(line)
        folder = ref.segment_path(stream, line, "").rpartition("/")[0]
        open_segments.setdefault(folder, []).append(line)
        sizes[folder] = sizes.get(folder, 0) + len(line) + 1
        if sizes[folder] >= ref.SEGMENT_MAX_BYTES:
            files.append((folder, _content(open_segments.pop(folder))))
            del sizes[folder]
    files += [(folder, _content(kept)) for folder, kept in open_segments.items()]
    dice = random.Random(len(files))
    named = [(f"{folder}/gm-{token(dice)}.jsonl", content) for folder, content in files]
    somebody = Signature("A Person", "person@example.org", START // 1_000_000)
    share = -(-len(named) // commits)
    drafts = [
        Draft(dict(named[at : at + share]), somebody, somebody, "Lines of others\n")
        for at in range(0, len(named), share)
    ]
    with open_log(where) as log:
        git = log.store.git
        tip = git.tip(ref.LOG_REF)
        assert tip is not None, "the log has not been started"
        assert git.swap(ref.LOG_REF, tip, git.write(drafts, tip)[-1], "benchmark")
    return every


def _content(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in sorted(lines))


def python() -> list[str]:
    """Return the command of a Python process that does nothing."""
    return [sys.executable, "-c", "pass"]
