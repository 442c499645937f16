"""The library's interface to the memory: `log.memory`, with its constants and the validation of data that programs supply."""

from __future__ import annotations

from .. import records
from ..agents import caller as callers
from ..memory import context, decay, edit, listing, node_fields
from ..order.node import VersionedNode
from . import checked_methods, serialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..memory.context import Context, Profile, Recovered
    from ..memory.decay import Accessed, Stats
    from ..memory.edit import RelationResult
    from ..memory.knowledge import Promoted, Summarized
    from ..memory.listing import Exported, NodeDetail, Ready
    from ..memory.search import Hit, SearchResult
    from ..memory.sources import Indexed, Source
    from ..memory.triage import PromotedToUnit, Triaged
    from ..memory.upkeep import Archived, CleanupResult, Deleted
    from ..store import Store
    from . import Opened

    Id = str | VersionedNode | edit.Created  # an id, a unique prefix of one, or an object that has one


_OTHER_FIELDS = {"schema_version": "A2A.V1", "sender_identity": "nobody:in:particular"}


@checked_methods
class Constants:
    """Constants and checks of the memory; times are in microseconds."""

    DEFAULT_HALF_LIFE = decay.HALF_LIFE_MICROS
    DEFAULT_DECAY_THRESHOLD = decay.THRESHOLD
    DEFAULT_PROFILE_LIMIT = context.PROFILE_LIMIT
    IMPORTANCE_BY_PRIORITY = decay.IMPORTANCE
    NODE_TYPES = node_fields.TYPES
    LIFECYCLES = node_fields.LIFECYCLES
    RELATION_TYPES = node_fields.RELATIONS
    PROMOTION_TAGS = node_fields.TAXONOMY

    @staticmethod
    def access_score(node: VersionedNode) -> float:
        """Return the access part of a node's decay score: 0 if it was never read."""
        return decay.access(node.accesses)

    @staticmethod
    def importance_score(node: VersionedNode) -> float:
        """Return the priority part of a node's decay score: 1 without a priority."""
        return decay.importance(node.priority)

    @staticmethod
    def is_archived(node: VersionedNode) -> bool:
        """Return whether a node is archived and not deleted."""
        return node.archived and not node.deleted

    @staticmethod
    def validate_node(data: object) -> str | None:
        """Return what is invalid in the fields of a node, as a sentence, or None. Unknown fields are ignored."""
        return _fault("node", data)

    @staticmethod
    def validate_relation(data: object) -> str | None:
        """Return what is invalid in the fields of a relation, as a sentence, or None. The id is optional."""
        return _fault("relation", {"id": "rel-0000", **data} if isinstance(data, dict) else data)


def _fault(kind: str, data: object) -> str | None:
    if not isinstance(data, dict):
        return f"The {kind} must be an object, not {ascii(data)[:60]}"
    for name in ("created_at", "updated_at"):
        if data.get(name) is not None and not _is_time(data[name]):
            return f"The {kind}'s {name} must be a time such as 2026-11-21T20:00:00Z"
    fields = {name: value for name, value in data.items() if name not in ("created_at", "updated_at")}
    try:
        records.line(kind, 0, {**_OTHER_FIELDS, **fields}, allow_secret=True, writer=None)
    except records.RecordError as error:
        return error.message.removesuffix(". Nothing was written.")
    return None


def _is_time(text: object) -> bool:
    from datetime import datetime

    try:
        return isinstance(text, str) and datetime.fromisoformat(text).year > 0
    except ValueError:
        return False


@serialized
class Memory(Constants):
    """The memory of a log's caller. Each method calls a function in `gitmem.memory`."""

    def __init__(self, log: Opened) -> None:
        self._log = log

    @property
    def _store(self) -> Store:
        """The store as the caller sees it, with its private nodes."""
        from ..memory import reader_store

        return reader_store.for_reader(self._log.store, self._caller_if_any)

    def append(self, content: str, **options: Any) -> edit.Created:
        """Write one node, by the caller, with the commit of HEAD.

        Options: type (default discovery), lifecycle (default by type), wu and session (default those of the caller's
        session), lane, priority (P0 to P3), tags, paths (from the root of the worktree), metadata, sensitive,
        discovered_from (a node), supersedes (nodes), private (in this clone only, for the caller alone).

        Raises:
            UsageError: as RecordError the node is invalid, as SecretError it contains a secret; nothing was written.
            StoreError: the store could not be read or written.
        """
        return edit.create(self._store, self._log.caller, content, **_with_ids(options))

    create = append

    def append_many(self, many: Iterable[Mapping[str, object]], **options: Any) -> edit.NodesCreated:
        """Write nodes in one commit, all of them or none: for each its `content` and the options of `append`."""
        from ..index.catch_up import WithoutCollector

        with WithoutCollector():
            return edit.append(self._store, self._log.caller, map(_with_ids, many), **options)

    def checkpoint(self, note: str = "", **options: Any) -> edit.Created:
        """Write a checkpoint of the work; see `checkpoints.checkpoint` for the options."""
        from ..memory import checkpoints

        return checkpoints.checkpoint(self._log.store, self._log.caller, note, **options)

    def update(self, *ids: Id, **options: Any) -> edit.NodesChanged:
        """Change fields of nodes; see `edit.change`."""
        return edit.change(self._store, self._log.caller, _ids(ids), **options)

    def relate(self, from_id: Id, type: str, to_id: Id, **options: Any) -> RelationResult:
        """Record a relation of two nodes: one of `RELATION_TYPES`."""
        return edit.relate(self._store, self._log.caller, _id(from_id), type, _id(to_id), **options)

    def get(self, id: Id) -> VersionedNode:
        """Return a node, by its id or a unique prefix. An unknown or ambiguous id is a UsageError."""
        from ..memory import stored_nodes

        db = self._store.db()
        return stored_nodes.load_one(db, stored_nodes.find_node(db, _id(id)))

    def select(self, **filters: Any) -> listing.Listing:
        """Return matching nodes, newest first; see `listing.listing` and `listing.Filter`."""
        return listing.listing(self._store, **filters)

    def load(self, **filters: Any) -> Sequence[VersionedNode]:
        """Return all matching nodes, in order of creation; see `listing.Filter`."""
        return listing.all_nodes(self._store, **filters)

    def by_wu(self, wu: str, *, include_archived: bool = False) -> Sequence[VersionedNode]:
        """Return the nodes of a work unit, in order of creation."""
        return listing.by_wu(self._store, wu, include_archived=include_archived)

    def show(self, id: Id) -> NodeDetail:
        """Return a node with its relations, history, score and commit."""
        return listing.show(self._store, _id(id))

    def ready(self, wu: str | None = None, **options: Any) -> Ready:
        """Return the open nodes of a work unit, P0 first, which nodes block others, and the tasks that the caller may take.

        Args:
            wu: The work unit; by default that of the caller's session, and without one all.
            options: Those of `listing.ready`: type, limit, include_archived.
        """
        from ..work import task_list

        return task_list.ready_work(self._store, self._caller_if_any(), wu, **options)

    def _caller_if_any(self) -> callers.Caller | None:
        return callers.find(self._log.store, self._log.who, must=False)

    def record_access(self, *ids: Id) -> Accessed:
        """Record that nodes were shown to the caller. This starts no commit."""
        return decay.record_accesses(self._store, self._log.caller, _ids(ids))

    def record_access_batch(self, ids: Iterable[Id]) -> Accessed:
        """Record the same for many nodes, in one line."""
        return self.record_access(*ids)

    def access_stats(self, id: Id) -> Stats:
        """Return how often a node was shown, and when last."""
        return decay.stats(self._store, _id(id))

    def decay_score(
        self, node: Id, *, now: int | None = None, half_life: int = decay.HALF_LIFE_MICROS
    ) -> float:
        """Return the score of a node.

        Args:
            now: Microseconds since the epoch.
            half_life: Microseconds.
        """
        decay.validate(half_life)
        now = self._log.store.now() if now is None else now
        found = node if isinstance(node, VersionedNode) else self.get(node)
        return decay.score(found, now=now, half_life=half_life)

    def recency_score(
        self, node: VersionedNode, *, now: int | None = None, half_life: int = decay.HALF_LIFE_MICROS
    ) -> float:
        """Return the age factor of the score: 1 for a new node. Units are those of `decay_score`."""
        decay.validate(half_life)
        now = self._log.store.now() if now is None else now
        return decay.recency(node.touched, now, half_life)

    def archive(self, **options: Any) -> Archived:
        """Archive decayed nodes; see `upkeep.archive` for the options."""
        from ..memory import upkeep

        return upkeep.archive(self._store, self._log.caller, **options)

    archive_by_decay = archive

    def cleanup(self, **options: Any) -> CleanupResult:
        """Delete expired nodes; see `upkeep.cleanup` for the rules and options."""
        from ..memory import upkeep

        return upkeep.cleanup(self._log.store, self._log.caller, **options)

    def delete(self, *ids: Id, **filters: Any) -> Deleted:
        """Delete nodes by id or by filters; see `upkeep.delete`."""
        from ..memory import upkeep

        return upkeep.delete(self._store, self._log.caller, _ids(ids), **filters)

    def export(self, **options: Any) -> Exported:
        """Return nodes as one document in `.document`; see `listing.export` for formats and filters."""
        return listing.export(self._log.store, **options)

    def context(self, wu: str | None = None, **options: Any) -> Context:
        """Return the nodes about a work unit as text for a prompt; see `context.context` and `as_of`."""
        return context.context_at(self._log.store, self._log.caller, wu=wu, **options)

    def recover(self, **options: Any) -> Recovered:
        """Restore the caller's context, for example after compaction; see `context.recover` for the options."""
        return context.recover(self._log.store, self._log.caller, **options)

    def profile(self, **options: Any) -> Profile:
        """Return the project-wide nodes and their tags; see `profile.profile` for the options."""
        return context.profile(self._store, **options)

    def promote(self, node: Id | None = None, *, wu: str | None = None, tag: str, **options: Any) -> Promoted:
        """Promote a node, or all summaries of a work unit, to project scope; see `knowledge.promote`."""
        from ..memory import knowledge

        return knowledge.promote(self._log.store, self._log.caller, node=_id(node), wu=wu, tag=tag, **options)

    def promote_node(self, node: Id, *, tag: str, **options: Any) -> Promoted:
        """Promote one node to project scope; the outcome has it as `promoted_node`."""
        return self.promote(node, tag=tag, **options)

    def promote_from_wu(self, wu: str, *, tag: str, **options: Any) -> Promoted:
        """Promote the summaries of a work unit to project scope."""
        return self.promote(wu=wu, tag=tag, **options)

    def summarize(self, wu: str, **options: Any) -> Summarized:
        """Summarize the nodes of a work unit that no summary covers yet; see `knowledge.summarize`."""
        from ..memory import knowledge

        return knowledge.summarize(self._log.store, self._log.caller, wu, **_with_ids(options))

    def triage(self, **options: Any) -> Triaged:
        """Return open discoveries and stale nodes; see `triage.listing`."""
        from ..memory import triage

        return triage.listing(self._store, **options)

    def triage_promote(self, node: Id, **options: Any) -> PromotedToUnit:
        """Return the work unit to create for a discovery, and record that it became one; see `triage.promote`."""
        from ..memory import triage

        return triage.promote(self._store, self._log.caller, _id(node), **options)

    def triage_archive(self, *ids: Id, reason: str) -> edit.NodesChanged:
        """Archive nodes, with a reason."""
        from ..memory import triage

        return triage.archive(self._store, self._log.caller, _ids(ids), reason=reason)

    def index(self, *sources: str, **options: Any) -> Indexed:
        """Make nodes from the files that describe the project; see `sources.index`."""
        from ..memory import sources as project_files

        return project_files.index(self._log.store, self._log.caller, sources=sources, **options)

    index_project = index

    @staticmethod
    def default_sources() -> Sequence[Source]:
        """Return the files that `index` reads by default."""
        from ..memory import sources

        return sources.default_sources()

    def search(self, query: str, *, track_access: bool = False, **options: Any) -> SearchResult:
        """Search nodes by text; see `search.recall` for the options."""
        from ..memory import search

        reader = self._log.caller if track_access else None
        return search.search(self._store, query, reader=reader, **options)

    def recall(self, query: str, **options: Any) -> list[Hit]:
        """Return the nodes that match a text, best match first; record nothing."""
        from ..memory import search

        return search.recall(self._store, query, **options)


def _id(given: Any) -> Any:
    """Return the id of a node or of an outcome with one; return other values as they are, for `stored_nodes.find_node`."""
    node = getattr(given, "node", given)
    return getattr(node, "id", node)


def _ids(given: Iterable[Any]) -> list[Any]:
    return [_id(each) for each in given]


def _with_ids(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with each node replaced by its id."""
    found = dict(options)
    for name in ("discovered_from", "supersedes", "only"):
        if isinstance(found.get(name), (list, tuple)):
            found[name] = _ids(found[name])
        elif found.get(name) is not None:
            found[name] = _id(found[name])
    return found
