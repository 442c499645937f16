"""Loose objects: written durably, and read without a look into the packs.

Dulwich's own writer leaves an object's `.lock` behind when it is killed, which
blocks that content for ever, and does not fsync one that exists.
"""

from __future__ import annotations

import hashlib
import os
import zlib

from .durable import fsync_dir, make_folder


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


def write(objects: str, kind: bytes, content: bytes) -> str:
    """Write an object into the folder `objects`, fsynced, and return its id.

    An object that is in a pack is written again: the next gc removes one of
    them, and to look would cost more than to write.
    """
    data = b"%s %d\0%s" % (kind, len(content), content)
    oid = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    folder = os.path.join(objects, oid[:2])
    path = os.path.join(folder, oid[2:])
    temporary = os.path.join(objects, "tmp_obj_" + os.urandom(8).hex())  # gc removes leftovers of this name
    try:
        with open(temporary, "xb") as file:
            file.write(zlib.compress(data, 1))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o444 & os.stat(objects).st_mode)
        if make_folder(folder):
            _put(temporary, path, (kind, content), objects, oid)
            fsync_dir(folder)
            fsync_dir(objects)
        else:
            _put(temporary, path, (kind, content), objects, oid)
    finally:
        try:
            os.unlink(temporary)
        except OSError:  # it was renamed, or never made
            pass
    return oid


def _put(temporary: str, path: str, expected: tuple[bytes, bytes], objects: str, oid: str) -> None:
    """Give the finished file its name; what stands there already is kept if it is whole."""
    try:
        os.link(temporary, path)
        return
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        os.replace(temporary, path)
        return
    try:
        if read(objects, oid) == expected:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
            os.utime(path)  # as git does: a prune takes what is old and not yet reached
            return
    except (KeyError, OSError):
        pass
    os.replace(temporary, path)  # a power loss left it empty or torn
