"""Checkpoints that hooks write before a client compacts its context and at a subagent's end, without a model.

They save what is known: the session's note, the next steps of its last written checkpoint, the threads that wait for
it, and git's diff stat. The newest supersedes the session's earlier ones, and none takes the place of a written one.
"""

from __future__ import annotations

from ..agents.delivery import delivery_lock
from ..digests import sha256
from ..errors import StoreError
from . import checkpoints, edit, load, open_threads
from .session_checkpoints import AUTOMATIC, PREFIX, automatic_ids, last_checkpoint, notes_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..store import Store
    from .versioned_node import VersionedNode

# Bytes of each part; with the trigger and the state it is less than 1 KiB.
NOTE_BYTES, STEPS_BYTES, THREADS_BYTES, STAT_BYTES = 160, 320, 160, 300
THREADS_MAX = 5
STATE = "state"  # the key of the digest of what was known
STAT_SECONDS = 2.0  # of each of the two git processes; a hook has six
WAIT_SECONDS = 1.0  # for another hook of the session


def write(
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
    threads = [each.thread_id for each in open_threads.find(store, caller)]
    stat = checkpoints.changes(store, seconds)[0] or ""
    if not (note or steps or stat or threads):
        return None  # nothing to save
    state = _digest(_head(store), stat, note, steps, str(notes_changed(store, session)))
    before = automatic_ids(store, session, None)
    if before and load.load_one(store.db(), before[0]).metadata.get(STATE) == state:
        return None
    listed = ", ".join(threads[:THREADS_MAX])
    more = f" and {len(threads) - THREADS_MAX} more" if threads[THREADS_MAX:] else ""
    metadata = {
        "trigger": AUTOMATIC + trigger,
        "nextSteps": _cut(steps, STEPS_BYTES),
        "openThreads": _cut(listed + more, THREADS_BYTES),
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
