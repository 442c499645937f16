"""Refs of a remote that sync does not read, and their description in messages."""

from __future__ import annotations

from ..git.separate_fetch import MISSING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..git.plumbing import Git

NAMED_BYTES_MAX = 256 * 1024  # limit for a commit that is read only to name its author


class LeftOut:
    """A ref that is not read.

    Attributes:
        ref: Its name on the remote.
        commit: Its tip.
        author: The author that the commit names; "" if it cannot be read. Anybody can write any name there.
        kind: `newer` (the format of a newer gitmem), `foreign` (another project's log), `large` (more than one sync
            accepts), or `invalid`.
        why: The reason, as the rest of a sentence.
        is_commit: Whether the tip is a commit, as far as known; else it is a tag, a tree or a blob.
        is_fetched: Whether the tip was fetched.
    """

    def __init__(self, name: str, commit: str, author: str, kind: str, why: str) -> None:
        self.ref = name
        self.commit = commit
        self.author = author
        self.kind = kind
        self.why = why
        self.is_commit = self.is_fetched = True

    def sentence(self, remote: str) -> str:
        """Return the description for a message."""
        by = f", by {self.author}" if self.author else ", author unknown" if self.is_commit else ""
        by += "" if self.is_fetched else " (not fetched)"
        at = f"{'commit' if self.is_commit else 'object'} {self.commit[:12]}{by}"
        text = f"{self.ref} of {remote} ({at}) was ignored: {self.why.rstrip('.')}."
        if self.why == MISSING:
            text += f" Its administrator can remove the ref with `git update-ref -d {self.ref} {self.commit}`; a sync of each clone then restores the lines."
        return text


def describe(git: Git, name: str, oid: str, kind: str, why: str, *, is_fetched: bool) -> LeftOut:
    """Make the description of a ref that is left out."""
    found = LeftOut(name, oid, author_of(git, oid) if is_fetched else "", kind, why)
    found.is_fetched = is_fetched
    if is_fetched and not found.author:
        form = git.heads([oid]).get(oid, ("commit", 0))[0]
        if form != "commit":
            found.is_commit, found.why = False, f"it is a {form}, not a commit"
    return found


def author_of(git: Git, oid: str) -> str:
    """Return the author that a commit names, or "" if the commit is unreadable or larger than `NAMED_BYTES_MAX`."""
    if git.heads([oid]).get(oid, ("", 0))[1] > NAMED_BYTES_MAX:
        return ""
    try:
        author = git.commit(oid).author
    except KeyError:
        return ""
    return f"{author.name} <{author.mail}>"
