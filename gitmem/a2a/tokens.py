"""The tokens of callers. Only their digests are kept, in a file of the git folder that only this user reads."""

from __future__ import annotations

import hmac
import json
import os
import secrets

from .. import atomic_write, state_files
from ..digests import sha256
from ..errors import StoreError, UsageError
from ..log.lines import format_at
from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NAME_MAX, FILE_MAX_BYTES, CALLERS_MAX = 32, 256 * 1024, 1_000
_NAME = "abcdefghijklmnopqrstuvwxyz0123456789-"
_FILE = ("a2a", "tokens.json")


class Token(Outcome):
    """A caller that may use the gateway.

    Attributes:
        token: What it sends as `Authorization: Bearer`; None except in the answer that makes it.
    """

    def __init__(self, name: str, created_at: str, token: str | None = None) -> None:
        self.name = name
        self.identity = identity_of(name)
        self.created_at = created_at
        self.token = token
        self.next = ["gitmem a2a tokens"]


class TokenList(Outcome):
    """The callers that may use the gateway."""

    def __init__(self, callers: Sequence[Token]) -> None:
        self.callers = list(callers)
        self.next: list[str] = []


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
        self._stamp: tuple[int, int, int] | None = None
        self._digests: list[tuple[str, str]] = []

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
        self._write(known)
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
                next=["gitmem a2a tokens"],
            )
        self._write(known)
        return Token(name, before["created_at"])

    def list(self) -> Sequence[Token]:
        """Return the callers, sorted by name."""
        return [Token(name, each["created_at"]) for name, each in sorted(self._read().items())]

    def caller_of(self, token: str) -> str | None:
        """Return the name of the caller that a token belongs to. Each comparison takes the same time."""
        self._refresh()
        given = digest_of(token)
        found = None
        for name, digest in self._digests:
            if hmac.compare_digest(digest, given):
                found = name
        return found

    def _refresh(self) -> None:
        """Read the file again if it has changed: a removed token is invalid at once."""
        try:
            status = os.stat(self.path)
        except OSError:
            self._stamp, self._digests = None, []
            return
        stamp = status.st_mtime_ns, status.st_ino, status.st_size
        if stamp != self._stamp:
            try:
                self._digests = [(name, each["digest"]) for name, each in self._read().items()]
            except StoreError as error:
                if not self._is_reported:
                    self._report(error.message)
                self._is_reported = True
                raise
            self._stamp, self._is_reported = stamp, False

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            value = json.loads(state_files.load(self.path, FILE_MAX_BYTES + 1))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"Cannot read the tokens in {self.path} ({error}). Nothing was written.", code="bad-tokens") from error  # fmt: skip
        callers = value.get("callers") if isinstance(value, dict) else None
        if not isinstance(callers, dict) or not all(map(_is_entry, callers.values())):
            raise StoreError(
                f"The tokens in {self.path} are damaged. Nothing was written.",
                hint="Remove the file, and make new tokens with `gitmem a2a token`.",
                code="bad-tokens",
            )
        return callers

    def _write(self, callers: dict[str, dict[str, str]]) -> None:
        content = json.dumps({"callers": callers}, indent=1, sort_keys=True).encode() + b"\n"
        try:
            state_files.make_dirs(os.path.dirname(self.path))
            atomic_write.replace(self.path, content, durable=True, private=True)
        except OSError as error:
            raise StoreError(f"Cannot write {self.path} ({error.strerror}). Nothing was written.", code="store") from error  # fmt: skip


def identity_of(name: str) -> str:
    """Return the agent identity of a caller that has a token."""
    return f"a2a:caller:{name}"


def new_token() -> str:
    """Return a new token."""
    return f"gm_{secrets.token_urlsafe(32)}"


def digest_of(token: str) -> str:
    """Return the digest of a token: it has 256 random bits, so it needs no salt."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(text := value.get(name), str) and text.isascii() for name in ("digest", "created_at")
    )
