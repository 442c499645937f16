"""What a task asks for: role, scope, model, and a brief, a file of the work tree whose digest its caller attests; and who differs."""

from __future__ import annotations

from .. import records
from ..agents import descriptions, descriptors
from ..commit_message import sanitize
from ..errors import UsageError
from ..git import work_tree_files
from ..order.causal import by_line
from ..outcome import Outcome, command
from ..records.ids import role_id
from ..text.digests import sha256
from ..text.name_matching import is_identity
from ..text.sanitize import SEPARATOR, minute
from . import stored_tasks, task_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from typing import Any, TypedDict

    from ..agents import vocabulary
    from ..agents.caller import Caller
    from ..order.task import FoldedTask, TaskEvent
    from ..records.record_types import TaskRecord
    from ..store import Store
    from .task_records import TakeFacts

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


def attest_brief(top: str | None, path: str, caller: Caller | None = None) -> Brief:
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


def verify_brief(store: Store, task_id: str, path: str | None = None) -> BriefCheck:
    """Compare a file with the brief that a task's caller attested.

    Args:
        path: The file, relative to the top of the work tree; by default the one that the task names.

    Raises:
        UsageError: `no-brief` if nothing was attested, or no task, or several, have this id.
    """
    task = task_rules.require(store, task_id).record
    found = check_brief(store.repo.worktree, task, path)
    if found is None:
        raise UsageError(
            f"No brief is attested: {task['task_id']} has none.",
            hint="`gitmem delegate --brief FILE` attests one.",
            code="no-brief",
            next=[command("gitmem", "task", "show", task["task_id"])],
        )
    return found


def check_brief(top: str | None, task: TaskRecord, path: str | None = None) -> BriefCheck | None:
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


_TEXTS = ("model", "client", "worktree", "branch")
SHOWN_MAX = 10  # takes of a task that are compared


class TakeMismatch(Outcome):
    """How a taker differs from what was requested.

    Attributes:
        take: The event of its take.
        text: A sentence about it.
        scope_fields: The fields of the scope that differ.
    """

    def __init__(self, take: str, text: str, values: Mapping[str, Any]) -> None:
        self.take = take
        self.text = text
        descriptors.set_fields(self, values)


def parts(role: vocabulary.Role) -> dict[str, Any]:
    """Return a role that was looked up, in parts."""
    values = {
        "lifecycle_role": role.lifecycle_role,
        "specialty_profile": role.specialty_profile,
        "role_alias": role.role_alias,
        "capabilities": role.capabilities,
    }
    return {name: value for name, value in values.items() if value or name == "capabilities"}


def of_text(text: str) -> dict[str, Any]:
    """Return a role in parts, of a text as in `target_role`."""
    lifecycle, _, specialty = text.partition("/")
    special = {"specialty_profile": specialty} if specialty else {}
    return {"lifecycle_role": lifecycle, **special, "capabilities": []}


def scope_of(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the scope that a folded session states; empty if it states none."""
    found = descriptions.scope_of(record.get("actual_ownership_scope") or "{}")
    return dict(found.as_json()) if found is not None else {}


def facts_of(caller: Caller) -> TakeFacts:
    """Return what the caller's session says of itself, for its take."""
    record = caller.record or {}
    facts: Any = {name: record[name] for name in _TEXTS if record.get(name)}
    if role := descriptions.actual_role(record):
        facts["actual_role"] = role
    if covered := scope_of(record):
        facts["actual_ownership_scope"] = covered
    found: TakeFacts = facts
    return found


def addressed_by(caller: Caller) -> tuple[str | None, str | None]:
    """Return the roles that tasks for a caller's role name: its role, and its lifecycle role alone, for any profile."""
    record = caller.record or {}
    lifecycle = record.get("lifecycle_role")
    return role_id(lifecycle, record.get("specialty_profile")), lifecycle


def asked(values: Mapping[str, Any]) -> str | None:
    """Return in one line which role, model and scope a task asks for, and until when it may begin; None if it says nothing of them.

    Args:
        values: Its record, or its row in a list.
    """
    covered = descriptors.read_scope(values.get("requested_ownership_scope"))
    where = covered and (covered.paths or covered.wu_ids or covered.lane or covered.initiative_id)
    role = descriptors.role_text(values.get("requested_role")) or values.get("target_role")
    until = values.get("deadline")
    found = [
        *(descriptors.listed(each) for each in (role, values.get("requested_model"), where) if each),
        *([f"until {minute(until)}"] if until else []),
    ]
    return SEPARATOR.join(found) or None


def brief_text(top: str | None, task: TaskRecord) -> str | None:
    """Return the path of a task's brief, and whether it is in this work tree as attested; None if the task has none."""
    found = check_brief(top, task)
    if found is None:
        return None
    status = "as attested" if found.status == MATCHES else found.status
    return f"{descriptors.listed(found.path)} ({status})"


def mismatches(task: FoldedTask) -> list[TakeMismatch]:
    """Return how the valid takers of a task differ from what was requested; of many takes the last ones."""
    found = (_mismatch(task, take) for take in task.takes[-SHOWN_MAX:])
    return [each for each in found if each is not None]


def fields_of(task: FoldedTask, take_id: str | None = None) -> dict[str, Any]:
    """Return the fields `descriptors.COMPARED` of a task and a take of it; of whoever works on it if that take is none."""
    take = next((each for each in task.takes if each.id == take_id), None) or task.worker_take
    return descriptors.fields_of(task.record, take.record if take is not None else {})


def _asked(task: FoldedTask, take: TaskEvent) -> str | None:
    """Return whom a task was asked of, by name if that agent took it, too; None if that is the taker, or a session, which may be the taker's."""
    agent = task.record.get("agent")
    if not agent or agent in take.sender or not is_identity(agent):
        return None
    return (
        next((each.record.get("sender_name") for each in task.takes if agent in each.sender), None) or agent
    )


def _mismatch(task: FoldedTask, take: TaskEvent) -> TakeMismatch | None:
    values = descriptors.fields_of(task.record, take.record)
    text = descriptors.mismatch_sentence(
        take.record.get("sender_name") or take.sender[0], values, _asked(task, take)
    )
    return TakeMismatch(take.id, text, values) if text else None


LAUNCHES_SHOWN = 20  # launches of a task that an answer has: the last ones


class LaunchReceipt(Outcome, kw_only=True):
    """What was asked of a worker that was started for a task, and what it is.

    Attributes:
        launch: The event: the stable name of the attempt.
        attempt: The label that its launcher gave the attempt.
        attempt_number: Its place among the launches of the initiative, or of a task without one.
        actual_role: The role of the taker; before a take that of the launched worker, if its launcher knows it.
        role_mismatch: Whether it differs from the requested one; None if one of them is not known.
        client: As the launcher said, else the taker; so are `branch` and `worktree`.
        take: The take that followed.
        last_actual_role: Of a relaunch: the role of the last worker before it.
        relaunch_reason: Why it was launched again.
    """

    task_id: str
    launch: str
    attempt: str | None = None
    attempt_number: int | None = None
    initiative_id: str | None = None
    wave: str | None = None
    wu_id: str | None = None
    lane: str | None = None
    claimed_mode: str | None = None
    client: str | None = None
    requested_model: str | None = None
    branch: str | None = None
    worktree: str | None = None
    handoff_path: str | None = None
    requested_role: Mapping[str, Any] | None = None
    actual_role: Mapping[str, Any] | None = None
    requested_ownership_scope: Mapping[str, Any] | None = None
    actual_ownership_scope: Mapping[str, Any] | None = None
    role_mismatch: bool | None
    scope_mismatch: bool | None
    take: str | None
    relaunch_of: str | None = None
    relaunch_reason: str | None
    last_actual_role: Mapping[str, Any] | None
    launched_by: str
    launched_at: str


_OF_TASK = (
    "initiative_id",
    "wu_id",
    "lane",
    "requested_model",
    "requested_role",
    "requested_ownership_scope",
)
_OF_TAKER = ("client", "branch", "worktree")
_OF_WORKER = ("actual_role", "actual_ownership_scope")


def receipts(db: sqlite3.Connection, task: FoldedTask) -> list[LaunchReceipt]:
    """Return the receipts of the last launches of a task, in their order."""
    return [receipt(db, task, each) for each in launches_of(task)[-LAUNCHES_SHOWN:]]


def receipt(db: sqlite3.Connection, task: FoldedTask, launch: TaskEvent) -> LaunchReceipt:
    """Return the receipt of a launch of a task."""
    take = take_after(task, launch, launches_of(task))
    said: Mapping[str, Any] = launch.record
    came: Mapping[str, Any] = take.record if take is not None else {}
    values: dict[str, Any] = {}
    for record, names in ((task.record, _OF_TASK), (came, _OF_TAKER), (said, said), (came, _OF_WORKER)):
        values |= {name: record[name] for name in names if record.get(name)}  # type: ignore[literal-required]
    compared = descriptors.compare_fields(values)
    reason = said.get("reason")
    return LaunchReceipt.taken_from(
        values,
        launch=launch.id,
        attempt_number=stored_tasks.launch_numbers(db, task).get(launch.id),
        role_mismatch=compared.role_mismatch,
        scope_mismatch=compared.scope_mismatch,
        take=take.id if take is not None else None,
        relaunch_reason=reason,
        last_actual_role=_role_before(task, launch) if reason else None,
        launched_by=said.get("sender_name") or launch.sender[0],
        launched_at=said["at"],
    )


def launches_of(task: FoldedTask) -> Sequence[TaskEvent]:
    """Return the launches of a task in their order."""
    return by_line(each for each in task.events.values() if each.event == "launch")


def _role_before(task: FoldedTask, launch: TaskEvent) -> Mapping[str, Any] | None:
    """Return the role of the last worker that a launcher knew of, of those whose role is known."""
    known = (each for each in (*task.takes, *launches_of(task)) if task.has_seen(launch, each))
    roles = [each.record["actual_role"] for each in by_line(known) if each.record.get("actual_role")]
    return roles[-1] if roles else None


def take_after(task: FoldedTask, launch: TaskEvent, every: Sequence[TaskEvent]) -> TaskEvent | None:
    """Return the last take that names a launch, else the last one whose taker had seen it and no later launch."""
    named = [each for each in task.takes if each.record.get("launch") == launch.id]
    if named:
        return named[-1]
    later = [each for each in every if task.has_seen(each, launch)]
    for take in reversed(task.takes):
        is_after = take.record.get("launch") is None and task.has_seen(take, launch)
        if is_after and not any(task.has_seen(take, each) for each in later):
            return take
    return None
