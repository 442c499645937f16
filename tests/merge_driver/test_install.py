"""The driver on and off: every touched file comes back byte for byte, and others' entries stay."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.errors import StoreError, UsageError
from gitmem.repo import Repo
from merge_driver.install import ARGUMENTS, MARK, MarkedBlock, install, status, uninstall

Git = Callable[..., str]
CORE = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
CONFIGS = {
    "includes a file": CORE + b"[include]\n\tpath = ../more\n",
    "as git init writes it": CORE,
    "no newline at the end": CORE + b"[user]\n\tname = A",
    "crlf": CORE.replace(b"\n", b"\r\n"),
    "crlf, no newline at the end": CORE.replace(b"\n", b"\r\n") + b"[user]\r\n\tname = A",
    "cr at the end": CORE + b"\r",
    "a comment at the end": CORE + b"# gitmem\n\t; and so on",
    "blank lines at the end": CORE + b"\n\n \n\t",
    "a byte order mark": b"\xef\xbb\xbf" + CORE,
    "not utf-8": CORE + b"[user]\n\tname = Gr\xfc\xdfe\n",
    "other drivers": CORE + b'[merge "ours"]\n\tdriver = true\n[merge "gitmem-old"]\n\tdriver = false\n',
    "our section without a driver": CORE + b'[merge "gitmem"]\n\trecursive = binary\n',
    "a driver of the user's": CORE + b'[merge "gitmem"]\n\tdriver = mine %O %A %B\n',
    "a value that goes on": CORE + b"[alias]\n\tx = a \\\n\tb",
    "empty": b"",
    "missing": None,
}
ATTRIBUTES = {
    "missing": None,
    "empty": b"",
    "one rule": b"*.png binary\n",
    "no newline at the end": b"*.png binary",
    "crlf": b"*.png binary\r\n*.txt text",
    "a rule like ours": b"gm-*.jsonl merge=gitmem\n",
    "a rule like ours, no newline at the end": b"gm-*.jsonl merge=gitmem",
    "not utf-8": b"*.\xff binary",
}


def put(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(content)


def files(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Mode and content of everything directly in the git folder and its `info`."""
    found: dict[str, tuple[int, bytes | None]] = {}
    for path in [*folder.iterdir(), *folder.glob("info/*")]:
        found[str(path)] = (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
    return found


@pytest.fixture
def folder(place: Repo) -> Path:
    return Path(place.common)


def there_and_back(place: Repo, program: str) -> None:
    before = files(Path(place.common))
    install(place, program)
    assert status(place).attributes
    again = files(Path(place.common))
    assert again != before
    assert install(place, program) == []
    assert files(Path(place.common)) == again
    uninstall(place)
    assert files(Path(place.common)) == before
    assert uninstall(place) == []


@pytest.mark.parametrize("config", CONFIGS)
def test_any_config_comes_back(place: Repo, folder: Path, program: str, config: str) -> None:
    """Whatever stands in it, also at its end; the second install changes no byte."""
    put(folder / "config", CONFIGS[config])
    there_and_back(place, program)


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_any_attributes_come_back(place: Repo, folder: Path, program: str, attributes: str) -> None:
    """A file that install made goes; one that was there has its bytes again."""
    put(folder / "info" / "attributes", ATTRIBUTES[attributes])
    there_and_back(place, program)


def test_the_folder_goes_with_the_file(place: Repo, folder: Path, program: str) -> None:
    """A repository made without a template has no `info`."""
    (folder / "info" / "exclude").unlink(missing_ok=True)
    (folder / "info").rmdir()
    there_and_back(place, program)

    install(place, program)
    (folder / "info" / "exclude").write_bytes(b"*.o\n")
    uninstall(place)
    assert (folder / "info" / "exclude").read_bytes() == b"*.o\n"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_permissions_stay(place: Repo, folder: Path, program: str, mode: int) -> None:
    """Of both files; a new one is as readable as the config."""
    put(folder / "info" / "attributes", b"*.png binary\n")
    for name in ("config", "info/attributes"):
        (folder / name).chmod(mode)
    there_and_back(place, program)

    install(place, program)
    assert (folder / "config").stat().st_mode & 0o777 == mode


def test_links_stay_links(place: Repo, folder: Path, program: str, tmp_path: Path) -> None:
    """What they point to is changed and given back."""
    for name in ("config", "info/attributes"):
        (folder / name).touch()
        target = tmp_path / f"kept elsewhere, {Path(name).name}"
        (folder / name).replace(target)
        (folder / name).symlink_to(target)
    there_and_back(place, program)

    assert (folder / "config").is_symlink()
    assert (folder / "info" / "attributes").is_symlink()


def test_what_others_write_in_between_stays(place: Repo, folder: Path, program: str, git: Git) -> None:
    """Afterwards the files are what they would be had we never been there."""

    def others() -> None:
        git("config", "user.name", "Somebody")
        git("config", "core.filemode", "false")
        git("config", "remote.origin.url", "https://example.org/x")
        git("config", "branch.main.remote", "origin")
        git("config", "--unset", "core.bare")
        with open(folder / "info" / "attributes", "ab") as file:
            file.write(b"*.txt text\n")

    put(folder / "info" / "attributes", b"*.png binary\n")
    before = files(folder)
    others()
    expected = files(folder)
    for name in ("config", "info/attributes"):
        put(folder / name, before[str(folder / name)][1])

    install(place, program)
    others()
    assert install(place, program) == []
    assert status(place).installed
    uninstall(place)
    assert files(folder) == expected


def test_a_file_that_we_made_stays_when_others_use_it(place: Repo, folder: Path, program: str) -> None:
    """Only our lines go."""
    install(place, program)
    with open(folder / "info" / "attributes", "ab") as file:
        file.write(b"*.txt text")
    uninstall(place)

    assert (folder / "info" / "attributes").read_bytes() == b"*.txt text"


@pytest.mark.parametrize("theirs", [b"*.txt text\n", b"*.png binary\n"])
def test_an_added_newline_stays_when_others_need_it(
    place: Repo, folder: Path, program: str, theirs: bytes
) -> None:
    """A rule appended after ours must not be glued to the user's last one."""
    put(folder / "info" / "attributes", b"*.png binary")
    install(place, program)
    with open(folder / "info" / "attributes", "ab") as file:
        file.write(theirs)
    uninstall(place)

    assert (folder / "info" / "attributes").read_bytes() == b"*.png binary\n" + theirs


@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_another_program_replaces_the_lines(
    place: Repo, folder: Path, program: str, git: Git, newline: bytes
) -> None:
    """After an upgrade or a move there is one driver line, and the way back is as before."""
    put(folder / "config", CORE + b"[user]\n\tname = A" + newline)
    before = files(folder)
    install(place, "/old/place/gitmem-merge")
    assert install(place, program) == [str(folder / "config")]

    assert git("config", "--get-all", "merge.gitmem.driver").count("\n") == 1
    assert status(place).program == program
    uninstall(place)
    assert files(folder) == before


def test_a_users_own_driver_is_left(place: Repo, folder: Path, program: str, git: Git) -> None:
    """Somebody who set it meant it: not overridden, not removed, and reported."""
    git("config", "merge.gitmem.driver", "mine %O %A %B")
    before = (folder / "config").read_bytes()
    install(place, program)
    found = status(place)

    assert (folder / "config").read_bytes() == before
    assert (found.driver, found.ours, found.attributes, found.installed) == (
        "mine %O %A %B",
        False,
        True,
        False,
    )
    uninstall(place)
    assert (folder / "config").read_bytes() == before


def test_settings_that_git_put_into_our_section_stay(place: Repo, program: str, git: Git) -> None:
    """Also a driver line that was changed there: it is the user's now."""
    install(place, program)
    git("config", "merge.gitmem.recursive", "binary")
    git("config", "merge.gitmem.driver", "mine %O %A %B")
    assert not status(place).ours
    assert install(place, program) == []
    uninstall(place)

    assert git("config", "--get-regexp", "merge.*").splitlines() == [
        "merge.gitmem.driver mine %O %A %B",
        "merge.gitmem.recursive binary",
    ]
    assert "# gitmem" not in Path(place.common, "config").read_text()


def test_lines_that_a_person_took_out_come_back(place: Repo, folder: Path, program: str, git: Git) -> None:
    """Install repairs what is missing of it, and the way back is as before."""
    before = files(folder)
    install(place, program)
    git("config", "--remove-section", "merge.gitmem")
    marker = (folder / "info" / "attributes").read_bytes().splitlines(True)[0]
    put(folder / "info" / "attributes", marker)
    assert len(install(place, program)) == 2

    assert status(place).installed
    uninstall(place)
    assert files(folder) == before


@pytest.mark.parametrize("name", ["config", "info/attributes"])
def test_a_file_that_git_has_locked_is_left(place: Repo, folder: Path, program: str, name: str) -> None:
    """Git's own lock convention: an error that names the lock, and the lock is not ours to remove."""
    lock = folder / f"{name}.lock"
    lock.touch()
    before = (folder / name).read_bytes() if (folder / name).exists() else None
    with pytest.raises(StoreError, match=r"locked by another process .*\.lock exists"):
        install(place, program)

    assert lock.exists()
    assert ((folder / name).read_bytes() if (folder / name).exists() else None) == before


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_disk_fault_leaves_the_file_as_it_was(
    place: Repo, folder: Path, program: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence, no half-written file, no lock left behind."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = files(folder)
    monkeypatch.setattr(os, step, full)
    with pytest.raises(StoreError, match=r"config \(No space left on device\)"):
        install(place, program)

    assert files(folder) == before


def test_a_config_that_git_cannot_read_is_left(place: Repo, folder: Path, program: str) -> None:
    """Nothing is added to a file that is already broken."""
    put(folder / "config", CORE + b"[user\n")
    before = files(folder)
    with pytest.raises(StoreError, match="bad config"):
        install(place, program)

    assert files(folder) == before


def test_a_config_whose_end_would_swallow_ours_is_left(place: Repo, folder: Path, program: str) -> None:
    """A last line that goes on takes the next one in; what git would read is compared first."""
    put(folder / "config", CORE + b"[alias]\n\tx = a \\\n")
    before = files(folder)
    with pytest.raises(StoreError, match="Nothing was changed"):
        install(place, program)

    assert files(folder) == before


@pytest.mark.parametrize("program", ["gitmem-merge", "./gitmem-merge", "", "/bin/a\nb", "/bin/a\0b"])
def test_a_program_that_git_could_not_run_is_refused(place: Repo, folder: Path, program: str) -> None:
    """Relative paths would be looked up in the work tree."""
    before = files(folder)
    with pytest.raises(UsageError, match="must be absolute"):
        install(place, program)

    assert files(folder) == before


def test_the_driver_line_is_as_documented(place: Repo, git: Git) -> None:
    """A plain path stands there plainly."""
    install(place, "/usr/local/bin/gitmem-merge")

    assert git("config", "merge.gitmem.driver") == f"/usr/local/bin/gitmem-merge{ARGUMENTS}\n"


class TestStatus:
    """What doctor tells."""

    def test_not_installed(self, place: Repo) -> None:
        """Nothing is there, and that is no error."""
        found = status(place)

        assert (found.driver, found.ours, found.attributes, found.program) == (None, False, False, None)

    def test_installed(self, place: Repo, program: str) -> None:
        """The program is the path that was given, however it had to be quoted."""
        install(place, program)
        found = status(place)

        assert (found.program, found.runnable, found.installed) == (program, True, True)

    @pytest.mark.parametrize("how", ["missing", "not executable", "a folder"])
    def test_a_program_that_cannot_be_run(self, place: Repo, program: str, how: str) -> None:
        """The lines are there, but git would fall back."""
        install(place, program)
        if how == "not executable":
            os.chmod(program, 0o600)
        else:
            os.unlink(program)
            if how == "a folder":
                os.mkdir(program)
        found = status(place)

        assert (found.ours, found.attributes, found.runnable, found.installed) == (True, True, False, False)

    def test_an_attribute_that_somebody_overrode(self, place: Repo, folder: Path, program: str) -> None:
        """What counts is what git would do, not what stands in the file."""
        install(place, program)
        with open(folder / "info" / "attributes", "ab") as file:
            file.write(b"*.jsonl -merge\n")

        assert not status(place).attributes

    def test_a_bare_repository(self, tmp_path: Path, program: str) -> None:
        """There is no work tree to ask from."""
        bare = tmp_path / "bare.git"
        subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
        place = Repo(str(bare), str(bare), None)
        there_and_back(place, program)
        install(place, program)

        assert status(place).installed


# Marked lines in a user's file come and go without a trace.

BODY = b"\tdriver = x # ours\n"
_PIECES = st.sampled_from(
    [
        b"[core]\n",
        b'[merge "x"]\n',
        b"\tbare = false\n",
        b"# note",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\xff",
        b"key=1",
    ]
)
texts = st.one_of(st.none(), st.binary(max_size=60), st.lists(_PIECES, max_size=8).map(b"".join))
blocks = st.sampled_from(
    [
        MarkedBlock(lambda line: line.endswith(b"# ours\n"), section=b'[merge "x"]'),
        MarkedBlock(lambda line: line.endswith(b"# ours\n")),
    ]
)


@given(texts, blocks)
def test_out_is_the_inverse_of_in(text: bytes | None, block: MarkedBlock) -> None:
    """A new file goes, an old one has its bytes back, also without a newline at its end."""
    added = block.add(text, BODY)

    assert added.startswith(text or b"")
    assert block.holds(added, BODY)
    assert block.without(added) == text


@given(texts, blocks, st.integers(1, 3))
def test_replacing_forgets_nothing(text: bytes | None, block: MarkedBlock, times: int) -> None:
    """After any number of other bodies the first text is still what removal gives back."""
    added = block.add(text, BODY)
    for number in range(times):
        added = block.add(added, b"\tother %d # ours\n" % number)

    assert added.count(MARK) == 1
    assert block.without(added) == text


@given(texts, blocks)
def test_without_us_there_is_nothing_to_take_out(text: bytes | None, block: MarkedBlock) -> None:
    """A file that we never touched stays as it is."""
    assert block.without(text) == text
    assert not block.holds(text, BODY)


@given(texts, blocks, st.binary(min_size=1, max_size=40).map(lambda tail: b"[new]\n" + tail))
def test_what_others_append_stays(text: bytes | None, block: MarkedBlock, tail: bytes) -> None:
    """Written after ours and by somebody else: kept, on lines of its own."""
    added = block.add(text, BODY) + tail
    left = block.without(added) or b""
    gap = b"\n" if text and not text.endswith(b"\n") else b""

    assert left == (text or b"") + gap + tail
