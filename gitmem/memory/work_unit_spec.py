"""The specification of a work unit that a discovery becomes, for the project's own plan."""

from __future__ import annotations

from ..commit_message import cut
from ..outcome import Outcome
from ..records.ids import unit_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from .versioned_node import VersionedNode

TITLE_MAX = 80
PRIORITY = "P2"  # of a work unit if its discovery has none
PREFIX = "WU-"


class WorkUnitSpec(Outcome):
    """A specification of a work unit, derived from a discovery."""

    def __init__(self, id: str, node: VersionedNode, *, title: str | None, lane: str | None) -> None:
        self.id = id
        self.title = title or first_sentence(node.content)
        self.lane = lane
        self.priority = node.priority or PRIORITY
        self.description = node.content
        self.code_paths = list(node.paths)
        self.tags = list(node.tags)
        self.discovered_from = node.id


def first_sentence(text: str) -> str:
    """Return the first sentence of a text's first line as a title, at most 80 characters."""
    line = " ".join(text.strip().split("\n", 1)[0].split())
    ends = [at for mark in (". ", "! ", "? ") if (at := line.find(mark)) > 0]
    sentence = line[: min(ends) + 1] if ends else line
    return cut(sentence.removesuffix("."), TITLE_MAX)


def next_unit(db: sqlite3.Connection) -> str:
    """Return `WU-n`, one above the greatest number in the log."""
    greatest = 0
    for (unit,) in db.execute(
        "SELECT wu_id FROM node UNION SELECT wu_id FROM signal UNION SELECT wu_id FROM session_event"
        " UNION SELECT json_extract(l.body, '$.metadata.promoted_to') FROM line l WHERE l.kind = 'patch'"
        " AND l.body LIKE '%promoted_to%' AND json_valid(l.body)"
    ):
        prefix, dash, number = unit_key(str(unit)).partition("-")
        if prefix + dash == unit_key(PREFIX) and number.isascii() and number.isdigit() and len(number) <= 9:
            greatest = max(greatest, int(number))
    return f"{PREFIX}{greatest + 1}"
