"""Writers with fixed keys, and the lines that they write and sign, for the cases of signing.

Everything here is made by the words of docs/format.md, not by the functions that gitmem writes with.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..outcome import Struct
from ..text import ed25519

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
SALT_MARK = ',"salt":"'
DOMAIN = "gitmem attestation\n"


def base32(digest: bytes, length: int) -> str:
    """Return the first characters of a digest, 5 bits each."""
    number = int.from_bytes(digest, "big") >> len(digest) * 8 - length * 5
    return "".join(ALPHABET[number >> 5 * place & 31] for place in reversed(range(length)))


def sha256(text: str) -> bytes:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()


def compact(fields: Mapping[str, Any]) -> str:
    """Return an object as compact JSON."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def url64(content: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def writer_id(public: bytes) -> str:
    """Return the id of the writer with a public key."""
    return base32(hashlib.sha256(public).digest(), 16)


def bound(head: str, writer: str) -> str:
    """Return an id that is bound to a writer: a prefix, `-` and 10 characters, and the 12 that follow from both."""
    return head + base32(sha256(f"{writer}\n{head}"), 12)


def reduced(line: str) -> str:
    """Return a line with the SHA-256 of its salt and texts in their place; without a salt the line itself."""
    kept, mark, rest = line.partition(SALT_MARK)
    return f'{kept},"texts":"{sha256(rest).hex()}"}}' if mark else line


def line_hash(line: str) -> bytes:
    """Return what attestations and `forget` have of a line."""
    return sha256(reduced(line))[:16]


class Writer(Struct):
    """A writer.

    Attributes:
        seed: The seed of its private key.
    """

    seed: bytes

    @property
    def public(self) -> bytes:
        """Its public key."""
        return ed25519.public_of(self.seed)

    @property
    def id(self) -> str:
        """Its id."""
        return writer_id(self.public)

    def bound(self, prefix: str, number: int = 1) -> str:
        """Return an id of this writer."""
        return bound(f"{prefix}-{number:010}", self.id)

    def _head(self, kind: str, hour: int, number: int) -> dict[str, Any]:
        """Return the fields that every line begins with."""
        at = f"2026-11-21T{hour}:00:00.{number:06}Z"
        return {"at": at, "kind": kind, "writer": self.id, "schema_version": "A2A.V1"}

    def signal(self, number: int = 1, *, salt: str = "0123456789abcdefghjkmnpqrs", **fields: Any) -> str:
        """Return a line with a signal; without a salt if that is empty. A field with the value None is left out."""
        texts = ({"salt": salt} if salt else {}) | {"message": fields.pop("message", "hello")}
        record = {
            **self._head("signal", 20, number),
            "signal_id": self.bound("sig", number),
            "sender_identity": f"codex:implementer:prices@{self.id}",
            "recipients": [],
            "intent": "INFO",
            "interrupt_class": "advisory",
            "origin": "local",
            **fields,
        }
        return compact({name: value for name, value in (record | texts).items() if value is not None})

    def forget(self, lines: Iterable[str], number: int = 1) -> str:
        """Return the record by which this writer forgets lines."""
        return compact(
            {
                **self._head("forget", 21, number),
                "forget_id": self.bound("forget", number),
                "lines": [line_hash(line).hex() for line in lines],
                "about": self.bound("sig"),
                "reason": "A leaked password.",
                "sender_identity": f"codex:implementer:prices@{self.id}",
            }
        )

    def grant(self, other: Writer, *words: str) -> str:
        """Return the record by which this writer lets another one write as its addresses, or as those of these words."""
        return compact(
            {
                **self._head("trust", 19, 1),
                "trust_id": self.bound("trust"),
                "event": "grant",
                "other": other.id,
                **({"words": words} if words else {}),
            }
        )

    def attestation(self, lines: Iterable[str], number: int = 1) -> dict[str, Any]:
        """Return the fields of an attestation of lines, all but the signature."""
        hashes = sorted({line_hash(line) for line in lines})
        return {
            **self._head("attestation", 22, number),
            "key": url64(self.public),
            "clone": "0123456789",
            "number": "1",
            "lines": url64(b"".join(hashes)),
        }

    def signed(self, fields: Mapping[str, Any]) -> str:
        """Return fields as a line with a valid signature of this writer."""
        return self.sealed(compact(fields)[:-1])

    def sealed(self, content: str) -> str:
        """Return the beginning of a line with a valid signature of it."""
        return f'{content},"signature":"{url64(ed25519.sign(self.seed, (DOMAIN + content).encode()))}"}}'

    def attest(self, *lines: str, number: int = 1) -> str:
        """Return the attestation of lines."""
        return self.signed(self.attestation(lines, number))


ANNA, BOB, MALLORY = (Writer(bytes([number]) * 32) for number in (1, 2, 3))
