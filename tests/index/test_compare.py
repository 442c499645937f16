"""Two indexes of one log are the same whatever the order in which its lines came, and differ where a row does."""

from __future__ import annotations

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
    return found


def test_a_line_with_another_body_differs() -> None:
    """Though its key is the same: a damaged file."""
    one, other = index([1, 2]), index([2, 1])
    assert clone_files.differing(one, other) == []
    other.db.execute("UPDATE line SET body = 'x' WHERE key = ?", (b"key 1",))
    assert clone_files.differing(one, other) == ["line"]


def test_held_lines_are_compared_by_what_they_are_whatever_their_files() -> None:
    """The numbers of files depend on the order of arrival, too."""
    one, other = index([1]), index([1])
    for number, each in enumerate((one, other), 2):
        each.db.execute("INSERT INTO held VALUES (?1, ?1, 'w', ?2, ?3, '')", (b"key", number, b"{}"))
    assert clone_files.differing(one, other) == []
    other.db.execute("UPDATE held SET writer = 'v'")
    assert clone_files.differing(one, other) == ["held"]
