"""Threads: what is new and owed in each, when a run of turns is a loop, and what a decision for others is worth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.agents import caller, lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.api import log as api
from gitmem.conformance import reference
from gitmem.conformance.reference import text
from gitmem.errors import UsageError
from gitmem.order.thread import FoldedThread, ThreadSignal
from gitmem.signals import inbox, message_frame, reply, send, thread_list, threads
from gitmem.signals.reply import TURNS_MAX
from gitmem.signals.send import Sent
from gitmem.signals.threads import void_own_decisions
from gitmem.store import Store
from tests.sandbox import annas

from ..each import each as one_test_for
from ..sandbox import MINUTE, SECOND, Clock, acting, carry, new_repo, open_store


class Talk:
    """Planck asks, Curie is asked."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.planck, self.curie = (
            acting(store, lifecycle.start(store, CallerClaims(), name=name, agent_identity=identity))
            for name, identity in (
                ("Planck", annas("claude:architect:shop")),
                ("Curie", annas("codex:builder:host")),
            )
        )

    def say(self, text: str, by: Caller | None = None, **options: object) -> str:
        self.clock.forward(SECOND)
        return str(send.send(self.store, by or self.planck, text, **options).signal["signal_id"])  # type: ignore[arg-type]

    def rows(self, limit: int = 10) -> list[tuple[str, int, int, int]]:
        page = thread_list.list_threads(self.store, self.curie, limit=limit)
        return [(each.title, each.signals, each.unread, len(each.owed)) for each in page.threads]


@pytest.fixture
def talk(repo: Path) -> Iterator[Talk]:
    clock = Clock()
    store = open_store(repo, clock)
    yield Talk(store, clock)
    store.close()


def test_a_thread_with_a_new_answer_comes_first_and_only_others_signals_are_new(talk: Talk) -> None:
    first = talk.say("One\nmore of it", to=["Curie"], wu="WU-7")
    talk.say("Two", to=["Curie"])
    talk.say("Three, to everybody")
    assert talk.rows() == [("Three, to everybody", 1, 1, 0), ("Two", 1, 1, 0), ("One", 1, 1, 0)]

    talk.say("done", by=talk.curie, reply_to=first)

    assert talk.rows()[0] == ("One", 2, 0, 0)
    page = thread_list.list_threads(talk.store, talk.curie, limit=1)
    (row,) = page.threads
    assert (row.wu_id, row.sender_name, row.last_sender_name) == ("WU-7", "Planck", "Curie")
    assert (page.more, page.unread) == (2, 2)


def test_a_question_is_owed_until_it_is_answered_and_not_by_being_read(talk: Talk) -> None:
    asked = talk.say("Agreed?", to=["Curie"], intent="PROPOSE")
    inbox.mark(talk.store, inbox.read(talk.store, talk.curie))
    assert talk.rows() == [("Agreed?", 1, 0, 1)]

    talk.say("what is it about?", by=talk.curie, reply_to=asked)
    assert talk.rows() == [("Agreed?", 2, 0, 1)]
    talk.say("yes", by=talk.curie, reply_to=asked, intent="AGREE")

    assert talk.rows() == [("Agreed?", 3, 0, 0)]
    assert thread_list.list_threads(talk.store).threads[0].owed == []


def test_threads_beyond_the_budget_go_by_their_receipts(talk: Talk) -> None:
    """Without the fold an answer is not known to be one, so the question is shown rather than hidden."""
    asked = talk.say("Agreed?", to=["Curie"], intent="PROPOSE")
    talk.say("yes", by=talk.curie, reply_to=asked, intent="AGREE")

    (row,) = thread_list.list_threads(talk.store, talk.curie, fold_most=1).threads

    assert (row.owed, talk.rows()) == ([asked], [("Agreed?", 2, 0, 0)])


def test_no_threads_and_no_limit(talk: Talk) -> None:
    assert thread_list.list_threads(talk.store, talk.curie).threads == []
    with pytest.raises(UsageError, match="limit"):
        thread_list.list_threads(talk.store, limit=0)


def test_only_what_was_named_is_read_and_marked(talk: Talk) -> None:
    """A screen marks what it has shown, and nothing beside."""
    shown, hidden = talk.say("one", to=["Curie"]), talk.say("two", to=["Curie"])

    reading = inbox.read(talk.store, talk.curie, only=[shown])
    inbox.mark(talk.store, reading)

    assert [each["signal_id"] for each in reading.signals] == [shown]
    assert [each["signal_id"] for each in inbox.read(talk.store, talk.curie).signals] == [hidden]
    assert inbox.read(talk.store, talk.curie, only=[]).signals == []


# Two agents that answer each other without end are told so, and wake nobody any more; nothing of it is lost.

PLANCK, CURIE, BOHR = (
    annas("claude:architect:shop"),
    annas("codex:implementer:shop"),
    annas("gemini:reviewer:shop"),
)


class EndlessTalk:
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


@pytest.fixture
def endless_talk(repo: Path) -> EndlessTalk:
    return EndlessTalk(repo)


def is_braked(sent: Sent) -> bool:
    told = any("turn " in each and "advisory" in each for each in sent.warnings)
    assert told == (sent.signal["interrupt_class"] == "advisory")
    return told


def test_from_the_thirteenth_turn_on_a_signal_is_advisory_and_its_writer_is_told(
    endless_talk: EndlessTalk,
) -> None:
    """Not before; and each of them is in the log."""
    sent = endless_talk.turns(16)

    assert [is_braked(each) for each in sent] == [False] * TURNS_MAX + [True] * 4
    assert "turn 13 between you and " in sent[12].warnings[0]
    assert "--agree" in sent[12].warnings[0]
    assert "ask a person" in sent[12].warnings[0]
    assert len(threads.thread(endless_talk.store, str(sent[0].signal["thread_id"])).signals) == 16


def test_asking_for_priority_does_not_get_past_the_brake(endless_talk: EndlessTalk) -> None:
    """Nor does asking for an answer."""
    endless_talk.turns(12)

    assert is_braked(endless_talk.say(PLANCK, interrupt="priority", intent="PROPOSE", requires_ack=True))


def test_ten_minutes_end_a_run(endless_talk: EndlessTalk) -> None:
    """A slow conversation is none that runs away: what was said before them does not count."""
    endless_talk.turns(12)
    endless_talk.clock.forward(10 * MINUTE)

    assert not is_braked(endless_talk.say(PLANCK))
    assert not any(map(is_braked, endless_talk.turns(11, first=CURIE)))
    assert is_braked(endless_talk.say(PLANCK))


def test_a_word_of_a_person_ends_a_run(endless_talk: EndlessTalk) -> None:
    """Who looks on may let them go on."""
    endless_talk.turns(12)
    person = endless_talk.say(endless_talk.person(), to=[PLANCK, CURIE])

    assert person.signal["interrupt_class"] == "priority"
    assert not any(map(is_braked, endless_talk.turns(12)))


def test_a_person_is_never_braked(endless_talk: EndlessTalk) -> None:
    """However often it is answered."""
    person = endless_talk.person()
    for _ in range(10):
        assert not is_braked(endless_talk.say(person, to=[PLANCK]))
        assert not is_braked(endless_talk.say(PLANCK, to=[person.reader]))


def test_another_work_unit_ends_a_run(endless_talk: EndlessTalk) -> None:
    """New work, new words; going on with the old unit after it begins at the new one."""
    endless_talk.turns(12)

    assert not is_braked(endless_talk.say(PLANCK, wu="WU-8"))
    assert not any(map(is_braked, endless_talk.turns(11, first=CURIE)))
    assert is_braked(endless_talk.say(PLANCK))


def test_a_third_one_ends_a_run(endless_talk: EndlessTalk) -> None:
    """It is a conversation of two that goes round."""
    endless_talk.turns(12)
    endless_talk.say(BOHR, to=[PLANCK, CURIE])

    assert not any(map(is_braked, endless_talk.turns(12)))


def test_several_signals_in_a_row_are_one_turn(endless_talk: EndlessTalk) -> None:
    """Who says the thirteenth thing in two signals is braked twice, who tells a lot at once is not."""
    assert not any(is_braked(endless_talk.say(PLANCK, to=[CURIE])) for _ in range(20))
    for _ in range(5):
        assert not is_braked(endless_talk.say(CURIE))
        assert not is_braked(endless_talk.say(CURIE, to=[PLANCK]))
        assert not is_braked(endless_talk.say(PLANCK))
    assert not is_braked(endless_talk.say(CURIE))

    assert is_braked(endless_talk.say(PLANCK))
    assert is_braked(endless_talk.say(PLANCK, to=[CURIE]))


def test_other_threads_have_runs_of_their_own(endless_talk: EndlessTalk) -> None:
    """The same two may talk about something else."""
    endless_talk.turns(12)
    endless_talk.last = None

    assert not any(map(is_braked, endless_talk.turns(12)))


def test_a_session_is_the_same_agent_in_all_of_its_forms(endless_talk: EndlessTalk) -> None:
    """Two sessions of one identity are no third one."""
    other = acting(
        endless_talk.store, lifecycle.start(endless_talk.store, CallerClaims(), agent_identity=PLANCK)
    )
    sent = [endless_talk.say((PLANCK, CURIE, other, CURIE)[at % 4]) for at in range(13)]

    assert [is_braked(each) for each in sent] == [False] * 12 + [True]


@pytest.mark.parametrize("intent", ["AGREE", "REJECT"])
def test_a_decision_is_never_held_up(endless_talk: EndlessTalk, intent: str) -> None:
    """It is how a chain ends: it keeps its class."""
    endless_talk.turns(13)
    ended = endless_talk.say(CURIE, intent=intent)

    assert ended.signal["interrupt_class"] == "priority"
    assert ended.warnings == []


def test_rejecting_for_ever_is_a_loop_of_the_one_who_proposes(endless_talk: EndlessTalk) -> None:
    """So it is braked all the same."""
    for _ in range(6):
        endless_talk.say(PLANCK, intent="PROPOSE")
        endless_talk.say(CURIE, intent="REJECT")

    assert is_braked(endless_talk.say(PLANCK, intent="PROPOSE"))


def test_the_brake_counts_what_came_from_another_clone(repo: Path, tmp_path: Path) -> None:
    """And a line whose time can't be, or lies ahead, is no harm."""
    endless_talk = EndlessTalk(repo)
    there = open_store(new_repo(tmp_path / "there"), endless_talk.clock)
    endless_talk.turns(1)
    curie = acting(
        there, lifecycle.start(there, CallerClaims(), agent_identity=annas("cursor:implementer:there"))
    )
    sent = None
    for _ in range(6):
        for store, sender in ((there, curie), (endless_talk.store, endless_talk.agents[PLANCK])):
            endless_talk.clock.forward(SECOND)
            carry(endless_talk.store, there)
            sent = send.send(store, sender, "well", reply_to=endless_talk.last)
            endless_talk.last = str(sent.signal["signal_id"])

    assert sent is not None
    assert is_braked(sent)


# What a sender is told of what it just said, and what a reader is asked for.

ROOT = {
    "signal_id": "sig-root",
    "sender_identity": annas("a:b:planck"),
    "recipients": [annas("a:b:curie")],
    "intent": "PROPOSE",
    "message": "",
}
COUNTER = {
    "signal_id": "sig-next",
    "sender_identity": annas("a:b:curie"),
    "reply_to": "sig-root",
    "recipients": [],
    "intent": "COUNTER",
}
NOETHER = {
    "signal_id": "sig-other",
    "sender_identity": annas("a:b:noether"),
    "reply_to": "sig-root",
    "recipients": [],
    "intent": "COUNTER",
}
WITHDRAWN = {
    "signal_id": "sig-without",
    "sender_identity": annas("a:b:curie"),
    "reply_to": "sig-next",
    "recipients": [],
    "intent": "REJECT",
}


def thread(*records: dict[str, Any]) -> FoldedThread:
    lines = {
        each["signal_id"]: [json.dumps({"at": place, **each}).encode()] for place, each in enumerate(records)
    }
    return FoldedThread(
        "thread-x", {each["signal_id"]: ThreadSignal(each, lines[each["signal_id"]]) for each in records}
    )  # type: ignore[arg-type]


@one_test_for(
    [
        ({"intent": "INFO"}, ""),
        ({"intent": "PROPOSE", "recipients": ["x"]}, ""),
        ({"intent": "PROPOSE", "recipients": ["x"], "requires_ack": True}, ""),
        ({"intent": "PROPOSE"}, "This signal asks nobody"),
        ({"intent": "PROPOSE", "recipients": ["me", "sess-1"]}, "This signal asks nobody"),
        ({"intent": "INFO", "requires_ack": True}, "This signal asks nobody"),
        ({"intent": "REJECT", "recipients": ["x"]}, "does not answer a signal"),
        ({"intent": "AGREE", "recipients": ["x"]}, "`gitmem reply ID 'your words' --agree`"),
    ]
)
def test_what_asks_nobody_or_answers_nothing_is_remarked(fields: dict[str, object], expected: str) -> None:
    """And nothing else is."""
    own = {"recipients": [], "sender_identity": "me", "sender_session": "sess-1"}
    found = send.remarks({**own, **fields})  # type: ignore[typeddict-item]

    assert len(found) == bool(expected)
    assert expected in "".join(found)


@one_test_for([
        ("AGREE", "sig-root", [ROOT], annas("a:b:curie"), ""),
        ("COUNTER", "sig-root", [ROOT], annas("a:b:curie"), ""),
        ("INFO", "sig-root", [ROOT], annas("a:b:noether"), ""),
        ("AGREE", "sig-root", [{**ROOT, "recipients": []}], annas("a:b:curie"), "asks nobody, so this AGREE does not count"),
        ("AGREE", "sig-root", [ROOT], annas("a:b:noether"), f"so this AGREE does not count; its parties are {annas('a:b:planck')}, {annas('a:b:curie')}."),
        ("COUNTER", "sig-root", [ROOT], annas("a:b:noether"), "so this COUNTER does not count"),
        ("AGREE", "sig-root", [ROOT, COUNTER], annas("a:b:planck"), "sig-root was replaced by sig-next; this AGREE counts for sig-root alone."),
        ("AGREE", "sig-next", [ROOT, COUNTER], annas("a:b:planck"), ""),
        ("AGREE", "sig-next", [ROOT, COUNTER, WITHDRAWN], annas("a:b:planck"),
         f"sig-next was withdrawn by {annas('a:b:curie')}; now in force: sig-root; this AGREE counts for sig-next alone."),
        ("AGREE", "sig-next", [ROOT, COUNTER, WITHDRAWN], annas("a:b:curie"), "You had withdrawn sig-next; this AGREE takes that back."),
        ("COUNTER", "sig-root", [ROOT, COUNTER], annas("a:b:planck"), ""),
        ("AGREE", "sig-root", [ROOT], annas("a:b:planck"), "You agree to sig-root already, so this AGREE changes nothing."),
        ("AGREE", "sig-other", [ROOT, NOETHER], annas("a:b:curie"), "sig-other leads to no proposal of a party of this thread, so this AGREE decides nothing."),
    ])  # fmt: skip
def test_a_decision_that_does_not_do_what_it_seems_to_do_is_remarked(
    intent: str, answers: str, said: list[dict[str, Any]], reader: str, expected: str
) -> None:
    """One that does is not."""
    found = reply.not_counted(intent, answers, thread(*said), [reader, None])

    assert len(found) == bool(expected)
    assert expected in "".join(found)


def test_the_last_open_question_is_the_one() -> None:
    """Of the signals to which the reader owes an answer, but for those whose task is settled."""
    signals: Any = [
        {"signal_id": "1", "intent": "PROPOSE", "owed": True},
        {"signal_id": "2", "intent": "COUNTER", "owed": True},
        {"signal_id": "3", "intent": "PROPOSE"},
    ]
    assert message_frame.last_open_question(signals) is signals[1]
    assert message_frame.decide(signals[1])[1] == "gitmem reply 2 rejected --reject"
    signals[1]["settled"] = "taken by a:b:curie"
    assert message_frame.last_open_question(signals) is signals[0]
    del signals[0]["owed"]
    assert message_frame.last_open_question(signals) is None


# Through the library: who decides, and what a decision in another's name is worth.


@pytest.fixture
def repo_path(repo: Path) -> str:
    open_store(repo, Clock()).close()
    return str(repo)


def test_a_program_that_runs_in_a_session_decides_for_nobody_else(repo_path: str) -> None:
    """It says in which one it runs."""
    with api.open(repo_path, machine="test") as log:
        curie = log.sessions.start(name="Curie").session_id
    with api.open(repo_path, machine="test") as log:
        planck = log.sessions.start(name="Planck").session_id
        asked = log.signals.send("Shall we?", to=["Curie"], intent="PROPOSE").signal
        id, thread = str(asked["signal_id"]), str(asked["thread_id"])
    with api.open(repo_path, session="Curie", runs_in=planck, machine="test") as log:
        with pytest.raises(UsageError) as caught:
            log.signals.reply(id, "agreed", intent="AGREE")
        assert (caught.value.status, caught.value.code) == (2, "another-identity")
        said = log.signals.reply(id, "agreed", intent="agree", insist=True).signal
        assert said["via"] == planck
        assert log.converged(thread).pending == [curie]
        assert log.signals.reply(id, "a remark").signal["via"] == planck
    with api.open(repo_path, session="Curie", machine="test") as log:
        log.signals.reply(id, "agreed", intent="AGREE")
        assert log.converged(thread).converged
    with api.open(repo_path, runs_in=planck, machine="test") as log:
        assert log.caller.session_id == planck
        shown = threads.thread(log.store, thread).signals
        assert [each.get("decides") for each in shown] == [None, False, None, None]


def test_a_program_that_does_not_say_who_acts_is_not_the_person_where_agents_are(repo_path: str) -> None:
    """It is the person in a clone without sessions, the worktree's only session, and refused where several are."""

    def caller() -> tuple[str, bool]:
        with api.open(repo_path, machine="test") as log:
            return log.caller.reader, log.caller.is_person

    person = caller()
    assert person[1]
    with api.open(repo_path, machine="test") as log:
        planck = log.sessions.start(name="Planck").session_id
    assert caller() == (planck, False)
    with api.open(repo_path, machine="test") as log:
        log.sessions.start(name="Curie")
    with api.open(repo_path, machine="test") as log:
        for act in (lambda: log.signals.send("x", broadcast=True), log.inbox, lambda: log.gate(wu="WU-1")):
            with pytest.raises(UsageError) as caught:
                act()
            assert (caught.value.status, caught.value.code) == (2, "which-session")
        assert len(log.roster().sessions) == 2  # a look needs nobody
    with api.open(repo_path, session=person[0], machine="test") as log:
        assert log.caller.is_person


SESSIONS = ("sess-a", "sess-b", "sess-c", "sess-d", None)
IDENTITIES = ("agent-a", "agent-b", "sess-c", annas("human:d@example.org"))
CALLED = {  # one agent in two sessions, one client in two sessions
    "sess-a": ["agent-a", "h-a"],
    "sess-b": ["agent-b"],
    "sess-c": ["h-c"],
    "sess-d": ["agent-a", "agent-d", "h-c"],
}
VIA = (*SESSIONS, None, None, "h-c", "sess-unknown")
SAID = st.tuples(
    st.sampled_from(("PROPOSE", "AGREE", "REJECT", "COUNTER", "INFO")), st.sampled_from(IDENTITIES),
    st.sampled_from(SESSIONS), st.sampled_from(VIA), st.integers(0, 4),
)  # fmt: skip


@given(st.lists(SAID, min_size=1, max_size=8), st.booleans())
def test_what_is_void_is_what_the_contract_says(
    said: list[tuple[str, str, str | None, str | None, int]], is_known: bool
) -> None:
    """Random threads: the fold and the conformance suite's own definition void the same decisions."""
    thread: dict[str, Any] = {}
    for number, (intent, by, session, via, parent) in enumerate(said):
        thread[f"sig-{number}"] = {
            "signal_id": f"sig-{number}", "created_at": f"2026-11-22T16:{number:02}:00.000000Z",
            "sender_identity": by, "sender_session": session, "via": via,
            "intent": intent, "reply_to": f"sig-{parent}" if parent < number else None,
        }  # fmt: skip
    called = CALLED if is_known else {}
    lines = {id: ThreadSignal(each, [text(each["created_at"]).encode()]) for id, each in thread.items()}
    folded = void_own_decisions("thread-x", lines, lambda ids: {id: called[id] for id in ids if id in called})
    assert {id: each.intent for id, each in folded.items()} == {
        id: each["intent"] for id, each in reference.without_own(thread, called).items()
    }
