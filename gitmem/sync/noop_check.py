"""Fingerprint of the last successful sync; if it still matches, here and on the remote, sync is a no-op.

`<state>/settled` has the refs of that sync, the remote, and a stamp of the repository's config. It spares a sync
with nothing new everything else. On any doubt the usual sync runs.

The time of `<state>/remote-read` is when the usual remote was last read.
"""

from __future__ import annotations

import os
import time

from .. import local_files
from ..git.files import FENCES, LOG_REF, READ, loose_tip, packed_with, plain_refs_below
from ..log.write_ahead import damaged, list_files
from ..repo import read_config, read_small
from .consent import WithheldLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..git.network import GitNetwork
    from ..log.ref_checks import LeftOut
    from ..repo import Repo
    from .remote import Remote

NAME = "settled"
ACCEPTED = "accepted"  # below the copies of a remote's refs: its shared log as it last passed the checks
AGE_SECONDS_MAX = 3600.0  # git's config outside of the repository may have changed unnoticed
_BRANCH = "refs/heads/gitmem"


class LastSync:
    """The remote of the last successful sync, and every ref that a sync reads, as it was then.

    If nothing is new, it is also the result of the exchange: see `sync.remote.Remote`.

    Attributes:
        unchanged: Whether both sides are unchanged, as the remote has answered.
        network: The network to continue with, if the check had to fetch; else None.
    """

    state, message, attempts = "up-to-date", "", 1
    received = sent = rejections = 0
    withheld = WithheldLines()
    has_our_lines, outbox = True, None
    left_out: Sequence[LeftOut] = ()

    def __init__(
        self, name: str, url: str, destination: str, prefix: str, tip: str, refs: Mapping[str, str]
    ) -> None:
        self.shown_name = name
        self.url = url
        self.destination = destination
        self.prefix = prefix
        self.tip = tip
        self.refs = dict(refs)
        self.unchanged = False
        self.network: GitNetwork | None = None


def refs_of(common: str) -> dict[str, str] | None:
    """Return every ref that a sync reads, from the repository's files; None if their state is not clear."""
    found = plain_refs_below(common, "refs/gitmem/", at_rest=True)
    if found is None:
        return None
    remotes = local_files.names_in(os.path.join(common, "refs", "remotes"))
    for name in (_BRANCH, *(f"refs/remotes/{remote}/gitmem" for remote in remotes)):
        oid = loose_tip(common, name)
        if oid is not None:
            found[name] = oid
        elif os.path.lexists(os.path.join(common, name)):
            return None  # a lock, a symbolic ref, or a damaged one
    for name, oid in packed_with(common, "/gitmem").items():
        if name == _BRANCH or (name.startswith("refs/remotes/") and name.endswith("/gitmem")):
            found.setdefault(name, oid)
    return found


def note(remote: Remote, before: Mapping[str, str] | None) -> None:
    """Record the state after a sync with one remote if the next sync would be a no-op; else delete the record.

    Args:
        before: `refs_of` when the sync began.
    """
    repo = remote.log.repo
    path = os.path.join(repo.state, NAME)
    now = refs_of(repo.common)
    if before is None or now is None or not _is_at_rest(remote, before, now):
        local_files.remove_quietly(path)
        return
    head = [_stamp(repo), remote.name, remote.url, remote.destination, remote.prefix, str(remote.tip)]
    rows = [f"{oid} {name}" for name, oid in sorted(now.items())]
    local_files.try_replace(path, os.fsencode("\n".join([*head, *rows]) + "\n"))


def _is_at_rest(remote: Remote, before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether a sync succeeded, both sides have one tip, and no other ref moved meanwhile."""
    from ..git.config import without_credentials
    from ..log import log_refs, ref

    if remote.state not in ("synced", "up-to-date") or remote.message or any(map(log_refs.is_outbox, now)):
        return False

    copies = {remote.copy_of(name) for name in ref.PUBLISH_REFS} & now.keys()
    ours = {ref.LOG_REF, ref.PUBLISHED_REF, remote.prefix + ACCEPTED, *copies}
    if len(copies) != 1 or any(now.get(name) != remote.tip for name in ours):
        return False
    if any(before.get(name) != oid for name, oid in now.items() if name not in ours):
        return False
    plain = remote.url == without_credentials(remote.url) and remote.name == remote.shown_name
    return (
        plain
        and "\n" not in remote.name + remote.url + remote.destination
        and _is_plain_config(remote.log.repo)
    )


def _is_plain_config(repo: Repo) -> bool:
    """Return whether no remote's name has a slash and no included file may change a remote's branch or URL."""
    keys = [key for key, _ in read_config(read_small(os.path.join(repo.common, "config")))]
    return not any(key.startswith("include") or (key.startswith("remote.") and "/" in key) for key in keys)


def check(repo: Repo, wals: Callable[[], Iterable[str]], timeout: float) -> LastSync | None:
    """Ask the remote of the last successful sync for its refs, if this clone is unchanged since.

    Args:
        wals: Returns the folders of all of the clone's write-ahead logs, whose entries are unsent. It runs while the
            remote answers.
        timeout: Seconds.

    Returns:
        The last sync and whether it still matches; None: sync as usual.

    Raises:
        StoreError: git would not work in the repository, or gitmem does not know its kind.
    """
    known = _load(repo)
    if known is None or loose_tip(repo.common, LOG_REF) not in (None, known.refs.get(LOG_REF)):
        return None
    from ..git.plumbing import refs_of_folder
    from ..git.repository import reject_untrusted
    from ..repo import reject_unsupported

    reject_unsupported(repo)
    reject_untrusted(repo)  # the owner of the git folder chooses the URL, and it may name a program

    folders: list[str] = []
    prefixes = (_BRANCH, "refs/gitmem/")
    there = refs_of_folder(repo.common, known.url, prefixes, timeout, lambda: folders.extend(wals()))

    def is_same() -> bool:
        waits = any(any(file.size for file in list_files(at)) or damaged(at) for at in folders)
        return not waits and refs_of(repo.common) == known.refs

    if not is_same():
        return None
    if there is not None:
        copies = {known.prefix + name.removeprefix("refs/"): oid for name, oid in there.items()}
        unread = ("refs/gitmem/remotes/", *FENCES)  # what the remote itself keeps, and no logs
        theirs = tuple(known.prefix + prefix.removeprefix("refs/") for prefix in unread)
        copies = {name: oid for name, oid in copies.items() if not name.startswith(theirs)}
        then = {name: oid for name, oid in known.refs.items() if name.startswith(known.prefix)}
        then.pop(known.prefix + ACCEPTED, None)
        known.unchanged = copies == then
        return known
    from ..git.network import GitNetwork

    known.network = GitNetwork(repo.common)
    known.unchanged = known.network.fetch_ahead(known.url, known.prefix, timeout) and is_same()
    return known


def _load(repo: Repo) -> LastSync | None:
    path = os.path.join(repo.state, NAME)
    try:
        age = time.time() - os.stat(path).st_mtime
    except OSError:
        return None
    head, _, rest = os.fsdecode(local_files.read(path)).partition("\n")
    words = rest.split("\n")
    if not 0 <= age <= AGE_SECONDS_MAX or head != _stamp(repo) or len(words) < 6 or words[-1]:
        return None
    name, url, destination, prefix, tip, *rows = words[:-1]
    refs = (row.partition(" ") for row in rows)
    return LastSync(name, url, destination, prefix, tip, {ref: oid for oid, _, ref in refs})


def _stamp(repo: Repo) -> str:
    """Return a stamp of the config and of HEAD, which decides the usual remote; "" if it can't be read."""
    try:
        found = os.stat(os.path.join(repo.common, "config"))
    except OSError:
        return ""
    head = os.fsdecode(read_small(os.path.join(repo.git_dir, "HEAD"))).strip()
    return f"{found.st_mtime_ns} {found.st_size} {found.st_ino} {head}"


def record_read(repo: Repo, now: float) -> None:
    """Record that the usual remote was read at this time, in seconds since the epoch."""
    path = os.path.join(repo.state, READ)
    local_files.try_replace(path, b"")
    try:
        local_files.utime(path, (int(now * 1e9),) * 2)
    except OSError:
        return


def last_read(repo: Repo) -> float | None:
    """Return when the usual remote was last read, in seconds since the epoch; None if that is not known."""
    try:
        return os.stat(os.path.join(repo.state, READ)).st_mtime
    except OSError:
        return None
