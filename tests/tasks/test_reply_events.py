"""D11 with hostile signals: a REJECT acts on a task only as the answer of its addressee to its caller."""

from __future__ import annotations

import pytest

from gitmem.log.lines import CommitMessage
from gitmem.signals import send
from gitmem.store import Store
from gitmem.work import new_task, task_rules
from tests.sandbox import Agent, annas

PLANNER, BOHR = annas("codex:planner:one"), annas("claude:worker:bohr")
MALLORY = "claude:worker:mallory"


def _delegated(store: Store) -> tuple[str, str]:
    """A task for Bohr and its thread."""
    planner = Agent(store, PLANNER).caller
    made = new_task.delegate(store, planner, "Write it", to=BOHR, role="implementer/test", wu="WU-7")
    return made.task["task_id"], made.task["thread_id"]


def test_r17_who_answers_a_signal_that_only_names_the_task_rejects_nothing(store: Store) -> None:
    """A peer could else trick an addressee into a refusal, by a proposal of its own in the thread or beside it."""
    bohr, mallory = Agent(store, BOHR).caller, Agent(store, MALLORY).caller
    task_id, thread_id = _delegated(store)
    for number, thread in enumerate((thread_id, "thread-other00001")):
        signal_id = f"sig-mallory{number:05}"
        line = store.line("signal", {
            "signal_id": signal_id, "message": "Lunch?", "sender_identity": MALLORY, "sender_session": mallory.session_id,
            "recipients": [BOHR], "intent": "PROPOSE", "task_id": task_id, "thread_id": thread, "requires_ack": True,
        })  # fmt: skip
        store.record([line], CommitMessage("Mallory <m@example.org>", "forged"))
        send.send(store, bohr, "no", reply_to=signal_id, intent="REJECT")
    assert task_rules.require(store, task_id).state == "submitted"
    assert not task_rules.require(store, task_id).rejections


def test_a_signal_about_a_task_that_is_not_here_is_answered_as_any_other(store: Store) -> None:
    """A peer may name any task."""
    bohr = Agent(store, BOHR).caller
    line = store.line("signal", {
        "signal_id": "sig-nowhere00001", "message": "Lunch?", "sender_identity": MALLORY, "recipients": [BOHR],
        "intent": "PROPOSE", "task_id": "task-nowhere00001", "thread_id": "thread-nowhere001",
    })  # fmt: skip
    store.record([line], CommitMessage("Mallory <m@example.org>", "forged"))
    assert send.send(store, bohr, "no", reply_to="sig-nowhere00001", intent="REJECT").recorded


@pytest.mark.parametrize("intent", ["INFO", "COUNTER"])
def test_an_answer_may_begin_a_thread_of_its_own(store: Store, intent: str) -> None:
    """The new thread has no signals yet; what the answered one says of a task holds."""
    planner, bohr = Agent(store, PLANNER).caller, Agent(store, BOHR).caller
    asked = send.send(store, planner, "Lunch?", to=[BOHR], intent="PROPOSE").signal
    apart = send.send(
        store, bohr, "Apart", reply_to=asked["signal_id"], thread="thread-other00002", intent=intent
    )
    assert apart.signal["recipients"] == [PLANNER]
