"""The entry point: parse a command line by the table of the commands, without typer, and run it.

A command line that the table does not accept (an unknown option, a missing value, --help) goes to typer, the only code
that rejects and explains. For all others both pass the same values to the same function. Errors become a message, a
hint and an exit status.
"""

from __future__ import annotations

import gc
import os
import sys

from . import COMPLETION
from .parser_table import COMMANDS, COMMON
from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .environment import Environment

    Values = dict[str, object]

INTERRUPTED = 130
# Objects between two runs of Python's garbage collector. A command runs for milliseconds: with the default, a tenth of
# them was spent on scanning newly imported modules.
GARBAGE_MIN = 20_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: The arguments after the program's name; None for those of the process.
    """
    return _answer_and_end(sys.argv[1:]) if argv is None else _answer(list(argv))


def git_mem(argv: Sequence[str] | None = None) -> int:
    """Run `git mem`: `git mem X` is `gitmem mem X` if the memory has a command X, otherwise `gitmem X`.

    Args:
        argv: As for `main`.
    """
    return _answer_and_end(memory_first(sys.argv[1:])) if argv is None else _answer(memory_first(argv))


def memory_first(argv: Sequence[str]) -> list[str]:
    """Return the arguments of `git mem` as arguments of `gitmem`."""
    args, rest = list(argv), list(argv)
    if _take_options(rest, _options(COMMON.split()), {}, None) and rest and f"mem {rest[0]}" in COMMANDS:
        args.insert(len(args) - len(rest), "mem")
    return args


def claims_first(argv: Sequence[str]) -> list[str]:
    """Return the arguments with `claim paths` for a `claim` that no word of its group follows."""
    args, rest = list(argv), list(argv)
    is_claim = _take_options(rest, _options(COMMON.split()), {}, None) and rest[:1] == ["claim"]
    if is_claim and rest[1:] and f"claim {rest[1]}" not in COMMANDS and rest[1] not in ("-h", "--help"):
        args.insert(len(args) - len(rest) + 1, "paths")
    return args


def _answer_and_end(args: list[str]) -> int:
    """Answer the only command of this process, and end the process where that loses nothing."""
    gc.set_threshold(GARBAGE_MIN)
    if "threading" not in sys.modules:  # otherwise the process does more than this command
        output.set_last()
    try:
        status = _answer(args)
    finally:
        gc.freeze()  # the process ends: another scan would be wasted
    if output.is_last() and "threading" not in sys.modules and output.is_flushed():
        os._exit(status)  # an ordinary exit makes SQLite checkpoint its log, and wait for the disk
    return status


def _answer(args: list[str]) -> int:
    if args and args[0] == "hook":  # for clients' hooks: not a user's command, and it never fails
        from .hooks.hook import main as hook

        return hook(args[1:])
    output.begin(os.environ)
    try:
        if not all(map(str.isascii, args)):
            from .values import check_utf8

            check_utf8(args)
        return _run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from .failure import report

        return report(error, args)


def _run(args: list[str]) -> int:
    if "claim" in args:
        args = claims_first(args)
    parsed = parse(args)
    if parsed is not None:
        return parsed.run()
    if args == ["--version"]:
        from gitmem import __version__

        output.write(f"gitmem {__version__}")
        return 0
    from .app import complete, run

    if os.environ.get(COMPLETION):
        return complete()
    return run(args, run_command)


class Parsed:
    """A command line that was parsed by the table.

    Attributes:
        function: `module:function` below `commands`, which takes the values.
        before: The options before the command's name.
        values: The values after it, by parameter; missing ones are left out.
    """

    def __init__(self, function: str, before: Values, values: Values) -> None:
        self.function = function
        self.before = before
        self.values = values

    def run(self) -> int:
        """Import the command, run it, and return its exit status."""
        module, _, name = self.function.partition(":")
        body = getattr(__import__(f"{__package__}.commands.{module}", fromlist=[name]), name)
        return run_command(body, self.before, self.values)


def parse(args: Sequence[str]) -> Parsed | None:
    """Parse a command line; return None if typer must do it."""
    rest = list(args)
    before: Values = {}
    common = _options(COMMON.split())
    if os.environ.get(COMPLETION) or not _take_options(rest, common, before, None) or not rest:
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


def _take_options(  # noqa: C901  (one branch for each form of an option)
    rest: list[str], options: Mapping[str, tuple[str, str]], values: Values, words: list[str] | None
) -> bool:
    """Move options from `rest` to `values`; return False if the table does not accept one.

    Args:
        words: Receives the words that are not options. If None, the first such word ends the options.
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
            if attached:  # the part after -q in -qn5; there is no `-=` for --flag=value
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
    """Move words to the parameters of arguments; return False if one is missing or left over.

    Args:
        arguments: `name`; `name?` is optional; `name*` takes all remaining words, `name+` at least one.
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


if __name__ == "__main__":
    sys.exit(main())


def run_command(body: Callable[..., int | None], before: Mapping[str, object], values: Values) -> int:
    """Run a command in its environment and return its exit status.

    Args:
        body: Takes the environment and its own values. A result of None means success.
        before: The values of -C, --as, --json and --commit before the command's name.
        values: The values after it, with the command's own; they take precedence. As with git, the second -C is
            relative to the first.
    """
    from . import environment
    from .environment import Environment, run_in

    directory, inner = before.get("directory"), values.pop("directory", None)
    if inner:
        directory = os.path.join(str(directory or ""), str(inner))
    as_ = values.pop("as_", None)
    if as_ is None:
        as_ = before.get("as_")
    json = bool(values.pop("json", False) or before.get("json"))
    commit = bool(values.pop("commit", False) or before.get("commit"))

    def run(at: Environment) -> int:
        output.set_notice(lambda: environment.notice(at, body))
        status = body(at, **values) or 0
        environment.note_commits(at)
        environment.tell_about_claims(at)
        found = None if json or values.get("quiet") else environment.notice(at, body)
        if found is not None:
            output.write_error(found.line)
        return status

    return run_in(lambda: Environment(_text(directory), _text(as_), json, commit), run)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
