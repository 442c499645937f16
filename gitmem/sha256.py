"""SHA-256 without `hashlib`, which loads OpenSSL: a quarter of an empty Python for one function."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from hashlib import _Hash as HASH
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # CPython 3.12 and later
    except ImportError:
        try:
            from _sha256 import sha256  # CPython 3.11
        except ImportError:
            from hashlib import sha256

__all__ = ["hash_of", "sha256"]
MANY = 1_000  # hashes from which on loading OpenSSL is worth it


def hash_of(count: int) -> Callable[[bytes], HASH]:
    """Return the function that hashes so many texts fastest: OpenSSL uses the processor's own instructions."""
    if count < MANY and "_hashlib" not in sys.modules:
        return sha256
    from hashlib import sha256 as fast

    return fast
