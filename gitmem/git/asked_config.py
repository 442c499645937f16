"""Ask git for its configuration, and keep the answer where it depends on nothing but files."""

from __future__ import annotations

import os

from .. import atomic_write
from . import run
from .cached_config import ASK_AGAIN, BYTES_MAX, MISSING, UNREADABLE, GitConfig, encode, stamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .cached_config import ConfigSources

FILES_MAX = 64
# A file that changed so shortly before it was read may change again without another stamp: some file systems count in
# steps of 2 s. Nothing that came from it is kept for another process.
RACY_NS = 2_500_000_000
_FILE = "file:"
_ABOUT_REMOTES = ("remote.", "url.", "branch.", "core.sshcommand", "ssh.variant")
_UNREADABLE = "unable to read config file '"


def ask(
    common: str, surroundings: ConfigSources, path: str, now: Callable[[], int]
) -> tuple[GitConfig, dict[str, str]]:
    """Ask git, and write the cache where the answer may be kept.

    Args:
        common: The common git folder.
        surroundings: The surroundings of this process.
        path: The file of the cache.
        now: The clock of the file system, nanoseconds since the epoch.

    Returns: The answer, and the stamps of the files that it came from; with `ASK_AGAIN` where there may be others.

    Raises: StoreError where git can't read its configuration, or can't be started.
    """
    began = now()
    before = stamps(surroundings.files)
    out = run.run(common, ["config", "-z", "--show-origin", "--list"]).out
    rows = _rows(out)
    config = _config(rows)
    files = _files(rows, surroundings.home) if surroundings.may_keep else None
    if files is None:
        return config, {**before, ASK_AGAIN: ""}
    found = {**stamps(files[:FILES_MAX]), **before}
    if len(found) >= FILES_MAX:
        return config, found
    is_gone = any(found[origin.removeprefix(_FILE)] == MISSING for origin, _, _ in rows)
    if is_gone or before != stamps(before) or any(_is_racy(stamp, began) for stamp in found.values()):
        return config, found
    system = _system_file(common) if surroundings.system is None else surroundings.system
    if os.path.isabs(system):
        found |= stamps([system])
        content = encode(surroundings.key, found, config)
        if not _is_racy(found[system], began) and len(content) <= BYTES_MAX:
            _keep(path, content)
    return config, found


def _rows(out: bytes) -> list[tuple[str, str, str]]:
    """Return origin, key and value of each entry of git's list."""
    fields = out.split(b"\0")[:-1]
    found = []
    for origin, entry in zip(fields[::2], fields[1::2], strict=True):
        key, newline, value = entry.decode("utf-8", "surrogateescape").partition("\n")
        found.append((os.fsdecode(origin), key, value if newline else "true"))
    return found


def _config(rows: list[tuple[str, str, str]]) -> GitConfig:
    values = {}
    has_remote = False
    for _, key, value in rows:
        if key in ("user.name", "user.email") or key.startswith("gitmem."):
            values[key.lower()] = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        has_remote = has_remote or (key.startswith("remote.") and key.endswith(".url") and key.count(".") > 1)
    remotes = [(key, value) for _, key, value in rows if key.startswith(_ABOUT_REMOTES) and key.count(".")]
    return GitConfig(values, has_remote, remotes)


def _files(rows: list[tuple[str, str, str]], home: str) -> list[str] | None:
    """Return the files that the entries came from and those that they include, or None where that is not plain."""
    found: dict[str, None] = {}
    for origin, key, value in rows:
        path = origin.removeprefix(_FILE)
        if not origin.startswith(_FILE) or not os.path.isabs(path) or key.startswith("includeif."):
            return None
        found[path] = None
        if key == "include.path":
            if value.startswith("~/"):
                value = os.path.join(home, value[2:])
            if not value or value.startswith(("~", "%(")):
                return None
            found[os.path.join(os.path.dirname(path), value)] = None
    return list(found)


def _is_racy(stamp: str, began: int) -> bool:
    """Return whether a file can't be known by its stamp."""
    times = stamp.split()[:2]
    return stamp == UNREADABLE or (len(times) == 2 and max(map(int, times)) > began - RACY_NS)


def _system_file(common: str) -> str:
    """Return the file that git reads for the whole system, there or not; empty where git does not say."""
    done = run.run(common, ["config", "--system", "-z", "--show-origin", "--list"], check=False)
    if done.out.startswith(_FILE.encode()):
        return os.fsdecode(done.out.partition(b"\0")[0]).removeprefix(_FILE)
    _, missing, rest = done.err.partition(_UNREADABLE)
    if missing:
        return rest.rpartition("'")[0]
    done = run.run(
        common, ["var", "GIT_CONFIG_SYSTEM"], check=False
    )  # it is empty; git knows this since 2.41
    return os.fsdecode(done.out.strip()) if done.code == 0 else ""


def _keep(path: str, content: bytes) -> None:
    """Write the cache for this user alone. Where that can't be, git is asked each time."""
    try:
        atomic_write.replace(path, content, private=True)
    except OSError:
        return
