"""What a store needs from the packages above it, which import the store."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from .index.index_file import View
    from .outcome import PartOfAnswer
    from .records.record_types import AnyFields
    from .trust.clone_key import CloneKeyReader

    class Domain(Protocol):
        """The functions that a store needs from the packages above it, which import the store.

        Attributes:
            completed_kinds: The kinds of record that `complete` adds fields to.
        """

        completed_kinds: tuple[str, ...]

        def views(self, keys: CloneKeyReader | None = None) -> Sequence[View]:
            """Return the views of the index; with keys, those that check which lines this clone wrote."""

        def complete(self, db: sqlite3.Connection, kind: str, fields: AnyFields) -> Mapping[str, object]:
            """Return the fields of a new record, with those that depend on the index's content."""

        def feed(self, store: Any) -> None:
            """Note new signals of the index in the queues of this clone's sessions. Never raise an error."""

        def last_checkpoint(self, db: sqlite3.Connection, session_id: str) -> str:
            """Return the first line of a session's last checkpoint that is not sensitive; "" if there is none."""

        def answer_task(self, store: Any, caller: Any, answered: Any, about: Any, fields: Any) -> Any:
            """Return what a signal in the thread of a task changes of the task, see `signals.reply.TaskAnswer`."""

        def cancellations(self, store: Any, caller: Any, shown: Any) -> list[tuple[str, bytes]]:
            """Return the seals that cancel tasks of a caller that were given back, as it was shown."""

        def finished_fences(self, store: Any) -> list[str]:
            """Return the names of this clone's fences whose work is over, see `sync.fences`."""

        def waiting_work(self, store: Any, caller: Any) -> PartOfAnswer | None:
            """Return the tasks, handoffs and claims that wait for a caller; None if there are none."""

        def unread_counts(
            self, store: Any, reader: str, session: str | None, workspace: str | None, *, directed: bool
        ) -> tuple[int, int]:
            """Return how many signals a reader has not read, and how many of these want an answer from it."""

        def own_work(self, store: Any, caller: Any) -> PartOfAnswer | None:
            """Return also what a caller has taken and claimed; None if there is nothing."""

        def open_work(self, store: Any, wu: str | None = None) -> PartOfAnswer | None:
            """Return the tasks that somebody has, the open handoffs and the claims, or those on a work unit; None without any."""
