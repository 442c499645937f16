"""A clone's disk: what of its own files would survive a power cut, and whether there is room for more."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

FULL = 0.7  # how often a write fails on a full disk
# How often what was not synced is gone, cut somewhere, or has blocks in it that were never written.
GONE, TORN, HOLED = 0.3, 0.3, 0.2
BLOCK = 128  # bytes, smaller than a disk's, as the files of a run are small


class Disk:
    """The files below a folder, which only a simulated run changes.

    A journalling file system keeps the changes of one folder in their order: a power cut leaves those up to
    some moment after the last fsync of the folder. Of a file's content it keeps what was there at the last fsync or
    fdatasync of the file; what was written since may be gone, cut somewhere, or have blocks of zeros in it.
    """

    def __init__(self, folder: str, random: Random) -> None:
        self.folder = folder
        self.random = random
        self.is_full = False
        self.errors = 0.0  # how often a write fails though there is room
        self._synced: dict[
            str, int
        ] = {}  # of each file that was written to: how many bytes a power cut leaves
        self._undo: dict[str, list[Callable[[], None]]] = {}

    def named(self, path: object) -> str:
        """A path as a trace has it: the same in every run."""
        return os.path.relpath(str(path), self.folder)

    def refuse(self) -> None:
        """Where the disk is full most writes fail, and now and then one where it is not."""
        chance = FULL if self.is_full else self.errors
        if chance and self.random.random() < chance:
            number = errno.ENOSPC if self.is_full else errno.EIO
            raise OSError(number, os.strerror(number))

    def stamp(self, path: str, micros: int) -> None:
        """A file's time is the time of its clone."""
        os.utime(path, ns=(micros * 1000, micros * 1000))

    def opened(self, path: str, *, fresh: bool, micros: int, appends: bool = False) -> None:
        """A file was opened for writing, perhaps a new one; whoever appends leaves what is in it."""
        if appends:
            self._synced.setdefault(path, os.path.getsize(path))
        else:
            self._synced[path] = 0
        if fresh:
            self._add(path, lambda: _remove(path))
            self.stamp(path, micros)

    def synced(self, path: str) -> None:
        """A file's content, or a folder's names, are on the disk."""
        self._undo.pop(path, None)
        if path in self._synced:
            try:
                self._synced[path] = os.path.getsize(path)
            except OSError:
                return  # it has no name any more

    @contextmanager
    def changing(self, name: str, path: str, other: str = "") -> Iterator[None]:
        """One call that changes names, and how a power cut would take it back."""
        if name in ("mkdir", "rmdir"):
            yield
            if name == "mkdir":
                self._add(path, lambda: shutil.rmtree(path, ignore_errors=True))
            return
        target = other if name != "unlink" else path
        before = _content(target)
        moved = _content(path) if name in ("rename", "replace") else None
        yield
        if name != "unlink" and path in self._synced:
            self._synced[target] = self._synced[path]

        def undo() -> None:
            _restore(target, before)
            if moved is not None:
                _restore(path, moved)

        self._add(target, undo)

    def cut(self) -> None:
        """The power fails: changes after some moment are lost, and contents that were not synced suffer."""
        for changes in self._undo.values():
            lost = self.random.randrange(len(changes) + 1)
            for undo in reversed(changes[len(changes) - lost :]):
                undo()
        for path, synced in self._synced.items():
            if os.path.isfile(path) and os.path.getsize(path) > synced:
                self._lose(path, synced)
        self._undo.clear()
        self._synced.clear()

    def _lose(self, path: str, synced: int) -> None:
        """Drop what a power cut may drop of a file behind what was synced."""
        size = os.path.getsize(path)
        draw = self.random.random()
        if draw < GONE:
            os.truncate(path, synced)
        elif draw < GONE + TORN:
            os.truncate(path, self.random.randrange(synced, size))
        elif draw < GONE + TORN + HOLED:
            with open(path, "r+b") as file:
                for start in range(synced, size, BLOCK):
                    if self.random.random() < 0.5:
                        file.seek(start)
                        file.write(bytes(min(BLOCK, size - start)))

    def _add(self, path: str, undo: Callable[[], None]) -> None:
        self._undo.setdefault(os.path.dirname(path), []).append(undo)


def _content(path: str) -> tuple[bytes, int] | None:
    try:
        with open(path, "rb") as file:
            return file.read(), os.stat(path).st_mtime_ns
    except OSError:
        return None


def _restore(path: str, before: tuple[bytes, int] | None) -> None:
    if before is None:
        _remove(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(before[0])
    os.utime(path, ns=(before[1], before[1]))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
