"""A full disk and a kill at each step of the commands on tasks, claims and handoffs: all of their lines are there, or none."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from gitmem.store import Store

from .conftest import Desk
from .faults import ALL_STEPS, STEPS_MAX, WRITES, SystemCall, child, command, open_store

# The lines of each command, by kind and event.
COMMANDS = {
    "delegate": ({"task": 1, "signal": 1}, "planck", "delegate", "Write more", "--to", "Bohr", "--role", "implementer/test", "--wu", "WU-8"),
    "take": ({"task_event take": 1}, "bohr", "task", "take", "{open}"),
    "ask": ({"task_event status": 1, "signal": 1}, "bohr", "task", "ask", "{task}", "Which?"),
    "cancel": ({"task_event cancel": 1, "task_event seal": 1}, "planck", "task", "cancel", "{open}"),
    "call": ({"task": 1, "signal": 1}, "planck", "call", "Bohr", "Is it right?", "--no-wait"),
    "done": ({"task_event status": 1, "signal": 1}, "bohr", "task", "done", "{task}", "12 cases"),
    "handoff": ({"task": 1, "signal": 1}, "bohr", "handoff", "--to", "Curie", "go on"),
    "accept": ({"task_event take": 1, "task_event status": 1, "claim claim": 1, "claim release": 1, "signal": 1}, "curie", "task", "take", "{handoff}"),
    "claim": ({"claim claim": 1}, "planck", "claim", "docs"),
    "claim --anyway": ({"claim claim": 1, "audit": 1}, "planck", "claim", "src", "--anyway", "Bohr is away"),
    "release --of": ({"claim release": 1, "audit": 1}, "planck", "claim", "release", "--of", "{claim}", "--reason", "Bohr is away"),
}  # fmt: skip


def lines_of(store: Store) -> Counter[str]:
    """The lines of a log by kind and event, without those about sessions and receipts."""
    found: Counter[str] = Counter()
    for (body,) in store.db().execute("SELECT body FROM line"):
        record = json.loads(body)
        if record["kind"] not in ("session", "receipt"):
            found[f"{record['kind']} {record.get('event', '')}".strip()] += 1
    return found


@pytest.fixture
def work(desk: Desk) -> dict[str, str]:
    """Planck asked Bohr for two things, of which Bohr took one and claims a folder; another agent of Bohr's kind offers work to Curie."""
    (desk.repo / "src").mkdir()
    (desk.repo / "src" / "a.py").touch()
    planck, bohr, curie, ada = (desk.start(name) for name in ("Planck", "Bohr", "Curie", "Ada"))
    ask = ("--role", "implementer/test", "--wu", "WU-7", "--json")
    task, given, left = (
        desk("delegate", text, "--to", to, *ask, session=planck).json["task"]["task_id"]
        for text, to in (("Write", "Bohr"), ("Check", "Ada"), ("Read", "Bohr"))
    )
    assert (
        desk("task", "take", task, session=bohr).status
        == desk("task", "take", given, session=ada).status
        == 0
    )
    claim = desk("claim", "src", "--json", session=bohr).json["claim_id"]
    assert desk("claim", "lib", session=ada).status == 0
    handoff = desk("handoff", "--to", "Curie", "go on", "--json", session=ada).json["task"]["task_id"]
    return {
        "task": task,
        "open": left,
        "claim": claim,
        "handoff": handoff,
        "planck": planck,
        "bohr": bohr,
        "curie": curie,
    }


@pytest.mark.deep
@pytest.mark.parametrize("kills", [False, True], ids=["full", "killed"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_on_work_is_whole_or_absent(
    desk: Desk, work: dict[str, str], tmp_path: Path, name: str, kills: bool
) -> None:
    """Acknowledged, it is there; failed, it never appears; the sentence says which.

    A kill comes at every other step: at the even ones of every other command.
    """
    expected, who, *args = COMMANDS[name]
    store = open_store(desk.repo)
    before = lines_of(store)
    store.close()
    acknowledged = 0
    first = 1 + list(COMMANDS).index(name) % 2
    for step in range(first, STEPS_MAX, 2) if kills else range(1, STEPS_MAX):
        copy = tmp_path / "copy"
        shutil.copytree(desk.repo, copy, symlinks=True)
        fault = SystemCall(step, ALL_STEPS if kills else WRITES, kills=kills)
        end = child(
            command(copy, *(each.format(**work) for each in args), "--json", session=work[who]), fault
        )
        after = open_store(copy)
        added = +(lines_of(after) - before)
        after.close()
        shutil.rmtree(copy)
        about = f"{name}, step {step}: {end.answer}, {dict(added)}"
        assert "Traceback" not in str(end.answer), about
        assert added in (Counter(expected), Counter()), about
        if end.died:
            continue
        assert end.answer["status"] in (0, 4), about
        if end.answer["status"] == 0:
            assert added == Counter(expected), about
            acknowledged += 1
        else:
            assert not added or "unknown" in end.answer["out"], about
            assert "Nothing was" in end.answer["err"] or "unknown" in end.answer["out"], about
        if end.steps < step:
            break
    else:
        pytest.fail("the command never ended")
    assert acknowledged and step > 4
