"""Read lines of JSON that other tools wrote, and what every importer makes of one: times, and values in the fields of a record."""

from __future__ import annotations

import os

from .. import records
from ..errors import UsageError
from ..outcome import Struct
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

    from ..outcome import Progress

    Given = Mapping[str, object]
    NumberedObject = tuple[int, dict[str, object] | None, str]


LINE_MAX_BYTES = 1024 * 1024  # four times the limit of the log, because JSON may be verbose
REPORTED = 500  # lines between two reports of progress
MARKERS = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")


def objects_in(file: BinaryIO, progress: Progress | None) -> Iterator[NumberedObject]:
    """Yield (line number, the object in it or None, the reason for None) of an open file. Blank lines are skipped.

    Args:
        progress: Called now and then with the bytes that were read.

    Raises:
        OSError: The file can't be read.
    """
    number, size = 0, os.fstat(file.fileno()).st_size
    while line := file.readline(LINE_MAX_BYTES + 1):
        number += 1
        if progress is not None and not number % REPORTED:
            progress("reading bytes", file.tell(), size)
        whole = line.endswith(b"\n")
        if len(line) > LINE_MAX_BYTES and not whole:
            while (rest := file.readline(LINE_MAX_BYTES)) and not rest.endswith(b"\n"):
                continue
            yield number, None, f"it is longer than {LINE_MAX_BYTES} bytes"
            continue
        text = line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n")
        if text:
            found, why = _object(text, whole)
            yield number, found, why


def _object(line: bytes, whole: bool) -> tuple[dict[str, object] | None, str]:
    import json

    if line.startswith(MARKERS):
        return None, "it is a conflict marker of an unfinished git merge"
    try:
        found = json.loads(line.decode())
    except UnicodeDecodeError:
        return None, "it is not UTF-8"
    except (ValueError, RecursionError):
        return None, "it is not JSON" if whole else "it is cut off, or not JSON"
    if not isinstance(found, dict):
        return None, "it is not a JSON object"
    return found, ""


def micros_of(value: object) -> int | None:
    """Return an ISO time in microseconds since the epoch, or None for another value. The default time zone is UTC."""
    from datetime import UTC, datetime, timedelta

    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        found = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return found if found >= 0 else None


def time_of(given: Given, name: str, otherwise: int | None = None) -> int:
    """Return a time of the object, in microseconds since the epoch.

    Raises:
        UsageError: It is invalid, or missing without `otherwise`.
    """
    found = micros_of(given.get(name))
    if found is None and (otherwise is None or given.get(name) is not None):
        what = "is not a time since 1970" if given.get(name) is not None else "is missing"
        raise UsageError(f"Its {name} {what}. Nothing was written.", code="invalid-record")
    return found if found is not None else int(otherwise or 0)


class ConvertedLines(Struct):
    """The result of converting a line.

    Attributes:
        id: The id of its subject.
        kind, fields: The record for the log.
        at: Its time, in microseconds since the epoch.
        more: Further lines that belong to it.
        remarks: Values outside their usual field.
        line: The line for the log, once the record is found valid.
    """

    id: str
    kind: str
    at: int
    fields: dict[str, object]
    more: list[bytes] = []
    remarks: list[str] = []
    line: bytes = b""


def put(
    kind: str,
    fields: dict[str, object],
    kept: dict[str, object],
    remarks: list[str],
    name: str,
    value: object,
    *,
    given: str | None = None,
) -> None:
    """Set a field of a record, or keep a value that does not fit, with a remark.

    Args:
        given: Its name in the other tool, if that is another one.
    """
    if value is None or value == "":
        return
    if records.fits(kind, name, value):
        fields[name] = value
    else:
        kept[given or name] = value
        shown = sanitize(str(value))[:40]
        remarks.append(f"its {given or name} {shown} is not valid here; it is kept beside the fields")
