"""A temporary repository that borrows the objects of the user's, for git commands that write objects.

It has no refs, no worktree and a configuration of its own, and ignores those of the user: no hook, filter, merge driver,
text conversion or lazy fetch can run, and what git writes is removed with it.
"""

from __future__ import annotations

import os
import time

from .. import atomic_write, state_files
from . import formats, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from .run import Result

PREFIX = "scratch-"
OLD_SECONDS = 3_600.0  # a process that was killed leaves its folder
ATTRIBUTES_MAX = 100_000  # bytes
_CONFIG = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tlooseCompression = 0\n\tfsync = none\n"
_OWN = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_PARAMETERS": "",
}


class ScratchRepository:
    """A context in which `run` starts git in a temporary repository.

    Args:
        common: The common git folder of the user's repository.
        parent: An existing folder for the temporary one.

    Raises:
        OSError: The folder cannot be written.
    """

    def __init__(self, common: str, parent: str) -> None:
        self._common = common
        self._parent = parent
        self._folder = os.path.join(parent, f"{PREFIX}{os.getpid()}-{time.monotonic_ns()}")
        objects = os.path.join(common, "objects")
        self._variables = {**_OWN, "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(objects)}

    def __enter__(self) -> Self:
        remove_old(self._parent, PREFIX)
        state_files.refuse_link(self._parent)
        os.mkdir(self._folder, 0o700)
        try:
            for name in ("objects", "refs", "info"):
                os.mkdir(os.path.join(self._folder, name), 0o700)
            config = _CONFIG
            if formats.id_length(self._common) != 40:
                config += f"[extensions]\n\tobjectFormat = {formats.ALGORITHMS[64]}\n"
            self._write("HEAD", "ref: refs/heads/none\n")
            self._write("config", config)
            cut = formats.shallow_commits(self._common)
            if cut:
                self._write("shallow", "".join(f"{oid}\n" for oid in sorted(cut)))
        except OSError:
            remove(self._folder)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        remove(self._folder)

    def use_attributes(self, commit: str) -> None:
        """Let the top `.gitattributes` of a commit say which files merge by `union`, or are binary."""
        try:
            found = self.run(["cat-file", "blob", f"{commit}:.gitattributes"], out_max=ATTRIBUTES_MAX)
        except run.GitOutputError:
            return
        if found.code == 0:
            self._write(os.path.join("info", "attributes"), os.fsdecode(found.out))

    def run(
        self,
        args: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float | None = None,
        out_max: int | None = None,
    ) -> Result:
        """Run git here, see `run.run`. The exit status may be any."""
        return run.run(
            self._folder, args, input=input, env_extra=self._variables, timeout=timeout, check=False,
            out_max=out_max,
        )  # fmt: skip

    def _write(self, name: str, content: str) -> None:
        path = os.path.join(self._folder, name)
        with open(state_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(os.fsencode(content))


def make_parent(state: str) -> str:
    """Return the folder for temporary repositories below gitmem's own files, after making it.

    Raises:
        OSError: It cannot be made.
    """
    state_files.make_dirs(state)
    return state


def quoted(path: str) -> str:
    """Return a path as git reads it from a list: in double quotes, with the escapes of C."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def remove(folder: str) -> None:
    """Remove a folder of ours, as far as possible."""
    import shutil

    if state_files.link_at(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)


def remove_old(parent: str, prefix: str) -> None:
    """Remove temporary folders of processes that were killed."""
    before = time.time() - OLD_SECONDS
    for name in atomic_write.names_in(parent):
        path = os.path.join(parent, name)
        if name.startswith(prefix) and not os.path.islink(path) and os.path.getmtime(path) < before:
            remove(path)
