"""Each operation of A2A, by the SDK's own client, over both bindings."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client.errors import A2AClientError
from a2a.types import (
    AuthenticationInfo,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Part,
    SendMessageConfiguration,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import ParseDict

from gitmem.store import wall_clock
from gitmem.work import task_decisions
from tests.a2a.conftest import Local
from tests.a2a.talking import BINDINGS, client_of, kinds, request, send, talk
from tests.sandbox import annas

if TYPE_CHECKING:
    from gitmem.api.log import Log

Answering = Callable[..., "Log"]
NOW = SendMessageConfiguration(return_immediately=True)

pytestmark = pytest.mark.parametrize("binding", BINDINGS)


def test_i30_a_message_is_answered_by_the_finished_task(
    local: Local, answering: Answering, binding: str
) -> None:
    """The task is on the log: of the caller's identity, for the agent, sealed."""
    answering()

    async def job() -> str:
        async with client_of(local, binding) as client:
            (found,) = await send(client, request("is the rounding right?"))
        assert found.task.status.state == TaskState.TASK_STATE_COMPLETED
        assert found.task.artifacts[0].parts[0].text == "Hello from TCK"
        assert [each.message_id for each in found.task.history] == ["m-1"]
        return found.task.id

    shown = local.log.tasks.show(talk(job))
    assert shown.task["sender_identity"] == annas("a2a:caller:planner")
    assert shown.task["agent"] == annas("gitmem:worker:prices")
    assert shown.task["message"] == "is the rounding right?"
    assert shown.seal is not None


def test_i34_a_stream_has_all_steps_in_order_and_ends_with_the_last_state(
    local: Local, answering: Answering, binding: str
) -> None:
    """Chunks of an artifact stay in order, and the task has them as one."""
    answering()

    async def job() -> None:
        async with client_of(local, binding, streaming=True) as client:
            found = await send(client, request(id="tck-stream-artifact-chunked"))
            assert kinds(found) == ["task", "working", "artifact", "artifact", "completed"]
            first, last = found[2].artifact_update, found[3].artifact_update
            assert (first.artifact.parts[0].text, first.last_chunk) == ("chunk-1 ", False)
            assert (last.artifact.parts[0].text, last.append, last.last_chunk) == ("chunk-2", True, True)
            task = await client.get_task(GetTaskRequest(id=found[0].task.id))
        (artifact,) = task.artifacts
        assert [part.text for part in artifact.parts] == ["chunk-1 ", "chunk-2"]

    talk(job)


def test_i30_an_answer_without_a_task_is_a_message(local: Local, answering: Answering, binding: str) -> None:
    """Also in a stream, of which it is all."""
    answering()

    async def job() -> None:
        for streaming in (False, True):
            async with client_of(local, binding, streaming=streaming) as client:
                (found,) = await send(client, request(id="tck-message-response"))
                assert found.message.parts[0].text == "Direct message response"
                assert not found.message.task_id

    talk(job)


def test_i35_a_question_is_answered_in_the_same_task(
    local: Local, answering: Answering, binding: str
) -> None:
    """Input required, the answer, working, completed; the history has both sides."""
    answering()

    async def job() -> None:
        async with client_of(local, binding) as client:
            (asked,) = await send(client, request("ask me", id="tck-input-required"))
            assert asked.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
            assert asked.task.status.message.parts[0].text == "What next?"
            (found,) = await send(client, request("the sums", id="m-2", task_id=asked.task.id))
        assert found.task.id == asked.task.id
        assert found.task.context_id == asked.task.context_id
        assert found.task.artifacts[0].parts[0].text == "Thank you"
        assert [each.parts[0].text for each in found.task.history] == ["ask me", "What next?", "the sums"]

    talk(job)


def test_i30_a_task_is_canceled_before_and_after_somebody_took_it(
    local: Local, answering: Answering, binding: str
) -> None:
    """At once, or once its worker agrees; a second time is refused."""

    async def job() -> None:
        async with client_of(local, binding) as client:
            (waiting,) = await send(client, request(configuration=NOW))
            found = await client.cancel_task(CancelTaskRequest(id=waiting.task.id))
            assert found.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(TaskNotCancelableError):
                await client.cancel_task(CancelTaskRequest(id=waiting.task.id))
            answering()
            (asked,) = await send(client, request(id="tck-input-required"))
            found = await client.cancel_task(CancelTaskRequest(id=asked.task.id))
            assert found.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(UnsupportedOperationError):
                await send(client, request("more", task_id=asked.task.id))

    talk(job)


def test_i30_a_rejection_and_an_error_reach_the_client(
    local: Local, answering: Answering, binding: str
) -> None:
    """The error has its type and text."""

    def fail(task: Any) -> str:
        if task.message == "bad":
            raise ValueError("no such price")
        raise AssertionError

    async def job() -> None:
        async with client_of(local, binding) as client:
            (found,) = await send(client, request("bad"))
            assert found.task.status.state == TaskState.TASK_STATE_FAILED
            assert found.task.status.message.parts[0].text == "ValueError: no such price"

    answering(fail)
    talk(job)


def test_i30_tasks_are_listed_in_pages_and_by_context_and_state(
    local: Local, answering: Answering, binding: str
) -> None:
    """The last one first; a context that a client names stays its name."""

    async def job() -> None:
        async with client_of(local, binding) as client:
            for number, context in enumerate(["c-1", "c-1", "c-2"]):
                await send(client, request(f"{number}", context_id=context, configuration=NOW))
            first = await client.list_tasks(ListTasksRequest(page_size=2))
            rest = await client.list_tasks(ListTasksRequest(page_size=2, page_token=first.next_page_token))
            texts = [each.history[0].parts[0].text for each in [*first.tasks, *rest.tasks]]
            assert texts == ["2", "1", "0"]
            assert (first.total_size, rest.next_page_token) == (3, "")
            of_context = await client.list_tasks(ListTasksRequest(context_id="c-1"))
            assert [each.context_id for each in of_context.tasks] == ["c-1", "c-1"]
            done = ListTasksRequest(status=TaskState.TASK_STATE_COMPLETED)
            assert not (await client.list_tasks(done)).tasks

    talk(job)


def test_i29_a_caller_sees_no_task_of_another_caller_or_agent(local: Local, binding: str) -> None:
    """Not by its id, in lists, by its context, nor to cancel or answer it: all as if it did not exist."""
    other = local.tokens.add("other", 0).token or ""

    async def job() -> None:
        async with client_of(local, binding) as client:
            (found,) = await send(client, request("mine", context_id="c-1", configuration=NOW))
        id = found.task.id
        for token, path in ((other, ""), (local.token, "/agents/taxes")):
            async with client_of(local, binding, streaming=True, token=token, path=path) as client:
                for refused in (
                    lambda: client.get_task(GetTaskRequest(id=id)),
                    lambda: client.cancel_task(CancelTaskRequest(id=id)),
                    lambda: send(client, request("more", task_id=id)),
                    lambda: anext(client.subscribe(SubscribeToTaskRequest(id=id))),
                ):
                    with pytest.raises(TaskNotFoundError):
                        await refused()
                assert not (await client.list_tasks(ListTasksRequest(context_id="c-1"))).tasks

    talk(job)


def test_i11_a_message_with_a_key_makes_one_task(local: Local, binding: str) -> None:
    """The id of a message is no key: clients may use one again."""
    key = {"https://gitmem.dev/a2a/idempotency/v1": "k-1"}

    async def job() -> set[str]:
        async with client_of(local, binding) as client:
            asked = [request(metadata=key, configuration=NOW)] * 2 + [request(configuration=NOW)] * 2
            await send(client, asked[0])
            other = request(metadata=key, configuration=NOW)
            other.message.parts.append(ParseDict({"data": {"rate": 7}}, Part()))
            with pytest.raises(A2AError, match="has another message"):
                await send(client, other)
            return {(await send(client, each))[0].task.id for each in asked}

    assert len(talk(job)) == 3


def test_i31_the_card_names_both_bindings_and_the_token(local: Local, binding: str) -> None:
    """I1: name, skills and description; also that for callers with a token. Without one the path has it, with what caches need."""

    async def job() -> None:
        async with client_of(local, binding, path="/agents/taxes") as client:
            card = await client.get_extended_agent_card(GetExtendedAgentCardRequest())
        (skill,) = card.skills
        assert (card.name, skill.name) == ("taxes", "taxes") and card.description and skill.tags
        places = (f"{local.url}/agents/taxes/", f"{local.url}/agents/taxes/rest")
        assert [(each.protocol_version, each.url) for each in card.supported_interfaces] == [
            (version, place) for version in ("1.0", "0.3") for place in places
        ]
        assert card.security_schemes["token"].http_auth_security_scheme.scheme == "bearer"

    talk(job)
    for place, name in (("", "prices"), ("/agents/taxes", "taxes")):
        for path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
            answer = httpx.get(f"{local.url}{place}{path}")
            assert (answer.status_code, answer.json().get("name")) == (200, name)
            assert {"etag", "cache-control"} <= answer.headers.keys()
    for path in ("/agents/nobody/.well-known/agent.json", "/rest/tasks/.well-known/agent-card.json"):
        assert httpx.get(f"{local.url}{path}").status_code == 401


class Hook:
    """A server that notifications are sent to. It fails the first `failing` ones."""

    def __init__(self, failing: int = 0) -> None:
        self.got: list[tuple[dict[str, str], Any]] = []
        self.failing = failing
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.failing -= 1
                if hook.failing < 0:
                    hook.got.append((dict(self.headers), body))
                self.send_response(500 if hook.failing >= 0 else 204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    async def wait(self, count: int) -> None:
        """Wait for notifications."""
        while len(self.got) < count:
            await asyncio.sleep(0.02)
        self.server.shutdown()


def test_i30_a_client_is_notified_of_each_step(local: Local, answering: Answering, binding: str) -> None:
    """With its credentials, in order, again after an error; its configuration is read, listed and deleted."""
    hook = Hook(failing=1)
    config = TaskPushNotificationConfig(
        id="n-1",
        url=hook.url,
        token="t-1",
        authentication=AuthenticationInfo(scheme="Bearer", credentials="c-1"),
    )

    async def job() -> None:
        configuration = SendMessageConfiguration(
            return_immediately=True, task_push_notification_config=config
        )
        async with client_of(local, binding) as client:
            (found,) = await send(client, request(id="tck-artifact-text", configuration=configuration))
            id = found.task.id
            kept = await client.get_task_push_notification_config(
                GetTaskPushNotificationConfigRequest(task_id=id, id="n-1")
            )
            assert kept.url == hook.url
            answering()
            await hook.wait(3)
            every = ListTaskPushNotificationConfigsRequest(task_id=id)
            assert len((await client.list_task_push_notification_configs(every)).configs) == 1
            await client.delete_task_push_notification_config(
                DeleteTaskPushNotificationConfigRequest(task_id=id, id="n-1")
            )
            assert not (await client.list_task_push_notification_configs(every)).configs

    talk(job)
    headers, first = hook.got[0]
    assert (headers["X-A2A-Notification-Token"], headers["Authorization"]) == ("t-1", "Bearer c-1")
    assert [*first, *hook.got[1][1]] == ["statusUpdate", "artifactUpdate"]
    assert hook.got[2][1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_i38_a_caller_with_too_many_open_tasks_is_refused(local: Local, binding: str) -> None:
    """And told so; nothing is written."""

    async def job() -> None:
        async with client_of(local, binding) as client:
            for _ in range(20):
                await send(client, request(configuration=NOW))
            with pytest.raises((A2AError, A2AClientError), match="20 open tasks"):
                await send(client, request(configuration=NOW))

    talk(job)
    assert len(local.log.tasks.list(limit=50).tasks) == 20


def test_a_task_that_nobody_took_before_its_deadline_fails(local: Local, binding: str) -> None:
    """For whoever gets, lists or streams it; else its client would see `submitted` for ever."""

    async def job() -> None:
        async with client_of(local, binding) as client:
            ids = [
                (await send(client, request(id=f"m-{number}", configuration=NOW)))[0].task.id
                for number in (1, 2)
            ]
            local.log.store.now = lambda: wall_clock() + 11 * 60 * 1_000_000
            task = await client.get_task(GetTaskRequest(id=ids[0]))
            assert task.status.state == TaskState.TASK_STATE_FAILED
            assert task.status.message.parts[0].text == task_decisions.UNTAKEN
            listed = await client.list_tasks(ListTasksRequest())
            assert [each.status.state for each in listed.tasks] == [TaskState.TASK_STATE_FAILED] * 2

    talk(job)
