"""`child` for Windows, with `subprocess`."""

from __future__ import annotations

import subprocess
from typing import IO, TYPE_CHECKING, cast

from .child import ERRORS_MAX, KILL_WAIT_SECONDS, ChildProcess, OutputTooLargeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class PortableChild(ChildProcess):
    """See `ChildProcess`."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        super().__init__(popen.pid, popen.stdin, cast("IO[bytes]", popen.stdout), popen.stderr)
        self._popen = popen

    def communicate(
        self, data: bytes, limit_seconds: float, out_max: int | None = None
    ) -> tuple[int, bytes, bytes]:
        """See `ChildProcess.communicate`."""
        try:
            out, err = self._popen.communicate(data or None, timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        if out_max is not None and len(out) > out_max:
            raise OutputTooLargeError(out)
        return self._popen.returncode, out, (err or b"")[-ERRORS_MAX:]

    def poll(self) -> int | None:
        """See `ChildProcess.poll`."""
        return self._popen.poll()

    def wait(self) -> int:
        """See `ChildProcess.wait`."""
        return self._popen.wait()

    def kill(self) -> None:
        """Kill the process alone.

        Windows has no process groups to kill: processes that git started end when their pipes are closed.
        """
        self._popen.kill()
        self.close_pipes()
        try:
            self._popen.wait(KILL_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            pass


def start_portably(
    command: Sequence[str], environment: Mapping[str, str], cwd: str, *, input: bool, errors: bool
) -> ChildProcess:
    """See `child.spawn`."""
    return PortableChild(
        subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.PIPE if input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if errors else subprocess.DEVNULL,
            start_new_session=True,
        )
    )
