"""The driver's program, called as git calls it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitmem.log.union import union
from merge_driver.main import main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Base, ours, theirs, with a line of its own each and one in common."""
    folder = tmp_path / "top"
    folder.mkdir()
    paths = [folder / name for name in (".merge_file_O", ".merge_file_A", ".merge_file_B")]
    for path, content in zip(paths, (b"a\n", b"c\na\n", b"b\r\na\r\n"), strict=True):
        path.write_bytes(content)
    return paths


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["gitmem-merge", *map(str, arguments)])
    return main()


def test_the_union_is_left_in_ours(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 0, the union in %A, the other files and the folder as they were."""
    assert call(monkeypatch, *files) == 0
    assert [path.read_bytes() for path in files] == [b"a\n", b"a\nb\nc\n", b"b\r\na\r\n"]
    assert sorted(files[0].parent.iterdir()) == sorted(files)


def test_the_base_is_not_needed(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A union never takes away, so a base that can't be read stops nothing."""
    files[0].unlink()

    assert call(monkeypatch, *files) == 0
    assert files[1].read_bytes() == b"a\nb\nc\n"


def test_permissions_of_ours_are_kept(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Called by hand on a real file, the driver leaves its mode."""
    files[1].chmod(0o640)

    assert call(monkeypatch, *files) == 0
    assert files[1].stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("missing", [1, 2])
def test_an_unreadable_side_is_a_conflict_not_a_crash(
    files: list[Path], missing: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 1 to 128, a sentence that names the file, and %A as it was."""
    files[missing].unlink()

    assert 0 < call(monkeypatch, *files) <= 128
    assert str(files[missing]) in capsys.readouterr().err
    assert missing == 1 or files[1].read_bytes() == b"c\na\n"


@pytest.mark.parametrize("step", ["open", "replace"])
def test_a_full_disk_leaves_ours_as_it_was(
    files: list[Path], step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever write fails, %A is whole for the fallback, and nothing else is left behind."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, full)

    assert 0 < call(monkeypatch, *files) <= 128
    assert "No space left" in capsys.readouterr().err
    assert files[1].read_bytes() == b"c\na\n"
    assert sorted(files[0].parent.iterdir()) == sorted(files)


@pytest.mark.parametrize("arguments", [(), ("O", "A"), ("O", "A", "B", "L"), ("--help",)])
def test_bad_usage_says_what_it_is_for(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person who tries it learns who calls it and what installs it."""
    assert 0 < call(monkeypatch, *arguments) <= 128
    assert "gitmem init" in capsys.readouterr().err


def test_nothing_but_the_union_is_imported(files: list[Path]) -> None:
    """Git runs it once for each path, so it brings in two small modules and the standard start."""
    probe = (
        "import sys; before = set(sys.modules); from merge_driver.main import main; main();"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert set(done.stdout.split()) == {
        "gitmem", "gitmem.log", "gitmem.log.union", "merge_driver", "merge_driver.main"
    }  # fmt: skip
    assert files[1].read_bytes() == union(b"a\nb\nc\n")
