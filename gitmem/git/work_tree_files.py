"""Read files of a work tree. Their names and contents are untrusted: nothing outside of the work tree is read."""

from __future__ import annotations

import os
import stat

from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


FILE_MAX = 1024 * 1024  # bytes


def resolve(top: str, path: str) -> str | None:
    """Return the path of a file or folder with links resolved; None if nothing has that name.

    Args:
        top: The top folder of the work tree.
        path: Relative to it, with `/` between.

    Raises:
        ValueError: It is outside of the work tree, or belongs to git; the message has the reason.
    """
    root = os.path.realpath(top)
    full = os.path.join(root, *path.split("/"))
    if not os.path.lexists(full):
        return None
    real = os.path.realpath(full)
    inside = os.path.relpath(real, root).split(os.sep)
    if inside[0] in ("..", ".") or os.path.isabs(os.path.join(*inside)):
        raise ValueError("it points outside of the worktree")
    if inside[0].lower() == ".git":
        raise ValueError("it belongs to git")
    return real


def read_text(real: str, most: int = FILE_MAX) -> str:
    """Read a file's text, with LF line ends.

    Args:
        real: A path that `resolve` returned.
        most: The greatest size in bytes.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is not a text; the message has the reason.
    """
    # O_NONBLOCK: do not wait for the writer of a pipe.
    handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("it is not a file")
        data = file.read(most + 1) if about.st_size <= most else b""
    return text_of(data, max(about.st_size, len(data)), most)


def text_of(data: bytes, size: int, most: int = FILE_MAX) -> str:
    """Return the text of a file of this size, see `read_text`; of one that is too large the data may be missing."""
    if size > most:
        limit = f"{most // FILE_MAX} MiB" if most >= FILE_MAX else f"{most // 1024} KiB"
        raise ValueError(f"it is larger than {limit}")
    if b"\0" in data:
        raise ValueError("it is binary")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (byte {error.start})") from None


def is_utf8(name: str) -> bool:
    """Return whether a file's name can be shown and recorded."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class FileSearch(Struct):
    """A search for files with a suffix below folders of a work tree. Links to folders are not followed.

    Attributes:
        top: The top folder of the work tree.
        entries_most: How many names all searches may look at.
        deadline: Returns whether the time is up.
        cut: Why the search ended early; "" if it did not.
    """

    _top: str
    _left: int
    _deadline: Callable[[], bool]
    cut: str = ""

    def find(self, folder: str, suffix: str, depth: int) -> list[str]:
        """Return the paths of the files below a folder, from the top of the work tree, sorted.

        Args:
            depth: How many levels of folders to enter below this one.

        Raises:
            OSError: The folder cannot be read.
            ValueError: The folder is outside of the work tree.
        """
        real = resolve(self._top, folder)
        if real is None or not os.path.isdir(real) or self.cut:
            return []
        names, folders = [], []
        with os.scandir(real) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0 or self._deadline():
                    self.cut = "there are too many files" if self._left < 0 else "reading takes too long"
                    break
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.name.endswith(suffix) and is_utf8(entry.name):
                    names.append(entry.name)
        found = [f"{folder}/{name}" for name in names]
        for name in folders if depth else ():
            found += self.find(f"{folder}/{name}", suffix, depth - 1)
        return sorted(found)
