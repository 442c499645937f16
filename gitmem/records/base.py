"""The common fields of all kinds of record, and the types of their text fields.

The models are the only source of the rules. `tools/compile_table.py` compiles them to literals (`table.py`), so that
an everyday record is validated without importing pydantic.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo
from pydantic_core import PydanticCustomError

from .ids import NO_UNIT, UNIT_FORM, unit_key

MESSAGE_MAX_BYTES = 64 * 1024

# Character classes, in escapes that both Rust's and JSON Schema's regexes support.
_CONTROL = r"\u0000-\u001f\u007f-\u009f"
_BIDI = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # with the line and paragraph separators
_UNSEEN = r"\u00ad\u180e\u200b-\u200f\u2060-\u206f\ufeff\ufff9-\ufffb"
_SPACE = r"\u0020\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_PART = rf"[^{_CONTROL}{_BIDI}{_UNSEEN}{_SPACE}:,]+"

_AT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"
_SIGNAL_ID = r"^sig-[a-z0-9]{4,32}$"
_SESSION_ID = r"^sess-[a-z0-9]{4,32}$"
_THREAD_ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
_WORK_UNIT = r"^[A-Za-z0-9._/#-]{1,100}$"
_DIGEST = r"^[0-9a-f]{64}$"
_NODE_ID = r"^mem-[a-z0-9]{4,32}$"
_PATCH_ID = r"^patch-[a-z0-9]{4,32}$"
_RELATION_ID = r"^rel-[a-z0-9]{4,32}$"
_ACCESS_ID = r"^access-[a-z0-9]{4,32}$"
_AUDIT_ID = r"^audit-[a-z0-9]{4,32}$"
_TASK_ID = r"^task-[a-z0-9]{4,32}$"
_EVENT_ID = r"^tev-[a-z0-9]{4,32}$"
_CLAIM_ID = r"^claim-[a-z0-9]{4,32}$"
_LINK_ID = r"^link-[a-z0-9]{4,32}$"
_COMMIT = r"^[0-9a-f]{40,64}$"
_AGENT = rf"^{_PART}:{_PART}:{_PART}$"
_ADDRESS = rf"^[^{_CONTROL}{_BIDI}{_UNSEEN}{_SPACE},]+$"
_NAME = rf"^[^{_CONTROL}{_BIDI}{_UNSEEN},]+$"
_LINE = rf"^[^{_CONTROL}{_BIDI}]+$"
_PATH = r"^[^\u0000]+$"

# Descriptions of the patterns, for error messages.
FORMS = {
    _AT: "a UTC time such as 2026-11-21T20:00:00.123456Z",
    _SIGNAL_ID: "sig- and 4 to 32 lower-case letters or digits",
    _SESSION_ID: "sess- and 4 to 32 lower-case letters or digits",
    _THREAD_ID: "1 to 128 letters, digits, dots, colons, dashes or underscores, a letter or digit first",
    _WORK_UNIT: UNIT_FORM,
    _DIGEST: "64 hexadecimal digits",
    _NODE_ID: "mem- and 4 to 32 lower-case letters or digits",
    _PATCH_ID: "patch- and 4 to 32 lower-case letters or digits",
    _RELATION_ID: "rel- and 4 to 32 lower-case letters or digits",
    _ACCESS_ID: "access- and 4 to 32 lower-case letters or digits",
    _AUDIT_ID: "audit- and 4 to 32 lower-case letters or digits",
    _TASK_ID: "task- and 4 to 32 lower-case letters or digits",
    _EVENT_ID: "tev- and 4 to 32 lower-case letters or digits",
    _CLAIM_ID: "claim- and 4 to 32 lower-case letters or digits",
    _LINK_ID: "link- and 4 to 32 lower-case letters or digits",
    _COMMIT: "a whole commit id",
    _AGENT: "owner:role:purpose, three parts without spaces or commas",
    _ADDRESS: "an agent identity, a session id or human:<mail>, without spaces or commas",
    _NAME: "one line without commas, control, bidi or invisible characters",
    _LINE: "one line without control or bidi characters",
    _PATH: "text without NUL",
}


class TextRule:
    """Rules for a text that a pattern can't express; the compiled table supports each of them.

    Args:
        max_bytes: Greatest size in UTF-8; 0 for no limit.
        not_prefix: A prefix that is not allowed.
        trimmed: Whether white space at either end is not allowed.
        written: The only values that may be written; when reading, any value that matches the pattern is valid.
        not_written: The work unit that may not be written, in no spelling.
    """

    def __init__(
        self,
        *,
        max_bytes: int = 0,
        not_prefix: str = "",
        trimmed: bool = False,
        written: tuple[str, ...] = (),
        not_written: str = "",
    ) -> None:
        self.max_bytes = max_bytes
        self.not_prefix = not_prefix
        self.trimmed = trimmed
        self.written = written
        self.not_written = not_written

    def __call__(self, value: str, info: ValidationInfo) -> str:
        """Return the value unchanged.

        Raises:
            PydanticCustomError: The value breaks one of the rules.
        """
        size = len(value.encode())
        wrong = ""
        if self.max_bytes and size > self.max_bytes:
            wrong = f"is {size} bytes, and at most {self.max_bytes} are allowed"
        elif self.not_prefix and value.startswith(self.not_prefix):
            wrong = f"must not start with {self.not_prefix}"
        elif self.trimmed and value != value.strip():
            wrong = "must not start or end with white space"
        elif self.written and info.context == "writing" and value not in self.written:
            wrong = f"must be {' or '.join(self.written)}"
        elif self.not_written and info.context == "writing" and unit_key(value) == self.not_written:
            wrong = f"must be {UNIT_FORM}, other than {self.not_written}"
        if wrong:
            raise PydanticCustomError("text_rule", "{wrong}", {"wrong": wrong})
        return value


# Patterns and lengths hold on read, too: a narrower one makes recorded lines unreadable. Only `written` is for writers alone.
At = Annotated[str, StringConstraints(pattern=_AT)]
SignalId = Annotated[str, StringConstraints(pattern=_SIGNAL_ID)]
SessionId = Annotated[str, StringConstraints(pattern=_SESSION_ID)]
ThreadId = Annotated[str, StringConstraints(pattern=_THREAD_ID)]
WorkUnit = Annotated[
    str, StringConstraints(pattern=_WORK_UNIT), AfterValidator(TextRule(not_written=NO_UNIT))
]
Digest = Annotated[str, StringConstraints(pattern=_DIGEST)]
NodeId = Annotated[str, StringConstraints(pattern=_NODE_ID)]
PatchId = Annotated[str, StringConstraints(pattern=_PATCH_ID)]
RelationId = Annotated[str, StringConstraints(pattern=_RELATION_ID)]
AccessId = Annotated[str, StringConstraints(pattern=_ACCESS_ID)]
AuditId = Annotated[str, StringConstraints(pattern=_AUDIT_ID)]
TaskId = Annotated[str, StringConstraints(pattern=_TASK_ID)]
EventId = Annotated[str, StringConstraints(pattern=_EVENT_ID)]
ClaimId = Annotated[str, StringConstraints(pattern=_CLAIM_ID)]
LinkId = Annotated[str, StringConstraints(pattern=_LINK_ID)]
CommitId = Annotated[str, StringConstraints(pattern=_COMMIT)]
AgentIdentity = Annotated[
    # "human:" marks a person: an agent with that prefix could impersonate one.
    str, StringConstraints(pattern=_AGENT, max_length=256), AfterValidator(TextRule(not_prefix="human:"))
]
Address = Annotated[str, StringConstraints(pattern=_ADDRESS, max_length=256)]
DisplayName = Annotated[
    str, StringConstraints(pattern=_NAME, max_length=64), AfterValidator(TextRule(trimmed=True))
]
Tag = Annotated[str, StringConstraints(pattern=_NAME, max_length=100), AfterValidator(TextRule(trimmed=True))]
ShortLine = Annotated[str, StringConstraints(pattern=_LINE, max_length=200)]
Line = Annotated[str, StringConstraints(pattern=_LINE, max_length=1024)]
Path = Annotated[str, StringConstraints(pattern=_PATH, max_length=4096)]
Message = Annotated[
    str, StringConstraints(min_length=1), AfterValidator(TextRule(max_bytes=MESSAGE_MAX_BYTES))
]


class Record(BaseModel):
    """One line of the log. Each kind is a subclass in its own module."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)

    KIND: ClassVar[str]
    STREAM: ClassVar[str]  # the folder of the log for its lines
    KEPT: ClassVar[tuple[str, ...]] = ()  # fields that are written even when empty
    # Fields that say where and when a record was written, and what was known there: they may differ in two records of one
    # idempotency key. All others must be equal.
    MAY_DIFFER: ClassVar[tuple[str, ...]] = ()
    FIRST_OF: ClassVar[dict[str, str]] = {}  # deprecated field: the list whose first entry it equals

    at: At = Field(description="The time of writing by the writer's clock, in UTC with microseconds.")
    kind: str = Field(description="The kind of record: the name of this schema.")
    schema_version: Literal["A2A.V1"] = Field(
        default="A2A.V1",
        description="The version of the contract; records of other versions are kept but not read.",
    )
    mac: ShortLine | None = Field(
        default=None,
        description="Message authentication code with the writer's clone key; always the last field of a line.",
    )
