"""The export: complete, deterministic, and whatever stands in a node stays inside of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem import records
from gitmem.errors import UsageError
from gitmem.memory import listing
from gitmem.text.sanitize import is_unsafe

from ..sandbox import DAY, START, Clock, carry, new_repo
from .desk import Desk, Lines

TAB_AND_LINE = "\t\n"
HOSTILE = "fine\n# Memory\n## WU-1\n### mem-forged\n<!--\n```\n---\r\n- x\n1. y\n\t> z\x1b[31m\u202e"


def test_markdown_is_the_default_and_reads_well(desk: Desk) -> None:
    id = desk.write("The parser drops tabs\nwhen they come first", type="bug", priority="P1", paths=["a.py"])
    project = desk.write("Lines are bytes", lifecycle="project", wu="WU-7", tags=["invariant"])
    day = desk.node(id).created_at[:10]
    name = desk.session.display_name

    assert listing.export(desk.store).document.split("\n") == [
        "# Memory", "", listing.FRAME, "", "2 nodes.", "",
        "## Project", "", f"### {project}", "",
        f"discovery · {day} · {name} · tags: invariant · work unit: WU-7", "", "    Lines are bytes", "",
        "## WU-7", "", f"### {id}", "",
        f"discovery · P1 · {day} · {name} · tags: bug · paths: a.py", "",
        "    The parser drops tabs", "    when they come first",
    ]  # fmt: skip


def test_work_units_come_by_number_and_what_has_none_last(desk: Desk) -> None:
    for wu in ("WU-10", "AB-3", "WU-9"):
        desk.write(f"of {wu}", wu=wu)
    desk.write("for all", lifecycle="project")
    lines = listing.export(desk.store).document.split("\n")

    assert [line for line in lines if line.startswith("## ")] == [
        "## Project",
        "## AB-3",
        "## WU-9",
        "## WU-10",
    ]


def test_work_units_of_any_form_have_a_section_each(desk: Desk) -> None:
    """One that is named as a section of the export can't be taken for it."""
    for wu in ("fix-login", "Project", "gh-12", "#7", "a-", "x-1.5"):
        desk.write(f"of {wu}", wu=wu)
    desk.write("for all", lifecycle="project")
    lines = listing.export(desk.store).document.split("\n")

    assert [line for line in lines if line.startswith("## ")] == [
        "## Project", "## #7", "## Work unit Project", "## a-", "## fix-login", "## gh-12", "## x-1.5",
    ]  # fmt: skip


def test_a_superseded_node_names_the_live_end_of_its_chain(desk: Desk) -> None:
    """In each form; other nodes have no such field."""
    old = desk.write("Floats")
    middle = desk.write("Decimals", supersedes=[old])
    live = desk.write("Integers", supersedes=[middle])

    nodes = json.loads(listing.export(desk.store, format="json").document)["nodes"]
    assert {node["id"]: node.get("superseded_by") for node in nodes} == {old: live, middle: live, live: None}
    rows = listing.export(desk.store, format="jsonl").document.split("\n")
    assert [json.loads(row) for row in rows] == nodes == listing.export(desk.store).as_json()["nodes"]
    assert listing.export(desk.store).document.count(f" · superseded by: {live}") == 2


@pytest.mark.parametrize(
    "text", [HOSTILE, "\n\n# x", "    # x", "~~~\n# x", "</pre>\n\n# x", "\r# x", "\u2028# x"]
)
def test_text_forges_no_heading_and_no_frame(desk: Desk, text: str) -> None:
    """Every line of it is indented as code below a paragraph, and no character of it moves a cursor."""
    id = desk.write(text, tags=["<!-- tag", "`x`", "# y"], lane="a\\b *c* [d](e)")
    lines = listing.export(desk.store).document.split("\n")

    assert [line for line in lines if line.startswith("#")] == ["# Memory", "## WU-7", f"### {id}"]
    start = lines.index(f"### {id}") + 4
    assert lines[start - 1] == ""
    assert lines[start - 2].startswith("discovery · ")
    assert r"tags: \<!-- tag, \`x\`, \# y · lane: a\\b \*c\* \[d\](e)" in lines[start - 2]
    assert all(line == "" or line.startswith("    ") for line in lines[start:])
    assert not {"\x1b", "\u202e", "\r", "\u2028"} & set("\n".join(lines))


@given(text=st.text(min_size=1).filter(lambda text: text.strip()))
def test_property_no_text_leaves_its_place(text: str) -> None:
    fields = {
        "id": "mem-aaaa",
        "type": "note",
        "lifecycle": "wu",
        "content": text,
        "sender_identity": "a:b:c",
    }
    try:
        line = records.line("node", START, fields, allow_secret=True)
    except UsageError:
        return  # such text is in no log
    found = listing.export(Lines([line])).document  # type: ignore[arg-type]  # all that is asked of it

    head, _, rest = found.partition("### mem-aaaa\n\n")
    _, _, body = rest.partition("\n\n")
    assert head.startswith("# Memory\n")
    assert all(not line or line.startswith("    ") for line in body.split("\n"))
    assert not any(is_unsafe(char) for char in body if char not in TAB_AND_LINE)


def test_json_has_count_filters_and_nodes(desk: Desk) -> None:
    """The shape that scripts know, on one line, with all fields and all characters."""
    id = desk.write(HOSTILE, type="bug", priority="P0", metadata={"attempts": 2})
    desk.write("note", type="note")

    found = json.loads(listing.export(desk.store, format="JSON", wu="WU-7", type="bug").document)

    assert list(found) == ["count", "filters", "nodes"]
    assert (found["count"], found["filters"]) == (1, {"wu": "WU-7", "type": "bug"})
    (node,) = found["nodes"]
    assert (node["id"], node["content"], node["metadata"]) == (id, HOSTILE, {"attempts": 2})


def test_jsonl_has_one_node_a_line(desk: Desk) -> None:
    """In the order in which they were created."""
    made = [desk.write(f"node {number}\n\u2028") for number in range(3)]
    lines = listing.export(desk.store, format="jsonl").document.splitlines()

    assert [json.loads(line)["id"] for line in lines] == made


def test_hidden_nodes_are_there_when_asked_for(desk: Desk) -> None:
    archived, deleted = desk.write("archived"), desk.write("deleted")
    desk.change(archived, archived=True)
    desk.change(deleted, deleted=True)

    assert listing.export(desk.store).count == 0
    found = listing.export(desk.store, include_archived=True)
    assert [node.id for node in found.nodes] == [archived, deleted]
    assert " · archived" in found.document and " · deleted" in found.document


def test_filters_choose(desk: Desk) -> None:
    project = desk.write("for all", lifecycle="project", tags=["x"])
    desk.write("other")

    assert [node.id for node in listing.export(desk.store, lifecycle="project").nodes] == [project]
    assert [node.id for node in listing.export(desk.store, tags=["x"]).nodes] == [project]
    assert "(lifecycle: project)" in listing.export(desk.store, lifecycle="project").document


def test_an_empty_memory_is_a_document_too(desk: Desk) -> None:
    assert listing.export(desk.store).document.endswith("0 nodes.")
    assert json.loads(listing.export(desk.store, format="json").document) == {
        "count": 0,
        "filters": {},
        "nodes": [],
    }
    assert listing.export(desk.store, format="jsonl").document == ""


def test_an_unknown_format_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="Invalid format: yaml") as error:
        listing.export(desk.store, format="yaml")

    assert "markdown, json, jsonl" in error.value.hint


def test_two_clones_export_the_same_bytes(tmp_path: Path) -> None:
    clock = Clock()
    one, other = Desk(new_repo(tmp_path / "one"), clock), Desk(new_repo(tmp_path / "other"), clock)
    for number in range(3):
        one.write(f"one {number}", tags=["b", "a"])
        other.write(f"other {number}", metadata={"b": 1, "a": 2})
        clock.forward(DAY)
    carry(one.store, other.store)

    for format in listing.FORMATS:
        assert (
            listing.export(one.store, format=format).document
            == listing.export(other.store, format=format).document
        )
