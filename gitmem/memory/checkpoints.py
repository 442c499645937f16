"""Checkpoints record the state of the work for the next agent, or for the same agent after compaction.

Hooks write automatic ones without a model, before a client compacts its context and at a subagent's end. They save what is
known: the session's note, the next steps of its last written checkpoint, the threads that wait for it, and git's diff stat.
The newest supersedes the session's earlier ones, and none takes the place of a written one.

The gate: nobody says that a work unit is done without a checkpoint of it, if `gitmem.checkpointGate` says so. It is checked
only where somebody says that a work unit is done, never at the end of a turn or of a session alone. Any checkpoint of the
work unit opens it, also one of another agent, or one that a hook saved.
"""

from __future__ import annotations

from ..agents.delivery import delivery_lock
from ..errors import GateError, GitmemError, StoreError, UsageError
from ..git.port import WORK_TREE_SECONDS
from ..outcome import command
from ..settings import BLOCK, CHECKPOINT_GATE, OFF
from ..text.digests import sha256
from ..text.sanitize import first_of, is_blank, sanitize
from ..text.secrets import find_secret
from . import context, edit, stored_nodes
from .node_tables import AUTOMATIC, PREFIX
from .stored_nodes import automatic_ids, last_checkpoint, notes_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..agents.lifecycle import SessionResult
    from ..order.node import VersionedNode
    from ..store import Store


def checkpoint(
    store: Store,
    caller: Caller,
    note: str = "",
    *,
    progress: str | None = None,
    next_steps: str | None = None,
    trigger: str | None = None,
    wu: str | None = None,
    session: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    diff_stat: bool = True,
    done: bool = False,
) -> edit.Created:
    """Write a checkpoint. Its lifecycle is `wu`, or `session` without a work unit.

    Args:
        note: The text; by default the progress, or else the next steps.
        progress: The work that is done.
        next_steps: The work that remains.
        trigger: The cause, such as `pre-compact`.
        wu: The work unit; None for that of the caller's session.
        session: The session; None for the caller's.
        metadata: Further entries, such as `milestone`.
        diff_stat: Add `git diff --stat` against HEAD and the number of untracked files. If git fails, the
            checkpoint is written without it, with a warning.
        done: Also broadcast that the work unit is done, see `signals.completion`.

    Raises:
        UsageError: A value is invalid (RecordError, SecretError). Nothing was written.
        StoreError: The store could not be read or written.
    """
    text = _first_text(note, progress, next_steps)
    if done:
        from ..signals import announcements

        announcements.unit_of(caller, wu)
    stat, remark = changes(store) if diff_stat else (None, None)
    own = {"progress": progress, "nextSteps": next_steps, "trigger": trigger, "gitDiffStat": stat}
    created = edit.create(
        store,
        caller,
        PREFIX + text,
        type="checkpoint",
        lifecycle="wu" if wu or caller.wu_id else "session",
        wu=wu,
        session=session,
        metadata={**(metadata or {}), **{key: text for key, text in own.items() if text and text.strip()}},
    )
    created.warnings += [remark] if remark else []
    if done:
        try:
            told = announcements.announce(store, caller, announcements.unit_of(caller, created.node.wu_id))
        except GitmemError as error:
            told = (
                f"The checkpoint is recorded, but nobody is told that the work unit is done: {error.message}"
            )
        created.warnings.append(told)
    unit = created.node.wu_id
    created.next = [
        command("gitmem", "mem", "recover", *(["--wu", unit] if unit else [])),
        command("gitmem", "show", created.node.id),
    ]
    return created


def _first_text(*texts: str | None) -> str:
    for text in texts:
        if text and text.strip():
            return text.strip()
    raise UsageError(
        "The checkpoint is empty. Nothing was written.",
        hint="Give a note, --progress or --next-steps; check whether a shell variable in the command is unset.",
        code="empty-content",
        next=["gitmem mem checkpoint --help"],
    )


def changes(store: Store, seconds: float = WORK_TREE_SECONDS) -> tuple[str | None, str | None]:
    """Return git's summary of uncommitted changes, and a warning if git cannot give it.

    Args:
        seconds: The limit of each of the two git processes.
    """
    repo = store.repo
    if repo.worktree is None:
        return None, None
    try:
        found = store.git.work_tree(repo.git_dir, repo.worktree, seconds=seconds)
    except StoreError as error:
        return None, f"The diff stat is omitted: {error.message}"
    secret = find_secret(found.stat)
    if secret is not None:  # a secret here must not prevent the checkpoint
        return None, f"The diff stat is omitted: a file name looks like {secret}."
    lines = found.stat.split("\n") if found.stat else []
    if found.untracked:
        lines.append(f" {found.untracked} untracked file{'' if found.untracked == 1 else 's'}")
    return "\n".join(sanitize(line) for line in lines), None


# Bytes of each part; with the trigger and the state it is less than 1 KiB.
NOTE_BYTES, STEPS_BYTES, THREADS_BYTES, STAT_BYTES = 160, 320, 160, 300
THREADS_MAX = 5
STATE = "state"  # the key of the digest of what was known
STAT_SECONDS = 2.0  # of each of the two git processes; a hook has six
WAIT_SECONDS = 1.0  # for another hook of the session


def write_automatic(
    store: Store, caller: Caller, trigger: str, *, seconds: float = STAT_SECONDS
) -> VersionedNode | None:
    """Write a checkpoint of a session, if HEAD, the diff or its notes changed since the last one; otherwise return None.

    Args:
        trigger: The cause, such as `pre-compact`.
        seconds: The limit of each git process. A checkpoint without the diff stat is better than none.

    Raises:
        UsageError: A text looks like a secret. Nothing was written.
        StoreError: The store could not be read or written.
    """
    if caller.session_id is None:
        return None
    # One hook at a time, or two would both supersede the same checkpoint. No reader has this name.
    with delivery_lock(store, f"checkpoint {caller.session_id}", wait_seconds=WAIT_SECONDS) as mine:
        return _write(store, caller, caller.session_id, trigger, seconds) if mine else None


def _write(store: Store, caller: Caller, session: str, trigger: str, seconds: float) -> VersionedNode | None:
    written = last_checkpoint(store, session, None, None)
    note = _first_line(
        str((caller.record or {}).get("activity") or "") or (written.content if written else "")
    )
    steps = str(written.metadata.get("nextSteps") or "") if written is not None else ""
    threads = [each.thread_id for each in context.find_open_threads(store, caller)]
    stat = changes(store, seconds)[0] or ""
    if not (note or steps or stat or threads):
        return None  # nothing to save
    state = _digest(_head(store), stat, note, steps, str(notes_changed(store, session)))
    before = automatic_ids(store, session, None)
    if before and stored_nodes.load_one(store.db(), before[0]).metadata.get(STATE) == state:
        return None
    metadata = {
        "trigger": AUTOMATIC + trigger,
        "nextSteps": _cut(steps, STEPS_BYTES),
        "openThreads": _cut(first_of(threads, THREADS_MAX), THREADS_BYTES),
        "gitDiffStat": _cut_to_end(stat, STAT_BYTES),
        STATE: state,
    }
    created = edit.create(
        store, caller, PREFIX + _cut(note or "work in progress", NOTE_BYTES), type="checkpoint",
        lifecycle="session", metadata={key: text for key, text in metadata.items() if text},
        supersedes=before[:1],
    )  # fmt: skip
    return created.node


def _first_line(text: str) -> str:
    return text.removeprefix(PREFIX).strip().partition("\n")[0]


def _head(store: Store) -> str:
    try:
        return store.head()[0] or ""
    except StoreError:
        return ""


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _cut(text: str, most: int) -> str:
    """Return the start of a text within that many bytes of UTF-8."""
    data = text.encode("utf-8", "replace")
    return text if len(data) <= most else data[: most - 3].decode("utf-8", "ignore") + "…"


def _cut_to_end(text: str, most: int) -> str:
    """Return the last whole lines of a text within that many bytes: those of a diff stat have the totals."""
    lines = text.split("\n")
    while len(lines) > 1 and len("\n".join(lines).encode("utf-8", "replace")) > most:
        lines.pop(0)
    return _cut("\n".join(lines), most)


def end_session(
    store: Store,
    caller: Caller,
    *,
    summary: str | None = None,
    done: bool = False,
    reason: str | None = None,
) -> SessionResult:
    """End the caller's session as `announcements.end_session` does; with `done`, check the checkpoint gate before.

    Args:
        summary: What the session did, for others.
        done: First tell everybody that the session's work unit is done.
        reason: Pass the closed gate: append an audit record with this reason. An open gate records nothing.

    Raises:
        GateError: The gate is closed. Nothing was written, and nobody was told.
        UsageError: As in `announcements.end_session`, `no-reason` or `bad-setting`. Nothing was written, and nobody was
            told.
        StoreError: The store could not be read or written.
    """
    from ..agents import audits, lifecycle
    from ..signals import announcements

    if reason is not None and (not done or is_blank(reason)):
        raise UsageError(
            "Passing the checkpoint gate needs a reason, and --done. Nothing was written.",
            hint="The reason is recorded in the log, where everybody can read it.",
            code="no-reason",
        )
    warning = None
    if done and is_closed(store, unit := announcements.unit_of(caller)):
        missing = f"{sanitize(unit)} has no checkpoint"
        if reason is not None:
            lifecycle.end_line(store, caller, summary)  # refuses before the audit
            audit = audits.prepare(
                store, caller, audits.CHECKPOINT_GATE, "no checkpoint", reason, wu=unit
            )  # fmt: skip
            store.record([audit.line], audit.message)
            warning = f"{missing}; the reason is recorded ({audit.id})."
        elif CHECKPOINT_GATE.checked(store.settings()) == BLOCK:
            raise _refusal(missing, unit)
        else:
            warning = f"{missing}: {command('gitmem', 'mem', 'checkpoint', 'what is done', '--wu', unit)}"
    ended = announcements.end_session(store, caller, summary=summary, done=done)
    ended.remark = " ".join(filter(None, (ended.remark, warning))) or None
    return ended


def is_closed(store: Store, unit: str) -> bool:
    """Return whether the gate is on, and the work unit has no checkpoint.

    Raises:
        UsageError: `bad-setting`. Nothing was written.
    """
    if CHECKPOINT_GATE.checked(store.settings()) == OFF:
        return False
    written = stored_nodes.last_checkpoint(store, None, unit, unit)
    return written is None and not stored_nodes.automatic_ids(store, None, unit)


def _refusal(missing: str, unit: str) -> GateError:
    checkpoint = ["gitmem", "mem", "checkpoint", "what is done", "--wu", unit]
    return GateError(
        f"{missing}, and {CHECKPOINT_GATE.key} is {BLOCK}. Nothing was written, and nobody was told.",
        hint="A person can pass the gate with --anyway 'why', which is recorded.",
        code="no-checkpoint",
        next=[command(*checkpoint), "gitmem session end --done"],
    )
