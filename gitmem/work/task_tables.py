"""The tables of tasks in the index: the present state of each task, and the lines it is folded from.

A task has a row once its own line is here; events that came before wait in `task_event`.
"""

from __future__ import annotations

KINDS = ("task", "task_event")

DDL = (
    # `line` is the lowest line of the id; from `state` on what `fold` says. Times are microseconds since the epoch. `unit` is the
    # work unit as typed, `wu_id` the form in which work units are compared. `taken` is whether somebody who may has ever taken it;
    # `actual` is what whoever works on it says of itself, as JSON. `asked` is
    # the requested role as text, `once` whether it begins at most once; `since` is when it began to wait for somebody. `takers` are the agents
    # that took it, if there are several, and `gave_up` those who have released or ended their takes, as JSON: see claims. `refused_by` are
    # those who have rejected a task for a role, as JSON: pairs of identity and session.
    "CREATE TABLE task (task_id TEXT PRIMARY KEY, line INTEGER, caller TEXT, caller_session TEXT, purpose TEXT, agent TEXT,"
    " target_role TEXT, unit TEXT, wu_id TEXT, initiative_id TEXT, priority TEXT, created INTEGER, title TEXT, parent TEXT, asked TEXT, deadline INTEGER, once INTEGER, state TEXT,"
    " decided_by TEXT, holder TEXT, holder_session TEXT, until INTEGER, conflict INTEGER, cancels INTEGER, late INTEGER,"
    " replaced INTEGER, taken INTEGER, touched INTEGER, actual TEXT, mismatch INTEGER, since INTEGER, first_take INTEGER, ended INTEGER,"
    " work TEXT, twin TEXT, takers TEXT, gave_up TEXT, refused_by TEXT) WITHOUT ROWID",
    # For lists: those of an addressee.
    "CREATE INDEX task_agent ON task (agent) WHERE decided_by IS NULL",
    # For the roster, inboxes and contexts: the latest handoffs.
    "CREATE INDEX task_handoff ON task (created) WHERE purpose = 'handoff'",
    # For what concerns somebody: tasks for a role, tasks that somebody has, and tasks without a seal of their caller.
    "CREATE INDEX task_role ON task (target_role) WHERE decided_by IS NULL AND target_role IS NOT NULL",
    "CREATE INDEX task_held ON task (holder) WHERE decided_by IS NULL AND holder IS NOT NULL",
    "CREATE INDEX task_unsealed ON task (caller) WHERE decided_by IS NULL OR decided_by = 'status'",
    # For signals that say that a work unit is done.
    "CREATE INDEX task_open_unit ON task (wu_id) WHERE decided_by IS NULL AND wu_id IS NOT NULL",
    # For trees: the tasks within another.
    "CREATE INDEX task_parent ON task (parent) WHERE parent IS NOT NULL",
    # For tasks that are stuck.
    "CREATE INDEX task_since ON task (since) WHERE decided_by IS NULL OR decided_by = 'status'",
    # For work that was delegated twice, conflicts and late results: see `collisions`.
    "CREATE INDEX task_work ON task (work) WHERE decided_by IS NULL AND work IS NOT NULL",
    "CREATE INDEX task_twin ON task (twin) WHERE decided_by IS NULL AND twin IS NOT NULL",
    "CREATE INDEX task_conflict ON task (task_id) WHERE conflict = 1 AND decided_by IS NULL",
    "CREATE INDEX task_late ON task (since) WHERE late > 0",
    "CREATE TABLE task_line (task_id TEXT, line INTEGER, sender TEXT, session TEXT, PRIMARY KEY (task_id, line)) WITHOUT ROWID",
    "CREATE TABLE task_event (task_id TEXT, line INTEGER, event TEXT, sender TEXT, session TEXT,"
    " PRIMARY KEY (task_id, line)) WITHOUT ROWID",
    # For what a session has taken: see `task_state`.
    "CREATE INDEX task_taken ON task_event (session) WHERE event = 'take'",
    # `at` is that of the lowest line of the event, for the numbers of attempts.
    "CREATE TABLE task_launch (task_id TEXT, event_id TEXT, at TEXT, PRIMARY KEY (task_id, event_id)) WITHOUT ROWID",
    # `kind` is supersedes, handoff or blocked_by; `line` is the line of `from_id` that says so.
    "CREATE TABLE task_link (to_id TEXT, kind TEXT, from_id TEXT, line INTEGER, PRIMARY KEY (to_id, kind, from_id, line))"
    " WITHOUT ROWID",
    "CREATE INDEX task_link_from ON task_link (from_id)",
)
