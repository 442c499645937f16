"""Reading lines: more lenient than writing, and a sentence for what is no record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.log import lines
from tests.profiles import up_to

AT = 1_795_291_200_123_456


def signal(**fields: Any) -> bytes:
    least = {"signal_id": "sig-3f9k2m7q1x0z", "sender_identity": "a:b:c", "message": "Approve this boundary?"}
    return records.line("signal", AT, {**least, **fields})


def read(line: bytes) -> dict[str, Any]:
    record = records.read(line)
    assert record is not None
    return record


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
        signal(later=deep)
    assert records.read(altered(signal(), later=deep)) is None
    assert records.read(b'{"at":"2026-11-21T20:00:00.123456Z","kind":"name","x":' + b"[" * 200_000) is None


def test_the_old_name_alone_is_read_and_written_as_recipients() -> None:
    """`target_agent` without `recipients` is a directed signal, from any writer."""
    line = signal(target_agent="b:c:d")

    assert read(line)["recipients"] == ["b:c:d"]
    assert read(altered(line, recipients=...))["recipients"] == ["b:c:d"]


def test_reading_is_more_lenient_than_writing() -> None:
    """Interrupts, resolutions and states that we don't write, nulls, unknown fields and missing defaults are read."""
    line = signal()
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
        (signal()[:-20], "not one JSON object"),
        (signal() + b"{}", "not one JSON object"),
        (signal()[:-1] + b',"kind":"signal"}', "not one JSON object"),
        (signal()[:-1] + b',"message":"another"}', "not one JSON object"),
        (signal()[:-1] + b',"at":"2001-01-01T00:00:00.000000Z"}', "not one JSON object"),
        (signal()[:-1] + b',"later":NaN}', "not one JSON object"),
        (signal()[:-1] + b',"later":1e999}', "later has a value that JSON"),
        (signal()[:-1] + b',"later":"\\ud800"}', "not one JSON object"),
        (altered(signal(), kind=7), "not one JSON object"),
        (altered(signal(), kind="rumour"), "kind 'rumour' is unknown"),
        (altered(signal(), schema_version="A2A.V9"), "schema_version 'A2A.V9' is not A2A.V1"),
        (altered(signal(), schema_version=["A2A.V1"]), "schema_version"),
        (altered(signal(), signal_id="sig-1"), "signal_id must be"),
        (altered(signal(), message=...), "message is missing"),
        (altered(signal(), message=None), "message"),
        (altered(signal(), recipients=None), "recipients"),
        (altered(signal(), intent="SHOUT"), "intent must be"),
        (altered(signal(), lane="a\u202eb"), "lane must be one line"),
    ],
)
def test_a_bad_line_costs_that_line_and_is_explained(line: bytes, sentence: str) -> None:
    """What is no record reads as None, and the doctor has a sentence for it."""
    assert records.read(line) is None
    assert sentence in (records.explain_unreadable(line) or "")


@settings(max_examples=up_to(200), deadline=None)
@given(st.binary() | st.builds(lambda tail: signal()[:-1] + tail, st.binary()))
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
    line = records.line("name", 1_793_000_000_000_000, {"name": "Planck", "event": "add"})
    changed = line[:7] + at.encode() + line[34:]

    assert records.read(changed) is None or lines.validation_error(changed) is None
