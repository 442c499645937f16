"""Writers for tests: their keys, lines in their name, and attestations."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from gitmem import records
from gitmem.log import attestations
from gitmem.log.attestations import writer_id
from gitmem.log.lines import HEAD_BYTES, CommitMessage, LogEntry, is_attestation, line_hash, writer_of
from gitmem.repo import find
from gitmem.text import ed25519
from gitmem.trust import keys
from gitmem.trust.keys import SigningKey

AT = 1_795_291_200_123_456
CLONE = "0123456789"
SALT = b"0123456789abcdefghjkmnpqrs"


def key_of(seed: bytes) -> SigningKey:
    public = ed25519.public_of(seed)
    return SigningKey(writer_id(public), public, seed)


ANNA, BOB, MALLORY = (key_of(bytes([number]) * 32) for number in (1, 2, 3))


def put_key(path: Path, key: SigningKey) -> None:
    """The key file of a writer."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        path.touch(0o600)
        path.write_text(f"gitmem-key ed25519 {key._seed.hex()}\n")


def own_key(repo: Path, key: SigningKey = ANNA) -> None:
    """Let a writer be the user of a clone that nobody has used yet."""
    state = find(str(repo)).state
    if not keys.all_noted(state):
        put_key(Path(state, f"writer-{os.geteuid()}.key"), key)


def named(line: bytes, writer: SigningKey) -> bytes:
    """The line in the name of a writer."""
    kind = line.index(b",", HEAD_BYTES)
    return b'%b,"writer":"%b"%b' % (line[:kind], writer.writer.encode(), line[kind:])


def addressed(line: bytes, writer: SigningKey) -> bytes:
    """The line with the writer in its addresses, and in its name; one of an unknown kind in its name alone."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return named(line, writer)
    if not isinstance(fields, dict) or fields.get("kind") not in records.KINDS:
        return named(line, writer)
    at, kind = fields.pop("at"), fields.pop("kind")
    whole = {
        "at": at,
        "kind": kind,
        "writer": writer.writer,
        **records.addressed(kind, fields, writer.writer),
    }
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def salted(line: bytes) -> bytes:
    """The line with its texts last, after a salt, if it has any."""
    try:
        record = json.loads(line)
        texts = {name: record.pop(name) for name in records.TEXTS.get(record["kind"], ()) if name in record}
    except (ValueError, KeyError, TypeError, RecursionError):
        return line
    whole = json.dumps({**record, "salt": SALT.decode(), **texts}, ensure_ascii=False, separators=(",", ":"))
    return whole.encode("utf-8", "replace") if texts else line


def forget(lines: Iterable[bytes], key: SigningKey, at: int = AT, of: SigningKey | None = None) -> bytes:
    """The record by which a writer forgets lines, or those of another."""
    hashes = [line_hash(line).hex() for line in lines]
    by = {
        "sender_identity": f"a:b:anna@{key.writer}",
        "about": "sig-0001",
        "reason": "A leaked key.",
        "of": of and of.writer,
    }
    return records.line("forget", at, {"forget_id": "forget-0001", "lines": hashes, **by}, writer=key.writer)


def attest(lines: Iterable[bytes], key: SigningKey, at: int = AT) -> bytes:
    """The attestation of lines by a key."""
    clock = itertools.count(at)
    (made,) = attestations.seal(key, lines, lambda: next(clock), CLONE, None)
    return made


class Importer:
    """A committer that attests what names no writer."""

    def lacks(self, writer: str) -> bool:
        return bool(writer)

    def seal(self, entries: Sequence[LogEntry], content_at: Callable[[str], bytes]) -> list[LogEntry]:
        made = history(line for entry in entries for _, line in entry.lines)
        rows = [(entries[0].lines[0][0], line) for line in made]
        return [LogEntry(rows, CommitMessage("", ""), deferred=True, token=entries[0].token)] if rows else []


def history(lines: Iterable[bytes], at: int = AT) -> list[bytes]:
    """The attestations of those lines that name no writer, by somebody who has imported them."""
    clock = itertools.count(at)
    found = [line for line in lines if not writer_of(line) and not is_attestation(line)]
    return attestations.seal(MALLORY, found, lambda: next(clock), CLONE, None)
