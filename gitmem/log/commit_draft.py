"""Author, time and message of a commit that appends entries."""

from __future__ import annotations

from ..git.port import Draft, Signature
from . import lines
from .entry import SUBJECT_MAX, CommitMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..git.port import TreeEntry
    from .entry import LogEntry
    from .local_log import LocalLog


def draft(log: LocalLog, entries: Sequence[LogEntry], changes: dict[str, bytes | TreeEntry | None]) -> Draft:
    """Return the draft of the commit of entries: changes of the tree, signatures and message."""
    combined = combine_messages(entries)
    name, mail = split_author(combined.author)
    at = max((lines.parse_at(line[7:34].decode()) for entry in entries for _, line in entry.lines))
    author = Signature(name, mail, at // 1_000_000)
    committer = log.signature((name, mail))
    message = combined.subject + "\n"
    if combined.body:
        message += "\n" + combined.body.strip("\n") + "\n"
    if combined.trailers:
        message += "\n" + "".join(f"{key}: {value}\n" for key, value in combined.trailers)
    return Draft(changes, author, committer, message)


def combine_messages(entries: Sequence[LogEntry]) -> CommitMessage:
    """Return one message for entries that share a commit.

    It is the message of the only entry that is not deferred, else a summary: see `summary`. It has the trailers of all
    entries.
    """
    immediate = [entry for entry in entries if not entry.deferred] or list(entries)
    first = immediate[0].message
    ordered = [*immediate, *(entry for entry in entries if entry not in immediate)]
    found = dict.fromkeys(trailer for entry in ordered for trailer in entry.message.trailers)
    keys = dict.fromkeys(key for key, _ in found)
    trailers = [trailer for key in keys for trailer in found if trailer[0] == key]
    if len(immediate) == 1:
        return CommitMessage(first.author, first.subject, first.body, trailers)
    records = sum(len(entry.lines) for entry in entries)
    subjects = [entry.message.subject for entry in immediate]
    shown = most_telling(subjects)
    author = immediate[subjects.index(shown)].message.author
    return CommitMessage(author, summary(shown, records), "\n".join(subjects), trailers)


def most_telling(subjects: Sequence[str]) -> str:
    """Return the first subject of a decision, else of a proposal or passed gate, of a signal or task, of a note, or of all."""
    return min(subjects, key=_rank)


def _rank(subject: str) -> int:
    head, _, text = subject.partition(": ")
    first = text.partition(" ")[0]
    signs = (
        first in ("AGREE", "REJECT"),
        first in ("PROPOSE", "COUNTER") or " passes " in head,
        "→" in head or head.endswith((" completed", " failed")),
        first in ("note", "discovery", "checkpoint", "summary"),
    )
    return signs.index(True) if True in signs else len(signs)


def summary(subject: str, records: int) -> str:
    """Return the subject of a commit of several records: that of one of them, and how many more it has."""
    more = f" +{records - 1}" if records > 1 else ""
    longest = SUBJECT_MAX - len(more)
    return (subject if len(subject) <= longest else subject[: longest - 1].rstrip() + "…") + more


def split_author(author: str) -> tuple[str, str]:
    """Split `Name <mail>`; remove angle brackets (git stores none), control and bidi characters from both."""
    name, _, mail = author.partition("<")
    return _clean(name) or "gitmem", _clean(mail) or "gitmem"


def _clean(text: str) -> str:
    kept = "".join(char for char in text if char.isprintable() and char not in "<>")
    return kept.strip(" .,:;\"'\\")
