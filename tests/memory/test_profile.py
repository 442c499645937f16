"""The profile: the project's nodes, the youngest first, and its tags counted over all of them."""

from __future__ import annotations

import pytest

from gitmem.errors import UsageError
from gitmem.memory import context

from .desk import Desk


def test_it_has_what_holds_for_the_project_and_counts_every_tag(desk: Desk) -> None:
    first = desk.write("Modules are nouns", lifecycle="project", tags=["convention"])
    second = desk.write("Union only\nalways", lifecycle="project", tags=["decision", "convention"])
    desk.write("of a work unit", tags=["decision"])
    desk.change(desk.write("gone", lifecycle="project", tags=["decision"]), archived=True)

    found = context.profile(desk.store)

    assert found.block.split("\n") == [
        context.FRAME,
        "",
        "## Project Profile",
        f"- [{second}] (2026-10-26, Planck, decision, convention): Union only",
        "  | always",
        f"- [{first}] (2026-10-26, Planck, convention): Modules are nouns",
    ]
    assert found.as_json()["by_tag"] == {"convention": 2, "decision": 1}
    assert list(found.by_tag) == ["convention", "decision"]
    assert found.as_json()["total"] == 2


def test_a_tag_and_a_limit_choose_and_the_counts_stay_those_of_all(desk: Desk) -> None:
    ids = [desk.write(f"rule {number}", lifecycle="project", tags=["pattern"]) for number in range(3)]
    desk.write("another", lifecycle="project", tags=["faq"])

    found = context.profile(desk.store, tag="pattern", limit=2)

    assert [node.id for node in found.nodes] == [ids[2], ids[1]]
    assert (found.total, found.fitting) == (4, 3) and found.by_tag == {"pattern": 3, "faq": 1}
    assert found.next == ["gitmem mem profile --limit 3 --tag pattern"]


def test_a_large_node_is_shown_by_its_first_lines_or_by_the_command_that_shows_it(desk: Desk) -> None:
    one_line = desk.write("x" * 60_000, lifecycle="project")
    lines = desk.write("line\n" * 5_000, lifecycle="project")

    found = context.profile(desk.store)

    assert len(found.block.encode()) < 1_400
    assert found.block.endswith(f"- [{one_line}] (2026-10-26, Planck): (long: gitmem show {one_line})")
    assert f"more lines: gitmem show {lines})" in found.block


def test_nothing_known_is_an_empty_block(desk: Desk) -> None:
    found = context.profile(desk.store)

    assert (found.block, found.total, found.by_tag) == ("", 0, {})
    assert found.next == ["gitmem mem create --help", "gitmem mem index --dry-run"]


def test_a_limit_below_one_and_what_is_no_tag_are_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="limit"):
        context.profile(desk.store, limit=0)
    with pytest.raises(UsageError, match="Invalid tag"):
        context.profile(desk.store, tag="a,b")
