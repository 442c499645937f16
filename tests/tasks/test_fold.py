"""The fold of a task: rules T1 to T9 of docs/format.md section 15, each by a story that needs it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from gitmem.records.ids import new_id
from gitmem.work import READ_MAX
from gitmem.work.task_records import AFTER_MAX, after

from ..signing import ANNA, MALLORY
from .events_by_hand import BEGINNING, CALLER, SECOND, Task, at, described, write

BOHR, CURIE = "codex:worker:bohr", "claude:worker:curie"
PERSON = "human:ada@example.org"


def test_a_task_goes_from_submitted_to_completed() -> None:
    """R17, I7: submitted, working under a take, completed unconfirmed, completed by the caller's seal."""
    task = Task()
    assert (task.fold().state, task.fold().holder) == ("submitted", None)
    take = task.take(BOHR, 1)
    assert (task.fold().state, task.fold().holder) == ("working", take)
    done = task.status(BOHR, 2, "completed", take, message="12 cases")
    folded = task.fold()
    assert (folded.state, folded.decided_by, folded.outcome) == ("completed", "status", done)
    task.seal(3, done)
    folded = task.fold()
    assert (folded.state, folded.decided_by, folded.outcome) == ("completed", "seal", done)


def test_t1_a_take_beside_a_lease_that_its_writer_had_seen_is_void() -> None:
    """One pickup wins: the second writer knew of the first."""
    task = Task()
    first = task.take(BOHR, 1)
    second = task.take(CURIE, 2)
    folded = task.fold()
    assert (folded.takes, folded.void, folded.holder, folded.conflict) == ([first], [second], first, False)


@pytest.mark.parametrize(
    ("who", "state"), [(f"x:y:z@{MALLORY.writer}", "input-required"), (BOHR, "submitted")]
)
def test_nobody_else_orders_what_is_done_about_a_task(who: str, state: str) -> None:
    """The caller's message is no answer to a question that only somebody else's event leads to: the addressee's own one may."""
    task = Task(agent=BOHR)
    take = task.take(BOHR, 1)
    asked = task.status(BOHR, 3, "input-required", take)
    between = task.add("message", who, 2, seen=[asked], message="hm")
    task.add("message", CALLER, 4, seen=[take, between], message="Go on.")
    assert task.fold().state == state


def test_events_of_others_push_nothing_out_of_what_a_writer_names() -> None:
    """Of more heads than a line names those of who has to do with the task come first, whatever time others write."""
    task = Task(agent=BOHR)
    take = task.take(BOHR, 1)
    for number in range(AFTER_MAX):
        task.add("message", f"x:y:z{number}@{MALLORY.writer}", 100 + number, seen=[], message="hm")
    caller = SimpleNamespace(reader=CALLER, session_id=None)
    assert take.id in after(task.fold(), caller)  # type: ignore[arg-type]


@pytest.mark.parametrize("why", ["lapsed", "released", "failed", "renewed", "renewed unseen"])
def test_t1_a_take_after_the_end_of_another_is_valid(why: str) -> None:
    """A lapsed lease, a release and a retryable failure free a task; a renewal that the writer had seen does not."""
    task = Task()
    first = task.take(BOHR, 1)
    seen = [first]
    if why == "released":
        seen = [task.add("release", BOHR, 2, take=first.id)]
    elif why == "failed":
        seen = [task.status(BOHR, 2, "failed", first, retryable=True)]
    elif why.startswith("renewed"):
        renewed = task.add("renew", BOHR, 50, take=first.id, until=at(200))
        seen = [renewed] if why == "renewed" else seen
    second = task.take(CURIE, 3 if why in ("released", "failed") else 70, seen=seen)
    folded = task.fold()
    if why == "renewed":
        assert folded.void == [second]
    else:
        assert folded.holder == second
        assert folded.state == "working"


def test_t1_a_take_after_an_end_that_its_writer_had_seen_is_void() -> None:
    """Nobody takes a finished task, even after the lease."""
    task = Task()
    first = task.take(BOHR, 1)
    task.status(BOHR, 2, "completed", first)
    late = task.take(CURIE, 500)
    assert task.fold().void == [late]


def test_t1_only_the_agent_takes_what_is_for_it_and_of_a_role_anybody() -> None:
    """A take of somebody else is void, also before there is another one, and what is reported under it ends nothing."""
    for addressed in ({"agent": BOHR}, {"target_role": "reviewer/docs"}):
        task = Task(**addressed)
        other = task.take(CURIE, 1)
        task.status(CURIE, 2, "completed", other)
        folded = task.fold()
        assert (folded.state, folded.takes) == (
            ("submitted", []) if "agent" in addressed else ("completed", [other])
        )
    task = Task(agent=BOHR)
    task.take(CURIE, 1)
    taken = task.take(BOHR, 2)
    assert (task.fold().holder, task.fold().conflict) == (taken, False)


def test_t1_another_session_of_the_writer_takes_what_is_for_a_session() -> None:
    """The session that a task is for has ended; its agent goes on in another one. No other writer's does."""
    session = new_id("sess", ANNA.writer)
    for who, is_valid in (
        (f"{BOHR}@{ANNA.writer}", True),
        (f"{BOHR}@{MALLORY.writer}", False),
        (BOHR, False),
    ):
        task = Task(caller=f"{CALLER}@{ANNA.writer}", agent=session)
        task.take(who, 1)
        assert bool(task.fold().takes) is is_valid


@pytest.mark.parametrize("event", ["close", "cancel"])
def test_m3_only_a_person_of_the_callers_writer_decides(event: str) -> None:
    """Also of a caller that is a session without an agent identity."""
    for caller in (f"{CALLER}@{ANNA.writer}", new_id("sess", ANNA.writer)):
        for writer, counts in ((ANNA.writer, True), (MALLORY.writer, False)):
            task = Task(caller=caller, writer=ANNA.writer)
            task.add(event, f"{PERSON}@{writer}", 1, **({"state": "failed"} if event == "close" else {}))
            assert bool(task.fold().close or task.fold().cancels) is counts


def test_t1_no_lease_is_longer_than_a_day() -> None:
    """A hostile or mistaken lease until the year 9999 does not hold a task for ever."""
    task = Task()
    task.take(BOHR, 1, lease=400 * 365 * 86_400)
    second = task.take(CURIE, 86_402)
    assert task.fold().holder == second


def test_t1_only_the_last_of_earlier_takes_speaks_against_a_new_one() -> None:
    """Bohr's lapsed lease, renewed too late, does not keep others from what Curie has taken over and given back."""
    task = Task()
    first = task.take(BOHR, 1)
    second = task.take(CURIE, 70)
    task.add("renew", BOHR, 75, take=first.id, until=at(900), seen=[first])
    task.add("release", CURIE, 80, take=second.id, seen=[second])
    third = task.take("codex:worker:dirac", 90)
    assert task.fold().holder == third


def test_t2_a_report_counts_only_under_the_valid_take_of_its_writer() -> None:
    """Another session, a void take, no take, or after a release: none of these ends a task."""
    task = Task()
    first = task.take(BOHR, 1)
    void = task.take(CURIE, 2)
    task.status(CURIE, 3, "completed", first)
    task.status(CURIE, 4, "completed", void)
    task.add("status", BOHR, 5, state="completed")
    task.status(BOHR, 6, "completed", first, sender_session="sess-other")
    assert task.fold().state == "working"
    task.add("release", BOHR, 7, take=first.id)
    task.status(BOHR, 8, "completed", first)
    assert task.fold().state == "submitted"


def test_t2_any_session_of_the_agent_may_release_its_take() -> None:
    """A restarted agent has another session; nobody else may give its work away."""
    task = Task()
    first = task.take(BOHR, 1)
    task.add("release", CURIE, 2, take=first.id)
    assert task.fold().holder == first
    task.add("release", BOHR, 3, take=first.id, sender_session="sess-other")
    assert task.fold().holder is None


def test_t2_a_refusal_needs_no_take_and_ends_only_what_was_for_that_agent() -> None:
    """Among several who have a role, the next one may still take it."""
    one, open_to_all = Task(agent=BOHR), Task(target_role="reviewer/docs")
    for task in (one, open_to_all):
        task.add("status", CURIE, 1, state="rejected")
        assert task.fold().state == "submitted"
        task.add("status", BOHR, 2, state="rejected")
    assert one.fold().state == "rejected"
    assert (open_to_all.fold().state, len(open_to_all.fold().rejections)) == ("submitted", 2)


def test_t2_a_refusal_counts_once_each_take_was_given_back_and_a_later_take_ends_it() -> None:
    """Its writer had seen the last take released; nobody rejects what another session has, or takes meanwhile."""
    task = Task(agent=BOHR)
    first = task.take(BOHR, 1)
    task.add("status", BOHR, 2, state="rejected", sender_session="sess-other")
    assert task.fold().state == "working"
    back = task.add("release", BOHR, 3, take=first.id)
    assert (task.fold().state, task.fold().rejection_by(back.sender)) == ("submitted", None)
    refused = task.add("status", BOHR, 4, state="rejected")
    assert (task.fold().state, task.fold().outcome) == ("rejected", refused)
    assert task.fold().rejection_by(refused.sender) == refused
    again = task.take(BOHR, 5, sender_session="sess-third", seen=[back])
    assert task.fold().state == "working"
    task.add("release", BOHR, 6, take=again.id, sender_session="sess-third")
    assert task.fold().state == "submitted"
    second = task.add("status", BOHR, 7, state="rejected")
    assert task.fold().outcome == second


def test_t2_a_refusal_needs_no_release_of_a_take_that_was_taken_over() -> None:
    """A session crashed; the next one of the agent took the task over after its lease, and gave it back."""
    task = Task(agent=BOHR)
    task.take(BOHR, 1)
    over = task.take(BOHR, 100, sender_session="sess-next")
    task.add("release", BOHR, 101, take=over.id, sender_session="sess-next")
    task.add("status", BOHR, 102, state="rejected", sender_session="sess-next")
    assert task.fold().state == "rejected"


def test_t3_the_seal_decides_whatever_arrives() -> None:
    """I7: no result that the caller had acted on changes, also not by an earlier report that comes late."""
    task = Task()
    first = task.take(BOHR, 5, seen=[])
    second = task.take(CURIE, 6, seen=[])
    done = task.status(CURIE, 8, "completed", second, seen=[second])
    task.seal(9, done, seen=[done])
    failed = task.status(BOHR, 7, "failed", first, seen=[first])
    folded = task.fold()
    assert (folded.state, folded.outcome, folded.late) == ("completed", done, [failed])
    del task.events["tev-0003"]  # the seal
    assert task.fold().outcome == failed


def test_t3_a_seal_holds_where_its_outcome_is_not_here_yet() -> None:
    """A part of the events may come first: the state is that of the seal at once."""
    task = Task()
    take = task.take(BOHR, 1)
    done = task.status(BOHR, 2, "completed", take)
    task.seal(3, done)
    del task.events[done.id]
    folded = task.fold()
    assert (folded.state, folded.decided_by, folded.outcome) == ("completed", "seal", None)


def test_t3_nobody_replaces_the_text_of_a_sealed_outcome() -> None:
    """A second line of the same event id, lower and later written, is not what the caller had seen."""
    task = Task()
    take = task.take(BOHR, 2)
    done = task.status(BOHR, 3, "completed", take, message="12 cases")
    task.seal(4, done)
    other = write("status", BOHR, 1, event_id=done.id, task_id=task.record["task_id"], take=take.id, state="failed",
                  message="nothing works")  # fmt: skip
    outcome = task.fold([other]).outcome
    assert outcome is not None
    assert outcome.record.get("message") == "12 cases"
    assert task.fold([other]).state == "completed"


@pytest.mark.parametrize("who", [BOHR, CALLER])
def test_m3_only_the_session_that_wrote_the_task_seals(who: str) -> None:
    """Neither another agent nor another session of the same identity seals."""
    task = Task()
    take = task.take(BOHR, 1)
    done = task.status(BOHR, 2, "completed", take)
    failed = task.status(BOHR, 3, "failed", take)
    task.seal(4, failed, sender_identity=who, sender_session="sess-other")
    assert (task.fold().decided_by, task.fold().outcome) == ("status", done)


def test_m3_a_close_counts_only_without_a_seal_and_both_are_shown() -> None:
    """A person closes beside an offline caller, whose seal wins when it arrives."""
    task = Task()
    take = task.take(BOHR, 1)
    done = task.status(BOHR, 2, "completed", take)
    close = task.add("close", PERSON, 3, state="failed", seen=[take], reason="the caller has ended")
    assert (task.fold().state, task.fold().decided_by) == ("failed", "close")
    task.add("close", CURIE, 1, state="canceled", seen=[])
    assert task.fold().close == close
    seal = task.seal(4, done, seen=[done])
    folded = task.fold()
    assert (folded.state, folded.seal, folded.close) == ("completed", seal, close)


def test_t4_concurrent_takes_are_a_conflict_with_one_holder() -> None:
    """The lowest holds; when one of them lets go, the conflict is over."""
    task = Task()
    first = task.take(BOHR, 1, seen=[])
    second = task.take(CURIE, 2, seen=[])
    assert (task.fold().holder, task.fold().conflict) == (first, True)
    task.add("release", BOHR, 3, take=first.id, seen=[first])
    assert (task.fold().holder, task.fold().conflict) == (second, False)


def test_t4_the_clock_does_not_decide_who_came_after_whom() -> None:
    """Curie's clock is an hour behind; she had seen that Bohr let go."""
    task = Task()
    first = task.take(BOHR, 3_600)
    task.add("release", BOHR, 3_601, take=first.id)
    second = task.take(CURIE, 1)
    assert (task.fold().holder, task.fold().conflict) == (second, False)


def test_t5_a_question_waits_for_the_caller_and_goes_back_to_the_holder() -> None:
    """input-required, then submitted to the same holder after the caller's message."""
    task = Task()
    take = task.take(BOHR, 1)
    asked = task.status(BOHR, 2, "input-required", take, message="Which rounding?")
    task.add("message", CALLER, 3, message="earlier thought", seen=[take])
    assert task.fold().state == "input-required"
    task.add("message", CALLER, 4, message="half up", seen=[asked])
    assert (task.fold().state, task.fold().holder) == ("submitted", take)
    task.status(BOHR, 5, "working", take)
    assert task.fold().state == "working"


def test_t6_cancel_without_a_take_is_final_by_the_callers_own_seal() -> None:
    """A taker that had not seen it is late; it loses nothing but the result's effect."""
    task = Task()
    cancel = task.add("cancel", CALLER, 1, reason="not needed")
    assert task.fold().state == "submitted"
    task.seal(2, cancel, state="canceled")
    assert task.fold().state == "canceled"
    offline = task.take(BOHR, 1.5, seen=[])
    done = task.status(BOHR, 3, "completed", offline, seen=[offline])
    folded = task.fold()
    assert (folded.state, folded.outcome, folded.late) == ("canceled", cancel, [done])


def test_t6_cancel_with_a_take_is_a_wish_that_the_holder_answers() -> None:
    """The holder may have finished meanwhile: then the first report counts."""
    task = Task()
    take = task.take(BOHR, 1)
    task.add("cancel", CALLER, 2, seen=[take])
    assert (task.fold().state, len(task.fold().cancels)) == ("working", 1)
    task.status(BOHR, 3, "canceled", take)
    assert task.fold().state == "canceled"


def test_t7_a_replaced_task_stands_only_if_somebody_took_it() -> None:
    """Untaken it is replaced; taken, both stand and both sides are told."""
    task = Task()
    folded = task.fold(replaced_by=["task-0002"])
    assert (folded.is_replaced, folded.stands_beside) == (True, False)
    task.take(BOHR, 1)
    folded = task.fold(replaced_by=["task-0002"])
    assert (folded.is_replaced, folded.stands_beside) == (False, True)


def test_t9_a_failure_that_was_tried_again_is_not_late() -> None:
    """It is part of the history; the second try gives the outcome."""
    task = Task()
    first = task.take(BOHR, 1)
    task.status(BOHR, 2, "failed", first, retryable=True)
    assert (task.fold().state, task.fold().decided_by) == ("failed", "status")
    second = task.take(CURIE, 3)
    assert task.fold().state == "working"
    done = task.status(CURIE, 4, "completed", second)
    assert (task.fold().outcome, task.fold().late) == (done, [])


def test_m8_the_acceptance_of_a_handoff_takes_the_task_although_the_giver_holds_it() -> None:
    """What the giver reports without having seen it is late."""
    task, handoff = Task(), Task("task-0009", caller=BOHR, purpose="handoff")
    given = task.take(BOHR, 1, lease=9_000)
    taken = handoff.accepted(handoff.take(CURIE, 5, event_id="tev-9001", after=[given.id]), given)
    assert task.fold([taken]).holder == taken
    assert task.fold([taken]).conflict is False
    reported = task.status(BOHR, 6, "completed", given, seen=[given])
    assert task.fold([taken]).state == "working"
    done = task.status(CURIE, 7, "completed", taken, seen=[taken])
    folded = task.fold([taken])
    assert (folded.outcome, folded.late) == (done, [reported])


def test_m8_what_the_caller_has_sealed_makes_the_acceptance_void() -> None:
    """The giver had finished, and its caller acted on that."""
    task, handoff = Task(), Task("task-0009", caller=BOHR, purpose="handoff")
    given = task.take(BOHR, 1, lease=9_000)
    taken = handoff.accepted(handoff.take(CURIE, 5, event_id="tev-9001", after=[given.id]), given)
    done = task.status(BOHR, 4, "completed", given, seen=[given])
    task.seal(6, done, seen=[done])
    folded = task.fold([taken])
    assert (folded.outcome, folded.void) == (done, [taken])


def test_m8_an_acceptance_beats_a_withdrawal_or_close_that_had_not_seen_it() -> None:
    """The handoff reads accepted; what is decided by somebody who had seen the acceptance counts, a seal of all others, too."""
    handoff = Task("task-0009", caller=BOHR, purpose="handoff", agent=CURIE)
    wish = handoff.add("cancel", BOHR, 2)
    withdrawn = handoff.seal(3, wish, state="canceled", seen=[wish])
    assert (handoff.fold().state, handoff.fold().decided_by) == ("canceled", "seal")
    taken = handoff.take(CURIE, 4, seen=[])
    done = handoff.status(CURIE, 5, "completed", taken, seen=[taken])
    handoff.add("close", "human:ada", 6, state="failed", seen=[wish])
    folded = handoff.fold()
    assert (folded.state, folded.decided_by, folded.outcome, folded.late) == ("completed", "status", done, [])
    assert (folded.seal, folded.close) == (None, None)
    sealed = handoff.seal(7, done, seen=[withdrawn, done])
    assert (handoff.fold().seal, handoff.fold().decided_by) == (sealed, "seal")
    assert Task("task-0001", caller=BOHR).fold().state == "submitted"


def test_m8_only_the_holder_hands_over() -> None:
    """A handoff of somebody else's take, or of a take that is not here, moves nothing."""
    task, handoff = Task(), Task("task-0009", caller=CURIE, purpose="handoff")
    given = task.take(BOHR, 1)
    mine = handoff.take(CURIE, 5, event_id="tev-9001", after=[given.id])
    assert task.fold([handoff.accepted(mine, given)]).holder == given
    missing = mine.accepting("tev-7777", given.sender)
    assert task.fold([missing]).holder == given


def test_cycles_in_what_writers_had_seen_survive() -> None:
    """A hostile writer names an event that names it back; the rest of the story stays."""
    task = Task()
    take = task.take(BOHR, 1)
    task.add("message", BOHR, 2, event_id="tev-7001", after=["tev-7002", take.id])
    task.add("message", BOHR, 3, event_id="tev-7002", after=["tev-7001"])
    task.add("message", BOHR, 4, event_id="tev-7003", after=["tev-7003"])
    done = task.status(BOHR, 5, "completed", take)
    assert task.fold().outcome == done
    swapped = Task()
    swapped.events = dict(reversed(task.events.items()))
    assert described(swapped.fold()) == described(task.fold())


def test_unknown_events_and_states_change_nothing_but_what_was_seen() -> None:
    """Those of a later version: kept, ordered, without effect."""
    task = Task()
    take = task.take(BOHR, 1)
    line = task.status(BOHR, 2, "completed", take).line
    from gitmem import records
    from gitmem.order.task import TaskEvent

    for old, new in ((b'"completed"', b'"archived"'), (b'"event":"status"', b'"event":"steal"')):
        record = records.read_kind("task_event", line.replace(old, new))
        assert record is not None
        task.events[record["event_id"]] = TaskEvent(record, line.replace(old, new))
        assert task.fold().state == "working"
        assert task.fold().decided_by is None


def test_a_flood_of_events_costs_little_and_takes_no_seal_away() -> None:
    """M11: a peer writes thousands of takes, reports and renewals that all know each other, before the real ones."""
    task = Task()
    flood = []
    for number in range(4 * READ_MAX):
        id = f"tev-f{number:05}"
        after = [f"tev-f{max(number - 1, 0):05}", f"tev-f{number // 2:05}"]
        event = ("take", "status", "renew", "seal")[number % 4]
        flood.append(write(event, CURIE, -100 + number / 100_000, event_id=id, task_id=task.record["task_id"], after=after,
                           take=f"tev-f{number - number % 4:05}", state="failed", until=at(0)))  # fmt: skip
    take = task.take(BOHR, 1, seen=[])
    done = task.status(BOHR, 2, "completed", take)
    task.seal(3, done)
    began = time.process_time()
    folded = task.flooded(flood)
    assert time.process_time() - began < 2
    assert (folded.state, folded.decided_by) == ("completed", "seal")
    assert folded.left_out > 0


def test_a_date_that_does_not_exist_is_no_lease() -> None:
    """The 30th of February in a line written by hand ends at once."""
    task = Task()
    task.add("take", BOHR, 1, until="2026-02-30T00:00:00.000000Z")
    second = task.take(CURIE, 2)
    assert task.fold().holder == second
    assert BEGINNING % SECOND == 0
