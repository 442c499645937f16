"""JSON without the json package: it reads what that reads, and refuses what is no JSON or says a name twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.text import strict_json

ROOT = Path(__file__).resolve().parent.parent
WRONG = ["", " ", "tru", "-", "[1", "[1,", "{", '{"a"', '{"a":', "{1:2}", '"a', '"\n"', '"\\q"', '"\\u12"', "1 2", "[1] ",
         " [1]", "NaN", "[Infinity]", '{"a":-Infinity}', "'a'", "[" * 100_000]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(value=VALUES)
def test_every_value_is_read_as_it_was_written(value: object) -> None:
    """With and without escapes."""
    for plain in (True, False):
        text = json.dumps(value, ensure_ascii=plain)
        assert strict_json.read(text) == strict_json.read(text, once=True) == json.loads(text) == value


@given(text=st.text(alphabet='{}[]",:0123456789.eE+-truefalsn\\u \n', max_size=30))
def test_it_refuses_what_the_package_refuses(text: str) -> None:
    """But for white space around a value, which no line has, and for what is not JSON at all."""
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            strict_json.read(text)
        return
    if text == text.strip() and "NaN" not in text and "Infinity" not in text:
        assert strict_json.read(text) == expected


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    """Or one of depth, as with the package."""
    for once in (False, True):
        with pytest.raises((ValueError, RecursionError)):
            strict_json.read(text, once=once)


def test_it_is_the_same_error_where_the_package_is_not_imported() -> None:
    """The scanner has no exception of its own to raise then."""
    code = (
        "import sys; from gitmem.text.strict_json import read\n"
        f"for text in {WRONG!r}:\n"
        "    try: read(text, once=True)\n"
        "    except (ValueError, RecursionError): continue\n"
        "    sys.exit(text)\n"
        "sys.exit('re' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_a_name_that_stands_twice_is_an_error_where_that_is_asked_for() -> None:
    """At any depth; else the last counts."""
    for text in ('{"a":1,"a":2}', '[{"b":{"a":1,"a":1}}]'):
        with pytest.raises(ValueError, match="duplicate name"):
            strict_json.read(text, once=True)
    assert strict_json.read('{"a":1,"a":2}') == {"a": 2}
