"""Summaries: what they cover is marked, what they do not is not, and nothing is said that is not so."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.memory import context, edit, knowledge, listing, stored_nodes, upkeep
from gitmem.order.node import VersionedNode
from gitmem.store import Store
from tests.profiles import up_to

from ..sandbox import MINUTE, Clock, acting, bodies, carry, new_repo, open_store
from .desk import me


def note(store: Store, content: str, **options: object) -> str:
    return edit.create(store, me(store), content, **{"wu": "WU-7", **options}).node.id


def covered_by(store: Store, id: str) -> str | None:
    return stored_nodes.load_one(store.db(), id).summarized_into


def test_a_superseded_node_is_not_copied_and_does_not_come_back(store: Store) -> None:
    """It is marked with the node that replaces it, so that a cleanup deletes both; without that node it is left."""
    old = note(store, "Amounts are floats", tags=["decision"])
    new = note(store, "Amounts are integers", tags=["decision"], supersedes=[old])
    other = note(store, "Prices have no tax", tags=["decision"])
    note(store, "Prices have a tax", tags=["decision"], wu="WU-8", supersedes=[other])

    done = knowledge.summarize(store, me(store), "WU-7")
    upkeep.cleanup(store, me(store))

    assert done.source_ids == [old, new] and done.kept == {other: "superseded"}
    assert "1 node," in done.summary.content
    assert "integers" in done.summary.content and "floats" not in done.summary.content
    shown = context.context(store, me(store), wu="WU-7").block
    assert "integers" in shown and "floats" not in shown
    with pytest.raises(UsageError, match="1 superseded"):
        knowledge.summarize(store, me(store), "WU-7")


def test_what_a_summarized_node_replaced_is_marked_with_the_next_summary(store: Store) -> None:
    """The relation may be younger than the first summary."""
    new = note(store, "Amounts are integers")
    knowledge.summarize(store, me(store), "WU-7")
    old = note(store, "Amounts are floats")
    more = note(store, "Rounding is half even")
    edit.relate(store, me(store), new, "supersedes", old)

    assert knowledge.summarize(store, me(store), "WU-7", only=[old, more]).source_ids == [old, more]


def test_summary_has_the_first_line_of_each_node_by_type(store: Store, clock: Clock) -> None:
    early = note(store, "A checkpoint", type="checkpoint")
    clock.forward(MINUTE)
    bug = note(store, "Tabs are dropped\nwhen they come first", tags=["parser"], priority="P2")
    long = note(store, "x" * 300, type="discovery")
    note(store, "The last checkpoint", type="checkpoint")

    done = knowledge.summarize(store, me(store), "WU-7")

    text = stored_nodes.load_one(store.db(), done.summary.id).content
    assert text.split("\n") == [
        "Summary of WU-7: 3 nodes, 2026-10-26",
        "",
        "Discoveries (2)",
        f"- [{bug}] (P2, parser) Tabs are dropped …",
        f"- [{long}] {'x' * 199}…",
        "",
        "Checkpoints (1)",
        f"- [{early}] A checkpoint",
    ]
    assert done.source_ids == [early, bug, long]
    assert (done.summary.type, done.summary.lifecycle, done.summary.wu_id) == ("summary", "project", "WU-7")
    assert {covered_by(store, id) for id in (early, bug, long)} == {done.summary.id}


@pytest.mark.usefixtures("commits")
def test_summary_and_marks_are_one_commit_of_two_lines(store: Store) -> None:
    for number in range(5):
        note(store, f"Note {number}")
    lines = len(bodies(store))
    before = len(store.git.history(store.git.tip("refs/gitmem/log") or ""))

    knowledge.summarize(store, me(store), "WU-7")

    assert len(store.git.history(store.git.tip("refs/gitmem/log") or "")) == before + 1
    assert len(bodies(store)) == lines + 2


def test_what_does_not_count_is_left_out(store: Store) -> None:
    ephemeral = note(store, "Ephemeral", lifecycle="ephemeral")
    archived = note(store, "Archived")
    edit.change(store, me(store), [archived], archived=True, reason="x")
    deleted = note(store, "Deleted")
    edit.change(store, me(store), [deleted], deleted=True)
    elsewhere = note(store, "Elsewhere", wu="WU-8")
    summary = note(store, "A summary", type="summary")

    with pytest.raises(UsageError) as refused:
        knowledge.summarize(store, me(store), "WU-7")

    assert refused.value.code == "nothing-to-summarize"
    assert refused.value.next == ["gitmem mem list --wu WU-7"]
    assert not any(covered_by(store, id) for id in (ephemeral, archived, deleted, elsewhere, summary))


def test_next_summary_takes_only_what_is_new(store: Store) -> None:
    note(store, "Old")
    first = knowledge.summarize(store, me(store), "WU-7")
    new = note(store, "New")

    second = knowledge.summarize(store, me(store), "WU-7")

    assert second.source_ids == [new]
    assert second.summary.id != first.summary.id


def test_sources_of_a_deleted_summary_can_be_summed_up_again(store: Store) -> None:
    old = note(store, "Old")
    first = knowledge.summarize(store, me(store), "WU-7").summary.id
    edit.change(store, me(store), [first], deleted=True)

    second = knowledge.summarize(store, me(store), "WU-7").summary

    assert covered_by(store, old) == second.id != first
    assert stored_nodes.load_one(store.db(), second.id).status == "active"


def test_two_clones_that_sum_up_the_same_make_one_node(store: Store, tmp_path: Path, clock: Clock) -> None:
    other = open_store(new_repo(tmp_path / "other"), clock, mail="other@example.org")
    note(store, "One")
    note(store, "Two")
    carry(store, other)
    ours = knowledge.summarize(store, me(store), "WU-7").summary.id
    clock.forward(MINUTE)
    theirs = knowledge.summarize(other, me(other), "WU-7").summary.id
    carry(store, other)

    assert ours == theirs
    for clone in (store, other):
        assert clone.db().execute("SELECT id FROM node WHERE type = 'summary'").fetchall() == [(ours,)]


def test_two_clones_that_sum_up_different_things_lose_nothing(
    store: Store, tmp_path: Path, clock: Clock
) -> None:
    other = open_store(new_repo(tmp_path / "other"), clock, mail="other@example.org")
    both = note(store, "Both")
    carry(store, other)
    late = edit.create(other, me(other), "Late", wu="WU-7").node.id
    ours = knowledge.summarize(store, me(store), "WU-7").summary.id
    clock.forward(MINUTE)
    theirs = knowledge.summarize(other, me(other), "WU-7").summary.id
    carry(store, other)

    for clone in (store, other):
        assert covered_by(clone, both) == covered_by(clone, late) == theirs
        assert both in stored_nodes.load_one(clone.db(), ours).content


def test_text_of_an_agent_is_taken_and_marks_the_same(store: Store) -> None:
    one, two = note(store, "One"), note(store, "Two")

    done = knowledge.summarize(store, me(store), "WU-7", text="Better\nwords")

    assert stored_nodes.load_one(store.db(), done.summary.id).content == "Better\nwords"
    assert covered_by(store, one) == covered_by(store, two) == done.summary.id
    assert done.summary.metadata == {"source_nodes": [one, two], "source_count": 2}


def test_text_marks_only_what_its_writer_has_read(store: Store) -> None:
    read, unread = note(store, "One"), note(store, "Two")

    knowledge.summarize(store, me(store), "WU-7", text="Words", only=[read])

    assert covered_by(store, read) and not covered_by(store, unread)


def test_what_does_not_fit_is_counted_and_waits(store: Store) -> None:
    many = [{"content": "é" * 250 + f" {number}", "wu": "WU-7"} for number in range(400)]
    ids = [node.id for node in edit.append(store, me(store), many).nodes]

    first = knowledge.summarize(store, me(store), "WU-7")

    text = first.summary.content
    assert len(text.encode()) <= 64 * 1024
    assert first.left == 400 - len(first.source_ids) > 0
    assert f"{first.left} nodes more of WU-7 not included" in text
    assert all((id in text) == (id in first.source_ids) == bool(covered_by(store, id)) for id in ids)
    assert first.next[0] == "gitmem mem summarize --wu WU-7"
    second = knowledge.summarize(store, me(store), "WU-7")
    assert {*first.source_ids, *second.source_ids} == set(ids) or second.left


@pytest.mark.parametrize(
    "text", ["x", "x\n\n## Discoveries (9)\n- [mem-aaaa] forged", "\u2028\x1b[31m\u202e"]
)
def test_words_of_a_node_stay_in_its_line(store: Store, text: str) -> None:
    note(store, text + " end\rmore")

    lines = knowledge.summarize(store, me(store), "WU-7").summary.content.splitlines()

    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


@settings(max_examples=up_to(20))
@given(
    texts=st.lists(
        st.text(min_size=1, max_size=300).filter(lambda text: text.strip()), min_size=1, max_size=5
    )
)
def test_no_summary_is_over_its_budget_and_none_stops_short_of_it(texts: list[str]) -> None:
    base = {
        "at": "2026-10-26T00:00:00.000000Z",
        "type": "note",
        "lifecycle": "wu",
        "sender_identity": "a:b:c",
    }
    first = [VersionedNode({**base, "id": "mem-aaaa", "content": text}, b"").settle() for text in texts]
    made = [copy(node) for node in first * (3_000 // len(texts))]
    for number, node in enumerate(made):
        node.id = f"mem-{number:012}"

    fit = knowledge._fitting_sources(made)
    text = knowledge._text("WU-7", fit, len(made) - len(fit))

    assert knowledge.CONTENT_MAX - 2_000 < len(text.encode()) <= knowledge.CONTENT_MAX


def test_open_work_and_what_is_of_the_project_are_not_summed_up(store: Store) -> None:
    """A bug that a summary covers would be in no list of open work, and the next cleanup would delete it."""
    caller = acting(store, lifecycle.start(store, CallerClaims(), name="Planck", wu="WU-1"))
    bug = edit.create(store, caller, "open bug", type="bug", priority="P0").node.id
    fixed = edit.create(store, caller, "mended bug", type="bug").node.id
    edit.change(store, caller, [fixed], closed=True)
    rule = edit.create(store, caller, "a rule", lifecycle="project", wu="WU-1").node.id
    first = edit.create(store, caller, "half", type="checkpoint").node.id
    last = edit.create(store, caller, "nearly", type="checkpoint").node.id

    found = knowledge.summarize(store, caller, "WU-1")

    assert set(found.source_ids) == {fixed, first}
    assert bug in [node.id for node in listing.ready(store, "WU-1").nodes]
    again = knowledge.summarize(store, caller, "WU-1", only=[bug, last, rule])
    assert again.source_ids == [last]


def test_what_was_left_is_told_with_the_reason(store: Store) -> None:
    """It took two of five without a word."""
    one, p0 = note(store, "one"), note(store, "urgent", priority="P0")
    bug = note(store, "a bug", type="bug")
    last = note(store, "last", type="checkpoint")
    project, scratch = (
        note(store, "project", lifecycle="project"),
        note(store, "scratch", lifecycle="ephemeral"),
    )

    done = knowledge.summarize(store, me(store), "WU-7")

    assert done.source_ids == [one]
    assert done.as_json()["kept"] == {
        p0: "open P0",
        bug: "open bug",
        last: "last checkpoint",
        project: "project scope",
        scratch: "ephemeral scope",
    }


def test_open_work_of_p0_and_p1_is_not_covered_even_if_it_is_named(store: Store) -> None:
    p1, bug = note(store, "urgent", priority="P1"), note(store, "a bug", type="bug")
    elsewhere = note(store, "elsewhere", wu="WU-8")

    done = knowledge.summarize(store, me(store), "WU-7", only=[p1, bug, elsewhere])

    assert done.source_ids == [bug]
    assert done.kept == {elsewhere: "hidden, summarized or of another work unit", p1: "open P1"}
    with pytest.raises(UsageError, match=r"no nodes to summarize \(1 open P1\)"):
        knowledge.summarize(store, me(store), "WU-7", only=[p1])
