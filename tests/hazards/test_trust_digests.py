"""Receipts and replies in another's name: what names no existing line has no effect and decides nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..signing import ANNA, MALLORY, SigningKey, addressed, attest
from .forging import Ring, changed, line

NOBODYS = "0" * 64


def receipt(of: str, reader: str, answers: str) -> bytes:
    return line(
        "receipt", signal_id=of, reader_identity=reader, delivery_state="delivered", answers_digest=answers
    )


def test_a_forged_receipt_takes_no_mail_away_and_vetoes_nothing(ring: Ring) -> None:
    """The signal stays unread for its recipient, its agreement converges, and both are told of the receipt."""
    hub, planck, curie = ring
    asked = planck.send("Approve?", "--to", "Curie", "--intent", "PROPOSE")
    planck.sync()
    hub.forge(receipt(asked["signal_id"], curie.identity, NOBODYS))
    curie.sync()
    assert [each["message"] for each in curie.inbox()] == ["Approve?"]
    assert curie("reply", asked["signal_id"], "yes", "--agree").status == 0
    curie.sync()
    planck.sync()
    found = planck("converged", asked["thread_id"], "--json")
    assert (found.status, found.json["ambiguous"]) == (0, [])
    assert any(asked["signal_id"] in each for each in found.json["warnings"])
    assert "has no effect" in planck("thread", asked["thread_id"]).out
    assert "swapped-content" in planck("doctor", "--json").out


def _signal(**fields: object) -> bytes:
    return line(
        "signal",
        **{"sender_identity": "e:x:y", "recipients": [], "origin": "local", "message": "x", **fields},
    )


WRONG: dict[str, Callable[[str], list[bytes]]] = {
    "swapped-content": lambda of: [_signal(signal_id="sig-0001", reply_to=of, answers_digest=NOBODYS)],
    "two-contents": lambda _: [_signal(signal_id="sig-0001"), _signal(signal_id="sig-0001", message="y")],
}


def test_an_invalid_record_is_a_note(ring: Ring) -> None:
    """Nothing that this user runs writes one: whoever signed it writes it again."""
    hub, planck, _ = ring
    lines = [addressed(_signal(signal_id="sig-0000000000000000000000"), ANNA)]
    hub.push(*lines, attest(lines, ANNA))
    planck.sync()
    said = planck("doctor", "--json")

    assert said.status == 0, said
    assert [each["severity"] for each in said.json["findings"] if each["code"] == "invalid-record"] == [
        "note"
    ]


@pytest.mark.parametrize("code", [*WRONG, "nodes"])
@pytest.mark.parametrize(("writer", "status"), [(MALLORY, 0), (ANNA, 1)], ids=["a stranger", "the user"])
def test_doctor_blames_nobody_for_what_another_wrote(
    ring: Ring, code: str, writer: SigningKey, status: int
) -> None:
    """Each clone would have the same problem for ever, and none could repair it. What this user wrote wrongly is a problem."""
    hub, planck, _ = ring
    of = planck.send("Approve?", "--to", "Curie")["signal_id"]
    planck.sync()
    node = {
        "id": "mem-0001",
        "type": "note",
        "lifecycle": "wu",
        "wu_id": "WU-1",
        "sender_identity": "e:x:y",
    }
    nodes = [line("node", **node, content=text) for text in ("x", "y")]
    lines = [addressed(each, writer) for each in (nodes if code == "nodes" else WRONG[code](of))]
    hub.push(*lines, attest(lines, writer))
    planck.sync()
    said = planck("doctor", "--json")
    assert said.status == status, said
    wrong = [each for each in said.json["findings"] if each["code"] == code.replace("nodes", "two-contents")]
    assert [each["severity"] for each in wrong] == ["problem" if status else "note"]


def test_nobody_makes_a_problem_of_a_line_in_the_name_of_another(ring: Ring) -> None:
    hub, planck, _ = ring
    hub.push(addressed(_signal(signal_id="sig-0000000000000000000000"), ANNA))
    planck.sync()
    said = planck("doctor", "--json")
    assert said.status == 0 and "invalid-record" in said.out


@pytest.mark.parametrize("answers", [NOBODYS, None])
def test_an_agreement_to_no_line_is_none(ring: Ring, answers: str | None) -> None:
    """Neither with a digest that no line has, nor without one; the thread shows it and says so."""
    hub, planck, curie = ring
    asked = planck.send("Approve?", "--to", "Curie", "--intent", "PROPOSE")
    planck.sync()
    forged = line(
        "signal", signal_id="sig-forged000001", sender_identity=curie.identity,
        recipients=[planck.identity], thread_id=asked["thread_id"], reply_to=asked["signal_id"],
        after=[asked["signal_id"]], answers_digest=answers, intent="AGREE", message="agreed", origin="local",
    )  # fmt: skip
    hub.forge(changed(forged))
    planck.sync()
    curie.sync()
    found = planck("converged", asked["thread_id"], "--json")
    assert (found.status, found.json["pending"], found.json["ambiguous"]) == (1, [curie.identity], [])
    (shown,) = [
        each
        for each in planck("thread", asked["thread_id"], "--json").json["signals"]
        if each["signal_id"] == "sig-forged000001"
    ]
    assert shown["counts"] is False
    assert "has no effect" in planck("thread", asked["thread_id"]).out
    assert [each["message"] for each in curie.inbox()] == ["Approve?"]
