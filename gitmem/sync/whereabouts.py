"""What this clone knows of its records at others, and of theirs that no sync has read yet."""

from __future__ import annotations

import os

from ..git import files
from ..log import ref
from ..records import ID_FIELDS
from ..text.sanitize import first_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from ..store import Store

    class Answer(Protocol):
        """An outcome that other clones' records may change."""

        warnings: list[str]


SHOWN = 3
UNSENT = "not sent yet"
_KINDS = {"sig": "signal", "task": "task", "tev": "task_event"}  # of the ids that answers ask about


def of_record(store: Store, id: str, away: Sequence[str]) -> list[str]:
    """Return a sentence about where a record is that agents of other clones have to answer; none if nobody is away.

    Args:
        away: The names of those whose clones have recorded nothing about it.
    """
    if not away:
        return []
    if is_unsent(store, id):
        return [unsent(store, id)]
    return [f"sent, not fetched there as far as this clone knows: {id} to {first_of(away, SHOWN)}"]


def unsent(store: Store, id: str) -> str:
    """Return the sentence about a record that only this clone has."""
    from . import autosync, consent

    if consent.unpublished(store.repo) is not None:
        how = f"your user may agree to publish: {consent.BY_SYNC}"
    else:
        how = "gitmem sync" if autosync.interval(store.repo) is None else "automatic sync sends it"
    return f"{UNSENT}: {id} is only in this clone ({how})"


def is_unsent(store: Store, id: str) -> bool:
    """Return whether only this clone has a record, as far as it knows."""
    from ..local_files import read
    from ..log import tree_union

    git = store.git
    waiting = (read(file.path) for wal in store.log.wals for file in wal.files() if file.size)
    if any(_is_of(line, id) for text in waiting if id.encode() in text for line in text.split(b"\n")):
        return True
    tip = git.tip(ref.LOG_REF)
    sent = [git.tip(ref.PUBLISHED_REF), *sent_tips(store.repo.state)]
    if tip is None or tip in sent:
        return False
    known = [git.commit(oid).tree for oid in sent if oid is not None and git.has(oid)]
    return any(
        _is_of(line, id)
        for fresh in tree_union.fresh_lines(git, git.commit(tip).tree, known)
        for line in fresh
    )


def sent_tips(state: str) -> list[str]:
    """Return the tips of the log that remotes had with their outboxes."""
    import json

    from ..local_files import names_in, read

    found = []
    for name in names_in(os.path.join(state, "remotes")):
        try:
            found.append(json.loads(read(os.path.join(state, "remotes", name)))["sent"])
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
    return [each for each in found if isinstance(each, str) and each]


def _is_of(line: bytes, id: str) -> bool:
    """Return whether a line is the record with this id, not one that refers to it."""
    kind = _KINDS[id.partition("-")[0]]
    return f'"kind":"{kind}"'.encode() in line and f'"{ID_FIELDS[kind]}":"{id}"'.encode() in line


def unread(store: Store) -> str:
    """Return a sentence if the user's git has fetched records of others that no sync has read; "" if not."""
    git, tip = store.git, store.git.tip(ref.LOG_REF)
    for remote, oid in files.fetched_since(
        store.repo.common, os.path.join(store.repo.state, files.READ)
    ).items():
        try:
            if tip is None or not git.contains(tip, oid):
                return f"git has fetched records to {remote}/gitmem that no answer has yet: gitmem sync"
        except KeyError:
            continue  # an object of it is missing: a sync reports it
    return ""


def add_unread(store: Store, answer: Answer) -> None:
    """Add that sentence to an answer."""
    answer.warnings += filter(None, [unread(store)])
