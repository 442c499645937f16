"""Union's laws, on arbitrary bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gitmem.log.union import canonical, union

# Few letters make equal lines likely; the odd pieces are those that a merge or a work tree leaves.
_PIECES = st.sampled_from(
    [b"a", b"b", b'{"at":"x"}', b"\n", b"\n", b"\r\n", b"\r", b"\r\r\n", b"\0", b"\xff", b" ", b"\t", b"\x0b",
     b"\xc2\x85", b"\xe2\x80\xa8", b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> side\n"]
)  # fmt: skip
contents = st.one_of(st.binary(max_size=200), st.lists(_PIECES, max_size=30).map(b"".join))


def _lines(content: bytes) -> set[bytes]:
    """What a reader takes for the lines of a file, found without the code under test."""
    found = set()
    for line in content.split(b"\n"):
        while line[-1:] == b"\r":
            line = line[:-1]
        if line:
            found.add(line)
    return found


@given(contents, contents)
def test_commutative(a: bytes, b: bytes) -> None:
    """Rebase swaps the sides; the bytes are the same."""
    assert union(a, b) == union(b, a)


@given(contents, contents, contents)
def test_associative(a: bytes, b: bytes, c: bytes) -> None:
    """Three clones that meet in any order end with the same bytes."""
    assert union(union(a, b), c) == union(a, union(b, c)) == union(a, b, c)


@given(contents)
def test_idempotent(a: bytes) -> None:
    """Merging what is there already changes nothing, however often."""
    once = union(a, a)

    assert once == canonical(a) == canonical(once) == union(once, a)


@given(contents, contents)
def test_no_line_is_dropped_or_invented(a: bytes, b: bytes) -> None:
    """Every line of either side is there, whatever it is made of, and no other."""
    assert _lines(union(a, b)) == _lines(a) | _lines(b)


@given(contents, contents)
def test_canonical(a: bytes, b: bytes) -> None:
    """Sorted, once each, a LF after every line, and nothing else."""
    merged = union(a, b)
    lines = merged.split(b"\n")

    assert lines.pop() == b""
    assert lines == sorted(set(lines))
    assert not any(line == b"" or line.endswith(b"\r") for line in lines)


def test_a_torn_last_line_is_not_glued_to_the_other_side() -> None:
    """A side without LF at its end keeps its last line apart from the other's first."""
    assert union(b"b\na", b"c\n") == b"a\nb\nc\n"


def test_several_carriage_returns_go_at_once() -> None:
    """CRLF converted twice: were one CR taken at a time, a second union would differ from the first."""
    assert canonical(b"a\r\r\nb\r") == b"a\nb\n"


def test_a_carriage_return_inside_a_line_is_kept() -> None:
    """Only the end of a line belongs to the conversion."""
    assert canonical(b"a\rb\r\n") == b"a\rb\n"


def test_only_lf_ends_a_line() -> None:
    """Other line separators of Unicode are content."""
    assert canonical("b\u2028a\x0b\x85\n".encode()) == "b\u2028a\x0b\x85\n".encode()


def test_nothing() -> None:
    """No content, and content without lines, are the empty file."""
    assert union() == union(b"", b"\n\r\n\n") == b""


def test_what_git_leaves_in_a_conflict_becomes_the_union_of_the_records() -> None:
    """Markers stay as lines (readers report them); each record is there once."""
    conflict = b"a\n<<<<<<< HEAD\nb\nc\n=======\nc\nd\n>>>>>>> side\n"

    assert [line for line in canonical(conflict).split() if len(line) == 1] == [b"a", b"b", b"c", b"d"]


def test_only_the_crs_at_its_end_are_taken_off_a_line() -> None:
    """Whatever letter stands before them."""
    assert canonical(b"endX\r\r\nX\r\n\rX\n") == b"\rX\nX\nendX\n"
