"""A program that keeps a log open sends on one snapshot each time; what waits in the write-ahead log counts as before."""

from __future__ import annotations

import _sqlite3
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem import records
from gitmem.api.log import Log
from gitmem.errors import UsageError
from gitmem.index import catch_up, index_file
from gitmem.log import write_ahead
from gitmem.log import write_ahead as wal_record
from gitmem.log.lines import CommitMessage, LogEntry
from gitmem.store import Store
from tests.sandbox import annas
from tests.signing import own_key

OTHER = annas("test:worker:other")


def opened(repo: Path, session: str | None = None, *, commit_after: float = 60) -> Log:
    return gitmem.open(str(repo), session=session, machine="test", commit_after=commit_after)


def begin(repo: Path, name: str, identity: str | None = None) -> str:
    """Start a session and commit that."""
    own_key(repo)
    with opened(repo, commit_after=0) as log:
        found = log.sessions.start(name=name, agent_identity=identity or f"test:worker:{name.lower()}")
        return str(found.session_id)


def append(log: Log, kind: str, **fields: object) -> None:
    """Record a line as another process does that leaves the index alone."""
    entry = LogEntry([log.store.line(kind, fields)], CommitMessage("a <a@b>", "s"), token="abc")
    log.store.log.wal.append(entry)


def say(log: Log, sender: str) -> None:
    """Have somebody without a session say something."""
    append(log, "signal", schema_version="A2A.V1", signal_id="sig-00000000000a", sender_identity=sender,
           intent="INFO", interrupt_class="advisory", message="hello", origin="local")  # fmt: skip


def rename(log: Log, name: str, to: str) -> None:
    """Rename a session, and leave the index alone."""
    begun = (
        log.store.db().execute("SELECT session_id FROM session WHERE display_name = ?", (name,)).fetchone()[0]
    )
    append(log, "session", session_id=str(begun), event="change", display_name=to,
           clone_id=log.store.log.clone_id(), agent_identity=f"test:worker:{name.lower()}")  # fmt: skip


def recipients(log: Log, *to: str) -> object:
    return log.signals.send("hello", to=to).signal["recipients"]


@pytest.fixture
def planck(repo: Path) -> Iterator[Log]:
    """Planck's open log. Nothing is committed by itself, and the index lacks Planck's first signal."""
    session = begin(repo, "Planck")
    begin(repo, "Curie")
    with opened(repo, session) as log:
        recipients(log, "Curie")
        log.inbox(mark=False)
        recipients(log, "Curie")
        yield log


def test_a_send_in_process_writes_nothing_to_the_index(planck: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """And opens it once."""
    before = planck.store.index.db.total_changes

    with monkeypatch.context() as patch:
        patch.setattr(_sqlite3, "connect", lambda *_, **options: pytest.fail("the index is opened again"))
        for _ in range(3):
            assert recipients(planck, "Curie") == [annas("test:worker:curie")]

    assert planck.store.index.db.total_changes == before, "it is not caught up"
    planck.store.caught_up()
    assert planck.store.index.db.total_changes > before
    assert len(planck.thread(str(planck.signals.send("last", to=["Curie"]).signal["thread_id"])).signals) == 1


def test_the_first_signals_of_a_clone_raise_flags_and_leave_the_index_alone(repo: Path) -> None:
    """There are no flags yet, and nothing that they lack."""
    session, to = begin(repo, "Planck"), begin(repo, "Curie")
    with opened(repo, session) as log:
        flags = Path(log.store.repo.state, "flags")
        log.store.caught_up()
        before = log.store.index.db.total_changes
        recipients(log, "Curie")
        assert log.store.index.db.total_changes == before
        assert (flags / to).read_bytes() == b"urgent\n"
        (flags / to).unlink()
        log.store.caught_up()
        assert (flags / to).read_bytes() == b"urgent\n", (
            "they are raised again when the index has read the signal"
        )


def test_a_refusal_is_reconsidered_however_much_was_sent_before(planck: Log) -> None:
    """What this process has recorded earlier is no reason to keep a refusal that rests on an old index."""
    assert planck.store.recorded
    with pytest.raises(UsageError, match="other"):
        recipients(planck, OTHER)
    say(planck, OTHER)

    assert recipients(planck, OTHER) == [OTHER]


def test_a_refused_send_leaves_what_was_sent_before_to_be_committed(repo: Path, planck: Log) -> None:
    """Closing the log commits it."""
    with pytest.raises(UsageError):
        recipients(planck, "Nobody")
    planck.close()

    with opened(repo) as log:
        assert not log.store.waits()


def test_a_name_that_changes_hands_between_two_sends_means_its_new_holder(planck: Log) -> None:
    """Though all that waited before was found to name nobody."""
    assert recipients(planck, "Curie") == [annas("test:worker:curie")]
    say(planck, OTHER)
    assert recipients(planck, "Curie") == [annas("test:worker:curie")]
    rename(planck, "Curie", "Bohr")

    assert recipients(planck, "Bohr") == [annas("test:worker:curie")]


def test_a_session_that_starts_between_two_sends_is_found(repo: Path, planck: Log) -> None:
    """By another process, which may have committed it as well."""
    begin(repo, "Mach")
    assert recipients(planck, "Mach") == [annas("test:worker:mach")]
    begin(repo, "Bohr")
    assert recipients(planck, "Bohr", "Curie") == [annas("test:worker:bohr"), annas("test:worker:curie")]


def test_a_send_that_the_index_does_not_suffice_for_reads_once_what_waits(
    planck: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves the index as it is; so does a broadcast, which needs all that waits."""
    reads, updates = [], []
    real = catch_up.preview
    monkeypatch.setattr(catch_up, "preview", lambda *given: reads.append(1) or real(*given))
    monkeypatch.setattr(Store, "caught_up", updates.append)
    append(planck, "session", session_id="sess-0000", event="start", display_name="Mach", clone_id="c")
    assert recipients(planck, "Curie") == [annas("test:worker:curie")]
    assert reads == [1]

    planck.signals.send("hello", broadcast=True)
    assert (reads, updates) == ([1, 1], [])


@pytest.mark.usefixtures("commits")
def test_a_commit_within_a_send_leaves_the_index_to_the_next_query(planck: Log) -> None:
    """It is open for what waits, and stays so: a commit at once neither writes it nor gives it up."""
    append(planck, "session", session_id="sess-0000", event="start", display_name="Mach", clone_id="c")
    planck.store.commit_after = 0
    index = planck.store.index
    sent = planck.signals.send("hello", to=["Curie"])

    assert sent.commit
    assert planck.store.index is index
    rows = planck.store.db().execute(
        "SELECT count(*) FROM signal WHERE signal_id = ?", (sent.signal["signal_id"],)
    )
    assert rows.fetchone() == (1,)


def test_an_entry_that_is_void_between_two_sends_counts_no_more(planck: Log) -> None:
    """An earlier snapshot has read the entry; the void is behind it."""
    say(planck, OTHER)
    assert recipients(planck, OTHER, "Curie") == [OTHER, annas("test:worker:curie")]
    (file,) = planck.store.log.waiting()
    content = Path(file.path).read_bytes()
    payload, digest = next(
        each for each in wal_record.parse_records(content).entries if b"sig-00000000000a" in each[0]
    )
    assert wal_record.checksum(payload) == digest
    with open(file.path, "ab") as wal:
        wal.write(wal_record.encode_record(digest, wal_record.VOID))

    with pytest.raises(UsageError, match="other"):
        recipients(planck, OTHER, "Curie")


def test_an_index_that_is_removed_between_two_sends_costs_nothing(repo: Path, planck: Log) -> None:
    """Another process builds it again; the open log reads that one."""
    for path in Path(planck.store.repo.state).glob("index-*"):
        path.unlink()
    assert recipients(planck, "Curie") == [annas("test:worker:curie")]
    begin(repo, "Mach")

    assert recipients(planck, "Mach") == [annas("test:worker:mach")]


def test_an_index_that_was_wrong_is_read_no_more_once_another_one_is_there(repo: Path, planck: Log) -> None:
    """As after `gitmem doctor --fix`; the log's commit is the same."""
    planck.store.index.db.execute(
        f"UPDATE session SET agent_identity = '{OTHER}' WHERE display_name = 'Curie'"
    )
    assert recipients(planck, "Curie") == [OTHER]
    for path in Path(planck.store.repo.state).glob("index-*"):
        path.unlink()
    with opened(repo) as log:
        log.store.caught_up()

    assert recipients(planck, "Curie") == [annas("test:worker:curie")]


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_waiting_file_that_is_restored_from_a_backup_is_read_again(
    repo: Path, planck: Log, what: str
) -> None:
    """An earlier snapshot has read more of it than was in the backup; then somebody appends a name."""
    kept, backup = repo / ".git" / "gitmem", repo / "backup"
    shutil.copytree(kept, backup)
    for _ in range(5):
        recipients(planck, "Curie")
    if what == "folder":
        shutil.rmtree(kept)
        shutil.copytree(backup, kept)
    else:
        (file,) = planck.store.log.waiting()
        shutil.copy(backup / "wal" / file.name, file.path)
    with opened(repo) as other:
        rename(other, "Curie", "Bohr")
        for _ in range(12 if what == "folder" else 0):  # now it is longer than it was
            say(other, OTHER)

        with pytest.raises(UsageError, match="Curie"):
            recipients(planck, "Curie")


def test_what_an_earlier_snapshot_has_read_is_not_taken_for_read_by_the_index(planck: Log) -> None:
    """Whether it affects names or not."""
    snapshots = index_file.Snapshots(planck.store.repo, "test", index_file.SHAPE, nameless=records.NAMELESS)

    def flags() -> tuple[bool, bool]:
        found = snapshots.take()
        assert found is not None
        found.close()
        return found.is_complete, found.has_names

    say(planck, OTHER)
    assert [flags(), flags()] == [(False, True)] * 2
    append(planck, "session", session_id="sess-0000", event="start", display_name="Mach", clone_id="c")
    assert [flags(), flags()] == [(False, False)] * 2
    planck.store.caught_up()
    assert [flags(), flags()] == [(True, True)] * 2
    snapshots.close()


def test_one_thread_after_another_may_send(planck: Log) -> None:
    """A program may open a log in one thread and use it in another one."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(recipients(planck, "Curie")))
    thread.start()
    thread.join()

    assert found == [[annas("test:worker:curie")]]


def test_a_send_between_commits_blocks_none_of_them(planck: Log) -> None:
    """A snapshot ends with its send: SQLite's log can be brought to the file, and the next send sees what was added."""
    recipients(planck, "Curie")
    assert planck.store.commit_waiting()
    planck.store.caught_up()
    (busy, *_) = planck.store.index.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    assert busy == 0
    assert recipients(planck, "Curie") == [annas("test:worker:curie")]


def commit(repo: Path, meanwhile: Callable[[], object]) -> None:
    """Commit what waits as another process does, with something done after the ref has moved instead of an index update."""
    with opened(repo) as other:
        other.store.log.committed = meanwhile
        assert other.store.commit_waiting()


def test_a_send_does_not_wait_for_the_index_to_read_a_commit(repo: Path, planck: Log) -> None:
    """The files that the commit was made of are still there, and have its lines."""
    found: list[object] = []

    def send() -> None:
        before = planck.store.index.db.total_changes
        found.append(recipients(planck, "Curie"))
        found.append(planck.store.index.db.total_changes - before)

    commit(repo, send)

    assert found == [[annas("test:worker:curie")], 0]


def test_a_name_in_a_commit_that_the_index_has_not_read_counts(
    repo: Path, planck: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the files that the commit was made of are still there or not."""
    rename(planck, "Curie", "Bohr")
    found: list[object] = []
    commit(repo, lambda: found.append(recipients(planck, "Bohr")))
    assert found == [[annas("test:worker:curie")]]

    rename(planck, "Bohr", "Mach")
    commit(repo, lambda: None)
    assert recipients(planck, "Mach") == [annas("test:worker:bohr")]


@pytest.mark.usefixtures("commits")
@pytest.mark.parametrize("what", ["file", "size", "parent", "commit", "note", "torn"])
def test_a_commit_that_the_files_may_lack_lines_of_is_read_first(
    repo: Path, planck: Log, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A file that is gone or shorter (a copied clone), another commit, a note that is missing or torn."""
    snapshots = index_file.Snapshots(planck.store.repo, "test", index_file.SHAPE, nameless=records.NAMELESS)
    note = Path(planck.store.repo.state, write_ahead.COMMITTED)
    recipients(planck, "Curie")
    found: list[object] = []

    def look() -> None:
        taken = snapshots.take()
        assert taken is not None and not taken.is_complete
        taken.close()
        head, row, _ = note.read_text().split("\n")
        tip, parent, count = head.split()
        name, size = row.split()
        if what == "file":
            row = f"{int(name[:17]) + 1:017d}.wal1 {size}"
        elif what == "size":
            row = f"{name} {int(size) + 1}"
        elif what == "parent":
            parent = tip
        elif what == "commit":
            tip = parent
        rows = {"torn": "", "note": None}.get(what, f"{row}\n")
        note.write_text(f"{tip} {parent} {count}\n{rows}" if rows is not None else "")
        found.append(snapshots.take())

    commit(repo, look)

    assert found == [None]
    snapshots.close()


def test_an_option_that_signals_do_not_have_is_an_error_of_the_program(planck: Log) -> None:
    """A misspelled recipient must not cause a broadcast."""
    before = len(planck.store.log.waiting())

    with pytest.raises(TypeError, match="recipient"):
        planck.signals.send("hello", recipient=["Curie"])  # type: ignore[call-arg]

    assert len(planck.store.log.waiting()) == before
