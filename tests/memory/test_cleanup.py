"""Cleanup: what has had its time is deleted by the first rule that fits; what is protected stays, and no line goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitmem.agents import lifecycle
from gitmem.errors import UsageError
from gitmem.memory import listing, upkeep

from ..sandbox import DAY, HOUR, Clock, bodies, carry, new_repo
from .desk import Desk, raw


def clean(desk: Desk, **options: Any) -> upkeep.CleanupResult:
    return upkeep.cleanup(desk.store, desk.caller, **options)


@pytest.mark.usefixtures("commits")
def test_ephemeral_nodes_go_and_the_rest_stays(desk: Desk) -> None:
    """The answer has the names that scripts know."""
    gone = desk.write("scratch", lifecycle="ephemeral")
    kept = [
        desk.write("of the session", type="note"),
        desk.write("of the WU"),
        desk.write("of all", type="summary"),
    ]

    answer = clean(desk).as_json()

    assert answer["removed_ids"] == [gone]
    assert answer["retained_ids"] == kept
    assert answer["breakdown"] == {
        "ephemeral": 1, "session": 0, "wu": 0, "sensitive": 0, "urgent": 0, "ttl_expired": 0,
        "active_session_protected": 0, "decay_archived": 0,
    }  # fmt: skip
    assert answer["decay_result"] is None
    assert answer["bytes_freed"] == 0
    assert answer["compaction_ratio"] == 0.25
    assert answer["commit"] == desk.tip()
    assert (desk.node(gone).status, desk.node(gone).reason) == ("deleted", "cleanup: ephemeral")


def test_no_line_is_lost_by_a_cleanup(desk: Desk) -> None:
    """W5: a rewrite of the file lost what was appended meanwhile. Here lines are only added."""
    desk.write("scratch", lifecycle="ephemeral")
    before = set(bodies(desk.store))

    clean(desk, ttl=HOUR)

    assert before < set(bodies(desk.store))


def test_what_is_removed_can_be_brought_back(desk: Desk) -> None:
    id = desk.write("scratch", lifecycle="ephemeral")
    clean(desk)
    desk.change(id, clear=["deleted"])

    assert desk.node(id).status == "active"


def test_ttl_takes_what_was_created_longer_ago(desk: Desk) -> None:
    """By creation: what is changed often would never go. Exactly as old as it may be is not older."""
    old = desk.write("old")
    desk.clock.forward(DAY)
    edge = desk.write("edge")
    desk.clock.forward(30 * DAY)
    desk.change(old, content="old, changed since")
    at = desk.node(edge).created + 30 * DAY

    found = clean(desk, ttl=30 * DAY, now=at)

    assert (found.removed_ids, found.retained_ids) == ([old], [edge])
    assert found.breakdown.ttl_expired == 1
    assert desk.node(old).reason == "cleanup: older than 30d"


def test_project_nodes_outlive_any_ttl(desk: Desk) -> None:
    id = desk.write("for ever", lifecycle="project")
    desk.clock.forward(1000 * DAY)

    assert clean(desk, ttl=DAY).retained_ids == [id]


def test_sensitive_nodes_are_kept_from_every_rule(desk: Desk) -> None:
    kept = [desk.write("one", lifecycle="ephemeral", sensitive=True)]
    gone = desk.write("two", lifecycle="ephemeral", metadata={"sensitive": "no"})
    desk.clock.forward(100 * DAY)

    found = clean(desk, ttl=DAY, decay=True)

    assert (found.removed_ids, found.retained_ids) == ([gone], kept)
    assert found.breakdown.sensitive == 1
    assert found.breakdown.ttl_expired == 1
    assert found.decay_result is not None
    assert found.decay_result.skipped_ids == kept


def test_a_node_that_is_sensitive_no_more_goes(desk: Desk) -> None:
    id = desk.write("one", lifecycle="ephemeral", sensitive=True)
    desk.change(id, clear=["sensitive"])

    assert clean(desk).removed_ids == [id]


def test_the_node_of_a_session_at_work_is_kept(desk: Desk) -> None:
    """As the roster says who is at work; in the existing tool nothing ever set the mark. Afterwards it goes."""
    id = desk.write("I work on the parser", type="session", lifecycle="ephemeral")

    first = clean(desk)
    assert (first.retained_ids, first.breakdown.active_session_protected) == ([id], 1)

    lifecycle.end(desk.store, desk.caller)
    assert clean(desk).removed_ids == [id]


@pytest.mark.parametrize("silent", [30 * HOUR, 40 * DAY])
def test_a_session_that_is_gone_protects_nothing(desk: Desk, silent: int) -> None:
    """Also while it holds its name still."""
    id = desk.write("I work on the parser", type="session", lifecycle="ephemeral")
    desk.clock.forward(silent)

    assert clean(desk, dry_run=True).removed_ids == [id]


def test_only_session_nodes_are_protected_by_their_session(desk: Desk) -> None:
    """Its scratch notes are not."""
    id = desk.write("scratch", lifecycle="ephemeral")

    assert clean(desk).removed_ids == [id]


def test_a_named_session_loses_its_session_nodes(desk: Desk) -> None:
    """Those with lifecycle session: what it found out for the work unit stays."""
    gone, kept = desk.write("note", type="note"), desk.write("discovery")
    foreign = desk.write("of another", type="note", session="sess-0123456789ab")

    found = clean(desk, session=desk.session.session_id[:12])

    assert (found.removed_ids, found.retained_ids) == ([gone], [kept, foreign])
    assert found.breakdown.session == 1


def test_a_session_of_imported_nodes_can_be_named(desk: Desk) -> None:
    """It is in no roster."""
    raw(desk.store, "node", id="mem-old1", lifecycle="session", session_id="0b6c1f6e-imported")

    assert clean(desk, session="0b6c1f6e-imported").removed_ids == ["mem-old1"]


def test_an_unknown_session_is_refused(desk: Desk) -> None:
    """A slip must not look like a session with nothing to clean."""
    with pytest.raises(UsageError, match="Unknown session: sess-nobody") as error:
        clean(desk, session="sess-nobody0")

    assert error.value.next == ["gitmem roster --all"]


def test_what_a_summary_has_goes(desk: Desk) -> None:
    """Notes of sessions and work units; a project node stays though a summary has it."""
    summary = desk.write("all of it", type="summary")
    gone = [desk.write("a", type="note"), desk.write("b")]
    kept = desk.write("c", lifecycle="project")
    desk.change(*gone, kept, summarized_into=summary)

    found = clean(desk)

    assert found.removed_ids == gone
    assert (found.breakdown.session, found.breakdown.wu) == (1, 1)
    assert desk.node(gone[0]).reason == "cleanup: summarized"
    assert desk.node(gone[0]).summarized_into == summary


@pytest.mark.usefixtures("commits")
def test_decay_archives_what_no_rule_removes_in_the_same_commit(desk: Desk) -> None:
    old, scratch = desk.write("old"), desk.write("scratch", lifecycle="ephemeral")
    project = desk.write("for ever", lifecycle="project")
    desk.clock.forward(100 * DAY)
    young = desk.write("young")
    commits = len(desk.store.git.history(desk.tip() or ""))

    found = clean(desk, decay=True)

    assert found.removed_ids == [scratch]
    assert found.breakdown.decay_archived == 1
    assert found.decay_result is not None
    answer = found.decay_result.as_json()
    assert (answer["archived_ids"], answer["retained_ids"], answer["skipped_ids"]) == (
        [old],
        [young],
        [project],
    )
    assert answer["commit"] == found.commit
    assert desk.node(old).status == "archived"
    assert len(desk.store.git.history(desk.tip() or "")) == commits + 1


def test_without_decay_nothing_is_archived(desk: Desk) -> None:
    id = desk.write("old")
    desk.clock.forward(100 * DAY)

    assert clean(desk).breakdown.decay_archived == 0
    assert desk.node(id).status == "active"


@pytest.mark.usefixtures("commits")
def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    desk.write("scratch", lifecycle="ephemeral")
    desk.write("old")
    desk.clock.forward(100 * DAY)
    tip = desk.tip()

    found = clean(desk, ttl=200 * DAY, decay=True, decay_threshold=0.5, half_life=2 * HOUR, dry_run=True)

    assert len(found.removed_ids) == found.breakdown.decay_archived == 1
    assert (found.commit, found.recorded, desk.tip()) == (None, False, tip)
    assert found.decay_result is not None
    assert found.decay_result.dry_run
    assert found.next == ["gitmem mem list"]


@pytest.mark.usefixtures("commits")
def test_cleaning_again_writes_nothing(desk: Desk) -> None:
    """What was deleted is not there for it."""
    desk.write("scratch", lifecycle="ephemeral")
    clean(desk)
    tip = desk.tip()

    found = clean(desk)

    assert (found.removed_ids, found.retained_ids, found.commit, found.compaction_ratio) == (
        [],
        [],
        None,
        0.0,
    )
    assert desk.tip() == tip


def test_archived_nodes_have_their_time_too(desk: Desk) -> None:
    id = desk.write("old")
    desk.change(id, archived=True)
    desk.clock.forward(100 * DAY)

    assert clean(desk, ttl=DAY).removed_ids == [id]


def test_cleaning_on_two_clones_at_once_deletes_once(tmp_path: Path) -> None:
    """And what one of them wrote meanwhile is there."""
    clock = Clock()
    one, other = Desk(new_repo(tmp_path / "one"), clock), Desk(new_repo(tmp_path / "other"), clock)
    id = one.write("scratch", lifecycle="ephemeral")
    carry(one.store, other.store)

    clean(one)
    kept = other.write("meanwhile")
    clean(other)
    carry(one.store, other.store)

    for desk in (one, other):
        assert desk.node(id).status == "deleted"
        assert [node.id for node in listing.all_nodes(desk.store)] == [kept]


def test_open_work_of_p0_and_p1_is_kept_from_every_rule(desk: Desk) -> None:
    old, closed = desk.write("old", priority="P1"), desk.write("closed", priority="P1")
    scratch = desk.write("scratch", priority="P0", lifecycle="ephemeral")
    desk.change(closed, closed=True)
    desk.clock.forward(100 * DAY)

    found = clean(desk, ttl=DAY, decay=True, dry_run=True)

    assert found.removed_ids == [closed] and set(found.retained_ids) == {old, scratch}
    assert found.breakdown.as_json()["urgent"] == 2
    assert found.decay_result is not None and found.decay_result.archived_ids == []
