"""Quorum: how many recipients of a proposal have to agree, and which of them in any case."""

from __future__ import annotations

import pytest

from .adapter import FullBus, Options, Refused, Signal
from .case_setup import A, B, C, D, sessions


def _quorum(bus: FullBus, need: str, *veto: str) -> tuple[Signal, dict[str, str]]:
    """Start four agents, and return a proposal of the first to the others of which as many have to agree, and their sessions."""
    who = dict(zip((A, B, C, D), sessions(bus, A, B, C, D), strict=True))
    return bus.send(who[A], "shall we?", to=[B, C, D], intent="PROPOSE", need=need, veto=veto), who


def test_as_many_as_the_root_says_are_enough(bus: FullBus) -> None:
    """gitmem: “With `need` in its root, a thread has converged once as many others than the author agree to a proposal; a REJECT or silence of the rest does not stop it.”"""
    root, who = _quorum(bus, "2")
    bus.send(who[B], "yes", reply_to=root["signal_id"], intent="AGREE")
    assert not bus.converged(root["signal_id"])["converged"]
    bus.send(who[C], "no", reply_to=root["signal_id"], intent="REJECT")
    assert not bus.converged(root["signal_id"])["converged"]
    bus.send(who[D], "yes", reply_to=root["signal_id"], intent="AGREE")
    found = bus.converged(root["signal_id"])
    assert (found["converged"], sorted(found["agreed"]), found["rejected"]) == (True, [B, D], [C])
    bus.send(who[D], "not any more", reply_to=root["signal_id"], intent="REJECT")

    assert not bus.converged(root["signal_id"])["converged"]


@pytest.mark.parametrize("said", [None, "REJECT", "COUNTER", "AGREE"])
def test_who_may_veto_has_to_agree(bus: FullBus, said: str | None) -> None:
    """gitmem: “Each address in the root's `veto` has to agree itself: its silence, REJECT and COUNTER stop the proposal.”"""
    root, who = _quorum(bus, "1", D)
    bus.send(who[B], "yes", reply_to=root["signal_id"], intent="AGREE")
    bus.send(who[C], "yes", reply_to=root["signal_id"], intent="AGREE")
    if said:
        bus.send(who[D], "and I", reply_to=root["signal_id"], intent=said)

    assert bus.converged(root["signal_id"])["converged"] == (said == "AGREE")


def test_a_counter_is_decided_as_the_root_says(bus: FullBus) -> None:
    """gitmem: “A counter is decided by its root's `need` and `veto`, and only with the first proposer's AGREE; one that too few agree to leaves what was agreed on.”"""
    root, who = _quorum(bus, "2", C)
    counter = bus.send(who[B], "rather this", reply_to=root["signal_id"], intent="COUNTER")["signal_id"]
    for each in (C, D):
        bus.send(who[each], "yes", reply_to=counter, intent="AGREE")
    assert not bus.converged(counter)["converged"]
    bus.send(who[A], "yes", reply_to=counter, intent="AGREE")
    assert bus.converged(counter)["agreed_on"] == counter
    bus.send(who[D], "or that", reply_to=counter, intent="COUNTER")
    found = bus.converged(root.get("thread_id") or "")

    assert (found["agreed_on"], found["in_force"]) == (counter, [counter])


def test_the_author_of_a_counter_is_not_counted(bus: FullBus) -> None:
    """gitmem: “The author of a counter is none of those who have to agree to it, the first proposer is one.”"""
    root, who = _quorum(bus, "2")
    counter = bus.send(who[B], "rather this", reply_to=root["signal_id"], intent="COUNTER")["signal_id"]
    bus.send(who[A], "yes", reply_to=counter, intent="AGREE")
    assert not bus.converged(counter)["converged"]
    bus.send(who[C], "yes", reply_to=counter, intent="AGREE")

    assert bus.converged(counter)["agreed_on"] == counter


def test_only_a_proposal_that_begins_a_thread_has_a_quorum(bus: FullBus) -> None:
    """gitmem: “`need` and `veto` are refused on anything but a PROPOSE that begins a thread, and a `need` of more than are asked.”"""
    a, _, _ = sessions(bus, A, B, C)
    root = bus.send(a, "shall we?", to=[B, C], intent="PROPOSE")
    wrong: list[Options] = [
        {"to": [B, C], "need": "1"},
        {"to": [B, C], "need": "1", "intent": "COUNTER"},
        {"reply_to": root["signal_id"], "need": "1", "intent": "PROPOSE"},
        {"broadcast": True, "need": "1", "intent": "PROPOSE"},
        {"to": [B, C], "need": "3", "intent": "PROPOSE"},
        {"to": [B, C], "need": "0", "intent": "PROPOSE"},
        {"to": [B, C], "veto": [B], "intent": "PROPOSE"},
        {"to": [B, C], "need": "1", "veto": [A], "intent": "PROPOSE"},
    ]
    for options in wrong:
        with pytest.raises(Refused):
            bus.send(a, "as many", **options)
