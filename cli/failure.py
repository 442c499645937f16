"""The only place that reports errors: message and hint on standard error, the object on standard output."""

from __future__ import annotations

import errno

from gitmem.errors import ELSEWHERE, GitmemError, StoreError, UsageError

from .parser_table import COMMANDS
from .render import output
from .render.output import sanitize
from .usage import usage_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The errors of a full, broken or forbidden disk; any other error of the system is unexpected.
DISK = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.ENFILE,
    errno.EMFILE,
}
HIDDEN = "(hidden)"
# The words of a command line that belong to gitmem; all others are the user's.
WORDS = frozenset(word for path in COMMANDS for word in path.split())


def report(error: Exception, args: Sequence[str]) -> int:
    """Report an error and return its exit status."""
    known = usage_of(error, args) or own_error_of(error)
    expected = known is not None
    known = known or unexpected(error, "Please report the details on standard error.")
    if known.message.startswith("--as"):  # nobody is named by it: the next commands can't act as that
        output.forget_caller()
    known.next = _without_doctor(known.next or [_usual_next(known, args)], args)
    without_remote(known)
    # Earlier output is an answer: a second document would break it for a JSON reader.
    if wants_json(args) and not output.has_written():
        try:
            output.write_json(error_object(known))
        except OSError:
            pass
    lines = [f"gitmem: {sanitize(known.message)}"]
    if known.hint:
        lines.append(output.typed(sanitize(known.hint)))
    if known.suggestions:
        lines += [f"  {sanitize(str(each), keep='')}" for each in known.suggestions]
    if not expected:
        lines.append(details(error, args))
    output.write_error(output.with_next(lines, known.next))
    return known.status


def _without_doctor(next: Sequence[str], args: Sequence[str]) -> list[str]:
    """Return the commands without `doctor` if that has just failed, and `git fsck` if no command is left."""
    if not any(arg == "doctor" for arg in args):
        return list(next)
    return [each for each in next if not each.startswith("gitmem doctor")] or ["git fsck"]


def _usual_next(error: GitmemError, args: Sequence[str]) -> str:
    """Return the next command after an error that names none."""
    if not isinstance(error, UsageError):
        return "gitmem doctor"
    commands = {path.partition(" ")[0] for path in COMMANDS}
    command = [arg for arg in args if arg in commands][:1]
    if command == ["mem"]:
        behind = args[list(args).index("mem") + 1 :]
        command += [arg for arg in behind if arg in WORDS][:1]
    return " ".join(["gitmem", *command, "--help"])


def without_remote(error: GitmemError) -> None:
    """Take out what only a remote could help with, where there is none."""
    if ELSEWHERE in error.hint and output.lacks_remote():
        error.hint = error.hint.replace(ELSEWHERE, "").strip()
        error.next = [each for each in error.next if each not in output.SYNCS]


def error_object(error: GitmemError) -> dict[str, object]:
    """Return the JSON form of an error."""
    return {
        "error": {
            "code": error.code,
            "message": error.message,
            "hint": output.typed(error.hint),
            "suggestions": error.suggestions,
        },
        "next": output.with_options(error.next)[: output.NEXT_MAX],
    }


def wants_json(args: Sequence[str]) -> bool:
    """Return whether --json is among the arguments, before any `--`."""
    for arg in args:
        if arg == "--":
            return False
        if arg == "--json":
            return True
    return False


def unexpected(error: Exception, report: str) -> GitmemError:
    """Return the error for an unexpected exception; `report` is a sentence that names the place of the details."""
    return GitmemError(
        f"Unexpected error: {type(error).__name__}.",
        hint=f"Records acknowledged before it are kept. {report}",
        next=["gitmem doctor"],
    )


def own_error_of(error: Exception) -> GitmemError | None:
    """Return our own error, or one of ours for an error of the disk, or of SQLite on it; None for any other."""
    if isinstance(error, GitmemError):
        return error
    if isinstance(error, OSError) and error.errno in DISK:
        where = f" ({error.filename})" if error.filename else ""
        what = f"{error.strerror}{where}."
    elif type(error).__module__ == "sqlite3" and type(error).__name__ == "OperationalError":
        what = f"Cannot use the index ({error})."
    else:
        return None
    return StoreError(
        f"{what} Records acknowledged before this error are kept.",
        hint="Free disk space or correct the permissions, then run the command again.",
        code="disk",
        next=["gitmem doctor"],
    )


def details(error: Exception, args: Sequence[str]) -> str:
    """Return a report to paste: versions, the command without the user's texts, and the traceback."""
    import platform
    import traceback

    from gitmem import __version__

    trace = "".join(traceback.format_exception(error)).rstrip()
    for arg in args:
        if len(arg) > 3 and arg not in WORDS and not arg.startswith("--"):
            trace = trace.replace(arg, HIDDEN)
    command = " ".join(_public(arg) for arg in args)
    return "\n".join(
        [
            "--- please send this report to the maintainers of gitmem ---",
            f"gitmem {__version__}, Python {platform.python_version()}, {git_version()}, {platform.platform()}",
            sanitize(f"gitmem {command}"),
            sanitize(trace, keep="\n\t"),
            "--- end ---",
        ]
    )


def _public(arg: str) -> str:
    """Return an argument of the command line without the user's text."""
    if arg in WORDS or (arg.startswith("-") and arg.strip("-").replace("-", "").isalnum()):
        return arg
    option, equals, _ = arg.partition("=")
    return f"{option}={HIDDEN}" if equals and option.startswith("--") else HIDDEN


def git_version() -> str:
    """Return what `git --version` prints, or `no git` if it can't be run."""
    import subprocess

    try:
        return subprocess.run(
            ["git", "--version"], check=False, capture_output=True, text=True, timeout=5
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return "no git"
