"""Places: which refs may hold a log, which of them do, and which may be united with ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git.objects import Draft, Signature
from gitmem.git.port import STEPS_MAX
from gitmem.log import log_refs, ref
from gitmem.log.committer import start_log
from gitmem.log.local_log import LocalLog
from tests.clones import git
from tests.log.logs import open_log

WHO = Signature("A", "a@a", 1)
OID = "a0" * 20


@pytest.fixture
def log(repo: Path) -> LocalLog:
    return open_log(repo, seed=1)


def put(log: LocalLog, onto: str | None, path: str, content: bytes | None) -> str:
    return log.git.write([Draft({path: content}, WHO, WHO, f"{path}\n")], onto)[0]


def why(log: LocalLog, oid: str, *known: str) -> str:
    """Why a commit ends no log."""
    with pytest.raises(log_refs.NotALog) as found:
        log_refs.read(log, "refs/x", oid, known)
    return str(found.value)


def test_a_ref_is_read_for_its_name() -> None:
    """The shared places, their copies, and outboxes; what is only named alike is the user's."""
    for name in (
        ref.BRANCH,
        ref.LOG_REF,
        f"{ref.REMOTES_PREFIX}origin/heads/gitmem",
        f"{ref.REMOTES_PREFIX}origin/gitmem/log",
        f"refs/heads/gitmem-outbox-{OID}",
        f"refs/gitmem/outbox/{OID}",
    ):
        assert log_refs.is_synced_ref(name), name
    for name in (
        f"refs/heads/{OID}",
        f"refs/tags/gitmem-outbox-{OID}",
        f"refs/heads/mine/gitmem-outbox-{OID}",
        f"refs/gitmem/outbox/gitmem-outbox-{OID}",
        "refs/heads/gitmem-old",
        "refs/heads/x-gitmem",
        "refs/tags/gitmem",
        "refs/heads/gitmem/log/old",
    ):
        assert not log_refs.is_synced_ref(name), name


def test_logs_are_strangers_only_where_both_know_their_projects() -> None:
    """One that was started before there was a project belongs to any."""
    assert (
        log_refs.can_merge(set(), {"b"})
        and log_refs.can_merge({"a"}, set())
        and log_refs.can_merge(set(), set())
    )
    assert log_refs.can_merge({"a", "b"}, {"b", "c"})
    assert not log_refs.can_merge({"a"}, {"b"})


def test_the_log_that_a_commit_ends(log: LocalLog) -> None:
    """Its tree, its format and its projects, under the name that it was found by."""
    tip = put(log, start_log(log), "format", b'{"format":1,"epoch":2,"turn":3}\n')
    found = log_refs.read(log, "refs/x", tip)
    assert (found.name, found.oid, found.tree) == ("refs/x", tip, log.git.commit(tip).tree)
    assert (found.format.epoch, found.format.turn) == (2, 3)
    assert found.projects == set(git("rev-parse", "main", cwd=Path(log.repo.common)).split())
    assert found.projects == log_refs.own_projects(log)


def test_why_a_commit_ends_none(log: LocalLog) -> None:
    """A sentence each: no format, one that can't be read, another first commit, an object that is gone."""
    tip = start_log(log)
    assert "no file `format`" in why(log, put(log, tip, "format", None))
    assert "`format` of the log cannot be read" in why(log, put(log, tip, "format", b"format 1\n"))
    tree = log.git.commit(tip).tree
    (orphan,) = log.git.write([Draft({}, WHO, WHO, "Start\n", tree=tree)], None)
    assert "first commit" in why(log, orphan)
    assert "first commit" in why(log, orphan, tip), "a log that we know does not make it one"
    assert "first commit" in why(log, orphan, "0" * 40), "nor one that is not here"
    assert f"{OID} is missing" in why(log, OID)


def test_a_log_that_is_known_vouches_for_those_beside_it(log: LocalLog) -> None:
    """Their first commits are not looked for: of those on it, before it, and, near by, of what leaves it."""
    root = git("rev-parse", "main", cwd=Path(log.repo.common)).strip()
    tree = log.git.commit(start_log(log)).tree
    (cut,) = log.git.write([Draft({}, WHO, WHO, "Cut\n", tree=tree)], root)
    known, beside = (put(log, cut, f"s/gm-{name}.jsonl", b"1\n") for name in "kb")
    above = put(log, known, "s/gm-a.jsonl", b"1\n")
    for oid in (known, beside, above, cut):
        assert "first commit" in why(log, oid)
        assert log_refs.read(log, "refs/x", oid, ["0" * 40, known]).oid == oid
    assert [tip.oid for tip in log_refs.logs(log, {"refs/x": beside}, [known])[0]] == [beside]
    far = [Draft({f"t{number}": b"x"}, WHO, WHO, "t\n") for number in range(STEPS_MAX + 10)]
    above, beside = log.git.write(far, known)[-1], log.git.write(far, beside)[-1]
    for oid in (known, above, cut):
        assert log_refs.read(log, "refs/x", oid, ["0" * 40, known]).oid == oid
    assert log_refs.read(log, "refs/x", known, ["0" * 40, above]).oid == known
    assert "first commit" in why(log, beside, above)


def test_what_is_missing_in_between_is_said_and_not_trusted(log: LocalLog) -> None:
    """The line to the known log is broken: which log it is can't be told."""
    tip = start_log(log)
    by = "A <a@a> 1 +0000"
    text = f"tree {log.git.commit(tip).tree}\nparent {OID}\nauthor {by}\ncommitter {by}\n\nCut\n"
    at = Path(log.repo.common)
    (at / "commit").write_text(text)
    end = git("hash-object", "-t", "commit", "-w", "commit", cwd=at).strip()
    assert why(log, end, tip)


def test_each_tip_is_a_log_once_and_of_the_others_is_said_why(log: LocalLog) -> None:
    """By the first name that it has; a tip that is none hinders nobody."""
    tip = start_log(log)
    other = put(log, tip, "s/gm-a.jsonl", b"1\n")
    bad = put(log, tip, "format", None)
    refs = {"refs/a": tip, "refs/b": bad, "refs/c": tip, "refs/d": other}
    tips, others = log_refs.logs(log, refs, ["", tip])
    assert [(each.name, each.oid) for each in tips] == [("refs/a", tip), ("refs/d", other)]
    assert list(others) == ["refs/b"] and "format" in others["refs/b"]


def test_a_log_is_known_under_the_names_that_people_and_git_give_it(log: LocalLog) -> None:
    """Our copies of remotes, what a fetch brought as a branch of a remote, and a branch of this clone."""
    tip = start_log(log)
    assert log_refs.known_log_refs(log) == {}
    names = [
        f"{ref.REMOTES_PREFIX}origin/heads/gitmem",
        "refs/remotes/origin/gitmem",
        "refs/remotes/of/two/words/gitmem",
        ref.BRANCH,
    ]
    others = [
        f"{ref.REMOTES_PREFIX}origin/heads/main",
        "refs/remotes/gitmem",
        "refs/remotes/origin/my-gitmem",
        "refs/heads/mine/gitmem",
    ]
    for name in names + others:
        git("update-ref", name, tip, cwd=Path(log.repo.common))
    found = log_refs.known_log_refs(log)
    assert found == dict.fromkeys(names, tip) and sorted(found) == sorted(names)


def test_the_first_commits_of_logs_are_no_projects(log: LocalLog) -> None:
    """Somebody merged the log into a branch by hand: clones of other projects would be kin by it."""
    before = log_refs.own_projects(log)
    at = Path(log.repo.common).parent
    tip = start_log(log)
    git("merge", "--quiet", "--allow-unrelated-histories", "-s", "ours", "--no-edit", tip, cwd=at)
    assert ref.GENESIS in git("rev-list", "--max-parents=0", "main", cwd=at)
    fresh = open_log(at)
    assert log_refs.own_projects(fresh) == before != set()
