"""Two agents that answer each other without end are told so, and wake nobody any more; nothing of it is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitmem.agents import caller, lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import UsageError
from gitmem.signals import send, threads
from gitmem.signals.reply import TURNS_MAX
from gitmem.signals.send import Sent

from ..sandbox import MINUTE, SECOND, Clock, acting, bodies, carry, new_repo, open_store

PLANCK, CURIE, BOHR = "claude:architect:shop", "codex:implementer:shop", "gemini:reviewer:shop"


class Talk:
    """Three agents and a person; each word answers the last one."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.clock = Clock()
        self.store = open_store(repo, self.clock)
        self.agents = {
            each: acting(self.store, lifecycle.start(self.store, CallerClaims(), agent_identity=each))
            for each in (PLANCK, CURIE, BOHR)
        }
        self.last: str | None = None

    def say(self, who: str | Caller, **options: object) -> Sent:
        self.clock.forward(SECOND)
        sender = self.agents[who] if isinstance(who, str) else who
        if self.last is None:
            options.setdefault("to", [CURIE if sender.reader == PLANCK else PLANCK])
        sent = send.send(self.store, sender, "well", reply_to=self.last, **options)  # type: ignore[arg-type]
        self.last = str(sent.signal["signal_id"])
        return sent

    def turns(self, count: int, *, first: str = PLANCK) -> list[Sent]:
        """So many signals, by turns."""
        second = CURIE if first == PLANCK else PLANCK
        return [self.say((first, second)[at % 2]) for at in range(count)]

    def person(self) -> Caller:
        found = caller.find(self.store, CallerClaims(terminal=True))
        assert found
        return found

    def limit(self, text: str) -> None:
        subprocess.run(["git", "config", "gitmem.loopLimit", text], cwd=self.repo, check=True)
        self.store.close()
        self.store = open_store(self.repo, self.clock)


@pytest.fixture
def talk(repo: Path) -> Talk:
    return Talk(repo)


def is_braked(sent: Sent) -> bool:
    told = any("turn " in each and "advisory" in each for each in sent.warnings)
    assert told == (sent.signal["interrupt_class"] == "advisory")
    return told


def test_from_the_thirteenth_turn_on_a_signal_is_advisory_and_its_writer_is_told(talk: Talk) -> None:
    """Not before; and each of them is in the log."""
    sent = talk.turns(16)

    assert [is_braked(each) for each in sent] == [False] * TURNS_MAX + [True] * 4
    assert "turn 13 between you and " in sent[12].warnings[0]
    assert "--agree" in sent[12].warnings[0]
    assert "ask a person" in sent[12].warnings[0]
    assert len(threads.thread(talk.store, str(sent[0].signal["thread_id"])).signals) == 16


def test_asking_for_priority_does_not_get_past_the_brake(talk: Talk) -> None:
    """Nor does asking for an answer."""
    talk.turns(12)

    assert is_braked(talk.say(PLANCK, interrupt="priority", intent="PROPOSE", requires_ack=True))


def test_ten_minutes_end_a_run(talk: Talk) -> None:
    """A slow conversation is none that runs away: what was said before them does not count."""
    talk.turns(12)
    talk.clock.forward(10 * MINUTE)

    assert not is_braked(talk.say(PLANCK))
    assert not any(map(is_braked, talk.turns(11, first=CURIE)))
    assert is_braked(talk.say(PLANCK))


def test_a_word_of_a_person_ends_a_run(talk: Talk) -> None:
    """Who looks on may let them go on."""
    talk.turns(12)
    person = talk.say(talk.person(), to=[PLANCK, CURIE])

    assert person.signal["interrupt_class"] == "priority"
    assert not any(map(is_braked, talk.turns(12)))


def test_a_person_is_never_braked(talk: Talk) -> None:
    """However often it is answered, and whatever the limit."""
    talk.limit("1")
    person = talk.person()
    for _ in range(10):
        assert not is_braked(talk.say(person, to=[PLANCK]))
        assert not is_braked(talk.say(PLANCK, to=[person.reader]))


def test_another_work_unit_ends_a_run(talk: Talk) -> None:
    """New work, new words; going on with the old unit after it begins at the new one."""
    talk.turns(12)

    assert not is_braked(talk.say(PLANCK, wu="WU-8"))
    assert not any(map(is_braked, talk.turns(11, first=CURIE)))
    assert is_braked(talk.say(PLANCK))


def test_a_third_one_ends_a_run(talk: Talk) -> None:
    """It is a conversation of two that goes round."""
    talk.turns(12)
    talk.say(BOHR, to=[PLANCK, CURIE])

    assert not any(map(is_braked, talk.turns(12)))


def test_several_signals_in_a_row_are_one_turn(talk: Talk) -> None:
    """Who says the thirteenth thing in two signals is braked twice, who tells a lot at once is not."""
    assert not any(is_braked(talk.say(PLANCK, to=[CURIE])) for _ in range(20))
    for _ in range(5):
        assert not is_braked(talk.say(CURIE))
        assert not is_braked(talk.say(CURIE, to=[PLANCK]))
        assert not is_braked(talk.say(PLANCK))
    assert not is_braked(talk.say(CURIE))

    assert is_braked(talk.say(PLANCK))
    assert is_braked(talk.say(PLANCK, to=[CURIE]))


def test_other_threads_have_runs_of_their_own(talk: Talk) -> None:
    """The same two may talk about something else."""
    talk.turns(12)
    talk.last = None

    assert not any(map(is_braked, talk.turns(12)))


def test_a_session_is_the_same_agent_in_all_of_its_forms(talk: Talk) -> None:
    """Two sessions of one identity are no third one."""
    other = acting(talk.store, lifecycle.start(talk.store, CallerClaims(), agent_identity=PLANCK))
    sent = [talk.say((PLANCK, CURIE, other, CURIE)[at % 4]) for at in range(13)]

    assert [is_braked(each) for each in sent] == [False] * 12 + [True]


@pytest.mark.parametrize("intent", ["AGREE", "REJECT"])
def test_a_decision_is_never_held_up(talk: Talk, intent: str) -> None:
    """It is how a chain ends: it keeps its class, and no limit refuses it."""
    talk.limit("3")
    talk.turns(3)
    ended = talk.say(CURIE, intent=intent)

    assert ended.signal["interrupt_class"] == "priority"
    assert ended.warnings == []


def test_rejecting_for_ever_is_a_loop_of_the_one_who_proposes(talk: Talk) -> None:
    """So it ends all the same."""
    talk.limit("14")
    for _ in range(7):
        talk.say(PLANCK, intent="PROPOSE")
        talk.say(CURIE, intent="REJECT")
    with pytest.raises(UsageError) as refused:
        talk.say(PLANCK, intent="PROPOSE")

    assert refused.value.code == "loop"


def test_beyond_the_limit_nothing_is_written(talk: Talk) -> None:
    """Only where the repository asks for it; the refusal says how to go on."""
    talk.limit("5")
    talk.turns(5)
    before = bodies(talk.store)
    with pytest.raises(UsageError) as refused:
        talk.say(CURIE)

    assert bodies(talk.store) == before
    assert refused.value.code == "loop"
    assert "turn 6 " in refused.value.message
    assert "Nothing was written" in refused.value.message
    assert refused.value.next[0] == f"gitmem reply {talk.last} agreed --agree"
    assert talk.say(talk.person(), to=[PLANCK, CURIE]).signal
    assert talk.say(CURIE).signal


@pytest.mark.parametrize("text", ["", "0", "-3", "many", "1e3", "٣"])
def test_a_limit_that_is_no_number_refuses_nobody(talk: Talk, text: str) -> None:
    """A slip in a config must not stop the work; the brake holds all the same."""
    talk.limit(text)

    assert is_braked(talk.turns(13)[-1])


def test_the_brake_counts_what_came_from_another_clone(repo: Path, tmp_path: Path) -> None:
    """And a line whose time can't be, or lies ahead, is no harm."""
    talk = Talk(repo)
    there = open_store(new_repo(tmp_path / "there"), talk.clock)
    talk.turns(1)
    curie = acting(there, lifecycle.start(there, CallerClaims(), agent_identity="cursor:implementer:there"))
    sent = None
    for _ in range(6):
        for store, sender in ((there, curie), (talk.store, talk.agents[PLANCK])):
            talk.clock.forward(SECOND)
            carry(talk.store, there)
            sent = send.send(store, sender, "well", reply_to=talk.last)
            talk.last = str(sent.signal["signal_id"])

    assert sent is not None
    assert is_braked(sent)
