"""The page over HTTP is for the browser that has the link, on this machine, and for nobody else; it writes nothing."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from gitmem.api.log import Log
from gitmem.calls.a2a_server import ServedLog
from gitmem.calls.http_guard import server_of
from gitmem.errors import StoreError
from gitmem.page.live_page import COOKIE, LivePage
from gitmem.page.page_data import collect
from gitmem.page.page_file import ASSETS, Assets, as_json

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


# The file of the page: nothing of the log gets into it but by the data, and the policy allows its own parts alone.


def data_of(page: bytes) -> dict:
    """Return the data in a page, as its script reads them."""
    (block,) = re.findall(
        rb'<script type="application/octet-stream\+base64" id="data">([A-Za-z0-9+/=]*)</script>', page
    )
    return json.loads(gzip.decompress(base64.b64decode(block)))


def digests(page: str, tag: str) -> set[str]:
    """Return the digests of the elements of a page that a browser applies, in the form of a policy."""
    return {
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'"
        for each in re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    }


def test_the_policy_allows_the_parts_of_the_page_and_no_request() -> None:
    """A script that somebody brings in has another digest."""
    page = Assets().page({"format": "x"}).decode()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    rules = {each.split()[0]: each.split()[1:] for each in policy.split("; ")}

    assert set(rules["script-src"]) == digests(page, "script") and rules["script-src"]
    assert set(rules["style-src"]) == digests(page, "style") and rules["style-src"]
    assert (
        rules["default-src"]
        == rules["connect-src"]
        == rules["base-uri"]
        == rules["form-action"]
        == ["'none'"]
    )
    assert page.index("Content-Security-Policy") < page.index("<style")
    assert not re.search(
        r"\son\w+=|javascript:|<!-- (policy|data|style|script)",
        re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL),
    )


def test_a_text_can_not_leave_the_data() -> None:
    """Markup, comments, halves of surrogate pairs and a name of a part of the template are only data."""
    hostile = "</script><script>alert(1)</script><!-- data -->]]>\u2028\u202e\x00\ud800"
    plain, page = (Assets().page({"format": text}) for text in ("x", hostile))

    assert data_of(page)["format"] == hostile
    data = re.compile(rb'id="data">[^<]*')
    assert data.sub(b"", page) == data.sub(b"", plain)
    assert json.loads(as_json({"format": "\ud800"}))


def test_a_part_that_names_the_end_of_a_script_does_not_end_it(tmp_path: Path) -> None:
    """Libraries have such texts in their strings."""
    (tmp_path / "page.html").write_text("<!-- policy --><!-- script one.js --><!-- data -->")
    (tmp_path / "one.js").write_text('a = "</script>"; b = "<!--"; c = /<\\/SCRIPT>/;\r\n')

    page = Assets(str(tmp_path)).page({"format": "x"}).decode()

    assert r'<script>a = "<\/script>"; b = "<\!--"; c = /<\/SCRIPT>/;' in page
    assert digests(page, "script") == set(re.findall(r"'sha256-[^']*'", page))


def test_a_page_of_a_server_asks_it_for_data() -> None:
    """It has none itself."""
    page = Assets().page(None).decode()

    assert 'id="data" data-source="data.json" data-events="events" data-answer="answer"></script>' in page
    assert "connect-src 'self';" in page


# The libraries of the page are those that the manifest pins, with their licences, and nothing else lies beside them.

VENDOR = f"{ASSETS}/vendor"
with open(f"{VENDOR}/manifest.json", encoding="utf-8") as file:
    LIBRARIES = json.load(file)["libraries"]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda each: each["name"])
def test_the_files_are_those_of_the_manifest(library: dict) -> None:
    """A file that somebody has edited is not what npm has published under this version."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", library["version"])
    assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", library["integrity"])
    assert library["licence"] in ("MIT", "ISC", "BSD-3-Clause", "Apache-2.0")
    for name, about in library["files"].items():
        with open(f"{VENDOR}/{name}", "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == about["sha256"], name
    assert any(name.endswith(".LICENSE") for name in library["files"])


def test_the_page_uses_each_library_and_no_other_file_is_there() -> None:
    """What nobody uses is not shipped."""
    named = {name for library in LIBRARIES for name in library["files"]}
    assert set(os.listdir(VENDOR)) == {*named, "manifest.json"}
    with open(f"{ASSETS}/page.html", encoding="utf-8") as file:
        template = file.read()
    used = set(re.findall(r"<!-- (?:script|style) vendor/([\w.]+) -->", template))
    assert used == {name for name in named if not name.endswith(".LICENSE")}
    own = set(re.findall(r"<!-- (?:script|style) ([\w.]+) -->", template))
    assert own == {name for name in os.listdir(ASSETS) if name.endswith((".js", ".css"))}


def test_the_page_without_data_is_small_enough() -> None:
    """The rest of 4 MB is for ten thousand signals."""
    assert len(Assets().page(None)) < 1_100_000
