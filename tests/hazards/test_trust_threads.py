"""What a stranger writes ends no agreement of others, begins no thread in another's name, and contests no claim without a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitmem.records.ids import new_id, own_id
from tests.signing import ANNA, BOB, MALLORY

from .forging import Clone, Hub, digest, hours_later, line

Ring = tuple[Hub, Clone, Clone]
LONG_AGO = "1970-01-01T00:00:01.000000Z"


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


KEYED = own_id("sig", MALLORY.writer, f"evil:x:y@{MALLORY.writer}", "key")


def keyed(root: dict[str, Any], of: bytes, at: str, *after: str) -> bytes:
    """A signal of a stranger in the thread of others: its lines may differ in what they name, and are one content."""
    fields = {
        "signal_id": KEYED,
        "idempotency_key": "key",
        "thread_id": root["thread_id"],
        "reply_to": root["signal_id"],
    }
    return line(
        "signal", at, sender_identity="evil:x:y", recipients=[], intent="INFO", origin="local", message="x",
        answers_digest=digest(of), **fields, **({"after": [*after]} if after else {}),
    )  # fmt: skip


def test_a_stranger_does_not_order_a_rejection_before_an_agreement(ring: Ring) -> None:
    """Curie agrees here and rejects there, at once: that is no. A signal between them is written anew, as of 1970."""
    hub, planck, curie = ring
    there = hub.clone("Curie2")
    there.session = there("session", "start", "--name", "Curie-b", "--agent-identity", curie.identity, "--json").json["session_id"]  # fmt: skip
    root = planck.send("Shall we?", "--to", curie.identity, "--intent", "PROPOSE")
    exchange(planck, curie, there)
    of = hub.line_of(root["signal_id"])
    hub.forge(keyed(root, of, hours_later(3)))
    curie.sync()
    curie.inbox()
    yes = curie("reply", root["signal_id"], "Yes.", "--agree", "--json").json["signal"]
    no = there("reply", root["signal_id"], "No!", "--reject", "--json").json["signal"]
    assert KEYED in yes["after"]
    exchange(planck, curie, there)
    assert planck("converged", root["signal_id"]).status == 1
    hub.forge(keyed(root, of, LONG_AGO, no["signal_id"]))
    exchange(planck, curie)
    assert planck("converged", root["signal_id"]).status == 1


def test_a_stranger_does_not_order_an_agreement_before_a_rejection(ring: Ring) -> None:
    """Curie has said no and then yes. A signal that she had read with the first is written anew, as after the second."""
    hub, planck, curie = ring
    root = planck.send("Shall we?", "--to", "Curie", "--intent", "PROPOSE")
    exchange(planck, curie)
    of = hub.line_of(root["signal_id"])
    hub.forge(keyed(root, of, hours_later(3)))
    curie.sync()
    curie.inbox()
    assert curie("reply", root["signal_id"], "No.", "--reject").status == 0
    yes = curie("reply", root["signal_id"], "Well, yes.", "--agree", "--json").json["signal"]
    exchange(planck, curie)
    assert planck("converged", root["signal_id"]).status == 0
    hub.forge(keyed(root, of, LONG_AGO, yes["signal_id"]))
    planck.sync()
    assert planck("converged", root["signal_id"]).status == 0


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


def test_nobody_joins_a_thread_whose_name_is_of_somebody_who_said_nothing(ring: Ring) -> None:
    """Its name begins another one of who gives it; and what strangers say there asks nobody, whatever their clocks say."""
    hub, planck, curie = ring
    thread = f"launch@{BOB.writer}"
    hub.forge(strangers(thread_id=thread, intent="PROPOSE", recipients=[planck.address, curie.address]))
    exchange(planck, curie)
    sent = planck.send("Ship it?", "--thread", "launch", "--to", "Curie", "--intent", "PROPOSE")
    assert sent["thread_id"] == f"launch@{ANNA.writer}" and "reply_to" not in sent
    exchange(planck, curie)
    assert curie("reply", sent["signal_id"], "Yes.", "--agree").status == 0
    exchange(curie, planck)

    for each in (planck, curie):
        assert each("converged", sent["signal_id"]).status == 0
        said = each("converged", thread, "--json")
        assert (said.status, said.json["recipients"], said.json["agreed_on"]) == (1, [], None)


def test_a_claim_without_a_writer_contests_no_claim(ring: Ring) -> None:
    """Nobody stands behind it."""
    hub, planck, curie = ring
    assert planck("claim", "a.py").status == 0
    exchange(planck, curie)
    hub.bring_in(line("claim", hours_later(3), claim_id="claim-zzzz", event="claim", paths=["**"], mode="exclusive",
                      until=hours_later(20), sender_identity="human:x@example.org"))  # fmt: skip
    exchange(planck, curie)

    assert [each["status"] for each in planck("claim", "list", "--json").json["claims"]] == ["held"]
    assert curie("claim", "list", "b.py").status == 0


@pytest.mark.parametrize("form", ["its beginning", "a named thread"])
def test_no_id_of_a_stranger_takes_the_place_of_another(ring: Ring, form: str) -> None:
    """Whoever types an id, or the beginning of one, means that one; what is also a stranger's is ambiguous at most."""
    hub, planck, curie = ring
    root = planck.send("Shall we?", "--to", "Curie", "--intent", "PROPOSE")
    exchange(planck, curie)
    asked, thread = root["signal_id"], f"{root['signal_id']}@{MALLORY.writer}"
    if form == "its beginning":
        asked, thread = asked[:10], "thread-pppppppp"
    assert planck("converged", asked, "--json").json["root"] == root["signal_id"]
    mine = {"signal_id": asked} if form == "its beginning" else {}
    hub.forge(strangers(**mine, thread_id=thread, intent="PROPOSE", recipients=[f"e:x:o@{MALLORY.writer}"]))
    exchange(planck)

    said = planck("converged", asked, "--json")
    if form == "its beginning":
        assert (said.status, said.json["error"]["code"]) == (2, "ambiguous-id")
    else:
        assert said.json["root"] == root["signal_id"]
