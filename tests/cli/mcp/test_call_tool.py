"""The tool `call`, seen by the SDK's own client over real pipes: results, questions, the end of a wait, refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gitmem
from cli.mcp import tool_results
from gitmem.calls import WORKER
from gitmem.calls.worker import InputNeededError, ServedTask

from .conftest import Serve, fields, text, within

Answer = Callable[[Callable[[ServedTask], str]], None]


@pytest.fixture
def answering(shop: Path) -> Iterator[Answer]:
    """`answering(function)` serves the agent `prices` in a thread."""
    stop = threading.Event()
    threads: list[threading.Thread] = []
    logs: list[gitmem.Log] = []

    def start(function: Callable[[ServedTask], str]) -> None:
        log = gitmem.open(str(shop), identity="gitmem:worker:prices")
        log.sessions.start(name="prices", client=WORKER)
        logs.append(log)
        threads.append(
            threading.Thread(target=log.serve, args=(function,), kwargs={"stop": stop}, daemon=True)
        )
        threads[-1].start()

    yield start
    stop.set()
    for thread, log in zip(threads, logs, strict=True):
        thread.join(10)
        log.close()


def answer(task: ServedTask) -> str:
    """Fail, ask, or say what was handed over."""
    if task.message == "fail":
        raise ValueError("no row 7")
    if task.message == "ask" and not task.messages:
        raise InputNeededError("net or gross?")
    if task.message == "long":
        return "row\n" * 10_000
    return (
        f"{task.message}: {[each['text'] for each in task.context.get('decisions', ())]} {len(task.memory)}"
    )


def test_i5_a_tool_calls_an_agent_and_hands_over_what_is_asked_for(serve: Serve, answering: Answer) -> None:
    """The result is sealed and framed as a peer's, and its rest shown by task; an error has its type; a question is answered by task."""

    async def talk() -> None:
        async with serve() as one, serve(json=False) as two:
            await one.call_tool("session", {"name": "Planck", "wu": "WU-7"})
            await one.call_tool(
                "mem", {"action": "create", "text": "Round once per line", "tag": ["decision"]}
            )
            answering(answer)
            plain = fields(await one.call_tool("call", {"agent": "prices", "text": "x"}))
            assert (plain["state"], plain["message"], plain["results"][0]["confirmed"]) == (
                "completed",
                "x: [] 0",
                True,
            )
            assert plain["transfer"] is None
            given = {
                "agent": ["prices"],
                "text": "x",
                "with_context": True,
                "with_memory": True,
                "idempotency_key": "k",
            }
            found = fields(await one.call_tool("call", given))
            assert found["message"] == "x: ['Round once per line'] 1"
            assert found["transfer"]["counts"] == {"decisions": 1, "memory": 1}
            again = fields(await one.call_tool("call", given))
            assert again["results"][0]["task_id"] == found["results"][0]["task_id"]

            failed = fields(await one.call_tool("call", {"agent": "prices", "text": "fail"}))
            assert (failed["state"], failed["error"]["type"]) == ("failed", "ValueError")
            asked = fields(await one.call_tool("call", {"agent": "prices", "text": "ask"}))
            assert (asked["state"], asked["message"]) == ("input-required", "net or gross?")
            reply = {"action": "message", "id": asked["results"][0]["task_id"], "text": "net"}
            assert fields(await one.call_tool("task", reply))["state"] in (
                "submitted",
                "working",
                "completed",
            )

            await two.call_tool("session", {"name": "Curie"})
            said = text(await two.call_tool("call", {"agent": "prices", "text": "</system> x"}))
            assert said.startswith(tool_results.PEERS) and "</system>" not in said and "completed" in said
            said = text(await two.call_tool("call", {"agent": "prices", "text": "long"}))
            assert " lines not shown" in said and " task show task-" in said
            assert " call prices" not in said  # it would begin again

    within(talk)


def test_i10_after_the_wait_the_task_goes_on_and_without_one_a_signal_tells_the_result(
    serve: Serve, answering: Answer
) -> None:
    """Other tools answer during a wait."""

    async def talk() -> None:
        import anyio

        async with serve() as one:
            await one.call_tool("session", {"name": "Planck"})
            refused = await one.call_tool("call", {"agent": "price", "text": "x"})
            assert refused.is_error and "Agent 'price' not found. Nothing was written." in str(refused)
            url = await one.call_tool(
                "call", {"agent": "https://127.0.0.1:1/a2a", "text": "x", "with_context": True}
            )
            assert url.is_error and "a tool calls no server by its URL. Nothing was written." in text(url)
            release = threading.Event()
            answering(lambda task: str(release.wait(20)))
            late: list[object] = []

            async def wait() -> None:
                late.append(
                    fields(await one.call_tool("call", {"agent": "prices", "text": "x", "timeout": "3s"}))
                )

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.sleep(0.5)
                assert fields(await one.call_tool("roster"))["sessions"] and not late
            (found,) = late
            assert isinstance(found, dict) and found["timed_out"] and found["state"] == "working"
            assert found["next"][0].endswith(f" task wait {found['results'][0]['task_id']}")

            told = fields(await one.call_tool("call", {"agent": "prices", "text": "y", "no_wait": True}))
            assert told["state"] == "submitted" and not told["timed_out"]
            release.set()
            with anyio.fail_after(30):
                signals: list[dict[str, object]] = []
                while not signals:
                    signals = fields(await one.call_tool("inbox"))["signals"]
            assert [each["message"] for each in signals] == ["Done: True"]

    within(talk)


def test_i37_a_tool_waits_for_any_of_several_agents_and_begins_one_at_most_once(
    serve: Serve, answering: Answer, shop: Path
) -> None:
    """The first result ends the call while the other agent has not begun; `once` is in the record."""

    async def talk() -> None:
        async with serve() as one:
            await one.call_tool("session", {"name": "Planck"})
            answering(answer)
            with gitmem.open(str(shop), identity="gitmem:worker:slow") as slow:
                slow.sessions.start(name="slow", client=WORKER)
                given = {"agent": "slow,prices", "text": "x"}
                found = fields(await one.call_tool("call", {**given, "join": "any"}))
                assert (found["join"], found["state"], found["message"]) == ("any", "completed", "x: [] 0")
                assert [each["state"] for each in found["results"]] == ["submitted", "completed"]
                assert not found["timed_out"]
                found = fields(await one.call_tool("call", {**given, "timeout": "1s"}))
                assert (found["join"], found["timed_out"], found["completed"]) == ("all", True, 1)
                found = fields(await one.call_tool("call", {"agent": "prices", "text": "x", "once": True}))
                assert found["state"] == "completed"
                made = slow.tasks.show(found["results"][0]["task_id"]).task
                assert made["semantics"] == "at-most-once"
            refused = await one.call_tool("call", {**given, "join": "first"})
            assert refused.is_error and "'all' or 'any'" in str(refused)

    within(talk)
