"""Bad input of handoffs: a clear error each, and nothing lost; lines that peers wrote move nothing that is not theirs to give."""

from __future__ import annotations

from typing import Any

import pytest

from gitmem import records
from gitmem.agents import lifecycle
from gitmem.errors import GitmemError, UsageError
from gitmem.log.lines import LAST_MICROS, format_at
from gitmem.memory import edit, upkeep
from gitmem.store import Store
from gitmem.work import (
    claim_work,
    claims,
    give_handoff,
    handoffs,
    new_task,
    task_rules,
    task_work,
)
from tests.sandbox import HOUR, Agent, arrive, bodies
from tests.signing import MALLORY, addressed, attest

from .conftest import BOHR, CURIE, Work

NOTHING = "Nothing was written."


def written(store: Store, kind: str, at: int, **fields: Any) -> None:
    """Let a peer write a line, by hand."""
    line = addressed(records.line(kind, at, fields, writer=None), MALLORY)
    arrive(store, [line, attest([line], MALLORY)])


def hostile(work: Work, **fields: Any) -> str:
    """Record a handoff for Curie that a peer wrote by hand in the other clone."""
    work.clock.forward(1_000_000)
    given = {
        "task_id": "task-hostile", "thread_id": "thread-hostile", "message": "yours", "purpose": "handoff", "agent": CURIE,
        "sender_identity": "x:y:mallory", **fields,
    }  # fmt: skip
    written(work.there, "task", work.clock.value, **given)
    return "task-hostile"


def test_a_wrong_addressee_or_text_is_refused(work: Work) -> None:
    """Each with its own code, before anything is written."""
    before = bodies(work.here)
    wrong: list[tuple[str | None, str | None, str]] = [
        ("Nobody", None, "unknown-recipient"),
        ("", None, "no-addressee"),
        (None, None, "no-addressee"),
        ("Bohr", None, "own-handoff"),
        (BOHR, None, "own-handoff"),
        ("Curie,Dirac", None, "several-addressees"),
        ("role:revewer", None, "unknown-role"),
        ("Curie", "  \n", "empty-message"),
        ("Curie", "key AKIAIOSFODNN7EXAMPLQ", "secret"),
        ("Curie", "x" * 70_000, "invalid-record"),
    ]
    for to, message, code in wrong:
        with pytest.raises(GitmemError) as refused:
            give_handoff.hand_over(work.here, work.bohr, to, message)
        assert (refused.value.code, NOTHING in str(refused.value)) == (code, True), refused.value
    assert bodies(work.here) == before
    assert give_handoff.hand_over(work.here, work.bohr, "Curie", "x" * 65_500).recorded, (
        "the signal about it is longer"
    )


def test_who_has_nothing_is_told_so_and_an_ended_session_gets_nothing(work: Work) -> None:
    """No task, claim, thread or checkpoint; a session without an agent identity that has ended."""
    with pytest.raises(
        UsageError, match="no task taken, no claim, no open thread and no checkpoint"
    ) as refused:
        give_handoff.hand_over(work.there, work.dirac, "Curie")
    assert refused.value.code == "nothing-to-hand-over"
    ended = lifecycle.start(work.here, lifecycle.callers.CallerClaims(), name="Noether")
    from tests.sandbox import acting

    noether = acting(work.here, ended)
    lifecycle.end(work.here, noether)
    with pytest.raises(UsageError, match="has ended"):
        give_handoff.hand_over(work.here, work.bohr, ended.session_id)
    with pytest.raises(UsageError, match="ended session"):
        acting(work.here, ended)


def test_only_the_addressee_accepts(work: Work) -> None:
    """Neither somebody else, nor the giver."""
    handoff = give_handoff.hand_over(work.here, work.bohr, "Curie").task["task_id"]
    work.sync()
    for store, caller, code in (
        (work.there, work.dirac, "not-for-you"),
        (work.here, work.bohr, "own-handoff"),
    ):
        with pytest.raises(GitmemError) as refused:
            handoffs.take_handoff(store, caller, handoff)
        assert (refused.value.code, NOTHING in str(refused.value)) == (code, True)


def test_a_handoff_of_what_others_have_moves_nothing(work: Work) -> None:
    """The tasks and claims of somebody else, and of nobody: accepted, they stay where they are."""
    take = task_rules.require(work.there, work.task_id).holder
    assert take is not None
    handoff = hostile(
        work, handoff_tasks=[work.task_id, "task-missing"], handoff_takes=[take.id, "tev-missing"],
        handoff_claims=[work.claim_id, "claim-missing"], handoff_threads=["thread-missing"], checkpoint="mem-missing",
    )  # fmt: skip
    found = handoffs.take_handoff(work.there, work.curie, handoff)
    assert (found.handoff.tasks, found.handoff.claims, found.handoff.threads, found.handoff.checkpoint) == (
        [],
        [],
        [],
        None,
    )
    assert {each.id: each.reason for each in found.handoff.left_out} == {
        work.task_id: "was not taken by the giver",
        work.claim_id: "is not the giver's",
        **dict.fromkeys(
            ("task-missing", "claim-missing", "thread-missing", "mem-missing"),
            "is not in this log: `gitmem sync` may fetch it",
        ),
    }
    work.sync()
    for store in (work.here, work.there):
        holder = task_rules.require(store, work.task_id).holder
        assert holder is not None and holder.sender[0] == BOHR
        (claim,) = claims.standing(store)
        assert claim.claim.owner[0] == BOHR


def test_a_handoff_in_the_name_of_this_clone_is_not_accepted_here(work: Work) -> None:
    """The line is ignored: it would take the work from a session that gave nothing away."""
    take = task_rules.require(work.there, work.task_id).holder
    assert take is not None
    handoff = hostile(
        work, sender_identity=BOHR, sender_session=work.bohr.session_id, agent=None, target_role="reviewer/test",
        handoff_tasks=[work.task_id], handoff_takes=[take.id],
    )  # fmt: skip
    work.sync()
    ada = Agent(work.here, "a:b:ada", role="reviewer/test").caller
    assert handoffs.of_caller(work.here, ada).offered == []
    before = bodies(work.here)
    for store, caller in ((work.here, ada), (work.there, work.curie)):
        with pytest.raises(UsageError, match="No such task"):
            handoffs.take_handoff(store, caller, handoff)
    assert bodies(work.here) == before
    assert task_work.report(work.here, work.bohr, work.task_id, "working", "mine").state == "working"


def test_thousands_of_ids_in_one_line_are_read_in_part(work: Work) -> None:
    """Fifty of each kind, of which no other line is needed."""
    many = {
        "handoff_tasks": [f"task-{number:05}" for number in range(4_000)],
        "handoff_takes": [f"tev-{number:05}" for number in range(4_000)],
        "handoff_claims": [f"claim-{number:05}" for number in range(4_000)],
        "handoff_threads": [f"thread-{number:05}" for number in range(4_000)],
    }
    found = handoffs.take_handoff(work.there, work.curie, hostile(work, **many))
    assert len(found.handoff.left_out) == 150
    longest = max(bodies(work.there), key=len)
    assert b'"kind":"task"' in longest, "the acceptance is short"


@pytest.mark.deep
def test_a_giver_with_too_many_tasks_and_claims_gives_fifty_and_names_the_rest(work: Work) -> None:
    """The limits of open tasks don't keep anybody from handing them over; the rest goes with the next one."""
    ada = Agent(work.here, "a:b:ada").caller
    callers = [work.planck, *(Agent(work.here, f"a:b:caller{number}").caller for number in range(2))]
    for number in range(54):
        work.clock.forward(1_000)
        made = new_task.create(work.here, callers[number % 3], f"Number {number}", to="a:b:ada")
        task_work.take(work.here, ada, made.task["task_id"])
    for number in range(3):
        claim_work.claim_paths(work.here, ada, [f"lib/{number}/**"])
    given = give_handoff.hand_over(work.here, ada, "Planck")
    assert (len(given.task["handoff_tasks"]), len(given.task["handoff_claims"])) == (50, 3)
    assert {each.reason for each in given.left_out} == {"a handoff has at most 50 of each kind"}
    handoffs.take_handoff(work.here, work.planck, given.task["task_id"])
    assert len(give_handoff.hand_over(work.here, ada, "Planck").task["handoff_tasks"]) == 4


def test_a_checkpoint_that_is_gone_is_named(work: Work) -> None:
    """Deleted after the handoff was written; the rest is accepted."""
    handoff = give_handoff.hand_over(work.here, work.bohr, "Curie").task["task_id"]
    upkeep.delete(work.here, work.bohr, [work.node_id])
    work.sync()
    found = handoffs.take_handoff(work.there, work.curie, handoff)
    assert found.handoff.checkpoint is None
    assert [(each.id, each.reason) for each in found.handoff.left_out] == [(work.node_id, "is deleted")]
    assert len(found.handoff.tasks) == 1


def test_a_checkpoint_that_became_sensitive_is_named_and_not_shown(work: Work) -> None:
    """Marked after the handoff was written: neither the offer nor the acceptance has its text."""
    handoff = give_handoff.hand_over(work.here, work.bohr, "Curie", "Go on").task["task_id"]
    edit.change(work.here, work.bohr, [work.node_id], sensitive=True)
    work.sync()
    offer = handoffs.show_handoff(work.there, handoff).handoff
    taken = handoffs.take_handoff(work.there, work.curie, handoff).handoff
    for found in (offer, taken):
        assert found.checkpoint is None
        assert (work.node_id, "is sensitive") in [(each.id, each.reason) for each in found.left_out]
        assert "half is done" not in found.text()


def test_a_long_checkpoint_of_a_peer_is_cut(work: Work) -> None:
    """Its command shows all of it."""
    written(
        work.there, "node", work.clock.value, id="mem-long", type="checkpoint", lifecycle="wu", wu_id="WU-7",
        content="x" * 60_000, sender_identity="x:y:mallory",
    )  # fmt: skip
    found = handoffs.take_handoff(
        work.there, work.curie, hostile(work, checkpoint="mem-long")
    ).handoff.checkpoint
    assert (len(found.content), found.is_cut, found.next) == (4_096, True, ["gitmem show mem-long"])


@pytest.mark.deep
def test_a_task_that_is_over_is_not_handed_over(work: Work) -> None:
    """A peer's earlier line with the id of the end that Bohr reported, and one that asks Bohr for work in Planck's name, are no records."""
    done = task_work.report(work.here, work.bohr, work.task_id, "completed", "12 cases")
    hides = {
        "event_id": done.event_id,
        "task_id": work.task_id,
        "event": "message",
        "sender_identity": "x:y:mallory",
    }
    written(work.there, "task_event", work.clock.value - HOUR, **hides)
    forged = {"task_id": "task-forged", "thread_id": "thread-forged", "message": "mine", "agent": BOHR,
              "sender_identity": work.planck.reader, "sender_session": work.planck.session_id}  # fmt: skip
    written(work.there, "task", work.clock.value, **forged)
    work.sync()
    with pytest.raises(UsageError, match="No such task"):
        task_work.take(work.here, work.bohr, "task-forged")
    assert give_handoff.Bundle(work.here, work.bohr, None).tasks == {}


@pytest.mark.parametrize(
    "forged", [{"sender_identity": "x:y:mallory"}, {"purpose": "handoff", "sender_identity": BOHR}]
)
def test_an_earlier_record_with_the_id_of_a_handoff_is_none(work: Work, forged: dict[str, str]) -> None:
    """Whether that is of another kind, or claims to be from the giver."""
    noether = Agent(work.here, "a:b:noether", name="Noether").caller
    id = give_handoff.hand_over(work.here, work.bohr, "Noether").task["task_id"]
    fields = {
        "thread_id": "thread-0001",
        "message": "mine",
        "agent": CURIE,
        "sender_session": "sess-mallory",
        **forged,
    }
    written(work.here, "task", work.clock.value - HOUR, task_id=id, **fields)
    given = handoffs.take_handoff(work.here, noether, id).handoff
    assert given is not None
    assert [each.task_id for each in given.tasks] == [work.task_id]


def test_a_handoff_of_the_last_moment_waits_to_the_end_of_time(work: Work) -> None:
    """A peer's line of the year 9999 hides no other handoff, and no work of anybody."""
    id = give_handoff.hand_over(work.here, work.bohr, "Curie").task["task_id"]
    work.sync()
    fields = {"thread_id": "thread-0001", "message": "yours", "purpose": "handoff", "agent": CURIE}
    written(work.there, "task", LAST_MICROS, task_id="task-hostile", sender_identity="x:y:mallory", **fields)
    found = handoffs.of_caller(work.there, work.curie).offered
    assert [each.task_id for each in found] == ["task-hostile", id]
    assert found[0].until == format_at(LAST_MICROS)
