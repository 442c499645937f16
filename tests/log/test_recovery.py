"""Recovery: which commits are whole, where the ref has been, and which lines were there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.log import ledger, recovery, ref, tree_union
from gitmem.log.local_log import LocalLog

from ..loose_objects import remove
from .logs import all_lines, entry, open_log, record

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


# Lines that a history has and its tip lacks: each is found once, with the last commit that had it.


def line(number: int) -> bytes:
    return b'{"at":"2026-11-21T20:00:00.%06dZ","kind":"note","text":"%d"}' % (number, number)


def lines(*numbers: int) -> bytes:
    return b"".join(line(number) + b"\n" for number in numbers)


def commits(log: LocalLog, *changes: Mapping[str, bytes | TreeEntry | None]) -> list[str]:
    """A history of commits that each change some files."""
    return log.git.write([Draft(dict(each), WHO, WHO, "By hand\n") for each in changes], None)


def keys_of(log: LocalLog, commit: str) -> set[bytes]:
    found = recovery.walk_contents(log.git, commit)
    return {
        ledger.key(each)
        for path, entry, content in found
        if tree_union.is_plain_segment(path, entry)
        for each in tree_union.lines_of(content)
    }


def dropped(
    log: LocalLog, history: list[str], left: frozenset[str] = frozenset()
) -> list[tuple[str, str, int, list[bytes]]]:
    found = recovery.History(log, history, left).dropped(keys_of(log, history[-1]))
    return [(each.commit, each.path, each.number, each.lines) for each in found]


def test_a_line_is_found_in_the_last_commit_that_had_it(repo: Path) -> None:
    """Once, whatever files had it before; not where it only went to another file."""
    log = open_log(repo)
    history = commits(
        log,
        {"a/x.jsonl": lines(1, 2, 3), "b/y.jsonl": lines(4, 2)},
        {"a/x.jsonl": lines(1, 3, 5)},
        {"a/x.jsonl": lines(1), "b/y.jsonl": None, "b/z.jsonl": lines(3, 4)},
    )

    assert dropped(log, history) == [
        (history[1], "a/x.jsonl", 3, [line(5)]),
        (history[1], "b/y.jsonl", 2, [line(2)]),
    ]


def test_what_is_no_line_and_what_is_in_no_segment_may_go(repo: Path) -> None:
    log = open_log(repo)
    history = commits(
        log, {"a/x.jsonl": b"<<<<<<<\n" + lines(1), "notes": lines(2)}, {"a/x.jsonl": lines(1), "notes": None}
    )

    assert dropped(log, history) == []


def test_lines_of_what_is_no_plain_file_are_in_no_file(repo: Path) -> None:
    """A link at the tip, from which nobody reads lines."""
    log = open_log(repo)
    (made,) = commits(log, {"a/x.jsonl": lines(1)})
    blob = log.git.tree(log.git.tree(log.git.commit(made).tree)["a"].oid)["x.jsonl"]
    history = commits(
        log, {"a/x.jsonl": TreeEntry("120000", blob.oid), "b/module.jsonl": TreeEntry("160000", "1" * 40)}
    )

    assert dropped(log, history) == [(history[0], "a/x.jsonl", 1, [line(1)])]


def test_objects_that_can_not_be_read_are_named_and_the_rest_is_looked_at(repo: Path) -> None:
    """A file and a folder; such a history is not whole."""
    log = open_log(repo)
    history = commits(
        log,
        {"a/x.jsonl": lines(1), "b/x.jsonl": lines(2), "c/x.jsonl": lines(3)},
        {"a/x.jsonl": lines(1, 4), "b/x.jsonl": lines(2, 4), "c/x.jsonl": None},
    )
    root = log.git.tree(log.git.commit(history[0]).tree)
    file, folder = log.git.tree(root["a"].oid)["x.jsonl"].oid, root["b"].oid
    log.git.close()
    for oid in (file, folder):
        remove(Path(log.repo.common), oid)
    log = open_log(repo)
    told: list[tuple[str, str, str]] = []
    read = recovery.History(log, history)

    found = list(read.dropped(keys_of(log, history[-1]), lambda *what: told.append(what)))

    assert sorted(told) == sorted(
        [
            (file, f"{history[0][:12]}:a/x.jsonl", "an older file"),
            (folder, f"{history[0][:12]}:b/", "an older folder"),
        ]
    )
    assert [each.lines for each in found] == [[line(3)]]
    assert not read.is_whole


def test_a_file_whose_lines_git_does_not_count_may_be_missing(repo: Path) -> None:
    """Settings can say that segments are no text: git then looks at no byte of them."""
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text("*.jsonl binary\n")
    log = open_log(repo)
    history = commits(log, {"a/x.jsonl": lines(1)}, {"a/x.jsonl": lines(1, 2)})
    file = log.git.tree(log.git.tree(log.git.commit(history[0]).tree)["a"].oid)["x.jsonl"].oid
    log.git.close()
    remove(Path(log.repo.common), file)
    log = open_log(repo)
    told: list[str] = []
    read = recovery.History(log, history)

    assert list(read.dropped(keys_of(log, history[-1]), lambda oid, *_: told.append(oid))) == []
    assert told == [file] and not read.is_whole


def test_what_a_partial_clone_left_is_not_looked_for(repo: Path) -> None:
    """It is with a remote; the other files are read one by one."""
    log = open_log(repo)
    history = commits(
        log, {"a/x.jsonl": lines(1), "b/x.jsonl": lines(2)}, {"a/x.jsonl": lines(3), "b/x.jsonl": lines(3)}
    )
    root = log.git.tree(log.git.commit(history[0]).tree)
    left = log.git.tree(root["a"].oid)["x.jsonl"].oid
    log.git.close()
    remove(Path(log.repo.common), left)

    found = dropped(open_log(repo), history, frozenset([left]))

    assert [lines for *_, lines in found] == [[line(2)]]


def test_commits_that_were_read_are_not_read_again(repo: Path) -> None:
    """Whether one is whole is known of all that a look at the history has read."""
    log = open_log(repo)
    (made,) = commits(log, {"a/x.jsonl": lines(1)})
    file = log.git.tree(log.git.tree(log.git.commit(made).tree)["a"].oid)["x.jsonl"].oid
    log.git.close()
    remove(Path(log.repo.common), file)
    log = open_log(repo)

    assert not recovery.CompletenessCheck(log).commit(made)
    assert recovery.CompletenessCheck(log, [made]).commit(made)
    assert recovery.CompletenessCheck(log, [made]).end(made) == recovery.OURS
