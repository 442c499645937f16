"""Promotion: a new project node that remembers where it came from, once for each source and tag."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.errors import UsageError
from gitmem.log.lines import format_at
from gitmem.memory import edit, knowledge, node_fields, relations, stored_nodes
from gitmem.store import Store

from ..sandbox import MINUTE, Clock, bodies, carry, new_repo, open_store
from .desk import me


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> Store:
    """Another clone, whose clock is the same."""
    return open_store(new_repo(tmp_path / "other"), clock, mail="other@example.org")


def note(store: Store, content: str = "Tabs are dropped\nwhen they come first", **options: object) -> str:
    return edit.create(store, me(store), content, **options).node.id


def test_a_private_node_is_not_promoted(store: Store) -> None:
    """No sync could fetch it, and its copy would be for all."""
    id = note(store, "A guess", private=True)
    before = bodies(store)
    with pytest.raises(UsageError, match=f"Cannot promote {id}: it is private") as error:
        knowledge.promote(store, me(store), node=id, tag="pattern")
    assert (error.value.next, bodies(store)) == ([f"gitmem show {id}"], before)


def test_promoted_node_says_what_its_source_says_and_where_it_came_from(store: Store, clock: Clock) -> None:
    (Path(store.repo.worktree or "") / "parser.py").write_text("x\n")
    source = note(store, type="bug", priority="P1", tags=["io"], paths=["parser.py"], lane="core", wu="WU-7")
    clock.forward(MINUTE)

    done = knowledge.promote(store, me(store), node=source, tag="Pitfall")

    found = stored_nodes.load_one(store.db(), done.promoted_node.id)
    old = stored_nodes.load_one(store.db(), source)
    assert (found.content, found.type, found.priority, found.lane) == (
        old.content, "discovery", "P1", "core",
    )  # fmt: skip
    assert found.lifecycle == "project"
    assert found.tags == ["bug", "io", "pitfall"]
    assert found.paths == ["parser.py"]
    assert found.metadata == {"promoted_from": source, "promoted_at": format_at(clock())}
    assert (found.id, source, "discovered_from") in relations.relations_of(store.db(), found.id)
    assert old.status == "active"
    assert done.as_json()["promoted_nodes"][0]["id"] == found.id  # type: ignore[index]


@pytest.mark.usefixtures("commits")
def test_node_and_relation_are_one_commit(store: Store) -> None:
    source = note(store)
    before = len(store.git.history(store.git.tip("refs/gitmem/log") or ""))

    knowledge.promote(store, me(store), node=source, tag="faq")

    assert len(store.git.history(store.git.tip("refs/gitmem/log") or "")) == before + 1


@pytest.mark.usefixtures("commits")
def test_promoted_node_looks_no_fresher_than_its_source(store: Store, repo: Path, git: object) -> None:
    source = note(store, paths=["README"])
    written_at = stored_nodes.load_one(store.db(), source).head
    (repo / "README").write_text("Changed.\n")
    git("commit", "--quiet", "-am", "Second", cwd=repo)  # type: ignore[operator]

    done = knowledge.promote(store, me(store), node=source, tag="faq")

    assert done.promoted_node.head == written_at
    assert store.git.head(store.repo.git_dir)[0] != written_at


@pytest.mark.usefixtures("commits")
def test_promoting_twice_writes_nothing_and_says_which_node_it_was(store: Store, clock: Clock) -> None:
    source = note(store)
    first = knowledge.promote(store, me(store), node=source, tag="faq")
    lines = bodies(store)
    clock.forward(MINUTE)

    again = knowledge.promote(store, me(store), node=source, tag="faq")

    assert bodies(store) == lines
    assert again.promoted_node.id == first.promoted_node.id
    assert again.already_promoted == [first.promoted_node.id]
    assert (again.commit, again.recorded) == (None, False)
    assert knowledge.promote(store, me(store), node=source, tag="pattern").already_promoted == []


def test_promoting_what_was_promoted_copies_no_copy(store: Store) -> None:
    first = knowledge.promote(store, me(store), node=note(store), tag="faq").promoted_node.id

    again = knowledge.promote(store, me(store), node=first, tag="faq")

    assert again.already_promoted == [first]


def test_two_clones_that_promote_the_same_make_one_node(store: Store, other: Store, clock: Clock) -> None:
    source = note(store)
    carry(store, other)
    ours = knowledge.promote(store, me(store), node=source, tag="decision").promoted_node.id
    clock.forward(MINUTE)
    theirs = knowledge.promote(other, me(other), node=source, tag="decision").promoted_node.id
    carry(store, other)

    assert ours == theirs
    for clone in (store, other):
        rows = clone.db().execute("SELECT id FROM node WHERE lifecycle = 'project'").fetchall()
        assert rows == [(ours,)]
        assert len(relations.relations_of(clone.db(), ours)) == 1
    one, two = (stored_nodes.load_one(clone.db(), ours).as_json() for clone in (store, other))
    assert one == two


def test_relation_that_was_taken_back_stays_so_when_another_clone_had_promoted_too(
    store: Store, other: Store, clock: Clock
) -> None:
    source = note(store)
    carry(store, other)
    id = knowledge.promote(store, me(store), node=source, tag="decision").promoted_node.id
    edit.relate(store, me(store), id, "discovered_from", source, remove=True)
    clock.forward(MINUTE)
    knowledge.promote(other, me(other), node=source, tag="decision")
    carry(store, other)

    assert relations.relations_of(store.db(), id) == relations.relations_of(other.db(), id) == []


@pytest.mark.parametrize("first", ["archive", "promote"])
def test_archived_on_one_clone_and_promoted_on_another_both_hold(
    store: Store, other: Store, clock: Clock, first: str
) -> None:
    source = note(store)
    carry(store, other)
    steps = {
        "archive": lambda: edit.change(store, me(store), [source], archived=True, reason="old"),
        "promote": lambda: knowledge.promote(other, me(other), node=source, tag="decision"),
    }
    steps.pop(first)()
    clock.forward(MINUTE)
    next(iter(steps.values()))()
    carry(store, other)

    for clone in (store, other):
        promoted = clone.db().execute("SELECT id, state FROM node WHERE lifecycle = 'project'").fetchall()
        assert [state for _, state in promoted] == [0]
        assert stored_nodes.load_one(clone.db(), source).status == "archived"
    assert knowledge.promote(store, me(store), node=source, tag="decision").already_promoted == [
        promoted[0][0]
    ]


def test_archived_promotion_is_not_made_again_but_told_of(store: Store) -> None:
    source = note(store)
    id = knowledge.promote(store, me(store), node=source, tag="faq").promoted_node.id
    edit.change(store, me(store), [id], archived=True, reason="no more")

    again = knowledge.promote(store, me(store), node=source, tag="faq")

    assert stored_nodes.load_one(store.db(), id).status == "archived"
    assert "archived" in again.warnings[0]
    assert again.next[0] == f"gitmem mem update {id} --status active"


def test_promotion_of_a_source_that_changed_since_says_so(store: Store) -> None:
    source = note(store)
    knowledge.promote(store, me(store), node=source, tag="faq")
    edit.change(store, me(store), [source], content="Something else")

    assert "of another text" in knowledge.promote(store, me(store), node=source, tag="faq").warnings[0]


@pytest.mark.usefixtures("commits")
def test_summaries_of_a_unit_are_promoted_whatever_their_lifecycle(store: Store, clock: Clock) -> None:
    note(store, wu="WU-7")
    made = knowledge.summarize(store, me(store), "WU-7").summary
    assert made.lifecycle == "project"
    clock.forward(MINUTE)
    short = note(store, "By hand", type="summary", lifecycle="wu", wu="WU-7")
    hidden = note(store, "Hidden", type="summary", wu="WU-7")
    edit.change(store, me(store), [hidden], archived=True, reason="x")
    note(store, "Elsewhere", type="summary", wu="WU-8")

    done = knowledge.promote(store, me(store), wu="WU-7", tag="decision")

    assert [node.metadata["promoted_from"] for node in done.promoted_nodes] == [made.id, short]
    again = knowledge.promote(store, me(store), wu="WU-7", tag="decision")
    assert again.already_promoted == [node.id for node in done.promoted_nodes]
    assert again.commit is None


def test_without_a_tag_all_nodes_need_the_same_one(store: Store) -> None:
    """What one summary of a unit is says nothing of the others."""
    note(store, type="summary", wu="WU-7", tags=["faq"])
    note(store, type="summary", wu="WU-7")
    with pytest.raises(UsageError, match="Missing taxonomy tag") as refused:
        knowledge.promote(store, me(store), wu="WU-7")
    assert refused.value.next == ["gitmem mem promote --wu WU-7 --tag faq"]


def test_dry_run_writes_nothing(store: Store) -> None:
    source = note(store)
    lines = bodies(store)

    done = knowledge.promote(store, me(store), node=source, tag="faq", dry_run=True)

    assert bodies(store) == lines
    assert done.promoted_node.id and done.as_json()["dry_run"] is True
    assert done.next == [f"gitmem mem promote {source} --tag faq"]
    assert (
        knowledge.promote(store, me(store), node=source, tag="faq").promoted_node.id == done.promoted_node.id
    )


def test_unknown_tag_is_refused_with_all_that_there_are(store: Store) -> None:
    with pytest.raises(UsageError) as refused:
        knowledge.promote(store, me(store), node=note(store), tag="lesson")

    assert all(tag in refused.value.hint for tag in node_fields.TAXONOMY)


def test_deleted_source_is_refused_with_the_way_back(store: Store) -> None:
    source = note(store)
    edit.change(store, me(store), [source], deleted=True)

    with pytest.raises(UsageError) as refused:
        knowledge.promote(store, me(store), node=source, tag="faq")

    assert refused.value.next == [f"gitmem mem update {source} --status active"]
