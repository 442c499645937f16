"""Output: one answer as text or as one line of JSON, in UTF-8, flushed before the caller relies on it."""

from __future__ import annotations

import os
import sys

from gitmem.text.addresses import shortened
from gitmem.text.strict_json import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, BinaryIO, TextIO, TypedDict, TypeVar

    from gitmem.outcome import Outcome

    from .terminal import Progress, Terminal

    Answer = TypeVar("Answer", bound=Outcome)

    class Form(TypedDict, total=False):
        """How an answer in text differs from its lines and next commands, see `answer`."""

        text_next: Callable[[Any], Sequence[str]] | None
        only: Sequence[str] | None


NEXT_MAX = 3


class _Screen:
    """Where text is shown: the variables about it, and what was found out by them."""

    variables: Mapping[str, str] | None = None
    is_known = False
    terminal: Terminal | None = None
    progress: Progress | None = None


_state = {"written": False, "for_models": False, "last": False}
# The commands that act as nobody or begin a session; all others keep --as.
OF_NOBODY = frozenset(("session start", "setup", "remove", "doctor", "sync", "schema", "view", "mcp", "completion"))  # fmt: skip
NOTHING = "Nothing new for {}"  # of an empty inbox, with its reader
SYNCS = ("gitmem sync", "gitmem sync --publish")
PUBLISH = " --publish"
_typed: dict[str, str] = {}
_TOP = "top"
_WITH_PATHS = ("gate ", "claim paths ", "why ", "log --oneline ", "status --short ", "diff ")
_known: list[Callable[[], bool]] = []  # none, or two: see `set_options`
TEXTS = frozenset(("message", "content", "payload", "context", "metadata"))  # of peers, shown as they are
_short: list[Callable[[str], str]] = []  # at most one
_notice: list[Callable[[], Outcome | None]] = []  # at most one


def answer(
    json: bool,
    outcome: Answer,
    lines: Callable[[Answer], Sequence[str]],
    *,
    text_next: Callable[[Answer], Sequence[str]] | None = None,
    only: Sequence[str] | None = None,
) -> bool:
    """Print an outcome; return False if the output is closed.

    Args:
        only: The ids that the text is, instead of lines and next commands.
        text_next: Returns the next commands of the text (default: those of the outcome).
    """
    next = getattr(outcome, "next", ())
    if not json:
        if only is not None:
            return write_lines(only)
        return write(with_next(lines(outcome), text_next(outcome) if text_next else next))
    values = outcome.as_json()
    return write_json(_with_notice({**values, "next": with_options(next)} if "next" in values else values))


def answer_values(
    json: bool, values: Mapping[str, object], lines: Sequence[str], next: Sequence[str]
) -> bool:
    """Print an answer that combines several outcomes, see `answer`."""
    if not json:
        return write(with_next(lines, next))
    return write_json(_with_notice({**values, "next": with_options(next)}))


def set_notice(notice: Callable[[], Outcome | None] | None) -> None:
    """Set the function that returns what every answer in JSON adds, in the field `notice`."""
    _notice[:] = [notice] if notice is not None else []


def set_addresses(short: Callable[[str], str] | None) -> None:
    """Set the function that returns how an address is shown."""
    _short[:] = [short] if short is not None else []


def plain(text: str) -> str:
    """Return a text with the addresses in it as they are shown: without their writer where the words are enough."""
    return shortened(text, _short[0]) if _short and "@" in text else text


def plain_values(value: Any) -> Any:
    """Return the values of an answer with the addresses in them as they are shown; texts of peers as they were written."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {
            plain(str(key)): each if key in TEXTS and isinstance(each, str) else plain_values(each)
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain_values(each) for each in value]
    as_value = getattr(value, "as_json", None)
    return value if as_value is None else plain_values(as_value())


def _with_notice(values: Mapping[str, object]) -> Mapping[str, object]:
    found = _notice[0]() if _notice else None
    return {**values, "notice": found.as_json()} if found is not None else values


def write_json(values: Mapping[str, object]) -> bool:
    """Print one line of JSON, see `write`."""
    return _write(as_json(plain_values(values)))


def write_lines(lines: Sequence[str]) -> bool:
    """Print lines, see `write`."""
    return write("\n".join(lines))


def append_summary(path: str, lines: Sequence[str]) -> str:
    """Append lines to a file in Markdown, as they are and without colours; return why it could not be done, or ""."""
    import re
    import stat

    text = re.sub("\x1b\\[[0-9;]*m", "", plain("\n".join(lines)))
    fence = "```"
    while fence in text:
        fence += "`"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW)
        with open(handle, "ab") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return "it is not a file"
            file.write(f"\n{fence}text\n{text}\n{fence}\n".encode("utf-8", "backslashreplace"))
    except OSError as error:
        return f"it cannot be opened ({error.strerror})"
    return ""


def note(sentences: Sequence[str]) -> None:
    """Print notes on the answer to standard error."""
    for each in sentences:
        write_error(f"note: {typed(sanitize(each))}")


def tell(sentence: str) -> None:
    """Tell on standard error what a command that goes on does."""
    write_error(f"gitmem: {sanitize(sentence)}")


def write(text: str) -> bool:
    """Print text to standard output and flush; return False if the output is closed, such as a pipe.

    Raises:
        OSError: It can't be written for another reason, such as a full disk.
    """
    return _write(plain(text))


def _write(text: str) -> bool:
    if (out := sys.stdout) is None:
        return False
    end_progress()
    _state["written"] = True
    try:
        out.flush()
        write_whole(out.buffer, (text + "\n").encode("utf-8", "backslashreplace"))
        out.flush()
    except BrokenPipeError:
        _redirect_to_null()
        return False
    except ValueError:  # already closed
        return False
    except OSError:
        _redirect_to_null()  # otherwise the interpreter would report the error again at exit
        raise
    return True


def end_progress() -> None:
    """End the line that shows progress, before anything else is shown."""
    if _Screen.progress is not None:
        _Screen.progress.end()


def write_whole(stream: BinaryIO, content: bytes) -> None:
    """Write all of the content: unbuffered (PYTHONUNBUFFERED), a write that a signal interrupts is partial."""
    left = memoryview(content)
    while left:
        left = left[stream.write(left) or 0 :]


def has_written() -> bool:
    """Return whether an answer was printed: a second one would break it for a JSON reader."""
    return _state["written"]


def begin(variables: Mapping[str, str] | None = None) -> None:
    """Reset the state: one process may answer several times, as tests do.

    Args:
        variables: The environment; None for answers without colours and of any width.
    """
    _state["written"] = False
    _typed.clear()
    _known.clear()
    _short.clear()
    _Screen.variables, _Screen.is_known, _Screen.terminal = variables, False, None
    _Screen.progress = None


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def ask(question: str, *, default: bool = False) -> bool | None:
    """Return what the person at the terminal answers to a question; None if there is no terminal to ask at.

    Args:
        default: What an empty line means. The end of the input is a no; any other answer is asked for again.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return None
    while True:
        sys.stderr.write(f"{plain(question)} [{'Y/n' if default else 'y/N'}] ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
        word = answer.strip().lower()
        if word in ("y", "yes", "n", "no") or not answer:
            return word.startswith("y")
        if not word:
            return default


def terminal() -> Terminal | None:
    """Return the terminal that shows text; None for a pipe, a file or a model, which get all of it without colours."""
    if not _Screen.is_known:
        _Screen.is_known = True
        variables, on_terminal = _Screen.variables, is_terminal(sys.stdout)
        if (
            variables is not None
            and not _state["for_models"]
            and (on_terminal or variables.get("FORCE_COLOR"))
        ):
            from .terminal import Terminal

            _Screen.terminal = Terminal(variables, is_terminal=on_terminal)
    return _Screen.terminal


def paint(text: str, style: str = "") -> str:
    """Return sanitized text in the colour of its style (`terminal.STYLES`), by default of the word itself."""
    shown = terminal()
    return text if shown is None else shown.paint(text, style)


def set_last() -> None:
    """Note that the process ends after its answer: cleanup that the exit makes unnecessary can be skipped."""
    _state["last"] = True


def is_last() -> bool:
    """Return whether the process ends after this answer."""
    return _state["last"]


def is_flushed() -> bool:
    """Flush both streams; return False on failure: the interpreter then reports it at exit."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def set_options(directory: str | None, as_: str | None, *known: Callable[[], bool]) -> None:
    """Remember -C and --as as typed, for `with_options`, and what tells whether the repository has a remote, and whether an agent runs the command."""
    _typed.update((option, value) for option, value in (("-C", directory), ("--as", as_)) if value)
    _known[:] = known or _known


def set_top(folder: str) -> None:
    """Remember the top of the work tree: there the paths of commands begin, and the caller is elsewhere."""
    _typed[_TOP] = folder


def forget(option: str) -> None:
    """Forget -C or --as: no command that is shown has it."""
    _typed.pop(option, None)


def with_options(commands: Sequence[str]) -> list[str]:
    """Return the commands of a `next` with -C and --as, so a copy acts in the same place and as the same caller.

    Without a remote there is nothing to sync with, and no `gitmem sync`. An agent runs what `next` says, and only its user may publish.
    """
    if any(each in SYNCS for each in commands) and lacks_remote():
        commands = [each for each in commands if each not in SYNCS]
    if any(PUBLISH in each for each in commands) and _known and _known[1]():
        commands = [each for each in commands if PUBLISH not in each]
    return [_continuation(each) for each in commands] if _typed else list(commands)


def lacks_remote() -> bool:
    """Return whether this is a repository without a remote."""
    return bool(_known) and not _known[0]()


def typed(text: str) -> str:
    """Return a text of ours, a hint or a note, whose commands in backticks have -C and --as, see `with_options`."""
    if not _typed or "`gitmem " not in text:
        return text
    parts = text.split("`")
    parts[1::2] = [_continuation(each) if each.startswith("gitmem ") else each for each in parts[1::2]]
    return "`".join(parts)


def program() -> str:
    """Return the program with these options for a reply line: a copy must act as the same caller."""
    return _continuation("gitmem reply").removesuffix(" reply") if _typed else "gitmem"


def acts(command: str) -> bool:
    """Return whether a `next` acts as somebody: whom --as names, or the variable of a session."""
    words = command.split(" ")
    return (
        words[0] == "gitmem"
        and len(words) > 1
        and OF_NOBODY.isdisjoint((" ".join(words[1:2]), " ".join(words[1:3])))
    )


def _continuation(command: str) -> str:
    from gitmem.outcome import quote

    program, _, rest = command.partition(" ")
    known = []
    place = _typed.get(_TOP if _TOP in _typed and rest.startswith(_WITH_PATHS) else "-C")
    if place and program in ("gitmem", "git") and not rest.startswith("-C "):
        known = ["-C", quote(place)]
    if "--as" in _typed and "--as" not in rest.split(" ") and acts(command):
        known += ["--as", quote(_typed["--as"])]
    return " ".join([program, *known, *([rest] if rest else [])])


def write_error(text: str) -> None:
    """Write lines to standard error; ignore failures, which could not be reported."""
    if (err := sys.stderr) is None:
        return
    end_progress()
    text = plain(text)
    try:
        err.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")
        err.flush()
    except UnicodeEncodeError:
        err.write(text.encode("ascii", "backslashreplace").decode("ascii") + "\n")
    except (OSError, ValueError):
        return


def sanitize(text: str, keep: str = "\t") -> str:
    """Return text that is safe to show: escape cursor controls and hidden characters, and defuse imitated frames."""
    text = plain(text)
    is_plain = text.isascii() and text.isprintable()
    if is_plain and not ("<" in text or "[" in text or "session" in text.lower()):
        return text  # most calls need no import
    from gitmem.text import sanitize as rules

    return (rules.sanitize_for_model if _state["for_models"] else rules.sanitize)(text, keep=keep)


def write_for_models() -> None:
    """Sanitize by the stricter rule from now on: a model reads all output of this process."""
    _state["for_models"] = True


def with_next(lines: Sequence[str], commands: Sequence[str]) -> str:
    """Return the lines of an answer, followed by the commands to run next."""
    shown = [typed(each) if each.startswith("note: ") else each for each in lines]
    return "\n".join([*shown, *(f"next: {sanitize(each)}" for each in with_options(commands)[:NEXT_MAX])])


def record_position(commit: str | None) -> str:
    """Return the position of a record, for the end of a line."""
    return f"commit {commit[:12]}" if commit else "recorded"


def progress() -> Progress | None:
    """Return what shows the progress of long operations on a terminal; None without one."""
    if sys.stderr is None or _state["for_models"] or not is_terminal(sys.stderr):
        return None
    from .terminal import Progress, delay

    if _Screen.progress is None:
        _Screen.progress = Progress(sys.stderr, after=delay(_Screen.variables or {}))
    return _Screen.progress


def _redirect_to_null() -> None:
    """Redirect standard output to the null device for the interpreter's last flush."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError, AttributeError):
        return


def as_json(value: object) -> str:
    """Return a value as JSON on one line; characters that could do harm where it is shown are escaped."""
    from gitmem.text.sanitize import sanitize_json

    return sanitize_json(encode(value))


def encode(value: object) -> str:
    """Return a value as JSON on one line, not yet sanitized."""
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quote(str(key))}: {encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(encode(item) for item in value) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    as_value = getattr(value, "as_json", None)
    if as_value is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return encode(as_value())
