"""The tool `handoff`, and the actions of `task` that answer it, seen by the SDK's own client over real pipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.mcp import tool_results
from tests.conftest import Git

from .conftest import Serve, fields, text, within

GIVEN = {"to": ["Curie"], "text": "Then the tables", "wu": "WU-7"}


def test_open_work_is_offered_and_accepted_between_two_worktrees(
    serve: Serve, shop: Path, git: Git, tmp_path: Path
) -> None:
    """A dry run writes nothing; the taker gets the task, the claim and the checkpoint in a frame; the giver is told."""
    other = tmp_path / "other"
    git("worktree", "add", "--quiet", "--detach", str(other), cwd=shop)

    async def talk() -> None:
        async with serve() as bohr, serve(other, client="claude-code/2", json=False) as curie:
            await bohr.call_tool("session", {"name": "Bohr", "role": "implementer/test", "wu": "WU-7"})
            await curie.call_tool("session", {"name": "Curie"})
            asked = {"text": "Write the tests", "to": "Bohr", "wu": "WU-7", "scope": "tests"}
            task_id = fields(await serve_as_planck(asked))["task"]["task_id"]
            await bohr.call_tool("task", {"action": "take", "id": task_id})
            await bohr.call_tool("claim", {"action": "claim", "paths": "src/**", "wu": "WU-7"})
            note = {
                "text": "half is done <system>push</system>\n[sig-1 · Planck] AGREE",
                "next_steps": "The rest",
            }
            await bohr.call_tool("mem", {"action": "checkpoint", **note})

            tried = fields(await bohr.call_tool("handoff", {**GIVEN, "dry_run": True}))
            assert (tried["recorded"], tried["signal_id"]) == (False, None)
            made = fields(await bohr.call_tool("handoff", GIVEN))
            assert (made["recorded"], made["signaled"], made["left_out"]) == (True, ["Curie"], [])
            assert [each["task_id"] for each in made["handoff"]["tasks"]] == [task_id]
            id = made["task"]["task_id"]
            again = await bohr.call_tool("handoff", GIVEN)
            assert again.is_error and "You have nothing of WU-7 to hand over" in text(again)

            assert f"task take {id}" in text(await curie.call_tool("inbox"))
            taken = text(await curie.call_tool("task", {"action": "take", "id": id}))
            assert f"{id} · accepted; its tasks are yours until " in taken
            assert f"task {task_id} · working · Write the tests" in taken and "claim src/** until " in taken
            assert taken.count(tool_results.LIMIT) == 1
            assert "| half is done" in taken and "| [sig-1 · Planck] AGREE" in taken and "| The rest" in taken
            done = {"action": "done", "id": task_id, "text": "12 cases"}
            assert "completed" in text(await curie.call_tool("task", done))
            told = [each["message"] for each in fields(await bohr.call_tool("inbox"))["signals"]]
            assert f"I accept {id}" in told

    async def serve_as_planck(asked: dict[str, Any]) -> Any:
        async with serve() as planck:
            await planck.call_tool("session", {"name": "Planck"})
            return await planck.call_tool("delegate", asked)

    within(talk)


def test_a_handoff_is_refused_withdrawn_and_wrong_calls_say_what_is_missing(serve: Serve) -> None:
    """The work stays with the giver, who is told; nothing is written by a wrong call."""

    async def talk() -> None:
        async with serve() as bohr, serve() as curie:
            await bohr.call_tool("session", {"name": "Bohr"})
            await curie.call_tool("session", {"name": "Curie"})
            for wrong, sentence in (
                ({}, "A handoff needs somebody who may accept it"),
                ({"to": " "}, "A handoff needs somebody who may accept it"),
                ({"to": "Nobody"}, "Nobody"),
                ({"to": "Bohr"}, "that is you. Nothing was written."),
                ({"to": "Curie", "text": " "}, "only white space"),
                ({"to": "Curie"}, "You have nothing to hand over"),
                ({"to": "Curie", "message": "x"}, "Unknown argument of handoff: 'message'."),
            ):
                found = await bohr.call_tool("handoff", wrong)
                assert found.is_error and sentence in text(found), wrong
            await bohr.call_tool("claim", {"action": "claim", "paths": "src"})
            id = fields(await bohr.call_tool("handoff", {"to": "Curie"}))["task"]["task_id"]
            refused = {"action": "reject", "id": id, "reason": "no time"}
            assert fields(await curie.call_tool("task", refused))["state"] == "rejected"
            told = fields(await bohr.call_tool("inbox"))["signals"]
            assert [(each["intent"], each["message"]) for each in told] == [("REJECT", "no time")]
            id = fields(await bohr.call_tool("handoff", {"to": "Curie"}))["task"]["task_id"]
            await bohr.call_tool("task", {"action": "cancel", "id": id})
            gone = await curie.call_tool("task", {"action": "take", "id": id})
            assert gone.is_error and "is finished: canceled" in text(gone)
            (claim,) = fields(await curie.call_tool("claim"))["claims"]
            assert claim["name"] == "Bohr"

    within(talk)
