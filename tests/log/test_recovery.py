"""Recovery: which commits are whole, where the ref has been, and which lines were there."""

from __future__ import annotations

import os
from pathlib import Path

from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.log import recovery, ref
from gitmem.log.local_log import LocalLog
from tests.log.logs import all_lines, entry, open_log, record
from tests.loose_objects import remove

WHO = Signature("n", "n@n", 1)


def said(log: LocalLog, *texts: str) -> list[str]:
    """The commits of a few lines."""
    found = [record(log, entry(log, text)).commit for text in texts]
    assert all(found)
    return [str(each) for each in found]


def test_a_commit_that_is_gone_is_broken_and_so_is_all_above_it(repo: Path) -> None:
    """Also where it is found from two sides; what stands below is whole."""
    log = open_log(repo)
    first, second, third, fourth = said(log, "one", "two", "three", "four")
    log.git.close()
    remove(Path(log.repo.common), second)
    again = open_log(repo)
    sound = recovery.CompletenessCheck(again)

    assert sound.end(fourth) == sound.end(third) == sound.end(second) == recovery.BROKEN
    assert sound.end(first) == recovery.OURS and sound.commit(first)
    assert not sound.commit(fourth)


def test_where_all_else_is_gone_what_a_remote_had_is_a_place_to_look(repo: Path) -> None:
    """Ref, reflog and ledger are lost; the note of what is published is not."""
    log = open_log(repo)
    (tip,) = said(log, "one")
    assert log.git.swap(ref.PUBLISHED_REF, None, tip, "test")
    for name in ("refs/gitmem/log", "logs/refs/gitmem/log", "gitmem/ledger"):
        os.unlink(os.path.join(log.repo.common, name))

    assert list(recovery.past_tips(open_log(repo))) == [tip]


def test_only_files_of_lines_have_lines(repo: Path) -> None:
    """Neither a text beside them nor a link that is named like a segment."""
    log = open_log(repo)
    (tip,) = said(log, "one")
    blob = log.git.write([Draft({"x": b"no line\n"}, WHO, WHO, "x")], tip)[0]
    found = log.git.tree(log.git.commit(blob).tree)["x"]
    changes: dict[str, bytes | TreeEntry | None] = {
        "signals/note.txt": found,
        "signals/gm-link.jsonl": TreeEntry("120000", found.oid),
    }
    (odd,) = log.git.write([Draft(changes, WHO, WHO, "odd")], tip)

    lines = [line for _, line in recovery.RecoveredLines(log.git).of_commit(odd)]
    assert sorted(lines) == sorted(all_lines(log))


def test_a_submodule_s_commit_is_no_damaged_object(repo: Path) -> None:
    """It is in another repository."""
    log = open_log(repo)
    (tip,) = said(log, "one")
    (odd,) = log.git.write([Draft({"module": TreeEntry("160000", "1" * 40)}, WHO, WHO, "odd")], tip)
    assert log.git.swap(ref.LOG_REF, tip, odd, "test")

    assert recovery.damaged_objects(log) == []
