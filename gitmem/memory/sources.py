"""`gitmem mem index`: index the files in which a project describes itself, one node for each file. They are untrusted.

| source | tags | content |
|---|---|---|
| README.md | architecture | the beginning |
| AGENTS.md, CLAUDE.md | conventions, commands | the beginning |
| CONTRIBUTING.md | conventions | the beginning |
| LUMENFLOW.md | conventions | the beginning |
| pyproject.toml, package.json | architecture, commands | name, description, commands, dependencies by name |
| Cargo.toml, go.mod | architecture | the same |
| .lumenflow.config.yaml, workspace.yaml | commands, conventions | the beginning |
| .lumenflow/constraints.md | invariants | the beginning |

Each tag has the prefix `index:`. A node's id is derived from the path, so a file has one node, whichever clone indexes it.
If a file changes, its node changes; if it is removed, its node is archived until the file exists again. A node that was
archived or deleted by hand stays so.
"""

from __future__ import annotations

from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..git import work_tree_files
from ..log.lines import format_at
from ..outcome import Outcome, Struct, command
from ..records import SecretError
from ..records.ids import keyed_id
from ..text.digests import sha256
from ..text.sanitize import first_of
from . import anchors, node_fields, stored_nodes, write
from .stored_nodes import has_tag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..agents.caller import Caller
    from ..order.node import VersionedNode
    from ..records.record_types import NodeFields, PatchContent
    from ..store import Store

    Lines = list[tuple[str, bytes]]


NAMES_MAX = 60  # in one line
VALUE_MAX = 160  # characters


def manifest_facts(name: str, text: str) -> list[str] | None:
    """Return lines about a project from its manifest, the first with its name.

    Returns:
        None if the file name is not that of a manifest.

    Raises:
        ValueError: The file cannot be parsed.
    """
    reader = _READERS.get(name)
    if reader is None:
        return None
    try:
        return [line for line in reader(text) if line]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _pyproject(text: str) -> list[str]:
    import tomllib

    whole = tomllib.loads(text)
    project = _table(whole, "project")
    poetry = _table(whole, "tool", "poetry")
    groups = _table(whole, "dependency-groups")
    packages = [*_texts(project.get("dependencies")), *_table(poetry, "dependencies")]
    extra = [item for group in _table(project, "optional-dependencies").values() for item in _texts(group)]
    extra += [item for group in groups.values() for item in _texts(group)]
    scripts = {**_table(poetry, "scripts"), **_table(project, "scripts")}
    return [
        _title(project.get("name") or poetry.get("name")),
        _labelled("description", project.get("description") or poetry.get("description")),
        _labelled("python", project.get("requires-python")),
        _labelled("build", _table(whole, "build-system").get("build-backend")),
        _labelled_list("workspace", _texts(_table(whole, "tool", "uv", "workspace").get("members"))),
        *_commands(scripts),
        *_commands(_table(whole, "tool", "poe", "tasks"), "poe task"),
        *_commands(_table(whole, "tool", "hatch", "envs", "default", "scripts"), "hatch run"),
        _labelled_list("dependencies", map(_python_name, packages)),
        _labelled_list("for development and extras", map(_python_name, extra)),
        _labelled_list("tools", _table(whole, "tool")),
    ]


def _package(text: str) -> list[str]:
    import json

    whole = json.loads(text)
    if not isinstance(whole, dict):
        raise ValueError("it is not an object")
    workspaces = whole.get("workspaces")
    members = _texts(workspaces) or _texts(_table(whole, "workspaces").get("packages"))
    return [
        _title(whole.get("name")),
        _labelled("description", whole.get("description")),
        _labelled("package manager", whole.get("packageManager")),
        _labelled("node", _table(whole, "engines").get("node")),
        _labelled_list("workspaces", members),
        *_commands(_table(whole, "scripts"), "script"),
        _labelled_list("dependencies", _table(whole, "dependencies")),
        _labelled_list("for development", _table(whole, "devDependencies")),
    ]


def _as_dependency(text: str) -> list[str]:
    import tomllib

    whole = tomllib.loads(text)
    package = _table(whole, "package")
    binaries = whole.get("bin")
    names = (
        [each.get("name") for each in binaries if isinstance(each, dict)]
        if isinstance(binaries, list)
        else []
    )
    return [
        _title(package.get("name")),
        _labelled("description", package.get("description")),
        _labelled("edition", package.get("edition")),
        _labelled_list("workspace", _texts(_table(whole, "workspace").get("members"))),
        _labelled_list("programs", _texts(names)),
        _labelled_list("features", _table(whole, "features")),
        _labelled_list(
            "dependencies", [*_table(whole, "dependencies"), *_table(whole, "workspace", "dependencies")]
        ),
        _labelled_list("for development", _table(whole, "dev-dependencies")),
    ]


def _as_go_module(text: str) -> list[str]:
    module = version = ""
    direct = []
    inside = False
    for line in text.splitlines():
        code, _, remark = line.partition("//")
        words = code.split()
        if not words:
            continue
        if words[0] == "module" and len(words) == 2:
            module = words[1]
        elif words[0] == "go" and len(words) == 2:
            version = words[1]
        elif words[:2] == ["require", "("]:
            inside = True
        elif words[0] == ")":
            inside = False
        elif (inside or words[0] == "require") and "indirect" not in remark:
            direct.append(words[0] if inside else words[1] if len(words) > 1 else "")
    if not module:
        raise ValueError("it names no module")
    return [_title(module), _labelled("go", version), _labelled_list("dependencies", direct)]


_READERS: dict[str, Callable[[str], list[str]]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package,
    "Cargo.toml": _as_dependency,
    "go.mod": _as_go_module,
}


def _table(value: object, *keys: str) -> dict[str, object]:
    """Return a nested table; empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    """Return the strings in a list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _one_line(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= VALUE_MAX else text[: VALUE_MAX - 1].rstrip() + "…"


def _title(value: object) -> str:
    return _one_line(value) or "a project without a name"


def _labelled(what: str, value: object) -> str:
    text = _one_line(value)
    return f"{what}: {text}" if text else ""


def _labelled_list(what: str, names: Iterable[str]) -> str:
    found = [name for name in dict.fromkeys(map(_one_line, names)) if name]
    return f"{what}: {first_of(found, NAMES_MAX)}" if found else ""


def _commands(scripts: dict[str, object], what: str = "command") -> list[str]:
    return [
        f"{what} {_one_line(name)}: {_one_line(run)}"
        for name, run in scripts.items()
        if isinstance(run, str) and run.strip()
    ]


def _python_name(requirement: str) -> str:
    """Return `pydantic` for `pydantic[email] >= 2; python_version > "3.9"`."""
    for at, char in enumerate(requirement):
        if not (char.isalnum() or char in "._-"):
            return requirement[:at]
    return requirement


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


class SourceContent(Struct):
    """The result of reading a source.

    Attributes:
        content: The text for its node; None if it is `gone` or has a `problem`.
        hash: 16 hexadecimal digits of the SHA-256 of the whole file, with LF line ends.
        real: The path with links resolved.
    """

    source: Source
    content: str | None = None
    hash: str = ""
    real: str = ""
    gone: bool = False
    problem: str = ""


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
    tags = [_tag(word.strip()) for word in words.split("+")]
    return Source(found[0] if found else path.strip(), list(dict.fromkeys(tags)))


def _tag(word: str) -> str:
    return node_fields.one_of("index tag", word if word.startswith("index:") else f"index:{word}", TAGS)


def is_committed(store: Store, head: str | None, path: str) -> bool:
    """Return whether a commit contains this path."""
    if head is None:
        return False
    *folders, name = path.split("/")
    try:
        oid = store.git.commit(head).tree
        for folder in folders:
            oid = store.git.tree(oid)[folder].oid
        return name in store.git.tree(oid)
    except KeyError:
        return False


def read_source(top: str, source: Source) -> SourceContent:
    """Read a source of a work tree. Errors of the file are returned as its `problem`, not raised."""
    found = SourceContent(source)
    try:
        real = work_tree_files.resolve(top, source.path)
        found.gone = real is None
        if real is not None:
            found.real = real
            _take(found, work_tree_files.read_text(real))
    except OSError as error:
        found.problem = f"it cannot be read ({error.strerror})"
    except ValueError as error:
        found.problem = str(error) or "it cannot be read"
    return found


def _take(found: SourceContent, text: str) -> None:
    path = found.source.path
    try:
        facts = manifest_facts(path.rpartition("/")[2], text)
    except ValueError as error:
        raise ValueError(
            f"it cannot be parsed ({cut(sanitize(' '.join(str(error).split())), 120)})"
        ) from None
    lines = list(without_decoration(text)) if facts is None else facts
    if not any(line.strip() for line in lines):
        raise ValueError("it is empty")
    found.hash = sha256(text.encode()).hexdigest()[:16]
    found.content = first_lines(path, lines)


def first_lines(path: str, lines: Sequence[str]) -> str:
    """Return as many whole lines of a source as fit; the first names the file, and `…` marks omitted lines."""
    whole = [f"{path}: {lines[0].lstrip('#').strip() or lines[0]}", *lines[1:]]
    text = "\n".join(whole).rstrip()
    if len(text) <= CONTENT_MAX:
        return text
    size = len(REST)
    for at, line in enumerate(whole):
        size += len(line) + 1
        if size > CONTENT_MAX:
            return "\n".join(whole[:at]).rstrip() + "\n" + REST if at else cut(line, CONTENT_MAX)
    return text


def without_decoration(text: str) -> Iterator[str]:
    """Yield the lines of a text without decoration: comments, pictures, badges, front matter, bare tags."""
    lines = _without_front_matter(text.split("\n"))
    fenced = comment = False
    last = ""
    for line in lines:
        line = line.rstrip()
        if not comment and line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            comment, line = _uncommented(comment, line)
            if line and _is_decoration(line):
                continue
        if comment and not line:
            continue
        if line or last:
            yield line
        last = line


def _without_front_matter(lines: list[str]) -> list[str]:
    if lines[0].strip() == "---":
        for at, line in enumerate(lines[1:60], 1):
            if line.strip() == "---":
                return lines[at + 1 :]
    return lines


def _uncommented(inside: bool, line: str) -> tuple[bool, str]:
    """Return whether a comment is still open after a line, and the parts of the line outside comments."""
    kept = ""
    while line:
        mark = "-->" if inside else "<!--"
        before, found, line = line.partition(mark)
        if not inside:
            kept += before
        if not found:
            break
        inside = not inside
    return inside, kept.rstrip()


def _is_decoration(line: str) -> bool:
    """Return whether a line has no text besides tags, pictures and their links."""
    if "<" not in line and "![" not in line:
        return False
    depth = 0
    rest = ""
    for char in line:
        if char in "<[(":
            depth += 1
        elif char in ">])":
            depth = max(0, depth - 1)
        elif not depth:
            rest += char
    return not any(char.isalnum() for char in rest)


MISSING_KEY = "source_gone"  # in the metadata of a node that was archived because its file is missing
CREATED, UPDATED, UNCHANGED, ARCHIVED, AWAY = "created", "updated", "unchanged", "archived", "put away"


class IndexedFile(Outcome):
    """The result for one source: created, updated, unchanged, archived, or `put away` (hidden by hand)."""

    path: str
    node_id: str
    what: str


class Indexed(Outcome, kw_only=True):
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
    commit: str | None = None
    recorded: bool = False
    warnings: list[str] = []
    next: list[str] = []

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
    found = Indexed(dry_run=dry_run)
    found.warnings = [*filter(None, [caller.remark])]
    wanted = {source.path: source for source in (*default_sources(), *given)}
    asked = {source.path for source in given}
    read = [read_source(top, source) for source in wanted.values()]
    nodes = _nodes(store, wanted)
    read += [read_source(top, Source(path, node.tags)) for path, node in nodes.items() if path not in wanted]
    lines = _Indexing(store, caller, found, nodes).lines(read, wanted.keys(), asked)
    if lines and not dry_run:
        _write(store, caller, lines, found)
    found.next = _next(found, given)
    return found


def node_id(path: str) -> str:
    """Return the id of the node of a source."""
    return keyed_id("mem", "index", path)


def _nodes(store: Store, wanted: Iterable[str]) -> dict[str, VersionedNode]:
    """Return the nodes of sources by path: the wanted ones and those indexed before."""
    db = store.db()
    ids = stored_nodes.select_ids(db, has_tag(len(TAGS)), TAGS)
    nodes = {}
    for node in stored_nodes.load(db, sorted({*ids, *map(node_id, wanted)})):
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
        tags = [*(tag for tag in node.tags if tag not in TAGS), *each.source.tags]
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
        if is_committed(self.store, self.head[0], path):
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
    return [command("gitmem", "show", found.entries[0].node_id), "gitmem mem context"]
