"""The code that hides the ids of clients."""

from __future__ import annotations

import hmac

from hypothesis import given
from hypothesis import strategies as st

from gitmem.text.digests import Mac


def base32(content: bytes) -> str:
    bits = int.from_bytes(content, "big") << 2
    return "".join("0123456789abcdefghjkmnpqrstvwxyz"[bits >> shift & 31] for shift in range(125, -1, -5))


@given(st.binary(max_size=64), st.binary(max_size=300))
def test_the_code_is_that_of_the_standard_library(key: bytes, content: bytes) -> None:
    """HMAC by hand gives what `hmac` gives."""
    assert Mac(key).of(content) == base32(hmac.digest(key, content, "sha256")[:16])
