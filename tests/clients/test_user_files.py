"""The one way in which files of the user's are changed: all of several or none, and only what can be read at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.clients import managed_files
from gitmem.clients.managed_files import FileChange, OwnFile
from gitmem.errors import StoreError, UsageError


def state(folder: Path) -> dict[str, object]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mode) if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_an_error_undoes_the_changes_before_it(tmp_path: Path) -> None:
    """Contents, modes and folders; also of a file that was removed."""
    for name, mode in (("changed", 0o640), ("removed", 0o751), ("refused", 0o600)):
        (tmp_path / name).write_bytes(b"theirs")
        (tmp_path / name).chmod(mode)
    before = state(tmp_path)

    with pytest.raises(StoreError) as caught:
        managed_files.write_files(
            [
                FileChange(str(tmp_path / "a" / "b" / "new"), None, b"ours", True),
                FileChange(str(tmp_path / "changed"), b"theirs", b"ours"),
                FileChange(str(tmp_path / "removed"), b"theirs", None),
                FileChange(str(tmp_path / "refused"), b"somebody was faster", b"ours"),
            ]
        )

    assert caught.value.code == "changed-meanwhile"
    assert state(tmp_path) == before


def test_nobody_else_reads_a_private_file_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings may hold keys; a run that is killed leaves the temporary file behind."""
    path, modes = tmp_path / "settings.json", []
    path.write_bytes(b"secret")
    path.chmod(0o600)
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: modes.append([each.stat().st_mode & 0o777 for each in tmp_path.glob("*settings*")]),
    )

    managed_files.write_files([FileChange(str(path), b"secret", b"secret and ours")])

    assert modes == [[0o600, 0o600]]


def test_a_file_that_is_too_large_or_none_is_refused_at_once(tmp_path: Path) -> None:
    """A repository may have anything in a client's place; reading a pipe would never end."""
    large, pipe = tmp_path / "large", tmp_path / "pipe"
    with large.open("wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(pipe)

    for path, code in ((large, "too-large"), (pipe, "unreadable-file"), (tmp_path, "unreadable-file")):
        with pytest.raises(StoreError) as caught:
            managed_files.read_file(str(path))
        assert caught.value.code == code


def test_a_large_file_in_the_place_of_ours_is_somebody_elses(tmp_path: Path) -> None:
    """A compiled hook, say."""
    path = tmp_path / "pre-push"
    path.write_bytes(b"\x7fELF" + b"\0" * managed_files.SIZE_MAX)

    with pytest.raises(UsageError) as caught:
        OwnFile(str(path), "ours").install()

    assert caught.value.code == "foreign-file"
    assert not OwnFile(str(path), "ours").remove().needed
