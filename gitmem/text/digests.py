"""SHA-256, base32, and the message authentication code (MAC) that hides the ids of clients.

`docs/local-state.md`, "Keys and codes", defines the bytes. The standard library's `hashlib` and `hmac` load OpenSSL, which adds a
quarter to the start of an empty Python. So HMAC is computed here from SHA-256 alone (RFC 2104).
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from hashlib import _Hash as HASH
    from hashlib import sha256 as sha256
else:
    try:
        from _sha2 import sha256  # CPython 3.12 and later
    except ImportError:
        try:
            from _sha256 import sha256  # CPython 3.11
        except ImportError:
            from hashlib import sha256

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's, in lower case and in the order of ASCII
_BLOCK_BYTES = 64
_CHARACTERS = 26
MANY = 1_000  # number of hashes from which loading OpenSSL is faster


def hash_function_for(count: int) -> Callable[[bytes], HASH]:
    """Return the fastest hash function for `count` texts: OpenSSL uses the processor's SHA instructions."""
    if count < MANY and "_hashlib" not in sys.modules:
        return sha256
    from hashlib import sha256 as fast

    return fast


def b32(content: bytes, count: int) -> str:
    """Return the first bits of some bytes in base32: `count` characters of five bits, missing bits are 0."""
    bits, spare = int.from_bytes(content, "big"), len(content) * 8 - count * 5
    bits = bits >> spare if spare > 0 else bits << -spare
    return "".join([ALPHABET[bits >> shift & 31] for shift in range(count * 5 - 5, -1, -5)])


def token_of(content: bytes) -> str:
    """Return some bytes as a token: a character of base32 for the last five bits of each."""
    return "".join([ALPHABET[byte & 31] for byte in content])


class Mac:
    """HMAC-SHA256 under one key, truncated to 128 bits, as 26 characters of base32.

    Args:
        key: The secret; at most 64 bytes.
    """

    def __init__(self, key: bytes) -> None:
        block = key.ljust(_BLOCK_BYTES, b"\0")
        hashed = hash_function_for(1)
        self._inner = hashed(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashed(bytes(byte ^ 0x5C for byte in block))

    def of(self, content: bytes) -> str:
        """Return the MAC of some bytes."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(content)
        outer.update(inner.digest())
        return b32(outer.digest()[:16], _CHARACTERS)
