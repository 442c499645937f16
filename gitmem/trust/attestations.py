"""Attestations: lines by which a writer signs lines of its own, made and read; `docs/format.md`, section 13, defines the bytes."""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64

from .. import records
from ..log import ledger
from ..outcome import Struct
from ..records.lines import VERSION, format_time
from ..records.table import FIELDS
from . import ed25519
from .keys import writer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..records.record_types import AttestationFields
    from .keys import SigningKey

DIGESTS_MAX = (
    FIELDS["attestation"]["lines"][3] * 6 // 8 // ledger.KEY_BYTES
)  # as the form of the field allows: 9,000
_DOMAIN = b"gitmem attestation\n"  # no other signature under the key begins so
_FIELD = b',"signature":"'
_SIGNATURE_CHARACTERS = 86
_TAIL_BYTES = len(_FIELD) + _SIGNATURE_CHARACTERS + 2  # the field, its closing quote and the closing brace
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


def line_digest(line: bytes) -> bytes:
    """Return what an attestation has of a line."""
    return ledger.key(line)


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
    digests = sorted(set(map(line_digest, lines)))
    number, before = last or (0, "")
    made = []
    for start in range(0, len(digests), DIGESTS_MAX):
        number += 1
        content = _content(
            format_time(at()),
            {
                "writer": key.writer,
                "key": _text(key.public),
                "clone": clone,
                "number": str(number),
                "before": before,
                "lines": _text(b"".join(digests[start : start + DIGESTS_MAX])),
                "signature": "",  # of what precedes it
            },
        )
        made.append(b'%b%b%b"}' % (content, _FIELD, _text(key.sign(_DOMAIN + content)).encode()))
        before = line_digest(made[-1]).hex()
    return made


def read(line: bytes) -> Attestation | None:
    """Return what a line attests; None if it is no attestation, of another form than `seal` makes, or not signed by its key.

    No line raises an error.
    """
    record = records.read_kind("attestation", line)
    if record is None:
        return None
    # The signature is read from the bytes after these, which have no room for anything else.
    content, number, before = line[:-_TAIL_BYTES], record["number"], record.get("before") or ""
    if content != _content(record["at"], record) or (number == "1") != (before == ""):
        return None
    public, joined, signature = (_bytes(record[name]) for name in ("key", "lines", "signature"))
    digests = [joined[start : start + ledger.KEY_BYTES] for start in range(0, len(joined), ledger.KEY_BYTES)]
    found = frozenset(digests)
    if not 0 < len(found) == len(digests) or digests != sorted(digests):
        return None
    if len(digests[-1]) != ledger.KEY_BYTES or record["writer"] != writer_of(public):
        return None
    if not ed25519.verify(public, signature, _DOMAIN + content):
        return None
    digest = line_digest(line).hex()
    return Attestation(record["writer"], public, record["clone"], int(number), before, found, digest)


def _content(at: str, fields: AttestationFields) -> bytes:
    """Return the bytes of a line before its signature: no value needs an escape."""
    after = f',"before":"{before}"' if (before := fields.get("before")) else ""
    return (
        f'{{"at":"{at}","kind":"attestation","schema_version":"{VERSION}","writer":"{fields["writer"]}","key":"{fields["key"]}",'
        f'"clone":"{fields["clone"]}","number":"{fields["number"]}"{after},"lines":"{fields["lines"]}"'
    ).encode()


def _text(content: bytes) -> str:
    """Return bytes in base64url without padding."""
    return b2a_base64(content, newline=False).translate(_TO_URL).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """Return the bytes of a text that is the one form that `_text` gives them; empty for any other."""
    try:
        found = a2b_base64(text.encode().translate(_FROM_URL) + b"=" * (-len(text) % 4), strict_mode=True)
    except (Error, ValueError):
        return b""
    return found if _text(found) == text else b""
