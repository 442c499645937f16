"""What a new clone finds below a shared ref whose tip is invalid, whatever the commits between cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git.objects import Draft, Signature
from gitmem.log import ref, ref_checks
from gitmem.log.local_log import LocalLog
from gitmem.log.ref_checks import RefCheck
from gitmem.log.start import start
from gitmem.log.tree_checks import Limits
from gitmem.sync import read_remote
from tests.log.logs import open_log

WHO = Signature("Mallory", "m@m", 1)
NAME = "refs/heads/gitmem"
EPOCH = b'{"format":1,"epoch":1}\n'


@pytest.fixture
def log(repo: Path) -> LocalLog:
    found = open_log(repo, seed=1)
    start(found)
    return found


def put(log: LocalLog, onto: str, *commits: dict[str, bytes | None]) -> str:
    return log.git.write([Draft(files, WHO, WHO, "x\n") for files in commits], onto)[-1]


def good(log: LocalLog) -> str:
    local = log.git.tip(ref.LOG_REF)
    assert local is not None
    return put(log, local, {"signals/x/gm-a.jsonl": b"1\n"})


def found(log: LocalLog, oid: str) -> str | None:
    log.passed_trees.clear()
    tip = read_remote.valid_ancestor(RefCheck(log, None, []), NAME, oid)
    return tip.oid if tip is not None else None


def large(number: int) -> dict[str, bytes | None]:
    """A folder of up to 20,000 bytes with a name that no log has; the later the smaller."""
    files: dict[str, bytes | None] = {
        f"signals/{number}/gm-{at}{number}": b"1\n" for at in range(500 // 2**number)
    }
    return {**files, f"signals/{number}/Z": b"1\n", f"signals/{number - 1}": None}


def test_commits_with_large_folders_hide_no_good_log_below(log: LocalLog) -> None:
    log.limits = Limits(read_bytes=30_000)
    oid = put(log, good(log), {f"signals/x/gm-{at}.jsonl": b"1\n" for at in range(100)})
    tip = put(log, oid, *map(large, [*range(9, 0, -1), 0]), {"format": EPOCH})

    assert found(log, tip) == oid
    log.limits = Limits(read_bytes=30_000, share=0)
    assert found(log, tip) is None


def test_commits_with_many_lines_hide_no_good_log_below(log: LocalLog) -> None:
    log.limits = Limits(lines=400, counted_bytes=1_000)
    oid = put(log, good(log), {"signals/y/gm-a.jsonl": b"x" * 500 + b"\n"})
    many: list[dict[str, bytes | None]] = [
        {"signals/x/gm-b.jsonl": b"%d\n" % number * 401} for number in range(5)
    ]
    tip = put(log, oid, *many, {"format": EPOCH})

    assert found(log, tip) == oid
    log.limits = Limits(lines=400, counted_bytes=1_000, share=0)
    assert found(log, tip) != oid


def test_a_long_history_is_listed_once_and_not_for_each_bad_commit_above(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 10 * read_remote.ANCESTORS_MAX
    oid = put(log, good(log), *({"signals/x/gm-b.jsonl": b"%d\n" % number} for number in range(count)))
    tip = put(log, oid, *({"format": EPOCH, "signals/x/gm-c": b"%d\n" % number} for number in range(4)))
    listed = []
    real = log.git.unread_history

    def listing(*args: object, **options: int) -> list[str]:
        listed.append(real(*args, **options))  # type: ignore[arg-type]
        return listed[-1]

    monkeypatch.setattr(log.git, "unread_history", listing)

    assert found(log, tip) == oid
    assert sum(map(len, listed)) < 2 * (count + 10)
    log.limits = Limits(listed=10)
    assert found(log, tip) == oid


def test_a_history_that_is_no_logs_has_no_valid_ancestor(log: LocalLog) -> None:
    root = log.git.write([Draft({"format": EPOCH}, WHO, WHO, "x\n")], None)[0]

    assert found(log, put(log, root, {"signals/x/gm-a.jsonl": b"1\n"})) is None
    assert found(log, root) is None
    assert found(log, "ab" * 20) is None


def test_commits_that_are_too_large_are_read_up_to_a_limit_to_find_a_smaller_one(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 17 steps of a bisection could cost as much as a sync takes in."""
    log.limits = Limits(files=30, read_bytes=30_000, share=2_000)
    oid = put(log, good(log), {f"signals/x/gm-{at}.jsonl": b"1\n" for at in range(20)})

    def many(n: int) -> dict[str, bytes | None]:
        return {f"signals/{n - 1}": None, **{f"signals/{n}/gm-{n}{at}": b"1\n" for at in range(500)}}

    tip = put(log, oid, *(many(n) for n in range(40)))
    read = 0
    real = log.git.raw_tree

    def reading(at: str) -> bytes:
        nonlocal read
        read += len(real(at))
        return real(at)

    monkeypatch.setattr(log.git, "raw_tree", reading)
    log.passed_trees.clear()

    found = read_remote.largest_readable_ancestor(RefCheck(log, None, []), NAME, tip)

    assert found is not None and found.oid == oid
    assert read < 30_000 + 6 * 2_000


def test_what_one_step_of_the_search_reads_does_not_count_in_the_next(log: LocalLog) -> None:
    """Each commit is checked as if it were the only one: else an older one would be taken."""
    log.limits = Limits(files=30)
    oid = put(
        log, good(log), *({f"signals/x/gm-{at}.jsonl": b"%d\n" % n for at in range(20)} for n in range(8))
    )
    tip = put(log, oid, {f"signals/y/gm-{at}.jsonl": b"1\n" for at in range(20)})
    log.passed_trees.clear()

    found = read_remote.largest_readable_ancestor(RefCheck(log, None, []), NAME, tip)

    assert found is not None and found.oid == oid


def test_folders_of_ancestors_are_not_read_for_project_ids_if_they_are_large(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has checked them: 256 roots of gigabytes below a tip without ids would be read."""
    count = ref_checks.FOLDER_BYTES_MAX // 20  # an entry has an id of 20 bytes, and its name
    ids: dict[str, bytes | None] = {f"projects/{number:040x}": b"" for number in range(count)}
    many: dict[str, bytes | None] = {f"z{number}": b"1\n" for number in range(count)}
    tree = log.git.commit(good(log)).tree
    wide = log.git.commit(put(log, good(log), many)).tree
    assert ref_checks.projects_of(log.git, good(log)) == ref.project_ids(log.git, log.git.tree(tree))
    read: list[str] = []
    real = log.git.tree
    monkeypatch.setattr(log.git, "tree", lambda oid: read.append(oid) or real(oid))

    assert ref_checks.projects_of(log.git, put(log, good(log), ids)) == set()
    read.clear()
    assert ref_checks.projects_of(log.git, put(log, good(log), many)) == set()
    assert wide not in read
