"""Loose objects: written durably, and read without a look into the packs.

Dulwich's own writer leaves an object's `.lock` behind when it is killed, which
blocks that content for ever, and does not fsync one that exists.
"""

from __future__ import annotations

import errno
import hashlib
import os
import zlib

from .. import shared_mode
from . import held
from .durable import add_name, make_folder

TRIES_MAX = 10


def read(objects: str, oid: str) -> tuple[bytes, bytes] | None:
    """Kind and content of a loose object; None where there is none. KeyError where it is damaged."""
    try:
        with open(os.path.join(objects, oid[:2], oid[2:]), "rb") as file:
            data = zlib.decompress(file.read())
    except FileNotFoundError:
        return None
    except zlib.error:
        raise KeyError(oid) from None
    head, _, content = data.partition(b"\0")
    kind, _, size = head.partition(b" ")
    if size != b"%d" % len(content):
        raise KeyError(oid)
    return kind, content


def head(objects: str, oid: str) -> tuple[str, int] | None:
    """Kind and size of a loose object, without reading it; None where there is none, or none that can be read."""
    try:
        with open(os.path.join(objects, oid[:2], oid[2:]), "rb") as file:
            start = zlib.decompressobj().decompress(file.read(128), 64)
    except (OSError, zlib.error):
        return None
    kind, _, number = start.partition(b"\0")[0].partition(b" ")
    return (kind.decode("ascii", "replace"), int(number)) if number.isdigit() else None


def write(objects: str, kind: bytes, content: bytes, algorithm: str = "sha1") -> str:
    """Write an object into the folder `objects`, fsynced, and return its id by that hash algorithm.

    An object that is in a pack is written again: to look would cost more than to write. The temporary file
    becomes its second name (`held`), and lies where a gc does not take it for a leftover.
    """
    data = b"%s %d\0%s" % (kind, len(content), content)
    oid = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
    second = held.folder(objects)
    temporary = os.path.join(second, held.TEMPORARY + os.urandom(8).hex())
    try:
        try:
            file = open(temporary, "xb")  # noqa: SIM115
        except FileNotFoundError:
            os.stat(objects)
            make_folder(second)
            file = open(temporary, "xb")  # noqa: SIM115
        with file:
            file.write(zlib.compress(data, 1))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o444 & os.stat(objects).st_mode)
        shared_mode.adjust(temporary)
        _put(temporary, objects, oid, (kind, content))
        os.replace(temporary, os.path.join(second, oid))
    finally:
        try:
            os.unlink(temporary)
        except OSError:  # it was renamed, or never made
            pass
    return oid


def _put(temporary: str, objects: str, oid: str, expected: tuple[bytes, bytes]) -> None:
    """Give the finished file its name too; what stands there already is kept if it is whole."""
    path, another = os.path.join(objects, oid[:2], oid[2:]), temporary + "-"
    for _ in range(TRIES_MAX):
        try:
            add_name(temporary, path)
            return
        except FileExistsError:
            pass
        try:
            found = read(objects, oid)
            if found == expected:
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
                try:
                    os.utime(path)  # as git does: a prune takes what is old and not yet reached
                except PermissionError:  # another user's, in a shared repository
                    add_name(temporary, another)
                    os.replace(another, path)
                return
        except KeyError:  # a power loss left it empty or torn
            add_name(temporary, another)
            os.replace(another, path)
            return
        except FileNotFoundError:
            pass
        # It is gone again: a gc took it.
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
