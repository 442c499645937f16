"""The folds of a thread are those of a naive reference, in any order of arrival."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from gitmem.conformance.reference import Agreement
from gitmem.order.thread import FoldedThread, ThreadSignal
from tests.signals import references
from tests.signals.references import random_thread

READERS = ("a", "b", "c", "sess-1", "sess-2", "nobody")


def _check(thread: Mapping[str, ThreadSignal], seed: int) -> None:
    edges = references.earlier(thread)
    items = list(thread.items())
    random.Random(seed).shuffle(items)
    found = FoldedThread(dict(items))
    assert [one.id for one in found.order.shown()] == references.in_order(thread, edges)
    _check_agreement(found, thread)


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
