"""JSON answers have names in snake case, what the published schema requires, and each list that is empty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Run

Start = Callable[..., str]
OBJECTS = {
    "requested_role": "AgentRoleDescriptor", "actual_role": "AgentRoleDescriptor",
    "requested_ownership_scope": "OwnershipScope", "actual_ownership_scope": "OwnershipScope",
}  # fmt: skip
OF_OTHERS = {"metadata", "payload", "context"}  # what agents and A2A clients have named
COMMANDS = (
    "inbox", "log", "roster", "whoami", "task list", "task list --stats", "task list --tree", "claim list", "role", "view --stats", "receipts",
    "mem list", "mem ready", "mem context --track-access", "mem profile", "mem triage list", "mem archive --dry-run", "mem cleanup --dry-run",
    "mem index --dry-run", "mem summarize --wu WU-7", "mem promote --wu WU-7 --tag decision --dry-run", "doctor", "verify",
)  # fmt: skip


def names(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each name in a value with what it names, but not what others have named."""
    for each in value if isinstance(value, list) else ():
        yield from names(each)
    for name, each in value.items() if isinstance(value, dict) else ():
        yield name, each
        if name not in OF_OTHERS:
            yield from names(each)


@pytest.fixture
def answers(run: Run, start: Start) -> dict[str, Any]:
    """The JSON answers of commands in a clone where something has happened."""
    planck = start("Planck", "--wu", "WU-7", "--role", "planner")
    bohr = start("Bohr", "--role", "implementer/test", "--scope", "paths=src/**")
    run("mem", "create", "Round once", "--wu", "WU-7", session=planck)
    found = {"signal": run("signal", "to all", "--broadcast", "--json", session=planck).json}
    for to in ("Bohr", "role:implementer/test", "role:implementer", "role:reviewer"):
        made = run(
            "delegate", "Write it", "--to", to, "--scope", "paths=src/**", "--json", session=planck
        ).json
        found[f"delegate {to}"] = made
    for to in ("role:implementer", "role:reviewer"):
        found[f"call {to}"] = run("call", to, "x", "--no-wait", "--json", session=planck).json
        found[f"task of {to}"] = run("task", "list", "--json", session=planck).json
    found["delegate --role"] = run(
        "delegate", "Try it", "--to", "Bohr", "--role", "reviewer/docs", "--json", session=planck
    ).json
    id = found["delegate Bohr"]["task"]["task_id"]
    found["task take"] = run("task", "take", id, "--json", session=bohr).json
    found["task show"] = run("task", "show", id, "--json", session=bohr).json
    found["inbox of Bohr"] = run("inbox", "--json", session=bohr).json
    for words in COMMANDS:
        said = run(*words.split(), "--json", session=planck)
        if said.status in (0, 1) and said.out:
            found[words] = said.json
    assert len(found) > 20, sorted(found)
    return found


def test_names_are_in_snake_case(answers: dict[str, Any]) -> None:
    wrong = {
        (command, name) for command, value in answers.items() for name, _ in names(value) if re.search("[a-z][A-Z]", name)
        if re.fullmatch(r"\w+", name) and not re.search(r"\d", name)
    }  # fmt: skip
    assert wrong == set()


def test_roles_and_scopes_have_what_their_schema_requires(answers: dict[str, Any], run: Run) -> None:
    seen = set()
    for value in answers.values():
        for name, each in names(value):
            if name in OBJECTS and each:
                seen.add(name)
                jsonschema.validate(each, run("schema", OBJECTS[name]).json)
    assert seen == set(OBJECTS)


def test_a_broadcast_has_its_empty_list_of_recipients(answers: dict[str, Any]) -> None:
    assert answers["signal"]["signal"]["recipients"] == []
    (shown,) = (each for each in answers["inbox of Bohr"]["signals"] if each["message"] == "to all")
    assert shown["recipients"] == []
