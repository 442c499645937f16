"""`gitmem call URL`: a call to an A2A server is a task of the log, like any other."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gitmem
from cli.background import program
from gitmem.calls.a2a_files import server_identity
from gitmem.errors import UsageError
from tests.a2a.conftest import Local
from tests.a2a.external_agent import External

if TYPE_CHECKING:
    from gitmem.api.log import Log

pytestmark = pytest.mark.deep


@pytest.fixture
def caller(tmp_path: Path) -> Path:
    """Another repository, whose agents know nothing of the server's."""
    path = tmp_path / "caller"
    subprocess.run(["git", "init", "--quiet", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), "config", "user.email", "person@example.org"], check=True)
    return path


def call(place: Path, url: str, text: str, token: str = "", *options: str) -> tuple[int, Any]:
    """Return the exit status and the answer of a call."""
    return say(place, "call", url, text, *(options or ("--timeout", "20s")), token=token)


def say(place: Path, *words: str, token: str = "") -> tuple[int, Any]:
    """Return the exit status and the answer of a command."""
    done = subprocess.run(
        [*program(), "--as", "human:person@example.org", "--json", *words], cwd=place,
        capture_output=True, text=True, timeout=60, env={**os.environ, "GITMEM_A2A_TOKEN": token},
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout or done.stderr.strip().splitlines()[-1])


def links(place: Path) -> list[str]:
    """Return the files by which this clone follows tasks of servers."""
    return sorted(
        each.name for each in (place / ".git/gitmem/a2a/servers").iterdir() if each.name.startswith("task-")
    )


def test_i33_an_external_server_is_called_as_any_agent_and_its_task_is_on_the_log(
    local: Local, answering: Callable[..., Log], caller: Path
) -> None:
    """Its result, its error with its text, and a refusal by its token: each is sealed."""

    def answer(task: Any) -> str:
        if task.message == "bad":
            raise ValueError("no such price")
        task.artifact("the table", name="table")
        return task.message.upper()

    answering(answer)
    status, found = call(caller, f"{local.url}/", "is it right?", local.token)
    assert (status, found["message"]) == (0, "the table\n\nIS IT RIGHT?"), found
    status, found = call(caller, f"{local.url}/", "bad", local.token)
    assert (status, found["state"]) == (1, "failed")
    assert "no such price" in found["error"]["message"]
    status, found = call(caller, f"{local.url}/", "is it right?", "gm_wrong")
    assert (status, found["state"]) == (1, "failed")
    assert local.token not in json.dumps(found)

    listed = json.loads(
        subprocess.run(
            [*program(), "--json", "task", "list"], cwd=caller, capture_output=True, text=True
        ).stdout
    )["tasks"]
    assert {each["agent"] for each in listed} == {server_identity(local.url)}
    assert sorted(each["state"] for each in listed) == ["completed", "failed", "failed"]


@pytest.mark.parametrize(
    "url", ["http://example.org/", "https://user:x@example.org/", "https://", "http://[::1", "https://a,b/"]
)
def test_i33_an_url_without_encryption_or_with_a_password_is_refused(url: str) -> None:
    """Before anything is written or sent."""
    with pytest.raises(UsageError):
        server_identity(url)


@pytest.mark.parametrize(
    ("text", "state", "question"),
    [("ask", "input-required", "net or gross?"), ("log in", "auth-required", "open the page")],
)
def test_i35_a_question_of_a_server_is_one_of_the_task_and_its_answer_goes_back(
    external: External, caller: Path, text: str, state: str, question: str
) -> None:
    """I33: the call ends with the question, in another process the answer is sent to the same task, and its result is sealed."""
    status, asked = call(caller, external.url, text)
    assert (status, asked["state"], asked["message"]) == (1, state, question), asked
    id = asked["results"][0]["task_id"]
    assert asked["next"][0].endswith(f" task show {id}")  # which prints how to answer
    assert links(caller) == [id]
    status, again = say(caller, "task", "wait", id, "--timeout", "5s")
    assert (status, again["state"], again["message"]) == (1, state, question), again
    assert say(caller, "task", "message", id, "gross")[0] == 0
    status, found = say(caller, "task", "wait", id, "--timeout", "20s")
    assert (status, found["state"], found["message"]) == (0, "completed", "GROSS"), found
    assert found["results"][0]["confirmed"]
    assert external.script.told == [text, "gross"]
    assert links(caller) == []
    status, found = say(caller, "task", "show", id)
    takes = [each for each in found["events"] if each["event"] == "take"]
    assert len(takes) == 1
    assert [each["status"] for each in say(caller, "roster", "--all")[1]["sessions"]].count("ended") >= 1


@pytest.mark.parametrize("options", [("--no-wait",), ("--timeout", "1s")])
def test_i10_what_a_server_has_is_followed_after_the_call(
    external: External, caller: Path, options: tuple[str, ...]
) -> None:
    """I33: the server gets it once, and goes on while nobody waits; a later wait gets its artifacts and its result."""
    status, found = call(caller, external.url, "slow", "", *options)
    assert status == (0 if options == ("--no-wait",) else 6), found
    assert found["warnings"] == []
    id = found["results"][0]["task_id"]
    status, found = say(caller, "task", "wait", id, "--timeout", "2s")
    assert (status, found["timed_out"]) == (6, True)
    external.script.released.set()
    status, found = say(caller, "task", "wait", id, "--timeout", "20s")
    assert (status, found["message"]) == (0, "LATE\n\nhalf"), found
    assert external.script.told == ["slow"]
    assert external.script.canceled == []
    _, shown = say(caller, "task", "show", id)
    assert "half" in json.dumps(shown)


@pytest.mark.parametrize("text", ["slow", "ask"])
def test_i10_task_cancel_tells_the_server_although_nobody_follows_it(
    external: External, caller: Path, text: str
) -> None:
    """While nobody holds the task, and while it is held with a question. If the token has changed, a later wait tells the server."""
    _, found = call(caller, external.url, text, "first", "--timeout", "1s")
    id = found["results"][0]["task_id"]
    status, found = say(caller, "task", "cancel", id)
    (why,) = [each for each in found["warnings"] if "is not told" in each]
    assert (status, f"gitmem task wait {id}" in why, external.script.canceled) == (0, True, []), found
    say(caller, "task", "wait", id, "--timeout", "5s", token="first")
    assert len(external.script.canceled) == 1
    assert (say(caller, "task", "show", id)[1]["state"], links(caller)) == ("canceled", [])

    _, found = call(caller, external.url, text, "first", "--timeout", "1s")
    id = found["results"][0]["task_id"]
    status, found = say(caller, "task", "cancel", id, token="first")
    assert (status, found.get("state"), found.get("warnings")) == (0, "canceled", []), found
    assert (len(external.script.canceled), links(caller)) == (2, [])


def test_i35_an_answer_by_task_message_reaches_the_server_at_once(external: External, caller: Path) -> None:
    """Its result comes with the next wait; with another token nothing is written."""
    _, asked = call(caller, external.url, "ask", "first")
    id = asked["results"][0]["task_id"]
    status, found = say(caller, "task", "message", id, "gross", token="other")
    assert (status, found["error"]["code"], external.script.told) == (2, "other-token", ["ask"]), found
    status, found = say(caller, "task", "message", id, "gross", token="first")
    assert (status, found["warnings"], found["next"][0].endswith(f" task wait {id}")) == (0, [], True), found
    assert external.script.told == ["ask", "gross"]
    status, found = say(caller, "task", "wait", id, "--timeout", "20s", token="first")
    assert (status, found["message"]) == (0, "GROSS"), found
    assert external.script.told == ["ask", "gross"]


def test_i33_a_token_goes_only_to_the_server_that_got_it_with_the_call(
    external: External, caller: Path
) -> None:
    """Whatever the variable has later: nothing is written or sent."""
    _, asked = call(caller, external.url, "ask", "first")
    id = asked["results"][0]["task_id"]
    status, found = say(caller, "task", "message", id, "gross", token="of another server")
    assert (status, found["error"]["code"]) == (2, "other-token"), found
    assert external.tokens == {"Bearer first"}
    assert external.script.told == ["ask"]
    assert say(caller, "task", "message", id, "gross", token="first")[0] == 0
    status, found = say(caller, "task", "wait", id, "--timeout", "20s", token="first")
    assert (status, found["message"]) == (0, "GROSS"), found


def test_i33_a_call_sends_no_task_of_another_caller_with_its_token(external: External, caller: Path) -> None:
    """The worker of a call runs that call alone: others could let it speak for us."""
    with gitmem.open(str(caller), identity=server_identity(external.url)) as server:
        server.sessions.start(name="server")
        with gitmem.open(str(caller), identity="codex:planner:one") as log:
            log.sessions.start(name="Planck")
            id = log.call(server_identity(external.url), "pay me", wait=False).results[0].task_id
    status, found = call(caller, external.url, "hello", "token")
    assert (status, found["message"]) == (0, "HELLO"), found
    assert external.script.told == ["hello"]
    assert say(caller, "task", "show", id)[1]["state"] == "submitted"


def test_i33_no_line_of_a_peer_says_where_a_task_is_sent(external: External, caller: Path) -> None:
    """A task for a server that this clone has not called is waited for as any other."""
    with gitmem.open(str(caller), identity="codex:planner:one") as log:
        log.sessions.start(name="Planck")
        with gitmem.open(str(caller), identity=server_identity(external.url)) as forged:
            forged.sessions.start(name="forged")
            id = log.call(server_identity(external.url), "ask", wait=False).results[0].task_id
            forged.tasks.take(id)
            forged.tasks.ask(id, external.url)
    status, _ = say(caller, "task", "wait", id, "--timeout", "1s")
    assert status == 1
    assert external.tokens == set()
