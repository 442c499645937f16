"""One line of the log: `{"at":"2026-11-21T20:00:00.123456Z","kind":…}`.

A line's identity is its bytes. `at` stands first and has a fixed width, so the
byte order of lines is the order of their time. Times are integers here:
microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

import time

LINE_MAX_BYTES = 256 * 1024
HEAD_BYTES = 36  # {"at":"2026-11-21T20:00:00.123456Z",
_HEAD = b'{"at":"'


def format_at(micros: int) -> str:
    """The fixed-width UTC form of a time. ValueError outside the years 1970 to 9999."""
    seconds, fraction = divmod(micros, 1_000_000)
    if not 0 <= seconds < 253_402_300_800:
        raise ValueError(f"{micros} microseconds is not between the years 1970 and 9999")
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:06d}Z"


def parse_at(text: str) -> int:
    """The inverse of `format_at`. ValueError for any other form."""
    import datetime

    try:
        moment = datetime.datetime.fromisoformat(text[:26])
        # fromisoformat takes many forms; only the one that it would write itself is ours.
        if moment.isoformat("T", "microseconds") + "Z" != text:
            raise ValueError
        since = moment - datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - both are UTC
        if since.days < 0:
            raise ValueError
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-11-21T20:00:00.123456Z") from None
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def problem(line: bytes) -> str | None:
    """Why these bytes (without LF) are no line of the log, or None where they are one.

    It checks the outer form alone: what the line says is for the rooms above.
    """
    if len(line) > LINE_MAX_BYTES:
        return f"longer than {LINE_MAX_BYTES} bytes"
    if b"\n" in line or b"\r" in line or b"\0" in line:
        return "has a raw newline or NUL"
    if not (line.startswith(_HEAD) and line[34:36] == b'",' and line.endswith(b"}")):
        return 'does not start with {"at":"…", and end with }'
    try:
        text = line.decode()
        parse_at(text[7:34])
    except ValueError:
        return "has a bad time or is not UTF-8"
    import json

    try:
        record = json.loads(text)
        # What Python's reader lets pass and others do not: half a surrogate pair, NaN.
        if (b"\\" in line and b"\\u" in line) or b"NaN" in line or b"Infinity" in line:
            json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return "is not JSON"
    if record["at"] != text[7:34]:
        return "has two times"
    if not isinstance(record.get("kind"), str):
        return "has no kind"
    return None


def digest(line: bytes) -> str:
    """The hex SHA-256 of what a line says, whenever it was said: all but its time, without LF."""
    from ..sha256 import sha256

    return sha256(b"{" + line[HEAD_BYTES:]).hexdigest()


def day(line: bytes) -> str:
    """The folder of a line's day, `yyyy-mm/dd`."""
    return f"{line[7:14].decode()}/{line[15:17].decode()}"
