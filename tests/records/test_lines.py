"""The one-line form: what is written, what is refused, and what is read back."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.errors import UsageError
from gitmem.log import lines
from gitmem.records import lines as record_lines
from tests.profiles import up_to

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
NAME = {"name": "Planck", "event": "add"}


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
        '"message":"Approve this boundary?","origin":"local","wu_id":"WU-123"}'
    )


@pytest.mark.parametrize(
    ("kind", "fields"), [("signal", SIGNAL), ("receipt", RECEIPT), ("session", SESSION), ("name", NAME)]
)
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


def test_unknown_fields_come_last_and_as_they_were() -> None:
    """What a newer contract adds is kept, empty or nested, in the order given."""
    line = signal(zeta={"b": [1, None, 2.5], "a": ""}, alpha=None)

    assert line.endswith(b',"origin":"local","zeta":{"b":[1,null,2.5],"a":""},"alpha":null}')
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
        assert records.line("name", at, NAME)[7:34].decode() == lines.format_at(at)
    for at in (-1, 253_402_300_800_000_000):
        with pytest.raises(records.RecordError, match="1970"):
            records.line("name", at, NAME)
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
        ("name", "name", "tab\there"),
        ("name", "event", "rename"),
    ],
)
def test_the_other_kinds_refuse_by_name_too(kind: str, field: str, value: str) -> None:
    """Sessions, receipts and names keep their own rules."""
    fields = {"session": SESSION, "receipt": RECEIPT, "name": NAME}[kind]

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
    assert "--allow-secret" in caught.value.hint
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
