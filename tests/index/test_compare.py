"""Two indexes of one log are the same whatever the order in which its lines came, and differ where a row does."""

from __future__ import annotations

import pytest

from gitmem.doctor import clone_files
from gitmem.index import index_file
from gitmem.index.entities import View
from gitmem.index.index_file import Index

CLAIMED = "CREATE TABLE packed_claim (name TEXT, first INTEGER, lines TEXT, PRIMARY KEY (name, first)) WITHOUT ROWID"


def index(order: list[int], *rows: tuple[str, str]) -> Index:
    """An index with lines in an order, and rows of names and of the lines that name them."""
    view = View(("x",), [CLAIMED], lambda db, rows: None)
    found = index_file.in_memory([view], lambda line: None)
    found.reshape()
    for number in order:
        found.db.execute(
            "INSERT INTO line (file, key, at, kind, body) VALUES (1, ?, '', 'x', ?)",
            (b"key %d" % number, f"{number}"),
        )
    for first, (name, lines) in enumerate(rows):
        found.db.execute("INSERT INTO packed_claim VALUES (?, ?, ?)", (name, first, lines))
    return found


def test_packed_lines_are_compared_by_their_keys_whatever_their_numbers_and_rows() -> None:
    """Lines get other numbers in another order, and what came together stands in one row."""
    one = index([1, 2, 3], ("a", "[1,2]"), ("a", "[3]"), ("b", "[3]"))
    other = index([3, 1, 2], ("b", "[1]"), ("a", "[3,1,2]"))
    assert clone_files.differing(one, other) == []


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "[1,2]"), ("b", "[3]")],
        [("a", "[1,2]"), ("a", "[3]"), ("b", "[2]")],
        [("a", "[1,2,3]"), ("c", "[3]")],
        [("a", "[1,2,3,3]"), ("b", "[3]")],
        [("a", "[1,2,9]"), ("b", "[3]")],
        [("a", "[1,2,x]"), ("b", "[3]")],
        [("a", "[1,2,3]"), ("b", "[3]"), ("b", "")],
    ],
)
def test_other_packed_lines_differ(rows: list[tuple[str, str]]) -> None:
    """One that lacks, one too many, another name, a line that the index does not have, and what is no number."""
    one = index([1, 2, 3], ("a", "[1,2]"), ("a", "[3]"), ("b", "[3]"))
    assert clone_files.differing(one, index([1, 2, 3], *rows)) == ["packed_claim"]


def test_a_line_with_another_body_differs() -> None:
    """Though its key is the same: a damaged file."""
    one, other = index([1, 2]), index([2, 1])
    assert clone_files.differing(one, other) == []
    other.db.execute("UPDATE line SET body = 'x' WHERE key = ?", (b"key 1",))
    assert clone_files.differing(one, other) == ["line"]


def test_a_damaged_list_of_lines_differs_and_stops_nothing() -> None:
    """Whatever stands in its place: no list, other things in it, or one too deep to read."""
    one = index([1, 2], ("a", "[1,2]"))
    for damaged in ("7", "null", '{"1":2}', '["1","2"]', "[[1],[2]]", "[" * 100_000):
        assert clone_files.differing(one, index([1, 2], ("a", damaged))) == ["packed_claim"], damaged[:9]


def test_held_lines_are_compared_by_what_they_are_whatever_their_files() -> None:
    """The numbers of files depend on the order of arrival, too."""
    one, other = index([1]), index([1])
    for number, each in enumerate((one, other), 2):
        each.db.execute("INSERT INTO held VALUES (?1, ?1, 'w', ?2, ?3)", (b"key", number, b"{}"))
    assert clone_files.differing(one, other) == []
    other.db.execute("UPDATE held SET writer = 'v'")
    assert clone_files.differing(one, other) == ["held"]
