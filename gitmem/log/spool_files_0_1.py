"""Spool files: an entry each, as version 0.1 left them. They are read and committed, and none is written any more.

A file's name is `<microseconds>-<random>-<segment token>-wait.spool`, or `-ride.spool` for an entry that starts no commit;
its content is that of an entry whose head has no token.
"""

from __future__ import annotations

from . import entry as entries
from .entry import LogEntry
from .wal_record import Tail, checksum


def tail(name: str, content: bytes) -> Tail:
    """Return the one entry of a spool file as if it were read from a generation.

    Raises: ValueError where it is none.
    """
    payload = decode(name, content).encode()
    return Tail([(payload, checksum(payload))], set(), len(content), 0)


def decode(name: str, content: bytes) -> LogEntry:
    """Return the entry of a spool file. Raises: ValueError where it is none."""
    parts = name.split("-")
    if len(parts) != 4 or parts[3] not in ("wait.spool", "ride.spool"):
        raise ValueError(f"invalid name of a spool file: {name[:200]!r}")
    head, rows = entries.split(content)
    return LogEntry.of(parts[2], entries.read_head(head), rows, deferred=parts[3] == "ride.spool")
