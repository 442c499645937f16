"""A server of the standard library alone that notes each request and answers with one message: what a call really sends."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Sniffer:
    """A server of A2A in a thread.

    Args:
        modes: The media types that its card says it takes.
        result: What answers each message.

    Attributes:
        url: Where it answers.
        requests: The bodies of all requests, as JSON.
        paths: The paths of all requests.
    """

    def __init__(self, *modes: str, result: object = None) -> None:
        self.requests: list[Any] = []
        self.paths: list[str] = []
        sniffer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

            def do_GET(self) -> None:
                sniffer.paths.append(self.path)
                self.answer(sniffer.card(modes))

            def do_POST(self) -> None:
                sniffer.paths.append(self.path)
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                sniffer.requests.append(body)
                message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "heard"}]}
                self.answer({"jsonrpc": "2.0", "id": body["id"], "result": result or {"message": message}})

            def answer(self, value: object) -> None:
                content = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def card(self, modes: tuple[str, ...]) -> object:
        """Return its card."""
        where = {"url": f"{self.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        return {
            "name": "sniffer", "description": "x", "version": "1", "capabilities": {"streaming": False},
            "supportedInterfaces": [where], "defaultInputModes": list(modes), "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "x", "name": "x", "description": "x", "tags": ["x"]}],
        }  # fmt: skip

    @property
    def parts(self) -> list[Any]:
        """The parts of all messages."""
        return [part for each in self.requests for part in each["params"]["message"]["parts"]]

    def close(self) -> None:
        """Stop it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)
