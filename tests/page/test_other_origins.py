"""What a page of another origin in the same browser gets of `gitmem view --serve`, even if it knows every path: nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gitmem.calls.a2a_server import server_of
from gitmem.calls.served_log import ServedLog
from gitmem.page.live_page import LivePage
from gitmem.page.page_data import collect

from .browser import Browser
from .test_page_data import opened

pytestmark = pytest.mark.browser
ATTACK = """
const [page, done] = arguments;
const found = [];
const tried = (name, promise) => promise.then((what) => found.push(`${name}: ${what}`), () => {});
const loaded = (tag, attributes, event = "load") => new Promise((resolve, reject) => {
  const made = Object.assign(document.createElement(tag), attributes);
  made.addEventListener(event, () => resolve(event));
  made.addEventListener("error", reject);
  document.body.append(made);
  setTimeout(reject, 1500);
});
const framed = async () => {
  const frame = document.createElement("iframe");
  frame.src = page;
  document.body.append(frame);
  await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 1500); });
  return frame.contentDocument.body.textContent.slice(0, 50);
};
const streamed = () => new Promise((resolve, reject) => {
  const stream = new EventSource(page + "events", { withCredentials: true });
  stream.onopen = () => resolve("open");
  stream.onerror = reject;
});
Promise.all([
  tried("fetch", fetch(page + "data.json", { credentials: "include" }).then((answer) => answer.text())),
  tried("opaque", fetch(page + "data.json", { credentials: "include", mode: "no-cors" }).then((answer) => answer.text()).then((text) => text || Promise.reject())),
  tried("post", fetch(page + "data.json", { credentials: "include", method: "POST", mode: "no-cors", body: "x" }).then((answer) => answer.text()).then((text) => text || Promise.reject())),
  tried("stream", streamed()),
  tried("script", loaded("script", { src: page + "data.json" })),
  tried("image", loaded("img", { src: page })),
  tried("style", loaded("link", { rel: "stylesheet", href: page + "data.json" })),
  tried("frame", framed()),
]).then(() => done(found));
"""


class Other(BaseHTTPRequestHandler):
    """A server of somebody else on this machine: an empty page, and a cookie with our name for the whole host."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "gitmem_view=theirs; Path=/; HttpOnly")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>other</title><body>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def other() -> Iterator[int]:
    """The port of another server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_only_the_browser_with_the_link_sees_the_page_and_no_other_origin_in_it(
    chromium: Browser, repo: Path, other: int
) -> None:
    """The link lets a browser in and stays out of the history; signals appear; pages of other ports and names get nothing."""
    with opened(repo) as log:
        session = log.sessions.start(name="Curie", agent_identity="a:b:curie").session_id
    with opened(repo, session=session) as log:
        page = LivePage(ServedLog(log.store), lambda: collect(log.store))
        bound = socket.create_server(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        ready = threading.Event()
        app = page.application([f"{name}:{port}" for name in ("127.0.0.1", "localhost")])
        server = server_of(app, ready.set, end_seconds=0)
        running = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        running.start()
        try:
            assert ready.wait(20)
            url = f"http://127.0.0.1:{port}"
            chromium.reset()
            before = chromium.run("return history.length")
            chromium.driver.get(url + page.entry)
            chromium.until("return location.pathname === arguments[0] && window.gitmemPage?.data", page.path)
            assert chromium.run("return history.length") == before + 1
            with log.store.lock:
                log.signals.send("only for the link", broadcast=True)
            chromium.until("return gitmemPage.data.signals.some((each) => each.text === 'only for the link')")
            assert not chromium.wrong()
            assert page._token not in chromium.run("return document.cookie")

            for origin in (f"http://127.0.0.1:{other}", f"http://localhost:{other}"):
                chromium.driver.get(origin)
                for target in (url, f"http://localhost:{port}"):
                    got = chromium.driver.execute_async_script(ATTACK, target + page.path)
                    assert got == [], (origin, target)

            chromium.open(url + page.path)  # the cookie of the other server does no harm
            assert chromium.run("return gitmemPage.data.signals.length") == 1
        finally:
            server.should_exit = True
            running.join(20)
