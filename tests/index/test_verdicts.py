"""A line that names a writer counts once that writer has attested it, and no sooner; whoever else says so."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

import pytest

from gitmem import records, views
from gitmem.doctor import clone_files
from gitmem.index import catch_up, index_file
from gitmem.index.index_file import Index
from gitmem.log.lines import reduced
from gitmem.records.ids import new_id
from gitmem.trust.keys import SigningKey
from tests.mailbox.test_mailbox_view import signal
from tests.signing import ANNA, AT, BOB, MALLORY, addressed, attest, forget, named, salted

LINE = addressed(signal(1, 1, "a:b:anna", ["a:b:bob"]), ANNA)
PROOF = attest([LINE], ANNA)
FILE = 7


@pytest.fixture
def index() -> Index:
    found = index_file.in_memory(views.VIEWS, records.read)
    found.reshape()
    return found


def shown(index: Index) -> list[bytes]:
    """The signals that are in the views, from the file of each."""
    query = "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE l.file = ? ORDER BY l.body"
    return [body.encode() for (body,) in index.db.execute(query, (FILE,))]


def arrive(index: Index, *lines: bytes) -> None:
    catch_up.insert_lines(index, FILE, lines)


SALTED = salted(LINE)


@pytest.mark.parametrize("line", [LINE, SALTED], ids=["without a salt", "with a salt"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_what_is_held_and_awaited_is_the_same_in_any_order(
    index: Index, line: bytes, order: tuple[int, ...]
) -> None:
    """Also when others attest the line, or its writer does so twice."""
    arrived = [line, attest([line], ANNA), attest([line], MALLORY), attest([line], ANNA, AT + 9)]
    for number in order:
        arrive(index, arrived[number])

    assert shown(index) == [line]
    assert catch_up.count_held(index.db) == 0
    assert index.db.execute("SELECT writer FROM awaited").fetchall() == []


CUT = reduced(SALTED)
FORGET = forget([SALTED], ANNA, AT + 5)
ARRIVING = {
    "whole": SALTED, "reduced": CUT, "proof": attest([SALTED], ANNA), "forget": FORGET, "its proof": attest([FORGET], ANNA, AT + 9),
}  # fmt: skip


def filled(lines: Iterable[bytes]) -> Index:
    index = index_file.in_memory(views.VIEWS, records.read)
    index.reshape()
    for line in lines:
        arrive(index, line)
    return index


@pytest.mark.parametrize("left_out", [(), ("whole",), ("reduced",), ("proof",), ("forget",), ("its proof",)])
def test_what_is_forgotten_is_the_same_in_any_order(left_out: tuple[str, ...]) -> None:
    """One signal without its text, as soon as its writer's record is there and attested, as the line is; else as without that."""
    arriving = [line for name, line in ARRIVING.items() if name not in left_out]
    first = filled(arriving)
    one = {"forget": SALTED, "its proof": SALTED, "proof": None}.get("".join(left_out), CUT)

    assert shown(first) == [each for each in [one] if each]
    for order in itertools.permutations(arriving):
        assert clone_files.differing(filled(order), first) == []
    assert clone_files.differing(filled([*arriving, *arriving]), first) == []
    assert first.db.execute("SELECT count(*) FROM held").fetchone() == (
        {"proof": 2, "forget": 1, "its proof": 2}.get("".join(left_out), 0),
    )


@pytest.mark.parametrize("by", [MALLORY, BOB])
def test_nobody_forgets_a_line_of_somebody_else(index: Index, by: SigningKey) -> None:
    """Nor puts its reduced form in the place of it."""
    record = forget([SALTED], by)
    arrive(index, SALTED, CUT, ARRIVING["proof"], record, attest([record], by), attest([SALTED], by))

    assert shown(index) == [SALTED]
    assert catch_up.held_lines(index.db) == [CUT]


def test_what_was_forgotten_has_no_text_in_any_table(index: Index) -> None:
    """Nor in the pages that it has left."""
    secret = SALTED.replace(b'"message":"', b'"message":"hunter2 ')
    record = forget([secret], ANNA)
    arrive(index, secret, attest([secret], ANNA))
    assert b"hunter2" in index.db.serialize()
    arrive(index, record, attest([record], ANNA))

    assert [records.read(line)["message"] for line in shown(index)] == [records.FORGOTTEN]  # type: ignore[index]
    assert b"hunter2" not in index.db.serialize()


@pytest.mark.parametrize(
    "portions",
    [
        [[LINE, PROOF]],
        [[PROOF, LINE]],
        [[LINE], [PROOF]],
        [[PROOF], [LINE]],
        [[LINE], [LINE], [PROOF], [PROOF, LINE]],
    ],
)
def test_an_attested_line_counts_in_whatever_order_both_arrive(
    index: Index, portions: list[list[bytes]]
) -> None:
    """Also in two portions, and when a file is read again."""
    for lines in portions:
        arrive(index, *lines)

    assert shown(index) == [LINE]
    assert catch_up.count_held(index.db) == 0
    assert index.db.execute("SELECT count(*) FROM awaited").fetchone() == (0,)


@pytest.mark.parametrize(
    "proof",
    [
        attest([LINE], MALLORY),
        attest([LINE + b" "], ANNA),
        PROOF[:-3] + b'x"}',
        PROOF.replace(ANNA.writer.encode(), BOB.writer.encode()),
        named(PROOF, ANNA),
        PROOF.replace(b'"at":"2026', b'"at":"2027', 1),
    ],
    ids=["another key", "another line", "another signature", "another name", "named twice", "another time"],
)
@pytest.mark.parametrize("first", ["line", "proof"])
def test_a_line_that_its_writer_has_not_attested_is_in_no_view(
    index: Index, proof: bytes, first: str
) -> None:
    """It is held, and counts later all the same."""
    for line in (LINE, proof) if first == "line" else (proof, LINE):
        arrive(index, line)

    assert shown(index) == []
    assert catch_up.count_held(index.db) == 1
    arrive(index, PROOF)
    assert shown(index) == [LINE]


def test_an_attestation_without_its_writer_is_none(index: Index) -> None:
    """Nobody reads it as one."""
    arrive(index, PROOF.replace(b',"writer":"%b"' % ANNA.writer.encode(), b""))

    assert index.db.execute("SELECT kind FROM line").fetchall() == [("",)]


def test_what_counts_is_never_held_again(index: Index) -> None:
    """Whatever else is attested of it."""
    arrive(index, LINE, PROOF)
    arrive(index, attest([LINE], MALLORY), LINE, attest([LINE], BOB))

    assert shown(index) == [LINE]


def test_a_line_of_the_own_write_ahead_log_counts_at_once(index: Index) -> None:
    """And goes on when it is committed."""
    catch_up.insert_lines(index, catch_up.OWN_FILE, [LINE])
    assert index.db.execute("SELECT count(*) FROM signal").fetchone() == (1,)

    arrive(index, LINE, PROOF)

    assert shown(index) == [LINE]
    assert index.db.execute("SELECT count(*) FROM awaited").fetchone() == (0,)


def test_digests_of_lines_that_never_arrive_take_room_like_the_log(index: Index) -> None:
    """All of them must be kept, because the verdict may not depend on the order; so a peer pays for each byte."""
    proof = attest([b"%d" % number for number in range(9_000)], MALLORY)

    def size() -> int:
        query = "SELECT (SELECT * FROM pragma_page_count) * (SELECT * FROM pragma_page_size)"
        return int(index.db.execute(query).fetchone()[0])

    before = size()
    arrive(index, proof)

    assert index.db.execute("SELECT count(*) FROM awaited").fetchone() == (9_000,)
    assert size() - before < 4 * len(proof)


def test_a_writer_is_named_in_one_place_of_a_line(index: Index) -> None:
    """A name elsewhere in the line, or with an escape, is that of no writer for the one who signs: it must be for the index, too."""
    late = signal(2, 2, "a:b:anna", ["a:b:bob"])[:-1] + b',"writer":"%b"}' % ANNA.writer.encode()
    escaped = addressed(signal(3, 3, "a:b:anna", ["a:b:bob"]), ANNA).replace(b'"writer"', b'"w\\u0072iter"')
    arrive(index, late, escaped)
    arrive(index, attest([late, escaped], MALLORY))

    assert shown(index) == []


def test_what_counts_is_no_longer_held(index: Index) -> None:
    """Also when its file is read again together with the attestation, or it was recorded here as well."""
    arrive(index, LINE)
    arrive(index, LINE, PROOF)
    other = addressed(signal(4, 4, "a:b:anna", ["a:b:bob"]), ANNA)
    arrive(index, other)
    catch_up.insert_lines(index, catch_up.OWN_FILE, [other])

    assert catch_up.count_held(index.db) == 0


@pytest.mark.parametrize("first", ["line", "proof", "together"])
def test_an_attested_line_with_an_id_of_somebody_else_is_no_record(index: Index, first: str) -> None:
    """It is kept, in no view, and neither held nor awaited, in whatever order both arrive."""
    record = {**json.loads(LINE), "signal_id": new_id("sig", ANNA.writer), "writer": MALLORY.writer}
    line = json.dumps(record, separators=(",", ":")).encode()
    proof = attest([line], MALLORY)
    for lines in {"line": ([line], [proof]), "proof": ([proof], [line]), "together": ([line, proof],)}[first]:
        arrive(index, *lines)

    assert index.db.execute("SELECT kind FROM line WHERE kind != 'attestation'").fetchall() == [("",)]
    assert shown(index) == [] and catch_up.count_held(index.db) == 0
    assert index.db.execute("SELECT count(*) FROM awaited").fetchone() == (0,)
