"""The library's face of the memory: `log.memory`."""

from __future__ import annotations

from . import nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..facade import Log
    from .fold import Node
    from .relations import Related


class Memory:
    """The memory of a log's caller. Every method is a function of the same name in `operations.memory`."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def append(self, content: str, **options: Any) -> nodes.Created:
        """Write one node down; see `nodes.append` for the options and errors."""
        return nodes.create(self._log.store, self._log.caller, content, **options)

    create = append

    def append_many(self, many: Iterable[Mapping[str, object]], **options: Any) -> nodes.Appended:
        """Write nodes down in one commit: all of them or none."""
        return nodes.append(self._log.store, self._log.caller, many, **options)

    def update(self, *ids: str, **options: Any) -> nodes.Changed:
        """Change fields of nodes; see `nodes.change`."""
        return nodes.change(self._log.store, self._log.caller, ids, **options)

    def relate(self, from_id: str, type: str, to_id: str, **options: Any) -> Related:
        """Record that one node blocks, is the parent of, is related to or came from another."""
        from . import relations

        return relations.relate(self._log.store, self._log.caller, from_id, type, to_id, **options)

    def get(self, id: str) -> Node:
        """A node by its id or a unique prefix. UsageError where there is none."""
        from . import known, stored

        db = self._log.store.db()
        return stored.one(db, known.find(db, id))
