"""A line of the log with its location, for the checks."""

from __future__ import annotations

from ...log import ref


class LogLine:
    """The first occurrence of a line in the log: its file, and its number in the file, counted from 1."""

    __slots__ = ("file", "line", "number", "path")

    def __init__(self, line: bytes, path: str, number: int, file: int | None) -> None:
        self.line = line
        self.path = path
        self.number = number
        self.file = file  # the file's number in the index, if the index reads it

    def where(self) -> str:
        """Return its location in the form of findings."""
        return f"{ref.LOG_REF}:{self.path}:{self.number}"
