"""The message of a squashed commit. Its sources may be of peers and of any size, so little of each is used."""

from __future__ import annotations

from .commit_draft import most_telling, summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..git.port import Commit

SUBJECTS_MAX = 1_000
MESSAGE_BYTES_MAX = 1024 * 1024
_SUBJECT_CHARS_MAX = 100


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
