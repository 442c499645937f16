"""R20: LumenFlow's `delegation-registry.jsonl` as tasks: idempotent, and a bad line costs that line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitmem.agents import caller as callers
from gitmem.importers import lumenflow_import
from gitmem.importers.imported import Imported
from gitmem.store import Store
from gitmem.work import task_list, task_rules
from tests.sandbox import Agent, Clock, bodies, new_repo, open_store

LINE: dict[str, Any] = {
    "id": "dlg-a1b2", "parentWuId": "WU-1", "targetWuId": "WU-2", "lane": "Framework: Core", "intent": "delegation",
    "delegatedAt": "2025-01-15T10:00:00.000Z", "status": "pending", "completedAt": None,
    "requested_role": {"lifecycle_role": "implementer", "specialty_profile": "test"},
    "briefAttestation": {"algorithm": "sha256", "promptHash": "ab" * 32, "promptLength": 13,
                         "generatedAt": "2025-01-15T10:00:00.000Z", "clientName": "claude-code"},
}  # fmt: skip
PICKED = {"pickedUpAt": "2025-01-15T11:00:00.000Z", "pickedUpBy": "claude:worker:bohr"}
DONE = {"status": "completed", "completedAt": "2025-01-15T12:00:00.000Z"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(new_repo(tmp_path / "clone"), Clock())


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """The registry of a project, whose folder is its grandparent's parent."""
    found = tmp_path / "project" / ".lumenflow" / "state" / "delegation-registry.jsonl"
    found.parent.mkdir(parents=True)
    return found


def write(registry: Path, *lines: Any) -> None:
    registry.write_text(
        "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines)
    )


def bring(store: Store, registry: Path, **options: Any) -> Imported:
    caller: callers.Caller = Agent(store, "codex:planner:one").caller
    return lumenflow_import.import_folder(store, caller, str(registry.parents[2]), **options)


def only(store: Store) -> task_list.TaskDetail:
    (row,) = task_list.list_tasks(store).tasks
    return task_list.show(store, str(row.task_id))


@pytest.mark.parametrize(
    ("changes", "state", "events"),
    [
        ({}, "submitted", []),
        (PICKED, "working", ["take"]),
        (PICKED | DONE, "completed", ["take", "seal"]),
        (DONE, "completed", ["seal"]),
        ({"status": "timeout"}, "failed", ["seal"]),
        (PICKED | {"status": "crashed"}, "failed", ["take", "seal"]),
        ({"status": "escalated"}, "submitted", ["escalate"]),
        ({"status": "on holiday"}, "submitted", []),
    ],
)
def test_r20_a_delegation_is_a_task_with_its_last_state(
    store: Store, registry: Path, changes: dict[str, Any], state: str, events: list[str]
) -> None:
    """Work unit, lane, role and brief have their fields; nothing of the line is lost."""
    write(registry, LINE, *([LINE | changes] if changes else []))
    found = bring(store, registry)
    assert (found.counts["delegations"]["imported"], found.problems) == (1, [])
    shown = only(store)
    task: Any = shown.task
    assert (shown.state, [each["event"] for each in shown.events]) == (state, events)
    assert (task["purpose"], task["wu_id"], task["lane"]) == ("delegation", "WU-2", "Framework: Core")
    assert (task["requested_role"], task["brief_digest"]) == (LINE["requested_role"], "ab" * 32)
    assert task["created_at"] == "2025-01-15T10:00:00.000000Z"
    assert (task["lumenflow"]["id"], task["lumenflow"]["parentWuId"]) == ("dlg-a1b2", "WU-1")
    if "take" in events:
        assert task_rules.require(store, task["task_id"]).takes[0].sender == ("claude:worker:bohr", None)


def test_r20_importing_again_adds_only_what_changed(store: Store, registry: Path, tmp_path: Path) -> None:
    """On another clone the bytes are the same."""
    write(registry, LINE)
    bring(store, registry)
    before = bodies(store)
    assert bring(store, registry).counts["delegations"] | {"read": 1} == {
        "read": 1, "imported": 0, "present": 1, "differs": 0, "repeated": 0, "bad": 0,
    }  # fmt: skip
    assert [each for each in bodies(store) if '"task' in str(each)] == [
        each for each in before if '"task' in str(each)
    ]
    write(registry, LINE, LINE | PICKED, LINE | PICKED | DONE)
    assert bring(store, registry).recorded
    assert only(store).state == "completed"
    other = open_store(new_repo(tmp_path / "other"), Clock())
    bring(other, registry)
    assert only(other).task == only(store).task
    assert only(other).events == only(store).events
    other.close()


def test_r20_a_hostile_registry_costs_its_bad_lines(store: Store, registry: Path) -> None:
    """Garbage, other types, a line without an end, a huge one; a field that does not fit is kept beside the others."""
    write(
        registry, "not json", [1], LINE | {"id": ["x"]}, LINE | {"id": "dlg-0001", "delegatedAt": "soon"},
        LINE | {"id": "dlg-0002", "lane": "x" * 900_000}, LINE | {"id": "dlg-0003", "status": {"a": 1}, "pickedUpBy": [1]},
        LINE | {"id": "dlg-0004", "targetWuId": {"a": 1}, "requested_role": "boss", "briefAttestation": "none"},
        "x" * 2_000_000, LINE | {"id": "dlg-0005"}, '{"id": "dlg-0006", ',
    )  # fmt: skip
    found = bring(store, registry)
    assert (found.counts["delegations"]["read"], found.counts["delegations"]["bad"]) == (10, 7)
    assert found.counts["delegations"]["imported"] == 3
    assert {str(each.task_id) for each in task_list.list_tasks(store).tasks}
    assert any("its targetWuId " in each.reason for each in found.remarks)
    assert any("its status is unknown here" in each.reason for each in found.remarks)


def test_r20_a_dry_run_writes_nothing(store: Store, registry: Path) -> None:
    write(registry, LINE)
    assert bring(store, registry, dry_run=True).counts["delegations"]["imported"] == 1
    assert task_list.list_tasks(store).tasks == []
