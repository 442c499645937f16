"""What a sender is told of what it just said, and what a reader is asked for."""

from __future__ import annotations

import pytest

from gitmem.signals import next_steps
from gitmem.signals.causality import ThreadSignal

ROOT = {"signal_id": "sig-root", "recipients": ["a:b:curie"], "intent": "PROPOSE"}
OPEN = {"signal_id": "sig-root", "recipients": []}


def thread(record: dict[str, object]) -> dict[str, ThreadSignal]:
    return {"sig-root": ThreadSignal(record, [b"{}"])}


@pytest.mark.parametrize(
    ("fields", "said", "expected"),
    [
        ({"intent": "INFO"}, {}, ""),
        ({"intent": "PROPOSE", "recipients": ["x"]}, {}, ""),
        ({"intent": "PROPOSE", "recipients": ["x"], "requires_ack": True}, {}, ""),
        ({"intent": "PROPOSE"}, {}, "This signal has no recipients"),
        ({"intent": "INFO", "requires_ack": True}, {}, "This signal has no recipients"),
        ({"intent": "REJECT", "recipients": ["x"]}, {}, "does not answer a signal"),
        ({"intent": "AGREE"}, {}, "`gitmem reply ID 'your words' --agree`"),
        ({"intent": "AGREE", "reply_to": "sig-root"}, thread(ROOT), ""),
        ({"intent": "COUNTER", "reply_to": "sig-root"}, thread(ROOT), ""),
        ({"intent": "INFO", "reply_to": "sig-root", "requires_ack": True}, thread(ROOT), ""),
        ({"intent": "AGREE", "reply_to": "sig-root"}, thread(OPEN), "has no recipients"),
    ],
)
def test_a_recipient_that_answers_hears_nothing(
    fields: dict[str, object], said: dict[str, ThreadSignal], expected: str
) -> None:
    """And what counts for nothing is remarked."""
    found = next_steps.remarks({"recipients": [], **fields}, said, ["a:b:curie", "sess-1"])

    assert len(found) == bool(expected)
    assert expected in "".join(found)


@pytest.mark.parametrize("intent", ["AGREE", "REJECT"])
def test_a_decision_of_somebody_who_was_not_asked_is_remarked(intent: str) -> None:
    """With those who were. A COUNTER, or a word, is everybody's right."""
    fields: dict[str, object] = {"intent": intent, "reply_to": "sig-root"}
    (found,) = next_steps.remarks(fields, thread(ROOT), ["a:b:noether", None])

    assert f"this {intent} does not count; its recipients are a:b:curie." in found
    assert next_steps.remarks({**fields, "intent": "COUNTER"}, thread(ROOT), ["a:b:noether"]) == []


def test_the_last_open_question_is_the_one() -> None:
    """Proposals and counters that are addressed to one, and whatever asks for an answer."""
    signals: list[dict[str, object]] = [
        {"signal_id": "1", "intent": "PROPOSE", "recipients": ["me"]},
        {"signal_id": "2", "intent": "COUNTER", "recipients": ["me"]},
        {"signal_id": "3", "intent": "PROPOSE"},
        {"signal_id": "4", "intent": "INFO", "recipients": ["me"]},
    ]

    assert next_steps.last_open_question(signals, ["unread", "delivered", None, None]) is signals[1]
    assert next_steps.last_open_question(signals, ["unread", "acked", None, None]) is signals[0]
    assert next_steps.last_open_question(signals, ["", "rejected", None, None]) is None
    signals[2]["requires_ack"] = True
    assert next_steps.last_open_question(signals, ["unread", "unread", "delivered", None]) is signals[2]
    assert next_steps.decide(signals[1])[1] == "gitmem reply 2 'your reason' --reject"
    signals[2]["settled"] = "taken by a:b:curie"
    assert next_steps.last_open_question(signals, ["acked", "acked", "delivered", None]) is None
