"""`gitmem mem index`: index the files in which a project describes itself, one node for each file.

A node's id is derived from the path, so a file has one node, whichever clone indexes it. If a file changes, its
node changes; if it is removed, its node is archived until the file exists again. A node that was archived or
deleted by hand stays so.
"""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError
from ..log.lines import format_at
from ..outcome import Outcome
from ..records import SecretError
from ..records.ids import keyed_id
from ..text.shell_quote import command
from . import anchors, load, source_files, write
from .source_files import Source, SourceContent, default_sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..agents.caller import Caller
    from ..records.record_types import NodeFields, PatchContent
    from ..store import Store
    from .versioned_node import VersionedNode

    Lines = list[tuple[str, bytes]]

CONFIG = "gitmem.indexSources"
MISSING_KEY = "source_gone"  # in the metadata of a node that was archived because its file is missing
CREATED, UPDATED, UNCHANGED, ARCHIVED, AWAY = "created", "updated", "unchanged", "archived", "put away"


class IndexedFile(Outcome):
    """The result for one source: created, updated, unchanged, archived, or `put away` (hidden by hand)."""

    def __init__(self, path: str, node_id: str, what: str) -> None:
        self.path = path
        self.node_id = node_id
        self.what = what


class Indexed(Outcome):
    """The result of indexing, or of a dry run.

    Attributes:
        entries: One for each source that has or gets a node.
        sources_scanned: The files that were read.
        sources_missing: The files that do not exist.
        problems: Sentences about sources that were skipped.
    """

    def __init__(self, *, dry_run: bool) -> None:
        self.entries: list[IndexedFile] = []
        self.sources_scanned: list[str] = []
        self.sources_missing: list[str] = []
        self.problems: list[str] = []
        self.dry_run = dry_run
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []

    def count(self, *whats: str) -> int:
        """Count the entries with these results."""
        return sum(entry.what in whats for entry in self.entries)

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, with counts of the entries by result."""
        counts = {
            "created": (CREATED,),
            "updated": (UPDATED,),
            "skipped": (UNCHANGED, AWAY),
            "archived": (ARCHIVED,),
        }
        return {f"nodes_{name}": self.count(*whats) for name, whats in counts.items()} | super().as_json()


def index(
    store: Store, caller: Caller, *, sources: Iterable[str | Source] = (), dry_run: bool = False
) -> Indexed:
    """Create or update the nodes of the files that describe the project, in one commit.

    Unchanged files are skipped. Files that cannot be read or seem to contain a secret are reported and skipped.

    Args:
        sources: Sources such as `docs/RULES.md=index:conventions`, in addition to the default ones and those of the
            git config value `gitmem.indexSources`.

    Raises:
        UsageError: The repository is bare, or a source is invalid. Nothing was written.
        StoreError: The store could not be read or written.
    """
    top = store.repo.worktree
    if top is None:
        raise UsageError(
            "This repository is bare and has no files to index. Nothing was written.",
            hint="Run the command in a worktree.",
            code="bare-repository",
            next=["git worktree list"],
        )
    given = [each if isinstance(each, Source) else source_files.parsed(each) for each in sources]
    found = Indexed(dry_run=dry_run)
    found.warnings = [*filter(None, [caller.remark])]
    configured = _configured(store, found)
    wanted = {source.path: source for source in (*default_sources(), *configured, *given)}
    asked = {source.path for source in (*configured, *given)}
    read = [source_files.read(top, source) for source in wanted.values()]
    nodes = _nodes(store, wanted)
    read += [
        source_files.read(top, Source(path, node.tags)) for path, node in nodes.items() if path not in wanted
    ]
    lines = _Indexing(store, caller, found, nodes).lines(read, wanted.keys(), asked)
    if lines and not dry_run:
        _write(store, caller, lines, found)
    found.next = _next(found, given)
    return found


def _configured(store: Store, found: Indexed) -> list[Source]:
    """Return the sources of the git config. An invalid one is a problem; the others are used."""
    text = store.settings().get(CONFIG.lower(), "")
    sources = []
    for item in filter(None, (each.strip() for each in text.split(","))):
        try:
            sources.append(source_files.parsed(item))
        except UsageError as error:
            message = error.message.removesuffix(". Nothing was written.")
            found.problems.append(f"{CONFIG} in the git config: {message}. {error.hint}")
    return sources


def node_id(path: str) -> str:
    """Return the id of the node of a source."""
    return keyed_id("mem", "index", path)


def _nodes(store: Store, wanted: Iterable[str]) -> dict[str, VersionedNode]:
    """Return the nodes of sources by path: the wanted ones and those indexed before."""
    db = store.db()
    marks = ", ".join("?" * len(source_files.TAGS))
    ids = {id for (id,) in db.execute(f"SELECT id FROM tag WHERE tag IN ({marks})", source_files.TAGS)}
    nodes = {}
    for node in load.load(db, sorted({*ids, *map(node_id, wanted)})):
        path = node.metadata.get("source_path")
        if isinstance(path, str) and node.id == node_id(path):  # otherwise it was created by hand
            nodes[path] = node
    return nodes


class _Indexing:
    """Make the lines that update the nodes of sources, and record the results in `found`."""

    def __init__(
        self, store: Store, caller: Caller, found: Indexed, nodes: Mapping[str, VersionedNode]
    ) -> None:
        self.store = store
        self.caller = caller
        self.found = found
        self.nodes = nodes
        self.head = anchors.head(store)
        self.now = format_at(store.now())

    def lines(self, read: Sequence[SourceContent], wanted: Iterable[str], asked: Iterable[str]) -> Lines:
        """Return the lines to write.

        Args:
            read: Every source, including those indexed before that are not wanted now.
            wanted: The paths to index.
            asked: The paths that were named explicitly: a missing one is a problem.
        """
        lines: Lines = []
        wanted, asked = set(wanted), set(asked)
        seen: dict[str, str] = {}
        outgrown = anchors.stale(self.store, self.nodes.values())
        for each in read:
            path = each.source.path
            if path not in wanted and (not each.gone or self.nodes[path].is_hidden):
                continue  # not wanted now
            same = seen.setdefault(each.real, path) if each.content is not None else path
            if same != path:
                self.found.warnings.append(f"{sanitize(path)} is the same file as {sanitize(same)}.")
                continue
            if each.gone and path in asked:
                self._problem(path, "it does not exist")
            try:
                lines += self._of(each, node_id(path) in outgrown)
                self.found.sources_scanned += [path] if each.content is not None else []
            except SecretError as error:
                self._problem(path, error.message.removesuffix(". Nothing was written."))
        return lines

    def _of(self, each: SourceContent, is_stale: bool) -> Lines:
        path, node = each.source.path, self.nodes.get(each.source.path)
        if each.problem:
            self._problem(path, each.problem)
            return []
        if each.content is None:
            self.found.sources_missing.append(path)
            return self._archive(path, node)
        if node is None:
            return self._create(each, each.content)
        if node.is_hidden and not (node.metadata.get(MISSING_KEY) and not node.deleted):
            return self._done(path, AWAY, [])
        return self._change(each, node, is_stale)

    def _create(self, each: SourceContent, content: str) -> Lines:
        fields: NodeFields = {
            "id": node_id(each.source.path),
            "type": "summary",
            "lifecycle": "project",
            "content": content,
            "tags": each.source.tags,
            "paths": [each.source.path],
            "metadata": {
                "source_path": each.source.path,
                "source_hash": each.hash,
                "indexed_at": self.now,
            },
            "sender_identity": self.caller.reader,
            "sender_session": self.caller.session_id,
            "sender_name": self.caller.name,
        }
        fields["head"], fields["branch"] = self.head
        return self._done(each.source.path, CREATED, [self.store.line("node", fields)])

    def _change(self, each: SourceContent, node: VersionedNode, is_stale: bool) -> Lines:
        tags = [*(tag for tag in node.tags if tag not in source_files.TAGS), *each.source.tags]
        same = node.metadata.get("source_hash") == each.hash and sorted(tags) == sorted(node.tags)
        if same and not node.is_hidden and not is_stale:
            return self._done(each.source.path, UNCHANGED, [])
        fields: PatchContent = {"head": self.head[0], "branch": self.head[1]}
        if not same:
            fields |= {"content": each.content, "tags": tags}
            fields["metadata"] = {"source_hash": each.hash, "indexed_at": self.now}
        clear = []
        if node.is_hidden:
            clear = ["archived", "reason"]
            fields["metadata"] = {"source_hash": each.hash, "indexed_at": self.now, MISSING_KEY: None}
        return self._done(each.source.path, UPDATED, self._patch(node, fields, clear))

    def _archive(self, path: str, node: VersionedNode | None) -> Lines:
        if node is None or node.is_hidden:
            return []
        if source_files.is_committed(self.store, self.head[0], path):
            # Only this work tree lacks the file, perhaps because it is sparse.
            return self._done(path, UNCHANGED, [])
        fields: PatchContent = {
            "archived": True,
            "reason": f"{sanitize(path)[:800]} is gone",
            "metadata": {MISSING_KEY: True},
        }
        return self._done(path, ARCHIVED, self._patch(node, fields, []))

    def _patch(self, node: VersionedNode, fields: PatchContent, clear: Sequence[str]) -> Lines:
        return write.patches(self.store, self.caller, [node.id], fields, clear=clear)

    def _done(self, path: str, what: str, lines: Lines) -> Lines:
        self.found.entries.append(IndexedFile(path, node_id(path), what))
        return lines

    def _problem(self, path: str, why: str) -> None:
        self.found.problems.append(f"{sanitize(path)} was skipped: {why}.")


def _write(store: Store, caller: Caller, lines: Lines, found: Indexed) -> None:
    changed = [entry for entry in found.entries if entry.what in (CREATED, UPDATED, ARCHIVED)]
    first = f"{changed[0].what} {changed[0].path}" if len(changed) == 1 else f"{len(changed)} sources"
    text = "\n".join(f"{entry.what} {entry.path}" for entry in changed)
    done = write.record(
        store, caller, lines, f"indexes {first}", text=text, nodes=[entry.node_id for entry in changed]
    )
    found.commit, found.recorded = done.commit, True


def _next(found: Indexed, given: Sequence[Source]) -> list[str]:
    if found.dry_run and found.count(CREATED, UPDATED, ARCHIVED):
        more = [word for each in given for word in ("--source", f"{each.path}={'+'.join(each.tags)}")]
        return [command("gitmem", "mem", "index", *more)]
    if not found.entries:
        return ["gitmem mem index --source docs/RULES.md=index:conventions"]
    return [command("gitmem", "mem", "show", found.entries[0].node_id), "gitmem mem context"]
