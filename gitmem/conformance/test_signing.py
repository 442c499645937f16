"""Signing: which lines count, whoever writes them, and what is forgotten."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from .adapter import FullBus
from .case_setup import needs
from .signed_lines import (
    ANNA,
    BOB,
    MALLORY,
    SALT_MARK,
    Writer,
    compact,
    line_hash,
    reduced,
    sha256,
    url64,
    writer_id,
)

# The writer with the seed of 32 bytes 01; the same in docs/conformance.md.
KEY = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
WRITER = "6htgz65xb7yfs53d"
LINE = (
    '{"at":"2026-11-21T20:00:00.000001Z","kind":"signal","writer":"6htgz65xb7yfs53d","schema_version":"A2A.V1","sig'
    'nal_id":"sig-0000000001ftqx5zsevrcg","sender_identity":"codex:implementer:prices@6htgz65xb7yfs53d","recipients'
    '":[],"intent":"INFO","interrupt_class":"advisory","origin":"local","salt":"0123456789abcdefghjkmnpqrs","messag'
    'e":"hello"}'
)
HASH = "ef6d730d6e9ae40bc5b1378d33fb0d31"
ATTESTATION = (
    '{"at":"2026-11-21T22:00:00.000001Z","kind":"attestation","writer":"6htgz65xb7yfs53d","schema_version":"A2A.V1"'
    ',"key":"iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w","clone":"0123456789","number":"1","lines":"721zDW6a5AvFsT'
    'eNM_sNMQ","signature":"oinxcQBMkfzs3ymagoLwis0VTWtD7Os-vH5NK67bQFo5ms_uoSQJiTJNzzdPX1Szte2zjGTn3Id7CCe2Raf2Dg"'
    "}"
)
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493  # of the curve's points
NEUTRAL = bytes([1]) + bytes(31)  # a point of order 1


def counting(bus: FullBus, *lines: str) -> list[str]:
    """Return the lines that count after these have arrived."""
    found = bus.judge(lines)
    assert found == sorted({*found}), "the lines of an answer must be in the order of their bytes, each once"
    return found


@needs("judge")
def test_a_writer_is_named_by_its_key(bus: FullBus) -> None:
    """gitmem: “A writer's id is the first 16 base32 characters of the SHA-256 of its Ed25519 public key.”"""
    assert writer_id(bytes.fromhex(KEY)) == WRITER
    assert counting(bus, LINE, ATTESTATION) == [LINE]

    others = [Writer(bytes([number]) * 32) for number in range(2, 9)]
    lines = [each.signal() for each in others]
    assert counting(bus, *lines, *(each.attest(*lines) for each in others)) == sorted(lines)


@needs("judge")
@pytest.mark.parametrize(
    ("name", "prefix"), [("signal_id", "sig"), ("sender_session", "sess"), ("sender_identity", "sess"), ("via", "sess")]
)  # fmt: skip
def test_an_id_belongs_to_its_writer(bus: FullBus, name: str, prefix: str) -> None:
    """gitmem: “A line whose own id, or id of its session, is bound to another writer is ignored, whoever signs it.”"""
    fields: list[dict[str, Any]] = [{name: writer.bound(prefix)} for writer in (MALLORY, ANNA)]
    own, stolen = (MALLORY.signal(**each) for each in fields)

    assert counting(bus, own, MALLORY.attest(own)) == [own]
    assert counting(bus, stolen, MALLORY.attest(stolen), ANNA.attest(stolen)) == []


@needs("judge")
@pytest.mark.parametrize(
    "id", ["sig-0001", "sig-3f9k2m7q1x0z", "sig-3f9k2m7q1x0z8w4n6t2c5", "sig-3f9k2m7q1x0z8w4n6t2c5y1"]
)
def test_an_id_of_another_length_is_free(bus: FullBus, id: str) -> None:
    """gitmem: “Only ids with 22 characters are bound; any other is valid in every writer's line.”"""
    line = MALLORY.signal(signal_id=id)

    assert counting(bus, line, MALLORY.attest(line)) == [line]


@needs("judge")
@pytest.mark.parametrize("words", ["codex:implementer:prices", "human:anna@example.org"])
def test_an_address_belongs_to_its_writer(bus: FullBus, words: str) -> None:
    """gitmem: “A line whose sender is the address of another writer, who has not allowed it, or words without a writer, does not count.”"""
    own, stolen, bare = (
        MALLORY.signal(sender_identity=f"{words}{end}") for end in (f"@{MALLORY.id}", f"@{ANNA.id}", "")
    )
    nobodys = MALLORY.signal(sender_identity=f"{words}@{ANNA.id}", salt="", writer=None)

    assert counting(bus, own, MALLORY.attest(own)) == [own]
    for line in (stolen, bare, nobodys):
        assert counting(bus, line, MALLORY.attest(line), ANNA.attest(line)) == []


HISTORY: dict[str, Any] = {
    "salt": "",
    "writer": None,
    "signal_id": "sig-0001",
    "sender_identity": "lumenflow:agent:one",
}


@needs("judge")
def test_a_line_without_a_writer_counts_when_anybody_has_signed_it(bus: FullBus) -> None:
    """gitmem: “A line that names no writer, as of another tool, counts when somebody has signed it, in whatever order that arrives.”"""
    line = ANNA.signal(**HISTORY)

    assert counting(bus, line) == []
    for arrived in ([line, BOB.attest(line)], [MALLORY.attest(line), line]):
        assert counting(bus, *arrived) == [line]


@needs("judge")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("reply_to", ANNA.bound("sig"), id="reply_to"),
        pytest.param("thread_id", ANNA.bound("thread"), id="thread_id"),
        pytest.param("thread_id", f"release-1@{ANNA.id}", id="named thread"),
        pytest.param("recipients", [f"human:anna@example.org@{ANNA.id}"], id="recipients"),
        pytest.param("signal_id", ANNA.bound("sig"), id="signal_id"),
    ],
)
def test_a_line_without_a_writer_names_nothing_of_one(bus: FullBus, name: str, value: Any) -> None:
    """gitmem: “A line that names no writer is ignored if a field but a text has an id, an address or a named thread of one.”"""
    line, text = ANNA.signal(**{**HISTORY, name: value}), ANNA.signal(**HISTORY, message=str(value))

    assert counting(bus, line, text, ANNA.attest(line, text)) == [text]


@needs("judge")
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_a_writer_may_let_another_one_write_as_it(bus: FullBus, order: Sequence[int]) -> None:
    """gitmem: “A line with an address of another writer counts when a signed grant of that one names its writer, in whatever order they arrive.”"""
    line, grant = BOB.signal(sender_identity=f"codex:implementer:prices@{ANNA.id}"), ANNA.grant(BOB)
    arrived = [line, BOB.attest(line), grant, ANNA.attest(grant)]

    assert counting(bus, *(arrived[number] for number in order)) == sorted([line, grant])
    assert counting(bus, *(arrived[number] for number in order if number != 3)) == []
    assert counting(bus, *(arrived[number] for number in order if number != 1)) == [grant]


@needs("judge")
def test_grants_are_of_the_writer_of_the_address_and_lead_on(bus: FullBus) -> None:
    """gitmem: “Grants count from the writer of the address on, one after the other; no other writer's, and not backwards.”"""
    line = BOB.signal(sender_identity=f"human:anna@example.org@{ANNA.id}")
    grants = [ANNA.grant(MALLORY), MALLORY.grant(BOB)]
    proofs = [BOB.attest(line), ANNA.attest(grants[0]), MALLORY.attest(grants[1])]
    backwards = BOB.grant(ANNA)

    assert counting(bus, line, *grants, *proofs) == sorted([line, *grants])
    assert counting(bus, line, grants[1], *proofs) == [grants[1]]
    assert counting(bus, line, backwards, BOB.attest(line, backwards)) == [backwards]


@needs("judge")
def test_a_grant_is_for_its_words(bus: FullBus) -> None:
    """gitmem: “A grant with words is for the addresses of these words alone.”"""
    grant = ANNA.grant(BOB, "codex:implementer:prices")
    lines = [
        BOB.signal(number, sender_identity=f"codex:{words}@{ANNA.id}")
        for number, words in enumerate(("implementer:prices", "reviewer:prices"))
    ]

    assert counting(bus, *lines, grant, BOB.attest(*lines), ANNA.attest(grant)) == sorted([lines[0], grant])


@needs("judge")
def test_a_line_may_name_others(bus: FullBus) -> None:
    """gitmem: “Ids and addresses of others that a line only refers to are not bound to its writer.”"""
    line = BOB.signal(
        recipients=[f"codex:implementer:prices@{ANNA.id}"],
        thread_id=ANNA.bound("thread"),
        reply_to=ANNA.bound("sig"),
        intent="AGREE",
    )

    assert counting(bus, line, BOB.attest(line)) == [line]


@needs("judge")
def test_a_line_counts_when_its_writer_has_signed_it(bus: FullBus) -> None:
    """gitmem: “A line with a writer counts if and only if a valid attestation of that writer has its hash.”"""
    first, second, third = (ANNA.signal(number) for number in (1, 2, 3))

    assert counting(bus, first, second, third) == []
    assert counting(bus, first, second, third, ANNA.attest(first, third)) == [first, third]
    assert counting(bus, first, second, third, ANNA.attest(first), ANNA.attest(second, number=2)) == [
        first,
        second,
    ]


@needs("judge")
def test_nobody_signs_for_another_writer(bus: FullBus) -> None:
    """gitmem: “An attestation speaks for the lines of its own writer alone.”"""
    line, other = ANNA.signal(), BOB.signal()

    assert counting(bus, line, other, MALLORY.attest(line, other), BOB.attest(line)) == []
    assert counting(bus, line, other, BOB.attest(line, other)) == [other]


@needs("judge")
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_the_order_of_arrival_decides_nothing(bus: FullBus, order: Sequence[int]) -> None:
    """gitmem: “A line and its attestation may arrive in any order, once or several times.”"""
    line = ANNA.signal()
    arrived = [line, ANNA.attest(line), MALLORY.attest(line), ANNA.attest(line, number=2)]

    ordered = [arrived[number] for number in order]

    assert counting(bus, *ordered) == [line]
    assert counting(bus, *ordered, *ordered) == [line]


@needs("judge")
def test_what_is_signed_is_the_hash_of_the_line(bus: FullBus) -> None:
    """gitmem: “The hash of a line is the first 16 bytes of the SHA-256 of its reduced form: another line is not signed.”"""
    line = ANNA.signal()
    assert line_hash(LINE).hex() == HASH
    changed = [
        line.replace("hello", "hullo"),
        line.replace("INFO", "AGREE"),
        line.replace(SALT_MARK + "0", SALT_MARK + "1"),
        line.replace('","kind"', '", "kind"'),
    ]

    assert counting(bus, line, *changed, ANNA.attest(line)) == [line]


def changed_signature(fields: dict[str, Any]) -> str:
    """Return the attestation with another bit in its signature."""
    line = ANNA.signed(fields)
    return line[:-3] + ("A" if line[-3] != "A" else "Q") + line[-2:]


def with_larger_number(fields: dict[str, Any]) -> str:
    """Return the attestation with the other form of its signature: the number in it is larger by the order of the group."""
    content, mark, signature = ANNA.signed(fields).rpartition('"signature":"')
    whole = unpadded(signature[:-2])
    number = int.from_bytes(whole[32:], "little") + GROUP_ORDER
    return f'{content}{mark}{url64(whole[:32] + number.to_bytes(32, "little"))}"}}'


def unpadded(text: str) -> bytes:
    """Return the bytes of base64url without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def of_small_order(fields: dict[str, Any]) -> str:
    """Return the attestation by a key under which one signature is valid for every message; the line is this writer's."""
    content = compact({**fields, "key": url64(NEUTRAL), "writer": writer_id(NEUTRAL)})[:-1]
    return f'{content},"signature":"{url64(NEUTRAL + bytes(32))}"}}'


def with_before(fields: dict[str, Any], **others: str) -> dict[str, Any]:
    """Return the fields of an attestation with `before`, at its place."""
    first = {name: value for name, value in fields.items() if name != "lines"}
    return {**first, **others, "before": "0" * 32, "lines": fields["lines"]}


def with_field(name: str, value: Any) -> Callable[[dict[str, Any]], str]:
    """Return what signs the attestation with another value of a field; None leaves the field out."""
    return lambda fields: ANNA.signed(
        {each: old for each, old in {**fields, name: value}.items() if old is not None}
    )


def with_hashes(change: Callable[[list[bytes]], Sequence[bytes]]) -> Callable[[dict[str, Any]], str]:
    """Return what signs the attestation with other hashes."""

    def make(fields: dict[str, Any]) -> str:
        whole = unpadded(fields["lines"])
        hashes = [whole[start : start + 16] for start in range(0, len(whole), 16)]
        return ANNA.signed({**fields, "lines": url64(b"".join(change(hashes)))})

    return make


def in_another_order(fields: dict[str, Any]) -> str:
    """Return the attestation with two fields exchanged."""
    number = fields.pop("number")
    return ANNA.signed({**fields, "number": number})


INVALID: dict[str, Callable[[dict[str, Any]], str]] = {
    "another signature": changed_signature,
    "another form of the signature": with_larger_number,
    "the signature of another writer": MALLORY.signed,
    "the key of another writer": lambda fields: MALLORY.signed({**fields, "key": url64(MALLORY.public)}),
    "a key of small order": of_small_order,
    "another writer": with_field("writer", BOB.id),
    "hashes that descend": with_hashes(lambda hashes: hashes[::-1]),
    "a hash twice": with_hashes(lambda hashes: [hashes[0], *hashes]),
    "no hash": with_hashes(lambda _: []),
    "half a hash": with_hashes(lambda hashes: [*hashes, b"12345678"]),
    "more than 9000 hashes": with_hashes(
        lambda hashes: sorted([*hashes, *(b"%016d" % number for number in range(8_999))])
    ),
    "the number 0": with_field("number", "0"),
    "a number with a zero": with_field("number", "01"),
    "a number that is none": with_field("number", 1),
    "the number 2 without before": with_field("number", "2"),
    "the number 1 with before": lambda fields: ANNA.signed(with_before(fields)),
    "no clone": with_field("clone", None),
    "another version": with_field("schema_version", "A2A.V2"),
    "another order": in_another_order,
    "another field": lambda fields: ANNA.signed({**fields, "later": "1"}),
    "spaces": lambda fields: ANNA.sealed(compact(fields)[:-1].replace(',"key"', ', "key"')),
    "another message": lambda fields: ANNA.signed(fields).replace("22:00:00", "22:00:01"),
}  # fmt: skip


@needs("judge")
@pytest.mark.parametrize("how", INVALID)
def test_an_attestation_in_another_form_is_none(bus: FullBus, how: str) -> None:
    """gitmem: “An attestation has exactly its fields in their order, hashes that ascend, and a valid signature by the key that its writer is named by.”"""
    lines = [
        ANNA.signal(number, writer=writer, **own(writer, number))
        for writer in (ANNA.id, writer_id(NEUTRAL))
        for number in (1, 2)
    ]
    fields = ANNA.attestation(lines)

    assert counting(bus, *lines, ANNA.signed(fields)) == sorted(lines[:2])
    assert counting(bus, *lines, INVALID[how](fields)) == []


def own(writer: str, number: int) -> dict[str, str]:
    """Return a free id, and an address of a writer without a private key."""
    return {"signal_id": f"sig-000{number}", "sender_identity": f"codex:implementer:prices@{writer}"}


@needs("judge")
def test_a_later_attestation_names_the_one_before(bus: FullBus) -> None:
    """gitmem: “Each attestation of a clone but the first has the hash of the one before; each is valid without it, up to 9000 lines.”"""
    lines = [ANNA.signal(number) for number in (1, 2)]
    fields = ANNA.attestation(lines)
    later = ANNA.signed(with_before(fields, number="2"))
    many = sorted({*map(line_hash, lines), *(b"%016d" % number for number in range(8_998))})

    assert counting(bus, *lines, later) == lines
    assert counting(bus, *lines, ANNA.signed({**fields, "lines": url64(b"".join(many))})) == lines


@needs("judge")
def test_a_forgotten_line_has_its_reduced_form(bus: FullBus) -> None:
    """gitmem: “Of a line that its writer has forgotten the reduced form counts, once, also if only that form is there.”"""
    line, other = ANNA.signal(1), ANNA.signal(2)
    kept = line.partition(SALT_MARK)[0]
    texts = sha256('0123456789abcdefghjkmnpqrs","message":"hello"}').hex()
    cut, record = f'{kept},"texts":"{texts}"}}', ANNA.forget([line])
    proofs = [ANNA.attest(line, other), ANNA.attest(record, number=2)]

    assert counting(bus, line, other, record, *proofs) == sorted([cut, other, record])
    assert counting(bus, line, cut, other, record, *proofs) == sorted([cut, other, record])
    assert counting(bus, cut, other, record, *proofs) == sorted([cut, other, record])


@needs("judge")
def test_a_reduced_form_alone_does_not_count(bus: FullBus) -> None:
    """gitmem: “A reduced form counts only if its writer has attested it and forgotten the line.”"""
    line = ANNA.signal()
    record = ANNA.forget([line])

    assert counting(bus, reduced(line), ANNA.attest(line)) == []
    assert counting(bus, line, reduced(line), ANNA.attest(line)) == [line]
    assert counting(bus, reduced(line), record, ANNA.attest(record)) == [record]


@needs("judge")
def test_a_line_is_forgotten_by_its_writer_alone(bus: FullBus) -> None:
    """gitmem: “A `forget` is about lines of its own writer, and counts when that one has signed it.”"""
    line, record, forged = ANNA.signal(), MALLORY.forget([ANNA.signal()]), ANNA.forget([ANNA.signal()])

    assert counting(bus, line, ANNA.attest(line), record, MALLORY.attest(record)) == sorted([line, record])
    assert counting(bus, line, ANNA.attest(line), forged, MALLORY.attest(forged)) == [line]


@needs("judge")
def test_what_is_forgotten_is_so_in_any_order(bus: FullBus) -> None:
    """gitmem: “A line, its reduced form, its `forget` and their attestations may arrive in any order.”"""
    line = ANNA.signal()
    record = ANNA.forget([line])
    arrived = [line, reduced(line), record, ANNA.attest(line), ANNA.attest(record, number=2)]

    for order in itertools.permutations(arrived):
        assert counting(bus, *order) == sorted([reduced(line), record])


@needs("judge")
def test_a_line_without_a_salt_keeps_its_texts(bus: FullBus) -> None:
    """gitmem: “A line without a salt is its own reduced form.”"""
    line = ANNA.signal(salt="")
    record = ANNA.forget([line])

    assert counting(bus, line, record, ANNA.attest(line, record)) == sorted([line, record])


@needs("judge")
@pytest.mark.parametrize("how", ["two salts", "a field behind the salt"])
def test_behind_the_salt_are_texts_alone(bus: FullBus, how: str) -> None:
    """gitmem: “A line with two salts, or with a field behind its salt that is not a text, is ignored: forgetting must not take a decision away.”"""
    line = ANNA.signal()
    if how == "two salts":
        line = line[:-1] + SALT_MARK + 'x"}'
    else:
        line = line.replace(',"intent":"INFO"', "").replace("}", ',"intent":"AGREE"}')

    assert counting(bus, line, ANNA.attest(line)) == []
