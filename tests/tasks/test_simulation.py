"""Tasks on many clones, by seed: all clones agree in the end, and no outcome changes after its caller has sealed it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import pytest

from gitmem.order.task import FoldedTask, TaskEvent

from .simulated import World


def checked(seed: int, fold: type[FoldedTask] = FoldedTask) -> list[str]:
    return [f"seed {seed}: {each}" for each in World(seed, fold).run()]


@pytest.mark.parametrize("first", range(1, 301, 100))
def test_no_outcome_changes_after_its_caller_sealed_it(first: int) -> None:
    """I7: with clocks a minute apart, crashes, partial syncs, handoffs, a person, and two sessions of one identity."""
    assert not [each for seed in range(first, first + 100) for each in checked(seed)]


def test_a_cancellation_waits_if_a_take_is_missing_that_an_event_names() -> None:
    """The end of an acceptance arrived before the acceptance: a seal written then would count as one that had seen it."""
    assert not checked(2_502)


def test_a_person_does_not_close_what_was_accepted() -> None:
    """A giver had withdrawn its handoff, not knowing of the acceptance; a person who knew both closed it as canceled."""
    assert not checked(22_708)


def test_a_withdrawal_waits_if_an_event_is_missing_through_which_an_acceptance_was_seen() -> None:
    """A giver had a seal of its other session, and neither the status that it named nor the acceptance before that."""
    assert not checked(16_353)


@pytest.mark.deep
@pytest.mark.parametrize("first", range(1_001, 3_001, 500))
def test_no_outcome_changes_in_two_thousand_runs(first: int) -> None:
    """The same with more seeds."""
    assert not [each for seed in range(first, first + 500) for each in checked(seed)]


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("first", range(10_001, 30_001, 1_000))
def test_no_outcome_changes_in_twenty_thousand_runs(first: int) -> None:
    """The same, a thousand seeds at a time."""
    assert not [each for seed in range(first, first + 1_000) for each in checked(seed)]


class AnyTakeIsValid(FoldedTask):
    """Without T1."""

    def _is_valid(self, take: TaskEvent, decided: object) -> bool:
        return True


class AnybodyReports(FoldedTask):
    """Without T2."""

    def counts(self, event: TaskEvent) -> bool:
        return event.take in self._valid


class NothingIsSealed(FoldedTask):
    """Without the seal of T3."""

    def _seals(self) -> list[TaskEvent]:
        return []


class TheFirstToArriveWins(FoldedTask):
    """Without the order of T3."""

    def __init__(self, record: object, events: object, replaced_by: object = ()) -> None:
        self.arrived = list(events)  # type: ignore[call-overload]
        super().__init__(record, self.arrived, replaced_by)  # type: ignore[arg-type]

    def _decide(self) -> str | None:
        super()._decide()
        if self.decided_by == "status":
            self.outcome = next(self.events[each.id] for each in self.arrived if each.is_terminal)
        return self.outcome.state if self.decided_by == "status" and self.outcome else None


class TakesForbidRejections(FoldedTask):
    """Without a rejection of what was taken and given back."""

    def _stands(self, rejection: TaskEvent) -> bool:
        return not self.takes


class RejectionsTakeAway(FoldedTask):
    """Without the release that a rejection needs."""

    def _stands(self, rejection: TaskEvent) -> bool:
        return True


class NobodyLetsGo(FoldedTask):
    """Without the release of T4."""

    def is_released(self, take: TaskEvent, seen_by: TaskEvent | None = None) -> bool:
        return False


class AnswersAreLost(FoldedTask):
    """Without the answer of T5."""

    def _kind(self, event: str) -> list[TaskEvent]:
        return [] if event == "message" else super()._kind(event)


class CancelIsNoOutcome(FoldedTask):
    """Without T6: a seal names an end that a worker reported."""

    def _seals(self) -> list[TaskEvent]:
        named = {each.id for each in self._kind("status")}
        return [each for each in super()._seals() if each.record.get("outcome") in named]


class ReplacedIsGone(FoldedTask):
    """Without T7."""

    @property
    def is_replaced(self) -> bool:
        return bool(self.replaced_by)


class EndsAreDropped(FoldedTask):
    """Without T9."""

    def _late(self) -> list[TaskEvent]:
        return []


class EverySessionSeals(FoldedTask):
    """Without M3: any session of the caller's identity."""

    def _seals(self) -> list[TaskEvent]:
        return [
            each for each in self._kind("seal") if each.sender[0] == self.caller[0] and each.state is not None
        ]


class CloseBeatsSeal(FoldedTask):
    """Without M3: whoever decides first."""

    def _seals(self) -> list[TaskEvent]:
        return [] if self._closes() else super()._seals()


class GiversKeepTheirTakes(FoldedTask):
    """Without M8: the lease of the giver makes an acceptance void."""

    def _is_valid(self, take: TaskEvent, decided: list[TaskEvent]) -> bool:
        return take.replaces is None and super()._is_valid(take, decided)


class GiversMayFinish(FoldedTask):
    """Without M8: what the giver reports after the acceptance counts."""

    def _may_be_outcome(self, event: TaskEvent, given_up: object) -> bool:
        return super()._may_be_outcome(event, ())


class GiversLoseSealedResults(FoldedTask):
    """Without M8: an acceptance stands beside a seal of what its giver reported."""

    def _is_sealed_under(self, take: TaskEvent) -> bool:
        return False


class AnybodyGives(FoldedTask):
    """Without M8: whoever names a take hands it over."""

    def _is_valid(self, take: TaskEvent, decided: list[TaskEvent]) -> bool:
        given, named = self._valid.get(take.replaces or ""), take.giver
        take.giver = given.sender if given is not None else named
        found = super()._is_valid(take, decided)
        take.giver = named
        return found


class AcceptanceIsNoEnd(FoldedTask):
    """Without the end of a handoff that its taker reports."""

    def _may_be_outcome(self, event: TaskEvent, given_up: Collection[str | None]) -> bool:
        return self.record["purpose"] != "handoff" and super()._may_be_outcome(event, given_up)


class WithdrawalsBeatAcceptances(FoldedTask):
    """Without the rule that a seal decides an accepted handoff only if its writer had seen that."""

    def _after_acceptance(self, decisions: Iterable[TaskEvent]) -> TaskEvent | None:
        return self._order.first(list(decisions))


BROKEN = (
    AnyTakeIsValid, AnybodyReports, NothingIsSealed, TheFirstToArriveWins, TakesForbidRejections, RejectionsTakeAway, NobodyLetsGo, AnswersAreLost, CancelIsNoOutcome,
    ReplacedIsGone, EndsAreDropped, EverySessionSeals, CloseBeatsSeal, GiversKeepTheirTakes, GiversMayFinish,
    GiversLoseSealedResults, AnybodyGives, AcceptanceIsNoEnd, WithdrawalsBeatAcceptances,
)  # fmt: skip

# A giver, its caller and a taker must miss each other, an answer must reach a question that stays: no earlier seed has that.
RARE = {GiversLoseSealedResults: 301, AnswersAreLost: 201}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.__name__)
def test_a_simulation_finds_a_missing_rule(broken: type[FoldedTask]) -> None:
    """With any rule of the fold taken out some seed fails."""
    check: Callable[[int], list[str]] = lambda seed: checked(seed, broken)  # noqa: E731
    first = RARE.get(broken, 1)
    assert any(check(seed) for seed in range(first, first + 200))
