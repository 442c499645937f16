"""I18, I29, M13: private nodes stay in this clone and with their reader; nothing that reads the log can meet them."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from gitmem import records
from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.doctor import doctor
from gitmem.errors import StoreError, UsageError
from gitmem.log.lines import CommitMessage, LogEntry
from gitmem.log.write_ahead import WriteAheadLog, encode_record
from gitmem.memory import edit, listing, node_tables, reader_store, relations, search, upkeep
from gitmem.records.record_types import NodeFields
from gitmem.store import Store

from ..sandbox import DAY, START, acting, bodies, carry, new_repo, open_store
from .desk import Desk, raw

SECRET = "the private guess about rounding"


@pytest.fixture
def desk(repo: Path) -> Desk:
    return Desk(repo, agent_identity="codex:reviewer:shop")


def keep(desk: Desk, text: str = SECRET, **options: object) -> str:
    return edit.create(desk.store, desk.caller, text, private=True, **options).node.id


def folder(desk: Desk) -> Path:
    return Path(reader_store.folder_of(desk.store.repo, desk.caller.reader))


def seen(desk: Desk, who: Caller | None = None) -> Store:
    """The store as the desk's caller sees it, or as somebody else does."""
    return reader_store.for_reader(desk.store, lambda: who or desk.caller)


def listed(desk: Desk, who: Caller | None = None) -> list[str]:
    return [node.id for node in listing.listing(seen(desk, who), include_archived=True).nodes]


def files_with(root: Path, text: str) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_i18_a_private_node_is_never_on_the_log_and_reaches_no_other_clone(
    desk: Desk, tmp_path: Path, repo: Path
) -> None:
    shared = desk.write("the shared finding about rounding")
    id = keep(desk, discovered_from=shared)
    edit.change(seen(desk), desk.caller, [id], tags=["guess"])

    assert not any(SECRET.encode() in line or id.encode() in line for line in bodies(desk.store))
    assert [path.parent for path in files_with(repo, SECRET)] == [folder(desk)]
    assert id not in listing.export(desk.store, format="jsonl").document
    other = open_store(new_repo(tmp_path / "other"), desk.clock)
    carry(desk.store, other)
    assert [node.id for node in listing.all_nodes(other)] == [shared]


@pytest.mark.usefixtures("commits")
def test_i18_its_reader_finds_it_marked_in_every_session_and_worktree(desk: Desk) -> None:
    shared, id = desk.write("rounding of prices"), keep(desk)
    again = acting(
        desk.store, lifecycle.start(desk.store, CallerClaims(), agent_identity="codex:reviewer:shop")
    )

    store = seen(desk, again)
    found = listing.listing(store)
    assert [(node.id, node.private) for node in found.nodes] == [(id, True), (shared, False)]
    assert found.total == 2
    assert found.nodes[0].as_json()["private"] is True
    assert "private" not in found.nodes[1].as_json()
    both = search.search(store, "rounding")
    assert {hit.node.id: hit.node.private for hit in both.hits} == {shared: False, id: True}
    assert search.search(store, "rounding", limit=1).more
    assert {hit.node.id for hit in search.search(store, "guess").hits} == {id}
    shown = listing.show(store, id[:10])
    assert (shown.node.content, shown.node.private, shown.commit) == (SECRET, True, None)


def test_i29_another_agent_and_an_unknown_caller_do_not_see_it(desk: Desk) -> None:
    id = keep(desk)
    other = acting(
        desk.store, lifecycle.start(desk.store, CallerClaims(), agent_identity="codex:worker:shop")
    )

    assert listed(desk) == [id]
    assert listed(desk, other) == []
    assert listing.listing(desk.store).nodes == []
    assert listing.listing(reader_store.for_reader(desk.store, lambda: None)).nodes == []
    assert search.search(seen(desk, other), "guess").hits == []
    for store in (desk.store, seen(desk, other)):
        with pytest.raises(UsageError, match="No such node"):
            listing.show(store, id)
        for change in (upkeep.delete, edit.change):
            with pytest.raises(UsageError, match="No such node"):
                change(store, other, [id], reason="x")  # type: ignore[operator]


@pytest.mark.usefixtures("commits")
def test_i18_it_can_be_changed_deleted_restored_and_archived(desk: Desk) -> None:
    shared, id = desk.write("shared"), keep(desk)
    tip = desk.tip()

    store = seen(desk)
    edit.change(store, desk.caller, [id], content="another guess", priority="P1")
    assert upkeep.delete(store, desk.caller, [id]).ids == [id]
    assert listing.show(store, id).node.deleted
    edit.change(store, desk.caller, [id], clear=["deleted", "priority"])
    assert desk.tip() == tip
    with pytest.raises(UsageError, match="Some of these nodes are private"):
        upkeep.delete(store, desk.caller, [id, shared])

    desk.clock.value += 200 * DAY
    done = upkeep.archive(seen(desk), desk.caller)
    assert sorted(done.archived_ids) == sorted([id, shared])
    node = listing.show(seen(desk), id).node
    assert (node.content, node.archived) == ("another guess", True)
    assert not any(id.encode() in line for line in bodies(desk.store))


def test_i18_no_line_of_the_log_names_it(desk: Desk) -> None:
    id, shared = keep(desk), desk.write("shared")
    before = bodies(desk.store)

    for refused in (
        lambda: desk.write("follows", discovered_from=id),
        lambda: desk.write("follows", supersedes=[id]),
        lambda: edit.relate(desk.store, desk.caller, shared, "related", id),
        lambda: edit.relate(seen(desk), desk.caller, shared, "related", id),
        lambda: edit.create(seen(desk), desk.caller, "follows", supersedes=[id[:12]]),
    ):
        with pytest.raises(UsageError, match="Private node"):
            refused()
    edit.relate(seen(desk), desk.caller, id, "related", shared)

    assert bodies(desk.store) == before
    (relation,) = listing.show(seen(desk), id).relations
    assert relation["other"] == "shared"


def test_m13_only_its_user_can_open_the_files_whatever_the_umask_and_the_sharing(
    desk: Desk, repo: Path
) -> None:
    with (repo / ".git" / "config").open("a") as config:
        config.write("[core]\n\tsharedRepository = world\n")
    old = os.umask(0)
    try:
        keep(desk)
    finally:
        os.umask(old)

    modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder(desk).parent, folder(desk))}
    assert {mode & 0o777 for mode in modes} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder(desk).iterdir()} == {0o600}


@pytest.mark.parametrize("what", ["mode", "link"])
def test_m13_an_open_or_linked_folder_is_neither_read_nor_written_and_doctor_names_it(
    desk: Desk, what: str, tmp_path: Path
) -> None:
    id = keep(desk)
    if what == "mode":
        folder(desk).chmod(0o755)
    else:
        folder(desk).rename(tmp_path / "moved")
        folder(desk).symlink_to(tmp_path / "moved")

    for refused in (lambda: listed(desk), lambda: keep(desk, "more")):
        with pytest.raises(StoreError, match="is open to others or not yours"):
            refused()
    found = [each for each in doctor.examine(desk.store).findings if each.code == "private-open"]
    assert [each.where for each in found] == [str(folder(desk))]
    if what == "mode":
        doctor.fix(desk.store)
        assert listed(desk) == [id]


def test_a_damaged_file_costs_only_what_is_damaged(desk: Desk) -> None:
    first, second = keep(desk), keep(desk, "second")
    (path,) = folder(desk).iterdir()
    content = bytearray(path.read_bytes())
    content[content.index(SECRET.encode())] ^= 1
    path.write_bytes(bytes(content) + b"\0wal1 e 99")

    assert listed(desk) == [second]
    (found,) = [each for each in doctor.examine(desk.store).findings if each.code == "private-damaged"]
    assert found.severity == "problem"
    third = keep(desk, "third")
    assert listed(desk) == [third, second]
    assert first not in listed(desk)


def test_foreign_lines_in_the_file_do_nothing(desk: Desk) -> None:
    """Bytes that are no entry, and a valid line of another stream: only nodes count."""
    id = keep(desk)
    (path,) = folder(desk).iterdir()
    for payload in (
        b"",
        b"[" * 100_000,
        b'["private", "a <a@b>", "s", "", []]\nsignals\t{"at":1}\n',
        b"x\ny\n",
    ):
        with path.open("ab") as file:
            file.write(encode_record(payload))
    other = desk.store.line(
        "session", {"session_id": "sess-private", "event": "start", "display_name": "X", "clone_id": "abc"}
    )
    wal = WriteAheadLog(str(folder(desk)), desk.clock, check_owner=True)
    wal.append(LogEntry([other], CommitMessage("A <a@b>", "s"), token="private"))

    rows = seen(desk).db().execute("SELECT kind FROM line WHERE id NOT IN (SELECT id FROM log.line)")
    assert rows.fetchall() == [("node",)]
    assert listed(desk) == [id]


@pytest.mark.usefixtures("commits")
def test_who_writes_nothing_else_keeps_its_name_and_tells_nothing_of_what_it_writes(desk: Desk) -> None:
    desk.clock.forward(2 * DAY)
    before = set(bodies(desk.store))

    id = keep(desk)

    (renewed,) = set(bodies(desk.store)) - before
    record = records.read_kind("session", renewed)
    assert record is not None and record["session_id"] == desk.caller.session_id
    message = desk.store.git.commit(str(desk.tip())).message
    assert "is at work" in message and SECRET not in message and id not in message


def test_in_a_batch_they_are_refused(desk: Desk) -> None:
    """A batch is all or nothing, and these are not in its commit."""
    entries: list[LogEntry] = []
    desk.store.collect(entries.append)
    try:
        with pytest.raises(UsageError, match="cannot be written in a batch"):
            keep(desk)
    finally:
        desk.store.collect(None)
    assert entries == [] and listed(desk) == []


NODE: NodeFields = {
    "id": "mem-000000000001",
    "type": "note",
    "lifecycle": "wu",
    "content": "",
    "sender_identity": "a:b:c",
}


def test_too_many_are_refused_and_nothing_is_written(desk: Desk) -> None:
    keep(desk)
    lines = reader_store.PrivateLines(str(folder(desk)), desk.clock, bytes_max=700)
    line = desk.store.line("node", {**NODE, "content": "x" * 400})
    with pytest.raises(StoreError, match=r"Too many private nodes: \d+ bytes; at most 700 are valid"):
        lines.append([line], CommitMessage("A <a@b>", "s"))
    assert len(listed(desk)) == 1
    keep(desk, "y" * 1_000)
    with pytest.raises(StoreError, match="has more than 1400 bytes"):
        lines.read()


def test_a_secret_is_refused_in_a_private_node_too(desk: Desk) -> None:
    with pytest.raises(UsageError, match="seems to contain an AWS access key"):
        keep(desk, "AKIA" + "IOSFODNN7" + "ABCDEFG and more")
    assert not folder(desk).exists() or listed(desk) == []


NEW_QUERY = "SELECT type, count(*) FROM node GROUP BY type ORDER BY type"  # of a `mem count` that nobody has written yet


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "in memory"])
def test_a_new_query_counts_them_for_their_reader_only(desk: Desk, is_file: bool) -> None:
    """Also where the index is only in memory, because its file cannot be written."""
    other = acting(
        desk.store, lifecycle.start(desk.store, CallerClaims(), agent_identity="codex:worker:shop")
    )
    shared = desk.write("shared", type="note", tags=["here"])
    keep(desk, tags=["here"]), keep(desk, type="note", tags=["here"], supersedes=[shared])
    if not is_file:
        desk.store.replace_index(sqlite3.OperationalError("attempt to write a readonly database"))

    assert seen(desk).db().execute(NEW_QUERY).fetchall() == [("discovery", 1), ("note", 2)]
    for store in (desk.store, seen(desk, other), reader_store.for_reader(desk.store, lambda: None)):
        assert store.db().execute(NEW_QUERY).fetchall() == [("note", 1)]
    tagged = "SELECT count(*) FROM tag t JOIN node n ON n.id = t.id JOIN line l ON l.id = n.line"
    assert [each.db().execute(tagged).fetchone()[0] for each in (seen(desk), desk.store)] == [3, 1]
    replaced = "SELECT id FROM superseded"
    assert [each.db().execute(replaced).fetchall() for each in (seen(desk), desk.store)] == [[(shared,)], []]


def test_what_one_command_writes_the_next_query_of_the_same_store_sees(desk: Desk) -> None:
    id = keep(desk)
    store = seen(desk)
    assert [node.id for node in listing.listing(store).nodes] == [id]
    shared = desk.write("shared")
    edit.change(store, desk.caller, [id], tags=["guess"])
    second = keep(desk, "second")
    assert [(node.id, node.tags, node.private) for node in listing.all_nodes(store)] == [
        (id, ["guess"], True),
        (shared, [], False),
        (second, [], True),
    ]


def test_what_others_supersede_meanwhile_is_joined_again(desk: Desk) -> None:
    first, second = desk.write("first"), desk.write("second")
    mine = keep(desk, supersedes=[first])
    store = seen(desk)
    assert relations.ends_of(store.db(), [first, second]) == {first: mine}
    third = desk.write("third", supersedes=[second])
    assert relations.ends_of(store.db(), [first, second, third]) == {first: mine, second: third}
    assert relations.ends_of(desk.store.db(), [first, second]) == {second: third}


def test_nobody_can_write_the_index_of_the_log_through_it(desk: Desk) -> None:
    desk.write("shared")
    keep(desk)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        seen(desk).db().execute("DELETE FROM log.node")
    with pytest.raises(sqlite3.OperationalError, match="because it is a view"):
        seen(desk).db().execute("DELETE FROM node")


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "in memory"])
def test_a_line_of_a_peer_with_its_id_does_not_publish_what_its_reader_adds(
    desk: Desk, is_file: bool
) -> None:
    """Who knows the id writes a node with it, older than the private one, and a patch of it."""
    id = keep(desk)
    raw(desk.store, "node", at=START, id=id, content="the node of a peer")
    raw(desk.store, "patch", id="patch-0000", node_ids=[id], tags=["theirs"])
    if not is_file:
        desk.store.replace_index(sqlite3.OperationalError("attempt to write a readonly database"))
    before = bodies(desk.store)

    store = seen(desk)
    assert listed(desk) == [id]
    assert listing.show(store, id).node.private
    edit.change(store, desk.caller, [id], content="more of " + SECRET)
    with pytest.raises(UsageError, match="Private node"):
        edit.create(seen(desk), desk.caller, "follows", supersedes=[id])
    upkeep.delete(seen(desk), desk.caller, [id])
    assert bodies(desk.store) == before


def test_no_query_of_their_reader_makes_a_table_of_all_lines(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To it `line` and `entity_line` are views of two tables: a join might look at all pairs of their rows."""
    monkeypatch.setattr(node_tables.NODE, "most", 3)
    keep(desk)
    shared = desk.write("the shared finding")
    for number in range(4):
        edit.change(desk.store, desk.caller, [shared], content=f"finding {number}")
    store = seen(desk)
    db, asked = store.db(), []
    db.set_trace_callback(asked.append)
    found = listing.ready(store, None)
    db.set_trace_callback(None)

    assert [node.content for node in found.nodes]
    of_lines = [query for query in asked if "JOIN line" in query or "FROM line" in query]
    assert any("ORDER BY l.body" in query for query in of_lines)
    for query in of_lines:
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query}")]
        assert not [step for step in plan if step in ("MATERIALIZE line", "MATERIALIZE entity_line")], query
