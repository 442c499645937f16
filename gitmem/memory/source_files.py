"""Read the files that describe how a project is built and its rules. They are untrusted.

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

Each tag has the prefix `index:`.
"""

from __future__ import annotations

from .. import work_tree_files
from ..commit_message import cut, sanitize
from ..digests import sha256
from ..errors import UsageError
from ..outcome import Outcome
from . import anchors, manifests, node_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store import Store

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

    def __init__(self, path: str, tags: Sequence[str]) -> None:
        self.path = path
        self.tags = list(tags)


class SourceContent:
    """The result of reading a source.

    Attributes:
        content: The text for its node; None if it is `gone` or has a `problem`.
        hash: 16 hexadecimal digits of the SHA-256 of the whole file, with LF line ends.
        real: The path with links resolved.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.content: str | None = None
        self.hash = ""
        self.real = ""
        self.gone = False
        self.problem = ""


def default_sources() -> list[Source]:
    """Return the sources that are always indexed."""
    return [Source(path, tags) for path, tags in _DEFAULT]


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


def read(top: str, source: Source) -> SourceContent:
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
        facts = manifests.facts(path.rpartition("/")[2], text)
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
