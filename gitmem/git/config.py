"""The git configuration that gitmem uses, cached until a source file changes; and the repository's remotes: names, URLs, and the default one.

`git config` costs each command a process. The cache is the file `config-<uid>` in the state folder. It contains the
answer and the stamps of all files that git reads for it, including missing ones. It is not written if the answer
depends on more than files: on conditional includes, or on values in the environment.
"""

from __future__ import annotations

import os
import stat
import time

from .. import local_files
from ..errors import UsageError
from ..outcome import Struct
from ..repo import read_small
from ..settings import KEY
from ..text.digests import sha256
from . import port, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..repo import Repo


NAME = "config"
WORKTREE = "config.worktree"
MAGIC = b"gitmem-config-1"
BYTES_MAX = 64 * 1024
MISSING, EMPTY, UNREADABLE = "missing", "empty", ""
ASK_AGAIN = "\0"  # marks stamps of an answer that may depend on more than these files
AGAIN_SECONDS = 1.0
_TRUE = ("1", "true", "yes", "on")
# Variables that name files. Any other GIT_CONFIG_* has values in the environment, perhaps secrets.
_NAMING = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")


class GitConfig(Struct):
    """The part of git's configuration that everyday commands need.

    Attributes:
        values: The last value of `user.name`, `user.email` and each `gitmem.*`; keys are in lower case.
        has_remote: Whether a remote has a URL.
        remotes: The entries that define remotes and how to reach them: pairs of key and value, in git's order. None if
            read from the cache: URLs may contain passwords and are not cached.
    """

    values: dict[str, str]
    has_remote: bool
    remotes: Sequence[tuple[str, str]] | None = None


class CachedConfig:
    """The configuration of one repository, read again when one of its files has changed.

    Args:
        common: The common git folder.
        state: The state folder. It is not created.
        now: The clock of the file system, nanoseconds since the epoch.
        git_dir: The worktree's own git folder, whose `config.worktree` git reads; by default the common one.
    """

    def __init__(
        self,
        common: str,
        state: str,
        now: Callable[[], int] = time.time_ns,
        git_dir: str | None = None,
    ) -> None:
        self._common = common
        self._git_dir = git_dir or common
        self._now = now
        self._path = os.path.join(state, f"{NAME}-{os.geteuid()}")
        self._key: list[str] = []
        self._stamps: dict[str, str] = {}
        self._known: GitConfig | None = None
        self._until = 0.0  # monotonic time until which an answer with ASK_AGAIN is valid

    def read(self) -> GitConfig:
        """Return git's current configuration.

        Raises:
            StoreError: git cannot be started or cannot read its configuration.
        """
        return self._read(with_remotes=False)

    def remotes(self) -> Sequence[tuple[str, str]]:
        """Return the entries about remotes. git is asked once for each state of the files.

        Raises:
            StoreError: as in `read`.
        """
        return self._read(with_remotes=True).remotes or ()

    def _read(self, *, with_remotes: bool) -> GitConfig:
        folder = _folder_of(self._common, self._git_dir)
        sources, known = ConfigSources(self._common, folder), self._known
        if known is not None and (self._key != sources.key or self._stamps != stamps(self._stamps)):
            known = None
        if ASK_AGAIN in self._stamps and time.monotonic() >= self._until:
            known = None
        if known is None or (with_remotes and known.remotes is None):
            self._key = sources.key
            # One file for all worktrees, except those that may have a configuration of their own.
            path = self._path if folder == self._common else f"{self._path}-in-{os.path.basename(folder)}"
            found = _load(path, sources) if sources.may_keep and not with_remotes else None
            if found is None:
                found = ask(folder, sources, path, self._now)
            known, self._stamps = found
            self._until = time.monotonic() + AGAIN_SECONDS
            self._known = known
        return known


class ConfigSources:
    """The sources of git's configuration, other than the content of files.

    Attributes:
        files: The git program, and the files that git reads if they exist, except the system's file.
        home: The value of HOME; empty if not set.
        system: The system's file, or None if only the git program knows it.
        key: The values that must be the same for a cached answer to be valid.
        may_keep: Whether the answer depends on files alone.
    """

    def __init__(self, common: str, folder: str) -> None:
        values = {name: value for name, value in os.environ.items() if name.startswith("GIT_CONFIG")}
        values.pop("GIT_CONFIG", None)  # `run` never passes it to git
        self.home = os.environ.get("HOME", "")
        program = _program(os.environ.get("PATH", ""))
        self.files = [program, os.path.join(common, "config"), os.path.join(folder, WORKTREE)]
        named = values.get("GIT_CONFIG_GLOBAL")
        if named is not None:
            self.files.append(named)
        else:
            folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(self.home, ".config")
            self.files += [os.path.join(folder, "git", "config"), os.path.join(self.home, ".gitconfig")]
        no_system = values.get("GIT_CONFIG_NOSYSTEM", "").lower() in _TRUE
        self.system = os.devnull if no_system else values.get("GIT_CONFIG_SYSTEM")
        self.may_keep = values.keys() <= set(_NAMING) and all(map(os.path.isabs, self.files))
        self.key = [self.home, *self.files, *(f"{name}={value}" for name, value in sorted(values.items()))]


def _folder_of(common: str, git_dir: str) -> str:
    """Return the git folder to ask git in: the worktree's own one only if the answers there may differ."""
    if git_dir == common or not any(
        os.path.exists(os.path.join(each, WORKTREE)) for each in (git_dir, common)
    ):
        return common
    return git_dir


def _program(path: str) -> str:
    """Return the path of the git program; empty if that is not certain.

    Another program may have another system configuration.
    """
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
    """Return the content of the cache: NUL-terminated fields, after the SHA-256 of all of them.

    Args:
        key: The key of the configuration sources.
        found: The stamps of all files.
        config: The answer.
    """
    rows = [*key, *_flat(found), "remote" if config.has_remote else "", *_flat(config.values)]
    sizes = f"{len(key)} {len(found)} {len(config.values)}"
    body = b"".join(row.encode("utf-8", "surrogateescape") + b"\0" for row in (sizes, *rows))
    return b"%s %s\0" % (MAGIC, sha256(body).hexdigest().encode()) + body


def _flat(pairs: Mapping[str, str]) -> list[str]:
    return [text for pair in pairs.items() for text in pair]


def _load(path: str, sources: ConfigSources) -> tuple[GitConfig, dict[str, str]] | None:
    """Return the cached answer and its stamps; None if it is not valid now."""
    head, _, body = _content(path).partition(b"\0")
    if head != b"%s %s" % (MAGIC, sha256(body).hexdigest().encode()):
        return None
    rows = body.decode("utf-8", "surrogateescape").split("\0")[:-1]
    try:
        keys, files, values = map(int, rows[0].split())
    except (ValueError, IndexError):
        return None
    end = 1 + keys + 2 * files
    if rows[1 : 1 + keys] != sources.key or len(rows) != end + 1 + 2 * values:
        return None
    found = dict(zip(rows[1 + keys : end : 2], rows[2 + keys : end : 2], strict=True))
    if not found.keys() >= set(sources.files) or UNREADABLE in found.values() or stamps(found) != found:
        return None
    pairs = dict(zip(rows[end + 1 :: 2], rows[end + 2 :: 2], strict=True))
    return GitConfig(pairs, bool(rows[end])), found


def _content(path: str) -> bytes:
    """Return the bytes of the cache; empty if other users may have written them."""
    return local_files.read(path, BYTES_MAX + 1) if local_files.is_users(path) else b""


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
    out = processes.run(folder, ["config", "-z", "--show-scope", "--show-origin", "--list"]).out
    rows = _rows(out)
    config = _config(rows, sources.home)
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
    """Return origin, key and value of each entry of git's list, without the choice of a key by the repository itself."""
    fields = out.split(b"\0")[:-1]
    found = []
    for scope, origin, entry in zip(fields[::3], fields[1::3], fields[2::3], strict=True):
        key, newline, value = entry.decode("utf-8", "surrogateescape").partition("\n")
        if key != KEY.key or scope in (b"global", b"system"):
            found.append((os.fsdecode(origin), key, value if newline else "true"))
    return found


def _config(rows: list[tuple[str, str, str]], home: str) -> GitConfig:
    values = {}
    has_remote = False
    for _, key, value in rows:
        if key in ("user.name", "user.email") or key.startswith("gitmem."):
            if key == KEY.key and value.startswith("~/"):
                value = os.path.join(home, value[2:])
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
    done = processes.run(folder, ["config", "--system", "-z", "--show-origin", "--list"], check=False)
    if done.out.startswith(_FILE.encode()):
        return os.fsdecode(done.out.partition(b"\0")[0]).removeprefix(_FILE)
    _, missing, rest = done.err.partition(_UNREADABLE)
    if missing:
        return rest.rpartition("'")[0]
    done = processes.run(
        folder, ["var", "GIT_CONFIG_SYSTEM"], check=False
    )  # the file is empty; needs git 2.41
    return os.fsdecode(done.out.strip()) if done.code == 0 else ""


def _write_cache(path: str, content: bytes) -> None:
    """Write the cache for this user alone. Ignore errors: git is asked each time then."""
    local_files.try_replace(path, content, private=local_files.OWN)


COMPONENT_BYTES_MAX = 200
_configs: dict[str, CachedConfig] = {}  # by common git folder
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def remotes(common: str) -> list[str]:
    """Return the names of the configured remotes, in git's order."""
    keys = [key.removeprefix("remote.") for key, _ in _remote_rows(common) if key.startswith("remote.")]
    names = {name for name, dot, _ in (key.rpartition(".") for key in keys) if dot and name[:1] != "/"}
    return sorted(names, key=os.fsencode)


def has_remote(common: str) -> bool:
    """Return whether git's configuration has a remote with a URL, see `Store.has_remote`."""
    return _cached_config(common).read().has_remote


def included_for_folder(common: str) -> list[str]:
    """Return the files that a repository's own configuration includes only for its git folder, as CI does with credentials."""
    found: dict[str, None] = {}
    if b"gitdir" in read_small(os.path.join(common, "config")).lower():
        out = processes.run(
            common, ["config", "-z", "--show-scope", "--show-origin", "--list"], check=False
        ).out
        rows = [(origin.removeprefix(_FILE), key, value) for origin, key, value in _rows(out)]
        origins = {origin for origin, _, _ in rows}
        for origin, key, value in rows:
            path = os.path.join(os.path.dirname(origin), value)
            if key.startswith("includeif.gitdir") and path in origins:
                found[path] = None
    return list(found)


def ssh_without_prompts(common: str) -> dict[str, str]:
    """Return variables that disable prompts of plain `ssh`; empty if the user has configured ssh for git."""
    own = any(map(processes.variable, ("GIT_SSH_COMMAND", "GIT_SSH", "GIT_SSH_VARIANT")))
    if own or any(key in ("core.sshcommand", "ssh.variant") for key, _ in _remote_rows(common)):
        return {}
    return {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}


def unheeded_key(folder: str) -> str:
    """Return the key file that the configuration of the repository itself names, which is not heeded; "" if none."""
    out = processes.run(folder, ["config", "-z", "--show-scope", "--get-all", KEY.key], check=False).out
    fields = out.split(b"\0")[:-1]
    own = [
        value
        for scope, value in zip(fields[::2], fields[1::2], strict=True)
        if scope in (b"local", b"worktree")
    ]
    return own[-1].decode("utf-8", "replace") if own else ""


def _cached_config(common: str) -> CachedConfig:
    if common not in _configs:
        _configs[common] = CachedConfig(common, os.path.join(common, "gitmem"))
    return _configs[common]


def _remote_rows(common: str) -> Sequence[tuple[str, str]]:
    """Return the entries of git's configuration about remotes."""
    return _cached_config(common).remotes()


def push_urls(common: str, remote: str, worktree: str | None = None) -> tuple[str, str]:
    """Return the URL to pass to git for fetches and pushes, and the URL it uses: after `insteadOf`, without credentials.

    The first is `pushurl` if set, else `url`: lines come from where ours go. If `remote` is itself a URL or path, it is
    returned. A relative path becomes absolute, resolved from the worktree as git does.

    Raises:
        UsageError: `unknown-remote`.
    """
    rows = _remote_rows(common)
    for key in (f"remote.{remote}.pushurl", f"remote.{remote}.url"):
        for name, url in rows:
            if name == key and url:
                url = _absolute(url, common, worktree)
                return url, without_credentials(_rewritten(url, rows))
    if "/" in remote or ":" in remote or os.path.isdir(remote):
        url = _absolute(remote, common, worktree)
        return url, without_credentials(_rewritten(url, rows))
    known = remotes(common)
    raise UsageError(
        f"Unknown remote: {remote!r}. Nothing was sent.",
        hint="`git remote -v` lists the remotes." if known else "`git remote add NAME URL` adds one.",
        code="unknown-remote",
        next=_syncs(known),
        suggestions=known[:3],
    )


def _syncs(names: Sequence[str]) -> list[str]:
    """Return sync commands for the first remotes, with shell-quoted names."""
    from shlex import quote

    return [f"gitmem sync {quote(name)}" for name in names[:3]]


def upstream_remote(repo: Repo) -> str:
    """Return the default remote: the branch's upstream, `origin`, or the only one.

    Raises:
        UsageError: `no-remote`, or `which-remote` with the list.
    """
    branch = port.branch(repo.git_dir)
    if branch is not None:
        wanted = f"branch.{branch}.remote"
        named = next((value for key, value in reversed(_remote_rows(repo.common)) if key == wanted), "")
        if named and named != ".":
            return named
    known = remotes(repo.common)
    if "origin" in known:
        return "origin"
    if len(known) == 1:
        return known[0]
    if not known:
        raise UsageError(
            "This repository has no remote. Nothing was sent; local records are kept.",
            hint="`git remote add origin URL` adds one.",
            code="no-remote",
        )
    raise UsageError(
        f"This branch has no upstream and there are several remotes: {', '.join(known)}. Nothing was sent.",
        hint="Name the remote to use.",
        code="which-remote",
        next=_syncs(known),
        suggestions=known,
    )


def encode_remote(remote: str) -> str:
    """Return a remote's name or URL as one component of a ref: percent-encoded, without credentials."""
    raw = without_credentials(remote).encode("utf-8", "surrogateescape")
    text = "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in raw)
    if len(text) > COMPONENT_BYTES_MAX:
        import hashlib

        text = text[:150].rstrip("%") + "-" + hashlib.sha256(raw).hexdigest()[:16]
    return text


def without_credentials(url: str) -> str:
    """Return the URL without possible secrets, for messages, file names and comparisons.

    Removed are the password and, for http, also the user, the query and the fragment, each of which may be a token.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    host, slash, path = rest.partition("/")
    if _is_cut_password(host) and "@" in path:  # a slash in the password
        path = path.rpartition("@")[2]
        user, _, _ = host.partition(":")
        host, slash, path = path.partition("/")
        host = f"{user}@{host}"
    user, at, host = host.rpartition("@")
    if scheme.lower().endswith(("http", "https")):  # also after `foo::` of a remote helper
        at = ""
        tail = host + slash + path
        return f"{scheme}://{tail.partition('?')[0].partition('#')[0]}"
    user = user.partition(":")[0]
    return f"{scheme}://{user}{at}{host}{slash}{path}"


def scrubbed(text: str) -> str:
    """Return a text, such as git's errors, with credentials removed from the URLs in it."""
    words = []
    for word in text.split(" "):
        bare = word.rstrip("'\":.,;)")
        words.append(without_credentials(bare) + word[len(bare) :])
    return " ".join(words)


def _is_cut_password(host: str) -> bool:
    """Return whether the part before the first slash is `user:start-of-password`, not a host with a port."""
    _, colon, port = host.rpartition("]")[2].partition(":")
    return bool(colon) and bool(port) and not port.isdecimal() and "@" not in host


def _rewritten(url: str, rows: Sequence[tuple[str, str]]) -> str:
    """Apply `url.*.pushInsteadOf`, else `url.*.insteadOf`, the longest match, as git does for a push."""
    for ending in (".pushinsteadof", ".insteadof"):
        found = [
            (name.removeprefix("url.").removesuffix(ending), start)
            for name, start in rows
            if name.startswith("url.") and name.endswith(ending) and start and url.startswith(start)
        ]
        if found:
            base, start = max(found, key=lambda pair: len(pair[1]))
            return base + url.removeprefix(start)
    return url


def _absolute(url: str, common: str, worktree: str | None) -> str:
    """Return a relative path, which git resolves from the worktree's top, as an absolute one."""
    colon, slash = url.find(":"), url.find("/")
    if os.path.isabs(url) or "://" in url or (colon != -1 and (slash == -1 or colon < slash)):
        return url
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    paths = [os.path.normpath(os.path.join(base, url)) for base in (worktree, main, common) if base]
    away = paths[0] if url.startswith(("./", "../")) else url  # perhaps the short form of an insteadOf
    return next(filter(os.path.exists, paths), away)
