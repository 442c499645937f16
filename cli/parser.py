"""Parse a command line by the generated table of the commands, and say what is wrong with one.

Neither typer nor the text of help is imported for it.
"""

from __future__ import annotations

from .parser_table import COMMANDS, COMMON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    Values = dict[str, object]

GROUPS = frozenset(path.partition(" ")[0] for path in COMMANDS if " " in path)
_TOP = {"--version": ("version", ""), "--all": ("all", "")}  # before a command
HIDDEN = ("background", "whoami")  # what other programs run, and a word for the first line of `roster`


class CommandLineError(Exception):
    """A command line that says nothing that can be run.

    Attributes:
        path: The command, such as `mem create`; "" before one.
        message: What is wrong.
        option: The option that is.
        near: Options that were perhaps meant.
    """

    def __init__(self, path: str, message: str, option: str | None = None, near: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.message = message
        self.option = option
        self.near = near


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


def claims_first(argv: Sequence[str]) -> list[str]:
    """Return the arguments with `claim paths` for a `claim` that no word of its group follows."""
    args, rest = list(argv), _behind_options(argv)
    if (
        rest[:1] == ["claim"]
        and rest[1:]
        and f"claim {rest[1]}" not in COMMANDS
        and rest[1] not in ("-h", "--help")
    ):
        args.insert(len(args) - len(rest) + 1, "paths")
    return args


def _behind_options(argv: Sequence[str]) -> list[str]:
    """Return a command line without the options before the command; nothing if they are wrong."""
    rest = list(argv)
    try:
        _take_options("", rest, _options(COMMON.split()), {}, None)
    except CommandLineError:
        return []
    return rest


def parse(args: Sequence[str]) -> Parsed | str:
    """Parse a command line.

    Returns:
        What to run; or what it asks help for: a command or group, "" for the first screen, `--all` for all commands, `--version`.

    Raises:
        CommandLineError: It can't be run.
    """
    rest = list(args)
    before: Values = {}
    common = _options(COMMON.split())
    helps = _take_options("", rest, common | _TOP, before, None)
    if rest[:1] == ["help"]:
        words: list[str] = []
        _take_options("", rest, common | _TOP, before, words)
        helps, rest = True, words[1:]
    if before.get("version"):
        return "--version"
    if helps or not rest:
        if not helps and before.get("json"):
            raise CommandLineError("", "Missing command before --json.")
        return "--all" if before.get("all") else " ".join(rest)
    if before.get("all"):
        raise _no_option("", "--all", common)
    path = rest.pop(0)
    if path in GROUPS:
        if rest[:1] in (["-h"], ["--help"]):
            return path
        path = _command_of_group(path, rest)
    elif path not in COMMANDS or " " in path:
        raise _no_command("", path)
    function, *declared = COMMANDS[path].split()
    values: Values = {}
    words = []
    options = common | _options(each for each in declared if each[0] == "-")
    if _take_options(path, rest, options, values, words):
        return path
    _take_arguments(path, words, [each for each in declared if each[0] != "-"], values)
    return Parsed(function, before, values)


def _command_of_group(group: str, rest: list[str]) -> str:
    """Return the command that the next word of a command line names, and take that word."""
    if not rest:
        raise CommandLineError(group, "Missing command.")
    word = rest.pop(0)
    if word.startswith("-") and word not in ("-", "--"):
        raise _no_option(group, word.partition("=")[0] if word.startswith("--") else word[:2], ())
    path = f"{group} {word}"
    if path not in COMMANDS:
        raise _no_command(group, word)
    return path


def _no_command(group: str, word: str) -> CommandLineError:
    prefix = f"{group} " if group else ""
    every = {path.removeprefix(prefix).partition(" ")[0] for path in COMMANDS if path.startswith(prefix)}
    near = [] if word in HIDDEN else _near(word, every.difference(HIDDEN))
    quoted = " or ".join(f"'{each}'" for each in near)
    meant = f" Did you mean {quoted}?" if near else ""
    return CommandLineError(group, f"No such command '{word}'.{meant}", near=near)


def _no_option(path: str, option: str, options: Collection[str]) -> CommandLineError:
    # Without the dashes, which would make any two of them alike.
    near = [
        f"--{each}" for each in _near(option.lstrip("-"), [each[2:] for each in options if each[:2] == "--"])
    ]
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return CommandLineError(path, f"No such option: {option}.{meant}", option, near)


def _near(word: str, words: Collection[str]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(word, sorted(words))


def _options(declared: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return parameter and kind by option; the kinds are "" for a flag, "=" for a value, "=*" for values."""
    found = {}
    for each in declared:
        option, _, name = each.partition(":")
        option, equals, star = option.partition("=")
        found[option] = (name or option.lstrip("-").replace("-", "_"), equals + star)
    return found


def _take_options(  # noqa: C901  (one branch for each form of an option)
    path: str,
    rest: list[str],
    options: Mapping[str, tuple[str, str]],
    values: Values,
    words: list[str] | None,
) -> bool:
    """Move options from `rest` to `values`; return whether one of them asks for help.

    Args:
        words: Receives the words that are not options. If None, the first such word ends the options.
    """
    helps = False
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            if words is not None:
                words += rest
                rest.clear()
            return helps
        if arg == "-" or not arg.startswith("-"):
            if words is None:
                rest.insert(0, arg)
                return helps
            words.append(arg)
            continue
        if arg.startswith("--"):
            option, attached, value = arg.partition("=")
        else:  # -q, -n5, -qn5
            option, attached = arg[:2], arg[2:]
            value = attached
        is_help = option in ("-h", "--help")
        if option not in options and not is_help:
            raise _no_option(path, option, options)
        name, kind = ("", "") if is_help else options[option]
        if not kind:
            if attached and option.startswith("--"):
                raise CommandLineError(path, f"Option '{option}' does not take a value.", option)
            if attached:  # the part after -q in -qn5
                rest.insert(0, "-" + attached)
            helps |= is_help
            if not is_help:
                values[name] = True
            continue
        if not attached:
            if not rest:
                raise CommandLineError(path, f"Option '{option}' requires an argument.", option)
            value = rest.pop(0)
        if kind == "=":
            values[name] = value
        else:
            given = values.setdefault(name, [])
            assert isinstance(given, list)
            given.append(value)
    return helps


def _take_arguments(path: str, words: list[str], arguments: Sequence[str], values: Values) -> None:
    """Move words to the parameters of arguments.

    Args:
        arguments: `name`; `name?` is optional; `name*` takes all remaining words, `name+` at least one.
    """
    for argument in arguments:
        name, kind = argument.rstrip("?*+"), argument[-1]
        if not words and kind not in "?*":
            raise CommandLineError(path, f"Missing argument '{name.upper()}'.")
        if words and kind in "*+":
            values[name], words = words, []
        elif words:
            values[name] = words.pop(0)
    if words:
        raise CommandLineError(path, f"Got unexpected extra argument(s) ({' '.join(words)}).")
