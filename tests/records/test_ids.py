"""Ids: random ones, ones made from a key, and what counts as one."""

from __future__ import annotations

import hashlib

from gitmem.records import ids

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def test_a_new_id_is_twelve_crockford_characters_of_sixty_bits() -> None:
    """All 60 bits of the source count, and only those."""
    assert ids.new_id("sig", lambda size: b"\xff" * size) == "sig-" + "z" * 12
    assert ids.new_id("sig", bytes) == "sig-" + "0" * 12
    assert ids.new_id("sess", lambda size: b"\x08" + bytes(size - 1)) == "sess-1" + "0" * 11
    assert len({ids.new_id("mem") for _ in range(1000)}) == 1000
    assert set("".join(ids.new_id("x")[2:] for _ in range(200))) <= set(CROCKFORD)


def test_a_keyed_id_is_a_function_of_its_parts() -> None:
    """The first 12 base32 characters of the SHA-256 of the parts joined by LF."""
    bits = bin(int(hashlib.sha256(b"a:b:c\nkey").hexdigest(), 16))[2:].zfill(256)
    expected = "".join(CROCKFORD[int(bits[at : at + 5], 2)] for at in range(0, 60, 5))

    assert ids.keyed_id("sig", "a:b:c", "key") == f"sig-{expected}"
    assert ids.keyed_id("thread", "a:b:c", "key") == f"thread-{expected}"


def test_what_is_an_id() -> None:
    """The prefix, a dash and 4 to 32 lower-case letters or digits."""
    assert ids.is_id("sig", ids.new_id("sig"))
    assert ids.is_id("sig", "sig-iloU".lower())
    for text in (
        "sig-abc",
        "sig-" + "a" * 33,
        "sig-ABCD",
        "sess-abcd",
        "sig-ab!d",
        "sig-abcd\n",
        "sigabcd",
        "",
    ):
        assert not ids.is_id("sig", text), text
