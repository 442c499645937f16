"""The write-ahead log: what was recorded is read again after any damage beside it, and by nobody who may not."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.log import write_ahead
from gitmem.log import write_ahead as wal_record
from gitmem.log.lines import CommitMessage, LogEntry
from gitmem.log.write_ahead import FILE_BYTES_MAX, WriteAheadLog

from .logs import START, FakeClock

LINE = b'{"at":"2026-10-26T00:00:00.%06dZ","kind":"note","text":"%s"}'


def one(text: str = "hello", *, deferred: bool = False) -> LogEntry:
    line = LINE % (len(text), text.encode())
    return LogEntry(
        [("signals", line)], CommitMessage("Planck <a@gitmem>", text), deferred=deferred, token="7d2kq0ze"
    )


@pytest.fixture
def wal(tmp_path: Path) -> WriteAheadLog:
    """One in a git folder."""
    return WriteAheadLog(str(tmp_path / "gitmem" / "wal"), FakeClock())


@pytest.fixture
def shared(tmp_path: Path) -> WriteAheadLog:
    """One in a place where others write, too."""
    return WriteAheadLog(str(tmp_path / "tmp" / "gitmem-1" / "project"), FakeClock(), check_owner=True)


def texts(wal: WriteAheadLog, *, deferred: bool = False) -> list[str]:
    """What is recorded, oldest first."""
    found = []
    for file in wal.files():
        if file.is_deferred == deferred and (tail := wal.read(file)) is not None:
            found += [LogEntry.decode(payload).message.subject for payload, _ in tail.entries]
    return found


def only(wal: WriteAheadLog) -> Path:
    """The one generation."""
    (file,) = wal.files()
    return Path(file.path)


def test_entries_are_appended_to_one_generation_with_one_sync_each(
    wal: WriteAheadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first makes the file and its name durable; each later answer waits for the disk once."""
    wal.append(one("first"))
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append("fsync"))
    monkeypatch.setattr(os, "fdatasync", lambda handle: synced.append("fdatasync"))

    wal.append(one("second"))

    assert synced == ["fdatasync"]
    assert texts(wal) == ["first", "second"]
    assert only(wal).name == f"{START:017d}.wal1"


def test_what_is_acknowledged_is_synced_after_it_was_written_and_its_name_before(
    wal: WriteAheadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folder, then content: in this order a power loss takes nothing that was acknowledged."""
    steps: list[str] = []
    fsync, fdatasync = os.fsync, os.fdatasync

    def folder(handle: int) -> None:
        if os.path.samestat(os.fstat(handle), os.stat(wal.folder)):
            steps.append(f"folder with {len(os.listdir(wal.folder))}")
        fsync(handle)

    def data(handle: int) -> None:
        steps.append(f"{len(wal_record.parse_records(only(wal).read_bytes()).entries)} records")
        fdatasync(handle)

    monkeypatch.setattr(os, "fsync", folder)
    monkeypatch.setattr(os, "fdatasync", data)

    wal.append(one())

    assert steps == ["folder with 1", "1 records"]


def test_deferred_entries_are_apart(wal: WriteAheadLog) -> None:
    """Whether a commit must come is plain from a listing of the folder."""
    wal.append(one("receipt", deferred=True))

    assert [file.is_deferred for file in wal.files()] == [True]
    assert texts(wal) == [] and texts(wal, deferred=True) == ["receipt"]


def test_a_record_inside_of_a_line_is_none(wal: WriteAheadLog) -> None:
    """No line has a NUL, so what a peer says can't pass for a record."""
    imitation = (
        wal_record.encode_record(one("forged").encode())
        .replace(b"\0", b"\\u0000")
        .replace(b"\n", b" ")
        .replace(b'"', b"'")
    )
    wal.append(
        LogEntry(
            [("signals", LINE % (1, imitation.replace(b"\t", b" ")))],
            CommitMessage("a <b>", "real"),
            token="7d2kq0ze",
        )
    )

    assert texts(wal) == ["real"]


@pytest.mark.parametrize(
    "head", [b"\0wal1 e 9999999999 ", b"\0wal1 e 00000000-1 ", b"\0wal1 x 0000000001 ", b"\0wal1 "]
)
def test_a_hostile_head_is_no_record(wal: WriteAheadLog, head: bytes) -> None:
    wal.append(one("first"))
    with only(wal).open("ab") as file:
        file.write(head + b"0" * 64 + b"\n" + b"x" * 100)
    wal.append(one("second"))

    assert texts(wal) == ["first", "second"]


def test_a_file_full_of_markers_is_hashed_once_at_most() -> None:
    """Each claims all that follows as its payload: 20,000 times 2 MB else."""
    heads = [b"\0wal1 e %010d %064d\n" % (1_000_000, number) for number in range(20_000)]
    began = time.process_time()
    tail = wal_record.parse_records(b"".join(heads) + b"x" * 1_000_000)

    assert tail.entries == []
    assert time.process_time() - began < 3, (
        "a megabyte is hashed in a thousandth of that; 20,000 take ten seconds"
    )


def test_a_void_takes_back_all_that_it_names_and_nothing_later() -> None:
    """Voids may stand for an entry of an earlier reading, too."""
    one, two = (wal_record.encode_record(text) for text in (b"one\n", b"two\n"))
    void = wal_record.encode_record(wal_record.checksum(b"one\n"), wal_record.VOID)
    tail = wal_record.parse_records(one + two + one + void + one)

    assert [payload for payload, _ in tail.entries] == [b"two\n", b"one\n"]
    assert not tail.voids
    assert wal_record.parse_records(void).voids == {wal_record.checksum(b"one\n")}


def test_a_failed_sync_leaves_no_entry(wal: WriteAheadLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes are in the file and the answer is a failure: a second record says that they don't count."""
    wal.append(one("first"))
    failures = iter([OSError(errno.EIO, "Input/output error")])
    fdatasync = os.fdatasync

    def fails(handle: int) -> None:
        for error in failures:
            raise error
        fdatasync(handle)

    monkeypatch.setattr(os, "fdatasync", fails)

    with pytest.raises(StoreError, match=r"Input/output error.*Nothing was recorded") as failed:
        wal.append(one("second"))
    wal.append(one("third"))

    assert failed.value.code == "wal" and failed.value.hint
    assert texts(wal) == ["first", "third"]


def test_what_can_be_neither_kept_nor_taken_back_is_called_unknown(
    wal: WriteAheadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails twice: nobody knows, and the answer says so."""
    wal.append(one("first"))

    def fails(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)

    with pytest.raises(StoreError, match="unknown") as failed:
        wal.append(one("second"))

    assert failed.value.code == "wal-unknown" and "--idempotency-key" in (failed.value.hint or "")


def test_what_a_committer_may_have_read_before_its_sync_failed_is_called_unknown(
    wal: WriteAheadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It commits what is there of a writer that keeps the file: what follows can't take that back."""
    wal.append(one("first"))

    def fails(handle: int) -> None:
        monkeypatch.undo()
        wal.rotate()
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)

    with pytest.raises(StoreError, match="unknown") as failed:
        wal.append(one("second"))

    assert failed.value.code == "wal-unknown"


def test_a_full_disk_records_nothing(wal: WriteAheadLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where half of the record still went in."""
    wal.append(one("first"))
    write = os.write

    def half(handle: int, content: bytes) -> int:
        return write(handle, content[: len(content) // 2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(StoreError, match=r"No space left.*Nothing was recorded"):
            wal.append(one("second"))
    wal.append(one("third"))

    assert texts(wal) == ["first", "third"]


def test_a_generation_of_a_newer_gitmem_is_not_written_beside(wal: WriteAheadLog) -> None:
    """Its lines would be committed by nobody who knows both."""
    wal.append(one("first"))
    Path(wal.folder, f"{START + 9:017d}.wal2").write_bytes(b"what a later version writes")

    with pytest.raises(StoreError, match=r"\.wal2.*Nothing was recorded|newer gitmem") as failed:
        wal.append(one("second"))

    assert failed.value.code == "newer-format"
    assert texts(wal) == ["first"]


def test_a_file_does_not_grow_without_end(wal: WriteAheadLog) -> None:
    """Where no committer comes, the next generation is begun."""
    for number in range(6):
        if number == 3:  # a hole, which costs no room on the disk
            os.truncate(only(wal), FILE_BYTES_MAX + 1)
        wal.append(one(f"number {number}"))

    assert len(wal.files()) == 2
    assert texts(wal) == [f"number {number}" for number in range(6)]


def test_an_entry_that_is_too_large_is_refused_before_anything_is_written(wal: WriteAheadLog) -> None:
    most = wal_record.PAYLOAD_BYTES_MAX

    with pytest.raises(
        StoreError, match=rf"bytes; at most {most} are valid\. Nothing was recorded"
    ) as failed:
        wal.append(one("x" * most))

    assert failed.value.code == "too-large"
    assert not os.path.exists(wal.folder)


def test_numbers_are_not_used_again(wal: WriteAheadLog) -> None:
    """Also where somebody removes the folder: an index that has read one generation must not take another for it."""
    wal.append(one("first"))
    before = only(wal)
    before.unlink()
    wal.now.forward(1)  # type: ignore[attr-defined]  # the tests' clock
    wal.append(one("second"))

    assert only(wal).name > before.name


def test_a_process_whose_own_folder_is_gone_records(
    wal: WriteAheadLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worktree was removed meanwhile: nothing that it writes has to do with where it stands."""
    gone = tmp_path / "worktree"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    wal.append(one())

    assert texts(wal) == ["hello"]


def test_what_lies_in_a_shared_place_is_for_its_owner_alone(
    wal: WriteAheadLog, shared: WriteAheadLog
) -> None:
    """Whatever the umask allows. In a git folder the umask says who may read, as it does for git; nobody else may write."""
    before = os.umask(0)
    try:
        shared.append(one())
        wal.append(one())
    finally:
        os.umask(before)

    folder = Path(shared.folder)
    modes = [os.stat(path).st_mode & 0o777 for path in (folder.parent, folder, only(shared))]
    assert modes == [0o700, 0o700, 0o600]
    assert os.stat(only(wal)).st_mode & 0o777 == 0o644


def test_a_link_is_neither_written_nor_read_through(wal: WriteAheadLog, tmp_path: Path) -> None:
    """Whoever may put a link into the folder still can't make us write, or show, another file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(wal_record.encode_record(one("theirs").encode()))
    before = elsewhere.read_bytes()
    wal.append(one())
    path = only(wal)
    path.unlink()
    path.symlink_to(elsewhere)

    with pytest.raises(OSError):
        wal.read(wal.files()[0])
    wal.append(one("ours"))

    assert elsewhere.read_bytes() == before
    assert [payload for file in wal.files() for payload, _ in wal.read(file).entries] == [
        one("ours").encode()
    ]  # type: ignore[union-attr]
    assert write_ahead.damaged(wal.folder) == [path.name + write_ahead.DAMAGED]


def to_a_link(folder: Path) -> None:
    os.rename(folder, folder.with_name("moved"))
    folder.symlink_to(folder.with_name("moved"))


def to_others(folder: Path) -> None:
    folder.chmod(0o770)


@pytest.mark.parametrize("change", [to_a_link, to_others])
@pytest.mark.parametrize("level", ["above", "itself"])
def test_a_shared_folder_that_others_could_have_filled_is_not_used(
    shared: WriteAheadLog, change: Callable[[Path], None], level: str
) -> None:
    """Both levels must be our own folder with mode 0700; a link may be turned to any place."""
    assert not shared.is_ours()
    shared.append(one())
    folder = Path(shared.folder)
    assert shared.is_ours() and texts(shared) == ["hello"]
    change(folder if level == "itself" else folder.parent)

    assert not shared.is_ours()
    assert shared.files() == []
    with pytest.raises(StoreError, match="belongs to somebody else"):
        shared.append(one())
    assert len(list(folder.glob("*.wal1"))) == 1


def test_what_belongs_to_another_user_is_not_read(
    wal: WriteAheadLog, shared: WriteAheadLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a folder nor a file of theirs in a shared place. In the git folder whoever may write there is heard."""
    shared.append(one())
    wal.append(one())
    (theirs,) = shared.files()
    somebody = os.stat(shared.folder).st_uid + 1
    for name in ("getuid", "geteuid"):
        monkeypatch.setattr(os, name, lambda: somebody)

    assert not shared.is_ours() and shared.files() == []
    with pytest.raises(ValueError, match="somebody else"):
        shared.read(theirs)
    with pytest.raises(StoreError, match="belongs to somebody else"):
        shared.append(one())
    assert texts(wal) == ["hello"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_files_of_other_users_are_neither_read_nor_written_nor_in_the_way(wal: WriteAheadLog) -> None:
    """Two users of one clone record in turn: each commits its own."""
    wal.append(one("theirs"))
    os.chown(only(wal), 12345, -1)
    wal.append(one("ours"))
    (mine,) = wal.files()
    theirs = Path(wal.folder) / f"{mine.number + 5:017d}.wal1"
    theirs.write_bytes(b"")
    os.chown(theirs, 12345, -1)

    wal.rotate()

    assert [file.size for file in wal.files()] == [mine.size, 0]
    assert [payload for file in wal.files() for payload, _ in wal.read(file).entries] == [
        one("ours").encode()
    ]  # type: ignore[union-attr]
    assert len(list(Path(wal.folder).glob("*.wal1"))) == 4
