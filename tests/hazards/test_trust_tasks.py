"""What a stranger who may push can do to the tasks of others: nothing in the place of whom they are for, or of their callers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitmem.order.task import escalation_id
from gitmem.records.ids import own_id

from ..signing import ANNA, MALLORY, SigningKey, attest, salted
from .forging import Clone, Hub, exchange, hours_later

Ring = tuple[Hub, Clone, Clone]
ME = f"evil:x:y@{MALLORY.writer}"
EARLY = "1970-01-01T00:00:%02d.000000Z"


def tev(text: str) -> str:
    return own_id("tev", MALLORY.writer, text)


def made(kind: str, at: str, key: SigningKey = MALLORY, **fields: object) -> bytes:
    """A line of a writer as format.md asks for it."""
    whole = {"at": at, "kind": kind, "writer": key.writer, "schema_version": "A2A.V1", **fields}
    return salted(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())


def event(at: str, chars: str, **fields: object) -> bytes:
    return made("task_event", at, **{"event_id": tev(chars), "sender_identity": ME, **fields})


def push(hub: Hub, *lines: bytes) -> None:
    hub.push(*lines, attest(lines, MALLORY, at=1_795_291_200_123_456 + len(hub.lines())))


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    hub = Hub(tmp_path)
    planck, curie = hub.acquainted()
    return hub, planck, curie


def test_a_stranger_does_not_answer_a_call_to_somebody_else(ring: Ring) -> None:
    hub, planck, curie = ring
    planck("call", "Curie", "What is the password?", "--no-wait")
    exchange(planck, curie)
    task = next(json.loads(each)["task_id"] for each in hub.lines() if b'"kind":"task"' in each)
    take = tev("a")
    push(
        hub,
        event(hours_later(4), "a", task_id=task, event="take", until=hours_later(9)),
        event(
            hours_later(4),
            "b",
            task_id=task,
            event="status",
            take=take,
            state="completed",
            message="evil",
        ),
    )
    planck.sync()
    answer = planck("task", "wait", task, "--timeout", "1s")
    assert "evil" not in answer.out, answer
    assert answer.status != 0


def test_a_stranger_takes_nothing_that_somebody_holds(ring: Ring) -> None:
    hub, planck, curie = ring
    task = planck("delegate", "--to", "Curie", "do it", "--json").json["task"]["task_id"]
    exchange(planck, curie)
    assert curie("task", "take", task).status == 0
    exchange(planck, curie)
    push(hub, event(EARLY % 1, "a", task_id=task, event="take", until=hours_later(9)))
    exchange(planck, curie)
    assert "curie" in planck("task", "show", task, "--json").json["holder"]["sender_identity"]


def test_a_message_that_is_written_anew_does_not_make_a_take_void(ring: Ring) -> None:
    hub, planck, curie = ring
    task = planck("delegate", "--to", "Curie", "do it", "--json").json["task"]["task_id"]
    exchange(planck, curie)
    push(hub, event(hours_later(4), "m", task_id=task, event="message", message="Hello."))
    exchange(planck, curie)
    assert curie("task", "take", task).status == 0  # its `after` has that message
    exchange(planck, curie)
    push(
        hub,
        event(hours_later(5), "a", task_id=task, event="take", until=hours_later(9)),
        event(
            EARLY % 1,
            "m",
            task_id=task,
            event="message",
            message="Hello.",
            after=[tev("a")],
        ),
    )
    exchange(planck, curie)
    assert curie("task", "done", task, "Here it is.").status == 0


def closed(task: str, state: str) -> bytes:
    """The event by which a person of the stranger's key closes a task."""
    by = f"human:x@example.org@{MALLORY.writer}"
    return event(
        hours_later(4), "a", task_id=task, event="close", state=state, reason="x", sender_identity=by
    )


@pytest.mark.parametrize("state", ["failed", "completed"])
def test_a_person_whom_nobody_knows_does_not_close_a_task(ring: Ring, state: str) -> None:
    hub, planck, curie = ring
    task = planck("delegate", "--to", "Curie", "do it", "--json").json["task"]["task_id"]
    exchange(planck, curie)
    assert curie("task", "take", task).status == 0
    assert curie("claim", "a.py").status == 0
    exchange(planck, curie)
    push(hub, closed(task, state))
    exchange(planck, curie)
    assert planck("task", "show", task, "--json").json["state"] == "working"
    assert len(planck("claim", "list", "--json").json["claims"]) == 1  # Curie's claim ends with the task


@pytest.mark.parametrize("what", ["message", "escalate"])
def test_a_stranger_keeps_no_escalation_from_being_told(ring: Ring, what: str) -> None:
    """The id of its event is known to everybody: no other event takes its place, and a premature one leaves the notice to be written."""
    hub, planck, curie = ring
    of = made("task", hours_later(0), ANNA, task_id=own_id("task", ANNA.writer, "t"), thread_id=own_id("thread", ANNA.writer, "t"),
              purpose="delegation", agent=curie.address, sender_identity=planck.address, sender_session=planck.session, message="do it")  # fmt: skip
    hub.push(of, attest([of], ANNA))
    task = json.loads(of)["task_id"]
    for level in ("warning", "error", "critical"):
        more = {"message": "x"} if what == "message" else {"level": level, "reason": "untaken"}
        push(
            hub,
            event(EARLY % 1, "x", event_id=escalation_id(task, "", level), task_id=task, event=what, **more),
        )
    planck.sync()
    bohr = hub.clone("Bohr")
    for each in (planck, planck, bohr):
        assert each("task", "list", "--stuck").status == 0
        exchange(bohr, planck)

    written = [json.loads(each) for each in hub.lines() if b'"event":"escalate"' in each]
    assert len([each for each in written if each["writer"] == ANNA.writer]) == (what == "message")
    assert any(f"{task} is stuck" in each["message"] for each in planck.inbox())


def test_a_stranger_does_not_accept_a_handoff_to_somebody_else(ring: Ring) -> None:
    hub, planck, curie = ring
    task = planck("delegate", "--to", "Curie", "do it", "--json").json["task"]["task_id"]
    exchange(planck, curie)
    curie("task", "take", task)
    curie("handoff", "--to", "Planck", "Go on.")
    exchange(planck, curie)
    handoff = next(json.loads(each)["task_id"] for each in hub.lines() if b'"purpose":"handoff"' in each)
    push(hub, event(hours_later(5), "a", task_id=handoff, event="take", until=hours_later(9)))
    exchange(planck, curie)
    assert "evil" not in planck("task", "show", task, "--json").json["holder"]["sender_identity"]


def test_a_person_whom_nobody_knows_does_not_open_a_gate(ring: Ring) -> None:
    hub, planck, curie = ring
    task = planck("delegate", "--to", "Curie", "--wu", "WU-1", "do it", "--json").json["task"]["task_id"]
    exchange(planck, curie)
    curie.inbox()
    assert curie("gate", "--wu", "WU-1").status == 1  # a delegation without an answer
    push(hub, closed(task, "canceled"))
    curie.sync()
    assert curie("gate", "--wu", "WU-1").status == 1
