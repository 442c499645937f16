"""The last accepted tip of a remote: its shared log as it last passed the checks."""

from __future__ import annotations

from ..git.fetch import MISSING
from ..log import ref
from ..log.ref_checks import INVALID, LARGE, RefCheck
from . import unfetched
from .noop_check import ACCEPTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..git.objects import Move
    from ..git.port import Git
    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip
    from .remote import Remote

NAME = ACCEPTED  # `refs/gitmem/remotes/<remote>/accepted`


def last_accepted(log: LocalLog, prefix: str, known: Iterable[str]) -> LogTip | None:
    """Return the last accepted shared tip; for a clone without a record of it, the published tip; None if invalid.

    Args:
        prefix: The prefix of our copies of the remote's refs.
        known: Tips of logs.
    """
    git = log.git
    found = git.tip(prefix + NAME)
    if found is None:
        local = git.tip(ref.LOG_REF)
        found = git.tip(ref.PUBLISHED_REF)
        if found is None or local is None or not is_ancestor(git, local, found):
            return None
    return RefCheck(log, None, known).check(NAME, found)


def is_ancestor(git: Git, tip: str, oid: str) -> bool:
    """Return whether a commit is in the history of `tip`; False if an object is missing."""
    try:
        return git.contains(tip, oid)
    except KeyError:
        return False


def record_accepted(remote: Remote) -> None:
    """Record the shared tip that passed; outboxes are based on it if the shared ref breaks later."""
    top = remote.shared()
    new = remote.pushed or (top.oid if top is not None else None)
    for name, old, oid in accepted_ref_moves(remote, new):
        remote.log.git.swap(
            name, old, oid, "sync"
        )  # if this fails, the previous tip stays, which is valid too


def accepted_ref_moves(remote: Remote, new: str | None) -> list[Move]:
    """Return the ref moves that record a shared tip that passed, as `Git.swap` takes them."""
    good = remote.blocked is None and remote.state in ("", "synced", "up-to-date", "rejected")
    name = remote.prefix + NAME
    old = remote.log.git.tip(name)
    return [(name, old, new)] if good and new is not None and old != new else []


def report_left_out(remote: Remote) -> None:
    """Report the refs that were left out, and the consequences for the lines of this clone."""
    unfetched.report(remote)
    if remote.blocked is None or remote.state not in ("", "synced", "up-to-date"):
        return
    if not remote.has_our_lines:
        remote.add_sentence("Your records are kept in this clone.")
    elif remote.outbox is not None:
        remote.add_sentence("Your records are in an outbox there, which every sync reads.")
    if remote.blocked.kind == LARGE and remote.stepped:
        remote.add_sentence("Only part of the remote's records was fetched; continue with: gitmem sync")
    if remote.blocked.kind == INVALID:
        repair = "" if remote.blocked.why == MISSING else f": gitmem sync --repair {remote.shown_name}"
        remote.add_sentence(
            f"Nothing can be pushed to {remote.blocked.ref} until it is repaired{repair or '.'}"
        )
    remote.end("refused")
