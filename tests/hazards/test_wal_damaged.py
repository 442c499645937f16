"""Generations of the write-ahead log that are torn or damaged: whole records are committed, the rest is kept and reported."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from gitmem.doctor import doctor
from gitmem.log import committer, wal, wal_files
from gitmem.log.local_log import LocalLog
from gitmem.repo import find
from tests.log.logs import all_lines, entry, open_log, record

from .conftest import Desk
from .faults import open_store


def encoded(log: LocalLog, text: str) -> bytes:
    """The record of an entry that nobody has written yet."""
    made = entry(log, text)
    made.token = log.token()
    return wal.encode_record(made.encode())


def texts(log: LocalLog) -> list[str]:
    return sorted(line.decode().split('"text":"')[1][:-2] for line in all_lines(log))


def damaged(log: LocalLog) -> list[str]:
    return wal_files.damaged(log.wal.folder)


def put(log: LocalLog, content: bytes) -> str:
    """Make a generation with this content: its name."""
    log.now.forward(1)  # type: ignore[attr-defined]  # the tests' clock
    name = wal_files.name_of(log.now(), deferred=False)
    Path(log.wal.folder, name).write_bytes(content)
    return name


def test_a_record_that_is_cut_at_any_byte_costs_itself_alone(repo: Path) -> None:
    """The record before it, and the one that the next writer appends, are committed once; each torn file is kept."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    length = len(encoded(log, "torn 000"))
    torn = set()
    for cut in range(length):
        content = encoded(log, f"before {cut:03}") + encoded(log, f"torn {cut:03}")[:cut]
        name = put(log, content + encoded(log, f"after {cut:03}"))
        torn |= {name} if cut else set()

    while log.waiting():
        committer.commit_waiting(log)
    record(log, entry(log, "last"))

    expected = [f"{word} {cut:03}" for word in ("before", "after") for cut in range(length)]
    assert texts(log) == sorted([*expected, "first", "last"])
    assert set(damaged(log)) == {name + wal_files.DAMAGED for name in torn}
    assert not log.waiting(deferred=True)


@pytest.mark.parametrize("seed", range(20))
def test_garbage_between_records_costs_nothing_beside_it(repo: Path, seed: int) -> None:
    """Zeros, noise, markers without a record, records with a wrong checksum or a length that reaches behind the end."""
    random = Random(seed)
    log = open_log(repo)
    record(log, entry(log, "first"))
    head = b"%s%s %010d %s\n"

    def garbage() -> bytes:
        return random.choice(
            [
                bytes(random.randrange(1, 5_000)),
                random.randbytes(random.randrange(1, 500)),
                wal.MARK * random.randrange(1, 4),
                head % (wal.MARK, b"e", 9_999, b"0" * 64),
                head % (wal.MARK, b"e", 9_999_999_999, b"0" * 64),
                head % (wal.MARK, b"x", 0, b"0" * 64),
                encoded(log, "wrong")[:-3] + b"no\n",
                wal.encode_record(b"no entry\n"),
                wal.encode_record(b'["token", "a <a@b>", "s", "", []]\nsignals\tno line\n'),
            ]
        )

    parts, kept = [], []
    for number in range(12):
        parts.append(garbage() if random.random() < 0.6 else b"")
        parts.append(encoded(log, f"kept {number:02}"))
        kept.append(f"kept {number:02}")
    parts.append(garbage())
    name = put(log, b"".join(parts))

    record(log, entry(log, "last"))

    assert texts(log) == sorted([*kept, "first", "last"])
    assert damaged(log) == [name + wal_files.DAMAGED]


def test_a_damaged_generation_is_reported_by_doctor_and_answers_stay_whole(desk: Desk) -> None:
    """Readers see whole records before any commit; doctor names the file and puts it aside."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    store = open_store(desk.repo, commit_after=60.0)
    store.log.append(entry(store.log, "one"))
    (file,) = store.log.waiting()
    with open(file.path, "ab") as opened:
        opened.write(encoded(store.log, "torn")[:50])
    store.close()

    desk.send(planck, "behind the torn one", "--to", "Curie")
    assert "behind the torn one" in desk("inbox", session=curie).out

    (found,) = [each for each in desk("doctor", "--json").json["findings"] if each["code"] == "wal-file"]
    assert found["where"].endswith(wal_files.DAMAGED) and os.path.exists(found["where"])
    report = doctor.fix(open_store(desk.repo))
    assert report.status == 0 and not os.path.exists(found["where"])
    kept = list((Path(find(str(desk.repo)).state) / "aside").iterdir())
    assert any(wal_files.DAMAGED in each.name for each in kept)


def test_a_torn_end_of_the_newest_generation_is_no_problem_while_it_is_written(repo: Path) -> None:
    """A record that is being written looks torn to a reader: it reads on when the rest is there."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    log.append(entry(log, "second"))
    store = open_store(repo, commit_after=60.0)
    content = encoded(log, "slow")
    (file,) = log.waiting()

    def shown() -> int:
        return int(store.db().execute("SELECT count(*) FROM line").fetchone()[0])

    with open(file.path, "ab", buffering=0) as opened:
        for byte in range(0, len(content), 40):
            opened.write(content[byte : byte + 40])
            assert shown() == (2 if byte + 40 < len(content) else 3)
    store.close()
    committer.commit_waiting(log)

    assert texts(log) == ["first", "second", "slow"] and damaged(log) == []
