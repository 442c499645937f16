"""The write-ahead log: entries are recorded here before they are committed.

A folder has numbered generations, each an append-only file of records. A writer appends to the newest one and syncs it;
then the entry is recorded. A committer creates the next generation, reads the older ones, commits their entries and
removes them. File locks keep a committer from reading a file during a write, but correctness does not depend on them: a
writer that finds a newer generation after its sync, or its file removed, appends the record to the newest one again.
Committing an entry twice changes nothing, because the entry names its segment.

    NUL wal1 SP <kind> SP <length> SP <checksum> LF <payload>

is a record. `kind` is `e` for an entry or `v` for a void, `length` is that of the payload in bytes (ten digits), `checksum` is the
hex SHA-256 of kind and payload. The payload of a void is the checksum of an entry in the same file that counts as never
written. Entries and lines contain no NUL, so after any damage reading continues at the next marker.

A folder outside the repository is found by the repository's path, and another project may have that path tomorrow
(`/workspace` in containers). A file beside the entries names their repository (`Owner`); the folder of another one is neither
read nor written.
"""

from __future__ import annotations

import os
import stat
import time

from .. import local_files
from ..errors import StoreError
from ..git.files import LOG_REF, plain_tip
from ..local_files import names_in
from ..outcome import Struct
from ..text.digests import hash_function_for
from . import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..repo import Repo
    from .lines import LogEntry
    from .lock import Lock


WAL, DEFERRED = ".wal1", ".deferred1"  # the number is the version of the format; later versions are rejected
DAMAGED = ".damaged"
COMMITTED = "committed"  # in the state folder: a commit, its parent, and the files that it was made of
NAME_IS_SYNCED = 0  # mtime of an empty generation whose name survives a power loss
_DIGITS = 17


class WalFile:
    """A file in the listing of a write-ahead log folder: its size in bytes, and whether this user wrote it."""

    def __init__(self, folder: str, name: str, status: os.stat_result) -> None:
        self.folder = folder
        self.name = name
        self.number = int(name[:_DIGITS])
        self.size = status.st_size
        self.is_own = local_files.is_own(status, folder)

    @property
    def path(self) -> str:
        """The path of the file."""
        return os.path.join(self.folder, self.name)

    @property
    def is_deferred(self) -> bool:
        """Whether its entries wait for the next commit instead of starting one."""
        return self.name.endswith(DEFERRED)


def name_of(number: int, *, deferred: bool) -> str:
    """Return the name of a generation."""
    return f"{number:0{_DIGITS}d}{DEFERRED if deferred else WAL}"


def list_files(folder: str) -> list[WalFile]:
    """Return the files of a write-ahead log that this user wrote, oldest first; empty if the folder is unreadable."""
    return [file for file in _every_file(folder) if file.is_own]


def _every_file(folder: str) -> list[WalFile]:
    """Return the files of a write-ahead log, oldest first, also those of other users."""
    found = []
    for name in names_in(folder):
        if _is_numbered(name) and _is_file(name):
            try:
                found.append(WalFile(folder, name, os.lstat(os.path.join(folder, name))))
            except OSError:
                continue  # it was committed meanwhile
    return sorted(found, key=lambda file: (file.number, file.name))


def newest(folder: str, *, deferred: bool) -> str | None:
    """Return the name of the newest generation of a kind, without a stat of each file (for writers)."""
    end = DEFERRED if deferred else WAL
    return max((name for name in names_in(folder) if name.endswith(end) and _is_numbered(name)), default=None)


def other_formats(folder: str) -> list[str]:
    """Return the names of generations in another format, which a newer gitmem wrote."""
    return [name for name in names_in(folder) if _is_numbered(name) and _has_other_format(name)]


def foreign(folder: str) -> list[str]:
    """Return the names in the folder that do not belong to any write-ahead log."""
    ours = ("", "repository", "lock", "done", "aside", "key")
    return [
        name
        for name in names_in(folder)
        if name not in ours
        and not (_is_numbered(name) and (_is_file(name) or _has_other_format(name) or name.endswith(DAMAGED)))
        and not name.startswith(("tmp-", ".tmp-"))
    ]


def damaged(folder: str) -> list[str]:
    """Return the names of generations in which a committer found invalid bytes."""
    return [name for name in names_in(folder) if _is_numbered(name) and name.endswith(DAMAGED)]


def _is_numbered(name: str) -> bool:
    number = name[:_DIGITS]
    return len(number) == _DIGITS and number.isascii() and number.isdigit()


def _is_file(name: str) -> bool:
    return name[_DIGITS:] in (WAL, DEFERRED)


def _has_other_format(name: str) -> bool:
    rest = name[_DIGITS:]
    for end in (WAL, DEFERRED):
        number = rest.removeprefix(end[:-1])
        if rest != end and number != rest and number.isascii() and number.isdigit():
            return True
    return False


def modified_at(file: WalFile) -> float:
    """Return when a file was last written, in seconds since the epoch; the present time if it was removed."""
    try:
        found = os.stat(file.path)
        return found.st_mtime or found.st_ctime  # mtime is 0 if it was written before its name was synced
    except OSError:
        return time.time()


def open_to_read(path: str) -> int | None:
    """Open a file of a write-ahead log, without following links or blocking on a pipe; None if it was removed."""
    try:
        return local_files.open_file(path, os.O_RDONLY)
    except FileNotFoundError:
        return None


def sync_data(handle: int) -> None:
    """Sync the content of a file, which then survives a power loss."""
    getattr(os, "fdatasync", os.fsync)(handle)


def sync_folder(folder: str) -> None:
    """Sync the names in a folder, which then survive a power loss."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_names(folder: str, names: Iterable[str], *, parents: bool = False) -> None:
    """Sync the names of empty generations, and record that in their modification times.

    Args:
        parents: Also sync the name of the folder and that of its parent.
    """
    parent = os.path.dirname(folder)
    for each in (folder, parent, os.path.dirname(parent)) if parents else (folder,):
        sync_folder(each)
    for name in names:
        # If the file is another user's, its first writer syncs the name again.
        local_files.try_utime(os.path.join(folder, name), (NAME_IS_SYNCED * 10**9,) * 2)


def note_commit(state: str, commit: str, parent: str, files: Iterable[WalFile]) -> None:
    """Record which files of a state folder a commit was made of. Never raise an error.

    Args:
        files: The files, with the sizes that were read. Nothing is recorded if one is in another folder.
    """
    read = [file for file in files if file.size]
    rows = [f"{commit} {parent} {len(read)}", *(f"{file.name} {file.size}" for file in read), ""]
    if all(os.path.dirname(file.folder) == state for file in read):
        local_files.try_replace(os.path.join(state, COMMITTED), "\n".join(rows).encode())


def have_commit(state: str, commit: str, parent: str, files: Iterable[WalFile]) -> bool:
    """Return whether files certainly have all lines that a commit adds to its parent.

    Args:
        files: The files that are still there, listed before the log's ref was read.
    """
    head, _, rest = (
        local_files.read(os.path.join(state, COMMITTED)).decode("ascii", "replace").partition("\n")
    )
    sizes = {file.name: file.size for file in files if os.path.dirname(file.folder) == state}
    try:
        known = [(name, int(size)) for name, _, size in (row.partition(" ") for row in rest.split("\n")[:-1])]
    except ValueError:
        return False
    is_this = head == f"{commit} {parent} {len(known)}"
    return is_this and all(sizes.get(name, -1) >= size for name, size in known)


def is_private(folder: str) -> bool:
    """Return whether only this user can have put files into a folder: own uid, mode 0700, not a link."""
    return local_files.is_users(folder, stat.S_ISDIR, 0o077)


def fingerprint(repo: Repo) -> str | None:
    """Describe the state in a text that changes whenever the log's lines or the clone's accepted lines change.

    It contains the names and sizes of the write-ahead log files, the commit of the ref (read after them, because a file
    is removed only after its commit), and the sizes of the ledger and of the ref's reflog, as a ref that was moved back
    has a commit that it had before.

    Returns:
        The text; None without a ledger, and for a ref that is packed or in a reftable.
    """
    state = repo.state
    files = [file for file in list_files(os.path.join(state, "wal")) if file.size]
    tip = plain_tip(repo.common, LOG_REF)
    try:
        known = os.stat(os.path.join(state, "ledger"))
    except OSError:
        return None
    if tip is None:
        return None
    try:
        moves = os.stat(os.path.join(repo.common, "logs", *LOG_REF.split("/"))).st_size
    except OSError:
        moves = 0  # reflogs are off
    sizes = f"{known.st_ino}:{known.st_size}:{moves}"
    return " ".join([tip, sizes, *(f"{file.name}:{file.size}" for file in files)])


MARK = b"\0wal1 "
ENTRY, VOID = b"e", b"v"
HASHED_AT_ONCE = 256  # bytes that take as long as the hash of a line
HEAD_BYTES = len(MARK) + 2 + 11 + 65
PAYLOAD_BYTES_MAX = 64 * 1024 * 1024  # of one entry; a larger batch is rejected before the write


class WalContent(Struct):
    """The result of reading a file.

    Attributes:
        entries: Payloads of entries that are not voided, oldest first, with their checksums.
        voids: Checksums in voids whose entries were not among those read.
        end: The offset behind the last complete record, where the next read starts.
        damaged: The number of bytes before `end` that are not part of a record.
    """

    entries: list[tuple[bytes, bytes]]
    voids: set[bytes]
    end: int
    damaged: int


def encode_record(payload: bytes, kind: bytes = ENTRY) -> bytes:
    """Return the record of a payload."""
    return MARK + b"%s %010d %s\n" % (kind, len(payload), checksum(payload, kind)) + payload


def checksum(payload: bytes, kind: bytes = ENTRY) -> bytes:
    """Return the checksum of a record in hex."""
    hashed = hash_function_for(len(payload) // HASHED_AT_ONCE)(kind)
    hashed.update(payload)
    return hashed.hexdigest().encode()


def parse_records(content: bytes, start: int = 0) -> WalContent:
    """Parse the records in a file's content.

    Args:
        content: The bytes of the file from offset `start` on.
        start: The end of an earlier read; 0 for the whole file.
    """
    found: dict[int, tuple[bytes, bytes]] = {}
    offsets: dict[bytes, list[int]] = {}  # offsets of the entries with a checksum, until a void names it
    voids: set[bytes] = set()
    at = end = damaged = 0
    while True:
        at = content.find(MARK, at)
        if at < 0:
            break
        record = _record(content, at)
        if record is None:
            at += 1
            continue
        kind, payload, digest = record
        damaged += at - end
        at = end = at + HEAD_BYTES + len(payload)
        if kind == VOID:
            named = offsets.pop(payload, None)
            if named is None:
                voids.add(payload)
            for place in named or ():
                del found[place]
        else:
            found[at] = (payload, digest)
            offsets.setdefault(digest, []).append(at)
    return WalContent(list(found.values()), voids, start + end, damaged)


def _record(content: bytes, at: int) -> tuple[bytes, bytes, bytes] | None:
    """Return kind, payload and checksum of the record at an offset; None if it is torn or damaged."""
    head = content[at : at + HEAD_BYTES]
    words = head[len(MARK) : -1].split(b" ")
    if len(head) < HEAD_BYTES or head[-1:] != b"\n" or len(words) != 3:
        return None
    kind, length, digest = words
    if kind not in (ENTRY, VOID) or not length.isdigit() or int(length) > PAYLOAD_BYTES_MAX:
        return None
    start, end = at + HEAD_BYTES, at + HEAD_BYTES + int(length)
    if end > len(content) or content.find(b"\0", start, end) >= 0:
        return None  # checked before the checksum: else a file full of markers would be hashed once for each of them
    payload = content[start:end]
    if checksum(payload, kind) != digest:
        return None
    return kind, payload, digest


OWNER_NAME = "repository"


class Owner(Struct):
    """The repository whose log is open."""

    repo: Repo
    _roots: frozenset[str] | None = None
    _known: dict[str, tuple[bytes, bool]] = {}

    def mark(self, folder: str) -> None:
        """Record durably that the entries in a folder belong to this repository.

        Without the mark, or with the id of a lost clone in it, nobody would commit the entries.

        Raises:
            OSError: It cannot be written.
        """
        for path in (os.path.join(self.repo.state, "clone"), self.repo.state):
            local_files.fsync_dir(path)  # syncs a file as well

        rows = [
            f"clone {self._clone()}",
            f"roots {' '.join(sorted(self._root_commits()))}",
            f"folder {self._folder()}",
            f"path {self.repo.common}",
        ]
        local_files.replace(
            os.path.join(folder, OWNER_NAME), os.fsencode("\n".join(rows) + "\n"), durable=True
        )
        for each in (folder, os.path.dirname(folder)):
            sync_folder(each)

    def matches(self, folder: str) -> bool:
        """Return whether the entries in a folder belong to this repository; False if no owner is recorded.

        They do if the clone id is the same; else if both have a common root commit; else (in an empty or shallow
        repository that gitmem has never written to) if the git folder is the same on the disk.
        """
        content = local_files.read(os.path.join(folder, OWNER_NAME))
        known = self._known.get(folder)
        if known is None or known[0] != content:
            known = self._known[folder] = (content, self._is_ours(_values(content)))
        return known[1]

    def _is_ours(self, fields: dict[str, str]) -> bool:
        clone, roots = fields.get("clone"), set(fields.get("roots", "").split())
        if clone and clone == self._clone():
            return True
        ours = self._root_commits() if roots else frozenset()
        if roots and ours:
            return not ours.isdisjoint(roots)
        return not clone and not roots and fields.get("folder") == self._folder()

    def _clone(self) -> str:
        word = local_files.read(os.path.join(self.repo.state, "clone")).decode("ascii", "replace").strip()
        return word if word.isalnum() else ""

    def _root_commits(self) -> frozenset[str]:
        if self._roots is None:
            from ..git.repository import root_commits

            self._roots = frozenset(root_commits(self.repo))
        return self._roots

    def _folder(self) -> str:
        try:
            found = os.stat(self.repo.common)
        except OSError:
            return "-"
        return f"{found.st_dev}:{found.st_ino}"


def owner_path_in(folder: str) -> str:
    """Return the git folder that the entries of a write-ahead log came from; "" if it is not recorded."""
    return _values(local_files.read(os.path.join(folder, OWNER_NAME))).get("path", "")


def _values(content: bytes) -> dict[str, str]:
    rows = (row.partition(" ") for row in os.fsdecode(content).split("\n"))
    return {name: value for name, _, value in rows if name}


FILE_BYTES_MAX = 64 * 1024 * 1024  # then a writer creates the next generation
READ_BYTES_MAX = FILE_BYTES_MAX + 2 * (PAYLOAD_BYTES_MAX + HEAD_BYTES)
ATTEMPTS_MAX = 200
OWNER_LOCK = "lock"
OWNER_LOCK_SECONDS = 2.0


class WriteAheadLog(Struct):
    """One folder of generations.

    Attributes:
        folder: The folder; it may be missing.
        now: Returns the wall clock in microseconds since the epoch; prevents the reuse of numbers.
        check_owner: The folder is in a shared location; it and its files must belong to this user alone.
        owner: The repository that the entries must belong to, if the path of the folder does not ensure that.
    """

    folder: str
    now: Callable[[], int]
    check_owner: bool = False
    owner: Owner | None = None

    def append(self, entry: LogEntry) -> None:
        """Record an entry. After the return it survives a crash and a power loss.

        Raises:
            StoreError: Nothing was recorded (`wal`, `too-large`, `newer-format`), or that is uncertain (`wal-unknown`).
        """
        payload = entry.encode()
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise StoreError(
                f"The records are too large for one write: {len(payload)} bytes; at most"
                f" {PAYLOAD_BYTES_MAX} are valid. Nothing was recorded.",
                hint="Write them in smaller batches.",
                code="too-large",
            )
        newer = other_formats(self.folder)
        if newer:
            raise StoreError(
                f"A newer gitmem has recorded lines here: {os.path.join(self.folder, newer[0])}; this one reads"
                f" {WAL} only. Nothing was recorded.",
                hint="Upgrade gitmem, or let the newer one commit them: gitmem log.",
                code="newer-format",
            )
        try:
            self._make_folder()
            lock = self._own()
            try:
                self._append(encode_record(payload), entry.deferred)
            finally:
                if lock is not None:
                    lock.release()
        except OSError as error:
            raise StoreError(
                f"The write-ahead log {self.folder} cannot be written ({error.strerror or error}). Nothing was recorded.",
                hint="Free disk space or correct the permissions, then run the command again.",
                code="wal",
            ) from error

    def _append(self, record: bytes, deferred: bool) -> None:
        """Append a record to the newest generation; append again if a committer may have read the file before.

        Raises:
            OSError: Nothing was recorded.
            StoreError: Code `wal-unknown`.
        """
        is_repeated = False
        for attempt in range(ATTEMPTS_MAX):
            try:
                is_written = self._append_once(record, deferred)
            except OSError as error:
                if is_repeated:  # the older generation has it and may be committed
                    raise self._unknown(error) from error
                raise
            if is_written:
                return
            is_repeated = is_repeated or is_written is not None
            time.sleep(0.001 * min(attempt, 20))
        busy = OSError(0, "other processes constantly create new generations")
        raise self._unknown(busy) if is_repeated else busy

    def _append_once(self, record: bytes, deferred: bool) -> bool | None:
        """Append a record to the newest generation.

        Returns:
            Whether it was still the newest one afterwards; None if nothing was written.

        Raises:
            OSError: The record does not count as written.
            StoreError: Code `wal-unknown`.
        """
        name = newest(self.folder, deferred=deferred) or self._create(deferred)
        path = os.path.join(self.folder, name)
        try:
            handle = local_files.open_file(path, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:
            return None  # it was committed meanwhile
        except PermissionError:
            self._create(deferred, after=name)  # another user of this clone writes to it
            return None
        except OSError as error:
            if error.strerror != local_files.OTHER_KIND or error.filename != path:
                raise
            local_files.refuse_link(self.folder)
            os.rename(path, path + DAMAGED)
            return None
        try:
            is_free = lock.lock_file(handle, exclusive=False)
            if not self._is_newest(name, handle, deferred):
                return None
            found = os.fstat(handle)
            is_own = local_files.is_own(found, self.folder)
            if not (is_free and is_own) or found.st_size > FILE_BYTES_MAX:
                self._create(deferred, after=name)
                return None
            if not found.st_size and found.st_mtime != NAME_IS_SYNCED:
                sync_names(self.folder, [name], parents=True)  # the creator may have crashed
            self._write(handle, record, lambda: self._is_newest(name, handle, deferred))
            return self._is_newest(name, handle, deferred)
        finally:
            os.close(handle)

    def _write(self, handle: int, record: bytes, is_newest: Callable[[], bool]) -> None:
        """Append a record to an open file and sync it.

        Raises:
            OSError: The record is void.
            StoreError: Code `wal-unknown`, also if a committer may have read the record before it was voided.
        """
        if os.write(handle, record) < len(record):  # readers skip half a record
            raise OSError(28, "No space left on device")
        try:
            sync_data(handle)
        except OSError as error:
            void = encode_record(checksum(record[HEAD_BYTES:]), VOID)
            try:
                is_void = os.write(handle, void) == len(void)
                sync_data(handle)
            except OSError:
                is_void = False
            if is_void and is_newest():
                raise
            raise self._unknown(error) from error

    def _unknown(self, error: OSError) -> StoreError:
        return StoreError(
            f"The disk failed while {self.folder} was written ({error.strerror}); it is unknown whether the records"
            " were kept.",
            hint="Check with `gitmem log`; if the command has an --idempotency-key, repeat it with the same key.",
            code="wal-unknown",
        )

    def _is_newest(self, name: str, handle: int, deferred: bool) -> bool:
        """Return whether an open generation is the newest one and still exists under its name."""
        if newest(self.folder, deferred=deferred) != name:
            return False
        try:
            found = os.stat(os.path.join(self.folder, name))
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(handle))

    def _create(self, deferred: bool, *, after: str | None = None, synced: bool = True) -> str:
        """Create the next generation and make its name durable."""
        last = max((file.number for file in _every_file(self.folder)), default=0)
        name = name_of(max(last + 1, self.now()), deferred=deferred)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            path = os.path.join(self.folder, name)
            private = self.check_owner or local_files.READABLE
            os.close(
                local_files.open_file(path, flags, 0o600 if self.check_owner else 0o644, private=private)
            )
        except FileExistsError:
            return name
        if synced:
            sync_names(self.folder, [name], parents=after is None)
        return name

    def _make_folder(self) -> None:
        if self.check_owner:
            local_files.refuse_link(self.folder)
            parent = os.path.dirname(self.folder)
            os.makedirs(os.path.dirname(parent), exist_ok=True)
            for folder in (parent, self.folder):
                try:
                    os.mkdir(folder, 0o700)
                except FileExistsError:
                    pass
                if not is_private(folder):  # before anything is created in it
                    raise PermissionError(1, "it belongs to somebody else or is a link")
        else:
            local_files.make_dirs(self.folder)

    def _own(self) -> Lock | None:
        """Acquire the lock that keeps other repositories from writing to the folder; None if the folder is in this one.

        Another repository with the same path may find the same folder (two containers with one state folder); raise
        OSError if entries of it wait there. The owner file is on the disk before any entry.
        """
        if self.owner is None:
            return None
        held = self._take_lock()
        try:
            if not self.owner.matches(self.folder):
                if any(file.size for file in list_files(self.folder)):
                    raise PermissionError(1, "entries of another repository wait in it")
                self.owner.mark(self.folder)
        except BaseException:
            held.release()
            raise
        return held

    def _take_lock(self) -> Lock:
        found = lock.Lock(os.path.join(self.folder, OWNER_LOCK))
        deadline = time.monotonic() + OWNER_LOCK_SECONDS
        try:
            while not found.take():
                if time.monotonic() >= deadline:
                    raise BlockingIOError(11, "another process keeps its lock")
                time.sleep(0.002)
        except StoreError as error:
            raise OSError(5, "its lock cannot be opened") from error
        return found

    def is_ours(self) -> bool:
        """Return whether only this user can have put files here: own uid, mode 0700, no links."""
        return is_private(os.path.dirname(self.folder)) and is_private(self.folder)

    def is_of_other_repo(self) -> bool:
        """Return whether entries of another repository wait here. They are neither read nor committed."""
        return bool(
            self.owner
            and any(file.size for file in list_files(self.folder))
            and self.is_ours()
            and not self.owner.matches(self.folder)
        )

    def files(self) -> list[WalFile]:
        """Return the files whose entries may be read, oldest first: those of this user, see `WalFile`."""
        found = list_files(self.folder)
        if not found or (self.check_owner and not self.is_ours()):
            return []
        return found if self.owner is None or self.owner.matches(self.folder) else []

    def read(self, file: WalFile, start: int = 0, *, large: bool = False) -> WalContent | None:
        """Read a file from an offset on; None if it was removed, which means that it is committed.

        Args:
            file: The file; its `size` becomes the end of what was read.
            start: The offset.
            large: Read the beginning of a file that is larger than writers let it become, for the committer alone.

        Raises:
            OSError: It cannot be read.
            ValueError: It belongs to another user, or is too large.
        """
        handle = open_to_read(file.path)
        if handle is None:
            return None
        with open(handle, "rb") as opened:
            if self.check_owner and os.fstat(handle).st_uid != os.getuid():
                raise ValueError("it belongs to somebody else")
            if not large and os.fstat(handle).st_size > READ_BYTES_MAX:
                raise ValueError("it is larger than any file of gitmem")
            opened.seek(start)
            size = max(os.fstat(handle).st_size - start, 0)  # read() allocates the requested size
            content = opened.read(min(size, READ_BYTES_MAX))
        file.size = start + len(content)
        return parse_records(content, start)

    def rotate(self) -> None:
        """Create generations for new entries while the older ones are committed."""
        found = list_files(self.folder)
        made = []
        for deferred in (False, True):
            last = [file for file in found if file.is_deferred is deferred][-1:]
            if last and last[0].size:
                made.append(self._create(deferred, after=last[0].name, synced=False))
        if made:
            sync_names(self.folder, made)
