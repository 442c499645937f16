"""Squash: put what commits have on another tip, as one commit with a message that tells of all of them."""

from __future__ import annotations

from ..git.objects import Draft, Signature
from . import tree_union
from .committer import most_telling, summary
from .union import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..git.objects import Commit
    from ..git.port import Git
    from .tree_union import Changes


EACH_MAX = 200  # limit of commits; with more of them it is not checked which ones added something

SUBJECTS_MAX = 1_000
MESSAGE_BYTES_MAX = 1024 * 1024
_SUBJECT_CHARS_MAX = 100


def squash(git: Git, commits: Sequence[str], onto: str, known: Sequence[str] | None = None) -> str:
    """Put what commits have on `onto`, as one commit. No ref moves; removals are ignored.

    Leading commits that are already based on `onto` are kept, unless `known` is given or they add a folder that other
    clones refuse.

    Args:
        commits: Parents before children, as from `Git.history`: everything that the last one reaches, down to commits
            of another history. Merges are allowed.
        onto: The commit to build on.
        known: Trees with what is left out, such as those of outboxes.

    Returns:
        The new tip; `onto` if it has everything.

    Raises:
        KeyError: An object is missing.
    """
    if not commits:
        return onto
    last, kept = git.commit(commits[-1]).tree, 0
    may_keep = known is None and not tree_union.has_deep_folders(git, "", last, [git.commit(onto).tree])
    while may_keep and kept < len(commits) and git.commit(commits[kept]).parents == [onto]:
        onto = commits[kept]
        kept += 1
    tree = git.commit(onto).tree
    changes = tree_union.union_changes(git, tree, [last])
    if known:
        changes = tree_union.without_known(git, tree, changes, known)
    told = commits[kept:]
    if changes and 1 < len(told) <= EACH_MAX:
        told = [oid for oid in told if _adds(git, oid, [tree, *(known or ())])] or told
    return commit(git, onto, changes, told)


def commit(git: Git, onto: str, changes: Changes, commits: Sequence[str]) -> str:
    """Commit changes on `onto` with a message that tells of some commits; return the new tip, or `onto` without any of both."""
    if not changes or not commits:
        return onto
    found = [git.commit(oid) for oid in commits]
    found = [each for each in found if len(each.parents) < 2] or found
    first, last = found[0], found[-1]
    author = Signature(first.author.name, first.author.mail, last.author.seconds, last.author.offset)
    count = tree_union.count_added(git, git.commit(onto).tree, changes) if len(found) > 1 else 0
    return git.write([Draft(changes, author, last.committer, message(found, count))], onto)[0]


def _adds(git: Git, oid: str, trees: Sequence[str]) -> bool:
    """Return whether a commit adds anything to its parents that these trees do not have at the same path."""
    found = git.commit(oid)
    olds = [git.commit(parent).tree for parent in found.parents]
    for path, entry, there in tree_union.differing(git, found.tree, [*olds, *trees]):
        if not tree_union.is_plain_segment(path, entry):
            return True
        fresh = lines(git.blob(entry.oid))
        if fresh.difference(*(lines(git.blob(old.oid)) for old in there if old.mode.startswith("100"))):
            return True
    return False


def message(commits: Sequence[Commit], count: int) -> str:
    """Return the message of a squashed commit: its own if it is one commit, else a summary with a list.

    Args:
        count: The number of records that they add; unused for one commit.
    """
    if len(commits) == 1:
        return commits[0].message
    body: list[str] = []
    more = size = 0
    found: dict[str, None] = {}
    for commit in commits:
        number, listed = _listed(commit.message, SUBJECTS_MAX - len(body))
        more += number - len(listed)
        body += listed
        if size <= MESSAGE_BYTES_MAX:  # more would exceed the limit
            new = dict.fromkeys(trailers(commit.message))
            found.update(new)
            size += sum(map(len, new))
    keys: dict[str, int] = {}
    for each in found:
        keys.setdefault(each.partition(": ")[0], len(keys))
    ordered = sorted(found, key=lambda each: keys[each.partition(": ")[0]])
    head = summary(most_telling(body), count)
    if more:
        body.append(f"and {more:,} more")
    return f"{head}\n\n" + "\n".join(body) + "\n" + _fitting(ordered)


def _fitting(ordered: Iterable[str]) -> str:
    """Return a paragraph of trailers, cut to `MESSAGE_BYTES_MAX`."""
    kept, size = [], 0
    for each in ordered:
        size += len(each.encode("utf-8", "replace")) + 1
        if size > MESSAGE_BYTES_MAX:
            break
        kept.append(each + "\n")
    return "\n" + "".join(kept) if kept else ""


def _listed(text: str, most: int) -> tuple[int, list[str]]:
    """Return the subject of a message, or the list in the message of a squashed commit.

    Args:
        most: The number of items to return.

    Returns:
        The number of all items, and the first `most` of them.
    """
    subject, _, rest = text.strip("\n").partition("\n")
    shown, plus, others = subject.rpartition(" +")
    if plus and others.isdecimal():
        listed = rest.strip("\n").partition("\n\n")[0]
        if f"\n{listed}".find("\n" + shown.removesuffix("…")) >= 0:
            return listed.count("\n") + 1, [_plain(line) for line in listed.split("\n", most)[:most]]
    return 1, [_plain(subject)][:most]


def _plain(subject: str) -> str:
    kept = "".join(char for char in subject[: 4 * _SUBJECT_CHARS_MAX] if char.isprintable())
    return kept[:_SUBJECT_CHARS_MAX].strip() or "(no subject)"


def trailers(text: str) -> list[str]:
    """Return the lines `Key: value` that end a message, at most `MESSAGE_BYTES_MAX` of them."""
    _, gap, last = text.strip("\n").rpartition("\n\n")
    if len(last) > MESSAGE_BYTES_MAX:
        last = last[:MESSAGE_BYTES_MAX].rpartition("\n")[0]
    found = last.split("\n") if gap else []
    for line in found:
        key, colon, _ = line.partition(": ")
        if not colon or not key.replace("-", "").isalnum():
            return []
    return found
