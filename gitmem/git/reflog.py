"""The reflog of a worktree's HEAD, and what each of its entries did. It is read from its end, with a limit."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .. import state_files
from . import formats
from .objects import is_oid

READ_MAX = 1024 * 1024  # bytes of the end of the file
POST_COMMIT, POST_MERGE = "post-commit", "post-merge"  # git's hooks
# What git writes in front of the subject. The groups name how the commit was made.
_COMMIT = re.compile(r"commit(?: \((initial|amend|merge|cherry-pick|rebase)\))?: ")
_STEP = re.compile(r"(?:rebase|pull)\b.*?\((?:pick|reword|edit|squash|fixup|continue|merge)\): ")
_MERGE = re.compile(r"(?:merge|pull)\b.*?: Merge made by ")
_START = re.compile(r"(?:rebase|pull)\b.*?\(start\): ")
_PLAIN = (("cherry-pick: ", "cherry-pick"), ("revert: ", "revert"), ("am: ", "apply"))
_ZERO = frozenset("0")


class Entry(NamedTuple):
    """An entry of a reflog.

    Attributes:
        old: The commit at HEAD before; None in the first entry.
        new: The commit after.
        seconds: When, since the epoch, by the committer's clock.
        action: `commit`, `amend`, `merge`, `revert`, `cherry-pick`, `rebase` or `apply`; `start` for the beginning of a rebase; ""
            for everything that makes no commit.
        end: The number of bytes of the file up to the end of this entry.
        hook: The hook that git has run after the commit: `post-commit`, of `git merge` and `git pull` `post-merge`, or "".
    """

    old: str | None
    new: str
    seconds: int
    action: str
    end: int
    hook: str


def read(git_dir: str) -> list[Entry]:
    """Return the last entries, oldest first; none if there is no such file. Lines that are no entries are left out."""
    data, start = read_tail(formats.reflog(git_dir), READ_MAX)
    found = []
    at = data.find(b"\n") + 1 if start else 0
    while (end := data.find(b"\n", at)) >= 0:
        entry = _entry(data[at:end], start + end + 1)
        if entry is not None:
            found.append(entry)
        at = end + 1
    return found


def read_tail(path: str, most: int) -> tuple[bytes, int]:
    """Return the last bytes of a file, at most so many, and where they begin; none if it is missing, unreadable or not a regular file."""
    try:
        with open(state_files.open_file(path, os.O_RDONLY), "rb") as file:
            start = file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read(most), start
    except OSError:
        return b"", 0


def _entry(line: bytes, end: int) -> Entry | None:
    head, _, message = line.decode("utf-8", "replace").partition("\t")
    old, _, rest = head.partition(" ")
    new, _, who = rest.partition(" ")
    words = who.rsplit(" ", 2)
    if not (is_oid(old) and is_oid(new) and len(words) == 3 and words[1].isdecimal() and len(words[1]) < 12):
        return None
    return Entry(None if _ZERO.issuperset(old) else old, new, int(words[1]), *_action(message, end))


def _action(message: str, end: int) -> tuple[str, int, str]:
    """Return what made the commit of an entry, its end, and the hook that ran after it: see `Entry`."""
    made = _COMMIT.match(message)
    if made is not None:
        how = made[1] or "commit"
        return "commit" if how == "initial" else how, end, POST_COMMIT
    for start, action in _PLAIN:
        if message.startswith(start) and message != "cherry-pick: fast-forward":
            return action, end, "" if action == "apply" else POST_COMMIT
    if _START.match(message):
        return "start", end, ""
    if _STEP.match(message):
        return "rebase", end, POST_COMMIT
    return ("merge", end, POST_MERGE) if _MERGE.match(message) else ("", end, "")
