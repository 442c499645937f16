"""What a handoff has: the checkpoint, tasks, claims and threads that it names, as they are now."""

from __future__ import annotations

from .. import records
from ..agents.descriptions import sender_name
from ..claims import moved_claims
from ..commit_message import cut, sanitize
from ..log.lines import format_at
from ..memory import load as nodes
from ..memory.session_checkpoints import PREFIX
from ..order.task import sender_of
from ..outcome import Outcome, command
from ..tasks import HANDOFFS_MAX, load
from ..text.sanitize import SEPARATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..order.task import Sender
    from ..store import Store

TEXT_MAX = 4 * 1024  # characters of each text of a checkpoint
TITLE_MAX = 200  # characters of the first line of a signal
WORDS_MAX = 40  # characters of each text in one line about a handoff
NAMED = 2  # things of each kind in such a line
MISSING = "is not in this log: `gitmem sync` may fetch it"
_LAST = (
    "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? ORDER BY l.body DESC LIMIT 1"
)
_TASK = "SELECT title, state, unit, decided_by, holder, holder_session, conflict FROM task WHERE task_id = ?"
_CLAIM = "SELECT l.body, c.owner, c.session, c.until, c.released FROM path_claim c JOIN line l ON l.id = c.line WHERE c.claim_id = ?"


class Checkpoint(Outcome):
    """The giver's last checkpoint; long texts are cut."""

    def __init__(self, id: str, created: int, content: str, metadata: Mapping[str, Any]) -> None:
        texts = [
            content.removeprefix(PREFIX),
            *(str(metadata.get(name) or "") for name in ("progress", "nextSteps")),
        ]
        self.id = id
        self.created_at = format_at(created)
        self.content, self.progress, self.next_steps = (cut(each, TEXT_MAX) for each in texts)
        self.is_cut = any(len(each) > TEXT_MAX for each in texts)
        self.next = [command("gitmem", "mem", "show", id)]


class HandedTask(Outcome):
    """A task; `take` is the giver's take of it."""

    def __init__(self, task_id: str, take: str, title: str, state: str, wu_id: str | None) -> None:
        self.task_id = task_id
        self.take = take
        self.title = title
        self.state = state
        self.wu_id = wu_id


class HandedClaim(Outcome):
    """A claim, with its paths, and its end in ISO 8601."""

    def __init__(self, claim_id: str, paths: Iterable[str], until: int, mode: str) -> None:
        self.claim_id = claim_id
        self.paths = list(paths)
        self.until = format_at(until)
        self.mode = mode


class HandedThread(Outcome):
    """An open thread: the first line of its last signal, its sender, and the command that shows it."""

    def __init__(self, thread_id: str, signal_id: str, sender: str, intent: str, message: str) -> None:
        self.thread_id = thread_id
        self.signal_id = signal_id
        self.sender = sender
        self.intent = intent
        self.message = message
        self.next = [command("gitmem", "thread", thread_id)]


class LeftOut(Outcome):
    """Something that a handoff does not have, and why."""

    def __init__(self, id: str, reason: str) -> None:
        self.id = id
        self.reason = reason


class HandoffContent(Outcome):
    """What a handoff names, as far as this clone has it; `left_out` names the rest."""

    def __init__(self) -> None:
        self.checkpoint: Checkpoint | None = None
        self.tasks: list[HandedTask] = []
        self.claims: list[HandedClaim] = []
        self.threads: list[HandedThread] = []
        self.left_out: list[LeftOut] = []

    def leave_out(self, id: str, reason: str) -> None:
        """Note what is missing."""
        self.left_out.append(LeftOut(id, reason))

    def text(self) -> str:
        """Return what it has in one line, the first ones of each kind by name; texts of peers are in it. Readers may cut its end."""
        tasks = [
            f"{each.task_id}{f' ({each.wu_id})' if each.wu_id else ''} {cut(each.title, WORDS_MAX)}"
            for each in self.tasks
        ]
        paths = [path for each in self.claims for path in each.paths]
        parts = [_first_of(tasks)] if tasks else []
        parts += [f"claims {_first_of(paths)}"] if paths else []
        node = self.checkpoint
        if node is not None:
            words = cut(node.content.strip().partition("\n")[0], WORDS_MAX)
            parts.append(f"checkpoint {node.id} of {node.created_at[:10]}: {words}")
        if self.threads:
            parts.append(f"{len(self.threads)} thread{'' if len(self.threads) == 1 else 's'}")
        return SEPARATOR.join(parts)


def of(store: Store, record: Mapping[str, Any], giver: Sender | None = None) -> HandoffContent:
    """Return what a handoff names, of its record or of the options of a new one; of each kind the first 50.

    Args:
        giver: Whose the tasks and claims must be: those that somebody else has, or that have ended, are left out, as if it were accepted
            now. By default all are kept. Only the index is read: peers may have written any number of lines about each.
    """
    found = HandoffContent()
    _add_checkpoint(store, found, record.get("checkpoint"))
    _add_tasks(store, found, record, giver)
    _add_claims(store, found, record, giver)
    _add_threads(store, found, first(record.get("handoff_threads")))
    return found


def is_gone(store: Store, record: Mapping[str, Any]) -> bool:
    """Return whether the giver of a handoff has none of the tasks and claims that it names any more."""
    found = HandoffContent()
    giver = sender_of(record)  # type: ignore[arg-type]
    _add_tasks(store, found, record, giver)
    if not found.tasks:
        _add_claims(store, found, record, giver)
    is_known = all(each.reason != MISSING for each in found.left_out)
    return is_known and bool(found.left_out) and not (found.tasks or found.claims)


def first(ids: Iterable[str] | None) -> list[str]:
    """Return the first ids of a list in a record, without repetitions: a peer may have written any number."""
    return list(dict.fromkeys(ids or ()))[:HANDOFFS_MAX]


def _add_tasks(store: Store, found: HandoffContent, record: Mapping[str, Any], giver: Sender | None) -> None:
    db = store.db()
    for task_id, take in load.handed_over({**record, "purpose": "handoff"}).items():  # type: ignore[typeddict-item]
        row = db.execute(_TASK, (task_id,)).fetchone()
        if row is None:
            found.leave_out(task_id, MISSING)
            continue
        title, state, unit, decided_by, *holder, conflict = row
        if giver is not None and decided_by is not None:
            found.leave_out(task_id, f"is finished: {state}")
        elif giver is not None and not conflict and tuple(holder) != giver:
            found.leave_out(task_id, "was given back" if holder[0] is None else "is somebody else's now")
        else:
            found.tasks.append(HandedTask(task_id, take, title, state, unit))


def _add_claims(store: Store, found: HandoffContent, record: Mapping[str, Any], giver: Sender | None) -> None:
    db = store.db()
    for claim_id in first(record.get("handoff_claims")):
        row = db.execute(_CLAIM, (claim_id,)).fetchone()
        begun = records.read_kind("claim", row[0].encode()) if row is not None else None
        if begun is None:
            found.leave_out(claim_id, MISSING)
            continue
        _, owner, session, until, released = row
        why = (
            moved_claims.why_not(
                store, (owner, session), giver, until, begun.get("task_id"), is_released=bool(released)
            )
            if giver
            else None
        )
        if why is not None:
            found.leave_out(claim_id, why)
        else:
            found.claims.append(HandedClaim(claim_id, begun["paths"], until, begun["mode"]))


def _add_checkpoint(store: Store, found: HandoffContent, id: str | None) -> None:
    if id is None:
        return
    node = next(iter(nodes.load(store.db(), [id])), None)
    if node is None:
        found.leave_out(id, MISSING)
    elif node.sensitive or node.is_hidden:
        found.leave_out(id, "is sensitive" if node.sensitive else f"is {node.status}")
    else:
        found.checkpoint = Checkpoint(id, node.created, node.content, node.metadata)


def _add_threads(store: Store, found: HandoffContent, ids: Iterable[str]) -> None:
    db = store.db()
    for thread_id in ids:
        row = db.execute(_LAST, (thread_id,)).fetchone()
        record = records.read_kind("signal", row[0].encode()) if row is not None else None
        if record is None:
            found.leave_out(thread_id, MISSING)
            continue
        sender = sanitize(sender_name(store, record) or record["sender_identity"])
        title = cut(record["message"].strip().partition("\n")[0], TITLE_MAX)
        found.threads.append(HandedThread(thread_id, record["signal_id"], sender, record["intent"], title))


def counts(record: Mapping[str, Any]) -> str:
    """Return how much a handoff names, such as `2 tasks, 1 claim`."""
    named = ((len(record.get(f"handoff_{word}s") or ()), word) for word in ("task", "claim", "thread"))
    return (
        ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in named if count)
        or "no tasks"
    )


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if names[NAMED:] else ""
    return ", ".join(names[:NAMED]) + more
