"""Commands as a POSIX shell takes them, for the `next` of every answer."""

from __future__ import annotations

_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%_+=:,./-"


def quote(arg: str) -> str:
    """One argument, quoted where it must be: `shlex.quote` without the import of `re`."""
    if arg and not arg.strip(_SAFE):
        return arg
    return "'" + arg.replace("'", "'\"'\"'") + "'"


def command(*args: str) -> str:
    """A whole command, each argument quoted where it must be."""
    return " ".join(quote(arg) for arg in args)
