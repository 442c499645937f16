"""Claude Code: subagents, a cleared conversation, and worktrees of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.real_clients.desk import Desk, until
from tests.real_clients.model import Asked, Model, Play, serving
from tests.real_clients.terminal import terminal
from tests.real_clients.wire import Step

pytestmark = pytest.mark.clients

FRAME = "signal:received"
NEWS = "Put the price rules behind one interface: quartz."
ERRAND = "Count the files: marble."


def test_a_subagent_leaves_the_mail_to_its_parent(desk: Callable[..., Desk]) -> None:
    """A signal that comes while a subagent works reaches the parent's next request, and no request of the subagent."""
    there = desk("claude-code")
    errand: dict[str, object] = {"description": "Count", "prompt": ERRAND, "subagent_type": "general-purpose"}
    errand["run_in_background"] = False  # else its requests and its parent's come in any order

    def sends(asked: Asked) -> Step:
        there.signal(NEWS, str(there.sessions()[0]["session_id"]))
        return there.client.shell("echo one")

    asked = there.turn(
        [
            lambda asked: Step(tool="Task", arguments=errand),
            sends,  # the subagent's first request
            lambda asked: Step("Seven files."),  # its second
            lambda asked: Step("Done."),
        ]
    )

    assert ["Begin now." in each.text for each in asked] == [True, False, False, True]
    assert [each.text.count(NEWS) for each in asked] == [0, 0, 0, 1]


def test_a_cleared_conversation_is_the_same_agent(desk: Callable[..., Desk]) -> None:
    """A question comes, the user types `/clear` and "go on": the model's next request has the question, and one name."""
    there = desk("claude-code")
    script: Sequence[Play] = [lambda asked: Step("Done."), lambda asked: Step("Read.")]
    model = Model(there.client.dialect, script)
    with serving(model):
        env = {**there.env, **there.client.variables(model.url)}
        there.client.prepare(there.program, there.work, there.home, env, model.url)
        with terminal(
            [str(there.program), "--dangerously-skip-permissions", "Begin now."], there.work, env
        ) as shown:
            assert until(lambda: b"Done." in b"".join(shown)), b"".join(shown)[-2000:]
            (before,) = there.sessions()
            there.signal(NEWS, str(before["display_name"]), "--requires-ack")
            shown.type("/clear")
            client_ids = there.home / ".claude" / "session-env"
            assert until(lambda: len(list(client_ids.iterdir())) == 2), b"".join(shown)[-2000:]
            shown.type("go on")
            assert until(lambda: len(model.asked) == 2), b"".join(shown)[-2000:]
            (after,) = there.sessions()

    assert model.trouble == []
    assert [(FRAME in each.text, NEWS in each.text) for each in model.asked] == [(False, False), (True, True)]
    assert "Begin now." not in model.asked[1].text
    assert (after["session_id"], after["display_name"]) == (before["session_id"], before["display_name"])


def test_commits_in_worktrees_of_the_client_have_their_author(desk: Callable[..., Desk]) -> None:
    """In one that the session enters, and in that of an isolated subagent; the roster has the session's worktree."""
    there = desk("claude-code")
    alone: dict[str, object] = {"description": "Count", "prompt": ERRAND, "subagent_type": "general-purpose"}
    alone |= {"isolation": "worktree", "run_in_background": False}
    where: list[object] = []

    def commits(subject: str) -> Step:
        return there.client.shell(f"git commit --quiet --allow-empty -m {subject}")

    def looks(asked: Asked) -> Step:
        where.extend(each["worktree"] for each in there.sessions())
        return Step(tool="Task", arguments=alone)

    there.turn(
        [
            lambda asked: Step(tool="EnterWorktree", arguments={"name": "side"}),
            lambda asked: commits("inside"),
            looks,
            lambda asked: commits("isolated"),  # the subagent
            lambda asked: Step("Seven files."),
            lambda asked: Step("Done."),
        ]
    )

    assert where == ["side"]
    (session,) = {each["session_id"] for each in there.gitmem("roster", "--all")["sessions"]} - {there.peer}
    for subject in ("inside", "isolated"):
        commit = there.git("log", "--all", "--format=%H", f"--grep=^{subject}$").split()[0]
        story = there.gitmem("why", commit)
        assert session in str(story), f"{subject}: {story}"
