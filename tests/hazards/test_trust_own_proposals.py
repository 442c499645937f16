"""Nobody agrees with itself: by a new session, in another's name, or to a proposal that it made in another's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .forging import Hub
from .test_trust_caller import PERSON, Place, Said, here

__all__ = ["here"]
CLIENT = "CLAUDE_CODE_SESSION_ID"
PLANCK = "codex:planner:one"
VOID = "has no effect"


def propose(here: Place, to: str, *words: str, **who: Any) -> tuple[str, str]:
    """Ask for a decision on WU-7; the signal and the thread."""
    asks = ("--to", to, "--intent", "PROPOSE", "--requires-ack", "--wu", "WU-7", "--json", *words)
    said = here("signal", "Shall we split the parser?", *asks, **who)
    assert said.status == 0, said
    return str(said.json["signal"]["signal_id"]), str(said.json["signal"]["thread_id"])


def agree(here: Place, id: str, *words: str, **who: Any) -> Said:
    said = here("reply", id, "agreed", "--agree", *words, "--json", **who)
    assert said.status == 0, said
    return said


def assert_void(here: Place, thread: str, said: Said, waits: str) -> None:
    """The decision is in the log, marked, and the thread waits for the one in whose name it stands."""
    found = here("converged", thread, "--json")
    assert (found.status, found.json["pending"]) == (1, [waits]), found
    assert any(VOID in each for each in said.json["warnings"]), said
    shown = here("thread", thread, "--json").json["signals"]
    assert [each.get("decides") for each in shown] == [None, False]
    assert VOID in here("thread", thread).out


@pytest.mark.parametrize("known_by", ["identity", "client", "both"])
def test_a_new_session_of_the_proposer_agrees_for_nobody(here: Place, known_by: str) -> None:
    """Planck proposes to Curie, ends its session, begins another one, and agrees as Curie."""
    own = ("--agent-identity", PLANCK) if known_by != "client" else ()
    client = {CLIENT: "0b9c1f2e-77aa-4d01-9a55-3f0e8d2c4b61"} if known_by != "identity" else {}
    curie = here.start("Curie")
    first = here("session", "start", "--name", "Planck", *own, "--json", env=client).json["session_id"]
    id, thread = propose(here, "Curie", env={**client, "GITMEM_SESSION": first})
    here("session", "end", env={**client, "GITMEM_SESSION": first})
    second = here("session", "start", "--name", "Bohr", *own, "--json", env=client).json["session_id"]
    assert second != first

    said = agree(here, id, "--as", "Curie", "--insist", env={**client, "GITMEM_SESSION": second})
    assert said.json["signal"]["via"] == second
    assert_void(here, thread, said, curie)
    agree(here, id, session=curie)
    assert here("converged", thread).status == 0


def test_a_client_without_a_session_of_its_own_agrees_for_nobody(here: Place) -> None:
    """After the end of its session the client still is who has proposed."""
    client = {CLIENT: "0b9c1f2e-77aa-4d01-9a55-3f0e8d2c4b61"}
    curie = here.start("Curie")
    here("session", "start", "--name", "Planck", env=client)
    id, thread = propose(here, "Curie", env=client)
    here("session", "end", env=client)
    said = agree(here, id, "--as", "Curie", "--insist", env=client)
    assert said.json["signal"]["via"].startswith("h-")
    assert_void(here, thread, said, curie)


@pytest.mark.parametrize("asker", ["Noether", PERSON])
@pytest.mark.parametrize("decides", ["itself", "its next session", "as Curie"])
def test_what_a_session_proposed_in_anothers_name_it_does_not_agree_to(
    here: Place, asker: str, decides: str
) -> None:
    """Planck proposes as Noether, or as the user: neither its own decision counts nor one that it records for Curie."""
    identity = ("--agent-identity", PLANCK)
    planck, curie, _ = here.start("Planck", *identity), here.start("Curie"), here.start("Noether")
    to = "Curie" if decides == "as Curie" else planck
    id, thread = propose(here, to, "--as", asker, session=planck)
    if decides == "its next session":
        here("session", "end", session=planck)
        planck = here.start("Planck", *identity)
    words = ("--as", "Curie", "--insist") if decides == "as Curie" else ()
    waits = curie if decides == "as Curie" else PLANCK
    assert_void(here, thread, agree(here, id, *words, session=planck), waits)


def test_a_proposal_as_the_user_is_not_agreed_to_as_the_user(here: Place) -> None:
    """Planck asks the user in the user's name, and agrees in the user's name, from its next session."""
    identity = ("--agent-identity", PLANCK)
    first = here.start("Planck", *identity)
    id, thread = propose(here, PERSON, "--as", PERSON, session=first)
    here("session", "end", session=first)
    said = agree(here, id, "--as", PERSON, "--insist", session=here.start("Planck", *identity))
    assert any(VOID in each for each in said.json["warnings"]), said
    agree(here, id, typed=True)  # the user, at a terminal
    found = here("converged", thread)
    assert (found.status, "nobody was asked" in found.out) == (1, True), found


def test_an_own_proposal_opens_no_gate(here: Place) -> None:
    """What Planck asked itself as Noether stands in its way on, though it has said that it agrees."""
    planck, _ = here.start("Planck", "--wu", "WU-7"), here.start("Noether")
    id, _ = propose(here, "Planck", "--as", "Noether", session=planck)
    here("inbox", session=planck)
    assert here("gate", "--wu", "WU-7", session=planck).status == 1
    agree(here, id, session=planck)
    found = here("gate", "--wu", "WU-7", "--json", session=planck)
    assert (found.status, found.json["unanswered"]) == (1, 1), found


@pytest.mark.parametrize("who", ["another agent for Curie", "Curie", "the user as Curie"])
def test_others_decide_on_a_proposal_in_anothers_name(here: Place, who: str) -> None:
    """Planck proposes as Noether to Curie: whoever is not Planck decides, and may record what Curie said."""
    planck, curie = here.start("Planck", "--agent-identity", PLANCK), here.start("Curie")
    here.start("Noether")
    bohr = here.start("Bohr", "--agent-identity", "codex:planner:two")
    id, thread = propose(here, "Curie", "--as", "Noether", session=planck)
    if who == "Curie":
        said = agree(here, id, session=curie)
    elif who == "the user as Curie":
        said = agree(here, id, "--as", "Curie", typed=True)
    else:
        said = agree(here, id, "--as", "Curie", "--insist", session=bohr)
    assert said.json["warnings"] == []
    assert here("converged", thread).status == 0
    assert "decides" not in here("thread", thread, "--json").json["signals"][1]
    assert here("gate", "--wu", "WU-7", session=curie).status == 0 or who == "another agent for Curie"


def test_every_clone_decides_alike(tmp_path: Path) -> None:
    """Another clone, which knows Planck's sessions from their records alone, counts its agreement for nobody, either."""
    hub = Hub(tmp_path)
    planck, curie = hub.clone("Planck"), hub.clone("Curie")
    curie.sync()
    planck.sync()
    asks = ("--to", curie.session, "--intent", "PROPOSE", "--json")
    signal = planck("signal", "Shall we?", *asks).json["signal"]
    planck("session", "end")
    started = planck("session", "start", "--agent-identity", planck.identity, "--json")
    planck.session = started.json["session_id"]
    answer = planck(
        "reply", signal["signal_id"], "ok", "--agree", "--insist", "--as", curie.identity, "--json"
    )
    assert answer.json["signal"]["via"] == planck.session, answer
    planck.sync()
    curie.sync()
    found = [each("converged", signal["thread_id"], "--json").json for each in (planck, curie)]
    assert [each["pending"] for each in found] == [[curie.identity]] * 2
