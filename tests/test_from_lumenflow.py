"""The tables of `docs/from-lumenflow.md` and `lumenflow_table.md`: every row of them is done here, as a command and in the library.

A test names the rows that it covers; a row without a test, and a test of no row, both fail.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gitmem
from cli import main as front
from cli.parser_table import COMMANDS
from gitmem import records
from gitmem.api.log import Log
from gitmem.api.memory import Memory
from gitmem.clients import hook_state
from gitmem.errors import GateError, UsageError
from gitmem.memory import checkpoints
from gitmem.text.addresses import words_of

from .conftest import Git
from .sandbox import DAY, HOUR, SECOND, START, Clock, worktree

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/from-lumenflow.md").read_text(encoding="utf-8")
TABLES = PAGE + (ROOT / "tests/lumenflow_table.md").read_text(encoding="utf-8")
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLES.splitlines()
    if line.startswith("| `")
]
COVERED: dict[str, list[str]] = {}

Test = Callable[..., None]
Cli = Callable[..., Any]


def row(*keys: str) -> Callable[[Test], Test]:
    """Marks a test of these rows."""

    def mark(test: Test) -> Test:
        for key in keys:
            COVERED.setdefault(key, []).append(test.__name__)
        return test

    return mark


@pytest.fixture
def log(repo: Path, clock: Clock) -> Iterator[Log]:
    """A log with a session that works on WU-1."""
    with (repo / ".git" / "config").open("a") as config:
        config.write("[user]\n\tname = Test Person\n\temail = person@example.org\n")
    with gitmem.open(str(repo), machine="test", commit_after=0, now=clock) as found:
        found.sessions.start(agent_identity="codex:implementer:host42", wu="WU-1")
        yield found


@pytest.fixture
def memory(log: Log) -> Memory:
    return log.memory


@pytest.fixture
def cli(
    repo: Path, log: Log, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Cli:
    """`cli("mem", "list")`: what is printed; with --json the object. It acts as the log's session."""
    monkeypatch.chdir(repo)
    monkeypatch.setenv("GITMEM_SESSION", str(log.caller.session_id))

    def command(*args: str, status: int = 0) -> Any:
        capfdbinary.readouterr()
        found = front.main(args)
        out, err = (text.decode() for text in capfdbinary.readouterr())
        assert found == status, f"{args}: exit {found}\n{out}\n{err}"
        return json.loads(out) if "--json" in args and status in (0, 1) else out + err

    return command


# --- the table itself


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    """In both directions, and no key stands twice."""
    keys = [cells[0].strip("`") for cells in TABLE]

    assert sorted(keys) == sorted(set(keys))
    assert set(keys) - COVERED.keys() == set()
    assert COVERED.keys() - set(keys) == set()


PARTS = re.findall(r"^\| (\d+) \| (.*?) \| (.*?) \|(.*?)\|(.*?)\|$", TABLES, re.MULTILINE)


def test_every_part_of_the_reference_has_its_state_once() -> None:
    """All 70, in order; what does not work has its reason or what is missing."""
    assert [int(number) for number, *_ in PARTS] == list(range(1, 71))
    assert {state for _, _, state, _, _ in PARTS} <= {"works", "part", "not yet", "declined"}
    assert [
        number for number, _, state, why, _ in PARTS if state in ("part", "declined") and not why.strip()
    ] == []


def test_every_part_that_works_names_tests_that_exist() -> None:
    """A file below tests/ and a function in it."""
    for number, _, state, _, tests in PARTS:
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", tests)
        assert len(named) == tests.count("`") // 2, number
        assert named or state in ("not yet", "declined"), number
        for file, name in named:
            source = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{number}: {file}::{name}"


def test_the_page_is_short() -> None:
    """Who moves reads it to the end."""
    assert len(PAGE.encode()) <= 8_000


def test_every_row_has_all_its_cells() -> None:
    """Name, command, library, difference."""
    assert [cells for cells in TABLE if len(cells) != 4 or not cells[3]] == []
    assert len(TABLE) > 150


def commands() -> set[str]:
    return {command for cells in TABLE for command in re.findall(r"`(gitmem [^`]+)`", cells[1])}


def test_the_commands_of_the_table_are_commands(cli: Cli, subtests: pytest.Subtests) -> None:
    """With the options that are named: `--help` knows each of them."""
    shown: dict[tuple[str, ...], str] = {}
    for command in sorted(commands()):
        words = command.split("'")[0].split() + command.split("'")[-1].split()
        name = tuple(words[1:3] if words[1] in ("mem", "session", "import") else [words[1]])
        with subtests.test(command):
            if name not in shown:
                shown[name] = cli(*name, "--help")
            for option in {word for word in words if word.startswith("--")}:
                assert re.search(rf"{option}\b", shown[name]), option
            if words[1] == "mem":
                assert f"mem {words[2]}" in COMMANDS


def test_the_names_of_the_library_are_there(log: Log) -> None:
    """Every `log.….name` is one."""
    named = {name for cells in TABLE for name in re.findall(r"\blog\.([a-z_.A-Z]+)", cells[2])}

    for name in named:
        found: Any = log
        for part in name.split("."):
            found = getattr(found, part)


# --- functions, their options and results


@row("loadMemory", "loadMemory → nodes", "loadMemory → byId", "loadMemory → byWu", "queryByWu")
def test_load(memory: Memory, cli: Cli, clock: Clock) -> None:
    """In the order of creation; by id, by its beginning, by work unit."""
    first = memory.append("one", wu="WU-7").node
    clock.forward(SECOND)
    second = memory.append("two").node

    assert [node.id for node in memory.load()] == [first.id, second.id]
    assert memory.get(first.id).content == memory.get(first.id[:12]).content == "one"
    with pytest.raises(UsageError):
        memory.get("mem-zzzzzz")
    assert [node.id for node in memory.by_wu("WU-7")] == [first.id]
    assert memory.by_wu("WU-9") == []
    assert {node["id"] for node in cli("mem", "list", "--json")["nodes"]} == {first.id, second.id}
    assert [node["id"] for node in cli("mem", "list", "--wu", "WU-7", "--json")["nodes"]] == [first.id]


@row("loadMemory.includeArchived", "queryReady.includeArchived", "queryByWu.includeArchived", "isArchived")
def test_archived_nodes_are_hidden_unless_asked_for(memory: Memory, cli: Cli) -> None:
    """And deleted ones (W10)."""
    kept, archived, deleted = (memory.append(text).node.id for text in ("kept", "archived", "deleted"))
    memory.update(archived, archived=True)
    memory.delete(deleted)

    assert [node.id for node in memory.load()] == [kept]
    assert [node.id for node in memory.by_wu("WU-1")] == [kept]
    assert [node.id for node in memory.ready("WU-1").nodes] == [kept]
    every = memory.load(include_archived=True)
    assert {node.id for node in every} == {kept, archived, deleted}
    assert {node.id for node in memory.by_wu("WU-1", include_archived=True)} == {kept, archived, deleted}
    assert [node.id for node in memory.load(status="deleted")] == [deleted]
    assert archived in {node.id for node in memory.ready("WU-1", include_archived=True).nodes}
    assert [node.id for node in every if memory.is_archived(node)] == [archived]
    shown = cli("mem", "list", "--status", "archived", "--json")
    assert [node["id"] for node in shown["nodes"]] == [archived]
    assert len(cli("mem", "list", "--include-archived", "--json")["nodes"]) == 3
    assert len(cli("mem", "list", "--wu", "WU-1", "--include-archived", "--json")["nodes"]) == 3


@row("appendNode", "createMemoryNode", "mem:create")
def test_append(memory: Memory, cli: Cli) -> None:
    """The text is stored, whatever stands before it (W18); ids do not collide (W3)."""
    made = memory.create("The parser drops tabs", type="bug", priority="P1", tags=["parser"])
    many = memory.append_many({"content": f"note {number}"} for number in range(2_000))

    assert (made.node.content, made.node.type, made.node.tags) == (
        "The parser drops tabs",
        "discovery",
        ["bug", "parser"],
    )
    assert made.node.wu_id == "WU-1"
    assert len({node.id for node in many.nodes}) == 2_000
    with pytest.raises(UsageError):
        memory.append("text", priority="P9")
    with pytest.raises(UsageError, match=r"^Node 2 of 2: Invalid priority: P9"):
        memory.append_many([{"content": "one"}, {"content": "two", "priority": "P9"}])
    said = cli("mem", "create", "--type", "bug", "the text", "--discovered-from", made.node.id, "--json")
    assert said["node"]["content"] == "the text"
    assert said["node"]["wu_id"] == "WU-1"


@row("queryReady", "queryReadyNodes", "mem:ready")
def test_ready(memory: Memory, cli: Cli, clock: Clock) -> None:
    """By priority, then age; what an open node blocks waits (W14)."""
    made = []
    for text, priority in (("c", None), ("b", "P1"), ("a", "P0"), ("d", None)):
        clock.forward(SECOND)
        made.append(memory.append(text, priority=priority).node.id)
    memory.relate(made[2], "blocks", made[3])

    found = memory.ready("WU-1")

    assert [node.content for node in found.nodes] == ["a", "b", "c"]
    assert memory.ready().as_json() == found.as_json()
    assert [(each.node.id, each.blocked_by) for each in found.blocked] == [(made[3], [made[2]])]
    memory.update(made[2], closed=True)
    assert [node["content"] for node in cli("mem", "ready", "--wu", "WU-1", "--json")["nodes"]] == [
        "b",
        "c",
        "d",
    ]


@row(
    "validateMemoryNode",
    "validateMemoryNode → success",
    "validateMemoryNode → error.issues",
    "validateRelationship",
)
def test_validate(memory: Memory) -> None:
    """None, or the first fault as a sentence."""
    node = {
        "id": "mem-abc1",
        "type": "note",
        "lifecycle": "wu",
        "content": "x",
        "created_at": "2025-01-15T00:00:00Z",
    }
    edge = {"from_id": "mem-abc1", "to_id": "mem-def2", "type": "blocks"}

    assert memory.validate_node(node) is None
    assert "type must be 'session'" in str(memory.validate_node({**node, "type": "thought"}))
    assert "content is missing" in str(memory.validate_node({**node, "content": None}))
    assert "created_at" in str(memory.validate_node({**node, "created_at": "now"}))
    assert memory.validate_relation(edge) is None
    assert "to_id" in str(memory.validate_relation({**edge, "to_id": "abc"}))


@row(
    "createCheckpoint",
    "createCheckpoint.wuId",
    "createCheckpoint.content",
    "createCheckpoint.metadata",
    "mem:checkpoint",
)
def test_checkpoint(memory: Memory, cli: Cli, repo: Path) -> None:
    """Note, progress, next steps and trigger, with the diff stat that git gives."""
    (repo / "README").write_text("changed\n")

    made = memory.checkpoint(
        "Criteria 1-3 done", wu="WU-7", progress="3 of 5", next_steps="4", trigger="manual"
    )

    assert (made.node.type, made.node.wu_id) == ("checkpoint", "WU-7")
    assert made.node.content == "Checkpoint: Criteria 1-3 done"
    assert {"progress": "3 of 5", "nextSteps": "4", "trigger": "manual"}.items() <= made.node.metadata.items()
    assert "README" in str(made.node.metadata["gitDiffStat"])
    said = cli(
        "mem", "checkpoint", "half way", "--progress", "p", "--next-steps", "n", "--trigger", "t", "--json"
    )
    assert said["node"]["wu_id"] == "WU-1"


@row("startSession", "mem:start", "initMemory", "mem:init")
def test_sessions_and_init(log: Log, cli: Cli) -> None:
    """A session has an id and a name; nothing must be set up before the first write."""
    assert log.memory.append("before any init").commit

    started = log.sessions.start(wu="WU-9")

    assert started.session_id.startswith("sess-")
    assert cli("session", "start", "--client", "codex", "--json")["display_name"]
    assert cli("setup", "--json")["log"]


@row("agent:session:end")
def test_a_session_ends_with_a_summary(log: Log, cli: Cli) -> None:
    """Everybody sees what it did."""
    log.sessions.start(name="Planck")
    assert log.sessions.end(summary="Reader done").summary == "Reader done"
    started = cli("session", "start", "--name", "Curie", "--json")["session_id"]
    ended = cli("session", "end", "--summary", "Writer\nhalf", "--as", started, "--json")
    listed = {each["display_name"]: each["summary"] for each in cli("roster", "--all", "--json")["sessions"]}

    assert ended["summary"] == "Writer half"
    assert {"Planck": "Reader done", "Curie": "Writer half"}.items() <= listed.items()
    assert "Reader done" in cli("roster", "--all")
    assert "Planck ends: Reader done" in cli("log")


@row(
    "generateContext", "generateContext.wuId", "generateContext.maxSize", "generateContext → contextBlock",
    "generateContext → stats.totalNodes", "mem:context",
)  # fmt: skip
def test_context(memory: Memory, cli: Cli, clock: Clock) -> None:
    """In its order, each node once, within the budget in bytes, and counted truthfully (W12)."""
    assert memory.context("WU-1", roster=False).block == ""
    ids = {}
    for type, lifecycle in (
        ("note", "project"),
        ("summary", "wu"),
        ("checkpoint", "wu"),
        ("discovery", "wu"),
    ):
        clock.forward(SECOND)
        ids[type] = memory.append(f"the {type} — é", type=type, lifecycle=lifecycle).node.id

    found = memory.context(roster=False)

    places = [found.block.index(word) for word in ("## Project Profile", ids["note"], "## Summaries", ids["summary"],
                                                   "## WU Context", ids["checkpoint"], "## Discoveries",
                                                   ids["discovery"])]  # fmt: skip
    assert places == sorted(places)
    assert all(found.block.count(id) == 1 for id in ids.values())
    assert found.block.startswith("<!--")
    assert found.total == 4
    assert memory.context("WU-1", roster=False).block == found.block
    small = memory.context("WU-1", roster=False, max_size=250)
    assert len((small.block + "\n").encode()) <= 250
    assert sum(map(len, small.included.values())) + sum(small.left_out.values()) == small.total == 4
    said = cli("mem", "context", "--wu", "WU-1", "--no-roster", "--max-size", "300")
    assert 0 < len(said.encode()) <= 300
    assert cli("mem", "context", "--json")["total"] == 4


@row(
    "generateContext.sortByDecay", "generateContext.trackAccess", "generateContext.halfLifeMs", "generateContext.now",
    "generateContext → stats.accessTracked",
)  # fmt: skip
def test_context_by_decay(repo: Path, log: Log, memory: Memory, cli: Cli, clock: Clock) -> None:
    """What matters first; readings are counted for what is shown, without a commit."""
    old = memory.append("old and grave", type="note", priority="P0").node.id
    clock.forward(10 * DAY)
    young = memory.append("young and light", type="note", priority="P3").node.id

    by_age = memory.context("WU-1", roster=False).block
    by_decay = memory.context("WU-1", roster=False, by_decay=True).block
    quick = memory.context("WU-1", roster=False, by_decay=True, half_life=HOUR).block
    with gitmem.open(str(repo), machine="test", commit_after=0, now=lambda: START + 10 * DAY) as other:
        same = other.memory.context("WU-1", roster=False, by_decay=True).block

    assert by_age.index(young) < by_age.index(old)
    assert by_decay.index(old) < by_decay.index(young)
    assert quick.index(young) < quick.index(old)
    assert same == by_decay
    tip = log.store.git.tip("refs/gitmem/log")
    tracked = memory.context("WU-1", track_access=True)
    assert tracked.access_tracked == 2
    assert memory.access_stats(old).count == 1
    assert log.store.git.tip("refs/gitmem/log") == tip
    assert cli("mem", "context", "--track-access", "--json")["access_tracked"] == 2
    assert old in cli("mem", "context", "--as-of", "2026-10-30")


@row(
    "recordAccess", "recordAccessBatch", "getAccessStats", "recordAccess → metadata.access.count",
    "recordAccess → metadata.access.last_accessed_at", "getAccessStats → count", "getAccessStats → last_accessed_at",
    "metadata.access",
)  # fmt: skip
def test_access(memory: Memory, cli: Cli, clock: Clock) -> None:
    """Counts are sums of events; what is archived survives them (W6)."""
    one, two = (memory.append(text).node.id for text in ("one", "two"))
    memory.update(two, archived=True)
    clock.forward(HOUR)
    never = memory.access_stats(one)

    memory.record_access(one)
    memory.record_access_batch([one, two])

    assert (never.count, never.last_accessed_at) == (0, None)
    assert [memory.access_stats(id).count for id in (one, two)] == [2, 1]
    assert str(memory.access_stats(one).last_accessed_at).startswith("2026-")
    assert memory.get(one).accesses == 2
    assert memory.get(two).content == "two"
    assert "read 2 times, last " in cli("show", one)


@row(
    "computeDecayScore", "computeDecayScore.now", "computeDecayScore.halfLifeMs", "computeRecencyScore",
    "computeAccessScore", "computeImportanceScore", "DEFAULT_HALF_LIFE_MS", "IMPORTANCE_BY_PRIORITY",
)  # fmt: skip
def test_the_score(memory: Memory, cli: Cli, clock: Clock) -> None:
    """recency × (1 + access) × importance, with the numbers of the page."""
    id = memory.append("text", priority="P1").node.id
    for _ in range(10):
        memory.record_access(id)
    node = memory.get(id)
    then = START + memory.DEFAULT_HALF_LIFE

    recency, access, importance = (
        memory.recency_score(node, now=then), memory.access_score(node), memory.importance_score(node)
    )  # fmt: skip

    assert memory.DEFAULT_HALF_LIFE == 30 * DAY
    assert memory.IMPORTANCE_BY_PRIORITY == {"P0": 2, "P1": 1.5, "P2": 1, "P3": 0.5}
    assert (recency, access, importance) == pytest.approx((math.exp(-1), math.log1p(10) / 10, 1.5))
    assert memory.decay_score(id, now=then) == pytest.approx(recency * (1 + access) * importance)
    assert memory.decay_score(node, now=then, half_life=15 * DAY) < memory.decay_score(node, now=then)
    assert memory.decay_score(id) == memory.decay_score(id, now=clock())
    with pytest.raises(UsageError):
        memory.decay_score(id, half_life=0)
    assert cli("show", id, "--json")["score"] > 0


@row(
    "archiveByDecay", "archiveByDecay.threshold", "archiveByDecay.dryRun", "archiveByDecay.halfLifeMs",
    "archiveByDecay.now", "archiveByDecay → archivedIds", "archiveByDecay → retainedIds",
    "archiveByDecay → skippedIds", "archiveByDecay → totalProcessed", "DEFAULT_DECAY_THRESHOLD",
)  # fmt: skip
def test_archive(memory: Memory, cli: Cli, clock: Clock) -> None:
    """What is below the threshold; project nodes are protected, and twice is as good as once."""
    old = memory.append("old").node.id
    project = memory.append("rule", lifecycle="project").node.id
    clock.forward(80 * DAY)
    young = memory.append("young").node.id

    tried = memory.archive_by_decay(dry_run=True)
    done = memory.archive_by_decay(threshold=memory.DEFAULT_DECAY_THRESHOLD)
    again = memory.archive_by_decay()

    assert memory.DEFAULT_DECAY_THRESHOLD == 0.1
    assert tried.archived_ids == done.archived_ids == [old]
    assert (done.retained_ids, done.skipped_ids, done.total_processed) == ([young], [project], 3)
    assert tried.commit is None
    assert (again.archived_ids, again.commit, set(again.skipped_ids)) == ([], None, {old, project})
    assert memory.archive_by_decay(half_life=HOUR, now=clock() + DAY, dry_run=True).archived_ids == [young]
    with pytest.raises(UsageError):
        memory.archive_by_decay(threshold=0)
    said = cli("mem", "archive", "--threshold", "0.1", "--dry-run", "--json")
    assert {"archived_ids", "retained_ids", "skipped_ids", "total_processed"} <= said.keys()


@row(
    "cleanupMemory", "cleanupExpired", "cleanupMemory.decay", "cleanupMemory.decayThreshold",
    "cleanupMemory.halfLifeMs", "cleanupMemory.ttl", "cleanupMemory.sessionId", "cleanupMemory.dryRun",
    "cleanupMemory → removedIds", "cleanupMemory → retainedIds", "cleanupMemory → bytesFreed",
    "cleanupMemory → compactionRatio", "cleanupMemory → breakdown", "cleanupMemory → breakdown.decayArchived",
    "cleanupMemory → decayResult", "mem:cleanup", "metadata.sensitive",
)  # fmt: skip
def test_cleanup(memory: Memory, cli: Cli, clock: Clock) -> None:
    """Ephemeral, expired, of a session; sensitive and project nodes stay; decay in the same go."""
    made = {
        "ephemeral": memory.append("ephemeral", lifecycle="ephemeral").node.id,
        "sensitive": memory.append("sensitive", lifecycle="ephemeral", sensitive=True).node.id,
        "project": memory.append("project", lifecycle="project").node.id,
        "note": memory.append("note", type="note", session="550e8400-e29b-41d4-a716-446655440000").node.id,
        "old": memory.append("old").node.id,
    }
    clock.forward(80 * DAY)
    young = memory.append("young").node.id

    tried = memory.cleanup(dry_run=True, ttl=79 * DAY)
    found = memory.cleanup(session="550e8400-e29b-41d4-a716-446655440000", decay=True, decay_threshold=0.1,
                           half_life=30 * DAY)  # fmt: skip

    assert set(tried.removed_ids) == {made["ephemeral"], made["note"], made["old"]}
    assert set(found.removed_ids) == {made["ephemeral"], made["note"]}
    assert {made["sensitive"], made["project"], young} <= set(found.retained_ids)
    assert memory.get(made["sensitive"]).sensitive
    assert (found.bytes_freed, found.compaction_ratio) == (0, pytest.approx(2 / 6))
    assert found.breakdown.decay_archived == 1
    assert found.decay_result is not None
    assert found.decay_result.archived_ids == [made["old"]]
    said = cli("mem", "cleanup", "--decay", "--ttl", "30d", "--dry-run", "--json")
    assert {
        "removed_ids",
        "retained_ids",
        "bytes_freed",
        "compaction_ratio",
        "breakdown",
        "decay_result",
    } <= said.keys()
    assert set(said["breakdown"]) == {"ephemeral", "session", "wu", "sensitive", "urgent", "ttl_expired",
                                      "active_session_protected", "decay_archived"}  # fmt: skip


@row(
    "promoteNode", "promoteNode.nodeId", "promoteNode.tag", "promoteNode.dryRun", "promoteNode → promotedNode",
    "ALLOWED_PROMOTION_TAGS", "mem:promote",
)  # fmt: skip
def test_promote(memory: Memory, cli: Cli) -> None:
    """A project node with the tag that came from the other; twice makes no second one."""
    id = memory.append("Parsers are pure").node.id

    tried = memory.promote_node(id, tag="pattern", dry_run=True)
    made = memory.promote_node(id, tag="pattern")
    again = memory.promote_node(id[:12], tag="pattern")

    assert tried.commit is None
    assert made.promoted_node.lifecycle == "project"
    assert "pattern" in made.promoted_node.tags
    assert again.promoted_node.id == made.promoted_node.id
    edges = memory.show(made.promoted_node.id).relations
    assert "discovered_from" in str(
        [plain.as_json() if hasattr(plain, "as_json") else plain for plain in edges]
    )
    assert set(memory.PROMOTION_TAGS) == {
        "decision", "convention", "pattern", "pitfall", "interface", "invariant", "faq"
    }  # fmt: skip
    with pytest.raises(UsageError):
        memory.promote_node(id, tag="thought")
    assert cli("mem", "promote", id, "--tag", "pattern", "--dry-run", "--json")
    assert made.promoted_node.id in json.dumps(cli("mem", "promote", id, "--tag", "pattern", "--json"))


@row(
    "summarizeWu", "mem:summarize", "promoteFromWu", "promoteFromWu.wuId", "promoteFromWu.tag",
    "promoteFromWu → promotedNodes", "metadata.summarized_into",
)  # fmt: skip
def test_summarize_and_promote(memory: Memory, cli: Cli) -> None:
    """The summary is found by `promote` (W11), stands in the context once, and its sources no more (W12)."""
    sources = [memory.append(f"found {number}").node.id for number in range(3)]

    summary = memory.summarize("WU-1").summary
    block = memory.context("WU-1", roster=False).block
    promoted = memory.promote_from_wu("WU-1", tag="decision")

    assert [memory.get(id).summarized_into for id in sources] == [summary.id] * 3
    assert block.count(summary.id) == 1
    assert not any(f"- [{id}] (" in block for id in sources)
    assert len(promoted.promoted_nodes) == 1
    with pytest.raises(UsageError):
        memory.summarize("WU-1")
    memory.append("one more")
    assert cli("mem", "summarize", "--wu", "WU-1", "--json")["summary"]
    assert len(cli("mem", "promote", "--wu", "WU-1", "--tag", "decision", "--json")["promoted_nodes"]) == 2


@row(
    "generateProfile", "generateProfile.tag", "generateProfile.limit", "generateProfile → profileBlock",
    "generateProfile → stats.totalProjectNodes", "generateProfile → stats.byTag", "DEFAULT_PROFILE_LIMIT",
    "mem:profile",
)  # fmt: skip
def test_profile(memory: Memory, cli: Cli, clock: Clock) -> None:
    """Project nodes, the youngest first, with counts by tag."""
    for number in range(25):
        clock.forward(SECOND)
        memory.append(f"rule {number}", lifecycle="project", tags=["decision" if number % 2 else "pattern"])

    found = memory.profile()

    assert memory.DEFAULT_PROFILE_LIMIT == len(found.nodes) == 20
    assert (found.total, found.by_tag) == (25, {"pattern": 13, "decision": 12})
    assert "## Project Profile" in found.block
    assert re.search(r"^- \[mem-\w{22}\] \(2026-10-26, \w+, pattern\): rule 24", found.block, re.MULTILINE)
    assert len(memory.profile(tag="decision", limit=10).nodes) == 10
    assert "## Project Profile" in cli("mem", "profile", "--tag", "decision", "--limit", "10")
    assert "total" in json.dumps(cli("mem", "profile", "--json"))
    assert "by_tag" in json.dumps(cli("mem", "profile", "--json"))


@row(
    "indexProject", "getDefaultSources", "indexProject.dryRun", "indexProject.additionalSources",
    "indexProject → nodesCreated", "indexProject → nodesUpdated", "indexProject → sourcesScanned",
    "indexProject → source_path", "mem:index",
)  # fmt: skip
def test_index(memory: Memory, cli: Cli, repo: Path) -> None:
    """By content: unchanged is left, changed changes its node (W15), and nothing is there twice."""
    (repo / "README.md").write_text("# A shop\n\nIt sells.\n")
    (repo / "docs").mkdir()
    (repo / "docs/RULES.md").write_text("# Rules\n\nNo globals.\n")

    tried = memory.index_project(dry_run=True)
    first = memory.index_project("docs/RULES.md=index:conventions")
    (repo / "README.md").write_text("# A shop\n\nIt sells and buys.\n")
    second, third = memory.index_project(), memory.index_project()

    assert tried.sources_scanned
    assert memory.load() and tried.commit is None
    assert (first.count("created"), second.count("updated"), third.count("created", "updated")) == (2, 1, 0)
    nodes = [node for node in memory.load() if "source_path" in node.metadata]
    assert {node.metadata["source_path"] for node in nodes} == {"README.md", "docs/RULES.md"}
    assert all({"source_hash", "indexed_at"} <= node.metadata.keys() for node in nodes)
    assert {"README.md", "LUMENFLOW.md", "package.json", "AGENTS.md"} <= {
        source.path for source in memory.default_sources()
    }
    said = cli("mem", "index", "--source", "docs/RULES.md=index:conventions", "--dry-run", "--json")
    assert {"nodes_created", "nodes_updated", "sources_scanned"} <= said.keys()


@row("triageBugs", "mem:triage")
def test_triage(memory: Memory, cli: Cli) -> None:
    """Open discoveries; one becomes a work unit and is open no more, one is put away with a reason."""
    one, two, three = (
        memory.append(text, type="bug").node.id for text in ("Tabs are lost", "Spaces too", "Noise")
    )

    assert {node.id for node in memory.triage().discoveries} == {one, two, three}
    memory.triage_promote(one, wu="WU-5", lane="Core")
    memory.triage_archive(three, reason="no bug")

    assert [node.id for node in memory.triage().discoveries] == [two]
    assert memory.get(three).reason == "no bug"
    assert two in cli("mem", "triage")


@row("mem:recover")
def test_recover(memory: Memory, cli: Cli) -> None:
    """Checkpoint and next steps, whatever directory it is called from (W17)."""
    memory.checkpoint("half way", next_steps="write the tests")

    found = memory.recover()

    assert found.checkpoint is not None
    assert "write the tests" in found.block
    assert len(found.block.encode()) < 4_096
    assert "write the tests" in cli("mem", "recover")


@row("mem:delete", "mem:export")
def test_delete_and_export(memory: Memory, cli: Cli, clock: Clock) -> None:
    """Gone from every answer (W10), by id, tag or age."""
    one, two = (memory.append(text, tags=[text]).node.id for text in ("one", "two"))
    clock.forward(DAY)
    three = memory.append("three").node.id

    assert memory.delete(tags=["one"], dry_run=True).ids == [one]
    memory.delete(one)
    memory.delete(older_than=HOUR)

    assert [node.id for node in memory.load()] == [three]
    for answer in (memory.context("WU-1").block, str(memory.ready("WU-1")), memory.export().document):
        assert one not in answer
        assert two not in answer
    assert cli("mem", "delete", "--tag", "one", "--older-than", "30d", "--dry-run", "--json")
    assert "three" in cli("mem", "export")
    assert cli("mem", "export", "--format", "json", "--json")["count"] == 1
    assert json.loads(cli("mem", "export", "--format", "jsonl").splitlines()[0])["id"] == three


# --- schemas and nodes


@row("MemoryNodeSchema", "RelationshipSchema", "MEMORY_NODE_TYPES", "MEMORY_LIFECYCLES", "RELATIONSHIP_TYPES")
def test_schemas(memory: Memory, cli: Cli) -> None:
    """As JSON Schema, and as words."""
    assert json.loads(cli("schema", "node"))["properties"]["type"]["enum"] == list(memory.NODE_TYPES)
    assert records.schema("relation")["properties"]["type"]["enum"] == list(memory.RELATION_TYPES)
    assert memory.NODE_TYPES == ("session", "discovery", "checkpoint", "note", "summary")
    assert memory.LIFECYCLES == ("ephemeral", "session", "wu", "project")
    assert memory.RELATION_TYPES == ("blocks", "parent_child", "related", "discovered_from", "supersedes")


@row(
    "MemoryNode.id", "MemoryNode.type", "MemoryNode.lifecycle", "MemoryNode.content", "MemoryNode.created_at",
    "MemoryNode.updated_at", "MemoryNode.wu_id", "MemoryNode.session_id", "MemoryNode.metadata", "MemoryNode.tags",
    "metadata.priority", "metadata.status", "metadata.lane",
)  # fmt: skip
def test_the_fields_of_a_node(memory: Memory, cli: Cli, clock: Clock) -> None:
    """Each by its name, as it was given."""
    given = {"type": "note", "lifecycle": "project", "wu": "SHOP-7", "session": "550e8400-e29b", "priority": "P0",
             "tags": ["a", "b"], "metadata": {"x": 1, "y": 2}, "lane": "Core"}  # fmt: skip
    id = memory.append("text", **given).node.id
    clock.forward(SECOND)
    memory.update(id, content="other", metadata={"x": None}, closed=True)

    node = memory.get(id)

    assert re.fullmatch(r"mem-[0-9a-z]{22}", node.id)
    assert (node.type, node.lifecycle, node.content) == ("note", "project", "other")
    assert node.created_at < str(node.updated_at)
    assert (node.wu_id, node.session_id, node.lane) == ("SHOP-7", "550e8400-e29b", "Core")
    assert (node.tags, node.metadata) == (["a", "b"], {"y": 2})
    assert (node.priority, node.status, node.closed) == ("P0", "closed", True)
    assert cli("mem", "update", id, "--meta", "z=3", "--status", "active", "--content", "x", "--json")[
        "commit"
    ]
    assert memory.get(id).metadata == {"y": 2, "z": 3}


@row("relationships.jsonl", "metadata.blocked_by")
def test_relations(memory: Memory, cli: Cli) -> None:
    """All four kinds can be written."""
    one, two = (memory.append(text).node.id for text in ("one", "two"))

    for type in memory.RELATION_TYPES[:4]:
        assert memory.relate(one, type, two).type == type

    assert [each.node.id for each in memory.ready("WU-1").blocked] == [two]
    assert cli("mem", "relate", one, "blocks", two, "--remove", "--json")["removed"]
    assert memory.ready("WU-1").blocked == []


@row("metadata.replaces")
def test_a_node_replaces_another_one(memory: Memory, cli: Cli) -> None:
    """Only the newer one is in a context."""
    old = memory.append("Floats").node
    new = memory.create("Integers", supersedes=[old]).node

    assert memory.show(old).superseded_by == new.id
    assert memory.context("WU-1").nodes == [new.id]
    again = cli("mem", "create", "Cents", "--supersedes", new.id, "--json")["node"]["id"]
    assert memory.show(old).superseded_by == again


@row("mem:ready --type")
def test_ready_of_a_type(memory: Memory, cli: Cli) -> None:
    """Discoveries by default."""
    note, bug = memory.append("note", type="note").node.id, memory.append("bug", type="bug").node.id

    assert [node.id for node in memory.ready("WU-1").nodes] == [bug]
    assert [node.id for node in memory.ready("WU-1", type="note").nodes] == [note]
    assert [node["id"] for node in cli("mem", "ready", "--type", "bug", "--json")["nodes"]] == [bug]


@row("memory.decay")
def test_nothing_archives_by_itself(log: Log, memory: Memory, clock: Clock) -> None:
    """Not at the end of a session either."""
    id = memory.append("old", type="note").node.id
    clock.forward(1_000 * DAY)
    log.sessions.start(wu="WU-1")
    log.sessions.end(done=True)

    assert memory.get(id).status == "active"


@row("memory.enforcement.auto_checkpoint", "memory.enforcement.require_checkpoint_for_done")
def test_checkpoints_are_saved_and_asked_for_by_settings(log: Log, repo: Path, git: Git) -> None:
    """Hooks count tool calls, and nobody says "done" without a checkpoint; one that a hook saved counts."""
    git("config", "gitmem.checkpointEvery", "30", cwd=repo)
    git("config", "gitmem.checkpointGate", "block", cwd=repo)
    log.sessions.start(wu="WU-7")
    hook_state.cache_settings(log.store)
    assert Path(log.store.repo.state, "checkpoint-every").read_text() == "30\n"
    with pytest.raises(GateError):
        log.sessions.end(done=True)

    log.sessions.change(activity="rounding")
    saved = checkpoints.write_automatic(log.store, log.caller, "tool-calls")
    assert saved is not None and saved.metadata["trigger"] == "auto-tool-calls"
    assert checkpoints.write_automatic(log.store, log.caller, "tool-calls") is None
    assert "WU-7 is done" in str(log.sessions.end(done=True).remark)


def test_a_node_stands_for_its_id_wherever_one_is_asked_for(memory: Memory) -> None:
    """And so does the answer that has it; what has no id is refused in a sentence, not by SQLite."""
    made, node = memory.append("made"), memory.append("read").node

    assert memory.relate(made, "blocks", node).to_id == node.id
    assert memory.append("came of it", discovered_from=made).commit
    assert memory.append_many([{"content": "and this", "discovered_from": node}]).commit
    assert memory.update(made, node, priority="P2").ids == [made.node.id, node.id]
    assert memory.show(made).node.priority == memory.get(node).priority == "P2"
    assert memory.decay_score(made) == memory.decay_score(made.node.id)
    assert len(memory.record_access(made, node).accesses) == 2
    assert memory.promote(made, tag="pattern").promoted_nodes
    assert len(memory.summarize("WU-1", only=[made, node]).source_ids) == 2
    assert memory.delete(made).ids == [made.node.id]
    for nothing in (7, None, {"id": node.id}, [node]):
        given: Any = nothing
        for refused in (memory.get, memory.show, memory.delete, memory.update, memory.record_access):
            with pytest.raises(UsageError, match="Invalid id of type"):
                refused(given, **({"priority": "P0"} if refused == memory.update else {}))


# --- signals and the rest


@row("sendSignal", "sendSignal.wuId", "sendSignal.type", "sendSignal.content", "mem:signal")
def test_a_completion_is_an_info_broadcast(
    log: Log, cli: Cli, repo: Path, tmp_path: Path, clock: Clock
) -> None:
    """It reaches the other worktrees at once (W1), with or without a work unit (W19)."""
    other = gitmem.open(str(worktree(repo, tmp_path / "other")), machine="test", commit_after=0, now=clock)
    other.sessions.start(agent_identity="claude:reviewer:other")

    sent = log.signals.send("WU-1 done, WU-2 unblocked", broadcast=True, wu="WU-1")
    cli("signal", "no work unit", "--broadcast")

    assert (sent.signal["intent"], sent.signal["wu_id"]) == ("INFO", "WU-1")
    messages = [signal["message"] for signal in other.inbox(mark=False).signals]
    assert "WU-1 done, WU-2 unblocked" in messages
    assert "no work unit" in messages or "no work unit" in cli("log")
    other.close()


@row(
    "sendSignal.target_agent", "loadSignals", "mem:inbox", "mem:inbox --for", "mem:inbox --no-mark",
    "mem:inbox --unread-only", "markSignalsAsRead", "mem:watch", "loadReceipts",
    "sendSignal.target_role", "sendSignal.delegation_id",
)  # fmt: skip
def test_what_one_read_others_have_not(log: Log, cli: Cli, repo: Path, clock: Clock) -> None:
    """W8, W9: a receipt is for one reader, once."""
    one = gitmem.open(str(repo), machine="test", commit_after=0, now=clock)
    two = gitmem.open(str(repo), machine="test", commit_after=0, now=clock)
    first = one.sessions.start(agent_identity="claude:a:one", name="Planck")
    two.sessions.start(agent_identity="claude:a:two", name="Curie")
    id = log.signals.send("for both", to=["Planck", "Curie"]).signal["signal_id"]

    assert [signal["signal_id"] for signal in one.inbox(mark=False).signals] == [id]
    looked = cli("inbox", "--for", "claude:a:one", "--json")
    assert [signal["signal_id"] for signal in looked["signals"]] == [id]
    assert cli("--as", first.session_id, "inbox", "--count").split()[0] == "1"
    assert one.inbox().unread == 1
    assert one.inbox().unread == 0
    assert [signal["signal_id"] for signal in one.inbox(all=True).signals] == [id]
    (receipt,) = log.receipts(id).receipts
    assert (words_of(receipt.reader_identity), receipt.delivery_state) == ("claude:a:one", "delivered")
    assert receipt.read_at > log.thread(id).signals[0]["created_at"]
    assert f"{id}  delivered" in cli("receipts", id)
    assert two.inbox().unread == 1
    about = log.signals.send("about", broadcast=True, target_role="tester", delegation_id="deleg-1").signal
    assert (about["target_role"], about["delegation_id"]) == ("tester", "deleg-1")
    one.close()
    two.close()


@row("mem:roster", "mem:converged", "state:doctor")
def test_roster_converged_doctor(log: Log, cli: Cli, repo: Path, clock: Clock) -> None:
    """The same words for the same things."""
    with gitmem.open(str(repo), machine="test", commit_after=0, now=clock) as other:
        other.sessions.start(agent_identity="claude:a:one", name="Planck")
        asked = str(log.signals.send("Agree?", to=["Planck"], intent="PROPOSE").signal["signal_id"])
        assert not log.converged(asked).converged
        other.signals.reply(asked, "yes", intent="AGREE")

    assert log.converged(asked).converged
    assert cli("converged", asked, "--json")["converged"]
    assert len(log.roster().sessions) == 2
    assert cli("roster", "--all", "--json")["sessions"]
    assert cli("doctor", "--json")["healthy"] in (True, False)


@row("wu:done promotion", "signal:cleanup")
def test_worktrees_share_one_memory(log: Log, repo: Path, tmp_path: Path, clock: Clock) -> None:
    """Nothing has to be carried home at the end of a work unit, and nothing unread is thrown away (W13)."""
    id = log.memory.append("rule", lifecycle="project").node.id
    with gitmem.open(
        str(worktree(repo, tmp_path / "other")), machine="test", commit_after=0, now=clock
    ) as other:
        other.sessions.start(agent_identity="claude:a:one")
        with log.batch():
            for number in range(600):
                log.signals.send(f"signal {number}", to=["claude:a:one"])
        clock.forward(40 * DAY)

        assert other.memory.get(id).content == "rule"
        assert other.inbox(mark=False, limit=1).unread == 600


@row("signals.jsonl", "signal-receipts.jsonl")
def test_signals_are_imported_as_history(log: Log, cli: Cli, tmp_path: Path) -> None:
    """Broadcasts are no news; the directed one is unread until its receipt."""
    folder = tmp_path / "project/.lumenflow/memory"
    folder.mkdir(parents=True)
    base = {"message": "done", "created_at": "2026-10-25T23:00:00.000Z", "read": False, "type": "completion"}
    some: list[dict[str, object]] = [
        {**base, "id": "sig-aaaa1111"}, {**base, "id": "sig-bbbb2222", "target_agent": "codex:implementer:host42"},
        {**base, "id": "sig-cccc3333", "target_agent": "codex:implementer:host42"},
    ]  # fmt: skip
    (folder / "signals.jsonl").write_text("".join(json.dumps(each) + "\n" for each in some))
    receipt = {"signal_id": "sig-cccc3333", "read_at": "2026-10-25T23:30:00.000Z"}
    (folder / "signal-receipts.jsonl").write_text(json.dumps(receipt) + "\n")

    found = log.import_lumenflow(str(tmp_path / "project"))

    assert found.counts["signals"]["imported"] == 3
    unread = log.inbox(mark=False, for_="lumenflow:codex:implementer:host42").signals
    assert [signal["signal_id"] for signal in unread] == ["sig-bbbb2222"]
    assert "nothing new" in cli("import", "lumenflow", str(tmp_path / "project"))


@row("delegation-registry.jsonl")
def test_the_delegation_registry(cli: Cli, tmp_path: Path) -> None:
    """A pending delegation is a task that nobody has taken."""
    registry = tmp_path / "old" / ".lumenflow" / "state" / "delegation-registry.jsonl"
    registry.parent.mkdir(parents=True)
    line = {
        "id": "dlg-a1b2", "parentWuId": "WU-1", "targetWuId": "WU-7", "lane": "Framework: Core", "intent": "delegation",
        "delegatedAt": "2025-01-15T10:00:00.000Z", "status": "pending", "completedAt": None,
        "requested_role": {"lifecycle_role": "implementer", "specialty_profile": "test"},
    }  # fmt: skip
    registry.write_text(json.dumps(line) + "\n")

    cli("import", "lumenflow", str(tmp_path / "old"))

    (task,) = cli("task", "list", "--json")["tasks"]
    assert (task["wu_id"], task["state"]) == ("WU-7", "submitted")
