"""The root of a thread, and what a new signal names: decided by what was seen, whatever the clocks say."""

from __future__ import annotations

import json

import pytest

from gitmem import records
from gitmem.order import thread as causality
from gitmem.order.thread import ThreadSignal


def said(
    id: str,
    by: str = "a",
    intent: str = "INFO",
    *,
    at: int = 0,
    after: tuple[str, ...] = (),
    reply_to: str = "",
    session: str | None = None,
) -> ThreadSignal:
    record = {"at": f"2026-11-21T20:00:00.{at:06d}Z", "signal_id": id, "sender_identity": by, "intent": intent,
              "after": list(after), "reply_to": reply_to, "sender_session": session}  # fmt: skip
    return ThreadSignal(record, [json.dumps(record, separators=(",", ":")).encode()])


def thread(*items: ThreadSignal) -> dict[str, ThreadSignal]:
    return {item.id: item for item in items}


@pytest.mark.parametrize(
    "odd",
    [
        {"reply_to": ""},
        {"reply_to": 1},
        {"after": "sig-1"},
        {"recipients": None},
        {"intent": "agree"},
        {"via": []},
    ],
)
def test_a_line_with_a_field_of_another_form_is_no_signal(odd: dict[str, object]) -> None:
    """Lines of others: what folds a thread need not ask for the form of a field."""
    whole = {"at": "2026-11-21T20:00:00.000000Z", "kind": "signal", "signal_id": "sig-0001",
             "sender_identity": "a:b:c", "message": "hello"}  # fmt: skip

    assert records.read_kind("signal", json.dumps(whole, separators=(",", ":")).encode()) is not None
    assert records.read_kind("signal", json.dumps({**whole, **odd}, separators=(",", ":")).encode()) is None


def test_the_root_answers_nothing_of_its_thread() -> None:
    """Of several, as when two clones opened one thread id apart, the lowest line."""
    late, early = said("late", at=5), said("early", at=3, reply_to="sig-of-another-thread")

    assert causality.root(thread(late, early, said("re", at=1, reply_to="late"))).id == "early"


def test_a_new_signal_names_what_its_writer_had_seen() -> None:
    """Its own last signal and decision, and the heads of what it read; nothing that it did not see."""
    found = thread(
        said("root", "a"),
        said("mine", "b", "AGREE", at=1, reply_to="root"),
        said("read", "c", at=2, reply_to="mine"),
        said("unread", "c", at=3, reply_to="mine"),
    )

    assert causality.ids_for_after("b", found, {"root", "read"}, None) == ["mine", "read"]
    assert causality.ids_for_after("b", found, {"root"}, "unread") == ["mine", "unread"]


def test_a_new_signal_names_ones_own_last_decision_beside_ones_own_last_word() -> None:
    """Also where the last word knew the decision: who reads one line learns where its writer stands."""
    found = thread(
        said("root", "a"),
        said("z-no", "b", "REJECT", at=9, reply_to="root"),
        said("y-yes", "b", "AGREE", at=2, after=("z-no",)),
        said("x-word", "b", at=3, after=("y-yes",)),
        said("w-unseen", "c", "REJECT", at=9, reply_to="root"),
    )

    assert causality.ids_for_after("b", found, set(), None) == ["y-yes", "x-word"]
