"""What a stranger signs in somebody's thread ends no agreement there, and begins no thread in another's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.records.ids import new_id
from tests.signing import ANNA, MALLORY

from .forging import Clone, Hub, hours_later, line

Ring = tuple[Hub, Clone, Clone]


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    """A hub, and the clones of Planck and Curie."""
    hub = Hub(tmp_path)
    return hub, *hub.acquainted()


def exchange(*clones: Clone) -> None:
    for each in (*clones, *clones):
        each.sync()


def strangers(**fields: object) -> bytes:
    given = {"signal_id": new_id("sig", MALLORY.writer), "sender_identity": "evil:x:y", "recipients": [],
             "intent": "INFO", "origin": "local", "message": "x"}  # fmt: skip
    return line("signal", hours_later(1), **{**given, **fields})


def test_an_ambiguous_signal_of_a_stranger_ends_no_agreement(ring: Ring) -> None:
    """Two lines with one id of its own: they are told, and no party has agreed to them."""
    hub, planck, curie = ring
    root = planck.send("Shall we?", "--to", "Curie", "--intent", "PROPOSE")
    exchange(planck, curie)
    assert curie("reply", root["signal_id"], "Yes.", "--agree").status == 0
    exchange(curie, planck)
    assert planck("converged", root["signal_id"]).status == 0
    id = new_id("sig", MALLORY.writer)
    hub.forge(*(strangers(signal_id=id, thread_id=root["thread_id"], message=text) for text in ("a", "b")))
    exchange(planck, curie)

    for each in (planck, curie):
        said = each("converged", root["signal_id"], "--json")
        assert (said.status, said.json["ambiguous"]) == (0, [id])


def test_nobody_begins_a_thread_in_the_name_of_another(ring: Ring) -> None:
    """Whoever writes into it first: its root is of who named it, and so are its parties."""
    hub, planck, curie = ring
    hub.forge(strangers(thread_id=f"launch@{ANNA.writer}", intent="PROPOSE", recipients=[planck.address]))
    exchange(planck, curie)
    sent = planck.send("Ship it?", "--thread", "launch", "--to", "Curie", "--intent", "PROPOSE")
    exchange(planck, curie)
    assert curie("reply", sent["signal_id"], "Yes.", "--agree").status == 0
    exchange(curie, planck)

    for each in (planck, curie):
        said = each("converged", "launch", "--json")
        assert (said.status, said.json["root"]) == (0, sent["signal_id"])
