"""The ledger: digests of the lines that this clone has acknowledged. `doctor` uses it to find missing lines.

A record is appended for each acknowledgement, in one write without a sync:

    LF 0 SP <commit> { SP <digest of a line> } LF

The number and the commit are `-` for lines that wait for their commit. The commit gets a record of its own. A record
begins with an LF, so a record torn by a crash does not damage the next one. The ledger is evidence, not storage: a
failure to write it does not make recording fail.
"""

from __future__ import annotations

import os

from .. import local_files
from ..outcome import Struct
from ..text.digests import hash_function_for, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..repo import Repo
    from .lines import LogEntry

NAME = "ledger"
OLDER = "ledger.old"
BYTES_MAX = 512 * 1024  # then it becomes `OLDER`
KEY_BYTES = 16
LINES_MAX = 5_000  # of one record; for a larger commit only the commit is noted
_HEX = frozenset("0123456789abcdef")


class LedgerRecord(Struct):
    """An acknowledgement: the commit (None while the lines waited for one) and the digests of lines."""

    commit: str | None
    digests: list[str]


def key(line: bytes) -> bytes:
    """Return the key of a line in ledger and index: the first half of its SHA-256."""
    return sha256(line).digest()[:KEY_BYTES]


def digest(line: bytes) -> str:
    """Return the key of a line in hex, as in the ledger."""
    return key(line).hex()


def append(repo: Repo, entries: Iterable[LogEntry], commit: str | None = None) -> None:
    """Append a record for acknowledged entries. Errors are ignored.

    Args:
        commit: Their commit (the caller holds the lock); None while they wait for one.
    """
    lines = [line for entry in entries for _, line in entry.lines]
    hashed = hash_function_for(len(lines))
    digests = [hashed(line).digest()[:KEY_BYTES].hex() for line in lines]
    if commit is not None and len(digests) > LINES_MAX:
        digests = []
    words = ["-" if commit is None else "0", commit or "-", *digests]
    path = os.path.join(repo.state, NAME)
    try:
        fd = local_files.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, f"\n{' '.join(words)}\n".encode())
            full = commit is not None and os.fstat(fd).st_size > BYTES_MAX
        finally:
            os.close(fd)
        if full:  # only under the lock: a second process would overwrite the file that the first has renamed
            os.replace(path, os.path.join(repo.state, OLDER))
    except OSError:
        return


def replace(repo: Repo, digests: Mapping[str, str]) -> None:
    """Put other digests in the place of these, byte for byte: concurrent processes append. Errors are ignored."""
    for name in (OLDER, NAME):
        path = os.path.join(repo.state, name)
        content = local_files.read(path)
        try:
            fd = local_files.open_file(path, os.O_WRONLY) if digests and content else -1
            if fd < 0:
                continue
            try:
                for old, new in digests.items():
                    at = content.find(old.encode())
                    while at >= 0:
                        os.pwrite(fd, new.encode(), at)
                        at = content.find(old.encode(), at + 1)
            finally:
                os.close(fd)
        except OSError:
            continue


def read(repo: Repo) -> Iterator[LedgerRecord]:
    """Yield the records, oldest first. Torn and foreign records are skipped."""
    for name in (OLDER, NAME):
        content = local_files.read(os.path.join(repo.state, name))
        for row in content.decode("ascii", "replace").split("\n"):
            record = _parsed(row)
            if record is not None:
                yield record


def last_commit(state: str) -> str | None:
    """Return the commit that this clone accepted last as the log's tip; None if no record names one.

    Reading needs no lock: gitmem appends a record here after every move of the log's ref.

    Args:
        state: The state folder.
    """
    for name in (NAME, OLDER):
        content = local_files.read(os.path.join(state, name))
        start = end = len(content)
        while start >= 0:  # from the end: the last rows nearly always have it
            start = content.rfind(b"\n", 0, end)
            record = _parsed(content[start + 1 : end].decode("ascii", "replace"))
            if record is not None and record.commit is not None:
                return record.commit
            end = start
    return None


def _parsed(row: str) -> LedgerRecord | None:
    words = row.split(" ")
    if len(words) < 2 or not (words[0] == "-" or words[0].isdecimal()):
        return None
    commit = words[1] if len(words[1]) in (40, 64) and _HEX.issuperset(words[1]) else None
    if commit is None and words[1] != "-":
        return None
    # The last digest of a torn record is shorter than 32 characters.
    return LedgerRecord(commit, [word for word in words[2:] if len(word) == 32 and _HEX.issuperset(word)])


def acknowledged(repo: Repo) -> tuple[set[str], list[str]]:
    """Return the digests of all acknowledged lines, and their commits, newest first."""
    digests: set[str] = set()
    commits: dict[str, None] = {}
    for record in read(repo):
        digests.update(record.digests)
        if record.commit is not None:
            commits.pop(record.commit, None)
            commits[record.commit] = None
    return digests, list(commits)[::-1]
