"""The root of a thread is what its name says, and nobody but who begins it decides that, by no clock."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem.order.thread import root_id
from gitmem.records.ids import new_id, own_id
from tests.signing import ANNA, BOB, MALLORY

from ..profiles import up_to

Places = Mapping[str, tuple[str | None, str | None, int]]
BEGUN = new_id("sig", ANNA.writer)
NAME = f"thread-{BEGUN[4:]}"
TASK = f"thread-{new_id('task', ANNA.writer)[5:]}"
A, B = new_id("sig", ANNA.writer), new_id("sig", BOB.writer)
IDS = st.sampled_from([f"sig-{number:04}" for number in range(6)])
OTHERS = st.dictionaries(
    IDS,
    st.tuples(st.none() | IDS | st.just(BEGUN), st.sampled_from([MALLORY.writer, None]), st.integers(0, 9)),
)


@settings(max_examples=up_to(300), deadline=None)
@given(OTHERS, st.none() | IDS, st.integers(0, 9))
def test_a_thread_begins_with_the_signal_of_its_name(others: Places, answered: str | None, rank: int) -> None:
    """Whatever it answers, and whatever others write and when; also of a broadcast, whose thread has its id."""
    places = {**others, BEGUN: (answered, ANNA.writer, rank)}

    assert root_id(NAME, places) == root_id(BEGUN, places) == BEGUN


@settings(max_examples=up_to(300), deadline=None)
@given(OTHERS, st.integers(0, 9))
def test_the_thread_of_a_task_begins_with_a_signal_of_its_caller(others: Places, rank: int) -> None:
    """Its first one; of a thread whose first signal is missing, too."""
    places = {**others, A: (None, ANNA.writer, rank), B: (None, BOB.writer, 0)}
    later = {**places, new_id("sig", ANNA.writer): (None, ANNA.writer, rank + 1)}

    assert [root_id(name, each) for name in (NAME, TASK) for each in (places, later)] == [A] * 4


@settings(max_examples=up_to(300), deadline=None)
@given(OTHERS, st.integers(0, 9))
def test_it_begins_with_what_the_caller_answers_first(others: Places, rank: int) -> None:
    """Not with that answer, and not with what others put before it."""
    places = {**others, B: (None, BOB.writer, rank), A: (B, ANNA.writer, rank)}

    assert root_id(TASK, places) == B


@settings(max_examples=up_to(300), deadline=None)
@given(
    OTHERS,
    st.integers(0, 9),
    st.sampled_from([f"release@{ANNA.writer}", own_id("thread", ANNA.writer, "call k")]),
)
def test_a_named_thread_begins_with_the_lowest_of_who_named_it(others: Places, rank: int, name: str) -> None:
    """Whatever others write into it, and however early; the names of others' threads are others."""
    places = {**others, A: (None, ANNA.writer, rank), B: (None, BOB.writer, 0)}

    assert root_id(name, places) == A


def test_answers_in_a_ring_end() -> None:
    """At the last one that was not met before."""
    places = {A: (B, ANNA.writer, 1), B: (A, BOB.writer, 0)}

    assert root_id(TASK, places) == B


@given(OTHERS.filter(bool))
def test_a_thread_without_its_writer_begins_with_the_lowest(others: Places) -> None:
    """As one with any other name: of another tool, of an importer, or one that was typed."""
    places = {id: ((None if to == BEGUN else to), writer, rank) for id, (to, writer, rank) in others.items()}
    tops = [id for id, (to, *_) in places.items() if to not in places] or list(places)
    lowest = min(places[id][2] for id in tops)

    for name in (
        TASK,
        "thread-x",
        "release",
        "thread-" + "0" * 22,
        NAME.upper(),
        f"my-{BEGUN[4:]}",
        TASK + "0",
    ):
        found = root_id(name, places)
        assert found in tops and places[found][2] == lowest
