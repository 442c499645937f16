"""The parser gives each command the values that typer gives it, refuses what typer refuses, and the help is typer's."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from cli import app, help_text, main, parser
from cli.parser import CommandLineError, parse
from cli.parser_table import COMMANDS, COMMON
from tools import compile_help, compile_parser, compile_reference

from .conftest import Run

Call = tuple[str, dict[str, object], dict[str, object]]

parameters_of = functools.cache(app.parameters_of)

# What people and agents call all the time, with arguments that are plainly right.
EVERYDAY = (
    ["session", "start", "--name", "Curie"], ["session", "set", "--wu", "WU-7"], ["session", "note", "Reading"],
    ["session", "end"], ["roster", "--all"], ["whoami"], ["roster"], ["roster", "Cur"],
    ["signal", "Hello", "--to", "Curie", "--to=Planck", "-q"], ["reply", "sig-1", "Yes", "--agree", "--json"],
    ["inbox", "--intent", "propose", "--limit=3"], ["watch", "--as", "Curie"], ["thread", "sig-1"],
    ["show", "sig-1"], ["converged", "sig-1", "--wait", "30s"], ["converged", "sig-1", "--sync"],
    ["gate", "--wu", "WU-7"], ["log", "-n", "5"], ["log", "-n5"], ["sync"], ["sync", "origin", "backup"],
    ["mem", "create", "A finding", "--type", "bug"], ["mem", "create", "-q", "--", "-1 for this"],
    ["mem", "update", "mem-1", "mem-2", "--content", "New"], ["mem", "relate", "mem-1", "blocks", "mem-2"],
    ["mem", "checkpoint"], ["mem", "checkpoint", "Half done"], ["show", "mem-1"], ["mem", "list"],
    ["mem", "ready"], ["mem", "search", "tabs", "parser"], ["mem", "context", "--wu", "WU-7"], ["mem", "recover"],
    ["mem", "profile"], ["mem", "promote", "mem-1", "--tag", "decision"], ["mem", "summarize"],
    ["mem", "triage"], ["mem", "triage", "archive", "mem-1", "mem-2", "--reason", "Done"], ["mem", "index"],
    ["mem", "archive"], ["mem", "cleanup"], ["mem", "delete", "mem-1"], ["mem", "export"],
    ["-C", "sub", "--as", "Curie", "--json", "inbox"], ["-Csub", "--as=Curie", "inbox", "-C", "..", "--as", "Planck"],
    ["signal", "--", "--to"], ["signal", "-", "--to", "-1"], ["reply", "-qCsub", "sig-1", "Yes"],
    ["inbox", "--wu", "WU-7", "--wu", "WU-8"], ["session", "set", "--wu", ""],
)  # fmt: skip
# What is asked for, by what is typed.
ASKED = {
    (): "", ("--help",): "", ("-h",): "", ("help",): "", ("-C", "x"): "", ("--version",): "--version", ("-C", "x", "--version"): "--version",
    ("--all", "--help"): "--all", ("help", "--all"): "--all", ("inbox", "--help"): "inbox", ("inbox", "-h"): "inbox",
    ("--help", "inbox"): "inbox", ("help", "inbox"): "inbox", ("help", "mem", "create"): "mem create", ("mem", "--help"): "mem",
    ("mem", "create", "x", "-h"): "mem create", ("signal", "-qh"): "signal", ("claim", "--help"): "claim",
}  # fmt: skip
WRONG = {
    ("inbox", "--bogus"): "No such option: --bogus.", ("inbox", "--quite"): "No such option: --quite. Did you mean --quiet?",
    ("inbox", "extra"): "Got unexpected extra argument(s) (extra).", ("inbox", "--for"): "Option '--for' requires an argument.",
    ("signal",): "Missing argument 'MESSAGE'.", ("signal", "a", "b"): "Got unexpected extra argument(s) (b).",
    ("signal", "-1 for this"): "No such option: -1.", ("signal", "x", "--sync=yes"): "Option '--sync' does not take a value.",
    ("signal", "x", "-qx"): "No such option: -x.", ("reply", "sig-1"): "Missing argument 'MESSAGE'.", ("session",): "gitmem session needs a command",
    ("session", "strat"): "No such command 'strat'. Did you mean 'start'?", ("session start",): "No such command 'session start'.",
    ("session", "--json", "list"): "gitmem session needs a command", ("mem", "search"): "Missing argument 'TEXT'.",
    ("-C",): "Option '-C' requires an argument.", ("--json",): "Missing command before --json.", ("nonsense",): "No such command 'nonsense'.",
    ("",): "No such command ''.", ("help", "nonsense"): "No such command 'nonsense'.", ("--all", "inbox"): "No such option: --all.",
    ("commit-waitin",): "No such command 'commit-waitin'.",
}  # fmt: skip


def called(how: Callable[[], object]) -> list[Call]:
    """Return what is called by one of both ways: the function, the options before the command, and all values."""
    calls: list[Call] = []

    def take(body: Callable[..., int], before: Mapping[str, object], values: dict[str, Any]) -> int:
        given = {"directory": None, "as_": None, "json": False, "commit": False} | values
        given |= {each.name: each.default for each in parameters_of(body) if each.name not in values}
        calls.append((f"{body.__module__}:{body.__name__}", {**before}, given))
        return 0

    with mock.patch.object(main, "run_command", take):
        how()
    return calls


def execute(body: Callable[..., int], before: Mapping[str, object], values: dict[str, Any]) -> int:
    """Run what stands for `run_command` at the time of the call."""
    return main.run_command(body, before, values)


ROOT = app.build(execute=execute)


def by_typer(args: list[str]) -> list[Call]:
    def run() -> None:
        try:
            ROOT.main(args=list(args), prog_name="gitmem", standalone_mode=False)
        except Exception as error:
            assert hasattr(error, "format_message") or type(error).__name__ == "UsageError", error

    return [
        (name, {key: value for key, value in before.items() if value not in (None, False)}, values)
        for name, before, values in called(run)
    ]


def by_parser(args: list[str]) -> list[Call]:
    """The call, none if it can't be run or asks for help."""
    try:
        parsed = parse(args)
    except CommandLineError:
        return []
    return [] if isinstance(parsed, str) else called(lambda: main._run(list(args)))


@pytest.mark.parametrize("args", EVERYDAY, ids=str)
def test_every_everyday_command_is_parsed_without_typer_and_alike(args: list[str]) -> None:
    """The same function gets the same values."""
    assert by_parser(args) == by_typer(args)


@pytest.mark.parametrize(("args", "asked"), ASKED.items(), ids=str)
def test_help_is_found(args: tuple[str, ...], asked: str) -> None:
    """Of a command wherever it is asked for, of a group, of all, and the version."""
    assert parse(args) == asked
    assert asked == "--version" or help_text.HELP[asked]


@pytest.mark.parametrize(("args", "message"), WRONG.items(), ids=str)
def test_what_is_wrong_is_said(args: tuple[str, ...], message: str, run: Run) -> None:
    """With what was probably meant; with exit status 2, and nothing written."""
    said = run(*args)
    assert (said.status, said.out) == (2, "") or "--json" in args
    assert message.partition(" Did you mean")[0] in said.err + said.out


def test_the_first_screen_fits_a_terminal() -> None:
    """Of 80 columns and 24 rows; what is all has no line that is longer."""
    first = help_text.HELP[""].splitlines()
    assert len(first) <= 23 and max(map(len, first)) <= 80
    assert len(app.FIRST) <= 5 and sum(map(len, app.FIRST.values())) == 12
    assert max(map(len, help_text.HELP["--all"].splitlines())) <= 80


def test_each_command_is_listed_once() -> None:
    listed = [name for names in app.TOPICS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert {*listed} == {path.partition(" ")[0] for path in COMMANDS if path not in parser.HIDDEN}


TEXTS = st.sampled_from(
    ["WU-7", "a b", "", "-", "-1", "--json", "--", "-q", "=x", "a=b", "é", "session", "\n"]
)


def pieces(path: str) -> st.SearchStrategy[list[str]]:
    """Parts of a command line: options of the command with and without values, words, and what is nothing of these."""
    declared = [each for each in f"{COMMON} {COMMANDS[path]}".split() if each.startswith("-")]
    options = st.sampled_from([each.partition("=")[0].partition(":")[0] for each in declared])
    return st.one_of(
        st.tuples(options).map(list),
        st.tuples(options, TEXTS).map(list),
        st.builds(lambda option, value: [f"{option}={value}"], options, TEXTS),
        st.builds(lambda option, value: [f"{option}{value}"], options, TEXTS),
        st.tuples(TEXTS).map(list),
        st.sampled_from([["-qq"], ["-qn5"], ["-h"], ["--help"], ["--bogus"], ["--j"], ["-x"], ["--wu-"]]),
    )


@given(data=st.data())
def test_for_any_command_line_both_give_the_same(data: st.DataObject) -> None:
    """Options in any form and order, doubled, before the command and behind it, right or wrong."""
    path = data.draw(st.sampled_from(list(COMMANDS)))
    before = data.draw(
        st.lists(
            st.sampled_from(["--json", "--commit", "-Csub", "--as=x", "--as", "-C", "x", "--"]), max_size=2
        )
    )
    behind = data.draw(st.lists(pieces(path), max_size=5))
    args = [*before, *path.split(), *(word for piece in behind for word in piece)]

    assert by_parser(args) == by_typer(args)


@pytest.mark.parametrize("value", ["a value", ""])
def test_no_option_is_left_to_typer(value: str) -> None:
    """Every command, with each of its options and arguments."""
    for path, declared in COMMANDS.items():
        args = path.split()
        for each in f"{COMMON} {declared.partition(' ')[2]}".split():
            option, equals, repeated = each.partition(":")[0].partition("=")
            if not each.startswith("-"):
                args.append(value)
            else:
                args += [option, *([value] if equals else [])] * (2 if repeated else 1)

        assert by_parser(args) == by_typer(args) != [], args


def test_the_table_the_help_and_the_reference_are_fresh() -> None:
    """After a change of a command or an option: python tools/compile_all.py."""
    assert compile_parser.TABLE.read_text(encoding="utf-8") == compile_parser.compile_table()
    assert compile_help.TEXT.read_text(encoding="utf-8") == compile_help.compile_help()
    files = compile_reference.compile_reference()
    assert {path: path.read_text(encoding="utf-8") for path in files} == files
    assert set(compile_reference.REFERENCE.iterdir()) < files.keys()


INEXPRESSIBLE: dict[str, tuple[object, object]] = {
    "another type": (Annotated[int, typer.Option("--name")], 1),
    "two values": (Annotated[tuple[str, str], typer.Option("--name")], ("", "")),
    "a counted flag": (Annotated[int, typer.Option("-v", count=True)], 0),
    "a flag that is on": (Annotated[bool, typer.Option("--name")], True),
    "a flag with a negation": (Annotated[bool, typer.Option("--name/--no-name")], False),
    "a required option": (Annotated[str, typer.Option("--name")], ...),
    "a variable": (Annotated[str | None, typer.Option("--name", envvar="NAME")], None),
    "a callback": (Annotated[str | None, typer.Option("--name", callback=lambda value: value)], None),
    "a question": (Annotated[str | None, typer.Option("--name", prompt=True)], None),
    "an eager flag": (Annotated[bool, typer.Option("--name", is_eager=True)], False),
    "no value": (Annotated[str | None, typer.Option("--name", expose_value=False)], None),
    "a long option with one dash": (Annotated[str | None, typer.Option("-name")], None),
    "an argument with a variable": (Annotated[str | None, typer.Argument(envvar="NAME")], None),
    "an argument of another type": (Annotated[Path | None, typer.Argument()], None),
}


@pytest.mark.parametrize("what", INEXPRESSIBLE)
def test_what_the_table_cannot_say_is_no_declaration(what: str) -> None:
    """Or the parser would give other values than typer: whoever declares it teaches both."""

    def body(value: str) -> None:
        """A command."""

    declaration, default = INEXPRESSIBLE[what]
    body.__annotations__ = {"value": declaration}
    body.__defaults__ = () if default is ... else (default,)
    one = typer.Typer(add_completion=False)
    one.command()(body)
    parameters = [each for each in typer.main.get_command(one).params if each.name == "value"]
    assert len(parameters) == 1

    is_argument = parameters[0].param_type_name == "argument"

    with pytest.raises(compile_parser.CannotExpressError):
        (compile_parser.arguments_of if is_argument else compile_parser.options_of)(parameters)


def test_no_command_imports_typer_or_another_heavy_module() -> None:
    """They are imported for what is generated, and for a shell's completion."""
    slow = {"typer", "click", "rich", "pydantic", "dulwich", "rapidfuzz", "inspect", "importlib.metadata"}
    code = (
        "import sys; from cli import help_text, main, parser_table\n"
        "for each in parser_table.COMMANDS.values():\n"
        "    __import__('cli.commands.' + each.split()[0].partition(':')[0])\n"
        "print(*sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip

    assert "cli.commands.memory" in done.stdout.split()
    assert set(done.stdout.split()) & slow == set()


def test_the_second_folder_is_relative_to_the_first(run: Run, repo: Path, tmp_path: Path) -> None:
    """As with git -C; the options behind the command win."""
    (repo / "sub").mkdir()

    assert run("-C", str(repo / "sub"), "roster", "-C", "..", cwd=tmp_path).status == 0
    assert run("-C", str(repo), "roster", "-C", "..", cwd=tmp_path).status == 2
    assert "Nobody" in run("--as", "Else", "whoami", "--as", "Nobody").err
