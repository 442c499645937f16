"""Cases: who changes what."""

from __future__ import annotations

import pytest

from .adapter import FullBus, Refused
from .case_setup import A, B, needs, sessions


@needs("claim")
def test_a_claim_stands_until_it_is_released(bus: FullBus) -> None:
    """gitmem: “A claim has its owner and its paths, and stands until it is released.”"""
    a, b = sessions(bus, A, B)
    made = bus.claim(a, ["src/tax.py", "docs"])

    assert bus.claims() == [made]
    assert (made["owner"], sorted(made["paths"]), made["contested"]) == (A, ["docs", "src/tax.py"], False)
    bus.unclaim(a, made["claim_id"])
    assert bus.claims() == []
    assert bus.claim(b, ["src/tax.py"])["owner"] == B


@needs("claim")
@pytest.mark.parametrize("path", ["src/tax.py", "src", "src/*", "src/*.py", "docs/guide.md"])
def test_a_claimed_path_is_refused(bus: FullBus, path: str) -> None:
    """gitmem: “A claim on a path that somebody else claims is refused; a folder is all that is in it, a pattern all that matches it.”"""
    a, b = sessions(bus, A, B)
    made = bus.claim(a, ["src/tax.py", "docs"])
    with pytest.raises(Refused):
        bus.claim(b, ["tests", path])
    assert bus.claims() == [made]

    assert bus.claim(b, ["src/taxes.py", "src/*.md"])["contested"] is False


@needs("claim")
def test_a_claim_is_released_by_its_owner(bus: FullBus) -> None:
    """gitmem: “A claim is released by its owner, in any session; nobody else releases it.”"""
    a, again, b = sessions(bus, A, A, B)
    made = bus.claim(a, ["src"])
    with pytest.raises(Refused):
        bus.unclaim(b, made["claim_id"])
    assert bus.claims() == [made]
    bus.unclaim(again, made["claim_id"])

    assert bus.claims() == []


@needs("claim")
def test_claims_of_one_agent_do_not_contest(bus: FullBus) -> None:
    """gitmem: “Sessions with one agent identity may claim the same path.”"""
    a, again = sessions(bus, A, A)
    bus.claim(a, ["src"])
    bus.claim(again, ["src/tax.py"])

    assert [(each["owner"], each["contested"]) for each in bus.claims()] == [(A, False), (A, False)]


@needs("claim", "second")
def test_claims_in_two_places_contest_each_other(bus: FullBus) -> None:
    """gitmem: “If two places claim a path apart, none wins: both places show both claims as contested.”"""
    there = bus.second()
    (a,), (b,) = sessions(bus, A), sessions(there, B)
    bus.claim(a, ["src"])
    bus.claim(a, ["docs"])
    other = there.claim(b, ["src/tax.py"])
    for each in (bus, there, bus, there):
        each.exchange()
    for each in (bus, there):
        assert sorted((one["owner"], *one["paths"], one["contested"]) for one in each.claims()) == sorted(
            [(A, "src", True), (A, "docs", False), (B, "src/tax.py", True)]
        )

    there.unclaim(b, other["claim_id"])
    for place in (there, bus):
        place.exchange()
        assert [(each["owner"], each["contested"]) for each in place.claims()] == [(A, False), (A, False)]
