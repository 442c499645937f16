"""Convergence: whether all recipients of a proposal agree, with the same answer in every place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .adapter import Convergence, FullBus, Refused
from .case_setup import A, B, C, D, Proposal, decided, needs, session, sessions, states, written


def test_all_agree(bus: FullBus) -> None:
    """A2A.V1: “A thread has converged if and only if every recipient of its root has replied with AGREE.”"""
    proposal = Proposal(bus)
    assert not bus.converged(proposal.thread)["converged"]
    proposal.answer(proposal.b, "AGREE")
    assert not bus.converged(proposal.thread)["converged"]
    proposal.answer(proposal.c, "AGREE")
    found = bus.converged(proposal.thread)

    assert (found["converged"], sorted(found["agreed"])) == (True, [B, C])


@pytest.mark.parametrize("last", [B, C, D])
def test_most_are_not_all(bus: FullBus, last: str) -> None:
    """A2A.V1: “A thread has not converged while one recipient of its root has not replied with AGREE, however many have.”"""
    a, *others = sessions(bus, A, B, C, D)
    root = bus.send(a, "shall we?", to=[B, C, D], intent="PROPOSE")
    whose = dict(zip((B, C, D), others, strict=True))
    late = whose.pop(last)
    for each in whose.values():
        bus.send(each, "yes", reply_to=root["signal_id"], intent="AGREE")
    found = bus.converged(root["signal_id"])
    assert (found["converged"], found["pending"]) == (False, [last])
    bus.send(late, "yes", reply_to=root["signal_id"], intent="AGREE")

    assert bus.converged(root["signal_id"])["converged"]


def test_a_recipient_that_is_away_is_asked_too(bus: FullBus) -> None:
    """gitmem: “A recipient is asked even if its sessions have ended, or if it never had one.”"""
    a, b, c = sessions(bus, A, B, C)
    unseen = "new:agent:here"
    root = bus.send(a, "shall we?", to=[B, C, unseen], intent="PROPOSE", allow_unseen=True)
    bus.end(c)
    bus.send(b, "yes", reply_to=root["signal_id"], intent="AGREE")
    found = bus.converged(root["signal_id"])
    assert (found["converged"], sorted(found["pending"])) == (False, sorted([C, unseen]))
    for who in (C, unseen):
        assert not bus.converged(root["signal_id"])["converged"]
        bus.send(session(bus, who), "yes", reply_to=root["signal_id"], intent="AGREE")

    assert bus.converged(root["signal_id"])["converged"]


def test_another_session_of_the_identity_agrees(bus: FullBus) -> None:
    """A2A.V1: “Sessions with one agent identity are one recipient: any of them agrees for it.”"""
    proposal = Proposal(bus)
    for each in (B, C):
        bus.send(session(bus, each), "yes", reply_to=proposal.id, intent="AGREE")

    assert bus.converged(proposal.thread)["converged"]


def test_the_sender_of_the_root_is_not_asked(bus: FullBus) -> None:
    """gitmem: “The sender of the root agrees by sending it, even if it is one of its recipients.”"""
    a, b = sessions(bus, A, B)
    root = bus.send(a, "shall we?", to=[A, B], intent="PROPOSE")
    assert bus.converged(root["signal_id"])["pending"] == [B]
    bus.send(b, "yes", reply_to=root["signal_id"], intent="AGREE")

    assert bus.converged(root["signal_id"])["converged"]


@pytest.mark.parametrize(
    ("intent", "listed"),
    [
        (None, "pending"),
        ("REJECT", "rejected"),
        ("COUNTER", "countered"),
        ("INFO", "pending"),
        ("PROPOSE", "countered"),
    ],
)
def test_recipients_are_listed_by_decision(bus: FullBus, intent: str | None, listed: str) -> None:
    """A2A.V1: “A thread has not converged while a recipient is pending, rejects or counters; each of these groups is listed.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.b, "AGREE")
    if intent:
        proposal.answer(proposal.c, intent)
    found = bus.converged(proposal.thread)

    lists = {name: found[name] for name in ("agreed", "rejected", "countered", "pending")}
    assert not found["converged"]
    nobody: dict[str, list[str]] = {name: [] for name in lists}
    if listed == "countered":  # whose writer agrees to it, and which all others have to answer
        assert lists == {**nobody, "agreed": [C], "countered": [C], "pending": [A, B]}
    else:
        assert lists == {**nobody, "agreed": [B], listed: [C]}


def test_a_decision_of_others_changes_nothing(bus: FullBus) -> None:
    """A2A.V1: “Only decisions of the root's recipients count.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.b, "AGREE")
    proposal.answer(session(bus, D), "AGREE")
    proposal.answer(proposal.a, "AGREE")
    assert not bus.converged(proposal.thread)["converged"]
    proposal.answer(proposal.c, "AGREE")
    proposal.answer(session(bus, D), "REJECT")

    assert bus.converged(proposal.thread)["converged"]


def test_only_the_roots_recipients_are_asked(bus: FullBus) -> None:
    """A2A.V1: “Recipients of later signals in the thread do not have to agree.”"""
    proposal = Proposal(bus)
    session(bus, D)
    bus.send(proposal.a, "you too?", to=[D], thread_id=proposal.thread)
    for each in (proposal.b, proposal.c):
        proposal.answer(each, "AGREE")

    assert bus.converged(proposal.thread)["converged"]


def test_a_decision_need_not_answer_the_root(bus: FullBus) -> None:
    """A2A.V1: “A decision counts for its thread whichever signal it answers, and even if it answers none.”"""
    proposal = Proposal(bus)
    first = proposal.answer(proposal.b, "AGREE")
    bus.send(proposal.c, "me too", reply_to=first["signal_id"], intent="AGREE")
    assert bus.converged(proposal.thread)["converged"]
    bus.send(proposal.c, "rather not", thread_id=proposal.thread, intent="REJECT")
    assert bus.converged(proposal.thread)["rejected"] == [C]
    remark = bus.send(proposal.a, "think again", thread_id=proposal.thread)
    bus.send(proposal.b, "nor me", reply_to=remark["signal_id"], intent="REJECT")

    assert sorted(bus.converged(proposal.thread)["rejected"]) == [B, C]


def test_a_decision_in_another_thread_changes_nothing(bus: FullBus) -> None:
    """A2A.V1: “A decision counts only in its own thread.”"""
    proposal = Proposal(bus)
    other = bus.send(proposal.a, "and this?", to=[B, C], intent="PROPOSE")
    for each in (proposal.b, proposal.c):
        bus.send(each, "yes", reply_to=other["signal_id"], intent="AGREE")

    assert bus.converged(proposal.thread)["pending"] == [B, C]
    assert bus.converged(other.get("thread_id") or "")["converged"]


def test_a_session_without_identity_decides_too(bus: FullBus) -> None:
    """A2A.V1: “If the root was sent to a session id, that session's AGREE counts.”"""
    a, b = session(bus, A), session(bus)
    root = bus.send(a, "you?", to=[b], intent="PROPOSE")
    bus.send(b, "yes", reply_to=root["signal_id"], intent="AGREE")

    assert bus.converged(root.get("thread_id") or "")["agreed"] == [b]


@pytest.mark.parametrize(("first", "last"), [("REJECT", "AGREE"), ("AGREE", "REJECT"), ("COUNTER", "AGREE")])
def test_the_latest_decision_counts(bus: FullBus, first: str, last: str) -> None:
    """gitmem: “A later decision of a recipient replaces the earlier one.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.c, "AGREE")
    proposal.answer(proposal.b, first)
    proposal.answer(proposal.b, last)

    assert bus.converged(proposal.thread)["converged"] == (last == "AGREE")


@needs("take")
@pytest.mark.parametrize(("first", "last"), [("REJECT", "AGREE"), ("AGREE", "REJECT")])
def test_clocks_do_not_decide_which_decision_is_latest(bus: FullBus, first: str, last: str) -> None:
    """gitmem: “The latest decision is determined by what its writer had seen, not by clocks.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.c, "AGREE")
    bus.take(decided(proposal.root, "sig-aaaa1111", B, first, hours=1))
    proposal.answer(proposal.b, last)

    assert bus.converged(proposal.thread)["converged"] == (last == "AGREE")


def test_a_thread_without_recipients_cannot_converge(bus: FullBus) -> None:
    """gitmem: “A thread whose root is a broadcast, or is for its sender alone, never converges; an unknown thread is refused.”"""
    a, b = sessions(bus, A, B)
    to_all = bus.send(a, "to all", intent="PROPOSE")
    bus.send(b, "yes", reply_to=to_all["signal_id"], intent="AGREE")
    alone = bus.send(a, "shall I?", to=[A], intent="PROPOSE")
    bus.send(a, "yes", reply_to=alone["signal_id"], intent="AGREE")

    for root in (to_all, alone):
        assert not bus.converged(root["signal_id"])["converged"]
    with pytest.raises(Refused):
        bus.converged("thread-nowhere")


@needs("second")
@pytest.mark.parametrize("first", ["here", "there"])
def test_decisions_in_two_places_give_one_answer(bus: FullBus, first: str) -> None:
    """gitmem: “Decisions recorded in two places give the same answer in both, in whatever order the places exchange them.”"""
    proposal = Proposal(bus)
    bus.exchange()
    there = bus.second()
    there.exchange()
    b = session(there, B)
    proposal.answer(proposal.c, "AGREE")
    proposal.answer(proposal.b, "AGREE", "said here")
    there.send(b, "said there", reply_to=proposal.id, intent="REJECT")
    for place in (bus, there, bus) if first == "here" else (there, bus, there):
        place.exchange()
    here, over_there = (_plain(place.converged(proposal.thread)) for place in (bus, there))

    assert here == over_there
    assert (here["agreed"], here["rejected"]) == ([C], [B])  # neither knew the other: the REJECT counts


@needs("take")
def test_the_order_of_arrival_changes_nothing(bus: FullBus, new_bus: Callable[[], FullBus]) -> None:
    """gitmem: “The same records give the same answers, whatever their order of arrival and number of repetitions.”"""
    root: Any = written("sig-root0001", A, [B, C], "shall we?", hours=-3, intent="PROPOSE")
    first = decided(root, "sig-bbbb0001", B, "REJECT", hours=-1)
    records = [
        root,
        first,
        decided(root, "sig-bbbb0002", B, "AGREE", hours=-2, after=[first["signal_id"]]),
        decided(root, "sig-cccc0001", C, "AGREE", hours=-2.5),
        decided(root, "sig-dddd0001", D, "REJECT", hours=-2.2),
    ]
    answers = []
    for number, order in enumerate((records, records[::-1], records[2:] + records[:2] + records)):
        place = new_bus() if number else bus
        a, *_ = sessions(place, A, B, C, D)
        for record in order:
            place.take(record)
        shown = {each["signal_id"] for each in place.inbox(a)}
        answers.append((_plain(place.converged(root["thread_id"])), states(place, "sig-root0001"), shown))

    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0]["converged"]


def _plain(found: Convergence) -> dict[str, object]:
    return {name: sorted(value) if isinstance(value, list) else value for name, value in found.items()}


@needs("take")
def test_nobody_else_orders_the_decisions_of_a_party(bus: FullBus) -> None:
    """gitmem: “The decisions of a party are ordered by its own signals alone: what others name in between orders nothing.”"""
    proposal = Proposal(bus)
    bus.take(decided(proposal.root, "sig-cccc0001", C, "REJECT", hours=-3))
    for sender, between in ((A, "sig-aaaa0001"), (D, "sig-dddd0001")):
        bus.take(
            written(between, sender, [C], "hm", hours=-2, thread_id=proposal.thread, reply_to=proposal.id, origin="elsewhere",
                    after=["sig-cccc0001"])
        )  # fmt: skip
    bus.take(
        decided(proposal.root, "sig-cccc0002", C, "AGREE", hours=-1, after=["sig-aaaa0001", "sig-dddd0001"])
    )
    bus.take(decided(proposal.root, "sig-bbbb0001", B, "AGREE"))
    found = bus.converged(proposal.thread)

    assert (found["converged"], found["rejected"]) == (False, [C])


@needs("take")
def test_what_somebody_else_says_leads_to_no_proposal(bus: FullBus) -> None:
    """gitmem: “A decision that answers a signal of somebody who was not asked is on no proposal.”"""
    proposal = Proposal(bus)
    said = bus.send(session(bus, D), "sounds good", reply_to=proposal.id, to=[B])["signal_id"]
    bus.send(proposal.b, "yes", reply_to=said, intent="AGREE")

    assert bus.converged(proposal.thread)["pending"] == [B, C]


@needs("take")
def test_unknown_ids_do_not_affect_the_order(bus: FullBus) -> None:
    """gitmem: “Unknown ids in `after`, and cycles of ids, do not affect the order.”"""
    proposal = Proposal(bus)
    bus.take(decided(proposal.root, "sig-bbbb0001", B, "AGREE", after=[proposal.id, "sig-nowhere1"]))
    bus.take(decided(proposal.root, "sig-cccc0001", C, "REJECT", hours=-2, after=["sig-cccc0002"]))
    bus.take(decided(proposal.root, "sig-cccc0002", C, "AGREE", hours=-1, after=["sig-cccc0001"]))
    found = bus.converged(proposal.thread)

    assert (found["agreed"], found["rejected"]) == ([B], [C])


@needs("take")
def test_the_root_is_the_oldest_that_answers_nothing(bus: FullBus) -> None:
    """gitmem: “If a thread has two roots, the older one is the root.”"""
    a, b, _ = sessions(bus, A, B, C)
    bus.take(written("sig-root0002", D, [C], "and you?", hours=-1, intent="PROPOSE", thread_id="thread-one"))
    bus.take(written("sig-root0001", A, [B], "shall we?", hours=-2, intent="PROPOSE", thread_id="thread-one"))
    bus.send(b, "yes", reply_to="sig-root0001", intent="AGREE")
    bus.send(a, "who is asked?", thread_id="thread-one")

    assert bus.converged("thread-one")["agreed"] == [B]
    assert bus.converged("thread-one")["converged"]


def test_a_counter_is_a_proposal_that_others_accept(bus: FullBus) -> None:
    """gitmem: “A COUNTER is a proposal: writing it is agreeing to it, and it is agreed on when all others have agreed to it, the first proposer too.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER", "rather this")["signal_id"]
    bus.send(proposal.c, "yes", reply_to=counter, intent="AGREE")
    found = bus.converged(counter)
    assert (found["converged"], found["pending"], found["countered"]) == (False, [A], [B])
    bus.send(proposal.a, "yes", reply_to=counter, intent="AGREE")
    found = bus.converged(counter)

    assert (found["converged"], found["agreed_on"], found["in_force"]) == (True, counter, [counter])
    assert (sorted(found["agreed"]), found["countered"]) == ([A, B, C], [])
    assert bus.converged(proposal.thread)["converged"]


def test_a_counter_needs_more_than_the_first_proposer(bus: FullBus) -> None:
    """gitmem: “A counter is agreed on when its writer, the first proposer and all other recipients agree; the first proposer alone is not enough, unless nobody else is asked.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER", "rather this")["signal_id"]
    bus.send(proposal.a, "yes", reply_to=counter, intent="AGREE")
    for asked in (proposal.id, counter, proposal.thread):
        found = bus.converged(asked)
        assert (found["converged"], found["agreed_on"], found["pending"]) == (False, None, [C])
    alone = bus.send(proposal.a, "and this?", to=[B], intent="PROPOSE")
    other = bus.send(proposal.b, "rather that", reply_to=alone["signal_id"], intent="COUNTER")["signal_id"]
    assert not bus.converged(other)["converged"]
    bus.send(proposal.a, "yes", reply_to=other, intent="AGREE")

    assert bus.converged(alone.get("thread_id") or "")["agreed_on"] == other


def test_the_first_proposer_may_refuse_a_counter(bus: FullBus) -> None:
    """gitmem: “While the first proposer rejects a counter, nothing is agreed on.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER")["signal_id"]
    bus.send(proposal.c, "yes", reply_to=counter, intent="AGREE")
    bus.send(proposal.a, "no", reply_to=counter, intent="REJECT")

    for asked in (proposal.id, counter, proposal.thread):
        found = bus.converged(asked)
        assert (found["converged"], found["agreed_on"], found["rejected"]) == (False, None, [A])


def test_a_recipient_may_refuse_a_counter(bus: FullBus) -> None:
    """gitmem: “While a recipient rejects a counter, nothing is agreed on.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER")["signal_id"]
    bus.send(proposal.a, "yes", reply_to=counter, intent="AGREE")
    bus.send(proposal.c, "no", reply_to=counter, intent="REJECT")
    found = bus.converged(counter)

    assert (found["converged"], sorted(found["agreed"]), found["rejected"]) == (False, [A, B], [C])


def test_a_proposal_that_was_replaced_is_not_agreed(bus: FullBus) -> None:
    """gitmem: “An AGREE is on the proposal that it answers, and the id of a proposal asks about that one alone.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER")["signal_id"]
    bus.send(proposal.a, "yes", reply_to=counter, intent="AGREE")
    proposal.answer(proposal.c, "AGREE")
    found = bus.converged(proposal.thread)
    assert (found["converged"], found["in_force"], found["pending"]) == (False, [counter], [C])
    bus.send(proposal.c, "yes", reply_to=counter, intent="AGREE")

    assert not bus.converged(proposal.id)["converged"]
    assert bus.converged(counter)["converged"]


def test_all_may_return_to_a_replaced_proposal(bus: FullBus) -> None:
    """gitmem: “The proposal to which every party's latest decision is AGREE is agreed on, even if it was replaced.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER")["signal_id"]
    bus.send(proposal.a, "no", reply_to=counter, intent="REJECT")
    for each in (proposal.b, proposal.c):
        proposal.answer(each, "AGREE")
    assert not bus.converged(proposal.id)["converged"]
    proposal.answer(proposal.a, "AGREE")

    assert bus.converged(proposal.id)["agreed_on"] == proposal.id


def test_a_counter_may_be_withdrawn(bus: FullBus) -> None:
    """gitmem: “A REJECT of its writer withdraws a proposal: the one before it is in force again.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER")["signal_id"]
    bus.send(proposal.b, "forget it", reply_to=counter, intent="REJECT")
    found = bus.converged(proposal.thread)
    assert (found["in_force"], sorted(found["pending"])) == ([proposal.id], [B, C])
    for each in (proposal.b, proposal.c):
        proposal.answer(each, "AGREE")

    assert bus.converged(proposal.thread)["agreed_on"] == proposal.id


def test_nothing_is_in_force_when_all_is_withdrawn(bus: FullBus) -> None:
    """gitmem: “If all proposals were withdrawn, nothing is in force, and nobody is asked.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER")["signal_id"]
    bus.send(proposal.b, "forget it", reply_to=counter, intent="REJECT")
    proposal.answer(proposal.a, "REJECT")

    for asked in (proposal.id, counter, proposal.thread):
        found = bus.converged(asked)
        assert (found["converged"], found["in_force"], found["pending"], found["rejected"]) == (
            False,
            [],
            [],
            [],
        )


def test_a_counter_to_a_counter_is_in_force(bus: FullBus) -> None:
    """gitmem: “The latest proposal is in force; a decision is on the first proposal that is reached through `reply_to`.”"""
    proposal = Proposal(bus)
    first = proposal.answer(proposal.b, "COUNTER")["signal_id"]
    second = bus.send(proposal.a, "or this", reply_to=first, intent="COUNTER")["signal_id"]
    said = bus.send(proposal.c, "yes", reply_to=second, intent="AGREE")
    found = bus.converged(proposal.thread)
    assert (found["in_force"], found["pending"]) == ([second], [B])
    bus.send(proposal.b, "then me, too", reply_to=said["signal_id"], intent="AGREE")

    assert bus.converged(second)["agreed_on"] == second
    assert not bus.converged(first)["converged"]


@needs("take")
def test_two_concurrent_counters_conflict(bus: FullBus) -> None:
    """gitmem: “Proposals that were written without knowledge of each other conflict until every party has agreed to the same one.”"""
    proposal = Proposal(bus)
    bus.take(decided(proposal.root, "sig-bbbb0001", B, "COUNTER", hours=-1))
    bus.take(decided(proposal.root, "sig-cccc0001", C, "COUNTER", hours=1))
    found = bus.converged(proposal.thread)
    assert (found["converged"], sorted(found["in_force"])) == (False, ["sig-bbbb0001", "sig-cccc0001"])
    assert (sorted(found["countered"]), found["pending"]) == ([B, C], [A])
    for each in (proposal.a, proposal.c):
        bus.send(each, "that one", reply_to="sig-bbbb0001", intent="AGREE")

    assert bus.converged("sig-bbbb0001")["converged"]
    assert not bus.converged("sig-cccc0001")["converged"]


@needs("take")
def test_a_later_counter_ends_a_conflict(bus: FullBus) -> None:
    """gitmem: “A counter whose writer had seen all proposals that conflict is in force.”"""
    proposal = Proposal(bus)
    for id, who in (("sig-bbbb0001", B), ("sig-cccc0001", C)):
        bus.take(decided(proposal.root, id, who, "COUNTER"))
    bus.take(decided(proposal.root, "sig-aaaa0001", A, "COUNTER", after=["sig-bbbb0001", "sig-cccc0001"]))

    assert bus.converged(proposal.thread)["in_force"] == ["sig-aaaa0001"]


@needs("take")
def test_the_strongest_of_concurrent_decisions_counts(bus: FullBus) -> None:
    """gitmem: “Of decisions that a reader wrote without knowledge of each other REJECT counts before COUNTER, and COUNTER before AGREE.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.c, "AGREE")
    bus.take(decided(proposal.root, "sig-bbbb0002", B, "AGREE", hours=1))
    assert bus.converged(proposal.thread)["converged"]
    bus.take(decided(proposal.root, "sig-bbbb0001", B, "COUNTER", hours=-1))
    assert bus.converged(proposal.thread)["countered"] == [B]
    bus.take(decided(proposal.root, "sig-bbbb0003", B, "REJECT", hours=-2))
    found = bus.converged(proposal.id)

    assert (found["converged"], found["agreed_on"], B in found["agreed"]) == (False, None, False)
    assert states(bus, proposal.id)[B] == "rejected"


def test_a_counter_of_somebody_who_was_not_asked_changes_nothing(bus: FullBus) -> None:
    """gitmem: “Only the root's sender and its recipients propose: a COUNTER of anybody else changes nothing.”"""
    proposal = Proposal(bus)
    proposal.answer(session(bus, D), "COUNTER")
    assert bus.converged(proposal.thread)["in_force"] == [proposal.id]
    for each in (proposal.b, proposal.c):
        proposal.answer(each, "AGREE")
    found = bus.converged(proposal.thread)

    assert (found["agreed_on"], found["in_force"]) == (proposal.id, [proposal.id])


def test_a_counter_goes_to_all_parties(bus: FullBus) -> None:
    """gitmem: “A COUNTER goes to all parties; `to` adds readers.”"""
    proposal = Proposal(bus)
    d = session(bus, D)
    bus.send(proposal.b, "rather", reply_to=proposal.id, to=[D], intent="COUNTER")

    for each in (proposal.a, proposal.c, d):
        assert "rather" in [signal["message"] for signal in bus.inbox(each)]


def test_an_agreement_to_a_proposal_of_somebody_who_was_not_asked_is_none(bus: FullBus) -> None:
    """gitmem: “A decision that answers a PROPOSE or COUNTER of somebody who was not asked decides nothing, also about what that one answers.”"""
    proposal = Proposal(bus)
    other = bus.send(session(bus, D), "lunch?", reply_to=proposal.id, to=[B], intent="PROPOSE")["signal_id"]
    proposal.answer(proposal.c, "AGREE")
    bus.send(proposal.b, "yes", reply_to=other, intent="AGREE")

    assert bus.converged(proposal.thread)["pending"] == [B]


@needs("take")
def test_an_agreement_to_a_signal_of_another_thread_is_none(bus: FullBus) -> None:
    """gitmem: “A decision that answers a signal of another thread is on no proposal.”"""
    proposal = Proposal(bus)
    other = bus.send(proposal.a, "and this?", to=[B, C], intent="PROPOSE")
    proposal.answer(proposal.b, "AGREE")
    bus.take({**decided(proposal.root, "sig-cccc0001", C, "AGREE"), "reply_to": other["signal_id"]})

    assert bus.converged(proposal.thread)["pending"] == [C]


def test_each_of_three_recipients_agrees_to_the_last_counter(bus: FullBus) -> None:
    """gitmem: “Each party has to agree to the counter that is in force, also one that agreed to an earlier counter.”"""
    a, b, c, d = sessions(bus, A, B, C, D)
    root = bus.send(a, "shall we?", to=[B, C, D], intent="PROPOSE")
    first = bus.send(b, "this", reply_to=root["signal_id"], intent="COUNTER")["signal_id"]
    bus.send(c, "yes", reply_to=first, intent="AGREE")
    second = bus.send(d, "that", reply_to=first, intent="COUNTER")["signal_id"]
    for each in (a, b):
        bus.send(each, "yes", reply_to=second, intent="AGREE")
    found = bus.converged(str(root["thread_id"]))
    assert (found["converged"], found["pending"], sorted(found["agreed"])) == (False, [C], [A, B, D])
    bus.send(c, "yes", reply_to=second, intent="AGREE")

    assert bus.converged(str(root["thread_id"]))["agreed_on"] == second


@needs("take")
def test_an_ambiguous_counter_is_not_agreed_on(bus: FullBus) -> None:
    """gitmem: “A counter whose id has two contents is not agreed on.”"""
    proposal = Proposal(bus)
    counter = proposal.answer(proposal.b, "COUNTER", "rather this")["signal_id"]
    for each in (proposal.a, proposal.c):
        bus.send(each, "yes", reply_to=counter, intent="AGREE")
    assert bus.converged(counter)["converged"]
    bus.take(decided(proposal.root, counter, B, "COUNTER"))
    found = bus.converged(counter)

    assert (found["converged"], found["agreed_on"], found["ambiguous"]) == (False, None, [counter])


@needs("take")
def test_an_ambiguous_signal_has_no_agreement(bus: FullBus) -> None:
    """gitmem: “If the id of a proposal has two contents, the thread is ambiguous: the id is listed, and the thread has not converged.”"""
    proposal = Proposal(bus)
    for each in (proposal.b, proposal.c):
        proposal.answer(each, "AGREE")
    assert bus.converged(proposal.thread)["converged"]
    at = proposal.root["created_at"]
    bus.take(
        written(
            proposal.id,
            A,
            [B, C],
            "something else",
            intent="PROPOSE",
            thread_id=proposal.thread,
            created_at=at,
        )
    )
    found = bus.converged(proposal.thread)

    assert (found["converged"], found["ambiguous"]) == (False, [proposal.id])


@needs("take")
@pytest.mark.parametrize("intent", ["AGREE", "REJECT"])
def test_an_ambiguous_decision_is_none(bus: FullBus, intent: str) -> None:
    """gitmem: “While the id of a party's decision has two contents, nothing is agreed on.”"""
    proposal = Proposal(bus)
    bus.take(decided(proposal.root, "sig-bbbb0001", B, intent, hours=-2))
    for each in (proposal.b, proposal.c):
        proposal.answer(each, "AGREE")
    bus.take({**decided(proposal.root, "sig-bbbb0001", B, intent, hours=-1), "message": "another text"})
    found = bus.converged(proposal.thread)

    assert (found["converged"], found["ambiguous"]) == (False, ["sig-bbbb0001"])


@needs("take")
def test_an_answer_to_an_ambiguous_signal_is_on_no_proposal(bus: FullBus) -> None:
    """gitmem: “A decision that answers an id with two contents is on no proposal; one that decides nothing itself hinders no agreement.”"""
    proposal = Proposal(bus)
    for text in ("a remark", "another one"):
        bus.take({**decided(proposal.root, "sig-aaaa0001", A, "INFO", hours=-2), "message": text})
    bus.take({**decided(proposal.root, "sig-bbbb0001", B, "AGREE", hours=-1), "reply_to": "sig-aaaa0001"})
    proposal.answer(proposal.c, "AGREE")
    assert bus.converged(proposal.thread)["pending"] == [B]
    proposal.answer(proposal.b, "AGREE")

    assert bus.converged(proposal.thread)["converged"]


@needs("take")
def test_a_key_hides_no_other_sender(bus: FullBus) -> None:
    """gitmem: “Records with one id and one idempotency key from two senders are two contents.”"""
    a, b, _ = sessions(bus, A, B, C)
    root = bus.send(a, "shall we?", to=[B], intent="PROPOSE", idempotency_key="k")
    bus.send(b, "yes", intent="AGREE", reply_to=root["signal_id"])
    thread = str(root["thread_id"])
    assert bus.converged(thread)["converged"]
    other = written(
        root["signal_id"], D, [B], "shall we?", intent="PROPOSE", thread_id=thread, idempotency_key="k"
    )
    bus.take(other)
    found = bus.converged(thread)

    assert (found["converged"], found["ambiguous"]) == (False, [root["signal_id"]])


@needs("take")
def test_a_decision_on_other_content_does_not_count(bus: FullBus) -> None:
    """gitmem: “A decision whose `answers_digest` matches no content of the answered signal does not count.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.b, "AGREE")
    bus.take(decided(proposal.root, "sig-cccc0001", C, "AGREE", answers_digest="0" * 64))
    found = bus.converged(proposal.thread)

    assert (found["converged"], found["pending"], found["ambiguous"]) == (False, [C], [])


@needs("take")
def test_a_local_decision_without_digest_does_not_count(bus: FullBus) -> None:
    """gitmem: “A decision with the origin local and without `answers_digest` does not count.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.b, "AGREE")
    bus.take(decided(proposal.root, "sig-cccc0001", C, "AGREE", origin="local"))

    assert bus.converged(proposal.thread)["pending"] == [C]


@needs("take")
def test_a_proposer_cannot_agree_in_anothers_name(bus: FullBus) -> None:
    """gitmem: “A decision whose `via` is a session that has proposed in the thread does not count.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.b, "AGREE")
    proposer = str(proposal.root.get("sender_session"))
    bus.take(decided(proposal.root, "sig-cccc0001", C, "AGREE", via=proposer))
    assert bus.converged(proposal.thread)["pending"] == [C]
    bus.take(decided(proposal.root, "sig-cccc0002", C, "AGREE", via="sess-0123456789ab"))
    assert bus.converged(proposal.thread)["converged"]


@needs("take")
def test_another_session_of_a_proposer_cannot_agree_in_anothers_name(bus: FullBus) -> None:
    """gitmem: “A decision whose `via` is another session of the proposing identity does not count.”"""
    proposal = Proposal(bus)
    proposal.answer(proposal.b, "AGREE")
    bus.take(decided(proposal.root, "sig-cccc0001", C, "AGREE", via=session(bus, A)))
    assert bus.converged(proposal.thread)["pending"] == [C]
    bus.take(decided(proposal.root, "sig-cccc0002", C, "AGREE", via=session(bus, D)))
    assert bus.converged(proposal.thread)["converged"]


@needs("take")
@pytest.mark.parametrize("who", [D, "human:person@example.org"])
def test_a_proposer_in_anothers_name_cannot_agree(bus: FullBus, who: str) -> None:
    """gitmem: “If a proposal has `via`, decisions of that session's identity, and decisions that it records for others, do not count.”"""
    first, second, _, c = sessions(bus, A, A, B, C)
    root: Any = written("sig-root0001", who, [A, B, C], "shall we?", intent="PROPOSE", via=first)
    bus.take(root)
    bus.send(second, "yes", reply_to=root["signal_id"], intent="AGREE")
    bus.take(decided(root, "sig-bbbb0001", B, "AGREE", via=second))
    bus.send(c, "yes", reply_to=root["signal_id"], intent="AGREE")
    found = bus.converged(root["thread_id"])

    assert (found["agreed"], sorted(found["pending"])) == ([C], [A, B])
