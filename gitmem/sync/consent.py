"""Consent to publish: for each URL that this clone may push its log to, one file in `<state>/consent/`; and what is withheld without it.

The name of a file is the SHA-256 of the URL without credentials. It holds the URL, who gave consent and when, as
JSON. A file that can't be read as that gives no consent. No fetch or checkout can write in that folder.
"""

from __future__ import annotations

import os

from .. import commit_message, local_files, records
from ..errors import UsageError
from ..log.lines import is_attestation
from ..outcome import Struct
from ..text.digests import sha256
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..repo import Repo


FOLDER = "consent"
BY_SETUP, BY_SYNC = "gitmem setup --publish yes", "gitmem sync --publish"


def destination(repo: Repo, remote: str) -> str:
    """Return the URL of pushes to a remote, without credentials; consent is given for that URL.

    Raises:
        UsageError: `unknown-remote`.
    """
    from ..git.config import push_urls

    return push_urls(repo.common, remote, repo.worktree)[1]


def is_given(repo: Repo, url: str) -> bool:
    """Return whether the log may be pushed to a URL (without credentials)."""
    content = local_files.read(_path(repo, url))
    if not content:
        return False
    from json import loads

    try:
        found = loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("url") == _text(url)


def unpublished(repo: Repo) -> str | None:
    """Return the URL of the usual remote if nobody has agreed to publish there; else None."""
    from ..git.config import upstream_remote

    try:
        url = destination(repo, upstream_remote(repo))
    except UsageError:
        return None
    return None if is_given(repo, url) else url


def give_consent(repo: Repo, url: str, by: str, at: str) -> None:
    """Record that the log may be pushed to a URL, unless that is recorded already.

    Args:
        url: The URL, without credentials.
        by: The command that gave consent.
        at: The time, as JSON has it.

    Raises:
        StoreError: `read-only`; nothing was recorded.
    """
    if is_given(repo, url):
        return
    from json import dumps

    content = dumps({"url": _text(url), "by": by, "at": at}) + "\n"
    local_files.record_choice(repo.state, _path(repo, url), content.encode(), "the consent to publish")


def withdraw(repo: Repo, url: str) -> bool:
    """Remove the consent for a URL; return whether there was one. Published lines stay published."""
    was_given = is_given(repo, url)
    local_files.remove_quietly(_path(repo, url))
    return was_given


def withdraw_all(repo: Repo) -> None:
    """Remove every consent of this clone."""
    folder = os.path.join(repo.state, FOLDER)
    for name in local_files.names_in(folder):
        local_files.remove_quietly(os.path.join(folder, name))


def _path(repo: Repo, url: str) -> str:
    return os.path.join(repo.state, FOLDER, sha256(os.fsencode(url)).hexdigest())


def _text(url: str) -> str:
    """Return a URL as JSON can hold it, even if its path is not UTF-8."""
    return os.fsencode(url).decode("utf-8", "backslashreplace")


NEWEST_MAX = 20  # lines that are kept of each kind


class WithheldLines(Struct):
    """The number of such records by kind, and the newest lines of each kind.

    Attributes:
        counts: The number of records of each kind.
        newest: At most `NEWEST_MAX` lines of each kind, oldest first.
    """

    counts: dict[str, int] = {}
    newest: dict[str, list[bytes]] = {}

    @property
    def total(self) -> int:
        """The number of all records."""
        return sum(self.counts.values())

    def add(self, lines: Iterable[bytes]) -> None:
        """Count the records in lines of the log, none of them counted before."""
        fresh: dict[str, list[bytes]] = {}
        for line in lines:
            if not is_attestation(line):
                fresh.setdefault(kind_of(line), []).append(line)
        for kind, found in fresh.items():
            self.counts[kind] = self.counts.get(kind, 0) + len(found)
            self.newest[kind] = sorted([*self.newest.get(kind, []), *found])[-NEWEST_MAX:]


# Records of people and agents precede those that gitmem wrote about them.
ORDER = (
    "signal", "task", "task_event", "node", "patch", "relation", "claim", "audit", "session", "name", "receipt", "access",
)  # fmt: skip
UNREADABLE = "unreadable"
RECORDS_MAX = 20


def kind_of(line: bytes) -> str:
    """Return the kind of record in a line; `unreadable` if the line is not a record."""
    record = records.read(line)
    return record["kind"] if record is not None else UNREADABLE


def withheld_counts(found: WithheldLines) -> dict[str, int]:
    """Return the number of records of each kind, in the order of `ORDER`."""
    return {sanitize(kind): found.counts[kind] for kind in _ordered(found)}


def withheld_records(found: WithheldLines) -> list[dict[str, str]]:
    """Return at most `RECORDS_MAX` records: by kind in the order of `ORDER`, within a kind the newest first."""
    lines = [line for kind in _ordered(found) for line in reversed(found.newest[kind])]
    return [describe_withheld(line) for line in lines[:RECORDS_MAX]]


def _ordered(found: WithheldLines) -> list[str]:
    rank = {kind: place for place, kind in enumerate(ORDER)}
    return sorted(found.counts, key=lambda kind: (rank.get(kind, len(ORDER)), kind))


def describe_withheld(line: bytes) -> dict[str, str]:
    """Return a description of a line: `kind`, `id`, and a `text` of one line."""
    record: Any = records.read(line)
    if record is None:
        return {
            "kind": UNREADABLE,
            "id": "",
            "text": commit_message.cut(_plain(line), commit_message.COLUMNS),
        }
    kind = record["kind"]
    shown = records.shown(record, kind=True)
    id = str(shown[records.ID_FIELDS[kind]])
    named = (
        {"recipient_names": record.get("requested_to") or record["recipients"]} if kind == "signal" else {}
    )
    return {"kind": kind, "id": sanitize(id), "text": commit_message.describe({**shown, **named})}


def withheld_summary(count: int, url: str) -> str:
    """Return the sentence that reports unsent records, and who could read them after publishing."""
    what = "1 record was" if count == 1 else f"{count} records were"
    return (
        f"{what} not sent: nobody has agreed yet to publish this log to {url}, where everybody who can read that "
        "repository can read it."
    )


def _plain(line: bytes) -> str:
    return sanitize(line.decode("utf-8", "replace"))
