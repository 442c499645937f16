"""The entry point: run a command line, or show the help that it asks for. Errors become a message, a hint and an exit status."""

from __future__ import annotations

import gc
import os
import sys

from . import COMPLETION, parser
from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        args = parser.claims_first(args)
    if os.environ.get(COMPLETION):
        from .app import complete

        return complete()
    parsed = parser.parse(args)
    if isinstance(parsed, str):
        return _show_help(parsed)
    module, _, name = parsed.function.partition(":")
    body = getattr(__import__(f"{__package__}.commands.{module}", fromlist=[name]), name)
    return run_command(body, parsed.before, parsed.values)


def _show_help(path: str) -> int:
    """Print the generated help of a command or group, or what else `parser.parse` returns."""
    if path == "--version":
        from gitmem import __version__

        output.write(f"gitmem {__version__}")
        return 0
    from .help_text import HELP

    if path not in HELP:
        raise parser.CommandLineError("", f"No such command '{path}'.")
    output.write(HELP[path])
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
