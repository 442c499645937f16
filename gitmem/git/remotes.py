"""Remotes through the git program: the user's credentials, proxies and ssh, but no prompts and no hooks.

Urls are handed to git as the config has them, so that `url.*.insteadOf` applies, once.
"""

from __future__ import annotations

import os

from ..errors import RemoteError, StoreError, UsageError
from . import queries, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from ..place import Place

TIMEOUT_SECONDS = 60.0
COMPONENT_BYTES_MAX = 200
_QUIET_CONFIG = [
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "fetch.writeCommitGraph=false"),
    *("-c", "push.pushOption="),  # empties the user's list: not every server takes options
]
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
# A server that lost a race for its own ref lock says it in these words.
_RACED = ("cannot lock", "failed to lock", "lock fail", "failed to update ref", "incorrect old value")
_RACED_ALSO = ("but expected", "reference already exists", "fetch first", "non-fast-forward", "stale info")
_DENIED = ("error: 403", "permission to ", "access denied", "not granted", "not allowed to push", "read-only")
# What git says below the reason, whatever that is.
_EMPTY_WORDS = (
    "fatal: Could not read from remote repository",
    "Please make sure you have the correct access rights",
    "and the repository exists",
)


class Fetched:
    """What a remote has: its refs by their names there (`refs/heads/gitmem`), now also kept here."""

    __slots__ = ("refs",)

    def __init__(self, refs: dict[str, str]) -> None:
        self.refs = refs


def remotes(common: str) -> list[str]:
    """The names of the configured remotes, in git's order."""
    out = run.run(common, ["remote"]).out
    return out.decode("utf-8", "surrogateescape").splitlines()


def push_url(common: str, remote: str, worktree: str | None = None) -> str:
    """Where pushes to a remote go, before `insteadOf`. A url or path given as remote is returned.

    A relative path is made absolute, seen from the worktree as git sees it.

    Raises:
        UsageError: `unknown-remote`.
    """
    for key in (f"remote.{remote}.pushurl", f"remote.{remote}.url"):
        args = ["config", "-z", "--get-all", key]
        done = run.run(common, args, check=False)
        if done.code not in (0, 1):
            raise run.failure(args, done)
        urls = [url for url in done.out.decode("utf-8", "surrogateescape").split("\0") if url]
        if urls:
            return _absolute(urls[0], common, worktree)
    if "/" in remote or ":" in remote or os.path.isdir(remote):
        return _absolute(remote, common, worktree)
    known = remotes(common)
    raise UsageError(
        f"There is no remote {remote!r} in this repository; nothing was sent.",
        hint="`git remote -v` lists the remotes." if known else "`git remote add NAME URL` adds one.",
        code="unknown-remote",
        next=[f"gitmem sync {name}" for name in known[:3]],
        suggestions=known[:3],
    )


def upstream_remote(place: Place) -> str:
    """The remote to use when none is named: the branch's upstream, `origin`, or the only one.

    Raises:
        UsageError: `no-remote`, or `which-remote` with the list.
    """
    branch = _branch(place.git_dir)
    if branch is not None:
        args = ["config", "--get", f"branch.{branch}.remote"]
        done = run.run(place.common, args, check=False)
        if done.code not in (0, 1):
            raise run.failure(args, done)
        named = done.out.decode("utf-8", "surrogateescape").rstrip("\n")
        if named and named != ".":
            return named
    known = remotes(place.common)
    if "origin" in known:
        return "origin"
    if len(known) == 1:
        return known[0]
    if not known:
        raise UsageError(
            "This repository has no remote; nothing was sent, and what is recorded stays recorded.",
            hint="`git remote add origin URL` adds one.",
            code="no-remote",
        )
    raise UsageError(
        f"This branch has no upstream and there are several remotes: {', '.join(known)}; nothing was sent.",
        hint="Name the one to use.",
        code="which-remote",
        next=[f"gitmem sync {name}" for name in known[:3]],
        suggestions=known,
    )


def encode(remote: str) -> str:
    """A remote's name or url as one component of a ref: percent-encoded, without credentials."""
    raw = without_credentials(remote).encode("utf-8", "surrogateescape")
    text = "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in raw)
    if len(text) > COMPONENT_BYTES_MAX:
        import hashlib

        text = text[:150].rstrip("%") + "-" + hashlib.sha256(raw).hexdigest()[:16]
    return text


def without_credentials(url: str) -> str:
    """The url without the password in it, and over http also without the user: it may be a token."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    if not separator or not at:
        return url
    user = "" if scheme.lower() in ("http", "https") else user.partition(":")[0] + "@"
    return f"{scheme}://{user}{host}{slash}{path}"


def fetch(common: str, url: str, into_prefix: str, timeout: float = TIMEOUT_SECONDS) -> Fetched:
    """Bring every ref of a remote that may hold a log below `into_prefix` (which ends in `/`).

    `refs/heads/gitmem*` goes below `<into_prefix>heads/`, `refs/gitmem/*` below
    `<into_prefix>gitmem/`; what the remote no longer has is removed there.
    Objects are fsynced. `timeout` is in seconds.

    Raises:
        RemoteError: `offline`; the refs are as they were.
    """
    args = [
        *(*_QUIET_CONFIG, *queries.DURABLE, "fetch", "--quiet", "--prune", "--no-tags", "--refmap="),
        *(
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--no-show-forced-updates",
        ),
        *("--negotiation-tip=refs/gitmem/*", "--", url),  # the log shares nothing with the user's branches
        f"+refs/heads/gitmem*:{into_prefix}heads/gitmem*",
        f"+refs/gitmem/*:{into_prefix}gitmem/*",
        "^refs/gitmem/remotes/*",
    ]
    for attempt in range(3):
        done = _network(common, args, url, timeout)
        if done.code == 0:
            break
        if "packed-refs.lock" in done.err and "--prune" in args and attempt < 2:
            args.remove("--prune")  # only forgetting needs that lock, and the user's git may have left it
            continue
        if attempt == 2 or "cannot lock ref" not in done.err:  # another sync of this clone fetches, too
            raise _offline(url, done.err)
    kept = queries.refs_below(common, into_prefix)
    return Fetched({"refs/" + ref[len(into_prefix) :]: oid for ref, oid in kept.items()})


def push(
    common: str,
    url: str,
    new_oid: str,
    remote_ref: str,
    expected: str | None,
    timeout: float = TIMEOUT_SECONDS,
) -> Literal["pushed", "rejected"]:
    """Move a remote's ref from `expected` (None: it must not exist) to `new_oid`, which contains it.

    "rejected" where the ref is elsewhere or the remote's lock on it was busy:
    fetch, unite, and push again. `timeout` is in seconds.

    Raises:
        RemoteError: `offline` (unreachable, no answer in time, no credentials)
            or `refused` (a hook, a protection or missing permission).
        StoreError: `not-fast-forward`, where `new_oid` does not contain `expected`.
    """
    if expected is not None and not queries.is_ancestor(common, expected, new_oid):
        raise StoreError(f"{new_oid} does not contain {expected}; nothing was sent.", code="not-fast-forward")
    args = [
        *(*_QUIET_CONFIG, "push", "--porcelain", "--no-verify", "--no-follow-tags"),
        *("--no-recurse-submodules", "--no-signed"),
        # Exact, where a plain push would make a branch anew that somebody deleted. No force: see above.
        f"--force-with-lease={remote_ref}:{expected or ''}",
        *("--", url, f"{new_oid}:{remote_ref}"),
    ]
    done = _network(common, args, url, timeout)
    for line in done.out.decode("utf-8", "replace").splitlines():
        flag, _, rest = line.partition("\t")
        refs, _, summary = rest.partition("\t")
        if not refs.endswith(":" + remote_ref):
            continue
        if flag in (" ", "*", "+", "=") and done.code == 0:
            return "pushed"
        if summary.startswith("[rejected]") or _any_in((*_RACED, *_RACED_ALSO), summary):
            return "rejected"
        if summary.startswith("[remote rejected]"):
            raise _refused(url, done.err, summary)
    if _any_in(_DENIED, done.err):
        raise _refused(url, done.err, "")
    raise _offline(url, done.err)


def has_branches(common: str, url: str, timeout: float = TIMEOUT_SECONDS) -> bool:
    """Whether the remote has any branch: a forge makes the first one that arrives its default."""
    done = _network(common, [*_QUIET_CONFIG, "ls-remote", "--quiet", "--heads", "--", url], url, timeout)
    if done.code != 0:
        raise _offline(url, done.err)
    return bool(done.out.strip())


def _network(common: str, args: Sequence[str], url: str, timeout: float) -> run.Result:
    extra = {"GCM_INTERACTIVE": "never", **_ssh_without_prompts(common)}
    try:
        return run.run(common, args, env_extra=extra, timeout=timeout, check=False)
    except run.GitTimeoutError:
        raise _offline(url, f"no answer within {timeout:g} seconds") from None


def _ssh_without_prompts(common: str) -> dict[str, str]:
    """BatchMode for the plain `ssh`; what the user has set up otherwise is theirs."""
    if run.variable("GIT_SSH_COMMAND") or run.variable("GIT_SSH") or run.variable("GIT_SSH_VARIANT"):
        return {}
    if queries.read_config(common, "^(core\\.sshcommand|ssh\\.variant)$"):
        return {}
    return {"GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}


def _absolute(url: str, common: str, worktree: str | None) -> str:
    """A relative path, which git would take from the worktree's top, as an absolute one."""
    colon, slash = url.find(":"), url.find("/")
    if os.path.isabs(url) or "://" in url or (colon != -1 and (slash == -1 or colon < slash)):
        return url
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    for base in (worktree, main, common):
        if base and os.path.exists(os.path.join(base, url)):
            return os.path.normpath(os.path.join(base, url))
    return url  # perhaps the short form of an insteadOf


def _branch(git_dir: str) -> str | None:
    """The branch that this worktree is on."""
    try:
        with open(os.path.join(git_dir, "HEAD"), encoding="utf-8", errors="surrogateescape") as file:
            head = file.read().strip()
    except OSError:
        return None
    start = "ref: refs/heads/"
    return head[len(start) :] if head.startswith(start) else None


def _any_in(words: Sequence[str], text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in words)


def _offline(url: str, err: str) -> RemoteError:
    clean = without_credentials(url)
    said = [line for line in err.splitlines() if line.strip() and not line.strip().startswith(_EMPTY_WORDS)]
    words = run.last_words("\n".join(said) or err).replace(url, clean).rstrip(".") or "git gave no reason"
    return RemoteError(
        f"The remote {clean} could not be reached: {words}; what is recorded here stays recorded.",
        hint="Check the network and your credentials (`git fetch` must work without a prompt), then sync again.",
        code="offline",
        next=["gitmem sync"],
    )


def _refused(url: str, err: str, summary: str) -> RemoteError:
    clean = without_credentials(url)
    remote = [line for line in err.splitlines() if line.startswith("remote:") and line[7:].strip()]
    said = [line for line in remote if "hook declined" not in line]
    words = run.last_words("\n".join(part for part in [*said[-1:], summary] if part) or err)
    if said and summary:
        words = f"{run.last_words(summary)} ({run.last_words(said[-1])})"
    return RemoteError(
        f"The remote {clean} refused the push: {words.replace(url, clean)}; "
        "what is recorded here stays recorded.",
        hint="Ask whoever runs the remote to allow this ref, or publish elsewhere.",
        code="refused",
        next=["gitmem doctor"],
    )
