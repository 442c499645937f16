"""Triage: what nobody has dealt with is listed once, and dealt with once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.memory import edit, knowledge, relations, stored_nodes, triage
from gitmem.store import Store
from tests.each import each

from ..sandbox import MINUTE, Clock, acting, bodies, carry, new_repo, open_store
from .desk import me


def note(store: Store, content: str = "Tabs are dropped", **options: object) -> str:
    return edit.create(store, me(store), content, **options).node.id


def listed(store: Store, **filters: str) -> list[str]:
    return [node.id for node in triage.listing(store, **filters).discoveries]


def test_open_discoveries_most_urgent_first_then_the_oldest(store: Store, clock: Clock) -> None:
    made = []
    for priority in (None, "P2", "P0", "P2"):
        made.append(note(store, priority=priority))
        clock.forward(MINUTE)
    plain, early, urgent, late = made

    assert listed(store) == [urgent, early, late, plain]


def test_what_is_dealt_with_is_not_listed(store: Store) -> None:
    for change in ({"closed": True}, {"archived": True}, {"deleted": True}):
        edit.change(store, me(store), [note(store)], **change)  # type: ignore[arg-type]
    note(store, type="note")
    promoted = knowledge.promote(store, me(store), node=note(store, type="note"), tag="faq").promoted_node.id
    note(store, wu="WU-7")
    knowledge.summarize(store, me(store), "WU-7")

    assert listed(store) == [] and promoted


def test_promoted_knowledge_is_no_open_discovery_but_its_source_is(store: Store) -> None:
    source = note(store)
    knowledge.promote(store, me(store), node=source, tag="pitfall")

    assert listed(store) == [source]


def test_filters_by_unit_and_tag(store: Store) -> None:
    linked = note(store, wu="WU-7")
    loose = note(store, type="bug")

    assert listed(store, wu="WU-7") == [linked]
    assert listed(store, wu="unlinked") == [loose]
    assert listed(store, tag="bug") == [loose]
    assert listed(store, tag="bug", wu="WU-7") == []
    with pytest.raises(UsageError, match="Invalid work unit"):
        triage.listing(store, wu="the seventh")


@pytest.mark.usefixtures("commits")
def test_outgrown_nodes_are_listed_once_with_how(store: Store, repo: Path, git: Callable[..., str]) -> None:
    bug = note(store, paths=["README"])
    about = note(store, "The readme is short", type="note", paths=["README"])
    note(store, "Closed", type="note", paths=["README"])
    edit.change(store, me(store), [_last(store)], closed=True)
    note(store, "Without a file", type="note")
    assert triage.listing(store).stale_nodes == []
    (repo / "README").write_text("Changed.\n")
    git("commit", "--quiet", "-am", "Second", cwd=repo)

    found = triage.listing(store)

    assert [node.id for node in found.discoveries] == [bug]
    assert [node.id for node in found.stale_nodes] == [about]
    assert set(found.stale) == {bug, about}
    assert "1 commit behind in README" in found.stale[about]
    assert triage.listing(store, stale=False).stale_nodes == []


def _last(store: Store) -> str:
    return str(store.db().execute("SELECT id FROM node ORDER BY created DESC, id LIMIT 1").fetchone()[0])


def test_a_limit_counts_what_it_leaves_out(store: Store) -> None:
    for _ in range(5):
        note(store)

    found = triage.listing(store, limit=2)

    assert (len(found.discoveries), found.more, found.as_json()["total"]) == (2, 3, 5)


def test_specification_without_a_unit_writes_nothing(store: Store) -> None:
    bug = note(
        store, "Tabs are dropped. Always\nmore", priority="P1", paths=["a.py"], tags=["io"], wu="WU-41"
    )
    lines = bodies(store)

    done = triage.promote(store, me(store), bug)

    assert bodies(store) == lines
    assert done.spec.as_json() == {
        "id": "WU-42",
        "title": "Tabs are dropped",
        "lane": None,
        "priority": "P1",
        "description": "Tabs are dropped. Always\nmore",
        "code_paths": ["a.py"],
        "tags": ["io"],
        "discovered_from": bug,
    }
    assert not done.recorded
    assert done.next == [f"gitmem mem triage promote {bug} --wu WU-42"]


@pytest.mark.usefixtures("commits")
def test_discovery_that_became_a_unit_is_closed_and_remembers_it(store: Store) -> None:
    bug = note(store)

    done = triage.promote(store, me(store), bug, wu="WU-9", lane="core", title="Keep tabs")

    found = stored_nodes.load_one(store.db(), bug)
    assert (found.status, found.reason, found.metadata) == ("closed", "became WU-9", {"promoted_to": "WU-9"})
    assert (done.spec.id, done.spec.lane, done.spec.title) == ("WU-9", "core", "Keep tabs")
    assert done.recorded and done.commit
    assert listed(store) == []


@pytest.mark.usefixtures("commits")
def test_becoming_the_same_unit_again_writes_nothing_and_another_is_refused(store: Store) -> None:
    bug = note(store)
    triage.promote(store, me(store), bug, wu="WU-9")
    lines = bodies(store)

    again = triage.promote(store, me(store), bug, wu="WU-9")
    with pytest.raises(UsageError) as refused:
        triage.promote(store, me(store), bug, wu="WU-10")

    assert again.recorded and again.commit is None
    assert refused.value.code == "already-promoted" and "WU-9" in refused.value.message
    assert bodies(store) == lines
    edit.change(store, me(store), [bug], clear=["closed", "reason"])
    assert triage.promote(store, me(store), bug, wu="WU-10").spec.id == "WU-10"


def test_two_clones_that_make_different_units_agree_on_one(
    store: Store, tmp_path: Path, clock: Clock
) -> None:
    other = open_store(new_repo(tmp_path / "other"), clock, mail="other@example.org")
    bug = note(store)
    carry(store, other)
    triage.promote(store, me(store), bug, wu="WU-9")
    clock.forward(MINUTE)
    triage.promote(other, me(other), bug, wu="WU-10")
    carry(store, other)

    ours, theirs = (stored_nodes.load_one(each.db(), bug) for each in (store, other))
    assert ours.as_json() == theirs.as_json()
    assert (ours.metadata, ours.reason) == ({"promoted_to": "WU-10"}, "became WU-10")


def test_next_unit_is_after_every_one_that_the_log_names(store: Store) -> None:
    assert triage.next_unit(store.db()) == "WU-1"
    started = lifecycle.start(store, CallerClaims(), name="Planck", wu="WU-3")
    assert triage.next_unit(store.db()) == "WU-4"
    edit.create(store, acting(store, started), "x", wu="WU-5")
    assert triage.next_unit(store.db()) == "WU-6"
    triage.promote(store, me(store), note(store), wu="WU-12")
    note(store, wu="OTHER-99")
    assert triage.next_unit(store.db()) == "WU-13"


def test_lane_is_that_of_the_node_then_that_of_the_session(store: Store) -> None:
    started = lifecycle.start(store, CallerClaims(), name="Planck", lane="ops")
    planck = acting(store, started)
    bug, core = note(store), note(store, lane="core")

    assert triage.promote(store, planck, bug).spec.lane == "ops"
    assert triage.promote(store, planck, core).spec.lane == "core"
    assert triage.promote(store, planck, core, lane="web").spec.lane == "web"


@each(
    [
        ("One. Two.", "One"),
        ("Is it so? Yes.", "Is it so?"),
        ("In a.py nothing works.", "In a.py nothing works"),
        ("first\nsecond", "first"),
        ("  x" + "y" * 100, "x" + "y" * 78 + "…"),
    ],
)
def test_title_is_the_first_sentence(text: str, title: str) -> None:
    assert triage.first_sentence(text) == title


@pytest.mark.usefixtures("commits")
def test_archive_takes_a_reason_and_leaves_what_was_hidden(store: Store) -> None:
    one, two = note(store), note(store)
    edit.change(store, me(store), [two], deleted=True)

    done = triage.archive(store, me(store), [one, two], reason="can no longer happen")

    assert done.ids == [one]
    assert stored_nodes.load_one(store.db(), one).reason == "can no longer happen"
    assert stored_nodes.load_one(store.db(), two).status == "deleted"
    assert done.warnings == [f"{two} was already deleted."]
    lines = bodies(store)
    again = triage.archive(store, me(store), [one], reason="other words")
    assert (again.ids, again.commit, again.recorded) == ([], None, False)
    assert bodies(store) == lines


def test_hidden_node_becomes_no_unit(store: Store) -> None:
    bug = note(store)
    edit.change(store, me(store), [bug], archived=True, reason="x")

    with pytest.raises(UsageError) as refused:
        triage.promote(store, me(store), bug, wu="WU-9")

    assert refused.value.next == [f"gitmem mem update {bug} --status active"]


def contradictions(store: Store) -> list[tuple[str, list[str], set[str]]]:
    return [(each.reason, each.about, set(each.node_ids)) for each in triage.listing(store).contradictions]


def test_two_live_successors_are_proposed_as_a_contradiction_until_one_counts(store: Store) -> None:
    old = note(store, "Floats")
    one, other = note(store, "Cents", supersedes=[old]), note(store, "Mills", supersedes=[old])
    assert contradictions(store) == [("successors", [old], {one, other})]
    third = note(store, "Cents, said better", supersedes=[one])
    assert contradictions(store) == [("successors", [old], {third, other})]

    edit.relate(store, me(store), third, "supersedes", other)

    assert contradictions(store) == []


def test_successors_of_a_closed_node_do_not_contradict_each_other(store: Store) -> None:
    old = note(store, "Floats")
    for content in ("Cents", "Mills"):
        note(store, content, supersedes=[old])
    assert len(contradictions(store)) == 1

    edit.change(store, me(store), [old], closed=True)

    assert contradictions(store) == []


@pytest.mark.parametrize(
    ("reason", "options", "about"),
    [("paths", {"paths": ["src", "README"]}, ["README", "src"]), ("tags", {"tags": ["money"]}, ["money"])],
)
def test_two_live_decisions_about_the_same_are_proposed_as_a_contradiction(
    store: Store, reason: str, options: dict[str, list[str]], about: list[str]
) -> None:
    def decision(content: str, **more: Any) -> str:
        given = {**options, **more}
        return note(
            store, content, lifecycle="project", **{**given, "tags": ["decision", *given.get("tags", [])]}
        )

    one, other = decision("Cents"), decision("Floats")
    decision("of another lane", lane="docs")
    decision("about something else", paths=["other"], tags=["else"])
    note(store, "no decision", **options)

    assert contradictions(store) == [(reason, about, {one, other})]
    edit.relate(store, me(store), one, "related", other)
    assert contradictions(store) == []
    edit.relate(store, me(store), one, "related", other, remove=True)
    edit.change(store, me(store), [one], closed=True)
    assert contradictions(store) == []


def test_a_promoted_decision_does_not_contradict_its_source(store: Store) -> None:
    source = note(store, "Cents", tags=["decision", "money"], paths=["README"])
    knowledge.promote(store, me(store), node=source, tag="decision")
    knowledge.promote(store, me(store), node=source, tag="pattern")
    assert contradictions(store) == []


def test_a_cycle_of_successors_is_listed_with_the_way_out(store: Store) -> None:
    one = note(store, "one")
    other = note(store, "other", supersedes=[one])
    edit.relate(store, me(store), one, "supersedes", other)

    found = triage.listing(store, stale=False)

    assert [(each.reason, set(each.node_ids)) for each in found.contradictions] == [("cycle", {one, other})]
    assert {node.id for node in found.discoveries} == {one, other}
    first, second = found.contradictions[0].node_ids
    assert relations.ends_of(store.db(), [one, other]) == {}
    edit.relate(store, me(store), first, "supersedes", second, remove=True)
    assert triage.listing(store).contradictions == []


def test_a_superseded_discovery_needs_no_triage(store: Store) -> None:
    old = note(store, "old")
    new = note(store, "new", supersedes=[old])
    assert [node.id for node in triage.listing(store).discoveries] == [new]
