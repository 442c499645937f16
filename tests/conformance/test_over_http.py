"""A bus over HTTP: a small server written from docs/conformance.md, and servers that do not keep to the page."""

from __future__ import annotations

import http.server
import json
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from gitmem.conformance import case_setup
from gitmem.conformance.adapter import Refused
from gitmem.conformance.over_http import BadAnswer, RemoteBus, make
from gitmem.conformance.reference import Reference

from .suite import run

NO_ANSWER = ("end", "take", "exchange", "close")


class PageServer(http.server.BaseHTTPRequestHandler):
    """The server of the page, with the reference as its bus."""

    buses: ClassVar[dict[str, dict[str, Reference]]] = {}
    asked: ClassVar[set[tuple[str, str]]] = set()  # operation and field
    lacks: ClassVar[dict[str, str]] = {}

    def do_POST(self) -> None:
        _, prefix, name, place, operation = self.path.split("/")
        assert prefix == "try"
        fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.update((operation, field) for field in ["", *fields])
        self.asked.update(("record", field) for field in fields.get("record", ()))
        places = self.buses.setdefault(name, {})
        if place not in places:
            places[place] = next(iter(places.values())).second() if places else Reference(Path())
        status, answer = 200, None
        try:
            answer = self.lacks if operation == "lacks" else getattr(places[place], operation)(**fields)
        except Refused as error:
            status, answer = 409, str(error)
        body = json.dumps(None if operation in NO_ANSWER else answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


class OnePlaceServer(PageServer):
    lacks: ClassVar[dict[str, str]] = {
        "second": "one place for everybody",
        "take": "senders alone",
        "reply": "?",
    }


@contextmanager
def served(handler: Callable[..., Any]) -> Iterator[str]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/try"
    finally:
        server.shutdown()
        server.server_close()


def test_a_server_written_from_the_page_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every case applies, also those of two places and of records of other programs."""
    with served(PageServer) as url:
        monkeypatch.setenv("BUS_URL", url)
        ran = run("gitmem.conformance.over_http:make", tmp_path)

    assert ran.status == 0, ran.said()
    assert ran.not_applicable == set()
    assert {each.partition("[")[0] for each in ran.passed} == {case.name for case in case_setup.cases()}
    assert PageServer.asked <= on_the_page()
    assert {operation for operation, _ in PageServer.asked} == {operation for operation, _ in on_the_page()}


def on_the_page() -> set[tuple[str, str]]:
    """The operations of the page, each with the fields of its body; as `record`, the fields of stored records."""
    page = (Path(__file__).parents[2] / "docs" / "conformance.md").read_text(encoding="utf-8")
    part = page.partition("## A bus over HTTP")[2].partition("\n## ")[0]
    _, _, table = part.partition("| operation | body | answer |\n|---|---|---|\n")
    found: set[tuple[str, str]] = set()
    for row in table.partition("\n\n")[0].splitlines():
        name, body, _ = row.strip("| ").replace("| |", "|  |").split("|", 2)
        found.update((name.strip(" `"), field) for field in ["", *re.findall(r"`(\w+)\??`", body)])
    for name, start, end in (("send", "Options of `send`", "\n\n"), ("record", "A signal has", "Times are")):
        text = part.partition(start)[2].partition(end)[0]
        found.update((name, field) for field in ["", *re.findall(r"`(\w+)\??`", text)])
    return found | {("record", "kind")}


def test_a_server_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those cases are not applicable; a name that is not optional changes nothing."""
    with served(OnePlaceServer) as url:
        monkeypatch.setenv("BUS_URL", url)
        ran = run("gitmem.conformance.over_http:make", tmp_path, of=["gitmem.conformance.test_receipt"])

    assert ran.status == 0, ran.said()
    assert "receipts_are_shared_across_places" in ran.not_applicable
    assert "a_watcher_delivers" in ran.passed


class _Raw(socketserver.BaseRequestHandler):
    """Sends these bytes for every request."""

    said: ClassVar[bytes] = b""

    def handle(self) -> None:
        self.request.recv(65536)
        self.request.sendall(self.said)
        self.request.shutdown(socket.SHUT_WR)
        while self.request.recv(65536):  # closing with unread data would reset the connection
            pass


class _Slow(socketserver.BaseRequestHandler):
    """Sends a byte of a header now and then."""

    def handle(self) -> None:
        self.request.recv(65536)
        try:
            self.request.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(200):
                self.request.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            return


def says(body: bytes, status: str = "200 OK", *more: str) -> type[_Raw]:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *more, "", ""])
    return type("Says", (_Raw,), {"said": head.encode() + body})


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (says(b"x" * 2_000), "more than 1000 bytes"),
        (says(b"{"), "not JSON"),
        (says(b"[" * 900), "not JSON"),
        (says(b"true"), "not a JSON int"),
        (says(b'"three"'), "not a JSON int"),
        (says(b"3", "500 No"), "answered 500"),
        (says(b"", "302 Found", "Location: http://127.0.0.1:1/"), "answered 302"),
        (type("Nothing", (_Raw,), {"said": b"hello\r\n\r\n"}), "BadStatusLine"),
        (_Slow, "no whole answer in 0.5 s"),
    ],
    ids=["large", "cut", "deep", "boolean", "text", "failure", "redirect", "no HTTP", "slow"],
)  # fmt: skip
def test_an_answer_that_is_not_of_the_page_fails_in_time(handler: Callable[..., Any], words: str) -> None:
    """Within the limits of time and size, with the reason."""
    with served(handler) as url:
        began = time.monotonic()
        with pytest.raises(BadAnswer, match=words):
            RemoteBus(url, "0" * 32, seconds=0.5, most=1_000).count("sess-1")
        assert time.monotonic() - began < 5


def test_of_a_large_answer_no_more_is_read_than_the_limit() -> None:
    """A bus must not fill the memory of whoever tries it."""
    sent = []

    class Large(_Raw):
        def handle(self) -> None:
            self.request.recv(65_536)
            with suppress(OSError):
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for _ in range(64):
                    self.request.sendall(b"x" * 1_048_576)
                    sent.append(1)

    with served(Large) as url, pytest.raises(BadAnswer, match="more than 1000 bytes"):
        RemoteBus(url, "0" * 32, most=1_000).count("sess-1")
    assert len(sent) < 64


def test_an_answer_that_is_nested_too_deeply_is_not_json() -> None:
    with served(says(b"[" * 200_000)) as url, pytest.raises(BadAnswer, match="not JSON"):
        RemoteBus(url, "0" * 32).count("sess-1")


def test_a_refusal_has_its_sentence() -> None:
    """409 alone is one."""
    with served(says(b"no", "409 Conflict")) as url, pytest.raises(Refused, match="no"):
        RemoteBus(url, "0" * 32).converged("thread-1")


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "http://"])
def test_only_http_is_asked(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without an address the error names the variable."""
    monkeypatch.setenv("BUS_URL", url)
    with pytest.raises(BadAnswer, match="BUS_URL"):
        make(tmp_path)
