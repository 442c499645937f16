"""Routing: to whom a signal goes, in which thread, and with what fields."""

from __future__ import annotations

import pytest

from .adapter import FullBus, Refused
from .case_setup import A, B, C, Proposal, before, messages, needs, read, session, sessions, written


def test_a_session_with_identity_is_addressed_by_it(bus: FullBus) -> None:
    """A2A.V1: “The display name or session id of a live session with an agent identity resolves to that identity.”"""
    a = bus.start(identity=A, name="Planck")
    b = session(bus, B)

    assert (a["display_name"], a.get("agent_identity")) == ("Planck", A)
    assert bus.send(b, "by name", to=["Planck"])["recipients"] == [A]
    assert bus.send(b, "by session", to=[a["session_id"]])["recipients"] == [A]
    assert read(bus, a["session_id"]) == [["by name", "by session"]]


def test_a_session_without_identity_is_addressed_by_its_id(bus: FullBus) -> None:
    """A2A.V1: “A session without an agent identity is addressed by its session id.”"""
    a = bus.start(name="Planck")["session_id"]
    b = session(bus, B)

    assert bus.send(b, "by name", to=["Planck"])["recipients"] == [a]
    assert bus.send(b, "by session", to=[a])["recipients"] == [a]
    assert read(bus, a) == [["by name", "by session"]]


def test_an_identity_that_was_seen_is_an_address(bus: FullBus) -> None:
    """A2A.V1: “An agent identity is a valid recipient even if none of its sessions is live.”"""
    a, b = sessions(bus, A, B)
    assert bus.send(b, "while it lives", to=[A])["recipients"] == [A]
    bus.end(a)

    assert bus.send(b, "while it is away", to=[A])["recipients"] == [A]


@needs("take")
def test_an_identity_that_has_written_is_an_address(bus: FullBus) -> None:
    """gitmem: “An agent identity that has sent a signal is a valid recipient, even if no session has it.”"""
    a = session(bus, A)
    bus.take(written("sig-aaaa1111", B, [A], "from elsewhere"))

    assert bus.send(a, "and back", to=[B])["recipients"] == [B]


def test_an_identity_that_was_never_seen_is_refused(bus: FullBus) -> None:
    """gitmem: “An unknown identity is refused and nothing is written, unless the sender allows unknown identities.”"""
    a, b = sessions(bus, A, B)
    with pytest.raises(Refused):
        bus.send(b, "misspelt", to=[f"{A}e"])
    with pytest.raises(Refused):
        bus.send(b, "nobody's name", to=["Nobody"])
    with pytest.raises(Refused):
        bus.send(b, "no identity", to=["Nobody"], allow_unseen=True)

    assert bus.send(b, "to come", to=["new:agent:here"], allow_unseen=True)["recipients"] == [
        "new:agent:here"
    ]
    assert read(bus, a, session(bus, "new:agent:here")) == [[], ["to come"]]


def test_one_unknown_recipient_refuses_all_of_a_list(bus: FullBus) -> None:
    """gitmem: “If one recipient of a list does not resolve, nothing is written.”"""
    a, b = sessions(bus, A, B)
    with pytest.raises(Refused):
        bus.send(b, "half", to=[A, "Nobody"])

    assert read(bus, a) == [[]]


def test_a_name_is_given_back_at_the_end(bus: FullBus) -> None:
    """A2A.V1: “A display name belongs to a live session and becomes free when the session ends.”"""
    first = bus.start(identity=A, name="Planck")["session_id"]
    b = session(bus, B)
    bus.end(first)
    with pytest.raises(Refused):
        bus.send(b, "to whom?", to=["Planck"])
    bus.start(identity=C, name="Planck")

    assert bus.send(b, "to the new one", to=["Planck"])["recipients"] == [C]


def test_a_recipient_is_named_once(bus: FullBus) -> None:
    """gitmem: “A recipient that is named twice is recorded once.”"""
    bus.start(identity=A, name="Planck")

    assert bus.send(session(bus, B), "once", to=["Planck", A])["recipients"] == [A]


def test_a_directed_root_opens_a_thread_and_may_interrupt(bus: FullBus) -> None:
    """A2A.V1: “A directed root gets a thread id, and its default class is `priority`.”"""
    a, _ = sessions(bus, A, B)
    first, second = (bus.send(a, text, to=[B]) for text in ("one", "two"))
    quiet = bus.send(a, "three", to=[B], interrupt_class="advisory")

    assert first.get("thread_id")
    assert first.get("thread_id") != second.get("thread_id")
    assert (first["interrupt_class"], quiet["interrupt_class"]) == ("priority", "advisory")


def test_a_broadcast_is_advisory(bus: FullBus) -> None:
    """A2A.V1: “The default class of a broadcast is `advisory`.”"""
    a = session(bus, A)

    assert bus.send(a, "one")["interrupt_class"] == "advisory"
    assert bus.send(a, "two", interrupt_class="priority")["interrupt_class"] == "priority"


def test_a_reply_inherits_the_thread(bus: FullBus) -> None:
    """A2A.V1: “A reply joins the thread of the signal that it answers, unless another thread is named.”"""
    a, b = sessions(bus, A, B)
    root = bus.send(a, "root", to=[B])
    reply = bus.send(b, "reply", reply_to=root["signal_id"])
    deeper = bus.send(a, "deeper", reply_to=reply["signal_id"])
    apart = bus.send(b, "apart", reply_to=root["signal_id"], thread_id="thread-other")

    assert [reply.get("thread_id"), deeper.get("thread_id")] == [root.get("thread_id")] * 2
    assert str(apart.get("thread_id")).startswith("thread-other")


def test_a_reply_goes_to_whom_it_answers(bus: FullBus) -> None:
    """gitmem: “A reply names the signal that it answers; its default recipient is the sender of that signal.”"""
    a, b, c = sessions(bus, A, B, C)
    root = bus.send(a, "root", to=[B, C])
    reply = bus.send(b, "reply", reply_to=root["signal_id"])

    assert (reply["recipients"], reply.get("reply_to")) == ([A], root["signal_id"])
    assert read(bus, a, c) == [["reply"], ["root"]]


def test_a_reply_to_somebody_else_stays_in_its_thread(bus: FullBus) -> None:
    """gitmem: “A reply with named recipients goes to these, in the thread of the signal that it answers.”"""
    a, b, _ = sessions(bus, A, B, C)
    root = bus.send(a, "root", to=[B])
    reply = bus.send(b, "you, too", reply_to=root["signal_id"], to=[C])

    assert (reply["recipients"], reply.get("reply_to")) == ([C], root["signal_id"])
    assert reply.get("thread_id") == root.get("thread_id")


def test_a_reply_to_a_broadcast_goes_to_its_sender(bus: FullBus) -> None:
    """gitmem: “A reply to a broadcast goes to its sender alone; it is no broadcast.”"""
    a, b, c = sessions(bus, A, B, C)
    root = bus.send(a, "who can?")
    reply = bus.send(b, "I can", reply_to=root["signal_id"])

    assert (reply["recipients"], reply["interrupt_class"]) == ([A], "priority")
    assert read(bus, a, c) == [["I can"], ["who can?"]]


def test_an_answer_to_ones_own_signal_goes_where_that_went(bus: FullBus) -> None:
    """gitmem: “An answer to a signal of one's own goes to the recipients of that signal.”"""
    a, _, _ = sessions(bus, A, B, C)
    root = bus.send(a, "root", to=[B, C])["signal_id"]
    alone = bus.send(a, "a note", to=[A])["signal_id"]

    assert bus.send(a, "one more thing", reply_to=root)["recipients"] == [B, C]
    assert bus.send(a, "one more note", reply_to=alone)["recipients"] == [A]


def test_an_answer_to_nothing_is_refused(bus: FullBus) -> None:
    """gitmem: “A reply to an unknown signal is refused, and nothing is written.”"""
    a, b = sessions(bus, A, B)
    with pytest.raises(Refused):
        bus.send(a, "to what?", to=[B], reply_to="sig-nowhere1")

    assert read(bus, b) == [[]]


def test_a_broadcasts_id_names_the_thread_of_its_replies(bus: FullBus) -> None:
    """gitmem: “A reply to a root without a thread joins the thread that is named after the root's id.”"""
    a, b = sessions(bus, A, B)
    root = bus.send(b, "root")

    assert bus.send(a, "reply", reply_to=root["signal_id"]).get("thread_id") == root["signal_id"]


def test_a_signal_in_a_thread_goes_to_its_members(bus: FullBus) -> None:
    """gitmem: “The default recipients of a signal in a thread are the root's sender and recipients, except the writer; a broadcast must be explicit.”"""
    a, b, _ = sessions(bus, A, B, C)
    thread = bus.send(a, "root", to=[B, C]).get("thread_id") or ""
    members = bus.send(b, "to the members", thread_id=thread)

    assert set(members["recipients"]) == {A, C}
    assert bus.send(b, "to all", thread_id=thread, broadcast=True)["recipients"] == []


def test_a_thread_of_its_writer_alone_stays_so(bus: FullBus) -> None:
    """gitmem: “A signal in a thread without other members goes to its writer; it is no broadcast.”"""
    a, _ = sessions(bus, A, B)
    thread = bus.send(a, "a note", to=[A]).get("thread_id") or ""

    assert bus.send(a, "one more", thread_id=thread)["recipients"] == [A]


def test_an_unknown_thread_is_no_broadcast(bus: FullBus) -> None:
    """gitmem: “A signal in an unknown thread is refused, not broadcast.”"""
    a, b = sessions(bus, A, B)
    with pytest.raises(Refused):
        bus.send(a, "to whom?", thread_id="thread-nowhere")

    assert read(bus, b) == [[]]


def test_a_signal_says_what_its_writer_had_seen(bus: FullBus) -> None:
    """gitmem: “Every signal of a thread except the root names in `after` the latest signals of the thread that its writer had seen.”"""
    proposal = Proposal(bus)
    first = proposal.answer(proposal.b, "REJECT")
    second = proposal.answer(proposal.b, "AGREE")
    bus.inbox(proposal.a)
    third = bus.send(proposal.a, "seen both", thread_id=proposal.thread)
    known = {each["signal_id"]: each for each in (first, second, third)}

    assert proposal.root.get("after") in (None, [])
    assert proposal.id in before(first, known)
    assert first["signal_id"] in before(second, known)
    assert {first["signal_id"], second["signal_id"]} <= before(third, known)


def test_a_signal_names_nothing_that_its_writer_has_not_seen(bus: FullBus) -> None:
    """gitmem: “`after` leads to no signal that its writer has neither read, written nor answered.”"""
    proposal = Proposal(bus)
    unread = bus.send(proposal.c, "wait", thread_id=proposal.thread)
    bus.inbox(proposal.b, mark=False)
    sent = proposal.answer(proposal.b, "AGREE")
    assert unread["signal_id"] not in before(sent, {sent["signal_id"]: sent, unread["signal_id"]: unread})
    bus.inbox(proposal.b)
    later = bus.send(proposal.b, "no, wait", thread_id=proposal.thread)

    assert unread["signal_id"] in before(later, {sent["signal_id"]: sent})


def test_an_inbox_by_thread_and_intent(bus: FullBus) -> None:
    """A2A.V1: “An inbox filtered by thread and intents shows only signals of that thread with one of these intents.”"""
    a, b = sessions(bus, A, B)
    root = bus.send(b, "proposed", to=[A], intent="PROPOSE")
    thread = root.get("thread_id") or ""
    bus.send(b, "told", to=[A], thread_id=thread)
    bus.send(b, "agreed", to=[A], thread_id=thread, intent="AGREE")
    bus.send(b, "elsewhere", to=[A], intent="PROPOSE")
    found = messages(bus.inbox(a, thread=thread, intents=["PROPOSE", "AGREE"]))

    assert (found, read(bus, a)) == (["proposed", "agreed"], [["told", "elsewhere"]])


def test_an_unknown_intent_is_refused(bus: FullBus) -> None:
    """A2A.V1: “Intents are INFO, PROPOSE, COUNTER, AGREE and REJECT; any other is refused and nothing is written.”"""
    a, b = sessions(bus, A, B)
    for intent in ("INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"):
        assert bus.send(a, f"with {intent}", to=[B], intent=intent)["intent"] == intent
    bus.inbox(b)
    with pytest.raises(Refused):
        bus.send(a, "with another", to=[B], intent="MAYBE")

    assert read(bus, b) == [[]]


def test_the_same_key_is_the_same_signal(bus: FullBus) -> None:
    """gitmem: “One sender and one idempotency key identify one signal; another sender may use the same key.”"""
    a, b, c = sessions(bus, A, B, C)
    first, again = (bus.send(a, "once", to=[B], idempotency_key="k") for _ in range(2))
    other = bus.send(c, "once", to=[B], idempotency_key="k")

    assert [again[name] for name in ("signal_id", "created_at")] == [first["signal_id"], first["created_at"]]
    assert other["signal_id"] != first["signal_id"]
    assert read(bus, b) == [["once", "once"]]


def test_sessions_of_an_identity_share_its_keys(bus: FullBus) -> None:
    """gitmem: “A key is its agent identity's: another session of it that uses the key gets the same signal.”"""
    first, second, b = sessions(bus, A, A, B)
    sent, again = (bus.send(each, "once", to=[B], idempotency_key="k") for each in (first, second))

    assert again["signal_id"] == sent["signal_id"]
    assert read(bus, b) == [["once"]]


def test_other_content_under_the_same_key_is_refused(bus: FullBus) -> None:
    """gitmem: “Different content with the same idempotency key is refused, and nothing is written.”"""
    a, b, _ = sessions(bus, A, B, C)
    bus.send(a, "once", to=[B], idempotency_key="k")
    with pytest.raises(Refused):
        bus.send(a, "something else", to=[B], idempotency_key="k")
    with pytest.raises(Refused):
        bus.send(a, "once", to=[B, C], idempotency_key="k")

    assert read(bus, b) == [["once"]]


@needs("second")
def test_the_same_key_is_the_same_signal_in_two_places(bus: FullBus) -> None:
    """gitmem: “One sender and one idempotency key identify one signal even if two places record it independently.”"""
    a, b = sessions(bus, A, B)
    bus.exchange()
    there = bus.second()
    there.exchange()
    first = bus.send(a, "once", to=[B], idempotency_key="k")
    second = there.send(session(there, A), "once", to=[B], idempotency_key="k")
    for place in (there, bus):
        place.exchange()

    assert first["signal_id"] == second["signal_id"]
    assert read(bus, b) == [["once"]]


@needs("take")
def test_another_interrupt_class_is_read(bus: FullBus) -> None:
    """gitmem: “An unknown `interrupt_class` is accepted on read.”"""
    a, _ = sessions(bus, A, B)
    bus.take(written("sig-aaaa1111", B, [A], "urgent", interrupt_class="page-somebody"))

    assert [each["interrupt_class"] for each in bus.inbox(a)] == ["page-somebody"]
