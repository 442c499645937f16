"""Choose the segments of lines, and keep each below the size that other clones accept."""

from __future__ import annotations

from ..digests import sha256
from . import ref
from .union import canonical, union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..git.plumbing import Git
    from ..git.port import TreeEntry
    from .entry import LogEntry

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


def changes_of(
    git: Git, tree: str, entries: Iterable[LogEntry]
) -> tuple[dict[str, bytes | TreeEntry | None], bool]:
    """Return the changes that entries make in a tree, and whether the open segment is full afterwards."""
    by_token: dict[tuple[str, str], list[bytes]] = {}
    for entry in entries:
        for stream, line in entry.lines:
            path = ref.segment_path(stream, line, entry.token)
            by_token.setdefault((path, entry.token), []).append(line)
    changes: dict[str, bytes | TreeEntry | None] = {}
    full = False
    for (path, token), lines in by_token.items():
        full = _add(git, tree, path, token, lines, changes) or full
    return changes, full


def next_token(token: str) -> str:
    """Return the token of the segment after a full one. It is derived, so a repeated append uses the same one."""
    return "".join(_DIGITS[byte & 31] for byte in sha256(token.encode()).digest()[:8])


def _add(
    git: Git,
    tree: str,
    path: str,
    token: str,
    lines: Sequence[bytes],
    changes: dict[str, bytes | TreeEntry | None],
) -> bool:
    """Add the lines of one segment; lines that do not fit go to the next segments. Return whether one is full."""
    full = False
    left: Sequence[bytes] = canonical(b"\n".join(lines)).split(b"\n")[:-1]
    while left:
        found = ref.lookup(git, tree, path)
        there = changes.get(path)
        old = there if isinstance(there, bytes) else b""
        if not old and found is not None and not found.is_tree:
            old = git.blob(found.oid)
        some, rest = _split_by_size(old, left)
        content = union(old, *some)
        if rest:
            known = set(content.split(b"\n"))
            rest = [line for line in rest if line not in known]
        if content != old and len(content) <= ref.UNION_BYTES_MAX:  # else only its form would change
            changes[path] = content
        full = full or len(content) >= ref.SEGMENT_MAX_BYTES
        left, followed = rest, next_token(token)
        path, token = path.removesuffix(f"{token}.jsonl") + f"{followed}.jsonl", followed
    return full


def _split_by_size(old: bytes, lines: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Split lines into those that fit into a segment, and the rest."""
    room = ref.SEGMENT_BYTES_MAX - len(old)
    for number, line in enumerate(lines):
        if room <= 0:
            return lines[:number], lines[number:]
        room -= len(line) + 1
    return lines, []
