"""Ask git for its configuration, and cache the answer if it depends on files alone."""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from . import run
from .cached_config import ASK_AGAIN, BYTES_MAX, MISSING, UNREADABLE, GitConfig, encode, stamps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .cached_config import ConfigSources

FILES_MAX = 64
# A file that changed this shortly before it was read may change again without a new stamp: some file systems count in
# steps of 2 s. Its content is not cached for other processes.
RACY_NS = 2_500_000_000
_FILE = "file:"
_ABOUT_REMOTES = ("remote.", "url.", "branch.", "core.sshcommand", "ssh.variant")
_UNREADABLE = "unable to read config file '"


def ask(
    folder: str, sources: ConfigSources, path: str, now: Callable[[], int]
) -> tuple[GitConfig, dict[str, str]]:
    """Ask git for its configuration, and write the cache if the answer may be cached.

    Args:
        folder: The git folder whose configuration is asked for.
        sources: This process's configuration sources.
        path: The cache file.
        now: The clock of the file system, nanoseconds since the epoch.

    Returns:
        The answer, and the stamps of its source files. The stamps contain `ASK_AGAIN` if there may be other sources.

    Raises:
        StoreError: git cannot be started or cannot read its configuration.
    """
    began = now()
    before = stamps(sources.files)
    out = run.run(folder, ["config", "-z", "--show-origin", "--list"]).out
    rows = _rows(out)
    config = _config(rows)
    files = _files(rows, sources.home) if sources.may_keep else None
    if files is None:
        return config, {**before, ASK_AGAIN: ""}
    found = {**stamps(files[:FILES_MAX]), **before}
    if len(found) >= FILES_MAX:
        return config, found
    is_gone = any(found[origin.removeprefix(_FILE)] == MISSING for origin, _, _ in rows)
    if is_gone or before != stamps(before) or any(_is_racy(stamp, began) for stamp in found.values()):
        return config, found
    system = _system_file(folder) if sources.system is None else sources.system
    if os.path.isabs(system):
        found |= stamps([system])
        content = encode(sources.key, found, config)
        if not _is_racy(found[system], began) and len(content) <= BYTES_MAX:
            _write_cache(path, content)
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
    """Return the files of the entries and the files that they include, or None if that is not certain."""
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
    """Return whether a file's stamp does not identify its content."""
    times = stamp.split()[:2]
    return stamp == UNREADABLE or (len(times) == 2 and max(map(int, times)) > began - RACY_NS)


def _system_file(folder: str) -> str:
    """Return the path of git's system configuration, existing or not; empty if git does not report it."""
    done = run.run(folder, ["config", "--system", "-z", "--show-origin", "--list"], check=False)
    if done.out.startswith(_FILE.encode()):
        return os.fsdecode(done.out.partition(b"\0")[0]).removeprefix(_FILE)
    _, missing, rest = done.err.partition(_UNREADABLE)
    if missing:
        return rest.rpartition("'")[0]
    done = run.run(folder, ["var", "GIT_CONFIG_SYSTEM"], check=False)  # the file is empty; needs git 2.41
    return os.fsdecode(done.out.strip()) if done.code == 0 else ""


def _write_cache(path: str, content: bytes) -> None:
    """Write the cache for this user alone. Ignore errors: git is asked each time then."""
    atomic_write.try_replace(path, content, private=state_files.OWN)
