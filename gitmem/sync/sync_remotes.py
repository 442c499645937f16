"""Sync: exchange lines with remotes. Only this and `init` use the network."""

from __future__ import annotations

import os

from ..errors import UsageError
from ..outcome import command
from . import autosync, consent_messages
from .sync_result import CONSENT_NEEDED, EMPTY, FAILED, INCOMPLETE, RemoteResult, SyncResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..repo import Repo
    from ..store import Store
    from .noop_check import LastSync

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
        force: The user agrees that a repair may need a forced push.
        timeout: Seconds for each run of git on the network.
        looked: The result of `check_noop`, for the usual remote.

    Raises:
        UsageError: `no-remote`, `which-remote`, `unknown-remote`, `not-configured`, `repair-needs-yes`; nothing was
            sent.
        StoreError: Our own log can't be read or written; it is unchanged.
    """
    from . import exchange, fences, noop_check, withheld_messages

    if configured_only:
        consent_messages.reject_unconfigured(store, remotes)
    names, leads = _chosen_now(store, remotes, all=all)
    store.log.committer = store.log.committer or store.committer()
    trouble = autosync.last_failure(store.repo)
    if leads:
        autosync.record_start(store.repo, store.now() / 1e6)
    if looked is not None and looked.network is not None:
        store.log.network = looked.network
    store.log.allow_large = allow_large
    store.log.progress = store.progress
    store.log.committed = store.refresh_or_leave
    over = (
        store.domain.finished_fences(store) if leads else []
    )  # before: what is recorded meanwhile is not sent
    before, began = noop_check.refs_of(store.repo.common), store.now() / 1e6
    found = exchange.exchange(
        store.log, names, timeout=timeout, may_send=consent_messages.may_send(store, publish=publish),
        kind_of=withheld_messages.kind_of, leads=leads, allow_foreign=allow_foreign, forgiving=all,
        retry=bool(remotes) and not all, repair=repair, force=force,
    )  # fmt: skip
    store.wrote = 0
    if not store.refresh_or_leave(start=True):
        store.keep_up()
    states = [RemoteResult(remote) for remote in found]
    synced = SyncResult(states, _next(states, leads=leads))
    if leads:
        fences.delete_over(store, over, found[0])
        noop_check.note(found[0], before)
        _record_outcome(store, states, began)
    if synced.status:
        synced.autosync = trouble
    return synced


def _chosen_now(store: Store, remotes: Sequence[str], *, all: bool) -> tuple[list[str], bool]:
    """Choose as `choose` does; if no remote is left, clear the recorded error of the last one."""
    try:
        from .remote import choose

        return choose(store, remotes, all=all)
    except UsageError as error:
        if error.code == "no-remote":
            autosync.record_success(store.repo, store.now() / 1e6, 0, 0.0)
        raise


def _record_outcome(store: Store, states: Sequence[RemoteResult], began: float) -> None:
    """Record why nothing was sent to the usual remote, the first, until a sync succeeds; automatic or not. Else record the time."""
    from ..log.lines import format_at
    from . import noop_check

    usual, now, jitter = states[0], store.now(), store.random(1)[0] / 255
    if usual.state in (*FAILED, EMPTY, INCOMPLETE):
        message = usual.message or f"{usual.name}: {usual.state}"
        autosync.record_failure(store.repo, now / 1e6, format_at(now), usual.state, message, jitter)
    else:
        noop_check.record_read(store.repo, began)
        autosync.record_success(store.repo, now / 1e6, max(each.rejections for each in states), jitter)


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
    """
    from . import noop_check

    def wals() -> list[str]:
        autosync.record_start(repo, now)  # before reading our refs: a later writer leaves a mark that stays
        return [os.path.join(repo.state, "wal"), *wals_elsewhere()]

    return noop_check.check(repo, wals, timeout)


def noop_result(repo: Repo, looked: LastSync, now: float, jitter: float) -> SyncResult:
    """Return the result of a sync that had nothing to do (`now`: seconds since the epoch, `jitter`: between 0 and 1)."""
    from . import noop_check

    noop_check.record_read(repo, now)
    autosync.record_success(repo, now, 0, jitter)
    states = [RemoteResult(looked)]
    return SyncResult(states, _next(states, leads=True))


def _next(states: Sequence[RemoteResult], *, leads: bool) -> list[str]:
    found = []
    for remote in states:
        if remote.state == CONSENT_NEEDED:
            usual = leads and remote is states[0]
            found.append(command("gitmem", "sync", "--publish", *([] if usual else [remote.name])))
        elif remote.state in ("offline", "rejected"):
            found.append(command("gitmem", "sync", remote.name))
        elif remote.state == INCOMPLETE:
            from ..moved_back import FIX

            found += [
                FIX if FIX in remote.message else "gitmem doctor",
                command("gitmem", "sync", remote.name),
            ]
        elif remote.state == EMPTY:
            found.append(command("git", "push", remote.name, "HEAD"))
        elif remote.state == "refused":
            repair = command("gitmem", "sync", "--repair", remote.name)
            found += [repair] if repair in remote.message else []
            found.append(_after_refusal(remote))
    if any(remote.received for remote in states):
        found.append("gitmem inbox")
    return list(dict.fromkeys(found))[:3]


def _after_refusal(remote: RemoteResult) -> str:
    """Return the command after a sync that left out the shared ref, or that the remote rejected."""
    large = [each.ref for each in remote.left_out if each.kind == "large"]
    if CONTINUE_HINT not in remote.message and any("outbox" not in name for name in large):
        return command("gitmem", "sync", "--allow-large", remote.name)  # one commit alone is too much
    return command("gitmem", "sync", remote.name) if large else "gitmem doctor"
