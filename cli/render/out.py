"""The way out: one answer, as text or as one line of JSON, written as UTF-8 and flushed before anybody relies on it."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO, TypeVar

    from gitmem.outcome import Outcome

    Answer = TypeVar("Answer", bound=Outcome)

NEXT_MAX = 3
PROGRESS_SECONDS = 1.0
_state = {"said": False, "for_models": False, "last": False}
# The commands that act as somebody, so that --as belongs to them.
ACTING = frozenset(["signal", "reply", "inbox", "thread", "whoami", "session set", "session note", "session end",
                    "name add", "name remove", "mem", "import", "gate", "watch"])  # fmt: skip
_typed: dict[str, str] = {}


def answer(json: bool, outcome: Answer, lines: Callable[[Answer], Sequence[str]]) -> bool:
    """Answer with an outcome. False where nobody reads it."""
    next = getattr(outcome, "next", ())
    if not json:
        return say(with_next(lines(outcome), next))
    values = outcome.as_json()
    return say_json({**values, "next": onward(next)} if "next" in values else values)


def answer_values(
    json: bool, values: Mapping[str, object], lines: Sequence[str], next: Sequence[str]
) -> bool:
    """The same for an answer that is put together of several."""
    return say_json({**values, "next": onward(next)}) if json else say(with_next(lines, next))


def say_json(values: Mapping[str, object]) -> bool:
    """Write one line of JSON, see `say`."""
    from .as_json import as_json

    return say(as_json(values))


def say_lines(lines: Sequence[str]) -> bool:
    """Write lines, see `say`."""
    return say("\n".join(lines))


def note(sentences: Sequence[str]) -> None:
    """Say beside the answer, on standard error, what one should know of it."""
    for each in sentences:
        complain(f"note: {sanitize(each)}")


def say(text: str) -> bool:
    """Write lines to standard output and flush. False where nobody reads it: a closed pipe is no failure.

    Raises: OSError where it can't be written for another reason, such as a full disk.
    """
    out = sys.stdout
    if out is None:
        return False
    _state["said"] = True
    try:
        out.flush()
        write_whole(out.buffer, (text + "\n").encode("utf-8", "backslashreplace"))
        out.flush()
    except BrokenPipeError:
        _let_go()
        return False
    except ValueError:  # closed by somebody
        return False
    except OSError:
        _let_go()  # or the interpreter would complain once more at its end
        raise
    return True


def write_whole(stream: BinaryIO, content: bytes) -> None:
    """Write all of it: unbuffered (PYTHONUNBUFFERED), a write that a signal interrupts takes a part."""
    left = memoryview(content)
    while left:
        left = left[stream.write(left) or 0 :]


def is_read() -> bool:
    """Whether somebody may still read standard output. False only where the reader of a pipe is known to be gone."""
    try:
        import select

        look = select.poll()
        look.register(sys.stdout.fileno(), 0)
        return not any(event & (select.POLLERR | select.POLLNVAL) for _, event in look.poll(0))
    except (AttributeError, OSError, ValueError, ImportError):
        return True  # no such question here


def has_said() -> bool:
    """Whether standard output has an answer already: a second one would spoil it for a JSON reader."""
    return _state["said"]


def begin() -> None:
    """Forget what was said: one process may answer several times, as tests do."""
    _state["said"] = False
    _typed.clear()


def answer_last() -> None:
    """Say that the process ends with its answer: what its end tidies need not be tidied before."""
    _state["last"] = True


def is_last() -> bool:
    """Whether the process ends with this answer."""
    return _state["last"]


def is_flushed() -> bool:
    """Bring what was written out of this process. False where that fails: the interpreter then says so at its end."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def carry(directory: str | None, as_: str | None) -> None:
    """Remember -C and --as as they were typed, for `onward`."""
    _typed.update((option, value) for option, value in (("-C", directory), ("--as", as_)) if value)


def onward(commands: Sequence[str]) -> list[str]:
    """The commands of a `next`, so that a copy of one acts in the same place and as the same as this command."""
    return [_onward(each) for each in commands] if _typed else list(commands)


def program() -> str:
    """The program with what was typed, as a reply line has it: a copy of that must act as the same."""
    return _onward("gitmem reply").removesuffix(" reply") if _typed else "gitmem"


def _onward(command: str) -> str:
    from gitmem.text.shell_quote import quote

    program, _, rest = command.partition(" ")
    words = rest.split(" ")
    known = []
    if "-C" in _typed and program in ("gitmem", "git") and words[0] != "-C":
        known = ["-C", quote(_typed["-C"])]
    acts = words[0] in ACTING or " ".join(words[:2]) in ACTING
    if "--as" in _typed and program == "gitmem" and acts and "--as" not in words:
        known += ["--as", quote(_typed["--as"])]
    return " ".join([program, *known, *([rest] if rest else [])])


def complain(text: str) -> None:
    """Write lines to standard error; if that can't be done there is nobody to tell."""
    err = sys.stderr
    if err is None:
        return
    try:
        err.write(text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n")
        err.flush()
    except UnicodeEncodeError:
        err.write(text.encode("ascii", "backslashreplace").decode("ascii") + "\n")
    except (OSError, ValueError):
        return


def sanitize(text: str, keep: str = "\t") -> str:
    """Text as it may be shown: what moves a cursor or hides as `\\uXXXX`, and no frame of a peer's making."""
    plain = text.isascii() and text.isprintable()
    if plain and not ("<" in text or "[" in text or "session" in text.lower()):
        return text  # the answer of most calls does without the import
    from gitmem.text import sanitize as rules

    return (rules.sanitize_for_model if _state["for_models"] else rules.sanitize)(text, keep=keep)


def write_for_models() -> None:
    """Escape by the stricter rule from now on: whatever this process renders is put before a model."""
    _state["for_models"] = True


def with_next(lines: Sequence[str], commands: Sequence[str]) -> str:
    """Lines of an answer, and the commands to run next."""
    shown = onward(commands[:NEXT_MAX])
    return "\n".join([*lines, *(f"next: {sanitize(command)}" for command in shown)])


def where(commit: str | None) -> str:
    """Where a record is, behind the line that tells of it."""
    return f"commit {commit[:12]}" if commit else "recorded"


def nothing_line(reader: str) -> str:
    return f"Nothing new for {sanitize(reader, keep='')}"


class Progress:
    """Says on standard error that the index is being built, where that takes more than a second."""

    def __init__(self) -> None:
        self._began = self._shown = 0.0
        self._done = 0

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if done <= self._done or not self._began:  # it began anew: a watch lives long
            self._began = now
        self._done = done
        if now - self._began > PROGRESS_SECONDS and now - self._shown > PROGRESS_SECONDS:
            self._shown = now
            complain(f"gitmem: reading the log into the index, {done} lines so far")


def _let_go() -> None:
    """Let the interpreter's last flush go nowhere."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError, AttributeError):
        return
