"""A patch of several nodes says nothing long: what one line gives to thousands of nodes would fill every index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitmem import records
from gitmem.memory import listing, stored_nodes
from gitmem.order import node as bulk_values

from ..sandbox import START
from .desk import Desk, raw
from .test_node_rows import IDS, index_of, node, patch

SMALL: dict[str, Any] = {
    "content": "é" * 64,
    "tags": [f"tag-{at:06}" for at in range(4)] + ["abcdefgh"],
    "paths": ["p" * 80, "q" * 16],
    "metadata": {"k" * 36: ["v" * 36, 1]},
}
LARGE: dict[str, Any] = {
    "content": "é" * 64 + "x",
    "tags": [f"tag-{at:06}" for at in range(4)] + ["abcdefghi"],
    "paths": ["p" * 80, "q" * 17],
    "metadata": {"k" * 37: ["v" * 36, 1]},
}
FIELDS = sorted(SMALL)


@pytest.fixture
def desk(repo: Path) -> Desk:
    return Desk(repo, wu="WU-1")


def _size(value: object) -> int:
    """The size of docs/format.md, as it is written there."""
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list):
        return sum(16 + _size(item) for item in value)
    if isinstance(value, dict):
        return sum(16 + _size(name) + _size(item) for name, item in value.items())
    return 8


def test_the_samples_are_at_the_limit_of_the_specification() -> None:
    specified = (Path(__file__).parents[2] / "docs" / "format.md").read_text()

    assert f"patch of several nodes (size of section 11) | {bulk_values.SIZE_MAX} |" in specified
    assert {field: _size(value) for field, value in SMALL.items()} == dict.fromkeys(SMALL, 128)
    assert {field: _size(value) for field, value in LARGE.items()} == dict.fromkeys(LARGE, 129)


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_too_large_for_several_nodes_counts_for_none_of_them(field: str) -> None:
    """The rest of the patch counts; the same patch of one node, also where its id is said twice, counts whole."""
    lines = [node(id) for id in IDS[:3]]
    several = patch("patch-aaaa", *IDS[:2], at=START + 1, priority="P1", **{field: LARGE[field]})
    alone = patch("patch-bbbb", IDS[2], IDS[2], at=START + 2, **{field: LARGE[field]})
    fits = patch("patch-cccc", *IDS[:2], at=START + 3, **{field: SMALL[field]})
    base = getattr(stored_nodes.load(index_of(lines).db, IDS[:1])[0], field)

    one, other, third = stored_nodes.load(index_of([*lines, several, alone]).db, IDS[:3])
    assert (one.priority, other.priority) == ("P1", "P1")
    assert getattr(one, field) == getattr(other, field) == base
    assert getattr(third, field) == LARGE[field]
    later = stored_nodes.load(index_of([*lines, fits, several]).db, IDS[:2])
    assert [getattr(each, field) for each in later] == [SMALL[field]] * 2


def test_one_line_makes_no_millions_of_rows() -> None:
    """Nine hundred nodes with fifteen thousand tags each: one line of 200 KB."""
    ids = [f"mem-{at:06d}" for at in range(900)]
    line = patch("patch-aaaa", *ids, at=START + 1, tags=[f"{at:05d}" for at in range(15_000)])
    assert len(line) < 256 * 1024

    db = index_of([*map(node, ids), line]).db

    (tags,) = db.execute("SELECT count(*) FROM tag").fetchone()
    assert tags <= len(ids)


@pytest.mark.parametrize("field", FIELDS)
def test_our_own_changes_of_several_nodes_lose_nothing(desk: Desk, field: str) -> None:
    """Above the limit a patch for each, in one commit; up to it one for all."""
    ids = [desk.write(f"node {number}") for number in range(3)]

    for given, patches in ((SMALL[field], 1), (LARGE[field], 4)):
        desk.change(*ids, **{field: given})

        shown = [getattr(desk.node(id), field) for id in ids]
        # entries that were there before stay
        assert [{**each, **given} if field == "metadata" else given for each in shown] == shown
        (count,) = (
            desk.store.db()
            .execute("SELECT count(DISTINCT line) FROM entity_line WHERE event = 'patch' AND kind = 'node'")
            .fetchone()
        )
        assert count == patches


@pytest.mark.usefixtures("commits")
def test_what_is_left_aside_is_not_shown_as_a_change(desk: Desk) -> None:
    ids = [desk.write(f"node {number}") for number in range(2)]
    raw(
        desk.store,
        "patch",
        id="patch-aaaa",
        node_ids=ids,
        lane="l",
        content=LARGE["content"],
        tags=LARGE["tags"],
    )

    (change,) = listing.show(desk.store, ids[0]).history
    assert change.fields == {"lane": "l"}


def test_the_size_is_of_values_and_not_of_the_bytes_of_a_line() -> None:
    """Another writer may escape more or write numbers otherwise; all clones must decide alike."""
    fields = {"at": "2026-11-21T20:00:00.000000Z", "kind": "patch", "schema_version": "A2A.V1", "id": "patch-aaaa",
              "node_ids": list(IDS[:2]), "metadata": {"n": [1.0] * 4}, "content": "é" * 64,
              "sender_identity": "a:b:c"}  # fmt: skip
    for escaped in (True, False):
        line = json.dumps(fields, ensure_ascii=escaped, separators=(",", ":")).encode()
        for text in (line, line.replace(b"1.0", b"1.000000000000000000000000000000000")):
            record = records.read(text)
            assert record is not None
            assert bulk_values.ignored_fields(record) == []
    fields["metadata"] = {"n": [1.0] * 5}
    record = records.read(json.dumps(fields, separators=(",", ":")).encode())
    assert record is not None
    assert bulk_values.ignored_fields(record) == ["metadata"]
