"""Modes of files in a git folder that several users share, by git's setting `core.sharedRepository`.

As in git, the setting is read from the repository's own config file, and counts beside the umask: `group` adds what the
group needs, `all` reading for everybody, and an octal number replaces the mode. Folders get the set-group-id bit.
"""

from __future__ import annotations

import os
import stat

from .repo import read_config, read_small

GROUP, EVERYBODY = 0o660, 0o664
_NAMES = {
    "umask": 0, "group": GROUP, "all": EVERYBODY, "world": EVERYBODY, "everybody": EVERYBODY,
    "true": GROUP, "yes": GROUP, "on": GROUP, "false": 0, "no": 0, "off": 0, "": 0,
}  # fmt: skip
_OLD = {0: 0, 1: GROUP, 2: EVERYBODY}
_git_folders: dict[str, str] = {}  # of folders that were looked at: the git folder that each is in, or ""
_settings: dict[str, tuple[tuple[int, ...], int]] = {}


def parse(value: str) -> int:
    """Return what a value of core.sharedRepository means: bits to add to a mode, or below 0 those that replace it.

    A value that git would refuse adds nothing.
    """
    named = _NAMES.get(value.lower())
    if named is not None:
        return named
    if not value.isascii() or not value.isdigit() or set(value) & {"8", "9"}:
        return 0
    number = int(value, 8)
    if number in _OLD:
        return _OLD[number]
    return -(number & 0o666) if number & 0o600 == 0o600 else 0


def setting(path: str) -> int:
    """Return what `parse` says of the git folder that a file is in; 0 outside of one."""
    common = _git_folder(os.path.dirname(path))
    if not common or os.name != "posix":
        return 0
    config = os.path.join(common, "config")
    try:
        found = os.stat(config)
    except OSError:
        return 0
    stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
    known = _settings.get(common)
    if known is None or known[0] != stamp:
        content = read_small(config)
        value = "umask"
        if b"sharedrepository" in content.lower():
            values = [value for key, value in read_config(content) if key == "core.sharedrepository"]
            value = values[-1] if values else value
        known = _settings[common] = (stamp, parse(value))
    return known[1]


def wanted(mode: int, bits: int) -> int:
    """Return the mode that a file or folder of this mode gets, by a setting as `parse` returns it."""
    tweak = abs(bits)
    if not mode & stat.S_IWUSR:
        tweak &= ~0o222
    if mode & stat.S_IXUSR or stat.S_ISDIR(mode):
        tweak |= (tweak & 0o444) >> 2
    new = (mode & 0o7000) | tweak if bits < 0 else stat.S_IMODE(mode) | tweak
    if stat.S_ISDIR(mode) and new & 0o060:
        new |= stat.S_ISGID
    return new


def adjust(path: str) -> None:
    """Give a file or folder that this process made its mode. Nothing changes where the repository is not shared."""
    bits = setting(path)
    if not bits:
        return
    try:
        found = os.lstat(path)
        new = wanted(found.st_mode, bits)
        if (
            new != stat.S_IMODE(found.st_mode)
            and found.st_uid == os.geteuid()
            and not stat.S_ISLNK(found.st_mode)
        ):
            os.chmod(path, new)
    except OSError:
        return  # as with a file system without modes: the owner alone may write


def open_file(path: str, flags: int, mode: int = 0o666) -> int:
    """Open a file as `os.open` does, and give it its mode where this process makes it.

    Raises: OSError.
    """
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0), mode)
    if flags & os.O_CREAT:
        adjust(path)
    return handle


def make_dirs(path: str) -> None:
    """Make a folder and what is missing above it, each with its mode. Raises: OSError."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_dirs(parent)
    make_dir(path)


def make_dir(path: str) -> None:
    """Make a folder in one that is there, where it is missing, with its mode. Raises: OSError."""
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return
    adjust(path)


def _git_folder(folder: str) -> str:
    known = _git_folders.get(folder)
    if known is not None:
        return known
    at = folder
    while not (os.path.exists(os.path.join(at, "HEAD")) and os.path.isdir(os.path.join(at, "objects"))):
        above = os.path.dirname(at)
        if above == at or not above or os.path.lexists(os.path.join(at, ".git")):  # a work tree
            return ""
        at = above
    _git_folders[folder] = at
    return at
