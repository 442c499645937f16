"""A push URL that clients name never reaches a private network: not by its name, its form, a redirect or a second look-up."""

from __future__ import annotations

import asyncio
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from gitmem.calls.push import Poster, UrlError, is_public_address, split_url

PRIVATE = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "::",
    "fe80::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1",
    "2002:7f00:1::1", "2002:0a00:0001::", "ff02::1", "fec0::1", "feff::1", "192.88.99.1", "2002:c058:6301::1",
    "not an address", "",
)  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_i30_an_address_that_is_not_public_is_known_in_every_form(address: str) -> None:
    """Also where IPv6 carries an IPv4 address."""
    assert not is_public_address(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888"])
def test_i30_public_addresses_are_allowed(address: str) -> None:
    """The others would be refused by a mistake of ours."""
    assert is_public_address(address)


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org/", "file:///etc/passwd", "http:///x", "http://user:secret@example.org/", "http://[::1", "http://a b/",
     "http://example.org:99999/", "javascript:alert(1)", "", "http://example.org/\nX-Injected: 1", "http://" + "a" * 3000],
)  # fmt: skip
def test_i30_a_text_that_is_no_url_of_a_host_is_refused(url: str) -> None:
    """Before anything is resolved."""
    with pytest.raises(UrlError):
        split_url(url)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "0",
        "localhost.",
    ],
)
def test_i30_no_request_is_sent_to_this_machine(host: str) -> None:
    """In the spellings that a resolver understands. The server sees no connection."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.1)

    async def job() -> None:
        poster = Poster(seconds=2.0)
        url = f"http://{host}:{server.getsockname()[1]}/"
        with pytest.raises(UrlError):
            await poster.check(url)
        with pytest.raises(UrlError):
            await poster.post(url, {}, b"{}")
        await poster.close()

    asyncio.run(job())
    with server, pytest.raises(TimeoutError):
        server.accept()


def test_i30_a_name_that_changes_its_address_after_the_check_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The address that is connected to is the one that is checked: DNS may answer otherwise the second time."""
    answers = ["93.184.216.34", "127.0.0.1"]

    async def job() -> None:
        async def resolve(*_: object, **__: object) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answers.pop(0), 80))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
        poster = Poster(seconds=2.0)
        await poster.check("http://rebinds.example/")
        with pytest.raises(UrlError):
            await poster.post("http://rebinds.example/", {}, b"{}")

    asyncio.run(job())
    assert not answers


def test_i30_a_redirect_is_not_followed() -> None:
    """A public server could send us to a private one."""
    paths: list[str] = []

    class Redirects(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.send_response(307)
            self.send_header("Location", "/private")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Redirects)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def job() -> int:
        return await Poster(allow_private=True).post(f"http://127.0.0.1:{server.server_port}/hook", {}, b"{}")

    assert asyncio.run(job()) == 307
    assert paths == ["/hook"]
    server.shutdown()
    server.server_close()
