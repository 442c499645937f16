"""The list of threads: the newest first, with what is new in each for a reader and what it owes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import UsageError
from gitmem.signals import inbox, send, thread_list
from gitmem.store import Store
from tests.sandbox import SECOND, Clock, acting, open_store


class Talk:
    """Planck asks, Curie is asked."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.planck, self.curie = (
            acting(store, lifecycle.start(store, CallerClaims(), name=name, agent_identity=identity))
            for name, identity in (("Planck", "claude:architect:shop"), ("Curie", "codex:builder:host"))
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
