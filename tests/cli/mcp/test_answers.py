"""What an answer costs, what it leaves out, and what it says of unread signals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gitmem
from cli.mcp import tool_results, tools
from gitmem.outcome import Outcome

from .conftest import Serve, fields, text, within

Run = Callable[..., Any]
WORDS = "Split the parser before Friday? It is longer than the title of a proposal."
FINDING = "The parser drops tabs in quoted cells"
SLACK = 1_000  # bytes of next commands and the notice


class Long(Outcome):
    """An outcome with everything that peers can make long."""

    __slots__ = ("entries", "states", "message", "next")

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = [{"names": ["x"] * 300}] * 1_000
        self.states = {f"reader-{number}": "unread" for number in range(500)}
        self.message = "é" * 40_000
        self.next = ["gitmem inbox"]


def wire(result: Any) -> str:
    return str(result.model_dump_json(by_alias=True, exclude_none=True))


def test_words_of_a_message_stand_once_in_an_answer(serve: Serve) -> None:
    """As text, or with --json as fields: a client that shows its model both, or only one, shows them once."""

    async def talk() -> None:
        async with serve() as sender, serve() as machine, serve(json=False) as model:
            await machine.call_tool("session", {"name": "Curie"})
            await model.call_tool("session", {"name": "Noether"})
            sent = {"message": WORDS, "to": ["Curie", "Noether"], "intent": "PROPOSE", "requires_ack": True}
            thread = fields(await sender.call_tool("signal", sent))["signal"]["thread_id"]
            for tool, given in (("inbox", {}), ("thread", {"id": thread})):
                shown = await model.call_tool(tool, given)
                assert (wire(shown).count(WORDS), shown.structured_content) == (1, None), tool
                shown = await machine.call_tool(tool, given)
                assert (wire(shown).count(WORDS), text(shown)) == (1, tool_results.IN_FIELDS), tool
            await sender.call_tool("mem", {"action": "create", "text": FINDING})
            for tool, given in (("mem", {"action": "search", "text": "parser"}), ("mem", {"action": "context"}), ("mem", {"action": "recover"})):  # fmt: skip
                shown = await model.call_tool(tool, given)
                assert wire(shown).replace("«", "").replace("»", "").count(FINDING) == 1, tool
            for each in (await model.list_tools()).tools:
                assert each.output_schema is None  # a tool that has one must answer with fields

    within(talk)


def test_an_answer_is_cut_in_the_middle_and_says_so() -> None:
    """Head and tail stay, entries are counted by the name of their list, and the first command shows everything."""
    lines = ["head", *(f"entry {number}" for number in range(5_000)), "x" * 50_000, "last"]
    made = tool_results.of(Long(), lines, whole="gitmem all")
    said = text(made)

    assert len(said.encode()) < tool_results.TEXT_BYTES + SLACK
    assert said.startswith("head\nentry 0\n") and "\nlast\nnext: gitmem all\nnext: gitmem inbox" in said
    assert " lines not shown …" in said and "bytes not shown" in said
    found = fields(made)
    assert found["not_shown"] == {"entries": 800, "names": 20_000, "states": 300}
    assert (len(found["entries"]), len(found["states"])) == (tool_results.ENTRIES, tool_results.ENTRIES)
    assert len(found["message"].encode()) < tool_results.TEXT_BYTES + SLACK
    assert found["next"][0] == "gitmem all"

    short = tool_results.of(Long(), ["one", "two"], most=10**9)
    assert text(short) == "one\ntwo\nnext: gitmem inbox"


def test_no_words_stand_below_the_head_of_another_signal_after_a_cut() -> None:
    """A peer who chooses the length of a message chooses where the cut is."""
    of_curie = ["[sig-1 · Curie]", *["| let us wait"] * 3_000]
    of_mallory = ["", "[sig-2 · Mallory]", *["| push to main", "", "  indented"] * 200]
    for end in ([], ["", "[sig-3 · Noether]", "| no"], ["Planck: pending"]):
        said = text(tool_results.of(Long(), [*of_curie, *of_mallory, *end]))
        _, cut, after = said.partition(" lines not shown …\n")
        first = next(line for line in after.split("\n") if line)
        assert cut and first[0] not in "| ", first
        assert "\n".join(end).strip("\n") in after


@pytest.mark.parametrize("message", ["y" * 60_000, "\u202e" * 20_000, "\0" * 60_000])
def test_no_number_of_long_texts_makes_the_fields_long(message: str) -> None:
    """Also if each character becomes six; texts get shorter, and none is left out."""
    many = Long()
    many.entries = [{"id": number, "message": message} for number in range(150)]
    found = fields(tool_results.of(many, ["head"]))

    assert len(json.dumps(found)) <= tool_results.FIELDS_BYTES + SLACK
    assert [each["id"] for each in found["entries"]] == list(range(150))
    assert all("bytes not shown" in each["message"] for each in found["entries"])


def test_no_list_of_a_peer_makes_an_answer_long(serve: Serve, shop: Path) -> None:
    """Hundreds of recipients, sessions, changes of a node, initiatives and long messages: each answer has its limit."""
    with gitmem.open(str(shop), identity="claude:flood:one") as log:
        log.sessions.start(name="Flood", wu="WU-7")
        with log.batch():
            many = [f"claude:flood:reader{number}" for number in range(400)]
            asked = {
                "to": many,
                "allow_unseen": True,
                "intent": "PROPOSE",
                "requires_ack": True,
                "wu": "WU-7",
            }
            thread = log.signals.send("shall we?", **asked).signal["thread_id"]  # type: ignore[arg-type]
            for number in range(30):
                log.signals.send("y" * 20_000, thread=thread, to=many[:20], initiative=f"INIT-{number}", wu="WU-7",
                                 allow_unseen=True)  # fmt: skip
            node = log.memory.create("z" * 30_000, wu="WU-7").node.id
            for number in range(tool_results.ENTRIES + 20):
                log.memory.update(node, reason=f"change {number} " + "w" * 200)

    async def talk() -> None:
        async with serve() as machine, serve(json=False) as model:
            show = {"action": "show", "id": [node]}
            calls: list[tuple[str, dict[str, Any]]] = [
                ("thread", {"id": thread, "limit": 100}), ("converged", {"id": thread}), ("mem", show),
                ("gate", {"wu": "WU-7"}), ("receipts", {"limit": 200}), ("roster", {"limit": 200}), ("mem", {"action": "search", "text": "change"}),
                ("mem", {"action": "ready", "wu": "WU-7"}), ("mem", {"action": "update", "id": [node], "reason": "again"}),
            ]  # fmt: skip
            for tool, given in calls:
                said = text(await model.call_tool(tool, given))
                assert len(said.encode()) < tool_results.TEXT_BYTES + SLACK, tool
            whole = {
                "thread": f"thread {thread}",
                "converged": f"converged {thread}",
                "mem": f"show {node}",
            }
            for tool, command in whole.items():
                said = text(await model.call_tool(tool, dict(calls[:3])[tool]))
                assert "not shown" in said and command in said.partition("\nnext: ")[2].split("\n")[0], tool
            assert "0 of 400 recipients agreed" in text(await model.call_tool("converged", {"id": thread}))
            for tool in ("thread", "converged"):
                said = text(
                    await model.call_tool(
                        tool, {"id": thread, "limit": 1} if tool == "thread" else {"id": thread}
                    )
                )
                assert "370 more recipients not shown, 370 of them pending" in said, tool
                assert len(said.encode()) < 4_000, tool
            found = fields(await machine.call_tool("converged", {"id": thread}))
            assert found["not_shown"] == {"recipients": 200, "pending": 200}
            assert (
                len(fields(await machine.call_tool("mem", {"action": "show", "id": node}))["history"])
                == tool_results.ENTRIES
            )

    within(talk)


def test_every_answer_with_words_of_a_peer_says_so(serve: Serve) -> None:
    """Also where they are an excerpt: who waits for whom, what waits for the caller, and what was proposed."""

    async def talk() -> None:
        async with serve() as mallory, serve(json=False) as curie:
            await curie.call_tool("session", {"name": "Curie"})
            await mallory.call_tool("session", {"name": "Mallory"})
            await mallory.call_tool("session", {"text": FINDING})
            await mallory.call_tool("delegate", {"text": FINDING, "to": "Curie"})
            asked = {"message": FINDING, "to": ["Curie"], "intent": "PROPOSE", "requires_ack": True}
            id = fields(await mallory.call_tool("signal", asked))["signal"]["signal_id"]
            await curie.call_tool("mem", {"action": "checkpoint", "text": "x"})
            calls: list[tuple[str, dict[str, Any]]] = [
                ("roster", {}), ("session", {}), ("converged", {"id": id}), ("handoff", {"to": "Mallory", "dry_run": True}),
            ]  # fmt: skip
            for tool, given in calls:
                said = text(await curie.call_tool(tool, given))
                assert said.startswith(tool_results.PEERS) and FINDING[:30] in said, (tool, said)

    within(talk)


def test_every_tool_but_the_inbox_says_what_is_unread(serve: Serve) -> None:
    """Those that only read, those that write, and those that wait."""

    async def talk() -> None:
        async with serve() as planck, serve() as curie:
            await planck.call_tool("session", {"name": "Planck"})
            await curie.call_tool("session", {"name": "Curie", "wu": "WU-7"})
            node = fields(await curie.call_tool("mem", {"action": "create", "text": FINDING}))["node"]["id"]
            await curie.call_tool("mem", {"action": "checkpoint", "text": "x"})  # something to hand over
            sent = fields(await planck.call_tool("signal", {"message": WORDS, "to": ["Curie"]}))["signal"]
            given: dict[str, dict[str, Any]] = {
                "signal": {"message": "x", "to": ["Planck"]}, "thread": {"id": sent["thread_id"]},
                "converged": {"id": sent["thread_id"]}, "mem": {"action": "show", "id": [node]},
                "call": {"agent": "Planck", "text": "x", "no_wait": True},
                "delegate": {"text": "x", "to": "role:implementer/test", "wu": "WU-7"}, "handoff": {"to": "Planck", "dry_run": True},
                "why": {"target": "HEAD"},
            }  # fmt: skip
            for tool in tools.NAMES:
                if tool not in ("inbox", "sync"):  # a sync needs a remote
                    answer = await curie.call_tool(tool, given.get(tool, {}))
                    assert fields(answer)["notice"]["unread"] == 1, tool
            wrong = (await curie.call_tool("sync")).structured_content
            assert wrong is not None and wrong["notice"]["unread"] == 1

    within(talk)


def test_an_error_says_what_is_unread_too(serve: Serve) -> None:
    """An unknown tool, a wrong argument, an unknown name; and outside of a repository the error alone."""

    async def talk() -> None:
        async with serve() as planck, serve() as curie:
            await planck.call_tool("session", {"name": "Planck"})
            await curie.call_tool("session", {"name": "Curie"})
            await planck.call_tool("signal", {"message": WORDS, "to": ["Curie"]})
            calls: list[tuple[str, dict[str, Any]]] = [
                ("mem", {"action": "serch"}), ("roster", {"limit": 0}), ("signal", {"message": "x", "to": ["Cury"]}),
                ("converged", {"id": "thread-000000000000"}), ("sync", {"remotes": ["nowhere"]}), ("inbox", {"thread": "nowhere"}),
            ]  # fmt: skip
            for tool, given in calls:
                wrong = await curie.call_tool(tool, given)
                assert wrong.is_error and wrong.structured_content is not None, tool
                assert wrong.structured_content["notice"]["unread"] == 1, tool
                assert text(wrong).count("1 unread: gitmem") == 1, tool

    within(talk)


def test_the_notice_counts_no_signal_of_another_workspace(
    serve: Serve, gitmem: Run, shop: Path, git: Callable[..., str]
) -> None:
    """Its reader could not see it in the inbox."""
    started = {}
    for name, label in (("Planck", "north"), ("Curie", "south"), ("Noether", "north")):
        git("config", "gitmem.workspace", label, cwd=shop)
        started[name] = gitmem("session", "start", "--name", name)["session_id"]
    gitmem("signal", "For the north", "--broadcast", GITMEM_SESSION=started["Planck"])

    async def talk() -> None:
        async with (
            serve(GITMEM_SESSION=started["Curie"]) as curie,
            serve(GITMEM_SESSION=started["Noether"]) as noether,
        ):
            assert fields(await noether.call_tool("roster"))["notice"]["unread"] == 1
            assert "notice" not in fields(await curie.call_tool("roster"))
            wrong = await curie.call_tool("thread", {"id": "nowhere"})
            assert wrong.is_error and "notice" not in (wrong.structured_content or {})

    within(talk)
