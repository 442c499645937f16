"""A block: never over its budget, nothing of others that passes for ours, and what is left out is counted."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.errors import UsageError
from gitmem.memory.candidates import BudgetedText, Section, pack, quote_lines

SECTIONS = ("One", "Two", "Three")
FRAME = "<!-- frame -->"


def tell(left: Mapping[str, int], enough: int | None) -> str:
    return f"left out: {sum(left.values())} ({left}) {enough}"


def packed(pieces: Sequence[Section], max_size: int, **options: object) -> BudgetedText:
    return pack(pieces, frame=[FRAME], sections=SECTIONS, max_size=max_size, omitted=tell, **options)  # type: ignore[arg-type]


def piece(number: int, text: str, section: str = "One", *, more: str | None = "show") -> Section:
    id = f"mem-{number:04}"
    return Section(section, (0, number, id), id, quote_lines(f"- [{id}]:", text), more=more)


def printed(block: BudgetedText) -> int:
    """Bytes as they are printed."""
    return len((block.text + "\n").encode())


TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="äß漢🦉\n\u202e\x1b# -[]", max_size=80),
    st.lists(
        st.sampled_from(["## One", "- [mem-9999]: x", FRAME, "left out: 0", "", "a" * 90]), max_size=5
    ).map("\n".join),
)
PIECES = st.lists(st.tuples(TEXTS, st.sampled_from(SECTIONS), st.booleans()), max_size=12).map(
    lambda rows: [
        piece(at, text, name, more="show" if cut else None) for at, (text, name, cut) in enumerate(rows)
    ]
)
UNREAD = st.dictionaries(st.sampled_from(SECTIONS), st.integers(0, 10_000))


@given(pieces=PIECES, max_size=st.integers(1, 1_500), unread=UNREAD, limit=st.integers(0, 300))
def test_the_budget_is_never_exceeded_and_every_piece_is_counted(
    pieces: list[Section], max_size: int, unread: dict[str, int], limit: int
) -> None:
    """Or nothing is printed, and then the least that works does work, and no byte less."""
    try:
        block = packed(pieces, max_size, unread=unread, limits={"Two": limit})
    except UsageError as error:
        least = int(error.hint.rstrip(".").rsplit(" ", 1)[1])
        assert least > max_size
        assert printed(packed(pieces, least, unread=unread, limits={"Two": limit})) <= least
        with pytest.raises(UsageError):
            packed(pieces, least - 1, unread=unread, limits={"Two": limit})
        return

    if not pieces and not any(unread.values()):
        assert block.text == ""
        return
    assert printed(block) <= max_size
    for section in SECTIONS:
        total = sum(each.section == section for each in pieces) + unread.get(section, 0)
        assert len(block.included.get(section, [])) + block.left_out.get(section, 0) == total
    shown = [id for ids in block.included.values() for id in ids]
    assert len(shown) == len(set(shown))
    assert all(block.text.count(f"\n- [{id}]:") == 1 for id in shown)
    assert (tell(block.left_out, None).split(" None")[0] in block.text) == bool(block.left_out)


@given(pieces=PIECES, max_size=st.integers(200, 1_500), seed=st.integers())
def test_the_order_in_which_pieces_come_does_not_matter(
    pieces: list[Section], max_size: int, seed: int
) -> None:
    shuffled = list(pieces)
    random.Random(seed).shuffle(shuffled)
    try:
        expected = packed(pieces, max_size).text
    except UsageError as error:
        expected = error.hint
    try:
        found = packed(shuffled, max_size).text
    except UsageError as error:
        found = error.hint

    assert found == expected


@given(text=TEXTS)
def test_no_line_of_others_stands_at_the_margin(text: str) -> None:
    """Headings, the frame, another node, and characters that move a cursor or reorder text."""
    lines = quote_lines("- [mem-0001]:", text)

    assert lines[0].startswith("- [mem-0001]:")
    assert all(line.startswith("  |") for line in lines[1:])
    assert not any(char in "".join(lines) for char in "\u202e\x1b\n\r\u2028")


def test_each_line_of_a_text_is_there_to_the_end() -> None:
    lines = quote_lines("- [mem-0001]:", "\n\nfirst  \r\n\n  second\n\n")

    assert lines == ["- [mem-0001]: first", "  |", "  |   second"]


def test_a_large_piece_does_not_push_out_the_others() -> None:
    """60 KiB in one line are left out; in many lines, the first ones are there, and the command that shows all."""
    many = "\n".join(f"line {number}" for number in range(8_000))
    others = [piece(number, f"small {number}") for number in range(2, 12)]

    one_line = packed([piece(1, "x" * 60_000), *others], 1_000)
    lines = packed([piece(1, many), *others], 1_000)

    assert one_line.left_out == {"One": 1}
    assert one_line.included["One"] == [each.id for each in others]
    assert lines.left_out == {} and lines.shortened == ["mem-0001"]
    shown = [line for line in lines.text.split("\n") if line.startswith(("- [mem-0001]", "  "))]
    assert shown[-1] == f"  ({8_001 - len(shown)} more lines: show)"
    assert sum(len(line) + 1 for line in shown) <= 250


def test_what_is_too_long_for_its_part_gets_what_the_others_leave() -> None:
    block = packed([piece(1, "x" * 600), piece(2, "small")], 1_000)
    alone = packed([piece(1, "x" * 900), piece(2, "small"), piece(3, "y" * 300)], 1_000)

    assert block.included == {"One": ["mem-0001", "mem-0002"]}
    assert alone.included == {"One": ["mem-0001", "mem-0002"]} and alone.left_out == {"One": 1}


def test_a_section_with_a_limit_leaves_room_for_the_others() -> None:
    many = [piece(number, "x" * 40, "One") for number in range(50)]
    later = [piece(number, "y" * 40, "Two") for number in range(50, 60)]

    block = packed([*many, *later], 1_200, limits={"One": 300})

    assert len(block.included["Two"]) == 10
    assert 0 < len(block.included["One"]) < 12


def test_sections_are_printed_in_their_order_whatever_ranks_first() -> None:
    block = packed([piece(1, "last", "Three"), piece(2, "first", "One")], 500)

    assert block.text.split("\n") == [
        FRAME, "", "## One", "- [mem-0002]: first", "", "## Three", "- [mem-0001]: last",
    ]  # fmt: skip


def test_what_would_be_enough_is_enough() -> None:
    pieces = [piece(number, "ä" * 30, SECTIONS[number % 3]) for number in range(20)]
    told: list[int | None] = []

    pack(pieces, frame=[FRAME], sections=SECTIONS, max_size=400,
         omitted=lambda left, enough: told.append(enough) or f"left {enough}")  # type: ignore[func-returns-value]  # fmt: skip
    assert told[-1] is not None
    block = packed(pieces, told[-1])

    assert block.left_out == {} and printed(block) == told[-1]
    assert packed(pieces, told[-1] - 1).left_out != {}
