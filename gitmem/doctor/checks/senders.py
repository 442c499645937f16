"""Check for lines in the name of this clone's sessions that were not written here."""

from __future__ import annotations

from ...agents import forgeries, unproven_sessions
from ...errors import StoreError
from ...signals import history
from ...text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from ..findings import Findings

TRACED_MAX = 10  # lines whose commit is searched for


def check(store: Store, found: Findings) -> None:
    """Report forged lines with their file and commit, and sessions that claim to be this clone's without proof."""
    for number, each in enumerate(forgeries.all_forged_lines(store.db())):
        what = f"{each.kind} {each.record.get('event') or each.record.get('intent') or ''}".strip()
        brought = _origin_text(store, each.line) if number < TRACED_MAX else ""
        found.problem(
            "forged-line",
            f"A line ({what}, {each.at}) says that it is from {each.name}, which belongs to this clone, and was not written "
            f"here. It changes nothing for that session here; other clones count it.{brought}",
            each.where,
            "Somebody who may push to the remote wrote it: find out who with the commit that added the file, and tell the "
            "others. Nothing is taken out of a log.",
            "gitmem log",
        )
    for one in unproven_sessions.list_unproven(store):
        found.problem(
            "not-started-here",
            f"The session {one.session_id} ({sanitize(one.name)}) says that it was started in this clone. It has no valid "
            "code, and this clone has no file of it.",
            one.session_id,
            "Nobody acts as it here. Trust what it says no more than any peer; if nobody knows it, tell the others.",
            "gitmem roster --all",
        )


def _origin_text(store: Store, line: bytes) -> str:
    """Return a sentence with the commit that added a line and its author, a name that anybody can choose; or ""."""
    try:
        commit = history.origin_of(store, line)
        if commit is None:
            return ""
        author = store.git.commit(commit).author
    except StoreError:
        return ""
    return f" Commit {commit[:12]} of {sanitize(f'{author.name} <{author.mail}>')} brought it."
