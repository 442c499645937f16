"""Squash: own commits move to another tip as one, with all that they tell, and lose no line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem.git import packs
from gitmem.git.objects import Commit, Draft, Signature, TreeEntry
from gitmem.git.port import DulwichGit
from gitmem.log import ref, squash, tree_union
from gitmem.log.squash import message, trailers

from .logs import limit_unions

SOMEBODY = Signature("Somebody", "s@s", 1)


def path(name: str) -> str:
    return f"s/2026-11/21/gm-{name}.jsonl"


class Chain:
    """Commits written by hand, outside any ref."""

    def __init__(self, git: DulwichGit) -> None:
        self.git = git
        (self.genesis,) = git.write([ref.genesis_draft()], None)

    def put(
        self,
        onto: str,
        message: str,
        *,
        author: str = "A",
        later: int = 0,
        **changes: bytes | TreeEntry | None,
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

    def entry(self, commit: str, name: str = "a") -> TreeEntry | None:
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
    assert squash.squash(chain.git, own(chain, tip, chain.genesis), chain.genesis) == tip


def test_who_when_and_what_are_kept(chain: Chain) -> None:
    """Author, committer, dates with their offsets, and the whole message."""
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    message = "subject — ü\n\nbody\n\nSignal: sig-1\nWU: WU-1\n"
    mine = chain.put(chain.genesis, message, author="Planck", a=b"1\n")
    new = chain.git.commit(squash.squash(chain.git, [mine], theirs))
    old = chain.git.commit(mine)
    assert new.parents == [theirs] and new.message == old.message
    for before, after in ((old.author, new.author), (old.committer, new.committer)):
        assert (before.name, before.mail, before.seconds, before.offset) == (
            after.name,
            after.mail,
            after.seconds,
            after.offset,
        )


def test_it_is_the_same_commit_whoever_makes_it(chain: Chain) -> None:
    """Two processes that squash the same commits make the same objects."""
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    mine = own(chain, chain.put(chain.put(chain.genesis, "1", a=b"1\n"), "2", c=b"2\n"), chain.genesis)
    assert squash.squash(chain.git, mine, theirs) == squash.squash(chain.git, mine, theirs)


def test_a_commit_that_adds_nothing_is_left_out(chain: Chain) -> None:
    """Its lines are there already."""
    theirs = chain.put(chain.genesis, "theirs", a=b"1\n2\n3\n")
    first = chain.put(chain.genesis, "mine 1", a=b"2\n")
    second = chain.put(first, "mine 2", a=b"2\n4\n")
    new = squash.squash(chain.git, [first, second], theirs)
    assert [chain.git.commit(oid).message for oid in own(chain, new, theirs)] == ["mine 2"]
    assert chain.file(new) == b"1\n2\n3\n4\n"


def test_what_a_commit_took_away_stays(chain: Chain) -> None:
    """Deleted lines and files are not deleted on the new tip."""
    theirs = chain.put(chain.genesis, "theirs", a=b"1\n2\n", b=b"3\n")
    base = chain.put(chain.genesis, "base", a=b"1\n2\n", b=b"3\n")
    mine = chain.put(base, "mine", a=b"2\n4\n", b=None)
    new = squash.squash(chain.git, [mine], theirs)
    assert (chain.file(new), chain.file(new, "b")) == (b"1\n2\n4\n", b"3\n")


def test_merges_are_flattened(chain: Chain) -> None:
    """Both sides are in the one commit, and what the merge itself added; it is told where nothing else is."""
    left = chain.put(chain.genesis, "left", a=b"1\n")
    right = chain.put(chain.genesis, "right", b=b"2\n")
    plain = chain.merge(left, right, chain.git.commit(chain.put(left, "", b=b"2\n")).tree)
    evil = chain.merge(left, right, chain.git.commit(chain.put(left, "", b=b"2\n", c=b"3\n")).tree)
    theirs = chain.put(chain.genesis, "theirs", d=b"x\n")
    for merge, count in ((plain, 2), (evil, 3)):
        new = squash.squash(chain.git, own(chain, merge, chain.genesis), theirs)
        commit = chain.git.commit(new)
        assert commit.parents == [theirs]
        assert commit.message.split("\n")[0] in (f"left +{count - 1}", f"right +{count - 1}")
        assert sorted(commit.message.split("\n")[2:4]) == ["left", "right"]
        assert [chain.file(new, name) for name in "abd"] == [b"1\n", b"2\n", b"x\n"]
    assert chain.file(new, "c") == b"3\n"
    both = chain.put(theirs, "", a=b"1\n", b=b"2\n")
    new = squash.squash(chain.git, own(chain, evil, chain.genesis), both)
    assert chain.git.commit(new).message == "Merge\n" and chain.file(new, "c") == b"3\n"


def test_several_commits_become_one_that_lists_their_records(chain: Chain) -> None:
    """Subjects and trailers, each trailer once and together with its like; by the first, of the date of the last."""
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    tip, commits = chain.genesis, []
    for number in range(3):
        content = b"".join(b"%d\n" % line for line in range(number + 1))
        text = f"say {number}\n\nbody\n\nSignal: sig-{number}\nWU: WU-1\n"
        tip = chain.put(tip, text, author=f"Agent-{min(number, 1)}", later=10 * number, a=content)
        commits.append(tip)
    new = squash.squash(chain.git, commits, theirs)
    assert told(chain, new) == (
        [theirs],
        ("Agent-0", "Agent-0@a", 1_700_000_020, "+0200"),
        ("C", "c@c", 1_700_000_021, "+0000"),
        "say 0 +2\n\nsay 0\nsay 1\nsay 2\n\nSignal: sig-0\nSignal: sig-1\nSignal: sig-2\nWU: WU-1\n",
    )
    assert chain.file(new) == b"0\n1\n2\n"


def told(chain: Chain, commit: str) -> tuple[object, ...]:
    """All that a commit says of who, when and what."""
    found = chain.git.commit(commit)
    people = [(who.name, who.mail, who.seconds, who.offset) for who in (found.author, found.committer)]
    return found.parents, *people, found.message


def test_only_commits_that_bring_anything_are_told(chain: Chain) -> None:
    """As long as they are not very many."""
    commits = chain.line(4)
    theirs = chain.put(chain.genesis, "theirs", a=b"0\n1\n", n0=b"0\n", n1=b"1\n")
    new = squash.squash(chain.git, commits, theirs)
    assert chain.git.commit(new).message.startswith("say 2 +3\n\nsay 2\nsay 3\n\nSignal: sig-2")
    assert chain.file(new) == b"0\n1\n2\n3\n"
    last = chain.put(theirs, "more", a=b"0\n1\n2\n", n2=b"2\n")
    assert told(chain, squash.squash(chain.git, commits, last))[1:] == told(chain, commits[3])[1:]


def test_a_line_of_very_many_is_read_at_its_ends(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one blob or tree is read for each."""
    monkeypatch.setattr(squash, "EACH_MAX", 29)
    commits = chain.line(30)
    theirs = chain.put(chain.genesis, "theirs", b=b"x\n")
    reads: list[str] = []
    for name in ("blob", "tree"):
        real = getattr(chain.git, name)

        def read(oid: str, real: Callable[[str], object] = real) -> object:
            reads.append(oid)
            return real(oid)

        monkeypatch.setattr(chain.git, name, read)
    last = chain.git.commit(commits[-1]).tree
    new = squash.squash(chain.git, commits, theirs)
    assert len(reads) < 500 and last in reads  # some for each of the 31 files
    assert not {chain.git.commit(oid).tree for oid in commits[:-1]} & set(reads)
    assert chain.file(new, "n29") == b"29\n" and chain.file(new, "b") == b"x\n"


def test_commits_that_stand_for_others_are_listed_with_what_they_list(chain: Chain) -> None:
    """So that no record is lost to the story, however often a sync loses a race."""
    one = [Commit("", [], SOMEBODY, SOMEBODY, f"say {number}\n\nNote: {number}\n") for number in range(3)]
    text = message(one[:2], 2)
    assert text == "say 0 +1\n\nsay 0\nsay 1\n\nNote: 0\nNote: 1\n"
    both = Commit("", [], SOMEBODY, SOMEBODY, text)
    assert message([both, one[2]], 5) == ("say 0 +4\n\nsay 0\nsay 1\nsay 2\n\nNote: 0\nNote: 1\nNote: 2\n")
    bare = Commit("", [], SOMEBODY, SOMEBODY, "Vote +6\n\nNote: 4\n")
    assert message([bare, one[2]], 1).startswith("Vote +6\n\nVote +6\nsay 2\n")


def test_the_most_telling_record_is_the_subject(chain: Chain) -> None:
    """Also where it is in the list of a commit that stands for several; a long one is cut, and listed all the same."""
    long = "A → B: PROPOSE " + "x" * 80
    texts = (f"A notes: note y +1\n\nA notes: note y\n{long}\n\nAgent: x\n", "C starts\n\nAgent: x\n")
    commits = [Commit("", [], SOMEBODY, SOMEBODY, text) for text in texts]
    found = message(commits, 12)
    assert found.split("\n")[0] == long[:67] + "… +11" and len(found.split("\n")[0]) == 72
    assert found.split("\n\n")[1] == f"A notes: note y\n{long}\nC starts"
    agreed = Commit("", [], SOMEBODY, SOMEBODY, "B → A: AGREE yes +1\n\nwords of hers\n")
    again = message([Commit("", [], SOMEBODY, SOMEBODY, found), agreed], 14)
    assert again.split("\n\n")[0] == "B → A: AGREE yes +1 +13"
    assert again.split("\n\n")[1] == f"A notes: note y\n{long}\nC starts\nB → A: AGREE yes +1"


def test_a_message_has_a_limit_whatever_peers_write() -> None:
    """Subjects are cut and counted, control characters go, and trailers fit."""
    long = "z" * (squash.MESSAGE_BYTES_MAX - 10)
    more = ["more"] * (squash.SUBJECTS_MAX - 2)
    texts = ("x" * 900, "\x1b[2J\u202eodd", *more, "\n", f"last\n\nNote: {long}\nNote: 2\nNote: 3\n")
    found = message([Commit("", [], SOMEBODY, SOMEBODY, text) for text in texts], 4)

    subjects = "\n".join(("x" * 100, "[2Jodd", *more))
    assert found == f"{'x' * 68}… +3\n\n{subjects}\nand 2 more\n\nNote: {long}\n"
    assert message([Commit("", [], SOMEBODY, SOMEBODY, "\n")] * 2, 2) == (
        "(no subject) +1\n\n(no subject)\n(no subject)\n"
    )


def test_of_a_long_message_little_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of as many lines as a message holds is counted, not taken apart; so are words and trailers."""
    plain: list[str] = []
    real = squash._plain
    monkeypatch.setattr(squash, "_plain", lambda line: plain.append(line) or real(line))
    many = 300_000
    texts = (
        "x +8\n\n" + "x\n" * many + "\nNote: a\n",
        " " * many + "\n",
        "c\n\n" + "Note: b\n" * many,
        "d\n\n" + "".join(f"Note: {number}\n" for number in range(many)),
        "e\n\nNote: e\n",
    )
    found = message([Commit("", [], SOMEBODY, SOMEBODY, text) for text in texts], 4)
    assert len(plain) < squash.SUBJECTS_MAX + 10
    assert f"x\nand {many - 1_000 + 4:,} more\n\nNote: a\nNote: b\nNote: 0\n" in found
    assert len(found) < squash.MESSAGE_BYTES_MAX + 10_000
    assert len(trailers(texts[3])) < many


def test_trailers_that_find_no_room_are_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of thousands of commits together may be more than memory holds."""
    asked: list[str] = []
    monkeypatch.setattr(squash, "trailers", lambda text: asked.append(text) or trailers(text))
    long = "x" * (squash.MESSAGE_BYTES_MAX * 2 // 5)
    texts = [f"s\n\nNote: {number}{long}\n" for number in range(50)]
    found = message([Commit("", [], SOMEBODY, SOMEBODY, text) for text in texts], 50)
    assert found.endswith(f"\n\nNote: 0{long}\nNote: 1{long}\n") and len(asked) == 3


def test_nothing_new_makes_no_commit(chain: Chain) -> None:
    """The tip stays."""
    commits = chain.line(3)
    assert squash.squash(chain.git, [], commits[2]) == commits[2]
    assert squash.squash(chain.git, commits[:2], commits[2]) == commits[2]


def test_a_format_comes_along_with_the_commit_that_brings_it(chain: Chain) -> None:
    """And a lesser one stays behind."""
    low, mid, high = (ref.Format.make(turn=turn).content for turn in (1, 2, 3))
    base = chain.put(chain.genesis, "base", format=high, c=b"3\n")
    mine = chain.put(base, "mine", a=b"1\n")
    theirs = chain.put(chain.genesis, "theirs", format=mid, b=b"x\n")

    def form(commit: str) -> bytes:
        return chain.git.blob(chain.git.tree(chain.git.commit(commit).tree)["format"].oid)

    new = squash.squash(chain.git, [base, mine], theirs)
    assert form(new) == high and len(own(chain, new, theirs)) == 1
    assert chain.file(new, "c") == b"3\n"
    lower = chain.put(chain.genesis, "lower", format=low)
    assert squash.squash(chain.git, [lower], theirs) == theirs


def test_of_a_file_that_is_no_segment_the_greater_is_kept(chain: Chain) -> None:
    """As in a union: never line by line, and the lesser one makes no commit."""

    def put(onto: str, content: bytes) -> str:
        who = Signature("A", "a@a", 1)
        return chain.git.write([Draft({"notes.txt": content}, who, who, "notes\n")], onto)[0]

    def replayed(mine: str, theirs: str) -> bytes:
        new = squash.squash(chain.git, [mine], theirs)
        return chain.git.blob(chain.git.tree(chain.git.commit(new).tree)["notes.txt"].oid)

    two, six = put(chain.genesis, b"2\n5\n"), put(chain.genesis, b"6\n1\n")
    assert replayed(six, two) == b"6\n1\n"
    assert squash.squash(chain.git, [two], six) == six
    changed = put(two, b"3\n")
    without = chain.put(chain.genesis, "without", a=b"1\n")
    assert replayed(two, without) == b"2\n5\n"
    assert replayed(changed, without) == b"3\n"


def test_what_a_segment_has_no_room_for_goes_where_the_union_puts_it(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So nothing is left to repair, and what stands there is neither added to nor taken for what was sent."""
    limit_unions(monkeypatch)
    size = ref.UNION_BYTES_MAX - 2
    full = chain.put(chain.genesis, "theirs", a=b"x" * size + b"\n")
    mine = chain.put(chain.genesis, "mine", a=b"yy\n")
    new = squash.squash(chain.git, [mine], full)
    own_tree, tree = (chain.git.commit(each).tree for each in (mine, new))
    assert tree_union.union_changes(chain.git, tree, [own_tree]) == {}
    assert chain.file(new) == b"x" * size + b"\n"
    assert tree_union.new_lines(chain.git, tree, [chain.git.commit(full).tree]) == 1
    assert squash.squash(chain.git, [mine], new) == new
    # Somebody else may have filled the place beside it, too.
    beside = tree_union.overflow_path(path("a"), b"yy\n")
    who = Signature("n", "n@n", 1)
    (taken,) = chain.git.write([Draft({beside: b"z" * size + b"\n"}, who, who, "taken")], full)
    both = chain.git.commit(squash.squash(chain.git, [mine], taken)).tree
    assert tree_union.union_changes(chain.git, both, [own_tree]) == {}


def test_no_number_of_files_beside_a_full_segment_is_read(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer puts small files wherever a large content of an outbox may go: the longer one stays, as in a union."""
    limit_unions(monkeypatch)
    content = b"".join(b"%078d\n" % number for number in range(ref.UNION_BYTES_MAX // 79))
    name, files = path("a"), {path("a"): b"%090d\n" % 99}
    for number in range(20):
        name = tree_union.overflow_path(name, content)
        files[name] = b"%090d\n" % number
    who = Signature("n", "n@n", 1)
    (theirs,) = chain.git.write([Draft(files, who, who, "theirs")], chain.genesis)
    mine = chain.put(chain.genesis, "mine", a=content)
    read: list[str] = []
    blob = chain.git.blob
    chain.git.blob = lambda oid: read.append(oid) or blob(oid)  # type: ignore[method-assign,func-returns-value]

    new = squash.squash(chain.git, [mine], theirs)

    assert len(set(read)) < 5
    tree, own_tree, their_tree = (chain.git.commit(each).tree for each in (new, mine, theirs))
    for each in (own_tree, their_tree):
        assert tree_union.union_changes(chain.git, tree, [each]) == {}
    assert chain.file(new) == content


def test_a_segment_that_was_written_by_hand_comes_in_its_canonical_form(chain: Chain) -> None:
    """An editor's line ends, and lines out of order: also where nobody else wrote to it."""
    theirs = chain.put(chain.genesis, "theirs", a=b"1\n", b=b"x\n")
    base = chain.put(chain.genesis, "base", a=b"1\n")
    mine = chain.put(base, "mine", a=b"2\r\n1\r\n")
    assert chain.file(squash.squash(chain.git, [mine], theirs)) == b"1\n2\n"


def test_what_stands_where_nothing_is_yet_is_taken_as_it_is(chain: Chain) -> None:
    """Folders and files, unread and unwritten."""
    theirs = chain.put(chain.genesis, "theirs", x=b"9\n")
    who = Signature("A", "a@a", 1)
    (other,) = chain.git.write(
        [Draft({"t/1/gm-c.jsonl": b"4\n", "t/gm-d.jsonl": b"5\n6\n"}, who, who, "other")], chain.genesis
    )
    common = chain.git.common
    before = packs.listed(common)
    alone = squash.squash(chain.git, [other], theirs)
    (new,) = packs.listed(common) - before
    puts = packs.ids_in(os.path.join(common, "objects", "pack", new + ".idx"), 40)
    assert set(puts) == {alone, chain.git.commit(alone).tree}, "the root, and nothing below it"
    assert (
        ref.lookup(chain.git, chain.git.commit(alone).tree, "t")
        == chain.git.tree(chain.git.commit(other).tree)["t"]
    )


def test_lines_that_count_as_there_are_not_brought(chain: Chain) -> None:
    """An outbox has them: the commit that brings nothing else is not told again, also where it stands here already."""
    base = chain.put(chain.genesis, "base", a=b"1\n")
    second = chain.put(base, "second", a=b"1\n2\n", n=b"7\n")
    third = chain.put(second, "third", a=b"1\n2\n3\n")
    known = [chain.git.commit(chain.put(chain.genesis, "known", a=b"2\n", n=b"7\n")).tree]
    assert squash.squash(chain.git, [second], base, known) == base
    new = squash.squash(chain.git, [second, third], base, known)
    assert told(chain, new) == ([base], *told(chain, third)[1:])
    assert (chain.file(new), chain.file(new, "n")) == (b"1\n3\n", b"")
    form = chain.put(base, "form", format=ref.Format.make(turn=1).content)
    (notes,) = chain.git.write([Draft({"notes.txt": b"x\n"}, SOMEBODY, SOMEBODY, "notes\n")], form)
    (other,) = chain.git.write([Draft({"notes.txt": b"x\n"}, SOMEBODY, SOMEBODY, "notes\n")], chain.genesis)
    new = squash.squash(chain.git, [form, notes], base, [chain.git.commit(other).tree])
    assert sorted(chain.git.tree(chain.git.commit(new).tree)) == ["format", "s"]


def test_trailers_are_the_last_paragraph_or_none() -> None:
    """A body that only looks a little like trailers is none."""
    assert trailers("s\n\nSignal: a\nWU: b\n") == ["Signal: a", "WU: b"]
    assert trailers("s\n\nbody\n\nCo-Authored-By: X: Y \n\n") == ["Co-Authored-By: X: Y "]
    assert trailers("s\n\nWU: X\n") == ["WU: X"]
    assert trailers("Subject: a\n") == []
    assert trailers("s\n\nSignal: a\n\nbody\n") == []
    assert trailers("s\n\nhello: there\nand more\n") == []
    assert trailers("s\n\nhello: there\nword\n") == []
    assert trailers("s\n\nhello there: all\n") == []
    assert trailers("s\n\n--: all\n") == []
