"""LumenFlow's files in the log: nothing doubled, nothing lost unsaid, nobody's inbox flooded."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import UsageError
from gitmem.importers import lumenflow_import as room
from gitmem.importers import lumenflow_lines
from gitmem.importers.imported import SHOWN, Imported
from gitmem.log.lines import CommitMessage
from gitmem.memory import decay, edit, listing, relations, stored_nodes
from gitmem.signals import history, inbox, send, threads
from gitmem.signals.signal_options import SignalOptions
from gitmem.store import Store
from tests.profiles import up_to

from ..sandbox import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    START,
    Clock,
    acting,
    bodies,
    carry,
    new_repo,
    open_store,
    person,
)

NODE: dict[str, Any] = {
    "id": "mem-a1b2", "type": "discovery", "lifecycle": "wu", "content": "The parser drops tabs",
    "created_at": "2025-01-15T10:00:00.123Z",
}  # fmt: skip
SIGNAL: dict[str, Any] = {
    "id": "sig-aaaa1111", "message": "WU-7 done", "created_at": "2025-01-17T10:00:00.123Z", "read": False,
    "type": "completion", "sender": "planck", "origin": "local", "remote_id": "sig-aaaa1111",
}  # fmt: skip
RECEIPT = {"signal_id": "sig-aaaa1111", "read_at": "2025-01-18T00:00:00.000Z"}
EDGE = {"from_id": "mem-a1b2", "to_id": "mem-c3d4", "type": "blocks"}
TOKEN = "ghp_" + "a1B2" * 9


class Project:
    """A folder with LumenFlow's files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.memory = folder / ".lumenflow" / "memory"
        self.memory.mkdir(parents=True)

    def has(self, kind: str, *objects: Mapping[str, Any] | str | bytes) -> Project:
        """Lines of a file: objects, or text as it stands."""
        parts = [
            each
            if isinstance(each, bytes)
            else (each if isinstance(each, str) else json.dumps(each)).encode()
            for each in objects
        ]
        (self.memory / lumenflow_lines.NAMES[kind]).write_bytes(b"".join(part + b"\n" for part in parts))
        return self


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    return open_store(new_repo(tmp_path / "one"), clock)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def bring(store: Store, project: Project, **options: Any) -> Imported:
    return room.import_folder(store, person(store), str(project.folder), **options)


def one(store: Store, id: str = "mem-a1b2") -> Any:
    return stored_nodes.load_one(store.db(), id)


def at(micros: int) -> str:
    return records.lines.format_time(micros)


def test_every_field_finds_its_place(store: Store, project: Project) -> None:
    """Known metadata become fields, the rest of it and fields that LumenFlow would drop stay in the metadata."""
    project.has("nodes", {
        **NODE, "updated_at": "2025-01-16T12:00:00+02:00", "wu_id": "WU-7", "tags": ["bug", "bug"],
        "session_id": "550e8400-e29b-41d4-a716-446655440000", "severity": "high",
        "metadata": {"priority": "P1", "lane": "Core: Parser", "sensitive": True, "summarized_into": "mem-c3d4",
                     "status": "closed", "blocked_by": ["mem-x1y2"], "progress": "half"},
    })  # fmt: skip

    found = bring(store, project)

    node = one(store)
    assert (node.id, node.created_at) == ("mem-a1b2", "2025-01-15T10:00:00.123000Z")
    assert node.updated_at == "2025-01-16T10:00:00.000000Z"
    assert (node.wu_id, node.session_id) == ("WU-7", "550e8400-e29b-41d4-a716-446655440000")
    assert (node.priority, node.lane, node.sensitive, node.status) == ("P1", "Core: Parser", True, "closed")
    assert (node.summarized_into, node.tags) == ("mem-c3d4", ["bug"])
    assert node.metadata == {"progress": "half", "severity": "high"}
    assert relations.blockers_of(store.db(), [node.id]) == {node.id: {"mem-x1y2"}}
    assert found.remarks == []


@pytest.mark.parametrize(
    ("metadata", "status", "reason"),
    [
        ({"status": "active"}, "active", None),
        ({"status": "closed"}, "closed", None),
        ({"status": "archived", "archive_reason": "done in WU-9"}, "archived", "done in WU-9"),
        ({"status": "archived", "decay": {"score": 0.01, "reason": "low score"}}, "archived", "low score"),
        ({"status": "deleted", "deleted_at": "2025-02-01T00:00:00.000Z"}, "deleted", None),
    ],
)
def test_what_became_of_a_node_is_kept(
    store: Store, project: Project, metadata: dict[str, Any], status: str, reason: str | None
) -> None:
    """A deleted node does not come back by the move."""
    project.has("nodes", {**NODE, "metadata": metadata})

    bring(store, project)

    assert (one(store).status, one(store).reason) == (status, reason)


@pytest.mark.parametrize(
    ("change", "word", "kept"),
    [
        ({"metadata": {"priority": "P9"}}, "priority P9", ("priority", "P9")),
        ({"metadata": {"priority": 1}}, "priority 1", ("priority", 1)),
        ({"metadata": {"status": "lost"}}, "status lost", ("status", "lost")),
        ({"metadata": {"sensitive": "yes"}}, "sensitive", ("sensitive", "yes")),
        ({"metadata": {"summarized_into": "a summary"}}, "summarized_into", ("summarized_into", "a summary")),
        ({"metadata": {"lane": "two\nlines"}}, "lane", ("lane", "two\nlines")),
        ({"metadata": {"access": {"count": -1}}}, "access", ("access", {"count": -1})),
        ({"metadata": {"access": 3}}, "access", ("access", 3)),
        ({"wu_id": "the parser"}, "wu_id the parser", ("wu_id", "the parser")),
        ({"updated_at": "yesterday"}, "updated_at", ("updated_at", "yesterday")),
        ({"updated_at": "1960-01-01T00:00:00Z"}, "updated_at", ("updated_at", "1960-01-01T00:00:00Z")),
        ({"tags": ["a,b", "ok"]}, "tags", ("tags", ["a,b"])),
        ({"wu_id": "x y", "metadata": {"wu_id": "mine"}}, "wu_id", ("wu_id (beside the metadata)", "x y")),
        ({"tags": [1], "metadata": {"tags": 2}}, "tags", ("tags (beside the metadata)", [1])),
        ({"severity": 1, "metadata": {"severity": 2}}, "", ("severity (beside the metadata)", 1)),
    ],
)
def test_a_value_that_does_not_fit_stays_in_the_metadata(
    store: Store, project: Project, change: dict[str, Any], word: str, kept: tuple[str, object]
) -> None:
    """It is told, and nothing of the node is lost for it."""
    project.has("nodes", {**NODE, **change})

    found = bring(store, project)

    assert found.counts["nodes"]["imported"] == 1
    assert [word in each.reason for each in found.remarks] == ([True] if word else [])
    assert one(store).metadata[kept[0]] == kept[1]


@pytest.mark.usefixtures("commits")
def test_importing_twice_adds_nothing(store: Store, project: Project, clock: Clock) -> None:
    """Not a line, not a commit."""
    project.has("nodes", {**NODE, "metadata": {"access": {"count": 3}}}, {**NODE, "id": "mem-c3d4"})
    project.has("relations", EDGE).has("signals", SIGNAL).has("receipts", RECEIPT)
    first = bring(store, project)
    tip, lines = store.git.tip("refs/gitmem/log"), bodies(store)
    clock.forward(DAY)

    second = bring(store, project)

    assert first.commit == tip
    assert (second.commit, second.recorded) == (None, False)
    assert (store.git.tip("refs/gitmem/log"), bodies(store)) == (tip, lines)
    for kind, counts in first.counts.items():
        assert second.counts[kind] == {**counts, "imported": 0, "present": counts["imported"]}


def test_two_clones_write_the_same_bytes(
    tmp_path: Path, store: Store, project: Project, clock: Clock
) -> None:
    """At different times, by different people: after a sync each line is there once, and counts add up to what they were."""
    project.has(
        "nodes", {**NODE, "metadata": {"access": {"count": 7, "last_accessed_at": "2025-02-01T00:00:00Z"}}}
    )
    project.has("relations", EDGE).has("signals", SIGNAL).has("receipts", RECEIPT)
    other = open_store(new_repo(tmp_path / "two"), clock, mail="other@example.org")
    bring(store, project)
    clock.forward(HOUR)
    bring(other, project)

    assert bodies(store) == bodies(other)
    carry(store, other)
    assert (one(other).accesses, one(other).last_accessed_at) == (7, "2025-02-01T00:00:00.000000Z")


def test_readings_become_events(store: Store, project: Project, clock: Clock) -> None:
    """The decay score is the one that LumenFlow would compute; at most a hundred readings count."""
    project.has(
        "nodes",
        {**NODE, "metadata": {"access": {"count": 7, "last_accessed_at": "2025-02-01T00:00:00.000Z"}}},
        {**NODE, "id": "mem-c3d4", "metadata": {"access": {"count": 5000}}},
        {**NODE, "id": "mem-e5f6", "metadata": {"access": {"count": 0, "by": "hook"}}},
    )

    found = bring(store, project)

    assert [one(store, id).accesses for id in ("mem-a1b2", "mem-c3d4", "mem-e5f6")] == [7, 100, 0]
    assert one(store).last_accessed_at == "2025-02-01T00:00:00.000000Z"
    assert "access" not in one(store).metadata
    assert one(store, "mem-c3d4").metadata["access"] == {"count": 5000}
    assert one(store, "mem-e5f6").metadata["access"] == {"by": "hook"}
    assert [each.reason for each in found.remarks] == ["it was read 5000 times, and 100 of them count"]
    now = one(store).created + 30 * DAY
    assert decay.score(one(store), now=now) == pytest.approx(0.36788 * 1.20794, rel=1e-4)


def test_what_was_read_since_is_added(store: Store, project: Project) -> None:
    """LumenFlow goes on counting: the node is the same, and its count grows."""
    project.has(
        "nodes", {**NODE, "metadata": {"access": {"count": 2, "last_accessed_at": "2025-02-01T00:00:00Z"}}}
    )
    bring(store, project)
    project.has(
        "nodes", {**NODE, "metadata": {"access": {"count": 3, "last_accessed_at": "2025-02-02T00:00:00Z"}}}
    )

    again = bring(store, project)

    assert again.counts["nodes"]["present"] == 1
    assert one(store).accesses in (3, 4)  # of the reading that was the last before, the time is known
    assert one(store).last_accessed_at == "2025-02-02T00:00:00.000000Z"


def test_of_an_id_that_stands_twice_the_last_line_counts(store: Store, project: Project) -> None:
    """As in LumenFlow, where a change is another line; a node that took the place of another one is told (W3)."""
    project.has(
        "nodes", NODE, {**NODE, "id": "mem-c3d4"}, {**NODE, "content": "later"},
        {**NODE, "id": "mem-c3d4", "created_at": "2025-05-05T00:00:00.000Z", "content": "another"},
    )  # fmt: skip

    found = bring(store, project)

    assert found.counts["nodes"] == {
        "read": 4, "imported": 2, "present": 0, "differs": 0, "repeated": 2, "bad": 0
    }  # fmt: skip
    assert [one(store, id).content for id in ("mem-a1b2", "mem-c3d4")] == ["later", "another"]
    assert [(each.line, "differs from the node of line 2" in each.reason) for each in found.remarks] == [
        (4, True)
    ]


@pytest.mark.usefixtures("commits")
def test_a_node_that_the_log_has_otherwise_is_left_as_it_is(store: Store, project: Project) -> None:
    """Reported; what was changed here since does not count as other."""
    bring(store, project.has("nodes", NODE, {**NODE, "id": "mem-c3d4"}))
    edit.change(store, person(store), ["mem-c3d4"], content="changed here")
    project.has("nodes", {**NODE, "content": "changed there"}, {**NODE, "id": "mem-c3d4"})

    found = bring(store, project)

    assert (found.counts["nodes"]["differs"], found.counts["nodes"]["present"]) == (1, 1)
    assert [one(store, id).content for id in ("mem-a1b2", "mem-c3d4")] == [NODE["content"], "changed here"]
    assert "mem-a1b2 is in the log with different content, which is kept" in found.remarks[0].reason
    assert found.commit is None


def test_one_bad_line_costs_that_line(store: Store, project: Project) -> None:
    """W7: torn, foreign, marked and invalid lines are told with file and number, and the others are there."""
    project.has(
        "nodes",
        b"\xef\xbb\xbf" + json.dumps(NODE).encode() + b"\r", "", "   \r",
        "<<<<<<< HEAD", "=======", ">>>>>>> branch",
        '{"id":"mem-torn","type":"disc', '{"id":"mem-t{"id":"mem-c3d4","type":"note"}',
        b"\xff\xfe\x00\x01", "[1,2]", '"text"', "null", '{"id": NaN}', "[" * 100_000,
        {**NODE, "id": "mem-a1b2.1.2"}, {**NODE, "id": "mem-aaa1", "type": "thought"},
        {**NODE, "id": "mem-aaa2", "lifecycle": "forever"}, {**NODE, "id": "mem-aaa3", "content": ""},
        {**NODE, "id": "mem-aaa4", "content": "x" * 70_000}, {**NODE, "id": "mem-aaa5", "created_at": "now"},
        {**NODE, "id": "mem-aaa6", "created_at": None}, {**NODE, "id": "mem-aaa7", "metadata": []},
        {**NODE, "id": "mem-aaa8", "content": "half \ud800"}, {**NODE, "id": None}, {**NODE, "id": 7},
        {**NODE, "id": "mem-aaa9", "created_at": "1960-01-01T00:00:00Z"},
        {**NODE, "id": "mem-aab1", "metadata": {"deep": json.loads("[" * 60 + "]" * 60)}},
        {**NODE, "id": "mem-last"},
    )  # fmt: skip

    found = bring(store, project)

    counts = found.counts["nodes"]
    assert counts == {"read": 26, "imported": 2, "present": 0, "differs": 0, "repeated": 0, "bad": 24}
    assert {node.id for node in stored_nodes.load(store.db(), ["mem-a1b2", "mem-last"])} == {
        "mem-a1b2",
        "mem-last",
    }
    assert len(found.problems) == SHOWN
    assert found.problems_more == 4
    assert [each.line for each in found.problems[:4]] == [4, 5, 6, 7]
    assert all("conflict marker" in each.reason for each in found.problems[:3])
    assert {each.file for each in found.problems} == {"memory.jsonl"}
    assert not any("Nothing was written" in each.reason for each in found.problems)


def test_a_last_line_without_its_end_is_told_as_cut_off(store: Store, project: Project) -> None:
    """And one that is whole but for the newline is taken."""
    path = project.memory / "memory.jsonl"
    path.write_bytes(json.dumps(NODE).encode() + b'\n{"id":"mem-torn","ty')
    first = bring(store, project)
    path.write_bytes(json.dumps({**NODE, "id": "mem-c3d4"}).encode())

    assert first.problems[0].reason == "it is cut off, or not JSON"
    assert bring(store, project).counts["nodes"]["imported"] == 1


def test_a_line_of_a_hundred_megabytes_is_not_held_in_memory(store: Store, project: Project) -> None:
    """It is passed over, and the line behind it is read."""
    path = project.memory / "memory.jsonl"
    with path.open("wb") as file:
        file.write(b'{"id":"mem-long","content":"')
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n' + json.dumps(NODE).encode() + b"\n")
    tracemalloc.start()

    found = bring(store, project)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.counts["nodes"] | {"imported": 1, "bad": 1} == found.counts["nodes"]
    assert [(each.line, each.reason) for each in found.problems] == [(1, "it is longer than 1048576 bytes")]
    assert peak < 20_000_000


@pytest.mark.usefixtures("commits")
def test_binary_garbage_is_no_store_of_ours(store: Store, project: Project) -> None:
    """Every line of it is skipped and counted, and nothing is written."""
    (project.memory / "memory.jsonl").write_bytes(bytes(range(256)) * 400)

    found = bring(store, project)

    assert found.counts["nodes"]["imported"] == 0
    assert found.counts["nodes"]["read"] == found.counts["nodes"]["bad"] > 0
    assert found.commit is None


def test_a_text_that_looks_like_a_secret_is_refused_by_itself(store: Store, project: Project) -> None:
    """Also deep in the metadata; the other lines go on, and a store that allows secrets takes it."""
    project.has("nodes", NODE, {**NODE, "id": "mem-c3d4", "metadata": {"env": [TOKEN]}})
    project.has("signals", SIGNAL, {**SIGNAL, "id": "sig-bbbb2222", "message": f"use {TOKEN}"})

    found = bring(store, project)

    assert [found.counts[kind]["bad"] for kind in ("nodes", "signals")] == [1, 1]
    assert [found.counts[kind]["imported"] for kind in ("nodes", "signals")] == [1, 1]
    assert all("a GitHub token" in each.reason for each in found.problems)
    assert not any(TOKEN.encode() in line for line in bodies(store))
    store.allow_secret = True
    allowed = bring(store, project)
    assert [allowed.counts[kind]["imported"] for kind in ("nodes", "signals")] == [1, 1]


def test_relations_are_there_once(store: Store, project: Project) -> None:
    """To a node that is nowhere: kept and told. Taken back here: not brought back. To itself: refused."""
    project.has("nodes", NODE).has(
        "relations", EDGE, EDGE, {**EDGE, "type": "likes"}, {**EDGE, "to_id": "mem-a1b2"}, {"from_id": "mem-a1b2"},
        {**EDGE, "created_at": "2025-03-01T00:00:00.000Z"},
    )  # fmt: skip

    found = bring(store, project)

    assert found.counts["relations"] == {
        "read": 6, "imported": 1, "present": 0, "differs": 0, "repeated": 2, "bad": 3
    }  # fmt: skip
    reasons = [each.reason for each in found.remarks]
    assert any("mem-c3d4 is missing here" in reason for reason in reasons)
    assert any("different content" in reason for reason in reasons)
    from gitmem.memory import relations

    edit.relate(store, person(store), "mem-a1b2", "blocks", "mem-c3d4", remove=True)
    again = bring(store, project)
    assert again.counts["relations"]["present"] == 1
    assert relations.relations_of(store.db(), "mem-a1b2") == []


def test_a_node_supersedes_the_one_that_it_replaces(store: Store, project: Project, tmp_path: Path) -> None:
    """There both stayed, and each later run added another. What names no other node stays in the metadata."""
    project.has(
        "nodes", NODE, {**NODE, "id": "mem-c3d4", "metadata": {"replaces": "mem-a1b2", "source_path": "README.md"}},
        {**NODE, "id": "mem-e5f6", "metadata": {"replaces": "mem-e5f6"}},
        {**NODE, "id": "mem-g7h8", "metadata": {"replaces": "README.md"}},
    )  # fmt: skip
    other = open_store(new_repo(tmp_path / "two"), Clock())

    found = bring(store, project)
    bring(other, project)

    assert relations.ends_of(store.db(), ["mem-a1b2", "mem-e5f6"]) == {"mem-a1b2": "mem-c3d4"}
    assert one(store, "mem-c3d4").metadata == {"source_path": "README.md"}
    assert one(store, "mem-e5f6").metadata == {"replaces": "mem-e5f6"}
    assert len([each for each in found.remarks if "replaces" in each.reason]) == 2
    assert bring(store, project).counts["nodes"]["present"] == 4
    lines = "SELECT body FROM line WHERE kind = 'relation'"
    assert store.db().execute(lines).fetchall() == other.db().execute(lines).fetchall()


def test_ready_sees_what_blocked_in_lumenflow(store: Store, project: Project) -> None:
    """Edges and `blocked_by` hold after the move; a closed blocker blocks no more (W14)."""
    project.has(
        "nodes", {**NODE, "wu_id": "WU-7"}, {**NODE, "id": "mem-c3d4", "wu_id": "WU-7"},
        {**NODE, "id": "mem-e5f6", "wu_id": "WU-7", "metadata": {"blocked_by": ["mem-a1b2"]}},
    ).has("relations", EDGE)  # fmt: skip
    bring(store, project)

    before = [node.id for node in listing.ready(store, "WU-7").nodes]
    edit.change(store, person(store), ["mem-a1b2"], closed=True)

    assert before == ["mem-a1b2"]
    assert [node.id for node in listing.ready(store, "WU-7").nodes] == ["mem-c3d4", "mem-e5f6"]


def test_a_signal_is_an_info_to_its_target_or_to_all(store: Store, project: Project) -> None:
    """Type, and whatever else has no field of ours, stands beside; who sent it is kept, or made an address."""
    project.has(
        "signals",
        {**SIGNAL, "wu_id": "WU-7", "lane": "Core", "mood": "good"},
        {**SIGNAL, "id": "sig-bbbb2222", "sender": "LumenFlow PM, the second", "target_agent": "codex:i:h"},
        {"id": "sig-cccc3333", "message": "old form", "created_at": SIGNAL["created_at"], "read": False},
    )  # fmt: skip

    found = bring(store, project)

    said = {record["signal_id"]: record for record in map(records.read, bodies(store)) if record}
    first, second, third = (said[id] for id in ("sig-aaaa1111", "sig-bbbb2222", "sig-cccc3333"))
    assert (first["intent"], first["recipients"], first["origin"]) == ("INFO", [], "lumenflow")
    assert (first["sender_identity"], first["wu_id"], first["lane"]) == ("planck", "WU-7", "Core")
    assert first["lumenflow"] == {"type": "completion", "mood": "good"}
    assert (second["recipients"], second["sender_identity"]) == (["codex:i:h"], "LumenFlow-PM-the-second")
    assert second["lumenflow"]["sender_was"] == "LumenFlow PM, the second"
    assert third["sender_identity"] == "system"
    assert [each.line for each in found.remarks] == [2]


@pytest.mark.parametrize("type", ["completion", "no word of ours", {"nested": ["</signal>"]}])
def test_every_json_answer_has_type_and_remote_id_as_they_came(
    store: Store, project: Project, type: Any
) -> None:
    """Beside our fields, in `lumenflow`; nobody else writes them."""
    came = {**SIGNAL, "target_agent": "codex:i:h", "type": type, "remote_id": "cloud-77"}
    bring(store, project.has("signals", came))
    reader, id = existing(store), SIGNAL["id"]
    answers: list[Any] = [
        *inbox.read(store, reader, for_="lumenflow:codex:i:h").signals, history.show(store, id).record, *threads.thread(store, id).signals,
        *history.log(store).entries,
    ]  # fmt: skip

    assert [each["lumenflow"] for each in answers if each.get("origin") == "lumenflow"] == [
        {"type": type, "remote_id": "cloud-77"}
    ] * 4
    assert not {"type", "remote_id", "lumenflow"} & {
        *SignalOptions.__annotations__,
        *records.schema("signal")["properties"],
    }


def test_mail_to_a_name_of_lumenflow_can_be_read_by_everybody(store: Store, project: Project) -> None:
    """No session has the address `agent-1`: the import names the command, and reading it marks nothing."""
    to_agent = {**SIGNAL, "sender": "agent-2", "target_agent": "agent-1", "wu_id": "WU-7"}
    project.has("signals", to_agent, {**to_agent, "id": "sig-bbbb2222", "wu_id": "WU-8"},
                {**to_agent, "id": "sig-cccc3333"}, SIGNAL | {"id": "sig-dddd4444"})  # fmt: skip
    found = bring(store, project.has("receipts", {**RECEIPT, "signal_id": "sig-cccc3333"}))
    reader, before = existing(store), bodies(store)

    def ids(**filters: Any) -> list[str]:
        shown = inbox.read(store, reader, for_="lumenflow:agent-1", **filters)
        assert shown.peek == "Imported signals to agent-1. Nothing is marked as delivered."
        assert not any("reply_line" in each for each in shown.signals)
        assert inbox.mark(store, shown) == 0
        return [each["signal_id"] for each in shown.signals]

    assert found.unread == {"agent-1": 2}
    assert "agent-1 (2)" in found.warnings[0]
    assert "gitmem inbox --for lumenflow:agent-1" in found.next
    assert ids() == ids() == ["sig-aaaa1111", "sig-bbbb2222"]
    assert ids(wu="WU-8") == ["sig-bbbb2222"]
    assert ids(all=True) == ["sig-aaaa1111", "sig-bbbb2222", "sig-cccc3333"]
    assert inbox.count(store, reader, for_="lumenflow:agent-1").unread == 2
    assert bodies(store) == before


def test_nobody_takes_an_imported_address_by_a_name(store: Store, project: Project) -> None:
    """A session of that name gets its own mail only, and is told where the other is; names and identities go first."""
    to_agent = {**SIGNAL, "target_agent": "agent-1"}
    bring(
        store,
        project.has("signals", to_agent, {**to_agent, "id": "sig-bbbb2222", "target_agent": "claude:i:h"}),
    )
    with pytest.raises(UsageError, match="unknown recipient: agent-1") as refused:
        inbox.read(store, existing(store), for_="agent-1")
    assert refused.value.next[0] == "gitmem inbox --for lumenflow:agent-1"

    started = lifecycle.start(store, CallerClaims(), name="agent-1")
    agent = acting(store, started)

    assert str(started.remark).startswith("Signals to agent-1 were imported; no session gets them.")
    assert "gitmem inbox --for lumenflow:agent-1" in started.next
    assert inbox.read(store, agent).signals == []
    assert inbox.read(store, existing(store), for_="agent-1").reader == agent.reader
    other = acting(store, lifecycle.start(store, CallerClaims(), agent_identity="claude:i:h"))
    assert inbox.read(store, other).signals == []
    assert len(inbox.read(store, other, for_="lumenflow:claude:i:h").signals) == 1


@pytest.mark.parametrize(
    "for_", ["lumenflow:", "lumenflow:agent-9", "lumenflow:agent-1' OR 1=1 --", "lumenflow:\u202eagent-1"]
)
def test_an_address_that_was_not_imported_is_an_error(store: Store, project: Project, for_: str) -> None:
    """Not somebody's inbox that looks like it; signals that were not imported are in none of them."""
    bring(store, project.has("signals", {**SIGNAL, "target_agent": "agent-1"}))
    send.send(store, existing(store, "sender"), "secret plan", to=[existing(store).reader])
    for each in (for_, "lumenflow:" + existing(store).reader):
        with pytest.raises(UsageError) as refused:
            inbox.read(store, existing(store), for_=each)
        assert refused.value.code == "unknown-recipient"
        assert "\u202e" not in refused.value.message


def test_a_signal_of_the_contract_keeps_its_thread(store: Store, project: Project) -> None:
    """LumenFlow 5 writes A2ASignalV1: recipients, thread, intent and reply are what they were."""
    asked = {
        "schema_version": "A2A.V1", "signal_id": "sig-aaaa1111", "sender_identity": "claude:a:one", "recipients":
        ["codex:i:h"], "thread_id": "thread-1234", "intent": "PROPOSE", "requires_ack": True, "message": "Approve?",
        "created_at": SIGNAL["created_at"], "origin": "local", "interrupt_class": "priority",
    }  # fmt: skip
    answer = {**asked, "signal_id": "sig-bbbb2222", "sender_identity": "codex:i:h", "recipients": ["claude:a:one"],
              "intent": "AGREE", "reply_to": "sig-aaaa1111", "message": "Agreed"}  # fmt: skip
    project.has("signals", asked, answer)
    project.has("receipts", {"signal_id": "sig-aaaa1111", "reader_identity": "codex:i:h", "delivery_state": "acked",
                             "read_at": RECEIPT["read_at"]})  # fmt: skip

    bring(store, project)

    from gitmem.signals import threads

    assert threads.converged(store, "thread-1234").converged


def existing(store: Store, name: str = "h") -> Caller:
    return acting(store, lifecycle.start(store, CallerClaims(), agent_identity=f"codex:i:{name}"))


def test_nobodys_inbox_is_flooded(store: Store, project: Project, clock: Clock) -> None:
    """Broadcasts are history: neither who was here before nor who comes later gets one, read or not, old or new."""
    reader = existing(store)
    clock.forward(HOUR)
    project.has("signals", *(
        {**SIGNAL, "id": f"sig-{n:08}", "created_at": at(START + offset), "sender": sender}
        for n, (offset, sender) in enumerate(
            (offset, sender) for offset in (-300 * DAY, -HOUR, MINUTE) for sender in ("planck", "codex:i:h", "claude:a:b")
        )
    )).has("receipts", {"signal_id": "sig-00000006", "read_at": at(START + 2 * MINUTE)})  # fmt: skip

    bring(store, project)

    for each in (reader, existing(store, "later"), person(store)):
        assert inbox.count(store, each).unread == 0
    shown = inbox.read(store, reader, all=True)
    assert shown.unread == 0
    assert len(shown.signals) == 9  # asked for everything, it is there


def test_an_import_makes_no_reader_older(store: Store, project: Project, clock: Clock) -> None:
    """A sender or reader of old lines has not been here since then: what was said to all before it came stays unsaid."""
    early = existing(store, "early")
    for number in range(3):
        send.send(store, early, f"old news {number}", broadcast=True)
    clock.forward(10 * DAY)
    late = existing(store, "late")
    assert inbox.count(store, late).unread == 0
    project.has("signals", {**SIGNAL, "sender": "codex:i:late"}, {**SIGNAL, "id": "sig-bbbb2222", "target_agent":
                                                                 "codex:i:late"})  # fmt: skip
    project.has("receipts", {**RECEIPT, "signal_id": "sig-bbbb2222"})

    bring(store, project)

    assert inbox.count(store, late).unread == 0
    assert inbox.count(store, existing(store, "third")).unread == 0


@pytest.mark.parametrize("index", ["as it grew", "built anew"])
def test_what_was_sent_to_one_is_unread_until_its_receipt(
    store: Store, project: Project, clock: Clock, index: str
) -> None:
    """Read in LumenFlow is read here, whether by a receipt or by an old line of the signal itself."""
    reader = existing(store)
    clock.forward(SECOND)
    to_reader = {**SIGNAL, "target_agent": "codex:i:h"}
    project.has("signals", to_reader, {**to_reader, "id": "sig-bbbb2222"},
                {**to_reader, "id": "sig-cccc3333", "read": True})  # fmt: skip
    project.has("receipts", RECEIPT, RECEIPT, {**RECEIPT, "read_at": "2025-02-01T00:00:00.000Z"},
                {**RECEIPT, "signal_id": "sig-nowhere1"}, {"read_at": RECEIPT["read_at"]})  # fmt: skip

    found = bring(store, project)

    if index == "built anew":
        store.index.reshape()
    unread = inbox.read(store, reader, for_="lumenflow:codex:i:h").signals
    assert [each["signal_id"] for each in unread] == ["sig-bbbb2222"]
    assert found.counts["receipts"] == {
        "read": 5, "imported": 1, "present": 0, "differs": 0, "repeated": 2, "bad": 2
    }  # fmt: skip


@pytest.mark.usefixtures("commits")
def test_a_signal_that_the_log_has_otherwise_is_not_swapped(store: Store, project: Project) -> None:
    """No second content for an id, and no receipt for one that was not read here."""
    bring(store, project.has("signals", SIGNAL))
    project.has("signals", {**SIGNAL, "message": "another"}).has("receipts", RECEIPT)

    found = bring(store, project)

    assert (found.counts["signals"]["differs"], found.counts["receipts"]["differs"]) == (1, 1)
    assert found.commit is None


@pytest.mark.usefixtures("commits")
def test_a_dry_run_writes_nothing(store: Store, project: Project) -> None:
    """And says what the import then does."""
    project.has("nodes", NODE, "torn").has("signals", SIGNAL).has("receipts", RECEIPT)

    tried = bring(store, project, dry_run=True)

    assert (tried.commit, tried.recorded, bodies(store)) == (None, False, [])
    assert tried.next == [f"gitmem import lumenflow {project.folder}"]
    assert bring(store, project).counts == tried.counts


@pytest.mark.usefixtures("commits")
def test_the_commit_tells_the_story(store: Store, project: Project, git: Callable[..., str]) -> None:
    """Who imports is its author; how many of what."""
    project.has("nodes", NODE, {**NODE, "id": "mem-c3d4"}).has("signals", SIGNAL).has("receipts", RECEIPT)

    found = bring(store, project)

    assert found.commit
    told = git("log", "-1", "--format=%an%n%B", found.commit, cwd=Path(store.repo.common)).splitlines()
    assert told[:2] == ["Test Person", "Test Person: imports 2 nodes, 1 signal from LumenFlow"]
    assert told[3:6] == ["2 nodes", "1 signal", "1 receipt"]


@pytest.mark.usefixtures("commits")
def test_many_lines_are_several_commits(
    store: Store, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that was killed between them goes on where it was."""
    project.has("nodes", *({**NODE, "id": f"mem-{n:04}"} for n in range(10)))
    tip = store.git.tip("refs/gitmem/log")
    record = store.record
    calls: list[str] = []

    def twice(lines: Any, story: CommitMessage) -> Any:
        calls.append(story.subject)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return record(lines, story)

    with monkeypatch.context() as patch:
        patch.setattr(store, "record", twice)
        with pytest.raises(KeyboardInterrupt):
            bring(store, project, lines_max=4)

    again = bring(store, project, lines_max=4)

    assert [call.split(": ")[1] for call in calls] == [
        "imports, 1 of 3",
        "imports, 2 of 3",
        "imports, 3 of 3",
    ]
    assert tip != store.git.tip("refs/gitmem/log")
    assert (again.counts["nodes"]["present"], again.counts["nodes"]["imported"]) == (8, 2)
    assert len(bodies(store)) == 10


@pytest.mark.parametrize("below", ["", ".lumenflow", ".lumenflow/memory"])
def test_a_project_or_its_memory_may_be_named(store: Store, project: Project, below: str) -> None:
    """Whichever folder one stands before."""
    project.has("nodes", NODE)
    (project.memory / "notes.txt").write_text("mine")
    (project.memory / ".gitkeep").write_text("")

    found = room.import_folder(store, person(store), str(project.folder / below))

    assert found.counts["nodes"]["imported"] == 1
    assert [(each.file, each.line) for each in found.remarks] == [("notes.txt", 0)]


@pytest.mark.parametrize("what", ["missing", "a file", "empty", "another project's"])
def test_a_folder_without_such_files_is_told(store: Store, tmp_path: Path, what: str) -> None:
    """With what to do, and nothing is written."""
    folder = tmp_path / "elsewhere"
    if what == "a file":
        folder.write_text("text")
    elif what != "missing":
        (folder / ".lumenflow" / "memory").mkdir(parents=True)
    if what == "another project's":
        (folder / "package.json").write_text("{}")
        (folder / "memory.jsonl").mkdir()

    with pytest.raises(UsageError) as error:
        room.import_folder(store, person(store), str(folder))

    assert error.value.code in ("no-such-folder", "nothing-to-import")
    assert "Nothing was written" in error.value.message
    assert error.value.next
    assert bodies(store) == []


def test_a_folder_in_the_place_of_a_file_has_no_lines(store: Store, project: Project) -> None:
    """The other files are read."""
    project.has("signals", SIGNAL)
    (project.memory / "memory.jsonl").mkdir()

    found = bring(store, project)

    assert (found.counts["signals"]["imported"], found.counts["nodes"]["read"]) == (1, 0)


@pytest.mark.usefixtures("commits")
def test_files_that_are_empty_are_an_import_of_nothing(store: Store, project: Project) -> None:
    """`mem:init` makes such a folder."""
    found = bring(store, project.has("nodes").has("signals"))

    assert found.commit is None
    assert all(not any(counts.values()) for counts in found.counts.values())


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(allow_nan=False)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
FIELDS = [*NODE, *SIGNAL, *RECEIPT, *EDGE, "metadata", "tags", "wu_id", "session_id", "updated_at", "recipients",
          "target_agent", "reader_identity"]  # fmt: skip
lines = st.dictionaries(st.sampled_from(FIELDS), anything, max_size=5)


@pytest.mark.usefixtures("commits")
@settings(max_examples=up_to(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_stands_in_the_files_every_line_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, store: Store, data: st.DataObject
) -> None:
    """Nothing raises, nothing is counted twice or not at all, and doing it again writes nothing."""
    project = Project(tmp_path_factory.mktemp("any"))
    for kind, base in (("nodes", NODE), ("relations", EDGE), ("signals", SIGNAL), ("receipts", RECEIPT)):
        some = data.draw(st.lists(lines.map(lambda change, base=base: {**base, **change}), max_size=4))
        project.has(kind, *some)
        read = len(some)
        assert read <= 4

    found = bring(store, project)

    for counts in found.counts.values():
        assert counts["read"] == sum(value for name, value in counts.items() if name != "read")
    for line in bodies(store):
        assert records.read(line) is not None
    again = bring(store, project)
    assert again.commit is None
    assert all(counts["imported"] == 0 for counts in again.counts.values())


@pytest.mark.usefixtures("commits")
def test_receipts_keep_their_state_and_key(store: Store, project: Project) -> None:
    """Of one reader each state; what is not valid here is kept beside; a second import adds nothing."""
    project.has("signals", {**SIGNAL, "target_agent": "codex:i:h", "idempotency_key": "deploy-1"})
    project.has(
        "receipts",
        {**RECEIPT, "reader_identity": "codex:i:h", "delivery_state": "delivered"},
        {**RECEIPT, "reader_identity": "codex:i:h", "delivery_state": "acked", "idempotency_key": "k-1", "read_at": "2025-03-01T00:00:00.000Z"},
        {**RECEIPT, "reader_identity": "claude:a:b", "delivery_state": "rejected", "idempotency_key": "k-2"},
        {**RECEIPT, "reader_identity": "claude:a:c", "delivery_state": "seen"},
    )  # fmt: skip

    found = bring(store, project)

    lines = [record for line in bodies(store) if (record := records.read(line)) and record["kind"] == "receipt"]  # fmt: skip
    assert sorted(
        (each["reader_identity"], each["delivery_state"], each.get("idempotency_key")) for each in lines
    ) == [
        ("claude:a:b", "rejected", "k-2"),
        ("claude:a:c", "delivered", None),
        ("codex:i:h", "acked", "k-1"),
        ("codex:i:h", "delivered", None),
    ]
    (odd,) = (each for each in lines if each["reader_identity"] == "claude:a:c")
    assert odd["lumenflow"] == {"delivery_state": "seen"}
    assert any("delivery_state seen is not valid" in str(each) for each in found.as_json()["remarks"])  # type: ignore[attr-defined]
    shown = {each.reader_identity: each.delivery_state for each in history.receipt_list(store).receipts}
    assert shown == {"codex:i:h": "acked", "claude:a:b": "rejected", "claude:a:c": "delivered"}
    (signal,) = (record for line in bodies(store) if (record := records.read_kind("signal", line)))
    assert signal["idempotency_key"] == "deploy-1"
    assert bring(store, project).commit is None
