"""Work: tasks, claims on paths, handoffs.

A task is work that somebody asks another to do. It is written by its *caller*. Whoever takes it is its *holder* for the time of a lease.
The caller pins the outcome that it acts on with a `seal`; until then the outcome may change, when events of other clones arrive.
"""

from __future__ import annotations

ONCE = "at-most-once"  # the semantics of a task that may begin only once
CALL = "call"  # the purpose of tasks that a caller waits for
HANDOFFS_MAX = 50  # tasks that a handoff hands over, and handoffs of a task; readers ignore further ones
ACCEPTANCES_MAX = 20  # takes of a handoff that count for the tasks that it hands over
HANDOFF_MICROS = 24 * 3600 * 1_000_000  # for which a handoff waits for an answer
LINKS_MAX = 50  # of each kind in one task; readers ignore further ones
EVENTS_MAX = 200  # events of a task that writers write; renewals, outcomes and releases may follow
READ_MAX = 1_000  # lines of a task's events that readers read: a peer may have written any number
