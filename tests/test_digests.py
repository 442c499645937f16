"""The code of a line: which bytes it covers, and what is none."""

from __future__ import annotations

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem import records
from gitmem.text.digests import Mac, is_signed

KEY = bytes(range(32))
FIELDS = {"signal_id": "sig-0001", "reader_identity": "a:b:c", "answers_digest": "0" * 64}


def base32(content: bytes) -> str:
    bits = int.from_bytes(content, "big") << 2
    return "".join("0123456789abcdefghjkmnpqrstvwxyz"[bits >> shift & 31] for shift in range(125, -1, -5))


@given(st.binary(max_size=64), st.binary(max_size=300))
def test_the_code_is_that_of_the_standard_library(key: bytes, content: bytes) -> None:
    """HMAC by hand gives what `hmac` gives."""
    assert Mac(key).of(content) == base32(hmac.digest(key, content, "sha256")[:16])


def test_a_written_line_ends_with_its_code() -> None:
    """Also behind a field that the contract does not know."""
    line = records.line("receipt", 0, {**FIELDS, "extra": "x"}, mac=Mac(KEY))
    record = records.read(line)

    assert record is not None
    assert line.endswith(f',"extra":"x","mac":"{record["mac"]}"}}'.encode())
    assert Mac(KEY).is_valid(line)
    assert records.line("receipt", 0, {**FIELDS, "extra": "x"}) == line[:-36] + b"}"


def test_every_other_byte_is_covered() -> None:
    """Its time too: who says it again at another time has no code for that."""
    line = records.line("receipt", 1_795_000_000_000_000, FIELDS, mac=Mac(KEY))

    for place in range(len(line)):
        changed = bytearray(line)
        changed[place] ^= 1
        assert not Mac(KEY).is_valid(bytes(changed)), place


@pytest.mark.parametrize("tail", [b"", b" ", b',"extra":"x"'])
def test_a_code_that_is_not_last_is_none(tail: bytes) -> None:
    """Whatever stands behind it would not be covered."""
    line = records.line("receipt", 0, FIELDS, mac=Mac(KEY))
    moved = line[:-1] + tail + b"}"

    assert Mac(KEY).is_valid(moved) is (tail == b"")
    assert is_signed(moved) is (tail == b"")


def test_a_code_of_another_key_is_not_valid() -> None:
    """That is all that tells one clone's lines from another's."""
    line = records.line("receipt", 0, FIELDS, mac=Mac(b"another"))

    assert is_signed(line)
    assert not Mac(KEY).is_valid(line)


def test_nobody_chooses_a_code() -> None:
    """It is made where the line is made."""
    with pytest.raises(records.RecordError, match="invalid field: mac"):
        records.line("receipt", 0, {**FIELDS, "mac": "0" * 26})


def test_a_code_of_another_form_costs_nothing() -> None:
    """A later version may write a longer one."""
    line = records.line("receipt", 0, FIELDS)
    odd = line[:-1] + b',"mac":"sha512:' + b"0" * 100 + b'"}'

    assert records.read(odd) is not None
    assert not Mac(KEY).is_valid(odd)
