"""The kinds of record: their pydantic models are the only definition of what is recorded.

A kind is a subclass of `Record` here. Its fields say all that is known of them: form, meaning, and how they are compared, cleared,
shown and set. `tools/compile_kinds.py` derives from them `table.py`, by which everyday records are validated without importing
pydantic, the types in `record_types.py`, and the tables in `docs/records.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired, TypedDict, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError, core_schema

from ..outcome import Struct
from .ids import NO_UNIT, UNIT_FORM, is_time, unit_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic.fields import FieldInfo
    from pydantic_core import CoreSchema, ErrorDetails

MESSAGE_MAX_BYTES = 64 * 1024
_SHOWN = 60  # characters of a rejected value in an error message

# Character classes, in escapes that both Rust's and JSON Schema's regexes support.
_CONTROL = r"\u0000-\u001f\u007f-\u009f"
_BIDI = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # with the line and paragraph separators
_UNSEEN = r"\u00ad\u180e\u200b-\u200f\u2060-\u206f\ufeff\ufff9-\ufffb"
_SPACE = r"\u0020\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_BASE32 = "[0-9a-hjkmnp-tv-z]"
_PART = rf"[^{_CONTROL}{_BIDI}{_UNSEEN}{_SPACE}:,]+"


class TextRule(Struct):
    """Rules for a text that a pattern can't express; the compiled table supports each of them.

    Attributes:
        max_bytes: Greatest size in UTF-8; 0 for no limit.
        not_prefix: A prefix that is not allowed.
        trimmed: Whether white space at either end is not allowed.
        written: The only values that may be written; when reading, any value that matches the pattern is valid.
        not_written: The work unit that may not be written, in no spelling.
        real: Whether a time must be one that the calendar has.
    """

    max_bytes: int = 0
    not_prefix: str = ""
    trimmed: bool = False
    written: tuple[str, ...] = ()
    not_written: str = ""
    real: bool = False

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
        elif self.real and not is_time(value):
            wrong = "must be a time that the calendar has"
        if wrong:
            raise PydanticCustomError("text_rule", "{wrong}", {"wrong": wrong})
        return value


class Form:
    """A form of text. It holds on read, too: a narrower one makes recorded lines unreadable.

    Args:
        name: What the page of the kinds calls it.
        pattern: A regex of the whole text, if it has one.
        words: The pattern, described for error messages.
        least, most: Numbers of characters, if limited.
        rule: What a pattern can't express.
    """

    def __init__(
        self,
        name: str,
        pattern: str = "",
        words: str = "",
        *,
        least: int = 0,
        most: int = 0,
        rule: TextRule | None = None,
    ) -> None:
        self.name = name
        self.least, self.most = least, most
        self.rule = rule
        self._schema = core_schema.str_schema(
            pattern=pattern or None, min_length=least or None, max_length=most or None
        )
        if pattern:
            WORDS[pattern] = words

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> CoreSchema:
        """Return the schema by which pydantic validates."""
        if self.rule is None:
            return self._schema
        return core_schema.with_info_after_validator_function(self.rule, self._schema)


WORDS: dict[str, str] = {}  # the patterns of all forms, described for error messages


def id_form(name: str, prefix: str) -> Form:
    """Return the form of an id."""
    return Form(
        f"{name} id", rf"^{prefix}-[a-z0-9]{{4,32}}$", f"{prefix}- and 4 to 32 lower-case letters or digits"
    )


def written(values: tuple[str, ...]) -> AfterValidator:
    """Return the rule that writers give one of these values, and readers accept others."""
    return AfterValidator(TextRule(written=values))


T = TypeVar("T")
Many = Annotated[tuple[T, ...], Field(strict=False)]
At = Annotated[
    str,
    Form(
        "time",
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$",
        "a UTC time such as 2026-11-21T20:00:00.123456Z",
    ),
]
RealTime = Annotated[At, AfterValidator(TextRule(real=True))]
SignalId = Annotated[str, id_form("signal", "sig")]
SessionId = Annotated[str, id_form("session", "sess")]
NodeId = Annotated[str, id_form("node", "mem")]
PatchId = Annotated[str, id_form("patch", "patch")]
RelationId = Annotated[str, id_form("relation", "rel")]
AccessId = Annotated[str, id_form("access", "access")]
AuditId = Annotated[str, id_form("audit", "audit")]
TaskId = Annotated[str, id_form("task", "task")]
EventId = Annotated[str, id_form("event", "tev")]
ClaimId = Annotated[str, id_form("claim", "claim")]
ForgetId = Annotated[str, id_form("forget", "forget")]
TrustId = Annotated[str, id_form("trust", "trust")]
LinkId = Annotated[str, id_form("link", "link")]
WriterId = Annotated[
    str,
    Form("writer id", rf"^{_BASE32}{{16}}$", "16 characters of base32, from the digest of a public key"),
]
ThreadId = Annotated[
    str,
    Form(
        "thread id",
        r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$",
        "1 to 128 letters, digits, dots, colons, dashes or underscores, a letter or digit first",
    ),
]
WorkUnit = Annotated[
    str, Form("work unit", r"^[A-Za-z0-9._/#-]{1,100}$", UNIT_FORM, rule=TextRule(not_written=NO_UNIT))
]
LineHash = Annotated[str, Form("line hash", r"^[0-9a-f]{32}$", "32 hexadecimal digits")]
Digest = Annotated[str, Form("SHA-256", r"^[0-9a-f]{64}$", "64 hexadecimal digits")]
CommitId = Annotated[str, Form("commit id", r"^[0-9a-f]{40,64}$", "a whole commit id")]
AgentIdentity = Annotated[
    str,
    # "human:" marks a person: an agent with that prefix could impersonate one.
    Form(
        "agent identity",
        rf"^{_PART}:{_PART}:{_PART}$",
        "owner:role:purpose, three parts without spaces or commas",
        most=256,
        rule=TextRule(not_prefix="human:"),
    ),
]
Address = Annotated[
    str,
    Form(
        "address",
        rf"^[^{_CONTROL}{_BIDI}{_UNSEEN}{_SPACE},]+$",
        "an agent identity, a session id or human:<mail>, without spaces or commas",
        most=256,
    ),
]
_NAME = rf"^[^{_CONTROL}{_BIDI}{_UNSEEN},]+$"
_NAME_WORDS = "one line without commas, control, bidi or invisible characters"
# Numbers are texts: languages read 2.0 and 2 differently.
Count = Annotated[str, Form("count", r"^[1-9][0-9]{0,3}$", "a number from 1 to 9999, without a leading 0")]
DisplayName = Annotated[str, Form("name", _NAME, _NAME_WORDS, most=64, rule=TextRule(trimmed=True))]
Tag = Annotated[str, Form("tag", _NAME, _NAME_WORDS, most=100, rule=TextRule(trimmed=True))]
_LINE = rf"^[^{_CONTROL}{_BIDI}]+$"
_LINE_WORDS = "one line without control or bidi characters"
ShortLine = Annotated[str, Form("short line", _LINE, _LINE_WORDS, most=200)]
Line = Annotated[str, Form("line", _LINE, _LINE_WORDS, most=1024)]
Path = Annotated[str, Form("path", r"^[^\u0000]+$", "text without NUL", most=4096)]
Message = Annotated[str, Form("text", least=1, rule=TextRule(max_bytes=MESSAGE_MAX_BYTES))]


class Option(Struct):
    """The option by which a signal gets a field: of `gitmem signal`, of the library, and of the tool if models may set it.

    Attributes:
        help: Its sentence.
        name: Its name, if not that of the field.
        metavar: What help shows for its value; "" for a flag.
        tool: Whether the MCP server's tool has it.
        reply: Whether `gitmem reply` has it, too.
    """

    help: str
    name: str = ""
    metavar: str = ""
    tool: bool = True
    reply: bool = False


class Known(Struct):
    """What is known of a field beside its form and meaning.

    Attributes:
        may_differ: Whether it may differ in two records of one idempotency key: it says where and when a record was written,
            and what was known there. All others must be equal.
        clearable: Whether the record's field `clear` may name it.
        kept: Whether its default is written although it is empty.
        first_of: Of a deprecated field: the list whose first entry it equals.
        defines: Whether the line defines the id in it: one that is bound to a writer must be bound to the line's.
        but_for: The event with which the id may be another writer's.
        shown: Whether answers have it.
        text: Whether forgetting the record takes it: it stands under the salt of its line.
        head: How the head of a displayed signal says it, such as `delegation {}`; "" if it does not.
        option: The option that sets it.
    """

    may_differ: bool = False
    clearable: bool = False
    kept: bool = False
    first_of: str = ""
    defines: bool = False
    but_for: str = ""
    shown: bool = True
    text: bool = False
    head: str = ""
    option: Option | None = None


def required(meaning: str, **known: Any) -> Any:
    """Return a field that every record of the kind has; see `Known`."""
    return _field(Field(description=meaning), known)


def optional(meaning: str, default: object = None, **known: Any) -> Any:
    """Return a field that a record may lack; see `Known`."""
    return _field(
        Field(default=default, description=meaning, deprecated=bool(known.get("first_of")) or None), known
    )


def _field(found: Any, known: Mapping[str, Any]) -> FieldInfo:
    found.metadata.append(Known(**known))
    field: FieldInfo = found
    return field


def known_of(field: FieldInfo) -> Known:
    """Return what is known of a field."""
    return next((each for each in field.metadata if isinstance(each, Known)), Known())


class Record(BaseModel):
    """One line of the log. Each kind is a subclass; its fields are in the order of its lines, its id first, texts last.

    Attributes:
        KIND: Its name.
        STREAM: The folder of the log for its lines.
        NOUN: What people call it, if not by its name.
        ANSWER: The properties that answers add to it. They are no fields, and a peer can't set them.
        NAMES: Whether its lines change who is here under which name.
    """

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, defer_build=True)

    KIND: ClassVar[str]
    STREAM: ClassVar[str]
    NOUN: ClassVar[str] = ""
    ANSWER: ClassVar[type] = dict
    NAMES: ClassVar[bool] = False

    at: At = required("The time of writing by the writer's clock, in UTC with microseconds.")
    kind: str = optional("The kind of record: the name of this schema.", default="")
    writer: WriterId | None = optional(
        "The id of the key whose owner wrote the line: its third field; lines of other tools lack it.",
        shown=False,
    )
    schema_version: Literal["A2A.V1"] = optional(
        "The version of the contract; records of other versions are kept but not read.", default="A2A.V1"
    )
    texts: Digest | None = optional(
        "In the reduced form of a line: the digest of its salt and of the texts that were forgotten.",
        shown=False,
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Name the kind, and let `clear` name the fields that can be cleared."""
        cls.model_fields["kind"].default = cls.KIND
        clearable = tuple(name for name, field in cls.model_fields.items() if known_of(field).clearable)
        for rule in parts_of(cls.model_fields["clear"].annotation) if clearable else ():
            if isinstance(rule, AfterValidator) and isinstance(rule.func, TextRule):
                rule.func.written = clearable


def parts_of(annotation: object) -> Iterator[object]:
    """Yield the parts of an annotation, also those inside others."""
    for each in get_args(annotation):
        yield each
        yield from parts_of(each)


INTERRUPTS = ("priority", "advisory")
RESOLUTIONS = ("exact", "folded", "alias", "role", "prefix")
PURPOSES = ("call", "delegation", "handoff")
SEMANTICS = ("at-least-once", "at-most-once")
PRIORITIES = ("P0", "P1", "P2", "P3")
EVENTS = ("launch", "take", "renew", "release", "status", "artifact", "message", "cancel", "seal", "close", "escalate")  # fmt: skip
STATES = ("working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected")
LEVELS = ("warning", "error", "critical")
CLAIM_EVENTS = ("claim", "renew", "release")
MODES = ("exclusive", "shared")
ACTIONS = ("commit", "amend", "merge", "revert", "cherry-pick", "rebase", "squash", "apply", "rewrite")
EVIDENCE = ("environment", "output", "alone", "none")


class Conflict(TypedDict):
    """One of several lines of a signal id: its number, how many there are, and what differs."""

    number: int
    shown: int
    versions: int
    differs: Sequence[str]
    clone: NotRequired[str]


class TaskDifference(TypedDict):
    """What a signal or node says of a task, and what the record of the task says instead, which counts.

    Attributes:
        field: `wu_id`, `initiative_id`, `lane`, `target_role`, `sender_role`, `holder` or `state`.
        recorded: None for the holder of a task that nobody has.
    """

    task_id: str
    field: str
    said: str
    recorded: str | None


class SignalAnswer(TypedDict, total=False):
    """What answers add to a signal.

    Attributes:
        recipient_names: In the log: the present names of the recipients.
        delivery_state: In an inbox: the reader's receipt state, if any.
        delivery: In a thread: the receipt state of each recipient.
        reply_line: The command that answers it.
        message_cut: Whether the message is only a beginning.
        thread_too_large: The id of its thread, if that was not folded.
        unverified: `unsigned` if its line names no writer.
        conflict: Set if other lines with this id differ.
        counts: False if it answers a line that the log lacks.
        decides: False if its decision is void, or of no party.
        no_party: Set if its decision is of no party of its thread.
        owed: In an inbox: set if the reader owes an answer, AGREE or REJECT.
        asks_about: The proposal that it owes this answer to, if that is not the signal: a withdrawal brings one back.
        settled: Why nobody owes an answer any more: who has taken its task, or what replaced the proposal.
        contradicts: How it differs from the records of the tasks that it is about.
        forgotten: Set if its writer took its texts back.
        overdue: Set if its task had to begin before a deadline that is over, and nobody has taken it.
    """

    recipient_names: Sequence[str]
    delivery_state: str | None
    delivery: Mapping[str, str]
    reply_line: str
    message_cut: bool
    thread_too_large: str
    unverified: str
    conflict: Conflict
    counts: bool
    decides: bool
    no_party: bool
    owed: bool
    asks_about: str
    settled: str
    contradicts: Sequence[TaskDifference]
    overdue: bool
    forgotten: bool


class TextAnswer(TypedDict, total=False):
    """What answers add to another record with texts: whether its writer took them back."""

    forgotten: bool


class WriterAnswer(TypedDict, total=False):
    """What answers add to a record whose writer has no `sender_name` in it: the present name."""

    sender_name: str | None


class AuditAnswer(TypedDict, total=False):
    """What answers add to a passed gate: what was passed, in the past."""

    past: str


class Signal(Record):
    """A message with its sender, recipients and subject."""

    KIND = "signal"
    STREAM = "signals"
    ANSWER = SignalAnswer

    signal_id: SignalId = required("The id of this signal, for replies and receipts.", defines=True)
    sender_identity: Address = required(
        "The sender: an agent identity, else a session id, else `human:<mail>`."
    )
    sender_session: Address | None = optional("The session that sent it.", may_differ=True)
    sender_name: Line | None = optional("The sender's display name when it was sent.", may_differ=True)
    sender_headline: Line | None = optional("The sender's headline when it was sent.", may_differ=True)
    via: Address | None = optional("The session that recorded this in the sender's name (section 8).")
    recipients: Many[Address] = optional(
        "The recipients: agent identities, session ids, people; empty for a broadcast.", default=(), kept=True
    )
    target_agent: Address | None = optional(
        "Deprecated alias of the first recipient; used if `recipients` is missing.",
        first_of="recipients",
        may_differ=True,
    )
    requested_to: Many[Line] = optional(
        "The recipients as the sender typed them.", default=(), may_differ=True
    )
    resolved_by: Many[Annotated[Line, written(RESOLUTIONS)]] = optional(
        "How each recipient was resolved.", default=(), may_differ=True
    )
    workspace_id: ShortLine | None = optional("Routing key of a hosted transport (section 9).")
    thread_id: ThreadId | None = optional(
        "The conversation that it belongs to; if missing, `signal_id` names it."
    )
    reply_to: SignalId | None = optional("Id of the signal to answer.")
    after: Many[SignalId] = optional(
        "The latest signals of the thread that its writer had seen (section 8).",
        default=(),
        may_differ=True,
    )
    answers_digest: Digest | None = optional(
        "Digest of the answered line, so that its text cannot be replaced.", may_differ=True
    )
    intent: Literal["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"] = optional(
        "The role of the signal in its thread.",
        default="INFO",
        option=Option("INFO, PROPOSE, COUNTER, AGREE or REJECT.", metavar="INTENT"),
    )
    need: Count | None = optional(
        "Of a PROPOSE that begins a thread: how many others have to agree; without it, all (section 8).",
        head="needs {} to agree",
        option=Option("How many recipients of a PROPOSE have to agree (default: all).", metavar="N"),
    )
    veto: Many[Address] = optional(
        "With `need`: those recipients who have to agree in any case.",
        default=(),
        head="{} may veto",
        option=Option(
            "With --need: recipients, also without --to, without whose AGREE it is not agreed on.",
            metavar="A,B",
        ),
    )
    interrupt_class: Annotated[ShortLine, written(INTERRUPTS)] = optional(
        "How urgent it is.",
        default="advisory",
        may_differ=True,
        option=Option("Urgency: advisory or priority.", name="interrupt", metavar="CLASS", tool=False),
    )
    requires_ack: bool = optional(
        "Whether the sender waits for AGREE or REJECT.",
        default=False,
        option=Option("Ask for AGREE or REJECT.", reply=True),
    )
    message: Message = required("The text, unchanged.", text=True)
    idempotency_key: Line | None = optional(
        "Signals of one sender with one key are the same signal (section 6).",
        option=Option(
            "Repeating a signal with the same key and content records nothing new.",
            metavar="K",
            reply=True,
            tool=False,
        ),
    )
    origin: ShortLine = optional("`local`, or the name of the adapter that imported it.", default="local")
    wu_id: WorkUnit | None = optional(
        "The work unit.",
        head="{}",
        option=Option("Work unit: WU-123, #123 or fix-login.", name="wu", metavar="ID"),
    )
    initiative_id: ShortLine | None = optional(
        "The initiative.", option=Option("Initiative.", name="initiative", metavar="ID")
    )
    lane: ShortLine | None = optional(
        "The lane.", head="{}", option=Option("Lane.", metavar="LANE", tool=False)
    )
    sender_role: ShortLine | None = optional(
        "The role that the sender's session states, `a/b`; missing if it states none.", may_differ=True
    )
    target_role: ShortLine | None = optional(
        "The role of the recipient.",
        head="for role {}",
        option=Option("Role that the signal is meant for; selects no recipients.", metavar="ROLE"),
    )
    delegation_id: ShortLine | None = optional(
        "The delegation that it belongs to.",
        head="delegation {}",
        option=Option("Delegation that the signal belongs to.", metavar="ID"),
    )
    task_id: TaskId | None = optional("The task that it is about.")
    artifact_path: Path | None = optional(
        "A file that it points to.",
        head="file {}",
        option=Option("File that the signal refers to.", name="artifact", metavar="PATH"),
    )
    seen: Many[LineHash] | None = optional(
        "The broadcasts that its writer had, and that no other broadcast names, at most 16; written even if empty (section 9).",
        may_differ=True,
        shown=False,
    )


class Receipt(Record):
    """One reader has received one signal. The reader's decision is computed from signals, not from receipts."""

    KIND = "receipt"
    STREAM = "receipts"
    ANSWER = WriterAnswer

    signal_id: SignalId = required("The signal that was read.")
    reader_identity: Address = required(
        "The address that the signal was sent to; of a broadcast the reader identity."
    )
    reader_session: Address | None = optional("The session of the reader.", may_differ=True)
    delivery_state: Literal["delivered", "acked", "rejected"] = optional(
        "`acked` and `rejected` are those of importers; decisions override them (section 9).",
        default="delivered",
    )
    answers_digest: Digest = required("Digest of the displayed line.")
    idempotency_key: Line | None = optional("The key of an importing adapter.")
    seen: Many[LineHash] | None = optional(
        "The broadcasts that its writer had, and that no other broadcast names, at most 16; written even if empty (section 9).",
        may_differ=True,
        shown=False,
    )


class Session(Record):
    """A session starts, changes or ends; with its fields at that moment."""

    KIND = "session"
    STREAM = "sessions"
    NOUN = "session record"
    ANSWER = WriterAnswer
    NAMES = True

    session_id: SessionId = required("The id of this session.", defines=True)
    event: Literal["start", "change", "end"] = required("The event.")
    agent_identity: AgentIdentity | None = optional(
        "`owner:role:purpose`: who the agent is, beyond this session."
    )
    display_name: DisplayName = required("The requested name.")
    name_chosen: bool = optional("Whether the name was requested, not assigned from the pool.", default=False)
    clone_id: ShortLine = required("The clone of the session.")
    worktree: Path | None = optional(
        "The folder's name of the session's worktree; none in a bare repository."
    )
    wu_id: WorkUnit | None = optional("The work unit of the session.", clearable=True)
    initiative_id: ShortLine | None = optional("The initiative of the session.", clearable=True)
    lane: ShortLine | None = optional("The lane of the session.", clearable=True)
    client: ShortLine | None = optional("The client that runs it, such as `claude-code`.")
    workspace_id: ShortLine | None = optional("Routing key of a hosted transport (section 9).")
    harness_session: Address | None = optional("The client's session, as `h-…`.")
    activity: ShortLine | None = optional("The current work, in its own words.", clearable=True)
    summary: Line | None = optional("What it did; writers give it with `end`.")
    lifecycle_role: ShortLine | None = optional(
        "The part that it plays in the work, such as `reviewer`; any value is read.", clearable=True
    )
    specialty_profile: ShortLine | None = optional(
        "What it is good at, such as `docs`; any value is read.", clearable=True
    )
    role_alias: ShortLine | None = optional("The alias that its role was given by.", clearable=True)
    role_pack: ShortLine | None = optional(
        "The name of the vocabulary that its role was looked up in.", clearable=True
    )
    capabilities: Many[ShortLine] = optional(
        "What it can do; capabilities give no role.", default=(), clearable=True
    )
    actual_ownership_scope: dict[str, Any] = optional(
        "What it works on: a *scope* object.", default={}, clearable=True
    )
    model: ShortLine | None = optional("The model that runs it.", clearable=True)
    branch: Line | None = optional("The branch of its worktree.", clearable=True)
    task_id: TaskId | None = optional("The task that it works on.", clearable=True)
    clear: Many[Annotated[ShortLine, AfterValidator(TextRule())]] = optional(
        "Fields that become empty; a missing field is unchanged.", default=()
    )
    seen: Many[LineHash] | None = optional(
        "The broadcasts that its writer had, and that no other broadcast names, at most 16; written even if empty (section 9).",
        shown=False,
    )


class Node(Record):
    """A node as it was written. Its present state is computed from the patches that name it."""

    KIND = "node"
    STREAM = "memory"
    NOUN = "memory node"
    ANSWER = TextAnswer

    id: NodeId = required("The id of this node.", defines=True)
    type: Literal["session", "discovery", "checkpoint", "note", "summary"] = required(
        "The type of its content."
    )
    lifecycle: Literal["ephemeral", "session", "wu", "project"] = required(
        "The lifetime; decay does not archive `project` nodes."
    )
    content: Message = required("The text.", text=True)
    priority: Literal["P0", "P1", "P2", "P3"] | None = optional("The priority; P0 is the highest.")
    tags: Many[Tag] = optional("Tags to find it by.", default=())
    wu_id: WorkUnit | None = optional("The work unit that it belongs to.")
    session_id: Address | None = optional("The session that it belongs to.")
    lane: ShortLine | None = optional("The lane for which it is relevant; without one, every lane.")
    paths: Many[Path] = optional(
        "Its files and folders, from the root of the work tree, `/` between.", default=()
    )
    head: CommitId | None = optional("The commit of HEAD when its content was last known to be correct.")
    branch: Line | None = optional("The branch of `head`.")
    sensitive: bool = optional("Whether cleanup keeps it.", default=False)
    closed: bool = optional("Whether it is closed; a closed node blocks nothing (section 11).", default=False)
    archived: bool = optional("Whether it is archived: shown only on request.", default=False)
    deleted: bool = optional("Whether it is deleted; only its records remain.", default=False)
    reason: Line | None = optional("Why it was closed, archived or deleted.")
    summarized_into: NodeId | None = optional("The summary that contains it.")
    updated_at: RealTime | None = optional("The last change of an imported node.")
    metadata: dict[str, Any] = optional("Further data.", default={})
    sender_identity: Address = required("The writer.")
    sender_session: Address | None = optional("The session that wrote it.")
    sender_name: Line | None = optional("The display name of that session.")


class Patch(Record):
    """A change of some fields of one or more nodes. For each field the causally last change counts."""

    KIND = "patch"
    STREAM = "memory"
    NOUN = "memory change"
    ANSWER = TextAnswer

    id: PatchId = required("The id of this patch.", defines=True)
    node_ids: Many[NodeId] = required("The nodes that it changes.")
    after: Many[PatchId] = optional("The latest patches of these nodes that its writer had seen.", default=())
    clear: Many[Annotated[ShortLine, AfterValidator(TextRule())]] = optional(
        "Fields that become empty.", default=()
    )
    type: Literal["session", "discovery", "checkpoint", "note", "summary"] | None = optional(
        "The type of its content."
    )
    lifecycle: Literal["ephemeral", "session", "wu", "project"] | None = optional("The lifetime.")
    content: Message | None = optional("The text.", text=True)
    priority: Literal["P0", "P1", "P2", "P3"] | None = optional("The priority.", clearable=True)
    tags: Many[Tag] = optional("All its tags.", default=(), clearable=True)
    wu_id: WorkUnit | None = optional("The work unit that it belongs to.", clearable=True)
    session_id: Address | None = optional("The session that it belongs to.", clearable=True)
    lane: ShortLine | None = optional("The lane for which it is relevant.", clearable=True)
    paths: Many[Path] = optional("All its files and folders.", default=(), clearable=True)
    head: CommitId | None = optional("The commit of HEAD when the node was last known to be correct.")
    branch: Line | None = optional("The branch of `head`.")
    sensitive: bool = optional("Whether cleanup keeps it.", default=False, clearable=True)
    closed: bool = optional("Whether it is closed.", default=False, clearable=True)
    archived: bool = optional("Whether it is archived.", default=False, clearable=True)
    deleted: bool = optional("Whether it is deleted.", default=False, clearable=True)
    reason: Line | None = optional("Why it was closed, archived or deleted.", clearable=True)
    summarized_into: NodeId | None = optional("The summary that contains it.", clearable=True)
    metadata: dict[str, Any] = optional(
        "Entries to change one by one; null removes an entry.", default={}, clearable=True
    )
    sender_identity: Address = required("The agent or person that changed it.")
    sender_session: Address | None = optional("The session that changed it.")
    sender_name: Line | None = optional("The display name of that session.")


class Relation(Record):
    """One node gets or loses a relation to another. The causally last record counts."""

    KIND = "relation"
    STREAM = "memory"
    NOUN = "memory relation"

    id: RelationId = required("The id of this record.", defines=True)
    from_id: NodeId = required("The node at its start: the blocker, the parent, the newer node.")
    to_id: NodeId = required("The node at its end: the blocked one, the child, the source or the older node.")
    type: Literal["blocks", "parent_child", "related", "discovered_from", "supersedes"] = required(
        "The type of the relation."
    )
    removed: bool = optional("Whether the relation ends.", default=False)
    after: Many[RelationId] = optional(
        "The earlier records of the same relation that its writer had seen.", default=()
    )
    metadata: dict[str, Any] = optional("Further data.", default={})
    sender_identity: Address = required("The writer.")
    sender_session: Address | None = optional("The session that wrote it.")
    sender_name: Line | None = optional("The display name of that session.")


class Access(Record):
    """One reading, with the nodes that it showed. Nodes that are read often decay more slowly."""

    KIND = "access"
    STREAM = "memory"
    NOUN = "access record"

    id: AccessId = required("The id of this access.", defines=True)
    node_ids: Many[NodeId] = required("The nodes that were shown.")
    reader_identity: Address = required("The reader.")
    reader_session: Address | None = optional("The session of the reader.")


class Audit(Record):
    """One exception to a rule, with its reason. It changes no state."""

    KIND = "audit"
    STREAM = "audits"
    NOUN = "gate record"
    ANSWER = AuditAnswer

    audit_id: AuditId = required("The id of this record.", defines=True)
    action: ShortLine = required(
        "The rule that was bypassed: `gate`; without `signal_ids` also `checkpoint-gate`, `claim` (the guard of claims) and `claim-release`."
    )
    reason: Message = required(
        "The reason, in the sender's words; of the guard of claims and of a release it ends with the ids of the claims, as ` (claim-…, claim-…)`."
    )
    reader_identity: Address = required("The reader whose signals blocked it.")
    signal_ids: Many[SignalId] = optional(
        "The signals that blocked the gate, oldest first, at most 1,000.", default=()
    )
    wu_id: WorkUnit | None = optional("The work unit.")
    initiative_id: ShortLine | None = optional("The initiative.")
    sender_identity: Address = required("The agent or person that did it.")
    sender_session: Address | None = optional("The session that did it.")
    sender_name: Line | None = optional("The display name of that session.")


class Task(Record):
    """A task as its caller wrote it. Its state is computed from the task events that name it."""

    KIND = "task"
    STREAM = "tasks"
    ANSWER = TextAnswer

    task_id: TaskId = required("The id of this task.", defines=True)
    thread_id: ThreadId = required("The conversation that it belongs to.")
    message: Message = required("What is to be done.", text=True)
    purpose: Annotated[ShortLine, written(PURPOSES)] = optional("What it is.", default="call")
    agent: Address | None = optional("Whom it is for; without it, anybody with `target_role` may take it.")
    requested_to: Line | None = optional("The addressee as the caller typed it.", may_differ=True)
    resolved_by: Line | None = optional("How the addressee was resolved, as in a signal.", may_differ=True)
    target_role: ShortLine | None = optional("The role that it is for, such as `reviewer/docs`.")
    requested_role: dict[str, Any] = optional("The role in parts, which count: a *role* object.", default={})
    requested_ownership_scope: dict[str, Any] = optional("What it covers: a *scope* object.", default={})
    requested_model: ShortLine | None = optional("The model that it is for.")
    priority: Annotated[ShortLine, written(PRIORITIES)] | None = optional("The priority; P0 is the highest.")
    blocked_by: Many[TaskId] = optional("The tasks that must be finished before it.", default=())
    payload: dict[str, Any] = optional(
        "Content beyond the text. With a brief `brief`: an object with its `length` in bytes and the `client` of the session that attests it; `again` true: an agent may be in its chain twice; `tell` true, of a call: its result is told its caller by a signal, as that of a delegation; of A2A: section 15.",
        default={},
        text=True,
    )
    context: dict[str, Any] = optional(
        "The working memory that the caller hands over (section 15).", default={}, may_differ=True, text=True
    )
    brief_digest: Digest | None = optional("SHA-256 of the brief that the caller attests.")
    artifact_path: Path | None = optional("The file of the brief.")
    semantics: Annotated[ShortLine, written(SEMANTICS)] = optional(
        "How often it may begin, over all clones.", default="at-least-once"
    )
    deadline: At | None = optional("The time after which nobody begins it.", may_differ=True)
    chain: Many[TaskId] = optional(
        "The tasks within which it was written, outermost first.", default=(), may_differ=True
    )
    references: Many[TaskId] = optional("Other tasks that it refers to.", default=())
    supersedes: Many[TaskId] = optional("Earlier tasks of its caller that it replaces.", default=())
    handoff_takes: Many[EventId] = optional(
        "Of a handoff: the giver's takes of the tasks that it hands over.", default=()
    )
    handoff_tasks: Many[TaskId] = optional("Of a handoff: the task of each of these takes.", default=())
    handoff_claims: Many[ClaimId] = optional("Of a handoff: the claims that it hands over.", default=())
    handoff_threads: Many[ThreadId] = optional("Of a handoff: the open threads.", default=())
    checkpoint: NodeId | None = optional("Of a handoff: the giver's last checkpoint.")
    idempotency_key: Line | None = optional("Tasks of one caller with one key are the same task (section 6).")
    wu_id: WorkUnit | None = optional("The work unit.")
    initiative_id: ShortLine | None = optional("The initiative.")
    lane: ShortLine | None = optional("The lane.")
    workspace_id: ShortLine | None = optional("Routing key of a hosted transport (section 9).")
    sender_identity: Address = required("The caller: an agent identity, a session id or a person.")
    sender_session: Address | None = optional(
        "The session that wrote it, which alone may seal it.", may_differ=True
    )
    sender_name: Line | None = optional("The display name of that session.", may_differ=True)


class TaskEvent(Record):
    """Somebody takes a task, works on it, answers, or decides its outcome."""

    KIND = "task_event"
    STREAM = "tasks"
    ANSWER = TextAnswer

    event_id: EventId = required("The id of this event.", defines=True)
    task_id: TaskId = required("The task.")
    event: Annotated[ShortLine, written(EVENTS)] = required("What happened; other values are ignored.")
    after: Many[EventId] = optional("The latest events of the task that its writer had seen.", default=())
    take: EventId | None = optional("The take under which it is written.")
    until: At | None = optional("The end of the lease that a take or a renewal gives.")
    state: Annotated[ShortLine, written(STATES)] | None = optional(
        "The state that a status reports, or that a seal or close decides."
    )
    retryable: bool = optional("Of a failed status: whether somebody else may take the task.", default=False)
    outcome: EventId | None = optional("The event whose result a seal or close makes the outcome.")
    answers_digest: Digest | None = optional(
        "Digest of the line of that event, so that its text cannot be replaced."
    )
    message: Message | None = optional("The text, unchanged.", text=True)
    payload: dict[str, Any] = optional(
        "Content beyond the text: `error`, `artifact`, `commit`, `branch` (section 15).",
        default={},
        text=True,
    )
    append: bool = optional("Whether an artifact continues the one before.", default=False)
    last_chunk: bool = optional("Whether an artifact is complete.", default=False)
    reason: Line | None = optional("Why.")
    level: Annotated[ShortLine, written(LEVELS)] | None = optional("Of an escalation.")
    actual_role: dict[str, Any] = optional(
        "Of a take or launch: the role of the worker, in parts as in a task.", default={}
    )
    actual_ownership_scope: dict[str, Any] = optional(
        "Of a take or launch: what the worker covers, as in a task.", default={}
    )
    requested_model: ShortLine | None = optional("Of a launch: the model that was asked for.")
    model: ShortLine | None = optional("The model of the worker.")
    client: ShortLine | None = optional("The client of the worker.")
    worktree: Path | None = optional("The folder's name of the worker's worktree.")
    branch: Line | None = optional("The branch of the worker's worktree.")
    launch: EventId | None = optional("Of a take: the launch that led to it.")
    relaunch_of: EventId | None = optional("Of a launch: the launch that it repeats.")
    attempt: ShortLine | None = optional("Of a launch: the label of this attempt.")
    wave: ShortLine | None = optional("Of a launch: its wave.")
    lane: ShortLine | None = optional("Of a launch: its lane.")
    claimed_mode: ShortLine | None = optional("Of a launch: how the work unit was claimed.")
    handoff_path: Path | None = optional("Of a launch: the file with the brief.")
    sender_identity: Address = required("The writer.")
    sender_session: Address | None = optional("The session that wrote it.")
    sender_name: Line | None = optional("The display name of that session.")


class Claim(Record):
    """A claim on paths begins, gets more time, or ends. Claims are advice and always expire."""

    KIND = "claim"
    STREAM = "claims"

    claim_id: ClaimId = required(
        "The id of the claim, the same in all its records.", defines=True, but_for="release"
    )
    event: Annotated[ShortLine, written(CLAIM_EVENTS)] = required(
        "What happens to it; other values are ignored."
    )
    paths: Many[Path] = required(
        "Paths from the root of the work tree, with `*`, `?` and `**`; a folder covers its content."
    )
    mode: Annotated[ShortLine, written(MODES)] = optional(
        "Whether others may claim the paths, too.", default="exclusive"
    )
    until: At | None = optional("Its end; missing in a release.")
    reason: Line | None = optional("Why, in the sender's words.")
    task_id: TaskId | None = optional("The task that it belongs to; it ends with it.")
    wu_id: WorkUnit | None = optional("The work unit.")
    workspace_id: ShortLine | None = optional("Routing key of a hosted transport (section 9).")
    after: Many[ClaimId] = optional("The claims on the same paths that its writer had seen.", default=())
    sender_identity: Address = required("The writer.")
    sender_session: Address | None = optional("The session that wrote it.")
    sender_name: Line | None = optional("The display name of that session.")


class Commit(Record):
    """A commit was made in a worktree with a session. Nothing of its content is in the record."""

    KIND = "commit"
    STREAM = "commits"

    link_id: LinkId = required(
        "The id of this record: bound to its writer, the same for one `commit` and `sender_session` (section 6).",
        defines=True,
    )
    commit: CommitId = required("The commit.")
    patch_id: CommitId | None = optional(
        "What `git patch-id --stable` says of its changes; missing of a merge."
    )
    authored_at: At | None = optional("The author's time, to the second: it stays when a commit is repeated.")
    action: Annotated[ShortLine, written(ACTIONS)] = required(
        "What made it; `apply`: a patch, `rewrite`: one of the others, unknown which."
    )
    evidence: Annotated[ShortLine, written(EVIDENCE)] = required(
        "Why the session is named: `environment` of git's hook, `output` of the agent's command, `alone` in the worktree (inferred), `none`: nobody knows who made it."
    )
    sources: Many[CommitId] = optional("The commits that it replaces or repeats.", default=())
    parts: Many[CommitId] = optional("The patch ids of the changes that it combines.", default=())
    branch: Line | None = optional("The branch of its worktree when it was found.")
    task_id: TaskId | None = optional("The task that its session had when it was made.")
    wu_id: WorkUnit | None = optional("The work unit that its session had when it was made.")
    workspace_id: ShortLine | None = optional("Routing key of a hosted transport (section 9).")
    sender_identity: Address = required("Who made it; with the evidence `none` only who found it.")
    sender_session: Address | None = optional("The session that made it, or that found it.")
    sender_name: Line | None = optional("The display name of that session.")


def base64_form(name: str, least: int, most: int) -> Form:
    """Return the form of bytes in base64url without padding, of so many characters."""
    words = "base64url without padding"
    return Form(name, r"^[A-Za-z0-9_-]+$", words, least=least, most=most)  # regexes can't count to as many


DIGEST_MAX = 9_000  # of lines in one attestation
CloneToken = Annotated[str, Form("token", r"^[a-z0-9]{1,64}$", "1 to 64 lower-case letters or digits")]
Number = Annotated[
    str,
    Form("number", r"^[1-9][0-9]{0,8}$", "a number above 0 of at most 9 digits, none of them a leading 0"),
]


class Attestation(Record):
    """A writer signs lines of its own (section 13)."""

    KIND = "attestation"
    STREAM = "seals"

    key: Annotated[str, base64_form("public key", 43, 43)] = required("The writer's public key.")
    clone: CloneToken = required("The clone in which it was written.")
    number: Number = required("Its place among the attestations of this clone.")
    before: LineHash | None = optional(
        "The hash of the attestation with the number before; only the first has none."
    )
    lines: Annotated[str, base64_form("hashes of lines", 22, DIGEST_MAX * 16 * 8 // 6)] = required(
        "The hashes of the lines, in ascending order.", shown=False
    )
    signature: Annotated[str, base64_form("signature", 86, 86)] = required(
        "The signature of what precedes this field.", shown=False
    )


class Forget(Record):
    """A writer takes back the texts of lines of its own, or of one that lets it write as it (section 13). What they decide stays."""

    KIND = "forget"
    STREAM = "forgets"
    NOUN = "forgetting"

    forget_id: ForgetId = required("The id of this record.", defines=True)
    lines: Many[LineHash] = required("The hashes of the lines.", shown=False)
    of: WriterId | None = optional("The writer of the lines, if that is another one.")
    about: Line = required("The id that was named.")
    reason: Line = required("Why, in the sender's words.")
    sender_identity: Address = required("The agent or person that did it.")
    sender_session: Address | None = optional("The session that did it.")
    sender_name: Line | None = optional("The display name of that session.")


TRUST_EVENTS = ("grant", "accept", "endorse")


class Trust(Record):
    """A writer lets another one write as addresses of its own, goes on as another one, or shows whose SSH key vouches for it (section 13)."""

    KIND = "trust"
    STREAM = "trust"
    NOUN = "record of trust"
    NAMES = True

    trust_id: TrustId = required("The id of this record.", defines=True)
    event: Annotated[ShortLine, written(TRUST_EVENTS)] = required(
        "`grant`: the other writer may write as this one's addresses; `accept`: this writer goes on as the other one; `endorse`: `signature` is of this writer, which is `other`, too, and no fold reads it; other values are ignored."
    )
    other: WriterId = required("The other writer.")
    words: Many[Address] = optional(
        "The words of the addresses that a grant is for. Without any, all of them.", default=()
    )
    signature: Annotated[str, base64_form("SSH signature", 100, 8_000)] | None = optional(
        "Of an endorsement: the SSH signature (SSHSIG) of the id of its writer in the namespace `gitmem`.",
        shown=False,
    )
    sender_name: Line | None = optional("The display name of who did it.")


# They contain no vocabulary: its words belong to packs, and readers accept others. What is not a text or a list of texts
# is ignored on read (`gitmem.agents.descriptors.read`), so these models check nothing.


class AgentRoleDescriptor(BaseModel):
    """The role of an agent. Its two parts count; `lifecycle_role/specialty_profile` only shows them."""

    model_config = ConfigDict(extra="allow")

    lifecycle_role: str = Field(description="The phase of the work that the agent owns.")
    specialty_profile: str = Field(description="The specialized view that it brings.")
    role_alias: str | None = Field(default=None, description="The name that the role was given by.")
    capabilities: list[str] = Field(description="What it can do: no substitute for the role.")


class OwnershipScope(BaseModel):
    """What an agent is responsible for."""

    model_config = ConfigDict(extra="allow")

    responsibility_kinds: list[str] = Field(description="The kinds of responsibility; empty if unknown.")
    initiative_id: str | None = Field(default=None, description="The initiative.")
    wu_ids: list[str] = Field(default=[], description="The work units.")
    lane: str | None = Field(default=None, description="The lane.")
    paths: list[str] = Field(default=[], description="Paths from the top of the work tree; `*` and `**`.")


def models() -> list[type[Record]]:
    """Return the models of all kinds."""
    return [each for each in Record.__subclasses__() if each.__module__ == __name__]


def model(kind: str) -> type[BaseModel]:
    """Return the model of a known kind, or of an object in records by its name."""
    found: type[BaseModel] = next((each for each in models() if kind == each.KIND), None) or globals()[kind]
    return found


def first_error(record: Mapping[str, object], *, writing: bool) -> str | None:
    """Return the first error of a whole record of a known kind, as a sentence, or None if it is valid."""
    kind = str(record["kind"])
    try:
        model(kind).model_validate(record, context="writing" if writing else "reading")
    except ValidationError as error:
        return _sentence(kind, error.errors(include_url=False)[0])
    return None


def schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the lines of a known kind, or of an object in them."""
    found = model(kind).model_json_schema()
    if "kind" in found["properties"]:
        found["properties"]["kind"]["const"] = kind
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _sentence(kind: str, error: ErrorDetails) -> str:
    field, *inside = error["loc"] or ("record",)
    where = f"{field}[{inside[0]}]" if inside and isinstance(inside[0], int) else str(field)
    given, context = error["input"], error.get("ctx", {})
    shown = ascii(given if not isinstance(given, str) else given[:_SHOWN])[: _SHOWN + 2]
    what = f"The {kind}'s {where}"
    match error["type"]:
        case "missing":
            return f"{what} is missing"
        case "string_pattern_mismatch" if given == "":
            return f"{what} is empty"
        case "string_pattern_mismatch":
            return f"{what} must be {WORDS[context['pattern']]}, not {shown}"
        case "string_too_short":
            return f"{what} is empty"
        case "string_too_long":
            return f"{what} is {len(given)} characters, and at most {context['max_length']} are allowed"
        case "string_unicode":
            return f"{what} has half of a surrogate pair, which UTF-8 can't carry"
        case "literal_error":
            return f"{what} must be {context['expected']}, not {shown}"
        case "text_rule":
            named = f", not {shown}" if error["msg"].startswith("must be ") else ""
            return f"{what} {error['msg']}{named}"
        case _:
            return f"{what} is not right: {error['msg']}, not {shown}"
