"""Epochs: how often the log was written anew, without its history, so that git lets go of forgotten texts.

A log of a later epoch has a history of its own, from the first commit of every log on. Everybody puts their lines on it, so it
takes nothing away. Its number cannot be greater than that of the records that forget: so nobody can run ahead of all others.
"""

from __future__ import annotations

from ..errors import StoreError
from ..git.files import shallow_commits
from ..git.objects import Draft
from . import ref, tree_union
from .forgotten import Forgotten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .local_log import LocalLog
    from .log_refs import LogTip
    from .tree_union import Changes


def of(log: LocalLog, oid: str | None) -> int | None:
    """Return the epoch of a commit; None if it is not that of a log."""
    try:
        form = ref.read_format(log.git, log.git.tree(log.git.commit(oid).tree)) if oid is not None else None
    except (KeyError, StoreError):
        return None
    return form.epoch if form is not None else None


def is_earlier(log: LocalLog, oid: str, epoch: int) -> bool:
    """Return whether a commit is of a log of an earlier epoch."""
    found = of(log, oid)
    return found is not None and found < epoch


def first_commit(log: LocalLog, oid: str) -> str | None:
    """Return the commit after the first one of every log, where a history begins; in a shallow clone the oldest one."""
    return next(iter(log.git.unread_history(oid, [ref.genesis(oid)])), None)


def problem(log: LocalLog, tip: LogTip, known: Iterable[str], *, count: bool = True) -> str:
    """Return why the epoch of a log is not valid, as the rest of a sentence; "" if it is.

    Args:
        known: Commits of valid logs. A log that contains one goes on with it.
        count: Whether to count the records that forget, which may read all lines.

    Raises:
        KeyError: An object is missing.
    """
    git, epoch = log.git, tip.format.epoch
    epochs = {
        oid: found for oid in dict.fromkeys(known) if git.has(oid) and (found := of(log, oid)) is not None
    }
    if not epoch and not any(epochs.values()):
        return ""
    base = next((oid for oid in epochs if git.contains(tip.oid, oid)), None)
    if base is None and not epoch:
        return ""
    # Each history that it has begins in its epoch: a merge with one of an earlier epoch would bring the texts back.
    genesis = ref.genesis(tip.oid)
    new = git.history(tip.oid, [base or genesis])
    begun = {of(log, oid) for oid in new if not set(git.commit(oid).parents) - {genesis}}
    wrong = (begun | {epochs.get(base or "")}) - {epoch, None}
    if wrong:
        return f"epoch is {str(epoch)[:24]}; only {max(each for each in wrong if each is not None)} is valid"
    if base is not None:
        return ""
    most = len(Forgotten(log, [tip.tree]).records) if epoch > 0 and count else 0
    if 0 <= epoch <= most or (epoch > 0 and not count):
        return ""
    return f"epoch is {str(epoch)[:24]}; only {f'0 to {most} are' if most else '0 is'} valid"


def may_begin(log: LocalLog) -> bool:
    """Return whether this clone's log has a record that forgets for one more epoch."""
    tree = log.git.commit(str(log.git.tip(ref.LOG_REF))).tree
    form = ref.read_format(log.git, log.git.tree(tree))
    return form is not None and len(Forgotten(log, [tree]).records) > form.epoch


def is_due(log: LocalLog, tip: LogTip) -> bool:
    """Return whether a log has records that forget and that its epoch did not begin with."""
    records = Forgotten(log, [tip.tree]).records
    if len(records) <= tip.format.epoch:
        return False
    begun = first_commit(log, tip.oid)
    if begun is None or begun in shallow_commits(log.repo.common):
        return True
    return not records <= Forgotten(log, [log.git.commit(begun).tree]).said or has_texts(log, tip.tree)


def has_texts(log: LocalLog, tree: str) -> bool:
    """Return whether a tree has a forgotten line as a whole, which somebody has put back."""
    git, forgotten = log.git, Forgotten(log, [tree])
    for path, entry in tree_union.walk(git, tree) if forgotten else ():
        if tree_union.is_plain_segment(path, entry):
            content = git.blob(entry.oid)
            if forgotten.cut(content) != content:
                return True
    return False


def begin(log: LocalLog, tip: LogTip) -> str:
    """Write the lines of a log, without forgotten texts, as the first commit of the next epoch; return it. No ref moves."""
    git = log.git
    forgotten = Forgotten(log, [tip.tree])
    form = tip.format
    changes: Changes = {
        "format": ref.Format.make(epoch=form.epoch + 1, turn=form.turn, publish=form.publish).content
    }
    for path, entry in tree_union.walk(git, tip.tree):
        if tree_union.is_plain_segment(path, entry):
            content = git.blob(entry.oid)
            left = forgotten.cut(content)
            if left != content:
                changes[path] = left
    who = log.signature()
    message = f"Begin epoch {form.epoch + 1}: the log without forgotten texts, and without its history\n"
    return git.write([ref.genesis_draft(), Draft(changes, who, who, message, tree=tip.tree)], None)[1]
