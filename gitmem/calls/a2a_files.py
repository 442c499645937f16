"""Files of a clone about A2A: the tokens of callers, the push configurations, and the servers that it calls with their tasks.

They stay in the git folder, readable by this user alone. The log has none of it: a line of a peer must not say where a token goes.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from urllib.parse import urlsplit

from .. import local_files
from ..errors import StoreError, UsageError
from ..log.lines import format_at
from ..outcome import Outcome
from ..text.digests import sha256
from . import SERVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


NAME_MAX, CALLERS_MAX = 32, 1_000
FILE_MAX_BYTES, PUSH_FILE_MAX_BYTES = 256 * 1024, 32 * 1024 * 1024
_NAME = "abcdefghijklmnopqrstuvwxyz0123456789-"
_FILE = ("a2a", "tokens.json")


class Token(Outcome):
    """A caller that may use the gateway.

    Attributes:
        token: What it sends as `Authorization: Bearer`; None except in the answer that makes it.
    """

    def __init__(self, name: str, created_at: str, token: str | None = None) -> None:
        self.name = name
        self.identity = caller_identity(name)
        self.created_at = created_at
        self.token = token
        self.next = ["gitmem a2a token"]


class TokenList(Outcome):
    """The callers that may use the gateway."""

    callers: Sequence[Token]
    next: list[str] = []


class Tokens:
    """The tokens of one repository.

    Args:
        state: Its state folder, which no clone or fetch fills.
        report: Called with a sentence when the file is damaged while requests come; not again before it is read.
    """

    def __init__(self, state: str, report: Callable[[str], object] = lambda sentence: None) -> None:
        self._report = report
        self._is_reported = False
        self.path = os.path.join(state, *_FILE)

    def add(self, name: str, now: int) -> Token:
        """Make a token for a caller; the one that it had is no longer valid.

        Raises:
            UsageError: `bad-caller-name`, or too many callers. Nothing was written.
            StoreError: The file can't be written.
        """
        if not 1 <= len(name) <= NAME_MAX or name.strip(_NAME) or name[0] == "-":
            raise UsageError(
                f"Invalid name of a caller: {name[:80]!r}; 1 to {NAME_MAX} lower-case letters, digits and dashes are valid. Nothing was written.",
                code="bad-caller-name",
            )
        known = self._read()
        if len(known) >= CALLERS_MAX and name not in known:
            raise UsageError(f"There are {CALLERS_MAX} callers, the most allowed. Nothing was written.", code="too-many-callers")  # fmt: skip
        token = new_token()
        known[name] = {"digest": digest_of(token), "created_at": format_at(now)}
        _save(self.path, {"callers": known}, durable=True)
        return Token(name, known[name]["created_at"], token)

    def remove(self, name: str) -> Token:
        """Make the token of a caller invalid.

        Raises:
            UsageError: It has none.
            StoreError: The file can't be written.
        """
        known = self._read()
        before = known.pop(name, None)
        if before is None:
            raise UsageError(
                f"No such caller: {name[:80]!r}. Nothing was written.",
                code="unknown-caller",
                next=["gitmem a2a token"],
            )
        _save(self.path, {"callers": known}, durable=True)
        return Token(name, before["created_at"])

    def list(self) -> Sequence[Token]:
        """Return the callers, sorted by name."""
        return [Token(name, each["created_at"]) for name, each in sorted(self._read().items())]

    def caller_of(self, token: str) -> str | None:
        """Return the name of the caller that a token belongs to. Each comparison takes the same time.

        The file is read each time: a removed token is invalid at once.

        Raises:
            StoreError: The file is damaged.
        """
        try:
            known = self._read()
        except StoreError as error:
            if not self._is_reported:
                self._report(error.message)
            self._is_reported = True
            raise
        self._is_reported = False
        given, found = digest_of(token), None
        for name, each in known.items():
            if hmac.compare_digest(each["digest"], given):
                found = name
        return found

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            value = _load(self.path, FILE_MAX_BYTES)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StoreError(f"Cannot read the tokens in {self.path} ({error}). Nothing was written.", code="bad-tokens") from error  # fmt: skip
        callers = value.get("callers") if isinstance(value, dict) else None
        if not isinstance(callers, dict) or not all(map(_is_entry, callers.values())):
            raise StoreError(
                f"The tokens in {self.path} are damaged. Nothing was written.",
                hint="Remove the file, and make new tokens with `gitmem a2a token`.",
                code="bad-tokens",
            )
        return callers


def caller_identity(name: str) -> str:
    """Return the agent identity of a caller that has a token."""
    return f"a2a:caller:{name}"


def new_token() -> str:
    """Return a new token."""
    return f"gm_{secrets.token_urlsafe(32)}"


def digest_of(token: str | None) -> str:
    """Return the digest of a token, which has 256 random bits, so it needs no salt; empty without one."""
    return sha256(token.encode("utf-8", "replace")).hexdigest() if token else ""


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(text := value.get(name), str) and text.isascii() for name in ("digest", "created_at")
    )


_PUSH_FILE, _PUSH_FIELDS = ("a2a", "push.json"), {"caller", "agent", "config", "sent"}


def push_file_of(state: str) -> str:
    """Return the path of the file with push configurations in a state folder."""
    return os.path.join(state, *_PUSH_FILE)


def read_push_file(state: str) -> list[dict[str, Any]]:
    """Return what the file has.

    Raises:
        StoreError: `bad-push`: it is damaged, too large, or can't be read.
    """
    path = push_file_of(state)
    try:
        values = _load(path, PUSH_FILE_MAX_BYTES)
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        values = None
    if not isinstance(values, list) or not all(
        isinstance(each, dict) and each.keys() == _PUSH_FIELDS for each in values
    ):
        raise StoreError(
            f"The push configurations in {path} are damaged. Clients are not notified.",
            hint="Remove the file; clients make new ones.",
            code="bad-push",
            next=["gitmem doctor"],
        )
    return values


def write_push_file(state: str, entries: list[dict[str, Any]]) -> None:
    """Write the file.

    Raises:
        StoreError: It can't be written.
    """
    _save(push_file_of(state), entries)


def _load(path: str, most: int) -> Any:
    """Return the JSON value of a file.

    Raises:
        OSError: It is missing, or can't be read.
        ValueError: It has more bytes, or no JSON.
    """
    content = local_files.load(path, most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most} bytes")
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _save(path: str, value: object, *, durable: bool = False) -> None:
    """Write a JSON value to a file that this user alone reads.

    Raises:
        StoreError: It can't be written.
    """
    try:
        local_files.make_dirs(os.path.dirname(path))
        local_files.replace(path, json.dumps(value).encode(), durable=durable, private=True)
    except OSError as error:
        raise StoreError(
            f"Cannot write {path} ({error.strerror}). Nothing was written.", code="store"
        ) from error


LINKS_MAX_BYTES, TEXT_MAX = 4 * 1024, 1_024
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FOLDER = ("a2a", "servers")


class Link(Outcome):
    """A server's task for one of ours.

    Attributes:
        id, context_id: The server's ids; empty until it has answered.
        session: Our session that has taken the task.
        answers: How many of the caller's answers the server has.
    """

    id: str = ""
    context_id: str = ""
    session: str = ""
    answers: int = 0


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
        self._write(task_id, link.as_json())

    def delete(self, task_id: str) -> None:
        """Forget the server's task for one of ours."""
        local_files.remove_quietly(os.path.join(self.folder, task_id))

    def _read(self, name: str) -> Mapping[str, Any]:
        try:
            found = _load(os.path.join(self.folder, name), LINKS_MAX_BYTES)
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        _save(os.path.join(self.folder, name), values, durable=True)


def server_identity(url: str) -> str:
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


def _name_of(identity: str) -> str:
    return f"server-{sha256(identity.encode()).hexdigest()[:32]}"
