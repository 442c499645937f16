"""The key of a writer: made once in the user's own folder, found again, never replaced and never taken from somebody else."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.text import ed25519
from gitmem.text.digests import ALPHABET
from gitmem.trust import keys

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "1234567890" * 4
SEED = bytes(range(32))
LINE = b"gitmem-key ed25519 " + SEED.hex().encode() + b"\n"
WRITER = "as3nn9tmcd3mr0m5"


class Place:
    """A clone with its state folder, and the folder for keys of its user."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.state = top / "clone" / ".git" / "gitmem"
        self.folder = top / "home" / "keys"
        self.state.mkdir(parents=True)

    def keys(self, **other: object) -> keys.Keys:
        """Return the keys as a new process sees them."""
        fields = {
            "state": str(self.state),
            "folder": str(self.folder),
            "given": "",
            "project": lambda: PROJECT,
            "clone": lambda: "0123456789",
            "random": os.urandom,
            "make_state": lambda: True,
            "machine": "host",
        }
        return keys.Keys(**{**fields, **{name: _text(value) for name, value in other.items()}})

    def note(self, of: str = "writer", machine: str = "host") -> Path:
        """Return the path of a note of this user."""
        return self.state / f"{of}-{os.geteuid()}-{machine}"

    def given(self, content: bytes = LINE, name: str = "given") -> Path:
        """Return a key file that the user names."""
        path = self.top / name
        path.write_bytes(content)
        path.chmod(0o600)
        return path


def _text(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def refused(code: str, found: keys.Keys) -> str:
    """Return the message by which no writer is found."""
    with pytest.raises(StoreError) as caught:
        found.writer()
    assert caught.value.code == code
    assert caught.value.message.endswith("Nothing was written.")
    assert caught.value.hint
    return caught.value.message


def test_the_key_is_made_in_the_users_folder_for_its_owner_alone(place: Place) -> None:
    """Whatever the umask allows others; the clone has only a note."""
    before = os.umask(0)
    try:
        writer = place.keys().writer()
    finally:
        os.umask(before)
    path = place.folder / PROJECT

    assert keys.is_writer(writer)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    assert os.listdir(place.folder) == [PROJECT]
    assert os.listdir(place.state) == [place.note().name]
    assert place.note().read_text() == f"{writer} {path}\n"
    assert place.keys().describe() == (writer, str(path))
    assert place.keys().problem() == ""


def test_a_writer_is_the_hash_of_its_key_and_signs_with_it(place: Place) -> None:
    """A vector of file, id and signature, for others who implement this."""
    found = place.keys(given=place.given())
    digest = hashlib.sha256(ed25519.public_of(SEED)).digest()
    bits = int.from_bytes(digest, "big") >> 256 - 80
    assert "".join(ALPHABET[bits >> 75 - 5 * at & 31] for at in range(16)) == WRITER
    assert found.writer() == WRITER

    key = found.find(WRITER)
    assert key is not None
    assert key.public.hex() == "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
    assert ed25519.verify(key.public, key.sign(b"text"), b"text")
    assert repr(SEED) not in repr(key) + repr(keys.read(str(place.given())))


def test_all_clones_of_a_user_and_project_are_one_writer(place: Place, tmp_path: Path) -> None:
    """Another project has another one."""
    other = tmp_path / "other"
    other.mkdir()
    writer = place.keys().writer()

    assert place.keys(state=other).writer() == writer
    (other / place.note().name).unlink()
    assert place.keys(state=other, project=lambda: "f" * 40).writer() != writer


def test_processes_that_begin_together_make_one_key(place: Place) -> None:
    """A line of who lost the race would have a writer without a key."""
    code = (
        "import os, sys; from gitmem.trust.keys import Keys; sys.stdin.read(1); "
        f"print(Keys({str(place.state)!r}, {str(place.folder)!r}, '', lambda: 'p' * 40, str, os.urandom, lambda: True, 'host').writer())"
    )
    every = [
        subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(8)
    ]
    for each in every:
        assert each.stdin is not None
        each.stdin.write(b"1")
        each.stdin.flush()

    found = {each.communicate(timeout=60)[0] for each in every}

    assert len(found) == 1
    assert os.listdir(place.folder) == ["p" * 40]
    assert place.keys().find(found.pop().decode().strip()) is not None


def test_an_everyday_command_needs_neither_the_key_nor_its_package(place: Place) -> None:
    """The note is enough, also when the key is lost: the line waits for it."""
    writer = place.keys().writer()
    shutil.rmtree(place.folder)
    code = (
        "import os, sys; from gitmem.trust.keys import Keys; "
        f"print(Keys({str(place.state)!r}, {str(place.folder)!r}, '', str, str, os.urandom, lambda: True, 'host').writer()); "
        "print('cryptography' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.split() == [writer, "False"]
    assert not place.folder.exists()
    assert place.keys().find(writer) is None
    assert "missing" in place.keys().problem()


def empty(path: Path) -> None:
    path.write_bytes(b"")
    os.utime(path, (0, 0))  # not one that another process is writing


def foreign(path: Path) -> None:
    path.write_bytes(b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + LINE)


def cut(path: Path) -> None:
    path.write_bytes(LINE[:-2])
    os.utime(path, (0, 0))


def shorter(path: Path) -> None:
    path.write_bytes(LINE.replace(b"1f\n", b"\n"))
    os.utime(path, (0, 0))


def endless(path: Path) -> None:
    path.write_bytes(LINE.replace(b"\n", b"0"))


def longer(path: Path) -> None:
    path.write_bytes(LINE + b"\n")


def capitals(path: Path) -> None:
    path.write_bytes(LINE.replace(b"a", b"A"))


def other_kind(path: Path) -> None:
    path.write_bytes(LINE.replace(b"ed25519", b"ed25520"))


def link(path: Path) -> None:
    real = path.parents[1] / "real"  # not in the folder for keys, where it would be a key
    path.rename(real)
    path.symlink_to(real)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def give_away(path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, 12345, -1)


DAMAGES = [
    (empty, "is empty"), (foreign, "has other content"), (cut, "has other content"), (longer, "has other content"),
    (shorter, "has other content"), (endless, "has other content"),
    (capitals, "has other content"), (other_kind, "has other content"), (link, "is a link"), (folder, "is a link"),
    (pipe, "is a link"), (give_away, "belongs to user 12345"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "words", "is_given"),
    # A file that is named may be a link.
    [(*each, given) for each in DAMAGES for given in (True, False) if not (given and each[0] is link)],
)
def test_a_damaged_key_is_refused_and_not_replaced(
    place: Place, damage: Callable[[Path], None], words: str, is_given: bool
) -> None:
    """It is said what is wrong and what is valid; what the file has is not said."""
    path = place.given() if is_given else place.folder / PROJECT
    place.folder.mkdir(parents=True)
    path.write_bytes(LINE)
    damage(path)
    before = os.lstat(path).st_ino, os.lstat(path).st_size
    found = place.keys(given=path if is_given else "")

    message = refused("key-file", found)
    assert f"{path} {words}" in message
    assert "; it must b" in message
    assert found.problem().startswith(f"Cannot use the key file: {path} {words}")
    assert found.find(WRITER) is None
    assert SEED.hex() not in message + found.problem()
    assert (os.lstat(path).st_ino, os.lstat(path).st_size) == before
    assert list(place.state.iterdir()) == []


@pytest.mark.parametrize(("damage", "words"), DAMAGES)
def test_a_key_that_is_damaged_later_stops_no_everyday_command(
    place: Place, damage: Callable[[Path], None], words: str
) -> None:
    """They go on under the noted id; who has to sign is told."""
    path = place.folder / PROJECT
    place.folder.mkdir(parents=True)
    path.write_bytes(LINE)
    path.chmod(0o600)
    assert place.keys().writer() == WRITER
    damage(path)

    assert place.keys().writer() == WRITER
    assert place.keys().find(WRITER) is None
    assert words in place.keys().problem()


def test_a_key_that_is_seen_to_be_missing_is_refused(place: Place) -> None:
    """Nobody else would ever see what is recorded; a process that can't see the folder goes on, as in a sandbox."""
    writer = place.keys().writer()
    path, away = place.folder / PROJECT, place.folder.with_name("away")
    path.rename(place.top / "kept")
    found = place.keys()

    for _ in range(2):
        assert f"{writer} is missing: {path}" in refused("key-file", found)
    assert found.known() == writer and os.listdir(place.folder) == []
    with pytest.raises(StoreError):
        found.writer()  # also once it is known
    place.folder.rename(away)
    assert place.keys().writer() == writer
    away.rename(place.folder)
    (place.top / "kept").rename(place.folder / "restored")
    assert place.keys().writer() == writer
    (place.folder / "aside").mkdir()
    (place.folder / "restored").rename(place.folder / "aside" / f"20261128T000000Z-{PROJECT}")
    assert place.keys().writer() == writer and place.keys().find(writer) is not None


def test_a_named_key_that_is_missing_later_is_refused(place: Place) -> None:
    """With the command that makes one."""
    path = place.given()
    place.keys(given=path).writer()
    path.unlink()
    with pytest.raises(StoreError) as caught:
        place.keys(given=path).writer()
    assert f"gitmem trust --make-key {path}" in caught.value.hint


def test_a_key_without_the_end_of_its_line_is_one(place: Place) -> None:
    """As secrets of a CI are stored."""
    assert place.keys(given=place.given(LINE[:-1])).writer() == WRITER


def test_a_named_key_may_be_a_link_and_roots(place: Place) -> None:
    """As secrets are mounted in containers: a link of the user's or root's to a file that nobody else may write."""
    real = place.given(name="real")
    path = place.top / "mounted"
    path.symlink_to("real")
    assert place.keys(given=path).writer() == WRITER
    assert place.keys(given=path).problem() == ""
    assert place.keys().find(WRITER) is not None, "a committer of another shell finds it"
    real.unlink()
    assert f"there is no file {path}" in refused("key-file", place.keys(given=path, state=place.top))
    path.unlink()
    path.symlink_to("mounted")
    assert "is a link" in refused("key-file", place.keys(given=path, state=place.top))
    path.unlink()
    path.symlink_to(place.top)
    assert "is a link, a pipe or a folder" in refused("key-file", place.keys(given=path, state=place.top))


def test_a_named_key_of_roots_must_be_closed_to_writers(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a link must be the user's or root's: others would choose under whose name this user writes."""
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    path, link = place.given(), place.top / "mounted"
    path.chmod(0o444)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert keys.read(str(path), is_named=True).key() is not None
    assert not keys.read(str(path), is_named=True).is_exposed, "its user can't close it"
    assert "belongs to user 0" in keys.read(str(path)).damage
    for mode in (0o464, 0o446):
        path.chmod(mode)
        assert "others may write it" in keys.read(str(path), is_named=True).damage
    path.chmod(0o444)
    link.symlink_to(path)
    assert keys.read(str(link), is_named=True).key() is not None
    os.lchown(link, 54321, -1)
    assert "is a link of user 54321" in keys.read(str(link), is_named=True).damage
    os.chown(path, 54321, -1)
    assert "belongs to user 54321" in keys.read(str(path), is_named=True).damage


def test_a_key_that_others_may_read_is_used_and_said(place: Place) -> None:
    path = place.given()
    path.chmod(0o640)
    found = place.keys(given=path)

    assert found.writer() == WRITER
    assert keys.read(str(path)).is_exposed
    assert f"Others may read or change the key file: {path}" in found.problem()
    assert f"chmod 600 {path}" in found.problem()


def test_another_key_in_the_place_of_the_noted_one_is_said(place: Place) -> None:
    """Lines would be written under an id that nothing here can sign."""
    path = place.given()
    place.keys(given=path).writer()
    path.write_bytes(LINE.replace(b"1f\n", b"20\n"))

    assert place.keys(given=path).find(WRITER) is None
    assert f"it must be that of {WRITER}" in place.keys(given=path).problem()


@pytest.mark.parametrize("given", ["missing", "key\nfile", "relative"])
def test_a_chosen_key_that_is_not_there_is_never_replaced_by_another(
    place: Place, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    """Also where this user has a usual one, and where the folder of the moment has a file of that name."""
    place.given(name="relative")
    monkeypatch.chdir(place.top)
    place.keys().writer()
    path = given if given == "relative" else str(place.top / given)
    found = place.keys(given=path)

    assert ascii(path)[1:-1] in refused("key-file", found)
    assert ascii(path)[1:-1] in found.problem()
    assert not place.note("given").exists()


def test_two_shells_with_different_chosen_keys_both_go_on(place: Place) -> None:
    """Each has a row of its own, and the usual key a note of its own; the committer finds all three."""
    usual = place.keys().writer()
    paths = [place.given(), place.given(LINE.replace(b"1f\n", b"20\n"), "second")]
    writers = [place.keys(given=path).writer() for path in paths]

    assert [place.keys(given=path).writer() for path in paths] == writers
    assert place.keys().writer() == usual
    assert len({usual, *writers}) == 3
    assert all(place.keys().find(writer) for writer in (usual, *writers))


def test_a_note_stays_small(place: Place) -> None:
    """Each run of a CI has another path; the newest rows stay."""
    for number in range(keys.ROWS_MAX + 3):
        place.keys(given=place.given(name=f"given{number}")).writer()

    rows = place.note("given").read_text().splitlines()
    assert len(rows) == keys.ROWS_MAX
    assert rows[-1] == f"{WRITER} {place.top}/given{keys.ROWS_MAX + 2}"


def test_a_copied_clone_has_the_id_and_no_key(place: Place, tmp_path: Path) -> None:
    """A backup or an image: what it writes waits, and is not signed by anybody else."""
    writer = place.keys().writer()
    shutil.copytree(tmp_path / "clone", tmp_path / "copy" / "clone")
    shutil.rmtree(place.folder)
    copy = place.keys(state=tmp_path / "copy/clone/.git/gitmem", folder=tmp_path / "copy" / "home")

    assert copy.writer() == writer
    assert copy.find(writer) is None
    assert f"of the writer {writer} is missing" in copy.problem()
    assert not (tmp_path / "copy" / "home").exists()


def test_a_copy_on_another_machine_is_another_writer(place: Place, tmp_path: Path) -> None:
    """The note is of one machine."""
    writer = place.keys().writer()
    copy = place.keys(machine="con/tainer", folder=tmp_path / "other")

    assert copy.writer() != writer
    assert place.note(machine="con_tainer").exists()


@pytest.mark.parametrize("content", [b"", WRITER.encode(), b"%b /path" % WRITER.encode(), b"X%b /a\n" % WRITER[1:].encode(),
                                     b"%b relative\n" % WRITER.encode(), b"\xff\0\n" * 9, b"%b /a\n" % WRITER.encode() * 9999])  # fmt: skip
def test_a_note_of_another_form_is_made_anew(place: Place, content: bytes) -> None:
    """As after a power loss: the key is found again."""
    writer = place.keys().writer()
    place.note().write_bytes(content)

    assert place.keys().writer() == writer
    assert place.note().read_text() == f"{writer} {place.folder / PROJECT}\n"


def of_another_user(note: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(note, 12345, -1)


def writable_by_others(note: Path) -> None:
    note.chmod(0o620)


def a_link(note: Path) -> None:
    note.rename(note.with_name("real"))
    note.symlink_to("real")


@pytest.mark.parametrize("spoil", [of_another_user, writable_by_others, a_link])
def test_a_note_that_others_may_have_written_is_ignored(place: Place, spoil: Callable[[Path], None]) -> None:
    """Who shares a clone would choose under whose id this user writes."""
    writer = place.keys().writer()
    place.note().write_text(f"{WRITER} /key\n")
    spoil(place.note())

    assert place.keys().writer() == writer


def test_key_and_note_are_private_in_a_shared_clone(place: Place) -> None:
    """Git's setting shares all else with the group, which could choose the writer or sign."""
    (place.state.parent / "objects").mkdir()
    (place.state.parent / "HEAD").write_text("ref: refs/heads/main\n")
    (place.state.parent / "config").write_text("[core]\n\tsharedRepository = 0666\n")

    place.keys(folder="").writer()

    assert {stat.S_IMODE(path.stat().st_mode) for path in place.state.iterdir()} == {0o600}
    assert len(list(place.state.iterdir())) == 2


def test_without_a_folder_the_key_is_in_the_clone(place: Place) -> None:
    """As the library has it, and where the folder can't be made; an earlier one stays in force when there is a folder."""
    writer = place.keys(folder="").writer()
    path = place.state / f"writer-{os.geteuid()}.key"

    assert place.keys().describe() == (writer, str(path))
    place.note().unlink()
    assert place.keys().describe() == (writer, str(path))
    assert place.keys().writer() == writer
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not place.folder.exists()


def test_a_folder_that_cannot_be_made_is_none(place: Place) -> None:
    place.given(name="file")
    found = place.keys(folder=place.top / "file" / "keys")

    assert found.describe() == ("", "")
    assert found.writer() == place.keys(folder="").writer()


def test_root_makes_no_key_in_the_home_of_another_user(place: Place) -> None:
    """Its owner could use neither the key nor the folder afterwards."""
    if os.getuid() != 0:
        pytest.skip("only root gives folders away")
    place.folder.parent.mkdir()
    os.chown(place.folder.parent, 12345, -1)

    place.keys().writer()

    assert not place.folder.exists()
    assert (place.state / "writer-0.key").exists()


def test_roots_key_in_the_clone_of_another_user_stays_roots(place: Place) -> None:
    """What else root makes there is given to the owner, who must not sign as root."""
    if os.getuid() != 0:
        pytest.skip("only root gives folders away")
    (place.state.parent / "objects").mkdir()
    (place.state.parent / "HEAD").write_text("ref: refs/heads/main\n")
    for path in (place.state.parent, place.state):
        os.chown(path, 12345, -1)

    writer = place.keys(folder="").writer()

    assert {path.stat().st_uid for path in place.state.iterdir()} == {0}
    assert place.keys(folder="").find(writer) is not None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_makes_no_second_writer(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The clone would write under another key than the user's other clones ever after."""

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", fails)

    assert os.strerror(number) in refused("key-file", place.keys())
    assert os.listdir(place.folder) == []
    assert os.listdir(place.state) == []


def test_a_file_system_without_hard_links_makes_one_key_too(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written in place; who sees it half is refused, and changes nothing."""

    def fails(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", fails)
    writer = place.keys().writer()
    path, content = place.folder / PROJECT, (place.folder / PROJECT).read_bytes()
    place.note().unlink()
    path.write_bytes(content[:20])

    refused("key-file", place.keys())
    path.write_bytes(content)
    assert place.keys().writer() == writer


def test_a_clone_that_cannot_be_written_has_a_writer_without_a_note(place: Place) -> None:
    """The key in the user's folder, or the chosen one, is used. Without either a command is refused: no key is kept in memory alone."""
    found = place.keys(make_state=lambda: False)
    writer = found.writer()

    assert writer == place.keys(make_state=lambda: False).writer()
    assert place.keys(make_state=lambda: False, given=place.given()).writer() == WRITER
    assert list(place.state.iterdir()) == []
    assert found.describe()[0] == writer

    message = refused("no-key", place.keys(make_state=lambda: False, folder=""))
    assert str(place.state) in message
    place.note().write_text(f"{WRITER} /nowhere/key\n")
    place.note().chmod(0o600)
    assert place.keys(make_state=lambda: False, folder="").writer() == WRITER


def test_before_the_first_commit_the_clone_names_the_key(place: Place) -> None:
    """And goes on with it afterwards."""
    writer = place.keys(project=str).writer()

    assert os.listdir(place.folder) == ["clone-0123456789"]
    assert place.keys().writer() == writer
    place.note().unlink()
    assert place.keys().find(writer) is not None


def test_nothing_is_made_by_asking(place: Place) -> None:
    found = place.keys()

    assert (found.describe(), found.problem(), found.find(WRITER)) == (("", ""), "", None)
    assert list(place.state.iterdir()) == []
    assert not place.folder.exists()
