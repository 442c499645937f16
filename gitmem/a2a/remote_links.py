"""What this clone knows of A2A servers that it calls: their URLs, and which of their tasks belongs to which of ours.

It stays in the git folder, readable by this user alone. The log has none of it: a line of a peer must not say where a token goes.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from urllib.parse import urlsplit

from .. import atomic_write, state_files
from ..digests import sha256
from ..errors import StoreError, UsageError
from ..invocation import SERVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE_MAX_BYTES, TEXT_MAX = 4 * 1024, 1_024
KEPT_SECONDS = 30 * 24 * 3600.0  # of files that nobody has asked for
_PRUNED_MAX = 1_000
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FOLDER = ("a2a", "servers")


class Link:
    """A server's task for one of ours.

    Attributes:
        id, context_id: The server's ids; empty until it has answered.
        session: Our session that has taken the task.
        answers: How many of the caller's answers the server has.
    """

    def __init__(self, id: str = "", context_id: str = "", session: str = "", answers: int = 0) -> None:
        self.id = id
        self.context_id = context_id
        self.session = session
        self.answers = answers


class RemoteLinks:
    """The servers and their tasks that one clone knows.

    Args:
        state: Its state folder, which no clone or fetch fills.
    """

    def __init__(self, state: str) -> None:
        self.folder = os.path.join(state, *_FOLDER)

    def add_server(self, identity: str, url: str, token: str | None) -> None:
        """Remember where a server is, and the digest of the token that it got.

        Raises:
            StoreError: The file can't be written.
        """
        self._write(_name_of(identity), {"url": url, "token": digest_of(token)})
        self._prune()

    def server(self, identity: str) -> tuple[str, str] | None:
        """Return the URL of a server and the digest of its token; None if this clone has not called it."""
        found = self._read(_name_of(identity))
        url, token = found.get("url"), found.get("token")
        return (url, token) if isinstance(url, str) and url and isinstance(token, str) else None

    def read(self, task_id: str) -> Link | None:
        """Return the server's task for one of ours; None without one."""
        found = self._read(task_id)
        id, context_id, session, answers = (
            found.get(name) for name in ("id", "context_id", "session", "answers")
        )
        if not (isinstance(id, str) and isinstance(context_id, str) and isinstance(session, str)):
            return None
        return Link(id, context_id, session, answers if isinstance(answers, int) and answers > 0 else 0)

    def write(self, task_id: str, link: Link) -> None:
        """Remember the server's task for one of ours.

        Raises:
            ValueError: Its ids are longer than any should be.
            StoreError: The file can't be written.
        """
        if max(len(link.id), len(link.context_id)) > TEXT_MAX:
            raise ValueError(f"the server's id of the task has more than {TEXT_MAX} characters")
        self._write(task_id, vars(link))

    def delete(self, task_id: str) -> None:
        """Forget the server's task for one of ours."""
        atomic_write.remove_quietly(os.path.join(self.folder, task_id))  # else `_prune` does later

    def _read(self, name: str) -> Mapping[str, Any]:
        try:
            found = json.loads(state_files.read(os.path.join(self.folder, name), FILE_MAX_BYTES))
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        try:
            state_files.make_dirs(self.folder)
            content = json.dumps(values).encode()
            atomic_write.replace(os.path.join(self.folder, name), content, durable=True, private=True)
        except OSError as error:
            raise StoreError(f"Cannot write in {self.folder} ({error.strerror}).", code="store") from error

    def _prune(self) -> None:
        """Delete files that nobody has written for long."""
        state_files.refuse_link(self.folder)
        with os.scandir(self.folder) as found:
            for each, _ in zip(found, range(_PRUNED_MAX), strict=False):
                with suppress(OSError):  # another process deletes them, too
                    if each.stat(follow_symlinks=False).st_mtime < time.time() - KEPT_SECONDS:
                        atomic_write.remove_quietly(each.path)


def identity_of(url: str) -> str:
    """Return the agent identity of a server.

    Raises:
        UsageError: `bad-url`: not https, or http to this machine.
    """
    try:
        found = urlsplit(url)
        host, port = found.hostname, found.port
    except ValueError:
        host = port = None
    is_allowed = host and (found.scheme == "https" or (found.scheme == "http" and host in LOOPBACK))
    if (
        not is_allowed
        or found.username is not None
        or not url.isascii()
        or any(map(str.isspace, url))
        or "," in url
    ):
        raise UsageError(
            "The URL of an agent is https://HOST/…, or http:// on this machine, without a user. Nothing was written.",
            code="bad-url",
        )
    place = f"{host}{f'-{port}' if port else ''}{found.path.rstrip('/')}"
    return f"{SERVER}{place.replace(':', '-').replace('/', '-')}"


def digest_of(token: str | None) -> str:
    """Return the digest of a token; empty without one."""
    return sha256(token.encode("utf-8", "replace")).hexdigest() if token else ""


def _name_of(identity: str) -> str:
    return f"server-{sha256(identity.encode()).hexdigest()[:32]}"
