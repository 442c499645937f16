"""A clone's disk: what of its own files would survive a power cut, and whether there is room for more."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

FULL = 0.7  # how often a write fails on a full disk
TORN, EMPTY = 0.5, 0.3  # how often what was not synced is cut somewhere, or has no content at all


class Disk:
    """The files below a folder, which only a simulated run changes.

    A journalling file system keeps the changes of one folder in their order: a power cut leaves those up to
    some moment after the last fsync. The content of a file that was not fsynced may be cut, or gone.
    """

    def __init__(self, folder: str, random: Random) -> None:
        self.folder = folder
        self.random = random
        self.is_full = False
        self.errors = 0.0  # how often a write fails though there is room
        self._unwritten: dict[str, None] = {}
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

    def opened(self, path: str, *, fresh: bool, micros: int) -> None:
        """A file was opened for writing, perhaps a new one."""
        self._unwritten[path] = None
        if fresh:
            self._add(path, lambda: _remove(path))
            self.stamp(path, micros)

    def synced(self, path: str) -> None:
        self._unwritten.pop(path, None)
        self._undo.pop(path, None)  # of a folder: its names

    @contextmanager
    def changing(self, name: str, path: str, other: str = "") -> Iterator[None]:
        """One call that changes names, and how a power cut would take it back."""
        if name in ("mkdir", "rmdir"):
            yield
            return
        target = other if name != "unlink" else path
        before = _content(target)
        moved = _content(path) if name in ("rename", "replace") else None
        yield
        if name != "unlink":
            if path in self._unwritten:
                self._unwritten[target] = None
            if moved is not None:
                self._unwritten.pop(path, None)
        self._add(target, lambda: _restore(target, before))

    def cut(self) -> None:
        """The power fails: changes after some moment are lost, and contents that were not synced suffer."""
        for changes in self._undo.values():
            lost = self.random.randrange(len(changes) + 1)
            for undo in reversed(changes[len(changes) - lost :]):
                undo()
        for path in self._unwritten:
            if os.path.isfile(path) and os.path.getsize(path):
                draw = self.random.random()
                if draw < EMPTY:
                    os.truncate(path, 0)
                elif draw < EMPTY + TORN:
                    os.truncate(path, self.random.randrange(os.path.getsize(path)))
        self._undo.clear()
        self._unwritten.clear()

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
