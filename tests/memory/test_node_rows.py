"""The tables of the memory depend on its lines alone: not on their order, nor on how many came at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem import records, views
from gitmem.doctor import clone_files
from gitmem.index import catch_up, entities
from gitmem.index.index_file import Index
from gitmem.memory import relations, stored_nodes
from gitmem.memory.node_tables import HIDDEN
from gitmem.records.ids import unit_key
from tests.profiles import up_to

from ..empty_index import empty_index
from ..sandbox import DAY, START

IDS = [f"mem-000{number}" for number in range(4)]
PATCHES = [f"patch-000{number}" for number in range(6)]
RELATIONS = [f"rel-000{number}" for number in range(4)]
BY = {"sender_identity": "test:worker:one"}


def index_of(lines: Sequence[bytes], portions: Sequence[int] = ()) -> Index:
    """An index in memory that got these lines, in portions of these sizes."""
    index = empty_index(views.NODES, views.RELATIONS, views.OWN)
    rest = list(lines)
    for size in portions:
        catch_up.insert_lines(index, catch_up.OWN_FILE, rest[:size])
        del rest[:size]
    catch_up.insert_lines(index, catch_up.OWN_FILE, rest)
    return index


def node(id: str = IDS[0], at: int = START, **fields: Any) -> bytes:
    given = {"type": "note", "lifecycle": "wu", "content": "c", **BY, **fields}
    return records.line("node", at, {"id": id, **given})


def patch(id: str, *node_ids: str, at: int = START, **fields: Any) -> bytes:
    return records.line("patch", at, {"id": id, "node_ids": list(node_ids), **BY, **fields})


def relation(id: str, at: int = START, **fields: Any) -> bytes:
    given = {"from_id": IDS[0], "to_id": IDS[1], "type": "blocks", **BY, **fields}
    return records.line("relation", at, {"id": id, **given})


@pytest.mark.parametrize(
    ("count", "values_most"), [(1_200, 999), pytest.param(33_100, 32_766, marks=pytest.mark.deep)]
)
def test_one_node_has_more_lines_than_a_query_takes_values(count: int, values_most: int) -> None:
    """A patch folds it anew: the lowest line stands, and no line is skipped."""
    index = index_of([])
    index.db.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, values_most)
    found = [node(at=START + number, content=f"c{number}") for number in range(count)]
    catch_up.insert_lines(
        index,
        catch_up.OWN_FILE,
        [
            *reversed(found),
            patch("patch-0000", IDS[0], at=START + DAY, tags=["a"], **{**BY, "sender_identity": "a:b:other"}),
        ],
    )
    assert index.db.execute("SELECT count(*) FROM skipped").fetchone() == (0,)
    assert index.db.execute("SELECT count(*) FROM entity_line").fetchone() == (count + 1,)
    assert index.db.execute("SELECT body FROM line JOIN node ON node.line = line.id").fetchone() == (
        found[0].decode(),
    )
    (only,) = stored_nodes.load(index.db, IDS)
    assert (only.content, only.tags) == ("c0", ["a"])
    assert index.db.execute("SELECT tag, id FROM tag").fetchall() == [("a", IDS[0])]


@pytest.mark.parametrize("said", ["node", "patch", 3, [1]])
def test_what_nodes_and_patches_say_in_a_field_of_events_is_ignored(said: object) -> None:
    lines = [node(event=said), patch("patch-0000", IDS[0], at=START + DAY, tags=["a"], event=said)]
    index = index_of(lines)
    assert index.skipped() == 0
    assert index.db.execute("SELECT event FROM entity_line ORDER BY line").fetchall() == [
        ("node",),
        ("patch",),
    ]
    assert [len(of) for of in stored_nodes.patches_of(index.db, [IDS[0]]).values()] == [1]


def test_a_status_of_a_flooded_node_counts_in_any_order_or_never() -> None:
    """Of too many lines a patch may be none that is read; then it counts neither when it comes alone nor in a new index."""
    flood = [
        node(at=START + number, sender_identity=f"test:peer:n{number}")
        for number in range(entities.LINES_MAX)
    ]
    mark = patch("patch-0000", IDS[0], at=START + DAY, archived=True)
    whole, later = index_of([*flood, mark]), index_of([*flood, mark], [len(flood)])
    assert clone_files.differing(whole, later, but=clone_files.ARRIVAL) == []


TIMES = st.integers(0, 5).map(lambda days: START + days * DAY)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.sampled_from(["one", "two"]),
        "priority": st.sampled_from(["P0", "P3"]),
        "tags": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
        "paths": st.lists(st.sampled_from(["x.py", "y.py"]), max_size=2, unique=True),
        "wu_id": st.sampled_from(["WU-1", "WU-2"]),
        "lifecycle": st.sampled_from(["project", "session"]),
        "closed": st.booleans(),
        "archived": st.booleans(),
        "deleted": st.booleans(),
        "sensitive": st.booleans(),
        "reason": st.sampled_from(["because"]),
        "summarized_into": st.sampled_from(IDS),
        "metadata": st.dictionaries(st.sampled_from(["k", "l"]), st.sampled_from([1, "v", None]), max_size=2),
    },
)
CLEARS = st.lists(
    st.sampled_from(["priority", "tags", "archived", "closed", "metadata"]), max_size=2, unique=True
)


@st.composite
def a_line(draw: st.DrawFn) -> bytes:
    at = draw(TIMES)
    match draw(st.sampled_from(["node", "node", "patch", "patch", "patch", "marks", "relation", "access"])):
        case "node":
            return node(draw(st.sampled_from(IDS)), at, **draw(FIELDS))
        case "patch":
            some = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=3))
            after = draw(st.lists(st.sampled_from(PATCHES), max_size=2))
            fields = draw(FIELDS)
            return patch(
                draw(st.sampled_from(PATCHES)), *some, at=at, after=after, clear=draw(CLEARS), **fields
            )
        case "marks":
            some = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=4))
            mark = draw(st.sampled_from(["closed", "archived", "deleted"]))
            return patch(draw(st.sampled_from(PATCHES)), *some, at=at, **{mark: True})
        case "relation":
            after = draw(st.lists(st.sampled_from(RELATIONS), max_size=2))
            id = draw(st.sampled_from(RELATIONS))
            ends = {"from_id": draw(st.sampled_from(IDS)), "to_id": draw(st.sampled_from(IDS))}
            flags = {"removed": draw(st.booleans()), "supersedes": draw(st.booleans())}
            return relation(id, at, after=after, **ends, **flags)
        case _:
            some = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=3))
            fields = {"id": "access-0000", "node_ids": some, "reader_identity": "test:worker:one"}
            return records.line("access", at, fields)


@settings(max_examples=up_to(400))
@given(st.lists(a_line(), max_size=14, unique=True), st.randoms(use_true_random=False), st.data())
def test_the_fold_does_not_depend_on_order(lines: list[bytes], random: Any, data: st.DataObject) -> None:
    """Lines in any order and in any portions give the same rows and the same nodes."""
    shuffled = list(lines)
    random.shuffle(shuffled)
    portions = data.draw(st.lists(st.integers(1, 4), max_size=6))

    one, other = index_of(lines), index_of(shuffled, portions)

    assert one.skipped() == other.skipped() == 0
    assert clone_files.differing(one, other) == []
    assert [each.as_json() for each in stored_nodes.load(one.db, IDS)] == [
        each.as_json() for each in stored_nodes.load(other.db, IDS)
    ]


@given(st.lists(a_line(), max_size=14, unique=True))
def test_rows_say_what_the_folded_node_says(lines: list[bytes]) -> None:
    """The quick way of an archive pass gives what folding all lines anew gives."""
    index = index_of(lines, [1] * len(lines))
    rows = index.db.execute(
        "SELECT id, type, lifecycle, wu_id, priority, state, touched, sensitive, summarized_into FROM node"
    )

    found = {row[0]: row[1:] for row in rows}

    nodes = {each.id: each for each in stored_nodes.load(index.db, IDS)}
    assert found == {
        id: (each.type, each.lifecycle, unit_key(each.wu_id) or None, each.priority, each.rank, each.touched, each.sensitive,
             each.summarized_into)
        for id, each in nodes.items()
    }  # fmt: skip
    tags = index.db.execute("SELECT id, tag FROM tag").fetchall()
    assert sorted(tags) == sorted((id, tag) for id, each in nodes.items() for tag in set(each.tags))
    paths = index.db.execute("SELECT id, path FROM anchor").fetchall()
    assert sorted(paths) == sorted((id, path) for id, each in nodes.items() for path in set(each.paths))


def test_two_clones_that_change_different_fields_both_win() -> None:
    """Neither patch knew the other: each keeps the fields that it names."""
    lines = [
        node(content="old"),
        patch("patch-0001", IDS[0], at=START + 1, content="new"),
        patch("patch-0002", IDS[0], at=START + 2, priority="P0", metadata={"b": 2}),
        patch("patch-0003", IDS[0], at=START + 3, metadata={"a": 1}),
    ]

    (found,) = stored_nodes.load(index_of(lines).db, IDS)

    assert (found.content, found.priority, found.metadata) == ("new", "P0", {"a": 1, "b": 2})


def test_what_was_seen_loses_to_what_came_after_it_whatever_the_clocks_say() -> None:
    """A patch of a clone whose clock is behind counts, if it knew the other."""
    lines = [
        node(),
        patch("patch-0001", IDS[0], at=START + 9 * DAY, content="first"),
        patch("patch-0002", IDS[0], at=START + DAY, after=["patch-0001"], content="second"),
    ]

    assert stored_nodes.load(index_of(lines).db, IDS)[0].content == "second"


def test_of_two_that_did_not_know_each_other_the_greater_time_counts() -> None:
    """Where both changed one field apart."""
    lines = [
        node(),
        patch("patch-0001", IDS[0], at=START + 2, content="later"),
        patch("patch-0002", IDS[0], at=START + 1, content="sooner"),
    ]

    assert stored_nodes.load(index_of(lines).db, IDS)[0].content == "later"


def test_archived_on_one_clone_and_deleted_on_another_is_deleted() -> None:
    """Neither undoes the other, in whatever order they come."""
    marks = [
        patch("patch-0001", IDS[0], at=START + 1, deleted=True),
        patch("patch-0002", IDS[0], at=START + 2, archived=True),
    ]
    for lines in ([node(), *marks], [*reversed(marks), node()]):
        index = index_of(lines, [1, 1])
        assert index.db.execute("SELECT state FROM node").fetchone() == (3,)
        assert stored_nodes.load(index.db, IDS)[0].status == "deleted"


def test_a_cleared_mark_is_gone() -> None:
    """An archived node comes back."""
    lines = [
        node(),
        patch("patch-0001", IDS[0], at=START + 1, archived=True),
        patch("patch-0002", IDS[0], at=START + 2, after=["patch-0001"], clear=["archived"]),
    ]

    index = index_of(lines, [1, 1, 1])

    assert index.db.execute("SELECT count(*) FROM node WHERE state < ?", (HIDDEN,)).fetchone() == (1,)


def test_a_mark_that_is_cleared_first_is_no_mark() -> None:
    """The way round the fold is for marks alone."""
    index = index_of([node(), patch("patch-0001", IDS[0], at=START + 1, clear=["archived"])], [1])

    assert index.db.execute("SELECT state FROM node").fetchone() == (0,)


def test_an_entry_of_the_metadata_that_becomes_null_is_gone() -> None:
    """By itself, or all of them at once; one that is set in the same breath stays."""
    base = node(metadata={"a": 1, "b": 2})

    nulled = index_of([base, patch("patch-0001", IDS[0], at=START + 1, metadata={"a": None})])
    cleared = index_of(
        [base, patch("patch-0001", IDS[0], at=START + 1, clear=["metadata"], metadata={"c": 3})]
    )

    assert stored_nodes.load(nulled.db, IDS)[0].metadata == {"b": 2}
    assert stored_nodes.load(cleared.db, IDS)[0].metadata == {"c": 3}


def test_commit_and_branch_of_an_anchor_move_together() -> None:
    """A node that was found right again on a detached HEAD is no longer of the old branch."""
    base = node(head="a" * 40, branch="main")

    index = index_of([base, patch("patch-0001", IDS[0], at=START + 1, head="b" * 40)])

    (found,) = stored_nodes.load(index.db, IDS)
    assert (found.head, found.branch) == ("b" * 40, None)


def test_marks_make_a_node_no_younger() -> None:
    """Closing, archiving and summarising say nothing new of it; a new content does."""
    marked = index_of([node(), patch("patch-0001", IDS[0], at=START + DAY, closed=True, reason="done")])
    changed = index_of([node(), patch("patch-0001", IDS[0], at=START + DAY, content="more")])

    assert stored_nodes.load(marked.db, IDS)[0].touched == START
    assert stored_nodes.load(changed.db, IDS)[0].touched == START + DAY


def test_accesses_of_two_clones_add_up() -> None:
    """Counts are sums over events; the last time is the greatest."""
    fields = {"node_ids": [IDS[0]], "reader_identity": "test:worker:one"}
    lines = [
        node(),
        records.line("access", START + 2, {"id": "access-0001", **fields}),
        records.line("access", START + 1, {"id": "access-0002", **fields}),
    ]

    (found,) = stored_nodes.load(index_of(lines).db, IDS)

    assert found.accesses == 2
    assert found.last_accessed_at == "2026-10-26T07:33:20.000002Z"


def test_a_relation_ends_where_its_end_knew_of_it() -> None:
    """Taken back, and said again."""
    said = relation("rel-0001", START + 5)
    ended = relation("rel-0002", START + 1, removed=True, after=["rel-0001"])
    again = relation("rel-0003", START + 2, after=["rel-0002"])
    relation_key = (IDS[0], IDS[1], "blocks")

    assert relations.exists(index_of([said]).db, relation_key)
    assert not relations.exists(index_of([ended, said]).db, relation_key)
    assert relations.exists(index_of([ended, again, said]).db, relation_key)


def test_a_patch_of_a_node_that_is_not_here_waits_for_it() -> None:
    """The node may arrive later, from another machine."""
    early = patch("patch-0001", IDS[0], at=START + 1, priority="P0", archived=True)

    index = index_of([early, node()], [1, 1])

    assert index.db.execute("SELECT priority, state FROM node").fetchone() == ("P0", 2)


def test_of_two_lines_of_one_id_the_lowest_counts() -> None:
    """Whichever came first to this clone."""
    one, other = node(at=START, content="first"), node(at=START + 1, content="second")
    for lines in ([one, other], [other, one]):
        assert stored_nodes.load(index_of(lines, [1, 1]).db, IDS)[0].content == "first"


def test_a_line_with_a_day_that_does_not_exist_costs_that_line() -> None:
    """Writers are told so, and whoever reads it goes on without it."""
    bad = node(IDS[1]).replace(
        b'"sender_identity"', b'"updated_at":"2026-02-30T00:00:00.000000Z","sender_identity"'
    )

    index = index_of([bad, node()])

    assert records.read(bad) is None
    assert index.skipped() == 0
    assert [each.id for each in stored_nodes.load(index.db, IDS)] == [IDS[0]]
