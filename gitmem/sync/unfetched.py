"""The refs of a remote that were not fetched: refused by git, or not examined yet."""

from __future__ import annotations

from ..git.fetch import MISSING, NOT_FETCHED, is_too_much
from ..log import log_refs
from ..log.ref_checks import INVALID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..log.ref_checks import LeftOut, RefCheck
    from .remote import Remote

SHOWN = 5  # how many of the refs that were left out a message names


def record(remote: Remote, left: Mapping[str, tuple[str, str]]) -> None:
    """Record which refs were not fetched, with their commits and the reasons."""
    known = {name: found for name, found in left.items() if log_refs.is_synced_ref(name)}
    remote.unexamined = sum(why == NOT_FETCHED for _, why in known.values())
    remote.unfetchable = {name: found for name, found in known.items() if found[1] != NOT_FETCHED}


def outboxes(remote: Remote) -> dict[str, str]:
    """Return the fetched outboxes of a remote; add the shared refs that git refused to its refs, to be checked."""
    unfetchable = {remote.copy_of(name): oid for name, (oid, _) in remote.unfetchable.items()}
    remote.refs.update((name, oid) for name, oid in unfetchable.items() if not log_refs.is_outbox(name))
    return {
        name: oid for name, oid in remote.refs.items() if log_refs.is_outbox(name) and name not in unfetchable
    }


def leave_out(remote: Remote, check: RefCheck) -> None:
    """Note the outboxes that git refused as left out."""
    for name, (oid, why) in remote.unfetchable.items():
        if log_refs.is_outbox(name):
            check.leave_out(remote.copy_of(name), oid, INVALID, why)


def report(remote: Remote) -> None:
    """Name the refs that were left out, the shared ones first, with the command that removes an invalid outbox."""
    found = remote.left_out
    found.sort(key=lambda each: log_refs.is_outbox(each.ref))
    for each in found[:SHOWN]:
        remote.add_sentence(each.sentence(remote.name) + _removal(remote, each))
    listing = f"git ls-remote {_word(remote)} 'refs/gitmem/outbox/*'"
    if len(found) > SHOWN:
        remote.add_sentence(
            f"So were {len(found) - SHOWN:,} more of {remote.name}; its administrator can remove them. All outboxes: {listing}"
        )
    if remote.unexamined:
        remote.add_sentence(
            f"{remote.unexamined:,} outboxes of {remote.name} were not fetched yet: the next sync continues. All outboxes: {listing}"
        )


def _removal(remote: Remote, each: LeftOut) -> str:
    if is_too_much(each.why):
        return f" To try it again: gitmem sync --allow-large --timeout 10m {_word(remote)}"
    if each.kind != INVALID or each.why == MISSING or (each.is_commit and not log_refs.is_outbox(each.ref)):
        return ""
    import shlex

    return f" To remove it: git push {_word(remote)} {shlex.quote(':' + each.ref)}"


def _word(remote: Remote) -> str:
    import shlex

    return shlex.quote(remote.shown_name)
