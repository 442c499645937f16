"""The only place that reports errors: message and hint on standard error, the object on standard output.

A command line that can't be run becomes an error with the command that was probably meant; and a missing package of an extra is explained.
"""

from __future__ import annotations

import contextlib
import errno

from gitmem.errors import ELSEWHERE, GitmemError, StoreError, UsageError

from .parser import GROUPS, CommandLineError
from .parser_table import COMMANDS
from .render import output
from .render.output import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# Words that people try, and the commands that they mean.
SYNONYMS = {
    "gitmem signal 'your message' --to NAME": (
        "send",
        "say",
        "tell",
        "message",
        "msg",
        "post",
        "ask",
        "propose",
    ),
    "gitmem signal 'your message' --broadcast": ("broadcast", "announce"),
    "gitmem reply ID 'agreed' --agree": ("agree", "accept", "approve", "ack"),
    "gitmem reply ID 'your reason' --reject": ("reject", "refuse", "decline"),
    "gitmem reply ID 'your proposal' --counter": ("counter",),
    "gitmem mem ready": ("ready",),
    "gitmem claim PATH": ("lock", "reserve"),
    "gitmem gate --wu ID": ("wu:prep", "prep", "wu:done"),
    "gitmem task list": ("tasks", "todo"),
    "gitmem delegate 'what to do' --to NAME --wu ID": ("wu:create", "wu:delegate"),
    "gitmem session start --wu ID": ("wu:claim",),
    "gitmem forget ID REASON": ("redact",),
    "gitmem reply ID 'your answer'": ("answer", "respond"),
    "gitmem inbox": ("read", "receive", "recv", "check", "mail", "messages", "unread", "signals"),
    "gitmem whoami": ("status", "who", "me", "id"),
    "gitmem roster": ("status", "who", "list", "agents", "ls", "peers", "sessions"),
    "gitmem session start": ("start", "join", "register", "login"),
    "gitmem session end": ("end", "stop", "leave", "exit", "logout"),
    "gitmem log": ("history", "story"),
    "gitmem sync": ("push", "pull", "fetch", "publish"),
    "gitmem doctor": ("check", "fsck", "verify"),
    "gitmem show ID": ("show",),
    "gitmem thread ID": ("threads", "conversation"),
    "gitmem converged ID": ("wait", "agreed", "converge"),
    "gitmem mem create 'what to remember'": ("remember", "memorize", "note", "create", "add", "memory"),
    "gitmem mem search 'words'": ("search", "recall", "find", "memory"),
    "gitmem mem context": ("context",),
    "gitmem import lumenflow": ("migrate", "lumenflow"),
    "gitmem import beads": ("beads", "bd"),
    "gitmem import github": ("github", "gh", "issues"),
    "gitmem mcp": ("server", "serve"),
    "gitmem setup": ("init", "install", "hook", "hooks", "agents-md", "instructions", "teach"),
    "gitmem remove": ("uninstall",),
    "gitmem task show ID": ("status", "state"),
    "gitmem task done ID 'the result'": ("complete", "finish", "report"),
}
TEXTS = ("gitmem mem create", "gitmem mem checkpoint")  # they take one text
_COMMON = ("--json", "--as", "-C")


def usage_of(error: Exception) -> UsageError | None:
    """Return the error for a command line that can't be run, or None for any other error."""
    if not isinstance(error, CommandLineError):
        return None
    path, message = f"gitmem {error.path}".rstrip(), error.message
    if error.path in GROUPS and (error.option in _COMMON or message.startswith("Missing command")):
        words = [each.partition(" ")[2] for each in COMMANDS if each.startswith(f"{error.path} ")]
        usual = "list" if "list" in words else words[0]
        named = ", ".join(
            "a path" if each == "paths" else each for each in words
        )  # nobody types `claim paths`
        return UsageError(
            f"{path} needs a command: {named}. Nothing was written.",
            hint=f"Options follow the command, as in: {path} {usual} --json",
            next=[f"{path} --help"],
        )
    meant = _similar_commands(message)
    if error.path in GROUPS:  # a word of a group means one of its commands first
        meant = [each for each in meant if each.startswith(f"{path} ")] or meant
    if meant:
        message = message.partition(" Did you mean")[0]
    hint = _hint(path, message, error.option, error.near) or (
        f"Did you mean {' or '.join(f'`{each}`' for each in meant)}?"
        if meant
        else f"Run `{path} --help` for its usage."
    )
    complete = [each for each in meant if not any(word.isupper() for word in each.split())]
    return UsageError(
        f"{message} Nothing was written.", hint=hint, suggestions=meant, next=[*complete, f"{path} --help"]
    )


def _similar_commands(message: str) -> list[str]:
    if not message.startswith("No such command '"):
        return []
    word = message.removeprefix("No such command '").partition("'")[0].lower()
    group, _, verb = word.rpartition(":")  # as in LumenFlow: `mem:signal`, `agent:session`
    path = f"gitmem {verb}" if verb in COMMANDS else f"gitmem {group} {verb}"
    if group and path.removeprefix("gitmem ") in COMMANDS:
        return [f"{path} --help"]
    words = {word, verb} if group == "mem" else {word}
    return [command for command, known in SYNONYMS.items() if not words.isdisjoint(known)]


def _hint(path: str, message: str, option: str | None, near: Sequence[str] | None) -> str:
    """Return advice for frequent mistakes with messages and texts, or ""."""
    if path == "gitmem delegate" and message.startswith("Missing argument"):
        return "Usage: gitmem delegate 'what to do' --to NAME"
    speaks = path in ("gitmem signal", "gitmem reply")
    if not speaks and path not in TEXTS:
        return ""
    what = "message" if speaks else "text"
    to = "ID " if path == "gitmem reply" else ""
    if "unexpected extra argument" in message:
        return f"Quote the {what} so that the shell passes it as one argument: {path} {to}'your whole {what}'"
    if speaks and message.startswith("Missing argument"):
        more = "[--agree | --reject | --counter]" if to else "--to NAME"
        return f"Usage: {path} {to}'your message' {more}"
    if to and option is not None and option.startswith("--"):
        return f"`gitmem signal 'your message' --reply-to ID` has more options; `{path} --help` lists those of reply."
    if option is not None and not near and (speaks or message.startswith("No such option")):
        before = to or ("--to NAME " if speaks else "")
        example = "'-1 for this'"
        return f"Put -- before a {what} that starts with -, as in: {path} {before}-- {example}"
    return ""


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
    known = usage_of(error) or own_error_of(error)
    expected = known is not None
    known = known or unexpected(error, "Please report the details on standard error.")
    for option in ("--as", "-C"):  # it names nobody, or no folder: the next commands can't have it
        if known.message.startswith(option):
            output.forget(option)
    known.next = _without_doctor(known.next or [_usual_next(known, args)], args)
    without_remote(known)
    # Earlier output is an answer: a second document would break it for a JSON reader.
    if wants_json(args) and not output.has_written():
        with contextlib.suppress(OSError):
            output.write_json(error_object(known))
    lines = [f"gitmem: {sanitize(known.message)}"]
    if known.hint:
        lines.append(output.typed(sanitize(known.hint)))
    if known.suggestions:
        told = " ".join((known.hint, *known.next))
        lines += [f"  {sanitize(str(each), keep='')}" for each in known.suggestions if str(each) not in told]
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


@contextlib.contextmanager
def needs_extra(extra: str, packages: tuple[str, ...], added: str, code: str, what: str) -> Iterator[None]:
    """Import a module that needs the packages of an extra.

    Args:
        extra: The extra's name.
        packages: The top packages that it installs.
        added: The requirements that pipx has to add, quoted for a shell.
        code: The error's code.
        what: What is not installed, and what needs it.

    Raises:
        UsageError: One of the packages is not installed.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        pip, pipx, uv = (
            f"pip install 'gitmem-coord[{extra}]'",
            f"pipx inject gitmem-coord {added}",
            f"uv tool install 'gitmem-coord[{extra}]'",
        )
        raise UsageError(
            what,
            hint=f"Run `{pip}` if gitmem was installed with pip, `{pipx}` with pipx, or `{uv}` with uv.",
            code=code,
            next=[pip, pipx, uv],
        ) from None
