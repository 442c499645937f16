"""Marked lines at the end of a user's text file, which can be removed without a trace.

A marker precedes our lines and records what their removal needs: whether the file is new, and whether a newline was
added to the user's last line. Texts are bytes, so encodings and line ends don't matter.
"""

from __future__ import annotations

import os
from binascii import crc32

from gitmem import state_files
from gitmem.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARK = b"# gitmem: written by gitmem init, removed by gitmem init --uninstall"
_NEW_FILE = b"; new file"
_NEWLINE = b"; newline added after "


class MarkedBlock:
    """Our lines in one file.

    Args:
        is_ours: Whether a line below the marker is ours; other lines there belong to the user.
        section: The header of the config section on the marker's line; empty in other files.
    """

    def __init__(self, is_ours: Callable[[bytes], bool], section: bytes = b"") -> None:
        self.is_ours = is_ours
        self.section = section
        self.head = section + b" " + MARK if section else MARK

    def add(self, old: bytes | None, body: bytes, note: bytes = b"") -> bytes:
        """Return the text (None: no file) with `body` as our lines at its end, instead of earlier ones."""
        rest, marker = self.extract(old or b"")
        if old is None or _NEW_FILE in marker:
            note += _NEW_FILE
        if rest and not rest.endswith(b"\n"):
            note += _NEWLINE + _sum(_lines(rest)[-1])
            rest += b"\n"
        return rest + self.head + note + b"\n" + body

    def holds(self, text: bytes | None, body: bytes) -> bool:
        """Return whether `body` is unchanged below our marker."""
        _, marked, below = (text or b"").partition(self.head)
        return bool(marked) and below.partition(b"\n")[2].startswith(body)

    def without(self, old: bytes | None) -> bytes | None:
        """Return the text without our lines; None if there would be no file."""
        if old is None:
            return None
        rest, marker = self.extract(old)
        return None if not rest and _NEW_FILE in marker else rest

    def extract(self, text: bytes) -> tuple[bytes, bytes]:
        """Return the text without our lines, and our marker (empty if there is none)."""
        kept: list[bytes] = []
        marker, at, inside = b"", 0, False
        for line in _lines(text):
            if line.startswith(self.head):
                marker, at, inside = line, len(kept), True
            elif not (inside and self.is_ours(line)):
                inside = inside and not line.lstrip().startswith(b"[")
                kept.append(line)
        if marker and self.section and _has_setting(kept[at:]):
            kept.insert(at, self.section + b"\n")  # `git config` added a setting of the user's to our section
        noted = marker.partition(_NEWLINE)[2][:8]
        if noted and kept and at == len(kept) and noted == _sum(kept[-1][:-1]):
            kept[-1] = kept[-1][:-1]
        return b"".join(kept), marker


def _has_setting(lines: list[bytes]) -> bool:
    """Return whether there is a setting before the next section."""
    for line in lines:
        word = line.lstrip()[:1]
        if word not in (b"", b"#", b";"):
            return word != b"["
    return False


def _lines(text: bytes) -> list[bytes]:
    """Split after each LF alone (`splitlines` also splits at CR)."""
    parts = text.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]


def _sum(line: bytes) -> bytes:
    return b"%08x" % crc32(line)


def read(path: str) -> bytes | None:
    """Return the content of a file; None if it does not exist.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"Cannot read {path} ({error.strerror}). Nothing was changed.") from error


def edit(path: str, change: Callable[[bytes | None], bytes | None], like: str) -> str | None:
    """Change a file atomically, under git's own lock for it.

    Args:
        change: Returns the new text for the old text; None stands for no file. It may be called twice.
        like: A file whose permissions a new file gets.

    Returns:
        `path`, or None if there was nothing to change.

    Raises:
        StoreError: the file is locked or cannot be written; it is unchanged.
    """
    old = read(path)
    new = change(old)
    if new == old:
        return None
    target = os.path.realpath(path)  # a symbolic link stays, and its target is changed
    lock = target + ".lock"
    try:
        state_files.make_dirs(os.path.dirname(target))
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise StoreError(
            f"{path} is locked by another process ({lock} exists). The file is unchanged.",
            hint="Try again; if no git process is running in this repository, remove that lock file.",
            code="locked",
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with open(descriptor, "wb") as file:
            now = read(path)
            new = new if now == old else change(now)
            file.write(new or b"")
            file.flush()
            os.fsync(file.fileno())
        if new is None:
            os.unlink(target)
        else:
            model = like if now is None else target
            if os.path.exists(model):
                os.chmod(lock, os.stat(model).st_mode & 0o777)
            state_files.adjust(lock, private=True)
            os.replace(lock, target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        if os.path.lexists(lock):
            os.unlink(lock)
    return path


def _unwritable(path: str, error: OSError) -> StoreError:
    return StoreError(
        f"Cannot write {path} ({error.strerror}). The file is unchanged.",
        hint="Check the permissions of that file and its folder, and the free disk space.",
    )
