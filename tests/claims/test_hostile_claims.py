"""Claims that peers wrote to mislead, to crowd out or to slow down."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.render import claims as claim_render
from gitmem import records
from gitmem.agents import audits, lifecycle
from gitmem.errors import GateError, UsageError
from gitmem.log.lines import CommitMessage, format_at
from gitmem.store import Store
from gitmem.text.addresses import writer_of
from gitmem.work import claim_work, claims, edit_guard, new_task, task_decisions, task_work
from tests import sandbox
from tests.git_on_path import GitOnPath
from tests.sandbox import DAY, HOUR, MINUTE, Agent, Clock, annas, carry
from tests.signing import MALLORY

from .conftest import BOHR, CURIE, PLANCK

pytestmark = pytest.mark.usefixtures("commits")


def evil(number: int) -> str:
    """The address of an agent of a peer's invention."""
    return annas(f"evil:worker:m{number}", MALLORY)


def line(
    clock: Clock, number: int, *, event: str = "claim", at: int = 0, until: int = 9 * HOUR, **fields: object
) -> bytes:
    """A claim of a peer's invention."""
    made = {
        "claim_id": f"claim-invented{number:05}", "event": event, "paths": ["docs"], "until": format_at(clock() + until),
        "sender_identity": evil(number), "sender_session": f"sess-{number:012}", **fields,
    }  # fmt: skip
    return records.line("claim", clock() + at, made, writer=writer_of(str(made["sender_identity"])))


def arrive(store: Store, lines: list[bytes], writer: str = "evil") -> None:
    """Lines in a segment of another clone."""
    segment = Path(store.repo.state, "segment")
    own = store.log.token()
    segment.parent.mkdir(exist_ok=True)
    segment.write_text(f"{writer}\n")
    sandbox.arrive(store, lines)
    segment.write_text(f"{own}\n")


def claims_of(store: Store) -> list[bytes]:
    """The lines of claims in a clone."""
    return [body.encode() for (body,) in store.db().execute("SELECT body FROM line WHERE kind = 'claim'")]


def standing(store: Store, **limits: int) -> set[str]:
    """The owners of what stands."""
    return {each.claim.owner[0] for each in claims.standing(store, **limits)}


@pytest.mark.parametrize("writers", [1, 12])
def test_no_number_of_invented_owners_crowds_out_own_claims_and_those_seen_before(
    store: Store, far: Store, clock: Clock, writers: int
) -> None:
    """From one clone or from as many as claims. What arrives later from a clone that was known before counts, too."""
    bohr, curie, planck = Agent(store, BOHR).caller, Agent(far, CURIE).caller, Agent(far, PLANCK).caller
    claim_work.claim_paths(far, curie, ["src"])
    arrive(store, claims_of(far), "far")
    each = 60 // writers
    for number in range(writers):
        lines = [line(clock, place, at=-MINUTE) for place in range(each * number, each * (number + 1))]
        arrive(store, lines, f"evil{number}")
    claim_work.claim_paths(store, bohr, ["mine"])
    assert len(standing(store, most=10)) == 10
    assert {BOHR, CURIE} <= standing(store, most=10)
    claim_work.claim_paths(far, planck, ["tests"])
    arrive(store, claims_of(far), "far")
    assert {BOHR, CURIE} <= standing(store, most=10)
    assert PLANCK in standing(store, most=10)


def test_no_flood_of_claims_keeps_anybody_from_claiming(store: Store, far: Store, clock: Clock) -> None:
    """With a reason, which is recorded; the claims of the clone that was known before the flood are named first."""
    bohr, curie = Agent(store, BOHR).caller, Agent(far, CURIE).caller
    claim_work.claim_paths(far, curie, ["src"])
    arrive(store, claims_of(far), "far")
    arrive(store, [line(clock, each, at=-HOUR, paths=["**"]) for each in range(60)])
    with pytest.raises(GateError, match=r"Already claimed: \S+ claims src until .*, and 60 more") as refused:
        claim_work.claim_paths(store, bohr, ["src/a.py"])
    assert refused.value.next[-1] == "gitmem claim paths src/a.py --anyway why"
    with pytest.raises(UsageError, match="--anyway is empty"):
        claim_work.claim_paths(store, bohr, ["src/a.py"], anyway=" ")
    made = claim_work.claim_paths(store, bohr, ["src/a.py"], anyway="a flood")
    assert made.warnings[0].endswith(": passed.") and " claims src until" in made.warnings[0]
    assert sum(each.endswith(": passed.") for each in made.warnings) == claim_work.SHOWN
    (audit,) = audits.of_readers(store, [BOHR])
    assert (audit["audit_id"], audit["action"]) == (made.audit_id, audits.CLAIM)
    assert audit["reason"].startswith("a flood (claim-")
    assert len(audits.claim_ids(audit)) == edit_guard.OF_AUDIT_MAX
    listed = claim_work.list_claims(store, limit=5).claims
    assert {BOHR, CURIE} <= {each.owner for each in listed}
    assert len(claim_render.guard(edit_guard.check_guard(store, [bohr], ["src/a.py"]))) == 22
    carry(store, far)
    assert BOHR in standing(far)


def test_no_owner_has_more_claims_than_its_share(store: Store, far: Store, clock: Clock) -> None:
    """Also in the name of an agent that has claims: what is written in the owner's own clone counts apart."""
    as_curie = {"sender_identity": CURIE}
    curie = Agent(far, CURIE).caller
    arrive(store, [line(clock, each, at=-MINUTE, **as_curie) for each in range(150)])
    claim_work.claim_paths(far, curie, ["src"])
    arrive(store, claims_of(far), "far")
    found = claims.standing(store)
    assert len(found) == claims.OF_OWNER_MAX + 1
    assert found[-1].claim.record["paths"] == ["src"]


def test_long_claims_of_others_leave_room_for_short_ones(store: Store, far: Store, clock: Clock) -> None:
    """A claim of some hundred kilobytes is left out."""
    bohr = Agent(store, BOHR).caller
    long = [f"{number}/" + "x" * 4_000 for number in range(60)]
    arrive(store, [line(clock, each, paths=long) for each in range(3)])
    arrive(store, [line(clock, each, paths=[f"src/{'y' * 4_000}"] * 20) for each in range(3, 20)], "more")
    claim_work.claim_paths(far, Agent(far, CURIE).caller, ["src"])
    arrive(store, claims_of(far), "far")
    found = standing(store)
    assert CURIE in found
    assert not {evil(0), evil(1)} & found
    assert len(found) < 12
    with pytest.raises(GateError, match=r"Already claimed: \S+ claims src until"):
        claim_work.claim_paths(store, bohr, ["src/a.py"])


@pytest.mark.parametrize(
    ("at", "until", "stands"),
    [
        (0, 9 * HOUR, True),
        (0, 3650 * DAY, True),
        (-23 * HOUR, 3650 * DAY, True),
        (-25 * HOUR, 3650 * DAY, False),
        (23 * HOUR, 30 * HOUR, True),
        (25 * HOUR, 30 * HOUR, False),
        (3650 * DAY, 3651 * DAY, False),
        (0, -HOUR, False),
    ],
)
def test_no_time_that_a_peer_writes_makes_a_claim_endless(
    store: Store, clock: Clock, at: int, until: int, stands: bool
) -> None:
    """At most a day from its record; one that is dated more than a day ahead does not stand yet."""
    arrive(store, [line(clock, 1, at=at, until=until)])
    assert bool(standing(store)) is stands
    clock.forward(2 * DAY)
    assert standing(store) == set()


def test_a_renewal_far_ahead_neither_ends_nor_prolongs_a_claim(store: Store, clock: Clock) -> None:
    """In the name of its owner: until its time it counts as if it were not there."""
    as_curie = {"sender_identity": CURIE, "sender_session": "sess-000000000001"}
    beginning = line(clock, 1, until=HOUR, **as_curie)
    renewals = [
        line(clock, 1, event="renew", at=ahead, until=ahead + HOUR, **as_curie)
        for ahead in (2 * DAY, 900 * DAY)
    ]
    arrive(store, [*renewals, beginning])
    assert standing(store) == {CURIE}
    clock.forward(2 * HOUR)
    assert standing(store) == set()


@pytest.mark.parametrize("until", ["soon", "2026-13-45", "", 7, None, "9999-99-99T99:99:99.999999Z"])
def test_a_claim_with_a_garbled_end_blocks_nobody(store: Store, clock: Clock, until: object) -> None:
    """It is no claim, or one that is over; the lines beside it count."""
    import json

    garbled = json.loads(line(clock, 1))
    garbled["until"] = until
    arrive(store, [json.dumps(garbled, separators=(",", ":")).encode(), line(clock, 2)])
    clock.forward(16 * MINUTE)
    assert standing(store) == {evil(2)}


def test_a_forged_end_of_a_session_does_not_end_its_claims(store: Store, far: Store, clock: Clock) -> None:
    """The line is ignored: the claim still keeps others away."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    claim_work.claim_paths(store, bohr, ["src"])
    clock.forward(MINUTE)
    end = records.line("session", clock(), {
        "session_id": bohr.session_id, "event": "end", "display_name": "x", "agent_identity": BOHR, "clone_id": "clone-far",
    }, writer=None)  # fmt: skip
    carry(store, far)
    far.record([("sessions", end)], CommitMessage("Mallory <m@example.org>", "forged"))
    carry(store, far)
    assert standing(far) == standing(store) == {BOHR}
    with pytest.raises(GateError, match="Already claimed"):
        claim_work.claim_paths(store, curie, ["src"])


def test_a_forged_end_of_a_task_does_not_end_its_claims(store: Store, far: Store, clock: Clock) -> None:
    """As with sessions. The end that its caller writes does."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    task_id = new_task.create(store, bohr, "Write", target_role="implementer/test").task["task_id"]
    claim_work.claim_paths(store, bohr, ["src"], task_id=task_id)
    clock.forward(MINUTE)
    cancel = records.line("task_event", clock(), {
        "event_id": "tev-forged", "task_id": task_id, "event": "seal", "state": "canceled", "sender_identity": BOHR,
        "sender_session": bohr.session_id,
    }, writer=None)  # fmt: skip
    carry(store, far)
    far.record([("tasks", cancel)], CommitMessage("Mallory <m@example.org>", "forged"))
    carry(store, far)
    assert standing(far) == standing(store) == {BOHR}
    with pytest.raises(GateError, match="Already claimed"):
        claim_work.claim_paths(store, curie, ["src"])
    assert claim_work.list_claims(store).warnings == claim_work.list_claims(far).warnings == []
    assert task_decisions.cancel(store, bohr, task_id).state == "canceled"
    assert claim_work.claim_paths(store, curie, ["src"]).event == "claim"


def test_a_forged_take_makes_no_claims_of_one_task_collide(store: Store, far: Store, clock: Clock) -> None:
    """The line is ignored: who helps with a task still claims the same paths as who took it."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    task_id = str(new_task.create(store, bohr, "Write", target_role="implementer/test").task["task_id"])
    task_work.take(store, curie, task_id)
    claim_work.claim_paths(store, curie, ["src"])
    clock.forward(MINUTE)
    take = records.line("task_event", clock(), {
        "event_id": "tev-forged", "task_id": task_id, "event": "take", "until": format_at(clock() + HOUR), "sender_identity": BOHR,
        "sender_session": bohr.session_id,
    }, writer=None)  # fmt: skip
    carry(store, far)
    far.record([("tasks", take)], CommitMessage("Mallory <m@example.org>", "forged"))
    carry(store, far)
    assert claim_work.claim_paths(store, bohr, ["src/a.py"], task_id=task_id).event == "claim"
    carry(store, far)
    for place in (store, far):
        found = {each.claim.owner[0]: each.status for each in claims.standing(place)}
        assert found == {CURIE: "held", BOHR: "held"}


def test_many_patterns_stop_the_guard_in_time_and_it_says_so(store: Store, repo: Path, clock: Clock) -> None:
    """A claim with few patterns is compared before those with many."""
    curie = Agent(store, CURIE).caller
    patterns = ["docs/**/*" + "*".join("abcdefgh"[number % 7 :]) + "*" for number in range(100)]
    arrive(store, [line(clock, each, paths=patterns) for each in range(60)])
    arrive(store, [line(clock, 99, paths=["src/a.py"])], "far")
    paths = ["src/a.py", *(f"docs/abcdefghabcdefgh/{number}" for number in range(2_000))]
    began = time.process_time()
    found = edit_guard.check_guard(store, [curie], paths)
    assert time.process_time() - began < 10
    assert [each.owner for each in found.blocks][:1] == [evil(99)]
    assert found.warnings[-1] == "Not all paths were compared with all claims: there are too many."


def test_claims_that_arrive_in_part_count_when_the_rest_is_there(store: Store, clock: Clock) -> None:
    """A renewal and a release without a beginning are nothing; the release counts for the beginning that comes later."""
    as_curie = {"sender_identity": CURIE, "sender_session": "sess-000000000001"}
    arrive(
        store,
        [
            line(clock, 1, event="renew", at=MINUTE, **as_curie),
            line(clock, 2, event="release", at=MINUTE, **as_curie),
        ],
    )
    assert standing(store) == set()
    arrive(store, [line(clock, 2, until=HOUR, **as_curie)])
    assert standing(store) == set()
    arrive(store, [line(clock, 1, until=HOUR, **as_curie)])
    (found,) = claims.standing(store)
    assert found.claim.until == clock() + 9 * HOUR


def test_audits_of_unknown_claims_and_of_the_owner_hide_no_news(store: Store, clock: Clock) -> None:
    """A peer's audit may name any id, and the owner needs no word about itself; a real one is told."""
    bohr = Agent(store, BOHR)
    made = claim_work.claim_paths(store, bohr.caller, ["src"]).claim_id
    for who, named in ((CURIE, made), (BOHR, made), (CURIE, "claim-unknown00000")):
        clock.forward(1_000)
        audit = records.line("audit", clock(), {
            "audit_id": f"audit-{clock() % 10**10}", "action": audits.CLAIM, "reason": f"why ({named})",
            "reader_identity": who, "sender_identity": who, "signal_ids": [],
        }, writer=writer_of(who))  # fmt: skip
        store.record([("audits", audit)], CommitMessage("x <x@example.org>", "audit"))
    clock.forward(2 * MINUTE)
    store.db()
    assert claim_work.at_command(store, bohr.caller) == [
        f"passed: {CURIE} passed your claim {made} on src: why"
    ]


def test_the_claims_of_an_ended_session_keep_nobody_from_its_paths(store: Store) -> None:
    """Its lines are genuine, and it is gone."""
    bohr = Agent(store, BOHR).caller
    claim_work.claim_paths(store, bohr, ["src"])
    lifecycle.end(store, bohr)
    assert claims.standing(store) == []


class Counted(list[claims.PathPattern]):
    """Patterns that count how often they are compared."""

    asked = 0

    def __iter__(self) -> Iterator[claims.PathPattern]:
        self.asked += 1
        return super().__iter__()


def test_comparisons_end_with_their_steps(store: Store, clock: Clock) -> None:
    """Of claims with each other, and of paths with a claim; else each flood costs its square."""
    arrive(store, [line(clock, number) for number in range(20)])
    found = claims.standing(store)
    assert len(found) == 20
    for each in found:
        each.patterns = Counted(each.patterns)
    claims.compare(found, 0)
    assert sum(each.patterns.asked for each in found) == 2  # type: ignore[attr-defined]
    spent = claims.Budget(0)
    spent.take(1)
    last = found[-1]
    assert list(last.touched([("docs/a.md", "docs/a.md")], spent)) == []
    assert last.patterns.asked == 0  # type: ignore[attr-defined]


def test_git_is_not_asked_again_while_no_claim_is_new(
    store: Store, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was changed before a claim was seen is known; the list of all worktrees' changes costs a second."""
    bohr = Agent(store, BOHR).caller
    claim_work.claim_paths(store, bohr, ["src"])
    edit_guard.update(store)
    on_path = GitOnPath(tmp_path, monkeypatch)
    edit_guard.update(store)
    assert on_path.started == []
    clock.forward(1_000)
    claim_work.claim_paths(store, bohr, ["docs"])
    edit_guard.update(store)
    assert on_path.started
