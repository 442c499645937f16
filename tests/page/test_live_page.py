"""The page of a server: it reads its data, and reads them again at each event, without losing the reader's place."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gitmem.page.page_file import DATA_URL, EVENTS_URL, Assets

from .browser import Browser
from .page_samples import sample

pytestmark = pytest.mark.browser


class Server:
    """Serves the page, its data and its events, as `gitmem view --serve` does."""

    def __init__(self, page: bytes, data: Any) -> None:
        self.data = data
        self.events: queue.Queue[str | None] = queue.Queue()
        self.asked: list[str] = []
        this = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                this.asked.append(self.path)
                if self.path == f"/{EVENTS_URL}":
                    self._head("text/event-stream")
                    while (event := this.events.get()) is not None:
                        self.wfile.write(event.encode())
                        self.wfile.flush()
                elif self.path == f"/{DATA_URL}":
                    if this.data is None:
                        self.send_error(503)
                    else:
                        self._head("application/json", json.dumps(this.data).encode())
                else:
                    self._head("text/html; charset=utf-8", page)

            def _head(self, kind: str, body: bytes | None = None) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.end_headers()
                if body is not None:
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/"

    def end(self) -> None:
        self.events.put(None)
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server(assets: Assets) -> Iterator[Server]:
    """A server of a day of five agents."""
    found = Server(assets.page(None), sample())
    yield found
    found.end()


def test_an_event_brings_the_new_signals(chromium: Browser, server: Server) -> None:
    """The page asks its own server and nobody else; text that is typed into the search stays."""
    chromium.reset()
    chromium.open(server.url)
    chromium.until("return document.getElementById('shown').textContent === '60 of 60 signals'")
    chromium.search("lexer")
    before = chromium.text("#shown")

    server.data = sample(signals=61)
    server.data["signals"][-1].update(id="sig-new", text="A word that the lexer has not seen")
    server.events.put("event: changed\ndata: 1\n\n")

    chromium.until("return gitmemPage.model.signal.has('sig-new')")
    assert chromium.text("#shown") != before
    assert chromium.run("return document.getElementById('filter-text').value") == "lexer"
    assert set(server.asked) <= {"/", f"/{DATA_URL}", f"/{EVENTS_URL}"}
    assert not chromium.wrong()


def test_a_server_that_does_not_answer_is_named(chromium: Browser, server: Server) -> None:
    """What was read stays on the page, and is renewed when the server is back."""
    chromium.reset()
    chromium.open(server.url)
    chromium.until("return window.gitmemPage.data")

    whole, server.data = server.data, None
    server.events.put("data: changed\n\n")
    chromium.until("return document.getElementById('state').textContent.includes('the server answered 503')")
    assert chromium.text("#shown") == "60 of 60 signals"

    server.data = whole
    server.events.put("data: changed\n\n")
    chromium.until("return document.getElementById('state').textContent === ''")
