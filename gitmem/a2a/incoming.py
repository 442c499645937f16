"""Read the messages of A2A clients: what becomes the text of a record, and what its payload."""

from __future__ import annotations

from a2a.types import Part
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from google.protobuf.json_format import MessageToDict, ParseDict

from ..invocation import bundle_encoding
from ..records.ids import keyed_id
from . import CLIENT_MESSAGE, CONTEXT, IDEMPOTENCY, METADATA, OUTPUT_MODES, PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from a2a.types import Message, SendMessageConfiguration

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


def read(message: Message, configuration: SendMessageConfiguration) -> Incoming:
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
    return Incoming(message, configuration.accepted_output_modes)


def thread_of(caller: str, context_id: str) -> str:
    """Return the thread of a conversation that a client named: a name of one caller is never that of another's."""
    return keyed_id("thread", caller, f"a2a context {context_id}")


def _is_described(part: Part) -> bool:
    return bool(part.filename or part.media_type or part.HasField("metadata"))


def text_of(parts: Iterable[Part]) -> str:
    """Return parts as one text, which reaches whoever runs the task: data as JSON, a file as its name and URL."""
    texts = []
    for part in parts:
        kind = part.WhichOneof("content")
        if kind == "data":
            texts.append(bundle_encoding.shown(json_of(part)))
        elif kind == "url":
            texts.append(f"{part.filename or 'file'}: {part.url}")
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
    return Part(text=bundle_encoding.shown(value))


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
