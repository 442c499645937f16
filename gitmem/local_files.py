"""Files in gitmem's state folder: opened here alone, since others may have planted something in their place, and replaced at once or not at all.

A link, a pipe or a device is refused, no reader waits, and no more is read than a file of ours can have. A link in place of
a folder counts as an empty folder: what it leads to is neither changed nor removed, and a writer replaces the link. Modes follow
git's setting `core.sharedRepository`, as in git: it applies in addition to the umask; `group` adds group access, `all`
adds read access for everybody, and an octal number replaces the mode. Folders get the set-group-id bit. What root creates
belongs to the owner of the git folder.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from .repo import STATES, read_config, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


BYTES_MAX = 16 * 1024 * 1024  # of a file that is read at once, unless the caller knows better
ASIDE = "aside"  # the name of the folder for files that doctor moves instead of deleting
OWN, READABLE = "own", "readable"  # see `adjust`
OTHER_KIND = "it is a link, a pipe or a folder, not a file of gitmem; remove it"
_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK
GROUP, EVERYBODY = 0o660, 0o664
_NAMES = {
    "umask": 0, "group": GROUP, "all": EVERYBODY, "world": EVERYBODY, "everybody": EVERYBODY,
    "true": GROUP, "yes": GROUP, "on": GROUP, "false": 0, "no": 0, "off": 0, "": 0,
}  # fmt: skip
_OLD = {0: 0, 1: GROUP, 2: EVERYBODY}
_git_folders: dict[str, str] = {}  # folder -> the git folder that contains it, or the `.git` of its work tree
_new_files: dict[str, tuple[int, int]] = {}  # see `_new_file`
_settings: dict[str, tuple[str, int]] = {}


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
    if not common:
        return 0
    config = os.path.join(common, "config")
    now, known = stamp(config), _settings.get(common)
    if known is None or known[0] != now:
        content = read_small(config)
        value = "umask"
        if b"sharedrepository" in content.lower():
            values = [value for key, value in read_config(content) if key == "core.sharedrepository"]
            value = values[-1] if values else value
        known = _settings[common] = (now, parse(value))
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


def adjust(path: str, *, handle: int | None = None, private: bool | str = False) -> None:
    """Set the mode of a file or folder that this process may have created, and as root its owner.

    Args:
        path: Its path; a link is left alone.
        handle: The file, if it is open.
        private: Leave the mode as it is; if `OWN`, also the owner: the file is this user's own. If `READABLE`, others may
            read it as the setting says, and only its owner writes.
    """
    bits = setting(path) if private in (False, READABLE) else 0
    owner = None if private == OWN else owner_for(path)
    if not bits and owner is None:
        return
    try:
        found = os.lstat(path) if handle is None else os.fstat(handle)
        if found.st_uid != os.geteuid() or stat.S_ISLNK(found.st_mode):
            return
        new = mode_for(found.st_mode, bits) & ~(0o022 if private == READABLE else 0)
        if bits and new != stat.S_IMODE(found.st_mode):
            os.chmod(path if handle is None else handle, new)
        if (
            owner is not None and os.stat(os.path.dirname(path)).st_uid == owner[0]
        ):  # root's own folders stay root's
            os.chown(path if handle is None else handle, *owner)
    except OSError:
        return  # as on a file system without modes: only the owner may write


def owner_for(path: str) -> tuple[int, int] | None:
    """Return user and group of the git folder of a file, in it or in its work tree, if this process is root and they are not; else None."""
    if os.geteuid() != 0 or not (common := _nearest(os.path.dirname(path))):
        return None
    found = os.stat(common)
    return (found.st_uid, found.st_gid) if found.st_uid else None


def machine_part(machine: str) -> str:
    """Return the part of a file's name that tells machines apart which share a state folder."""
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in machine)[:60] or "machine"


def is_own(status: os.stat_result, folder: str) -> bool:
    """Return whether a file is this user's, and only this user's: what others wrote must not count as this user's.

    Root's files belong to the owner of the git folder, see `owner_for`. Some file systems keep no owners and modes: there a
    new file belongs to whom all files belong to.

    Args:
        status: That of the file.
        folder: The folder of the file.
    """
    is_open = bool(
        status.st_mode & 0o022 and setting(os.path.join(folder, "file"))
    )  # to the group, in a shared clone
    if status.st_uid == os.geteuid() and not is_open:
        return True
    owner = owner_for(os.path.join(folder, "file"))
    new = _new_file(folder)
    return status.st_uid == (owner[0] if owner else new[0]) and (not is_open or bool(new[1] & 0o022))


def _new_file(folder: str) -> tuple[int, int]:
    """Return owner and mode that a new file of this user alone has in a folder; those of the folder if none can be made."""
    if folder not in _new_files:
        path = os.path.join(folder, f".tmp-{os.getpid()}-{time.monotonic_ns()}")
        try:
            handle = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, private=OWN)
        except OSError:
            found = os.stat(folder)
            return found.st_uid, 0
        found = os.fstat(handle)
        _new_files[folder] = found.st_uid, found.st_mode
        os.close(handle)
        os.unlink(path)
    return _new_files[folder]


def give_back(common: str) -> None:
    """As root, give the owner of a git folder what git made for gitmem in it: refs, reflogs, packs, folders of objects. Never raises."""
    objects = os.path.join(common, "objects")
    if owner_for(objects) is None:
        return
    adjust(os.path.join(common, "packed-refs"))
    for top in ("refs/gitmem", "logs/refs/gitmem", "objects/pack"):
        for folder, _, names in os.walk(os.path.join(common, top)):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                adjust(path)
    for entry in os.scandir(objects):
        adjust(entry.path)


def open_file(path: str, flags: int, mode: int = 0o666, *, private: bool | str = False) -> int:
    """Open a regular file as `os.open` does, and set its mode and owner if this call may have created it.

    Args:
        path, flags, mode: As for `os.open`.
        private: As for `adjust`.

    Raises:
        OSError: It can't be opened, or it, or for writing a folder of ours above it, is a link or of another kind.
    """
    if flags & os.O_CREAT and link_at(os.path.dirname(path)):
        make_dirs(os.path.dirname(path))
    elif flags & (os.O_WRONLY | os.O_RDWR):
        refuse_link(os.path.dirname(path))
    if flags & os.O_CREAT and _git_folder(os.path.dirname(path)):
        clear(path)
    try:
        handle = os.open(path, flags | _SAFELY, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise OSError(error.errno, OTHER_KIND, path) from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, OTHER_KIND, path)
        if flags & os.O_CREAT:
            adjust(path, handle=handle, private=private)
    except OSError:
        os.close(handle)
        raise
    return handle


def link_at(folder: str) -> str:
    """Return the link that takes the place of a state folder, or of a folder below it, on the way to a folder; "" if there is none."""
    found, state = "", folder
    while state not in STATES and os.path.dirname(state) != state:
        state = os.path.dirname(state)
    while state in STATES and len(folder) >= len(state):
        found = folder if os.path.islink(folder) else found
        folder = os.path.dirname(folder)
    return found


def refuse_link(folder: str) -> None:
    """Raise an OSError if a link takes the place of a folder of ours, or of one above it: call this before its files are changed."""
    if link := link_at(folder):
        raise OSError(errno.ELOOP, OTHER_KIND, link)


def utime(path: str, ns: tuple[int, int] | None = None) -> None:
    """Set the times of a file, in nanoseconds, or to now.

    Raises:
        OSError: They can't be set, or a link takes the place of a folder above it.
    """
    refuse_link(os.path.dirname(path))
    follow = os.utime not in os.supports_follow_symlinks
    if ns is None:
        os.utime(path, follow_symlinks=follow)  # also allowed to those who may only write the file
    else:
        os.utime(path, ns=ns, follow_symlinks=follow)


def try_utime(path: str, ns: tuple[int, int] | None = None) -> None:
    """Do the same; never raise an error."""
    try:
        utime(path, ns)
    except OSError:
        return


def clear(path: str) -> None:
    """Remove a link, a pipe or a device that takes the place of a file of ours; what a link names stays. Never raises."""
    if not is_file(path, missing=True):
        try:
            os.unlink(path)
        except OSError:
            return  # a folder, or not ours to remove


def is_users(
    path: str, kind: Callable[[int], bool] = stat.S_ISREG, others: int = 0o022, *, follow: bool = False
) -> bool:
    """Return whether a path names something that belongs to this user.

    Args:
        kind: Whether a mode is that of the wanted kind.
        others: What others may not do with it, as bits of a mode.
        follow: Whether it may be a link.
    """
    try:
        found = os.stat(path, follow_symlinks=follow)
    except OSError:
        return False
    return kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & others


def is_file(path: str, *, missing: bool = False) -> bool:
    """Return whether a path names a regular file, or nothing if that is fine, too."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return missing


def load(path: str, most: int = BYTES_MAX) -> bytes:
    """Return the content of a file, at most so many bytes.

    Raises:
        OSError: It is missing, can't be read, or is no regular file.
    """
    handle = open_file(path, os.O_RDONLY)
    try:
        return os.read(handle, min(most, os.fstat(handle).st_size + 1))
    finally:
        os.close(handle)


def load_whole(path: str, most: int = BYTES_MAX) -> bytes:
    """Return the whole content of a file, for who writes it back or removes the file; empty if it is missing.

    Raises:
        OSError: It can't be read, is no regular file, or has more bytes than that.
    """
    try:
        content = load(path, most + 1)
    except FileNotFoundError:
        return b""
    if len(content) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
    return content


def modified(path: str, otherwise: float = 0.0) -> float:
    """Return when a file was modified, in seconds since the epoch, or another value for a file that is gone."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return otherwise


def stamp(path: str) -> str:
    """Return a text that changes with a file; "-" for one that is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}:{found.st_size}:{found.st_ino}"


def modified_ns(path: str) -> int:
    """Return the same in nanoseconds; 0 for a file that is gone."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def read(path: str, most: int = BYTES_MAX) -> bytes:
    """Return the content of a file as `load` does; empty if that raises an error."""
    try:
        return load(path, most)
    except OSError:
        return b""


def make_dirs(path: str) -> None:
    """Create a folder and its missing parents, each with its mode. A link in place of a folder of ours is replaced.

    Raises:
        OSError: a folder cannot be created.
    """
    if link := link_at(path):
        if link in STATES:
            raise OSError(errno.ELOOP, OTHER_KIND, link)
        os.unlink(link)
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
        refuse_link(path)
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return
    adjust(path)


def _git_folder(folder: str) -> str:
    """Return the git folder that contains a folder; "" if none does."""
    found = _nearest(folder)
    return found if os.path.join(folder, "").startswith(os.path.join(found, "")) else ""


def _nearest(folder: str) -> str:
    """Return the git folder that contains a folder, or the `.git` of the work tree that does; "" if there is neither."""
    known = _git_folders.get(folder)
    if known is not None:
        return known
    at = folder
    while not (os.path.exists(os.path.join(at, "HEAD")) and os.path.isdir(os.path.join(at, "objects"))):
        inside = os.path.join(at, ".git")
        if os.path.lexists(inside):
            at = inside if os.path.exists(inside) else ""
            break
        above = os.path.dirname(at)
        if above == at or not above:
            return ""
        at = above
    _git_folders[folder] = at
    return at


def names_in(folder: str) -> list[str]:
    """Return the names in a folder; an empty list if it is missing, unreadable, or a link in place of a folder of ours."""
    try:
        refuse_link(folder)
        return os.listdir(folder)
    except OSError:
        return []


TEMPORARY = ".tmp-"


def replace(
    path: str, content: bytes, *, durable: bool = False, private: bool | str = False, keep: bool = False
) -> None:
    """Replace the content of a file atomically.

    Args:
        durable: Sync the file to disk; the caller syncs its folder. Without it the file may be empty or old after a
            power loss.
        private: Let only this user read and write the file, even in a repository that several users share;
            `OWN` also as root.
        keep: Leave a file that exists, also one that another process creates meanwhile if the file system has links.

    Raises:
        OSError: the file is unchanged, and the temporary file is removed.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f"{TEMPORARY}{name}-{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if private:
        remove_quietly(temporary)
        flags |= os.O_EXCL  # else another user who may write to the folder could have opened it before
    try:
        handle = open_file(temporary, flags, 0o600 if private else 0o666, private=private)
        try:
            while content:
                content = content[os.write(handle, content) :]
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        (_rename_unless_taken if keep else os.replace)(temporary, path)
    except OSError:
        remove_quietly(temporary)
        raise


def try_replace(
    path: str, content: bytes, *, folders: bool = False, private: bool | str = False, keep: bool = False
) -> bool:
    """Replace a file that gitmem can do without, as `replace` does. Return whether it was replaced; never raise an error.

    Args:
        folders: Create its missing folders, too.
        private, keep: As for `replace`.
    """
    try:
        if folders:
            make_dirs(os.path.dirname(path))
        replace(path, content, private=private, keep=keep)
    except OSError:
        return False
    return True


def mark(path: str, is_so: bool = True) -> None:
    """Create an empty file, unless it is there; or remove it.

    Raises:
        OSError: It can't be created.
    """
    if not is_so:
        remove_quietly(path)
        return
    try:
        os.close(open_file(path, os.O_WRONLY | os.O_CREAT))
    except OSError:  # another user's is a mark as well
        if link_at(os.path.dirname(path)) or not is_file(path):
            raise


def try_mark(path: str, is_so: bool = True, *, folders: bool = False) -> None:
    """Do the same; never raise an error.

    Args:
        folders: Create its missing folders, too.
    """
    try:
        if folders:
            make_dirs(os.path.dirname(path))
        mark(path, is_so)
    except OSError:
        return


def record_choice(state: str, path: str, content: bytes, what: str, *, private: bool | str = False) -> None:
    """Record a choice of the user in a file of the state folder.

    Args:
        what: What is recorded, for the error.
        private: As for `replace`.

    Raises:
        StoreError: `read-only`; nothing was changed.
    """
    try:
        make_dirs(os.path.dirname(path))
        replace(path, content, private=private)
    except OSError as error:
        from .errors import StoreError

        raise StoreError(
            f"Cannot record {what} in {state}: {error.strerror}. Nothing was changed.",
            hint="Correct its permissions, then run the command again.",
            code="read-only",
            next=["gitmem doctor"],
        ) from None


def _rename_unless_taken(temporary: str, path: str) -> None:
    """Rename a file, or remove it if another file has the name."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        if not os.path.lexists(path):
            os.replace(temporary, path)
            return
    os.unlink(temporary)


def remove_quietly(path: str) -> None:
    """Remove a file; ignore errors. Behind a link in place of a folder of ours nothing is removed."""
    try:
        refuse_link(os.path.dirname(path))
        os.unlink(path)
    except OSError:
        return


def fsync_dir(path: str) -> None:
    """Sync a folder to make the names in it durable. Ignore folders that are missing or cannot be synced."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:  # some network file systems
        pass
    finally:
        os.close(handle)
