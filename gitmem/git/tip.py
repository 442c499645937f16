"""A ref's value straight from its files, in microseconds and without git."""

from __future__ import annotations

import os

_HEX = b"0123456789abcdef"


def loose_tip(common: str, ref: str) -> str | None:
    """The object id in the ref's loose file under the common git folder.

    None says only that it does not plainly stand there: the ref may be packed,
    symbolic, in a reftable, or missing.
    """
    try:
        handle = os.open(os.path.join(common, ref), os.O_RDONLY)
    except OSError:
        return None
    try:
        data = os.read(handle, 80)
    except OSError:
        return None
    finally:
        os.close(handle)
    oid = data.rstrip(b"\r\n")
    if len(oid) not in (40, 64) or oid.strip(_HEX):
        return None
    return oid.decode("ascii")


def packed_tip(common: str, ref: str) -> str | None:
    """The object id that `packed-refs` has for the ref. Ask only where there is no loose file.

    It reads the file whole and parses none of it: 3 MB, for 50,000 refs, take a millisecond.
    """
    try:
        with open(os.path.join(common, "packed-refs"), "rb") as file:
            data = file.read()
    except OSError:
        return None
    end = data.find(b" " + os.fsencode(ref) + b"\n")
    oid = data[data.rfind(b"\n", 0, max(end, 0)) + 1 : max(end, 0)]
    if len(oid) not in (40, 64) or oid.strip(_HEX):
        return None
    return oid.decode("ascii")
