"""Attestations: only the bytes that the writer signed say which lines are the writer's."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re

import pytest

from gitmem import records
from gitmem.log.attestations import DIGESTS_MAX, Verdicts, read, seal
from gitmem.log.lines import line_hash, parse_at, reduced
from gitmem.records.lines import LINE_MAX_BYTES
from gitmem.text import ed25519
from gitmem.trust.keys import SigningKey

from ..signing import key_of

AT = 1_795_291_200_123_456
CLONE = "0123456789"
LINES = [b'{"at":"2026-11-21T20:00:00.%06dZ","kind":"name"}' % number for number in range(10)]


KEY = key_of(bytes(range(32)))
OTHER = key_of(bytes(32))


def sealed(lines: list[bytes], key: SigningKey = KEY, last: tuple[int, str] | None = None) -> list[bytes]:
    clock = itertools.count(AT)
    return seal(key, lines, lambda: next(clock), CLONE, last)


def signed(fields: dict[str, object], key: SigningKey = KEY) -> bytes:
    """Return the line with these fields, whatever they are, and its valid signature."""
    content = json.dumps(fields, separators=(",", ":")).encode()[:-1]
    return content + b',"signature":"' + b64(key.sign(b"gitmem attestation\n" + content)).encode() + b'"}'


def b64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def fields_of(line: bytes) -> dict[str, object]:
    fields: dict[str, object] = json.loads(line)
    del fields["signature"]
    return fields


def test_a_line_is_attested_by_its_reduced_form() -> None:
    """Whatever its texts, and for good: a line without a salt is what it is."""
    (kept, cut) = b'{"at":"2026-11-21T20:00:00.000000Z","kind":"name"', b"0123456789abcdefghjkmnpqrs"
    line = b'%b,"salt":"%b","message":"x"}' % (kept, cut)
    without = b'%b,"texts":"%b"}' % (kept, hashlib.sha256(cut + b'","message":"x"}').hexdigest().encode())

    assert reduced(line) == without == reduced(without)
    assert line_hash(line) == line_hash(without) == hashlib.sha256(without).digest()[:16]
    assert line_hash(line) != line_hash(line.replace(b'"x"', b'"y"'))


def test_what_is_sealed_is_read() -> None:
    """In the form of every other record, and readable by it alone."""
    (line,) = sealed([*LINES, LINES[0]])
    found = read(line)

    assert found is not None
    assert (found.writer, found.public, found.clone, found.number, found.before) == (
        KEY.writer,
        KEY.public,
        CLONE,
        1,
        "",
    )
    assert found.digests == {line_hash(each) for each in LINES}
    assert found.digest == line_hash(line).hex()
    record = records.read_kind("attestation", line)
    assert record is not None
    fields = {name: value for name, value in record.items() if name not in ("at", "kind", "writer")}
    at, writer = parse_at(record["at"]), record["writer"]
    assert records.line("attestation", at, fields, allow_secret=True, writer=writer) == line


def test_the_bytes_are_those_of_the_specification() -> None:
    """By the standard library alone; a change of any of them makes all that was signed void."""
    digests = sorted(hashlib.sha256(line).digest()[:16] for line in LINES[:2])
    fields = {
        "at": "2026-11-21T20:00:00.123456Z",
        "kind": "attestation",
        "writer": "as3nn9tmcd3mr0m5",
        "schema_version": "A2A.V1",
        "key": "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg",
        "clone": CLONE,
        "number": "1",
        "lines": b64(b"".join(digests)),
    }

    assert sealed(LINES[:2]) == [signed(fields)]
    assert (
        hashlib.sha256(sealed(LINES[:2])[0]).hexdigest()
        == "9bd0d40373ed35a4ad36429d2fd1914d429dfcf99f2e7750600c836632bde3a2"
    )


def test_attestations_of_a_clone_are_a_chain() -> None:
    """As many as the lines need; no lines need none."""
    lines = [b"%d" % number for number in range(2 * DIGESTS_MAX + 1)]
    made = sealed(lines)
    found = [each for each in map(read, made) if each is not None]

    assert DIGESTS_MAX == 9_000
    assert [len(each.digests) for each in found] == [DIGESTS_MAX, DIGESTS_MAX, 1]
    assert [each.number for each in found] == [1, 2, 3]
    assert [each.before for each in found] == ["", found[0].digest, found[1].digest]
    assert max(map(len, made)) <= LINE_MAX_BYTES
    assert frozenset().union(*(each.digests for each in found)) == {line_hash(line) for line in lines}
    (after,) = sealed([b"x"], last=(found[-1].number, found[-1].digest))
    read_after = read(after)
    assert read_after is not None and (read_after.number, read_after.before) == (4, found[-1].digest)
    assert sealed([]) == []


@pytest.mark.parametrize("last", [None, (7, "0" * 32)])
def test_a_change_of_any_byte_is_refused(last: tuple[int, str] | None) -> None:
    (line,) = sealed(LINES[:2], last=last)
    assert read(line) is not None

    for place in range(len(line)):
        for bit in (1, 32):
            changed = bytearray(line)
            changed[place] ^= bit
            assert read(bytes(changed)) is None, place


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("writer", OTHER.writer),
        ("writer", KEY.writer[:-1]),
        ("key", b64(OTHER.public)),
        ("key", b64(KEY.public) + "="),
        ("key", b64(KEY.public)[:-1] + "h"),  # the same bytes with another spare bit
        ("key", b64(bytes(32))),
        ("clone", "Z123456789"),
        ("clone", ""),
        ("clone", None),
        ("number", "2"),
        ("number", "0"),
        ("number", "01"),
        ("number", 1),
        ("number", "1" * 10),
        ("before", "0" * 32),
        ("before", ""),
        ("lines", ""),
        ("lines", []),
        ("lines", b64(b"a" * 15)),
        ("lines", b64(b"a" * 17)),
        ("lines", b64(b"a" * 16 + b"b")),
        ("lines", b64(b"a" * 16 + b"b" * 16) + "A"),
        ("lines", b64(b"b" * 16 + b"a" * 16)),
        ("lines", b64(b"a" * 32)),
        ("lines", b64(b"".join(b"%016d" % number for number in range(DIGESTS_MAX + 1)))),
        ("lines", b64(b"".join(b"%016d" % number for number in range(1_000_000)))),
        ("kind", "signal"),
        ("kind", "Attestation"),
        ("schema_version", "A2A.V2"),
        ("at", "2026-02-30T20:00:00.123456Z"),
        ("later", "1"),
        ("mac", "0" * 26),
        ("signature", "x" * 86),
    ],
)
def test_a_valid_signature_is_not_enough(name: str, value: object) -> None:
    """Each clone must see one and the same thing in a line: other forms of it are no attestations."""
    fields = fields_of(sealed(LINES[:2])[0])
    assert read(signed(fields)) is not None

    assert read(signed({**fields, name: value})) is None


@pytest.mark.parametrize(
    "name", ["at", "kind", "schema_version", "writer", "key", "clone", "number", "lines"]
)
def test_a_missing_field_is_refused(name: str) -> None:
    fields = fields_of(sealed(LINES[:2])[0])
    del fields[name]

    assert read(signed(fields)) is None


def test_the_key_of_another_writer_signs_nothing() -> None:
    """Neither under its own name nor under that of the victim."""
    fields = fields_of(sealed(LINES[:2])[0])

    assert read(signed(fields, OTHER)) is None
    assert read(signed({**fields, "key": b64(OTHER.public)}, OTHER)) is None
    assert read(signed({**fields, "key": b64(OTHER.public), "writer": OTHER.writer}, OTHER)) is not None


def test_a_signature_of_other_bytes_is_none() -> None:
    """Such as one that the key made of a text without the words that attestations begin with."""
    line = sealed(LINES[:2])[0]
    content = line[: line.index(b',"signature"')]

    assert read(content + b',"signature":"' + b64(KEY.sign(content)).encode() + b'"}') is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b',"writer"', b', "writer"'),
        (b'"attestation"', b'"\\u0061ttestation"'),
        (b'"}', b'","later":"1"}'),
        (b'"}', b'"} '),
        (b'"}', b'","mac":"00000000000000000000000000"}'),
        (b'"}', b'","signature":"' + b"x" * 86 + b'"}'),
        (b'"number":"1"', b'"number":"1","number":"1"'),
        (b'"clone"', b'"klone"'),
    ],
)
def test_another_form_of_the_same_content_is_refused(old: bytes, new: bytes) -> None:
    """Also where the changed bytes are signed: only one line says one thing."""
    (line,) = sealed(LINES[:2])
    changed = line.replace(old, new)
    assert changed != line
    assert read(changed) is None

    content, mark, _ = line.partition(b',"signature"')
    again = content.replace(old, new)
    tail = b64(KEY.sign(b"gitmem attestation\n" + again)).encode()
    found = read(again + mark + b':"' + tail + b'"}')
    assert (found is None) is (again != content)


def test_a_process_verifies_a_signature_once_and_keeps_few_verdicts() -> None:
    """Of each line, valid or not: 5 MB of attestations cost an auditor 1.5 s of CPU twice."""
    asked: list[bytes] = []

    def counted(public: bytes, signature: bytes, message: bytes) -> bool:
        asked.append(signature)
        return ed25519.verify(public, signature, message)

    verdicts = Verdicts(counted, 4)
    good = [sealed([line])[0] for line in LINES[:5]]
    bad = [re.sub(b'"signature":"..', b'"signature":"AA', line) for line in good]

    for one, other in zip(good, bad, strict=True):
        for _ in range(3):
            assert read(one, verdicts) is not None and read(other, verdicts) is None

    assert len(asked) == len(set(asked)) == len(good + bad)
    read(good[0], verdicts)
    assert asked[-1] == asked[0], "the oldest verdict was let go"


def test_a_line_without_a_signature_or_of_any_bytes_raises_no_error() -> None:
    line = sealed(LINES[:2])[0]
    content = line[: line.index(b',"signature"')]

    for each in (
        b"", b"{", b"\xff" * 99, b"[]", content, content + b"}", content + b',"signature":""}',
        content + b',"signature":"' + b"A" * 85 + b'"}', content + b',"signature":' + b"1" * 86 + b"}", LINES[0], line + b"\n",
        b"[" * 100_000, line * 3,
    ):  # fmt: skip
        assert read(each) is None
