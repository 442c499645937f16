"""The brief of a task: a file of the work tree whose content its caller attests by a digest."""

from __future__ import annotations

from .. import work_tree_files
from ..commit_message import sanitize
from ..digests import sha256
from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from ..records.record_types import TaskRecord

    class Brief(TypedDict, total=False):
        """The options of a new task that attest a brief."""

        artifact: str
        brief_digest: str
        payload: dict[str, Any]


def attest(top: str | None, path: str) -> Brief:
    """Return the options that attest a file: its path, SHA-256 and length. The time is that of the record.

    Args:
        top: The top folder of the work tree.
        path: Relative to it.

    Raises:
        UsageError: `bad-brief`.
    """
    try:
        text = _read(top, path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"Invalid brief: {sanitize(path)[:200]}: {reason}. Nothing was written.",
            hint="--brief takes a text file of this work tree, of at most 1 MiB.",
            code="bad-brief",
        ) from None
    content = text.encode()
    return {
        "artifact": path,
        "brief_digest": sha256(content).hexdigest(),
        "payload": {"brief": {"length": len(content)}},
    }


def changed(top: str | None, task: TaskRecord) -> str | None:
    """Return a sentence if the file of a task's brief is not what its caller attested; None if it is, or without a brief."""
    wanted, path = task.get("brief_digest"), task.get("artifact_path")
    if not wanted or not path:
        return None
    try:
        is_same = sha256(_read(top, path).encode()).hexdigest() == wanted
    except (OSError, ValueError):
        return f"The brief {path} can't be read in this work tree."
    return (
        None
        if is_same
        else f"The brief {path} is not what the caller attested: it differs in this work tree."
    )


def _read(top: str | None, path: str) -> str:
    real = work_tree_files.resolve(top, path) if top is not None else None
    if real is None:
        raise ValueError("there is no such file in this work tree")
    return work_tree_files.read_text(real)
