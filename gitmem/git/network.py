"""Network operations of an exchange, done by the git program.

It uses the user's credentials, proxies and ssh, but no prompts and no hooks. URLs go to git as configured: `url.*.insteadOf` applies once.
"""

from __future__ import annotations

import os
import re
import time

from ..errors import RemoteError, StoreError
from . import fetch as fetching
from . import plumbing, processes
from .config import included_for_folder, scrubbed, ssh_without_prompts, without_credentials
from .files import FENCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    Meanwhile = Callable[[], object] | None

TIMEOUT_SECONDS, OUT_BYTES_MAX = 60.0, 4 * 1024 * 1024  # a remote may have any number of refs
_QUIET_CONFIG = [
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    *("-c", "fetch.writeCommitGraph=false", "-c", "fetch.unpackLimit=1"),
    *("-c", "push.pushOption="),  # empties the user's list: not every server takes options
]
# Send segments whole or as deltas of their last version: a search for better bases doubles the time and saves 3 %.
_QUICK = ("-c", "pack.window=1")
# Negotiate common commits in a separate connection. Needs protocol 2; otherwise git warns and pushes as usual.
_NEGOTIATE = ("-c", "push.negotiate=true")
_NOT_NEGOTIATED = "push negotiation failed; proceeding anyway with push\n"
# Messages of a server that lost a race for its own ref lock.
_LOST_RACE_WORDS = (
    *("cannot lock", "failed to lock", "lock fail", "failed to update ref", "incorrect old value"),
    *("but expected", "reference already exists", "reference does not exist"),
    *("fetch first", "non-fast-forward", "stale info"),
)
_DENIED = ("error: 403", "permission to ", "access denied", "not granted", "not allowed to push", "read-only")
_FAILED_THERE = ("missing necessary objects", "unpacker error", "unpack failed")  # whichever ref is pushed
_BRANCHES = (b"refs/heads/gitmem", b"refs/heads/gitmem-outbox-", os.fsencode(FENCES[1]))  # not the user's
# The server, or a proxy before it, does not accept our credentials.
_NOT_ADMITTED = (
    *(
        "returned error: 401",
        "returned error: 403",
        "returned error: 407",
        "http 401",
        "http 403",
        "http 407",
    ),
    *("authentication failed", "could not read username", "could not read password", "response 407"),
    *("code 407", "permission denied (", "invalid credentials"),
)
_STATUS = re.compile(r"(?:error:|code|response|HTTP) ([1-5][0-9][0-9])\b")
_NO_REPOSITORY = re.compile(r"repository .* not found|Repository not found|returned error: 404")
_RULES = ("gh013", "rule violations", "protected branch", "pre-receive hook declined")
# A retry cannot succeed.
_OTHER_HASH = ("mismatched algorithms", "hash algorithm", "does not support algorithm")
# Lines that git prints after the actual reason.
_EMPTY_WORDS = (
    "fatal: Could not read from remote repository",
    "fatal: the remote end hung up unexpectedly",
    "Please make sure you have the correct access rights",
    "and the repository exists",
)


class GitNetwork:
    """Access to remotes by URL, with the git configuration of the repository whose common folder is `common`.

    All timeouts are in seconds. Every method raises RemoteError. Its code is `offline` if the remote cannot be reached,
    does not answer in time or fails, `denied` if it does not admit us or has no such repository, and `refused` if it
    rejects a push (a hook, a protection, missing permission).

    Args:
        contains: Whether a commit of that repository is, or descends from, another one; by default git is asked.

    Attributes:
        limits: Of what one fetch may bring.
        unlimited: Whether the user has lifted them.
        clock: The seconds since the epoch.
    """

    def __init__(self, common: str, contains: Callable[[str, str], bool] | None = None) -> None:
        self.common = common
        self.limits, self.unlimited, self.clock = fetching.LIMITS, False, time.time
        self._ahead: tuple[str, str, dict[str, tuple[str, str]] | RemoteError] | None = None
        self._contains = contains or (lambda tip, oid: plumbing.is_ancestor(common, oid, tip))

    def fetch(
        self, url: str, into_prefix: str, timeout: float = TIMEOUT_SECONDS
    ) -> dict[str, tuple[str, str]]:
        """Fetch every ref of a remote that may hold a log below `into_prefix`, which ends in `/`.

        `refs/heads/gitmem*` is stored below `<into_prefix>heads/`, `refs/gitmem/*` below `<into_prefix>gitmem/`; refs
        that the remote no longer has are removed there. If the remote is offline, the refs are unchanged. Objects
        arrive as a synced pack, which git keeps until the refs exist; `packing` later combines it with others.

        Returns:
            Commit and reason by ref, for each ref that git rejected or the remote could not send.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (url, into_prefix):
            if isinstance(ahead[2], RemoteError):
                raise ahead[2]
            return ahead[2]
        with fetching.Incoming(self.common) as into:
            return self._fetch_into(into, url, into_prefix, timeout)

    def fetch_ahead(self, url: str, into_prefix: str, timeout: float) -> bool:
        """Fetch before it is known whether there is anything to sync. Return whether that succeeded.

        The next `fetch` returns the result, or raises the error, if it is for the same URL and prefix.
        """
        try:
            found: dict[str, tuple[str, str]] | RemoteError = self.fetch(url, into_prefix, timeout)
        except RemoteError as error:
            found = error
        self._ahead = (url, into_prefix, found)
        return not isinstance(found, RemoteError)

    def _fetch_into(
        self, into: fetching.Incoming, url: str, prefix: str, timeout: float
    ) -> dict[str, tuple[str, str]]:
        limits = fetching.WITHOUT_LIMITS if self.unlimited else self.limits
        # Git fetches in a folder of ours, for which such a condition does not hold.
        included = [
            word for path in included_for_folder(self.common) for word in ("-c", f"include.path={path}")
        ]

        def ask(args: Sequence[str], given: bytes, seconds: float, most: int | None) -> processes.Result:
            return self._start(
                into.folder, [*_QUIET_CONFIG, *plumbing.DURABLE, *into.config(), *included, *args], min(seconds, timeout), given,
                variables=into.variables(limits), file_max=most,
            )  # fmt: skip

        def look(*patterns: str) -> dict[str, str]:
            return self._list(url, timeout, patterns)

        left, words = fetching.fetch(into, ask, look, url, prefix, timeout, limits, self.clock())
        if words is not None:
            raise _offline(url, words)

        def online(name: str, asked: list[str], given: bytes) -> None:
            try:
                done = ask(asked, given, timeout, limits.pack_bytes)
            except processes.GitTimeoutError as error:
                raise _offline(name, error.message) from None
            if done.code != 0:
                raise _offline(name, done.err)
            into.admit()

        fetching.fetch_missing(self.common, prefix, online)
        return left

    def _list(self, url: str, timeout: float, patterns: Sequence[str]) -> dict[str, str]:
        """Return the refs of the remote that match; of a list that is too long, the beginning."""
        args = [*_QUIET_CONFIG, "ls-remote", "--quiet", "--refs", "--", url, *patterns]
        try:
            done = self._run(args, url, timeout, out_max=self.limits.list_bytes)
        except RemoteError as error:
            if not isinstance(error.__cause__, processes.GitOutputError):
                raise
            out = error.__cause__.out.rpartition(b"\n")[0]
        else:
            if done.code != 0:
                raise _offline(url, done.err)
            out = done.out
        rows = (line.partition("\t") for line in out.decode("utf-8", "surrogateescape").splitlines())
        return {name: oid for oid, _, name in rows}

    def push(
        self,
        url: str,
        new: str,
        ref: str,
        expected: str | None,
        timeout: float = TIMEOUT_SECONDS,
        *,
        force: bool = False,
        exclusive: bool = False,
        meanwhile: Meanwhile = None,
    ) -> Literal["pushed", "rejected"]:
        """Move a remote's ref from `expected` (None: it must not exist) to `new`.

        Args:
            new: The commit. Unless `force`, it must descend from `expected`.
            exclusive: Whether a ref that is at `new` already counts as moved by another one.
            meanwhile: Called once during the push; it raises nothing.

        Returns:
            "rejected" if the ref has moved or the remote's lock on it was busy: fetch, unite, and push again.

        Raises:
            StoreError: `not-fast-forward`, if `new` does not descend from `expected`.
        """
        if not force and expected is not None and not self._contains(new, expected):
            raise StoreError(f"{new} does not contain {expected}. Nothing was sent.", code="not-fast-forward")
        # The lease is exact: a plain push would create a branch again that somebody deleted.
        # A new ref, usually an outbox, is pushed while the remote's other refs may be ahead of the fetched ones.
        # Without negotiation git would send the whole log. An existing ref was just fetched: no second connection.
        negotiate = expected is None
        leases = [f"--force-with-lease={ref}:{expected or ''}"]
        done = self._push(leases, [f"{new}:{ref}"], url, timeout, negotiate=negotiate, meanwhile=meanwhile)
        for flag, there, summary in _reported(done):
            if there != ref:
                continue
            if flag in (" ", "*", "+", "=") and done.code == 0 and not (flag == "=" and exclusive):
                return "pushed"
            is_denied = force and "[remote rejected]" in summary and "non-fast-forward" in summary
            if flag == "=" or (_is_race(summary) and not is_denied):
                return "rejected"
            raise _refused(url, done.err, summary)
        raise _failed(url, done.err)

    def delete(self, url: str, refs: Mapping[str, str], timeout: float = TIMEOUT_SECONDS) -> None:
        """Delete those refs of a remote that still have the given ids; ignore refs that moved or are gone."""
        leases = [f"--force-with-lease={ref}:{oid}" for ref, oid in refs.items()]
        done = self._push(leases, [f":{ref}" for ref in refs], url, timeout)
        if done.code == 0:
            return
        rejections = [summary for flag, ref, summary in _reported(done) if ref in refs and flag == "!"]
        if not rejections:
            raise _failed(url, done.err)
        for summary in rejections:
            if not _is_race(summary):
                raise _refused(url, done.err, summary)

    def has_branches(self, url: str, timeout: float = TIMEOUT_SECONDS) -> bool:
        """Return whether the remote has a branch other than a log's: a forge makes the first that arrives its default branch."""
        try:
            names = self.names(url, timeout, "--heads")
        except RemoteError as error:
            if error.code != processes.GitOutputError.code:
                raise
            return True
        return not all(name == _BRANCHES[0] or name.startswith(_BRANCHES[1:]) for name in names)

    def has(self, url: str, ref: str, timeout: float = TIMEOUT_SECONDS) -> bool:
        """Return whether the remote has a ref."""
        return os.fsencode(ref) in self.names(url, timeout, "--refs", ref)

    def names(self, url: str, timeout: float, option: str, *patterns: str) -> list[bytes]:
        """Return the refs of the remote, by an option of ls-remote, that match one of some patterns."""
        done = self._run([*_QUIET_CONFIG, "ls-remote", "--quiet", option, "--", url, *patterns], url, timeout)
        if done.code != 0:
            raise _offline(url, done.err)
        return [line.rpartition(b"\t")[2] for line in done.out.splitlines()]

    def _push(
        self,
        leases: Sequence[str],
        refspecs: Sequence[str],
        url: str,
        timeout: float,
        *,
        negotiate: bool = False,
        meanwhile: Meanwhile = None,
    ) -> processes.Result:
        args = [
            *(*_QUIET_CONFIG, *_QUICK, *(_NEGOTIATE if negotiate else ())),
            *("push", "--porcelain", "--no-verify", "--no-follow-tags"),
            *("--no-recurse-submodules", "--no-signed", *leases, "--", url, *refspecs),
        ]
        done = self._run(args, url, timeout, meanwhile=meanwhile)
        # The errors of a failed negotiation are not the reason why the push failed.
        return processes.Result(done.code, done.out, done.err.rpartition(_NOT_NEGOTIATED)[2])

    def _run(
        self,
        args: Sequence[str],
        url: str,
        timeout: float,
        input: bytes = b"",
        meanwhile: Meanwhile = None,
        out_max: int = OUT_BYTES_MAX,
    ) -> processes.Result:
        try:
            return self._start(self.common, args, timeout, input, out_max, meanwhile=meanwhile)
        except processes.GitTimeoutError:
            raise _offline(url, f"no answer within {timeout:g} seconds") from None
        except processes.GitOutputError as error:
            words = f"The remote {without_credentials(url)}: {error.message}"
            found = RemoteError(words, code=error.code, next=["gitmem doctor"])
            raise found from error

    def _start(
        self,
        folder: str,
        args: Sequence[str],
        timeout: float,
        input: bytes,
        out_max: int = OUT_BYTES_MAX,
        *,
        meanwhile: Meanwhile = None,
        variables: Mapping[str, str] | None = None,
        file_max: int | None = None,
    ) -> processes.Result:
        return processes.run(
            folder, args, input=input, timeout=timeout, check=False, online=True, meanwhile=meanwhile,
            env_extra={"GCM_INTERACTIVE": "never", **ssh_without_prompts(self.common), **(variables or {})},
            out_max=out_max, file_max=file_max,
        )  # fmt: skip


def _reported(done: processes.Result) -> list[tuple[str, str, str]]:
    """Return what a push did to each ref: git's flag, the remote's ref, and a summary."""
    rows = []
    for line in done.out.decode("utf-8", "replace").splitlines():
        flag, _, rest = line.partition("\t")
        refs, tab, summary = rest.partition("\t")
        if tab:
            rows.append((flag, refs.rpartition(":")[2], summary))
    return rows


def _is_race(summary: str) -> bool:
    if "does not support deleting" in summary:
        return False
    return summary.startswith("[rejected]") or _any_in(_LOST_RACE_WORDS, summary)


def _failed(url: str, err: str) -> RemoteError:
    return _refused(url, err, "") if _any_in(_DENIED, err) else _offline(url, err)


def _any_in(words: Sequence[str], text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in words)


def _offline(url: str, err: str) -> RemoteError:
    clean = without_credentials(url)
    lines = [line for line in err.splitlines() if line.strip() and not line.strip().startswith(_EMPTY_WORDS)]
    words = scrubbed(processes.summary_line("\n".join(lines) or err).replace(url, clean)).rstrip(".")
    words = words or "git gave no reason"
    if _any_in(_OTHER_HASH, err):
        return RemoteError(
            f"The remote {clean} uses a different object format (sha1, sha256) than this repository: {words}. Local records are kept.",
            hint="Sync with a remote that has the object format of this repository.",
            code="refused",
            next=["gitmem doctor"],
        )
    if _any_in(_NOT_ADMITTED, err) or _NO_REPOSITORY.search(err):
        return _denied(clean, err, words)
    status = _STATUS.search(err)
    if status is not None and status[1][0] == "5":
        return RemoteError(
            f"The server of the remote {clean} failed (HTTP {status[1]}): that is not a problem of this clone. Local "
            "records are kept and sent by a later sync.",
            code="offline",
            next=["gitmem sync"],
        )
    return RemoteError(
        f"Cannot reach the remote {clean}: {words}. Local records are kept.",
        hint="Check the network and your credentials (`git fetch` must work without a prompt), then sync again.",
        code="offline",
        next=["gitmem sync"],
    )


def _denied(clean: str, err: str, words: str) -> RemoteError:
    """Return the error for a remote that does not admit us."""
    if _NO_REPOSITORY.search(err):
        what = f"The remote {clean} has no such repository, or does not show it to you (HTTP 404)"
        hint = "Compare its URL with `git remote -v`, and check the access of your account."
    elif "407" in err:
        what = f"The proxy before the remote {clean} refused access: {words}"
        hint = "Put its user and password into `git config http.proxy`."
    elif "publickey" in err or "permission denied (" in err.lower():
        what = f"The remote {clean} refused access: {words}"
        hint = "Load your key with `ssh-add`, or register it there."
    else:
        status = _STATUS.search(err)
        what = f"The remote {clean} refused access (HTTP {status[1] if status else 401}): {words}"
        hint = (
            "Store credentials that may read and write there with git's credential helper: in a terminal `git fetch` "
            "asks for them."
        )
    return RemoteError(
        f"{what}. Local records are kept. {hint}", code="denied", next=["git remote -v", "gitmem sync"]
    )


def _refused(url: str, err: str, summary: str) -> RemoteError:
    clean = without_credentials(url)
    remote = [line for line in err.splitlines() if line.startswith("remote:") and line[7:].strip()]
    messages = [line for line in remote if "hook declined" not in line]
    words = processes.summary_line("\n".join(part for part in [*messages[-1:], summary] if part) or err)
    if messages and summary:
        words = f"{processes.summary_line(summary)} ({processes.summary_line(messages[-1])})"
    other = ""
    if _any_in(_RULES, err) and "refs/heads/" in err + summary:
        other = " If a rule protects its branches, publish to another ref: gitmem setup --ref hidden"
    failed = _any_in(_FAILED_THERE, summary)
    remedy = "look for missing objects, a full disk or a limit of size there" if failed else "allow this ref"
    return RemoteError(
        f"The remote {clean} rejected the push: {scrubbed(words.replace(url, clean))}. Local records are kept.{other}",
        hint=f"Ask the remote's administrator to {remedy}, or publish to another remote.",
        code="failed-there" if failed else "refused",
        next=["gitmem doctor"],
    )
