"""Marked lines in a user's file come and go without a trace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from merge_driver.install import MARK, MarkedBlock

BODY = b"\tdriver = x # ours\n"
_PIECES = st.sampled_from(
    [
        b"[core]\n",
        b'[merge "x"]\n',
        b"\tbare = false\n",
        b"# note",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\xff",
        b"key=1",
    ]
)
texts = st.one_of(st.none(), st.binary(max_size=60), st.lists(_PIECES, max_size=8).map(b"".join))
blocks = st.sampled_from(
    [
        MarkedBlock(lambda line: line.endswith(b"# ours\n"), section=b'[merge "x"]'),
        MarkedBlock(lambda line: line.endswith(b"# ours\n")),
    ]
)


@given(texts, blocks)
def test_out_is_the_inverse_of_in(text: bytes | None, block: MarkedBlock) -> None:
    """A new file goes, an old one has its bytes back, also without a newline at its end."""
    added = block.add(text, BODY)

    assert added.startswith(text or b"")
    assert block.holds(added, BODY)
    assert block.without(added) == text


@given(texts, blocks, st.integers(1, 3))
def test_replacing_forgets_nothing(text: bytes | None, block: MarkedBlock, times: int) -> None:
    """After any number of other bodies the first text is still what removal gives back."""
    added = block.add(text, BODY)
    for number in range(times):
        added = block.add(added, b"\tother %d # ours\n" % number)

    assert added.count(MARK) == 1
    assert block.without(added) == text


@given(texts, blocks)
def test_without_us_there_is_nothing_to_take_out(text: bytes | None, block: MarkedBlock) -> None:
    """A file that we never touched stays as it is."""
    assert block.without(text) == text
    assert not block.holds(text, BODY)


@given(texts, blocks, st.binary(min_size=1, max_size=40).map(lambda tail: b"[new]\n" + tail))
def test_what_others_append_stays(text: bytes | None, block: MarkedBlock, tail: bytes) -> None:
    """Written after ours and by somebody else: kept, on lines of its own."""
    added = block.add(text, BODY) + tail
    left = block.without(added) or b""
    gap = b"\n" if text and not text.endswith(b"\n") else b""

    assert left == (text or b"") + gap + tail
