"""Read the messages of A2A clients: what becomes the text of a record, and what its payload."""

from __future__ import annotations

from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from google.protobuf.json_format import MessageToDict

from ..records.ids import keyed_id
from . import CLIENT_MESSAGE, CONTEXT, IDEMPOTENCY, METADATA, OUTPUT_MODES, PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from a2a.types import Message, Part, SendMessageConfiguration

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
        self.text = _text(message.parts)
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
            raise InvalidParamsError(message="A part has no content: text, raw, url or data is needed.")
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


def _text(parts: Sequence[Part]) -> str:
    """Return the texts of the parts; without one a line that says what there is, because a record needs a text."""
    texts = [part.text for part in parts if part.WhichOneof("content") == "text"]
    if any(text.strip() for text in texts):
        return "\n\n".join(texts)
    kinds = ", ".join(sorted({str(part.WhichOneof("content")) for part in parts}))
    return f"({len(parts)} without text: {kinds})"
