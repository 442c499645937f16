"""Signatures: what RFC 8032 says, and a refusal of what two implementations could see differently."""

from __future__ import annotations

import pytest

from gitmem.text import ed25519

PRIME = 2**255 - 19
# RFC 8032, section 7.1: seed, public key, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
SMALL_ORDER = [  # the encodings of the points whose order divides 8, of both signs
    *(value + sign for value in (0, 1, PRIME - 1) for sign in (0, 1 << 255)),
    *(
        int.from_bytes(bytes.fromhex(value), "little")
        for value in (
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        )
    ),
]


@pytest.mark.parametrize(("seed", "public", "message", "signature"), VECTORS)
def test_the_vectors_of_the_rfc_hold(seed: str, public: str, message: str, signature: str) -> None:
    secret, key, text, signed = map(bytes.fromhex, (seed, public, message, signature))

    assert ed25519.public_of(secret) == key
    assert ed25519.sign(secret, text) == signed
    assert ed25519.verify(key, signed, text)
    assert not ed25519.verify(key, signed, text + b"\0")
    assert {ed25519.public_of(bytes([each] * 32))[31] >> 7 for each in range(8)} == {0, 1}  # both signs of x
    assert all(ed25519.is_strict(ed25519.public_of(bytes([each] * 32))) for each in range(8))


@pytest.mark.parametrize("value", SMALL_ORDER)
def test_a_key_of_small_order_is_refused(value: int) -> None:
    """Under it one signature, such as R = A and S = 0, is valid for many messages."""
    public = value.to_bytes(32, "little")
    neutral = (1).to_bytes(32, "little") + bytes(32)

    assert not ed25519.is_strict(public)
    assert not any(ed25519.verify(public, neutral, b"%d" % number) for number in range(16))


@pytest.mark.parametrize("above", range(19))
@pytest.mark.parametrize("sign", [0, 1 << 255])
def test_a_key_has_one_encoding(above: int, sign: int) -> None:
    """An y of the prime or more stands for a smaller one: the same key would be two writers."""
    assert not ed25519.is_strict((PRIME + above + sign).to_bytes(32, "little"))


def test_a_signature_has_one_encoding() -> None:
    """S and S plus the order of the group would sign the same."""
    _, public, text, signature = (bytes.fromhex(each) for each in VECTORS[1])
    order = 2**252 + 27742317777372353535851937790883648493
    other = int.from_bytes(signature[32:], "little") + order

    assert not ed25519.verify(public, signature[:32] + other.to_bytes(32, "little"), text)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 63, 64, 65, 1000])
def test_bytes_of_any_length_raise_no_error(size: int) -> None:
    _, public, text, signature = (bytes.fromhex(each) for each in VECTORS[1])

    assert size == 32 or not ed25519.is_strict(b"\x02" * size)
    assert not ed25519.verify(b"\x02" * size, signature, text)
    assert not ed25519.verify(public, b"\x02" * size, text)
    not_a_point = (2).to_bytes(32, "little")  # no x fits this y
    assert ed25519.is_strict(not_a_point)
    assert not ed25519.verify(not_a_point, signature, text)
