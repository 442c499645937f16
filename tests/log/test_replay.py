"""Replay: own commits move to another tip with all that they tell, and lose no line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Draft, Entry, Signature
from gitmem.log import overflow, ref, replay, trees


def path(name: str) -> str:
    return f"s/2026-11/21/gm-{name}.jsonl"


class Chain:
    """Commits written by hand, outside any ref."""

    def __init__(self, git: DulwichGit) -> None:
        self.git = git
        (self.genesis,) = git.write([ref.genesis_draft()], None)

    def put(
        self, onto: str, message: str, *, author: str = "A", later: int = 0, **changes: bytes | Entry | None
    ) -> str:
        """One commit; keys of `changes` are names of segments, or `format`."""
        named = {name if name == "format" else path(name): content for name, content in changes.items()}
        who = Signature(author, f"{author}@a", 1_700_000_000 + later, "+0200")
        committer = Signature("C", "c@c", 1_700_000_001 + later)
        return self.git.write([Draft(named, who, committer, message)], onto)[0]

    def line(self, count: int, *, onto: str | None = None) -> list[str]:
        """Commits, each by another author and with a line more in one segment and a segment of its own."""
        commits = [onto or self.genesis]
        for number in range(count):
            lines = b"".join(b"%d\n" % each for each in range(number + 1))
            new = {"a": lines, f"n{number}": b"%d\n" % number}
            message = f"say {number}\n\nSignal: sig-{number}\n"
            commits.append(self.put(commits[-1], message, author=f"Agent-{number}", later=10 * number, **new))
        return commits[1:]

    def merge(self, ours: str, theirs: str, tree: str) -> str:
        """A merge commit, as a person makes one."""
        from tests.clones import git

        where = Path(self.git.common)
        return git("commit-tree", "-p", ours, "-p", theirs, "-m", "Merge", tree, cwd=where).strip()

    def entry(self, commit: str, name: str = "a") -> Entry | None:
        return ref.lookup(self.git, self.git.commit(commit).tree, path(name))

    def file(self, commit: str, name: str = "a") -> bytes:
        entry = self.entry(commit, name)
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


def told(chain: Chain, commit: str) -> tuple[object, ...]:
    """All that a commit says of who, when and what."""
    found = chain.git.commit(commit)
    people = [(who.name, who.mail, who.seconds, who.offset) for who in (found.author, found.committer)]
    return found.parents, *people, found.message


def test_one_for_many_is_by_the_first_and_of_the_date_of_the_last(chain: Chain) -> None:
    """And it counts the agents: two are not one."""
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    for count, agents in ((2, "2 agents"), (3, "3 agents")):
        commits = chain.line(count)
        new = replay.as_one(chain.git, commits, theirs)
        assert told(chain, new) == (
            [theirs],
            ("Agent-0", "Agent-0@a", 1_700_000_000 + 10 * (count - 1), "+0200"),
            ("C", "c@c", 1_700_000_001 + 10 * (count - 1), "+0000"),
            f"{count} commits of {agents} in one\n\n"
            + "".join(f"Signal: sig-{number}\n" for number in range(count)),
        )
        assert chain.file(new, "n0") == b"0\n"


def test_one_for_one_is_that_one(chain: Chain) -> None:
    """Where all others bring nothing, their names and ids don't come along either."""
    commits = chain.line(3)
    theirs = chain.put(chain.genesis, "theirs", a=b"0\n1\n", n0=b"0\n", n1=b"1\n")
    new = replay.as_one(chain.git, commits, theirs)
    assert told(chain, new) == ([theirs], *told(chain, commits[2])[1:])
    assert chain.file(new) == b"0\n1\n2\n"


def test_a_line_of_very_many_is_read_at_its_ends(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is the same that all of them one by one come to, and not one blob is read for each."""
    commits = chain.line(20)
    theirs = chain.put(chain.genesis, "theirs", a=b"0\n", n0=b"0\n", n1=b"1\n", b=b"x\n")
    reads: list[str] = []
    real = chain.git.blob

    def blob(oid: str) -> bytes:
        reads.append(oid)
        return real(oid)

    monkeypatch.setattr(chain.git, "blob", blob)
    for first in (0, 19):  # where the first adds nothing, where the last alone is left
        before = theirs if first == 0 else chain.put(theirs, "more", a=chain.file(commits[18]))
        one_by_one = replay.as_one(chain.git, commits[first:], before)
        monkeypatch.setattr(replay, "FEW_MAX", 19 - first)
        reads.clear()
        assert replay.as_one(chain.git, commits[first:], before) == one_by_one
        assert len(reads) <= 8
        assert replay.as_one(chain.git, commits[first:], one_by_one) == one_by_one
        monkeypatch.setattr(replay, "FEW_MAX", 200)


def test_what_is_no_line_is_looked_at_one_by_one(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of several outboxes does not have what the others have."""
    monkeypatch.setattr(replay, "FEW_MAX", 1)
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    sides = [
        chain.put(chain.genesis, "c", c=b"c\n"),
        chain.put(chain.genesis, "d", d=b"d\n"),
        chain.put(chain.genesis, "e", e=b"e\n"),
    ]
    new = replay.as_one(chain.git, sides, theirs)
    assert [chain.file(new, name) for name in "bcde"] == [b"x\n", b"c\n", b"d\n", b"e\n"]
    end = chain.put(sides[0], "end", f=b"f\n")
    new = replay.as_one(chain.git, [sides[1], sides[0], end], theirs)
    assert [chain.file(new, name) for name in "cdf"] == [b"c\n", b"d\n", b"f\n"]


def test_nothing_new_makes_no_commit(chain: Chain) -> None:
    """In one as one by one."""
    commits = chain.line(3)
    assert replay.as_one(chain.git, commits[:2], commits[2]) == commits[2]
    assert replay.as_one(chain.git, [], commits[2]) == commits[2]
    assert replay.replay(chain.git, commits[:2], commits[2]) == commits[2]


def test_a_format_comes_along_with_the_commit_that_brings_it(chain: Chain) -> None:
    """Not with one that only stands on it; and a lesser one stays behind."""
    low, mid, high = (ref.Format.make(turn=turn).content for turn in (1, 2, 3))
    base = chain.put(chain.genesis, "base", format=high, c=b"3\n")
    mine = chain.put(base, "mine", a=b"1\n")
    theirs = chain.put(chain.genesis, "theirs", format=mid, b=b"x\n")

    def form(commit: str) -> bytes:
        return chain.git.blob(chain.git.tree(chain.git.commit(commit).tree)["format"].oid)

    assert form(replay.replay(chain.git, [mine], theirs)) == mid
    new = replay.replay(chain.git, [base, mine], theirs)
    assert form(new) == high and len(own(chain, new, theirs)) == 2
    assert chain.file(new, "c") == b"3\n"
    lower = chain.put(chain.genesis, "lower", format=low)
    assert replay.replay(chain.git, [lower], theirs) == theirs


def test_of_a_file_that_is_no_segment_the_greater_is_kept(chain: Chain) -> None:
    """As in a union: never line by line, and the lesser one makes no commit."""

    def put(onto: str, content: bytes) -> str:
        who = Signature("A", "a@a", 1)
        return chain.git.write([Draft({"notes.txt": content}, who, who, "notes\n")], onto)[0]

    def replayed(mine: str, theirs: str) -> bytes:
        new = replay.replay(chain.git, [mine], theirs)
        return chain.git.blob(chain.git.tree(chain.git.commit(new).tree)["notes.txt"].oid)

    two, six = put(chain.genesis, b"2\n5\n"), put(chain.genesis, b"6\n1\n")
    assert replayed(six, two) == b"6\n1\n"
    assert replay.replay(chain.git, [two], six) == six
    changed = put(two, b"3\n")
    without = chain.put(chain.genesis, "without", a=b"1\n")
    assert replayed(two, without) == b"2\n5\n"
    assert replayed(changed, without) == b"3\n"


def test_a_segment_whose_place_is_taken_is_left_to_the_union(chain: Chain) -> None:
    """By a folder of that name, or a link: neither is read as lines, nor put away."""
    target = chain.entry(chain.put(chain.genesis, "", a=b"gm-b.jsonl"))
    assert target is not None
    link = Entry("120000", target.oid)
    folder = Entry("40000", chain.git.commit(chain.put(chain.genesis, "", b=b"1\n")).tree)
    mine = chain.put(chain.genesis, "mine", a=b"1\n")
    for taken in (link, folder):
        theirs = chain.put(chain.genesis, "theirs", a=taken)
        assert replay.replay(chain.git, [mine], theirs) == theirs
    linked = chain.put(mine, "a link instead", a=link)
    theirs = chain.put(chain.genesis, "theirs", a=b"2\n")
    new = replay.replay(chain.git, [mine, linked], theirs)
    assert chain.file(new) == b"1\n2\n" and len(own(chain, new, theirs)) == 1


def test_what_a_segment_has_no_room_for_goes_where_the_union_puts_it(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So nothing is left to repair, and what stands there is neither added to nor taken for what was sent."""
    monkeypatch.setattr(ref, "UNION_BYTES_MAX", 20)
    full = chain.put(chain.genesis, "theirs", a=b"x" * 18 + b"\n")
    mine = chain.put(chain.genesis, "mine", a=b"yy\n")
    new = replay.replay(chain.git, [mine], full)
    own_tree, tree = (chain.git.commit(each).tree for each in (mine, new))
    assert trees.union_changes(chain.git, tree, [own_tree]) == {}
    assert chain.file(new) == b"x" * 18 + b"\n"
    assert trees.new_lines(chain.git, tree, [chain.git.commit(full).tree]) == 1
    assert replay.replay(chain.git, [mine], new) == new
    # Somebody else may have filled the place beside it, too.
    beside = overflow.path_beside(path("a"), b"yy\n")
    who = Signature("n", "n@n", 1)
    (taken,) = chain.git.write([Draft({beside: b"z" * 19 + b"\n"}, who, who, "taken")], full)
    both = chain.git.commit(replay.replay(chain.git, [mine], taken)).tree
    assert trees.union_changes(chain.git, both, [own_tree]) == {}


def test_a_segment_that_was_written_by_hand_comes_in_its_canonical_form(chain: Chain) -> None:
    """An editor's line ends, and lines out of order: also where nobody else wrote to it."""
    theirs = chain.put(chain.genesis, "theirs", a=b"1\n", b=b"x\n")
    base = chain.put(chain.genesis, "base", a=b"1\n")
    mine = chain.put(base, "mine", a=b"2\r\n1\r\n")
    assert chain.file(replay.replay(chain.git, [mine], theirs)) == b"1\n2\n"


def test_lines_that_count_as_there_are_not_brought(chain: Chain) -> None:
    """An outbox has them: the commit that brings nothing else is not sent again, whatever stands here."""
    base = chain.put(chain.genesis, "base", a=b"1\n")
    second = chain.put(base, "second", a=b"1\n2\n", n=b"7\n")
    third = chain.put(second, "third", a=b"1\n2\n3\n")
    known = {path("a"): {b"2"}, path("n"): {b"7"}}
    top = replay.Top(chain.git, chain.git.commit(base).tree, known)
    assert top.add(chain.git.commit(second)) == {}
    assert top.add(chain.git.commit(third)) == {path("a"): b"1\n3\n"}


def test_trailers_are_the_last_paragraph_or_none() -> None:
    """A body that only looks a little like trailers is none."""
    assert replay.trailers("s\n\nSignal: a\nWU: b\n") == ["Signal: a", "WU: b"]
    assert replay.trailers("s\n\nbody\n\nCo-Authored-By: X: Y \n\n") == ["Co-Authored-By: X: Y "]
    assert replay.trailers("s\n\nWU: X\n") == ["WU: X"]
    assert replay.trailers("Subject: a\n") == []
    assert replay.trailers("s\n\nSignal: a\n\nbody\n") == []
    assert replay.trailers("s\n\nhello: there\nand more\n") == []
    assert replay.trailers("s\n\nhello: there\nword\n") == []
    assert replay.trailers("s\n\nhello there: all\n") == []
    assert replay.trailers("s\n\n--: all\n") == []
