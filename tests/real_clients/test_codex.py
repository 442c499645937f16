"""Codex: a sandbox that keeps the git folder from the agent, and hooks that wait for somebody's consent."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.real_clients.clients import Codex, hooks_of_codex
from tests.real_clients.desk import Desk
from tests.real_clients.model import Asked
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients

NEWS = "Put the price rules behind one interface: quartz."
ANSWER = "Agreed, behind one interface: cobalt."


def test_what_the_sandbox_forbids_the_agent_the_hook_does(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `workspace-write` the git folder is read-only to the agent: its reply is spooled, and a hook commits it."""
    there = desk("codex")
    monkeypatch.setattr(there.client, "sandbox", ("--sandbox", "workspace-write"))
    said: list[str] = []
    heard: list[list[str]] = []

    def first(asked: Asked) -> Step:
        there.signal(NEWS, str(there.sessions()[0]["session_id"]))
        return there.client.shell("echo one")

    def second(asked: Asked) -> Step:
        return there.client.shell(f"touch .git/mine; {asked.reply_command(ANSWER)}")

    def third(asked: Asked) -> Step:
        said.append(asked.text)
        heard.append([each["message"] for each in there.inbox()])
        return Step("Done.")

    there.turn([first, second, third])

    if not re.search(r"\.git/mine.*(Read-only|denied)", said[0]):
        pytest.skip("the sandbox of Codex does not work on this machine")
    assert heard == [[f"{ANSWER}\n"]]


def test_hooks_that_nobody_has_trusted_are_reported(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex skips them without a word: `doctor` says that they wait for `/hooks`."""
    there = desk("codex")
    monkeypatch.setattr("tests.real_clients.clients.hooks_of_codex", lambda *given: [])

    there.turn([lambda asked: Step("Done.")])

    assert there.gitmem("roster", "--all")["sessions"][0]["session_id"] == there.peer
    assert "/hooks" in str(there.gitmem("doctor"))


def test_in_the_users_scope_the_hooks_run_in_every_worktree(desk: Callable[..., Desk]) -> None:
    """Codex reads a project's hooks from the main worktree alone; those of the user also work in a linked one."""
    there = desk("codex", "--scope", "user")
    linked = there.work.parent / "shop-linked"
    there.git("worktree", "add", "--quiet", str(linked))
    there.work = linked
    seen: list[str] = []

    def first(asked: Asked) -> Step:
        seen.extend(str(each["worktree"]) for each in there.sessions())
        return Step("Done.")

    there.turn([first])

    assert seen == [linked.name]


def test_the_hooks_are_those_that_were_asked_for(desk: Callable[..., Desk]) -> None:
    """What Codex itself lists of our file: every entry understood, none twice, and none beside ours."""
    there = desk("codex")
    assert isinstance(there.client, Codex)
    there.client.prepare(there.program, there.work, there.home, there.env, "http://127.0.0.1:9")

    listed = hooks_of_codex(there.program, there.work, there.env)

    assert sorted(each["eventName"] for each in listed) == [
        "postToolUse",
        "preCompact",
        "preToolUse",
        "sessionEnd",
        "sessionStart",
        "stop",
        "subagentStop",
        "userPromptSubmit",
    ]
    assert {each["trustStatus"] for each in listed} == {"trusted"}
