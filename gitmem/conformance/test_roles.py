"""Cases: who does which part of the work."""

from __future__ import annotations

import pytest

from ..agents import vocabulary
from .adapter import FullBus, Refused
from .case_setup import A, B, C, D, needs, read, sessions

PACK = vocabulary.builtin()
FIRST, SECOND, *_ = PACK.lifecycle_roles
PROFILE, OTHER, *_ = PACK.specialty_profiles


@needs("role")
@pytest.mark.parametrize("lifecycle_role", PACK.lifecycle_roles)
def test_a_role_has_two_parts(bus: FullBus, lifecycle_role: str) -> None:
    """A2A.V1: “A role is a lifecycle role and a specialty profile, with a list of capabilities.”"""
    (a,) = sessions(bus, A)
    found = bus.role(a, f"{lifecycle_role}/{OTHER}")

    assert found is not None
    assert (found["lifecycle_role"], found["specialty_profile"]) == (lifecycle_role, OTHER)
    assert (found.get("role_alias"), found["capabilities"]) == (None, [])


@needs("role")
@pytest.mark.parametrize("alias", sorted(each.name for each in PACK.aliases.values()))
def test_an_alias_stands_for_its_role(bus: FullBus, alias: str) -> None:
    """A2A.V1: “An existing name of an agent is an alias: it stands for a role, which is recorded beside it.”"""
    (a,) = sessions(bus, A)
    found = bus.role(a, alias)
    meant = PACK.aliases[alias]

    assert found is not None
    assert (found["lifecycle_role"], found["specialty_profile"]) == (
        meant.lifecycle_role,
        meant.specialty_profile,
    )
    assert found.get("role_alias") == alias


@needs("role")
def test_the_role_of_a_sender_is_the_one_that_it_states(bus: FullBus) -> None:
    """gitmem: “`sender_role` is the role that the sender states, `lifecycle/profile`, whatever its identity says.”"""
    a, b = sessions(bus, A, B)
    bus.role(a, f"{FIRST}/{OTHER}")
    bus.send(a, "x", to=[B])
    bus.role(a, "")
    bus.send(a, "y", to=[B])

    assert [each.get("sender_role") for each in bus.inbox(b)] == [f"{FIRST}/{OTHER}", None]


@needs("role")
def test_a_signal_to_a_role_reaches_all_who_hold_it(bus: FullBus) -> None:
    """gitmem: “A signal to `role:a/b` goes to the addresses of all other sessions that hold the role now.”"""
    a, b, c, d = sessions(bus, A, B, C, D)
    for each, role in (
        (a, f"{FIRST}/{PROFILE}"),
        (b, f"{FIRST}/{PROFILE}"),
        (c, f"{FIRST}/{OTHER}"),
        (d, f"{SECOND}/{OTHER}"),
    ):
        bus.role(each, role)
    (ended,) = sessions(bus, "claude:planner:five")
    bus.role(ended, f"{FIRST}/{PROFILE}")
    bus.end(ended)
    one = bus.send(a, "one", to=[f"role:{FIRST}/{PROFILE}"])
    any_profile = bus.send(a, "any", to=[f"role:{FIRST}"])

    assert (one["recipients"], sorted(any_profile["recipients"])) == ([B], sorted([B, C]))
    assert read(bus, b, c, d) == [["one", "any"], ["any"], []]


@needs("role")
def test_a_role_that_nobody_holds_is_refused(bus: FullBus) -> None:
    """gitmem: “A signal to a role that nobody else holds is refused, and nothing is written.”"""
    a, b = sessions(bus, A, B)
    bus.role(a, f"{FIRST}/{PROFILE}")
    bus.role(b, f"{SECOND}/{PROFILE}")
    bus.role(b, "")
    for role in (f"{FIRST}/{PROFILE}", f"{SECOND}/{PROFILE}", f"{SECOND[:-1]}/{PROFILE}", ""):
        with pytest.raises(Refused):
            bus.send(a, "x", to=[f"role:{role}"])

    assert read(bus, a, b) == [[], []]
