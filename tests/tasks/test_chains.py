"""R19, D14: delegations within delegations: whose chain is filled, and which ones writer and taker refuse."""

from __future__ import annotations

import pytest

from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.store import Store
from gitmem.work import new_task, task_decisions, task_list, task_rules, task_work
from tests.sandbox import HOUR, SECOND, Agent, Clock, annas, bodies


class Team:
    """Agents a, b, c … of one clone."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.agents: dict[str, Agent] = {}

    def __getitem__(self, name: str) -> Agent:
        if name not in self.agents:
            self.agents[name] = Agent(self.store, f"claude:worker:{name}")
        return self.agents[name]

    def ask(self, of: str, to: str | None, **options: object) -> str:
        self.clock.forward(SECOND)
        whom: dict[str, object] = (
            {"to": self[to].caller.reader} if to else {"target_role": "implementer/test"}
        )
        made = new_task.create(self.store, self[of].caller, "Go on", **whom, **options)  # type: ignore[arg-type]
        return str(made.task["task_id"])

    def take(self, who: str, task_id: str) -> str:
        self.clock.forward(SECOND)
        task_work.take(self.store, self[who].caller, task_id)
        return task_id

    def chain(self, task_id: str) -> list[str]:
        return list(task_rules.require(self.store, task_id).record.get("chain") or ())

    def refused(self, code: str, of: str, to: str | None, **options: object) -> str:
        self[of], to and self[to]
        before = bodies(self.store)
        with pytest.raises(UsageError) as error:
            self.ask(of, to, **options)
        assert error.value.code == code and "Nothing was written" in error.value.message
        assert bodies(self.store) == before
        return error.value.message

    def by_peer(self, chain: list[str], **fields: object) -> str:
        """A task whose writer checked nothing."""
        made = store_line(self.store, chain, fields)
        self.store.record([made[1]], CommitMessage("gitmem <gitmem@localhost>", "sync"))
        return made[0]

    def rejected(self, who: str, task_id: str) -> tuple[str, str]:
        """The code in the log, and the answer of the taker."""
        with pytest.raises(UsageError) as error:
            self.take(who, task_id)
        (event,) = task_rules.require(self.store, task_id).rejections
        assert event.sender[0] == self[who].caller.reader
        return event.record["payload"]["error"]["code"], error.value.message


def store_line(store: Store, chain: list[str], fields: dict[str, object]) -> tuple[str, tuple[str, bytes]]:
    id = store.new_id("task")
    return id, store.line("task", {  # type: ignore[arg-type]
        "task_id": id, "thread_id": "thread-0001", "message": "x", "chain": chain, "purpose": "delegation",
        "target_role": "implementer/test", "sender_identity": "claude:mallory:far", **fields,
    })  # fmt: skip


@pytest.fixture
def team(store: Store, clock: Clock) -> Team:
    return Team(store, clock)


def test_r19_the_chain_is_that_of_the_one_task_that_the_writer_has(team: Team) -> None:
    """Or of the task that it says; of two tasks none is meant. Trees show it."""
    top = team.take("b", team.ask("a", "b"))
    child = team.take("c", team.ask("b", "c"))
    grandchild = team.ask("c", "d")
    assert [team.chain(each) for each in (top, child, grandchild)] == [[], [top], [top, child]]
    (group,) = task_list.tree(team.store, top).groups
    assert [(row.task.task_id, row.depth) for row in group.tasks] == [(top, 0), (child, 1), (grandchild, 2)]

    second = team.take("b", team.ask("a", "b"))
    assert team.chain(team.ask("b", "e")) == []
    assert team.chain(team.ask("b", "e", within=second)) == [second]
    task_work.report(team.store, team["b"].caller, second, "completed")
    assert team.chain(team.ask("b", "e")) == [top]
    assert team.refused("unknown-task", "b", "e", within="task-unknown00")


def test_r19_the_writer_may_name_the_task_or_none(team: Team) -> None:
    """Even the only one that it has; not one that is finished, and not an empty text: a shell variable may be unset."""
    top = team.take("b", team.ask("a", "b"))
    assert team.chain(team.ask("b", "e", within="none")) == []
    assert team.chain(team.ask("b", "e", within=None)) == [top]
    other = team.ask("a", "d")
    assert team.chain(team.ask("b", "e", within=other)) == [other]
    assert team.chain(team.ask("b", "e", within=other[:14])) == [other]
    team.refused("empty-id", "b", "e", within="")
    team.refused("unknown-task", "b", "e", within="NONE")
    team.refused("short-id", "b", "e", within="task-")

    task_work.report(team.store, team["b"].caller, top, "completed")
    assert "is finished: done" in team.refused("finished-task", "b", "e", within=top)
    task_decisions.cancel(team.store, team["a"].caller, other)
    assert "is finished: canceled" in team.refused("finished-task", "b", "e", within=other)


def test_a_task_is_within_at_most_five_others(team: Team) -> None:
    """For its writer and for its taker, also where a peer's chain leaves the outer ones out."""
    last = team.take("b", team.ask("a", "b"))
    for of, to in zip("bcde", "cdef", strict=True):
        last = team.take(to, team.ask(of, to))
    assert len(team.chain(last)) == 4
    fifth = team.take("g", team.ask("f", "g"))
    assert "at most 5" in team.refused("chain-depth", "g", "h")

    short = team.by_peer([fifth])
    code, said = team.rejected("h", short)
    assert code == task_rules.DEPTH and said.endswith("It was rejected for you.")
    assert team.rejected("h", short)[1].endswith("You have rejected it before.")
    assert (
        team.rejected("i", team.by_peer([f"task-{number:08}" for number in range(6)]))[0] == task_rules.DEPTH
    )


def test_r19_no_agent_is_twice_in_a_chain_unless_the_writer_says_so(team: Team) -> None:
    top = team.take("b", team.ask("a", "b"))
    for to in "ab":
        assert f"{annas(f'claude:worker:{to}')} is in the chain" in team.refused("chain-cycle", "b", to)
    assert team.take("a", team.ask("b", "a", again=True))

    open_to_role = team.by_peer([top], sender_identity="claude:worker:b")
    assert team.rejected("a", open_to_role)[0] == task_rules.CYCLE
    assert team.take("c", open_to_role), "the refusal of one is no refusal for others"


def test_a_ring_of_tasks_ends(team: Team) -> None:
    one = team.by_peer(["task-bbbbbbbb"], task_id="task-aaaaaaaa") and "task-aaaaaaaa"
    team.by_peer([one], task_id="task-bbbbbbbb")
    assert team.rejected("c", one)[0] == task_rules.CYCLE
    team.refused("chain-cycle", "c", "d", within=one)
    itself = team.by_peer(["task-cccccccc"], task_id="task-cccccccc") and "task-cccccccc"
    assert team.rejected("c", itself)[0] == task_rules.CYCLE


def test_at_most_fifty_tasks_are_within_one(team: Team) -> None:
    """The writer counts them; of more, which clones wrote apart, the taker refuses the later ones."""
    top = team.take("b", team.ask("a", "b"))
    for _ in range(task_rules.WITHIN_ROOT_MAX - 1):
        team.clock.forward(SECOND)
        first = team.by_peer([top])
    team.ask("b", "c")
    assert "50 tasks" in team.refused("chain-quota", "b", "c")
    team.clock.forward(SECOND)
    late = team.by_peer([top])
    assert team.rejected("d", late)[0] == task_rules.QUOTA
    assert team.take("d", first)


def test_a_task_begins_before_the_deadlines_of_its_chain(team: Team) -> None:
    """By default before the first one of them; the taker refuses what a peer wrote without one."""
    until = team.clock.value + HOUR
    top = team.take("b", team.ask("a", "b", deadline=until))
    inner = task_rules.require(team.store, team.ask("b", "c"))
    assert inner.record["deadline"] == task_rules.require(team.store, top).record["deadline"]
    team.refused("late-deadline", "b", "c", deadline=until + SECOND)
    team.ask("b", "c", deadline=until - SECOND)

    careless = team.by_peer([top])
    team.clock.forward(HOUR)
    team.refused("late-deadline", "b", "c")
    with pytest.raises(UsageError) as error:
        team.take("d", careless)
    assert error.value.code == "past-deadline"
    assert not task_rules.require(team.store, careless).rejections
