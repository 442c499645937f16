"""A small HTTP server before `git http-backend`: who may come in, and what goes wrong on the way."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

USER, PASSWORD = "planck", "correct horse"
GIT_SERVES = Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True).stdout.strip())


class Server(ThreadingHTTPServer):
    """Serves the repositories below a folder to who has the password.

    Args:
        listening: A socket that listens already, perhaps on another host; else one of loopback is made.

    Attributes:
        meddle: Looks at each request first; answers it itself where it gives True.
        arriving: Called after each part of a chunked request.
        answer: What becomes of git's answer before it is sent; None sends nothing and hangs up.
        leaving: Called when half of an answer is on its way.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, root: Path, listening: socket.socket | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Request, bind_and_activate=listening is None)
        if listening is not None:
            self.socket.close()
            self.socket = listening
            self.server_address = listening.getsockname()
        self.root = root
        self.meddle: Callable[[Request], bool] = lambda request: False
        self.arriving: Callable[[Request], None] = lambda request: None
        self.answer: Callable[[Request, bytes], bytes | None] = lambda request, body: body
        self.leaving: Callable[[Request], None] = lambda request: None
        self.chunked: list[tuple[str, int]] = []  # where such requests went, and the bytes of their bodies
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        # `server_port` is set only where the server binds its socket itself.
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def end(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what the tests are about."""


class Request(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self._body())

    @property
    def service(self) -> str:
        """`git-upload-pack` or `git-receive-pack`."""
        return "git-receive-pack" if "git-receive-pack" in self.path else "git-upload-pack"

    @property
    def is_push(self) -> bool:
        """Whether it brings what is pushed; before it, a push asks what there is."""
        return (self.command, self.service) == ("POST", "git-receive-pack")

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        half = len(body) // 2
        self.wfile.write(body[:half])
        if half:
            self.server.leaving(self)
        self.wfile.write(body[half:])

    def _serve(self, body: bytes) -> None:
        given = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {given}":
            self.say(401, b"Who are you?\n", WWW_Authenticate='Basic realm="tests"')
            return
        if self.server.meddle(self):
            return
        head, _, out = self._git(body).partition(b"\r\n\r\n")
        answer = self.server.answer(self, out)
        if answer is None:
            self.close_connection = True
            return
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        self.say(status, answer, **headers)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
            self.server.arriving(self)
        self.rfile.readline()
        self.server.chunked.append((self.path, sum(map(len, parts))))
        return b"".join(parts)

    def _git(self, body: bytes) -> bytes:
        path, _, query = self.path.partition("?")
        asked = {
            "GIT_PROJECT_ROOT": str(self.server.root), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": USER,
            "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "REMOTE_ADDR": "127.0.0.1",
        }  # fmt: skip
        done = subprocess.run(
            [GIT_SERVES / "git-http-backend"], env={**os.environ, **asked}, input=body, capture_output=True
        )
        return done.stdout

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests ask `seen`."""
