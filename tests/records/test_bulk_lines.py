"""Lines that are made together are those that each record gets by itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.digests import Mac
from gitmem.errors import UsageError
from gitmem.records import bulk_lines
from gitmem.records.ids import new_id, new_ids
from tests.profiles import up_to

from .test_bulk import NODE
from .test_fast_validate import VALUES

AT = 1_795_291_199_999_990  # the next ten are of two seconds
PLAIN = {
    **{name: value for name, value in NODE.items() if name != "metadata"},
    "sender_session": "sess-3f9k2m7q1x0z",
}
RECEIPT = {"schema_version": "A2A.V1", "signal_id": "sig-3f9k2m7q1x0z", "reader_identity": "d:e:f",
           "delivery_state": "delivered", "answers_digest": "0" * 64}  # fmt: skip
SECRET = "password=hunter2hunter2"
FIELDS = [
    *PLAIN,
    "priority",
    "paths",
    "head",
    "branch",
    "lane",
    "wu_id",
    "sensitive",
    "closed",
    "metadata",
    "mac",
    "seen",
    "extra",
]
TEXTS = st.sampled_from(
    ["", "a", "two\nlines", "späté", "\ud800", "\u202e", SECRET, "sk-" + "a1B2" * 12, "x" * 70_000, "\0"]
)
FIT = st.fixed_dictionaries({
    "content": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    "tags": st.lists(st.sampled_from(["one", "two", "späté"]), max_size=2),
    "priority": st.sampled_from(["P0", "P3", None, ""]), "sensitive": st.booleans(), "lane": st.sampled_from([None, "a lane"]),
    "wu_id": st.sampled_from([None, "", "WU-1", "#1", "fix-login"]),
})  # fmt: skip
MAC = Mac(b"k" * 32)


def columns_of(each: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for fields in each for name in fields)
    return {name: [fields.get(name) for fields in each] for name in names}


def alone(kind: str, each: list[dict[str, Any]], mac: Mac | None) -> list[bytes] | None:
    try:
        return [records.line(kind, AT + number, fields, mac=mac) for number, fields in enumerate(each)]
    except UsageError:
        return None


def check(kind: str, each: list[dict[str, Any]], mac: Mac | None = MAC) -> bool:
    """Whether lines were made together; then they and their records are those that each gets by itself."""
    found = bulk_lines.lines(kind, AT, columns_of(each), allow_secret=False, mac=mac)
    if found is None:
        return False
    lines, (of, numbers, read, columns) = found
    assert (lines, of, list(numbers)) == (alone(kind, each, mac), kind, list(range(len(each))))
    assert read == [records.read(line) for line in lines]
    assert columns is not None
    assert columns.keys() >= {name for record in read for name in record}
    for name, values in columns.items():
        assert list(values) == [record.get(name) for record in read]
    return True


@settings(max_examples=up_to(200), deadline=None)
@given(each=st.lists(FIT, min_size=1, max_size=12), signed=st.booleans())
def test_right_records_are_made_together(each: list[dict[str, Any]], signed: bool) -> None:
    """Byte for byte as `codec.line` makes them, and read as `codec.read` reads them."""
    many = [{**PLAIN, **fields} for fields in each]
    mac = MAC if signed else None
    assert check("node", many, mac) == (alone("node", many, mac) is not None)


@settings(max_examples=up_to(300), deadline=None)
@given(
    each=st.lists(FIT, min_size=1, max_size=6),
    number=st.integers(0, 5),
    name=st.sampled_from(FIELDS),
    value=VALUES | TEXTS,
)
def test_what_a_line_by_itself_refuses_is_not_made_with_others(
    each: list[dict[str, Any]], number: int, name: str, value: object
) -> None:
    """Any value in any field of one of them."""
    many = [{**PLAIN, **fields} for fields in each]
    many[number % len(many)][name] = value
    if check("node", many):
        assert alone("node", many, MAC) is not None


@pytest.mark.parametrize("where", ["content", "lane", "branch", "tags", "paths"])
@pytest.mark.parametrize("number", [0, 31, 32, 99])
def test_a_secret_is_found_wherever_it_stands(where: str, number: int) -> None:
    """In each field, at the ends and in the middle of what is searched at once."""
    many: list[dict[str, Any]] = [
        {**PLAIN, "content": f"note {number}", "branch": "main"} for number in range(100)
    ]
    assert check("node", many)
    many[number][where] = [SECRET] if where in ("tags", "paths") else SECRET
    assert bulk_lines.lines("node", AT, columns_of(many), allow_secret=False, mac=None) is None
    assert bulk_lines.lines("node", AT, columns_of(many), allow_secret=True, mac=None) is not None


def test_an_object_is_left_to_a_line_by_itself() -> None:
    """A secret may be anywhere in it."""
    for value in ({"a": "b"}, {"a": [SECRET]}):
        assert not check("node", [{**PLAIN, "metadata": value}] * 20)


def test_receipts_are_made_together_and_signals_are_not() -> None:
    """A kind with an old name for a list is left to `codec.line`."""
    assert check("receipt", [RECEIPT] * 20)
    assert not check(
        "signal", [{"signal_id": "sig-3f9k2m7q1x0z", "sender_identity": "a:b:c", "message": "m"}] * 20
    )


def test_a_code_that_was_made_with_others_is_valid_and_forgotten() -> None:
    """What is known to be signed here is known by its bytes alone."""
    mac = Mac(b"k" * 32)
    (line,), (code,) = mac.sign_all([b'{"at":"x"}'])
    forged = line.replace(code.encode(), b"0" * 26)
    for _ in range(2):
        assert (line, mac.is_valid(line), mac.is_valid(forged)) == (mac.signed(b'{"at":"x"}'), True, False)
        mac.forget()


def test_ids_that_are_made_together_are_as_random() -> None:
    """The same random bytes make the same ids."""
    data = bytes(range(7, 7 + 80))
    parts = iter(data[start : start + 8] for start in range(0, 80, 8))
    assert new_ids("mem", 10, lambda count: data[:count]) == [
        new_id("mem", lambda _: next(parts)) for _ in range(10)
    ]


@pytest.mark.parametrize("tags", [2_000, 3_000])
def test_a_line_that_is_too_long_is_not_made_with_others(tags: int) -> None:
    """The limit of a line holds for each."""
    many: list[dict[str, Any]] = [PLAIN, {**PLAIN, "tags": [f"{number:0100d}" for number in range(tags)]}]
    assert check("node", many) == (tags == 2_000) == (alone("node", many, MAC) is not None)
