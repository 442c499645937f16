"""Receipts: the readers of each signal, and their decisions."""

from __future__ import annotations

import datetime

import pytest

from .adapter import FullBus
from .case_setup import (
    A,
    B,
    C,
    D,
    Proposal,
    decided,
    moment,
    needs,
    read,
    received,
    session,
    sessions,
    states,
)


def test_reading_delivers(bus: FullBus) -> None:
    """A2A.V1: “A receipt is created with the state delivered when the inbox shows the signal to its reader.”"""
    a, b = sessions(bus, A, B)
    sent = bus.send(b, "x", to=[A])["signal_id"]
    assert states(bus, sent) == {}
    bus.inbox(a)

    assert states(bus, sent) == {A: "delivered"}


def test_showing_without_marking_leaves_no_receipt(bus: FullBus) -> None:
    """A2A.V1: “A signal shown without marking has no receipt.”"""
    a, b = sessions(bus, A, B)
    sent = bus.send(b, "x", to=[A])["signal_id"]
    bus.inbox(a, mark=False)

    assert states(bus, sent) == {}


def test_a_reader_has_one_effective_receipt(bus: FullBus) -> None:
    """gitmem: “A signal has one effective receipt for each reader, even if several of its sessions read it.”"""
    first, second, b = sessions(bus, A, A, B)
    sent = bus.send(b, "x", to=[A])["signal_id"]
    read(bus, first, second, first)

    assert states(bus, sent) == {A: "delivered"}


def test_each_recipient_has_a_receipt_of_its_own(bus: FullBus) -> None:
    """A2A.V1: “Each recipient has its own receipt; a recipient that has not read has none.”"""
    a, _, c = sessions(bus, A, B, C)
    sent = bus.send(c, "x", to=[A, B])["signal_id"]
    bus.inbox(a)

    assert states(bus, sent) == {A: "delivered"}


def test_a_receipt_is_of_one_signal(bus: FullBus) -> None:
    """A2A.V1: “A receipt is of one signal: reading that leaves no receipt of another one.”"""
    a, b = sessions(bus, A, B)
    first = bus.send(b, "x", to=[A])["signal_id"]
    bus.inbox(a)
    second = bus.send(b, "y", to=[A])["signal_id"]

    assert (states(bus, first), states(bus, second)) == ({A: "delivered"}, {})


def test_a_broadcast_has_a_receipt_of_each_reader(bus: FullBus) -> None:
    """A2A.V1: “Each reader of a broadcast has a receipt, under its agent identity or else its session id.”"""
    a, b = sessions(bus, A, B)
    nobody = session(bus)
    sent = bus.send(b, "x")["signal_id"]
    read(bus, a, nobody)

    assert states(bus, sent) == {A: "delivered", nobody: "delivered"}


def test_a_receipt_has_the_time_of_reading(bus: FullBus) -> None:
    """A2A.V1: “A receipt has the time at which its reader read the signal, in UTC: `read_at`.”"""
    a, b = sessions(bus, A, B)
    sent = bus.send(b, "x", to=[A])
    bus.inbox(a)
    later = bus.send(b, "y", to=[A])
    (receipt,) = bus.receipts(sent["signal_id"])
    times = [sent["created_at"], receipt.get("read_at", ""), later["created_at"]]
    before, at, after = map(datetime.datetime.fromisoformat, times)

    assert at.utcoffset() == datetime.timedelta(0)
    assert before <= at <= after


def test_a_receipt_keeps_its_time(bus: FullBus) -> None:
    """gitmem: “Reading a signal again and deciding on it leave `read_at` unchanged.”"""
    proposal = Proposal(bus)
    bus.inbox(proposal.b)
    (first,) = bus.receipts(proposal.id)
    bus.inbox(session(bus, B))
    proposal.answer(proposal.b, "AGREE")
    (last,) = bus.receipts(proposal.id)

    assert (last["delivery_state"], last["read_at"]) == ("acked", first["read_at"])


@needs("take")
def test_a_receipt_of_another_program_keeps_its_fields(bus: FullBus) -> None:
    """A2A.V1: “A receipt of another program keeps its `read_at` and its `idempotency_key`.”"""
    _, b = sessions(bus, A, B)
    sent = bus.send(b, "x", to=[A])
    at = moment(1)
    bus.take(received(sent["signal_id"], A, at, idempotency_key="k-1"))
    (receipt,) = bus.receipts(sent["signal_id"])

    assert (receipt["read_at"], receipt.get("idempotency_key")) == (at, "k-1")


@pytest.mark.parametrize(("intent", "state"), [("AGREE", "acked"), ("REJECT", "rejected")])
def test_a_decision_promotes_the_receipt(bus: FullBus, intent: str, state: str) -> None:
    """A2A.V1: “A recipient's AGREE in the thread changes its receipt to acked, a REJECT to rejected.”"""
    proposal = Proposal(bus)
    bus.inbox(proposal.b)
    proposal.answer(proposal.b, intent)

    assert states(bus, proposal.id) == {B: state}


@pytest.mark.parametrize(("intent", "state"), [("AGREE", "acked"), ("REJECT", "rejected")])
def test_any_signal_of_the_thread_may_decide(bus: FullBus, intent: str, state: str) -> None:
    """A2A.V1: “A decision changes the receipt whichever signal of the thread it answers.”"""
    proposal = Proposal(bus)
    question = bus.send(proposal.a, "well?", thread_id=proposal.thread)
    bus.inbox(proposal.b)
    bus.send(proposal.b, "so", reply_to=question["signal_id"], intent=intent)

    assert states(bus, proposal.id) == {B: state}


def test_a_decision_promotes_no_other_signal_of_the_thread(bus: FullBus) -> None:
    """gitmem: “A decision changes the receipts of its proposal and of the signal that it answers, and of no other signal of the thread.”"""
    proposal = Proposal(bus)
    remark = bus.send(proposal.a, "by the way", thread_id=proposal.thread)["signal_id"]
    bus.inbox(proposal.b)
    proposal.answer(proposal.b, "AGREE")

    assert (states(bus, proposal.id), states(bus, remark)) == ({B: "acked"}, {B: "delivered"})


def test_another_session_of_the_identity_may_decide(bus: FullBus) -> None:
    """A2A.V1: “Sessions with one agent identity are one reader: one may read a signal and another decide.”"""
    proposal = Proposal(bus)
    bus.inbox(proposal.b)
    proposal.answer(session(bus, B), "AGREE")

    assert states(bus, proposal.id) == {B: "acked"}


@pytest.mark.parametrize("intent", ["COUNTER", "INFO", "PROPOSE"])
def test_other_answers_promote_nothing(bus: FullBus, intent: str) -> None:
    """A2A.V1: “Only AGREE and REJECT change a receipt's state.”"""
    proposal = Proposal(bus)
    bus.inbox(proposal.b)
    proposal.answer(proposal.b, intent)

    assert states(bus, proposal.id) == {B: "delivered"}


def test_a_decision_in_another_thread_promotes_nothing(bus: FullBus) -> None:
    """A2A.V1: “A decision counts only in its own thread.”"""
    proposal = Proposal(bus)
    other = bus.send(proposal.a, "and this?", to=[B], intent="PROPOSE")
    bus.inbox(proposal.b)
    bus.send(proposal.b, "to the other", reply_to=other["signal_id"], intent="AGREE")

    assert (states(bus, proposal.id), states(bus, other["signal_id"])) == ({B: "delivered"}, {B: "acked"})


def test_a_decision_of_others_promotes_nothing(bus: FullBus) -> None:
    """A2A.V1: “A decision by anyone but the recipient changes no receipt, neither the recipient's nor the writer's.”"""
    proposal = Proposal(bus)
    d = session(bus, D)
    bus.inbox(proposal.b)
    proposal.answer(d, "AGREE")
    proposal.answer(proposal.a, "AGREE")

    assert set(states(bus, proposal.id).values()) == {"delivered"}


@pytest.mark.parametrize(
    ("first", "last", "state"), [("REJECT", "AGREE", "acked"), ("AGREE", "REJECT", "rejected")]
)
def test_the_later_decision_counts(bus: FullBus, first: str, last: str, state: str) -> None:
    """gitmem: “If a reader decides several times, the latest decision counts.”"""
    proposal = Proposal(bus)
    bus.inbox(proposal.b)
    proposal.answer(proposal.b, first)
    proposal.answer(proposal.b, last)

    assert states(bus, proposal.id) == {B: state}


@needs("take")
def test_a_decision_overrules_a_receipt_that_came_from_elsewhere(bus: FullBus) -> None:
    """gitmem: “An imported receipt may be acked or rejected; a decision overrides it.”"""
    proposal = Proposal(bus)
    bus.take(received(proposal.id, B, proposal.root["created_at"], delivery_state="acked"))
    assert states(bus, proposal.id) == {B: "acked"}
    proposal.answer(proposal.b, "REJECT")

    assert states(bus, proposal.id) == {B: "rejected"}


@needs("take")
def test_clocks_do_not_decide_which_decision_is_later(bus: FullBus) -> None:
    """gitmem: “The later decision is the one whose writer had seen the other, whatever the clocks say.”"""
    proposal = Proposal(bus)
    bus.take(decided(proposal.root, "sig-aaaa1111", B, "REJECT", hours=1))
    assert states(bus, proposal.id).get(B) == "rejected"
    proposal.answer(proposal.b, "AGREE")

    assert states(bus, proposal.id).get(B) == "acked"


def test_a_reply_marks_the_answered_signal_as_read(bus: FullBus) -> None:
    """gitmem: “A reply marks the signal that it answers as read.”"""
    a, b = sessions(bus, A, B)
    sent = bus.send(b, "x", to=[A])["signal_id"]
    reply = bus.send(a, "y", reply_to=sent)
    (receipt,) = bus.receipts(sent)

    assert receipt["read_at"] == reply["created_at"]
    assert (states(bus, sent), read(bus, a)) == ({A: "delivered"}, [[]])


@needs("take")
def test_a_receipt_for_other_text_marks_nothing(bus: FullBus) -> None:
    """gitmem: “A receipt whose `answers_digest` matches no content of the signal leaves it unread.”"""
    a, b = sessions(bus, A, B)
    sent = bus.send(b, "x", to=[A])
    bus.take(received(sent["signal_id"], A, sent["created_at"], answers_digest="0" * 64))

    assert read(bus, a) == [["x"]]


@needs("take")
def test_a_reply_to_other_text_marks_nothing_as_read(bus: FullBus) -> None:
    """gitmem: “A reply whose `answers_digest` matches no content of the answered signal leaves it unread.”"""
    proposal = Proposal(bus)
    bus.take(decided(proposal.root, "sig-aaaa1112", B, "INFO", answers_digest="0" * 64))

    assert proposal.root["message"] in read(bus, proposal.b)[0]


@needs("take")
def test_a_reply_in_anothers_name_marks_nothing_as_read(bus: FullBus) -> None:
    """gitmem: “A reply recorded by another session in the sender's name leaves the answered signal unread.”"""
    proposal = Proposal(bus)
    bus.take(decided(proposal.root, "sig-aaaa1112", B, "AGREE", via="sess-0123456789ab"))
    assert proposal.root["message"] in read(bus, proposal.b)[0]


@needs("watch")
def test_a_watcher_delivers(bus: FullBus) -> None:
    """A2A.V1: “A signal given to a watcher is delivered and is not given again.”"""
    a, b = sessions(bus, A, B)
    sent = bus.send(b, "x", to=[A])["signal_id"]
    given = bus.watch(a)

    assert [each["signal_id"] for each in given] == [sent]
    assert (states(bus, sent), read(bus, a)) == ({A: "delivered"}, [[]])


def test_a_decision_promotes_the_receipt_of_its_writer_alone(bus: FullBus) -> None:
    """A2A.V1: “A decision changes the receipt of its writer alone, whoever else has read the signal.”"""
    proposal = Proposal(bus)
    for each in (proposal.b, proposal.c):
        bus.inbox(each)
    proposal.answer(proposal.b, "AGREE")
    assert states(bus, proposal.id) == {B: "acked", C: "delivered"}
    proposal.answer(proposal.c, "REJECT")

    assert states(bus, proposal.id) == {B: "acked", C: "rejected"}


@needs("second")
def test_receipts_are_shared_across_places(bus: FullBus) -> None:
    """A2A.V1: “Sessions with one agent identity share receipts across places.”"""
    a, b = sessions(bus, A, B)
    sent = bus.send(b, "x", to=[A])["signal_id"]
    bus.exchange()
    there = bus.second()
    there.exchange()
    there.inbox(session(there, A))
    for place in (there, bus):
        place.exchange()

    assert (states(bus, sent), read(bus, a)) == ({A: "delivered"}, [[]])
