"""Issues of beads as tasks: the same on every clone, nothing doubled, a bad line costs that line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gitmem.errors import UsageError
from gitmem.importers import beads
from gitmem.importers.imported import Imported
from gitmem.importers.issues import COMMENTS_MAX, UPDATES_MAX
from gitmem.records.ids import keyed_id
from gitmem.store import Store
from gitmem.work import stuck, task_list, task_work
from tests.sandbox import Agent, Clock, bodies, carry, new_repo, open_store, person

ISSUE: dict[str, Any] = {
    "id": "bd-a1", "title": "Escape tabs", "description": "The writer drops them.", "design": "One table.",
    "acceptance_criteria": "A test", "notes": "See the parser", "status": "open", "priority": 1, "issue_type": "bug", "assignee": "planck",
    "labels": ["writer", "p1"], "created_at": "2025-11-21T19:51:55.747608123-05:00", "updated_at": "2025-11-22T10:00:00Z",
}  # fmt: skip
LATER = {"updated_at": "2025-11-23T10:00:00Z"}
CLOSED = {"status": "closed", "closed_at": "2025-11-24T10:00:00Z", "close_reason": "Done in\nabc123", **LATER}
TOKEN = "ghp_" + "a1B2" * 9


def issue(id: str, **fields: Any) -> dict[str, Any]:
    return {"id": id, "title": f"Do {id}", "status": "open", "created_at": "2025-11-21T10:00:00Z", **fields}


def waits(id: str, *others: str, kind: str = "blocks") -> dict[str, Any]:
    edges = [{"issue_id": id, "depends_on_id": each, "type": kind} for each in others]
    return issue(id, dependencies=edges)


def task_of(id: str) -> str:
    return keyed_id("task", "beads:import:issues", id)


def write(where: Path, *lines: object) -> Path:
    path = where / ".beads" / "issues.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in lines]
    path.write_bytes(b"".join(part + b"\n" for part in parts))
    return path


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return new_repo(tmp_path / "clone")


@pytest.fixture
def store(where: Path) -> Store:
    return open_store(where, Clock())


def bring(store: Store, place: Path | None = None, **options: Any) -> Imported:
    return beads.import_file(store, person(store), str(place or store.repo.worktree), **options)


def counts(found: Imported, kind: str = "issues") -> dict[str, int]:
    return {name: count for name, count in found.counts[kind].items() if count}


def show(store: Store, id: str = "bd-a1") -> task_list.TaskDetail:
    return task_list.show(store, task_of(id))


def records_of(store: Store) -> list[bytes]:
    return [each for each in bodies(store) if b'"beads:import:' in each]


def test_an_open_issue_is_a_task_that_anybody_may_take(store: Store, where: Path) -> None:
    """With all that it says, its times, its priority and its id as a work unit; and it is not stuck."""
    write(where, ISSUE)
    assert counts(bring(store)) == {"read": 1, "imported": 1}
    shown = show(store)
    task: Any = shown.task
    assert shown.state == "submitted"
    assert task["message"].splitlines()[0] == "Escape tabs"
    for part in (
        "The writer drops them.",
        "Design:\nOne table.",
        "Acceptance criteria:\nA test",
        "Notes:\nSee the parser",
    ):
        assert part in task["message"]
    assert task["message"].endswith(
        "beads bd-a1 · type bug · status open · priority 1 · assignee planck · labels writer, p1"
    )
    assert (task["priority"], task["wu_id"], task["created_at"]) == (
        "P1",
        "bd-a1",
        "2025-11-22T00:51:55.747608Z",
    )
    assert task["payload"]["beads"]["labels"] == ["writer", "p1"]
    assert "writer" not in task
    assert not stuck.find(store).stuck
    agent = Agent(store, "codex:worker:bohr").caller
    task_work.take(store, agent, task_of("bd-a1"))
    task_work.report(store, agent, task_of("bd-a1"), "completed", "escaped")
    assert show(store).state == "completed"


def test_edges_are_those_of_tasks(store: Store, where: Path) -> None:
    """What blocks, blocks; a parent is the initiative; others are references."""
    edges = [
        ("bd-b", "blocks"),
        ("bd-c", "parent-child"),
        ("bd-d", "discovered-from"),
        ("bd-e", "related"),
        ("external:x", "blocks"),
    ]
    write(
        where, issue("bd-a1", dependencies=[{"issue_id": "bd-a1", "depends_on_id": id, "type": kind} for id, kind in edges]),
        *map(issue, ("bd-b", "bd-c", "bd-d", "bd-e")),
    )  # fmt: skip
    bring(store)
    task: Any = show(store).task
    assert task["blocked_by"] == [task_of("bd-b"), task_of("external:x")]
    assert task["initiative_id"] == "bd-c"
    assert set(task["references"]) == {task_of(id) for id in ("bd-c", "bd-d", "bd-e")}
    (row,) = [each for each in task_list.list_tasks(store).tasks if each.task_id == task_of("bd-a1")]
    assert row.blocked_by == [task_of("bd-b")]


def test_importing_again_adds_only_what_changed(store: Store, where: Path) -> None:
    """The same file nothing; a changed text its text; a closed issue its end."""
    write(where, ISSUE, issue("bd-b"))
    bring(store)
    before = records_of(store)
    again = bring(store)
    assert (counts(again), again.recorded) == ({"read": 2, "present": 2}, False)
    assert records_of(store) == before
    write(where, ISSUE | {"title": "Escape all tabs", **LATER}, issue("bd-b"))
    assert counts(bring(store)) == {"read": 2, "updated": 1, "present": 1}
    assert counts(bring(store)) == {"read": 2, "present": 2}
    (event,) = show(store).events
    assert (event["event"], str(event["message"]).splitlines()[0]) == ("message", "Escape all tabs")
    write(where, ISSUE | CLOSED, issue("bd-b"))
    assert counts(bring(store)) == {"read": 2, "updated": 1, "present": 1}
    shown = show(store)
    assert shown.state == "completed"
    assert shown.seal is not None and shown.seal["reason"] == "Done in abc123"
    write(where, ISSUE | LATER, issue("bd-b"))
    reopened = bring(store)
    assert reopened.remarks[0].reason == "bd-a1 is open again, but its task has ended and stays so"


def test_a_text_that_comes_back_is_told(store: Store, where: Path) -> None:
    for title, at in (
        ("one", "2025-11-22T10:00:00Z"),
        ("two", "2025-11-23T10:00:00Z"),
        ("one", "2025-11-24T10:00:00Z"),
    ):
        write(where, issue("bd-a1", title=title, updated_at=at))
        bring(store)
    assert [str(each["message"]).splitlines()[0] for each in show(store).events] == ["two", "one"]


def test_two_clones_that_import_make_the_same_lines(store: Store, where: Path, tmp_path: Path) -> None:
    """Whoever imports attests them; their union has nothing twice."""
    lines = [
        ISSUE | {"comments": [{"author": "bohr", "text": "me", "created_at": "2025-11-22T10:00:00Z"}]},
        issue("bd-b", **CLOSED),
    ]
    other = open_store(new_repo(tmp_path / "other"), Clock())
    for each, folder in ((store, where), (other, tmp_path / "other")):
        write(folder, *lines, {"_type": "memory", "key": "tabs", "value": "Tabs are blanks"})
        bring(each)
    assert records_of(store) == records_of(other)
    carry(store, other)
    assert len(records_of(store)) == len(set(records_of(store))) == 5
    assert counts(bring(store)) == {"read": 2, "present": 2}
    assert show(store).events == show(other).events


def test_clones_with_different_versions_of_an_issue_meet(store: Store, where: Path, tmp_path: Path) -> None:
    """After both have imported the later one, both show its text."""
    other = open_store(new_repo(tmp_path / "other"), Clock())
    new = ISSUE | {"title": "Later title", **LATER}
    write(where, ISSUE)
    bring(store)
    write(tmp_path / "other", new)
    bring(other)
    carry(store, other)
    write(where, new)
    for each in (store, other):
        bring(each)
    carry(store, other)
    for each in (store, other):
        shown = show(each)
        texts = [str(shown.task["message"]), *(str(event["message"]) for event in shown.events)]
        assert texts[-1].startswith("Later title")
        assert counts(bring(each)) == {"read": 1, "present": 1}


def test_what_ended_before_is_a_task_that_has_ended(store: Store, where: Path) -> None:
    """What beads has deleted is left out, unless it is here: then it ends."""
    gone = {"status": "tombstone", "deleted_at": "2025-11-24T10:00:00Z", "delete_reason": "duplicate"}
    write(where, ISSUE | CLOSED, issue("bd-b", **gone), issue("bd-c"))
    assert counts(bring(store)) == {"read": 3, "imported": 2, "left": 1}
    assert show(store).state == "completed"
    write(where, issue("bd-c", **gone))
    bring(store)
    assert show(store, "bd-c").state == "canceled"


def test_a_result_that_is_here_is_not_sealed_away(store: Store, where: Path) -> None:
    """Who did the task here closes the issue there: the next import keeps the result as the outcome."""
    write(where, ISSUE)
    bring(store)
    agent = Agent(store, "codex:worker:bohr").caller
    task_work.take(store, agent, task_of("bd-a1"))
    task_work.report(store, agent, task_of("bd-a1"), "completed", "escaped")
    write(where, ISSUE | CLOSED)
    bring(store)
    shown = show(store)
    assert shown.outcome is not None and shown.outcome["message"] == "escaped"


def test_hostile_lines_cost_themselves(store: Store, where: Path) -> None:
    """Each is named by its number; the others are imported."""
    write(
        where, b"not json", b"[1]", b'{"id": "bd-1"', b"\xff\xfe{}", b"<<<<<<< HEAD", b"x" * 1_100_000, issue("bd-" + "x" * 200),
        issue("bd-2", title={"a": 1}), issue("bd-3", created_at="soon"), issue("bd-4", title=f"the token {TOKEN}"),
        issue("bd-5", dependencies=["x"]), issue("bd-6", description="\ud800"), {"id": ["x"]}, {"_type": "memory", "key": "a", "value": 7},
        issue("bd-7", title="\x1b[2J\u202e", custom={"deep": [[1]]}, priority="high", labels="one"),
        issue("bd-8", description="ä" * 50_000, junk="y" * 200_000), issue("bd-9", priority=4, comments=[]),
        {"_type": "memory", "key": "\ud800", "value": "x"},
    )  # fmt: skip
    found = bring(store)
    assert counts(found) == {"read": 16, "imported": 3, "bad": 13}
    assert counts(found, "memories") == {"read": 2, "bad": 2}
    assert sorted(each.line for each in found.problems) == [*range(1, 15), 18]
    assert all(each.file == "issues.jsonl" and each.reason for each in found.problems)
    assert any("seems to contain" in each.reason for each in found.problems), found.problems
    assert TOKEN not in str(found.as_json())
    task: Any = show(store, "bd-7").task
    assert task["payload"]["beads"]["custom"] == {"deep": [[1]]}
    assert task.get("priority") is None
    assert len(str(show(store, "bd-8").task["message"]).encode()) < 65_536
    assert [each.reason for each in found.remarks] == ["its further fields are too large; they are left out"]
    assert show(store, "bd-9").task["priority"] == "P3"


def test_a_circle_is_told_and_imported(store: Store, where: Path) -> None:
    """What only leads to it, or from it, is not named."""
    write(
        where,
        waits("bd-a", "bd-b"),
        waits("bd-b", "bd-c"),
        waits("bd-c", "bd-a"),
        waits("bd-d", "bd-a"),
        waits("bd-c2", "bd-e"),
        issue("bd-e"),
    )
    found = bring(store)
    assert counts(found)["imported"] == 6
    (remark,) = found.remarks
    assert (
        remark.reason
        == "issues wait for each other in a circle: bd-a, bd-b, bd-c; each can be taken all the same"
    )


def test_of_several_circles_each_import_names_the_same(store: Store, where: Path) -> None:
    pairs = [(f"bd-{2 * n}", f"bd-{2 * n + 1}") for n in range(10, 40)]
    write(
        where,
        waits("bd-a", *(one for one, _ in pairs)),
        *(waits(*each) for pair in pairs for each in (pair, pair[::-1])),
    )
    (remark,) = bring(store).remarks
    assert "in a circle: bd-20, bd-21;" in remark.reason


def test_a_repeated_issue_counts_as_it_was_updated_last(store: Store, where: Path) -> None:
    """As after a merge that kept both sides."""
    write(where, ISSUE | {"title": "new", **LATER}, ISSUE | {"title": "old"})
    assert counts(bring(store)) == {"read": 2, "imported": 1, "repeated": 1}
    assert str(show(store).task["message"]).startswith("new")


def test_one_issue_never_floods_its_task(store: Store, where: Path) -> None:
    """Of comments the last count; of an issue that changes without end the text stays."""
    many = [
        {"id": n, "author": "bohr", "text": f"say {n}", "created_at": "2025-11-22T10:00:00Z"}
        for n in range(COMMENTS_MAX + 5)
    ]
    write(where, issue("bd-a1", comments=many))
    bring(store)
    assert len(show(store).events) == COMMENTS_MAX
    for number in range(UPDATES_MAX + 2):
        write(where, issue("bd-a1", title=f"title {number}"))
        found = bring(store)
        if number < 10:  # whatever time the issue says: the last text is the last one
            assert counts(bring(store)) == {"read": 1, "present": 1}
    assert found.remarks[0].reason.startswith(f"bd-a1 has changed {UPDATES_MAX} times")


def test_memories_are_project_nodes(store: Store, where: Path) -> None:
    write(where, ISSUE, {"_type": "memory", "key": "tabs", "value": "Tabs are blanks"})
    assert counts(bring(store), "memories") == {"read": 1, "imported": 1}
    assert b"Tabs are blanks" in b"".join(records_of(store))
    write(where, ISSUE, {"_type": "memory", "key": "tabs", "value": "Tabs are tabs"})
    again = bring(store)
    assert counts(again, "memories") == {"read": 1, "present": 1}
    assert "different content" in again.remarks[0].reason


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_does_not_lead_out_of_the_repository(
    store: Store, where: Path, tmp_path: Path, kind: str
) -> None:
    """A repository must not make its user publish another file; one that is named itself is read."""
    secret = write(tmp_path / "elsewhere", ISSUE)
    (where / ".beads").mkdir()
    if kind == "file":
        (where / ".beads" / "issues.jsonl").symlink_to(secret)
    else:
        (where / ".beads").rmdir()
        (where / ".beads").symlink_to(secret.parent)
    for place in (where, where / ".beads" / "issues.jsonl"):
        with pytest.raises(UsageError, match=r"outside of the repository\. Nothing was written") as caught:
            bring(store, place)
        assert caught.value.next == [f"gitmem import beads {secret}"]
    assert counts(bring(store, secret))["imported"] == 1


def test_what_is_no_file_is_a_sentence(store: Store, where: Path) -> None:
    """Missing, a pipe, which would wait for ever, unreadable, too large."""
    for place, what in ((where, "No issues of beads in"), (where / "nothing.jsonl", "does not exist")):
        with pytest.raises(UsageError, match=what) as caught:
            bring(store, place)
        assert "bd export" in caught.value.hint
    os.mkfifo(where / "pipe.jsonl")
    with pytest.raises(UsageError, match="is not a regular file"):
        bring(store, where / "pipe.jsonl")
    path = write(where, ISSUE)
    os.truncate(path, beads.FILE_BYTES_MAX + 1)
    with pytest.raises(UsageError, match="at most 268,435,456 are read"):
        bring(store)
    path.unlink()
    path.symlink_to("loop.jsonl")
    (path.parent / "loop.jsonl").symlink_to("issues.jsonl")
    with pytest.raises(UsageError, match="can't be read"):
        bring(store)


def test_a_dry_run_writes_nothing(store: Store, where: Path) -> None:
    write(where, ISSUE)
    found = bring(store, dry_run=True, typed=".")
    assert (counts(found), found.recorded, found.next) == (
        {"read": 1, "imported": 1},
        False,
        ["gitmem import beads ."],
    )
    assert records_of(store) == []


@pytest.mark.deep
def test_50_000_issues_are_few_commits(store: Store, where: Path) -> None:
    """In bounded time; again, they add nothing."""
    write(where, *(waits(f"bd-{n}", f"bd-{n + 1}") | ({} if n % 5 else CLOSED) for n in range(50_000)))
    found = bring(store)
    assert counts(found) == {"read": 50_000, "imported": 50_000}
    assert counts(bring(store)) == {"read": 50_000, "present": 50_000}
