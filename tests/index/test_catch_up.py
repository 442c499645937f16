"""The index is derived: however it got there, it answers as if it had been built anew."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitmem.index import catch_up, index_file
from gitmem.index.entities import Rows, View
from gitmem.index.index_file import Index
from gitmem.log import committer, ref, write_ahead
from gitmem.log.local_log import LocalLog
from gitmem.log.write_ahead import WriteAheadLog
from tests.profiles import up_to

from ..log import logs
from ..log.logs import FakeClock, all_lines, entry, record
from ..signing import Importer


def open_log(repo: Path, **more: Any) -> LocalLog:
    """A log whose lines are attested."""
    log = logs.open_log(repo, **more)
    log.sealer = Importer
    return log


def _add(db: sqlite3.Connection, rows: Rows) -> None:
    db.executemany("INSERT INTO note VALUES (?)", [(row.record["text"],) for row in rows])


NOTES = View(["note"], ["CREATE TABLE note (text TEXT)"], _add)


def _read(line: bytes) -> dict[str, object] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "kind" in record else None


def _open(log: LocalLog) -> Index:
    return index_file.open_index(log.repo, "test", [NOTES], _read)


def _notes(index: Index) -> list[str]:
    return sorted(text for (text,) in index.db.execute("SELECT text FROM note"))


def _caught_up(log: LocalLog) -> list[str]:
    index = _open(log)
    catch_up.catch_up(index, log)
    found = _notes(index)
    index.close()
    return found


def _rebuilt(log: LocalLog) -> list[str]:
    index = index_file.in_memory([NOTES], _read)
    catch_up.catch_up(index, log)
    return _notes(index)


def test_catching_up_reads_only_what_differs(repo: Path) -> None:
    """Segments that were read are not read again."""
    log = open_log(repo)
    for text in "abc":
        record(log, entry(log, text))
        log.new_token()
    _caught_up(log)
    record(log, entry(log, "d"))
    blobs: list[str] = []
    real = log.git.blob
    log.git.blob = lambda oid: blobs.append(oid) or real(oid)  # type: ignore[method-assign,func-returns-value]

    assert _caught_up(log) == ["a", "b", "c", "d"]
    assert len(blobs) == 2  # its segment, and the one with its attestation


def test_a_line_counts_at_once_and_once_after_its_commit(repo: Path) -> None:
    """What was recorded is answered, before and after a committer commits it."""
    log = open_log(repo)
    record(log, entry(log, "a"))
    record(log, entry(log, "rides", deferred=True))
    assert _caught_up(log) == ["a", "rides"]

    record(log, entry(log, "b"))

    assert _caught_up(log) == ["a", "b", "rides"]


def test_a_line_that_was_taken_away_is_gone(repo: Path) -> None:
    """A generation that went without a commit takes its lines along."""
    log = open_log(repo)
    record(log, entry(log, "a"))
    record(log, entry(log, "rides", deferred=True))
    _caught_up(log)
    next(Path(log.wal.folder).glob("*.deferred1")).unlink()

    assert _caught_up(log) == ["a"]


def test_a_rewound_tip_is_nothing_special(repo: Path, git) -> None:  # type: ignore[no-untyped-def]  # a fixture
    """The index answers for the ref as it is."""
    log = open_log(repo)
    first = record(log, entry(log, "a")).commit
    record(log, entry(log, "b"))
    _caught_up(log)
    assert first
    git("update-ref", ref.LOG_REF, first, cwd=repo)

    assert _caught_up(open_log(repo)) == ["a"]


@pytest.mark.parametrize("damage", ["deleted", "truncated", "noise", "of another version"])
def test_a_damaged_index_is_built_again(repo: Path, damage: str) -> None:
    """Delete it or damage it at any time: the next command answers the same."""
    log = open_log(repo)
    for text in "abc":
        record(log, entry(log, text))
    _caught_up(log)
    where = Path(index_file.path(log.repo, "test"))
    if damage == "deleted":
        where.unlink()
    elif damage == "truncated":
        where.write_bytes(where.read_bytes()[:5000])
    elif damage == "noise":
        where.write_bytes(b"no database at all" * 400)
    else:
        with sqlite3.connect(where) as db:
            db.execute("PRAGMA user_version = 7")
            db.execute("DROP TABLE note")

    index = _open(log)
    try:
        catch_up.catch_up(index, log)
    except sqlite3.DatabaseError as error:
        index.close()
        assert catch_up.rebuild_damaged(str(where), error)
        index = _open(log)
        catch_up.catch_up(index, log)

    assert _notes(index) == ["a", "b", "c"]


def test_two_that_catch_up_at_once_do_not_fight(repo: Path) -> None:
    """Both end with every line once."""
    log = open_log(repo)
    for number in range(20):
        record(log, entry(log, f"{number:02}"))
    found: list[list[str]] = []

    def work() -> None:
        found.append(_caught_up(open_log(repo)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [[f"{number:02}" for number in range(20)]] * 4


def test_a_line_that_is_no_record_costs_that_line(repo: Path) -> None:
    """Torn lines, conflict markers and NULs are kept, and the others are answered."""
    log = open_log(repo)
    tip = record(log, entry(log, "a")).commit
    from gitmem.git.objects import Draft, Signature

    person = Signature("a", "b", 0)
    bad = b'<<<<<<< ours\n{"at":"2026-11-21T20:00:00.1\n\x00\xff\n' + all_lines(log)[0] + b"\n"
    assert tip and log.git.advance(
        ref.LOG_REF, tip, Draft({"signals/2026-11/21/gm-bad.jsonl": bad}, person, person, "by hand\n"), "test"
    )

    assert _caught_up(log) == ["a"]


class Picky:
    """A view that stumbles over what a line says, in the ways that views do, after it has begun to write."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def add(self, db: sqlite3.Connection, rows: Rows) -> None:
        self.batches.append(len(rows))
        _add(db, rows)
        for row in rows:
            text = str(row.record["text"])
            if text == "no such field":
                raise KeyError(text)
            if text == "odd":
                db.execute("INSERT INTO note VALUES (?)", ("\ud800",))
            if text == "too big":
                db.execute("INSERT INTO note VALUES (?)", (1 << 70,))

    def open(self) -> Index:
        return index_file.in_memory(
            [View(["note"], ["CREATE TABLE note (text TEXT)"], self.add), View(["note"], [], _nothing)],
            _read,
        )


def _nothing(db: sqlite3.Connection, rows: Rows) -> None:
    pass


def test_a_line_that_a_view_cannot_take_costs_that_line(repo: Path) -> None:
    """Every other line is answered, nothing half-done stays, the line is kept, and it is counted."""
    log = open_log(repo)
    for text in ("a", "odd", "b", "too big", "no such field", "c"):
        record(log, entry(log, text))
    picky = Picky()
    index = picky.open()
    catch_up.catch_up(index, log)

    assert _notes(index) == ["a", "b", "c"]
    assert index.db.execute("SELECT count(*) FROM line WHERE kind <> 'attestation'").fetchone() == (6,)
    assert index.skipped() == 3
    record(log, entry(log, "d"))
    record(log, entry(log, "odd"))
    catch_up.catch_up(index, log)
    assert _notes(index) == ["a", "b", "c", "d"]
    assert index.skipped() == 4


def test_lines_that_a_view_can_take_are_given_to_it_at_once(repo: Path) -> None:
    """What a bad line costs is paid only where there is one."""
    log = open_log(repo)
    for text in "abcdefgh":
        record(log, entry(log, text))
    picky = Picky()
    catch_up.catch_up(picky.open(), log)

    assert picky.batches == [8]


def test_an_index_that_cannot_be_written_is_no_bad_line(repo: Path) -> None:
    """What is wrong with the file is not blamed on a line: it is raised, and nothing is half-done."""

    def full(db: sqlite3.Connection, rows: Rows) -> None:
        db.execute("INSERT INTO no_such_table VALUES (1)")

    log = open_log(repo)
    record(log, entry(log, "a"))
    index = index_file.in_memory([View(["note"], [], full)], _read)

    with pytest.raises(sqlite3.OperationalError):
        catch_up.catch_up(index, log)
    assert not index.is_shaped()


@settings(max_examples=up_to(25), deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(
                ["append", "wait", "defer", "commit", "rotate", "tear", "void", "roll", "catch up", "rewind"]
            ),
            st.integers(0, 9),
        ),
        max_size=20,
    )
)
def test_caught_up_is_rebuilt(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]) -> None:
    """Whatever happens between catching up, the answer is that of an index built from nothing."""
    import subprocess

    repo = tmp_path_factory.mktemp("caught-up")
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)
    log = open_log(repo, clock=FakeClock(), seed=1)
    tips = []
    for number, (step, pick) in enumerate(steps):
        if step == "append":
            tips.append(record(log, entry(log, f"{number}")).commit)
        elif step in ("wait", "defer"):
            log.append(entry(log, f"{number}", deferred=step == "defer"))
        elif step == "commit":
            committer.commit_waiting(log, deferred=True)
        elif step == "rotate":
            log.wal.rotate()
        elif step in ("tear", "void"):
            _damage(log, step)
        elif step == "roll" and tips:
            log.new_token()
        elif step == "rewind" and tips:
            now, to = log.git.tip(ref.LOG_REF), tips[pick % len(tips)]
            assert to
            log.git.swap(ref.LOG_REF, now, to, "test")
        else:
            assert _caught_up(log) == _rebuilt(log)
    assert _caught_up(log) == _rebuilt(log)


def _damage(log: LocalLog, how: str) -> None:
    """Append half a record to the newest file that waits, or a void of its last entry."""
    for file in log.waiting(deferred=True)[-1:]:
        tail = log.wal.read(file)
        assert tail is not None
        with open(file.path, "ab") as opened:
            if how == "tear":
                opened.write(write_ahead.encode_record(b"half a record")[:40])
            elif tail.entries:
                opened.write(write_ahead.encode_record(tail.entries[-1][1], write_ahead.VOID))


def test_a_view_that_means_something_else_is_filled_anew(repo: Path) -> None:
    """The tables are as before; what stands in them was derived by the rules of before."""
    log = open_log(repo)
    record(log, entry(log, "a"))
    assert _caught_up(log) == ["a"]

    def shout(db: sqlite3.Connection, rows: Rows) -> None:
        db.executemany("INSERT INTO note VALUES (?)", [(str(row.record["text"]).upper(),) for row in rows])

    loud = View(["note"], NOTES.ddl, shout, version=2)
    index = index_file.open_index(log.repo, "test", [loud], _read)
    catch_up.catch_up(index, log)
    assert _notes(index) == ["A"]
    index.close()


def test_what_another_process_found_outside_stays_while_it_is_there(repo: Path, tmp_path: Path) -> None:
    """Two processes with another $TMPDIR share an index; gone is only what is gone from the disk."""
    mine, other = open_log(repo), open_log(repo)
    record(mine, entry(mine, "a"))
    elsewhere = tmp_path / "state" / "other"
    other.elsewhere = [WriteAheadLog(str(elsewhere), other.now, check_owner=True)]
    waiting = entry(other, "waits")
    waiting.token = other.token()
    other.elsewhere[0].append(waiting)

    assert _caught_up(other) == ["a", "waits"]
    assert _caught_up(mine) == ["a", "waits"]
    for file in elsewhere.iterdir():
        file.unlink()
    assert _caught_up(mine) == ["a"]


@pytest.mark.parametrize(("count", "waits"), [(catch_up.MANY - 1, True), (catch_up.MANY, False)])
def test_many_lines_at_once_do_not_wait_for_the_file_of_the_index(
    tmp_path: Path, count: int, waits: bool
) -> None:
    """They stay in SQLite's own log, and whoever closes the index brings them to the file."""
    path = tmp_path / "index.sqlite3"
    index = Index(index_file.connect(str(path)), [NOTES], _read)
    index.db.execute("BEGIN")
    index.reshape()
    catch_up.insert_lines(
        index,
        catch_up.OWN_FILE,
        [b'{"at":"","kind":"note","text":"%04000d"}' % number for number in range(count)],
    )
    index.db.execute("COMMIT")
    assert (path.stat().st_size > 1_000_000) == waits
    index.close()
    assert path.stat().st_size > 1_000_000
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM note").fetchone() == (count,)
