"""What a sender is told of what it just said, and what a reader is asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitmem.order.thread import FoldedThread, ThreadSignal
from gitmem.signals import next_steps

ROOT = {
    "signal_id": "sig-root",
    "sender_identity": "a:b:planck",
    "recipients": ["a:b:curie"],
    "intent": "PROPOSE",
    "message": "",
}
COUNTER = {
    "signal_id": "sig-next",
    "sender_identity": "a:b:curie",
    "reply_to": "sig-root",
    "recipients": [],
    "intent": "COUNTER",
}
NOETHER = {
    "signal_id": "sig-other",
    "sender_identity": "a:b:noether",
    "reply_to": "sig-root",
    "recipients": [],
    "intent": "COUNTER",
}
WITHDRAWN = {
    "signal_id": "sig-without",
    "sender_identity": "a:b:curie",
    "reply_to": "sig-next",
    "recipients": [],
    "intent": "REJECT",
}


def thread(*records: dict[str, Any]) -> FoldedThread:
    lines = {
        each["signal_id"]: [json.dumps({"at": place, **each}).encode()] for place, each in enumerate(records)
    }
    return FoldedThread({each["signal_id"]: ThreadSignal(each, lines[each["signal_id"]]) for each in records})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"intent": "INFO"}, ""),
        ({"intent": "PROPOSE", "recipients": ["x"]}, ""),
        ({"intent": "PROPOSE", "recipients": ["x"], "requires_ack": True}, ""),
        ({"intent": "PROPOSE"}, "This signal asks nobody"),
        ({"intent": "PROPOSE", "recipients": ["me", "sess-1"]}, "This signal asks nobody"),
        ({"intent": "INFO", "requires_ack": True}, "This signal asks nobody"),
        ({"intent": "REJECT", "recipients": ["x"]}, "does not answer a signal"),
        ({"intent": "AGREE", "recipients": ["x"]}, "`gitmem reply ID 'your words' --agree`"),
    ],
)
def test_what_asks_nobody_or_answers_nothing_is_remarked(fields: dict[str, object], expected: str) -> None:
    """And nothing else is."""
    own = {"recipients": [], "sender_identity": "me", "sender_session": "sess-1"}
    found = next_steps.remarks({**own, **fields})  # type: ignore[typeddict-item]

    assert len(found) == bool(expected)
    assert expected in "".join(found)


@pytest.mark.parametrize(
    ("intent", "answers", "said", "reader", "expected"),
    [
        ("AGREE", "sig-root", [ROOT], "a:b:curie", ""),
        ("COUNTER", "sig-root", [ROOT], "a:b:curie", ""),
        ("INFO", "sig-root", [ROOT], "a:b:noether", ""),
        ("AGREE", "sig-root", [{**ROOT, "recipients": []}], "a:b:curie", "asks nobody, so this AGREE does not count"),
        ("AGREE", "sig-root", [ROOT], "a:b:noether", "so this AGREE does not count; its parties are a:b:planck, a:b:curie."),
        ("COUNTER", "sig-root", [ROOT], "a:b:noether", "so this COUNTER does not count"),
        ("AGREE", "sig-root", [ROOT, COUNTER], "a:b:planck", "sig-root was replaced by sig-next; this AGREE counts for sig-root alone."),
        ("AGREE", "sig-next", [ROOT, COUNTER], "a:b:planck", ""),
        ("AGREE", "sig-next", [ROOT, COUNTER, WITHDRAWN], "a:b:planck",
         "sig-next was withdrawn by a:b:curie; now in force: sig-root; this AGREE counts for sig-next alone."),
        ("AGREE", "sig-next", [ROOT, COUNTER, WITHDRAWN], "a:b:curie", "You had withdrawn sig-next; this AGREE takes that back."),
        ("COUNTER", "sig-root", [ROOT, COUNTER], "a:b:planck", ""),
        ("AGREE", "sig-root", [ROOT], "a:b:planck", "You agree to sig-root already, so this AGREE changes nothing."),
        ("AGREE", "sig-other", [ROOT, NOETHER], "a:b:curie", "sig-other is of no party of this thread: this AGREE is on sig-root."),
    ],
)  # fmt: skip
def test_a_decision_that_does_not_do_what_it_seems_to_do_is_remarked(
    intent: str, answers: str, said: list[dict[str, Any]], reader: str, expected: str
) -> None:
    """One that does is not."""
    found = next_steps.not_counted(intent, answers, thread(*said), [reader, None])

    assert len(found) == bool(expected)
    assert expected in "".join(found)


def test_the_last_open_question_is_the_one() -> None:
    """Of the signals to which the reader owes an answer, but for those whose task is settled."""
    signals: Any = [
        {"signal_id": "1", "intent": "PROPOSE", "owed": True},
        {"signal_id": "2", "intent": "COUNTER", "owed": True},
        {"signal_id": "3", "intent": "PROPOSE"},
    ]
    assert next_steps.last_open_question(signals) is signals[1]
    assert next_steps.decide(signals[1])[1] == "gitmem reply 2 rejected --reject"
    signals[1]["settled"] = "taken by a:b:curie"
    assert next_steps.last_open_question(signals) is signals[0]
    del signals[0]["owed"]
    assert next_steps.last_open_question(signals) is None
