"""What came before what: decided by what was seen, the same in any order of arrival, whatever the clocks say."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from gitmem.order.causal import CausalOrder, by_id
from tests.signals import references

IDS = "uvwxyz"


class Fact:
    """A fact with a line as others have it."""

    def __init__(self, id: str, at: int = 0, *named: str, text: int = 0) -> None:
        self.id = id
        self.line = f"{at:06d} {id} {text} {sorted(named)}".encode()
        self.named = frozenset(named)


def ids(facts: list[Fact]) -> list[str]:
    return [each.id for each in facts]


def test_what_its_writer_had_seen_comes_first_even_when_its_clock_is_behind() -> None:
    """Also through others: an hour's skew does not bring a withdrawn decision back."""
    yes, word, no = Fact("yes", 9), Fact("word", 5, "yes"), Fact("no", 1, "word")
    order = CausalOrder([no, word, yes])

    assert (order.latest([yes, no]), order.first([yes, no])) == (no, yes)
    assert order.has_seen(no, "yes") and not order.has_seen(yes, "no")
    assert ids(order.facts) == ids(order.shown()) == ["yes", "word", "no"]


def test_facts_that_did_not_know_each_other_are_ordered_by_their_lines() -> None:
    """Every clone picks the same one. An id that is not here orders nothing."""
    late, early = Fact("late", 9), Fact("early", 1, "elsewhere")
    order = CausalOrder([late, early])

    assert (order.latest([early, late]), order.first([late, early])) == (late, early)
    assert ids(order.heads([late, early])) == ["early", "late"]
    assert not order.has_seen(early, "elsewhere")


def test_a_cycle_is_no_order_and_what_is_behind_it_stays() -> None:
    """Lines that name each other, or themselves, order nothing; what answers them still comes after them."""
    x, y, z, w = Fact("x", 1, "y"), Fact("y", 2, "x"), Fact("z", 0, "x"), Fact("w", 3, "w")
    order = CausalOrder([x, y, z, w])

    assert ids(order.heads([x, y])) == ["x", "y"]
    assert ids(order.heads([x, y, z, w])) == ["z", "y", "w"]
    assert order.seen_by([z]) == order.bits([x]) and not order.seen(w)


def test_a_fact_is_shown_after_those_that_it_names_and_they_by_their_times() -> None:
    """Whatever the ids are."""
    order = CausalOrder([Fact("z", 5), Fact("a", 7), Fact("answer", 1, "a", "z"), Fact("other", 6)])

    assert ids(order.shown()) == ["z", "a", "answer", "other"]


def test_of_several_lines_of_an_id_the_lowest_counts() -> None:
    first, again = Fact("x", 1), Fact("x", 2)

    assert by_id([again, first]) == {"x": first}


_ids = st.sampled_from(IDS)
_facts = st.lists(
    st.builds(
        lambda id, at, named, text: Fact(id, at, *named, text=text),
        _ids,
        st.integers(0, 3),
        st.lists(st.sampled_from([*IDS, "elsewhere"]), max_size=4),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=9,
)


@given(_facts, st.randoms(use_true_random=False))
def test_every_answer_is_that_of_the_rule_word_for_word(lines: list[Fact], draw: random.Random) -> None:
    """With cycles, ids that are twice there or missing, and equal times; also as a part of more facts."""
    facts = by_id(lines)
    every = list(facts.values())
    edges = references.earlier(facts)
    seen = {id: references.reach(id, edges) - {id} for id in facts}
    draw.shuffle(every)
    some = draw.sample(every, draw.randint(1, len(every)))
    groups = {at: draw.sample(every, draw.randint(1, min(3, len(every)))) for at in range(4)}
    whole = CausalOrder(lines)
    order, part = CausalOrder(every), CausalOrder(every, whole)
    for each in every:
        assert {id for id in facts if order.has_seen(each, id)} == seen[each.id]
    heads = sorted(
        (each for each in some if not any(each.id in seen[o.id] for o in some)), key=lambda f: f.line
    )
    free = [each for each in some if not any(o.id in seen[each.id] for o in some)]
    assert order.first(some) is min(free, key=lambda f: f.line)
    places = ids(order.facts)
    assert all(places.index(name) < places.index(id) for id in facts for name in seen[id])
    assert ids(order.shown()) == references.in_order(facts, edges)
    assert ids(order.unnamed(some)) == [
        f.id for f in sorted(some, key=lambda f: f.line) if not any(f.id in edges[o.id] for o in some)
    ]
    for one in order, part:
        assert one.heads(some) == heads
        assert one.latest(some) is heads[-1]
        assert one.seen_by(some) == one.bits(facts[id] for id in set().union(*(seen[f.id] for f in some)))
        lasts = one.latest_of_each(groups, some)
        for key, own in groups.items():
            assert lasts[key] is references.latest({f.id: f for f in [*own, *some]}.values(), edges)
            assert one.latest_of_each(groups)[key] is references.latest(own, edges)
