"""An adapter for the program `gitmem` and its JSON output: `--adapter gitmem.conformance.command_line:make`."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from .adapter import (
    Claim,
    Convergence,
    Descriptor,
    Options,
    Receipt,
    Refused,
    Session,
    Signal,
    Task,
    as_claim,
    as_descriptor,
    as_task,
)
from .library import (
    RECORDS_MAX,
    Library,
    another,
    as_convergence,
    as_receipts,
    as_signal,
    connect,
    git,
    new_repository,
    sources,
)

WATCH_SECONDS = 60.0  # until a watch has shown what is unread
USAGE = 2  # the exit status of a usage error
TAKEN = 1  # of a refusal because somebody else has it
# The command of `gitmem task` for each event of a task that another command gives, and the events with a text.
WORDS = {"ask": ("message", "--ask"), "seal": ("accept",), "renew": ("take",)}
WITH_TEXT = ("ask", "done", "message")
FLAGS = {"broadcast": "--broadcast", "requires_ack": "--requires-ack", "allow_unseen": "--allow-unseen"}
NAMES = {"intent": "--intent", "need": "--need", "reply_to": "--reply-to", "thread_id": "--thread", "interrupt_class": "--interrupt",
         "idempotency_key": "--idempotency-key", "wu_id": "--wu", "initiative_id": "--initiative", "lane": "--lane",
         "target_role": "--target-role", "delegation_id": "--delegation-id", "artifact_path": "--artifact"}  # fmt: skip

# Runs gitmem with arguments; returns its exit status and its output.
Run = Callable[[Sequence[str]], tuple[int, str]]


def command(args: Sequence[str]) -> list[str]:
    """Return the command line of the program that is installed beside this Python."""
    return [os.path.join(os.path.dirname(sys.executable), "gitmem"), *args]


def program(args: Sequence[str]) -> tuple[int, str]:
    """Run the program in a new process; return its exit status and output."""
    done = subprocess.run(command(args), env=sources(), capture_output=True, check=False)
    return done.returncode, done.stdout.decode()


class CommandLine:
    """One clone, in which commands are run."""

    lacks: Mapping[str, str] = {}

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder = folder
        self.run = run

    def ask(
        self,
        *args: str,
        session: str | None = None,
        ok: Sequence[int] = (0,),
        refused: Sequence[int] = (USAGE,),
    ) -> Any:
        """Run a command as a session; return its output.

        Raises:
            Refused: The command ended with one of the statuses `refused`, by default that of a usage error.
        """
        who = ["--as", session] if session else []
        status, out = self.run(["-C", str(self.folder), *who, "--json", *args])
        if status in refused:
            raise Refused(out)
        assert status in ok, f"gitmem {' '.join(args)} ended with {status}: {out}"
        return json.loads(out)

    def start(
        self, *, identity: str | None = None, name: str | None = None, workspace: str | None = None
    ) -> Session:
        """Start a session with `session start`; the setting of the clone names the workspace of new sessions."""
        given = {"--agent-identity": identity, "--name": name}
        words = [word for option, value in given.items() if value for word in (option, value)]
        git(self.folder, "config", "gitmem.workspace", workspace or "")
        found = self.ask("session", "start", *words)
        return {
            "session_id": found["session_id"],
            "display_name": found["display_name"],
            "agent_identity": identity,
        }

    def role(self, session: str, role: str) -> Descriptor | None:
        """State a session's role with `session set`."""
        return as_descriptor(self.ask("session", "set", "--role", role, session=session))

    def end(self, session: str) -> None:
        """End a session with `session end`."""
        self.ask("session", "end", session=session)

    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        """Send a signal with `signal`, and return it as the command prints it."""
        words = [word for each in options.get("to", ()) for word in ("--to", each)]
        words += [word for each in options.get("veto", ()) for word in ("--veto", each)]
        for name, value in options.items():
            if name in FLAGS:
                words += [FLAGS[name]] if value else []
            elif name in NAMES:
                words += [NAMES[name], str(value)]
        return as_signal(self.ask("signal", *words, "--", message, session=session)["signal"])

    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        """Return the signals that `inbox` shows to a session."""
        words = [
            *([] if mark else ["--no-mark"]),
            *(["--thread", thread] if thread else []),
            *(["--intent", ",".join(intents)] if intents else []),
        ]
        return [as_signal(each) for each in self.ask("inbox", *words, session=session)["signals"]]

    def count(self, session: str) -> int:
        """Return the number of unread signals by `inbox --count`."""
        return int(self.ask("inbox", "--count", session=session)["unread"])

    def watch(self, session: str) -> list[Signal]:
        """Return the signals that `watch` shows: as many as are unread. Stop it then, as Ctrl-C does."""
        expected = self.count(session)
        args = ["-C", str(self.folder), "--as", session, "--json", "watch"]
        with subprocess.Popen(command(args), env=sources(), stdout=subprocess.PIPE) as watching:
            timer = threading.Timer(WATCH_SECONDS, watching.kill)
            timer.start()
            try:
                assert watching.stdout is not None
                lines = list(itertools.islice(watching.stdout, expected))
                watching.terminate()
                watching.wait()
            finally:
                timer.cancel()
        return [as_signal(json.loads(line)) for line in lines]

    def receipts(self, signal_id: str) -> list[Receipt]:
        """Return the receipts of a signal by `receipts`."""
        return as_receipts(self.ask("receipts", signal_id, "--limit", str(RECORDS_MAX))["receipts"])

    def converged(self, thread: str) -> Convergence:
        """Return whether a thread has converged by `converged`, which ends with 0 or 1."""
        return as_convergence(self.ask("converged", thread, ok=(0, 1)))

    def take(self, record: Mapping[str, Any]) -> None:
        """Write a record with the library: no command writes a given record unchanged."""
        writer = Library(self.folder)
        writer.take(record)
        writer.close()

    def judge(self, lines: Sequence[str]) -> list[str]:
        """Judge lines with the library: no command reads given lines."""
        return Library(self.folder).judge(lines)

    def delegate(
        self, session: str, message: str, *, to: str, role: str | None = None, paths: Sequence[str] = ()
    ) -> Task:
        """Delegate a task with `delegate`."""
        words = [
            "--to",
            to,
            *(["--role", role] if role else []),
            *(word for each in paths for word in ("--scope", each)),
        ]
        return self.task(self.ask("delegate", *words, "--", message, session=session)["task"]["task_id"])

    def work(self, session: str, task_id: str, event: str, text: str = "") -> Task:
        """Change a task with `task`."""
        words = ["--", text] if event in WITH_TEXT else []
        self.ask(
            "task", *WORDS.get(event, (event,)), task_id, *words, session=session, refused=(USAGE, TAKEN)
        )
        return self.task(task_id)

    def task(self, task_id: str) -> Task:
        """Return a task by `task show`."""
        return as_task(self.ask("task", "show", task_id))

    def handoff(self, session: str, task_ids: Sequence[str], to: str) -> Task:
        """Hand the session's open work over with `handoff`; it must have these tasks."""
        words = ["handoff", "--to", to, "--", "Go on."]
        offered = (
            self.ask(*words[:3], "--dry-run", *words[3:], session=session)["task"].get("handoff_tasks") or ()
        )
        if not set(task_ids) <= set(offered):
            raise Refused(f"{session} has not taken all of {', '.join(task_ids)}.")
        return self.task(self.ask(*words, session=session)["task"]["task_id"])

    def claim(self, session: str, paths: Sequence[str]) -> Claim:
        """Claim paths with `claim`."""
        made = self.ask("claim", *paths, session=session, refused=(USAGE, TAKEN))
        return next(each for each in self.claims() if each["claim_id"] == made["claim_id"])

    def unclaim(self, session: str, claim_id: str) -> None:
        """Release a claim with `claim release`."""
        self.ask("claim", "release", claim_id, session=session)

    def claims(self) -> list[Claim]:
        """Return the claims that `claim list` lists."""
        return [as_claim(each) for each in self.ask("claim", "list")["claims"]]

    def second(self) -> CommandLine:
        """Return the adapter of a new clone of the same remote."""
        return CommandLine(another(self.folder), self.run)

    def exchange(self) -> None:
        """Sync with the common remote by `sync --publish`."""
        connect(self.folder)
        self.ask("sync", "--publish")

    def close(self) -> None:
        """Do nothing: each command is a process of its own."""
        return


def make(folder: Path, run: Run = program) -> CommandLine:
    """Return the adapter of a new repository."""
    return CommandLine(new_repository(folder), run)
