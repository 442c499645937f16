"""Whom a call names: one agent, any holder of a role, or nobody; and what is written about how it was found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gitmem
from cli.render import tasks
from gitmem.api.log import Log
from gitmem.calls import WORKER
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.work import task_rules
from tests.sandbox import bodies

from .conftest import PRICES, Serve

RATES = "claude:rates:shop"


@pytest.fixture
def rates(repo: Path, log: Log) -> Iterator[Log]:
    """Another agent, which reads its signals: no worker serves it."""
    with gitmem.open(str(repo), identity=RATES) as found:
        found.sessions.start(name="Rates")
        yield found


def refused(log: Log, typed: str, code: str, **options: bool) -> UsageError:
    """The error of a call that writes nothing."""
    before = bodies(log.store)
    with pytest.raises(UsageError, match="Nothing was written") as error:
        log.call(typed, "x", timeout=1, **options)  # type: ignore[arg-type]
    assert (error.value.code, error.value.status, bodies(log.store)) == (code, 2, before)
    return error.value


def test_i1_an_agent_is_its_sessions_with_name_role_and_skills(log: Log, serve: Serve) -> None:
    """There is no registry: whoever is served can be called, by what its session says of itself."""
    serve().sessions.change(role="reviewer/general", capabilities=["rounding"])
    (session,) = [each for each in log.roster().sessions if each["agent_identity"] == PRICES]
    assert (session["display_name"], session["client"]) == ("prices", WORKER)
    assert list(session["capabilities"]) == ["rounding"]
    for typed in ("prices", PRICES, session["session_id"], "role:reviewer/general"):
        assert log.call(typed, "x", timeout=20).results[0].agent == PRICES


@pytest.mark.parametrize(("typed", "step"), [("prices", "exact"), ("PRICES", "folded"), (PRICES, "exact")])
def test_i2_the_step_of_the_lookup_is_reported_and_stored(
    log: Log, serve: Serve, typed: str, step: str
) -> None:
    """With the text as it was typed."""
    serve()
    (one,) = log.call(typed, "x", wait=False).results
    record = task_rules.require(log.store, one.task_id).record
    assert (one.resolved_by, record["resolved_by"], record["requested_to"]) == (step, step, typed)


def test_i2_the_name_of_a_worker_that_has_ended_still_names_it(repo: Path, log: Log, serve: Serve) -> None:
    """By its identity, which the name gives: the task waits for the next worker."""
    with gitmem.open(str(repo), identity="gitmem:worker:tax-rules") as own:
        own.sessions.start(name="other name")
        own.sessions.end()
    (one,) = log.call("Tax Rules", "x", wait=False).results
    assert (one.agent, one.resolved_by) == ("gitmem:worker:tax-rules", "alias")


@pytest.mark.parametrize(
    "typed", ["nobody", "", "price", "prices,nobody", "prices,,", ",", "sess-", "nobody\x1b[31m"]
)
def test_i3_i4_an_unknown_agent_is_refused_and_nothing_is_written(log: Log, serve: Serve, typed: str) -> None:
    """Substrings, misspellings and empty names never resolve; one unknown of several stops all."""
    serve()
    error = refused(log, typed, "unknown-agent")
    assert (
        error.message.startswith("Agent '") and "not found" in error.message and "\x1b" not in error.message
    )
    if typed == "price":
        assert any("prices" in each for each in error.suggestions)


def test_i3_the_beginning_of_two_session_ids_is_ambiguous(log: Log) -> None:
    """Both agents are suggested, and neither is chosen. (Of equal names the log shows all but one as another one.)"""
    for number in "12":
        fields: Any = {
            "session_id": f"sess-00000000000{number}", "event": "start", "display_name": "Bohr", "name_chosen": True,
            "agent_identity": f"codex:worker:far{number}", "clone_id": f"clone-{number}", "worktree": "far",
        }  # fmt: skip
        log.store.record([log.store.line("session", fields)], CommitMessage("A <a@example.org>", "start"))
    assert len(refused(log, "sess-000000", "ambiguous-agent").suggestions) == 2


def test_d5_a_call_to_a_role_with_several_holders_is_for_any_one(log: Log, serve: Serve) -> None:
    """No addressee is stored; the first take wins, and the answer says whose it was."""
    serve().sessions.change(role="reviewer/general")
    serve(name="rates", identity=RATES).sessions.change(role="reviewer/docs")
    found = log.call("role:reviewer", "x", timeout=20)
    (one,) = found.results
    assert (found.message, one.resolved_by, one.name) == ("X", "role", "role:reviewer")
    assert one.agent in (PRICES, RATES)
    record = task_rules.require(log.store, one.task_id).record
    assert record.get("agent") is None
    assert (record["target_role"], record["requested_to"], record["resolved_by"]) == (
        "reviewer",
        "role:reviewer",
        "role",
    )
    assert record.get("requested_role") is None  # any specialty: `target_role` says it


def test_m5_a_role_that_nobody_holds_is_refused_unless_the_caller_does_not_wait(
    log: Log, serve: Serve
) -> None:
    """The task waits for whoever takes the role; a role that nobody knows never resolves."""
    refused(log, "role:tester/unit", "no-role-holder")
    refused(log, "role:reviewer", "no-role-holder")
    refused(log, "role:nonsense", "no-role-holder", wait=False)
    (one,) = log.call("role:reviewer", "x", wait=False).results
    assert one.agent == ""
    assert "()" not in tasks.call_result(log.call("role:reviewer", "x", wait=False))[0]
    serve().sessions.change(role="reviewer/docs")
    later = log.wait_for(one.task_id, timeout=20)
    assert (later.message, later.results[0].agent) == ("X", PRICES)


def test_several_agents_get_their_tasks_in_one_entry_or_none_does(log: Log, rates: Log, serve: Serve) -> None:
    """An error of the last one, such as a limit, leaves none of the others."""
    serve()
    before = log.store.log.waiting()
    found = log.call("prices, Rates ,prices", "x", wait=False)
    assert [each.agent for each in found.results] == [PRICES, RATES]
    assert len(log.store.log.waiting()) - len(before) <= 1
    assert [each["message"] for each in rates.inbox().signals] == ["x"]  # a worker gets no signal
