"""The fold of one claim, and its row: the same in any order of arrival."""

from __future__ import annotations

import random

import pytest

from gitmem import records, views
from gitmem.index import catch_up
from gitmem.log.lines import format_at
from gitmem.order import claim
from gitmem.order.claim import FoldedClaim

from ..empty_index import empty_index

BEGINNING = 1_795_000_000_000_000
MINUTE = 60 * 1_000_000
BOHR, CURIE = "claude:worker:bohr", "claude:worker:curie"


def line(event: str, minute: int, who: str = BOHR, *, until: int | None = None, **fields: object) -> bytes:
    return records.line("claim", BEGINNING + minute * MINUTE, {
        "claim_id": "claim-0001", "event": event, "paths": ["src/**"], "sender_identity": who, "sender_session": "sess-0001",
        "until": format_at(BEGINNING + until * MINUTE) if until is not None else None, **fields,
    })  # fmt: skip


def fold(*lines: bytes) -> FoldedClaim:
    found = claim.fold((record, each) for each in lines if (record := records.read_kind("claim", each)))
    assert found is not None
    return found


def minutes(micros: int) -> float:
    return (micros - BEGINNING) / MINUTE


def test_a_claim_lasts_until_its_last_renewal() -> None:
    """Only its owner's session renews it; an earlier end does not shorten it."""
    lines = [line("claim", 0, until=60), line("renew", 30, until=90), line("renew", 40, until=80),
             line("renew", 50, CURIE, until=500)]  # fmt: skip
    claim = fold(*lines)
    assert (minutes(claim.until), minutes(claim.since), claim.owner) == (90, 0, (BOHR, "sess-0001"))


def test_a_renewal_after_the_end_is_a_new_claim() -> None:
    """Others may have begun in between."""
    claim = fold(line("claim", 0, until=60), line("renew", 70, until=130))
    assert (minutes(claim.since), minutes(claim.until)) == (70, 130)


def test_no_claim_lasts_longer_than_a_day() -> None:
    """A hostile claim until the year 9999 ends."""
    far = line("claim", 0).replace(b'"mode"', b'"until":"9999-12-31T23:59:59.000000Z","mode"')
    assert minutes(fold(far).until) == 24 * 60
    assert minutes(fold(line("claim", 0)).until) == 0


@pytest.mark.parametrize(
    ("who", "reason", "released"), [(BOHR, None, True), (CURIE, None, False), (CURIE, "he left", True)]
)
def test_others_release_a_claim_only_with_a_reason(who: str, reason: str | None, released: bool) -> None:
    """Its owner needs none."""
    claim = fold(line("claim", 0, until=60), line("release", 5, who, reason=reason))
    assert (claim.released is not None) is released


def test_who_came_first_is_what_writers_had_seen() -> None:
    """A later clock does not make an earlier claim."""
    first = fold(line("claim", 10, until=60))
    second = fold(line("claim", 0, CURIE, until=60, claim_id="claim-0002", after=["claim-0001"]))
    assert (second.has_seen(first), first.has_seen(second)) == (True, False)


def rows(*portions: list[bytes]) -> list[tuple[object, ...]]:
    index = empty_index(views.CLAIMS)
    for portion in portions:
        catch_up.insert_lines(index, catch_up.OWN_FILE, portion)
    assert index.skipped() == 0
    return index.db.execute(
        "SELECT c.claim_id, l.body, owner, session, mode, since, until, released, task_id, wu_id FROM path_claim c"
        " JOIN line l ON l.id = c.line"
    ).fetchall()


def test_the_order_of_arrival_does_not_matter() -> None:
    """In parts, repeated, and with a second beginning of the same id."""
    lines = [line("claim", 0, until=60), line("claim", 1, CURIE, until=70), line("renew", 30, until=90), line("renew", 120, until=180),
             line("release", 130), line("renew", 131, CURIE, until=300)]  # fmt: skip
    whole = rows(lines)
    draw = random.Random(1)
    for _ in range(20):
        draw.shuffle(lines)
        cut = draw.randrange(len(lines))
        assert rows(lines[:cut], lines[cut:], draw.sample(lines, 2)) == whole
    assert rows([line("renew", 1, until=60)]) == []
