"""Doctor on the memory: what leads to nodes that are not here, ids that say two things, circles of blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.doctor import doctor
from gitmem.doctor.findings import Finding
from gitmem.memory import relations

from ..memory.desk import Desk, raw
from ..sandbox import START

MEMORY = ("unknown-id", "two-contents", "circle")


@pytest.fixture
def desk(repo: Path) -> Desk:
    return Desk(repo, wu="WU-7")


def findings(desk: Desk) -> list[Finding]:
    return [each for each in doctor.examine(desk.store).findings if each.code in MEMORY]


def blocks(desk: Desk, one: str, other: str, *, remove: bool = False) -> None:
    relations.relate(desk.store, desk.caller, one, "blocks", other, remove=remove)


def test_a_memory_that_is_as_it_should_be_has_no_findings(desk: Desk) -> None:
    one, other = desk.write("one"), desk.write("other")
    blocks(desk, one, other)
    desk.change(one, other, priority="P1")
    raw(desk.store, "node", id="mem-same", at=START)
    raw(desk.store, "node", id="mem-same", at=START + 1)

    assert findings(desk) == []
    assert doctor.examine(desk.store).healthy


def test_a_relation_to_a_node_that_is_not_here_is_noted(desk: Desk) -> None:
    """Kept, reported, and no reason to stop: it may come with the next sync."""
    id = desk.write("one")
    blocks(desk, "mem-zzzzzzzzzzzz", id)

    (found,) = findings(desk)

    assert (found.code, found.severity) == ("unknown-id", "note")
    assert found.command == "", "there is no remote to sync with"
    assert "mem-zzzzzzzzzzzz" in found.what
    assert "memory/" in found.where
    blocks(desk, "mem-zzzzzzzzzzzz", id, remove=True)
    assert findings(desk) == []


def test_a_patch_of_a_node_that_is_not_here_is_noted(desk: Desk) -> None:
    names = [f"mem-none{number}" for number in range(5)]
    raw(desk.store, "patch", id="patch-aaaa", node_ids=[desk.write("here"), *names], archived=True)

    (found,) = findings(desk)

    assert found.what == (
        "This patch names mem-none0, mem-none1, mem-none2 and 2 more, missing from this log."
    )


def test_two_contents_of_one_id_are_a_problem(desk: Desk) -> None:
    raw(desk.store, "node", id="mem-aaaa", content="one")
    raw(desk.store, "node", id="mem-aaaa", content="other")

    (found,) = findings(desk)

    assert (found.severity, found.command) == ("problem", "gitmem mem show mem-aaaa")
    assert doctor.examine(desk.store).status == 1


def test_a_circle_of_open_blocks_is_noted_once_with_the_way_out(desk: Desk) -> None:
    one, other = sorted([desk.write("one"), desk.write("other")])
    blocks(desk, one, other)
    blocks(desk, other, one)

    (found,) = findings(desk)

    assert found.command == f"gitmem mem relate {one} blocks {other} --remove"
    assert f"{one} → {other} → {one}" in found.what


@pytest.mark.parametrize("way_out", ["closed", "archived", "deleted", "removed"])
def test_a_circle_that_is_open_nowhere_is_none(desk: Desk, way_out: str) -> None:
    one, other = desk.write("one"), desk.write("other")
    blocks(desk, one, other)
    blocks(desk, other, one)
    if way_out == "removed":
        blocks(desk, one, other, remove=True)
    else:
        desk.change(one, **{way_out: True})

    assert findings(desk) == []
