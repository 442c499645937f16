"""The one-line form: what is written, what is refused, and what is read back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.agents import descriptors, vocabulary
from gitmem.errors import UsageError
from gitmem.log import lines
from gitmem.records import lines as record_lines
from gitmem.records import table

from ..profiles import up_to

AT = 1_795_291_200_123_456
SIGNAL: dict[str, Any] = {
    "signal_id": "sig-3f9k2m7q1x0z",
    "sender_identity": "codex:implementer:host42@gitmem",
    "message": "Approve this boundary?",
}
RECEIPT = {
    "signal_id": "sig-3f9k2m7q1x0z",
    "reader_identity": "human:ada@example.org",
    "answers_digest": "0" * 64,
}
SESSION = {
    "session_id": "sess-3f9k2m7q1x0z",
    "event": "start",
    "display_name": "Planck",
    "clone_id": "clone-1",
}


def signal(**fields: Any) -> bytes:
    return records.line("signal", AT, {**SIGNAL, **fields})


def read(line: bytes) -> dict[str, Any]:
    record = records.read(line)
    assert record is not None
    return record


def test_a_signal_is_one_canonical_line() -> None:
    """Fields stand in the model's order, defaults and recipients are there, empty fields are not."""
    line = signal(
        wu_id="WU-123", lane="", after=[], requires_ack=False, recipients=("b:c:d",), sender_name=None
    )

    assert line.decode() == (
        '{"at":"2026-11-21T20:00:00.123456Z","kind":"signal","schema_version":"A2A.V1",'
        '"signal_id":"sig-3f9k2m7q1x0z","sender_identity":"codex:implementer:host42@gitmem",'
        '"recipients":["b:c:d"],"target_agent":"b:c:d","intent":"INFO","interrupt_class":"advisory",'
        '"origin":"local","wu_id":"WU-123","message":"Approve this boundary?"}'
    )


@pytest.mark.parametrize(("kind", "fields"), [("signal", SIGNAL), ("receipt", RECEIPT), ("session", SESSION)])
def test_every_kind_is_read_as_it_was_written(kind: str, fields: dict[str, Any]) -> None:
    """Each kind's least record is a good line of the log and comes back with its fields."""
    line = records.line(kind, AT, fields)

    assert lines.validation_error(line) is None
    assert records.explain_unreadable(line) is None
    assert fields.items() <= read(line).items()
    assert kind in records.KINDS and kind in records.STREAMS


def test_a_broadcast_keeps_its_empty_recipients() -> None:
    """Recipients are a field of the contract that is always there; an old name for none is not."""
    record = read(signal())

    assert record["recipients"] == []
    assert "target_agent" not in record


def test_unknown_fields_come_last_but_for_the_texts_and_as_they_were() -> None:
    """What a newer contract adds is kept, empty or nested, in the order given."""
    line = signal(zeta={"b": [1, None, 2.5], "a": ""}, alpha=None)

    unknown = b',"origin":"local","zeta":{"b":[1,null,2.5],"a":""},"alpha":null'
    assert line.endswith(unknown + b',"message":"Approve this boundary?"}')
    assert read(line)["zeta"] == {"b": [1, None, 2.5], "a": ""}


@pytest.mark.parametrize(
    "message",
    [
        "-x",
        "'\"`$(id)",
        "a\nb\r\n",
        "a\u2028b",
        "a\x00b",
        "\x1b[31m",
        "\u202eabc",
        "\u00fc\U0001f600",
        "\x7f",
        " ",
        "a" * 65536,
    ],
)
def test_a_message_is_kept_verbatim(message: str) -> None:
    """Quotes, newlines, NUL, escapes and bidi controls come back as they were, from one line."""
    line = signal(message=message)

    assert lines.validation_error(line) is None
    assert read(line)["message"] == message


def test_the_time_is_the_logs_own() -> None:
    """Both rooms write a time the same way, and neither writes one that has no four-digit year."""
    for at in (0, 1, AT, 951_782_400_000_000, 253_402_300_799_999_999):
        assert records.line("receipt", at, RECEIPT)[7:34].decode() == lines.format_at(at)
    for at in (-1, 253_402_300_800_000_000):
        with pytest.raises(records.RecordError, match="1970"):
            records.line("receipt", at, RECEIPT)
    assert record_lines.LINE_MAX_BYTES == lines.LINE_MAX_BYTES


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"message": ""}, "signal's message is empty"),
        ({"message": None}, "signal's message is missing"),
        ({"message": "a" * 65537}, "message is 65537 bytes, and at most 65536"),
        ({"message": "\u00fc" * 32769}, "message is 65538 bytes, and at most 65536"),
        ({"message": "\ud800"}, "message has a value that JSON"),
        ({"message": b"bytes"}, "message has a value that JSON"),
        ({"signal_id": "sig-ABC"}, "signal_id must be sig- and 4 to 32"),
        ({"signal_id": "sig-abcd\n"}, "signal_id must be"),
        ({"sender_identity": "a,b"}, "sender_identity must be"),
        ({"sender_identity": "a\u200bb"}, "sender_identity must be"),
        ({"recipients": ["ok:ok:ok", "not ok"]}, r"recipients\[1\] must be"),
        ({"recipients": "a:b:c"}, "recipients is not right"),
        ({"recipients": {"a:b:c"}}, "recipients has a value that JSON"),
        (
            {"recipients": ["a:b:c"], "target_agent": "d:e:f"},
            "target_agent differs from the first entry of recipients",
        ),
        ({"intent": "agree"}, "intent must be 'INFO'"),
        ({"interrupt_class": "loud"}, "interrupt_class must be priority or advisory"),
        ({"resolved_by": ["guess"]}, r"resolved_by\[0\] must be exact or"),
        ({"requires_ack": 1}, "requires_ack is not right"),
        ({"wu_id": "WU-\u0661"}, "wu_id must be 1 to 100 letters, digits"),
        ({"wu_id": 7}, "wu_id is not right"),
        ({"lane": "a\nb"}, "lane must be one line"),
        ({"lane": "a" * 201}, "lane is 201 characters, and at most 200"),
        ({"lane": ["a"]}, "lane is not right"),
        ({"artifact_path": "a\0b"}, "artifact_path must be text without NUL"),
        ({"answers_digest": "F" * 64}, "answers_digest must be 64"),
        ({"schema_version": "A2A.V2"}, "schema_version must be 'A2A.V1'"),
        ({"created_at": "2026-11-21T20:00:00Z"}, "invalid field: created_at"),
        ({"kind": "signal"}, "invalid field: kind"),
        ({"later": float("nan")}, "later has a value that JSON"),
        ({"later": {1: 2}}, "later has a value that JSON"),
        ({"later": object()}, "later has a value that JSON"),
        ({"later": "\udc80"}, "later has a value that JSON"),
        ({"later": "a" * 262144}, "a line of 262[0-9]{3} bytes, and at most 262144"),
    ],
)
def test_an_unfit_field_is_refused_by_name(fields: dict[str, Any], sentence: str) -> None:
    """The sentence names the field and what is wrong, with both numbers where a size is."""
    with pytest.raises(records.RecordError, match=sentence) as caught:
        signal(**fields)

    assert isinstance(caught.value, UsageError)
    assert (caught.value.status, caught.value.code) == (2, "invalid-record")
    caught.value.message.encode()


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("session", "display_name", "a" * 65),
        ("session", "display_name", "a,b"),
        ("session", "display_name", " a"),
        ("session", "display_name", "a\u2066b"),
        ("session", "agent_identity", "owner:role"),
        ("session", "agent_identity", "owner::purpose"),
        ("session", "agent_identity", "a:b:c:d"),
        ("session", "agent_identity", "a:b c:d"),
        ("session", "agent_identity", "human:role:purpose"),
        ("session", "event", "pause"),
        ("session", "session_id", "3f9k2m7q1x0z"),
        ("receipt", "delivery_state", "seen"),
        ("receipt", "answers_digest", ""),
        ("session", "display_name", "tab\there"),
    ],
)
def test_the_other_kinds_refuse_by_name_too(kind: str, field: str, value: str) -> None:
    """Sessions and receipts keep their own rules."""
    fields = {"session": SESSION, "receipt": RECEIPT}[kind]

    with pytest.raises(records.RecordError, match=f"{kind}'s {field} "):
        records.line(kind, AT, {**fields, field: value})


def test_an_unknown_kind_is_refused() -> None:
    """Only known kinds are written."""
    with pytest.raises(records.RecordError, match="'rumour' is not a kind"):
        records.line("rumour", AT, {})


@pytest.mark.parametrize("name", ["\u017b\u00f3\u0142w", "\u6797", "Planck-2", "\U0001f680"])
def test_names_of_all_scripts_are_taken(name: str) -> None:
    """A display name need not be ASCII."""
    assert read(records.line("session", AT, {**SESSION, "display_name": name}))["display_name"] == name


@pytest.mark.parametrize(
    "who",
    [
        "human:ada@example.org",
        "sess-3f9k2m7q1x0z",
        "0198c6f0-2f7e-7c31-b1c5-d1d9b2c7a1e0",
        "a:b:c",
        "\u00e9:b:c",
    ],
)
def test_all_addresses_are_taken(who: str) -> None:
    """Agents, sessions, a harness's own ids and people can send and receive."""
    record = read(signal(sender_identity=who, recipients=[who]))

    assert (record["sender_identity"], record["recipients"], record["target_agent"]) == (who, [who], who)


SECRET = "ghp" + "_" + "a1B2" * 9


@pytest.mark.parametrize(
    "fields",
    [
        {"message": f"use {SECRET}."},
        {"sender_headline": SECRET},
        {"requested_to": ["x", SECRET]},
        {"later": {"a": [{"b": SECRET}]}},
        {"later": {SECRET: 1}},
        {SECRET: 1},
    ],
)
def test_a_secret_is_refused_wherever_it_stands(fields: dict[str, Any]) -> None:
    """No field, list, key or unknown corner may carry what looks like a token; the error does not repeat it."""
    with pytest.raises(records.SecretError, match="seems to contain a GitHub token") as caught:
        signal(**fields)

    assert (caught.value.status, caught.value.code) == (2, "secret")
    assert "GITMEM_ALLOW_SECRET=1" in caught.value.hint
    assert SECRET not in caught.value.hint + caught.value.message
    assert records.read(records.line("signal", AT, {**SIGNAL, **fields}, allow_secret=True))


def test_a_usual_write_imports_neither_json_nor_pydantic() -> None:
    """Start-up is a feature: one signal needs nothing heavy, and one read only json."""
    code = (
        "import sys; before = set(sys.modules); from gitmem import records\n"
        f"line = records.line('signal', {AT}, {SIGNAL!r})\n"
        "heavy = {'json', 're', 'pydantic', 'typing', 'dataclasses', 'pathlib', 'hashlib'}\n"
        "assert not heavy & (set(sys.modules) - before), heavy & set(sys.modules)\n"
        "assert records.read(line); assert 'pydantic' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


@settings(max_examples=up_to(200), deadline=None)
@given(
    message=st.text(min_size=1),
    extra=st.dictionaries(
        st.text(min_size=1).filter(lambda name: name not in record_lines._OWN),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=8,
        ),
        max_size=4,
    ),
)
def test_what_is_written_is_read(message: str, extra: dict[str, Any]) -> None:
    """Whatever line() accepts, read() gives back, and the log takes its outer form."""
    from gitmem.records.table import FIELDS

    extra = {name: value for name, value in extra.items() if name not in FIELDS["signal"]}
    line = records.line("signal", AT, {**SIGNAL, "message": message, **extra}, allow_secret=True)

    assert lines.validation_error(line) is None
    assert {**SIGNAL, "message": message, **extra}.items() <= read(line).items()
    assert records.explain_unreadable(line) is None


# Reading lines: more lenient than writing, and a sentence for what is no record.


def least_signal(**fields: Any) -> bytes:
    least = {"signal_id": "sig-3f9k2m7q1x0z", "sender_identity": "a:b:c", "message": "Approve this boundary?"}
    return records.line("signal", AT, {**least, **fields})


def altered(line: bytes, **fields: Any) -> bytes:
    """The line as somebody else's writer might have written it."""
    record = {**json.loads(line), **fields}
    kept = {name: value for name, value in record.items() if value is not ...}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def test_deep_nesting_is_refused() -> None:
    """A depth that some reader's stack can't follow is neither written nor read."""
    deep: Any = []
    for _ in range(100):
        deep = [deep]

    with pytest.raises(records.RecordError, match="later has a value"):
        least_signal(later=deep)
    assert records.read(altered(least_signal(), later=deep)) is None
    assert records.read(b'{"at":"2026-11-21T20:00:00.123456Z","kind":"session","x":' + b"[" * 200_000) is None


def test_the_old_name_alone_is_read_and_written_as_recipients() -> None:
    """`target_agent` without `recipients` is a directed signal, from any writer."""
    line = least_signal(target_agent="b:c:d")

    assert read(line)["recipients"] == ["b:c:d"]
    assert read(altered(line, recipients=...))["recipients"] == ["b:c:d"]


def test_reading_is_more_lenient_than_writing() -> None:
    """Interrupts, resolutions and states that we don't write, nulls, unknown fields and missing defaults are read."""
    line = least_signal()
    reader = {"signal_id": "sig-3f9k2m7q1x0z", "reader_identity": "a:b:c", "answers_digest": "0" * 64}
    receipt = records.line("receipt", AT, reader)

    assert read(altered(line, interrupt_class="loud"))["interrupt_class"] == "loud"
    assert read(altered(line, resolved_by=["guess"]))["resolved_by"] == ["guess"]
    assert read(altered(line, lane=None))["lane"] is None
    assert read(altered(line, later=[{"a": 1}]))["later"] == [{"a": 1}]
    assert read(altered(line, intent=..., schema_version=..., origin=...)) == read(line)
    assert read(altered(receipt, delivery_state="acked"))["delivery_state"] == "acked"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"", "not one JSON object"),
        (b"<<<<<<< ours", "not one JSON object"),
        (b"\xff", "not one JSON object"),
        (b"[]", "not one JSON object"),
        (least_signal()[:-20], "not one JSON object"),
        (least_signal() + b"{}", "not one JSON object"),
        (least_signal()[:-1] + b',"kind":"signal"}', "not one JSON object"),
        (least_signal()[:-1] + b',"message":"another"}', "not one JSON object"),
        (least_signal()[:-1] + b',"at":"2001-01-01T00:00:00.000000Z"}', "not one JSON object"),
        (least_signal()[:-1] + b',"later":NaN}', "not one JSON object"),
        (least_signal()[:-1] + b',"later":1e999}', "later has a value that JSON"),
        (least_signal()[:-1] + b',"later":"\\ud800"}', "not one JSON object"),
        (least_signal().replace(b'"message"', b'"\\u006Dessage"'), "plain names"),
        (least_signal()[:-1] + b',"later":[{ "wu\\u005fid" : 1}]}', "plain names"),
        (altered(least_signal(), kind=7), "not one JSON object"),
        (altered(least_signal(), kind="rumour"), "kind 'rumour' is unknown"),
        (altered(least_signal(), schema_version="A2A.V9"), "schema_version 'A2A.V9' is not A2A.V1"),
        (altered(least_signal(), schema_version=["A2A.V1"]), "schema_version"),
        (altered(least_signal(), signal_id="sig-1"), "signal_id must be"),
        (altered(least_signal(), message=...), "message is missing"),
        (altered(least_signal(), message=None), "message"),
        (altered(least_signal(), recipients=None), "recipients"),
        (altered(least_signal(), intent="SHOUT"), "intent must be"),
        (altered(least_signal(), lane="a\u202eb"), "lane must be one line"),
    ],
)
def test_a_bad_line_costs_that_line_and_is_explained(line: bytes, sentence: str) -> None:
    """What is no record reads as None, and the doctor has a sentence for it."""
    assert records.read(line) is None
    assert sentence in (records.explain_unreadable(line) or "")


SALT = "0123456789abcdefghjkmnpqrs"


def salted(**fields: Any) -> bytes:
    return records.line("signal", AT, {**SIGNAL, **fields}, salt=SALT)


def test_texts_come_last_after_the_salt_which_no_answer_shows() -> None:
    """And what was written is read."""
    line = salted(zeta=1)

    assert line.endswith(f',"zeta":1,"salt":"{SALT}","message":"Approve this boundary?"}}'.encode())
    assert read(line) == read(signal(zeta=1))
    assert b"salt" not in records.line("receipt", AT, RECEIPT, salt=SALT)


@pytest.mark.parametrize("fields", [{"zeta": {"a": 1, "salt": "b"}}, {"salt": "b"}, {"texts": "0" * 64}])
def test_a_writer_refuses_another_salt(fields: dict[str, Any]) -> None:
    """Forgetting would cut the line there."""
    for salt in ("", SALT):
        with pytest.raises(records.RecordError, match=r"salt|texts"):
            records.line("signal", AT, {**SIGNAL, **fields}, salt=salt)


def test_a_salt_in_a_text_is_text() -> None:
    """JSON escapes its quotes."""
    line = salted(message=',"salt":"')

    assert read(line)["message"] == ',"salt":"'
    assert lines.reduced(line).startswith(line[: line.index(b',"salt"')] + b',"texts":"')


_CUT = f',"salt":"{SALT}","message"'.encode()


_END = b"}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_END, f',"salt":"{SALT}"}}'.encode()),
        (_CUT, b',"salt":"0","message"'),
        (_CUT, _CUT.replace(b"0", b"u", 1)),
        (_END, b',"lane":"x"}'),
        (_END, b',"message":"x"}'),
        (_END, b',"origin":"local"}'),
        (_END, b',"texts":"x"}'),
        (_CUT, b',"message":"x"' + _CUT),
        (_CUT, b',"texts":"x"' + _CUT),
        (_CUT, b',"zeta":{"a":1,"salt":"%b"},"message"' % SALT.encode()),
        (_CUT, b',"zeta":{"a":1,"salt":"%b"}, "salt": "%b","message"' % (SALT.encode(), SALT.encode())),
        (_CUT, b',"zeta":[{"a":1,"salt":"%b","message":"x"}],"message"' % SALT.encode()),
    ],
)
def test_what_forgetting_would_damage_is_no_record(old: bytes, new: bytes) -> None:
    """Two salts, one inside of another field, one of another form, and what is no text behind it."""
    before, _, after = salted().rpartition(old)
    line = before + new + after

    assert json.loads(line)
    assert records.read(line) is None
    assert "salt" in (records.explain_unreadable(line) or "")


def test_the_kind_of_a_line_comes_before_its_salt() -> None:
    """Without its texts it would have none."""
    line = salted().replace(b',"kind":"signal"', b"")[:-1] + b',"kind":"signal"}'

    assert records.read(line) is None


def test_a_text_of_a_newer_version_is_kept_after_the_salt() -> None:
    """Unknown fields are ignored there, too."""
    assert read(salted()[:-1] + b',"later":"x"}')["later"] == "x"


def test_other_escapes_are_read() -> None:
    """Only names are refused, and only for an escaped letter, digit or `_`: SQLite might not find the field."""
    line = b'%s,"x":"{\\"a\\u0062\\":","y":["\\u0061",{"\\u00e9\\u003c":"a,"}]}' % least_signal()[:-1]

    assert read(line)["y"] == ["a", {"é<": "a,"}]


@settings(max_examples=up_to(200), deadline=None)
@given(st.binary() | st.builds(lambda tail: least_signal()[:-1] + tail, st.binary()))
def test_no_bytes_break_the_reader(line: bytes) -> None:
    """Reading never raises, and explains exactly what it does not give."""
    assert (records.read(line) is None) == (records.explain_unreadable(line) is not None)


_TIME = "2026-11-21T20:00:00.123456Z"
_time = st.one_of(
    st.tuples(st.integers(0, 26), st.sampled_from("0123456789-:.,TZ W\u0661")).map(
        lambda change: _TIME[: change[0]] + change[1] + _TIME[change[0] + 1 :]
    ),
    st.sampled_from(["1969-12-31T23:59:59.999999Z", "2026-W47-6T20:00:00.123456Z", "2026-02-30T20:00:00.123456Z",
                     "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", "2026-11-21T24:00:00.000000Z"]),
)  # fmt: skip


@settings(max_examples=up_to(400))
@given(_time)
def test_no_time_is_read_that_the_log_refuses(at: str) -> None:
    """A line that one reader takes and another chokes on would stop every clone that it reaches."""
    line = records.line("receipt", 1_793_000_000_000_000, RECEIPT)
    changed = line[:7] + at.encode() + line[34:]

    assert records.read(changed) is None or lines.validation_error(changed) is None


# The records of tasks and claims: what may be written, and what a hostile line does to a reader.

TASK = {"task_id": "task-0001", "thread_id": "thread-0001", "message": "Write the tests", "sender_identity": "a:b:c"}  # fmt: skip
EVENT = {"event_id": "tev-0001", "task_id": "task-0001", "event": "take", "sender_identity": "a:b:c"}
CLAIM = {"claim_id": "claim-0001", "event": "claim", "paths": ["src/**"], "sender_identity": "a:b:c"}
LEAST = {"task": TASK, "task_event": EVENT, "claim": CLAIM}
NEW = ("task", "task_event", "claim")


def test_a_million_character_brief_is_refused_with_its_size() -> None:
    """The error names the field and both sizes."""
    with pytest.raises(
        records.RecordError, match="task's message is 1000000 bytes, and at most 65536 are allowed"
    ):
        records.line("task", AT, {**TASK, "message": "x" * 1_000_000})


@pytest.mark.parametrize("field", ["context", "payload", "requested_role", "requested_ownership_scope"])
def test_an_object_is_limited_by_the_line(field: str) -> None:
    """Objects and lists have no limit of their own; the line has."""
    with pytest.raises(records.RecordError, match="at most 262144 are allowed"):
        records.line("task", AT, {**TASK, field: {"x": "y" * 300_000}})


def test_a_hostile_longer_message_is_ignored_on_read() -> None:
    """A line that no writer of ours makes is kept by the log, and read by nobody."""
    line = records.line("task", AT, TASK).replace(b"Write the tests", b"x" * 70_000)
    assert records.read(line) is None
    assert "at most 65536" in str(records.explain_unreadable(line))


@pytest.mark.parametrize("kind", NEW)
def test_an_integer_is_refused_in_every_field(kind: str) -> None:
    """Times and lists count instead: old and new readers agree on what is equal. Objects may have numbers."""
    for name, spec in table.FIELDS[kind].items():
        if name not in ("writer", "texts"):
            with pytest.raises(records.RecordError, match=r"7|must|not right"):
                records.line(kind, AT, {**LEAST[kind], name: 7})
            assert spec[0] in {"line", "text", "word", "form", "list", "flag", "object", "choice"}


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("task", "purpose", "rumour"),
        ("task", "priority", "P7"),
        ("task_event", "event", "steal"),
        ("task_event", "state", "done"),
        ("claim", "event", "keep"),
        ("claim", "mode", "greedy"),
    ],
)
def test_an_unknown_word_is_refused_when_written_and_kept_when_read(
    kind: str, field: str, value: str
) -> None:
    """A later version may have more words; its lines stay readable and only their effect is unknown."""
    with pytest.raises(records.RecordError, match=f"{field} must be "):
        records.line(kind, AT, {**LEAST[kind], field: value})
    line = records.line(kind, AT, LEAST[kind])
    fields = json.loads(line)
    fields[field] = value
    read = records.read(json.dumps(fields, separators=(",", ":")).encode())
    assert read is not None
    assert read.get(field) == value


# The objects of roles have a schema that other programs can check, without the words of any pack.


def test_a_descriptor_and_a_scope_have_the_fields_of_the_contract() -> None:
    """R6, R7: which are required, and which are not."""
    role, owned = records.schema("AgentRoleDescriptor"), records.schema("OwnershipScope")

    assert role["required"] == ["lifecycle_role", "specialty_profile", "capabilities"]
    assert set(role["properties"]) - set(role["required"]) == {"role_alias"}
    assert owned["required"] == ["responsibility_kinds"]
    assert set(owned["properties"]) - set(owned["required"]) == {"initiative_id", "wu_ids", "lane", "paths"}
    assert set(descriptors.KEYS.values()) == set(owned["properties"])


def test_the_schemas_have_no_vocabulary() -> None:
    """R1: a pack has it."""
    text = json.dumps([records.schema(name) for name in records.OBJECTS])

    assert not any(f'"{word}"' in text for word in vocabulary.builtin().lifecycle_roles)
    with pytest.raises(records.RecordError):
        records.schema("role")


def test_r8_a_role_id_is_rendered_and_never_stored() -> None:
    """No record has one, and one that somebody writes into a record changes nothing: the two parts count."""
    assert not [kind for kind in records.KINDS if "role_id" in records.schema(kind)["properties"]]
    assert "role_id" not in records.schema("AgentRoleDescriptor")["properties"]
    asked = {"lifecycle_role": "implementer", "specialty_profile": "test", "role_id": "reviewer/docs"}
    actual = {"lifecycle_role": "reviewer", "specialty_profile": "docs", "role_id": "reviewer/docs"}

    assert (descriptors.role_text(asked), descriptors.role_text(actual)) == (
        "implementer/test",
        "reviewer/docs",
    )
    assert descriptors.compare(asked, actual).role_mismatch is True


@pytest.mark.parametrize("kind", ["signal", "task"])
def test_r30_a_message_stays_required(kind: str) -> None:
    """The fields beside it do not replace what people read."""
    assert "message" in records.schema(kind)["required"]
    assert records.schema(kind)["properties"]["message"]["minLength"] == 1
