"""Attestations: lines by which a writer signs lines of its own, made and read; `docs/format.md`, section 13, defines the bytes."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, b2a_base64
from functools import lru_cache

from ..outcome import Struct
from ..text import ed25519
from ..text.addresses import WRITER_CHARACTERS
from ..text.digests import b32, sha256
from .lines import HASH_BYTES, format_at, line_hash, parse_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Protocol

    class SigningKey(Protocol):
        """A private key: the id of its writer, the public key, and what signs."""

        writer: str
        public: bytes

        def sign(self, message: bytes) -> bytes:
            """Return the signature of a message."""


DIGESTS_MAX = 9_000  # of one attestation
WRITERS_KEPT = 1_000  # whose ids are found once in a process
VERDICTS_MAX = 50_000  # kept by a process, some megabytes; one takes 0.1 ms of CPU to find
_DOMAIN = b"gitmem attestation\n"  # no other signature under the key begins so
_FIELD = b',"signature":"'
_FORM = (
    rb'\{"at":"([0-9TZ:.-]{27})","kind":"attestation","writer":"(\w{16})","schema_version":"A2A\.V1","key":"([\w-]{43})",'
    rb'"clone":"([a-z0-9]{1,64})","number":"([1-9][0-9]{0,8})"(?:,"before":"([0-9a-f]{32})")?,"lines":"([\w-]+)",'
    rb'"signature":"([\w-]{86})"\}'
)
_TO_URL, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")


class Attestation(Struct):
    """What a valid attestation says.

    Attributes:
        writer: The id of the writer.
        public: Its public key.
        clone: The token of the clone.
        number: Its place among the attestations of the clone, from 1 on.
        before: The digest of the line with the number before, in hex; "" for the first.
        digests: The digests of the lines that are the writer's.
        digest: The digest of the attestation itself, in hex.
    """

    writer: str
    public: bytes
    clone: str
    number: int
    before: str
    digests: frozenset[bytes]
    digest: str


class Verdicts(Struct):
    """Verdicts on the signatures of lines: a command that builds an index beside another one asks for each twice.

    Attributes:
        verify: Returns whether a signature is valid, see `ed25519.verify`.
        most: How many are kept.
    """

    verify: Callable[[bytes, bytes, bytes], bool]
    most: int
    _found: dict[bytes, bool] = {}

    def is_valid(self, line: bytes, public: bytes, signature: bytes, message: bytes) -> bool:
        """Return whether the signature in a line is valid."""
        whole = sha256(line).digest()
        found = self._found.get(whole)
        if found is None:
            if len(self._found) >= self.most:
                self._found.clear()
            found = self._found[whole] = self.verify(public, signature, message)
        return found


_VERDICTS = Verdicts(ed25519.verify, VERDICTS_MAX)


@lru_cache(maxsize=WRITERS_KEPT)
def writer_id(public: bytes) -> str:
    """Return the id of the writer with a public key: the first 80 bits of its SHA-256."""
    return b32(sha256(public).digest(), WRITER_CHARACTERS)


def seal(
    key: SigningKey, lines: Iterable[bytes], at: Callable[[], int], clone: str, last: tuple[int, str] | None
) -> list[bytes]:
    """Return attestations of lines, each the successor of the one before; none for no lines.

    Args:
        key: The key of the writer of the lines.
        lines: The lines, without LF.
        at: Returns the time of the next line of this clone, in microseconds.
        clone: The token of the clone.
        last: Number and digest of this clone's last attestation; None if it has none.
    """
    digests = sorted(set(map(line_hash, lines)))
    number, before = last or (0, "")
    made = []
    for start in range(0, len(digests), DIGESTS_MAX):
        number += 1
        after = f',"before":"{before}"' if before else ""
        content = (
            f'{{"at":"{format_at(at())}","kind":"attestation","writer":"{key.writer}","schema_version":"A2A.V1",'
            f'"key":"{_text(key.public)}","clone":"{clone}","number":"{number}"{after},'
            f'"lines":"{_text(b"".join(digests[start : start + DIGESTS_MAX]))}"'
        ).encode()
        made.append(b'%b%b%b"}' % (content, _FIELD, _text(key.sign(_DOMAIN + content)).encode()))
        before = line_hash(made[-1]).hex()
    return made


def read(
    line: bytes, verdicts: Verdicts = _VERDICTS, *, wanted: Collection[bytes] | None = None
) -> Attestation | None:
    """Return what a line attests; None unless its bytes have the exact form of an attestation and its signature is valid.

    No line raises an error.

    Args:
        verdicts: Those of this process.
        wanted: Digests of which a line that has none need not be verified: None is returned.
    """
    found = re.fullmatch(_FORM, line)
    if found is None:
        return None
    at, writer, key, clone, number, before, joined, signature = found.groups(b"")
    try:
        parse_at(at.decode())
    except ValueError:
        return None
    public, content = _bytes(key), _bytes(joined)
    digests = [content[start : start + HASH_BYTES] for start in range(0, len(content), HASH_BYTES)]
    if not 0 < len(digests) <= DIGESTS_MAX or len(content) % HASH_BYTES or digests != sorted(set(digests)):
        return None
    if wanted is not None and not any(digest in wanted for digest in digests):
        return None
    name = writer_id(public)
    if writer.decode("ascii", "replace") != name or (number == b"1") != (before == b""):
        return None
    message = _DOMAIN + line[: found.start(8) - len(_FIELD)]
    if not verdicts.is_valid(line, public, _bytes(signature), message):
        return None
    return Attestation(
        name,
        public,
        clone.decode(),
        int(number),
        before.decode(),
        frozenset(digests),
        line_hash(line).hex(),
    )


def _text(content: bytes) -> str:
    """Return bytes in base64url without padding."""
    return _coded(content).decode()


def _coded(content: bytes) -> bytes:
    return b2a_base64(content, newline=False).translate(_TO_URL).rstrip(b"=")


def _bytes(text: bytes) -> bytes:
    """Return the bytes of a text that is the one form that `_text` gives them; empty for any other."""
    try:
        found = a2b_base64(text.translate(_FROM_URL) + b"=" * (-len(text) % 4), strict_mode=True)
    except (Error, ValueError):
        return b""
    return found if _coded(found) == text else b""
