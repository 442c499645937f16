"""Repair of the log's ref, from undamaged commits and known lines."""

from __future__ import annotations

from ..errors import StoreError
from ..git import repair as git_repair
from ..log import ledger, log_refs, recovery, ref, tree_union
from ..log.squash import squash
from ..log.start import new_log
from ..log.union import canonical
from . import rebase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..git.objects import TreeEntry
    from ..log.local_log import LocalLog

    Changes = dict[str, bytes | TreeEntry | None]


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
        rebase.own_tip(log, found).format.refuse_newer()
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


def repair(log: LocalLog, top: str, lines: Mapping[str, Sequence[bytes]]) -> str:
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
    for path, added in left.items():
        if content := _with_lines(changes, path, b"", added):
            changes[path] = content
    changes.update(_fixed(log, top))
    if not changes:
        return top
    return rebase.write_repair(log, top, changes, sum(map(len, lines.values())))


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
    with rebase.take_lock(log) as lock:
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
        name for name in recovery.damaged_copies(log) if git_repair.delete(log.repo.common, name, every[name])
    ]
    if tip is not None and not recovery.CompletenessCheck(log).commit(tip):
        git_repair.expire_broken(log.repo.common, ref.LOG_REF)
    return found
