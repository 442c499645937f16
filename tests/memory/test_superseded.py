"""Which nodes are superseded is what docs/format.md says, in any order of arrival, and stays cheap for hostile logs."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path
from typing import Any

import pytest

from cli.render import memory as render
from gitmem.errors import UsageError
from gitmem.index.index_file import Index
from gitmem.memory import edit, listing, relations, search

from ..sandbox import START
from .desk import Desk
from .test_node_rows import index_of, node, patch, relation

IDS = [f"mem-000{number}" for number in range(6)]


def supersedes(number: int, new: str, old: str, **fields: object) -> bytes:
    given = {"from_id": new, "to_id": old, "type": "supersedes", **fields}
    return relation(f"rel-{number:06}", **given)


def ends(index: Index) -> dict[str, str]:
    return dict(index.db.execute("SELECT id, live FROM superseded").fetchall())


def _naive(edges: set[tuple[str, str]], at: dict[str, int], active: set[str]) -> dict[str, str]:
    """The live ends by reachability between all pairs, as docs/format.md has them."""
    edges = {(new, old) for new, old in edges if new in active and new != old}
    reached = set(edges)
    for middle, one, other in itertools.product(IDS, repeat=3):
        if (one, middle) in reached and (middle, other) in reached:
            reached.add((one, other))
    effective = {(new, old) for new, old in edges if (old, new) not in reached}
    old_ones = {old for _, old in effective}
    reaching = set(effective)
    for middle, one, other in itertools.product(IDS, repeat=3):
        if (one, middle) in reaching and (middle, other) in reaching:
            reaching.add((one, other))
    found: dict[str, list[str]] = {}
    for new, old in reaching:
        if new not in old_ones:
            found.setdefault(old, []).append(new)
    return {old: max(those, key=lambda id: (at[id], id)) for old, those in found.items()}


def test_the_live_ends_are_those_of_a_naive_reference_in_any_order() -> None:
    superseded_ones = 0
    for seed in range(200):
        draw = random.Random(seed)
        known = draw.sample(IDS, draw.randint(2, 6))
        at = {id: START + draw.randrange(4) for id in known}
        lines = [node(id, at[id]) for id in known]
        hidden = {id: draw.choice(["", "", "", "closed", "archived", "deleted"]) for id in known}
        lines += [
            patch(f"patch-{id[4:]}", id, at=START + 9, **{how: True}) for id, how in hidden.items() if how
        ]
        pairs = {(draw.choice(IDS), draw.choice(IDS)) for _ in range(draw.randint(1, 9))}
        lines += [supersedes(number, *pair) for number, pair in enumerate(sorted(pairs))]
        removed = {pair for pair in pairs if draw.random() < 0.2}
        lines += [
            supersedes(100 + number, *pair, at=START + 5, removed=True, after=[f"rel-{number:06}"])
            for number, pair in enumerate(sorted(pairs))
            if pair in removed
        ]
        active = {id for id in known if not hidden[id]}
        wanted = _naive(pairs - removed, at, active)
        superseded_ones += len(wanted)
        for _ in range(2):
            draw.shuffle(lines)
            index = index_of(lines, [draw.randint(0, 4) for _ in range(draw.randint(0, 5))])
            assert index.skipped() == 0
            assert ends(index) == wanted, seed
            index.close()
    assert superseded_ones > 150


def _timed(lines: list[bytes]) -> tuple[Index, float]:
    began = time.process_time()
    index = index_of(lines)
    return index, time.process_time() - began


@pytest.mark.deep
@pytest.mark.parametrize("shape", ["chain", "many successors", "many predecessors", "cycle"])
def test_a_hostile_log_of_many_relations_costs_little_more_than_its_lines(shape: str) -> None:
    count = 15_000
    names = [f"mem-{number:06}" for number in range(count)]
    pairs = {
        "chain": list(itertools.pairwise(names)),
        "many successors": [(name, names[0]) for name in names[1:]],
        "many predecessors": [(names[0], name) for name in names[1:]],
        "cycle": [*itertools.pairwise(names), (names[-1], names[0])],
    }[shape]
    nodes = [node(name, START + number) for number, name in enumerate(names)]
    plain, took_plain = _timed(
        [
            *nodes,
            *(
                relation(f"rel-{number:06}", from_id=new, to_id=old, type="related")
                for number, (new, old) in enumerate(pairs)
            ),
        ]
    )
    plain.close()
    index, took = _timed([*nodes, *(supersedes(number, *pair) for number, pair in enumerate(pairs))])

    assert took < 2 * took_plain
    size = {"chain": count - 1, "many successors": 1, "many predecessors": count - 1, "cycle": 0}[shape]
    assert len(ends(index)) == size
    began = time.process_time()
    relations.update_superseded(index.db, [names[5]], ())
    assert time.process_time() - began < took_plain / 2
    index.close()


def test_a_peer_with_a_long_chain_costs_nothing_to_who_relates_other_nodes() -> None:
    names = [f"mem-1{number:05}" for number in range(2_000)]
    lines = [node(name) for name in (*IDS, *names)]
    lines += [supersedes(number, *pair) for number, pair in enumerate(itertools.pairwise(names))]
    index = index_of(lines)
    steps = []
    index.db.set_progress_handler(lambda: steps.append(1), 100)

    relations.update_superseded(index.db, IDS[:2], IDS)

    index.db.set_progress_handler(None, 0)
    assert len(steps) < 20
    index.close()


def test_where_nothing_is_superseded_new_nodes_read_no_relations() -> None:
    index = index_of([node(id) for id in IDS] + [relation(f"rel-{n:06}", to_id=IDS[n]) for n in range(1, 6)])
    (plan,) = index.db.execute(f"EXPLAIN QUERY PLAN {relations._ANY}").fetchall()
    assert "relation_supersedes" in plan[-1]
    index.close()


def test_a_node_supersedes_while_it_is_active_and_the_relation_stands(repo: Path) -> None:
    desk = Desk(repo)
    old = desk.write("Indent with tabs")
    new = desk.write("Indent with blanks", supersedes=[old])

    def live() -> str | None:
        return listing.show(desk.store, old).superseded_by

    assert live() == new
    for mark in ("closed", "archived", "deleted"):
        desk.change(new, **{mark: True})
        assert live() is None
        desk.change(new, clear=[mark])
        assert live() == new
    edit.relate(desk.store, desk.caller, new, "supersedes", old, remove=True)
    assert live() is None
    edit.relate(desk.store, desk.caller, new, "supersedes", old)
    assert live() == new
    found = listing.show(desk.store, new)
    assert found.superseded_by is None
    assert [(each["type"], each["to_id"], each["other"]) for each in found.relations] == [
        ("supersedes", old, "Indent with tabs")
    ]


def test_members_of_a_cycle_are_all_live(repo: Path) -> None:
    desk = Desk(repo)
    one = desk.write("one")
    two = desk.write("two", supersedes=[one])
    edit.relate(desk.store, desk.caller, one, "supersedes", two)
    assert relations.ends_of(desk.store.db(), [one, two]) == {}


def test_a_relation_to_a_node_that_is_not_here_waits_for_it(repo: Path) -> None:
    desk = Desk(repo)
    old = desk.write("tabs")
    related = edit.relate(desk.store, desk.caller, "mem-zzzz", "supersedes", old)
    assert "not in this log yet" in related.warnings[0]
    assert relations.ends_of(desk.store.db(), [old]) == {}


def test_a_node_can_not_supersede_an_unknown_prefix(repo: Path) -> None:
    desk = Desk(repo)
    with pytest.raises(UsageError, match="No such node"):
        desk.write("new", supersedes=["nothing"])


def test_a_batch_supersedes_too(repo: Path) -> None:
    desk = Desk(repo)
    olds = [desk.write(f"old {number}") for number in range(20)]
    made = edit.append(desk.store, desk.caller, [{"content": f"new {id}", "supersedes": [id]} for id in olds])
    assert relations.ends_of(desk.store.db(), olds) == dict(
        zip(olds, (n.id for n in made.nodes), strict=True)
    )


# Search


def hits(desk: Desk, query: str, **options: Any) -> list[tuple[str, str | None]]:
    return [(hit.node.id, hit.superseded_by) for hit in search.recall(desk.store, query, **options)]


def test_a_superseded_hit_stands_directly_below_the_live_end_of_its_chain(repo: Path) -> None:
    desk = Desk(repo)
    old = desk.write("amounts are floats, amounts everywhere")
    other = desk.write("amounts of tea")
    middle = desk.write("amounts are decimals", supersedes=[old])
    live = desk.write("amounts are integers of cents, written as texts in every file", supersedes=[middle])

    found = hits(desk, "amounts")

    assert sorted(found, key=str) == sorted(
        [(live, None), (old, live), (middle, live), (other, None)], key=str
    )
    at = found.index((live, None))
    assert {id for id, _ in found[at + 1 : at + 3]} == {old, middle}


def test_a_live_end_that_does_not_match_is_inserted_in_the_limit(repo: Path) -> None:
    """Who finds the old text by its words must see the new one."""
    desk = Desk(repo)
    old = desk.write("floats, floats, floats")
    live = desk.write("Integers", type="note", supersedes=[old])
    other = desk.write("floats in another place, which is much longer than the first")

    assert hits(desk, "floats") == [(live, None), (old, live), (other, None)]
    assert hits(desk, "floats", limit=2) == [(live, None), (old, live)]
    assert hits(desk, "floats", type="discovery") == [(live, None), (old, live), (other, None)]
    desk.change(live, deleted=True)
    assert hits(desk, "floats") == [(old, None), (other, None)]


def test_a_weaker_hit_goes_with_the_live_end_and_the_other_way_round(repo: Path) -> None:
    desk = Desk(repo)
    weak = desk.write("floats")
    live = desk.write("floats of amounts", supersedes=[weak])
    strong = desk.write("amounts of floats of tea")
    newer = desk.write("tea", supersedes=[strong])

    found = search.search(desk.store, "floats amounts")

    assert [(hit.node.id, hit.matched) for hit in found.hits] == [
        (live, "all"), (weak, "some"), (newer, "all"), (strong, "all")
    ] or [(hit.node.id, hit.matched) for hit in found.hits] == [
        (newer, "all"), (strong, "all"), (live, "all"), (weak, "some")
    ]  # fmt: skip
    lines = render.matching(found)
    assert len(lines) == 2 * 4 and f" · superseded by {live}" in "\n".join(lines)
