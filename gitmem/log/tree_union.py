"""Trees as sets of lines: their union and their differences. Equal subtrees are never read.

Segments are merged line by line. Where the union of a path's contents is larger than clones accept, the largest content
stays at the path. Contents that do not fit go to files of their own in the same folder, with names derived from path
and content: every clone makes the same names. A line in two files is one line, so no record changes.

The fixed files are those of the tree with the greatest `format`. Of any other file that differs, the greater bytes are
kept. Therefore the union is commutative, associative and idempotent.

Folders nested more than `ref.FOLDERS_MAX` deep are no part of a log: nothing here enters or adds one.
"""

from __future__ import annotations

from ..errors import StoreError
from ..git.objects import FILE_MODE, TREE_MODE, TreeEntry
from ..text.digests import sha256
from . import ref
from .lines import count_records
from .union import canonical, lines, union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from ..git.port import Git

    Changes = dict[str, bytes | TreeEntry | None]
    Folder = dict[str, TreeEntry]


FIXED = ("format", "README.md", ".gitattributes")
# Where one tree has a file and another a folder of the same name, the file moves into the folder, under this name.
_DISPLACED = "gm-file"


def union_changes(git: Git, base: str, others: Iterable[str]) -> Changes:
    """Return the changes that turn the tree `base` into the union with other trees; empty if it is that already.

    Raises:
        KeyError: An object is missing.
    """
    differing = [oid for oid in dict.fromkeys(others) if oid != base]
    changes: Changes = {}
    if not differing:
        return changes
    roots = [git.tree(oid) for oid in (base, *differing)]
    for name, entry in fixed(git, roots).items():
        if roots[0].get(name) != entry:
            changes[name] = entry
    for root in roots:
        for name in FIXED:
            root.pop(name, None)
    _unite(git, "", roots, changes)
    return changes


def fixed(git: Git, roots: Sequence[Folder]) -> dict[str, TreeEntry | None]:
    """Return the fixed files of a union: the `format` of the greatest rank, and the other files of the same tree.

    Of those that can be read the first decides which epoch counts: a union never begins another one.
    """
    forms = [_format(git, root) for root in roots]
    epoch = next((form.epoch for form in forms if form is not None), 0)
    ranks = [form.rank if form is not None and form.epoch == epoch else None for form in forms]
    best = max((rank for rank in ranks if rank is not None), default=None)
    winners = [root for root, rank in zip(roots, ranks, strict=True) if rank == best]
    found: dict[str, TreeEntry | None] = {}
    for name in FIXED:
        # Where the winner lacks one, use another tree's: a union removes nothing.
        entries = [root[name] for root in winners if name in root] or [
            root[name] for root in roots if name in root
        ]
        found[name] = greatest(git, entries) if entries else None
    return found


def _format(git: Git, root: Folder) -> ref.Format | None:
    try:
        return ref.read_format(git, root)
    except StoreError:
        return None  # any readable one is better


def greatest(git: Git, entries: Sequence[TreeEntry]) -> TreeEntry:
    """Return the entry with the greatest bytes. A folder is greater than any file."""
    if all(entry == entries[0] for entry in entries):
        return entries[0]
    return max(entries, key=lambda entry: (entry.is_tree, _content(git, entry), entry.mode, entry.oid))


def _content(git: Git, entry: TreeEntry) -> bytes:
    """Return a file's bytes; for a folder or a submodule, its id."""
    return (
        git.blob(entry.oid) if entry.mode.startswith("1") and entry.mode != "160000" else entry.oid.encode()
    )


def _unite(git: Git, path: str, folders: Sequence[Mapping[str, TreeEntry | bytes]], changes: Changes) -> None:
    """Collect the changes that turn the first of the folders at `path` into the union of all."""
    if is_too_deep(path + "/"):
        folders = [
            {name: entry for name, entry in folder.items() if isinstance(entry, bytes) or not entry.is_tree}
            for folder in folders
        ]
    base = folders[0]
    beside: dict[str, list[TreeEntry | bytes]] = {}  # contents that did not fit at their paths
    names = list(dict.fromkeys(name for folder in folders for name in folder))
    while names:
        more: dict[str, None] = {}
        over = []
        for name in names:
            there = [folder[name] for folder in folders if name in folder]
            found = list(dict.fromkeys([*there, *beside.get(name, ())]))
            changes.pop(path + name, None)
            if len(found) > 1 or (name not in base and _must_be_cut(git, path + name, found[0])):
                over += _unite_entries(git, path + name, base.get(name), found, changes)
            elif name not in base:
                changes[path + name] = found[0]
        for whole, content in over:
            name = overflow_path(whole, content).removeprefix(path)
            if content not in beside.get(name, ()):
                beside.setdefault(name, []).append(content)
                more[name] = None
        names = list(more)


def _must_be_cut(git: Git, path: str, entry: TreeEntry | bytes) -> bool:
    return isinstance(entry, TreeEntry) and entry.is_tree and has_deep_folders(git, f"{path}/", entry.oid)


def _unite_entries(
    git: Git, path: str, own: TreeEntry | bytes | None, found: Sequence[TreeEntry | bytes], changes: Changes
) -> list[tuple[str, bytes]]:
    """Merge the entries at one path. Return the contents that do not fit, with the path."""
    files = [entry for entry in found if isinstance(entry, bytes) or not entry.is_tree]
    if len(files) == len(found):
        united, over = _unite_files(git, path, files)
        if united != own:
            changes[path] = united
        return [(path, content) for content in over]
    trees = [entry for entry in found if isinstance(entry, TreeEntry) and entry.is_tree]
    base: Mapping[str, TreeEntry | bytes] = (
        git.tree(own.oid) if isinstance(own, TreeEntry) and own.is_tree else {}
    )
    others: list[Mapping[str, TreeEntry | bytes]] = [git.tree(entry.oid) for entry in trees if entry != own]
    displaced = _DISPLACED + (".jsonl" if is_segment(path) else "")
    others += [{displaced: entry} for entry in files]
    _unite(git, path + "/", [base, *others], changes)
    return []


def _unite_files(
    git: Git, path: str, files: Sequence[TreeEntry | bytes]
) -> tuple[bytes | TreeEntry, list[bytes]]:
    """Merge the files at one path.

    Returns:
        The union, as an entry if one of the files equals it, and the contents that do not fit.
    """
    entries = [entry for entry in files if isinstance(entry, TreeEntry)]
    plain = [entry for entry in entries if entry.mode.startswith("100")]
    added = [content for content in files if isinstance(content, bytes)]
    if not is_segment(path) or not (plain or added):
        return greatest(git, entries), []
    contents = {entry.oid: git.blob(entry.oid) for entry in plain}
    united, over = merge_segments([*contents.values(), *added])
    for oid, content in contents.items():
        if content == united:
            return TreeEntry(FILE_MODE, oid), over
    return united, over


def is_segment(path: str) -> bool:
    """Return whether the file at a path holds lines. Readers accept any such file, so the layout can change."""
    return path.endswith(".jsonl")


def below_stream(path: str) -> str:
    """Return what orders paths by days: lines stand near their attestations, which are in another stream."""
    return path.partition("/")[2]


def is_plain_segment(path: str, entry: TreeEntry) -> bool:
    """Return whether the entry at a path is a plain file of lines."""
    return is_segment(path) and entry.mode.startswith("100")


def is_too_deep(path: str) -> bool:
    """Return whether a file or folder is no part of a log. The path of a folder ends in a slash."""
    return path.count("/") > ref.FOLDERS_MAX


def has_deep_folders(git: Git, path: str, tree: str, olds: Sequence[str] = ()) -> bool:
    """Return whether folders in a tree, other than those of the trees `olds`, are nested too deep.

    Args:
        path: The path of the tree, with a final slash.
    """
    return is_too_deep(path) or any(
        has_deep_folders(git, f"{path}{name}/", entry.oid, [old.oid for old in there if old.is_tree])
        for name, entry, there in differing_entries(git, tree, olds)
        if entry.is_tree
    )


def walk(
    git: Git,
    tree: str,
    missing: Callable[[str, str, bool], None] | None = None,
    *,
    seen: set[str] | None = None,
) -> Iterator[tuple[str, TreeEntry]]:
    """Yield every folder and file below a tree, folders before their content. The path of a folder ends in a slash.

    A folder that is nested too deep is yielded without its content.

    Args:
        missing: Called for each unreadable folder with its id, its path, and True.
        seen: Objects to skip; visited objects are added.

    Raises:
        KeyError: A folder is unreadable and `missing` is not given.
    """
    todo = [("", TreeEntry(TREE_MODE, tree))]
    while todo:
        path, entry = todo.pop()
        if is_too_deep(path):
            yield path, entry
            continue
        if seen is not None:
            if entry.oid in seen:
                continue
            seen.add(entry.oid)
        if entry.is_tree:
            try:
                inner = [
                    (path + name + "/" * each.is_tree, each) for name, each in git.tree(entry.oid).items()
                ]
            except KeyError:
                if missing is None:
                    raise
                missing(entry.oid, path, True)
                continue
            todo += reversed(inner)
        if path:
            yield path, entry


def differing(
    git: Git, tree: str, olds: Sequence[str], path: str = ""
) -> Iterator[tuple[str, TreeEntry, list[TreeEntry]]]:
    """Yield the files of `tree` that differ from all trees `olds`: path, entry, and the old entries at the path."""
    for name, entry, there in differing_entries(git, tree, olds):
        if entry.is_tree:
            if is_too_deep(f"{path}{name}/"):
                continue
            inner = [old.oid for old in there if old.is_tree]
            yield from differing(git, entry.oid, inner, f"{path}{name}/")
        else:
            yield path + name, entry, [old for old in there if not old.is_tree]


def differing_entries(
    git: Git, tree: str, olds: Sequence[str]
) -> Iterator[tuple[str, TreeEntry, list[TreeEntry]]]:
    """Yield the same for one level: name, entry, and the old entries of that name."""
    if tree in olds:
        return
    folders = [git.tree(old) for old in olds]
    for name, entry in git.tree(tree).items():
        there = [folder[name] for folder in folders if name in folder]
        if entry not in there:
            yield name, entry, there


def lines_of(content: bytes) -> list[bytes]:
    """Return the sorted lines of a segment, without LF."""
    return canonical(content).split(b"\n")[:-1]


def fresh_lines(git: Git, tree: str, olds: Sequence[str]) -> Iterator[set[bytes]]:
    """Yield, for each segment of `tree`, its lines that are not in the same segments of `olds`."""
    for path, entry, there in differing(git, tree, olds):
        if not is_plain_segment(path, entry):
            continue
        fresh = lines(git.blob(entry.oid))
        for old in there:
            if fresh and old.mode.startswith("100"):
                fresh -= lines(git.blob(old.oid))
        yield fresh


def new_lines(git: Git, tree: str, olds: Sequence[str]) -> int:
    """Return the number of records that `fresh_lines` finds."""
    return sum(map(count_records, fresh_lines(git, tree, olds)))


def files_of(git: Git, changes: Changes) -> Iterator[tuple[str, bytes | TreeEntry | None]]:
    """Yield path and change of each file in the changes of a tree, also of those in whole folders."""
    for path, change in changes.items():
        if isinstance(change, TreeEntry) and change.is_tree:
            yield from ((f"{path}/{name}", entry) for name, entry, _ in differing(git, change.oid, []))
        else:
            yield path, change


def lines_in(git: Git, path: str, change: bytes | TreeEntry | None) -> set[bytes]:
    """Return the lines of a file; none if it is not a segment."""
    if isinstance(change, TreeEntry):
        return lines(git.blob(change.oid)) if is_plain_segment(path, change) else set()
    return lines(change) if change is not None and is_segment(path) else set()


def count_added(git: Git, tree: str, changes: Changes) -> int:
    """Return how many records changes of a tree add to it."""
    return sum(
        count_records(lines_in(git, path, change) - lines_in(git, path, ref.lookup(git, tree, path)))
        for path, change in files_of(git, changes)
    )


def without_known(git: Git, tree: str, changes: Changes, known: Sequence[str]) -> Changes:
    """Return the changes of a tree without the lines and files that other trees have at the same path."""
    found: Changes = {}
    for path, change in files_of(git, changes):
        there = [entry for other in known if (entry := ref.lookup(git, other, path)) is not None]
        if change in there:
            continue
        if is_segment(path):
            old = lines_in(git, path, ref.lookup(git, tree, path))
            fresh = lines_in(git, path, change).difference(
                old, *(lines_in(git, path, each) for each in there)
            )
            if not fresh:
                continue
            change = canonical(b"\n".join([*old, *fresh]))
        found[path] = change
    return found


def merge_segments(contents: Collection[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the union of a path's contents and the contents that do not fit into it, in canonical form.

    Merging any of the contents into the result again changes nothing, in any order: the result only grows, starting
    with the largest content, so a content that did not fit never fits later.
    """
    if sum(map(len, contents)) <= ref.UNION_BYTES_MAX:
        return union(*contents), []
    united, *others = sorted({canonical(each) for each in contents}, key=lambda each: (-len(each), each))
    over = []
    for each in others:
        both = union(united, each)
        if len(both) <= ref.UNION_BYTES_MAX:
            united = both
        elif both != united:
            over.append(each)
    return united, over


def overflow_path(path: str, content: bytes) -> str:
    """Return the path for a content that does not fit into the segment at `path`."""
    name = sha256(path.encode() + b"\n" + content).hexdigest()[:32]
    return f"{path.rpartition('/')[0]}/gm-{name}.jsonl".lstrip("/")
