"""The outer form of a line: its time, its digest, and what is wrong with those that are none."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.log.lines import (
    HEAD_BYTES,
    LAST_MICROS,
    LINE_MAX_BYTES,
    day,
    digest,
    format_at,
    parse_all,
    parse_at,
    validation_error,
    writer_of,
)
from gitmem.log.local_log import AHEAD_MAX_MICROS, Clock

from .logs import START, FakeClock

AT = "2026-11-21T20:00:00.123456Z"
HEAD = b'{"at":"' + AT.encode() + b'",'
micros = st.integers(0, LAST_MICROS)


def line(at: str = AT, **fields: object) -> bytes:
    """A line as the log writes it."""
    text = json.dumps({"at": at, "kind": "signal", **fields}, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


@given(micros)
def test_times_round_trip(moment: int) -> None:
    """Every microsecond from 1970 to 9999 has one form of 27 characters."""
    text = format_at(moment)

    assert len(text) == 27
    assert parse_at(text) == moment
    assert parse_all([text, AT, text]) == [moment, parse_at(AT), moment]


@given(micros, micros)
def test_byte_order_is_order_of_time(a: int, b: int) -> None:
    """That lines sort by time is what makes union a story."""
    assert (format_at(a) < format_at(b)) == (a < b)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (951_868_800_000_000, "2000-03-01T00:00:00.000000Z"),
        (1_709_164_800_000_000, "2024-02-29T00:00:00.000000Z"),
        (13_574_563_200_000_000, "2400-02-29T00:00:00.000000Z"),
        (LAST_MICROS, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_known_times(moment: int, text: str) -> None:
    """Times that were worked out elsewhere."""
    assert (format_at(moment), parse_at(text)) == (text, moment)


@pytest.mark.parametrize("moment", [-1, LAST_MICROS + 1])
def test_times_outside_the_fixed_width_are_refused(moment: int) -> None:
    """The year must have four digits, and be one that a clock shows."""
    with pytest.raises(ValueError, match="1970 and 9999"):
        format_at(moment)


@pytest.mark.parametrize(
    "text",
    [
        "", "Z", "2026-11-21T20:00:00Z", "2026-11-21T20:00:00.123Z", "2026-11-21T20:00:00.1234567Z",
        "2026-11-21T20:00:00.123456", "2026-11-21T20:00:00.123456+00:00", "2026-11-21T20:00:00.123456z",
        "2026-11-21t20:00:00.123456Z", "2026-11-21 20:00:00.123456Z", "2026-11-21T20:00:00,123456Z",
        "20261121T200000.00123456789Z", "2026-W47-6T20:00:00.123456Z", "2026-11-21T20:00.00:123456Z",
        "2026-02-29T20:00:00.123456Z", "2026-13-21T20:00:00.123456Z", "2026-11-00T20:00:00.123456Z",
        "2026-11-21T24:00:00.000000Z", "2026-11-21T23:59:60.000000Z", "2026-11-21T23:60:00.000000Z",
        "9999-12-31T24:00:00.000000Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z",
        "٢٠٢٦-11-21T20:00:00.123456Z", "2026-11-21T20:00:00.12345٦Z", " 026-11-21T20:00:00.123456Z",
        "+026-11-21T20:00:00.123456Z", "2026-11-21T20:00:00.12345 Z", "2026-11-21T20:00:00.123456Z\n",
    ],
)  # fmt: skip
def test_one_form_only(text: str) -> None:
    """A time that could be written in two ways would make two lines of one."""
    with pytest.raises(ValueError, match="is not a time such as"):
        parse_at(text)


@given(st.text(max_size=30))
def test_parse_is_the_inverse_or_refuses(text: str) -> None:
    """No text is taken that `format_at` would not have written."""
    try:
        moment = parse_at(text)
    except ValueError:
        return
    assert format_at(moment) == text


@pytest.mark.parametrize(
    "good",
    [
        line(),
        line(message='quote " backslash \\ newline \n tab \t'),
        line(message="U+2028 \u2028, U+0085 \u0085, escape \x1b[31m, NUL \0"),
        line(message="Grüße 🜁"),
        line(message="NaN and Infinity, \\u and \\ud800 as text"),
        b'{"at":"' + AT.encode() + b'","kind":"signal","message":"\\ud83d\\ude00 \\u00e9"}',
        line(kind="a kind of next year"),
        HEAD + b'"kind":"signal","n":1e999}',
        HEAD + b'"kind":"signal","n":1e999,"message":"\\u00e9"}',  # an escape makes nothing else wrong
        line(message="x" * (LINE_MAX_BYTES - len(line(message="")))),
    ],
)
def test_lines_without_a_problem(good: bytes) -> None:
    """What the log writes, and what a later version or another program may write."""
    assert validation_error(good) is None


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (line(message="x" * (LINE_MAX_BYTES - len(line(message="")) + 1)), "longer than 262144 bytes"),
        (b"x" * 10_000_000, "longer than 262144 bytes"),
        (line() + b"\n", "raw newline or NUL"),
        (line() + b"\r", "raw newline or NUL"),
        (line()[:-1] + b"\r" + b"}", "raw newline or NUL"),
        (line().replace(b"signal", b"sig\0al"), "raw newline or NUL"),
        (b"", "does not start"),
        (b"<<<<<<< HEAD", "does not start"),
        (line()[:40], "does not start"),
        (line()[5:], "does not start"),
        (b'{"kind":"signal","at":"' + AT.encode() + b'"}', "does not start"),
        (line().replace(b":", b": ", 1), "does not start"),
        (line("2026-11-21T20:00:00.123Z"), "does not start"),
        (line("2026-11-21T20:00:00.1234567Z"), "does not start"),
        (line("2026-13-21T20:00:00.123456Z"), "bad time"),
        (line("2026-11-21 20:00:00.123456Z"), "bad time"),
        (line("٢26-11-21T20:00:00.123456Z"), "bad time"),
        (line(message="\ud800"), "not UTF-8"),
        (line().replace(b"signal", b"sign\xff"), "not UTF-8"),
        (line().replace(b"signal", b"sig\xc0\x80"), "not UTF-8"),
        (HEAD + b"}", "is not JSON"),
        (HEAD + b'"kind":"signal"}}', "is not JSON"),
        (HEAD + b'"kind":"signal","message":"a\tb"}', "is not JSON"),
        (HEAD + b'"kind":"signal","n":NaN}', "is not JSON"),
        (HEAD + b'"kind":"signal","n":-Infinity}', "is not JSON"),
        (HEAD + b'"kind":"signal","message":"\\ud800"}', "is not JSON"),
        (HEAD + b'"kind":"signal","message":"\\uDC00 \\uD800"}', "is not JSON"),
        (HEAD + b'"kind":"signal","n":' + b"9" * 5_000 + b"}", "is not JSON"),
        (HEAD + b'"kind":"signal","n":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is not JSON"),
        (HEAD + b'"kind":"signal","at":"2027-11-21T20:00:00.123456Z"}', "two times"),
        (HEAD + b'"id":"sig-1"}', "has no kind"),
        (HEAD + b'"kind":7}', "has no kind"),
    ],
)
def test_lines_with_a_problem(bad: bytes, why: str) -> None:
    """Each costs itself, and says why."""
    assert why in (validation_error(bad) or "")


@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(lambda tail: HEAD + tail + b"}")))
def test_no_bytes_make_problem_fail(content: bytes) -> None:
    """Whatever is in a file, looking at it gives an answer."""
    assert validation_error(content) is None or isinstance(validation_error(content), str)


@given(micros, micros)
def test_digest_is_of_what_is_said_not_of_when(a: int, b: int) -> None:
    """The same content at two times has one digest."""
    assert digest(line(format_at(a), id="sig-1")) == digest(line(format_at(b), id="sig-1"))


def test_digest_is_as_the_format_says() -> None:
    """Hex SHA-256 of `{` and the bytes from the 37th on, so that others can compute it."""
    assert len(HEAD) == HEAD_BYTES
    assert digest(line()) == sha256(b'{"kind":"signal"}').hexdigest()
    assert digest(line(id="a")) != digest(line(id="b"))


def test_day_is_the_folder() -> None:
    """`yyyy-mm/dd`, from the line's own time."""
    assert day(line()) == "2026-11/21"


# The clock: every time of a clone is later than the one before, whichever process gave it.


def test_the_next_process_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    """At one instant, and after the wall clock went back a little."""
    path, now = str(tmp_path / "clock"), FakeClock()

    ticks = [Clock(path, now).tick() for _ in range(3)]
    now.forward(-30)
    ticks.append(Clock(path, now).tick())

    assert ticks == [START, START + 1, START + 2, START + 3]


@pytest.mark.parametrize("lasting", [True, False], ids=["same process", "next process"])
def test_many_ticks_at_once_are_all_taken(tmp_path: Path, lasting: bool) -> None:
    """The next line is later than the last of them, whichever process writes it."""
    path, now = str(tmp_path / "clock"), FakeClock()
    clock = Clock(path, now)

    assert clock.tick(100) == START
    assert (clock if lasting else Clock(path, now)).tick() == START + 100


@pytest.mark.parametrize("lasting", [True, False], ids=["same process", "next process"])
def test_a_time_far_ahead_is_not_believed(tmp_path: Path, lasting: bool) -> None:
    """A clock that once stood in another year does not keep all lines there."""
    path, now = str(tmp_path / "clock"), FakeClock(START + 2 * AHEAD_MAX_MICROS)
    clock = Clock(path, now)
    clock.tick()
    now.value = START

    assert (clock if lasting else Clock(path, now)).tick() == START


def test_where_nothing_can_be_remembered_times_still_increase_in_a_process(tmp_path: Path) -> None:
    """The folder is missing, or may not be written: a line from a sandbox has a time, too."""
    clock = Clock(str(tmp_path / "missing" / "clock"), FakeClock())

    assert [clock.tick() for _ in range(3)] == [START, START + 1, START + 2]
    assert not os.path.exists(tmp_path / "missing")


WRITER = b"as3nn9tmcd3mr0m5"
HEAD = b'{"at":"2026-11-21T20:00:00.123456Z",'


@pytest.mark.parametrize(
    ("rest", "writer"),
    [
        (b'"kind":"name","writer":"%b"}' % WRITER, WRITER),
        (b'"kind":"name","writer":"%b","x":1}' % WRITER, WRITER),
        (b'"kind":"name","x":1,"writer":"%b"}' % WRITER, b""),
        (b'"x":{"a":1,"writer":"%b"},"kind":"name"}' % WRITER, b""),
        (b'"kind":"na\\"me","writer":"%b"}' % WRITER, b""),
        (b'"kind":"na\\","writer":"%b"}' % WRITER, b""),
        (b'"kind":"name","writer":"%b0"}' % WRITER, b""),
        (b'"kind":"name","writer":"as3nn9tmcd3mr0m"}', b""),
        (b'"kind":"name","writer":"as3nn9tmcd3m-0m5"}', b""),
        (b'"kind":"name", "writer":"%b"}' % WRITER, b""),
        (b'"writer":"%b","kind":"name"}' % WRITER, b""),
        (b'"kind":"name"}', b""),
    ],
)
def test_a_line_names_its_writer_in_its_third_field_alone(rest: bytes, writer: bytes) -> None:
    """Whatever a peer writes elsewhere: who is named there has written nothing."""
    assert writer_of(HEAD + rest) == writer.decode()
