"""Nodes that are written many at a time are those that each would be by itself, and are indexed as if they had been read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.errors import UsageError
from gitmem.index import compare, insert, schema
from gitmem.operations import checks_index, views
from gitmem.operations.memory import new_nodes, nodes
from gitmem.operations.memory.fold import Node
from tests.profiles import up_to

from .desk import Desk
from .test_view import index_of, node, patch

TEXTS = st.sampled_from(["a note", "späté", " \n", "", "password=hunter2hunter2", "\ud800"])
WORDS = st.sampled_from(
    [
        "note",
        "Discovery",
        "bug",
        "summary",
        "wu",
        "project",
        "P1",
        "p9",
        "WU-7",
        "wu-7",
        "",
        "0",
        "a, b",
        "x,",
        "../x",
        "src/a.py",
    ]
)
ODD = (
    st.none()
    | st.booleans()
    | st.integers(0, 1)
    | st.lists(WORDS | st.integers(0, 1), max_size=3)
    | st.just({})
    | st.just({"a": 1})
)
RIGHT = st.fixed_dictionaries(
    {"content": st.sampled_from(["a note", "two\nlines", "späté"])},
    optional={
        "type": st.sampled_from(["note", "bug", "IDEA", "summary", "", None]),
        "lifecycle": st.sampled_from(["wu", "project", "session", None]),
        "wu": st.sampled_from(["WU-7", "A-1", None]), "session": st.sampled_from(["sess-abcd", None, ""]),
        "lane": st.sampled_from(["a lane", "", None]), "priority": st.sampled_from(["P0", "p3", None]),
        "tags": st.sampled_from([["a", "b", "a"], ("c",), "a, b,", [], None, ["bug"]]),
        "paths": st.sampled_from([["./src//a.py", "b"], "a, b", None, ["."]]),
        "sensitive": st.sampled_from([True, False, None]), "metadata": st.sampled_from([None, {}]),
        "discovered_from": st.none(),
    },
)  # fmt: skip
NAMES = st.sampled_from([*new_nodes.OPTIONS, "content", "wu_id", "session_id", "unknown"])


@pytest.fixture
def desk(repo: Path) -> Iterator[Desk]:
    made = Desk(repo, wu="WU-1")
    yield made
    made.store.close()


def made(desk: Desk, many: list[Mapping[str, object]]) -> tuple[object, bool]:
    """What the nodes are, but for ids and times, or what is said of them; and whether they were made together."""
    try:
        found = new_nodes.made(desk.store, desk.caller, many, allow_secret=False)
    except (UsageError, ValueError, TypeError) as error:
        return (type(error), str(error), getattr(error, "hint", "")), False
    lines = [records.read(line) for _, line in found.lines]
    for record in lines:
        assert record is not None
        assert all(record.pop(name) for name in ("id", "at", "mac"))
    return ([shown(each) for each in found.nodes], lines, list(found.remarks)), found.group is not None


def shown(node: Node) -> dict[str, object]:
    hidden = ("id", "line", "created", "created_at")
    return {name: getattr(node, name) for name in node.__slots__ if name not in hidden}


def alone(desk: Desk, many: list[Mapping[str, object]]) -> object:
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(new_nodes, "MANY", 1 << 30)
        return made(desk, many)[0]


@settings(max_examples=up_to(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(each=st.lists(RIGHT, min_size=1, max_size=5))
def test_right_nodes_are_made_together(desk: Desk, each: list[dict[str, Any]]) -> None:
    """The same nodes and the same lines as one by one."""
    many = each * new_nodes.MANY
    assert made(desk, many) == (alone(desk, many), True)


@settings(max_examples=up_to(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    each=st.lists(RIGHT, min_size=1, max_size=5),
    number=st.integers(0, 99),
    name=NAMES,
    value=TEXTS | WORDS | ODD,
)
@example(each=[{"content": "c"}], number=0, name="lane", value=0)
@example(each=[{"content": "c"}], number=0, name="session", value=["sess-abcd"])
def test_what_is_wrong_with_a_node_is_said_as_of_one(
    desk: Desk, each: list[dict[str, Any]], number: int, name: str, value: object
) -> None:
    """Any value of any option: the same answer, the number of the node in it."""
    many: list[Mapping[str, object]] = [*each * new_nodes.MANY]
    many[number % len(many)] = {**many[number % len(many)], name: value}
    assert made(desk, many)[0] == alone(desk, many)


def test_nodes_share_no_list(desk: Desk) -> None:
    """Who changes the tags of one node in hand changes those of no other, and nothing of what is indexed."""
    found = new_nodes.made(
        desk.store, desk.caller, [{"content": "c", "tags": ["a"]}] * 20, allow_secret=False
    )
    assert found.group is not None
    lists = [found.group[2][0]["tags"], found.group[2][1]["tags"], found.nodes[0].tags, found.nodes[1].tags]
    assert (lists, len(set(map(id, lists)))) == ([["a"]] * 4, 4)


def test_the_index_has_of_many_nodes_what_a_new_one_reads(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their lines are not read again, and every table is as if they had been."""
    read: list[bytes] = []
    real = desk.store.index.read
    monkeypatch.setattr(desk.store.index, "read", lambda lines: read.extend(lines) or real(lines))
    many = [{"content": f"note {number}", "type": "bug" if number % 3 else "note", "tags": ["t"] * (number % 2),
             "paths": ["a.py"], "priority": "P1" if number % 4 else None} for number in range(50)]  # fmt: skip
    done = nodes.append(desk.store, desk.caller, many)
    assert not {node.line for node in done.nodes} & set(read)
    assert desk.store.index.foreseen is None
    anew = schema.in_memory(views.checked(desk.store.keys), records.read_groups)
    anew.reshape()
    lines = [body.encode() for (body,) in desk.store.db().execute("SELECT body FROM line")]
    insert.lines(anew, 1, lines)
    assert compare.differing(desk.store.index, anew, but=checks_index.ARRIVAL) == []
    assert [stored.as_json() for stored in map(desk.node, [node.id for node in done.nodes])] == [
        node.as_json() for node in done.nodes
    ]


@pytest.mark.parametrize("change", ["as told", "less", "another"])
@pytest.mark.parametrize(
    "around", [[], [node("mem-zzzz"), b"odd", patch("patch-zzzz", "mem-0000", content="other")]]
)
def test_lines_that_were_foreseen_count_as_they_are(around: list[bytes], change: str) -> None:
    """Others stand beside them, or something else was written: every line counts once, as it is read."""
    told = [node(f"mem-{number:04d}", content=f"c {number}") for number in range(20)]
    ((kind, numbers, found, columns),) = records.read_groups(told)
    index = index_of([])
    index.foreseen = (told, (kind, numbers, found, columns))
    written = {"as told": told, "less": told[:-1], "another": [*told[:3], told[0], *told[4:]]}[change]
    lines = [*around, *written, *around[:1]]
    insert.lines(index, 1, lines)
    assert compare.differing(index, index_of(lines)) == []
