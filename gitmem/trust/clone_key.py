"""The clone key: the secret by which this clone hides the ids of its clients.

`<state>/key` holds 32 random bytes that only its owner may read, shared by all worktrees. The first command that
needs it creates it, and it is never replaced automatically: with another key, clients would not find their sessions.
"""

from __future__ import annotations

import errno
import os

from .. import local_files
from ..errors import StoreError
from ..outcome import Struct
from ..text.digests import Mac, sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "key"
KEY_BYTES = 32
SHARED_MODES = 0o077
GROUP_MODES = 0o060  # allowed if the repository is shared with a group
HASH_PREFIX = "h-"
# Errors of a file system without hard links.
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK)


class CloneKey(Struct):
    """The content and the state of the key file.

    Attributes:
        path: The path of the file.
        mac: The key; None if this process has no usable one.
        damage: Why the file must not be used, as a sentence without its full stop; "" if it is usable.
        is_missing: Whether there is no file.
        is_exposed: Whether others than its owner may read it.
    """

    path: str
    mac: Mac | None = None
    damage: str = ""
    is_missing: bool = False
    is_exposed: bool = False

    def refuse_damaged(self) -> None:
        """Reject a damaged key: clients would not find their sessions.

        Raises:
            StoreError: `clone-key`.
        """
        if self.damage:
            from ..git import plumbing

            common = os.path.dirname(os.path.dirname(self.path))
            raise plumbing.left_by_another(common, "Nothing was written.") or StoreError(
                f"Cannot use the clone key: {self.damage}. Nothing was written.",
                hint=f"Restore {self.path} from a backup, or create a new key with `gitmem doctor --fix`.",
                code="clone-key",
                next=["gitmem doctor"],
            )


class CloneKeyReader(Struct):
    """The key of one clone, read when it is first needed.

    Attributes:
        random: Returns secure random bytes.
        make_state: Creates the state folder; returns False if this process may not write to it.
    """

    _state: str
    _random: Callable[[int], bytes]
    _make_state: Callable[[], bool]
    _key: CloneKey | None = None

    def now(self) -> CloneKey:
        """Return the key; if there was none, read again, because another process may have created it."""
        if self._key is None or self._key.mac is None:
            self._key = read(self._state)
        return self._key

    def for_writing(self) -> Mac | None:
        """Return the key, creating it if it is missing; None if this process can't have it.

        Raises:
            StoreError: The key file is damaged.
        """
        found = self.now()
        if found.mac is None:
            found.refuse_damaged()
            if found.is_missing and self._make_state():
                found = self._key = make(self._state, self._random)
        return found.mac

    def forget(self) -> None:
        """Read the file again at the next use."""
        self._key = None

    def hashed(self, client_id: str) -> str:
        """Return the published hash of a client's own session id; it is always the same in this clone."""
        self.for_writing()
        return hashed(self.now(), client_id)


def read(state: str) -> CloneKey:
    """Return the key file of a state folder. It writes nothing and raises no error."""
    found = CloneKey(os.path.join(state, NAME))
    try:
        descriptor = local_files.open_file(found.path, os.O_RDONLY)
    except FileNotFoundError:
        found.is_missing = True
        return found
    except OSError as error:
        if isinstance(error, PermissionError) and os.stat(os.path.dirname(state)).st_uid != os.geteuid():
            return found  # it belongs to another user of a shared repository: this user has no key
        found.damage = f"cannot open {found.path} ({error.strerror})"
        return found
    try:
        status = os.fstat(descriptor)
        secret = os.read(descriptor, KEY_BYTES + 1)
        found.damage = _damage(found.path, state, status, secret)
    except OSError as error:
        found.damage = f"cannot read {found.path} ({error.strerror})"
    finally:
        os.close(descriptor)
    if not found.damage:
        found.mac = Mac(secret)
        allowed = GROUP_MODES if is_shared(found.path) else 0
        found.is_exposed = bool(status.st_mode & SHARED_MODES & ~allowed)
    return found


def _damage(path: str, state: str, status: os.stat_result, secret: bytes) -> str:
    if not _is_trusted(path, state, status):
        return f"{path} is owned by user {status.st_uid}, who owns neither this process nor the git folder"
    if len(secret) != KEY_BYTES:
        size = f"more than {KEY_BYTES}" if len(secret) > KEY_BYTES else str(len(secret))
        return f"{path} has {size} bytes instead of {KEY_BYTES}"
    return ""


def is_shared(path: str) -> bool:
    """Return whether the repository is shared with a group, whose members then share the key."""
    return bool(abs(local_files.setting(path)) & 0o040)


def mode(path: str) -> int:
    """Return the mode that the key file must have. Nobody outside of the group may ever read it."""
    return 0o640 if is_shared(path) else 0o600


def _is_trusted(path: str, state: str, status: os.stat_result) -> bool:
    """Return whether the file belongs to this user, the git folder's owner, or in a shared repository its group."""
    top = os.stat(os.path.dirname(state))
    if status.st_uid in (os.geteuid(), top.st_uid):
        return True
    return is_shared(path) and status.st_gid == top.st_gid and not status.st_mode & 0o002


def make(state: str, random: Callable[[int], bytes]) -> CloneKey:
    """Create the key if it is missing; return the key that exists then. If the folder can't be written, there is none."""
    path = os.path.join(state, NAME)
    try:
        create_once(path, random(KEY_BYTES), mode(path), random)
    except OSError:
        pass
    return read(state)


def create_once(
    path: str, secret: bytes, mode: int, random: Callable[[int], bytes], *, private: bool | str = True
) -> None:
    """Create a file with a secret, on the disk before anything is written with it. A file that exists stays.

    If several processes create it at the same time, one wins, and all must read what is there then.

    Args:
        private: As for `local_files.adjust`.

    Raises:
        OSError: It can't be created.
    """
    temporary = f"{path}-{os.getpid()}-{random(4).hex()}"
    try:
        _write(temporary, secret, mode, private)
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise  # a full or failing disk: a truncated key would keep every command from writing
            try:
                _write(path, secret, mode, private)  # readers may see the file before its content
            except FileExistsError:
                pass
        local_files.fsync_dir(os.path.dirname(path))
    finally:
        try:
            os.unlink(temporary)
        except OSError:
            pass


def _write(path: str, secret: bytes, mode: int, private: bool | str) -> None:
    """Create a file that must not exist, readable by its owner, and sync it to the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(local_files.open_file(path, flags, 0o600, private=private), "wb", buffering=0) as file:
        os.fchmod(file.fileno(), mode)
        file.write(secret)
        os.fsync(file.fileno())


def hashed(key: CloneKey, client_id: str) -> str:
    """Return the published hash of a client's own session id.

    If no key can be created, the hash uses the folder's path instead: a random id can't be guessed from that hash.
    """
    mac = key.mac or Mac(sha256(os.fsencode(os.path.realpath(os.path.dirname(key.path)))).digest())
    return HASH_PREFIX + mac.of(client_id.encode("utf-8", "surrogateescape"))
