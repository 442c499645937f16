"""Rebase local commits onto the shared tip and merge every known tip and outbox.

The new tip is made without the lock. The lock is taken only to rebase commits that were added meanwhile and to swap
the ref. If the union equals the shared tip's tree, the new tip is the shared tip.
"""

from __future__ import annotations

import os
import time

from ..errors import RemoteError, StoreError
from ..git import plumbing
from ..git import plumbing as git_repair
from ..git.objects import Draft
from ..git.packs import localize
from ..log import committer, forgetting, ledger, log_refs, recovery, ref, tree_union
from ..log.committer import new_log, start_log
from ..log.forgetting import Forgotten
from ..log.lines import count_records, reduced
from ..log.squash import commit, squash
from ..log.union import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..git.objects import Move
    from ..git.port import Git
    from ..log.local_log import LocalLog
    from ..log.lock import Lock
    from ..log.log_refs import LogTip
    from ..log.tree_union import Changes


ROUNDS_MAX = 20


def rebase_log(  # noqa: C901  (one loop until the union holds)
    log: LocalLog,
    shared: LogTip | None,
    tips: Sequence[LogTip],
    outboxes: Sequence[LogTip] = (),
    *,
    announce: bool = True,
) -> str:
    """Move the log's ref to the union of itself, `tips` and `outboxes`; return the new tip.

    Args:
        shared: The tip that history follows, one of `tips`; None if a remote has none.
        tips: Logs that may be united with ours.
        outboxes: Outboxes whose lines the shared tip lacks.
        announce: Whether to announce the move (`committer.notify_moved`, `note_shared_published`); else the caller does it soon.

    Raises:
        StoreError: The ref is unchanged.
    """
    git = log.git
    try:
        local = git.tip(ref.LOG_REF) or start_alone(log)
        new = build_tip(log, local, shared, tips, outboxes)
        for attempt in range(ROUNDS_MAX):
            localize(log.repo.common, new)
            with take_lock(log) as lock:
                late = _since(log, local)
                if late is not None:
                    now = late[-1] if late else local
                    done = squash(git, late, new)
                    if _drops_lines(log, now, done):
                        if not late:
                            raise _drop_error(now, done)
                        late = None  # commits that were added meanwhile need another union
                    elif done == now or git.swap(ref.LOG_REF, now, done, "sync"):
                        break
                    elif lock.is_held:
                        git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
            if late:
                new, local = done, late[-1]
            elif late is None:
                local = git.tip(ref.LOG_REF) or start_alone(log)
                new = build_tip(log, local, shared, tips, outboxes)
            time.sleep(min(0.002 * 1.5**attempt, 0.2) * log.random(1)[0] / 255)
        else:
            raise ref.locked("nothing is lost")
    except KeyError as error:
        raise ref.missing_object(error, "nothing was changed") from error
    if done != now:
        ledger.append(log.repo, (), done)
        gone = _dropped(log, now, done)
        ledger.replace(log.repo, {ledger.digest(line): ledger.digest(reduced(line)) for line in gone})
        forgetting.cut_files(log, gone)
        if gone:
            plumbing.expire_unreachable(log.repo.common, [ref.LOG_REF])
    if announce:
        if done != now:
            committer.notify_moved(log)
        note_shared_published(log, done, shared)
    return done


def _drops_lines(log: LocalLog, now: str, new: str) -> bool:
    """Return whether a new tip lacks any line of the current one: no sync may remove lines, whatever a remote has.

    Of one that is forgotten it has the reduced form.
    """
    if new == now:
        return False
    old, tree = log.git.commit(now).tree, log.git.commit(new).tree
    return bool(Forgotten(log, [tree]).union_changes(tree, [old]))


def _dropped(log: LocalLog, now: str, new: str) -> list[bytes]:
    """Return the forgotten lines whose texts a new tip does not have any more."""
    tree = log.git.commit(new).tree
    return Forgotten(log, [tree]).dropped(log.git.commit(now).tree, tree)


def _drop_error(now: str, new: str) -> StoreError:
    return StoreError(
        f"The union {new[:12]} lacks lines that {ref.LOG_REF} has at {now[:12]}. Nothing was changed.",
        hint="Run `gitmem doctor`, and report this error with its output.",
        code="would-lose",
        next=["gitmem doctor"],
    )


def start_alone(log: LocalLog) -> str:
    """Start the log while holding our lock, so that a stale lock on the ref may be broken."""
    with take_lock(log):
        return start_log(log)


def _since(log: LocalLog, local: str) -> list[str] | None:
    """Return the commits that were added on top of `local`; None if the ref no longer contains it."""
    now = log.git.tip(ref.LOG_REF)
    if now == local:
        return []
    if now is None or not log.git.contains(now, local):
        return None
    return log.git.history(now, [local])


def build_tip(
    log: LocalLog, local: str, shared: LogTip | None, tips: Sequence[LogTip], outboxes: Sequence[LogTip] = ()
) -> str:
    """Return the new tip: on the shared tip our own lines, those of outboxes, then at most one repair commit.

    The history of an earlier epoch is left behind: all its lines are in that commit.
    """
    git = log.git
    own = own_tip(log, local)
    current = [*tips, *outboxes, own]
    forgotten = Forgotten(log, [tip.tree for tip in current])
    base = _base(log, local, shared)
    top = base
    if shared is None or shared.format.epoch <= own.format.epoch:
        top = squash(git, git.history(local, [base]), base, [box.tree for box in outboxes] or None)
    top = forgotten.without(base, fold(git, outboxes, top))
    tree = git.commit(top).tree
    changes = forgotten.union_changes(tree, [tip.tree for tip in current])
    if not any(tip.projects for tip in current):
        changes.update({f"projects/{oid}": b"" for oid in log_refs.own_projects(log)})
    if not changes:
        return top
    return write_repair(log, top, changes, tree_union.count_added(git, tree, changes))


def fold(git: Git, outboxes: Sequence[LogTip], onto: str) -> str:
    """Commit the content of outboxes on a tip, with the messages of all of them; return the new tip, the same in every clone."""
    ordered = sorted(outboxes, key=lambda box: (git.commit(box.oid).author.seconds, box.oid))
    commits = [oid for box in ordered for oid in git.history(box.oid, [onto])]
    changes = tree_union.union_changes(git, git.commit(onto).tree, [box.tree for box in ordered])
    return commit(git, onto, changes, commits)


def own_tip(log: LocalLog, oid: str) -> LogTip:
    """Return this clone's own log.

    Raises:
        StoreError: It is not a log, has a wrong epoch, or needs a newer gitmem.
    """
    try:
        own = log_refs.read(log, ref.LOG_REF, oid, [oid])
    except log_refs.NotALog as why:
        raise StoreError(
            f"{ref.LOG_REF} is at {oid[:12]}, which is not a gitmem log ({why}). Nothing was changed.",
            hint="Its reflog shows where it was before; move it back with `git update-ref`.",
            code="not-a-log",
            next=[f"git reflog {ref.LOG_REF}", "gitmem doctor"],
        ) from None
    own.format.refuse_newer()
    published = log.git.tip(ref.PUBLISHED_REF)
    wrong = forgetting.epoch_problem(log, own, [published] if published is not None else [])
    if own.format.epoch and wrong:
        raise StoreError(
            f"{ref.LOG_REF} is at {oid[:12]}, whose {wrong}. Nothing was changed.",
            hint="A peer replaced the log with it; `gitmem doctor --fix` restores the log that was there before.",
            code="bad-epoch",
            next=["gitmem doctor --fix"],
        )
    return own


def _base(log: LocalLog, local: str, shared: LogTip | None) -> str:
    """Return the base of our own commits. Published commits never change, even if a remote was rewound."""
    git = log.git
    published = git.tip(ref.PUBLISHED_REF)
    if (
        published is not None
        and git.has(published)
        and git.contains(local, published)
        and (shared is None or _is_older(git, shared.oid, published))
    ):
        return published
    return shared.oid if shared is not None else ref.genesis(local)


def write_repair(log: LocalLog, top: str, changes: Changes, count: int) -> str:
    """Write a commit that adds `count` lines or repairs the form of files; return the new tip."""
    who = log.signature()
    lines = f"{count} lines that were" if count != 1 else "1 line that was"
    message = f"Repair: {lines} missing\n" if count else "Repair: the form of the log's files\n"
    return log.git.write([Draft(changes, who, who, message)], top)[0]


def note_shared_published(log: LocalLog, tip: str, shared: LogTip | None, also: Sequence[Move] = ()) -> None:
    """Record that a remote has the shared tip, if the log's new tip contains it."""
    if shared is not None and log.git.contains(tip, shared.oid):
        note_published(log, tip, shared.oid, also)


def note_published(log: LocalLog, tip: str, oid: str, also: Sequence[Move] = ()) -> None:
    """Record that a remote has the log's history up to `oid`, which `tip` contains.

    Args:
        also: Refs to move with it, if they are unchanged.
    """
    git = log.git
    for _ in range(3):
        old, moves = git.tip(ref.PUBLISHED_REF), [move for move in also if git.tip(move[0]) == move[1]]
        more = old is not None and git.has(old) and _is_older(git, oid, old) and git.contains(tip, old)
        if old != oid and not more:  # else a later commit was published before: a remote was rewound
            moves.insert(0, (ref.PUBLISHED_REF, old, oid))
        if not moves or git.swap(*moves[0], "sync", moves[1:]):
            return
        break_stale_locks(log)


def _is_older(git: Git, oid: str, than: str) -> bool:
    """Return whether a commit is `than` or an ancestor of it; test the opposite first, which is common and fast."""
    return oid == than or (not git.contains(oid, than) and git.contains(than, oid))


def commit_before_sync(log: LocalLog) -> str:
    """Commit the entries of the write-ahead logs, deferred ones too; wait for another process that commits.

    Returns:
        Why entries still wait, as a sentence; "" if none do.
    """
    for _ in range(2):  # those that can't be attested are left by the first commit, and said by the second
        if not log.waiting(deferred=True):
            return ""
        try:
            if committer.commit_within(log, log.lock_seconds, deferred=True) is None:
                return "Uncommitted records were not sent: another process has the log's lock."
        except StoreError as error:
            if error.code != committer.NO_KEY:
                raise
            return f"Uncommitted records were not sent. {error.message} {error.hint}"
    return ""


def take_lock(log: LocalLog) -> Lock:
    """Return the log's lock, which is not held if the timeout expired: the swap is correct without it.

    Raises:
        StoreError: `read-only`; nothing was changed.
    """
    if not log.make_state():
        raise plumbing.left_by_another(log.repo.common, "Nothing was changed.") or StoreError(
            f"{log.repo.common} cannot be written. Nothing was changed.",
            hint="Correct its permissions, or use a process with write access.",
            code="read-only",
        )
    deadline = time.monotonic() + log.lock_seconds
    lock = log.lock()
    while not lock.take() and time.monotonic() <= deadline:
        time.sleep(0.002 + 0.01 * log.random(1)[0] / 255)
    return lock


def fetch(log: LocalLog, url: str, prefix: str, timeout: float) -> dict[str, tuple[str, str]]:
    """Fetch the log's refs of a remote; return those that could not be fetched, with commit and reason.

    Raises:
        RemoteError: The fetch failed.
    """
    log.network.unlimited = log.allow_large
    try:
        return dict(log.network.fetch(url, prefix, timeout) or {})
    except (RemoteError, StoreError):
        if not break_stale_locks(log):  # a killed fetch leaves locks on our copies
            raise
        return dict(log.network.fetch(url, prefix, timeout) or {})


def break_stale_locks(log: LocalLog) -> bool:
    """Remove the locks that killed processes left on gitmem's refs; return whether there were any."""
    with take_lock(log) as lock:
        if not lock.is_held:
            return False
        # In a reftable this is the lock of all refs, and there is no folder of ref files.
        broken = log.git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
        for folder, _, names in os.walk(os.path.join(log.repo.common, "refs", "gitmem")):
            for name in names:
                if name.endswith(".lock"):
                    path = os.path.relpath(os.path.join(folder, name[:-5]), log.repo.common)
                    name_of_ref = path.replace(os.sep, "/")
                    broken = log.git.break_stale_lock(name_of_ref, ref.STALE_LOCK_SECONDS) or broken
    return broken


def repair_base(log: LocalLog, tip: str | None) -> str:
    """Return the commit to repair on: the log's tip, else the newest undamaged commit, else a new first commit.

    Raises:
        StoreError: The log has a newer format.
    """
    sound = recovery.CompletenessCheck(log)
    found = tip
    if tip is None or not sound.commit(tip) or not recovery.is_log(log, tip):
        found = recovery.last_complete(log, sound, tip)
    if found is not None:
        own_tip(log, found).format.refuse_newer()
        if found != tip:
            log.git.write(
                [ref.genesis_draft()], None
            )  # git knows the empty tree, but reports it as missing after a gc deleted it
        return found
    return new_log(log)


def reapply(log: LocalLog, oid: str, top: str) -> str:
    """Commit on `top` the additions of a former tip's commits; return the new tip, or `top` if one is damaged."""
    try:
        return squash(log.git, log.git.history(oid, [top]), top)
    except (KeyError, StoreError):
        return top


def segments(log: LocalLog, commit: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every segment in an undamaged commit."""
    for path, entry, content in recovery.walk_contents(log.git, commit):
        if tree_union.is_plain_segment(path, entry):
            yield path, content


def repair_log(log: LocalLog, top: str, lines: Mapping[str, Sequence[bytes]]) -> str:
    """Write one commit with missing lines and the right form of files on `top`; return the new tip.

    Args:
        lines: The missing lines, by path.
    """
    left = dict(lines)
    changes: Changes = {}
    for path, entry, old in recovery.walk_contents(log.git, top):
        name = path.rstrip("/")
        added = left.pop(name, ())
        if tree_union.is_plain_segment(path, entry):
            content = _with_lines(changes, path, old, added)
            if content != old:
                changes[path] = content
        elif added:
            _add_overflow_file(changes, name, added)
        if tree_union.is_too_deep(path):
            changes[name] = None
    for path, added in left.items():
        if content := _with_lines(changes, path, b"", added):
            changes[path] = content
    changes.update(_fixed(log, top))
    if not changes:
        return top
    return write_repair(log, top, changes, sum(map(count_records, lines.values())))


def _with_lines(changes: Changes, path: str, old: bytes, added: Sequence[bytes]) -> bytes:
    """Return a file in canonical form with added lines; if it gets too large, write them to another file."""
    content = canonical(b"\n".join([old, *added]))
    if added and len(content) > ref.UNION_BYTES_MAX:
        _add_overflow_file(changes, path, added)
        return canonical(old)
    return content


def _add_overflow_file(changes: Changes, path: str, added: Sequence[bytes]) -> None:
    content = canonical(b"\n".join(added))
    changes[tree_union.overflow_path(path, content)] = content


def _fixed(log: LocalLog, top: str) -> Changes:
    """Return the fixed files that are missing."""
    root = log.git.tree(log.git.commit(top).tree)
    wanted = ref.fixed_files(b"", ())
    found = {name: wanted[name] for name in tree_union.FIXED[1:] if name not in root}
    if not ref.project_ids(log.git, root):
        found.update({f"projects/{oid}": b"" for oid in log_refs.own_projects(log)})
    return found


def swap_log_ref(log: LocalLog, tip: str | None, new: str) -> bool:
    """Swap the log's ref; return False if it has moved meanwhile, or is locked."""
    with take_lock(log) as lock:
        if log.git.swap(ref.LOG_REF, tip, new, "doctor"):
            ledger.append(log.repo, (), new)  # recovery reads it if the reflog is lost
            return True
        if lock.is_held:
            log.git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
        return False


def forget_damaged(log: LocalLog, tip: str | None) -> list[str]:
    """Delete our damaged copies, which the next sync fetches again, and refs on which git's gc would fail.

    Args:
        tip: The log's tip, if that can't be read.
    """
    every = log.git.refs("refs/gitmem/")
    found = [
        name
        for name in recovery.damaged_copies(log)
        if git_repair.delete_ref(log.repo.common, name, every[name])
    ]
    if tip is not None and not recovery.CompletenessCheck(log).commit(tip):
        git_repair.expire_broken(log.repo.common, ref.LOG_REF)
    return found
