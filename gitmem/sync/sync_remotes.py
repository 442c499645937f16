"""Sync with remotes: which ones, whether the log may be published there, what came of each; and the process that syncs automatically, one per clone.

`<state>/settled` is a fingerprint of the last successful sync: the refs, the remote, and a stamp of the repository's config. If
it still matches, here and on the remote, a sync is a no-op. On any doubt the usual sync runs.
"""

from __future__ import annotations

import os
import time

from .. import local_files
from ..errors import GitmemError, RemoteError, StoreError, UsageError
from ..git.files import FENCES, LOG_REF, loose_tip, packed_with, plain_refs_below
from ..log import ref
from ..log.lines import format_at
from ..log.write_ahead import damaged, list_files
from ..outcome import Outcome, Struct, command
from ..repo import read_config, read_small
from ..text.sanitize import sanitize
from . import autosync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..git.network import GitNetwork
    from ..log.lock import Lock
    from ..repo import Repo
    from ..store import Store
    from .autosync import FailedSync
    from .remote import Remote


FAILED = ("offline", "rejected", "refused")
CONSENT_NEEDED = "consent-needed"
EMPTY = "empty"
INCOMPLETE = "incomplete"
UNSENT = "unsent"
LEFT_OUT_SHOWN = 20


class LeftOutRef(Outcome):
    """A ref that was left out: its name, its commit, the author in that commit, the kind and the reason.

    `kind`: `newer` (a format of a newer gitmem), `foreign` (another project's log), `large` (more than one sync may
    read), or `invalid`.
    """

    ref: str
    commit: str
    author: str
    kind: str
    why: str


class RemoteResult(Outcome):
    """The outcome of the exchange with one remote.

    Attributes:
        name: The remote's name, or its URL without credentials.
        state: `synced`, `up-to-date`, `offline`, `rejected` (others pushed first, several times), `refused`,
            `read-only` (one of several that rejects our pushes; only read), `empty` (it has no branch yet, and a log
            must not become its default one), `consent-needed` (it lacks records, and nobody has agreed to publish
            there: nothing was sent), `unsent` (only of `init`, which sends nothing: the log there lacks records of
            this clone), or `incomplete` (records of this clone were not committed and so not sent:
            another process has the log's lock, or they are damaged).
        received: How many lines it had that were not here; they count even if sending failed.
        sent: How many lines it lacked and received.
        safe: Whether it has all our lines that the sync found, in the log or in an outbox.
        outbox: The ref there with the sent lines, if others pushed to the log at that time; else None.
        attempts: How often it was contacted.
        rejections: How often others pushed first.
        tip: The commit of the log there, as far as known.
        left_out: Its refs that failed the checks and were not read, at most 20; `message` has the number of all.
        message: Sentences for the user, or "".
        url: The URL of pushes to it, without credentials.
        unpublished: How many records it lacks and was not sent, in the state `consent-needed`; else 0.
        kinds: The number of those of each kind, records of people and agents first.
        records: At most 20 of them in that order of kinds, within a kind the newest first; each with `kind`, `id` and
            `text`.
    """

    def __init__(self, remote: Remote | LastSync) -> None:
        self.name = remote.shown_name
        self.state = remote.state
        self.received = remote.received
        self.sent = remote.sent
        self.safe = remote.has_our_lines
        self.outbox = remote.outbox
        self.attempts = remote.attempts
        self.rejections = remote.rejections
        self.tip = remote.tip
        self.left_out = [LeftOutRef.taken_from(each) for each in remote.left_out[:LEFT_OUT_SHOWN]]
        self.message = remote.message
        self.url = remote.destination
        self.unpublished = remote.withheld.total if remote.withheld is not None else 0
        self.kinds: dict[str, int] = {}
        self.records: list[dict[str, str]] = []
        if remote.withheld is not None and self.unpublished:
            from . import consent

            self.kinds = consent.withheld_counts(remote.withheld)
            self.records = consent.withheld_records(remote.withheld)
            self.message = f"{consent.withheld_summary(self.unpublished, self.url)} {self.message}".strip()


class SyncResult(Outcome, kw_only=True):
    """The outcome for each remote.

    Attributes:
        autosync: Why the last sync before this one failed; None if this one succeeded.
        message: What was done to the log of a clone without a remote; else empty.
    """

    remotes: Sequence[RemoteResult]
    autosync: FailedSync | None = None
    message: str = ""
    next: Sequence[str]

    @property
    def status(self) -> int:
        """The exit status; no status means that lines were lost.

        5 if a remote was unreachable or rejected us. 2 if the user has to act first: give consent, or push a branch if
        every remote is empty. Else 4 if records could not be committed.
        """
        states = [remote.state for remote in self.remotes]
        if any(state in FAILED for state in states):
            return 5
        is_empty = bool(states) and all(state == EMPTY for state in states)
        if is_empty or CONSENT_NEEDED in states:
            return 2
        return 4 if INCOMPLETE in states else 0


NOT_SENT = (*FAILED, EMPTY)  # states of a remote that did not receive the records of this clone


def may_send(store: Store, *, publish: bool) -> Callable[[Remote], bool]:
    """Return the function that decides whether the log may be published on a remote.

    Args:
        publish: The user agrees to publish on each remote that the function is called with.
    """
    from . import consent

    repo, at = store.repo, format_at(store.now())

    def is_agreed(remote: Remote) -> bool:
        if publish:
            consent.give_consent(repo, remote.destination, consent.BY_SYNC, at)
        return consent.is_given(repo, remote.destination)

    return is_agreed


def consent_remark(store: Store) -> str | None:
    """Return a remark if this clone syncs automatically but may not publish; else None."""
    from . import consent

    url = consent.unpublished(store.repo) if autosync.interval(store.repo) is not None else None
    if url is None:
        return None
    return (
        f"Automatic sync only fetches: nobody has agreed to publish this log to {sanitize(url)}. "
        "Only your user may decide this; `gitmem sync --publish` gives consent."
    )


def reword_for_agent(synced: SyncResult) -> None:
    """Reword a result for an agent: only its user decides whether to publish, so `next` does not propose it."""
    for each in synced.remotes:
        if each.state == "consent-needed":
            own = command("gitmem", "sync", "--publish", each.name)
            does = own if own in synced.next else "gitmem sync --publish"
            each.message += f" Ask your user whether it may be published there; after a yes: `{does}`."
    synced.next = [each for each in synced.next if "--publish" not in each.split()]


def report_consent(store: Store, remotes: Sequence[RemoteResult]) -> None:
    """Add to the messages of remotes that received nothing that consent to publish there was recorded."""
    from . import consent

    for each in remotes:
        if each.state in NOT_SENT and consent.is_given(store.repo, each.url):
            each.message += (
                f" You have agreed to publish to {sanitize(each.url)}: local records are sent when it is reachable."
                if each.state == "offline"
                else f" You have agreed to publish to {sanitize(each.url)}: the next successful sync sends the local records."
            )
            each.message = each.message.strip()


def reject_unconfigured(store: Store, remotes: Sequence[str]) -> None:
    """Reject names that are not those of a configured remote.

    Raises:
        UsageError: `not-configured`.
    """
    from ..git.config import without_credentials
    from .remote import configured

    known = configured(store.repo) if remotes else []
    for name in remotes:
        if name not in known:
            raise UsageError(
                f"Not a configured remote: {without_credentials(name)}; choose from: "
                f"{', '.join(known) or 'there are none'}. Nothing was sent.",
                hint="Ask your user to add it: `git remote add NAME URL`.",
                code="not-configured",
                next=["git remote -v"],
                suggestions=known[:3],
            )


CONTINUE_HINT = "continue with: gitmem sync"  # in the message of a sync that read only a part


def sync(
    store: Store,
    remotes: Sequence[str] = (),
    *,
    all: bool = False,
    publish: bool = False,
    configured_only: bool = False,
    allow_foreign: bool = False,
    allow_large: bool = False,
    repair: bool = False,
    force: bool = False,
    forget: bool = False,
    timeout: float = 30.0,
    looked: LastSync | None = None,
) -> SyncResult:
    """Fetch from remotes, and push what they lack if the user has agreed to publish.

    Args:
        remotes: Names of remotes; none for the usual one (the branch's upstream, `origin`, or the only one).
            History follows the usual one; another gets its lines in a commit on its own tip.
        all: Every configured remote.
        publish: The user agrees to publish the log on these remotes, now and from now on. Set it only if a user
            asked for it.
        configured_only: Reject names that are not those of a configured remote, such as a URL.
        allow_foreign: Unite with the log of another project too. That can't be undone.
        allow_large: Lift the limits on the size and number of files, folders and commits.
        repair: Move a shared ref that every clone leaves out to a valid tree again.
        force: The user agrees to a forced push by `repair` or `forget`.
        forget: Write the log anew without forgotten texts, on the usual remote by a forced push; without a remote here.
        timeout: Seconds for each run of git on the network.
        looked: The result of `check_noop`, for the usual remote.

    Raises:
        UsageError: `no-remote`, `which-remote`, `unknown-remote`, `not-configured`, `repair-needs-yes`, `forget-needs-yes`,
            `not-usual`; nothing was replaced.
        StoreError: Our own log can't be read or written; it is unchanged.
    """
    store.writers.choose()  # the clone may have got its first commit since its key was made
    from . import exchange, fences
    from .remote import configured

    if configured_only:
        reject_unconfigured(store, remotes)
    _prepare(store, allow_large=allow_large, looked=looked)
    if forget and not remotes and not configured(store.repo):
        return _rewrite_local(store, agreed=force)
    names, leads = _chosen_now(store, remotes, all=all, forget=forget)
    trouble = autosync.last_failure(store.repo)
    if leads:
        autosync.record_start(store.repo, store.now() / 1e6)
    # Before: what is recorded meanwhile is not sent.
    over = store.domain.finished_fences(store) if leads else []
    before, began = refs_of(store.repo.common), store.now() / 1e6
    found = exchange.exchange(
        store.log, names, timeout=timeout, may_send=may_send(store, publish=publish),
        leads=leads, allow_foreign=allow_foreign, forgiving=all,
        retry=bool(remotes) and not all, repair=repair, force=force, forget=forget,
    )  # fmt: skip
    store.wrote = 0
    if not store.refresh_or_leave(start=True):
        store.keep_up()
    states = [RemoteResult(remote) for remote in found]
    store.received = any(each.received for each in states)
    if leads:
        fences.delete_over(store, over, found[0])
        note_settled(found[0], before)
        _record_outcome(store, states, began)
    synced = SyncResult(remotes=states, next=_next(states, leads=leads))
    synced.autosync = trouble if synced.status else None
    return synced


def _prepare(store: Store, *, allow_large: bool, looked: LastSync | None) -> None:
    """Give the log what it needs for a sync."""
    store.log.committer = store.log.committer or store.committer()
    if looked is not None and looked.network is not None:
        store.log.network = looked.network
    store.log.allow_large, store.log.progress = allow_large, store.progress
    store.log.committed = store.refresh_or_leave


def _rewrite_local(store: Store, *, agreed: bool) -> SyncResult:
    """Write the log of a clone without a remote anew."""
    from . import exchange

    message = exchange.rewrite_local(store.log, agreed=agreed)
    store.refresh_or_leave(start=True)
    return SyncResult(remotes=[], message=message, next=[])


def _chosen_now(store: Store, remotes: Sequence[str], *, all: bool, forget: bool) -> tuple[list[str], bool]:
    """Choose as `choose` does; if no remote is left, clear the recorded error of the last one."""
    try:
        from .remote import choose

        names, leads = choose(store, remotes, all=all)
        if forget and not leads:
            raise UsageError(
                f"--forget is for the usual remote; this clone does not follow {sanitize(names[0])}. Nothing was sent.",
                code="not-usual",
                next=["gitmem sync --forget"],
            )
        return names, leads
    except UsageError as error:
        if error.code == "no-remote":
            autosync.record_success(store.repo, store.now() / 1e6, 0, 0.0)
        raise


def _record_outcome(store: Store, states: Sequence[RemoteResult], began: float) -> None:
    """Record why nothing was sent to the usual remote, the first, until a sync succeeds; automatic or not. Else record the time."""
    usual, now, jitter = states[0], store.now(), store.random(1)[0] / 255
    if usual.state in (*FAILED, EMPTY, INCOMPLETE):
        message = usual.message or f"{usual.name}: {usual.state}"
        autosync.record_failure(store.repo, now / 1e6, format_at(now), usual.state, message, jitter)
    else:
        autosync.record_read(store.repo, began)
        autosync.record_success(store.repo, now / 1e6, max(each.rejections for each in states), jitter)


SETTLED = "settled"
AGE_SECONDS_MAX = 3600.0  # git's config outside of the repository may have changed unnoticed


class LastSync(Struct):
    """The remote of the last successful sync, and every ref that a sync reads, as it was then.

    If nothing is new, it is also the result of the exchange: see `sync.remote.Remote`.

    Attributes:
        unchanged: Whether both sides are unchanged, as the remote has answered.
        network: The network to continue with, if the check had to fetch; else None.
    """

    state, message, attempts = "up-to-date", "", 1
    received = sent = rejections = 0
    withheld = None  # nothing is
    has_our_lines, outbox = True, None
    left_out = ()

    shown_name: str
    url: str
    destination: str
    prefix: str
    tip: str
    refs: dict[str, str]
    unchanged: bool = False
    network: GitNetwork | None = None


def refs_of(common: str) -> dict[str, str] | None:
    """Return every ref that a sync reads, from the repository's files; None if their state is not clear."""
    found = plain_refs_below(common, "refs/gitmem/", at_rest=True)
    if found is None:
        return None
    remotes = local_files.names_in(os.path.join(common, "refs", "remotes"))
    for name in (ref.BRANCH, *(f"refs/remotes/{remote}/gitmem" for remote in remotes)):
        oid = loose_tip(common, name)
        if oid is not None:
            found[name] = oid
        elif os.path.lexists(os.path.join(common, name)):
            return None  # a lock, a symbolic ref, or a damaged one
    for name, oid in packed_with(common, "/gitmem").items():
        if name == ref.BRANCH or (name.startswith("refs/remotes/") and name.endswith("/gitmem")):
            found.setdefault(name, oid)
    return found


def note_settled(remote: Remote, before: Mapping[str, str] | None) -> None:
    """Record the state after a sync with one remote if the next sync would be a no-op; else delete the record.

    Args:
        before: `refs_of` when the sync began.
    """
    repo = remote.log.repo
    path = os.path.join(repo.state, SETTLED)
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
    from ..log import log_refs

    if remote.state not in ("synced", "up-to-date") or remote.message or any(map(log_refs.is_outbox, now)):
        return False

    copies = {remote.copy_of(name) for name in ref.PUBLISH_REFS} & now.keys()
    ours = {ref.LOG_REF, ref.PUBLISHED_REF, remote.prefix + ref.ACCEPTED, *copies}
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


def _load(repo: Repo) -> LastSync | None:
    path = os.path.join(repo.state, SETTLED)
    age = time.time() - local_files.modified(path)
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


def check_noop(
    repo: Repo, wals_elsewhere: Callable[[], Iterable[str]], now: float, timeout: float = 30.0
) -> LastSync | None:
    """Ask the usual remote whether anything is new, if this clone has nothing new; None if that is not certain.

    It needs no store and hardly any imports. If something is new, pass the result to `sync`.

    Args:
        wals_elsewhere: Returns the folders of write-ahead logs outside of the repository. It runs while the remote
            answers.
        now: Seconds since the epoch.
        timeout: Seconds.

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

    folders = [os.path.join(repo.state, "wal")]

    def ask_wals() -> None:
        autosync.record_start(repo, now)  # before reading our refs: a later writer leaves a mark that stays
        folders.extend(wals_elsewhere())

    prefixes = (ref.BRANCH, "refs/gitmem/")
    there = refs_of_folder(repo.common, known.url, prefixes, timeout, ask_wals)

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
        then.pop(known.prefix + ref.ACCEPTED, None)
        known.unchanged = copies == then
        return known
    from ..git.network import GitNetwork

    known.network = GitNetwork(repo.common)
    known.unchanged = known.network.fetch_ahead(known.url, known.prefix, timeout) and is_same()
    return known


def read_all(store: Store, timeout: float) -> None:
    """Sync with the usual remote.

    Raises:
        RemoteError: Not all of its records could be read.
    """
    (found,) = sync(store, timeout=timeout).remotes
    if found.state not in ("synced", "up-to-date", "rejected"):
        raise RemoteError(
            f"{found.name} could not be read completely ({found.message or found.state}), so nothing was begun.",
            code="offline" if found.state == "offline" else "refused",
            next=["gitmem sync"],
        )


def noop_result(repo: Repo, looked: LastSync, now: float, jitter: float) -> SyncResult:
    """Return the result of a sync that had nothing to do (`now`: seconds since the epoch, `jitter`: between 0 and 1)."""
    autosync.record_read(repo, now)
    autosync.record_success(repo, now, 0, jitter)
    states = [RemoteResult(looked)]
    return SyncResult(remotes=states, next=_next(states, leads=True))


def _next(states: Sequence[RemoteResult], *, leads: bool) -> list[str]:
    found = []
    for remote in states:
        if remote.state == CONSENT_NEEDED:
            usual = leads and remote is states[0]
            found.append(command("gitmem", "sync", "--publish", *([] if usual else [remote.name])))
        elif remote.state in ("offline", "rejected"):
            found.append(command("gitmem", "sync", remote.name))
        elif remote.state == INCOMPLETE:
            from ..store import FIX

            found += [
                FIX if FIX in remote.message else "gitmem doctor",
                command("gitmem", "sync", remote.name),
            ]
        elif remote.state == EMPTY:
            found.append(command("git", "push", remote.name, "HEAD"))
        elif remote.state == "refused":
            own = (
                command("gitmem", "sync", *way, remote.name) for way in (["--repair"], ["--forget", "--yes"])
            )
            found += [each for each in own if each in remote.message]
            found.append(_after_refusal(remote))
    return list(dict.fromkeys(found))[:3]


def _after_refusal(remote: RemoteResult) -> str:
    """Return the command after a sync that left out the shared ref, or that the remote rejected."""
    large = [each.ref for each in remote.left_out if each.kind == "large"]
    if CONTINUE_HINT not in remote.message and any("outbox" not in name for name in large):
        return command("gitmem", "sync", "--allow-large", remote.name)  # one commit alone is too much
    return command("gitmem", "sync", remote.name) if large else "gitmem doctor"


POLL_SECONDS = 0.1
# A caller that only tests whether a process runs holds the lock for an instant, too.
LOCK_TRIES, LOCK_PAUSE_SECONDS = 5, 0.02
QUIET = ("no-remote",)  # not reported as a failure: there may be a remote later


def run_autosync(
    repo: Repo,
    sync: Callable[[], SyncResult],
    *,
    now: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
    jitter: Callable[[], float] = lambda: os.urandom(1)[0] / 255,
) -> bool:
    """Sync when it is due, unless another process of this clone does; record an error for later commands.

    Args:
        sync: Syncs with the usual remote.
        now: Returns the seconds since the epoch.
        pause: Waits that many seconds.
        jitter: Returns a number between 0 and 1.

    Returns:
        Whether to start another process.
    """
    lock = _take(repo, pause)
    if lock is None:
        return False
    with lock:
        if not _wait(repo, now, pause):
            return False
        autosync.record_start(repo, now())
        code, message = _sync_or_error(sync)
        at = now()
        if code in QUIET:
            autosync.postpone(repo, at)
        elif code:
            autosync.record_failure(repo, at, format_at(int(at * 1e6)), code, message, jitter())
    # A caller that found the lock taken has left a mark, perhaps after this sync had read the log.
    return _is_wanted(repo, now())


def refuse_untrusted(repo: Repo) -> None:
    """Reject a repository that opening its log would reject, before writing any state about its syncs.

    Raises:
        StoreError: `dubious-ownership` or `bare-repository`.
    """
    from ..git.repository import reject_untrusted

    reject_untrusted(repo)


def _take(repo: Repo, pause: Callable[[float], None]) -> Lock | None:
    try:
        for _ in range(LOCK_TRIES):
            lock = autosync.lock(repo, background=True)
            if lock.take():
                return lock
            pause(LOCK_PAUSE_SECONDS)
    except StoreError:
        pass  # not writable for us, or deleted
    return None


def _wait(repo: Repo, now: Callable[[], float], pause: Callable[[float], None]) -> bool:
    """Wait until a sync is due or is hurried; return False once it is not wanted any more."""
    while True:
        at, every = now(), autosync.interval(repo)
        if every is None:  # switched off meanwhile, or the repository was deleted
            return False
        if autosync.is_urgent(repo) or autosync.due(repo, every, at) <= at:
            return True
        if not _is_wanted(repo, at):
            return False
        pause(POLL_SECONDS)


def _is_wanted(repo: Repo, now: float) -> bool:
    """Return whether a sync was asked for and is due soon enough for a process to wait for it."""
    every = autosync.interval(repo)
    if every is None or not autosync.is_requested(repo):
        return False
    return autosync.is_urgent(repo) or autosync.due(repo, every, now) - now <= autosync.wait_limit(repo)


def _sync_or_error(sync: Callable[[], SyncResult]) -> tuple[str, str]:
    """Sync; return the code and the message of the error that stopped it, or two empty strings."""
    try:
        sync()
    except GitmemError as error:
        return error.code, error.message
    except TimeoutError:
        return "timeout", "The sync timed out and was stopped; local records are kept."
    except Exception as error:  # a bug must be reported too, and nobody reads our output
        return "unexpected", f"Unexpected error: {type(error).__name__} {error}".strip()
    return "", ""
