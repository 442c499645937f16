"""Show the help of a command from the generated text: typer is not imported for it."""

from __future__ import annotations

from .help_text import HELP
from .parser import CommandLineError
from .render import output


def show(path: str) -> int:
    """Print the help of a command, of a group, or what `parser.parse` returns for all of them.

    Raises:
        CommandLineError: There is no such command.
    """
    if path == "--version":
        from gitmem import __version__

        output.write(f"gitmem {__version__}")
        return 0
    if path not in HELP:
        raise CommandLineError("", f"No such command '{path}'.")
    output.write(HELP[path])
    return 0
