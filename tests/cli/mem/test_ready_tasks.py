"""`gitmem mem ready` lists the tasks that one may take, beside the nodes of the work unit."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from ..conftest import Run

Start = Callable[..., str]


@pytest.fixture
def ask(run: Run, start: Start) -> Callable[..., str]:
    """`ask("text", "--to", …)`: a delegation by Planck; its id."""
    planck = start("Planck")

    def task(text: str, *more: str) -> str:
        said = run("delegate", text, "--wu", "WU-7", *more, "-q", session=planck)
        assert said.status == 0, said
        return said.out.strip()

    return task


def ready(run: Run, session: str, *more: str) -> list[str]:
    found = run("mem", "ready", *more, "--json", session=session)
    assert found.status == 0, found
    return [each["task_id"] for each in found.json["tasks"]]


def test_tasks_for_one_and_for_ones_role_are_ready_until_they_are_taken(
    run: Run, start: Start, ask: Callable[..., str]
) -> None:
    """Not those of others, of other roles, own ones, or those that one has refused."""
    bohr = start("Bohr", "--role", "implementer/test")
    curie = start("Curie", "--role", "reviewer/docs")
    mine = ask("for Bohr", "--to", "Bohr", "--priority", "P1")
    role = ask("for the role", "--to", "role:implementer/test")
    any_profile = ask("for any implementer", "--to", "role:implementer")
    ask("for Curie", "--to", "Curie")
    refused = ask("no thanks", "--to", "role:implementer/test")
    run("task", "reject", refused, session=bohr)

    assert ready(run, bohr, "--wu", "WU-7") == [mine, any_profile, role]
    assert ready(run, bohr, "--wu", "WU-8") == []
    text = run("mem", "ready", "--wu", "WU-7", session=bohr).out
    assert f"task {mine} · P1 · WU-7 · for Bohr · from Planck · for Bohr" in text
    assert f"next: gitmem task take {mine}" in text
    run("task", "take", mine, session=bohr)
    run("task", "cancel", role, session=bohr)
    assert mine not in ready(run, bohr, "--wu", "WU-7")
    assert len(ready(run, curie, "--wu", "WU-7")) == 1


def test_a_session_without_a_work_unit_sees_what_it_may_take(
    run: Run, start: Start, ask: Callable[..., str]
) -> None:
    """Without a task the answer says so, with status 0."""
    bohr = start("Bohr")
    nothing = run("mem", "ready", session=bohr)
    assert (nothing.status, nothing.out.splitlines()[0]) == (
        0,
        "no ready nodes of any work unit or without one",
    )
    mine = ask("for Bohr", "--to", "Bohr", "--role", "reviewer")
    assert ready(run, bohr) == [mine]


def test_a_blocked_task_becomes_ready_when_its_blockers_end(
    run: Run, start: Start, ask: Callable[..., str]
) -> None:
    """`--blocked-by`; a take before that is possible, and warned about: its taker may know more."""
    bohr = start("Bohr", "--role", "implementer/test")
    first = ask("first", "--to", "Bohr")
    second = ask("second", "--to", "Bohr", "--blocked-by", first)
    third = ask("third", "--to", "Bohr", "--blocked-by", f"{first[:12]}", "--blocked-by", second)
    assert ready(run, bohr) == [first]
    early = run("task", "take", third, session=bohr)
    assert early.status == 0 and f"note: It waits for {first}, {second}." in early.out
    run("task", "release", third, session=bohr)
    run("task", "take", first, session=bohr)
    run("task", "done", first, "ok", session=bohr)
    assert ready(run, bohr) == [second]
    run("task", "take", second, session=bohr)
    run("task", "done", second, "ok", session=bohr)
    assert ready(run, bohr) == [third]


def test_a_task_past_its_deadline_is_not_ready(run: Run, start: Start, ask: Callable[..., str]) -> None:
    bohr = start("Bohr", "--role", "implementer/test")
    ask("soon", "--to", "Bohr", "--deadline", "0.3s")
    time.sleep(0.5)
    assert run("task", "list", "--open", "--json").json["tasks"]
    assert ready(run, bohr, "--wu", "WU-7") == []
