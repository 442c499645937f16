"""Fences: refs by which at most one taker begins a piece of work, of all clones of a remote.

A fence is at the first commit of every log, so it has no content: only whether it exists counts. Whoever creates it may begin; a fence that
exists already stops everybody else, whatever it is at. It is created in this clone first, then on the usual remote. A clone that is killed in
between leaves a fence, and the work is not begun: at most once, not at least once.

A fence may be deleted once no clone can begin the work any more: the remote has the records that end it. A clone that creates a fence after that
reads these records before it begins.
"""

from __future__ import annotations

import os
import time

from ..errors import GateError, RemoteError, StoreError, UsageError
from ..git import plumbing
from ..git.files import FENCES
from ..log import ref
from ..log.committer import start_log
from . import consent
from .remote import Remote, choose, configured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..store import Store

LOCAL = FENCES[0]
TAKEN = "fence-taken"
DELETED_MAX = 100  # by one sync: a command line is limited
TIMEOUT_SECONDS, ASKED_TIMEOUT_SECONDS = 30.0, 10.0
KNOWN_SECONDS = 60.0
_seen: dict[
    str, tuple[float, frozenset[str]]
] = {}  # of each remote: when its fences were read, and their names


def create(store: Store, name: str, read: Callable[[], object], *, timeout: float = TIMEOUT_SECONDS) -> None:
    """Create a fence, and read the remote's records after that. On return nobody else begins the work.

    Args:
        name: An id, which becomes part of a ref's name.
        read: Reads all records of the usual remote, or raises RemoteError.
        timeout: Seconds for each answer of the remote.

    Raises:
        GateError: `fence-taken`: somebody has begun the work, or was about to.
        RemoteError: `offline` or `refused`: the remote can't be asked. Another try may succeed.
        UsageError: `consent-needed`: the user has not agreed to publish anything there.
        StoreError: This clone can't be written.
    """
    remote = _remote(store)
    if remote is not None and not consent.is_given(store.repo, remote.destination):
        raise UsageError(
            f"Work that begins at most once needs a ref on {remote.shown_name}, and nobody has agreed to publish there. Nothing was written.",
            hint="Only your user may decide this.",
            code="consent-needed",
            next=["gitmem sync --publish"],
        )
    if remote is not None and _is_known(remote, name):
        raise _taken(name, f"on {remote.shown_name}")
    oid = _first_commit(store)
    if not store.git.swap(LOCAL + name, None, oid, "begin at most once"):
        raise _taken(name, "in this clone")
    if remote is None:
        return
    try:
        _create_there(store, remote, name, oid, timeout)
        try:
            read()
        except BaseException:
            _delete_there(store, remote, name, oid, timeout)  # it is ours, and the work was not begun
            raise
    except BaseException:
        _forget(store, name)  # the remote's decides
        raise


def abandon(store: Store, name: str) -> None:
    """Delete a fence that this process has created, before it has begun the work."""
    delete(store, [name], _remote(store))


def exists(store: Store, name: str, *, asks: bool = False, timeout: float = ASKED_TIMEOUT_SECONDS) -> bool:
    """Return whether there is a fence, as far as this clone knows.

    Args:
        asks: Whether to ask the usual remote if none is here; while it answers, other threads may use the store.
    """
    if store.git.tip(LOCAL + name) is not None:
        return True
    remote = _remote(store) if asks else None
    if remote is None:
        return False
    with store.second() as own:
        try:
            return any(own.log.network.has(remote.url, prefix + name, timeout) for prefix in FENCES)
        except RemoteError:
            return False


def names(store: Store) -> list[str]:
    """Return the names of the fences that this clone has made."""
    return [each.removeprefix(LOCAL) for each in store.git.refs(LOCAL)]


def delete(
    store: Store, over: Sequence[str], remote: Remote | None, *, timeout: float = TIMEOUT_SECONDS
) -> None:
    """Delete fences of this clone, here and on a remote, of work that is over. A fence that can't be deleted does no harm.

    Args:
        over: Their names. The remote must have the records by which this work is over.
        remote: The remote that this clone has synced with; None without one.
    """
    oid = _first_commit(store)
    for name in over[:DELETED_MAX]:
        if remote is None or _delete_there(store, remote, name, oid, timeout):
            _forget(store, name)


def delete_over(store: Store, over: Sequence[str], remote: Remote) -> None:
    """Delete fences of work that was over when a sync began, if the remote now has all lines of that time."""
    if over and remote.has_our_lines and remote.may_send:
        delete(store, over, remote)


def delete_here(store: Store, over: Sequence[str]) -> None:
    """Delete fences of work that is over, in a clone without remotes; with remotes only a sync knows when it is over there, too."""
    if over and not configured(store.repo):
        delete(store, over, None)


def _create_there(store: Store, remote: Remote, name: str, oid: str, timeout: float) -> None:
    """Create the fence on a remote, as a branch if it accepts no other ref.

    Whoever has created one of these refs begins only without the other one: a host may accept them from different users.
    """
    network, made = store.log.network, FENCES[0]
    try:
        done = network.push(remote.url, oid, made + name, None, timeout, exclusive=True)
    except RemoteError as error:
        if error.code != "refused" or not network.has_branches(remote.url, timeout):
            raise
        made = FENCES[1]
        done = network.push(remote.url, oid, made + name, None, timeout, exclusive=True)
    if done != "pushed":
        _look(remote, timeout)
        raise _taken(name, f"on {remote.shown_name}")
    other = next(prefix for prefix in FENCES if prefix != made)
    try:
        is_twice = network.has(remote.url, other + name, timeout)
    except RemoteError:
        _delete_there(store, remote, name, oid, timeout, [made])
        raise
    if is_twice:
        _delete_there(store, remote, name, oid, timeout, [made])
        _look(remote, timeout)
        raise _taken(name, f"on {remote.shown_name}")


def _is_known(remote: Remote, name: str) -> bool:
    """Return whether the last look at a remote found a fence, a short time ago."""
    at, found = _seen.get(remote.url, (0.0, frozenset()))
    return time.monotonic() - at < KNOWN_SECONDS and name in found


def _look(remote: Remote, timeout: float) -> None:
    """Read all fences of a remote that has one of somebody else: further ones then cost no push each. Of too many none is read."""
    try:
        refs = map(
            os.fsdecode,
            remote.log.network.names(remote.url, timeout, "--refs", *(f"{prefix}*" for prefix in FENCES)),
        )
    except (RemoteError, StoreError):
        return
    found = frozenset(ref.removeprefix(prefix) for ref in refs for prefix in FENCES if ref.startswith(prefix))
    _seen[remote.url] = time.monotonic(), found


def _delete_there(
    store: Store, remote: Remote, name: str, oid: str, timeout: float, prefixes: Sequence[str] = FENCES
) -> bool:
    """Delete the fence on a remote; return whether it is gone, or has never been there."""
    try:
        for prefix in prefixes:
            store.log.network.delete(remote.url, {prefix + name: oid}, timeout)
    except RemoteError:
        return False
    return True


def _forget(store: Store, name: str) -> None:
    plumbing.delete_ref(store.repo.common, LOCAL + name, _first_commit(store))


def _remote(store: Store) -> Remote | None:
    """Return the usual remote; None in a clone without remotes."""
    if not configured(store.repo):
        return None
    return Remote(store.log, choose(store, (), all=False)[0][0])


def _first_commit(store: Store) -> str:
    """Return the id of the first commit of every log, which is here once a log is."""
    oid = ref.genesis(store.git.tip(ref.LOG_REF) or start_log(store.log))
    if not store.git.has(oid):
        store.git.write([ref.genesis_draft()], None)
    return oid


def _taken(name: str, where: str) -> GateError:
    return GateError(
        f"{name} may begin only once, and has a fence {where}: somebody has begun it, or was about to. Nothing was written.",
        hint="Its caller learns no end? Then whoever began it has died: its caller may give it up.",
        code=TAKEN,
        next=[f"gitmem task show {name}"],
    )
