"""Claims as their owners and others see them: held, refused, contested, over, released."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import gitmem
from gitmem import records
from gitmem.agents import audits, caller, lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.errors import GateError, UsageError
from gitmem.log.lines import CommitMessage, format_at
from gitmem.store import Store
from gitmem.sync import autosync
from gitmem.work import claim_work, claims, edit_guard, new_task, task_decisions, task_work
from tests.sandbox import (
    HOUR,
    MINUTE,
    Agent,
    Clock,
    acting,
    annas,
    bodies,
    carry,
    new_repo,
    open_store,
    worktree,
)

from ..signing import own_key
from .conftest import BOHR, CURIE, PLANCK


def states(store: Store) -> dict[str, str]:
    """The status of what stands, by owner."""
    return {each.claim.owner[0]: each.status for each in claims.standing(store)}


def test_a_claim_that_its_writer_has_seen_is_refused_to_others(store: Store) -> None:
    """The owner, its agent and sessions of one task may claim; others may claim what does not overlap."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    first = claim_work.claim_paths(store, bohr, ["src/prices/**"], reason="rounding", wu="WU-7")
    with pytest.raises(GateError, match=r'claims src/prices/\*\*.*"rounding" \(WU-7\)') as refused:
        claim_work.claim_paths(store, curie, ["src/prices/round.py"])
    assert refused.value.status == 1
    assert len(claim_work.list_claims(store).claims) == 1
    claim_work.claim_paths(store, curie, ["docs"])
    claim_work.claim_paths(store, bohr, ["src/prices/round.py"])
    assert set(states(store).values()) == {"held"}
    claim_work.release(store, bohr)
    assert claim_work.claim_paths(store, curie, ["src/prices/round.py"]).claim_id != first.claim_id


def test_shared_claims_stand_beside_each_other(store: Store) -> None:
    """An exclusive one does not."""
    bohr, curie, planck = (Agent(store, each).caller for each in (BOHR, CURIE, PLANCK))
    claim_work.claim_paths(store, bohr, ["src"], shared=True)
    claim_work.claim_paths(store, curie, ["src"], shared=True)
    with pytest.raises(GateError):
        claim_work.claim_paths(store, planck, ["src"])
    assert set(states(store).values()) == {"held"}


def test_the_same_paths_again_renew_the_claim(store: Store, clock: Clock) -> None:
    """No second claim; an earlier end does not shorten it."""
    bohr = Agent(store, BOHR).caller
    first = claim_work.claim_paths(store, bohr, ["src", "docs"])
    clock.forward(30 * MINUTE)
    again = claim_work.claim_paths(store, bohr, ["docs", "src"], lease=2 * HOUR)
    assert (again.claim_id, again.event) == (first.claim_id, "renew")
    assert claim_work.claim_paths(store, bohr, ["docs", "src"], lease=MINUTE).until == again.until


def test_concurrent_claims_have_no_winner(store: Store, far: Store, clock: Clock) -> None:
    """Neither clone had the other's claim: both are contested, on both clones, whoever was first by the clock."""
    bohr, curie = Agent(store, BOHR).caller, Agent(far, CURIE).caller
    claim_work.claim_paths(store, bohr, ["src/**"])
    clock.forward(MINUTE)
    claim_work.claim_paths(far, curie, ["src/a.py"])
    assert states(store) == {BOHR: "held"}
    carry(store, far)
    assert states(store) == states(far) == {BOHR: "contested", CURIE: "contested"}
    claim_work.release(store, bohr)
    carry(store, far)
    assert states(store) == states(far) == {CURIE: "held"}


def test_claims_of_one_agent_and_of_one_task_do_not_conflict(store: Store, far: Store) -> None:
    """One work unit alone does not exempt."""
    bohr, again = Agent(store, BOHR).caller, Agent(far, BOHR).caller
    task = str(new_task.create(store, bohr, "Write", target_role="implementer/test").task["task_id"])
    curie, planck = Agent(far, CURIE).caller, Agent(far, PLANCK).caller
    claim_work.claim_paths(store, bohr, ["src"], task_id=task, wu="WU-7")
    claim_work.claim_paths(far, again, ["src"], wu="WU-7")
    carry(store, far)
    claim_work.claim_paths(store, bohr, ["docs"], task_id=task, wu="WU-7")
    claim_work.claim_paths(far, curie, ["docs"], task_id=task)
    carry(store, far)
    assert {each.status for each in claims.standing(store)} == {"held"}
    claim_work.claim_paths(store, bohr, ["tests"], wu="WU-7")
    claim_work.claim_paths(far, planck, ["tests"], wu="WU-7")
    carry(store, far)
    assert [each.status for each in claims.standing(store)].count("contested") == 2


def test_a_claim_ends_by_release_time_session_and_task(store: Store, clock: Clock) -> None:
    """All four ends; time decides nothing that is stored."""
    agents = [Agent(store, annas(f"a:b:{number}")) for number in range(4)]
    task = str(
        new_task.create(store, agents[0].caller, "Write", target_role="implementer/test").task["task_id"]
    )
    for number, agent in enumerate(agents):
        claim_work.claim_paths(
            store,
            agent.caller,
            [f"src/{number}"],
            lease=(number + 1) * HOUR,
            task_id=task if number == 3 else None,
        )
    clock.forward(HOUR)
    assert list(states(store)) == [annas("a:b:1"), annas("a:b:2"), annas("a:b:3")]
    claim_work.release(store, agents[1].caller)
    lifecycle.end(store, agents[2].caller)
    assert list(states(store)) == [annas("a:b:3")]
    task_decisions.cancel(store, agents[0].caller, task)
    assert states(store) == {}


def test_a_claim_ends_with_the_one_open_task_of_its_session(store: Store) -> None:
    """Not of another session or with two open tasks, nor if none is asked for; a renewal keeps it."""
    bohr, again = Agent(store, BOHR).caller, Agent(store, BOHR).caller
    first, second = (
        str(new_task.create(store, again, text, target_role="implementer/test").task["task_id"])
        for text in ("Write", "Test")
    )
    assert claim_work.claim_paths(store, bohr, ["none"]).task_id is None
    task_work.take(store, bohr, first)
    made = claim_work.claim_paths(store, bohr, ["src"])
    assert made.task_id == first
    assert claim_work.claim_paths(store, bohr, ["left out"], task_id="").task_id is None
    assert claim_work.claim_paths(store, again, ["docs"]).task_id is None
    task_work.take(store, bohr, second)
    assert claim_work.claim_paths(store, bohr, ["two"]).task_id is None
    renewed = claim_work.claim_paths(store, bohr, ["src"])
    assert (renewed.event, renewed.task_id) == ("renew", first)

    task_work.report(store, bohr, first, "completed", "Done.")

    assert made.claim_id not in {each.claim_id for each in claim_work.list_claims(store).claims}
    assert claim_work.claim_paths(store, bohr, ["tests"]).task_id == second


def test_a_claim_of_another_work_unit_is_not_of_the_open_task(store: Store) -> None:
    """Or it would end, and be handed over, with work that it is not for. A task or claim without a unit fits any."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    for who, unit in ((bohr, "WU-7"), (curie, None)):
        made = new_task.create(
            store, who, "Write", target_role="implementer/test", **({"wu": unit} if unit else {})
        )
        task_work.take(store, who, str(made.task["task_id"]))
    named = [claim_work.claim_paths(store, who, [f"src/{number}"], wu=wu).task_id is not None
             for number, (who, wu) in enumerate([(bohr, "WU-8"), (bohr, "wu-7"), (bohr, None), (curie, "WU-8")])]  # fmt: skip
    assert named == [False, True, True, True]


def test_a_claim_for_a_task_is_of_the_task_s_work_unit(store: Store) -> None:
    """Not of its session's, which others would ask about the wrong work; unless it says another one, or none."""
    bohr = Agent(store, BOHR)
    lifecycle.change(store, bohr.caller, wu="WU-8")
    bohr_now = acting(store, bohr.caller.session_id or "")
    task_id = str(
        new_task.create(store, bohr_now, "Write", target_role="implementer/test", wu="WU-7").task["task_id"]
    )
    asked: list[dict[str, str | None]] = [
        {"task_id": task_id}, {"task_id": task_id, "wu": "WU-9"}, {"task_id": task_id, "wu": ""}, {},
    ]  # fmt: skip
    for number, options in enumerate(asked):
        claim_work.claim_paths(store, bohr_now, [f"src/{number}"], **options)  # type: ignore[arg-type]
    shown = {each.paths[0]: each.wu_id for each in claim_work.list_claims(store).claims}
    assert shown == {"src/0": "WU-7", "src/1": "WU-9", "src/2": None, "src/3": "WU-8"}


@pytest.mark.parametrize("claims_first", [True, False])
def test_claims_of_two_who_took_one_task_apart_are_contested(
    store: Store, far: Store, clock: Clock, claims_first: bool
) -> None:
    """Each of them does all of the task. Who works with one of them on it and did not take it is in nobody's way."""
    bohr, curie, planck = Agent(store, BOHR).caller, Agent(far, CURIE).caller, Agent(far, PLANCK).caller
    task = str(new_task.create(store, bohr, "Write", target_role="implementer/test").task["task_id"])
    carry(store, far)
    for place, who in ((store, bohr), (far, curie)):
        if claims_first:
            claim_work.claim_paths(place, who, ["src"], task_id=task)
        task_work.take(place, who, task)
        if not claims_first:
            claim_work.claim_paths(place, who, ["src"])
        clock.forward(MINUTE)
    claim_work.claim_paths(far, planck, ["src"], task_id=task)
    carry(store, far)
    assert states(store) == states(far) == {BOHR: "contested", CURIE: "contested", PLANCK: "held"}
    assert claim_work.claim_paths(store, bohr, ["src"]).warnings[0].endswith("contested.")
    task_work.release(store, bohr, task)
    carry(store, far)
    assert states(store) == states(far) == {CURIE: "held", PLANCK: "held"}


def test_who_took_a_task_after_a_lapsed_lease_is_refused_the_paths_of_the_first(
    store: Store, clock: Clock
) -> None:
    """It is perhaps at work still, and nobody holds the task with it. Once it gives the task up its claims of the task end."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    task = str(new_task.create(store, bohr, "Write", target_role="implementer/test").task["task_id"])
    task_work.take(store, bohr, task, lease=10 * MINUTE)
    claim_work.claim_paths(store, bohr, ["src"])
    other = claim_work.claim_paths(store, bohr, ["docs"], task_id="")
    clock.forward(11 * MINUTE)
    task_work.take(store, curie, task)
    with pytest.raises(GateError, match="Already claimed"):
        claim_work.claim_paths(store, curie, ["src"])
    (blocked,) = edit_guard.check_guard(store, [curie], ["src/a.py"], before_edit=True).blocks
    assert blocked.owner == BOHR
    task_work.release(store, curie, task)
    task_work.take(store, bohr, task)
    task_work.release(store, bohr, task)
    task_work.take(store, curie, task)
    assert claim_work.claim_paths(store, curie, ["src"]).task_id == task
    assert other.claim_id in {each.id for each in claims.standing(store)}


def test_who_failed_at_a_task_and_may_not_go_on_has_no_claims_of_it(store: Store) -> None:
    """Another agent takes the task again, which is open then, and claims the same paths."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    task = str(new_task.create(store, bohr, "Write", target_role="implementer/test").task["task_id"])
    task_work.take(store, bohr, task)
    claim_work.claim_paths(store, bohr, ["src"])
    task_work.report(store, bohr, task, "failed", "No tests here.", payload={"error": {"retryable": True}})
    task_work.take(store, curie, task)
    assert claim_work.claim_paths(store, curie, ["src"]).task_id == task
    assert states(store) == {CURIE: "held"}


def test_what_ended_elsewhere_is_perhaps_renewed_for_a_while(store: Store, far: Store, clock: Clock) -> None:
    """Its owner's clone may have renewed it. It refuses nobody; a later renewal then contests."""
    bohr, curie = Agent(store, BOHR).caller, Agent(far, CURIE).caller
    mine = claim_work.claim_paths(store, bohr, ["src"])
    carry(store, far)
    clock.forward(50 * MINUTE)
    claim_work.claim_paths(store, bohr, ["src"])  # renews it
    clock.forward(15 * MINUTE)
    assert (states(store), states(far)) == ({BOHR: "held"}, {BOHR: "perhaps renewed"})
    taken = claim_work.claim_paths(far, curie, ["src/a.py"])
    assert any("perhaps renewed" in each for each in taken.warnings)
    carry(store, far)
    assert states(far) == {BOHR: "contested", CURIE: "contested"}
    assert mine.claim_id in {each.id for each in claims.standing(far)}


def test_it_is_free_elsewhere_after_a_quarter_of_an_hour(store: Store, far: Store, clock: Clock) -> None:
    """And in its own clone at once."""
    claim_work.claim_paths(store, Agent(store, BOHR).caller, ["src"])
    carry(store, far)
    clock.forward(HOUR)
    assert (states(store), states(far)) == ({}, {BOHR: "perhaps renewed"})
    clock.forward(15 * MINUTE)
    assert states(far) == {}


def test_what_ended_since_the_last_sync_is_perhaps_renewed(store: Store, far: Store, clock: Clock) -> None:
    """M6: however long ago that was, until a sync shows what its owner's clone did; here the end is known."""
    claim_work.claim_paths(store, Agent(store, BOHR).caller, ["src"])
    carry(store, far)
    for one in (store, far):
        autosync.record_read(one.repo, clock() / 1e6)
    clock.forward(30 * HOUR)
    assert (states(store), states(far)) == ({}, {BOHR: "perhaps renewed"})
    assert claim_work.check_paths(far, None, ["src/a.py"]).free is False
    taken = claim_work.claim_paths(far, Agent(far, CURIE).caller, ["src/a.py"])
    assert any("perhaps renewed. Ask" in each for each in taken.warnings)
    autosync.record_read(far.repo, clock() / 1e6)
    assert states(far) == {CURIE: "held"}


def test_a_claim_without_a_session_ends_at_once_where_it_was_written(
    store: Store, far: Store, clock: Clock
) -> None:
    """A person without a session claims: elsewhere it is perhaps renewed."""
    person = caller.find(store, CallerClaims())
    assert person
    claim_work.claim_paths(store, person, ["src"])
    carry(store, far)
    clock.forward(HOUR)
    assert (states(store), states(far)) == ({}, {person.reader: "perhaps renewed"})


def test_another_s_claim_is_released_only_with_a_reason_that_is_audited(store: Store) -> None:
    """Without one, and with an unknown id, nothing is written."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE, wu="WU-9").caller
    made = claim_work.claim_paths(store, bohr, ["src"])
    before = bodies(store)
    for wrong in ([made.claim_id], ["claim-nothere"]):
        with pytest.raises(UsageError):
            claim_work.release(store, curie, wrong)
    with pytest.raises(UsageError, match="--reason is empty"):
        claim_work.release(store, curie, [made.claim_id], reason=" ")[0]
    assert bodies(store) == before
    released = claim_work.release(store, curie, [made.claim_id[:12]], reason="his machine is gone")[0]
    assert (released.event, states(store)) == ("release", {})
    (audit,) = (each for line in bodies(store) if (each := records.read_kind("audit", line)))
    assert (audit["audit_id"], audit["action"]) == (released.audit_id, audits.CLAIM_RELEASE)
    assert audit["reason"] == f"his machine is gone ({made.claim_id})"
    assert audits.passed_at_gate(store, curie, "WU-9") == {}


@pytest.mark.parametrize(
    ("paths", "lease", "code"),
    [
        (["../x"], HOUR, "bad-path"),
        (["/etc/passwd"], HOUR, "bad-path"),
        ([], HOUR, "no-path"),
        ([""], HOUR, "bad-path"),
        (["src", " "], HOUR, "bad-path"),
        (["src\x00"], HOUR, "bad-path"),
        (["src\nforged: yes"], HOUR, "bad-path"),
        (["x" * 65_536], HOUR, "bad-path"),
        (["C:\\src"], HOUR, "bad-path"),
        (["src"], -HOUR, "bad-duration"),
        (["a" * 2000], HOUR, "bad-path"),
        ([f"a{number}" for number in range(101)], HOUR, "bad-path"),
        (["src"], 40 * 24 * HOUR, "bad-duration"),
        (["src"], 0, "bad-duration"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(store: Store, paths: list[str], lease: int, code: str) -> None:
    """And nothing is written."""
    bohr = Agent(store, BOHR).caller
    before = bodies(store)
    with pytest.raises(UsageError, match="Nothing was written") as refused:
        claim_work.claim_paths(store, bohr, paths, lease=lease)
    assert refused.value.code == code
    assert bodies(store) == before


def test_a_pattern_that_matches_nothing_is_claimed_with_a_warning(store: Store, repo: Path) -> None:
    """Its files may be about to be made."""
    Path(repo, "src").mkdir()
    Path(repo, "src", "a.py").touch()
    bohr = Agent(store, BOHR).caller
    assert claim_work.claim_paths(store, bohr, ["src/*.py", "src", "**/a.py"]).warnings == []
    assert claim_work.claim_paths(store, bohr, ["src/*.md", "new.txt"]).warnings == [
        "Nothing matches yet: src/*.md, new.txt."
    ]


@pytest.mark.parametrize("event", ["claim", "release", "renew"])
def test_a_record_in_the_name_of_a_session_changes_no_claim_of_it(
    store: Store, far: Store, clock: Clock, event: str
) -> None:
    """Every clone ignores the line."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    made = claim_work.claim_paths(store, bohr, ["src"])
    carry(store, far)
    clock.forward(MINUTE)
    line = records.line("claim", clock.value, {
        "claim_id": "claim-forged01" if event == "claim" else made.claim_id, "event": event, "paths": ["docs"],
        "until": None if event == "release" else format_at(clock.value + 9 * HOUR),
        "sender_identity": bohr.reader, "sender_session": bohr.session_id,
    }, writer=None)  # fmt: skip
    far.record([("claims", line)], CommitMessage("Mallory <m@example.org>", "forged"))
    carry(store, far)

    shown = [[(each.id, each.claim.until) for each in claims.standing(one)] for one in (store, far)]
    assert shown == [[(made.claim_id, clock.value - MINUTE + HOUR)]] * 2
    with pytest.raises(GateError):
        claim_work.claim_paths(store, curie, ["src"])
    claim_work.claim_paths(store, curie, ["docs"])
    assert claim_work.list_claims(store).warnings == []


def test_what_stands_does_not_depend_on_the_order_of_arrival(
    store: Store, far: Store, tmp_path: Path, clock: Clock
) -> None:
    """Permutations of the lines of contested, renewed, seen and released claims."""
    bohr, curie, planck = Agent(store, BOHR).caller, Agent(far, CURIE).caller, Agent(far, PLANCK).caller
    claim_work.claim_paths(store, bohr, ["src"])
    claim_work.claim_paths(far, curie, ["src/a.py"])
    claim_work.claim_paths(far, planck, ["docs"], shared=True)
    carry(store, far)
    claim_work.claim_paths(store, bohr, ["docs"], shared=True)
    claim_work.claim_paths(store, bohr, ["src"], lease=3 * HOUR)
    named = next(each.id for each in claims.standing(far) if each.claim.owner[0] == CURIE)
    claim_work.release(store, bohr, [named], reason="gone")
    carry(store, far)

    def described(one: Store) -> list[tuple[object, ...]]:
        return sorted(
            (each.id, each.status, each.claim.until, *sorted(other.id for other in each.against))
            for each in claims.standing(one)
        )

    lines = bodies(store)
    draw = random.Random(3)
    for number in range(4):
        third = open_store(new_repo(tmp_path / f"third{number}"), clock)
        draw.shuffle(lines)
        for portion in (lines[:7], lines[7:12], lines[12:]):
            third.record(
                [
                    (records.STREAMS[record["kind"]], line)
                    for line in portion
                    if (record := records.read(line))
                ],
                CommitMessage("gitmem <gitmem@localhost>", "sync"),
            )
        assert described(third) == described(store) == described(far)
        third.close()


def test_a_claim_is_keyed_by_path_and_session_not_by_worktree(
    store: Store, repo: Path, tmp_path: Path, clock: Clock
) -> None:
    """Another worktree of the clone, at any place, has the same paths; a worktree that is gone takes no claim with it."""
    linked = worktree(repo, tmp_path / "elsewhere" / "deep")
    other = open_store(linked, clock)
    bohr, curie = Agent(store, BOHR).caller, Agent(other, CURIE).caller
    made = claim_work.claim_paths(other, curie, ["src/a.py"])
    with pytest.raises(GateError):
        claim_work.claim_paths(store, bohr, ["src"])
    again = claim_work.claim_paths(store, acting(store, str(curie.session_id)), ["src/a.py"])
    assert (again.event, again.claim_id) == ("renew", made.claim_id)
    other.close()
    shutil.rmtree(linked)
    assert states(store) == {CURIE: "held"}


def test_the_library_does_all_of_it(repo: Path, clock: Clock) -> None:
    """`log.claims`: claim, list, check, release; the answers are JSON."""
    own_key(repo)
    with gitmem.open(str(repo), now=clock, identity=BOHR, commit_after=0) as log:
        log.sessions.start()
        made = log.claims.claim(["src/**"], lease=2 * HOUR, reason="rounding")
        assert made.as_json()["paths"] == ["src/**"]
        assert log.claims.check(["src/a.py"]).free
        assert [each.status for each in log.claims.list(mine=True).claims] == ["held"]
        with gitmem.open(str(repo), now=clock, identity=CURIE, commit_after=0) as other:
            other.sessions.start()
        with gitmem.open(str(repo), now=clock, commit_after=0) as reader:
            assert [each.status for each in reader.claims.list().claims] == ["held"], "a list needs no caller"
        (released,) = log.claims.release(made.claim_id)
        assert released.event == "release"
        assert log.claims.list().claims == []
