"""Cases: what is asked of whom, who does it, and how it ends."""

from __future__ import annotations

import pytest

from ..agents import vocabulary
from .adapter import FullBus, Refused, Task
from .case_setup import A, B, C, D, needs, read, sessions

PACK = vocabulary.builtin()
FIRST, SECOND, *_ = PACK.lifecycle_roles
PROFILE, OTHER, *_ = PACK.specialty_profiles
ROLE, PATHS = f"{FIRST}/{PROFILE}", ["src/tax"]


def asked(bus: FullBus, session: str, to: str = B) -> str:
    """Delegate a task and return its id."""
    return bus.delegate(session, "do it", to=to, role=ROLE, paths=PATHS)["task_id"]


def shown(task: Task) -> tuple[str, str | None, str | None, bool]:
    """Return the state of a task, who holds it, its result, and whether its end is confirmed."""
    return task["state"], task["holder"], task["result"], task["confirmed"]


@needs("delegate")
def test_a_delegation_has_a_role_and_a_scope(bus: FullBus) -> None:
    """A2A.V1: “A delegation has the role and the ownership scope that it requests, whoever takes it.”"""
    a, b = sessions(bus, A, B)
    task = bus.task(bus.delegate(a, "do it", to=B, role=ROLE, paths=PATHS)["task_id"])
    role, scope = task["requested_role"], task["requested_ownership_scope"]

    assert role is not None
    assert (role["lifecycle_role"], role["specialty_profile"], role["capabilities"]) == (FIRST, PROFILE, [])
    assert (scope["paths"], scope["responsibility_kinds"]) == (PATHS, [*PACK.lifecycle_roles[FIRST]])
    assert (task["message"], task["sender_identity"], task["agent"]) == ("do it", A, B)
    assert shown(task) == ("submitted", None, None, False)
    after = bus.work(b, task["task_id"], "take")
    assert (after["requested_role"], after["requested_ownership_scope"]) == (role, scope)


@needs("delegate")
@pytest.mark.parametrize("lack", ["role", "paths"])
def test_a_delegation_without_role_or_scope_requests_them(bus: FullBus, lack: str) -> None:
    """gitmem: “A delegation that names no role requests that of its addressee, else the default of the vocabulary; one that names no scope, the responsibilities of its role. Both are recorded.”"""
    a, _ = sessions(bus, A, B)
    made = bus.delegate(
        a, "do it", to=B, role=None if lack == "role" else ROLE, paths=() if lack == "paths" else PATHS
    )
    task = bus.task(made["task_id"])
    role, scope = task["requested_role"], task["requested_ownership_scope"]

    assert role is not None
    assert role["lifecycle_role"] == (PACK.default_lifecycle.partition("/")[0] if lack == "role" else FIRST)
    assert scope["responsibility_kinds"] == [*PACK.lifecycle_roles[role["lifecycle_role"]]]
    assert scope.get("paths", []) == ([] if lack == "paths" else PATHS)


@needs("delegate", "role")
def test_a_delegation_without_role_requests_that_of_its_addressee(bus: FullBus) -> None:
    """gitmem: “A delegation that names no role requests the one that its addressee states, and nobody else's.”"""
    a, b, _ = sessions(bus, A, B, C)
    bus.role(a, f"{SECOND}/{PROFILE}")
    bus.role(b, f"{FIRST}/{OTHER}")
    stated = bus.delegate(a, "do it", to=B, paths=PATHS)["requested_role"]
    default = bus.delegate(a, "do it", to=C, paths=PATHS)["requested_role"]

    assert stated is not None and default is not None
    assert (stated["lifecycle_role"], stated["specialty_profile"]) == (FIRST, OTHER)
    assert default["lifecycle_role"] == PACK.default_lifecycle.partition("/")[0]


@needs("delegate")
def test_a_delegation_reaches_its_addressee(bus: FullBus) -> None:
    """gitmem: “A delegation sends a signal to its addressee that asks for a decision; its `delegation_id` is the task's id.”"""
    a, b, c = sessions(bus, A, B, C)
    task_id = asked(bus, a)
    (signal,) = bus.inbox(b)

    assert (signal.get("delegation_id"), signal["requires_ack"], signal["message"]) == (
        task_id,
        True,
        "do it",
    )
    assert read(bus, c) == [[]]


@needs("delegate", "role")
def test_a_delegation_to_a_role_reaches_all_who_hold_it(bus: FullBus) -> None:
    """gitmem: “A delegation to a role sends its signal to all others that hold the role.”"""
    a, b, c, d = sessions(bus, A, B, C, D)
    for each, role in ((a, ROLE), (b, ROLE), (c, ROLE), (d, f"{SECOND}/{OTHER}")):
        bus.role(each, role)
    asked(bus, a, f"role:{ROLE}")

    assert read(bus, a, b, c, d) == [[], ["do it"], ["do it"], []]


@needs("delegate", "role")
def test_the_role_of_a_holder_stays_beside_the_requested_one(bus: FullBus) -> None:
    """A2A.V1: “If the holder's actual role is not the requested one, the task has both, and names the mismatch; nothing is refused.”"""
    a, b = sessions(bus, A, B)
    for each, differs in (
        (f"{SECOND}/{PROFILE}", True),
        (f"{FIRST}/{OTHER}", True),
        (ROLE, False),
        ("", False),
    ):
        bus.role(b, each)
        task = bus.work(b, asked(bus, a), "take")
        wanted, actual = task["requested_role"], task["actual_role"]
        assert wanted is not None
        assert f"{wanted['lifecycle_role']}/{wanted['specialty_profile']}" == ROLE
        assert (f"{actual['lifecycle_role']}/{actual['specialty_profile']}" if actual else "") == each
        assert task["role_mismatch"] is differs


@needs("delegate")
def test_a_task_is_for_its_addressee(bus: FullBus) -> None:
    """gitmem: “Only its addressee may take a task that is for one agent.”"""
    a, b, c = sessions(bus, A, B, C)
    task_id = asked(bus, a)
    with pytest.raises(Refused):
        bus.work(c, task_id, "take")

    assert shown(bus.task(task_id)) == ("submitted", None, None, False)
    assert shown(bus.work(b, task_id, "take")) == ("working", B, None, False)
    assert not bus.task(task_id)["conflict"]


@needs("delegate", "role")
def test_whoever_takes_a_task_first_has_it(bus: FullBus) -> None:
    """gitmem: “A task for a role is taken by one; a second take is refused, until the first one is released.”"""
    a, b, c = sessions(bus, A, B, C)
    bus.role(b, ROLE)
    bus.role(c, ROLE)
    task_id = asked(bus, a, f"role:{ROLE}")
    bus.work(b, task_id, "take")
    for event in ("take", "release"):
        with pytest.raises(Refused):
            bus.work(c, task_id, event)
    assert shown(bus.task(task_id)) == ("working", B, None, False)
    assert bus.work(b, task_id, "release")["state"] == "submitted"

    assert shown(bus.work(c, task_id, "take")) == ("working", C, None, False)


@needs("delegate")
def test_a_question_waits_for_its_answer(bus: FullBus) -> None:
    """gitmem: “A holder's question makes a task `input-required`, until a message of whoever asked for it.”"""
    a, b = sessions(bus, A, B)
    task_id = asked(bus, a)
    bus.work(b, task_id, "take")

    assert bus.work(b, task_id, "ask", "which?")["state"] == "input-required"
    assert bus.work(a, task_id, "message", "both")["state"] == "submitted"


@needs("delegate")
def test_nobody_else_answers_a_question(bus: FullBus) -> None:
    """gitmem: “A holder's question is answered by whoever asked for the task, in any session, and by nobody else.”"""
    a, again, b, c = sessions(bus, A, A, B, C)
    task_id = asked(bus, a)
    bus.work(b, task_id, "take")
    bus.work(b, task_id, "ask", "which?")
    with pytest.raises(Refused):
        bus.work(c, task_id, "message", "the first")
    assert bus.task(task_id)["state"] == "input-required"

    assert bus.work(again, task_id, "message", "both")["state"] == "submitted"


@needs("delegate")
def test_an_end_is_confirmed_by_whoever_asked(bus: FullBus) -> None:
    """gitmem: “A holder's end is unconfirmed until the session that asked accepts it; nothing follows it.”"""
    a, b, c = sessions(bus, A, B, C)
    task_id = asked(bus, a)
    bus.work(b, task_id, "take")
    for who, event in ((a, "done"), (c, "done"), (a, "seal")):
        with pytest.raises(Refused):
            bus.work(who, task_id, event, "mine")
    assert shown(bus.work(b, task_id, "done", "12 cases")) == ("completed", B, "12 cases", False)
    for who, event in ((b, "seal"), (b, "take"), (b, "done"), (a, "cancel")):
        with pytest.raises(Refused):
            bus.work(who, task_id, event, "x")

    assert shown(bus.work(a, task_id, "seal")) == ("completed", B, "12 cases", True)


@needs("delegate")
def test_another_session_of_whoever_asked_confirms_nothing(bus: FullBus) -> None:
    """gitmem: “An end is accepted by the session that asked for it, not by another one of its agent identity.”"""
    a, again, b = sessions(bus, A, A, B)
    task_id = asked(bus, a)
    bus.work(b, task_id, "take")
    bus.work(b, task_id, "done", "12 cases")
    with pytest.raises(Refused):
        bus.work(again, task_id, "seal")

    assert shown(bus.task(task_id)) == ("completed", B, "12 cases", False)


@needs("delegate")
def test_a_task_that_nobody_has_is_canceled_at_once(bus: FullBus) -> None:
    """gitmem: “Whoever asked for a task cancels it while nobody has it; nobody takes it then.”"""
    a, b = sessions(bus, A, B)
    task_id = asked(bus, a)
    with pytest.raises(Refused):
        bus.work(b, task_id, "cancel")
    bus.work(a, task_id, "cancel")
    with pytest.raises(Refused):
        bus.work(b, task_id, "take")

    assert shown(bus.task(task_id)) == ("canceled", None, None, True)


@needs("delegate")
def test_a_cancellation_waits_for_the_holder(bus: FullBus) -> None:
    """gitmem: “While somebody has a task, a cancellation waits until that one gives it back.”"""
    a, b = sessions(bus, A, B)
    task_id = asked(bus, a)
    bus.work(b, task_id, "take")
    bus.work(a, task_id, "cancel")
    assert (bus.task(task_id)["state"], bus.task(task_id)["holder"]) == ("working", B)

    assert bus.work(b, task_id, "release")["state"] == "canceled"


@needs("delegate", "second")
def test_takes_in_two_places_are_a_conflict_with_one_holder(bus: FullBus) -> None:
    """gitmem: “If two places take a task apart, both show the conflict, the same holder, and after a seal the same result.”"""
    there = bus.second()
    a, here = sessions(bus, A, C)
    (b,) = sessions(there, B)
    task_id = asked(bus, a, f"role:{ROLE}")
    _meet(bus, there)
    for place, who in ((bus, here), (there, b)):
        place.work(who, task_id, "take")
        place.work(who, task_id, "done", f"by {who}")
    _meet(bus, there)
    one, other = bus.task(task_id), there.task(task_id)
    assert one == other
    assert one["conflict"] and one["state"] == "completed"

    bus.work(a, task_id, "seal")
    _meet(bus, there)
    assert bus.task(task_id) == there.task(task_id) == {**one, "confirmed": True}


@needs("delegate", "handoff")
def test_a_task_that_is_handed_over_changes_hands_when_it_is_accepted(bus: FullBus) -> None:
    """gitmem: “A handoff moves the tasks that it names when it is taken; until then the giver has them, and only the giver offers them.”"""
    a, b, c = sessions(bus, A, B, C)
    task_id = asked(bus, a)
    bus.work(b, task_id, "take")
    with pytest.raises(Refused):
        bus.handoff(a, [task_id], to=C)
    offer = bus.handoff(b, [task_id], to=C)
    assert (bus.task(task_id)["holder"], offer["state"], offer["agent"]) == (B, "submitted", C)
    bus.work(c, offer["task_id"], "take")
    assert bus.task(task_id)["holder"] == C
    with pytest.raises(Refused):
        bus.work(b, task_id, "done", "late")

    assert shown(bus.work(c, task_id, "done", "12 cases")) == ("completed", C, "12 cases", False)


def _meet(*places: FullBus) -> None:
    for each in (*places, *places):
        each.exchange()
