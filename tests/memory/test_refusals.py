"""What the operations of the memory refuse: the caller learns what is wrong, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gitmem.errors import UsageError
from gitmem.memory import context, decay, knowledge, listing, search, triage, upkeep

from ..sandbox import bodies
from .desk import Desk

NO_TIMES = (0, -1, float("nan"), float("inf"))
TOKEN = "ghp_" + "a1B2" * 10
FILTERS: dict[str, dict[str, Any]] = {
    "Invalid type of node: rumour": {"type": "rumour"},
    "Invalid lifecycle: week": {"lifecycle": "week"},
    "Invalid priority: P9": {"priority": "P9"},
    "Invalid status: open": {"status": "open"},
    "Invalid work unit: a b": {"wu": "a b"},
    "Invalid tag: ": {"tags": ["a,b"]},
    "must be below the root": {"path": "../etc"},
    "path is empty": {"path": ""},
    "Invalid limit: 0; it must be a whole number of 1 or more": {"limit": 0},
}
PROMOTIONS = [
    ({"node": "mem-aaaaaa", "tag": "faq"}, "unknown-id"),
    ({"tag": "faq"}, "usage"),
    ({"node": "mem-aaaaaa", "wu": "WU-7", "tag": "faq"}, "usage"),
    ({"wu": "WU-7", "tag": "faq"}, "no-summary"),
    ({"wu": "the seventh", "tag": "faq"}, "bad-wu"),
    ({"wu": "WU-7", "tag": ""}, "bad-taxonomy-tag"),
]
NOTHING_WRITTEN = {code for _, code in PROMOTIONS}
SUMMARIES: list[tuple[dict[str, Any], str]] = [
    ({"wu": "the seventh"}, "bad-wu"),
    ({"wu": "WU-7", "text": "  "}, "empty-content"),
    ({"wu": "WU-7", "text": "é" * 40_000}, "invalid-record"),
    ({"wu": "WU-7", "text": TOKEN}, "secret"),
    ({"wu": "WU-7", "only": ["mem-nothere"]}, "unknown-id"),
]
DELETIONS: list[tuple[list[str], dict[str, Any], str]] = [
    ([], {}, "Missing ids or filters"),  # a script's empty variable must not empty the memory
    ([], {"tags": []}, "Missing ids or filters"),
    ([], {"reason": "why not"}, "Missing ids or filters"),
    (["{id}"], {"tags": ["x"]}, "Ids and filters"),  # one would have to guess whether both must fit
    (["{id}", "mem-zzzzzzzzzzzz"], {}, "No such node in this log: mem-zzzzzzzzzzzz"),
]


def refused(desk: Desk, id: str) -> Iterator[tuple[Callable[[], object], str]]:
    """Calls, with a part of the message or the code of each."""
    who: Any = desk.store, desk.caller
    for bad in NO_TIMES:
        yield lambda bad=bad: upkeep.archive(*who, threshold=bad), "threshold must be a number above 0"
        yield lambda bad=bad: upkeep.cleanup(*who, decay=True, decay_threshold=bad), "threshold"
        yield lambda bad=bad: upkeep.cleanup(*who, ttl=bad), "time to live must be more than 0"
        yield lambda bad=bad: upkeep.delete(*who, [], older_than=bad), "age must be more than 0"
        yield lambda bad=bad: upkeep.archive(*who, half_life=bad), "half-life"
        yield lambda bad=bad: decay.record_accesses(*who, [id], half_life=bad), "half-life"
        yield lambda bad=bad: decay.stats(desk.store, id, half_life=bad), "half-life"
        yield lambda bad=bad: context.context(*who, half_life=bad), "half-life"
        yield lambda bad=bad: search.recall(desk.store, "x", half_life=bad), "half-life"
    for query in ("", "   ", '""', "?!*", "\0"):
        yield lambda query=query: search.recall(desk.store, query), "no-words"
    for what, filters in FILTERS.items():  # an unknown word never means "all of them"
        yield lambda filters=filters: listing.listing(desk.store, **filters), what
    for promoted, code in PROMOTIONS:
        yield lambda promoted=promoted: knowledge.promote(*who, **promoted), code
    for summed, code in SUMMARIES:
        yield lambda summed=summed: knowledge.summarize(*who, **summed), code
    for reason in ("", "  ", "two\nlines"):
        yield lambda reason=reason: triage.archive(*who, [id], reason=reason), ""
    for ids, options, what in DELETIONS:
        given = [each.format(id=id) for each in ids]
        yield lambda given=given, options=options: upkeep.delete(*who, given, **options), what


def test_what_is_no_valid_request_is_refused_and_writes_nothing(desk: Desk) -> None:
    id = desk.write("one", tags=["x"])
    before = bodies(desk.store)

    for number, (call, what) in enumerate(refused(desk, id)):
        with pytest.raises(UsageError) as error:
            call()
        told = error.value
        assert what == told.code or what in told.message, (number, told)
        assert what not in FILTERS or told.hint or "limit" in FILTERS[what]
        assert told.code not in NOTHING_WRITTEN or "Nothing was written" in told.message, (number, told)
        assert bodies(desk.store) == before, (number, told)
