"""Entries: lines that are recorded together, with the message for their commit."""

from __future__ import annotations

from . import lines

try:
    # Importing json would cost a command a third of the start of an empty Python, because json imports re.
    from _json import encode_basestring as _quote
except ImportError:  # not CPython
    from json.encoder import encode_basestring as _quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SUBJECT_MAX = 72  # characters of a commit's subject


class CommitMessage:
    """The message of an entry's commit: author as `Name <mail>`, subject, body, and trailers in order."""

    def __init__(
        self, author: str, subject: str, body: str = "", trailers: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.author = author
        self.subject = subject
        self.body = body
        self.trailers = [(str(key), str(value)) for key, value in trailers]


class LogEntry:
    """Lines that are recorded together, each with its stream.

    Attributes:
        lines: Pairs of stream and line; the line has no LF.
        message: The message for the commit.
        deferred: Whether it waits for the next commit instead of starting one.
        token: The token of the segment that the lines go to. Committing the entry again writes to the same segment, so
            the second commit adds nothing.
    """

    __slots__ = ("deferred", "lines", "message", "token")

    def __init__(
        self,
        lines: Sequence[tuple[str, bytes]],
        message: CommitMessage,
        *,
        deferred: bool = False,
        token: str = "",
    ) -> None:
        self.lines = list(lines)
        self.message = message
        self.deferred = deferred
        self.token = token

    def encode(self) -> bytes:
        """Return the entry as bytes for `decode`: a JSON head, then rows of stream, tab and line."""
        message = self.message
        words = ", ".join(map(_quote, (self.token, message.author, message.subject, message.body)))
        trailers = ", ".join(f"[{_quote(key)}, {_quote(value)}]" for key, value in message.trailers)
        parts = [f"[{words}, [{trailers}]]".encode("utf-8", "replace")]
        parts += [stream.encode() + b"\t" + line for stream, line in self.lines]
        return b"\n".join(parts) + b"\n"

    @classmethod
    def decode(cls, content: bytes, *, deferred: bool = False) -> LogEntry:
        """Parse an entry and validate each of its lines.

        Raises:
            ValueError: The bytes are not an entry, or one of its lines is invalid.
        """
        head, rows = split(content)
        token, *rest = read_head(head)
        return cls.of(str(token), rest, rows, deferred=deferred)

    @classmethod
    def of(cls, token: str, head: Sequence[object], rows: Sequence[bytes], *, deferred: bool) -> LogEntry:
        """Make an entry from its parsed parts.

        Args:
            head: Author, subject, body and trailers.
            rows: Stream, tab and line each.

        Raises:
            ValueError: A part is invalid.
        """
        try:
            author, subject, body, trailers = head
            message = CommitMessage(str(author), str(subject), str(body), trailers)  # type: ignore[arg-type]  # checked there
        except TypeError as error:
            raise ValueError("its head is not author, subject, body and trailers") from error
        if not is_name(token):
            raise ValueError(f"invalid segment token {token[:80]!r}")
        found = [parse_row(row) for row in rows]
        for _, line in found:
            problem = lines.validation_error(line)
            if problem:
                raise ValueError(problem)
        return cls(found, message, deferred=deferred, token=token)


def split(content: bytes) -> tuple[bytes, list[bytes]]:
    """Split the bytes of an entry into its head and its rows.

    Raises:
        ValueError: The end is missing.
    """
    if not content.endswith(b"\n"):
        raise ValueError("its end is missing")
    head, *rows = content[:-1].split(b"\n")
    return head, rows


def parse_row(row: bytes) -> tuple[str, bytes]:
    """Return stream and line of a row.

    Raises:
        ValueError: The row has no valid stream.
    """
    stream, tab, line = row.partition(b"\t")
    name = stream.decode("ascii", "replace")
    if not tab or not is_name(name):
        raise ValueError("a row has no valid stream")
    return name, line


def lines_of(content: bytes) -> list[bytes]:
    """Return the lines in the bytes of an entry, unchecked.

    Raises:
        ValueError: The end or a stream is missing.
    """
    found = []
    streams: set[bytes] = set()
    for row in split(content)[1]:
        stream, tab, line = row.partition(b"\t")
        if stream not in streams or not tab:
            parse_row(row)  # rejects an invalid stream
            streams.add(stream)
        found.append(line)
    return found


def read_head(head: bytes) -> list[object]:
    """Parse the JSON head of an entry.

    Raises:
        ValueError: It is not a list, or is empty.
    """
    from ..strict_json import read

    try:
        found = read(head.decode())
    except RecursionError:
        found = None
    if not isinstance(found, list) or not found:
        raise ValueError("its head is not a list")
    return found


def is_name(text: str) -> bool:
    """Return whether a stream or token is safe as a path component and not one of the tree's fixed names."""
    return (
        bool(text)
        and text not in ("format", "projects")
        and len(text) <= 64
        and text.isascii()
        and text.isalnum()
        and text == text.lower()
    )
