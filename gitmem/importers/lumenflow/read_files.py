"""LumenFlow's files, line by line. An unreadable line is reported and only that line is skipped."""

from __future__ import annotations

import os

from ...commit_message import sanitize
from ...errors import UsageError
from ...outcome import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...outcome import Progress

# In reading order: receipts name signals, relations name nodes.
NAMES = {
    "nodes": "memory.jsonl",
    "relations": "relationships.jsonl",
    "signals": "signals.jsonl",
    "receipts": "signal-receipts.jsonl",
    "delegations": "delegation-registry.jsonl",
}
REPORTED = 500  # lines between two reports of progress
LINE_MAX_BYTES = 1024 * 1024  # four times the limit of the log, because JSON may be verbose
MARKERS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")


def find(folder: str) -> str:
    """Return the folder with the files.

    Args:
        folder: That folder, or one that contains it: a project or its `.lumenflow`.

    Raises:
        UsageError: `no-such-folder`, or `nothing-to-import` if it has none of the files.
    """
    shown = sanitize(folder)[:200]
    if not os.path.isdir(folder):
        what = "is not a folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(
            f"{shown} {what}. Nothing was written.",
            hint="Name the project's folder, or the folder .lumenflow/memory in it.",
            code="no-such-folder",
            next=[command("gitmem", "import", "lumenflow", ".")],
        )
    for below in ((".lumenflow", "memory"), ("memory",), (), (".lumenflow", "state"), ("state",)):
        found = os.path.normpath(os.path.join(folder, *below))
        if any(os.path.isfile(os.path.join(found, name)) for name in NAMES.values()):
            return found
    raise UsageError(
        f"No LumenFlow memory in {shown}. Nothing was written.",
        hint=f"Its files are {', '.join(NAMES.values())}, in .lumenflow/memory and .lumenflow/state of the checkout where it ran: "
        "each worktree has its own.",
        code="nothing-to-import",
        next=["gitmem mem list", "git worktree list"],
    )


def path_of(folder: str, kind: str) -> str:
    """Return the path of a kind's file; the registry of delegations is beside the folder of the memory."""
    path = os.path.join(folder, NAMES[kind])
    if kind == "delegations" and not os.path.isfile(path) and os.path.basename(folder) == "memory":
        return os.path.join(os.path.dirname(folder), "state", NAMES[kind])
    return path


def others(folder: str) -> list[str]:
    """Return the other files of the folder, which are not read."""
    return sorted(name for name in os.listdir(folder) if name not in NAMES.values() and name[:1] != ".")


class Files:
    """The files of a folder, and how much of them was read.

    Args:
        folder: The folder with the files.
        progress: Called now and then with the lines that were read.
    """

    def __init__(self, folder: str, progress: Progress | None = None) -> None:
        self.folder = folder
        self._progress = progress
        self._done, self._total = 0, count_lines(folder) if progress is not None else 0

    def objects(self, kind: str) -> Iterator[tuple[int, dict[str, object] | None, str]]:
        """Yield what `read_objects` finds in the file of a kind."""
        for found in read_objects(path_of(self.folder, kind)):
            self._done += 1
            if self._progress is not None and not self._done % REPORTED:
                self._progress("reading lines", self._done, self._total)
            yield found


def count_lines(folder: str) -> int:
    """Return how many lines the files have, about, for showing progress."""
    count = 0
    for kind in NAMES:
        path = path_of(folder, kind)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                while part := file.read(LINE_MAX_BYTES):
                    count += part.count(b"\n")
    return count


def read_objects(path: str) -> Iterator[tuple[int, dict[str, object] | None, str]]:
    """Yield (line number, the object in it or None, the reason for None).

    Blank lines are skipped. A missing file has no lines.

    Raises:
        OSError: The file can't be read.
    """
    if not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(LINE_MAX_BYTES + 1):
            number += 1
            whole = line.endswith(b"\n")
            if len(line) > LINE_MAX_BYTES and not whole:
                while (rest := file.readline(LINE_MAX_BYTES)) and not rest.endswith(b"\n"):
                    continue
                yield number, None, f"it is longer than {LINE_MAX_BYTES} bytes"
                continue
            text = line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
            if text:
                found, why = _object(text, whole)
                yield number, found, why


def _object(line: bytes, whole: bool) -> tuple[dict[str, object] | None, str]:
    import json

    if line.startswith(MARKERS):
        return None, "it is a conflict marker of an unfinished git merge"
    try:
        found = json.loads(line.decode())
    except UnicodeDecodeError:
        return None, "it is not UTF-8"
    except (ValueError, RecursionError):
        return None, "it is not JSON" if whole else "it is cut off, or not JSON"
    if not isinstance(found, dict):
        return None, "it is not a JSON object"
    return found, ""


def micros(value: object) -> int | None:
    """Return an ISO time in microseconds since the epoch, or None for another value. The default time zone is UTC."""
    from datetime import UTC, datetime, timedelta

    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        found = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return found if found >= 0 else None
