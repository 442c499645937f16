"""Copilot CLI also runs the hooks that a project has for Claude Code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.real_clients.desk import Desk
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients


def test_the_hooks_of_claude_code_do_not_count_twice(desk: Callable[..., Desk]) -> None:
    """With both installed there is one session, of Copilot, and each signal is shown once."""
    there = desk("copilot", "--client", "claude-code")
    clients: list[str] = []

    def first(asked: object) -> Step:
        sessions = there.sessions()
        clients.extend(str(each["client"]) for each in sessions)
        there.signal("Rebase before you push: walnut.", str(sessions[0]["session_id"]))
        return there.client.shell("echo one")

    asked = there.turn([first, lambda asked: Step("Done.")])

    assert clients == ["copilot"]
    assert [each.text.count("walnut") for each in asked] == [0, 1]


def test_what_the_user_says_is_never_run_by_a_shell(desk: Callable[..., Desk]) -> None:
    """Copilot leaves out the arguments of a hook for Claude Code: a bare `sh` would run the hook's input."""
    there = desk("copilot", "--client", "claude-code")
    trap = there.home / "trap"

    there.turn([lambda asked: Step("Done.")], prompt=f"Say $(touch {trap}) `touch {trap}` now")

    assert not trap.exists()
