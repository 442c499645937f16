"""A line of the log as the checks get it."""

from __future__ import annotations

from ...log import ref


class LogLine:
    """A line of the log for the first time, and where it stands: a file of the log and a number, counted from 1."""

    __slots__ = ("file", "line", "number", "path")

    def __init__(self, line: bytes, path: str, number: int, file: int | None) -> None:
        self.line = line
        self.path = path
        self.number = number
        self.file = file  # its number in the index, if that reads it

    def where(self) -> str:
        """Where it stands, as findings have it."""
        return f"{ref.LOG_REF}:{self.path}:{self.number}"
