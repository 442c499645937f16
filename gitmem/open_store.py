"""Open the store of a repository, with the functions that the domain packages provide to it."""

from __future__ import annotations

from .agents import broadcasts, heartbeats
from .git.repository import open_port
from .repo import reject_unsupported
from .store import Store, wall_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence

    from .agents.caller import Caller
    from .index.entities import View
    from .outcome import PartOfAnswer, Progress
    from .records.record_types import AnyFields, ShownSignal, SignalFields, SignalRecord
    from .repo import Repo
    from .signals.reply import TaskAnswer
    from .trust.own_sessions import Own


class DomainPackages:
    """The functions of agents, mailboxes, memory and tasks that a store needs, see `store.Domain`.

    Modules that only some commands need are imported in the functions that use them.
    """

    completed_kinds: tuple[str, ...] = broadcasts.READER_KINDS

    def views(self, own: Callable[[], Own] | None = None) -> Sequence[View]:
        """Return the views of the index."""
        from . import views

        return views.VIEWS if own is None else views.checked(own)

    def complete(self, db: sqlite3.Connection, kind: str, fields: AnyFields) -> Mapping[str, object]:
        """Return the fields of a new record with the broadcasts that its writer had seen."""
        return broadcasts.with_seen(db, kind, fields)

    def feed(self, store: Store) -> None:
        """Raise the flags of this clone's sessions for what is new in the index."""
        if not heartbeats.are_flags_raised(store.index.db, store.repo.state):
            from .agents import delivery

            delivery.raise_new(store)
        if heartbeats.are_claims_due(store.index.db, store.now()):
            from .work import edit_guard

            edit_guard.update(store)
        db = store.index.db
        lines = _lines_with_collisions(db, store.now())
        if lines is not None:
            from .agents import delivery
            from .work import collisions

            if delivery.tell_once(store, lambda: collisions.news(store, lines[0])):
                db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_TOLD_UP_TO, str(lines[1])))

    def last_checkpoint(self, db: sqlite3.Connection, session_id: str) -> str:
        """Return the first line of a session's last checkpoint that is not sensitive; "" if there is none."""
        from .memory import node_tables

        id = node_tables.last_checkpoint_id(db, session_id)
        if id is None:
            return ""
        from .memory import stored_nodes

        text = stored_nodes.load_one(db, id).content.strip()
        return text.removeprefix(node_tables.PREFIX).split("\n", 1)[0]

    def answer_task(
        self, store: Store, caller: Caller, answered: SignalRecord, about: SignalRecord, fields: SignalFields
    ) -> TaskAnswer:
        """Return what an answer in the thread of a task changes of the task."""
        from .work import task_records

        return task_records.of_reply(store, caller, answered, about, fields)

    def cancellations(
        self, store: Store, caller: Caller | None, shown: Sequence[ShownSignal]
    ) -> list[tuple[str, bytes]]:
        """Return the seals that cancel tasks of a caller that were given back, as it was shown."""
        if caller is None or not any(each.get("task_id") for each in shown):
            return []
        from .work import task_decisions

        return task_decisions.cancellations(store, caller, shown)

    def finished_fences(self, store: Store) -> list[str]:
        """Return the names of this clone's fences whose tasks have an end that nothing changes."""
        from .sync import fences

        names = fences.names(store)
        if not names:
            return []
        from .work import task_work

        return [name for name in names if task_work.is_over(store, name)]

    def waiting_work(self, store: Store, caller: Caller | None) -> PartOfAnswer | None:
        """Return what waits for a caller beside signals; None if nothing does."""
        from .agents import waiting_work

        if caller is None or not waiting_work.is_any(
            store.db(), waiting_work.values_for(caller, store.now())
        ):
            return None
        from .history import open_work

        return open_work.of_inbox(store, caller)

    def unread_counts(
        self, store: Store, reader: str, session: str | None, workspace: str | None, *, directed: bool
    ) -> tuple[int, int]:
        """Return how many signals a reader has not read, and how many of these want an answer from it."""
        from .signals.empty_inbox import unread_counts

        return unread_counts(store.db(), reader, session, workspace, store.now(), directed=directed)

    def own_work(self, store: Store, caller: Caller) -> PartOfAnswer | None:
        """Return what a caller has taken and claimed, and what waits for it; None without any of these."""
        from .agents import waiting_work

        if not waiting_work.is_any_of(store.db(), waiting_work.values_for(caller, store.now())):
            return None
        from .history import open_work

        return open_work.Concerns(store, caller)

    def open_work(self, store: Store, wu: str | None = None) -> PartOfAnswer | None:
        """Return who works on what, the open handoffs and the claims, or those on a work unit; None without any of these."""
        from .agents import waiting_work

        if not waiting_work.is_any_of_all(store.db(), store.now()):
            return None
        from .history import open_work

        return open_work.open_work(store, wu=wu)

    def waits(self, store: Store, caller: Caller | None) -> PartOfAnswer | None:
        """Return who waits for whom; None if nobody can."""
        from .agents import waiting_work

        if not waiting_work.may_anybody_wait(store.db(), store.now()):
            return None
        from .history import open_work

        return open_work.waits(store, caller)


_TOLD_UP_TO = "task collisions"  # in `meta`: the line up to which sessions were told of collisions
_LATE_MICROS = 30 * 24 * 3600 * 1_000_000  # for which sessions are told of late results
# Without rows, which partial indexes show, or without a new line, no module of tasks is imported.
_COLLISIONS = (
    "SELECT seen, newest, seen IS NOT newest AND (EXISTS (SELECT 1 FROM task WHERE conflict = 1 AND decided_by IS NULL)"
    " OR EXISTS (SELECT 1 FROM task WHERE late > 0 AND since > ?)"
    + "".join(
        f" OR EXISTS (SELECT 1 FROM task WHERE decided_by IS NULL AND {key} IS NOT NULL GROUP BY {key} HAVING count(*) > 1)"
        for key in ("work", "twin")
    )
    + f") FROM (SELECT (SELECT CAST(value AS INTEGER) FROM meta WHERE key = '{_TOLD_UP_TO}') AS seen, (SELECT max(id) FROM line) AS newest)"
)


def _lines_with_collisions(db: sqlite3.Connection, now: int) -> tuple[int, int] | None:
    """Return the lines after which, and up to which, work may have been delegated, taken or done twice; None if it was not."""
    try:
        seen, newest, has_any = db.execute(_COLLISIONS, (now - _LATE_MICROS,)).fetchone()
    except Exception:
        return None  # the index has no tables yet, or another process rebuilds it
    return (seen or 0, newest) if has_any else None


DOMAIN = DomainPackages()


def open_store(
    repo: Repo,
    *,
    machine: str,
    long_lived: bool,
    now: Callable[[], int] = wall_clock,
    commit_after: float = 0.0,
    wal_elsewhere: Sequence[str] = (),
    wals_read: Sequence[str] = (),
    keys_folder: str = "",
    key_file: str = "",
    progress: Progress | None = None,
) -> Store:
    """Open the store of a repository; the arguments are those of `Store` and `open_port`.

    Raises:
        StoreError: `unsupported-repository`.
    """
    reject_unsupported(repo)
    git = open_port(repo, long_lived=long_lived)
    return Store(repo, git, DOMAIN, machine=machine, now=now, commit_after=commit_after, wal_elsewhere=wal_elsewhere,
                 wals_read=wals_read, keys_folder=keys_folder, key_file=key_file, progress=progress)  # fmt: skip
