"""The archive: what has decayed is hidden and kept, the same on every clone, however often and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.memory import decay, edit, listing, stored_nodes, upkeep
from tests.profiles import up_to

from ..sandbox import DAY, START, Clock, carry, new_repo
from .desk import Desk, Lines, raw, somebody

MONTH = 30 * DAY
records_read = records.read


@pytest.mark.usefixtures("commits")
def test_what_has_decayed_is_archived_in_one_commit(desk: Desk) -> None:
    """The answer has the names that scripts know, and the log tells why."""
    old, read = desk.write("old"), desk.write("old, but read")
    decay.record_accesses(desk.store, desk.caller, [read])
    project, gone = desk.write("project", lifecycle="project"), desk.write("deleted")
    desk.change(gone, deleted=True)
    before = desk.write("archived before")
    desk.change(before, archived=True)
    desk.clock.forward(70 * DAY)
    young = desk.write("young")
    tip = desk.tip()

    found = upkeep.archive(desk.store, desk.caller, threshold=0.1)

    answer = found.as_json()
    assert answer["archived_ids"] == [old]
    assert answer["retained_ids"] == [read, young]
    assert answer["skipped_ids"] == [project, before]
    assert answer["total_processed"] == 5
    assert answer["dry_run"] is False
    assert answer["commit"] == desk.tip() != tip
    assert list(found.scores) == [old]
    assert desk.node(old).status == "archived"
    assert desk.node(old).reason == "decay: below 0.1 with a half-life of 30d"
    assert desk.node(old).content == "old"
    assert answer["next"]


def test_the_score_of_what_is_archived_is_told(desk: Desk) -> None:
    """Whoever doubts it can compute it again: from the reason, the time of the line and the node."""
    id = desk.write("old")
    desk.clock.forward(100 * DAY)

    found = upkeep.archive(desk.store, desk.caller)

    assert found.scores == {id: decay.score(desk.node(id), now=desk.clock())}


@pytest.mark.usefixtures("commits")
def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    id = desk.write("old")
    desk.clock.forward(100 * DAY)
    tip = desk.tip()

    found = upkeep.archive(desk.store, desk.caller, dry_run=True, threshold=0.2, half_life=20 * DAY)

    assert (found.archived_ids, found.commit, found.recorded, found.dry_run) == ([id], None, False, True)
    assert desk.tip() == tip
    assert desk.node(id).status == "active"
    assert found.next == [f"gitmem show {id}"]


@pytest.mark.usefixtures("commits")
def test_nothing_to_archive_makes_no_commit(desk: Desk) -> None:
    desk.write("young")
    tip = desk.tip()

    found = upkeep.archive(desk.store, desk.caller)

    assert (found.archived_ids, found.commit, found.recorded) == ([], None, False)
    assert desk.tip() == tip


def test_an_empty_memory_is_no_error(desk: Desk) -> None:
    assert upkeep.archive(desk.store, desk.caller).total_processed == 0


def test_project_nodes_are_protected(desk: Desk) -> None:
    """However old they are."""
    id = desk.write("for ever", lifecycle="project", priority="P3")
    desk.clock.forward(1000 * DAY)

    assert upkeep.archive(desk.store, desk.caller).skipped_ids == [id]


def test_what_is_said_anew_is_young_again(desk: Desk) -> None:
    """Age runs from the later of created and updated; closing says nothing new."""
    said, closed = desk.write("said anew"), desk.write("closed")
    desk.clock.forward(100 * DAY)
    desk.change(said, content="said differently")
    desk.change(closed, closed=True)

    found = upkeep.archive(desk.store, desk.caller)

    assert (found.archived_ids, found.retained_ids) == ([closed], [said])


def test_a_node_from_the_future_stays(desk: Desk) -> None:
    """A clock before creation is no age at all."""
    id = desk.write("ahead")

    found = upkeep.archive(desk.store, desk.caller, now=START - 1000 * DAY)

    assert found.retained_ids == [id]


def test_archived_nodes_can_be_had_and_brought_back(desk: Desk) -> None:
    id = desk.write("old")
    desk.clock.forward(100 * DAY)
    upkeep.archive(desk.store, desk.caller)

    assert listing.all_nodes(desk.store) == []
    assert [node.id for node in listing.all_nodes(desk.store, include_archived=True)] == [id]
    edit.change(desk.store, desk.caller, [id], clear=["archived"])
    assert [node.id for node in listing.all_nodes(desk.store)] == [id]


@pytest.mark.usefixtures("commits")
def test_many_nodes_are_few_lines_in_one_commit(desk: Desk) -> None:
    """A line holds so many ids; what is more goes into further lines of the same commit."""
    made = edit.append(desk.store, desk.caller, [{"content": f"node {number}"} for number in range(20)])
    desk.clock.forward(100 * DAY)
    commits = len(desk.store.git.history(desk.tip() or ""))

    found = upkeep.archive(desk.store, desk.caller, names_max=7)

    assert found.archived_ids == [node.id for node in made.nodes]
    rows = desk.store.db().execute("SELECT body FROM line WHERE kind = 'patch'").fetchall()
    assert len(rows) == 3
    assert {desk.node(node.id).status for node in made.nodes} == {"archived"}
    assert len(desk.store.git.history(desk.tip() or "")) == commits + 1


def test_a_patch_of_many_nodes_is_read_once_when_another_follows(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read for each of its nodes, a pass over 50,000 that were archived before took minutes instead of seconds."""
    made = edit.append(desk.store, desk.caller, [{"content": f"node {number}"} for number in range(600)])
    desk.clock.forward(100 * DAY)
    upkeep.archive(desk.store, desk.caller)
    read: list[bytes] = []

    def counted(line: bytes) -> dict[str, Any] | None:
        read.append(line)
        return records_read(line)

    monkeypatch.setattr(records, "read", counted)

    upkeep.cleanup(desk.store, desk.caller, ttl=DAY)

    assert {desk.node(node.id).status for node in made.nodes[:3]} == {"deleted"}
    assert sum(b'"kind":"patch"' in line for line in read) < 20


def test_archived_on_one_clone_and_promoted_on_another(tmp_path: Path) -> None:
    """The new node of the project stays, its source is archived, on both."""
    clock = Clock()
    one, other = Desk(new_repo(tmp_path / "one"), clock), Desk(new_repo(tmp_path / "other"), clock)
    id = one.write("worth keeping")
    carry(one.store, other.store)
    clock.forward(100 * DAY)

    upkeep.archive(one.store, one.caller)
    promoted = other.write("worth keeping", lifecycle="project", tags=["pattern"], discovered_from=id)
    carry(one.store, other.store)

    for desk in (one, other):
        assert desk.node(id).status == "archived"
        assert desk.node(promoted).status == "active"
        again = upkeep.archive(desk.store, desk.caller)
        assert (again.archived_ids, set(again.skipped_ids)) == ([], {id, promoted})


# Properties, over lines in an index.

LIFECYCLES = st.sampled_from(["ephemeral", "session", "wu", "project"])
NODES = st.lists(
    st.fixed_dictionaries(
        {
            "days": st.integers(-5, 200),
            "lifecycle": LIFECYCLES,
            "priority": st.sampled_from([None, "P0", "P1", "P2", "P3"]),
            "reads": st.integers(0, 3),
        }
    ),
    min_size=1,
    max_size=8,
)
PASSES = st.fixed_dictionaries(
    {
        "threshold": st.sampled_from([0.05, 0.1, 0.5, 1.5]),
        "half_life": st.sampled_from([DAY, 10 * DAY, MONTH]),
        "now": st.integers(0, 60).map(lambda days: START + days * DAY),
    }
)


def lines_of(many: Sequence[dict[str, Any]]) -> list[bytes]:
    """Nodes of so many days before START, with their accesses."""
    found = []
    for number, each in enumerate(many):
        fields = {"id": f"mem-{number:04}", "type": "note", "lifecycle": each["lifecycle"], "content": "c",
                  "priority": each["priority"], "sender_identity": "test:worker:one"}  # fmt: skip
        found.append(records.line("node", START - each["days"] * DAY + number, fields))
        for read in range(each["reads"]):
            fields = {
                "id": f"access-{number:04}{read}",
                "node_ids": [f"mem-{number:04}"],
                "reader_identity": "a:b:c",
            }
            found.append(records.line("access", START + read, fields))
    return found


def run(store: Lines, given: dict[str, Any], **more: Any) -> upkeep.Archived:
    return upkeep.archive(store, somebody(), **given, **more)  # type: ignore[arg-type]  # all that is asked of it


def promote(store: Lines, source: str, name: str) -> None:
    """What promotion is to the log: a new node of the project, and where it came from."""
    fields = {"id": name, "type": "note", "lifecycle": "project", "content": "p", "sender_identity": "a:b:c"}
    relation = {"id": f"rel-{name[4:]}", "from_id": name, "to_id": source, "type": "discovered_from",
                "sender_identity": "a:b:c"}  # fmt: skip
    store.take([store.line("node", fields)[1], store.line("relation", relation)[1]])


@given(many=NODES, once=PASSES)
def test_property_archiving_again_changes_nothing(
    many: Sequence[dict[str, Any]], once: dict[str, Any]
) -> None:
    """The second pass finds what the first left, and writes no line."""
    store = Lines(lines_of(many))
    first = run(store, once)
    hidden, count = store.hidden(), len(store.lines)

    second = run(store, once)

    assert hidden == set(first.archived_ids)
    assert second.archived_ids == []
    assert second.retained_ids == first.retained_ids
    assert set(second.skipped_ids) == {*first.skipped_ids, *first.archived_ids}
    assert second.total_processed == first.total_processed == len(many)
    assert (store.hidden(), len(store.lines)) == (hidden, count)


@given(many=NODES, once=PASSES)
def test_property_a_pass_archives_by_the_rule(many: Sequence[dict[str, Any]], once: dict[str, Any]) -> None:
    """Below the threshold and not of the project: computed here from the nodes themselves."""
    store = Lines(lines_of(many))
    found = [store.node(f"mem-{number:04}") for number in range(len(many))]
    scores = {node.id: decay.score(node, now=once["now"], half_life=once["half_life"]) for node in found}

    run(store, once)

    below = {
        node.id
        for node in found
        if scores[node.id] < once["threshold"]
        and node.lifecycle != "project"
        and node.priority not in ("P0", "P1")
    }
    assert store.hidden() == below


@settings(max_examples=up_to(100))
@given(many=NODES, passes=st.lists(PASSES, min_size=1, max_size=3), data=st.data())
def test_property_archiving_on_clones_in_any_order_hides_the_same(
    many: Sequence[dict[str, Any]], passes: list[dict[str, Any]], data: st.DataObject
) -> None:
    """On one clone one after the other, or apart on as many clones and then together: the same set."""
    base = lines_of(many)
    alone = Lines(base)
    for each in data.draw(st.permutations(passes)):
        run(alone, each)

    clones = [Lines(base, seed=number) for number in range(2, 2 + len(passes))]
    for clone, each in zip(clones, passes, strict=True):
        run(clone, each)
    every = sorted({line for clone in clones for line in clone.lines})
    together = Lines(data.draw(st.permutations(every)))

    assert together.hidden() == alone.hidden()
    assert [line for line in every if line in together.lines] == every


@settings(max_examples=up_to(100))
@given(many=NODES, once=PASSES, data=st.data())
def test_property_archiving_commutes_with_promotion_and_with_changes(
    many: Sequence[dict[str, Any]], once: dict[str, Any], data: st.DataObject
) -> None:
    """Promoted or changed before, after or on another clone: the same nodes are hidden, and nothing said is lost."""
    base = lines_of(many)
    source = f"mem-{data.draw(st.integers(0, len(many) - 1)):04}"

    def change(store: Lines) -> None:
        promote(store, source, "mem-promoted")
        fields = {"tags": ["pattern"], "reason": None, "metadata": {"attempts": 2}}
        caller = somebody()
        lines = stored_nodes.patch_lines(store, caller, [source], fields)  # type: ignore[arg-type]  # all that is asked of it
        store.take(line for _, line in lines)

    # What is said anew is younger: it is judged as it was, so that only the order differs.
    here, there = Lines(base, now=START - 400 * DAY), Lines(base, seed=2, now=START - 400 * DAY)
    archived = run(here, once)
    change(there)
    together = Lines(data.draw(st.permutations(sorted({*here.lines, *there.lines}))))
    after = Lines(here.lines, seed=3, now=START - 400 * DAY)
    change(after)
    before = Lines(there.lines, seed=4, now=START - 400 * DAY)
    run(before, once)

    for store in (together, after, before):
        assert store.hidden() == set(archived.archived_ids)
        assert store.node("mem-promoted").status == "active"
        assert (store.node(source).tags, store.node(source).metadata) == (["pattern"], {"attempts": 2})
        again = run(store, once)
        assert again.archived_ids == []


def test_open_work_of_p0_and_p1_and_last_checkpoints_are_kept(desk: Desk) -> None:
    """`archive --threshold 5` hid open P0s and where the work stood."""
    p0, p1, p2 = (desk.write(each, priority=each) for each in ("P0", "P1", "P2"))
    closed = desk.write("closed", priority="P0")
    desk.change(closed, closed=True)
    older = desk.write("older", type="checkpoint", wu="WU-1")
    last = desk.write("last", type="checkpoint", wu="WU-1")
    alone = desk.write("of the session, without a work unit", type="checkpoint")
    raw(desk.store, "node", id="mem-future", type="checkpoint", wu_id="WU-1", at=desk.clock() + 400 * DAY)
    desk.clock.forward(300 * DAY)

    found = upkeep.archive(desk.store, desk.caller, dry_run=True, threshold=5)

    assert found.protected == {
        p0: "open P0",
        p1: "open P1",
        last: "last checkpoint",
        alone: "last checkpoint",
    }
    assert set(found.archived_ids) == {p2, closed, older, "mem-future"}
    assert set(found.protected) <= set(found.skipped_ids)
    assert upkeep.archive(desk.store, desk.caller, threshold=5).recorded
    assert upkeep.archive(desk.store, desk.caller, threshold=5).next == [f"gitmem show {p0}"]
