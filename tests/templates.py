"""Repositories that are made once and copied, because starting git costs more than most tests do."""

from __future__ import annotations

import copy as copies
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

FRESH_SECONDS = 60.0  # a copy is used as if its sessions had just been at work
_made: dict[tuple[str | None, ...], tuple[Path, float, Any]] = {}
_folders: list[Path] = []


def keep_in(folder: Path) -> None:
    """Set the folder for the templates of this process."""
    _folders.append(folder)


def copy(name: str, where: Path, make: Callable[[Path], T]) -> T:
    """Fill the folder `where` with what `make` makes in an empty one.

    Args:
        name: What is made: the same name stands for the same content.
        where: An existing folder, or one to create. What it has under a name of the content's is replaced.
        make: Called once for each object and ref format that git is told to use, and again after a minute.

    Returns:
        A copy of what `make` returned.
    """
    key = (name, os.environ.get("GIT_DEFAULT_HASH"), os.environ.get("GIT_DEFAULT_REF_FORMAT"))
    if key not in _made or time.monotonic() - _made[key][1] > FRESH_SECONDS:
        template = _folders[-1] / f"{name}-{time.monotonic_ns()}"
        template.mkdir()
        result = make(template)
        for samples in template.rglob("*.sample"):
            samples.unlink()
        if _keys().is_dir():
            shutil.copytree(_keys(), _with_keys(template))
            _with_keys(template).with_suffix(".of").write_text(str(_keys()))
        _made[key] = template, time.monotonic(), result
    template, _, result = _made[key]
    for each in template.iterdir():
        if (where / each.name).is_dir():
            shutil.rmtree(where / each.name)
    shutil.copytree(template, where, symlinks=True, dirs_exist_ok=True)
    _copy_keys(template, where)
    for config in (*where.glob("*/config"), *where.glob("*/.git/config")):  # URLs of remotes in it
        text = config.read_text()
        if str(template) in text:
            config.write_text(text.replace(str(template), str(where)))
    for consent in where.glob(
        "*/.git/gitmem/consent/*"
    ):  # for the URL of a remote, of which it has the digest
        consent.write_text(consent.read_text().replace(str(template), str(where)))
        url = str(json.loads(consent.read_text())["url"])
        consent.rename(consent.with_name(hashlib.sha256(os.fsencode(url)).hexdigest()))
    return copies.deepcopy(result)


def _keys() -> Path:
    """The folder of this test for keys; a fixture of a module has none."""
    return Path(os.environ.get("XDG_STATE_HOME", os.devnull), "gitmem", "keys")


def _with_keys(template: Path) -> Path:
    return template.with_name(f"{template.name}-keys")


def _copy_keys(template: Path, where: Path) -> None:
    """Give this test the keys of the writers of a template: what it writes goes on as theirs."""
    if not _with_keys(template).is_dir():
        return
    _keys().mkdir(mode=0o700, parents=True, exist_ok=True)
    _keys().parent.chmod(0o700)
    for key in _with_keys(template).iterdir():
        if not (_keys() / key.name).exists():
            shutil.copy2(key, _keys() / key.name)
    was = _with_keys(template).with_suffix(".of").read_text()
    for note in (*where.glob("*/.git/gitmem/writer-*"), *where.glob(".git/gitmem/writer-*")):
        if note.suffix != ".key":
            note.write_text(note.read_text().replace(was, str(_keys())))


def first_commit(path: Path) -> None:
    """Make a repository with one commit on `main`."""
    (path / "README").write_text("A repository for tests.\n")
    for args in (
        ("init", "--quiet", "--initial-branch=main"), ("add", "README"), ("commit", "--quiet", "-m", "First"),
    ):  # fmt: skip
        subprocess.run(["git", *args], cwd=path, check=True, capture_output=True, timeout=60)
