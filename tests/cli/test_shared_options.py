"""An option that a command, a tool for models and the library share is declared once: its text, its default, its values."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli import app, shared_options
from cli.mcp import server
from cli.shared_options import Option
from gitmem.memory import context, listing, node_fields, search
from gitmem.records.kinds import Signal
from gitmem.records.table import OPTIONS as FIELD_OPTIONS
from gitmem.signals import inbox, signal_options
from tools import compile_parser

COMMANDS = {
    "session": "session set", "role": "role", "task": "task list", "claim": "claim paths", "mem": "mem create",
}  # fmt: skip
OTHER_NAMES = {"tags": "tag", "paths": "path"}  # a tool takes a list at once, a command its items one by one
REPEATED = " May be repeated."
OPTIONS = {
    each: None
    for each in (*vars(shared_options).values(), *shared_options.SIGNAL_OPTIONS.values())
    if isinstance(each, Option)
}


LIMITS = {
    "receipts.limit": shared_options.RECEIPTS_LIMIT,
    "thread.limit": shared_options.THREAD_LIMIT, "roster.limit": shared_options.ROSTER_LIMIT,
    "task.limit": shared_options.TASK_LIMIT,
}  # fmt: skip


def tool_schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each parameter of a tool."""
    mute: Any = None  # nothing is called
    return {
        f"{name}.{parameter}": schema
        for name, tool in server.Server(*server.groups(mute, mute, mute), everything=True)._ours.items()
        for parameter, schema in tool.parameters["properties"].items()
    }


def shared() -> dict[str, tuple[dict[str, Any], str]]:
    """Return the schema of each parameter that a tool shares with a command, and what the command says of it."""
    commands = dict(compile_parser.commands_of(app.build()))
    found = {}
    for place, schema in tool_schemas().items():
        name, parameter = place.split(".")
        helps = {
            each.name: str(getattr(each, "help", "")) for each in commands[COMMANDS.get(name, name)].params
        }
        known = OTHER_NAMES.get(parameter, parameter)
        if known in helps:
            found[place] = schema, helps[known]
    return found


def test_what_people_and_models_read_of_an_option_is_the_same_object() -> None:
    """A description that a tool repeats could say something else tomorrow."""
    described = {name: each for name, each in shared().items() if "description" in each[0]}
    assert {"signal.to", "inbox.all", "session.role", "mem.type"} <= described.keys()
    for name, (schema, help) in described.items():
        (option,) = [each for each in OPTIONS if each.help is schema["description"]]
        assert help.removeprefix("Required: ") in (option.help, option.help + REPEATED), name


def test_defaults_and_values_of_tools_are_those_of_commands_and_of_the_library() -> None:
    """The help of a command names both; the library's signature has the default."""
    schemas = {name: schema for name, (schema, _) in shared().items()}
    assert {name: schema["default"] for name, schema in schemas.items() if "default" in schema} == {
        "signal.intent": shared_options.INTENT.default,
        "call.join": shared_options.CALL_JOIN.default,
        **{name: option.tool_default for name, option in LIMITS.items() if name in schemas},
    }
    for name, option in LIMITS.items():
        schema = tool_schemas()[name]
        assert (schema["default"], schema["maximum"]) == (option.tool_default, option.tool_most), name
        shorter = (shared_options.THREAD_LIMIT, shared_options.TASK_LIMIT, shared_options.ROSTER_LIMIT)
        assert option.default in (None, option.tool_default) or option in shorter
    assert tool_schemas()["mem.status"]["enum"] == ["", *node_fields.STATUSES]
    assert schemas["signal.intent"]["enum"] == [*shared_options.INTENT.values]
    assert schemas["call.join"]["enum"] == [*shared_options.CALL_JOIN.values]
    for operation, name, option in (
        (search.search, "limit", shared_options.SEARCH_LIMIT),
        (listing.listing, "limit", shared_options.LIST_LIMIT),
        (context.profile, "limit", shared_options.PROFILE_LIMIT),
        (context.context, "max_size", shared_options.MAX_SIZE),
        (listing.ready, "limit", shared_options.READY_LIMIT),
        (inbox.read, "limit", shared_options.INBOX_LIMIT),
        (inbox.read, "max_bytes", shared_options.INBOX_BYTES),
    ):
        assert inspect.signature(operation).parameters[name].default is option.default
        assert option.help.endswith((f"; {option.default}.", f"(default: {option.default})."))


def test_no_tool_has_a_text_of_its_own_for_an_option_of_its_command() -> None:
    """Only what no command has is described where the tool is."""
    own = {
        keyword.value.value
        for path in (Path(server.__file__).parent).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "description" and isinstance(keyword.value, ast.Constant)
    }
    assert own.isdisjoint({schema.get("description") for schema, _ in shared().values()})


def test_every_option_of_a_signal_has_a_text_and_a_field_or_another_effect() -> None:
    """An option that the record does not have would be written as a field that no reader knows."""
    assert shared_options.SIGNAL_OPTIONS.keys() == signal_options.TYPES.keys()
    assert {field for field, *_ in FIELD_OPTIONS.values()} <= Signal.model_fields.keys()


def test_a_model_may_not_choose_what_only_a_person_may() -> None:
    """The tool has parameters for some options of the command alone."""
    assert {"insist", "allow_unseen", "fuzzy"}.isdisjoint(shared_options.TOOL_SIGNAL_OPTIONS)


@pytest.mark.parametrize(
    ("start", "never"),
    [
        ("cli.shared_options", {"typer", "pydantic"}),
        ("cli.commands.signals", {"cli.shared_options"}),
    ],
)
def test_no_everyday_command_pays_for_the_declarations(start: str, never: set[str]) -> None:
    code = f"import sys, cli.main, {start}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not never & set(done.stdout.split())
