"""The brief of a task: a file of the work tree whose content its caller attests by a digest."""

from __future__ import annotations

from .. import records, work_tree_files
from ..commit_message import sanitize
from ..digests import sha256
from ..errors import UsageError
from ..outcome import Outcome, command
from . import find_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypedDict

    from ..agents.caller import Caller
    from ..records.record_types import TaskRecord
    from ..store import Store

    class Brief(TypedDict, total=False):
        """The options of a new task that attest a brief."""

        artifact: str
        brief_digest: str
        payload: dict[str, Any]


BRIEF_MAX = 256 * 1024  # bytes, as a line of the log: whoever takes the task has to read it
CLIENT_MAX = 200  # characters: the payload is the text of a peer
MATCHES, CHANGED, MISSING = "matches", "changed", "missing"


class BriefCheck(Outcome):
    """Whether a file is the brief that a task's caller attested.

    Attributes:
        status: `matches`, `changed`, or `missing` if the file can't be read in this work tree.
        path: The file that was read.
        attested_sha256: The digest of the attested text.
        attested_length: Its length in bytes; None if the record lacks it.
        attested_at: When it was attested, in ISO 8601.
        attested_client: The client of the session that did; None if the record lacks it.
        sha256: The digest of the text that is there now.
        length: Its length.
        reason: Why it can't be read.
    """

    def __init__(self, task: TaskRecord, path: str, wanted: str) -> None:
        said = task.get("payload", {}).get("brief")
        stated: Mapping[str, Any] = said if isinstance(said, dict) else {}
        length, client = stated.get("length"), stated.get("client")
        self.task_id = task["task_id"]
        self.status = MISSING
        self.path = path
        self.attested_sha256 = wanted
        self.attested_length = length if type(length) is int else None
        self.attested_at = records.shown(task)["created_at"]
        self.attested_client = client[:CLIENT_MAX] if isinstance(client, str) else None
        self.sha256: str | None = None
        self.length: int | None = None
        self.reason: str | None = None
        self.next = [command("gitmem", "task", "show", self.task_id)]

    @property
    def sentence(self) -> str | None:
        """What is wrong, in a sentence; None if nothing is."""
        if self.status == MISSING:
            return f"The brief {self.path} can't be read in this work tree: {self.reason}."
        if self.status == CHANGED:
            return f"The brief {self.path} differs in this work tree from the one that was delegated."
        return None


def attest(top: str | None, path: str, caller: Caller | None = None) -> Brief:
    """Return the options that attest a file: its path, SHA-256 and length. The time is that of the record.

    Args:
        top: The top folder of the work tree.
        path: Relative to it.
        caller: Whoever attests it: the client of its session is recorded, too.

    Raises:
        UsageError: `bad-brief`.
    """
    try:
        content = _read(top, path)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"Invalid brief: {sanitize(path)[:200]}: {_reason(error)}. Nothing was written.",
            hint=f"--brief takes a text file of this work tree, of at most {BRIEF_MAX // 1024} KiB.",
            code="bad-brief",
        ) from None
    stated: dict[str, Any] = {"length": len(content)}
    client = (caller.record or {}).get("client") if caller is not None else None
    if client:
        stated["client"] = client
    return {"artifact": path, "brief_digest": sha256(content).hexdigest(), "payload": {"brief": stated}}


def verify(store: Store, task_id: str, path: str | None = None) -> BriefCheck:
    """Compare a file with the brief that a task's caller attested.

    Args:
        path: The file, relative to the top of the work tree; by default the one that the task names.

    Raises:
        UsageError: `no-brief` if nothing was attested, or no task, or several, have this id.
    """
    task = find_task.require(store, task_id).record
    found = check(store.repo.worktree, task, path)
    if found is None:
        raise UsageError(
            f"No brief is attested: {task['task_id']} has none.",
            hint="`gitmem delegate --brief FILE` attests one.",
            code="no-brief",
            next=[command("gitmem", "task", "show", task["task_id"])],
        )
    return found


def check(top: str | None, task: TaskRecord, path: str | None = None) -> BriefCheck | None:
    """Return how a file of this work tree compares with a task's brief; None if the task has no brief."""
    wanted, path = task.get("brief_digest"), path or task.get("artifact_path")
    if not wanted or not path:
        return None
    found = BriefCheck(task, path, wanted)
    try:
        content = _read(top, path)
    except (OSError, ValueError) as error:
        found.reason = _reason(error)
        return found
    found.sha256, found.length = sha256(content).hexdigest(), len(content)
    found.status = MATCHES if found.sha256 == wanted else CHANGED
    return found


def _read(top: str | None, path: str) -> bytes:
    real = work_tree_files.resolve(top, path) if top is not None else None
    if real is None:
        raise ValueError("there is no such file in this work tree")
    return work_tree_files.read_text(real, BRIEF_MAX).encode()


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or "") if isinstance(error, OSError) else str(error)
