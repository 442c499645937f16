"""The lines of nodes that are private to one reader.

They stay in this clone, in files of their own that are never committed. `reader_store` shows them to their reader.
"""

from __future__ import annotations

import os

from .. import local_files, records
from ..errors import StoreError, UsageError
from ..log.lines import LogEntry
from ..log.write_ahead import WriteAheadLog
from ..text.digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..log import write_ahead
    from ..log.lines import CommitMessage
    from ..repo import Repo
    from ..store import Store


BYTES_MAX = 4 * 1024 * 1024  # of the private lines of one reader: all of them are read by each command
SEGMENT = "private"  # an entry must name a segment; these have none
STREAM = records.STREAMS["node"]


class PrivateLines:
    """The lines of one reader's private nodes.

    Args:
        folder: Their folder.
        now: Returns the wall clock in microseconds since the epoch.
        bytes_max: The most bytes of lines.

    Attributes:
        damaged: The number of damaged parts that `read` has met.
    """

    def __init__(self, folder: str, now: Callable[[], int], bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.wal = WriteAheadLog(folder, now, check_owner=True)
        self.damaged = 0

    def read(self) -> list[bytes]:
        """Return the lines, each once.

        Raises:
            StoreError: The folder is open to others, or has more than twice the most bytes (`private-nodes`).
        """
        files = self.files()
        if sum(file.size for file in files) > 2 * self.bytes_max:
            raise StoreError(
                f"Too many private nodes: {self.wal.folder} has more than {2 * self.bytes_max} bytes. Nothing was read.",
                hint="Move its files away, and create the nodes that you need again.",
                code="private-nodes",
                next=["gitmem doctor"],
            )
        self.damaged = 0
        found: dict[bytes, None] = {}
        for file in files:
            try:
                content = self.wal.read(file)
            except (OSError, ValueError):
                self.damaged += 1
                continue
            if content is not None:
                self.damaged += bool(content.damaged)
                found |= dict.fromkeys(self._lines(payload for payload, _ in content.entries))
        return list(found)

    def files(self) -> list[write_ahead.WalFile]:
        """Return their files.

        Raises:
            StoreError: The folder is open to others (`private-nodes`).
        """
        if os.path.lexists(self.wal.folder) and not self.wal.is_ours():
            raise StoreError(
                f"The folder of private nodes is open to others or not yours: {self.wal.folder}. Nothing was read.",
                hint="Its mode and that of the folder above must be 700, and both must belong to you.",
                code="private-nodes",
                next=["gitmem doctor --fix"],
            )
        return self.wal.files()

    def _lines(self, payloads: Iterable[bytes]) -> Iterator[bytes]:
        for payload in payloads:
            try:
                entry = LogEntry.decode(payload)
            except (ValueError, RecursionError):
                self.damaged += 1
                continue
            yield from (line for stream, line in entry.lines if stream == STREAM)

    def append(self, lines: Sequence[tuple[str, bytes]], message: CommitMessage) -> None:
        """Append lines, synced to the disk.

        Raises:
            StoreError: Nothing was recorded.
        """
        size = sum(file.size for file in self.files()) + sum(len(line) for _, line in lines)
        if size > self.bytes_max:
            raise StoreError(
                f"Too many private nodes: {size} bytes; at most {self.bytes_max} are valid. Nothing was recorded.",
                hint="Record what others may know without --private.",
                code="private-nodes",
            )
        self.wal.append(LogEntry(lines, message, token=SEGMENT))


def root(repo: Repo) -> str:
    """Return the folder of the private nodes of this user, which may be missing."""
    return os.path.join(repo.state, f"private-{os.getuid()}")


def folder_of(repo: Repo, reader: str) -> str:
    """Return the folder of a reader's private nodes: an agent identity's, or that of a session without one."""
    return os.path.join(root(repo), sha256(reader.encode()).hexdigest()[:32])


def is_private(store: Store, text: str) -> bool:
    """Return whether an id, or the beginning of one, is that of a private node of this user, whoever its reader is."""
    top = root(store.repo)
    for name in sorted(local_files.names_in(top)):
        try:
            lines = PrivateLines(os.path.join(top, name), store.now).read()
        except StoreError:
            continue
        found = (records.read_kind("node", line) for line in lines if text.encode() in line)
        if any(record is not None and record["id"].startswith(text) for record in found):
            return True
    return False


def naming_error(id: str) -> UsageError:
    """Return the error for a line of the log that would name a private node."""
    return UsageError(
        f"Private node: {id}; only private nodes can name it. Nothing was written.",
        hint="A new private node may name it: `gitmem mem create --private`. Relations are in the log.",
        code="private-nodes",
        next=[f"gitmem show {id}"],
    )
