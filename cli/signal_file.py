"""The file of `gitmem watch --write`: the last signals, for a client that reads a file repeatedly."""

from __future__ import annotations

import os

from gitmem import atomic_write
from gitmem.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_BYTES = 16 * 1024
MARK = "gitmem signal:received: the last signals, newest last."
RULE = "\n\n"
_BEGIN = "["  # the first character of each signal's head


class SignalFile:
    """The last signals in a file, newest last, at most 16 KiB of them.

    Args:
        path: The file. The signals that an earlier watch left in it are kept.
        head: The rest of its first line.

    Raises:
        UsageError: The file can't be read, or has a text that is not ours.
    """

    def __init__(self, path: str, head: str) -> None:
        self.path = os.path.abspath(path)
        self.head = f"{MARK} {head}"
        self._signals = _split(_read(self.path))

    def add(self, signals: Sequence[str]) -> None:
        """Add signals, in the form that is shown, with one atomic write.

        Raises:
            OSError: The file can't be written; the next write includes the signals.
        """
        for text in signals:
            if text in self._signals:
                self._signals.remove(text)
            self._signals.append(text)
        size = 0
        for at in range(len(self._signals) - 1, -1, -1):
            size += len((RULE + self._signals[at]).encode())
            if size > MAX_BYTES and at < len(self._signals) - 1:
                del self._signals[: at + 1]
                break
        content = RULE.join([self.head, *self._signals]) + "\n"
        atomic_write.replace(os.path.realpath(self.path), content.encode("utf-8", "backslashreplace"))


def _read(path: str) -> str:
    """Return the content of the file, which must be ours, empty, or missing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            content = file.read()
    except FileNotFoundError:
        if not os.path.isdir(os.path.dirname(path)):
            raise UsageError(
                f"--write: the folder of {path} does not exist. Nothing was written.", code="no-such-folder"
            ) from None
        return ""
    except OSError as error:
        raise UsageError(
            f"--write: cannot read {path} ({error.strerror}). Nothing was written.", code="bad-file"
        ) from error
    if content.strip() and not content.startswith(MARK):
        raise UsageError(
            f"--write: {path} has other content. Nothing was written.",
            hint="Name a new file, or remove that one.",
            code="not-ours",
        )
    return content


def _split(content: str) -> list[str]:
    """Split a file's content into signals: each begins with its head, and no line of a message begins like one."""
    found: list[list[str]] = []
    for line in content.rstrip("\n").split("\n")[1:]:
        if line.startswith(_BEGIN):
            found.append([])
        if found:
            found[-1].append(line)
    return ["\n".join(lines).rstrip("\n") for lines in found]
