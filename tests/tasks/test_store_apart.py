"""While one thread waits for the network, others use the store, and nobody goes on with what it had read before."""

from __future__ import annotations

import threading

from gitmem.git.port import DulwichGit
from gitmem.open_store import DOMAIN
from gitmem.store import Store
from gitmem.work import new_task, task_list
from tests.sandbox import Agent, Clock

PLANNER = "codex:planner:one"


def test_a_thread_that_does_not_hold_the_store_leaves_the_look_of_another(store: Store) -> None:
    """Else it would put back the other one's look at its end, and the store would see no more records of other processes."""
    is_apart, ends = threading.Event(), threading.Event()

    def ask() -> None:
        with store.second():
            is_apart.set()
            ends.wait(10)

    thread = threading.Thread(target=ask)
    with store.lock, store.one_look():
        thread.start()
        is_apart.wait(0.5)
        assert store.asks_once
    ends.set()
    thread.join(10)
    assert is_apart.is_set() and not store.asks_once


def test_what_was_recorded_meanwhile_is_seen_after_it(store: Store, clock: Clock) -> None:
    """Also in one look: a caller that has asked a remote for a fence must not give up a task whose result came meanwhile."""
    git = DulwichGit(store.repo.common)
    elsewhere = Store(store.repo, git, DOMAIN, machine="other", now=clock)  # with an index of its own
    planner = Agent(elsewhere, PLANNER).caller
    with store.lock, store.one_look():
        assert task_list.list_tasks(store).tasks == []
        with store.second():
            made = new_task.create(elsewhere, planner, "Write", target_role="implementer/test").task
        assert [each.task_id for each in task_list.list_tasks(store).tasks] == [made["task_id"]]
        assert store.asks_once
    elsewhere.close()
