"""A headless Chromium that is asked over a pipe: no library, no port, no driver."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import tempfile
import time
from typing import Any

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root can't have it
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
SECONDS = 60.0


class Chromium:
    """One window. Use it in a `with` statement, which ends it and removes its profile.

    Args:
        width: Of the window.
        height: Of the window.
    """

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        program = shutil.which("chromium")
        if program is None:
            raise FileNotFoundError("chromium is not installed")
        self._profile = tempfile.mkdtemp(prefix="gitmem-chromium-")
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        command = [program, *FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self._profile}", "--remote-debugging-pipe", "about:blank"]  # fmt: skip
        # The browser reads from descriptor 3 and writes to 4, which none of these may be before.
        high_in, high_out = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 10) for each in (to_browser, to_us))
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, *each) for each in ((null, 0), (null, 1), (null, 2), (high_in, 3), (high_out, 4))]  # fmt: skip
        self._pid = os.posix_spawn(program, command, os.environ, file_actions=actions)
        for each in (null, high_in, high_out):
            os.close(each)
        os.close(to_browser)
        os.close(to_us)
        self._to, self._from = from_us, from_browser
        self._ids = itertools.count(1)
        self._buffer = b""
        self._session = ""
        (target,) = (each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")

    def __enter__(self) -> Chromium:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the browser."""
        with contextlib.suppress(OSError, TimeoutError):
            self.call("Browser.close")
        os.close(self._to)
        os.close(self._from)
        end = time.monotonic() + 10
        while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.02)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call the browser's protocol, and return the answer.

        Raises:
            RuntimeError: The browser refuses.
            TimeoutError: It does not answer.
        """
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if self._session and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + SECONDS
        while True:
            while b"\0" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\0")
                answer = json.loads(line)
                if answer.get("id") == number:
                    if "error" in answer:
                        raise RuntimeError(f"{method}: {answer['error']['message']}")
                    return dict(answer["result"])
            if not select.select([self._from], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"{method}: no answer within {SECONDS:g} s")
            if not (got := os.read(self._from, 1 << 20)):
                raise TimeoutError(f"{method}: chromium has ended")
            self._buffer += got

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; of a promise, what it resolves to."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"].get("exception", {}).get("description", script)))
        return found["result"].get("value")

    def open(self, url: str) -> None:
        """Open a page of `gitmem view`, and wait until it is painted."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.until("Boolean(window.gitmemPage?.timing?.painted)")

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + SECONDS
        while not self.run(script):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {SECONDS:g} s: {script}")
            time.sleep(0.02)

    def picture(self, path: str) -> None:
        """Write what the window shows as a PNG file."""
        shot = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
