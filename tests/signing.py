"""Writers for tests: their keys, lines in their name, and attestations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from gitmem.log import attestations
from gitmem.log.attestations import writer_id
from gitmem.log.lines import HEAD_BYTES
from gitmem.text import ed25519
from gitmem.trust.keys import SigningKey

AT = 1_795_291_200_123_456
CLONE = "0123456789"


def key_of(seed: bytes) -> SigningKey:
    public = ed25519.public_of(seed)
    return SigningKey(writer_id(public), public, seed)


ANNA, BOB, MALLORY = (key_of(bytes([number]) * 32) for number in (1, 2, 3))


def named(line: bytes, writer: SigningKey) -> bytes:
    """The line in the name of a writer."""
    kind = line.index(b",", HEAD_BYTES)
    return b'%b,"writer":"%b"%b' % (line[:kind], writer.writer.encode(), line[kind:])


def attest(lines: Iterable[bytes], key: SigningKey, at: int = AT) -> bytes:
    """The attestation of lines by a key."""
    clock = itertools.count(at)
    (made,) = attestations.seal(key, lines, lambda: next(clock), CLONE, None)
    return made
