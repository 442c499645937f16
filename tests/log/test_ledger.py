"""The ledger: what was acknowledged is in it, whatever way it went, and nothing ever fails over it."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.log import ledger
from gitmem.log.lines import LogEntry
from gitmem.log.local_log import LocalLog
from gitmem.log.write_ahead import WriteAheadLog
from gitmem.sync import rebase
from tests.clones import Hub
from tests.file_faults import at, full
from tests.log.logs import entry, open_log, record


def digests(log: LocalLog) -> set[str]:
    return {each for noted in ledger.read(log.repo) for each in noted.digests}


def digest_of(one: LogEntry) -> str:
    return ledger.digest(one.lines[0][1])


def path_of(log: LocalLog) -> Path:
    return Path(log.repo.state, ledger.NAME)


@pytest.mark.parametrize("obstacle", ["folder", "link", "no permission"])
def test_a_ledger_that_cannot_be_written_fails_nothing(repo: Path, obstacle: str, tmp_path: Path) -> None:
    """The answer is the commit, as ever."""
    log = open_log(repo)
    record(log, entry(log, "first"))
    path = path_of(log)
    path.unlink()
    if obstacle == "folder":
        path.mkdir()
    elif obstacle == "link":
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.touch(0o400)
    assert record(log, entry(log, "second")).commit is not None
    record(log, entry(log, "third", deferred=True))
    list(ledger.read(log.repo))
    assert not (tmp_path / "elsewhere").exists()


def test_where_the_git_folder_cannot_be_written_the_line_is_accepted_elsewhere(
    repo: Path, tmp_path: Path
) -> None:
    log = open_log(repo)
    log.elsewhere = [WriteAheadLog(str(tmp_path / "state" / "here"), log.now, check_owner=True)]
    log.make_state = lambda: False  # type: ignore[method-assign]
    os.chmod(tmp_path, 0o700)
    assert record(log, entry(log, "one")).commit is None
    assert len(log.elsewhere[0].files()) == 1


def test_what_is_no_record_is_none(repo: Path) -> None:
    """Rows that others wrote, or that a disk has bent."""
    log = open_log(repo)
    log.make_state()
    digest = "d" * 32
    path_of(log).write_text(
        f"\nx - {digest}\n\n-1 - {digest}\n\n0 abc {digest}\n\n0 {'g' * 40} {digest}\n\n0\n\n- {'a' * 40} {digest}\n"
    )
    assert [each.commit for each in ledger.read(log.repo)] == ["a" * 40]


def test_what_is_recorded_is_noted_at_once_and_the_commit_when_it_comes(repo: Path) -> None:
    log = open_log(repo)
    deferred, one = entry(log, "deferred", deferred=True), entry(log, "one")
    record(log, deferred)
    commit = record(log, one).commit

    assert [(each.commit, each.digests) for each in ledger.read(log.repo)] == [
        (None, [digest_of(deferred)]),
        (None, [digest_of(one)]),
        (commit, []),
    ]
    assert ledger.last_commit(log.repo.state) == commit


def test_what_was_there_already_is_noted_with_the_commit_that_has_it(repo: Path) -> None:
    """A line that is said again adds nothing, and is acknowledged."""
    log = open_log(repo)
    one = entry(log, "one")
    commit = record(log, one).commit
    path_of(log).unlink()

    assert record(log, one).commit == commit

    assert ledger.acknowledged(log.repo) == ({digest_of(one)}, [commit])


def test_what_was_not_recorded_is_not_noted(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(repo)
    record(log, entry(log, "first"))
    before = path_of(log).read_bytes()
    at(monkeypatch, "write", "*/wal/*", full)
    for deferred in (False, True):
        with pytest.raises(StoreError):
            record(log, entry(log, "not recorded", deferred=deferred))

    assert path_of(log).read_bytes() == before
    assert not log.waiting(deferred=True)


def test_a_torn_record_costs_nothing_but_itself(repo: Path) -> None:
    """Wherever a crash or a full disk cut it, also in the middle of what comes after."""
    log = open_log(repo)
    entries = [entry(log, f"number {number}") for number in range(3)]
    for each in entries:
        record(log, each)
    content = path_of(log).read_bytes()
    start = content.rindex(b"\n", 0, len(content) - 1)
    new = entry(log, "new")
    for end in range(start, len(content)):
        path_of(log).write_bytes(content[:end] + (b"\0\0" if end % 3 == 0 else b""))
        ledger.append(log.repo, [new])
        found = digests(log)
        assert {digest_of(entries[0]), digest_of(entries[1]), digest_of(new)} <= found
        assert found <= {digest_of(each) for each in [*entries, new]}


def many(log: LocalLog, name: str, count: int = ledger.LINES_MAX) -> LogEntry:
    """An entry of many lines; with as many as one record may have, four records fill the ledger."""
    one = entry(log, name)
    return LogEntry(
        [(one.lines[0][0], b"%s %d" % (name.encode(), number)) for number in range(count)], one.message
    )


def test_it_is_bounded_and_keeps_the_newest(repo: Path) -> None:
    """Two files, of which the older one goes."""
    log = open_log(repo)
    assert log.make_state()
    entries = [many(log, f"number {number}") for number in range(12)]
    for each in entries:
        ledger.append(log.repo, [each], "ab" * 20)

    names = [name for name in os.listdir(log.repo.state) if name.startswith("ledger")]
    size = sum(os.path.getsize(os.path.join(log.repo.state, name)) for name in names)
    assert sorted(names) == ["ledger", "ledger.old"] or names == ["ledger.old"]
    assert size < 3 * ledger.BYTES_MAX
    assert {digest_of(each) for each in entries[-3:]} <= digests(log) and digest_of(
        entries[0]
    ) not in digests(log)


def test_only_who_holds_the_lock_puts_the_older_one_away(repo: Path) -> None:
    """Of two who did it at once, one would drop what the other had just put there."""
    log = open_log(repo)
    assert log.make_state()
    entries = [many(log, f"rides {number}") for number in range(5)]
    for each in entries:
        ledger.append(log.repo, [each])
    assert not os.path.exists(os.path.join(log.repo.state, ledger.OLDER))
    assert {digest_of(each) for each in entries} <= digests(log)


def test_a_commit_of_very_many_lines_is_noted_alone(repo: Path) -> None:
    """Its tree says what was in it."""
    log = open_log(repo)
    commit = record(log, entry(log, "one")).commit
    ledger.append(log.repo, [many(log, "many", ledger.LINES_MAX + 1)], commit)

    *_, noted = ledger.read(log.repo)
    assert (noted.commit, noted.digests) == (commit, [])


def test_a_number_that_an_older_gitmem_wrote_excludes_nothing(repo: Path) -> None:
    """It stood for an epoch, and a peer who raised it could hide what was acknowledged before."""
    log = open_log(repo)
    assert log.make_state()
    old, new, waits = (entry(log, word) for word in ("old", "new", "waits"))
    ledger.append(log.repo, [waits, old])
    ledger.append(log.repo, [old], "a" * 40)
    with open(os.path.join(log.repo.state, ledger.NAME), "a", encoding="ascii") as file:
        file.write(f"\n3 {'b' * 40} {digest_of(new)}\n")

    assert ledger.acknowledged(log.repo) == (set(map(digest_of, (old, new, waits))), ["b" * 40, "a" * 40])


def test_a_copied_clone_has_a_ledger_of_its_own(repo: Path, tmp_path: Path) -> None:
    """With what was acknowledged before it was copied."""
    log = open_log(repo)
    record(log, entry(log, "before"))
    shutil.copytree(repo, tmp_path / "copy")
    other = open_log(tmp_path / "copy")
    record(other, entry(other, "there"))
    record(log, entry(log, "here"))

    assert len(digests(log) & digests(other)) == 1
    assert len(digests(log)) == len(digests(other)) == 2


def write(repo: Path, number: int) -> None:
    log = open_log(repo)
    for each in range(50):
        ledger.append(log.repo, [entry(log, f"{number} {each}")])


def test_writers_do_not_tear_each_others_records(repo: Path) -> None:
    """Each is one write to the end of the file."""
    log = open_log(repo)
    assert log.make_state()
    writers = [
        multiprocessing.get_context("fork").Process(target=write, args=(repo, number)) for number in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len([noted for noted in ledger.read(log.repo) if len(noted.digests) == 1]) == 200


def test_the_page_shows_one(repo: Path) -> None:
    """A line that was committed, and one that waits."""
    log = open_log(repo)
    assert log.make_state()
    page = (Path(__file__).parents[2] / "docs/local-state.md").read_text(encoding="utf-8")
    path_of(log).write_text(page.partition("```text ledger\n")[2].partition("```")[0])
    committed, waits = ledger.read(log.repo)
    assert len(committed.digests) == 1 and committed.commit is not None
    assert (waits.commit, len(waits.digests)) == (None, 1)


def test_a_sync_remembers_where_it_moved_the_log(hub: Hub) -> None:
    """With its reflog gone too, `gitmem doctor --fix` finds what came from others."""
    a, b = hub.clone("a"), hub.clone("b")
    b.add("one")
    a.add("two")
    a.exchange()
    b.exchange()

    assert b.texts() == ["one", "two"]
    assert ledger.acknowledged(b.log.repo)[1][0] == b.tip


def test_a_mended_log_is_remembered(repo: Path) -> None:
    """What mending put together would else be lost with the ref and its reflog."""
    log = open_log(repo)
    tip = record(log, entry(log, "one")).commit
    assert tip is not None
    top = rebase.repair_log(log, tip, {"s/gm-x.jsonl": [b"{}"]})

    assert top != tip and rebase.swap_log_ref(log, tip, top)
    assert ledger.acknowledged(log.repo)[1][0] == top
