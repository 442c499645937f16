"""Where clients are notified: within what is read again, written once for many changes, and reported when it is damaged."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
import time
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.types import TaskPushNotificationConfig

from gitmem.calls import a2a_files
from gitmem.calls.a2a_files import Tokens
from gitmem.calls.push import (
    CONFIGS_MAX,
    TEXT_MAX,
    PublicTransport,
    Push,
    UrlError,
    checked_url,
    public_address,
)
from gitmem.doctor import doctor
from gitmem.errors import StoreError

from .. import file_faults
from ..sandbox import Clock, open_store
from .talking import talk

if TYPE_CHECKING:
    from gitmem.order.task import FoldedTask

AGENT = "gitmem:worker:prices"


async def nothing(caller: str, task_id: str) -> AsyncIterator[tuple[FoldedTask, bool]]:
    """No change ever."""
    for each in ():
        yield each


def begun(folder: Path, told: list[str] | None = None) -> Push:
    found = Push(str(folder), allow_private=True, report=(told if told is not None else []).append)
    found.begin({AGENT: nothing})
    return found


def test_what_is_accepted_is_read_again_after_a_restart(tmp_path: Path) -> None:
    """The largest texts, written as JSON, in as many configurations as are allowed: nothing of them is lost."""
    texts = {"id": '"' * TEXT_MAX, "token": "\\" * TEXT_MAX, "url": "https://example.org/" + "x" * 1_900}

    async def job() -> None:
        push = begun(tmp_path)
        config = TaskPushNotificationConfig(**texts)
        config.authentication.scheme = config.authentication.credentials = '"' * TEXT_MAX
        await asyncio.gather(
            *(push.add("planner", AGENT, f"task-{n}", config, ["tev-1"] * 100) for n in range(CONFIGS_MAX)),
        )
        await push.end()
        told: list[str] = []
        again = begun(tmp_path, told)
        assert (len(again._entries), told) == (CONFIGS_MAX, [])
        assert again.get("planner", AGENT, "task-7", texts["id"]).token == texts["token"]
        await again.end()

    talk(job)
    assert stat.S_IMODE(os.stat(a2a_files.push_file_of(str(tmp_path))).st_mode) == 0o600


def test_many_changes_are_written_once_and_not_by_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sent step is one: a file of megabytes would keep all clients waiting."""
    threads: list[int] = []
    overlaps: list[bool] = []
    alone = threading.Lock()

    def noted() -> None:
        threads.append(threading.get_ident())
        overlaps.append(not alone.acquire(blocking=False))  # then an older content could come last
        time.sleep(0.02)
        if not overlaps[-1]:
            alone.release()

    file_faults.at(monkeypatch, "replace", "*push.json", noted)

    async def job() -> None:
        push = begun(tmp_path)
        config = TaskPushNotificationConfig(url="https://example.org/")
        await asyncio.gather(
            *(push.add("planner", AGENT, f"task-{n}", config, []) for n in range(CONFIGS_MAX))
        )
        await push.end()

    talk(job)
    assert not any(overlaps)
    assert 1 <= len(threads) <= 8 and threading.get_ident() not in threads
    assert len(a2a_files.read_push_file(str(tmp_path))) == CONFIGS_MAX


def test_a_write_whose_caller_is_cancelled_ends_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a configuration that was deleted could come back with the older content."""
    slow = [0.3, 0.0]
    file_faults.at(monkeypatch, "replace", "*push.json", lambda: time.sleep(slow.pop(0)))

    async def job() -> None:
        push = begun(tmp_path)
        config = TaskPushNotificationConfig(id="a", url="https://example.org/")
        adding = asyncio.create_task(push.add("planner", AGENT, "task-1", config, []))
        await asyncio.sleep(0.1)
        adding.cancel()
        await push.delete("planner", AGENT, "task-1", "a")
        assert a2a_files.read_push_file(str(tmp_path)) == []
        await asyncio.sleep(0.4)
        assert a2a_files.read_push_file(str(tmp_path)) == []
        await push.end()

    asyncio.run(job())


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b'[{"caller": 1}]', b'{"callers": {"x": {"digest": "\xc3\xa9", "created_at": ""}}}'])  # fmt: skip
def test_damaged_files_are_reported_once_and_by_doctor(repo: Path, content: bytes) -> None:
    """Clients are told nothing but that it does not work."""
    store = open_store(repo, Clock())
    told: list[str] = []
    tokens = Tokens(store.repo.state, told.append)
    tokens.add("planner", store.now())
    for path in (tokens.path, a2a_files.push_file_of(store.repo.state)):
        Path(path).write_bytes(content)

    for _ in range(3):
        with pytest.raises(StoreError):
            tokens.caller_of("gm_x")
    assert len(told) == 1 and tokens.path in told[0]
    asyncio.run(_begin(Path(store.repo.state), told))
    assert len(told) == 2 and "push" in told[1]
    found = {each.code: each for each in doctor.examine(store).findings}
    assert found["bad-tokens"].where == tokens.path
    assert found["bad-push"].severity == "problem"
    for path in (tokens.path, a2a_files.push_file_of(store.repo.state)):
        os.unlink(path)
    assert tokens.caller_of("gm_x") is None
    assert not {"bad-tokens", "bad-push"} & {each.code for each in doctor.examine(store).findings}


async def _begin(folder: Path, told: list[str]) -> None:
    await begun(folder, told).end()


# A push URL that clients name never reaches a private network: not by its name, its form, a redirect or a second look-up.

PRIVATE = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "::",
    "fe80::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::7f00:1",
    "2002:7f00:1::1", "2002:0a00:0001::", "ff02::1", "fec0::1", "feff::1", "192.88.99.1", "2002:c058:6301::1",
    )  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_i30_an_address_that_is_not_public_is_known_in_every_form(address: str) -> None:
    """Also where IPv6 carries an IPv4 address."""
    with pytest.raises(UrlError):
        asyncio.run(public_address(httpx.URL("http://x/").copy_with(host=address)))


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888"])
def test_i30_public_addresses_are_allowed(address: str) -> None:
    """The others would be refused by a mistake of ours."""
    assert asyncio.run(public_address(httpx.URL("http://x/").copy_with(host=address))) == address


@pytest.mark.parametrize(
    "url",
    ["ftp://example.org/", "file:///etc/passwd", "http:///x", "http://user:secret@example.org/", "http://[::1",
     "http://example.org:99999/", "javascript:alert(1)", "", "http://example.org/\nX-Injected: 1", "http://" + "a" * 3000],
)  # fmt: skip
def test_i30_a_text_that_is_no_url_of_a_host_is_refused(url: str) -> None:
    """Before anything is resolved."""
    with pytest.raises(UrlError):
        checked_url(url)


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
        url = f"http://{host}:{server.getsockname()[1]}/"
        with pytest.raises(UrlError):
            await public_address(checked_url(url))
        async with httpx.AsyncClient(transport=PublicTransport()) as client:
            with pytest.raises(UrlError):
                await client.post(url)

    asyncio.run(job())
    with server, pytest.raises(TimeoutError):
        server.accept()


def test_i30_a_name_that_changes_its_address_after_the_check_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The address that is connected to is the one that is checked: DNS may answer otherwise the second time."""
    answers = ["93.184.216.34", "127.0.0.1"]

    async def job() -> None:
        async def resolve(host: str, *_: object, **__: object) -> list[Any]:
            address = answers.pop(0) if host == "rebinds.example" else host
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
        assert await public_address(checked_url("http://rebinds.example/")) == "93.184.216.34"
        async with httpx.AsyncClient(transport=PublicTransport()) as client:
            with pytest.raises(UrlError):
                await client.post("http://rebinds.example/")

    asyncio.run(job())
    assert not answers


def test_i30_a_redirect_is_not_followed_and_no_cookie_is_kept(tmp_path: Path) -> None:
    """A public server could send us to a private one, and see which callers name it."""
    paths: list[str] = []
    cookies: list[str | None] = []

    class Redirects(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            cookies.append(self.headers["Cookie"])
            self.send_response(307)
            self.send_header("Set-Cookie", "who=planner")
            self.send_header("Location", "/private")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Redirects)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    async def job() -> None:
        config = TaskPushNotificationConfig(url=f"http://127.0.0.1:{server.server_port}/hook")
        push = Push(str(tmp_path), allow_private=True, pauses=())
        assert not await push._send(config, "{}")
        assert not await push._send(config, "{}")
        await push.end()

    asyncio.run(job())
    assert (paths, cookies) == (["/hook"] * 2, [None, None])
    server.shutdown()
    server.server_close()
