"""The spool: what was accepted is there after a crash, and nobody else can put something there."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.log import lines
from gitmem.log.spool import DONE_KEPT_SECONDS, Entry, Spool, Story

from .logs import START

AT = lines.format_at(START).encode()
LINE = b'{"at":"' + AT + b'","kind":"note","text":"hello"}'
HEAD = b'["Planck <a@gitmem>", "hello", "", []]\n'
NAME = "01793000000000000-0f1e2d3c4b-7d2kq0ze-wait.spool"


def one(*, rides: bool = False) -> Entry:
    return Entry([("signals", LINE)], Story("Planck <a@gitmem>", "hello"), rides=rides, token="7d2kq0ze")


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    """One in a git folder."""
    return Spool(str(tmp_path / "gitmem" / "spool"), os.urandom)


@pytest.fixture
def shared(tmp_path: Path) -> Spool:
    """One in a place where others write, too."""
    return Spool(str(tmp_path / "tmp" / "gitmem-1" / "project"), os.urandom, check_owner=True)


@pytest.mark.parametrize("rides", [False, True])
def test_what_is_read_is_what_was_written(spool: Spool, rides: bool) -> None:
    """The lines byte for byte, and the story that the commit will tell, whoever commits it."""
    tabbed = b'{"at":"' + AT + b'",\t"kind":"note"}'
    story = Story(
        "Planck <a@gitmem>", 'to "all"', "a body\n\\ of two lines", [("Signal", "sig-1"), ("To", "Ada")]
    )
    name = spool.put(
        Entry([("signals", LINE), ("receipts", tabbed)], story, rides=rides, token="7d2kq0ze"), START
    )

    found = spool.read(name)

    assert re.fullmatch(r"01793000000000000-[0-9a-f]{10}-7d2kq0ze-(wait|ride)\.spool", name)
    assert found.lines == [("signals", LINE), ("receipts", tabbed)]
    assert (found.rides, found.token) == (rides, "7d2kq0ze")
    assert found.story.trailers == story.trailers
    assert (found.story.author, found.story.subject, found.story.body) == (
        story.author,
        story.subject,
        story.body,
    )


def test_half_a_character_in_a_story_does_not_refuse_the_lines(spool: Spool) -> None:
    """A name from a terminal may have a lone surrogate."""
    entry = one()
    entry.story.subject = "to \udce9ric"

    assert spool.read(spool.put(entry, START)).story.subject == "to ?ric"


@pytest.mark.parametrize("good", ["signals", "7d2kq0ze", "a" * 64])
def test_names_of_streams_and_tokens(good: str) -> None:
    """What another version may write, too."""
    found = Entry.decode(f"1-2-{good}-wait.spool", HEAD + good.encode() + b"\t" + LINE + b"\n")

    assert (found.token, found.lines) == (good, [(good, LINE)])


@pytest.mark.parametrize(
    "bad", ["", "format", "projects", "..", "a/b", "A/b", "Signals", "signale\u0301", "sign\u00e4l", "a" * 65, "a b"]
)  # fmt: skip
def test_a_spool_file_cannot_name_a_path_of_its_own(bad: str) -> None:
    """A stream and a token become names in the log's tree: neither may climb, nor hide one of the fixed names."""
    with pytest.raises(ValueError):
        Entry.decode(NAME, HEAD + bad.encode() + b"\t" + LINE + b"\n")
    with pytest.raises(ValueError):
        Entry.decode(f"1-2-{bad}-wait.spool", HEAD + b"signals\t" + LINE + b"\n")


SAID = b"signals\t" + LINE + b"\n"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("1-2-7d2kq0ze-wait.txt", HEAD + SAID, "'1-2-7d2kq0ze-wait.txt' is not a spool file"),
        ("1-2-7d2kq0ze", HEAD + SAID, "is not a spool file"),
        ("1-2-7d2kq0ze-wait.spool-3", HEAD + SAID, "is not a spool file"),
        (NAME, b"", "torn"),
        (NAME, HEAD + SAID[:-1], "torn"),
        (NAME, HEAD + b"signals\n", "no stream"),
        (NAME, HEAD + SAID.replace(b"}", b""), "does not start with"),
        (NAME, HEAD + SAID.replace(AT, AT.replace(b"-10-", b"-13-")), "bad time"),
        (NAME, b'["Planck <a@gitmem>", "hello", ""]\n' + SAID, "not enough values"),
        (NAME, b'["Planck <a@gitmem>", "hello", "", 7]\n' + SAID, "no story"),
        (NAME, b"7\n" + SAID, "no story"),
        (NAME, b"[" * 100_000 + b"\n" + SAID, "no story"),
        (NAME, b"\xff" + HEAD + SAID, "utf-8"),
    ],
    ids=["kind", "short", "long", "empty", "no end", "no tab", "no object", "no day", "three", "trailers", "number",
         "deep", "bytes"],
)  # fmt: skip
def test_what_is_no_spool_file_costs_itself_and_says_why(name: str, content: bytes, why: str) -> None:
    """Torn, foreign or damaged: whoever reads the spool goes on, and `gitmem doctor` tells of it."""
    with pytest.raises(ValueError, match=why):
        Entry.decode(name, content)


def test_a_disk_that_is_full_leaves_nothing_and_shows_nothing(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is written nobody takes it for an entry; when it fails, the answer says so and has a way out."""
    seen: list[list[str]] = []

    def full(_: int) -> None:
        seen.extend([os.listdir(spool.folder), spool.names()])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(StoreError, match=r"No space left.*nothing was recorded") as failed:
        spool.put(one(), START)

    (temporary,), names = seen
    assert temporary.startswith("tmp-") and names == []
    assert os.listdir(spool.folder) == []
    assert failed.value.code == "spool" and failed.value.hint


def test_an_entry_is_on_the_disk_before_it_is_seen_and_its_name_before_it_is_acknowledged(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, rename, folder: in this order a power loss takes nothing that was acknowledged."""
    steps: list[str] = []
    sync, rename = os.fsync, os.rename

    def synced(handle: int) -> None:
        is_folder = os.path.samestat(os.fstat(handle), os.stat(spool.folder))
        steps.append("folder" if is_folder else "file")
        sync(handle)

    def renamed(old: str, new: str) -> None:
        steps.append("rename")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)

    spool.put(one(), START)

    assert steps == ["file", "rename", "folder"]


@pytest.mark.skipif(os.name == "nt", reason="there a folder that is in use can't go")
def test_a_process_whose_own_folder_is_gone_writes_and_commits(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worktree was removed meanwhile: nothing that it writes has to do with where it stands."""
    gone = tmp_path / "worktree"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    name = spool.put(one(), START)
    spool.finish(name, "a" * 40, tell=True)

    assert spool.names() == []
    assert spool.take_done(name) == "a" * 40


def test_a_system_without_the_flags_of_others(
    spool: Spool, shared: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows: no users, no links to refuse, no folder that can be opened."""
    for missing in ("O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "getuid"):
        monkeypatch.delattr(os, missing)

    for each in (spool, shared):
        (name,) = [each.put(one(), START)]
        assert each.names() == [name]
        assert each.read(name).lines == [("signals", LINE)]


def test_what_lies_in_a_shared_place_is_for_its_owner_alone(spool: Spool, shared: Spool) -> None:
    """Whatever the umask allows. In a git folder the umask says who may read, as it does for git."""
    before = os.umask(0)
    try:
        kept, open_to_all = shared.put(one(), START), spool.put(one(), START)
    finally:
        os.umask(before)

    folder = Path(shared.folder)
    modes = [os.stat(path).st_mode & 0o777 for path in (folder.parent, folder, folder / kept)]
    assert modes == [0o700, 0o700, 0o600]
    assert os.stat(os.path.join(spool.folder, open_to_all)).st_mode & 0o777 == 0o666


def test_a_link_is_neither_written_nor_read_through(spool: Spool, tmp_path: Path) -> None:
    """Whoever may put a link into the folder still can't make us write, or show, another file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(HEAD + b"signals\t" + LINE + b"\n")
    spool.random = bytes
    name = spool.put(one(), START)
    os.replace(os.path.join(spool.folder, name), tmp_path / "taken")
    os.symlink(elsewhere, os.path.join(spool.folder, name))
    os.symlink(elsewhere, os.path.join(spool.folder, f"tmp-{name}"))

    with pytest.raises(OSError):
        spool.read(name)
    os.unlink(os.path.join(spool.folder, name))
    with pytest.raises(StoreError):
        spool.put(one(), START)

    assert spool.names() == []
    assert elsewhere.read_bytes() == HEAD + b"signals\t" + LINE + b"\n"


def to_a_link(folder: Path) -> None:
    os.rename(folder, folder.with_name("moved"))
    folder.symlink_to(folder.with_name("moved"))


def to_others(folder: Path) -> None:
    folder.chmod(0o770)


@pytest.mark.parametrize("change", [to_a_link, to_others])
@pytest.mark.parametrize("level", ["above", "itself"])
def test_a_shared_folder_that_others_could_have_filled_is_not_used(
    shared: Spool, change: Callable[[Path], None], level: str
) -> None:
    """Both levels must be our own folder with mode 0700; a link may be turned to any place."""
    assert not shared.is_ours()
    shared.put(one(), START)
    folder = Path(shared.folder)
    assert shared.is_ours() and len(shared.names()) == 1
    change(folder if level == "itself" else folder.parent)

    assert not shared.is_ours()
    assert shared.names() == []
    with pytest.raises(StoreError, match="belongs to somebody else"):
        shared.put(one(), START)
    assert len(list(folder.glob("*.spool"))) == 1


def test_what_belongs_to_another_user_is_not_read(
    spool: Spool, shared: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a folder nor a file of theirs in a shared place. In the git folder whoever may write there is heard."""
    theirs, ours = shared.put(one(), START), spool.put(one(), START)
    assert shared.read(theirs).lines == [("signals", LINE)]
    monkeypatch.setattr(os, "getuid", lambda: os.stat(shared.folder).st_uid + 1)

    assert not shared.is_ours() and shared.names() == []
    with pytest.raises(ValueError, match="somebody else"):
        shared.read(theirs)
    with pytest.raises(StoreError, match="belongs to somebody else"):
        shared.put(one(), START)
    assert [spool.read(name).lines for name in spool.names()] == [[("signals", LINE)]] and ours


@pytest.mark.parametrize("error", [StoreError("It cannot be opened.", code="lock"), OSError(5, "I/O error")])
def test_what_somebody_out_of_sight_may_have_read_is_recorded(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The folder can't be synced, and the lock not even opened: it can't be said that nobody commits it."""
    from gitmem.log.lock import Lock

    def fails(*_: object) -> None:
        raise error

    def no_sync(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("gitmem.log.spool.fsync_folder", no_sync)
    monkeypatch.setattr(Lock, "take", fails)

    name = spool.put(one(), START, lambda: Lock(os.path.join(spool.folder, "lock")))

    assert spool.names() == [name]


def test_what_cannot_be_taken_back_is_not_reported_as_failed(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file stays, and with it the line: whoever commits next commits it."""

    def no(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("gitmem.log.spool.fsync_folder", no)
    monkeypatch.setattr(os, "unlink", no)

    assert [spool.put(one(), START)] == spool.names()


def aged(path: Path, seconds: float) -> Path:
    """A file that was written so long before START, in seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (START / 1_000_000 - seconds,) * 2)
    return path


def test_sweeping_removes_what_crashed_writers_left_and_nothing_that_waits(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that nobody fetched and files that were never accepted, once they are old; accepted ones never."""
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: sorted(listdir(folder)))
    folder, done = Path(spool.folder), Path(spool.folder, "done")
    old, new = DONE_KEPT_SECONDS + 1, DONE_KEPT_SECONDS - 1
    (done / "0-a-folder-wait.spool").mkdir(parents=True)
    os.utime(done / "0-a-folder-wait.spool", (0, 0))
    left = [aged(done / NAME, old), aged(done / f"tmp-{NAME}", old), aged(folder / f"tmp-{NAME}", old)]
    kept = [
        aged(done / f"1{NAME}", new),
        aged(done / "notes.txt", old),
        aged(folder / f"tmp-1{NAME}", new),
        aged(folder / "tmp-notes.txt", old),
        aged(folder / NAME, old),
        aged(folder / "0-1-7d2kq0ze-ride.spool", old),
    ]

    spool.sweep(START / 1_000_000)

    assert [path.name for path in left if path.exists()] == []
    assert [path.name for path in kept if not path.exists()] == []


def test_sweeping_a_spool_that_never_had_an_answer(spool: Spool) -> None:
    """Not even a folder for them."""
    left = aged(Path(spool.folder) / f"tmp-{NAME}", DONE_KEPT_SECONDS + 1)

    spool.sweep(START / 1_000_000)

    assert not left.exists()
