"""Replay: own commits move to another tip with all that they tell, and lose no line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Draft, Signature
from gitmem.log import ref, replay

FILE = "s/2026-11/21/gm-a.jsonl"


class Chain:
    """Commits written by hand, outside any ref."""

    def __init__(self, git: DulwichGit) -> None:
        self.git = git
        (self.genesis,) = git.write([ref.genesis_draft()], None)

    def put(self, onto: str, message: str, *, author: str = "A", **changes: bytes | None) -> str:
        """One commit; keys of `changes` are names of segments."""
        named = {f"s/2026-11/21/gm-{name}.jsonl": content for name, content in changes.items()}
        who = Signature(author, f"{author}@a", 1_700_000_000, "+0200")
        return self.git.write([Draft(named, who, Signature("C", "c@c", 1_700_000_001), message)], onto)[0]

    def merge(self, ours: str, theirs: str, tree: str) -> str:
        """A merge commit, as a person makes one."""
        from tests.clones import git

        where = Path(self.git.common)
        return git("commit-tree", "-p", ours, "-p", theirs, "-m", "Merge", tree, cwd=where).strip()

    def file(self, commit: str, name: str = "a") -> bytes:
        entry = ref.lookup(self.git, self.git.commit(commit).tree, f"s/2026-11/21/gm-{name}.jsonl")
        return self.git.blob(entry.oid) if entry is not None else b""


@pytest.fixture
def chain(repo: Path) -> Iterator[Chain]:
    git = DulwichGit(str(repo / ".git"))
    yield Chain(git)
    git.close()


def own(chain: Chain, tip: str, base: str) -> list[str]:
    return chain.git.history(tip, [base])


def test_commits_that_stand_there_already_stay_as_they_are(chain: Chain) -> None:
    """The same tip, not a copy of it."""
    tip = chain.put(chain.put(chain.genesis, "1", a=b"1\n"), "2", a=b"1\n2\n")
    assert replay.replay(chain.git, own(chain, tip, chain.genesis), chain.genesis) == tip


def test_who_when_and_what_are_kept(chain: Chain) -> None:
    """Author, committer, dates with their offsets, and the whole message."""
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    message = "subject — ü\n\nbody\n\nSignal: sig-1\nWU: WU-1\n"
    mine = chain.put(chain.genesis, message, author="Planck", a=b"1\n")
    new = chain.git.commit(replay.replay(chain.git, [mine], theirs))
    old = chain.git.commit(mine)
    assert new.parents == [theirs] and new.message == old.message
    for before, after in ((old.author, new.author), (old.committer, new.committer)):
        assert (before.name, before.mail, before.seconds, before.offset) == (
            after.name,
            after.mail,
            after.seconds,
            after.offset,
        )


def test_a_replay_is_the_same_commit_whoever_makes_it(chain: Chain) -> None:
    """Two processes that replay the same commits make the same objects."""
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    mine = own(chain, chain.put(chain.put(chain.genesis, "1", a=b"1\n"), "2", c=b"2\n"), chain.genesis)
    assert replay.replay(chain.git, mine, theirs) == replay.replay(chain.git, mine, theirs)


def test_a_commit_that_adds_nothing_is_left_out(chain: Chain) -> None:
    """Its lines are there already."""
    theirs = chain.put(chain.genesis, "theirs", a=b"1\n2\n3\n")
    first = chain.put(chain.genesis, "mine 1", a=b"2\n")
    second = chain.put(first, "mine 2", a=b"2\n4\n")
    new = replay.replay(chain.git, [first, second], theirs)
    assert [chain.git.commit(oid).message for oid in own(chain, new, theirs)] == ["mine 2"]
    assert chain.file(new) == b"1\n2\n3\n4\n"


def test_each_commit_brings_only_its_own_lines(chain: Chain) -> None:
    """What was in the old base but not in the new one does not come along under a wrong story."""
    base = chain.put(chain.genesis, "base", a=b"0\n")
    mine = chain.put(base, "mine", a=b"0\n1\n")
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    assert chain.file(replay.replay(chain.git, [mine], theirs)) == b"1\n"


def test_what_a_commit_took_away_stays(chain: Chain) -> None:
    """Deleted lines and files are not deleted on the new tip."""
    theirs = chain.put(chain.genesis, "theirs", a=b"1\n2\n", b=b"3\n")
    base = chain.put(chain.genesis, "base", a=b"1\n2\n", b=b"3\n")
    mine = chain.put(base, "mine", a=b"2\n4\n", b=None)
    new = replay.replay(chain.git, [mine], theirs)
    assert (chain.file(new), chain.file(new, "b")) == (b"1\n2\n4\n", b"3\n")


def test_merges_are_flattened(chain: Chain) -> None:
    """Both sides are replayed; the merge itself only where it added lines."""
    left = chain.put(chain.genesis, "left", a=b"1\n")
    right = chain.put(chain.genesis, "right", b=b"2\n")
    plain = chain.merge(left, right, chain.git.commit(chain.put(left, "", b=b"2\n")).tree)
    evil = chain.merge(left, right, chain.git.commit(chain.put(left, "", b=b"2\n", c=b"3\n")).tree)
    theirs = chain.put(chain.genesis, "theirs", d=b"x\n")
    for merge, count in ((plain, 2), (evil, 3)):
        new = replay.replay(chain.git, own(chain, merge, chain.genesis), theirs)
        story = own(chain, new, theirs)
        assert len(story) == count
        assert all(len(chain.git.commit(oid).parents) == 1 for oid in story)
    assert chain.file(new, "c") == b"3\n"


def test_too_many_commits_become_one_that_lists_their_ids(chain: Chain) -> None:
    """Trailers are kept, each once; the author is the first, the date the last."""
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    tip, commits = chain.genesis, []
    for number in range(4):
        content = b"".join(b"%d\n" % line for line in range(number + 1))
        tip = chain.put(tip, f"say {number}\n\nSignal: sig-{number}\nWU: WU-1\n", a=content)
        commits.append(tip)
    new = replay.replay(chain.git, commits, theirs, singly_max=3)
    told = chain.git.commit(new)
    assert told.parents == [theirs]
    assert told.message == (
        "4 commits of 1 agent in one\n\nSignal: sig-0\nWU: WU-1\nSignal: sig-1\nSignal: sig-2\nSignal: sig-3\n"
    )
    assert chain.file(new) == b"0\n1\n2\n3\n"
    assert len(own(chain, replay.replay(chain.git, commits, theirs, singly_max=4), theirs)) == 4


def test_trailers_are_the_last_paragraph_or_none() -> None:
    """A body that only looks a little like trailers is none."""
    assert replay.trailers("s\n\nSignal: a\nWU: b\n") == ["Signal: a", "WU: b"]
    assert replay.trailers("Subject: a\n") == []
    assert replay.trailers("s\n\nhello: there\nand more\n") == []
