"""Spool files, which version 0.1 wrote: one entry each. They are read and committed; none are written any more.

The name is `<microseconds>-<random>-<segment token>-wait.spool`, or `-ride.spool` for a deferred entry. The content
is an entry whose head has no token.
"""

from __future__ import annotations

from . import entry as entries
from .entry import LogEntry
from .wal_record import WalContent, checksum


def tail(name: str, content: bytes) -> WalContent:
    """Return the entry of a spool file in the form of a file of the write-ahead log.

    Raises:
        ValueError: It is not a spool file.
    """
    payload = decode(name, content).encode()
    return WalContent([(payload, checksum(payload))], set(), len(content), 0)


def decode(name: str, content: bytes) -> LogEntry:
    """Return the entry of a spool file.

    Raises:
        ValueError: It is not a spool file.
    """
    parts = name.split("-")
    if len(parts) != 4 or parts[3] not in ("wait.spool", "ride.spool"):
        raise ValueError(f"invalid name of a spool file: {name[:200]!r}")
    head, rows = entries.split(content)
    return LogEntry.of(parts[2], entries.read_head(head), rows, deferred=parts[3] == "ride.spool")
