"""Create the log of a clone, and choose where it is published. The merge driver is installed separately."""

from __future__ import annotations

import os
import time

from ..errors import UsageError
from ..git.objects import Draft
from ..log import committer, ref
from ..log.committer import start_log
from ..log.lines import format_at
from ..outcome import Outcome, command, quote
from . import autosync, consent, exchange, rebase
from .remote import choose
from .sync_remotes import UNSENT, RemoteResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..log.local_log import LocalLog
    from ..store import Store

SECONDS = 30.0  # for each run of git on the network
PUBLISH_CHOICES = {"branch": ref.BRANCH, "hidden": ref.LOG_REF}


class Initialised(Outcome, kw_only=True):
    """The result of `init`.

    Attributes:
        log: The ref.
        state: `started` (a new log), `adopted` (the log of the remote or of this clone), or `present` (already there).
        publish: Where remotes keep it: `branch` or `hidden`.
        tip: The log's last commit.
        remote: The result of fetching the remote's log; None without a remote.
        publishes_to: The usual remote's URL, without credentials, if syncs may publish the log there; else None.
        agreed: Whether this call has recorded that consent.
        autosync: How often gitmem syncs automatically, such as `30s`; None if it does not.
    """

    log: str = ref.LOG_REF
    state: str
    publish: str
    tip: str
    remote: RemoteResult | None
    publishes_to: str | None = None
    agreed: bool = False
    autosync: str | None = None
    remarks: list[str] = []
    next: list[str] = []


class Uninstalled(Outcome):
    """What is left of the log once nothing of gitmem is installed.

    Attributes:
        kept: What was kept: the refs and gitmem's own folder.
        remove: The commands that delete these too. Lines that were never pushed are lost then.
    """

    kept: list[str]
    remove: list[str]
    remarks: list[str]


def init(
    store: Store,
    *,
    publish: str | None = None,
    consents: bool | None = None,
) -> Initialised:
    """Create the log of this clone: from the remote if it is reachable, else from this clone, else a new one.

    Nothing is pushed. A second call only adds the remote's new lines.

    Args:
        publish: `branch` or `hidden`: where all clones shall publish the log. None leaves it unchanged.
        consents: Whether the user agrees that syncs publish the log at the current URL of the usual remote; False withdraws
            that; None leaves it unchanged.

    Raises:
        UsageError: `bad-ref`; `foreign-log`, if the remote's log is of another project.
        StoreError: The log can't be read or written.
    """
    if publish is not None and publish not in PUBLISH_CHOICES:
        raise UsageError(
            f"Invalid --ref: {publish!r}; choose from branch, hidden. Nothing was changed.",
            code="bad-ref",
            suggestions=list(PUBLISH_CHOICES),
        )
    log = store.log
    log.committer = log.committer or store.committer()
    before = log.git.tip(ref.LOG_REF)
    remote, remark, agreed = _fetch_and_unite(store, consents)
    tip = log.git.tip(ref.LOG_REF) or rebase.start_alone(log)
    changed = publish is not None and set_publish_ref(store.log, PUBLISH_CHOICES[publish])
    tip = log.git.tip(ref.LOG_REF) or tip
    form = rebase.own_tip(log, tip).format
    place = "hidden" if form.publish == ref.LOG_REF else "branch"
    state = "present" if before else ("adopted" if log.git.tip(ref.PUBLISHED_REF) else "started")
    outcome = Initialised(state=state, publish=place, tip=tip, remote=remote)
    may_publish = remote is not None and consent.is_given(store.repo, remote.url)
    outcome.publishes_to = remote.url if remote is not None and may_publish else None
    outcome.agreed = agreed
    outcome.remarks = [remark] if remark else []
    if changed and before is not None:
        outcome.remarks.append(
            f"From the next sync on, the log is published at {form.publish}; every clone follows. "
            f"The old ref remains on remotes until somebody deletes it."
        )
    store.refresh()
    outcome.autosync = autosync.configured_interval(store.repo)
    outcome.next = ["gitmem roster"]
    if remote is not None:
        sync = "gitmem sync" if may_publish else "gitmem sync --publish"
        outcome.next.append(sync if remote.state != "empty" else command("git", "push", remote.name, "HEAD"))
    return outcome


def apply_autosync(store: Store, outcome: Initialised, every: str | None) -> None:
    """Apply the new interval, or None for off, to the state of autosync and to the result of `init`."""
    autosync.switch(store.repo, every is not None)
    outcome.autosync = every
    if every is not None and outcome.remote is None:
        outcome.remarks.append("Automatic syncs begin once there is a remote.")


def _fetch_and_unite(store: Store, consents: bool | None) -> tuple[RemoteResult | None, str, bool]:
    """Fetch and unite the log of the usual remote. A missing or unreachable remote is only a remark.

    Returns:
        The result, the remark, and whether consent was given now.
    """
    try:
        names, leads = choose(store, (), all=False)
    except UsageError as error:
        if error.code == "which-remote":
            return (
                None,
                "There are several remotes and no default: name one, as in `gitmem sync NAME`.",
                False,
            )
        return None, "", False
    at = format_at(store.now())
    (found,) = exchange.exchange(
        store.log,
        names[:1],
        timeout=SECONDS,
        may_send=lambda remote: False,
        push=False,
        leads=leads,
    )
    agreed = False
    if consents is False:
        consent.withdraw(store.repo, found.destination)
    elif consents:
        agreed = not consent.is_given(store.repo, found.destination)
        consent.give_consent(store.repo, found.destination, consent.BY_SETUP, at)
    state = RemoteResult(found)
    tip = store.git.tip(ref.LOG_REF)
    if state.state == "up-to-date" and state.tip and tip and not store.git.contains(state.tip, tip):
        state.state = UNSENT
    if state.state == "offline":
        return (
            state,
            f"{state.message} The log here works without it; `gitmem sync` catches up later.",
            agreed,
        )
    return state, state.message, agreed


def uninstall(store: Store, *, dry_run: bool = False) -> Uninstalled:
    """Report the remaining refs and files when the merge driver is removed: the log is never deleted for the user.

    Unless it is a dry run, nothing is published any more until the user agrees again.
    """
    repo, git = store.repo, store.git
    if not dry_run:
        consent.withdraw_all(repo)
    refs = git.refs("refs/gitmem/")
    kept, remove, remarks = sorted(refs), [], []
    at = quote(repo.worktree or repo.common)
    if refs:
        remove.append(
            f"git -C {at} for-each-ref --format='delete %(refname)' refs/gitmem/ | git -C {at} update-ref --stdin"
        )
    if os.path.isdir(repo.state):
        kept.append(repo.state)
        remove.append(command("rm", "-r", repo.state))
    tip, published = git.tip(ref.LOG_REF), git.tip(ref.PUBLISHED_REF)
    waiting = any(file.size for wal in store.log.wals for file in wal.files())
    unsent = waiting or (tip is not None and (published is None or not git.contains(published, tip)))
    if unsent and store.has_remote():
        remarks.append(
            "This clone has lines that no remote is known to have: `gitmem sync --publish` sends them."
        )
    if published is not None and store.has_remote():
        remarks.append(
            "The branch gitmem of the remote stays for the others; `git push REMOTE :gitmem` deletes it."
        )
    key = store.writers.describe()[1]
    if key and not key.startswith(os.path.join(repo.state, "")):
        remarks.append(f"Your key stays: {key}. It signs for you in other clones of this project, too.")
    return Uninstalled(kept, remove, remarks)


def set_publish_ref(log: LocalLog, ref_name: str, swaps: int = committer.SWAPS_MAX) -> bool:
    """Record in `format` where the log is published, for all clones; return False if it is recorded already."""
    git = log.git
    for _ in range(swaps):
        with rebase.take_lock(log) as lock:
            tip = git.tip(ref.LOG_REF) or start_log(log)
            form = rebase.own_tip(log, tip).format
            if form.publish == ref_name:
                return False
            new = ref.Format.make(turn=form.turn + 1, publish=ref_name)
            who = log.signature()
            draft = Draft({"format": new.content}, who, who, f"Publish the log at {ref_name}\n")
            if git.advance(ref.LOG_REF, tip, draft, "publish") is not None:
                return True
            if lock.is_held:
                git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
        time.sleep(0.002 + 0.01 * log.random(1)[0] / 255)
    raise ref.locked("nothing was changed")
