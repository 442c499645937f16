"""Messages of A2A, and tasks of the log as tasks and events of A2A."""

from __future__ import annotations

from typing import cast

from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError, SerializeToJsonError

from ..order.task import WORKING
from ..work import task_work
from . import ANSWER, CLIENT_MESSAGE, CONTEXT, EXTENSION, IDEMPOTENCY, METADATA, OUTPUT_MODES, PARTS, bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from a2a.types import SendMessageConfiguration

    from ..order.task import FoldedTask, TaskEvent
    from ..store import Store

    Event = TaskStatusUpdateEvent | TaskArtifactUpdateEvent


IDS_MAX = 256  # characters of ids that clients choose
TEXT_TYPE, DATA_TYPE = "text/plain", "application/json"
INPUT_MODES = (TEXT_TYPE, DATA_TYPE)


class Incoming:
    """A message of a client.

    Attributes:
        text: The text of the record.
        payload: Its content beyond that.
        task_id: The task that it is about; empty for a new one.
        context_id: The conversation that the client named; empty if it named none.
        references: Other tasks that it refers to.
        key: Its idempotency key.
    """

    def __init__(self, message: Message, modes: Sequence[str] = ()) -> None:
        for text in (message.message_id, message.context_id, message.task_id, *message.reference_task_ids):
            if len(text) > IDS_MAX:
                raise InvalidParamsError(
                    message=f"An id has {len(text)} characters; at most {IDS_MAX} are allowed."
                )
        self.task_id: str = message.task_id
        self.context_id: str = message.context_id
        self.references = list(message.reference_task_ids)
        self.text = text_of(message.parts) or "(no text)"
        self.payload: dict[str, Any] = {CLIENT_MESSAGE: message.message_id}
        if any(part.WhichOneof("content") != "text" or _is_described(part) for part in message.parts):
            self.payload[PARTS] = [MessageToDict(part) for part in message.parts]
        metadata = MessageToDict(message.metadata)
        key = metadata.pop(IDEMPOTENCY, None)
        self.key = key if isinstance(key, str) and key else None
        if metadata:
            self.payload[METADATA] = metadata
        if modes:
            self.payload[OUTPUT_MODES] = list(modes)
        if self.context_id:
            self.payload[CONTEXT] = self.context_id


def read_message(message: Message, configuration: SendMessageConfiguration) -> Incoming:
    """Return what a request's message says.

    Raises:
        InvalidParamsError, ContentTypeNotSupportedError: It can't be a record.
    """
    if not message.parts:
        raise InvalidParamsError(message="The message has no parts; at least one is needed.")
    for part in message.parts:
        kind = part.WhichOneof("content")
        if kind is None or (kind == "raw" and not part.raw):
            raise InvalidParamsError(message="A part has no content: text, url or data is needed.")
        if kind == "raw":  # no text for a model or a program
            raise ContentTypeNotSupportedError(
                message=f"A part has bytes, of the media type {part.media_type[:80]!r}; text, data or the url of a file is valid."
            )
        if part.media_type and kind == "text" and not part.media_type.startswith("text/"):
            raise ContentTypeNotSupportedError(
                message=f"A part with text has the media type {part.media_type[:80]!r}; text/* is valid."
            )
    try:
        return Incoming(message, configuration.accepted_output_modes)
    except (SerializeToJsonError, ValueError) as error:  # gRPC has numbers that JSON has not
        raise InvalidParamsError(
            message=f"A part or the metadata is not JSON: {str(error)[:200]}."
        ) from error


def thread_of(store: Store, caller: str, context_id: str) -> str:
    """Return the thread of a conversation that a client named: a name of one caller is never that of another's."""
    return store.own_id("thread", caller, f"a2a context {context_id}")


def _is_described(part: Part) -> bool:
    return bool(part.filename or part.media_type or part.HasField("metadata"))


def text_of(parts: Iterable[Part]) -> str:
    """Return parts as one text, which reaches whoever runs the task or called: data as JSON, a file as its name and its URL or size."""
    texts = []
    for part in parts:
        kind = part.WhichOneof("content")
        if kind == "data":
            texts.append(bundle.shown_json(json_of(part)))
        elif kind == "url":
            texts.append(f"{part.filename or 'file'}: {part.url}")
        elif kind == "raw":
            size = f"{len(part.raw)} bytes"
            texts.append(f"{part.filename or 'file'}: {', '.join(filter(None, (part.media_type, size)))}")
        elif kind == "text":
            texts.append(part.text)
    return "\n\n".join(filter(str.strip, texts))


def json_of(part: Part) -> Any:
    """Return the data of a part; whole numbers are integers, which the protocol does not tell from others."""
    return _whole(MessageToDict(part)["data"])


def json_part(value: object, *, takes_json: bool = True) -> Part:
    """Return a JSON value as a part: as data, or as text where the other side, or JSON of the protocol, does not take it."""
    if takes_json:
        part = ParseDict({"data": value, "mediaType": DATA_TYPE}, Part())
        if MessageToDict(part)["data"] == value:  # whose integers are exact up to 2**53
            return part
    return Part(text=bundle.shown_json(value))


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


STATES: dict[str, TaskState] = {
    name.removeprefix("TASK_STATE_").lower().replace("_", "-"): cast("TaskState", value)
    for name, value in TaskState.items()
}
END, RESULT = "end", "result"  # the ids of the steps that end a task
_RESULT_FIELDS = ("commit", "branch", "uncommitted")  # of a result's payload, in the metadata of the task


def context_of(task: FoldedTask) -> str:
    """Return the conversation of a task as its client names it."""
    named = (task.record.get("payload") or {}).get(CONTEXT)
    return named if isinstance(named, str) and named else task.record["thread_id"]


def task_of(task: FoldedTask) -> Task:
    """Return a task as A2A has it now."""
    found = created(task)
    last = _last_report(task)
    said = _reports(task)
    for each in in_order(task):
        message = _message(task, each)
        if message is not None and (each.event == "message" or (each in said and each is not last)):
            found.history.append(message)
    found.artifacts.extend(filter(None, map(_artifact, task_work.folded_artifacts(task))))
    if (result := _result(task)) is not None:
        found.artifacts.append(result)
    found.status.CopyFrom(_status(task, last))
    metadata = _metadata(task)
    if metadata:
        found.metadata.update({EXTENSION: metadata})
    return found


def created(task: FoldedTask) -> Task:
    """Return a task as it was when its caller wrote it."""
    record = task.record
    found = Task(id=record["task_id"], context_id=context_of(task))
    found.status.state = TaskState.TASK_STATE_SUBMITTED
    found.status.timestamp.FromJsonString(record["at"])
    found.history.append(_of_user(task, record, record["task_id"]))
    return found


def answer_of(task: FoldedTask) -> Message | None:
    """Return the message that answers a request without a task, if its worker says so."""
    outcome = task.outcome
    if task.state != "completed" or outcome is None:
        return None
    if (outcome.record.get("payload") or {}).get(ANSWER) != "message":
        return None
    found = _message(task, outcome)
    if found is not None:
        found.ClearField("task_id")
    return found


def steps(task: FoldedTask, *, is_over: bool) -> list[tuple[str, Event]]:
    """Return what happened to a task, in order, each with an id that it keeps.

    Args:
        is_over: Whether its present outcome is the last word.
    """
    found: list[tuple[str, Event]] = []
    reports = _reports(task)
    for each in in_order(task):
        if each.event == "take" and each in task.takes:
            status = TaskStatus(state=TaskState.TASK_STATE_WORKING)
            status.timestamp.FromJsonString(each.record["at"])
            found.append((each.id, _update(task, status)))
        elif each in reports and not each.is_terminal:
            found.append((each.id, _update(task, _status_of(task, each, each.state or WORKING))))
        elif (content := task_work.artifacts_of_event(task, each)) is not None:
            artifact = _artifact(content)
            if artifact is not None:
                found.append((each.id, TaskArtifactUpdateEvent(
                    task_id=task.record["task_id"], context_id=context_of(task), artifact=artifact,
                    append=bool(each.record.get("append")), last_chunk=bool(each.record.get("last_chunk")),
                )))  # fmt: skip
    if is_over and (result := _result(task)) is not None:
        found.append((RESULT, TaskArtifactUpdateEvent(
            task_id=task.record["task_id"], context_id=context_of(task), artifact=result, last_chunk=True,
        )))  # fmt: skip
    if is_over and task.is_finished:
        found.append((END, _update(task, _status(task, _last_report(task)))))
    return found


def in_order(task: FoldedTask) -> list[TaskEvent]:
    """Return the events of a task by `(at, bytes)`."""
    return sorted(task.events.values(), key=lambda each: each.line)


def _reports(task: FoldedTask) -> list[TaskEvent]:
    """Return the reports of holders, and of addressees that refused it."""
    return [
        each
        for each in in_order(task)
        if each.event == "status" and (task.counts(each) or each in task.rejections)
    ]


def _last_report(task: FoldedTask) -> TaskEvent | None:
    """Return the event that the present state comes from."""
    if task.is_finished:
        return task.outcome or task.seal or task.close
    if task.holder is None:
        return None
    own = [each for each in _reports(task) if each.take == task.holder.id]
    return own[-1] if own else task.holder


def _status(task: FoldedTask, last: TaskEvent | None) -> TaskStatus:
    if last is None:
        found = TaskStatus(state=STATES[task.state])
        found.timestamp.FromJsonString(task.record["at"])
        return found
    return _status_of(task, last, task.state)


def _status_of(task: FoldedTask, event: TaskEvent, state: str) -> TaskStatus:
    found = TaskStatus(state=STATES.get(state, TaskState.TASK_STATE_UNSPECIFIED))
    found.timestamp.FromJsonString(event.record["at"])
    message = _message(task, event)
    if message is not None and state != "completed":  # a result is an artifact
        found.message.CopyFrom(message)
    return found


def _result(task: FoldedTask) -> Artifact | None:
    """Return the result of a task that is completed: an object as data, or a text; None without one."""
    if task.state != "completed" or task.outcome is None:
        return None
    payload = task.outcome.record.get("payload") or {}
    value = payload.get("result")
    if isinstance(value, dict):
        modes = (task.record.get("payload") or {}).get(OUTPUT_MODES)
        wanted = {each for each in modes if isinstance(each, str)} if isinstance(modes, list) else set()
        parts = [json_part(value, takes_json=not wanted or not wanted.isdisjoint((DATA_TYPE, "*/*")))]
    else:
        message = _message(task, task.outcome)
        parts = list(message.parts) if message is not None else []
    return Artifact(artifact_id=task.outcome.id, name=RESULT, parts=parts) if parts else None


def _update(task: FoldedTask, status: TaskStatus) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(task_id=task.record["task_id"], context_id=context_of(task), status=status)


def _message(task: FoldedTask, event: TaskEvent) -> Message | None:
    """Return what an event says: a text or parts; None if it says nothing."""
    record: Mapping[str, Any] = event.record
    if event.event == "message" and event.sender[0] == task.caller[0]:
        return _of_user(task, record, event.id)
    payload = record.get("payload") or {}
    parts = list(_parts(payload.get(PARTS))) or [
        Part(text=text) for text in (_text(record, payload),) if text
    ]
    if not parts:
        return None
    return Message(
        message_id=event.id,
        context_id=context_of(task),
        task_id=task.record["task_id"],
        role=Role.ROLE_AGENT,
        parts=parts,
    )


def _of_user(task: FoldedTask, record: Mapping[str, Any], id: str) -> Message:
    """Return a message of the task's caller."""
    payload = record.get("payload") or {}
    named = payload.get(CLIENT_MESSAGE)
    found = Message(
        message_id=named if isinstance(named, str) and named else id,
        context_id=context_of(task),
        task_id=task.record["task_id"],
        role=Role.ROLE_USER,
        parts=list(_parts(payload.get(PARTS))) or [Part(text=record.get("message") or "")],
    )
    if isinstance(payload.get(METADATA), dict):
        found.metadata.update(payload[METADATA])
    return found


def _text(record: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    error = payload.get("error")
    if isinstance(error, dict) and not record.get("message"):
        return ": ".join(str(error[name]) for name in ("type", "message") if error.get(name))
    return record.get("message") or record.get("reason") or ""


def _parts(value: object) -> Iterable[Part]:
    """Yield the parts of a payload, which a peer wrote: those that are parts."""
    for each in value if isinstance(value, list) else ():
        try:
            yield ParseDict(each, Part(), ignore_unknown_fields=True)
        except (ParseError, TypeError, ValueError, AttributeError):
            continue


def _artifact(content: Mapping[str, Any]) -> Artifact | None:
    """Return an artifact, which a peer wrote; None if it is none."""
    try:
        found = ParseDict(dict(content), Artifact(), ignore_unknown_fields=True)
    except (ParseError, TypeError, ValueError, AttributeError):
        return None
    return found if found.parts else None


def _metadata(task: FoldedTask) -> dict[str, Any]:
    """Return what A2A has no field for."""
    found: dict[str, Any] = {}
    if task.conflict:
        found["conflict"] = True
    if task.late:
        found["late"] = len(task.late)
    if task.is_finished:
        found["confirmed"] = task.decided_by == "seal"
    payload = (task.outcome.record.get("payload") or {}) if task.outcome is not None else {}
    found |= {name: payload[name] for name in _RESULT_FIELDS if isinstance(payload.get(name), str)}
    return found
