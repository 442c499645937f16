"""An option that a command, a tool for models and the library share is declared once: its text, its default, its values."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any
from unittest import mock

import pytest

from cli import app
from cli.commands import options
from cli.mcp import tools
from gitmem.memory import context, listing, search
from gitmem.records.kinds import Signal
from gitmem.records.table import OPTIONS as FIELD_OPTIONS
from gitmem.signals import inbox, signal_options
from tools import compile_help, compile_parser, compile_reference

TOOLS = Path(tools.__file__).parent
BY_HAND = {
    "no_mark"
}  # the inbox marks what it shows once the answer is written: its tool can't run the command


def test_no_option_of_a_command_is_written_by_hand_in_a_tool() -> None:
    """Each would be a second declaration, which could say something else tomorrow."""
    declared = {name for tool in tools.NAMES for name in tools.parameters(tool)}
    flags = {each.flag for tool in tools.NAMES for each in tools.parameters(tool).values()}
    written = {
        node.value
        for path in TOOLS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(declared) > 40 and "--to" in flags
    assert written & {name for name in declared if "_" in name} == BY_HAND
    assert not written & (flags - {""})


def test_a_parameter_of_a_tool_is_that_of_its_command() -> None:
    """By its name, its help and its need, in each of them."""
    commands = dict(compile_parser.commands_of(app.build()))
    for tool, declared in tools.TOOLS.items():
        for path in declared.commands.values():
            params = {each.name: each for each in commands[path].params}
            for name, each in tools.parameters_of(path).items():
                assert params[name].required is each.is_required, (tool, name)
                assert not each.flag or each.flag in params[name].opts, (tool, name)


def test_a_new_operation_is_one_function_and_found_in_every_place() -> None:
    """Typer, the parser's table, the help, the reference, the man page and the tool have it, and it runs."""
    module: Any = ModuleType("cli.commands.moon")

    def moon(
        at: Any, phase: Annotated[str, options.Argument("PHASE", "Of the moon."), options.MODEL]
    ) -> None:
        """Tell when it is full."""
        at.append(phase)

    moon.__module__, module.moon = module.__name__, moon
    with (
        mock.patch.dict(sys.modules, {module.__name__: module}),
        mock.patch.dict(app.COMMANDS, {"moon": "moon:moon"}),
        mock.patch.dict(app.TOPICS, {"Start": (*app.TOPICS["Start"], "moon")}),
        mock.patch.dict(tools.TOOLS, {"moon": tools.Tool("The moon.", {"": "moon"})}),
    ):
        assert "'moon': 'moon:moon phase'" in compile_parser.compile_table()
        assert "Of the moon." in compile_help.compile_help()
        pages = [text for text in compile_reference.compile_reference().values() if "Of the moon" in text]
        assert len(pages) == 2  # the reference and the man page
        nobody: Any = None
        _, phase = inspect.signature(tools.function("moon", nobody)).parameters.values()
        assert (phase.name, phase.annotation.__metadata__[-1].description) == ("phase", "Of the moon.")
        said: list[str] = []
        path, values = tools.command_of("moon", {"phase": "new"})
        tools.body_of(path)(said, **values)
        assert said == ["new"]


def test_defaults_of_options_are_those_of_the_library() -> None:
    """The help of a command names them; the library's signature has them."""
    for operation, path, name in (
        (search.search, "mem search", "limit"),
        (listing.listing, "mem list", "limit"),
        (context.profile, "mem profile", "limit"),
        (context.context, "mem context", "max_size"),
        (listing.ready, "mem ready", "limit"),
        (inbox.read, "inbox", "limit"),
    ):
        default = inspect.signature(operation).parameters[name].default
        (declared,) = (each for each in app.parameters_of(tools.body_of(path)) if each.name == name)
        assert app.option_of(declared).help.endswith(f"(default: {default}).")


def test_the_options_do_not_grow() -> None:
    """Whoever adds one takes another away: what few people use is in everybody's help (decision 324)."""
    common = ("directory", "as_", "json", "commit")
    options = [
        (path, each.name)
        for path, command in compile_parser.commands_of(app.build())
        for each in command.params
        if each.param_type_name == "option" and each.name not in common
    ]
    assert len(options) <= 260


def test_every_option_of_a_signal_has_a_text_and_a_field_or_another_effect() -> None:
    """An option that the record does not have would be written as a field that no reader knows."""
    assert options.SIGNAL_OPTIONS.keys() == signal_options.TYPES.keys()
    assert {field for field, *_ in FIELD_OPTIONS.values()} <= Signal.model_fields.keys()


def test_a_model_may_not_choose_what_only_a_person_may() -> None:
    """The tools have parameters for some options of the commands alone."""
    given = {name for tool in tools.NAMES for name in tools.parameters(tool)}
    assert {"insist", "allow_unseen", "anyway"}.isdisjoint(given)


@pytest.mark.parametrize(
    ("start", "never"),
    [
        ("cli.commands.options", {"typer", "pydantic"}),
        ("cli.commands.signals", {"cli.commands.options"}),
    ],
)
def test_no_everyday_command_pays_for_the_declarations(start: str, never: set[str]) -> None:
    code = f"import sys, cli.main, {start}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not never & set(done.stdout.split())
