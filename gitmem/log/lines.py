"""Lines of the log, and entries: lines that are recorded together, with the message for their commit.

A line is `{"at":"2026-11-21T20:00:00.123456Z","kind":…}`. Its identity is its bytes. `at` comes first and has a fixed width, so
sorting lines by bytes sorts them by time. In this module a time is an integer: microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

import time

from ..text.addresses import WRITER_CHARACTERS, shortened, words_of
from ..text.digests import sha256
from ..text.strict_json import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


LINE_MAX_BYTES = 256 * 1024
HEAD_BYTES = 36  # {"at":"2026-11-21T20:00:00.123456Z",
DAYS_KEPT = 1_000  # size of the cache of days; the lines of one call are of few days
LAST_MICROS = 253_402_300_800 * 1_000_000 - 1  # the end of the year 9999
_HEAD = b'{"at":"'
_KIND, _WRITER = b'"kind":"', b'","writer":"'
ATTESTS = b'"kind":"attestation"'
HASH_BYTES = 16
SALT = b',"salt":"'  # begins what forgetting takes from a line: the salt, and the texts after it
_TEXTS, _TEXTS_BYTES = b',"texts":"', 64
_HEX = b"0123456789abcdef"
_midnights: dict[str, int] = {}


def format_at(micros: int) -> str:
    """Format a time with a fixed width, in UTC.

    Raises:
        ValueError: The time is outside the years 1970 to 9999.
    """
    seconds, fraction = divmod(micros, 1_000_000)
    if not 0 <= micros <= LAST_MICROS:
        raise ValueError(f"{micros} microseconds is not between the years 1970 and 9999")
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:06d}Z"


def parse_at(text: str) -> int:
    """Parse a time that `format_at` wrote.

    Raises:
        ValueError: The text has any other form.
    """
    midnight = _midnights.get(text[:10])
    if midnight is None:
        midnight = _midnight(text[:10])
    clock = text[11:13] + text[14:16] + text[17:19] + text[20:26]
    marks = text[10:11] + text[13:14] + text[16:17] + text[19:20] + text[26:]
    if midnight >= 0 and marks == "T::.Z" and len(clock) == 12 and clock.isascii() and clock.isdecimal():
        hour, minute, rest = int(clock[:2]), int(clock[2:4]), int(clock[4:])  # rest: microseconds
        if hour < 24 and minute < 60 and rest < 60_000_000:
            return midnight + (hour * 60 + minute) * 60_000_000 + rest
    raise ValueError(f"{text!r} is not a time such as 2026-11-21T20:00:00.123456Z")


def parse_all(texts: Iterable[str]) -> list[int]:
    """Parse times that are known to be valid; faster than `parse_at`, because many share a minute."""
    minutes: dict[str, int] = {}
    found = []
    for text in texts:
        minute = text[:17]
        if minute not in minutes:
            minutes[minute] = parse_at(f"{minute}00.000000Z")
        found.append(minutes[minute] + int(text[17:19] + text[20:26]))
    return found


def _midnight(date: str) -> int:
    """Return the start of a day such as 2026-11-21; -1 if the text is not a day since 1970."""
    parts = (date[:4], date[5:7], date[8:])
    if len(date) != 10 or not all(part.isascii() and part.isdecimal() for part in parts):
        return -1
    micros = _days(*map(int, parts)) * 86_400_000_000
    # The arithmetic accepts February 30; formatting the result again gives another day.
    if not 0 <= micros <= LAST_MICROS or format_at(micros)[:10] != date:
        return -1
    if len(_midnights) >= DAYS_KEPT:
        _midnights.clear()  # a peer may write lines of any number of days
    _midnights[date] = micros
    return micros


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01. The year begins with March here, which makes the leap day its last day."""
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 719_469


def validation_error(line: bytes) -> str | None:
    """Return why these bytes (without LF) are not a line of the log, or None if they are one.

    It checks the outer form only; the meaning of the record is for the packages above.
    """
    if len(line) > LINE_MAX_BYTES:
        return f"longer than {LINE_MAX_BYTES} bytes"
    if b"\n" in line or b"\r" in line or b"\0" in line:
        return "has a raw newline or NUL"
    if line.count(SALT) > 1:
        return "has two salts"
    if not (line.startswith(_HEAD) and line[34:36] == b'",' and line.endswith(b"}")):
        return 'does not start with {"at":"…", and end with }'
    try:
        text = line.decode()
        parse_at(text[7:34])
    except ValueError:
        return "has a bad time or is not UTF-8"
    from ..text.strict_json import read

    try:
        record = read(text)
        # Python's parser accepts half a surrogate pair; other parsers do not.
        if b"\\" in line and b"\\u" in line:
            import json

            json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return "is not JSON"
    if record["at"] != text[7:34]:
        return "has two times"
    if not isinstance(record.get("kind"), str):
        return "has no kind"
    return None


def reduced(line: bytes) -> bytes:
    """Return the reduced form of a line: the digest of its salt and texts in their place; a line without a salt as it is."""
    at = line.find(SALT)
    if at < 0:
        return line
    return b'%b%b%b"}' % (line[:at], _TEXTS, sha256(line[at + len(SALT) :]).hexdigest().encode())


def line_hash(line: bytes) -> bytes:
    """Return the hash of a line: the start of the SHA-256 of its reduced form, so that it outlives the texts."""
    return sha256(reduced(line)).digest()[:HASH_BYTES]


def is_reduced(line: bytes) -> bool:
    """Return whether a line is the reduced form of another: its texts are gone."""
    start = len(line) - _TEXTS_BYTES - 2
    return line.endswith(b'"}') and line.endswith(_TEXTS, 0, start) and not line[start:-2].strip(_HEX)


def digest(line: bytes) -> str:
    """Return the hex SHA-256 of a line's content, without LF and time; see `content_without_time`."""
    return sha256(content_without_time(line)).hexdigest()


def content_without_time(line: bytes) -> bytes:
    """Return the content of a line in its reduced form without its time."""
    return b"{" + reduced(line)[HEAD_BYTES:]


def writer_of(line: bytes) -> str:
    """Return the writer id in a line, its third field; "" if it has none there."""
    end = line.find(b'"', HEAD_BYTES + len(_KIND)) if line.startswith(_KIND, HEAD_BYTES) else -1
    start = end + len(_WRITER)
    name, close = line[start : start + WRITER_CHARACTERS], line[start + WRITER_CHARACTERS :][:1]
    if end < 0 or not line.startswith(_WRITER, end) or close != b'"' or not name.isalnum():
        return ""
    return "" if b"\\" in line[HEAD_BYTES:end] else name.decode("ascii", "replace")


def is_attestation(line: bytes) -> bool:
    """Return whether a line attests others. It is no record that anybody waits for."""
    return line.startswith(ATTESTS, HEAD_BYTES)


def count_records(found: Iterable[bytes]) -> int:
    """Return how many lines are not attestations: what people are told of as records."""
    return sum(not is_attestation(line) for line in found)


def day(line: bytes) -> str:
    """Return the folder of a line's day, `yyyy-mm/dd`."""
    return f"{line[7:14].decode()}/{line[15:17].decode()}"


SUBJECT_MAX = 72  # characters of a commit's subject


class CommitMessage:
    """The message of an entry's commit: author as `Name <mail>`, subject, body, and trailers in order, addresses in these without their writer."""

    def __init__(
        self, author: str, subject: str, body: str = "", trailers: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.author = shortened(author, words_of)
        self.subject = subject
        self.body = body
        self.trailers = [(str(key), shortened(str(value), words_of)) for key, value in trailers]


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
        words = ", ".join(map(quote, (self.token, message.author, message.subject, message.body)))
        trailers = ", ".join(f"[{quote(key)}, {quote(value)}]" for key, value in message.trailers)
        parts = [f"[{words}, [{trailers}]]".encode("utf-8", "replace")]
        parts += [stream.encode() + b"\t" + line for stream, line in self.lines]
        return b"\n".join(parts) + b"\n"

    @classmethod
    def decode(cls, content: bytes, *, deferred: bool = False) -> LogEntry:
        """Parse an entry and validate each of its lines.

        Raises:
            ValueError: The bytes are not an entry, or one of its lines is invalid.
        """
        head, rows = split_entry(content)
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
            problem = validation_error(line)
            if problem:
                raise ValueError(problem)
        return cls(found, message, deferred=deferred, token=token)


def split_entry(content: bytes) -> tuple[bytes, list[bytes]]:
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
    for row in split_entry(content)[1]:
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
    from ..text.strict_json import read

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
