"""Faults on purpose: a child whose nth system call, or nth run of git, fails or kills; and what must hold after it."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.environment import machine
from gitmem import records, views
from gitmem.errors import GitmemError
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.index import catch_up, index_file
from gitmem.log import committer, ref
from gitmem.log.lines import CommitMessage
from gitmem.log.local_log import Appended
from gitmem.open_store import DOMAIN
from gitmem.records.record_types import SignalFields
from gitmem.repo import find
from gitmem.store import Store, wall_clock

from ..signing import own_key

PLANCK, CURIE = "test:worker:planck", "test:worker:curie"
STEPS_MAX = 400
EACH_STEP = pytest.mark.parametrize(
    "stride", [3, pytest.param(1, marks=pytest.mark.deep)], ids=["every third step", "every step"]
)
ALL_STEPS = (
    "open",
    "write",
    "fsync",
    "fdatasync",
    "rename",
    "replace",
    "link",
    "unlink",
    "mkdir",
    "utime",
    "chmod",
)
WRITES = ("write", "fsync", "fdatasync", "rename", "replace", "link", "mkdir")
Port = type[DulwichGit] | type[PlumbingGit]

GIT = """#!/bin/sh
# The nth run of git fails (before or after its work) or takes the process that started it along.
echo . >> "$FAULT_COUNT"
if [ "$(wc -l < "$FAULT_COUNT")" -eq "$FAULT_AT" ]; then
    case "$FAULT_HOW" in
        full) echo "fatal: unable to write file: No space left on device" >&2; exit 128 ;;
        full-after) "$REAL_GIT" "$@"; exit 128 ;;
        killed) kill -9 $$ ;;
        killed-after) "$REAL_GIT" "$@"; kill -9 $$ ;;
        hangs) exec sleep 60 ;;
        hangs-after) "$REAL_GIT" "$@"; exec sleep 60 ;;
        both-killed) kill -9 $PPID $$ ;;
        both-killed-after) "$REAL_GIT" "$@"; kill -9 $PPID $$ ;;
    esac
fi
exec "$REAL_GIT" "$@"
"""


class End:
    """How a child ended: `died` by a signal, else its `answer`, or the sentence with which it `failed`."""

    def __init__(self, status: int, said: bytes) -> None:
        self.died = os.WIFSIGNALED(status)
        found = json.loads(said) if said else {}
        assert self.died or found, f"the child ended with {status} and said nothing"
        assert "broke" not in found, found.get("broke")
        self.answer: Any = found.get("answer")
        self.failed: str | None = found.get("failed")
        self.code: str | None = found.get("code")
        self.steps: int = found.get("steps", 0)


class Fault:
    """Prepares a child. `steps` tells how far it has counted."""

    def __init__(self) -> None:
        self.steps = 0

    def prepare(self) -> None:
        """Called in the child."""


class SystemCall(Fault):
    """The nth of some calls of `os` (and files opened for writing) is killed, or finds the disk full."""

    def __init__(self, step: int, names: tuple[str, ...], *, kills: bool) -> None:
        super().__init__()
        self.step = step
        self.names = names
        self.kills = kills

    def prepare(self) -> None:
        for name in self.names:
            setattr(os, name, self._counted(getattr(os, name), lambda *args: True))
        if "open" not in self.names:
            setattr(os, "open", self._counted(os.open, lambda path, flags, *more: bool(flags & os.O_CREAT)))  # noqa: B010
        builtins.open = self._counted(builtins.open, lambda path, mode="r", *more: mode[0] in "wxa")

    def _counted(self, real: Callable[..., Any], counts: Callable[..., bool]) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if counts(*args):
                self.count()
            return real(*args, **options)

        return call

    def count(self) -> None:
        """Count a step; at the chosen one, this process is killed, or OSError raised."""
        self.steps += 1
        if self.steps == self.step:
            if self.kills:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class RunOfGit(Fault):
    """The nth run of git goes wrong, as `how` says (see `GIT`)."""

    def __init__(self, folder: Path, run: int, how: str) -> None:
        super().__init__()
        self.folder = folder
        self.run = run
        self.how = how
        self.count = folder / "count"

    def prepare(self) -> None:
        real = shutil.which("git")
        assert real
        program = self.folder / "git"
        if not program.exists():
            program.write_text(GIT)
            program.chmod(0o755)
        self.count.unlink(missing_ok=True)
        os.environ.update(
            {
                "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
                "REAL_GIT": real,
                "FAULT_COUNT": str(self.count),
                "FAULT_AT": str(self.run),
                "FAULT_HOW": self.how,
            }
        )

    @property
    def happened(self) -> bool:
        return self.count.exists() and len(self.count.read_bytes().splitlines()) >= self.run


def child(act: Callable[[], object], fault: Fault | None = None) -> End:
    """Run `act` in a child that meets the fault. An error that is not one of ours fails the test."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        real = os.write
        try:
            if fault:
                fault.prepare()
            said: dict[str, object] = {"answer": act()}
        except GitmemError as error:
            said = {"failed": error.message, "code": error.code}
        except BaseException:
            said = {"broke": traceback.format_exc()}
        if fault:
            said["steps"] = fault.steps
        real(write, json.dumps(said).encode())
        os._exit(0)
    os.close(write)
    said_back = b""
    while chunk := os.read(read, 1 << 16):
        said_back += chunk
    os.close(read)
    _, status = os.waitpid(pid, 0)
    return End(status, said_back)


def open_store(
    where: Path,
    port: Port = DulwichGit,
    *,
    now: Callable[[], int] | None = None,
    commit_after: float = 0.0,
) -> Store:
    """A store as one process in that folder has it."""
    found = find(str(where))
    own_key(where)
    store = Store(
        found, port(found.common), DOMAIN, machine=machine(), now=now or wall_clock, commit_after=commit_after
    )
    store.log.committer = ("Test Person", "person@example.org")
    return store


def speak(store: Store, text: str, *, deferred: bool = False, to: str = CURIE) -> Appended:
    """Record a signal from Planck that says `text`."""
    number = random.SystemRandom().getrandbits(50)
    fields: SignalFields = {
        "signal_id": f"sig-{number:016}", "sender_identity": PLANCK,
        "recipients": [to], "thread_id": f"thread-{number:016}", "intent": "INFO", "message": text,
    }  # fmt: skip
    return store.record(
        [store.line("signal", fields)], CommitMessage(f"Planck <{PLANCK}@gitmem>", text), deferred=deferred
    )


def speaking(repo: Path, port: Port, text: str) -> Callable[[], str]:
    """For `child`: open the store as a new process does, say `text`, and tell whether it is committed or waits."""

    def act() -> str:
        done = speak(open_store(repo, port), text)
        return "committed" if done.commit else "recorded"

    return act


def command(repo: Path, *args: str, session: str | None = None) -> Callable[[], dict[str, Any]]:
    """For `child`: one command as the front door runs it, with its exit status and what it printed."""

    def act() -> dict[str, Any]:
        from cli import main as front

        os.chdir(repo)
        os.environ.pop("GITMEM_SESSION", None)
        if session is not None:
            os.environ["GITMEM_SESSION"] = session
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(3)]
        sys.stdin, sys.stdout, sys.stderr = streams
        status = front.main(list(args))
        said = []
        for stream in streams[1:]:
            stream.flush()
            said.append(stream.buffer.getvalue().decode())
        return {"status": status, "out": said[0], "err": said[1]}

    return act


def record(repo: Path, text: str, *, port: Port = DulwichGit, deferred: bool = False) -> None:
    """Say it in a process that leaves the commit to others."""
    store = open_store(repo, port, commit_after=60.0)
    assert speak(store, text, deferred=deferred).commit is None
    store.close()


def texts(store: Store) -> Counter[str]:
    """What the signals of the log say, and how often each line is in it."""
    tip = store.git.tip(ref.LOG_REF)
    found: Counter[bytes] = Counter()
    if tip is not None:
        _collect(store, store.git.commit(tip).tree, found)
    return Counter({text_of(line): count for line, count in found.items() if text_of(line)})


def _collect(store: Store, tree: str, found: Counter[bytes]) -> None:
    for name, entry in store.git.tree(tree).items():
        if entry.is_tree:
            _collect(store, entry.oid, found)
        elif name.endswith(".jsonl"):
            found.update(store.git.blob(entry.oid).splitlines())


def text_of(line: bytes) -> str:
    record = records.read(line)
    return str(record.get("message", "")) if record else ""


def indexed(store: Store) -> set[str]:
    """What the signals in the index say."""
    return {
        text for (body,) in store.db().execute("SELECT body FROM line") if (text := text_of(body.encode()))
    }


def dump(index: index_file.Index) -> dict[str, list[tuple[object, ...]]]:
    """Every table of an index that does not depend on the order in which lines arrived."""
    found = {
        "line": index.db.execute("SELECT key, at, kind, body FROM line"),
        "signal": index.db.execute("SELECT signal_id, thread, sender, intent, broadcast FROM signal"),
        "mail": index.db.execute("SELECT * FROM mail"),
        "receipt": index.db.execute("SELECT * FROM receipt"),
    }
    return {name: sorted(rows.fetchall(), key=repr) for name, rows in found.items()}


def check_index(store: Store) -> None:
    """The index answers as one that is built from nothing."""
    store.db()
    fresh = index_file.in_memory(views.VIEWS, records.read)
    catch_up.catch_up(fresh, store.log)
    assert dump(store.index) == dump(fresh)
    fresh.close()


def age_locks(repo: Path, seconds: float = 60) -> None:
    """Locks that the dead left are older than the ten seconds after which they are broken."""
    common = Path(find(str(repo)).common)
    for lock in [*common.rglob("*.lock")]:
        os.utime(lock, (time.time() - seconds, time.time() - seconds))


def settled(repo: Path) -> Counter[str]:
    """What the log says once everything that waited is in it; the index, the write-ahead log and the refs are in order."""
    store = open_store(repo)
    committer.commit_within(store.log, 5.0, deferred=True)
    found = texts(store)
    assert indexed(store) == set(found)
    check_index(store)
    assert not store.log.waiting(deferred=True)
    store.close()
    return found


def check(repo: Path, once: set[str], maybe: set[str]) -> None:
    """What was acknowledged is there once; what is not known may be; nothing else is."""
    found = settled(repo)
    assert set(found.values()) <= {1}, found
    assert once - set(found) == set(), "acknowledged and lost"
    assert set(found) - once - maybe == set(), "reported as failed, and there nevertheless"


def fsck(repo: Path) -> None:
    """Git finds nothing to complain about."""
    done = subprocess.run(
        ["git", "fsck", "--strict", "--no-dangling"], cwd=repo, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and not done.stderr.strip(), done.stdout + done.stderr
