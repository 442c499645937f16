"""A line that has an address of another writer counts once that writer has allowed it, and no sooner; whoever else says so."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem import records, views
from gitmem.doctor import clone_files
from gitmem.index import catch_up, grants, index_file
from gitmem.index.index_file import Index
from gitmem.log.lines import reduced
from gitmem.records.ids import new_id
from gitmem.text.addresses import words_of, writer_of
from gitmem.trust.keys import SigningKey
from tests.mailbox.test_mailbox_view import signal
from tests.profiles import up_to
from tests.signing import ANNA, AT, BOB, MALLORY, attest, forget, key_of, salted

CAROL = key_of(bytes([4]) * 32)
ALL = (ANNA, BOB, CAROL, MALLORY)
PERSON, AGENT = "human:anna@example.org", "codex:implementer:prices"


def trust(
    writer: SigningKey, other: SigningKey | str, *words: str, event: str = "grant", at: int = AT
) -> bytes:
    """A record of a writer about another one."""
    named = other if isinstance(other, str) else other.writer
    fields = {"trust_id": new_id("trust", writer.writer), "event": event, "other": named, "words": words}
    return records.line("trust", at, fields, writer=writer.writer)


def said(writer: SigningKey, of: SigningKey, words: str = PERSON, number: int = 1) -> bytes:
    """A signal of a writer with an address of another one as its sender."""
    record = json.loads(signal(number, number, words, ["sess-0001"]))
    at, kind = record.pop("at"), record.pop("kind")
    record["sender_identity"] += f"@{of.writer}"
    return json.dumps(
        {"at": at, "kind": kind, "writer": writer.writer, **record}, separators=(",", ":")
    ).encode()


def empty() -> Index:
    index = index_file.in_memory(views.VIEWS, records.read)
    index.reshape()
    return index


def filled(lines: Iterable[bytes]) -> Index:
    index = empty()
    for line in lines:
        catch_up.insert_lines(index, 1, [line])
    return index


def shown(index: Index) -> list[bytes]:
    query = "SELECT l.body FROM signal s JOIN line l ON l.id = s.line ORDER BY l.body"
    return [body.encode() for (body,) in index.db.execute(query)]


def signed(*lines: bytes) -> list[bytes]:
    """The lines, and an attestation of each by its writer."""
    by = {key.writer: key for key in ALL}
    return [
        *lines,
        *(attest([line], by[json.loads(line)["writer"]], AT + 1 + n) for n, line in enumerate(lines)),
    ]


LINE = salted(said(BOB, ANNA))


@pytest.mark.parametrize("left_out", [None, "grant", "line"])
@pytest.mark.parametrize("is_forgotten", [False, True])
def test_what_another_writer_allows_is_the_same_in_any_order(
    left_out: str | None, is_forgotten: bool
) -> None:
    """The line counts exactly if it and the grant are attested, whether the grant comes before or after; also its reduced form."""
    gone = forget([LINE], BOB)
    lines = [trust(ANNA, BOB), LINE, *([gone] if is_forgotten else [])]
    every = signed(*lines)
    proofs = {"grant": every[len(lines)], "line": every[len(lines) + 1]}
    arriving = [each for each in every if each != proofs.get(left_out or "")]
    whole = filled(arriving)
    one = reduced(LINE) if is_forgotten else LINE
    assert shown(whole) == ([] if left_out else [one])
    assert catch_up.count_unallowed(whole.db) == (left_out == "grant")
    orders = list(itertools.permutations([*arriving, reduced(LINE)] if is_forgotten else arriving))
    for order in random.Random(1).sample(orders, min(len(orders), 60)):
        found = filled(order)
        assert shown(found) == shown(whole)
        assert clone_files.differing(found, filled(sorted(order))) == []
    assert clone_files.differing(filled([*arriving, *arriving]), whole) == []


@pytest.mark.parametrize(
    ("granted", "counts"),
    [
        ([trust(ANNA, BOB)], True),
        ([trust(ANNA, BOB, PERSON)], True),
        ([trust(ANNA, BOB, AGENT, PERSON)], True),
        ([trust(ANNA, CAROL), trust(CAROL, BOB)], True),
        ([trust(ANNA, CAROL, PERSON), trust(CAROL, BOB)], True),
        ([trust(ANNA, CAROL), trust(CAROL, BOB, PERSON)], True),
        ([trust(ANNA, CAROL), trust(CAROL, ANNA), trust(CAROL, BOB), trust(BOB, CAROL)], True),
        ([], False),
        ([trust(ANNA, BOB, AGENT)], False),
        ([trust(BOB, ANNA)], False),
        ([trust(MALLORY, BOB)], False),
        ([trust(BOB, BOB)], False),
        ([trust(BOB, ANNA, event="accept"), trust(ANNA, BOB, event="accept")], False),
        ([trust(ANNA, BOB).replace(b'"grant"', b'"other"')], False),
        ([trust(ANNA, CAROL, AGENT), trust(CAROL, BOB)], False),
        ([trust(ANNA, CAROL, PERSON), trust(CAROL, BOB, AGENT)], False),
        ([trust(MALLORY, CAROL), trust(CAROL, BOB), trust(BOB, MALLORY), trust(CAROL, MALLORY)], False),
        ([trust(ANNA, BOB, f"{PERSON}@{ANNA.writer}")], False),
    ],
)  # fmt: skip
def test_only_a_chain_of_grants_from_the_writer_of_the_address_allows_it(
    granted: Sequence[bytes], counts: bool
) -> None:
    """In whatever order the grants come."""
    every = signed(*granted, LINE)
    for order in (every, every[::-1]):
        assert shown(filled(order)) == ([LINE] if counts else [])


def test_nobody_grants_what_is_somebody_elses() -> None:
    """By a record without a writer, one in her name that somebody else attests, or one without an attestation."""
    hers = trust(ANNA, MALLORY)
    unsigned = hers.replace(b'"writer":"%b",' % ANNA.writer.encode(), b"").replace(
        json.loads(hers)["trust_id"].encode(), b"trust-0001"
    )
    line = said(MALLORY, ANNA)
    index = filled([*signed(line), hers, attest([hers], MALLORY, AT + 9), unsigned])

    assert shown(index) == [] and catch_up.count_unallowed(index.db) == 1
    assert index.db.execute("SELECT * FROM granted").fetchall() == []


def test_what_is_held_for_a_grant_stays_so_when_its_file_is_read_again() -> None:
    """Whoever attests it once more; and it counts later all the same."""
    index = filled([*signed(LINE), LINE, attest([LINE], MALLORY, AT + 7), attest([LINE], BOB, AT + 8), LINE])
    assert shown(index) == [] and catch_up.count_unallowed(index.db) == 1

    for line in signed(trust(ANNA, BOB)):
        catch_up.insert_lines(index, 1, [line])
    assert shown(index) == [LINE] and catch_up.count_held(index.db) == 0
    assert index.db.execute("SELECT count(*) FROM awaited").fetchone() == (0,)


def test_a_line_of_the_own_write_ahead_log_waits_for_the_grant_and_for_its_attestation() -> None:
    """It counts at once only if the grant is there."""
    for before in (True, False):
        index = filled(signed(trust(ANNA, BOB)) if before else [])
        catch_up.insert_lines(index, catch_up.OWN_FILE, [LINE])
        assert len(shown(index)) == before
        for line in signed(trust(ANNA, BOB)):
            catch_up.insert_lines(index, 1, [line])
        assert len(shown(index)) == before
        catch_up.insert_lines(index, 1, signed(LINE))
        assert shown(index) == [LINE] and catch_up.count_held(index.db) == 0


@pytest.mark.parametrize(
    ("granted", "by_address", "is_gone"),
    [
        ([trust(ANNA, BOB)], BOB, True),
        ([trust(ANNA, BOB)], ANNA, True),
        ([trust(ANNA, CAROL), trust(CAROL, BOB)], ANNA, True),
        ([trust(ANNA, BOB)], MALLORY, True),
        ([trust(ANNA, BOB, PERSON)], BOB, False),
        ([trust(BOB, ANNA)], BOB, False),
        ([trust(MALLORY, BOB)], BOB, False),
        ([], BOB, False),
    ],
)
def test_who_may_write_as_all_of_a_writer_forgets_its_lines(
    granted: Sequence[bytes], by_address: SigningKey, is_gone: bool
) -> None:
    """In whatever order grants, records and lines come; nobody else does, and no line of anybody else."""
    own = salted(said(ANNA, ANNA))
    gone = forget([own, LINE], BOB, of=ANNA).replace(
        f"a:b:anna@{BOB.writer}".encode(), f"a:b:anna@{by_address.writer}".encode()
    )
    every = [*signed(*granted, own, gone), *signed(trust(ANNA, BOB, "a:b:c"))]
    whole = filled(every)
    assert [records.is_forgotten(records.read(line) or {}) for line in shown(whole)] == [is_gone]
    for seed in range(60):
        order = random.Random(seed).sample(every, len(every))
        assert clone_files.differing(filled(order), whole) == []


@pytest.mark.parametrize("last", range(5))
def test_a_reduced_line_alone_counts_once_it_is_attested_forgotten_and_allowed(last: int) -> None:
    """Whichever of these comes last; the whole line came to nobody here."""
    gone = forget([LINE], BOB)
    proofs = [attest([LINE], BOB), attest([gone], BOB, AT + 3)]
    arriving = [reduced(LINE), *proofs, gone, *signed(trust(ANNA, BOB))]
    late = arriving.pop(last)
    index = filled(arriving)
    assert shown(index) == []
    catch_up.insert_lines(index, 1, [late])
    assert shown(index) == [reduced(LINE)]


def test_an_attestation_alone_is_enough_for_what_waits_in_the_own_write_ahead_log() -> None:
    """Its line may come with a later commit."""
    index = empty()
    catch_up.insert_lines(index, catch_up.OWN_FILE, [LINE])
    for line in (attest([LINE], BOB), *signed(trust(ANNA, BOB))):
        catch_up.insert_lines(index, 1, [line])
    assert shown(index) == [LINE]


@settings(max_examples=up_to(60), deadline=None)
@given(seed=st.integers(0, 1 << 32), cuts=st.lists(st.integers(1, 12), max_size=8))
def test_verdicts_of_random_grants_are_those_of_a_plain_search(seed: int, cuts: list[int]) -> None:
    """Among four writers, with chains, circles and grants of some words; in any order and any portions."""
    draw = random.Random(seed)
    words = (PERSON, AGENT, "a:b:c")
    given = [
        (*draw.sample(ALL, 2), draw.sample(words, draw.choice((0, 0, 1, 2))))
        for _ in range(draw.randrange(9))
    ]
    lines = [
        salted(said(*draw.sample(ALL, 2), draw.choice(words), number))
        for number in range(1, draw.randrange(2, 14))
    ]
    every = signed(*(trust(giver, other, *some) for giver, other, some in given), *lines)

    def may(line: bytes) -> bool:
        address = json.loads(line)["sender_identity"]
        reached, todo = set(), [writer_of(address)]
        while todo:
            one = todo.pop()
            reached.add(one)
            todo += [
                other.writer
                for giver, other, some in given
                if giver.writer == one
                and other.writer not in reached
                and (not some or words_of(address) in some)
            ]
        return json.loads(line)["writer"] in reached

    draw.shuffle(every)
    index = empty()
    for size in (*cuts, len(every)):
        catch_up.insert_lines(index, 1, every[:size])
        every = every[size:]
    assert shown(index) == sorted(filter(may, lines))
    assert (
        catch_up.count_unallowed(index.db) == catch_up.count_held(index.db) == len(lines) - len(shown(index))
    )


def test_thousands_of_grants_cost_no_command_seconds() -> None:
    """To one writer by many, by one to many, each of a hundred words, in a circle; and as many lines that speak for somebody."""
    crowd = [f"{number:016d}" for number in range(3_000)]
    index = empty()
    note = [{"writer": one, "other": BOB.writer, "event": "grant", "words": [], "at": ""} for one in crowd]
    note += [{"writer": BOB.writer, "other": one, "event": "grant", "words": [], "at": ""} for one in crowd]
    many = [f"a:b:c{number}" for number in range(100_000)]
    note += [
        {"writer": one, "other": crowd[0], "event": "grant", "words": many[n * 100 :][:100], "at": ""}
        for n, one in enumerate(crowd[:1_000])
    ]
    start = time.process_time()
    assert grants.note(index.db, note)
    asked = grants.Grants(index.db)
    for number in range(3_000):
        address = f"{many[number]}@{ANNA.writer}"
        assert not asked.allow(BOB.writer, [address]) and not asked.allow(crowd[number], [address])
    assert index.db.execute("SELECT count(*) FROM granted").fetchone() == (105_900,)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("trusted", "words", "expected"),
    [
        ([], PERSON, BOB),
        ([trust(ANNA, BOB)], PERSON, BOB),
        ([trust(BOB, ANNA, event="accept")], PERSON, BOB),
        ([trust(ANNA, BOB), trust(BOB, ANNA, event="accept")], PERSON, ANNA),
        ([trust(ANNA, BOB, AGENT), trust(BOB, ANNA, event="accept")], PERSON, BOB),
        ([trust(ANNA, BOB, AGENT), trust(BOB, ANNA, event="accept")], AGENT, ANNA),
        ([trust(ANNA, CAROL), trust(CAROL, ANNA, event="accept"), trust(CAROL, BOB), trust(BOB, CAROL, event="accept")], PERSON, ANNA),
        ([trust(ANNA, CAROL), trust(CAROL, BOB), trust(BOB, CAROL, event="accept")], PERSON, CAROL),
        ([trust(ANNA, BOB), trust(CAROL, BOB), trust(BOB, ANNA, event="accept", at=AT), trust(BOB, CAROL, event="accept", at=AT + 9)], PERSON, CAROL),
        ([trust(ANNA, BOB, PERSON), trust(CAROL, BOB, AGENT), trust(BOB, ANNA, event="accept"), trust(BOB, CAROL, event="accept", at=AT + 9)], PERSON, ANNA),
        ([trust(BOB, BOB, event="accept")], PERSON, BOB),
    ],
)  # fmt: skip
def test_a_writer_goes_on_as_the_last_one_that_it_has_accepted_and_that_allows_it(
    trusted: Sequence[bytes], words: str, expected: SigningKey
) -> None:
    """As far as the chain goes."""
    index = filled(signed(*trusted))
    assert grants.own_address(index.db, BOB.writer, words) == f"{words}@{expected.writer}"


def test_writers_that_go_on_as_each_other_have_one_address() -> None:
    """Both had typed the command before either had heard of the other."""
    both = [
        trust(ANNA, BOB),
        trust(BOB, ANNA),
        trust(ANNA, BOB, event="accept"),
        trust(BOB, ANNA, event="accept"),
    ]
    index = filled(signed(*both))
    found = {grants.own_address(index.db, key.writer, PERSON) for key in (ANNA, BOB)}
    assert found == {f"{PERSON}@{min(ANNA.writer, BOB.writer)}"}
