"""`gitmem mem index`: index the files in which a project describes itself, one node for each file. They are untrusted.

A node has the beginning of its file, and tags by the file's name, see `default_sources`. Its id is derived from the path, so a file
has one node, whichever clone indexes it. If a file changes, its node changes. A node that was archived or deleted stays so.
"""

from __future__ import annotations

from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..git import work_tree_files
from ..log.lines import format_at
from ..outcome import Outcome, Written, command
from ..records import SecretError
from ..records.ids import keyed_id
from ..text.digests import sha256
from . import anchors, node_fields, stored_nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..agents.caller import Caller
    from ..order.node import VersionedNode
    from ..records.record_types import NodeFields, PatchContent
    from ..store import Store

    Lines = list[tuple[str, bytes]]


TAGS = ("index:architecture", "index:conventions", "index:commands", "index:invariants")
_ARCHITECTURE, _CONVENTIONS, _COMMANDS, _INVARIANTS = TAGS
_DEFAULT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("README.md", (_ARCHITECTURE,)),
    ("AGENTS.md", (_CONVENTIONS, _COMMANDS)),
    ("CLAUDE.md", (_CONVENTIONS, _COMMANDS)),
    ("CONTRIBUTING.md", (_CONVENTIONS,)),
    ("LUMENFLOW.md", (_CONVENTIONS,)),
    ("pyproject.toml", (_ARCHITECTURE, _COMMANDS)),
    ("package.json", (_ARCHITECTURE, _COMMANDS)),
    ("Cargo.toml", (_ARCHITECTURE,)),
    ("go.mod", (_ARCHITECTURE,)),
    (".lumenflow.config.yaml", (_COMMANDS, _CONVENTIONS)),
    ("workspace.yaml", (_COMMANDS, _CONVENTIONS)),
    (".lumenflow/constraints.md", (_INVARIANTS,)),
)
CONTENT_MAX = 2_000  # characters
REST = "…"


class Source(Outcome):
    """A file to index, relative to the root of the work tree, and the tags of its node."""

    path: str
    tags: list[str]


def default_sources() -> list[Source]:
    """Return the sources that are always indexed."""
    return [Source(path, [*tags]) for path, tags in _DEFAULT]


def parsed(text: str) -> Source:
    """Parse a source such as `docs/RULES.md=index:conventions`.

    Several tags are joined by `+`; the prefix `index:` is optional.

    Raises:
        UsageError: The text is not a source.
    """
    path, equals, words = text.strip().rpartition("=")
    if not equals or not path.strip():
        raise UsageError(
            f"Invalid source: {sanitize(text)[:80] or '(empty)'}. Nothing was written.",
            hint=f"Use a form such as docs/RULES.md=index:conventions; the tags are {', '.join(TAGS)}.",
            code="bad-source",
        )
    found = anchors.validate_paths([path.strip()])
    tags = [
        node_fields.one_of("index tag", f"index:{word.strip().removeprefix('index:')}", TAGS)
        for word in words.split("+")
    ]
    return Source(found[0] if found else path.strip(), list(dict.fromkeys(tags)))


def beginning(path: str, text: str) -> str:
    """Return as many whole lines of a source as fit; the first names the file, and `…` marks omitted lines.

    Raises:
        ValueError: It has no text.
    """
    first, *lines = text.strip().split("\n")
    if not first:
        raise ValueError("it is empty")
    whole = "\n".join([f"{path}: {first.lstrip('#').strip() or first}", *lines])
    if len(whole) <= CONTENT_MAX:
        return whole
    kept = whole[: CONTENT_MAX - len(REST)].rpartition("\n")[0].rstrip()
    return f"{kept}\n{REST}" if kept else cut(whole, CONTENT_MAX)


CREATED, UPDATED, UNCHANGED, AWAY = "created", "updated", "unchanged", "put away"


class IndexedFile(Outcome):
    """The result for one source: created, updated, unchanged, or `put away` (hidden by hand)."""

    path: str
    node_id: str
    what: str


class Indexed(Written, kw_only=True):
    """The result of indexing, or of a dry run.

    Attributes:
        entries: One for each source that has or gets a node.
        sources_scanned: The files that were read.
        sources_missing: The files that do not exist.
        problems: Sentences about sources that were skipped.
    """

    entries: list[IndexedFile] = []
    sources_scanned: list[str] = []
    sources_missing: list[str] = []
    problems: list[str] = []
    dry_run: bool

    def count(self, *whats: str) -> int:
        """Count the entries with these results."""
        return sum(entry.what in whats for entry in self.entries)

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, with counts of the entries by result."""
        counts = {"created": (CREATED,), "updated": (UPDATED,), "skipped": (UNCHANGED, AWAY)}
        return {f"nodes_{name}": self.count(*whats) for name, whats in counts.items()} | super().as_json()


def index(
    store: Store, caller: Caller, *, sources: Iterable[str | Source] = (), dry_run: bool = False
) -> Indexed:
    """Create or update the nodes of the files that describe the project, in one commit.

    Unchanged files are skipped. Files that cannot be read or seem to contain a secret are reported and skipped.

    Args:
        sources: Sources such as `docs/RULES.md=index:conventions`, in addition to the default ones.

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
    given = [each if isinstance(each, Source) else parsed(each) for each in sources]
    wanted = {source.path: source for source in (*default_sources(), *given)}
    found = Indexed(dry_run=dry_run)
    found.warnings = [*filter(None, [caller.remark])]
    indexing = _Indexing(store, caller, found, wanted)
    asked = {source.path for source in given}
    lines = [
        line for source in wanted.values() for line in indexing.lines_of(top, source, source.path in asked)
    ]
    if lines and not dry_run:
        _write(store, caller, lines, found)
    found.next = _next(found, given)
    return found


def node_id(path: str) -> str:
    """Return the id of the node of a source."""
    return keyed_id("mem", "index", path)


class _Indexing:
    """Make the lines that update the nodes of sources, and record the results in `found`."""

    def __init__(self, store: Store, caller: Caller, found: Indexed, paths: Iterable[str]) -> None:
        nodes = stored_nodes.load(store.db(), map(node_id, paths))
        self.store = store
        self.caller = caller
        self.found = found
        self.nodes = {node.id: node for node in nodes}
        self.outgrown = anchors.stale(store, nodes)
        self.head = anchors.head(store)
        self.now = format_at(store.now())
        self.seen: dict[str, str] = {}  # paths by the files that they name

    def lines_of(self, top: str, source: Source, is_asked: bool) -> Lines:
        """Return the lines to write about a source.

        Args:
            top: The top folder of the work tree.
            is_asked: Whether the caller named it: a missing one is a problem.
        """
        path = source.path
        try:
            real = work_tree_files.resolve(top, path)
            if real is None:
                self.found.sources_missing.append(path)
                if is_asked:
                    raise ValueError("it does not exist")
                return []
            text = work_tree_files.read_text(real)
            content = beginning(path, text)
            same = self.seen.setdefault(real, path)
            if same != path:
                self.found.warnings.append(f"{sanitize(path)} is the same file as {sanitize(same)}.")
                return []
            lines = self._node(source, content, sha256(text.encode()).hexdigest()[:16])
        except (OSError, ValueError, SecretError) as error:
            self.found.problems.append(f"{sanitize(path)} was skipped: {_reason(error)}.")
            return []
        self.found.sources_scanned.append(path)
        return lines

    def _node(self, source: Source, content: str, digest: str) -> Lines:
        node = self.nodes.get(node_id(source.path))
        about: dict[str, object] = {"source_path": source.path, "source_hash": digest, "indexed_at": self.now}
        if node is None:
            fields: NodeFields = {
                "id": node_id(source.path),
                "type": "summary",
                "lifecycle": "project",
                "content": content,
                "tags": source.tags,
                "paths": [source.path],
                "metadata": about,
                "head": self.head[0],
                "branch": self.head[1],
                "sender_identity": self.caller.reader,
                "sender_session": self.caller.session_id,
                "sender_name": self.caller.name,
            }
            return self._done(source, CREATED, [self.store.line("node", fields)])
        if node.is_hidden:
            return self._done(source, AWAY, [])
        return self._change(source, node, {"content": content, "metadata": about})

    def _change(self, source: Source, node: VersionedNode, fields: PatchContent) -> Lines:
        tags = [*(tag for tag in node.tags if tag not in TAGS), *source.tags]
        same = node.metadata.get("source_hash") == fields["metadata"]["source_hash"]
        if not same or sorted(tags) != sorted(node.tags):
            fields["tags"] = tags
        elif node.id in self.outgrown:
            fields = {}
        else:
            return self._done(source, UNCHANGED, [])
        fields["head"], fields["branch"] = self.head
        return self._done(
            source, UPDATED, stored_nodes.patch_lines(self.store, self.caller, [node.id], fields)
        )

    def _done(self, source: Source, what: str, lines: Lines) -> Lines:
        self.found.entries.append(IndexedFile(source.path, node_id(source.path), what))
        return lines


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror})"
    return str(error).removesuffix(". Nothing was written.")


def _write(store: Store, caller: Caller, lines: Lines, found: Indexed) -> None:
    changed = [entry for entry in found.entries if entry.what in (CREATED, UPDATED)]
    first = f"{changed[0].what} {changed[0].path}" if len(changed) == 1 else f"{len(changed)} sources"
    text = "\n".join(f"{entry.what} {entry.path}" for entry in changed)
    done = stored_nodes.record(
        store, caller, lines, f"indexes {first}", text=text, nodes=[entry.node_id for entry in changed]
    )
    found.commit, found.recorded = done.commit, True


def _next(found: Indexed, given: Sequence[Source]) -> list[str]:
    if found.dry_run and found.count(CREATED, UPDATED):
        more = [word for each in given for word in ("--source", f"{each.path}={'+'.join(each.tags)}")]
        return [command("gitmem", "mem", "index", *more)]
    if not found.entries:
        return ["gitmem mem index --source docs/RULES.md=index:conventions"]
    return [command("gitmem", "show", found.entries[0].node_id), "gitmem mem context"]
