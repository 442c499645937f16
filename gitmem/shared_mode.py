"""Modes of files in a git folder that several users share, by git's setting `core.sharedRepository`.

As in git, the setting is read from the repository's config file and applies in addition to the umask: `group` adds
group access, `all` adds read access for everybody, and an octal number replaces the mode. Folders get the set-group-id
bit.
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
_git_folders: dict[str, str] = {}  # folder -> the git folder that contains it
_settings: dict[str, tuple[tuple[int, ...], int]] = {}


def parse(value: str) -> int:
    """Return the mode bits for a value of core.sharedRepository.

    Returns:
        Bits to add to a mode; if negative, bits that replace it. Values that git rejects add nothing.
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
    """Return the result of `parse` for the git folder that contains a file; 0 outside a git folder."""
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


def mode_for(mode: int, bits: int) -> int:
    """Return the mode for a file or folder with the given mode, under a setting from `parse`."""
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
    """Set the mode of a file or folder that this process created. Do nothing if the repository is not shared."""
    bits = setting(path)
    if not bits:
        return
    try:
        found = os.lstat(path)
        new = mode_for(found.st_mode, bits)
        if (
            new != stat.S_IMODE(found.st_mode)
            and found.st_uid == os.geteuid()
            and not stat.S_ISLNK(found.st_mode)
        ):
            os.chmod(path, new)
    except OSError:
        return  # as on a file system without modes: only the owner may write


def open_file(path: str, flags: int, mode: int = 0o666) -> int:
    """Open a file as `os.open` does, and set its mode if this call may have created it.

    Raises:
        OSError: the file cannot be opened.
    """
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0), mode)
    if flags & os.O_CREAT:
        adjust(path)
    return handle


def make_dirs(path: str) -> None:
    """Create a folder and its missing parents, each with its mode.

    Raises:
        OSError: a folder cannot be created.
    """
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_dirs(parent)
    make_dir(path)


def make_dir(path: str) -> None:
    """Create a folder with its mode, if it is missing. Its parent must exist.

    Raises:
        OSError: the folder cannot be created.
    """
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
