"""Unite segments without making a file that is larger than any clone takes in.

Where the union of a path's contents is too large the greatest content stays there, and those that it has no room for
go to files of their own beside it. Their names are made of path and content, so that every clone makes the same ones.
Equal bytes in two files are one line, so that changes no record.
"""

from __future__ import annotations

from ..digests import sha256
from . import ref
from .union import canon, union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


def unite(contents: Collection[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the union of a path's contents, and those that it has no room for, in canonical form.

    United with any of the contents again the result stays as it is, whatever their order: it only grows from the
    greatest of them, so what had no room once never has.
    """
    if sum(map(len, contents)) <= ref.UNION_BYTES_MAX:
        return union(*contents), []
    united, *others = sorted({canon(each) for each in contents}, key=lambda each: (-len(each), each))
    over = []
    for each in others:
        both = union(united, each)
        if len(both) <= ref.UNION_BYTES_MAX:
            united = both
        elif both != united:
            over.append(each)
    return united, over


def path_beside(path: str, content: bytes) -> str:
    """Return where a content goes that the segment at `path` has no room for."""
    name = sha256(path.encode() + b"\n" + content).hexdigest()[:32]
    return f"{path.rpartition('/')[0]}/gm-{name}.jsonl".lstrip("/")
