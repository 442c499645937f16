"""Ed25519 (RFC 8032) by the package `cryptography`, which is imported only where a key is made, signs or verifies.

Every clone must reach the same verdict, so what implementations treat differently is refused here: keys of small order, under
which one signature can be valid for many messages, and keys that are not in the one canonical encoding.
"""

from __future__ import annotations

KEY_BYTES = 32  # of a seed and of a public key
_PRIME = 2**255 - 19
_SIGN_BIT = 1 << 255  # of x; the other bits are y
# The y of all points whose order divides the cofactor 8; of order 8 are those with d * y**4 + 2 * y**2 = 1.
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL_ORDER = frozenset((0, 1, _PRIME - 1, _EIGHTH, _PRIME - _EIGHTH))


def public_of(seed: bytes) -> bytes:
    """Return the public key of a seed of 32 bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def sign(seed: bytes, message: bytes) -> bytes:
    """Return the signature of a message under the key of a seed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).sign(message)


def verify(public: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether a signature is valid. Bytes of any length and content raise no error."""
    if not is_strict(public):
        return False
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_strict(public: bytes) -> bool:
    """Return whether bytes can be a public key: 32, in the canonical encoding, and not of small order."""
    y = int.from_bytes(public, "little") & ~_SIGN_BIT
    return len(public) == KEY_BYTES and y < _PRIME and y not in _SMALL_ORDER
