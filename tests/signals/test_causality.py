"""What came before what: decided by what was seen, the same in every order, whatever the clocks say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem import records
from gitmem.signals import causality
from gitmem.signals.causality import ThreadSignal


def said(
    id: str,
    by: str = "a",
    intent: str = "INFO",
    *,
    at: int = 0,
    after: tuple[str, ...] = (),
    reply_to: str = "",
    session: str | None = None,
) -> ThreadSignal:
    record = {"at": f"2026-11-21T20:00:00.{at:06d}Z", "signal_id": id, "sender_identity": by, "intent": intent,
              "after": list(after), "reply_to": reply_to, "sender_session": session}  # fmt: skip
    return ThreadSignal(record, [json.dumps(record, separators=(",", ":")).encode()])


def thread(*items: ThreadSignal) -> dict[str, ThreadSignal]:
    return {item.id: item for item in items}


def _decision(reader: str, *items: ThreadSignal) -> str | None:
    found = thread(*items)
    standing = causality.decision(reader, found, causality.earlier(found))
    return standing.id if standing else None


def test_the_later_decision_counts_even_when_its_clock_is_behind() -> None:
    """An hour's skew does not bring a withdrawn AGREE back."""
    assert (
        _decision("b", said("yes", "b", "AGREE", at=9), said("no", "b", "REJECT", at=1, after=("yes",)))
        == "no"
    )


def test_decisions_that_did_not_know_each_other_are_ordered_by_their_lines() -> None:
    """Two clones of one agent decide apart: every clone picks the same one."""
    assert _decision("b", said("yes", "b", "AGREE", at=9), said("no", "b", "REJECT", at=1)) == "yes"


def test_an_information_is_no_decision() -> None:
    """Only AGREE, REJECT and COUNTER decide."""
    assert _decision("b", said("yes", "b", "AGREE"), said("by the way", "b", "INFO", after=("yes",))) == "yes"
    assert _decision("b", said("hm", "b", "INFO")) is None


def test_a_decision_is_its_writers_alone() -> None:
    """By identity, or as the session that was addressed; what another decided later counts for nobody else."""
    session = said("as a session", "c", "REJECT", at=7, session="sess-1")

    assert (
        _decision("b", said("own", "b", "AGREE", at=1), said("another's", "c", "REJECT", at=9), session)
        == "own"
    )
    assert _decision("sess-1", said("own", "b", "AGREE", at=9), session) == "as a session"


@pytest.mark.parametrize(
    "odd",
    [
        {"reply_to": ""},
        {"reply_to": 1},
        {"after": "sig-1"},
        {"recipients": None},
        {"intent": "agree"},
        {"via": []},
    ],
)
def test_a_line_with_a_field_of_another_form_is_no_signal(odd: dict[str, object]) -> None:
    """Lines of others: what folds a thread need not ask for the form of a field."""
    whole = {"at": "2026-11-21T20:00:00.000000Z", "kind": "signal", "signal_id": "sig-0001",
             "sender_identity": "a:b:c", "message": "hello"}  # fmt: skip

    assert records.read_kind("signal", json.dumps(whole, separators=(",", ":")).encode()) is not None
    assert records.read_kind("signal", json.dumps({**whole, **odd}, separators=(",", ":")).encode()) is None


def test_an_unknown_id_is_no_edge() -> None:
    """A signal that this clone lacks orders nothing."""
    found = thread(said("yes", "b", "AGREE", at=9), said("no", "b", "REJECT", at=1, after=("elsewhere",)))

    assert causality.earlier(found) == {"yes": set(), "no": set()}


def test_a_cycle_is_no_edge_and_what_is_behind_it_stays() -> None:
    """Lines that name each other order nothing; what answers them still comes after them."""
    found = thread(said("x", after=("y",)), said("y", after=("x",)), said("z", after=("x",)), said("w"))

    assert causality.earlier(found) == {"x": set(), "y": set(), "z": {"x"}, "w": set()}


def test_a_reply_is_shown_after_what_it_answers() -> None:
    """A clock that is behind does not put the answer before the question."""
    found = thread(said("question", at=9), said("answer", at=1, reply_to="question"), said("other", at=5))

    assert [each.id for each in causality.in_order(found, causality.earlier(found))] == [
        "question",
        "answer",
        "other",
    ]


def test_what_an_answer_knew_is_shown_before_it_in_the_order_of_its_times() -> None:
    """Whatever the ids are."""
    found = thread(said("z", at=5), said("a", at=7), said("answer", at=1, after=("a", "z")))

    assert [each.id for each in causality.in_order(found, causality.earlier(found))] == ["z", "a", "answer"]


def test_the_root_answers_nothing_of_its_thread() -> None:
    """Of several, as when two clones opened one thread id apart, the lowest line."""
    late, early = said("late", at=5), said("early", at=3, reply_to="sig-of-another-thread")

    assert causality.root(thread(late, early, said("re", at=1, reply_to="late"))).id == "early"


def test_a_new_signal_names_what_its_writer_had_seen() -> None:
    """Its own last signal and decision, and the heads of what it read; nothing that it did not see."""
    found = thread(
        said("root", "a"),
        said("mine", "b", "AGREE", at=1, reply_to="root"),
        said("read", "c", at=2, reply_to="mine"),
        said("unread", "c", at=3, reply_to="mine"),
    )

    assert causality.ids_for_after("b", found, {"root", "read"}, None) == ["mine", "read"]
    assert causality.ids_for_after("b", found, {"root"}, "unread") == ["mine", "unread"]


def test_a_new_signal_names_ones_own_last_decision_beside_ones_own_last_word() -> None:
    """Also where the last word knew the decision: who reads one line learns where its writer stands."""
    found = thread(
        said("root", "a"),
        said("z-no", "b", "REJECT", at=9, reply_to="root"),
        said("y-yes", "b", "AGREE", at=2, after=("z-no",)),
        said("x-word", "b", at=3, after=("y-yes",)),
        said("w-unseen", "c", "REJECT", at=9, reply_to="root"),
    )

    assert causality.ids_for_after("b", found, set(), None) == ["y-yes", "x-word"]


_ids = st.sampled_from("uvwxyz")
_said = st.builds(
    said,
    _ids,
    st.sampled_from("ab"),
    st.sampled_from(["INFO", "PROPOSE", "AGREE", "REJECT", "COUNTER"]),
    at=st.integers(0, 3),
    after=st.lists(_ids, max_size=3).map(tuple),
    reply_to=st.sampled_from(["", *"uvwxyz"]),
)


@given(st.lists(_said, min_size=1, max_size=6, unique_by=lambda each: each.id), st.randoms())
def test_the_fold_does_not_depend_on_the_order_of_arrival(items: list[ThreadSignal], random: object) -> None:
    """The same lines give the same answers, also with cycles and unknown ids, and everything is shown once."""
    shuffled = list(items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis's Random
    answers = []
    for order in (items, shuffled):
        found = thread(*order)
        edges = causality.earlier(found)
        shown = [each.id for each in causality.in_order(found, edges)]
        assert sorted(shown) == sorted(found)
        standing = [causality.decision(reader, found, edges) for reader in "ab"]
        answers.append((edges, shown, [each and each.id for each in standing], causality.root(found).id))

    assert answers[0] == answers[1]
