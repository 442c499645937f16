"""Attest what is committed, with the keys of this user's writers."""

from __future__ import annotations

import os

from .. import local_files
from ..errors import StoreError
from ..log import attestations, ref
from ..log.lines import CommitMessage, LogEntry, is_attestation, writer_of
from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .keys import Keys, SigningKey

PATHS_KEPT = 3  # of the segments of a writer's last attestations: a commit that failed has none


class WriterSealer(Struct):
    """The attestations of one clone's committer; see `log.local_log.Sealer`.

    Attributes:
        keys: Finds the keys of this user.
        state: The state folder.
        clone: The id of the clone.
        tick: Returns the time of a new line, in microseconds since the epoch.
    """

    _keys: Keys
    _state: str
    _clone: str
    _tick: Callable[[], int]
    _found: dict[str, SigningKey | None] = {}

    def lacks(self, writer: str) -> bool:
        """Return whether the key of a writer is missing."""
        try:
            return self._key(writer or self._keys.writer()) is None
        except StoreError:  # none can be made
            return True

    def _key(self, writer: str) -> SigningKey | None:
        if writer not in self._found:
            self._found[writer] = self._keys.find(writer)
        return self._found[writer]

    def seal(self, entries: Sequence[LogEntry], content_at: Callable[[str], bytes]) -> list[LogEntry]:
        """Return the attestations of the lines of these entries, in the segment of a writer's first line.

        What names no writer, such as an imported line, is attested by the writer in force.

        Args:
            content_at: Returns the content of a segment of the log; empty if there is none.
        """
        by_writer: dict[str, list[bytes]] = {}
        places: dict[str, tuple[str, str]] = {}
        for entry in entries:
            for stream, line in entry.lines:
                writer = writer_of(line) or self._keys.writer()
                by_writer.setdefault(writer, []).append(line)
                places.setdefault(writer, (stream, entry.token))
        sealed = []
        for writer, lines in by_writer.items():
            key = self._key(writer)
            if key is not None:
                stream, token = places[writer]
                known = self._paths(writer)
                made = attestations.seal(
                    key, lines, self._tick, self._clone, self._last(writer, known, content_at)
                )
                self._note(writer, [ref.segment_path(stream, made[-1], token), *known])
                message = CommitMessage("", "")
                sealed.append(
                    LogEntry([(stream, line) for line in made], message, deferred=True, token=token)
                )
        return sealed

    def _last(
        self, writer: str, paths: Sequence[str], content_at: Callable[[str], bytes]
    ) -> tuple[int, str] | None:
        """Return number and digest of the last attestation of a writer in this clone that is in the log."""
        found = []
        for path in paths:
            lines = [
                line
                for line in content_at(path).split(b"\n")
                if is_attestation(line) and writer_of(line) == writer
            ]
            for line in sorted(
                lines, reverse=True
            ):  # nearly always the first: others may have added what is none
                last = attestations.read(line)
                if last is not None and last.clone == self._clone:
                    found.append((last.number, last.digest))
                    break
        return max(found, default=None)

    def _note_path(self, writer: str) -> str:
        return os.path.join(self._state, f"attested-{writer}")

    def _paths(self, writer: str) -> list[str]:
        """Return the segments that may have the last attestation, newest first."""
        content = local_files.read(self._note_path(writer))
        return content.decode("utf-8", "replace").split("\n")[:PATHS_KEPT] if content else []

    def _note(self, writer: str, paths: Sequence[str]) -> None:
        rows = list(dict.fromkeys(paths))[:PATHS_KEPT]
        local_files.try_replace(self._note_path(writer), "\n".join(rows).encode())
