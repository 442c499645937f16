"""An index that can't be written, as in an agent's sandbox: it is read as it lies, never built again for each answer."""

from __future__ import annotations

import _sqlite3
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem import store_index, views
from gitmem.index import generations, index_file, query
from gitmem.log import committer
from gitmem.repo import find

from ..file_faults import at, denied
from .conftest import ROOT, Desk, powerless
from .faults import dump, open_store, speak

# Prints how many segments were read to answer, and the messages that the index then has.
LOOK = """
import json
from pathlib import Path
from gitmem.index import catch_up
from tests.hazards.faults import indexed, open_store
read = []
real = catch_up._Reader._segment
def spy(self, *args, **kwargs):
    read.append(args)
    real(self, *args, **kwargs)
catch_up._Reader._segment = spy
store = open_store(Path.cwd())
texts = sorted(indexed(store))
print(json.dumps([len(read), texts]))
"""


@pytest.fixture
def sealed(desk: Desk) -> Iterator[Path]:
    """A repository with three signals in as many segments, whose index file can't be written nor its folder."""
    store = open_store(desk.repo)
    for text in "abc":
        speak(store, text)
        store.log.new_token()
    store.close()
    state = desk.repo / ".git" / "gitmem"
    seal(state, 0o555)
    yield desk.repo
    seal(state, 0o755)


def seal(state: Path, mode: int) -> None:
    for folder, _, names in os.walk(state):
        for name in names:
            os.chmod(os.path.join(folder, name), mode & 0o666)
        os.chmod(folder, mode)


def look(repo: Path) -> tuple[int, list[str]]:
    """How many segments a process that permissions bind had to read, and what it answers."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=powerless,
    )
    assert done.returncode == 0, done.stderr
    read, texts = json.loads(done.stdout)
    return read, texts


needs_bounds = pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)


@needs_bounds
def test_an_index_that_cannot_be_written_is_read(sealed: Path) -> None:
    """Nothing is built again."""
    assert look(sealed) == (0, ["a", "b", "c"])


@needs_bounds
def test_what_it_lacks_is_added_in_memory(sealed: Path) -> None:
    """Only the segment that differs is read, and lines that wait for a commit are answered too."""
    state = sealed / ".git" / "gitmem"
    seal(state, 0o755)
    store = open_store(sealed)
    store.log.committed = lambda: None
    store.log.recorded = lambda entries: None
    speak(store, "d")
    speak(store, "rides", deferred=True)
    store.close()
    seal(state, 0o555)

    assert look(sealed) == (1, ["a", "b", "c", "d", "rides"])


@needs_bounds
def test_an_index_that_somebody_else_has_open_is_read(sealed: Path) -> None:
    """What is still in the `-wal` of a writer at work counts."""
    state = sealed / ".git" / "gitmem"
    seal(state, 0o755)
    store = open_store(sealed)
    speak(store, "d")
    assert Path(f"{index_file.path(store.repo, store.machine)}-wal").stat().st_size
    seal(state, 0o555)

    assert look(sealed) == (0, ["a", "b", "c", "d"])
    seal(state, 0o755)
    store.close()


@needs_bounds
def test_an_index_whose_wal_cannot_be_read_is_done_without(sealed: Path) -> None:
    """A `-wal` without its `-shm` may hold the half of a page: the log is read instead."""
    state = sealed / ".git" / "gitmem"
    seal(state, 0o755)
    store = open_store(sealed)
    speak(store, "d")
    where = index_file.path(store.repo, store.machine)
    kept = state / "kept"
    shutil.copy(f"{where}-wal", kept)
    store.close()
    os.rename(kept, f"{where}-wal")
    seal(state, 0o555)

    assert look(sealed) == (4, ["a", "b", "c", "d"])


def test_a_copy_is_the_index(desk: Desk) -> None:
    """Table for table, also where the path has characters that mean something in a URI."""
    odd = desk.repo.parent / "100% odd? #1"
    desk.repo.rename(odd)
    store = open_store(odd)
    speak(store, "a")
    store.db()
    copy = index_file.open_copy(store.repo, store.machine, views.VIEWS, store.index.read)

    assert dump(copy) == dump(store.index)
    assert generations.is_current(copy, store.log)
    store.close()


def test_a_file_that_changes_while_it_is_copied_is_not_trusted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without locks SQLite can't say that a writer came between."""
    store = open_store(desk.repo)
    speak(store, "a")
    where = index_file.path(store.repo, store.machine)
    store.close()
    for changes in (False, True):

        def connect(place: str, changes: bool = changes, **options: object) -> sqlite3.Connection:
            if "mode=ro" in place and "immutable" not in place:
                raise sqlite3.OperationalError("unable to open database file")
            if "immutable" in place and changes:
                os.utime(where, ns=(1, 1))
            return sqlite3.connect(place, **options)  # type: ignore[call-overload,no-any-return]

        with monkeypatch.context() as patch:
            patch.setattr(_sqlite3, "connect", connect)
            assert (index_file.copy_of(where) is None) is changes


@needs_bounds
def test_a_quick_read_answers_from_it(sealed: Path) -> None:
    """The question that hooks ask all the time costs no catch-up in a sandbox either."""
    script = (
        "from pathlib import Path\n"
        "from gitmem.index import query\nfrom gitmem import store_index\n"
        "from tests.hazards.faults import find, machine\n"
        "found = query.Snapshots(find(str(Path.cwd())), machine(), store_index.SHAPE).take()\n"
        "print(found and found.is_complete and found.db.execute('SELECT count(*) FROM signal').fetchone()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=sealed,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=powerless,
    )
    assert done.stdout == "3\n", done.stderr
    place = find(str(sealed))
    assert query.Snapshots(place, "another machine", store_index.SHAPE).take() is None


def test_a_copy_that_is_damaged_is_done_without(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged file that can't be put away costs a reading of the log, not the answer."""
    store = open_store(desk.repo)
    speak(store, "a")
    committer.commit_within(store.log, 5.0, deferred=True)
    store.close()
    where = Path(index_file.path(store.repo, store.machine))
    data = bytearray(where.read_bytes())
    for start in range(4096, len(data), 256):
        data[start : start + 64] = os.urandom(64)
    where.write_bytes(data)
    at(monkeypatch, "unlink", "*/index-*", denied)
    store = open_store(desk.repo)
    assert [row[0] for row in store.db().execute("SELECT count(*) FROM signal")] == [1]
    store.close()
