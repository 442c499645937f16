"""An index that is filled with files that others read is the one that would have been built."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem import records, views
from gitmem.doctor import clone_files
from gitmem.git.objects import Draft, Signature
from gitmem.index import catch_up, index_file
from gitmem.index.catch_up import IndexFill
from gitmem.log import ledger, recovery, ref, tree_union
from gitmem.log.local_log import LocalLog
from tests.log.logs import open_log
from tests.signing import history

WHO = Signature("n", "n@n", 1)
COUNT = "SELECT count(*) FROM line WHERE kind <> 'attestation'"
TABLES = "SELECT parent, name, oid FROM file ORDER BY parent, name"


def line(number: int) -> bytes:
    fields = {"signal_id": f"sig-{number:012}", "sender_identity": "a:b:c", "message": "m"}
    return records.line(
        "signal", 1_793_000_000_000_000 + number, {"schema_version": "A2A.V1", "intent": "INFO", **fields}
    )


@pytest.fixture
def log(repo: Path) -> LocalLog:
    """A log with lines where they belong, twice, and where nobody reads them."""
    found = open_log(repo)
    odd = b"caf\xe9.jsonl".decode("utf-8", "surrogateescape")
    files = {
        "signals/2026-11/21/gm-a.jsonl": line(1) + b"\n" + line(2) + b"\n",
        f"signals/2026-11/{odd}": line(2) + b"\nno line\n" + line(3) + b"\n",
        "projects/x/gm-a.jsonl": line(4) + b"\n",
        "top.jsonl": line(5) + b"\n",
        "seals/2026-11/21/gm-a.jsonl": history(map(line, range(6)))[0] + b"\n",
    }
    (tip,) = found.git.write([Draft(dict(files), WHO, WHO, "By hand\n")], None)
    assert found.git.swap(ref.LOG_REF, None, tip, "test")
    return found


def filled(log: LocalLog, tip: str | None) -> IndexFill:
    """An index of all lines, each passed once."""
    found = IndexFill(index_file.in_memory(views.VIEWS, records.read))
    seen: set[bytes] = set()
    for path, entry, content in recovery.walk_contents(log.git, log.git.tip(ref.LOG_REF) or ""):
        if entry.is_tree:
            found.folder(path, entry.oid)
        elif tree_union.is_plain_segment(path, entry):
            file = found.segment(path, entry.oid)
            new = [each for each in tree_union.lines_of(content) if file is not None and each not in seen]
            seen.update(new)
            found.add([(file, each) for each in new if file is not None])
    found.end(tip)
    return found


def test_it_is_the_one_that_catching_up_makes(log: LocalLog) -> None:
    """Its tables, and its notes of the files that it has read: there is nothing left to catch up with."""
    tip = log.git.tip(ref.LOG_REF)
    made = filled(log, tip).index
    built = index_file.in_memory(views.VIEWS, records.read)
    catch_up.catch_up(built, log)

    assert clone_files.differing(made, built, but=("cursor",)) == []
    assert made.db.execute(TABLES).fetchall() == built.db.execute(TABLES).fetchall()
    assert index_file.is_current(made, log)
    catch_up.catch_up(made, log)
    assert made.db.execute(COUNT).fetchone() == (4,)


def test_one_that_lacks_something_is_looked_at_again(log: LocalLog) -> None:
    """A file that could not be read then may be there now."""
    made = filled(log, None).index
    made.db.execute("DELETE FROM file WHERE name = 'gm-a.jsonl'")
    made.db.execute("DELETE FROM line WHERE key = ? OR kind = 'attestation'", (ledger.key(line(1)),))

    assert not index_file.is_current(made, log)
    catch_up.catch_up(made, log)
    assert index_file.is_current(made, log)
    assert made.db.execute(COUNT).fetchone() == (4,)


def test_it_says_where_a_line_stands(log: LocalLog) -> None:
    """The first segment that had it; nothing of what the index does not read."""
    made = filled(log, None)
    path, oid = made.segment_of(line(1)) or ("", "")

    assert path == "signals/2026-11/21/gm-a.jsonl" and line(1) in log.git.blob(oid)
    assert made.segment_of(line(4)) is None
