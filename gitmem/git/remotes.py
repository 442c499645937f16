"""The repository's remotes: names, URLs, and the default one."""

from __future__ import annotations

import os

from ..errors import UsageError
from . import port, processes
from .config import CachedConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..repo import Repo

COMPONENT_BYTES_MAX = 200
_configs: dict[str, CachedConfig] = {}  # by common git folder
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def remotes(common: str) -> list[str]:
    """Return the names of the configured remotes, in git's order."""
    keys = [key.removeprefix("remote.") for key, _ in _rows(common) if key.startswith("remote.")]
    names = {name for name, dot, _ in (key.rpartition(".") for key in keys) if dot and name[:1] != "/"}
    return sorted(names, key=os.fsencode)


def has_remote(common: str) -> bool:
    """Return whether git's configuration has a remote with a URL, see `Store.has_remote`."""
    return _config(common).read().has_remote


def ssh_without_prompts(common: str) -> dict[str, str]:
    """Return variables that disable prompts of plain `ssh`; empty if the user has configured ssh for git."""
    own = any(map(processes.variable, ("GIT_SSH_COMMAND", "GIT_SSH", "GIT_SSH_VARIANT")))
    if own or any(key in ("core.sshcommand", "ssh.variant") for key, _ in _rows(common)):
        return {}
    return {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}


def _config(common: str) -> CachedConfig:
    if common not in _configs:
        _configs[common] = CachedConfig(common, os.path.join(common, "gitmem"))
    return _configs[common]


def _rows(common: str) -> Sequence[tuple[str, str]]:
    """Return the entries of git's configuration about remotes."""
    return _config(common).remotes()


def push_urls(common: str, remote: str, worktree: str | None = None) -> tuple[str, str]:
    """Return the URL to pass to git for fetches and pushes, and the URL it uses: after `insteadOf`, without credentials.

    The first is `pushurl` if set, else `url`: lines come from where ours go. If `remote` is itself a URL or path, it is
    returned. A relative path becomes absolute, resolved from the worktree as git does.

    Raises:
        UsageError: `unknown-remote`.
    """
    rows = _rows(common)
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
        named = next((value for key, value in reversed(_rows(repo.common)) if key == wanted), "")
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


def encode(remote: str) -> str:
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
