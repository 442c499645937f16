"""The folds of a thread are those of a naive reference, in any order of arrival, and no graph makes them slow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gitmem.conformance.reference_signals import Agreement
from gitmem.signals import causality, graph
from gitmem.signals.agreement import FoldedThread
from gitmem.signals.causality import ThreadSignal
from tests.signals import references
from tests.signals.references import random_thread

READERS = ("a", "b", "c", "sess-1", "sess-2", "nobody")


def _check(thread: Mapping[str, ThreadSignal], seed: int) -> None:
    edges = references.earlier(thread)
    items = list(thread.items())
    random.Random(seed).shuffle(items)
    found = FoldedThread(dict(items))
    assert found.edges == edges
    assert [one.id for one in causality.in_order(dict(items), edges)] == references.in_order(thread, edges)
    for reader in READERS:
        decided = references.decision(reader, thread, edges)
        assert causality.decision(reader, thread, edges) is decided
    _check_agreement(found, thread)
    draw = random.Random(seed)
    among = draw.sample(list(thread.values()), draw.randint(0, len(thread)))
    groups = {at: draw.choices(list(thread.values()), k=3) for at in range(5)}
    lasts = causality.latest_of_each(groups, edges, among)
    for key, own in groups.items():
        assert lasts[key] is references.latest([*own, *among], edges)


def _check_agreement(found: FoldedThread, thread: Mapping[str, ThreadSignal]) -> None:
    oldest = sorted(thread.values(), key=lambda each: each.line)
    said: dict[str, Any] = {
        each.id: {**each.record, "created_at": f"{at:05}"} for at, each in enumerate(oldest)
    }
    wanted = Agreement(said, {})
    assert list(found.parties) == wanted.parties
    assert found.proposals.keys() == wanted.ids
    assert (found.agreed_on.id if found.agreed_on else None) == wanted.agreed_on
    assert found.in_force.keys() == {*wanted.in_force}
    for id in thread:
        assert found.answered.get(id) == wanted.proposal_of(id)
    for reader in READERS:
        at, (how, on) = found.position(reader), wanted.position(reader)
        assert (at is None) == (how == "pending")
        assert at is None or (at.rejects, set(at.proposals)) == (how == "reject", on)
        for id in thread:
            last, expected = found.answer(reader, id), wanted.answer(reader, id)
            assert (last.id if last else None) == (expected["signal_id"] if expected else None)
    lists = wanted.convergence((), "")
    names = {"agree": "agreed", "reject": "rejected", "counter": "countered", "pending": "pending"}
    for decision, name in names.items():
        decisions = (
            ("agree", "counter") if decision == "agree" else (decision,)
        )  # a counter's author agrees to it
        assert [each for each in found.asked if found.stands(each)[0] in decisions] == lists[name]  # type: ignore[literal-required]


def test_folds_of_random_threads_are_those_of_the_reference() -> None:
    """With cycles, ids that are named and missing, equal times and several decisions of one reader."""
    for seed in range(300):
        _check(random_thread(seed), seed)


@pytest.mark.deep
def test_folds_of_many_random_threads_are_those_of_the_reference() -> None:
    """The same for more threads."""
    for seed in range(300, 5_000):
        _check(random_thread(seed), seed)


def test_folds_are_those_of_the_reference_over_several_ranges_of_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More readers and proposals than one pass over the graph follows."""
    monkeypatch.setattr(graph, "BITS", 2)
    for seed in range(100):
        _check(random_thread(seed), seed)


class _Counted(set[str]):
    """Names that count how often one of them is looked at."""

    steps = 0

    def __iter__(self) -> Iterator[str]:
        for name in super().__iter__():
            _Counted.steps += 1
            yield name


def _cycle(count: int) -> dict[str, set[str]]:
    return {f"{at}": _Counted([f"{(at + 1) % count}", f"{(at + 7) % count}"]) for at in range(count)}


def _chain(count: int) -> dict[str, set[str]]:
    return {f"{at}": _Counted([f"{at - 1}"] if at else []) for at in range(count)}


@pytest.mark.parametrize("shape", [_cycle, _chain])
def test_edges_are_looked_at_a_fixed_number_of_times(shape: object) -> None:
    """Four times as many signals in a cycle or a chain take four times as many steps, not sixteen."""
    steps = []
    for count in (500, 2_000):
        _Counted.steps = 0
        edges = graph.without_cycles(shape(count))  # type: ignore[operator]  # one of the functions above
        items = [references.said({"signal_id": id, "at": "", "intent": "AGREE"}) for id in edges]
        causality.latest(items, edges)
        groups = {str(at): [items[at], items[-1 - at]] for at in range(count // 2)}
        causality.latest_of_each(groups, edges)
        steps.append(_Counted.steps)

    assert 0 < steps[1] <= 4.5 * steps[0]
