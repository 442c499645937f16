"""An id names its writer: a line that defines an id of another writer, or speaks as one, is ignored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gitmem import records
from gitmem.records import RecordError, ids
from gitmem.records.table import ADDRESSES, FIELDS, OWN, REQUIRED, TEXTS
from gitmem.text.addresses import ADDRESS_FIELDS, spoken_for
from gitmem.trust.keys import SigningKey
from tests.signing import ANNA, AT, BOB, MALLORY, named

VALUES: dict[str, Any] = {
    "event": "claim", "type": "blocks", "lifecycle": "project", "answers_digest": "0" * 64, "commit": "0" * 40, "action": "commit",
    "evidence": "none", "node_ids": ["mem-0001"], "paths": ["docs"], "signal_id": "sig-0001", "task_id": "task-0001",
    "from_id": "mem-0001", "to_id": "mem-0002", "sender_identity": "gitmem", "reader_identity": "gitmem",
}  # fmt: skip
BY_KIND = {
    "session": {"event": "start"},
    "node": {"type": "note"},
    "task_event": {"event": "take"},
    "forget": {"lines": ["0" * 32]},  # type: ignore[dict-item]
    "trust": {"event": "grant", "other": BOB.writer},
}
EVERY = [(kind, name, start) for kind, rows in OWN.items() for name, start, *_ in rows]
HERE = "2026-11-21T20:00:00.123456Z"


def fields_of(kind: str, **fields: str) -> dict[str, Any]:
    """The least fields of a record of a kind."""
    own = {name: start + "0001" for name, start, *_ in OWN[kind] if start != "sess-" or kind == "session"}
    known = {**VALUES, **own, **BY_KIND.get(kind, {}), **fields}
    return {name: known.get(name, "x") for name in {**dict.fromkeys(REQUIRED[kind]), **fields}}


def line_of(kind: str, writer: str | None, **fields: str) -> bytes:
    """A line as anybody can write it."""
    of = {"writer": writer} if writer else {}
    whole = {"at": HERE, "kind": kind, **of, "schema_version": "A2A.V1", **fields_of(kind, **fields)}
    return json.dumps(whole, separators=(",", ":")).encode()


@pytest.mark.parametrize(("kind", "name", "start"), EVERY)
def test_a_line_with_an_id_of_another_writer_is_no_record(kind: str, name: str, start: str) -> None:
    """Neither if it names another, nor if it names nobody; it can't be written, and the doctor says why."""
    anna = ids.new_id(start[:-1], ANNA.writer)
    assert records.read(line_of(kind, ANNA.writer, **{name: anna})) is not None
    assert records.line(kind, AT, fields_of(kind, **{name: anna}), writer=ANNA.writer)
    for writer in (BOB.writer, None):
        line = line_of(kind, writer, **{name: anna})
        must = "be an id of its writer" if writer else "name no id or address of a writer"
        sentence = f"The {kind}'s {name} must {must}"
        assert records.read(line) is None
        assert str(records.explain_unreadable(line)).startswith(sentence) and anna in str(
            records.explain_unreadable(line)
        )
        with pytest.raises(RecordError, match=sentence):
            records.line(kind, AT, fields_of(kind, **{name: anna}), writer=writer or "")


@pytest.mark.parametrize(("kind", "name", "start"), EVERY)
def test_nobody_can_make_an_id_from_parts_of_others(kind: str, name: str, start: str) -> None:
    """With the end of another's, of an id with another prefix, or of a free meaning: 22 characters are always bound."""
    anna, mallory = (ids.new_id(start[:-1], key.writer) for key in (ANNA, MALLORY))
    other = ids.new_id("other", MALLORY.writer)
    made = (
        mallory[:-12] + anna[-12:],
        anna[:-12] + mallory[-12:],
        start + other.partition("-")[2],
        start + "a" * 22,
        start + "0" * 22,
        mallory[:-1] + "i",
    )
    for id in made:
        assert records.read(line_of(kind, MALLORY.writer, **{name: id})) is None, id


@pytest.mark.parametrize(("kind", "name", "start"), EVERY)
@pytest.mark.parametrize("length", [4, 12, 21, 23, 26])
def test_an_id_of_another_length_is_free(kind: str, name: str, start: str, length: int) -> None:
    """Those of other tools, imported ones, and what several writers write alike."""
    for writer in (BOB.writer, None):
        assert records.read(line_of(kind, writer, **{name: start + "a" * length})) is not None


@pytest.mark.parametrize("kind", [kind for kind in OWN if "reply_to" in FIELDS[kind] or kind == "receipt"])
def test_what_a_line_answers_may_be_anybodys(kind: str) -> None:
    """A reference defines nothing. A line without a writer can't answer what has one."""
    name = "reply_to" if kind == "signal" else "signal_id"
    anna = ids.new_id("sig", ANNA.writer)
    assert records.read(line_of(kind, BOB.writer, **{name: anna})) is not None
    assert records.read(line_of(kind, None, **{name: anna})) is None
    assert records.read(line_of(kind, None, **{name: "sig-0001"})) is not None


@pytest.mark.parametrize(
    "value", [ids.own_id("task", ANNA.writer, "x"), f"a:b:anna@{ANNA.writer}", f"release-1@{ANNA.writer}"]
)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in FIELDS for name in FIELDS[kind]])
def test_a_line_without_a_writer_has_nothing_of_a_writer_but_in_texts(
    kind: str, name: str, value: str
) -> None:
    """Neither an id nor an address nor a named thread, in whatever field, alone or in a list."""
    form = FIELDS[kind][name][0]
    if (
        form == "flag"
        or form == "object"
        or name in TEXTS.get(kind, ())
        or kind in ("attestation", "forget", "trust")
    ):
        return
    given = {**json.loads(line_of(kind, None)), name: [value] if form == "list" else value}
    assert records.read(json.dumps(given, separators=(",", ":")).encode()) is None


def test_others_may_release_a_claim_and_do_nothing_else_with_it() -> None:
    """A claim must not outlive who made it."""
    anna = ids.new_id("claim", ANNA.writer)
    said = {
        event: records.read(line_of("claim", BOB.writer, claim_id=anna, event=event)) is not None
        for event in ("claim", "renew", "release", "other")
    }
    assert said == {"claim": False, "renew": False, "release": True, "other": False}
    assert records.read(line_of("claim", None, claim_id=anna, event="release")) is None


def test_the_same_id_in_the_next_line_is_checked_again() -> None:
    """What was accepted of one writer is not accepted of the next."""
    anna = ids.new_id("sess", ANNA.writer)
    for writer, is_read in ((ANNA.writer, True), (BOB.writer, False), (ANNA.writer, True), (None, False)):
        found = records.read(line_of("signal", writer, sender_session=anna))
        assert (found is not None) is is_read


def test_a_name_before_the_line_has_a_writer_is_no_way_around() -> None:
    """The writer is that which attestations must be of, wherever the line has it."""
    free = line_of("signal", None, signal_id="sig-0001")
    bound = line_of("signal", None, signal_id=ids.new_id("sig", ANNA.writer))
    assert records.read(named(free, BOB)) is not None
    assert records.read(named(bound, ANNA)) is not None and records.read(named(bound, BOB)) is None


def speaks_as(record: Any, writer: SigningKey) -> set[str]:
    return spoken_for(map(record.get, ADDRESS_FIELDS), writer.writer)


ADDRESSED = [(kind, name) for kind, names in ADDRESSES.items() for name in names if name != "session_id"]
WORDS = {"agent_identity": "codex:implementer:prices", "harness_session": f"h-{'0' * 26}"}


@pytest.mark.parametrize(("kind", "name"), ADDRESSED)
def test_a_line_has_the_addresses_of_its_writer_and_of_nobody_else(kind: str, name: str) -> None:
    """Words without a writer make it no record and, without a writer, those of one; it can't be written, and doctor says why.

    Those of another writer can't be written unless that one allows them; the index holds what has them.
    """
    words = WORDS.get(name, "human:anna@example.org")
    of_anna = f"{words}@{ANNA.writer}"
    of_bob = f"{words}@{BOB.writer}"
    assert speaks_as(records.read(line_of(kind, ANNA.writer, **{name: of_bob})), ANNA) == {of_bob}
    with pytest.raises(RecordError, match=f"The {kind}'s {name} must be"):
        records.line(kind, AT, fields_of(kind, **{name: of_bob}), writer=ANNA.writer)
    fields = fields_of(kind, **{name: of_bob})
    assert records.line(kind, AT, fields, writer=ANNA.writer, may_have=lambda each: each == of_bob)
    for writer, good, wrong, must in (
        (ANNA.writer, of_anna, (words,), "be"),
        ("", words, (of_anna,), "name no id or address of a writer"),
    ):
        for address in (good, good, *wrong, good):
            line, is_good = line_of(kind, writer or None, **{name: address}), address == good
            assert (records.read(line) is not None) is is_good, (writer, address)
            if is_good:
                assert records.line(kind, AT, fields_of(kind, **{name: address}), writer=writer)
                continue
            assert f"The {kind}'s {name} must {must}" in str(records.explain_unreadable(line))
            with pytest.raises(RecordError, match=f"The {kind}'s {name} must {must}"):
                records.line(kind, AT, fields_of(kind, **{name: address}), writer=writer)


@pytest.mark.parametrize("kind", [kind for kind, names in ADDRESSES.items() if len(names) > 1])
def test_a_line_speaks_for_one_other_writer_at_most(kind: str) -> None:
    """Addresses of two others make it no record; two of one, or one and an own, are for the index to judge."""
    first, second = [name for name in ADDRESSES[kind] if name != "session_id" or kind != "session"][:2]
    for writers, is_good in (((ANNA, BOB), False), ((ANNA, ANNA), True), ((ANNA, MALLORY), True)):
        of = [f"{words}@{key.writer}" for words, key in zip(("a:b:c", "a:b:d"), writers, strict=True)]
        found = records.read(line_of(kind, MALLORY.writer, **{first: of[0], second: of[1]}))
        assert (found is not None) is is_good
        if found is not None:
            assert speaks_as(found, MALLORY) == {each for each in of if not each.endswith(MALLORY.writer)}


def test_words_that_name_no_writer_get_the_one_that_writes() -> None:
    """In each address of a record, also of those to whom it goes; an address that names another one stays."""
    given = {
        "sender_identity": "a:b:c",
        "sender_session": "sess-0001",
        "recipients": ["human:x@y.z", f"a:b:d@{BOB.writer}", "sess-0002"],
    }
    assert records.addressed("signal", {**given, "message": "a:b:c"}, ANNA.writer) == {
        "sender_identity": f"a:b:c@{ANNA.writer}", "sender_session": "sess-0001", "message": "a:b:c",
        "recipients": [f"human:x@y.z@{ANNA.writer}", f"a:b:d@{BOB.writer}", "sess-0002"],
    }  # fmt: skip
