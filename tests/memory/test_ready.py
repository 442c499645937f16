"""Ready: the open nodes of a work unit in their order; only what is open blocks, and circles are named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.errors import UsageError
from gitmem.memory import edit
from gitmem.memory.listing import Ready, ready
from gitmem.order.causal import find_cycles

from ..sandbox import START
from .desk import Desk, blocks, raw


def ids(found: Ready) -> list[str]:
    return [node.id for node in found.nodes]


def test_the_most_important_comes_first_then_the_oldest(desk: Desk) -> None:
    """P0 to P3, none last; the id decides only between nodes of one time."""
    last = desk.write("none")
    p3, p1, p0 = (desk.write(each, priority=each) for each in ("P3", "P1", "P0"))
    young = desk.write("P1, younger", priority="P1")

    assert ids(ready(desk.store, "WU-7")) == [p0, p1, young, p3, last]


def test_nodes_of_one_time_are_ordered_by_id(desk: Desk) -> None:
    """As imports have them: to the second."""
    for word in ("b", "a", "c"):
        raw(desk.store, "node", id=f"mem-same{word}", type="discovery", wu_id="WU-9", at=START)

    assert ids(ready(desk.store, "WU-9")) == ["mem-samea", "mem-sameb", "mem-samec"]


def test_what_is_done_hidden_ephemeral_or_summarised_is_not_ready(desk: Desk) -> None:
    """W10: deleted nodes came back."""
    kept = desk.write("open")
    for number, change in enumerate([{"closed": True}, {"archived": True}, {"deleted": True}]):
        desk.change(desk.write(f"node {number}"), **change)
    desk.change(desk.write("in a summary"), summarized_into=desk.write("it", type="summary", wu="WU-8"))
    desk.write("scratch", lifecycle="ephemeral")
    desk.write("of another", wu="WU-8")

    found = ready(desk.store, "WU-7")

    assert ids(found) == [kept]
    assert found.blocked == []


def test_archived_nodes_are_there_when_asked_for(desk: Desk) -> None:
    id, gone = desk.write("archived"), desk.write("deleted")
    desk.change(id, archived=True)
    desk.change(gone, deleted=True)

    assert ids(ready(desk.store, "WU-7", include_archived=True)) == [id]


def test_an_open_blocker_blocks_and_is_named(desk: Desk) -> None:
    blocker, blocked = desk.write("first this"), desk.write("then that", priority="P0")
    blocks(desk, blocker, blocked)

    found = ready(desk.store, "WU-7")

    assert ids(found) == [blocker]
    assert [(each.node.id, each.blocked_by) for each in found.blocked] == [(blocked, [blocker])]


@pytest.mark.parametrize("done", ["closed", "archived", "deleted"])
def test_a_blocker_that_is_done_blocks_no_more(desk: Desk, done: str) -> None:
    """W14: a closed blocker blocked for ever."""
    blocker, blocked = desk.write("first this"), desk.write("then that")
    blocks(desk, blocker, blocked)
    desk.change(blocker, **{done: True})

    assert blocked in ids(ready(desk.store, "WU-7"))
    desk.change(blocker, clear=[done])
    assert blocked not in ids(ready(desk.store, "WU-7"))


def test_a_blocker_that_a_summary_has_blocks_no_more(desk: Desk) -> None:
    """It is listed nowhere: nobody would see what is waited for."""
    blocker, blocked, summary = (
        desk.write("first this"),
        desk.write("then that"),
        desk.write("all", type="summary"),
    )
    blocks(desk, blocker, blocked)
    desk.change(blocker, summarized_into=summary)

    assert blocked in ids(ready(desk.store, "WU-7"))


def test_a_relation_that_was_taken_back_blocks_no_more(desk: Desk) -> None:
    blocker, blocked = desk.write("first this"), desk.write("then that")
    blocks(desk, blocker, blocked)
    blocks(desk, blocker, blocked, remove=True)

    assert ids(ready(desk.store, "WU-7")) == [blocker, blocked]


def test_a_blocker_that_is_not_here_does_not_block(desk: Desk) -> None:
    """It may have been closed long since, where it is."""
    blocked = desk.write("waits for nobody knows what")
    blocks(desk, "mem-zzzzzzzzzzzz", blocked)

    assert ids(ready(desk.store, "WU-7")) == [blocked]


def test_a_blocker_of_another_work_unit_blocks(desk: Desk) -> None:
    blocker, blocked = desk.write("first this", wu="WU-8"), desk.write("then that")
    blocks(desk, blocker, blocked)

    assert [each.blocked_by for each in ready(desk.store, "WU-7").blocked] == [[blocker]]


def test_a_circle_of_blocks_is_reported(desk: Desk) -> None:
    """None of them would ever be ready, and nobody would know why; the first step out is offered."""
    a, b, c = (desk.write(each) for each in "abc")
    outside = desk.write("in another work unit", wu="WU-8")
    blocks(desk, a, b)
    blocks(desk, b, outside)
    blocks(desk, outside, a)
    blocks(desk, a, c)

    found = ready(desk.store, "WU-7")

    assert ids(found) == []
    (circle,) = found.circles
    assert circle[0] == circle[-1] == min(a, b, outside)
    assert set(circle) == {a, b, outside}
    by = {each.node.id: each.blocked_by for each in found.blocked} | {outside: [b]}
    assert all(after in by[before] for before, after in itertools.pairwise(circle))
    assert found.next == [f"gitmem mem relate {circle[1]} blocks {circle[0]} --remove"]
    edit.relate(desk.store, desk.caller, circle[1], "blocks", circle[0], remove=True)
    assert ready(desk.store, "WU-7").circles == []


def test_a_chain_is_no_circle(desk: Desk) -> None:
    made = [desk.write(str(number)) for number in range(5)]
    for one, other in itertools.pairwise(made):
        blocks(desk, one, other)

    assert ready(desk.store, "WU-7").circles == []


def test_what_is_no_work_unit_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="Invalid work unit: WU 7"):
        ready(desk.store, "WU 7")


def test_an_empty_work_unit_says_what_to_look_at(desk: Desk) -> None:
    found = ready(desk.store, "WU-99")

    assert (found.nodes, found.blocked) == ([], [])
    assert found.next == ["gitmem mem list --wu WU-99"]


@given(edges=st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=14))
def test_property_circles_are_ways_back_to_their_start(edges: set[tuple[str, str]]) -> None:
    """Every id that can reach itself is in a knot that has a circle; every circle is a way along the edges."""
    leads = {start: {end for begin, end in edges if begin == start} for start, _ in edges}

    found = find_cycles(leads)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for other in leads.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen

    knots = {
        frozenset(reached(id) & {each for each in leads if id in reached(each)})
        for id in leads
        if id in reached(id)
    }
    assert sorted(min(knot) for knot in knots) == [circle[0] for circle in found]
    for circle in found:
        assert len(set(circle)) == len(circle)
        assert all((one, other) in edges for one, other in zip(circle, [*circle[1:], circle[0]], strict=True))


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    """W29: a circle crashed the view of the existing tool; neither does a chain of any length here."""
    names = [f"{number:06}" for number in range(20_000)]
    leads = {one: {other} for one, other in zip(names, [*names[1:], names[0]], strict=True)}

    (circle,) = find_cycles(leads)

    assert circle == names
    assert find_cycles({one: {other} for one, other in itertools.pairwise(names)}) == []


def test_only_what_can_be_taken_up_is_listed_unless_a_type_is_named(desk: Desk) -> None:
    """Notes and checkpoints were listed as ready: 869 lines."""
    found, bug = desk.write("finding"), desk.write("bug", type="bug")
    note = desk.write("note", type="note")
    desk.write("checkpoint", type="checkpoint")
    desk.write("summary", type="summary", wu="WU-7")

    assert ids(ready(desk.store, "WU-7")) == [found, bug]
    assert ids(ready(desk.store, "WU-7", type="note")) == [note]
    assert ids(ready(desk.store, "WU-7", type="bug")) == [bug]
    with pytest.raises(UsageError, match="Invalid type"):
        ready(desk.store, "WU-7", type="task")


def test_twenty_are_listed_and_the_others_are_counted(desk: Desk) -> None:
    nodes = [desk.write(f"node {number}") for number in range(50)]
    for id in nodes[1:26]:
        blocks(desk, nodes[0], id)

    found = ready(desk.store, "WU-7")

    assert (len(found.nodes), found.more, len(found.blocked), found.more_blocked) == (20, 5, 20, 5)
    assert "gitmem mem ready --wu WU-7 --limit 100" in found.next
    assert len(ready(desk.store, "WU-7", limit=100).nodes) == 25
    with pytest.raises(UsageError, match="whole number of 1 or more"):
        ready(desk.store, "WU-7", limit=0)


def test_a_blocker_is_told_by_its_first_line(desk: Desk) -> None:
    blocker, blocked = desk.write("first this\nin detail", priority="P1", wu="WU-8"), desk.write("then that")
    blocks(desk, blocker, blocked)

    (found,) = ready(desk.store, "WU-7").blocked

    assert [each.as_json() for each in found.blockers] == [
        {"id": blocker, "title": "first this", "priority": "P1", "wu_id": "WU-8"}
    ]


def test_what_a_superseded_node_blocks_its_live_successor_blocks(desk: Desk) -> None:
    old, blocked = desk.write("first this"), desk.write("then that")
    blocks(desk, old, blocked)
    new = desk.write("first this, better", supersedes=[old])

    found = ready(desk.store, "WU-7")

    assert ids(found) == [new]
    assert [(each.node.id, each.blocked_by) for each in found.blocked] == [(blocked, [new])]
    desk.change(new, deleted=True)
    assert ids(ready(desk.store, "WU-7")) == [old]
    edit.relate(desk.store, desk.caller, blocked, "supersedes", old)
    assert ids(ready(desk.store, "WU-7")) == [blocked]


@pytest.mark.parametrize("change", [{"closed": True}, {"deleted": True}])
def test_a_blocker_that_is_closed_does_not_block_again_once_superseded(
    desk: Desk, change: dict[str, bool]
) -> None:
    old, blocked = desk.write("first this"), desk.write("then that")
    blocks(desk, old, blocked)
    desk.change(old, **change)

    new = desk.write("what became of it", supersedes=[old])

    assert ids(ready(desk.store, "WU-7")) == [blocked, new]
