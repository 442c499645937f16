"""Let go of forgotten texts: of the refs and reflogs with logs of earlier epochs, and of the copies in files of this clone."""

from __future__ import annotations

import os
from functools import partial

from .. import local_files
from ..git import plumbing
from ..git.config import encode_remote
from . import epochs, log_refs, ref, tree_union
from .forgotten import Forgotten
from .lines import reduced
from .write_ahead import READ_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .local_log import LocalLog


def of_lines(log: LocalLog, lines: Sequence[bytes], texts: Sequence[str] = ()) -> list[str]:
    """Put reduced lines in the place of these in the files that gitmem has put aside.

    Args:
        texts: What to look for besides.

    Returns:
        Files that have, or may have, one of the texts.
    """
    cut = {line: reduced(line) for line in lines}
    if not cut:
        return []
    wanted = [text.encode() for text in texts]
    found = []
    for path in _files(log):
        try:
            content = local_files.load_whole(path, READ_BYTES_MAX)
            is_private = not os.stat(path).st_mode & 0o077
        except OSError:
            found.append(path)
            continue
        left = content
        for line, short in cut.items():
            left = left.replace(line, short)
        if left != content and not local_files.try_replace(path, left, private=is_private):
            left = content
        if any(text in left for text in wanted):
            found.append(path)
    return found


def _files(log: LocalLog) -> Iterator[str]:
    """Yield the files of this clone's state that may have lines, except the index and the entries that wait."""
    waiting = {file.path for wal in log.wals for file in wal.files()}
    for top in dict.fromkeys([log.repo.state, *(wal.folder for wal in log.wals)]):
        for folder, _, names in os.walk(top):
            for name in sorted(names):
                path = os.path.join(folder, name)
                if path not in waiting and not name.startswith("index-") and local_files.is_file(path):
                    yield path


def of_earlier_epochs(log: LocalLog) -> None:
    """Delete gitmem's refs at logs of earlier epochs than this clone's, and what reflogs have of these logs.

    A ref with lines that this clone's log lacks stays. Copies of a remote whose accepted log is of an earlier epoch stay, as it has nothing else: without them each fetch would
    bring all of it again. A remote's branch that git fetched moves to where the last sync found it.
    """
    git, own = log.git, epochs.of(log, log.git.tip(ref.LOG_REF))
    if not own:
        return
    has_all = partial(_has_all, log, git.commit(str(git.tip(ref.LOG_REF))).tree)
    every = {**git.refs("refs/gitmem/"), **log_refs.fetched_branches(log)}
    for name, oid in every.items():
        if name == ref.LOG_REF or not epochs.is_earlier(log, oid, own):
            continue
        if name.startswith("refs/remotes/"):
            there = git.tip(_prefix(name.split("/")[2]) + "heads/gitmem")
            if there is not None and not epochs.is_earlier(log, there, own):
                git.swap(name, oid, there, "sync")
        elif (log_refs.is_outbox(name) or not _lags(log, name, own)) and has_all(oid):
            plumbing.delete_ref(log.repo.common, name, oid)
    stale = [name for name in sorted(every) if not log_refs.is_outbox(name) and _remembers(log, name, own)]
    if stale:
        plumbing.expire_unreachable(log.repo.common, stale)


def _has_all(log: LocalLog, tree: str, oid: str) -> bool:
    """Return whether a tree has each line of a log that is not forgotten."""
    try:
        return not tree_union.union_changes(log.git, tree, [log.git.commit(oid).tree], Forgotten(log, [tree]))
    except KeyError:
        return False


def _remembers(log: LocalLog, name: str, own: int) -> bool:
    """Return whether the reflog of a ref begins in an earlier epoch."""
    first = next(iter(plumbing.reflog(log.repo.common, name)), None)
    return first is not None and any(
        oid is not None and epochs.is_earlier(log, oid, own) for oid in (first.old, first.new)
    )


def _prefix(remote: str) -> str:
    return f"{ref.REMOTES_PREFIX}{encode_remote(remote)}/"


def _lags(log: LocalLog, name: str, own: int) -> bool:
    """Return whether a ref is a copy of one of a remote that has never had this clone's epoch."""
    if not name.startswith(ref.REMOTES_PREFIX):
        return False
    remote = name.removeprefix(ref.REMOTES_PREFIX).partition("/")[0]
    accepted = log.git.tip(f"{ref.REMOTES_PREFIX}{remote}/accepted")
    return accepted is not None and epochs.is_earlier(log, accepted, own)
