"""What git's configuration says to gitmem, from a cache while no file that it came from has changed.

`git config` costs a process for each command. The cache is the file `config-<uid>` in the state folder. It holds the
answer and the stamps of all files that git reads for it, of missing ones too. It is not written where the answer depends
on more than files: on conditional includes, and on values in the environment.
"""

from __future__ import annotations

import os
import stat
import time

from ..digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Ask = Callable[[str, "ConfigSources", str, Callable[[], int]], tuple["GitConfig", dict[str, str]]]

NAME = "config"
MAGIC = b"gitmem-config-1"
BYTES_MAX = 64 * 1024
MISSING, EMPTY, UNREADABLE = "missing", "empty", ""
ASK_AGAIN = "\0"  # among the stamps: what git said may depend on more than these files
AGAIN_SECONDS = 1.0
_TRUE = ("1", "true", "yes", "on")
# Variables that name the files; with any other GIT_CONFIG_* there are values in the environment, perhaps secret ones.
_NAMING = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")


class GitConfig:
    """The part of git's configuration that everyday commands need.

    Attributes:
        values: `user.name`, `user.email` and `gitmem.*`: the last value of each; keys are in lower case.
        has_remote: Whether a remote has a URL.
        remotes: What says where remotes are and how they are reached: each key with its value, in git's order. None in
            what comes from the cache: there may be passwords in URLs.
    """

    __slots__ = ("has_remote", "remotes", "values")

    def __init__(
        self, values: Mapping[str, str], has_remote: bool, remotes: Sequence[tuple[str, str]] | None = None
    ) -> None:
        self.values = dict(values)
        self.has_remote = has_remote
        self.remotes = remotes


class CachedConfig:
    """The configuration of one repository, read again when one of its files has changed.

    Args:
        common: The common git folder.
        state: The state folder. It is not created.
        ask: Asks git, see `asked_config.ask`.
        now: The clock of the file system, nanoseconds since the epoch.
    """

    __slots__ = ("_ask", "_common", "_key", "_known", "_now", "_path", "_stamps", "_until")

    def __init__(self, common: str, state: str, ask: Ask, now: Callable[[], int] = time.time_ns) -> None:
        self._ask = ask
        self._common = common
        self._now = now
        self._path = os.path.join(state, f"{NAME}-{os.geteuid() if hasattr(os, 'geteuid') else 0}")
        self._key: list[str] = []
        self._stamps: dict[str, str] = {}
        self._known: GitConfig | None = None
        self._until = 0.0  # the monotonic time until which an answer holds that may depend on more

    def read(self) -> GitConfig:
        """Return what git would say now.

        Raises: StoreError where git can't read its configuration, or can't be started.
        """
        return self._read(with_remotes=False)

    def remotes(self) -> Sequence[tuple[str, str]]:
        """Return the entries about remotes; git is asked once for each state of the files. Raises: as `read`."""
        return self._read(with_remotes=True).remotes or ()

    def _read(self, *, with_remotes: bool) -> GitConfig:
        surroundings, known = ConfigSources(self._common), self._known
        if known is not None and (self._key != surroundings.key or self._stamps != stamps(self._stamps)):
            known = None
        if ASK_AGAIN in self._stamps and time.monotonic() >= self._until:
            known = None
        if known is None or (with_remotes and known.remotes is None):
            self._key = surroundings.key
            found = _load(self._path, surroundings) if surroundings.may_keep and not with_remotes else None
            if found is None:
                found = self._ask(self._common, surroundings, self._path, self._now)
            known, self._stamps = found
            self._until = time.monotonic() + AGAIN_SECONDS
            self._known = known
        return known


class ConfigSources:
    """What decides, beside the content of files, what git says.

    Attributes:
        files: The git program, and the files that git reads where they exist; without the one of the system.
        home: The value of HOME; empty where it is not set.
        system: The file of the system, or None where the git program alone knows.
        key: What must be the same for an answer to hold.
        may_keep: Whether the answer depends on files alone.
    """

    __slots__ = ("files", "home", "key", "may_keep", "system")

    def __init__(self, common: str) -> None:
        values = {name: value for name, value in os.environ.items() if name.startswith("GIT_CONFIG")}
        values.pop("GIT_CONFIG", None)  # it never reaches git
        self.home = os.environ.get("HOME", "")
        program = _program(os.environ.get("PATH", ""))
        self.files = [program, os.path.join(common, "config"), os.path.join(common, "config.worktree")]
        named = values.get("GIT_CONFIG_GLOBAL")
        if named is not None:
            self.files.append(named)
        else:
            folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(self.home, ".config")
            self.files += [os.path.join(folder, "git", "config"), os.path.join(self.home, ".gitconfig")]
        no_system = values.get("GIT_CONFIG_NOSYSTEM", "").lower() in _TRUE
        self.system = os.devnull if no_system else values.get("GIT_CONFIG_SYSTEM")
        self.may_keep = (
            hasattr(os, "geteuid")  # elsewhere nobody says whose the cache is
            and values.keys() <= set(_NAMING)
            and all(map(os.path.isabs, self.files))
        )
        self.key = [self.home, *self.files, *(f"{name}={value}" for name, value in sorted(values.items()))]


def _program(path: str) -> str:
    """Return where the git program is: another one may have another file of the system. Empty where that is not plain."""
    for folder in path.split(os.pathsep):
        found = os.path.join(folder, "git")
        if not os.path.isabs(folder) or (os.path.isfile(found) and os.access(found, os.X_OK)):
            return found
    return ""


def stamps(paths: Iterable[str]) -> dict[str, str]:
    """Return the stamp of each file."""
    return {path: _stamp(path) for path in paths}


def _stamp(path: str) -> str:
    if path == os.devnull:
        return EMPTY
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except (OSError, ValueError):
        return UNREADABLE
    if not stat.S_ISREG(found.st_mode):
        return UNREADABLE
    return f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size} {found.st_ino} {found.st_dev}"


def encode(key: Sequence[str], found: Mapping[str, str], config: GitConfig) -> bytes:
    """Return the content of the cache: fields that end with NUL, behind the SHA-256 of all of them.

    Args:
        key: The key of the surroundings.
        found: The stamps of all files.
        config: The answer.
    """
    rows = [*key, *_flat(found), "remote" if config.has_remote else "", *_flat(config.values)]
    sizes = f"{len(key)} {len(found)} {len(config.values)}"
    body = b"".join(row.encode("utf-8", "surrogateescape") + b"\0" for row in (sizes, *rows))
    return b"%s %s\0" % (MAGIC, sha256(body).hexdigest().encode()) + body


def _flat(pairs: Mapping[str, str]) -> list[str]:
    return [text for pair in pairs.items() for text in pair]


def _load(path: str, surroundings: ConfigSources) -> tuple[GitConfig, dict[str, str]] | None:
    """Return the answer in the cache and the stamps that it holds for; None where it does not hold now."""
    head, _, body = _content(path).partition(b"\0")
    if head != b"%s %s" % (MAGIC, sha256(body).hexdigest().encode()):
        return None
    rows = body.decode("utf-8", "surrogateescape").split("\0")[:-1]
    try:
        keys, files, values = map(int, rows[0].split())
    except (ValueError, IndexError):
        return None
    end = 1 + keys + 2 * files
    if rows[1 : 1 + keys] != surroundings.key or len(rows) != end + 1 + 2 * values:
        return None
    found = dict(zip(rows[1 + keys : end : 2], rows[2 + keys : end : 2], strict=True))
    if not found.keys() >= set(surroundings.files) or UNREADABLE in found.values() or stamps(found) != found:
        return None
    pairs = dict(zip(rows[end + 1 :: 2], rows[end + 2 :: 2], strict=True))
    return GitConfig(pairs, bool(rows[end])), found


def _content(path: str) -> bytes:
    """Return the bytes of the cache; none where others than this user may have written them."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags)
    except OSError:
        return b""
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            return b""
        return os.read(handle, BYTES_MAX + 1)
    except OSError:
        return b""
    finally:
        os.close(handle)
