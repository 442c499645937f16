"""A repository, or two clones of one, in which callers, workers and gateways are killed; and what must hold afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from cli import main as front
from gitmem.calls import EXTENSION, IDEMPOTENCY
from gitmem.calls.a2a_tasks import RESULT
from gitmem.log import committer
from gitmem.order.task import FoldedTask
from gitmem.repo import find
from gitmem.store import Store
from gitmem.work import task_state
from tests.clones import agree, git
from tests.hazards import faults
from tests.invocation.killable import Process, Scenario, is_alive, run
from tests.sandbox import worktree

PERSON = "human:person@example.org"
LEASE = "1s"
LEFTOVER = "leftover-file"
DEAD_SECONDS = 10.0  # for the program of a killed worker


class World:
    """Callers and gateways in one folder, workers in another one, and what all of them were told.

    Args:
        root: A folder of its own.
        repo: The clone of the callers.
        other: The clone of the workers; None if they are in a worktree of the first one.
    """

    def __init__(self, root: Path, repo: Path, other: Path | None) -> None:
        self.root = root
        self.here = repo
        self.clones = [repo] if other is None else [repo, other]
        self.there = other or worktree(repo, root / "shop")
        self.begun = root / "begun"
        self.begun.touch()
        self.once: set[str] = set()
        self.ids: dict[str, set[str]] = defaultdict(set)  # of each key, all that were printed
        self.shown: dict[str, set[tuple[str, str | None]]] = defaultdict(set)  # states and texts of results
        self.kills: Counter[str] = Counter()
        self._processes: list[Process] = []
        self._ended: set[int] = set()
        for each in self.clones:
            git("config", "user.email", "person@example.org", cwd=each)
            if other is not None:
                self.finish(self.command(each, "setup", "--publish", "yes", "--autosync", "1s", "--json"))
                agree(find(str(each)))

    def start(self, folder: Path, job: Callable[[], int], step: int = 0) -> Process:
        """Start a process of ours."""
        found = Process(folder, job, self.root / "notes" / str(len(self._processes)), step)
        self._processes.append(found)
        return found

    def command(self, folder: Path, *args: str, step: int = 0) -> Process:
        """Start a command of gitmem."""

        def job() -> int:
            return front.main(list(args))

        return self.start(folder, job, step)

    def finish(self, process: Process) -> Process:
        """Wait for the end of a command that must succeed."""
        run(iter([process.ended()]))
        assert process.status == 0, process.out + process.err
        return process

    def call(self, key: str, agent: str, *, step: int = 0, timeout: str = "120s") -> Process:
        """Call an agent with a key, which is also the text."""
        once = ["--once"] if key in self.once else []
        return self.command(
            self.here, "--as", PERSON, "call", agent, key, "--idempotency-key", key, "--json", "--timeout", timeout, *once,
            step=step,
        )  # fmt: skip

    def worker(self, agent: str, *, step: int = 0) -> Process:
        """Start a worker: its program notes that it has begun, and its result is one that no other run has."""
        program = f'text=$(cat); sleep 300 >{os.devnull} 2>&1 & echo "$text $$ $!" >>{self.begun}; sleep 0.05; echo "$text $$"'
        return self.command(
            self.there,
            "serve-agent",
            agent,
            "--exec",
            program,
            "--input",
            "text",
            "--lease",
            LEASE,
            step=step,
        )

    def gateway(self, agent: str, port: int, *, step: int = 0) -> Process:
        """Start a gateway."""
        return self.command(self.here, "a2a", "serve", agent, "--port", str(port), step=step)

    def token(self, name: str) -> str:
        """Make a token for a client of gateways."""
        return self.finish(self.command(self.here, "a2a", "token", name)).out.split()[0]

    def client(self, key: str, port: int, token: str) -> Process:
        """Start a client of a gateway: it sends a message with a key, and prints the task that it gets."""
        return self.start(self.here, lambda: asyncio.run(_send(key, f"http://127.0.0.1:{port}", token)))

    def note(self, key: str, process: Process) -> bool:
        """Note what a caller or a client was told about a key; return whether that is a result."""
        answer = process.answer
        if answer is None:
            return False
        results = answer.get("results") or []
        self.ids[key].update(each["task_id"] for each in results)
        for each in results:
            if each["confirmed"]:
                self.shown[key].add((each["state"], each["message"]))
                return True
        return False

    def begins(self) -> dict[str, list[list[int]]]:
        """The process ids of each program that has begun, and of what it has started, by key."""
        found: dict[str, list[list[int]]] = defaultdict(list)
        for line in self.begun.read_text().splitlines():
            key, *pids = line.split()
            found[key].append([int(each) for each in pids])
        return found

    def programs_end(self, key: str | None = None) -> Scenario:
        """After its worker was killed, no program goes on, nor what it has started."""
        end = time.monotonic() + DEAD_SECONDS
        known = [
            pid
            for each, runs in self.begins().items()
            if key in (None, each)
            for pids in runs
            for pid in pids
        ]
        while left := [pid for pid in known if pid not in self._ended and is_alive(pid)]:
            assert time.monotonic() < end, f"programs without a worker: {left}"
            yield
        self._ended.update(known)

    def check(self) -> None:
        """Whatever was killed: what anybody was told is on the log of each clone, and is all that is there."""
        for process in self._processes:
            process.send()
        run(iter([each.ended(10) for each in self._processes]), len(self._processes))
        for process in self._processes:
            assert "Traceback" not in process.err, process.err
        for each in self.clones:
            faults.age_locks(each)
        self._settle()
        stores = [faults.open_store(each) for each in self.clones]
        try:
            begins = self.begins()
            for key in {*self.ids, *begins}:
                self._check_key(key, stores, begins[key])
            self._check_told(stores)
            for store in stores:
                self._check_clone(store)
        finally:
            for store in stores:
                store.close()
        for folder in self.clones:  # only now: a forked process takes locks of open SQLite files for its own
            for args in (
                ["--fix"],
                [],
            ):  # a process that is killed while it replaces a file leaves a temporary one
                found = self.finish(self.command(folder, "doctor", *args, "--json")).answer
                assert found is not None and found["healthy"], found
                left = [each for each in found["findings"] if each["code"] != LEFTOVER or not args]
                assert not left, found

    def _settle(self) -> None:
        """Commit what waits, and exchange it."""
        for each in self.clones:
            store = faults.open_store(each)
            committer.commit_within(store.log, 10.0, deferred=True)
            store.close()
        if len(self.clones) > 1:
            for each in [*self.clones, *self.clones]:
                self.finish(self.command(each, "sync", "--json"))

    def _check_key(self, key: str, stores: list[Store], begins: list[list[int]]) -> None:
        """One key is one task with one outcome, in each clone that which was shown."""
        assert len(self.ids[key]) <= 1, f"{key} is several tasks: {self.ids[key]}"
        assert len(self.shown[key]) <= 1, f"{key} had several results: {self.shown[key]}"
        if key in self.once:
            assert len(begins) <= 1, f"{key} began {len(begins)} times"
        for id in self.ids[key]:
            tasks = [task_state.load_task(store.db(), id) for store in stores]
            assert all(tasks), f"{key}: {id} was printed, and is not in each clone"
            said = {outcome_of(task) for task in tasks if task is not None}
            assert len(said) == 1, f"{key}: clones differ: {said}"
            task = tasks[0]
            assert task is not None
            assert len(begins) <= len(task.takes) + len(task.void), f"{key} began without a take"
            for state, text in self.shown[key]:
                assert task.decided_by == "seal", f"{key}: {state} was shown, and is not sealed"
                now = task.outcome.record.get("message") if task.outcome is not None else text
                assert (task.state, now) == (state, text), (
                    f"{key}: {(state, text)} was shown, {(task.state, now)} is"
                )

    def _check_told(self, stores: list[Store]) -> None:
        """What workers said of tasks is on the log."""
        for process in self._processes:
            for line in process.err.splitlines():
                id, _, state = line.removeprefix("gitmem: ").partition(": ")
                if not id.startswith("task-") or state not in ("begun", "completed"):
                    continue
                for store in stores:
                    task = task_state.load_task(store.db(), id)
                    assert task is not None and [*task.takes, *task.void], line
                    ends = [each for each in task.events.values() if each.is_terminal]
                    assert ends or state == "begun", line

    def _check_clone(self, store: Store) -> None:
        """Each line is there once, and git finds nothing."""
        assert not store.log.waiting(deferred=True)
        faults.check_index(store)
        faults.fsck(Path(store.repo.common).parent)
        lines = Counter(body for (body,) in store.db().execute("SELECT body FROM line"))
        assert set(lines.values()) <= {1}


def outcome_of(task: FoldedTask) -> tuple[str, str | None, str | None]:
    """What a clone says about the end of a task."""
    return (
        task.state,
        task.outcome.id if task.outcome is not None else None,
        task.seal.id if task.seal is not None else None,
    )


class Address:
    """Where a gateway answers, and the token of a client."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token


async def _send(key: str, url: str, token: str) -> int:
    """Send a message to a gateway, and print the task as `gitmem call` does."""
    from a2a.client.errors import A2AClientTimeoutError
    from google.protobuf.json_format import MessageToDict

    from tests.a2a.talking import client_of, request, send

    try:
        async with client_of(Address(url, token)) as client:
            (found,) = await send(client, request(key, key, metadata={IDEMPOTENCY: key}))
    except (A2AClientTimeoutError, httpx.HTTPError, OSError) as error:
        print(f"no answer: {error}")
        return 1
    except Exception as error:
        if "Network" in str(error) or "Connect" in type(error).__name__:
            print(f"the gateway is gone: {error}")
            return 1
        raise
    task = found.task
    said = [part.text for each in task.artifacts if each.name == RESULT for part in each.parts]
    text = "\n".join(said or [part.text for part in task.status.message.parts]) or None
    state = MessageToDict(task.status)["state"].removeprefix("TASK_STATE_").lower()
    ours: dict[str, Any] = MessageToDict(task.metadata)[EXTENSION]
    result = {"task_id": task.id, "state": state, "message": text, "confirmed": ours.get("confirmed", False)}
    print(json.dumps({"results": [result]}))
    return 0
