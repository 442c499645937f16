"""Looking at the memory: filters, counts that are true, and all that is known of one node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitmem.errors import UsageError
from gitmem.memory import decay, edit, listing

from ..conftest import Git
from ..sandbox import DAY, START, Clock, carry, new_repo
from .desk import Desk, raw


def ids(desk: Desk, **filters: Any) -> list[str]:
    return [node.id for node in listing.listing(desk.store, **filters).nodes]


def test_the_newest_comes_first_and_what_is_left_out_is_counted(desk: Desk) -> None:
    made = [desk.write(f"node {number}") for number in range(5)]

    found = listing.listing(desk.store, limit=2)

    assert [node.id for node in found.nodes] == [made[4], made[3]]
    assert (found.total, found.more) == (5, 3)
    assert ids(desk, limit=2, reverse=True) == made[:2]
    assert found.next == [f"gitmem show {made[4]}"]


def test_what_was_said_anew_is_new(desk: Desk) -> None:
    first, second = desk.write("first"), desk.write("second")
    desk.clock.forward(DAY)
    desk.change(first, content="first, corrected")

    assert ids(desk) == [first, second]
    assert ids(desk, since=START + DAY) == [first]


def test_filters_choose_and_every_one_must_fit(desk: Desk) -> None:
    bug = desk.write("bug", type="bug", tags=["parser"], priority="P1", lane="docs")
    note = desk.write("note", type="note", lifecycle="project", wu="WU-7", tags=["parser"])
    free = desk.write("free", wu="WU-8", session="sess-0123456789ab")
    raw(desk.store, "node", id="mem-unlinked")

    assert ids(desk, type="bug") == ids(desk, type="discovery", tags=["bug"]) == [bug]
    assert ids(desk, tags=["parser"]) == [note, bug]
    assert ids(desk, tags=["parser", "bug"]) == [bug]
    assert ids(desk, lifecycle="project") == [note]
    assert ids(desk, wu="WU-8") == ids(desk, session="sess-0123456789ab") == [free]
    assert ids(desk, wu="unlinked") == ["mem-unlinked"]
    assert ids(desk, lane="docs") == ids(desk, priority="p1") == [bug]
    assert ids(desk, wu="WU-7", type="note", tags=["parser"]) == [note]
    assert ids(desk, wu="WU-8", type="note") == []


def test_hidden_nodes_are_shown_when_asked_for(desk: Desk) -> None:
    """W10: deleted nodes came back."""
    active, closed, archived, deleted = (desk.write(each) for each in ("a", "b", "c", "d"))
    desk.change(closed, closed=True)
    desk.change(archived, archived=True)
    desk.change(deleted, deleted=True)

    assert ids(desk) == [closed, active]
    assert ids(desk, include_archived=True) == [deleted, archived, closed, active]
    assert [ids(desk, status=each) for each in ("active", "closed", "archived", "deleted")] == [
        [active], [closed], [archived], [deleted],
    ]  # fmt: skip
    assert [node.id for node in listing.by_wu(desk.store, "WU-7")] == [active, closed]
    assert [node.id for node in listing.by_wu(desk.store, "WU-7", include_archived=True)] == [
        active,
        closed,
        archived,
        deleted,
    ]


def test_a_path_finds_what_is_about_it_below_it_and_above_it(desk: Desk) -> None:
    """And nothing whose name only starts the same."""
    file, folder = desk.write("file", paths=["src/log/a.py"]), desk.write("folder", paths=["src/log"])
    other = desk.write("other", paths=["src/logs/a.py", "src/log.py"])
    desk.write("about nothing")

    assert ids(desk, path="src/log") == [folder, file]
    assert ids(desk, path="src/log/a.py") == [folder, file]
    assert ids(desk, path="src/log/b.py") == [folder]
    assert ids(desk, path="./src//") == ids(desk, path=".") == [other, folder, file]
    assert ids(desk, path="docs") == []


@pytest.mark.usefixtures("commits")
def test_stale_nodes_are_told(desk: Desk, repo: Path, git: Git) -> None:
    stale, current = desk.write("stale", paths=["README"]), desk.write("current", paths=["src"])
    (repo / "README").write_text("Changed.\n")
    git("commit", "--quiet", "-am", "Second", cwd=repo)

    found = listing.listing(desk.store)

    assert found.stale == {stale: "stale (1 commit behind in README)"}
    shown = found.as_json()["nodes"]
    assert isinstance(shown, list)
    assert [each.get("stale") for each in shown] == [None, "stale (1 commit behind in README)"]
    assert listing.show(desk.store, stale).stale == "stale (1 commit behind in README)"
    assert listing.show(desk.store, stale).next[0] == f"gitmem mem update {stale} --verified"
    assert listing.show(desk.store, current).stale is None


def test_an_empty_memory_says_how_to_begin(desk: Desk) -> None:
    found = listing.listing(desk.store)

    assert (found.nodes, found.total, found.more) == ([], 0, 0)
    assert found.next


@pytest.mark.usefixtures("commits")
def test_show_has_all_of_a_node(desk: Desk) -> None:
    """Relations both ways with how the other starts, each change with who and when, accesses, score, commit."""
    id = desk.write("The parser drops tabs\nwhen they come first", paths=["README"])
    commit = desk.tip()
    child = desk.write("a child", discovered_from=id)
    edit.relate(desk.store, desk.caller, id, "blocks", "mem-zzzzzzzzzzzz")
    desk.clock.forward(DAY)
    desk.change(id, priority="P0", metadata={"attempts": 2})
    desk.change(id, clear=["priority"])
    decay.record_accesses(desk.store, desk.caller, [id])

    found = listing.show(desk.store, id[:10])

    assert found.node.content.startswith("The parser")
    assert (found.commit, found.recorded, found.ambiguous) == (commit, True, False)
    assert found.relations == [
        {"from_id": id, "to_id": "mem-zzzzzzzzzzzz", "type": "blocks", "other": None},
        {"from_id": child, "to_id": id, "type": "discovered_from", "other": "a child"},
    ]
    assert [each.fields for each in found.history] == [
        {"priority": "P0", "metadata": {"attempts": 2}}, {"clear": ["priority"]},
    ]  # fmt: skip
    assert {each.sender for each in found.history} == {desk.session.display_name}
    assert found.node.accesses == 1
    assert found.score > 1
    assert commit and found.next and not any(each.startswith("git ") for each in found.next)


def test_showing_a_node_counts_as_no_access(desk: Desk) -> None:
    """Only `--track-access` and `access --record` do: or triage would keep everything alive."""
    id = desk.write("one")

    listing.show(desk.store, id)
    listing.listing(desk.store)

    assert decay.stats(desk.store, id).count == 0


@pytest.mark.parametrize("flag", ["archived", "deleted"])
def test_hidden_nodes_can_be_shown_by_id_with_the_way_back(desk: Desk, flag: str) -> None:
    id = desk.write("one")
    desk.change(id, **{flag: True})

    found = listing.show(desk.store, id)

    assert found.node.status == flag
    assert found.next[0] == f"gitmem mem update {id} --clear {flag}"


def test_an_id_with_two_contents_is_ambiguous(desk: Desk) -> None:
    """W3: of two nodes with one id the older was gone. Here both lines stay, and it is said."""
    raw(desk.store, "node", id="mem-aaaa", content="one", at=START)
    raw(desk.store, "node", id="mem-aaaa", content="other", at=START + 1)
    raw(desk.store, "node", id="mem-bbbb", content="same", at=START)
    raw(desk.store, "node", id="mem-bbbb", content="same", at=START + 1)

    assert listing.show(desk.store, "mem-aaaa").ambiguous
    assert listing.show(desk.store, "mem-aaaa").node.content == "one"
    assert not listing.show(desk.store, "mem-bbbb").ambiguous


def test_an_unknown_id_says_where_it_may_be(desk: Desk) -> None:
    with pytest.raises(UsageError, match="No such node in this log: mem-zzzzzzzzzzzz") as error:
        listing.show(desk.store, "mem-zzzzzzzzzzzz")

    assert "gitmem sync" in error.value.next


def test_two_clones_list_the_same(tmp_path: Path) -> None:
    clock = Clock()
    one, other = Desk(new_repo(tmp_path / "one"), clock), Desk(new_repo(tmp_path / "other"), clock)
    for number in range(3):
        one.write(f"one {number}")
        other.write(f"other {number}")
        clock.forward(DAY)
    carry(one.store, other.store)

    assert ids(one) == ids(other)
    assert len(ids(one)) == 6
    assert [node.as_json() for node in listing.all_nodes(one.store)] == [
        node.as_json() for node in listing.all_nodes(other.store)
    ]
