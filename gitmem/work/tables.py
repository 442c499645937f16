"""Tasks and claims as entities of the index: a row for each task whose own line is here, and for each claim that has begun."""

from __future__ import annotations

from .. import records
from ..index import entities
from ..order import claim as claim_fold
from ..records.ids import unit_key
from . import READ_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence

    from ..index.entities import Lines
    from ..order.claim import FoldedClaim


TASK = entities.EntityKind(
    "task",
    {"task": "task_id", "task_event": "task_id"},
    "task_id",
    # `line` is the lowest line of the id; from `state` on what the fold says. Times are microseconds since the epoch. `unit` is the
    # work unit as typed, `wu_id` the form in which work units are compared. `taken` is whether somebody who may has ever taken it;
    # `actual` is what whoever works on it says of itself, as JSON. `asked` is
    # the requested role as text, `once` whether it begins at most once; `since` is when it began to wait for somebody. `takers` are the agents
    # that took it, if there are several, and `gave_up` those who have released or ended their takes, as JSON: see claims. `refused_by` are
    # those who have rejected a task for a role, as JSON: pairs of identity and session.
    "line INTEGER, caller TEXT, caller_session TEXT, purpose TEXT, agent TEXT, target_role TEXT, unit TEXT, wu_id TEXT, initiative_id TEXT,"
    " priority TEXT, created INTEGER, title TEXT, parent TEXT, asked TEXT, deadline INTEGER, once INTEGER, work TEXT, twin TEXT, state TEXT,"
    " decided_by TEXT, holder TEXT, holder_session TEXT, until INTEGER, conflict INTEGER, cancels INTEGER, late INTEGER, replaced INTEGER,"
    " taken INTEGER, touched INTEGER, actual TEXT, mismatch INTEGER, since INTEGER, first_take INTEGER, ended INTEGER, takers TEXT,"
    " gave_up TEXT, refused_by TEXT",
    records.read,
    indexes={
        # For lists: those of an addressee.
        "agent": "(agent) WHERE decided_by IS NULL",
        # For the roster, inboxes and contexts: the latest handoffs.
        "handoff": "(created) WHERE purpose = 'handoff'",
        # For what concerns somebody: tasks for a role, tasks that somebody has, and tasks without a seal of their caller.
        "role": "(target_role) WHERE decided_by IS NULL AND target_role IS NOT NULL",
        "held": "(holder) WHERE decided_by IS NULL AND holder IS NOT NULL",
        "unsealed": "(caller) WHERE decided_by IS NULL OR decided_by = 'status'",
        # For signals that say that a work unit is done.
        "open_unit": "(wu_id) WHERE decided_by IS NULL AND wu_id IS NOT NULL",
        # For trees: the tasks within another.
        "parent": "(parent) WHERE parent IS NOT NULL",
        # For tasks that are stuck.
        "since": "(since) WHERE decided_by IS NULL OR decided_by = 'status'",
        # For work that was delegated twice, conflicts and late results: see `collisions`.
        "work": "(work) WHERE decided_by IS NULL AND work IS NOT NULL",
        "twin": "(twin) WHERE decided_by IS NULL AND twin IS NOT NULL",
        "conflict": "(task_id) WHERE conflict = 1 AND decided_by IS NULL",
        "late": "(since) WHERE late > 0",
    },
    ddl=(
        # `at` is that of the lowest line of the event, for the numbers of attempts.
        *entities.table(
            "task_launch", "task_id TEXT, event_id TEXT, at TEXT, PRIMARY KEY (task_id, event_id)"
        ),
        # What the lowest line of `from_id` says, with its writer and time; `kind` is supersedes, handoff or blocked_by.
        *entities.table(
            "task_link",
            "to_id TEXT, kind TEXT, from_id TEXT, caller TEXT, caller_session TEXT, created INTEGER, PRIMARY KEY (to_id, kind, from_id)",
            {"from": "(from_id)"},
        ),
    ),
    line_indexes={
        "taken": "(session) WHERE event = 'take'"
    },  # for what a session has taken: see `task_state`
    events=("task_event",),
    most=READ_MAX,
)

CLAIM = entities.EntityKind(
    "claim",
    {"claim": "claim_id"},
    "claim_id",
    # Times are microseconds since the epoch.
    "line INTEGER, owner TEXT, session TEXT, mode TEXT, since INTEGER, until INTEGER, released INTEGER, task_id TEXT, wu_id TEXT",
    records.read,
    # `until` is for the claims that have not ended: those that have are never deleted.
    indexes={"owner": "(owner)", "until": "(until)"},
    table="path_claim",
    events=("claim",),
    begins="claim",
    most=claim_fold.READ_MAX,
)


def folded_claim(db: sqlite3.Connection, claim_id: str, ahead: int | None = None) -> FoldedClaim | None:
    """Return a claim, folded from its lines; None if none of them begins it.

    Args:
        ahead: The time after which lines do not count yet.
    """
    return _fold(entities.lines(db, CLAIM, claim_id), ahead)


def _fold(lines: Lines, ahead: int | None = None) -> FoldedClaim | None:
    found = claim_fold.fold(((row.record, row.line) for row in lines), ahead)
    if found is not None:
        found.left_out = lines.left_out
    return found


def _rows(_: sqlite3.Connection, claims: Mapping[str, Lines]) -> Iterator[Sequence[object]]:
    for claim_id, lines in claims.items():
        found = _fold(lines)
        if found is not None:
            record = found.record
            yield (
                claim_id, lines.number(found.line), *found.owner, record["mode"], found.since, found.until,
                int(found.released is not None), record.get("task_id"), unit_key(record.get("wu_id")),
            )  # fmt: skip


CLAIM_FOLD = entities.Fold(_rows)
