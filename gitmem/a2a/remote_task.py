"""A task of an A2A server that is called, by what the server has said of it."""

from __future__ import annotations

import asyncio

from a2a.types import (
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict

from ..invocation.served_task import AuthNeededError, InputNeededError, TaskRejectedError
from .incoming import DATA_TYPE, json_of, json_part, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from typing import Any

    from a2a.client import Client
    from a2a.types import Artifact, TaskStatus

    from ..invocation.served_task import ServedTask
    from .remote_links import Link, RemoteLinks

POLL_SECONDS = 2.0  # between two looks at a task that can't be subscribed to
_ENDS = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
)
_ASKS = {
    TaskState.TASK_STATE_INPUT_REQUIRED: InputNeededError,
    TaskState.TASK_STATE_AUTH_REQUIRED: AuthNeededError,
}


class RemoteError(Exception):
    """An A2A server answers with an error, or does not answer."""


class RemoteTask:
    """A server's task for one of ours.

    Args:
        modes: The media types that the server takes, as its card says.

    Attributes:
        task: Ours.
        link: What is remembered of the server's.
        state, said: The last state, and what the server said with it.
    """

    def __init__(self, task: ServedTask, links: RemoteLinks, link: Link, modes: Collection[str]) -> None:
        self.task = task
        self._takes_json = not {DATA_TYPE, "*/*"}.isdisjoint(modes)
        self.link = link
        self.state = TaskState.TASK_STATE_UNSPECIFIED
        self.said = ""
        self._links = links
        self._answers = link.answers  # that the server has once it answers
        self._texts: dict[str, list[str]] = {}
        self._objects: dict[str, dict[str, Any]] = {}  # of artifacts that are one object
        self._recorded: dict[str, bytes] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the server has ended it, or waits for us."""
        return self.state in _ENDS or self.state in _ASKS

    def request(self) -> SendMessageRequest | None:
        """Return what the server does not have yet: the task, or the caller's answers; None if it has everything."""
        answers = [text for kind, text in self.task.messages if kind == "answer"]
        new = answers[self.link.answers :]
        message = Message(message_id=self.task.task_id, role=Role.ROLE_USER)
        if not self.link.id:
            message.parts.append(Part(text=self.task.message))
            if self.task.handed_over:
                message.parts.append(self._context())
            message.parts.extend(Part(text=text) for text in answers)
        elif new:
            message.parts.extend(Part(text=text) for text in new)
            message.task_id, message.context_id = self.link.id, self.link.context_id
            message.message_id += f"-{len(answers)}"
        else:
            return None
        self._answers = len(answers)
        return SendMessageRequest(message=message)

    def _context(self) -> Part:
        """Return all that the caller hands over: as JSON, or in a text where the server, or JSON of the protocol, does not take it."""
        context = self.task.handed_over
        part = json_part(context, takes_json=self._takes_json)
        return part if part.HasField("data") else Part(text=f"What the caller hands over:\n{part.text}")

    async def asks(self, client: Client) -> bool:
        """Return whether the server waits for us now: whoever authenticates elsewhere need not answer it."""
        return (await client.get_task(GetTaskRequest(id=self.link.id))).status.state in _ASKS

    async def watch(self, client: Client) -> AsyncIterator[StreamResponse]:
        """Yield what happens to the task, until it is settled."""
        while True:
            yield StreamResponse(task=await client.get_task(GetTaskRequest(id=self.link.id)))
            if self.is_settled:
                return
            try:
                async for each in client.subscribe(SubscribeToTaskRequest(id=self.link.id)):
                    yield each
            except (A2AError, NotImplementedError):
                pass  # it does not stream, or has ended the task meanwhile
            if self.is_settled:
                return
            await asyncio.sleep(POLL_SECONDS)

    def add(self, found: StreamResponse) -> None:
        """Take over what the server says, and pass it on.

        Raises:
            ValueError: It is longer than it should be.
            StoreError: The server's id can't be remembered.
        """
        if found.HasField("task"):
            self._remember(found.task.id, found.task.context_id)
            for artifact in found.task.artifacts:
                self._add(artifact, append=False, last=True)
            self._note(found.task.status)
        elif found.HasField("status_update"):
            self._remember(found.status_update.task_id, found.status_update.context_id)
            self._note(found.status_update.status)
        elif found.HasField("artifact_update"):
            update = found.artifact_update
            self._remember(update.task_id, update.context_id)
            self._add(update.artifact, append=update.append, last=update.last_chunk)

    def result(self) -> str | Mapping[str, Any]:
        """Return the result of a task that has ended, an object if it is one; raise what ends it otherwise, or the question."""
        if self.state == TaskState.TASK_STATE_COMPLETED:
            if (
                not self.said
                and len(self._objects) == len(self._texts) == 1
                and (found := next(iter(self._objects.values())))
            ):
                return found
            return self.said or "\n\n".join("".join(texts) for texts in self._texts.values())
        if self.state == TaskState.TASK_STATE_REJECTED:
            raise TaskRejectedError(self.said)
        if self.state in _ASKS:
            asks = _ASKS[self.state]
            raise asks(
                self.said or ("It asks to authenticate." if asks is AuthNeededError else "It asks for more.")
            )
        name = TaskState.Name(self.state).removeprefix("TASK_STATE_").lower().replace("_", "-")
        raise RemoteError(f"{name}: {self.said}" if self.said else f"It ended as {name}.")

    def _remember(self, id: str, context_id: str) -> None:
        """Remember the server's task: with it a later run goes on."""
        now = (id or self.link.id, context_id or self.link.context_id, self._answers)
        if now != (self.link.id, self.link.context_id, self.link.answers):
            self.link.id, self.link.context_id, self.link.answers = now
            self._links.write(self.task.task_id, self.link)

    def _note(self, status: TaskStatus) -> None:
        before = self.state, self.said
        self.state = status.state
        self.said = text_of(status.message.parts)
        if self.said and not self.is_settled and before != (self.state, self.said):
            self.task.progress(self.said)

    def _add(self, artifact: Artifact, *, append: bool, last: bool) -> None:
        content = artifact.SerializeToString(deterministic=True)
        if not artifact.parts or (not append and self._recorded.get(artifact.artifact_id) == content):
            return
        self._recorded[artifact.artifact_id] = content
        texts = self._texts.setdefault(artifact.artifact_id, [])
        if not append:
            texts.clear()
            self._objects.pop(artifact.artifact_id, None)
            if len(artifact.parts) == 1 and artifact.parts[0].HasField("data"):
                found = json_of(artifact.parts[0])
                self._objects |= {artifact.artifact_id: found} if isinstance(found, dict) else {}
        texts += filter(None, [text_of(artifact.parts)])
        self.task.artifact(
            [MessageToDict(part) for part in artifact.parts],
            name=artifact.name or None,
            artifact_id=artifact.artifact_id,
            append=append,
            last_chunk=last,
        )
