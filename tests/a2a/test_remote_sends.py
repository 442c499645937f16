"""What a clone says of a server that does not have what was recorded of its task; sending is tested with real servers."""

from __future__ import annotations

from pathlib import Path

from cli import a2a
from gitmem.calls.a2a_files import Link, RemoteLinks
from gitmem.work import new_task, task_decisions
from tests.sandbox import Agent, Clock, open_store

SERVER = "a2a:server:agents.example.org"


def test_i10_who_answers_or_cancels_learns_what_the_server_does_not_have(repo: Path) -> None:
    """The tool of the MCP server sends nothing itself; another clone has neither URL nor token."""
    store = open_store(repo, Clock())
    planner = Agent(store, "codex:planner:one").caller
    own, other = (
        str(new_task.create(store, planner, "Pay", to=to, allow_unseen=True).task["task_id"])
        for to in (SERVER, "claude:worker:bohr")
    )
    links = RemoteLinks(store.repo.state)
    assert a2a.remark(store, own) == a2a.remark(store, other) == []
    for each in (own, other):
        links.write(each, Link("theirs", "context"))
        task_decisions.cancel(store, planner, each)
    assert a2a.remark(store, own) == [f"The server gets it with: gitmem task wait {own}"]
    assert a2a.remark(store, other) == []
    said = "The server is not told that it is canceled: another clone has called it."
    assert a2a.cancel_there(store, [own, other]) == [said]
    links.add_server(SERVER, "http://127.0.0.1:9", "token")
    (said,) = a2a.cancel_there(store, [own])
    assert "GITMEM_A2A_TOKEN is not the token that it got" in said and f"gitmem task wait {own}" in said
    assert links.read(own) is not None
