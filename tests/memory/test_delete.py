"""Deleting: by id or by filters, never by accident, and never for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitmem.memory import listing, upkeep

from ..sandbox import DAY, HOUR, Clock, carry, new_repo
from .desk import Desk


def remove(desk: Desk, *ids: str, **options: Any) -> upkeep.Deleted:
    return upkeep.delete(desk.store, desk.caller, ids, **options)


@pytest.mark.usefixtures("commits")
def test_deleted_nodes_are_gone_from_every_answer_that_does_not_ask_for_them(desk: Desk) -> None:
    """W10: they came back in ready, context and export."""
    id = desk.write("wrong", priority="P0", tags=["x"])

    found = remove(desk, id[:12], reason="it was wrong")

    assert (found.ids, found.commit) == ([id], desk.tip())
    assert listing.listing(desk.store).nodes == []
    assert listing.listing(desk.store, tags=["x"]).total == 0
    assert listing.by_wu(desk.store, "WU-7") == []
    assert listing.ready(desk.store, "WU-7", include_archived=True).nodes == []
    assert listing.export(desk.store).count == 0
    assert [node.status for node in listing.listing(desk.store, include_archived=True).nodes] == ["deleted"]
    assert desk.node(id).reason == "it was wrong"


def test_it_can_be_undone(desk: Desk) -> None:
    """By the command that the answer ends with; and done again."""
    id = desk.write("right after all")
    assert remove(desk, id).next[0] == f"gitmem mem update {id} --clear deleted"
    desk.change(id, clear=["deleted"])

    assert listing.listing(desk.store).total == 1
    assert remove(desk, id).ids == [id]
    assert listing.listing(desk.store).total == 0


@pytest.mark.usefixtures("commits")
def test_deleting_again_writes_nothing(desk: Desk) -> None:
    id = desk.write("wrong")
    remove(desk, id)
    tip = desk.tip()

    found = remove(desk, id)

    assert (found.ids, found.already, found.commit) == ([], [id], None)
    assert desk.tip() == tip


def test_filters_choose_and_every_one_must_fit(desk: Desk) -> None:
    """Archived nodes too; by their age since they were created."""
    old = desk.write("old", tags=["x"])
    archived = desk.write("archived", tags=["x"])
    desk.change(archived, archived=True)
    desk.write("old, of another kind", tags=["y"])
    desk.clock.forward(7 * DAY)
    desk.write("young", tags=["x"])
    desk.change(old, content="old, changed since")

    assert remove(desk, tags=["x"], older_than=3 * DAY, dry_run=True).ids == [old, archived]
    assert len(remove(desk, tags=["x"], dry_run=True).ids) == 3
    assert len(remove(desk, older_than=12 * HOUR, dry_run=True).ids) == 3
    assert len(remove(desk, wu="WU-7", dry_run=True).ids) == 4
    assert remove(desk, wu="unlinked", dry_run=True).ids == []


@pytest.mark.usefixtures("commits")
def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    id = desk.write("old", tags=["x y"])
    desk.clock.forward(7 * DAY)
    tip = desk.tip()

    found = remove(desk, tags=["x y"], older_than=3 * DAY, dry_run=True)

    assert (found.ids, found.commit, found.recorded, desk.tip()) == ([id], None, False, tip)
    assert found.next == [f"gitmem show {id}"]
    assert desk.node(id).status == "active"


def test_nothing_that_fits_is_no_error(desk: Desk) -> None:
    tip = desk.tip()

    found = remove(desk, tags=["nowhere"])

    assert (found.ids, found.commit, desk.tip()) == ([], None, tip)


def test_what_was_meant_to_last_is_pointed_out(desk: Desk) -> None:
    """A filter by age takes in the knowledge of the project, and that is easily overlooked."""
    project = desk.write("for ever", lifecycle="project")
    desk.write("other")
    desk.clock.forward(DAY)

    found = remove(desk, older_than=HOUR, dry_run=True)

    assert found.warnings == [f"1 node of these is of the project or sensitive: {project}."]


def test_deleted_here_and_changed_there_is_deleted_with_the_change(tmp_path: Path) -> None:
    """Field by field, so bringing it back brings all of it."""
    clock = Clock()
    one, other = Desk(new_repo(tmp_path / "one"), clock), Desk(new_repo(tmp_path / "other"), clock)
    id = one.write("first")
    carry(one.store, other.store)
    remove(one, id)
    other.change(id, content="better")
    carry(one.store, other.store)

    for desk in (one, other):
        assert (desk.node(id).status, desk.node(id).content) == ("deleted", "better")
