"""Write the commands that typer declares as plain literals: `cli/parser_table.py`.

For developers, after a change of a command or an option: `python tools/compile_parser.py`. It reads the app as typer
built it, and raises an error for a declaration that the table can't express. A test compares the checked-in table
with a fresh one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "cli" / "parser_table.py"

HEADER = '''"""The commands as text. Written by `tools/compile_parser.py`: don't edit.

A command is its function below `commands`; its arguments: `name`; `name?` may be missing; `name*` takes all that is
left, `name+` at least one; and its options: `--flag`, `--option=` with a value, `--option=*` repeated. The parameter
of `--some-option` is `some_option`, unless another stands behind a colon.
"""

# fmt: off
from __future__ import annotations
'''
SPECIAL = {"--help", "--version"}  # only typer handles them


class CannotExpressError(Exception):
    """A declaration that the table has no form for. Extend this tool and the parser, or change the declaration."""


def main() -> int:
    """Write the table."""
    TABLE.write_text(compile_table(), encoding="utf-8")
    return 0


def compile_table() -> str:
    """Return the source of the table."""
    from cli.app import build

    root: Any = build()
    common = options_of(each for each in root.params if not SPECIAL & set(each.opts))
    lines = [HEADER, f"COMMON = {' '.join(common)!r}", "COMMANDS = {"]
    for path, command in commands_of(root):
        parameters = [each for each in command.params if not SPECIAL & set(each.opts)]
        options = options_of(each for each in parameters if each.param_type_name == "option")
        if not set(common) <= set(options):
            raise CannotExpressError(f"{path}: not all common options")
        own = [each for each in options if each not in common]
        lines.append(f"    {path!r}: {' '.join([function_of(command), *arguments_of(parameters), *own])!r},")
    return "\n".join([*lines, "}"]) + "\n"


def commands_of(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every command below a group with its path, such as `mem create`."""
    if path and (" " in path or [each for each in group.params if not SPECIAL & set(each.opts)]):
        raise CannotExpressError(f"{path}: options of a group, or a group in a group")
    for name in group.list_commands(None):
        command = group.commands[name]
        if command.context_settings:
            raise CannotExpressError(f"{path} {name}: context settings")
        if hasattr(command, "commands"):
            yield from commands_of(command, f"{path} {name}".strip())
        else:
            yield f"{path} {name}".strip(), command


def function_of(command: Any) -> str:
    """Return a command's function as `module:function`, relative to `cli.commands`."""
    return f"{command.callback.__module__.removeprefix('cli.commands.')}:{command.callback.__name__}"


def arguments_of(parameters: list[Any]) -> tuple[str, ...]:
    """Return the arguments in order, each with a sign for the number of words that it takes."""
    found: list[str] = []
    for each in (each for each in parameters if each.param_type_name == "argument"):
        plain(each)
        if found and found[-1][-1] in "*+?" and (each.required or found[-1][-1] != "?"):
            raise CannotExpressError(f"{each.name} behind {found[-1]}")
        sign = {(1, True): "", (1, False): "?", (-1, True): "+", (-1, False): "*"}[each.nargs, each.required]
        found.append(each.name + sign)
    return tuple(found)


def options_of(parameters: Iterable[Any]) -> list[str]:
    """Return the options, each with a sign for its kind, and its parameter if that has another name."""
    found = []
    for each in parameters:
        plain(each)
        if each.required or each.prompt or each.secondary_opts:
            raise CannotExpressError(f"{each.name}: an option of another kind")
        for option in each.opts:
            if not option.startswith("--") and len(option) != 2:
                raise CannotExpressError(f"{option}: a long option with one dash")
            sign = "" if each.is_flag else "=*" if each.multiple else "="
            is_derived = option.lstrip("-").replace("-", "_") == each.name
            found.append(option + sign + ("" if is_derived else f":{each.name}"))
    return found


def plain(parameter: Any) -> None:
    """Raise CannotExpressError for a parameter that is converted, or can have another source than the command line."""
    is_flag = getattr(parameter, "is_bool_flag", False)
    kind = type(parameter.type).__name__
    if kind != ("BoolParamType" if is_flag else "StringParamType") or (
        is_flag and parameter.default is not False
    ):
        raise CannotExpressError(f"{parameter.name}: a value of {kind}")
    if parameter.envvar or parameter.callback or parameter.is_eager or not parameter.expose_value:
        raise CannotExpressError(f"{parameter.name}: a variable, a callback, or no value")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
