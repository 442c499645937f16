"""Repositories that are made once and copied, because starting git costs more than most tests do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

_made: dict[tuple[str | None, ...], Path] = {}
_folders: list[Path] = []


def keep_in(folder: Path) -> None:
    """Set the folder for the templates of this process."""
    _folders.append(folder)


def copy(name: str, where: Path, make: Callable[[Path], None]) -> None:
    """Fill the folder `where` with what `make` makes in an empty one.

    Args:
        name: What is made: the same name stands for the same content.
        where: An existing folder, or one to create.
        make: Called once for each object and ref format that git is told to use.
    """
    key = (name, os.environ.get("GIT_DEFAULT_HASH"), os.environ.get("GIT_DEFAULT_REF_FORMAT"))
    if key not in _made:
        template = _folders[-1] / f"{name}-{len(_made)}"
        template.mkdir()
        make(template)
        for samples in template.rglob("*.sample"):
            samples.unlink()
        _made[key] = template
    template = _made[key]
    shutil.copytree(template, where, symlinks=True, dirs_exist_ok=True)
    for config in (*where.glob("*/config"), *where.glob("*/.git/config")):  # URLs of remotes in it
        text = config.read_text()
        if str(template) in text:
            config.write_text(text.replace(str(template), str(where)))
