"""Receipts and replies in another's name: what names no existing line has no effect and decides nothing."""

from __future__ import annotations

import pytest

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
