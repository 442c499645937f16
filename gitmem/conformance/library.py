"""An adapter for gitmem as a library: `--adapter gitmem.conformance.library:make`; and the clones that adapters of gitmem work in."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from .. import records, views
from ..agents import mailbox
from ..api import log as api
from ..errors import GateError, UsageError
from ..index import catch_up, index_file
from ..log.lines import CommitMessage, digest
from ..records.table import OPTIONS
from ..text.addresses import shortened, words_of
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

# Variables that select another repository, or another caller than the case's session.
FOREIGN = (
    "GITMEM_",
    "LUMENFLOW_",
    "GIT_",
    "CLAUDE_",
    "CODEX_",
    "COPILOT_",
    "CURSOR_",
    "GEMINI_",
    "OPENCODE_",
)


def sources() -> dict[str, str]:
    """Return the environment for the programs that an adapter starts."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


def new_repository(folder: Path) -> Path:
    """Create an empty repository below a folder."""
    first = folder / "clone-1"
    git(folder, "init", "--quiet", str(first))
    return first


def connect(folder: Path) -> Path:
    """Return the bare repository beside a clone that all clones of a bus share; create it if it does not exist."""
    hub = folder.parent / "hub.git"
    if not hub.is_dir():  # with one commit: gitmem pushes nothing to a remote without branches
        person = ["-c", "user.name=Somebody", "-c", "user.email=somebody@gitmem.invalid"]
        tree = git(folder, "write-tree")
        git(folder, "update-ref", "HEAD", git(folder, *person, "commit-tree", "-m", "First", tree))
        git(folder, "clone", "--quiet", "--bare", str(folder), str(hub))
        git(folder, "remote", "add", "origin", str(hub))
    return hub


def another(folder: Path) -> Path:
    """Return another clone, beside this one."""
    hub = connect(folder)
    clone = folder.parent / f"clone-{len(os.listdir(folder.parent))}"
    git(folder, "clone", "--quiet", str(hub), str(clone))
    return clone


def git(folder: Path, *args: str) -> str:
    """Run git in a folder and return its output, stripped; fail the case if git fails."""
    done = subprocess.run(
        ["git", *args], cwd=folder, env=sources(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout.strip()


NAMES = {field: option for option, (field, *_) in OPTIONS.items()} | {"thread_id": "thread"}
DEFAULTS: dict[str, Any] = {"recipients": [], "requires_ack": False}
RECORDS_MAX = 1_000  # in a case, which has about a dozen
RECEIPT = ("signal_id", "reader_identity", "read_at", "delivery_state", "answers_digest", "idempotency_key")
LISTS = ("agreed", "rejected", "countered", "pending", "ambiguous")


@contextmanager
def refusing() -> Iterator[None]:
    """Raise Refused for a refusal of gitmem; it decorates the methods that change something."""
    try:
        yield
    except (GateError, UsageError) as error:
        raise Refused(str(error)) from error


class Library:
    """One clone, whose refusals become `Refused`.

    Args:
        folder: Its work tree. Other clones and the shared remote are created beside it.
    """

    lacks: Mapping[str, str] = {}

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._logs: dict[str, api.Log] = {}
        self._own: api.Log | None = None

    def start(
        self, *, identity: str | None = None, name: str | None = None, workspace: str | None = None
    ) -> Session:
        """Open the log with an identity and start a session in it."""
        log = self._opened(identity)
        started = log.sessions.start(name=name, workspace=workspace)
        self._logs[started.session_id] = log
        return {
            "session_id": started.session_id,
            "display_name": started.display_name,
            "agent_identity": identity,
        }

    def end(self, session: str) -> None:
        """End a session."""
        self._logs[session].sessions.end()

    @refusing()
    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        """Send a signal as a session."""
        named: dict[str, Any] = {NAMES.get(name, name): value for name, value in options.items()}
        return as_signal(self._logs[session].signals.send(message, **named).signal)

    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        """Return the signals that the inbox shows to a session."""
        found = self._logs[session].inbox(mark=mark, thread=thread, intent=intents)
        return [as_signal(each) for each in found.signals]

    def count(self, session: str) -> int:
        """Return the number of unread signals of a session."""
        from ..signals import inbox

        log = self._logs[session]
        return inbox.count(log.store, log.caller).unread

    def watch(self, session: str) -> list[Signal]:
        """Return the first batch of a watch, and mark it as read."""
        stop = threading.Event()
        batches = self._logs[session].watch(stop=stop, events=False)
        given = [as_signal(each) for each in next(batches).signals]
        stop.set()  # asking for the next batch marks this one, and must not wait
        next(batches, None)
        return given

    def receipts(self, signal_id: str) -> list[Receipt]:
        """Return the receipts of a signal."""
        found = self.log().receipts(signal_id, limit=RECORDS_MAX)
        return as_receipts(each.as_json() for each in found.receipts)

    @refusing()
    def converged(self, thread: str) -> Convergence:
        """Return whether a thread has converged."""
        return as_convergence(self.log().converged(thread).as_json())

    def take(self, record: Mapping[str, Any]) -> None:
        """Write the record's line as it is, as a record of another version or program about the agents of this bus."""
        store = self.log().store
        writer = store.writers.writer()
        fields = dict(records.addressed(str(record["kind"]), record, writer))
        at = fields.pop("created_at", None) or fields.pop("read_at")
        head = {"at": at, "kind": fields.pop("kind"), "writer": writer}
        if head["kind"] == "receipt":
            fields.setdefault("answers_digest", digest(mailbox.line_of(store.db(), fields["signal_id"])))
        line = json.dumps({**head, **fields}, ensure_ascii=False, separators=(",", ":")).encode()
        store.record(
            [(f"{head['kind']}s", line)],
            CommitMessage("elsewhere <elsewhere@gitmem>", "a record from elsewhere"),
        )

    @refusing()
    def role(self, session: str, role: str) -> Descriptor | None:
        """State a session's role."""
        return as_descriptor(self._logs[session].sessions.change(role=role).as_json())

    @refusing()
    def delegate(
        self, session: str, message: str, *, to: str, role: str | None = None, paths: Sequence[str] = ()
    ) -> Task:
        """Delegate a task."""
        made = self._logs[session].tasks.delegate(message, to=to, role=role, scopes=paths)
        return self.task(made.task["task_id"])

    @refusing()
    def work(self, session: str, task_id: str, event: str, text: str = "") -> Task:
        """Change a task by the methods of `log.tasks`."""
        tasks = self._logs[session].tasks
        if event == "done":
            tasks.report(task_id, "completed", text)
        else:
            getattr(tasks, event)(task_id, *([text] if event in ("ask", "message") else []))
        return self.task(task_id)

    def task(self, task_id: str) -> Task:
        """Return a task as `log.tasks.show` shows it."""
        return as_task(without_writer(self.log().tasks.show(task_id).as_json()))

    @refusing()
    def handoff(self, session: str, task_ids: Sequence[str], to: str) -> Task:
        """Hand the session's open work over, which must have these tasks."""
        tasks = self._logs[session].tasks
        offered = tasks.handoff(to, "Go on.", dry_run=True).task.get("handoff_tasks") or ()
        if not set(task_ids) <= set(offered):
            raise Refused(f"{session} has not taken all of {', '.join(task_ids)}.")
        return self.task(tasks.handoff(to, "Go on.").task["task_id"])

    @refusing()
    def claim(self, session: str, paths: Sequence[str]) -> Claim:
        """Claim paths."""
        made = self._logs[session].claims.claim(paths)
        return next(each for each in self.claims() if each["claim_id"] == made.claim_id)

    @refusing()
    def unclaim(self, session: str, claim_id: str) -> None:
        """Release a claim."""
        self._logs[session].claims.release(claim_id)

    def claims(self) -> list[Claim]:
        """Return the claims that stand."""
        return [as_claim(without_writer(each.as_json())) for each in self.log().claims.list().claims]

    def judge(self, lines: Sequence[str]) -> list[str]:
        """Return which of these lines are in an index that reads each by itself."""
        index = index_file.in_memory(views.VIEWS, records.read)
        index.reshape()
        for line in lines:
            catch_up.insert_lines(index, 0, [line.encode()])
        query = "SELECT body FROM line WHERE kind NOT IN ('', 'attestation') ORDER BY CAST(body AS BLOB)"
        return [str(body) for (body,) in index.db.execute(query)]

    def second(self) -> Library:
        """Return the adapter of a new clone of the same remote."""
        return Library(another(self.folder))

    def exchange(self) -> None:
        """Sync with the common remote; fail the case if that does not succeed."""
        connect(self.folder)
        for remote in self.log().sync(publish=True).remotes:
            assert remote.state in ("synced", "up-to-date"), remote

    def log(self) -> api.Log:
        """The log without a caller."""
        if self._own is None:
            self._own = self._opened()
        return self._own

    def _opened(self, identity: str | None = None) -> api.Log:
        """Open the log for the user whose clones these are."""
        return api.open(str(self.folder), identity=identity, keys_folder=str(self.folder.parent / "keys"))

    def close(self) -> None:
        """Close every log that the adapter has opened."""
        for log in (*self._logs.values(), *([self._own] if self._own else [])):
            log.close()


def make(folder: Path) -> Library:
    """Return the adapter of a new repository."""
    return Library(new_repository(folder))


def without_writer(value: Any) -> Any:
    """Return values of gitmem with the addresses that a case gave to its agents: the words, as all are one writer's."""
    if isinstance(value, str):
        return shortened(value, words_of)
    if isinstance(value, Mapping):
        return {name: without_writer(each) for name, each in value.items()}
    return [*map(without_writer, value)] if isinstance(value, (list, tuple)) else value


def as_signal(shown: Mapping[str, Any]) -> Signal:
    """Return the contract's fields of a shown signal, from which gitmem omits empty fields."""
    whole: Any = {**DEFAULTS, **without_writer(shown)}
    return whole  # type: ignore[no-any-return]


def as_receipts(found: Iterable[Mapping[str, Any]]) -> list[Receipt]:
    """Return the fields of the contract from gitmem's receipts."""
    kept: Any = [{name: without_writer(each[name]) for name in RECEIPT} for each in found]
    return kept  # type: ignore[no-any-return]


def as_convergence(found: Mapping[str, Any]) -> Convergence:
    """Return the fields of the contract from gitmem's answer."""
    kept: Any = {"converged": found["converged"], **{name: without_writer(found[name]) for name in LISTS}}
    kept["agreed_on"] = found["agreed_on"] and found["agreed_on"]["signal_id"]
    kept["in_force"] = [each["signal_id"] for each in found["in_force"]]
    return kept  # type: ignore[no-any-return]
