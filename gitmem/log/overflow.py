"""Merge segments without making a file larger than clones accept.

Where the union of a path's contents is too large, the largest content stays at the path. Contents that do not fit go to
files of their own in the same folder, with names derived from path and content: every clone makes the same names.
A line in two files is one line, so no record changes.
"""

from __future__ import annotations

from ..digests import sha256
from . import ref
from .union import canonical, union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


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
