"""The checkpoint gate: who says that a work unit is done leaves a checkpoint of it, or a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.errors import GateError, UsageError
from gitmem.memory import checkpoints
from gitmem.store import Store

from ..conftest import Git
from ..sandbox import acting, bodies
from .desk import Desk, raw

At = Callable[[str], Desk]


@pytest.fixture
def at(repo: Path, git: Git) -> At:
    """Somebody at work on WU-7 while the gate is in a mode."""

    def made(mode: str) -> Desk:
        if mode:
            git("config", "gitmem.checkpointGate", mode, cwd=repo)
        return Desk(repo, name="Planck", wu="WU-7")

    return made


def kinds(store: Store) -> list[str]:
    return [json.loads(line)["kind"] for line in bodies(store)]


def end(desk: Desk, **options: Any) -> str | None:
    caller = acting(desk.store, desk.session)
    return checkpoints.end_session(desk.store, caller, **{"done": True, **options}).remark


@pytest.mark.parametrize("mode", ["", "off"])
def test_it_is_off_unless_somebody_wants_it(at: At, mode: str) -> None:
    """Nothing is said of checkpoints."""
    desk = at(mode)
    assert "checkpoint" not in (end(desk) or "")


def test_a_warning_is_one_line_with_the_command(at: At) -> None:
    """Everybody is told all the same."""
    told = end(at("warn"))
    assert told is not None and "\n" not in told
    assert told.endswith("WU-7 has no checkpoint: gitmem mem checkpoint 'what is done' --wu WU-7")
    assert told.startswith("Everybody is told that WU-7 is done (sig-")


def test_a_closed_gate_writes_nothing_and_tells_nobody(at: At) -> None:
    """The session goes on; the error has the command that opens it."""
    desk = at("block")
    before = bodies(desk.store)
    with pytest.raises(GateError, match="WU-7 has no checkpoint") as refused:
        end(desk)

    assert bodies(desk.store) == before
    assert (refused.value.status, refused.value.code) == (1, "no-checkpoint")
    assert refused.value.next[0] == "gitmem mem checkpoint 'what is done' --wu WU-7"


def test_the_end_of_a_session_alone_is_never_gated(at: At) -> None:
    """Sessions end for many reasons."""
    assert end(at("block"), done=False) is None


@pytest.mark.parametrize("by", ["itself", "another", "a hook", "another spelling"])
def test_any_checkpoint_of_the_work_unit_opens_it(at: At, by: str) -> None:
    """Work that was handed over has one of the agent before."""
    desk = at("block")
    caller = acting(desk.store, desk.session)
    if by == "another":
        caller = acting(desk.store, lifecycle.start(desk.store, CallerClaims(), name="Curie"))
    if by == "a hook":
        lifecycle.change(desk.store, caller, activity="rounding")
        checkpoints.write_automatic(desk.store, acting(desk.store, desk.session), "pre-compact")
    else:
        unit = "#WU-7" if by == "another spelling" else "WU-7"
        checkpoints.checkpoint(desk.store, caller, "Tests pass", wu=unit, diff_stat=False)

    assert "checkpoint" not in (end(desk) or "")


@pytest.mark.parametrize(
    "fields",
    [{"wu_id": "WU-8", "type": "checkpoint"}, {"wu_id": "WU-7", "type": "note"}, {"wu_id": None, "type": "checkpoint"}],
    ids=["another unit", "another type", "no unit"],
)  # fmt: skip
def test_other_nodes_do_not_open_it(at: At, fields: dict[str, Any]) -> None:
    """They say nothing of this work."""
    desk = at("block")
    raw(desk.store, "node", **fields)
    with pytest.raises(GateError):
        end(desk)


@pytest.mark.parametrize("metadata", [None, {"trigger": "auto-pre-compact"}])
def test_a_peer_s_checkpoint_of_the_future_does_not_open_it(at: At, metadata: dict[str, str] | None) -> None:
    """As in contexts: nobody sees it there."""
    desk = at("block")
    year = 365 * 24 * 3600 * 1_000_000
    raw(desk.store, "node", at=desk.store.now() + year, type="checkpoint", wu_id="WU-7", metadata=metadata)
    with pytest.raises(GateError):
        end(desk)


@pytest.mark.parametrize("mode", ["warn", "block"])
def test_a_reason_passes_it_and_is_recorded(at: At, mode: str) -> None:
    """In the order of what happens; an open gate records none."""
    desk = at(mode)
    told = end(desk, reason="a change of one word")
    assert kinds(desk.store)[-3:] == ["audit", "signal", "session"]
    audit = json.loads(bodies(desk.store)[-3])
    assert (audit["action"], audit["reason"], audit["wu_id"]) == (
        "checkpoint-gate", "a change of one word", "WU-7",
    )  # fmt: skip
    assert told is not None and audit["audit_id"] in told


def test_an_open_gate_records_no_reason(at: At) -> None:
    """As the gate of unread signals."""
    desk = at("block")
    checkpoints.checkpoint(desk.store, desk.caller, "Tests pass", diff_stat=False)
    end(desk, reason="not needed")
    assert "audit" not in kinds(desk.store)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reason": " "}, "needs a reason"),
        ({"reason": "x", "done": False}, "needs a reason"),
        ({"reason": "ghp_" + "a1B2" * 10}, "GitHub token"),
        ({"reason": "x", "summary": "ghp_" + "a1B2" * 10}, "GitHub token"),
    ],
    ids=["empty", "not done", "a secret", "a secret in the summary"],
)
def test_what_is_refused_leaves_nothing(at: At, options: dict[str, Any], says: str) -> None:
    """Neither an audit nor a word to anybody."""
    desk = at("block")
    before = bodies(desk.store)
    with pytest.raises(UsageError, match=says):
        end(desk, **options)
    assert bodies(desk.store) == before


def test_an_unknown_mode_is_refused(at: At) -> None:
    """A typing error must not open it."""
    desk = at("blocked")
    before = bodies(desk.store)
    with pytest.raises(UsageError, match="valid are off, warn, block"):
        end(desk)
    assert bodies(desk.store) == before


def test_it_holds_in_the_library(repo: Path, git: Git) -> None:
    """Its end of a session takes the same way."""
    git("config", "gitmem.checkpointGate", "block", cwd=repo)
    with gitmem.open(repo) as log:
        log.sessions.start(name="Planck", wu="WU-7")
        with pytest.raises(gitmem.GateError):
            log.sessions.end(done=True)
        log.memory.checkpoint("Tests pass", diff_stat=False)
        assert "WU-7 is done" in str(log.sessions.end(done=True).remark)
