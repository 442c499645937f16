"""Check for lines that wait for a key which is not to be found; set them aside, and take them up again when it is back."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

from .. import local_files, records
from ..local_files import ASIDE
from ..log import committer, write_ahead
from ..log.lines import CommitMessage, LogEntry, validation_error, writer_of
from ..log.union import union
from ..store import Store
from ..trust.keys import is_writer
from .clone_files import RESTORED, move_aside
from .findings import Check, Finding, Fixed, note, problem

_START, _END = "unattested-", ".jsonl"  # of the name of a file, around the writer


class LostKeys(Check):
    """Lines that wait for a key which is missing while another one writes here, and lines that were set aside for that."""

    codes = fixes = ("lost-key", "set-aside")

    def check(self) -> Iterator[Finding]:
        """Yield one for each writer."""
        for writer, count in sorted(self._waiting().items()):
            yield problem(
                "lost-key",
                f"{count} recorded line{'s wait' if count > 1 else ' waits'} for the key of the writer {writer}, which is missing: "
                "only this clone shows them, until that key signs them.",
                self.store.log.wal.folder,
                "Restore its key file, or let GITMEM_KEY_FILE name it. If it is lost, --fix moves the lines to "
                f"{path_of(self.store, writer)}, where nobody sees them; then say again what matters.",
                fixable=not self.store.writers.problem(),
            )
        for writer, lines in set_aside(self.store).items():
            is_back = self.store.writers.find(writer) is not None
            yield note(
                "set-aside",
                f"{len(lines)} recorded line{'s are' if len(lines) > 1 else ' is'} set aside, because the key of the writer {writer} "
                f"was missing{'; it is back' if is_back else ''}.",
                path_of(self.store, writer),
                f"{'Keep the file: with the key in its place again, ' if not is_back else ''}--fix records them again, byte for byte.",
                fixable=is_back,
            )

    def _waiting(self) -> Counter[str]:
        """Count the lines that wait by writer, where the key is missing and is not the one in force, which is `WriterKey`'s."""
        rows = committer.waiting_rows(self.store.log, deferred=True)
        found, writers = Counter(writer_of(line) for _, line in rows), self.store.writers
        but = ("", writers.describe()[0])
        return Counter(
            {each: found[each] for each in found if each not in but and writers.find(each) is None}
        )

    def fix(self) -> Iterator[Fixed]:
        """Record again what was set aside for a key that is here; set aside what waits for one that is not."""
        store = self.store
        for writer, lines in set_aside(store).items():
            if store.writers.find(writer) is not None:
                rows = [(records.STREAMS.get(_kind(line), RESTORED), line) for line in lines]
                subject = f"Take up {len(rows)} recorded lines, whose key is back"
                store.log.append(LogEntry(rows, CommitMessage("", subject)))
                path, did = path_of(store, writer), "Recorded again."
                if len(lines) == len(_content(path).split(b"\n")) - 1:
                    os.unlink(path)
                else:
                    did = f"Recorded again, except what is not a valid line; all is kept in {move_aside(store, path)}."
                yield "set-aside", path, did
        if self._waiting() and not store.writers.problem():
            done = committer.commit_waiting(
                store.log, deferred=True, keep=lambda entries: _keep(store, entries)
            )
            store.refresh()
            if done is not None:
                yield "lost-key", store.log.wal.folder, "Set aside."
        else:
            store.commit_waiting(committer.WRITER_SECONDS, deferred=True)


def path_of(store: Store, writer: str) -> str:
    """Return the path of the file for what waited for the key of a writer."""
    return os.path.join(store.repo.state, ASIDE, f"{_START}{writer}{_END}")


def set_aside(store: Store) -> dict[str, list[bytes]]:
    """Return the lines that are set aside, by writer.

    Raises:
        OSError: A file of them can't be read, or is too large.
    """
    found = {}
    for name in sorted(local_files.names_in(os.path.join(store.repo.state, ASIDE))):
        writer = name[len(_START) : -len(_END)]
        if name == os.path.basename(path_of(store, writer)) and is_writer(writer):
            lines = _content(path_of(store, writer)).split(b"\n")
            found[writer] = [line for line in lines if validation_error(line) is None]
    return {writer: lines for writer, lines in found.items() if lines}


def _content(path: str) -> bytes:
    return local_files.load_whole(path, write_ahead.READ_BYTES_MAX)


def _kind(line: bytes) -> str:
    record = records.read(line)
    return record["kind"] if record is not None else ""


def _keep(store: Store, entries: Sequence[LogEntry]) -> None:
    """Add the lines of entries to the files of their writers, on the disk."""
    by_writer: dict[str, list[bytes]] = {}
    for entry in entries:
        lines = [line for _, line in entry.lines]
        writer = next(each for each in map(writer_of, lines) if each and store.writers.find(each) is None)
        by_writer.setdefault(writer, []).extend(lines)
    folder = os.path.join(store.repo.state, ASIDE)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    local_files.adjust(folder)
    for writer, lines in by_writer.items():
        path = path_of(store, writer)
        local_files.replace(path, union(_content(path), *lines), durable=True, private=True)
    for each in (folder, store.repo.state):
        local_files.fsync_dir(each)
