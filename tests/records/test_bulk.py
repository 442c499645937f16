"""Lines that are read together get the verdict that each has by itself, whatever stands beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.records import bulk
from gitmem.records.bulk import read_or_none
from tests.profiles import up_to

from .test_fast_validate import VALUES

AT = "2026-11-21T20:00:00.123456Z"
SIGNAL = {
    "schema_version": "A2A.V1", "signal_id": "sig-3f9k2m7q1x0z", "sender_identity": "a:b:c", "recipients": ["d:e:f"],
    "intent": "INFO", "interrupt_class": "priority", "message": "hello", "origin": "local", "wu_id": "WU-1",
    "thread_id": "thread-3f9k2m7q1x0z",
}  # fmt: skip
RECEIPT = {
    "schema_version": "A2A.V1", "signal_id": "sig-3f9k2m7q1x0z", "reader_identity": "d:e:f",
    "delivery_state": "delivered", "answers_digest": "0" * 64,
}  # fmt: skip
NODE = {
    "schema_version": "A2A.V1", "id": "mem-3f9k2m7q1x0z", "type": "note", "lifecycle": "project", "content": "text",
    "sender_identity": "a:b:c", "tags": ["one"], "metadata": {"a": [1]},
}  # fmt: skip
KINDS = {"signal": SIGNAL, "receipt": RECEIPT, "node": NODE}
HEAD = b'{"at":"%b","kind":"signal","schema_version":"A2A.V1"' % AT.encode()


def written(kind: str, fields: dict[str, Any], at: str = AT) -> bytes:
    record = {"at": at, "kind": kind, **fields}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


GOOD = [written(kind, fields) for kind, fields in KINDS.items()]
# What ends the array, opens another one, hides a name or a line in another line, or is no JSON.
GOOD.append(GOOD[0].replace(b'"wu_id":"WU-1"', b'"wu_id":"Unlinked"'))
ODD = [
    GOOD[0].replace(b'"WU-1"', b'"a b"'), GOOD[1].replace(b'"delivery', b'"wu_id":"a b","delivery'),
    b"", b"]", b"],[", b"[", b"{}", b"null", b"1", b'"', b"\\", b"\xff", b"{", b"}", b"Infinity", b",",
    GOOD[0] + b"]", GOOD[0] + b"," + GOOD[1], GOOD[0][:-1], GOOD[0] + b"}", GOOD[0] + b" ", b" " + GOOD[0],
    HEAD + b',"a":[{"b":1', HEAD + b'}]}', HEAD + b',"a":[1', HEAD + b"}]}", HEAD + b',"message":"', HEAD + b'"}',
    HEAD + b"}],[" + HEAD + b"}", GOOD[0].replace(b'"kind"', b'"kind" ', 1), GOOD[0].replace(b'"kind"', b'"kind"\t', 1),
    GOOD[0].replace(b'"message":"hello"', b'"message":"hello","message":"hello"'),
    GOOD[0].replace(b'"message":"hello"', b'"message" :"hello","message":"hello"'),
    GOOD[0].replace(b'"message":"hello"', b'"message"\t:"hello","message":"hello"'),
    GOOD[0].replace(b',"kind"', b',\r"kind"'), GOOD[0] + b",{}", GOOD[0].replace(b'"message":"hello",', b""),
    GOOD[0].replace(b'["d:e:f"]', b'"d"'), GOOD[0].replace(b'["d:e:f"]', json.dumps(["x" * 250] * 1100).encode()),
    GOOD[0].replace(b'"message":"hello"', b'"message":":","message":"\\":"'),
    GOOD[0].replace(b"hello", b'\\":{'), GOOD[0].replace(b"hello", b"\\ud800"), GOOD[0].replace(b"hello", b"\\u0041"),
    GOOD[0].replace(b"2026", b"\\u0032026"), GOOD[0].replace(b"-21T", b"-31T"), GOOD[0].replace(b"T20:", b"T24:"),
    GOOD[0].replace(b":00:00.", b":60:00."), GOOD[0].replace(b":00.", b":60."), GOOD[0].replace(b"Z", b"z"),
    GOOD[0].replace(b'"hello"', b"NaN"), GOOD[0].replace(b'"hello"', b"1e999"), GOOD[0].replace(b'"hello"', b"9" * 5000),
    GOOD[0].replace(b'"hello"', b"[" * 3000 + b"]" * 3000), GOOD[0].replace(b"hello", b"x" * 70_000),
    GOOD[0].replace(b"hello", b"x" * 300_000), GOOD[0].replace(b"hello", b"a\rb"), GOOD[0].replace(b"A2A.V1", b"A2A.V2"),
    GOOD[0].replace(b'"kind":"signal"', b'"kind":["signal"]'), GOOD[0].replace(b'"kind":"signal"', b'"kind":"new"'),
    GOOD[0].replace(b'"recipients":["d:e:f"]', b'"target_agent":"d:e:f"'), GOOD[1].replace(b"0000", b"000G"),
    GOOD[0].replace(b'["d:e:f"]', b'[["d:e:f"]]'), GOOD[0].replace(b'"hello"', b'"hello","extra":1e999'),
    GOOD[0].replace(b'"hello"', b'"hello","at":"' + AT.encode() + b'"'), GOOD[0].replace(b"sig-", b"gis-"),
]  # fmt: skip
LINES = (
    st.sampled_from(GOOD)
    | st.sampled_from(ODD)
    | st.builds(
        lambda kind, name, value: written(kind, {**KINDS[kind], name: value}),
        st.sampled_from(sorted(KINDS)),
        st.sampled_from(sorted({*SIGNAL, *RECEIPT, *NODE, "extra", "mac"})),
        VALUES,
    )
)


def read(lines: list[bytes]) -> list[dict[str, Any] | None]:
    """The record of each line; the groups and their columns agree with them."""
    found: list[dict[str, Any] | None] = [None] * len(lines)
    for kind, numbers, some, columns in records.read_groups(lines):
        for number, record in zip(numbers, some, strict=True):
            assert found[number] is None
            assert record["kind"] == kind
            found[number] = record
        if columns is not None:
            assert [
                dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
            ] == some
    return found


def check(lines: list[bytes]) -> None:
    every = [*lines, *GOOD * 6]  # enough to be read together
    assert read(every) == [read_or_none(line) for line in every]


@settings(max_examples=up_to(150), deadline=None)
@given(lines=st.lists(LINES, max_size=12))
@example(lines=[HEAD + b',"a":[1', HEAD + b"}]}", GOOD[0] + b"," + GOOD[1]])
@example(lines=[HEAD + b',"a":{"b":1', HEAD + b"}}", GOOD[0] + b"," + GOOD[1]])
def test_a_line_is_read_as_it_is_by_itself(lines: list[bytes]) -> None:
    """Any lines beside each other: records, hostile ones, and nearly right ones."""
    check(lines)


@pytest.mark.parametrize("number", range(len(ODD)))
def test_a_hostile_line_changes_no_verdict(number: int) -> None:
    """The same line alone, twice, and between others."""
    check([ODD[number]])
    check([GOOD[0], ODD[number], GOOD[1], ODD[number]])


def test_lines_that_are_plainly_right_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an odd one is read by itself."""
    alone: list[bytes] = []
    monkeypatch.setattr(
        bulk, "read_alone", lambda lines, numbers: alone.extend(map(lines.__getitem__, numbers)) or []
    )
    many = [written("signal", {**SIGNAL, "message": f"m {number}"}) for number in range(100)]
    ((_, numbers, *_),) = bulk.read_groups([*many, GOOD[2]])
    assert (len(numbers), alone) == (100, [GOOD[2]])


def test_defaults_are_filled_in_for_each_record() -> None:
    """Records share no list that one of them could change."""
    plain = {name: value for name, value in SIGNAL.items() if name not in ("recipients", "origin")}
    first, second, *_ = read([written("signal", plain)] * 20)
    assert first is not None and second is not None
    assert (first["recipients"], first["origin"]) == ([], "local")
    assert first["recipients"] is not second["recipients"]
