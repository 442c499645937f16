"""Parse command lines by the table of the commands, without typer; and run what was parsed.

Whatever is not plainly right (an unknown option, a missing value, --help) is left to typer, which alone refuses and
explains. For all else both give the same values to the same function.
"""

from __future__ import annotations

import os

from .parser_table import COMMANDS, COMMON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Values = dict[str, object]

COMPLETION = "_GITMEM_COMPLETE"  # set by a shell that asks typer for completions


class Parsed:
    """A command line that is plainly right.

    Attributes:
        function: `module:function` below `commands`, which takes the values.
        before: The options before the command's name.
        values: What stands behind it, by parameter; what was not given is left out.
    """

    __slots__ = ("before", "function", "values")

    def __init__(self, function: str, before: Values, values: Values) -> None:
        self.function = function
        self.before = before
        self.values = values

    def run(self) -> int:
        """Import the command and run it. Return its exit status."""
        module, _, name = self.function.partition(":")
        body = getattr(__import__(f"{__package__}.commands.{module}", fromlist=[name]), name)
        return run(body, self.before, self.values)


def run(body: Callable[..., int | None], before: Mapping[str, object], values: Values) -> int:
    """Run a command in its surroundings. Return its exit status.

    Args:
        body: Takes the surroundings and its own values. What returns nothing has done its work.
        before: -C, --as, --json and --commit where they stand before the command's name.
        values: Those behind it, which win, among the command's own. As with git, the second -C is relative to the first.
    """
    from .surroundings import Surroundings, run_in

    directory, inner = before.get("directory"), values.pop("directory", None)
    if inner:
        directory = os.path.join(str(directory or ""), str(inner))
    as_ = values.pop("as_", None)
    if as_ is None:
        as_ = before.get("as_")
    json = bool(values.pop("json", False) or before.get("json"))
    commit = bool(values.pop("commit", False) or before.get("commit"))
    return run_in(
        lambda: Surroundings(_text(directory), _text(as_), json, commit), lambda at: body(at, **values) or 0
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def parse(args: Sequence[str]) -> Parsed | None:
    """Parse a command line; None where typer must."""
    rest = list(args)
    before: Values = {}
    common = _options(COMMON.split())
    if COMPLETION in os.environ or not _take_options(rest, common, before, None) or not rest:
        return None
    path = rest.pop(0)
    if path not in COMMANDS and rest:
        path += " " + rest.pop(0)
    elif " " in path:
        return None
    if path not in COMMANDS:
        return None
    function, *declared = COMMANDS[path].split()
    values: Values = {}
    words: list[str] = []
    options = common | _options(each for each in declared if each[0] == "-")
    if not _take_options(rest, options, values, words):
        return None
    arguments = [each for each in declared if each[0] != "-"]
    return Parsed(function, before, values) if _take_arguments(words, arguments, values) else None


def _options(declared: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return parameter and kind by option; the kinds are "" for a flag, "=" for a value, "=*" for values."""
    found = {}
    for each in declared:
        option, _, name = each.partition(":")
        option, equals, star = option.partition("=")
        found[option] = (name or option.lstrip("-").replace("-", "_"), equals + star)
    return found


def _take_options(
    rest: list[str], options: Mapping[str, tuple[str, str]], values: Values, words: list[str] | None
) -> bool:
    """Move options from `rest` to `values`. False where one is not plainly right.

    Args:
        words: Filled with what is not an option. If None, the first such word ends the options.
    """
    while rest:
        arg = rest.pop(0)
        if arg == "--" and words is not None:
            words += rest
            return True
        if arg == "-" or not arg.startswith("-"):
            if words is None:
                rest.insert(0, arg)
                return True
            words.append(arg)
            continue
        if arg.startswith("--"):
            option, attached, value = arg.partition("=")
        else:  # -q, -n5, -qn5
            option, attached = arg[:2], arg[2:]
            value = attached
        if option not in options:
            return False
        name, kind = options[option]
        if not kind:
            values[name] = True
            if attached:  # what is behind -q in -qn5; there is no `-=` for --flag=value
                rest.insert(0, "-" + attached)
            continue
        if not attached:
            if not rest:
                return False
            value = rest.pop(0)
        if kind == "=":
            values[name] = value
        else:
            given = values.setdefault(name, [])
            assert isinstance(given, list)
            given.append(value)
    return True


def _take_arguments(words: list[str], arguments: Sequence[str], values: Values) -> bool:
    """Move words to the parameters of arguments. False where one is missing or too many.

    Args:
        arguments: `name`; `name?` may be missing; `name*` takes all that is left, `name+` at least one.
    """
    for argument in arguments:
        name, kind = argument.rstrip("?*+"), argument[-1]
        if not words and kind not in "?*":
            return False
        if words and kind in "*+":
            values[name], words = words, []
        elif words:
            values[name] = words.pop(0)
    return not words
