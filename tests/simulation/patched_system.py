"""What a simulated process finds around it: time, randomness, files and locks that are steps of a run.

The functions of the standard library are exchanged while a run lasts. In threads that are no simulated
process, and inside of calls whose parts are no steps, they are the real ones.
"""

from __future__ import annotations

import builtins
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from gitmem.git import processes as git_run
from gitmem.index import catch_up, index_file

from .disk import Disk
from .scheduler import Killed, Process, Scheduler, real_close

real_time = time.time
_SKIPPED = ("index-",)  # SQLite's own files


class PatchedSystem:
    """The exchanged functions of one run.

    Attributes:
        spawned: How often git was started.
    """

    def __init__(self, turns: Scheduler, disk: Callable[[str], Disk | None]) -> None:
        self.turns = turns
        self.disk = disk
        self.real: dict[str, Any] = {}
        self.spawned = 0

    def process(self) -> Process | None:
        """The simulated process that calls; None where somebody else does."""
        process = self.turns.running
        return process if process is not None and process.ident == threading.get_ident() else None

    def stepping(self) -> Process | None:
        """The same, and None inside of calls whose parts are no steps."""
        process = self.process()
        if process is not None and process.is_dead:
            raise Killed
        return process if process is not None and not process.inside else None

    @contextmanager
    def exchanged(self) -> Iterator[None]:
        with mock.patch.multiple(time, **self._times()), self._files(), self._rest():
            yield

    def _times(self) -> dict[str, Any]:
        monotonic, sleep, time_ns = time.monotonic, time.sleep, time.time_ns

        def micros() -> int | None:
            process = self.process()
            return process.where.now() if process is not None else None

        def sim_time() -> float:
            at = micros()
            return at / 1_000_000 if at is not None else real_time()

        def sim_ns() -> int:
            at = micros()
            return at * 1000 if at is not None else time_ns()

        def sim_monotonic() -> float:
            process = self.process()
            inside = process is None or process.inside
            return monotonic() if inside else self.turns.now / 1_000_000

        def sim_sleep(seconds: float) -> None:
            if self.stepping() is None:
                sleep(seconds)
            else:
                self.turns.sleep(seconds)

        return {"time": sim_time, "time_ns": sim_ns, "monotonic": sim_monotonic, "sleep": sim_sleep}

    def _rest(self) -> Any:
        """What is no file: the runs of git, the index's transactions, randomness."""
        run, caught_up, connect = git_run.run, catch_up.catch_up, index_file.connect
        urandom, getpid = os.urandom, os.getpid

        def run_inside(*args: Any, **options: Any) -> Any:
            process = self.process()
            if process is None:
                return run(*args, **options)
            self.spawned += 1
            process.inside += 1
            try:
                return run(*args, **options)
            finally:
                process.inside -= 1

        def catch_up_alone(*args: Any, **options: Any) -> None:
            """Whoever waits for SQLite's write lock waits in earnest: its holder keeps its turn."""
            process = self.process()
            if process is None:
                return caught_up(*args, **options)
            process.alone += 1
            try:
                return caught_up(*args, **options)
            finally:
                process.alone -= 1

        def connect_known(where: str) -> Any:
            process = self.process()
            connection = connect(where)
            if process is not None:
                process.databases.append(connection)
            return connection

        def sim_urandom(count: int) -> bytes:
            process = self.process()
            drawn = process is not None and not process.inside  # git's temporary names are nobody's business
            return process.random.randbytes(count) if process is not None and drawn else urandom(count)

        def sim_getpid() -> int:
            process = self.process()
            return 100_000 + process.number if process is not None else getpid()

        patches = _Patches()
        patches.add(git_run, "run", run_inside)
        patches.add(catch_up, "catch_up", catch_up_alone)
        patches.add(index_file, "connect", connect_known)
        patches.add(os, "urandom", sim_urandom)
        patches.add(os, "getpid", sim_getpid)
        return patches

    def _files(self) -> Any:
        import fcntl

        patches = _Patches()
        for name in ("rename", "replace", "link", "unlink", "mkdir", "rmdir"):
            patches.add(os, name, self._changing(name, getattr(os, name)))
        patches.add(os, "open", self._open(os.open))
        patches.add(os, "close", self._close)
        patches.add(os, "write", self._write(os.write))
        patches.add(os, "fsync", self._fsync("fsync", os.fsync))
        patches.add(os, "fdatasync", self._fsync("fdatasync", os.fdatasync))
        patches.add(os, "listdir", self._sorted(os.listdir))
        patches.add(builtins, "open", self._open_file(builtins.open))
        patches.add(fcntl, "flock", self._flock(fcntl.flock))
        return patches

    def _watched(self, path: object) -> Disk | None:
        """The disk of a path whose changes are steps; None for what is no file of a simulated clone."""
        if not isinstance(path, str) or os.path.basename(path).startswith(_SKIPPED):
            return None
        return self.disk(path)

    def _changing(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            process = self.stepping()
            disk = self._watched(args[0]) if process is not None else None
            if process is None or disk is None:
                return real(*args, **options)
            self.turns.step(f"{name} {disk.named(args[0])}")
            _confine(process, args[0])
            if name in ("mkdir", "link"):
                disk.refuse()
            with disk.changing(name, *map(str, args[:2])):
                result = real(*args, **options)
            if name in ("rename", "replace"):
                disk.stamp(args[1], process.where.now())
            return result

        return call

    def _open(self, real: Callable[..., int]) -> Callable[..., int]:
        def call(path: Any, flags: int, *args: Any, **options: Any) -> int:
            process = self.stepping()
            disk = self._watched(path) if process is not None else None
            if process is None:
                return real(path, flags, *args, **options)
            if disk is None:
                handle = real(path, flags, *args, **options)
                process.opened.pop(handle, None)
                return handle
            writes = flags & (os.O_WRONLY | os.O_RDWR)
            if writes:
                self.turns.step(f"open {disk.named(path)}")
                _confine(process, path)
            fresh = not os.path.exists(path)
            if writes and fresh:
                disk.refuse()
            handle = real(path, flags, *args, **options)
            process.files[handle] = process.opened[handle] = path
            if writes:
                appends = bool(flags & os.O_APPEND)
                disk.opened(path, fresh=fresh, micros=process.where.now(), appends=appends)
            return handle

        return call

    def _close(self, handle: int) -> None:
        process = self.process()
        if process is not None and process.is_dead:
            return  # the system closed it when the process died; the number may be another file's by now
        if process is not None:
            process.files.pop(handle, None)
        real_close(handle)

    def _write(self, real: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
        def call(handle: int, data: Any) -> int:
            process = self.stepping()
            path = process.files.get(handle) if process is not None else None
            disk = self._watched(path)
            if process is None or path is None or disk is None:
                return real(handle, data)
            self.turns.step(f"write {disk.named(path)}")
            if disk.is_full and len(data) > 1 and disk.random.random() < 0.5:
                data = data[: len(data) // 2]  # what there is room for
            else:
                disk.refuse()
            written = real(handle, data)
            disk.stamp(path, process.where.now())
            return written

        return call

    def _fsync(self, name: str, real: Callable[[int], None]) -> Callable[[int], None]:
        def call(handle: int) -> None:
            process = self.process()
            if process is None:
                return real(handle)
            if process.inside:
                return None  # the pages of a run are never really written: it ends before the power does
            self.stepping()
            path = process.opened.get(handle)
            disk = self._watched(path)
            if disk is not None and path is not None:
                self.turns.step(f"{name} {disk.named(path)}")
                disk.refuse()
                disk.synced(path)
            return None

        return call

    def _sorted(self, real: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        """The order that a file system gives names in is its own: a run must not depend on it.

        A look at a write-ahead log is a step: a writer may be stopped between two looks and what it does then.
        """

        def call(*args: Any) -> list[Any]:
            process = self.stepping()
            if process is not None and args and str(args[0]).endswith("/wal"):
                self.turns.step("list wal")
            return sorted(real(*args)) if self.process() is not None else real(*args)

        return call

    def _open_file(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            process = self.stepping()
            if process is not None and isinstance(path, int):
                process.files.pop(path, None)  # the file object closes it
                return real(path, mode, *args, **options)
            disk = self._watched(path) if process is not None and mode[0] in "wxa" else None
            if process is None:
                return real(path, mode, *args, **options)
            if disk is None:
                file = real(path, mode, *args, **options)
                process.opened.pop(file.fileno(), None)
                return file
            self.turns.step(f"open {disk.named(path)}")
            _confine(process, path)
            disk.refuse()
            fresh = not os.path.exists(path)
            file = real(path, mode, *args, **options)
            disk.opened(path, fresh=fresh, micros=process.where.now())
            process.opened[file.fileno()] = path
            return file

        return call

    def _flock(self, real: Callable[[int, int], None]) -> Callable[[int, int], None]:
        def call(handle: int, how: int) -> None:
            process = self.stepping()
            if process is not None and process.where.cannot_lock:
                raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
            real(handle, how)

        return call


def _confine(process: Process, path: object) -> None:
    if process.is_confined and process.where.owns(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


class _Patches:
    """Attributes that are exchanged for a while."""

    def __init__(self) -> None:
        self.patches: list[Any] = []

    def add(self, target: Any, name: str, new: Any) -> None:
        self.patches.append(mock.patch.object(target, name, new))

    def __enter__(self) -> None:
        for patch in self.patches:
            patch.start()

    def __exit__(self, *_: object) -> None:
        for patch in reversed(self.patches):
            patch.stop()
