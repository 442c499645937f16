"""The server's life: who acts in it, what counts as delivered, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli import main as front
from cli.mcp import tool_results, tools
from cli.mcp.calls import CallEnvironment, McpSession, SignalDelivery, ToolCalls
from gitmem import repo
from gitmem.agents import delivery as deliveries
from gitmem.git.port import DulwichGit
from gitmem.open_store import DOMAIN
from gitmem.store import Store
from tests.conftest import Git

from .conftest import Raw, environment, program

Start = Callable[..., Raw]
Gitmem = Callable[..., Any]


def said(message: Any) -> Any:
    return message["result"]["structuredContent"]


def open_store(shop: Path) -> Store:
    """The store as another process has it."""
    found = repo.find(str(shop))
    return Store(found, DulwichGit(found.common), DOMAIN, machine="test")


def unread(gitmem: Gitmem, reader: str) -> int:
    return int(gitmem("inbox", "--count", "--for", reader, GITMEM_SESSION="")["unread"])


def mail_for(agent: Raw, gitmem: Gitmem, count: int = 1) -> str:
    """Signals for the agent's session; its reader identity."""
    agent.call("session", 1)
    reader = str(said(agent.answer(1))["reader_identity"])
    for n in range(count):
        gitmem("signal", f"Number {n}", "--to", reader, "--as", "human:person@example.org")
    return reader


def test_a_client_without_a_session_gets_one_of_its_own(raw: Start, gitmem: Gitmem) -> None:
    """It does not act as the session that happens to be alone in its worktree, and does not read its mail."""
    planck = gitmem("session", "start", "--name", "Planck")
    gitmem("signal", "For Planck", "--to", "Planck", "--as", "human:person@example.org")
    agent = raw()
    agent.call("roster", 1)
    assert [each["display_name"] for each in said(agent.answer(1))["sessions"]] == [
        "Planck"
    ]  # a look starts none

    agent.call("session", 2, wu="WU-7")  # the first call that acts
    mine = said(agent.answer(2))
    assert f"gitmem --as {mine['session_id']} roster" in mine["next"]
    agent.call("inbox", 3)
    read = said(agent.answer(3))

    assert read["reader"] == mine["reader_identity"] != planck["reader_identity"]
    assert read["signals"] == []
    assert unread(gitmem, "Planck") == 1
    listed = {each["session_id"]: each["client"] for each in gitmem("roster")["sessions"]}
    assert listed == {planck["session_id"]: None, mine["session_id"]: "raw"}


def test_a_session_of_the_harness_is_shared_with_its_shell(raw: Start, gitmem: Gitmem) -> None:
    """Claude Code hands its session id to servers and to shells: both are the same one, before and after."""
    client_session = {"CLAUDE_CODE_SESSION_ID": "0f9d3c5e-harness"}
    agent = raw(**client_session)
    agent.call("session", 1)
    started = said(agent.answer(1))["session_id"]

    assert gitmem("whoami", **client_session)["session_id"] == started
    assert agent.end() == 0
    assert gitmem("whoami", **client_session)["session_id"] == started  # the harness's own end ends it


@pytest.mark.parametrize("how", ["variable", "option"])
def test_a_session_that_is_named_is_used(raw: Start, gitmem: Gitmem, how: str) -> None:
    """GITMEM_SESSION and --as, as everywhere."""
    planck = gitmem("session", "start", "--name", "Planck")["session_id"]
    agent = raw(GITMEM_SESSION=planck) if how == "variable" else raw(None, "--as", planck)

    agent.call("session", 1)

    assert said(agent.answer(1))["session_id"] == planck
    assert agent.end() == 0
    assert [each["status"] for each in gitmem("roster", "--all")["sessions"]] == ["live"]


def test_the_reply_line_answers_as_the_reader_who_was_named(raw: Start, gitmem: Gitmem) -> None:
    """In the fields and in the text: the shell of the agent knows nothing of --as."""
    planck = gitmem("session", "start", "--name", "Planck")["session_id"]
    other = gitmem("session", "start", "--agent-identity", "a:b:c")["session_id"]
    sent = gitmem("signal", "Hello", "--to", planck, "--as", other)["signal"]["signal_id"]
    agent, other = raw(None, "--as", planck), raw(None, "--as", planck, json=False)

    agent.call("inbox", 1, no_mark=True)
    line = said(agent.answer(1))["signals"][0]["reply_line"]
    other.call("inbox", 1)

    assert line.endswith(f"To reply: gitmem --as {planck} reply {sent} - <<'EOF'")
    assert line in other.answer(1)["result"]["content"][0]["text"]


@pytest.mark.deep
@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGINT"])
def test_it_ends_when_told_and_ends_its_session(raw: Start, gitmem: Gitmem, how: str) -> None:
    """Exit status 0, nothing but JSON on its output, and the name is free again."""
    agent = raw()
    agent.call("session", 1)
    agent.answer(1)

    if how == "end of input":
        status = agent.end()
    else:
        agent.process.send_signal(getattr(signal, how))
        status = agent.process.wait(60)

    assert status == 0
    assert agent.process.stdout is not None and agent.process.stderr is not None
    agent.said += agent.process.stdout.readlines()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in agent.said)
    assert agent.process.stderr.read() == b""
    assert [each["status"] for each in gitmem("roster", "--all")["sessions"]] == ["ended"]


def test_a_session_that_somebody_ended_is_replaced(raw: Start, gitmem: Gitmem) -> None:
    """The client can't start one: the next call does."""
    agent = raw()
    agent.call("session", 1)
    first = said(agent.answer(1))["session_id"]
    gitmem("session", "end", "--as", first)

    agent.call("signal", 2, message="Still here", broadcast=True)

    assert said(agent.answer(2))["signal"]["sender_session"] not in (first, None)


def test_a_model_can_end_its_session_with_a_summary(raw: Start, gitmem: Gitmem) -> None:
    """The roster has the summary; the next call starts another session, and the server ends that one."""
    agent = raw()
    agent.call("session", 1, wu="WU-7")
    first = said(agent.answer(1))["session_id"]
    agent.call("session", 2, wu="WU-8", summary="Reader done")
    assert "Missing action of session" in agent.answer(2)["result"]["content"][0]["text"]
    agent.call("session", 3, summary="Reader done,\nwriter half", done=True)
    ended = said(agent.answer(3))
    agent.call("roster", 3)
    assert first not in str(said(agent.answer(3))["next"])  # nothing can act as it
    agent.call("session", 4)
    second = said(agent.answer(4))["session_id"]

    assert (ended["session_id"], ended["summary"]) == (first, "Reader done, writer half")
    assert "WU-7 is done" in ended["remark"]
    assert second != first
    assert agent.end() == 0
    listed = {each["session_id"]: each for each in gitmem("roster", "--all")["sessions"]}
    assert {id: each["summary"] for id, each in listed.items()} == {
        first: "Reader done, writer half",
        second: None,
    }
    assert {each["status"] for each in listed.values()} == {"ended"}


def test_what_was_written_to_the_client_is_marked_and_only_that(raw: Start, gitmem: Gitmem) -> None:
    """Read once, marked; what was asked for with no_mark stays unread."""
    agent = raw()
    reader = mail_for(agent, gitmem, 2)

    agent.call("inbox", 2, no_mark=True)
    assert len(said(agent.answer(2))["signals"]) == 2
    agent.call("roster", 3)
    agent.answer(3)  # behind any mark
    assert unread(gitmem, reader) == 2

    agent.call("inbox", "4")
    assert len(said(agent.answer("4"))["signals"]) == 2
    agent.call("roster", 5)
    agent.answer(5)
    assert unread(gitmem, reader) == 0


def test_what_was_cancelled_was_not_shown(raw: Start, gitmem: Gitmem, shop: Path) -> None:
    """The user pressed Escape while the server waited for its turn: no answer, no mark, and the turn is free."""
    agent = raw()
    reader = mail_for(agent, gitmem, 2)
    other = open_store(shop)

    with deliveries.delivery_lock(other, reader) as mine:
        assert mine is True
        agent.call("inbox", 2)
        agent.tell("notifications/cancelled", requestId=2, reason="Escape")
        agent.ask("ping", {}, 3)
        assert agent.read()["id"] == 3  # the cancellation has arrived
    agent.call("roster", 4)
    assert agent.read()["id"] == 4

    with deliveries.delivery_lock(other, reader, wait_seconds=deliveries.WAIT_SECONDS) as mine:
        assert mine is True
    assert unread(gitmem, reader) == 2


def test_a_client_that_went_away_was_shown_nothing(raw: Start, gitmem: Gitmem, shop: Path) -> None:
    """Nobody takes the answer: the signals stay unread, and the next one to look gets them."""
    agent = raw()
    reader = mail_for(agent, gitmem)
    assert agent.process.stdout is not None
    agent.process.stdout.close()

    agent.call("inbox", 2)
    agent.end()

    assert unread(gitmem, reader) == 1


class Request:
    """The context of a call without a client."""

    def __init__(self, id: int) -> None:
        self.request_context = self
        self.session = self
        self.client_params = None
        self.request_id = id

    async def report_progress(self, *progress: object) -> None:
        """Nobody reads it."""


def test_no_other_thread_uses_or_opens_the_store_of_a_call(shop: Path) -> None:
    """The event loop shortens addresses of errors, and may not wait for the disk; the store of an ended call stays closed."""
    address = "codex:implementer:prices@3f9k2m7q1x0z8w4n"
    with CallEnvironment(McpSession(str(shop), None)) as at:
        at.store()
        asked = threading.Thread(target=lambda: shown.append(at.short_address(address)))
        shown: list[str] = []
        asked.start()
        asked.join()
        assert (shown, at._shown) == ([address], {})
    assert at.short_address(address) == address and at._store is None


def test_a_cancelled_call_waits_no_more(shop: Path, gitmem: Gitmem) -> None:
    """Its thread ends: it would hold a store for the time that a model has chosen, and accept a result that nobody reads."""
    import asyncio

    gitmem("session", "start", "--name", "Planck")
    asked = (
        "signal",
        "Shall we?",
        "--to",
        "Planck",
        "--intent",
        "PROPOSE",
        "--as",
        "human:person@example.org",
    )
    id = gitmem(*asked)["signal"]["signal_id"]

    async def talk() -> None:
        session = McpSession(str(shop), None)
        calls: Any = ToolCalls(session, SignalDelivery(session), session.worker, tools.NAMES)
        for tool, given in (("converged", {"id": id, "wait": "1h"}), ("call", {"agent": "Planck", "text": "x", "timeout": "1h"})):  # fmt: skip
            waiting = asyncio.create_task(calls(Request(1), tool, given))
            found: list[threading.Thread] = []
            while not found:
                assert not (await asyncio.wait([waiting], timeout=0.1))[0]
                found = [each for each in threading.enumerate() if each.name == f"gitmem mcp {tool}"]
            waiting.cancel()
            await asyncio.to_thread(found[0].join, 20)
            assert not found[0].is_alive()
        session.close()

    asyncio.run(talk())


def test_a_server_of_a_task_keeps_no_other_call_waiting(shop: Path, gitmem: Gitmem) -> None:
    """It is a stranger's, and may take the time that it likes."""
    import asyncio

    gitmem("session", "start", "--name", "Planck")
    asked, told = threading.Event(), threading.Event()

    class SlowCalls(ToolCalls):
        def _run(self, at: Any, path: str, values: Any) -> Any:
            if path == "task cancel":
                asked.set()
                told.wait(60)
            return super()._run(at, path, values)

    async def talk() -> None:
        session = McpSession(str(shop), None)
        calls: Any = SlowCalls(session, SignalDelivery(session), session.worker, tools.NAMES)
        made = await calls(Request(1), "delegate", {"text": "x", "to": "Planck"})
        id = made.structured_content["task"]["task_id"]
        waiting = asyncio.create_task(calls(Request(2), "task", {"action": "cancel", "id": id}))
        assert await asyncio.to_thread(asked.wait, 20)
        await asyncio.wait_for(calls(Request(3), "roster", {}), 20)
        assert not waiting.done()
        told.set()
        assert (await waiting).structured_content["state"] == "canceled"
        session.close()

    asyncio.run(talk())


def test_until_it_is_marked_the_turn_is_ours(shop: Path, gitmem: Gitmem) -> None:
    """A hook that runs while the answer is on its way shows nothing; when it did not arrive, it is unread again."""
    import asyncio

    async def talk() -> None:
        session = McpSession(str(shop), None)
        delivery = SignalDelivery(session)
        calls: Any = ToolCalls(session, delivery, session.worker, tools.NAMES)
        me = (await calls(Request(1), "session", {})).structured_content
        reader = str(me["reader_identity"])
        gitmem("signal", "Hello", "--to", reader, "--as", "human:person@example.org")
        other = open_store(shop)
        for id, good, left in ((3, False, 1), (4, True, 0)):
            read = await calls(Request(id), "inbox", {})
            assert len(read.structured_content["signals"]) == 1
            with deliveries.delivery_lock(other, reader) as mine:
                assert mine is False
            delivery.written(id, good)
            await delivery.wait_until_marked()
            with deliveries.delivery_lock(other, reader) as mine:
                assert mine is True
            after = await calls(Request(9), "inbox", {"no_mark": True})
            delivery.written(9, True)
            assert len(after.structured_content["signals"]) == left
        session.close()

    asyncio.run(talk())


def test_a_server_that_is_killed_lost_nothing_that_it_acknowledged(raw: Start, gitmem: Gitmem) -> None:
    """kill -9 in the middle of many calls: each answered signal is in the log, once."""
    agent = raw()
    for n in range(40):
        agent.call("signal", n + 1, message=f"Number {n}", broadcast=True)
    acknowledged = [said(agent.answer(n + 1))["signal"]["signal_id"] for n in range(7)]

    agent.process.kill()
    agent.process.wait(60)

    logged = [each.get("signal_id") for each in gitmem("log", "-n", "100")["entries"]]
    assert set(acknowledged) <= set(logged)
    assert len([id for id in logged if id]) == len({id for id in logged if id})
    assert gitmem("doctor")["findings"] is not None


def test_garbage_does_no_harm(raw: Start) -> None:
    """Lines that are no JSON, no UTF-8, no request: each gets an error, with its id if it has one; the next call is answered."""
    agent = raw()
    assert agent.process.stdin is not None
    agent.process.stdin.write(
        b'not json\n\xff\xfe\n{"jsonrpc":"2.0"}\n{"jsonrpc":"2.0","id":5}\n{"jsonrpc":"2.0","id":"six","method":7}\n'
        b'{"jsonrpc":"2.0","id":[7]}\n\n[]\n' + b"x" * 200_000 + b"\n"
    )

    agent.call("roster", 1)

    assert said(agent.answer(1))["sessions"] == []
    errors = [each for each in map(json.loads, agent.said) if "error" in each]
    refused = {
        code: [each["id"] for each in errors if each["error"]["code"] == code] for code in (-32700, -32600)
    }
    assert refused == {-32700: [None] * 3, -32600: [None, 5, "six", None, None]}


def test_without_the_sdk_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shop: Path
) -> None:
    """A sentence and exit status 2, for `pip install gitmem-coord` alone."""
    for name in [name for name in sys.modules if name.startswith("cli.mcp.") or name == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("cli.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp_types", None)

    status = front.main(["mcp"])

    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert "pip install 'gitmem-coord[mcp]'" in said.err and "Traceback" not in said.err
    # What was installed as a tool is in an environment that pip does not reach.
    assert "pipx inject gitmem-coord 'mcp>=2,<3'" in said.err
    assert "uv tool install 'gitmem-coord[mcp]'" in said.err


def test_nothing_else_needs_the_sdk(git: Git, shop: Path) -> None:
    """The app is imported without it: `gitmem mcp` alone costs that second."""
    code = "import sys; from cli import app, main; app.build(); main.main(['roster']); print({'mcp', 'anyio'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=shop, env=environment(), capture_output=True, text=True, timeout=60
    )  # fmt: skip

    assert done.stdout.splitlines()[-1] == "set()", done.stderr


def test_closed_streams_are_a_sentence(shop: Path) -> None:
    """Somebody runs it by hand, or from a script that closed them."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *program(shop, "mcp")], cwd=shop, env=environment(), capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (2, "")
    assert "output is closed" in done.stderr and "Traceback" not in done.stderr


def test_the_pipes_are_for_the_protocol_alone(tmp_path: Path) -> None:
    """What a library prints does not break a message, and who reads standard input takes none away."""
    code = (
        "import os, sys; from cli.mcp import server; input, output = server.claim()\n"
        "print('stray', flush=True); assert sys.stdin.read() == ''\n"
        "os.system('echo from a child'); os.write(output, os.read(input, 9))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), input=b"a message", capture_output=True,
        timeout=60,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, b"a message"), done.stderr
    assert done.stderr.split(b"\n") == [b"stray", b"from a child", b""]


@pytest.mark.deep
def test_a_server_decides_for_nobody_else(raw: Start, gitmem: Gitmem) -> None:
    """Its own session may agree; started with --as, below another session, it may not."""
    planck = gitmem("session", "start", "--name", "Planck")["session_id"]
    agent = raw()
    agent.call("session", 1)
    reader = str(said(agent.answer(1))["reader_identity"])
    asked = [
        gitmem("signal", "Shall we?", "--to", to, "--intent", "PROPOSE", "--as", "human:person@example.org")[
            "signal"
        ]
        for to in (reader, "Planck")
    ]
    agent.call("signal", 2, message="agreed", id=asked[0]["signal_id"], agree=True)
    assert said(agent.answer(2))["signal"]["sender_identity"] == reader

    other = gitmem("session", "start", "--name", "Noether")["session_id"]
    posing = raw(None, "--as", planck, GITMEM_SESSION=other)
    posing.call("signal", 3, message="agreed", id=asked[1]["signal_id"], agree=True)
    assert said(posing.answer(3))["error"]["code"] == "another-identity"
    assert gitmem("thread", asked[1]["thread_id"])["recipients"][0]["decision"] == "pending"


def test_an_agent_keeps_its_mailbox_over_a_restart_of_its_server(raw: Start, gitmem: Gitmem) -> None:
    """By an identity: the next server offers it once, in its first answer, and the tool `session` takes it."""
    agent = raw(json=False)
    agent.call("session", 1, agent_identity="test:worker:kilby", name="Kilby")
    first = agent.answer(1)["result"]["content"][0]["text"]
    agent.end()
    gitmem("signal", "The parser drops tabs", "--to", "test:worker:kilby", "--as", "human:person@example.org")

    again = raw(json=False)
    texts = []
    for number in (1, 2):
        again.call("inbox", number)
        texts.append(again.answer(number)["result"]["content"][0]["text"])
    taken = {"agent_identity": "test:worker:kilby", "name": "Kilby"}
    again.call("session", 3, **taken)
    again.answer(3)
    again.call("inbox", 4)
    read = again.answer(4)["result"]["content"][0]["text"]
    beside = raw()
    beside.call("session", 1)
    working = said(beside.answer(1))
    again.end()
    later = raw()
    later.call("session", 1)
    offer = said(later.answer(1))["offer"]

    assert "worked in repo" not in first  # it has an identity
    assert [text.count("Kilby worked in repo") for text in texts] == [1, 0]
    call = tool_results.call("session", taken)
    assert f"If you are Kilby, `{call}` gives you its messages." in texts[0]
    assert "drops tabs" not in texts[0] + texts[1]  # nothing is taken over by itself
    assert "drops tabs" in read
    assert "offer" not in working  # Kilby is at work beside it
    assert offer.startswith("Kilby worked in repo")


def test_a_server_with_an_identity_in_its_environment_has_its_mailbox(raw: Start, gitmem: Gitmem) -> None:
    """As docs/clients.md says."""
    variable = {"GITMEM_AGENT_IDENTITY": "test:worker:kilby"}
    first = raw(**variable)
    first.call("session", 1)
    first.answer(1)
    first.end()
    gitmem("signal", "The parser drops tabs", "--to", "test:worker:kilby", "--as", "human:person@example.org")

    again = raw(**variable)
    again.call("inbox", 1)
    found = said(again.answer(1))

    assert [each["message"] for each in found["signals"]] == ["The parser drops tabs"]
    assert "offer" not in found
