"""What an MCP client can have published, and where: nothing that its user did not agree to, and to no url of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gitmem.repo import find
from tests.clones import agree
from tests.conftest import Git

from .conftest import Serve, environment, fields, program, text, within

SECRET = "tok3n9z"


def log_refs(hub: Path) -> str:
    """The refs of a log that a remote has."""
    return subprocess.run(
        ["git", "for-each-ref", "refs/heads/gitmem*", "refs/gitmem"],
        cwd=hub, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def hubs(shop: Path, git: Git) -> tuple[Path, Path]:
    """A configured remote, and one that somebody only talks about."""
    ours, theirs = shop.parent / "ours.git", shop.parent / "theirs.git"
    for hub in (ours, theirs):
        git("init", "--quiet", "--bare", str(hub))
        git("push", "--quiet", str(hub), "main", cwd=shop)
    git("remote", "add", "origin", str(ours), cwd=shop)
    return ours, theirs


def test_only_names_of_configured_remotes_sync(serve: Serve, shop: Path, git: Git) -> None:
    """A url, a path, the url of a configured remote, an option: each is refused, and nothing is sent anywhere."""
    ours, theirs = hubs(shop, git)
    agree(find(str(shop)))
    agree(find(str(shop)), str(theirs))  # not even where the user has agreed to publish there
    asked = [str(theirs), f"file://{theirs}", str(ours), "../theirs.git", "--upload-pack=touch x", "", "nowhere",
             f"https://me:{SECRET}@localhost:9/x.git"]  # fmt: skip

    async def talk() -> None:
        async with serve() as agent:
            await agent.call_tool("signal", {"message": "Hello", "broadcast": True})
            for remotes in [*([each] for each in asked), ["origin", str(theirs)]]:
                result = await agent.call_tool("sync", {"remotes": remotes})
                assert result.is_error is True, remotes
                said = result.structured_content
                assert said is not None and said["error"]["code"] == "not-configured", said
                assert "origin" in text(result) and SECRET not in str(said) + text(result)
            assert log_refs(ours) == log_refs(theirs) == ""
            (origin,) = fields(await agent.call_tool("sync", {"remotes": ["origin"]}))["remotes"]
            assert origin["state"] == "synced"

    within(talk)
    assert log_refs(theirs) == "" and log_refs(ours) != ""


def test_a_client_cannot_agree_for_its_user(serve: Serve, shop: Path, git: Git) -> None:
    """It learns what waits and whom to ask; an argument that would agree does not exist."""
    ours, _ = hubs(shop, git)

    async def talk() -> None:
        async with serve() as agent, serve(json=False) as other:
            await agent.call_tool("signal", {"message": "Hello", "broadcast": True})
            found = await agent.call_tool("sync", {})
            (origin,) = fields(found)["remotes"]
            assert (origin["state"], origin["url"], origin["sent"]) == ("consent-needed", str(ours), 0)
            assert origin["unpublished"] >= 1 and "Hello" in str(origin["records"])
            assert "nobody has agreed" in text(await other.call_tool("sync", {}))
            for name in ("publish", "--publish", "consent"):
                assert (await agent.call_tool("sync", {name: True})).is_error is True

    within(talk)
    assert log_refs(ours) == ""


def test_answers_say_that_something_for_another_clone_is_not_sent_yet(
    serve: Serve, shop: Path, git: Git
) -> None:
    """A signal, a delegation and a call, as text and as fields; a task that waits there."""
    ours, _ = hubs(shop, git)
    there = shop.parent / "there"
    git("clone", "--quiet", str(ours), str(there))
    agree(find(str(shop)))
    agree(find(str(there)))
    for words in (("session", "start", "--name", "Curie"), ("sync",)):
        subprocess.run(program(there, *words), cwd=there, env=environment(), check=True, capture_output=True)
    asked = (
        ("signal", {"message": "Hello", "to": ["Curie"]}),
        ("delegate", {"text": "Write it", "to": "Curie", "wu": "WU-7"}),
        ("call", {"agent": "Curie", "text": "Read it", "timeout": "1s"}),
    )

    async def talk() -> None:
        async with serve() as machine, serve(json=False) as model:
            await machine.call_tool("sync", {})
            for tool, given in asked:
                found = fields(await machine.call_tool(tool, given))
                assert any(each.startswith("not sent yet: ") for each in found["warnings"]), found
                assert "note: not sent yet: " in text(await model.call_tool(tool, given))
            task = {"id": found["results"][0]["task_id"]}
            assert f"not sent yet: {task['id']}" in text(
                await model.call_tool("task", {"action": "show", **task})
            )

    within(talk)
