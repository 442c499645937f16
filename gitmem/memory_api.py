"""The memory in the library: `log.memory`."""

from __future__ import annotations

from .memory import decay, edit, listing, node_fields
from .memory.constants import Constants
from .memory.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from .agents.caller import Caller
    from .memory.accesses import Accessed, Stats
    from .memory.archive import Archived
    from .memory.cleanup import Cleaned
    from .memory.context import Context
    from .memory.delete import Deleted
    from .memory.export import Exported
    from .memory.profile import Profile
    from .memory.promote import Promoted
    from .memory.ready import Ready
    from .memory.recover import Recovered
    from .memory.relations import Related
    from .memory.search import Hit, SearchResult
    from .memory.show_node import Shown
    from .memory.source_files import Source
    from .memory.sources import Indexed
    from .memory.summarize import Summarized
    from .memory.triage import BecameUnit, Triaged
    from .store import Store

    class Opened(Protocol):
        """An open log: its store, and who acts."""

        store: Store

        @property
        def caller(self) -> Caller: ...

    Id = str | Node | edit.Created  # an id or a unique prefix of one, or what has one


class Memory(Constants):
    """The memory of a log's caller. Every method is a function of the same name in `gitmem.memory`."""

    def __init__(self, log: Opened) -> None:
        self._log = log

    def append(self, content: str, **options: Any) -> edit.Created:
        """Write one node down, by the caller, of the commit that HEAD is at.

        Options: type (default discovery), lifecycle (by type), wu and session (those of the caller's session),
        lane, priority (P0 to P3), tags, paths (from the root of the work tree), metadata, sensitive,
        discovered_from (a node), allow_secret.

        Raises: UsageError (RecordError, SecretError) and then nothing was written; StoreError.
        """
        return edit.create(self._log.store, self._log.caller, content, **_with_ids(options))

    create = append

    def append_many(self, many: Iterable[Mapping[str, object]], **options: Any) -> edit.NodesCreated:
        """Write nodes down in one commit: all of them or none. Each has its `content` and the options of `append`."""
        from .index.insert import WithoutCollector

        with WithoutCollector():
            return edit.append(self._log.store, self._log.caller, map(_with_ids, many), **options)

    def checkpoint(self, note: str = "", **options: Any) -> edit.Created:
        """Write down how far the work is; see `checkpoint.checkpoint` for the options."""
        from .memory import checkpoints

        return checkpoints.checkpoint(self._log.store, self._log.caller, note, **options)

    def update(self, *ids: Id, **options: Any) -> edit.NodesChanged:
        """Change fields of nodes; see `nodes.change`."""
        return edit.change(self._log.store, self._log.caller, _ids(ids), **options)

    def relate(self, from_id: Id, type: str, to_id: Id, **options: Any) -> Related:
        """Record that one node blocks, is the parent of, is related to or came from another."""
        from .memory import relations

        return relations.relate(self._log.store, self._log.caller, _id(from_id), type, _id(to_id), **options)

    def get(self, id: Id) -> Node:
        """A node by its id or a unique prefix. UsageError where there is none."""
        from .memory import load as stored
        from .memory import resolve_node

        db = self._log.store.db()
        return stored.one(db, resolve_node.find(db, _id(id)))

    def select(self, **filters: Any) -> listing.Listing:
        """The nodes that fit, the newest first; see `listing.listing` and `listing.Filter`."""
        return listing.listing(self._log.store, **filters)

    def load(self, **filters: Any) -> Sequence[Node]:
        """All nodes that fit, in the order in which they were created; see `listing.Filter`."""
        return listing.every(self._log.store, **filters)

    def by_wu(self, wu: str, *, include_archived: bool = False) -> Sequence[Node]:
        """The nodes of a work unit, in the order in which they were created."""
        return listing.by_wu(self._log.store, wu, include_archived=include_archived)

    def show(self, id: Id) -> Shown:
        """A node with its relations, its history, its score and its commit."""
        from .memory import show_node

        return show_node.show(self._log.store, _id(id))

    def ready(self, wu: str | None = None, *, include_archived: bool = False) -> Ready:
        """What is open in a work unit, P0 first; and what waits for what. Without one: in that of the session."""
        from .memory import ready

        unit = node_fields.unit_of(wu, self._log.caller if wu is None else None)
        return ready.ready(self._log.store, unit, include_archived=include_archived)

    def record_access(self, *ids: Id) -> Accessed:
        """Record that nodes were shown to the caller. No commit is made for it."""
        from .memory import accesses

        return accesses.record(self._log.store, self._log.caller, _ids(ids))

    def record_access_batch(self, ids: Iterable[Id]) -> Accessed:
        """The same for any number of them, in one line."""
        return self.record_access(*ids)

    def access_stats(self, id: Id) -> Stats:
        """How often a node was shown, and when last."""
        from .memory import accesses

        return accesses.stats(self._log.store, _id(id))

    def decay_score(
        self, node: Id, *, now: int | None = None, half_life: int = decay.HALF_LIFE_MICROS
    ) -> float:
        """How much a node matters; `now` is in microseconds since the epoch, `half_life` in microseconds."""
        decay.checked(half_life)
        now = self._log.store.now() if now is None else now
        found = node if isinstance(node, Node) else self.get(node)
        return decay.score(found, now=now, half_life=half_life)

    def recency_score(
        self, node: Node, *, now: int | None = None, half_life: int = decay.HALF_LIFE_MICROS
    ) -> float:
        """The part of it that the age makes: 1 for what was just said."""
        decay.checked(half_life)
        now = self._log.store.now() if now is None else now
        return decay.recency(node.touched, now, half_life)

    def archive(self, **options: Any) -> Archived:
        """Archive what has decayed; see `archive.archive` for the options."""
        from .memory import archive

        return archive.archive(self._log.store, self._log.caller, **options)

    archive_by_decay = archive

    def cleanup(self, **options: Any) -> Cleaned:
        """Delete what has had its time; see `cleanup.cleanup` for the rules and options."""
        from .memory import cleanup

        return cleanup.cleanup(self._log.store, self._log.caller, **options)

    def delete(self, *ids: Id, **filters: Any) -> Deleted:
        """Delete nodes by id or by filters; see `delete.delete`."""
        from .memory import delete

        return delete.delete(self._log.store, self._log.caller, _ids(ids), **filters)

    def export(self, **options: Any) -> Exported:
        """Nodes as one document: `.document`; see `export.export` for formats and filters."""
        from .memory import export

        return export.export(self._log.store, **options)

    def context(self, wu: str | None = None, **options: Any) -> Context:
        """What the memory has on a work unit, as a text for a prompt; see `context.context` and `as_of`."""
        from .memory import context

        return context.of_any_time(self._log.store, self._log.caller, wu=wu, **options)

    def recover(self, **options: Any) -> Recovered:
        """What the caller needs to go on where it was; see `recover.recover` for the options."""
        from .memory import recover

        return recover.recover(self._log.store, self._log.caller, **options)

    def profile(self, **options: Any) -> Profile:
        """What holds for the whole project, and its tags; see `profile.profile` for the options."""
        from .memory import profile

        return profile.profile(self._log.store, **options)

    def promote(self, node: Id | None = None, *, wu: str | None = None, tag: str, **options: Any) -> Promoted:
        """Make project knowledge of a node, or of every summary of a work unit; see `promote.promote`."""
        from .memory import promote

        return promote.promote(self._log.store, self._log.caller, node=_id(node), wu=wu, tag=tag, **options)

    def promote_node(self, node: Id, *, tag: str, **options: Any) -> Promoted:
        """The same of one node: it is the answer's `promoted_node`."""
        return self.promote(node, tag=tag, **options)

    def promote_from_wu(self, wu: str, *, tag: str, **options: Any) -> Promoted:
        """The same of the summaries of a work unit."""
        return self.promote(wu=wu, tag=tag, **options)

    def summarize(self, wu: str, **options: Any) -> Summarized:
        """Sum up what a work unit has that no summary covers yet; see `summarize.summarize`."""
        from .memory import summarize

        return summarize.summarize(self._log.store, self._log.caller, wu, **_with_ids(options))

    def triage(self, **options: Any) -> Triaged:
        """Open discoveries and outgrown nodes; see `triage.listing`."""
        from .memory import triage

        return triage.listing(self._log.store, **options)

    def triage_promote(self, node: Id, **options: Any) -> BecameUnit:
        """The work unit that a discovery asks for, and the record that it became one; see `triage.promote`."""
        from .memory import triage

        return triage.promote(self._log.store, self._log.caller, _id(node), **options)

    def triage_archive(self, *ids: Id, reason: str) -> edit.NodesChanged:
        """Put nodes away, with a reason."""
        from .memory import triage

        return triage.archive(self._log.store, self._log.caller, _ids(ids), reason=reason)

    def index(self, *sources: str, **options: Any) -> Indexed:
        """Make nodes of the files that describe the project; see `sources.index`."""
        from .memory import sources as room

        return room.index(self._log.store, self._log.caller, sources=sources, **options)

    index_project = index

    @staticmethod
    def default_sources() -> Sequence[Source]:
        """The files that `index` looks at without being asked to."""
        from .memory import sources

        return sources.default_sources()

    def search(self, query: str, *, track_access: bool = False, **options: Any) -> SearchResult:
        """What was written down about something; see `search.recall` for the options."""
        from .memory import search

        reader = self._log.caller if track_access else None
        return search.search(self._log.store, query, reader=reader, **options)

    def recall(self, query: str, **options: Any) -> list[Hit]:
        """The nodes about something, the best match first; records nothing."""
        from .memory import search

        return search.recall(self._log.store, query, **options)


def _id(given: Any) -> Any:
    """The id of a node, or of what wrote or found one; anything else as it is, for `known.find` to judge."""
    node = getattr(given, "node", given)
    return getattr(node, "id", node)


def _ids(given: Iterable[Any]) -> list[Any]:
    return [_id(each) for each in given]


def _with_ids(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in which nodes stand for their ids."""
    found = dict(options)
    if found.get("discovered_from") is not None:
        found["discovered_from"] = _id(found["discovered_from"])
    if isinstance(found.get("only"), (list, tuple)):
        found["only"] = _ids(found["only"])
    return found
