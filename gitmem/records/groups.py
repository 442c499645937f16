"""Read many lines into groups of records whose fields can be processed at once."""

from __future__ import annotations

from .codec import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .bulk import Group as Group
    from .record_types import AnyRecord

FEW = 16  # up to this many lines, reading one by one is as fast


def read_or_none(line: bytes) -> AnyRecord | None:
    """Return the record of a line as `read` does; None if `read` fails: a bad line must not affect others."""
    try:
        return read(line)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return None


def read_groups(lines: Sequence[bytes]) -> list[Group]:
    """Return the results of `read_or_none` for lines, much faster for many; lines without a record are in no group.

    Returns:
        Groups of records of one kind: the kind, the numbers of their lines, the records, and if all of them have the
        same fields, the values of each field (else None).
    """
    if len(lines) < FEW:
        return read_alone(lines, range(len(lines)))
    from .bulk import read_grouped

    found, left = read_grouped(lines)
    return found + read_alone(lines, left)


def read_alone(lines: Sequence[bytes], numbers: Iterable[int]) -> list[Group]:
    """Return the same for the lines with these numbers, each read by itself."""
    found: dict[str, tuple[list[int], list[AnyRecord]]] = {}
    for number in numbers:
        record = read_or_none(lines[number])
        if record is not None:
            group = found.setdefault(record["kind"], ([], []))
            group[0].append(number)
            group[1].append(record)
    return [(kind, *group, None) for kind, group in found.items()]
