"""Mending: what the log's ref should be at, made of commits that are whole and of lines that are known."""

from __future__ import annotations

from ..errors import StoreError
from ..log import damage, dropped_lines, ledger, log_refs, overflow, recovery, ref, tree_union
from ..log.squash import squash
from ..log.start import new_log
from ..log.union import canon
from . import rebase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..git.port import TreeEntry
    from ..log.local_log import LocalLog

    Changes = dict[str, bytes | TreeEntry | None]


def base(log: LocalLog, tip: str | None) -> str:
    """What the log is to stand on: its tip, else the newest commit that can be, else a new beginning.

    Raises: StoreError where the log is of a newer format.
    """
    sound = recovery.Sound(log)
    found = tip
    if tip is None or not sound.commit(tip) or not recovery.is_log(log, tip):
        found = recovery.last_sound(log, sound, tip)
    if found is not None:
        rebase.own_tip(log, found).format.refuse_newer()
        if found != tip:
            log.git.write(
                [ref.genesis_draft()], None
            )  # its empty tree is known to git, and yet missed where a gc took it
        return found
    return new_log(log)


def put_back(log: LocalLog, oid: str, top: str) -> str:
    """What the commits of a former tip added, on top of another: the new tip. Where one of them is damaged, nothing."""
    try:
        return squash(log.git, log.git.history(oid, [top]), top)
    except (KeyError, StoreError):
        return top


def segments(log: LocalLog, commit: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every file of lines in a commit that is whole."""
    for path, entry, content in dropped_lines.walk(log.git, commit):
        if tree_union.is_plain_segment(path, entry):
            yield path, content


def repair(log: LocalLog, top: str, lines: Mapping[str, Sequence[bytes]]) -> str:
    """One commit with lines that are missing at `top`, and the form that its files should have: the new tip.

    Args:
        lines: What is missing, by path.
    """
    left = dict(lines)
    changes: Changes = {}
    for path, entry, old in dropped_lines.walk(log.git, top):
        name = path.rstrip("/")
        added = left.pop(name, ())
        if tree_union.is_plain_segment(path, entry):
            content = _with_lines(changes, path, old, added)
            if content != old:
                changes[path] = content
        elif added:
            _put_beside(changes, name, added)
    for path, added in left.items():
        if content := _with_lines(changes, path, b"", added):
            changes[path] = content
    changes.update(_fixed(log, top))
    if not changes:
        return top
    return rebase.write_repair(log, top, changes, sum(map(len, lines.values())))


def _with_lines(changes: Changes, path: str, old: bytes, added: Sequence[bytes]) -> bytes:
    """Return a file in its form with lines that it lacks; where it has no room they go into another one."""
    content = canon(b"\n".join([old, *added]))
    if added and len(content) > ref.UNION_BYTES_MAX:
        _put_beside(changes, path, added)
        return canon(old)
    return content


def _put_beside(changes: Changes, path: str, added: Sequence[bytes]) -> None:
    content = canon(b"\n".join(added))
    changes[overflow.path_beside(path, content)] = content


def _fixed(log: LocalLog, top: str) -> Changes:
    """The fixed files that are missing."""
    root = log.git.tree(log.git.commit(top).tree)
    wanted = ref.fixed_files(b"", ())
    found = {name: wanted[name] for name in tree_union.FIXED[1:] if name not in root}
    if not ref.project_ids(log.git, root):
        found.update({f"projects/{oid}": b"" for oid in log_refs.own_projects(log)})
    return found


def move(log: LocalLog, tip: str | None, new: str) -> bool:
    """Swap the log's ref. False where it has moved meanwhile, or is locked."""
    with rebase.take_lock(log) as lock:
        if log.git.swap(ref.LOG_REF, tip, new, "doctor"):
            ledger.note(log.place, (), new)  # a place to look when the reflog is gone, too
            return True
        if lock.is_held:
            log.git.break_stale_lock(ref.LOG_REF, ref.STALE_LOCK_SECONDS)
        return False


def forget_damaged(log: LocalLog, tip: str | None) -> list[str]:
    """Delete our copies of what is damaged, which the next sync brings anew, and what git's gc would stumble over.

    Args:
        tip: Where the log was, if that can't be read.
    """
    every = log.git.refs("refs/gitmem/")
    found = [name for name in damage.damaged_copies(log) if damage.forget(log, name, every[name])]
    if tip is not None and not recovery.Sound(log).commit(tip):
        damage.forget_broken(log)
    return found
