"""What a work unit asks for, for an agent that resumes it: acceptance criteria, files, and the rules of the project.

All of it comes from nodes: criteria are nodes of the work unit with the tag `acceptance`, rules are project nodes with
the tag `invariant`, `convention` or `rule`, files are the paths of the work unit's nodes.
"""

from __future__ import annotations

from ..records.ids import unit_key
from ..text.sanitize import sanitize_for_model
from ..text.shell_quote import command
from . import candidates, load, superseded
from .budgeted_text import BAR, Section
from .candidate_rows import SEEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..store import Store
    from .versioned_node import VersionedNode

CRITERIA, FILES, RULES = "Acceptance criteria", "Code paths", "Rules"
SECTIONS = (CRITERIA, FILES, RULES)
CRITERIA_TAGS = ("acceptance",)
RULE_TAGS = ("invariant", "convention", "rule")
CRITERIA_MAX, PATHS_MAX, RULES_MAX = 8, 10, 7  # as LumenFlow has them


class WorkBrief:
    """The pieces of a text about a work unit, and the ids of the nodes in them."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.pieces: list[Section] = []

    def add(self, section: str, nodes: Sequence[VersionedNode]) -> None:
        """Add nodes as pieces of a section, in their order."""
        for place, node in enumerate(nodes):
            self.ids.append(node.id)
            self.pieces.append(candidates.piece(section, node, len(nodes) - place, None, rank=RANK))


RANK = 1  # after the last checkpoint, before all else


def find(store: Store, wu: str | None, lane: str | None) -> WorkBrief:
    """Return what is known of a work unit; without one the rules alone.

    Args:
        lane: Leave out rules of other lanes; None includes every lane.
    """
    found = WorkBrief()
    if wu is not None:
        own = "n.wu_id = ?"
        found.add(
            CRITERIA, _tagged(store, CRITERIA_TAGS, own, [unit_key(wu)], "n.created, n.id", CRITERIA_MAX)
        )
        found.pieces += _paths(store, wu)
    rules = "n.lifecycle = 'project' AND (? IS NULL OR n.lane IS NULL OR n.lane = ?)"
    found.add(RULES, _tagged(store, RULE_TAGS, rules, [lane, lane], "n.touched DESC, n.id", RULES_MAX))
    return found


def _tagged(
    store: Store, tags: Sequence[str], where: str, values: Sequence[str | None], order: str, most: int
) -> list[VersionedNode]:
    db = store.db()
    marks = ", ".join("?" * len(tags))
    rows = db.execute(
        f"SELECT n.id FROM node n WHERE {where} AND {SEEN}{superseded.and_live(db)}"
        f" AND n.id IN (SELECT id FROM tag WHERE tag IN ({marks})) ORDER BY {order} LIMIT ?",
        [*values, *tags, most],
    )
    nodes = load.load(db, [id for (id,) in rows])
    again = candidates.repeated(nodes)
    return [node for node in nodes if node.id not in again and not candidates.is_indexed_file(node)]


def _paths(store: Store, wu: str) -> list[Section]:
    """Return the files that the nodes of a work unit are about, the most frequent first, as a piece."""
    rows = (
        store.db()
        .execute(
            f"SELECT a.path, count(*), max(n.touched) FROM node n JOIN anchor a ON a.id = n.id WHERE n.wu_id = ? AND {SEEN}"
            " GROUP BY a.path ORDER BY 2 DESC, 3 DESC, 1 LIMIT ?",
            (unit_key(wu), PATHS_MAX + 1),
        )
        .fetchall()
    )
    if not rows:
        return []
    paths = [sanitize_for_model(path) for path, _, _ in rows[:PATHS_MAX]]
    lines = [
        f"- the nodes of {wu} are about {len(paths)}{' or more' if rows[PATHS_MAX:] else ''}:",
        *(BAR + path for path in paths),
    ]
    return [Section(FILES, (RANK, 0, FILES), FILES, lines, more=command("gitmem", "mem", "list", "--wu", wu))]
