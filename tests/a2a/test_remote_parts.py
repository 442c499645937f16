"""`gitmem call URL --with-context --with-memory --var`: what the answer says was handed over is what the server got."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import in_process
from tests.a2a.sniffing_server import Sniffer

JSON = "application/json"
HANDING = ("--with-context", "--with-memory", "--var", "rate=7", "--var", "année=1 €")


@pytest.fixture
def sniffers() -> Iterator[Callable[..., Sniffer]]:
    """Start servers by the media types that they take."""
    started: list[Sniffer] = []

    def start(*modes: str) -> Sniffer:
        started.append(Sniffer(*modes))
        return started[-1]

    yield start
    for each in started:
        each.close()


class Desk:
    """A session with some memory in a repository."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.session = ""
        found = self.say(
            "session", "start", "--name", "Planck", "--agent-identity", "codex:planner:shop", "--wu", "WU-7"
        )
        self.session = found["session_id"]
        self.decision = self.say("mem", "create", "Round once per line", "--tag", "decision")["node"]["id"]
        self.node = self.say("mem", "create", "Prices of orders are rounded", "--priority", "P1")["node"][
            "id"
        ]

    def say(self, *words: str, status: int = 0) -> Any:
        """Return the answer of a command."""
        done = in_process.gitmem("--json", *words, cwd=self.repo, env={"GITMEM_SESSION": self.session})
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout or done.stderr.strip().splitlines()[-1])


@pytest.fixture
def desk(repo: Path) -> Desk:
    """A session with two nodes of its work unit."""
    return Desk(repo)


def received(sniffer: Sniffer) -> Any:
    """Return what a server got beside the text."""
    text, *more = sniffer.parts
    assert text == {"text": "Is it right?"}
    assert len(more) == 1, more
    if "data" in more[0]:
        assert more[0]["mediaType"] == JSON
        return more[0]["data"]
    head, _, content = more[0]["text"].partition("\n")
    assert head == "What the caller hands over:"
    return json.loads(content)


@pytest.mark.parametrize("modes", [("text/plain",), ("text/plain", JSON), ("*/*",), ()])
def test_each_part_that_is_named_as_handed_over_arrives(
    sniffers: Callable[..., Sniffer], desk: Desk, modes: tuple[str, ...]
) -> None:
    sniffer = sniffers(*modes)
    found = desk.say("call", sniffer.url, "Is it right?", *HANDING, "--timeout", "20s")
    assert found["message"] == "heard", found
    got = received(sniffer)
    assert ("data" in sniffer.parts[1]) == (modes in {("text/plain", JSON), ("*/*",)})
    counts = found["transfer"]["counts"]
    assert counts.pop("omitted", 0) == 0
    assert counts == {name: len(value) for name, value in got.items() if name in counts}
    assert {"decisions", "memory", "variables"} <= set(counts)
    assert got["variables"] == {"rate": 7, "année": "1 €"}
    assert {each["id"]: each["node"]["content"] for each in got["memory"]} == {
        desk.decision: "Round once per line", desk.node: "Prices of orders are rounded",
    }  # fmt: skip


def test_what_does_not_fit_is_named_and_not_sent(sniffers: Callable[..., Sniffer], desk: Desk) -> None:
    large = desk.say("mem", "create", "x" * 20_000)["node"]["id"]
    sniffer = sniffers(JSON)
    found = desk.say("call", sniffer.url, "Is it right?", "--with-memory", "--timeout", "20s")
    assert [each["id"] for each in found["transfer"]["omitted"]] == [large]
    assert large not in [each["id"] for each in received(sniffer)["memory"]]


def test_a_dry_run_shows_what_would_be_sent_and_sends_and_writes_nothing(
    sniffers: Callable[..., Sniffer], desk: Desk
) -> None:
    sniffer = sniffers(JSON)
    before = desk.say("log"), desk.say("roster", "--all")["sessions"]
    shown = desk.say("call", sniffer.url, "Is it right?", *HANDING, "--dry-run")
    assert (shown["recorded"], sniffer.paths) == (False, [])
    assert (shown["agents"][0]["name"], shown["transfer"]["counts"]["memory"]) == (sniffer.url, 2)
    after = desk.say("log"), desk.say("roster", "--all")["sessions"]
    assert len(before[1]) == len(after[1]) and before[0] == after[0]
    desk.say("call", sniffer.url, "Is it right?", *HANDING, "--timeout", "20s")
    assert received(sniffer) == json.loads(shown["text"]) == shown["context"]


def test_a_server_has_one_name_in_all_calls(sniffers: Callable[..., Sniffer], desk: Desk) -> None:
    sniffer = sniffers("text/plain")
    for _ in range(3):
        desk.say("call", sniffer.url, "Is it right?", "--timeout", "20s")
    sessions = [each for each in desk.say("roster", "--all")["sessions"] if each["display_name"] != "Planck"]
    assert {each["display_name"] for each in sessions} == {
        sniffer.url.removeprefix("http://").replace(":", "-")
    }
