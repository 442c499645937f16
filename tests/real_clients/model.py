"""A model on loopback that follows a script, and keeps what it was asked."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.real_clients.wire import JSON, Dialect, Request, Step, strings

Play = Callable[["Asked"], Step]


class Asked:
    """One request of a turn, as the model reads it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.text = "\n".join(strings(request))

    def reply_command(self, answer: str) -> str:
        """The command of the reply line, filled in as an agent does it."""
        found = re.search(r"To reply: (gitmem [^\n]* - <<'EOF')", html.unescape(self.text))
        assert found, f"no reply line: {self.text[-2000:]}"
        return f"{found[1]}\n{answer}\nEOF\n"


class Model:
    """Its script has a function for each request of the turn: it looks, does what a test needs, and says what comes next.

    A request after the last one is answered with a text, and counted. What a function raises is kept for the
    test, and the client gets a text, so that it ends.
    """

    def __init__(self, dialect: Dialect, script: Sequence[Play]) -> None:
        self.dialect = dialect
        self.script = script
        self.asked: list[Asked] = []
        self.trouble: list[BaseException] = []
        self.url = ""
        self._turn = threading.Lock()

    def answer(self, request: Request) -> tuple[str, bytes]:
        """The next step of the script, in the dialect of the client."""
        if not request.get("tools"):  # a title, a summary, a choice of model: no turn
            return self.dialect(Step("A title"), request, 0)
        with self._turn:
            number = len(self.asked)
            asked = Asked(request)
            self.asked.append(asked)
            step = Step("Over.")
            if number < len(self.script) and not self.trouble:
                try:
                    step = self.script[number](asked)
                except BaseException as error:  # the test raises it again
                    self.trouble.append(error)
        return self.dialect(step, request, number)


@contextmanager
def serving(model: Model) -> Iterator[None]:  # noqa: C901  (one branch for each request)
    """Answer on a free port of loopback, as long as the context lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """A test that fails shows what it wants to."""

        def say(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_GET(self) -> None:
            self.say(JSON, b'{"data": [], "models": []}')

        do_HEAD = do_GET  # noqa: N815

        def do_POST(self) -> None:
            try:
                request = json.loads(self.body())
            except ValueError:
                request = {}
            path = self.path.partition("?")[0]
            if not isinstance(request, dict) or path.endswith(("count_tokens", "countTokens")):
                self.say(JSON, b'{"input_tokens": 1, "totalTokens": 1}')
                return
            kind, body = model.answer(request)
            if path.endswith(":generateContent"):  # the same chunk, alone
                kind, body = JSON, body.strip().removeprefix(b"data: ")
            self.say(kind, body)

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
