"""What peers write can neither run nor ask for anything in the page, and does not break it."""

from __future__ import annotations

import copy
import json
import queue
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gitmem.agents.caller import CallerClaims
from gitmem.calls.a2a_server import ServedLog
from gitmem.calls.http_guard import server_of
from gitmem.page.live_page import LivePage
from gitmem.page.page_data import collect
from gitmem.page.page_file import DATA_URL, EVENTS_URL, Assets

from .browser import Browser, each_string
from .conftest import Show
from .page_samples import DAY, MADE, sample
from .test_page_data import opened

pytestmark = pytest.mark.browser
PAYLOADS = (
    "<script>window.ran = 1</script>",
    "<img src=x onerror=window.ran=1><svg onload=window.ran=1>",
    "\"><iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "javascript:window.ran=1",
    "</script><script src=http://127.0.0.1:9/x.js></script>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css><style>@import 'http://127.0.0.1:9/y.css'</style>",
    "${window.ran=1}{{constructor.constructor('window.ran=1')()}}",
    "\u202eevil\u2066\u200f\u0000\u001b[31m",
    "__proto__",
    "../../../../etc/passwd",
    "x" * 65_536,
    "<b>\U0001f600\ud800</b>",
)
IDS = ("sig-", "thread-", "task-", "claim-", "mem-", "sess-", "audit-", "WU-")


def hostile(data: Any) -> Any:
    """Return data with every text replaced, and with ids that are names of objects, paths and markup."""
    count = 0

    def change(text: str) -> str:
        nonlocal count
        if text.startswith("gitmem.page/"):
            return text
        if text.startswith(IDS) or (text[:1] == "a" and text[1:].isdigit()):
            return {"a0": "__proto__", "a1": "constructor", "a2": "<img src=x onerror=window.ran=1>"}.get(
                text, f"../{text}\"'<b>\u202e"
            )
        count += 1
        return PAYLOADS[count % len(PAYLOADS)]

    return each_string(copy.deepcopy(data), change)


def visit(browser: Browser) -> None:
    """Open everything that there is to open."""
    for name in ("timeline", "board", "memory", "figures"):
        browser.run("gitmemPage.select(arguments[0])", name)
        browser.frame()
    browser.until("return Boolean(gitmemPage.sections.memory.cy)")
    browser.run("for (const each of document.querySelectorAll('details')) each.open = true")
    browser.run("""
        const { model } = gitmemPage;
        for (const kind of ["thread", "task", "claim", "commit", "passed", "node"])
          for (const id of model[kind].keys()) gitmemPage.open(kind, id);
        gitmemPage.select("timeline");
        for (const each of model.signals) gitmemPage.sections.timeline.focus(each);
        for (const id of model.agents.keys()) gitmemPage.setFilter({ agent: id });
        gitmemPage.setFilter({ agent: "" });
        document.getElementById("detail").close();""")
    browser.search("<script>")
    browser.search("")
    browser.run("window.dispatchEvent(new Event('beforeprint')); for (const each of document.querySelectorAll('button.link')) if (each.offsetParent) { each.click(); document.getElementById('detail').close(); }")  # fmt: skip
    browser.frame()


def test_a_hostile_log_runs_nothing_and_asks_for_nothing(show: Show) -> None:
    """No script, no request, no element that a text has made."""
    browser = show(hostile(sample(agents=6, signals=80, nodes=24)))
    scripts = browser.run("return document.scripts.length")
    visit(browser)

    assert browser.run("return window.ran") is None
    assert not browser.wrong()
    assert not browser.requests()
    assert browser.run("return document.querySelectorAll('img, iframe, object, embed, svg image, a[href]:not(.skip), base, link:not([rel=icon])').length") == 0  # fmt: skip
    assert browser.run("return document.scripts.length") == scripts
    assert browser.run("return performance.getEntriesByType('resource').filter((each) => !each.name.startsWith('data:')).length") == 0  # fmt: skip
    assert browser.run("return ({}).name === undefined && Object.keys(Object.prototype).length === 0")
    assert browser.run("return document.body.textContent.includes(arguments[0])", PAYLOADS[0])


def test_the_policy_stops_what_a_mistake_would_let_in(show: Show) -> None:
    """The second line of defence: markup that gets in neither runs nor loads."""
    browser = show(sample(2, 4, 2))
    browser.run("""document.getElementById("main").insertAdjacentHTML("beforeend", `<img src="http://127.0.0.1:9/x.png" onerror="window.ran = 1">
        <iframe src="http://127.0.0.1:9/"></iframe><a id=j href="javascript:window.ran=1">x</a>`);
        const script = document.createElement("script"); script.textContent = "window.ran = 1"; document.body.append(script);
        document.getElementById("j").click();""")
    browser.until("return window.violations.length >= 4")
    assert browser.run("return window.ran") is None
    with pytest.raises(Exception, match=r"Content Security Policy|Failed to fetch"):
        browser.driver.execute_async_script("const done = arguments[0]; fetch('http://127.0.0.1:9/').then(done, (e) => done(Promise.reject(e)))")  # fmt: skip
    assert "data:" not in "".join(browser.requests())


def test_references_that_lead_nowhere_or_in_circles_are_shown(show: Show) -> None:
    """Answers to themselves, superseded in a circle, blocked by each other, unknown agents, times that are none."""
    data = sample(3, 30, 12)
    for place, node in enumerate(data["nodes"]):
        node["superseded_by"] = f"mem-{(place + 1) % 12}"
        data["relations"].append(
            {"from": node["id"], "to": f"mem-{(place + 1) % 12}", "type": "supersedes", "supersedes": True}
        )
    data["relations"] += [{"from": "mem-0", "to": "mem-0", "type": "self", "supersedes": False}, {"from": "mem-1", "to": "mem-none", "type": "x", "supersedes": False}]  # fmt: skip
    data["signals"][0]["reply"] = data["signals"][0]["id"]
    data["signals"][1].update(reply="sig-none", thread="thread-none")
    data["signals"][1]["from"] = "a99"
    data["signals"][2]["at"] = 9_000_000_000_000_000_000
    data["tasks"][0]["blocked_by"] = ["task-1", "task-none"]
    data["tasks"][1]["blocked_by"] = ["task-0"]
    data["tasks"][1]["holder"] = "a98"
    data["claims"][0]["against"] = ["claim-0", "claim-none"]
    browser = show(data)

    visit(browser)

    browser.run("gitmemPage.open('node', 'mem-3')")
    assert "Superseded by" in browser.text(".node")
    assert not browser.wrong()


def test_a_thread_of_five_thousand_signals_opens_at_the_one_that_was_chosen(show: Show) -> None:
    """A part of it at a time; the others are a key away."""
    data = sample(3, 5000, 1)
    data["threads"] = [{**data["threads"][0], "id": "thread-0", "signals": 5000}]
    for each in data["signals"]:
        each["thread"] = "thread-0"
    browser = show(data)

    chosen = data["signals"][2500]
    took = browser.run("const start = performance.now(); gitmemPage.open('thread', 'thread-0', arguments[0]); return performance.now() - start", chosen["id"])  # fmt: skip
    assert took < 1500
    assert chosen["text"] in browser.run("return document.activeElement.innerText")
    shown = "return document.querySelectorAll('#detail .signal').length"
    before = browser.run(shown)
    assert before < 500
    browser.run("[...document.querySelectorAll('#detail button.more')].find((each) => each.textContent.startsWith('Show later')).click()")  # fmt: skip
    assert before < browser.run(shown) < 1000
    browser.keys("Escape")
    browser.run("document.querySelector('.lanes').focus()")
    browser.keys("End", "Enter")
    assert max(data["signals"], key=lambda each: each["at"])["text"] in browser.run("return document.activeElement.innerText")  # fmt: skip


def test_clocks_that_are_years_apart_do_not_hide_the_day(show: Show) -> None:
    """The first view is that of most signals; All shows the rest."""
    data = sample(3, 200, 1)
    data["signals"][0]["at"] = 1000
    data["signals"][1]["at"] = MADE + 4000 * DAY
    browser = show(data)

    low, high = browser.run("return gitmemPage.timelineView.state.view")
    assert high - low < 3 * DAY
    assert "far from the others" in browser.text("#timeline .tools")
    browser.run("document.querySelector('button[title=\"Show all times\"]').click()")
    low, high = browser.run("return gitmemPage.timelineView.state.view")
    assert low < 1000 and high > MADE + 4000 * DAY
    assert not browser.wrong()


# The page of a server: it reads its data, and reads them again at each event, without losing the reader's place.


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


# What a page of another origin in the same browser gets of `gitmem view --serve`, even if it knows every path: nothing.

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
  tried("post", fetch(page + "answer", { credentials: "include", method: "POST", mode: "no-cors", body: "{}" }).then((answer) => answer.text()).then((text) => text || Promise.reject())),
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


NOTIFIED = """
window.Notification = class { constructor(title, { body }) { window.told = `${title}: ${body}`; } };
window.Notification.permission = "granted";
document.hasFocus = () => false;
"""


def test_only_the_browser_with_the_link_sees_the_page_and_no_other_origin_in_it(
    chromium: Browser, repo: Path, other: int
) -> None:
    """The link lets a browser in and stays out of the history; signals appear, notify and are answered; pages of other ports and names get nothing."""
    with opened(repo) as log:
        session = log.sessions.start(name="Curie", agent_identity="a:b:curie").session_id
        person = CallerClaims(as_=log.sessions.start(name="Ada <b>", agent_identity="a:b:ada").session_id)
    with opened(repo, session=session) as log:
        page = LivePage(ServedLog(log.store), lambda: collect(log.store, who=person), person)
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
            chromium.run(NOTIFIED)
            with log.store.lock:
                asked = log.signals.send("Drop <i>it</i>?", to=[str(person.as_)], intent="PROPOSE")
            told = chromium.until("return window.told")
            assert told == "Curie waits for you to answer: Drop <i>it</i>?"
            chromium.run("document.querySelector('#waits .yours .ways button').click()")
            assert "Drop <i>it</i>?" in chromium.text("#answer blockquote")
            chromium.run("document.querySelector('#answer button.main').click()")
            chromium.until(
                "return !document.querySelector('#waits .yours') && !document.querySelector('#answer').open"
            )
            with log.store.lock:
                assert log.converged(str(asked.signal["signal_id"])).converged
            assert not chromium.wrong()
            assert page._token not in chromium.run("return document.cookie")

            for origin in (f"http://127.0.0.1:{other}", f"http://localhost:{other}"):
                chromium.driver.get(origin)
                for target in (url, f"http://localhost:{port}"):
                    got = chromium.driver.execute_async_script(ATTACK, target + page.path)
                    assert got == [], (origin, target)

            chromium.open(url + page.path)  # the cookie of the other server does no harm
            assert chromium.run("return gitmemPage.data.signals.length") == 3
        finally:
            server.should_exit = True
            running.join(20)
