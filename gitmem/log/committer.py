"""Commit all entries of the write-ahead logs: make one commit, update the index, then remove the files.

A crash at any point leaves either the files or the commit. Files that are committed a second time add nothing. `pack_if_due` then
merges the log's small packs, outside the lock of the log. The first commit needs a log: `start_log` adopts one that the clone
already has, else creates one.
"""

from __future__ import annotations

import os
import time

from .. import local_files
from ..errors import GitmemError, StoreError, UsageError
from ..git import packs
from ..git.objects import Draft, Signature
from ..outcome import Struct
from ..text.digests import sha256, token_of
from . import ledger, lines, lock, log_refs, ref, write_ahead
from .lines import SUBJECT_MAX, CommitMessage, LogEntry, parse_row, split_entry
from .lock import Lock
from .union import canonical, union
from .write_ahead import READ_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..git.objects import TreeEntry
    from ..git.port import Git
    from .local_log import LocalLog, Sealer
    from .write_ahead import WalFile, WriteAheadLog


def changes_of(
    git: Git, tree: str, entries: Iterable[LogEntry]
) -> tuple[dict[str, bytes | TreeEntry | None], bool]:
    """Return the changes that entries make in a tree, and whether the open segment is full afterwards."""
    by_token: dict[tuple[str, str], list[bytes]] = {}
    for entry in entries:
        for stream, line in entry.lines:
            path = ref.segment_path(stream, line, entry.token)
            by_token.setdefault((path, entry.token), []).append(line)
    changes: dict[str, bytes | TreeEntry | None] = {}
    full = False
    for (path, token), added in by_token.items():
        full = _add(git, tree, path, token, added, changes) or full
    return changes, full


def next_token(token: str) -> str:
    """Return the token of the segment after a full one. It is derived, so a repeated append uses the same one."""
    return token_of(sha256(token.encode()).digest()[:8])


def _add(
    git: Git,
    tree: str,
    path: str,
    token: str,
    lines: Sequence[bytes],
    changes: dict[str, bytes | TreeEntry | None],
) -> bool:
    """Add the lines of one segment; lines that do not fit go to the next segments. Return whether one is full."""
    full = False
    left: Sequence[bytes] = canonical(b"\n".join(lines)).split(b"\n")[:-1]
    while left:
        there = changes.get(path)
        old = there if isinstance(there, bytes) and there else ref.content_at(git, tree, path)
        some, rest = _split_by_size(old, left)
        content = union(old, *some)
        if rest:
            known = set(content.split(b"\n"))
            rest = [line for line in rest if line not in known]
        if content != old and len(content) <= ref.UNION_BYTES_MAX:  # else only its form would change
            changes[path] = content
        full = full or len(content) >= ref.SEGMENT_MAX_BYTES
        left, followed = rest, next_token(token)
        path, token = path.removesuffix(f"{token}.jsonl") + f"{followed}.jsonl", followed
    return full


def _split_by_size(old: bytes, lines: Sequence[bytes]) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Split lines into those that fit into a segment, and the rest."""
    room = ref.SEGMENT_BYTES_MAX - len(old)
    for number, line in enumerate(lines):
        if room <= 0:
            return lines[:number], lines[number:]
        room -= len(line) + 1
    return lines, []


def draft(log: LocalLog, entries: Sequence[LogEntry], changes: dict[str, bytes | TreeEntry | None]) -> Draft:
    """Return the draft of the commit of entries: changes of the tree, signatures and message."""
    combined = combine_messages(entries)
    name, mail = split_author(combined.author)
    at = max((lines.parse_at(line[7:34].decode()) for entry in entries for _, line in entry.lines))
    author = Signature(name, mail, at // 1_000_000)
    committer = log.signature((name, mail))
    message = combined.subject + "\n"
    if combined.body:
        message += "\n" + combined.body.strip("\n") + "\n"
    if combined.trailers:
        message += "\n" + "".join(f"{key}: {value}\n" for key, value in combined.trailers)
    return Draft(changes, author, committer, message)


def combine_messages(entries: Sequence[LogEntry]) -> CommitMessage:
    """Return one message for entries that share a commit.

    It is the message of the only entry that is not deferred, else a summary: see `summary`. It has the trailers of all
    entries.
    """
    immediate = [entry for entry in entries if not entry.deferred] or list(entries)
    first = immediate[0].message
    ordered = [*immediate, *(entry for entry in entries if entry not in immediate)]
    found = dict.fromkeys(trailer for entry in ordered for trailer in entry.message.trailers)
    keys = dict.fromkeys(key for key, _ in found)
    trailers = [trailer for key in keys for trailer in found if trailer[0] == key]
    if len(immediate) == 1:
        return CommitMessage(first.author, first.subject, first.body, trailers)
    records = sum(len(entry.lines) for entry in entries)
    subjects = [entry.message.subject for entry in immediate]
    shown = most_telling(subjects)
    author = immediate[subjects.index(shown)].message.author
    return CommitMessage(author, summary(shown, records), "\n".join(subjects), trailers)


def most_telling(subjects: Sequence[str]) -> str:
    """Return the first subject of a decision, else of a proposal or passed gate, of a signal or task, of a note, or of all."""
    return min(subjects, key=_rank)


def _rank(subject: str) -> int:
    head, _, text = subject.partition(": ")
    first = text.partition(" ")[0]
    signs = (
        first in ("AGREE", "REJECT"),
        first in ("PROPOSE", "COUNTER") or " passes " in head,
        "→" in head or head.endswith((" completed", " failed")),
        first in ("note", "discovery", "checkpoint", "summary"),
    )
    return signs.index(True) if True in signs else len(signs)


def summary(subject: str, records: int) -> str:
    """Return the subject of a commit of several records: that of one of them, and how many more it has."""
    more = f" +{records - 1}" if records > 1 else ""
    longest = SUBJECT_MAX - len(more)
    return (subject if len(subject) <= longest else subject[: longest - 1].rstrip() + "…") + more


def split_author(author: str) -> tuple[str, str]:
    """Split `Name <mail>`; remove angle brackets (git stores none), control and bidi characters from both."""
    name, _, mail = author.partition("<")
    return _clean(name) or "gitmem", _clean(mail) or "gitmem"


def _clean(text: str) -> str:
    kept = "".join(char for char in text if char.isprintable() and char not in "<>")
    return kept.strip(" .,:;\"'\\")


OBJECTS_AT_ONCE = 2_000  # take some hundredths of a second, less than starting a process


def pack_if_due(log: LocalLog, start: Callable[[], object] | None) -> None:
    """Pack if enough small packs have accumulated. Errors are ignored: packing is never the caller's failure.

    Args:
        start: Starts packing in another process; used when there is too much to do in this one.
    """
    try:
        count = packs.objects_due(log.repo.common)
        if count > OBJECTS_AT_ONCE and start is not None:
            start()
        elif count:
            combine_packs(log)
    except (GitmemError, OSError):
        return


def combine_packs(log: LocalLog) -> int:
    """Merge the log's small packs into one.

    Returns:
        The number of packs that were merged; 0 also if another process is packing.

    Raises:
        StoreError: Packing failed. Nothing was lost or partly done.
    """
    lock = Lock(os.path.join(log.repo.state, "packing.lock"), background=True)
    if not log.make_state() or not lock.take():
        return 0
    with lock:
        return packs.combine(log.repo.common)


WAITS = "the records are kept and wait for their commit"
NO_KEY = "no-key"  # the code of the error when nothing that waits can be attested
SWAPS_MAX = 40
READER_SWAPS_MAX = 2  # the first may find and break a stale lock, the second retries: some milliseconds
WRITER_SECONDS = 0.2  # for a writer that keeps its file; then its entry waits for the next commit
PAUSE_SECONDS = 0.002
FILES_AT_ONCE = 1_000  # limit of one commit


class _LockedGeneration(Struct):
    """A write-ahead log file whose entries go into the commit: open, and locked if possible.

    Attributes:
        damaged: Whether it contains bytes that are not entries.
        whole: Whether it has no writer any more and all of it was read.
        lacks_key: Whether it has entries that cannot be attested now.
    """

    file: WalFile
    handle: int
    whole: bool
    damaged: bool = False
    lacks_key: bool = False


def waiting_rows(log: LocalLog, *, deferred: bool = False) -> list[tuple[str, bytes]]:
    """Return stream and line of every entry that waits for a commit, unchecked. Unreadable files are skipped."""
    found = []
    for wal in log.wals:
        for file in wal.files():
            try:
                tail = wal.read(file) if deferred or not file.is_deferred else None
                for payload, _ in tail.entries if tail else ():
                    found += [parse_row(row) for row in split_entry(payload)[1]]
            except (OSError, ValueError):
                continue
    return found


def commit_waiting(
    log: LocalLog,
    *,
    deferred: bool = False,
    swaps: int | None = None,
    files_max: int = FILES_AT_ONCE,
    keep: Callable[[Sequence[LogEntry]], object] | None = None,
) -> str | None:
    """Commit everything that waits, including deferred entries.

    Args:
        deferred: Commit even if only deferred entries wait.
        swaps: How often to try to move the ref; default `SWAPS_MAX`.
        files_max: The number of files that one commit takes.
        keep: Stores the entries of writers whose key is missing, durably, before their files are removed; without it they wait on,
            see `LocalLog.sealer`.

    Returns:
        The commit, or None if nothing waited or the commit has to wait.

    Raises:
        StoreError: The commit failed. Everything still waits.
    """
    commit = None
    while log.waiting(deferred=deferred):
        held = log.lock()
        if not log.make_state() or not held.take():
            return None
        taken: list[_LockedGeneration] = []
        try:
            with held:
                done = _commit(log, taken, swaps, files_max, keep)
            if done is None:
                return None
            commit = done
            notify_moved(log)
            for each in taken:
                _remove(each)
        finally:
            for each in taken:
                os.close(each.handle)
        if len(taken) < files_max:
            break
    return commit


def commit_within(
    log: LocalLog, seconds: float, *, deferred: bool = False, swaps: int | None = None
) -> str | None:
    """Commit all entries that wait now; if another process is committing them, wait for it.

    Args:
        seconds: The timeout.
        deferred: Commit even if only deferred entries wait.
        swaps: How often to try to move the ref; default `SWAPS_MAX`.

    Returns:
        A commit that has everything: the new one, or the log's tip if another process made it.
        None if something still waits after the timeout.
    """
    names = {file.path for file in log.waiting(deferred=deferred)}
    deadline = time.monotonic() + seconds
    pause = PAUSE_SECONDS
    while True:
        commit = commit_waiting(log, deferred=deferred, swaps=swaps)
        if commit is not None:
            return commit
        if not names.intersection(file.path for file in log.waiting(deferred=True)):
            return log.git.tip(ref.LOG_REF)
        if time.monotonic() >= deadline or not log.make_state():
            return None
        time.sleep(pause * (0.5 + log.random(1)[0] / 256))
        pause = min(pause * 1.5, 0.02)


def _commit(
    log: LocalLog,
    taken: list[_LockedGeneration],
    swaps: int | None,
    files_max: int,
    keep: Callable[[Sequence[LogEntry]], object] | None,
) -> str | None:
    """Make the commit; the caller holds the lock. The files that were read are in `taken` even after an error."""
    entries: list[LogEntry] = []
    kept: list[LogEntry] | None = [] if keep is not None else None
    sealer, before = log.sealer() if log.sealer is not None else None, log.git.tip(ref.LOG_REF)
    try:
        for wal in log.wals:
            if wal.files():
                wal.rotate()
                for file in _closed_generations(wal)[: files_max - len(taken)]:
                    entries += _attestable(sealer, taken, _read(wal, file, taken), kept)
    except OSError as error:
        raise _unwritable(error) from error
    commit = before if taken else None
    if entries:
        commit = _commit_entries(log, sealer, entries, [each.file for each in taken], swaps)
    if keep is not None and kept and commit is not None:
        keep(kept)
    stuck = [each.file for each in taken if each.lacks_key]
    if stuck and commit == before:
        raise _no_key(stuck[0])
    return commit


def _no_key(file: WalFile) -> StoreError:
    return StoreError(
        f"The key is missing by which records of {file.path} are attested; {WAITS}.",
        hint="Put the key file back, or let GITMEM_KEY_FILE name it; if it is lost, `gitmem doctor` says what to do.",
        code=NO_KEY,
        next=["gitmem doctor"],
    )


def _attestable(
    sealer: Sealer | None,
    taken: Sequence[_LockedGeneration],
    entries: Sequence[LogEntry],
    kept: list[LogEntry] | None,
) -> list[LogEntry]:
    """Return the entries of the file that was read last which can be attested now; the others go to `kept`, or wait in the file."""
    if sealer is None:
        return list(entries)
    found = []
    for entry in entries:
        writers = {lines.writer_of(line) for _, line in entry.lines}
        if not any(map(sealer.lacks, sorted(writers))):
            found.append(entry)
        elif kept is not None:
            kept.append(entry)
        else:
            taken[-1].whole = False
            taken[-1].lacks_key = True
    return found


def _closed_generations(wal: WriteAheadLog) -> list[WalFile]:
    """Return the files that get no further entries: all but the newest ones of one listing.

    Without file locks, writers rely on it that the newest generation is never removed. With a second listing, one that
    was created in between would count as closed.
    """
    files = wal.files()
    current = {
        max((file.name for file in files if file.name.endswith(end)), default="")
        for end in (write_ahead.WAL, write_ahead.DEFERRED)
    }
    return [file for file in files if file.name not in current]


def _read(wal: WriteAheadLog, file: WalFile, taken: list[_LockedGeneration]) -> list[LogEntry]:
    """Lock and read a file. Content that is not a valid entry stays in the file; `doctor` lists it."""
    try:
        handle = write_ahead.open_to_read(file.path)
    except OSError:
        return []
    if handle is None:
        return []
    each = _LockedGeneration(file, handle, whole=_is_left(handle))
    taken.append(each)
    try:
        tail = wal.read(file, large=True)
        if os.fstat(handle).st_size > READ_BYTES_MAX:  # no writer has done that: the rest is nobody's
            file.size = os.fstat(handle).st_size
    except (OSError, ValueError):
        each.whole = False
        return []
    if tail is None:
        return []
    each.damaged = bool(tail.damaged or tail.end != file.size)
    entries = []
    for payload, _ in tail.entries:
        try:
            entries.append(LogEntry.decode(payload, deferred=file.is_deferred))
        except ValueError:
            each.damaged = True  # the other entries are committed nevertheless
    return entries


def _is_left(handle: int) -> bool:
    """Lock a file once all its writers have released it; False after a short timeout, as a writer may be stopped."""
    deadline = time.monotonic() + WRITER_SECONDS
    while not lock.lock_file(handle, exclusive=True):
        if time.monotonic() >= deadline:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def _remove(each: _LockedGeneration) -> None:
    """Remove a committed file unless it was written to since. A damaged file is renamed and kept for `doctor`."""
    try:
        if each.whole and os.fstat(each.handle).st_size == each.file.size:
            local_files.refuse_link(os.path.dirname(each.file.path))
            if each.damaged:
                os.replace(each.file.path, each.file.path + write_ahead.DAMAGED)
            else:
                os.unlink(each.file.path)
    except OSError:
        return  # it is committed, and committing it again adds nothing


def _commit_entries(
    log: LocalLog,
    sealer: Sealer | None,
    entries: Sequence[LogEntry],
    files: Sequence[WalFile],
    swaps: int | None,
) -> str | None:
    """Put entries into one commit and move the ref.

    The caller holds the lock (git and people do not respect it) and calls `notify_moved` after releasing it.

    Args:
        files: The files that the entries were read from.

    Returns:
        The commit, or None if the compare-and-swap was lost too often.

    Raises:
        StoreError: The log cannot be read or written.
    """
    git = log.git
    sealed: list[LogEntry] = []
    try:
        for attempt in range(swaps or SWAPS_MAX):
            tip = git.tip(ref.LOG_REF) or start_log(log)
            check_tip(log, tip, WAITS)
            changes, full = _attested_changes(git, git.commit(tip).tree, entries, sealed, sealer)
            if not changes:
                ledger.append(log.repo, (), tip)
                return tip
            why = f"append: {sum(len(entry.lines) for entry in entries)} lines"
            commit = git.advance(ref.LOG_REF, tip, draft(log, entries, changes), why)
            if commit is not None:
                write_ahead.note_commit(log.repo.state, commit, tip, files)
                ledger.append(log.repo, (), commit)
                if full:
                    log.new_token()
                return commit
            git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
            time.sleep(min(0.002 * 1.3**attempt, 0.1) * (0.5 + log.random(1)[0] / 256))
    except OSError as error:
        raise _unwritable(error) from error
    except KeyError as error:
        raise ref.missing_object(error, WAITS) from error
    except StoreError as error:
        if error.code == "locked":
            return None  # treat it as a lost swap: the entries wait
        if error.code == "git-failed":  # the message is git's; add the state of the entries
            error.message += f"; {WAITS}."
        raise
    return None


def _attested_changes(
    git: Git, tree: str, entries: Sequence[LogEntry], sealed: list[LogEntry], sealer: Sealer | None
) -> tuple[dict[str, bytes | TreeEntry | None], bool]:
    """Return as `changes_of` does, with attestations if anything is new; `sealed` keeps them for the next attempt."""
    found = changes_of(git, tree, [*entries, *sealed])
    if found[0] and sealer is not None and not sealed:
        sealed += sealer.seal(entries, lambda path: ref.content_at(git, tree, path))
        found = changes_of(git, tree, [*entries, *sealed])
    return found


def _unwritable(error: OSError) -> StoreError:
    return StoreError(
        f"The log cannot be written ({error.strerror or error}); {WAITS}.",
        hint="Free disk space or correct the permissions of the git folder, then run the command again.",
        code="disk",
    )


def notify_moved(log: LocalLog) -> None:
    """Notify that the ref has moved. Never under the lock: it updates the index and may wait for a stopped writer."""
    try:
        log.committed()
    except Exception:
        return  # the next read of the log updates everything derived from it


def check_tip(log: LocalLog, tip: str, outcome: str = "nothing was recorded") -> None:
    """Check that lines can be appended to a tip.

    Args:
        outcome: The part of the error message about the lines that were to be written.

    Raises:
        StoreError: Code `not-a-log` or `newer-format`.
    """
    git = log.git
    tree = git.commit(tip).tree
    form = ref.read_format(git, git.tree(tree))
    if form is None:
        raise StoreError(
            f"{ref.LOG_REF} is at {tip[:12]}, which is not a gitmem log; {outcome}.",
            hint="Rename or delete that ref with git, then run the command again.",
            code="not-a-log",
            next=["gitmem doctor"],
        )
    form.refuse_newer()


def start_log(log: LocalLog) -> str:
    """Create the log's ref without the network, and return its tip.

    A log of this project is adopted if an ordinary fetch got it from the usual remote
    (`refs/remotes/<remote>/gitmem`), a sync fetched it, or it is a local branch.

    Raises:
        StoreError: The ref cannot be created.
    """
    git = log.git
    adopted = _logs_to_adopt(log)
    if adopted:
        base, tip = _union_of(log, adopted)
        if _create_ref(log, tip, "adopt the log that this clone has"):
            # A local branch counts as published, too: it was fetched.
            if git.tip(ref.PUBLISHED_REF) is None:
                git.swap(ref.PUBLISHED_REF, None, base.oid, "adopt")
            return tip
    else:
        tip = new_log(log)
        if _create_ref(log, tip, "start the log"):
            return tip
    found = git.tip(ref.LOG_REF)  # another process has created the ref
    if found is None:
        raise ref.locked("nothing was recorded")
    return found


def new_log(log: LocalLog) -> str:
    """Write the first two commits of a log without moving a ref; return the second.

    Raises:
        StoreError: The first commit does not have the constant id.
    """
    nobody = log.signature()
    files = ref.fixed_files(ref.Format.make().content, log_refs.own_projects(log))
    drafts = [ref.genesis_draft(), Draft(files, nobody, nobody, "Start the log of this repository\n")]
    genesis, tip = log.git.write(drafts, None)
    if genesis != ref.genesis(genesis):
        raise StoreError(
            f"git wrote the first commit as {genesis}, not {ref.genesis(genesis)}", code="genesis"
        )
    return tip


def create_ref_from_fetched(log: LocalLog) -> None:
    """Adopt a log that this clone has under another name; for readers.

    Never create a new log. Do nothing if this process may not write or another one holds the lock.
    """
    if log.git.tip(ref.LOG_REF) is not None or not _logs_to_adopt(log) or not log.make_state():
        return
    lock = log.lock()
    if lock.take():
        with lock:
            if log.git.tip(ref.LOG_REF) is None:
                start_log(log)


def _create_ref(log: LocalLog, tip: str, why: str) -> bool:
    """Create the ref; False if it exists. The caller holds gitmem's lock; a stale lock of git is broken."""
    git = log.git
    packs.localize(log.repo.common, tip)
    if git.swap(ref.LOG_REF, None, tip, why):
        return True
    stale = git.tip(ref.LOG_REF) is None and git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
    return stale and git.swap(ref.LOG_REF, None, tip, why)


def _logs_to_adopt(log: LocalLog) -> list[log_refs.LogTip]:
    """Return the logs to adopt, the base of a union first: one of the latest epoch. Each must pass the checks for refs of a remote."""
    from .ref_checks import RefCheck

    refs = log_refs.known_log_refs(log)
    if not refs:
        return []
    others = set(log_refs.fetched_branches(log))
    if others:  # finding the usual remote starts git processes
        from ..git.config import upstream_remote

        try:
            others.discard(f"refs/remotes/{upstream_remote(log.repo)}/gitmem")
        except UsageError:
            pass  # the usual remote is ambiguous
    tips = RefCheck(log, None, ()).admit({name: oid for name, oid in refs.items() if name not in others})
    ours = log_refs.own_projects(log)
    found = []
    for tip in tips:
        if log_refs.can_merge(ours, tip.projects):
            ours = ours | tip.projects
            found.append(tip)
    return sorted(found, key=lambda tip: -tip.format.epoch)


def _union_of(log: LocalLog, tips: list[log_refs.LogTip]) -> tuple[log_refs.LogTip, str]:
    """Return the base and the tip of the union: a log that contains all others, else a new commit on the first."""
    from .forgetting import Forgotten

    forgotten = Forgotten(log, [tip.tree for tip in tips])
    for tip in tips:
        if tip.format.epoch == tips[0].format.epoch and not forgotten.union_changes(
            tip.tree, [other.tree for other in tips]
        ):
            return tip, tip.oid
    first, *others = tips
    changes = forgotten.union_changes(first.tree, [other.tree for other in others])
    nobody = log.signature()
    message = "Unite the logs that this clone has\n\n" + "".join(f"{tip.name}\n" for tip in tips)
    (commit,) = log.git.write([Draft(changes, nobody, nobody, message)], first.oid)
    return first, commit
