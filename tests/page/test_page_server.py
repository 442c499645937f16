"""The page over HTTP is for the browser that has the link, on this machine, and for nobody else; it writes nothing."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gitmem.api.log import Log
from gitmem.calls.a2a_server import server_of
from gitmem.calls.served_log import ServedLog
from gitmem.errors import StoreError
from gitmem.page.live_page import COOKIE, LivePage
from gitmem.page.page_data import collect
from gitmem.page.page_file import Assets

from ..conftest import Git
from .test_page_data import opened

HOST = "127.0.0.1:4810"


@pytest.fixture
def log(repo: Path) -> Iterator[Log]:
    """The log of a repository with one session."""
    with opened(repo) as found:
        session = found.sessions.start(name="Curie", agent_identity="a:b:curie").session_id
    with opened(repo, session=session) as found:
        yield found


@pytest.fixture
def page(log: Log) -> LivePage:
    return LivePage(ServedLog(log.store), lambda: collect(log.store))


@pytest.fixture
def client(page: LivePage) -> Iterator[TestClient]:
    with TestClient(page.application([HOST]), base_url=f"http://{HOST}") as found:
        yield found


def enter(client: TestClient, page: LivePage) -> None:
    assert client.get(page.entry).status_code == 200


def test_the_link_lets_a_browser_in(client: TestClient, page: LivePage, log: Log) -> None:
    """It gets a cookie that no script and no other path has; then the page, and data that follow the log."""
    (cookie,) = SimpleCookie(client.get(page.entry).headers["set-cookie"]).values()
    assert (cookie.key, cookie["path"], cookie["httponly"], cookie["samesite"]) == (
        COOKIE,
        page.path,
        True,
        "strict",
    )

    shown = client.get(page.path)
    before = client.get(page.path + "data.json").json()
    log.signals.send("news", broadcast=True)
    after = client.get(page.path + "data.json").json()

    assert shown.content == Assets().page(None)
    policy = shown.headers["content-security-policy"]
    assert policy == f"{Assets().policy(served=True)}; frame-ancestors 'none'"
    assert [each["text"] for each in after["signals"]] == ["news"] and not before["signals"]
    for answer in (shown, client.get(page.path + "data.json"), client.get("/")):
        assert (
            answer.headers["cache-control"] == "no-store"
            and answer.headers["x-content-type-options"] == "nosniff"
        )
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["", "data.json", "events"])
def test_nobody_else_gets_anything(client: TestClient, page: LivePage, path: str) -> None:
    """No token, a wrong one, another page's request, a name that DNS made ours; nothing is written by any method."""
    assert client.get(page.path + path).status_code == 401
    assert "gitmem view --serve" in client.get(page.path + path).text
    assert client.get(page.path + path, headers={"Cookie": f"{COOKIE}=wrong"}).status_code == 401
    enter(client, page)
    assert client.get(page.path + path, headers={"Host": "evil.example:4810"}).status_code == 403
    assert client.get(page.path + path, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post(page.path + path).status_code == 405
    assert client.get(page.path + "open/wrong").status_code == 404
    assert client.get("/").status_code == 401


def test_a_cookie_of_another_server_of_the_host_locks_nobody_out(client: TestClient, page: LivePage) -> None:
    """Every server on 127.0.0.1 may set a cookie with our name for all paths; the browser sends ours before it."""
    (ours,) = SimpleCookie(client.get(page.entry).headers["set-cookie"]).values()
    client.cookies.clear()
    both = [f"{COOKIE}={ours.value}", f"{COOKIE}=theirs"]

    for cookies, status in ((both, 200), (both[::-1], 401), (["a=b", *both], 200), ([f"x{both[0]}"], 401)):
        answer = client.get(page.path + "data.json", headers={"Cookie": "; ".join(cookies)})
        assert answer.status_code == status


def test_an_end_does_not_wait_for_open_pages(page: LivePage) -> None:
    """Each open page has a stream that never ends by itself."""
    bound = socket.create_server(("127.0.0.1", 0))
    host = f"127.0.0.1:{bound.getsockname()[1]}"
    ready = threading.Event()
    server = server_of(page.application([host]), ready.set, end_seconds=0)
    running = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    running.start()
    assert ready.wait(20)
    with socket.create_connection(bound.getsockname()) as browser:
        head = f"GET {page.path}events HTTP/1.1\r\nHost: {host}\r\nCookie: {COOKIE}={page._token}\r\n\r\n"
        browser.sendall(head.encode())
        assert browser.recv(4096)  # the stream has begun
        server.should_exit = True
        running.join(2)

    assert not running.is_alive()


def test_each_server_has_a_link_of_its_own(page: LivePage, log: Log) -> None:
    """What one printed is worth nothing to the next."""
    other = LivePage(ServedLog(log.store), lambda: collect(log.store))

    assert len({page.path, other.path, page.entry, other.entry}) == 4
    assert len(page.entry) > 60


def test_browsers_are_told_of_changes_and_not_more_often_than_they_can_follow(log: Log) -> None:
    """One notice stands for many changes. Reading the page records nothing."""

    async def changes() -> list[str]:
        served = ServedLog(log.store)
        page = LivePage(served, lambda: collect(log.store), rest=0.3)
        served.start()
        try:
            found = page._changes()
            first = await anext(found)
            for number in range(5):
                await served.run(lambda: log.signals.send(f"news {number}", broadcast=True))  # noqa: B023  (called at once)
            second = await asyncio.wait_for(anext(found), 10)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(found), 2.5)
        finally:
            served.close()
        return [first, second]

    assert asyncio.run(changes()) == [": begin\n\n", "event: changed\ndata: 1\n\n"]


def test_a_log_that_can_not_be_read_is_a_sentence(log: Log) -> None:
    """The next request tries again."""
    results: list[Exception | None] = [StoreError("The disk is gone.", code="gone"), None]

    def read() -> object:
        error = results.pop(0)
        if error is not None:
            raise error
        return {"format": "x"}

    page = LivePage(ServedLog(log.store), read)  # type: ignore[arg-type]
    with TestClient(page.application([HOST]), base_url=f"http://{HOST}") as client:
        enter(client, page)
        wrong, right = (client.get(page.path + "data.json") for _ in range(2))

    assert (wrong.status_code, "gone" in wrong.text) == (503, True)
    assert (right.status_code, json.loads(right.text)) == (200, {"format": "x"})


def test_looking_records_nothing(client: TestClient, page: LivePage, repo: Path, git: Git) -> None:
    """Neither lines nor receipts."""
    before = git("rev-parse", "refs/gitmem/log", cwd=repo)
    enter(client, page)

    assert client.get(page.path + "data.json").status_code == 200

    assert git("rev-parse", "refs/gitmem/log", cwd=repo) == before
