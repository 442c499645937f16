"""Commands in POSIX shell syntax, for the `next` of every result."""

from __future__ import annotations

_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%_+=:,./-"


def quote(arg: str) -> str:
    """Return one argument, quoted if necessary: `shlex.quote` without importing `re`."""
    if arg and not arg.strip(_SAFE):
        return arg
    return "'" + arg.replace("'", "'\"'\"'") + "'"


def command(*args: str) -> str:
    """Return a whole command, each argument quoted if necessary."""
    return " ".join(quote(arg) for arg in args)
