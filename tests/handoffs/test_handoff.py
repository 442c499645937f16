"""Handoffs (M8): what is handed over, who has it when, and what each side learns, in clones that sync late."""

from __future__ import annotations

import pytest

from gitmem.agents import lifecycle, waiting_work
from gitmem.errors import GateError, UsageError
from gitmem.history import open_work
from gitmem.memory import checkpoints
from gitmem.order.task import FoldedTask
from gitmem.signals import inbox, send
from gitmem.store import Store
from gitmem.work import (
    claim_work,
    claims,
    give_handoff,
    handoffs,
    new_task,
    stuck,
    tables,
    task_decisions,
    task_list,
    task_rules,
    task_work,
)
from tests.sandbox import DAY, HOUR, Agent, bodies

from .conftest import BOHR, CURIE, DIRAC, PLANCK, Work


def given(work: Work, to: str = "Curie") -> str:
    handoff = give_handoff.hand_over(work.here, work.bohr, to).task["task_id"]
    work.sync()
    return handoff


def owners(store: Store) -> list[tuple[str, tuple[str, ...], str]]:
    return [
        (each.claim.owner[0], tuple(each.claim.record["paths"]), each.status)
        for each in claims.standing(store)
    ]


def holders(work: Work) -> set[tuple[str | None, bool]]:
    found = set()
    for store in (work.here, work.there):
        task = task_rules.require(store, work.task_id)
        found.add((task.holder.sender[0] if task.holder else None, task.conflict))
    return found


def unread(store: Store, reader: object) -> list[tuple[str, str]]:
    found = inbox.read(store, reader)  # type: ignore[arg-type]
    return [(each["intent"], each["message"]) for each in found.signals]


def test_all_that_is_open_is_offered_by_reference_and_nothing_moves_before_it_is_accepted(work: Work) -> None:
    """The checkpoint, the task with the giver's take, the claim, and the threads that wait on either side."""
    made = give_handoff.hand_over(work.here, work.bohr, "Curie")
    take = task_rules.require(work.here, work.task_id).holder
    assert take is not None
    task = made.task
    assert (task["purpose"], task["agent"], task["handoff_tasks"], task["handoff_takes"]) == (
        "handoff", CURIE, [work.task_id], [take.id],
    )  # fmt: skip
    assert (task["handoff_claims"], set(task["handoff_threads"]), task["checkpoint"]) == (
        [work.claim_id], {work.asked, work.asks}, work.node_id,
    )  # fmt: skip
    assert task["message"] == "The other half"
    assert (made.recorded, made.signaled, made.left_out) == (True, ["Curie"], [])
    assert made.warnings == [give_handoff.CLAIMS_END]
    assert made.bytes == max(
        len(line)
        for line in bodies(work.here)
        if task["task_id"].encode() in line and b'"kind":"task"' in line
    )
    work.sync()
    assert holders(work) == {(BOHR, False)}
    assert owners(work.there) == [(BOHR, ("src/**",), "held")]
    ((intent, message),) = unread(work.there, work.curie)
    assert intent == "PROPOSE"
    assert message.startswith(
        "The other half\n\nI hand over 1 task, 1 claim, 2 threads: gitmem task show task-"
    )


def test_an_offer_can_be_judged_before_it_is_accepted(work: Work) -> None:
    """The inbox's line and `task show` name the tasks, claims, threads and the checkpoint with its first words and date."""
    handoff = given(work)
    found = handoffs.show_handoff(work.there, handoff, work.curie)
    has = found.handoff
    assert [(each.task_id, each.title, each.state) for each in has.tasks] == [
        (work.task_id, "Write the tests", "working")
    ]
    assert [(each.claim_id, each.paths) for each in has.claims] == [(work.claim_id, ["src/**"])]
    assert {each.thread_id for each in has.threads} == {work.asked, work.asks}
    node = has.checkpoint
    assert (node.id, node.content, node.next_steps) == (work.node_id, "half is done", "The other half")
    assert (has.left_out, found.warnings) == ([], [])
    (row,) = handoffs.of_caller(work.there, work.curie).offered
    assert row.text == (
        f"Bohr offers (gitmem task show {handoff}): {work.task_id} (WU-7) Write the tests · claims src/** · "
        f"checkpoint {work.node_id} of {node.created_at[:10]}: half is done · 2 threads; next steps: The other half"
    )
    waiting = open_work.of_inbox(work.there, work.curie)
    assert waiting is not None
    assert waiting.lines([handoff]) == [f"handoff: {row.text}"], "also beside the message about it"
    assert task_rules.require(work.there, work.task_id).holder.sender[0] == BOHR  # type: ignore[union-attr]


def test_what_the_giver_has_no_more_is_named_with_the_reason(work: Work) -> None:
    """Bohr finishes the task, with which a claim ends, and releases another one meanwhile."""
    docs = claim_work.claim_paths(work.here, work.bohr, ["docs/**"], wu="WU-7", task_id="").claim_id
    handoff = given(work)
    task_work.report(work.here, work.bohr, work.task_id, "completed", "done after all")
    claim_work.release(work.here, work.bohr, [docs])
    work.sync()
    found = handoffs.show_handoff(work.there, handoff, work.curie)
    assert [(each.id, each.reason) for each in found.handoff.left_out] == [
        (work.task_id, "is finished: completed"),
        (work.claim_id, "has ended with its task"),
        (docs, "was released"),
    ]
    (offered,) = handoffs.of_caller(work.there, work.curie).offered
    assert "1 task, 2 claims, 2 threads" in handoffs.of_caller(work.here, work.bohr).given[0].text
    assert offered.has == "1 task, 2 claims, 2 threads"


def test_an_offer_names_what_is_somebody_elses_now_and_what_was_given_back(work: Work) -> None:
    """As its acceptance would; what this clone does not know does not count as gone."""
    handoff = given(work)
    task_work.release(work.here, work.bohr, work.task_id)
    reasons = [each.reason for each in handoffs.show_handoff(work.here, handoff).handoff.left_out]
    assert reasons == ["was given back"]
    ada = Agent(work.here, "a:b:ada").caller
    other = new_task.create(work.here, work.planck, "More", to="a:b:ada").task["task_id"]
    task_work.take(work.here, ada, other)
    record = {**task_rules.require(work.here, handoff).record, "handoff_tasks": [other]}
    assert [
        each.reason for each in handoffs.content_of(work.here, record, (BOHR, work.bohr.session_id)).left_out
    ] == ["is somebody else's now"]


def test_after_the_acceptance_it_shows_what_the_taker_got(work: Work) -> None:
    """A claim that did not move is left out, also when it is taken again."""
    handoff = given(work)
    claim_work.release(work.here, work.bohr, [work.claim_id])
    work.sync()
    handoffs.take_handoff(work.there, work.curie, handoff)
    for found in (
        handoffs.show_handoff(work.there, handoff).handoff,
        handoffs.take_handoff(work.there, work.curie, handoff).handoff,
    ):
        assert [each.task_id for each in found.tasks] == [work.task_id]
        assert [(each.id, each.reason) for each in found.left_out] == [(work.claim_id, "did not move")]
    second = give_handoff.hand_over(work.there, work.curie, "Dirac", "On").task["task_id"]
    task_decisions.cancel(work.there, work.curie, second)
    assert handoffs.show_handoff(work.there, second).handoff is None


def test_who_accepts_has_the_task_and_the_claims_and_the_giver_is_told(work: Work) -> None:
    """One entry with the take, its end, the moved claim with its end, and the answer; a second take shows it again."""
    handoff = given(work)
    before = set(bodies(work.there))
    found = handoffs.take_handoff(work.there, work.curie, handoff, lease=HOUR)
    (claim,) = found.handoff.claims
    assert [each.task_id for each in found.handoff.tasks] == [work.task_id]
    assert (claim.claim_id != work.claim_id, claim.paths) == (True, ["src/**"])
    assert found.handoff.checkpoint.content == "half is done"
    assert found.handoff.checkpoint.next_steps == "The other half"
    assert {each.thread_id: each.next for each in found.handoff.threads} == {
        each: [f"gitmem thread {each}"] for each in (work.asked, work.asks)
    }
    assert len(set(bodies(work.there)) - before) == 5
    again = handoffs.take_handoff(work.there, work.curie, handoff)
    assert (again.recorded, again.event_id) == (False, found.event_id)
    assert [each.task_id for each in again.handoff.tasks] == [work.task_id]
    assert (len(again.handoff.claims), again.next) == (1, found.next)

    work.sync()
    assert holders(work) == {(CURIE, False)}
    for store in (work.here, work.there):
        assert owners(store) == [(CURIE, ("src/**",), "held")]
        (moved,) = claims.standing(store)
        old = tables.folded_claim(store.db(), work.claim_id)
        assert old is not None and moved.claim.until == old.until
    assert ("AGREE", f"I accept {handoff}") in unread(work.here, work.bohr)
    assert open_work.Concerns(work.here, work.bohr).asking == [], "an accepted handoff waits for nobody"
    with pytest.raises(UsageError, match="is held by a:b:curie"):
        task_work.report(work.here, work.bohr, work.task_id, "completed", "late")
    task_work.report(work.there, work.curie, work.task_id, "completed", "12 cases")
    assert task_rules.require(work.there, work.task_id).state == "completed"


def test_what_the_giver_reports_without_having_seen_the_acceptance_is_late(work: Work) -> None:
    """The giver goes on offline; the taker's result counts on all clones."""
    handoff = given(work)
    handoffs.take_handoff(work.there, work.curie, handoff)
    task_work.report(work.here, work.bohr, work.task_id, "completed", "by the giver")
    work.sync()
    task_work.report(work.there, work.curie, work.task_id, "completed", "by the taker")
    work.sync()
    for store in (work.here, work.there):
        task = task_rules.require(store, work.task_id)
        assert task.outcome is not None
        assert task.outcome.record.get("message") == "by the taker"
        assert [each.record.get("message") for each in task.late] == ["by the giver"]
        assert handoffs.of_caller(store, work.curie).void == []


def test_what_its_caller_has_sealed_stands_and_the_taker_is_told(work: Work) -> None:
    """M8: the acceptance of that task alone is void."""
    handoff = given(work)
    handoffs.take_handoff(work.there, work.curie, handoff)
    task_work.report(work.here, work.bohr, work.task_id, "completed", "by the giver")
    task_decisions.seal_task(work.here, work.planck, work.task_id)
    work.sync()
    for store in (work.here, work.there):
        task = task_rules.require(store, work.task_id)
        assert (task.outcome.record.get("message") if task.outcome else None, task.decided_by) == (
            "by the giver",
            "seal",
        )
    (told,) = handoffs.of_caller(work.there, work.curie).void
    assert (told.task_id, told.handoff_id, told.next) == (
        work.task_id,
        handoff,
        [f"gitmem task show {work.task_id}"],
    )
    assert (
        told.text
        == f"{work.task_id} is not yours: Planck had decided it (completed) before you accepted {handoff}."
    )
    assert waiting_work.is_any(work.there.db(), waiting_work.values_for(work.curie, work.there.now())), (
        "an empty inbox looks further"
    )
    waiting = open_work.of_inbox(work.there, work.curie)
    assert waiting is not None
    assert waiting.lines() == [f"void: {told.text}"]
    assert handoffs.of_caller(work.there, work.dirac).void == []
    assert open_work.of_inbox(work.there, work.dirac) is None
    (left,) = handoffs.take_handoff(work.there, work.curie, handoff).handoff.left_out
    assert (left.id, left.reason) == (work.task_id, "is finished: completed")
    work.clock.forward(3 * DAY)
    assert handoffs.of_caller(work.there, work.curie).void == []
    assert open_work.of_inbox(work.there, work.curie) is None


def test_an_acceptance_beats_a_withdrawal_that_had_not_seen_it(work: Work) -> None:
    """The handoff reads accepted on both clones, wherever it is shown, and nothing is taken back."""
    handoff = given(work)
    handoffs.take_handoff(work.there, work.curie, handoff)
    task_decisions.cancel(work.here, work.bohr, handoff)
    work.sync()
    assert holders(work) == {(CURIE, False)}
    assert owners(work.here) == [(CURIE, ("src/**",), "held")]
    for store in (work.here, work.there):
        found = handoffs.show_handoff(store, handoff, work.bohr)
        assert (found.state, found.state_text, found.late, found.next) == ("completed", "accepted", [], [])
        (row,) = (each for each in task_list.list_tasks(store).tasks if each.task_id == handoff)
        assert (row.state, row.state_text, row.late, row.cancel_requested) == (
            "completed",
            "accepted",
            0,
            False,
        )
    assert handoffs.of_caller(work.here, work.bohr).given == []
    assert open_work.Concerns(work.here, work.bohr).asking == []
    with pytest.raises(UsageError, match="is finished: accepted"):
        task_decisions.cancel(work.here, work.bohr, handoff)


def test_an_accepted_handoff_is_not_closed(work: Work) -> None:
    """Its tasks and claims have moved, which a close would not take back; nor where only the end of the acceptance has arrived."""
    handoff = given(work)
    handoffs.take_handoff(work.there, work.curie, handoff)
    work.sync()
    again = Agent(work.here, BOHR).caller
    with pytest.raises(UsageError, match=r"was accepted by .*which no close takes back.*Nothing was written"):
        task_decisions.close(work.here, again, handoff, "stale", state="canceled")
    assert handoffs.show_handoff(work.here, handoff, work.bohr).state_text == "accepted"
    known = task_rules.require(work.here, handoff)
    partly = FoldedTask(known.record, (each for each in known.events.values() if each.event != "take"))
    assert not partly.takes
    refusal = task_rules.close(partly, (BOHR, "sess-another"))
    assert refusal is not None and "not here yet" in refusal[1]
    assert task_rules.withdraw(FoldedTask(known.record, ())) is None


@pytest.mark.parametrize("answer", ["accept", "wait", "refuse", "withdraw"])
def test_a_handoff_is_never_stuck(work: Work, answer: str) -> None:
    """Without an answer it is returned to its giver; with one it waits for nobody, also after the giver's session has ended."""
    handoff = given(work)
    if answer == "accept":
        handoffs.take_handoff(work.there, work.curie, handoff)
    elif answer == "refuse":
        task_work.reject(work.there, work.curie, handoff)
    elif answer == "withdraw":
        task_decisions.cancel(work.here, work.bohr, handoff)
    work.sync()
    lifecycle.end(work.here, work.bohr)
    work.sync()
    work.clock.forward(2 * DAY)
    for store in (work.here, work.there):
        assert {each.task.task_id for each in stuck.find(store).stuck} == {work.task_id}


def test_the_giver_is_told_if_two_accepted(work: Work) -> None:
    """With the command that shows it; nobody seals a handoff."""
    lifecycle.change(work.here, work.planck, role="reviewer/test")
    handoff = given(work, "role:reviewer/test")
    handoffs.take_handoff(work.there, work.curie, handoff)
    handoffs.take_handoff(work.here, work.planck, handoff)
    work.sync()
    (line,) = (
        each
        for each in open_work.Concerns(work.here, work.bohr).lines()
        if each.startswith("waits for you: ")
    )
    assert line.endswith(f", several hold it; next: gitmem task show {handoff}")


def test_what_is_withdrawn_refused_or_old_stays_with_the_giver(work: Work) -> None:
    """And can be offered again."""
    handoff = given(work)
    task_decisions.cancel(work.here, work.bohr, handoff)
    work.sync()
    with pytest.raises(UsageError, match="is finished: canceled"):
        handoffs.take_handoff(work.there, work.curie, handoff)

    handoff = given(work)
    assert task_work.reject(work.there, work.curie, handoff, "no time").state == "rejected"
    work.sync()
    assert ("REJECT", "no time") in unread(work.here, work.bohr)
    assert handoffs.of_caller(work.here, work.bohr).given == []

    lifecycle.change(work.there, work.curie, role="reviewer/test")
    handoff = given(work, "role:reviewer/test")
    assert [each.task_id for each in handoffs.of_caller(work.there, work.curie).offered] == [handoff]
    task_work.reject(work.there, work.curie, handoff)
    assert handoffs.of_caller(work.there, work.curie).offered == []
    task_decisions.cancel(work.here, work.bohr, handoff)

    handoff = given(work)
    work.clock.forward(DAY)
    with pytest.raises(UsageError, match="had to begin before"):
        handoffs.take_handoff(work.there, work.curie, handoff)
    assert holders(work) == {(BOHR, False)}


def test_two_who_accept_one_handoff_apart_both_have_it_and_contest_its_claims(work: Work) -> None:
    """Offline clones can't ask each other; nobody wins by a clock, and a third one is refused."""
    third = work.planck
    lifecycle.change(work.here, third, role="reviewer/test")
    handoff = given(work, "role:reviewer/test")
    handoffs.take_handoff(work.there, work.curie, handoff)
    handoffs.take_handoff(work.here, third, handoff)
    work.sync()
    assert {each[1] for each in holders(work)} == {True}
    assert {status for _, _, status in owners(work.here)} == {"contested"}
    assert {who for who, _, _ in owners(work.there)} == {CURIE, PLANCK}
    with pytest.raises(GateError, match="was accepted by"):
        handoffs.take_handoff(work.there, work.dirac, handoff)


def test_a_chain_of_handoffs_moves_the_task_twice(work: Work) -> None:
    """Who accepted a task may hand it over."""
    handoffs.take_handoff(work.there, work.curie, given(work))
    second = give_handoff.hand_over(work.there, work.curie, "Dirac")
    assert (second.task["handoff_tasks"], len(second.task["handoff_claims"])) == ([work.task_id], 1)
    handoffs.take_handoff(work.there, work.dirac, second.task["task_id"])
    work.sync()
    assert holders(work) == {(DIRAC, False)}
    assert owners(work.here) == [(DIRAC, ("src/**",), "held")]


def test_only_one_work_unit_is_handed_over(work: Work) -> None:
    """The rest is named with its reason; an unknown unit has nothing."""
    claim_work.claim_paths(work.here, work.bohr, ["docs/**"], wu="WU-8")
    made = give_handoff.hand_over(work.here, work.bohr, "Curie", "Go on", wu="wu-7", dry_run=True)
    assert made.task["handoff_claims"] == [work.claim_id]
    assert "handoff_threads" not in made.task
    assert {each.reason for each in made.left_out} == {"belongs to WU-8", "does not belong to wu-7"}
    with pytest.raises(UsageError, match="nothing of WU-9 to hand over"):
        give_handoff.hand_over(work.here, work.bohr, "Curie", wu="WU-9")


def test_a_handoff_without_text_says_how_much_it_has(work: Work) -> None:
    """If no checkpoint has next steps; its first line is the title in lists and commits."""
    ada = Agent(work.here, "a:b:ada").caller
    node = checkpoints.checkpoint(work.here, ada, "half is done", diff_stat=False).node
    assert (
        give_handoff.hand_over(work.here, ada, "Curie", dry_run=True).task["message"]
        == f"Take over from checkpoint {node.id}"
    )
    claim_work.claim_paths(work.here, ada, ["docs/**"])
    send.send(work.here, ada, "May I?", to=["Planck"], intent="propose")
    assert give_handoff.hand_over(work.here, ada, "Curie").task["message"] == "Take over 1 claim, 1 thread"


def test_a_dry_run_writes_nothing(work: Work) -> None:
    """It has the same content and size."""
    before = bodies(work.here)
    made = give_handoff.hand_over(work.here, work.bohr, "Curie", dry_run=True)
    assert bodies(work.here) == before
    assert (made.recorded, made.signal_id, made.next) == (False, None, ["gitmem handoff --to Curie"])
    assert made.bytes == give_handoff.hand_over(work.here, work.bohr, "Curie").bytes


def test_what_was_offered_already_and_what_is_sensitive_is_left_out(work: Work) -> None:
    """A second handoff of the same work would have two takers."""
    from gitmem.memory import edit

    first = given(work)
    edit.change(work.here, work.bohr, [work.node_id], sensitive=True)
    with pytest.raises(UsageError) as refused:
        give_handoff.hand_over(work.here, work.bohr, "Dirac")
    assert refused.value.code == "nothing-to-hand-over"
    assert f"{work.node_id} is sensitive, and 4 more" in str(refused.value)
    task_decisions.cancel(work.here, work.bohr, first)
    made = give_handoff.hand_over(work.here, work.bohr, "Dirac")
    assert "checkpoint" not in made.task
    assert [(each.id, each.reason) for each in made.left_out] == [(work.node_id, "is sensitive")]


def test_the_claims_of_a_giver_whose_session_has_ended_move_unless_somebody_else_has_the_paths(
    work: Work,
) -> None:
    """A claim ends with its session; an accepted one begins again, with the same end."""
    handoff = given(work)
    ended = give_handoff.end_session(work.here, work.bohr)
    assert (ended.remark or "").endswith(
        f"Left open: 1 task. Ended with it: 1 claim. {handoff} is not accepted: until then others may claim its paths."
    )
    work.sync()
    assert ended.recorded and owners(work.there) == []
    claim_work.claim_paths(work.there, work.dirac, ["src/tax.py"])
    found = handoffs.take_handoff(work.there, work.curie, handoff)
    assert found.handoff.claims == []
    (left,) = found.handoff.left_out
    assert left.id == work.claim_id and left.reason.startswith("is lost: Dirac claims src/tax.py")
    assert [each.task_id for each in found.handoff.tasks] == [work.task_id]


def test_a_claim_of_an_ended_session_moves(work: Work) -> None:
    """Nobody else has its paths."""
    handoff = given(work)
    lifecycle.end(work.here, work.bohr)
    work.sync()
    assert len(handoffs.take_handoff(work.there, work.curie, handoff).handoff.claims) == 1
    assert owners(work.there) == [(CURIE, ("src/**",), "held")]


def test_a_handoff_to_a_role_that_nobody_holds_waits_for_whoever_takes_it(work: Work) -> None:
    """As a delegation (M5): no signal, and a note."""
    made = give_handoff.hand_over(work.here, work.bohr, "role:implementer/docs")
    assert (made.signal_id, made.signaled, made.to) == (None, [], "role:implementer/docs")
    assert "Nobody holds this role now: no signal was sent." in " ".join(made.warnings)
    work.sync()
    assert handoffs.of_caller(work.there, work.curie).offered == []
    lifecycle.change(work.there, work.curie, role="implementer/docs")
    from tests.sandbox import acting

    curie = acting(work.there, work.curie.session_id or "")
    (row,) = handoffs.of_caller(work.there, curie).offered
    handoffs.take_handoff(work.there, curie, row.task_id)
    work.sync()
    assert holders(work) == {(CURIE, False)}
    assert f"I accept {row.task_id}" in [message for _, message in unread(work.here, work.bohr)]


def test_a_task_that_is_no_handoff_is_only_taken(work: Work) -> None:
    """Taking it ends nothing."""
    more = new_task.create(work.here, work.planck, "More", to=BOHR).task["task_id"]
    assert handoffs.take_handoff(work.here, work.bohr, more).handoff is None
    assert task_rules.require(work.here, more).state == "working"


def test_a_claim_of_a_task_goes_with_it_whatever_its_work_unit(work: Work) -> None:
    """A claim without a unit, on the task that is handed over."""
    claimed = claim_work.claim_paths(work.here, work.bohr, ["lib/**"], task_id=work.task_id).claim_id
    made = give_handoff.hand_over(work.here, work.bohr, "Curie", wu="WU-7", dry_run=True)
    assert set(made.task["handoff_claims"]) == {work.claim_id, claimed}


def test_what_another_session_of_the_giver_has_is_left_out(work: Work) -> None:
    """The fold accepts only takes of the session that gives; what the other session offers does not count as offered."""
    given(work)
    again = Agent(work.here, BOHR).caller
    claim_work.claim_paths(work.here, again, ["docs/**"])
    made = give_handoff.hand_over(work.here, again, "Curie", "Go on", dry_run=True)
    assert "handoff_tasks" not in made.task
    assert (work.task_id, "was taken by another session of yours") in [
        (each.id, each.reason) for each in made.left_out
    ]


def test_a_task_without_a_sealed_result_is_not_handed_over(work: Work) -> None:
    """Finished, though nobody has confirmed it; after a day without an answer the rest can be offered again."""
    given(work)
    work.clock.forward(DAY + HOUR)
    again = give_handoff.hand_over(work.here, work.bohr, "Curie", dry_run=True)
    assert again.task["handoff_tasks"] == [work.task_id]
    task_work.report(work.here, work.bohr, work.task_id, "completed", "ok")
    made = give_handoff.hand_over(work.here, work.bohr, "Curie", dry_run=True)
    assert "handoff_tasks" not in made.task


def test_a_checkpoint_that_is_offered_already_is_left_out(work: Work) -> None:
    """With new work beside it."""
    first = given(work)
    claim_work.claim_paths(work.here, work.bohr, ["docs/**"])
    made = give_handoff.hand_over(work.here, work.bohr, "Dirac", "Go on", dry_run=True)
    assert "checkpoint" not in made.task
    assert (work.node_id, f"is offered already by {first}") in [
        (each.id, each.reason) for each in made.left_out
    ]


def test_the_end_of_a_session_names_only_what_it_leaves_open_itself(work: Work) -> None:
    """Not a claim that has ended, and not what another session of the giver offers: `standing` has no ended claim of this clone."""
    offered = given(work)
    again = Agent(work.here, BOHR).caller
    claim_work.claim_paths(work.here, again, ["docs/**"], lease=3 * HOUR)
    left = give_handoff.end_session(work.here, again).remark
    assert (
        left is not None
        and "Ended with it: 1 claim. " in left
        and "Left open" not in left
        and offered not in left
    )
    work.clock.forward(2 * HOUR + 1)
    left = give_handoff.end_session(work.here, work.bohr).remark
    assert left is not None and "Left open: 1 task. " in left


def test_the_last_question_of_a_thread_to_somebody_decides_its_work_unit(work: Work) -> None:
    """Neither an earlier one, nor a later one to everybody, which waits for nobody's answer."""
    asked = send.send(work.here, work.bohr, "May I?", to=["Planck"], intent="propose", wu="WU-8").signal
    thread = asked["thread_id"]
    for to, wu in (["Planck"], "WU-7"), ([], "WU-9"):
        work.clock.forward(1_000_000)
        send.send(
            work.here, work.bohr, "And now?", to=to, broadcast=not to, requires_ack=True, wu=wu, thread=thread
        )
    assert give_handoff.Bundle(work.here, work.bohr, "WU-7").threads == [thread]


def test_a_task_that_ended_before_the_acceptance_is_named_as_finished(work: Work) -> None:
    """Its giver has reported the end; a task that is no handoff hands nothing over."""
    handoff = given(work)
    task_work.report(work.here, work.bohr, work.task_id, "completed", "12 cases")
    work.sync()
    found = handoffs.take_handoff(work.there, work.curie, handoff).handoff
    assert (work.task_id, "is finished: completed") in [(each.id, each.reason) for each in found.left_out]
    assert handoffs.show_handoff(work.there, work.task_id).handoff is None


def test_a_session_that_leaves_nothing_ends_without_a_remark(work: Work) -> None:
    """Planck has asked for work, and has none."""
    assert "Left open" not in (give_handoff.end_session(work.here, work.planck).remark or "")


def test_a_contested_claim_moves_and_stays_contested(work: Work) -> None:
    """Whoever contests it has as much right as before, and the giver gives what it has."""
    docs = claim_work.claim_paths(work.here, work.bohr, ["docs/**"]).claim_id
    claim_work.claim_paths(work.there, work.dirac, ["docs/a.md"])
    work.sync()
    found = handoffs.take_handoff(work.there, work.curie, given(work)).handoff
    assert docs not in [each.id for each in found.left_out]
    assert {(who, status) for who, paths, status in owners(work.there) if paths[0].startswith("docs")} == {
        (CURIE, "contested"),
        (DIRAC, "contested"),
    }
