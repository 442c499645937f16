"""Consent to publish: for each URL that this clone may push its log to, one file in `<state>/consent/`.

The name of a file is the SHA-256 of the URL without credentials. It holds the URL, who gave consent and when, as
JSON. A file that can't be read as that gives no consent. No fetch or checkout can write in that folder.
The file `refused` records that the user wants nothing published: then only `gitmem sync --publish` gives consent.
"""

from __future__ import annotations

import os

from .. import local_files
from ..text.digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..repo import Repo

FOLDER = "consent"
DECLINED = "refused"
BY_INIT, BY_SYNC = "gitmem init", "gitmem sync --publish"


def destination(repo: Repo, remote: str) -> str:
    """Return the URL of pushes to a remote, without credentials; consent is given for that URL.

    Raises:
        UsageError: `unknown-remote`.
    """
    from ..git.remotes import push_urls

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


def give_consent(repo: Repo, url: str, by: str, at: str) -> None:
    """Record that the log may be pushed to a URL, unless that is recorded already.

    Args:
        url: The URL, without credentials.
        by: The command that gave consent.
        at: The time, as JSON has it.

    Raises:
        StoreError: `read-only`; nothing was recorded.
    """
    if by == BY_SYNC:
        local_files.remove_quietly(os.path.join(repo.state, FOLDER, DECLINED))
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


def decline(repo: Repo) -> None:
    """Record that the user wants nothing published, until `gitmem sync --publish`.

    Raises:
        StoreError: `read-only`; nothing was changed.
    """
    path = os.path.join(repo.state, FOLDER, DECLINED)
    local_files.record_choice(repo.state, path, b"", "the refusal to publish")


def is_declined(repo: Repo) -> bool:
    """Return whether the user wants nothing published."""
    return os.path.lexists(os.path.join(repo.state, FOLDER, DECLINED))


def withdraw_all(repo: Repo) -> None:
    """Remove every consent of this clone."""
    folder = os.path.join(repo.state, FOLDER)
    for name in local_files.names_in(folder):
        if name != DECLINED:
            local_files.remove_quietly(os.path.join(folder, name))


def _path(repo: Repo, url: str) -> str:
    return os.path.join(repo.state, FOLDER, sha256(os.fsencode(url)).hexdigest())


def _text(url: str) -> str:
    """Return a URL as JSON can hold it, even if its path is not UTF-8."""
    return os.fsencode(url).decode("utf-8", "backslashreplace")
