"""Each guard over a peer's tree by itself: a tree that breaks one rule, and the same tree without that."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git.inprocess import DulwichGit
from gitmem.log.tree_checks import LimitExceeded, Limits, Rejected, TreeCheck, raw_entries
from tests.hazards.peers import git

FILE, FOLDER = "100644", "40000"
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # in no object store: git knows it


class Trees:
    """Objects of any content in a repository."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git = DulwichGit(str(path / ".git"))
        self.limits = Limits()
        self.form = (FILE, b"format", self.blob(b"{}\n"))

    def blob(self, data: bytes) -> str:
        return self.object("blob", data)

    def object(self, kind: str, data: bytes) -> str:
        return git("hash-object", "-t", kind, "--literally", "-w", "--stdin", cwd=self.path, input=data)

    def folder(self, *rows: tuple[str, bytes, str]) -> str:
        return self.object(
            "tree",
            b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in rows),
        )

    def root(self, *rows: tuple[str, bytes, str]) -> str:
        """A tree with the file `format`, which each log has."""
        return self.folder(self.form, *rows)

    def below(self, *rows: tuple[str, bytes, str]) -> str:
        return self.root((FOLDER, b"s", self.folder(*rows)))

    def commit(self, tree: str, text: str = "x") -> str:
        by = "A <a@a> 1 +0000"
        return self.object("commit", f"tree {tree}\nauthor {by}\ncommitter {by}\n\n{text}\n".encode())

    def checks(self, *, large: bool = False) -> TreeCheck:
        return TreeCheck(self.git, set(), allow_large=large, limits=self.limits)

    def check(self, *trees: str, known: tuple[str, ...] = (), large: bool = False) -> None:
        self.checks(large=large).trees(trees, known)


@pytest.fixture
def trees(repo: Path) -> Trees:
    return Trees(repo)


def test_a_tree_of_a_log_passes(trees: Trees) -> None:
    """With the two files that only the top may have, both modes of files, and an empty folder."""
    blob = trees.blob(b"1\n")
    trees.check(
        trees.root(
            (FILE, b"README.md", blob),
            (FILE, b".gitattributes", blob),
            ("100755", b"a", blob),
            ("040000", b"b", EMPTY),
            (FOLDER, b"s", trees.folder(("100664", b"gm-1.jsonl", blob), (FILE, b"x" * 255, blob))),
        )
    )


@pytest.mark.parametrize(
    "name",
    [b"A", b".x", b"x.", b"README.md", b".gitattributes", b"a b", b"a/b", b"a\nb", b"a\n", b"\xc3\xa9", b"x" * 256, b"", b"a\\b", b".."],
)  # fmt: skip
def test_a_name_below_the_top_has_to_be_plain(trees: Trees, name: bytes) -> None:
    with pytest.raises(Rejected, match="is not allowed"):
        trees.check(trees.below((FILE, name, trees.blob(b"1\n"))))


@pytest.mark.parametrize("mode", ["120000", "160000", "100600", "0", "40755"])
def test_only_files_and_folders_are_allowed(trees: Trees, mode: str) -> None:
    with pytest.raises(Rejected, match="mode"):
        trees.check(trees.below((mode, b"a", trees.blob(b"1\n"))))


def test_a_name_is_there_once(trees: Trees) -> None:
    blob = trees.blob(b"1\n")
    with pytest.raises(Rejected, match="twice"):
        trees.check(trees.below((FILE, b"a", blob), (FILE, b"a", blob)))


def test_the_top_has_the_file_format(trees: Trees) -> None:
    """A folder of that tree needs none."""
    with pytest.raises(Rejected, match="no file `format`"):
        trees.check(trees.folder((FILE, b"a", trees.blob(b"1\n"))))


@pytest.mark.parametrize(
    "data",
    [
        b"100644",
        b"100644 a",
        b"100644 " + b"a" * 30,
        b"100644 " + b"a" * 13,  # as long as an id: without a NUL it would end just there
        b"100644 a\0" + b"\1" * 19,
        b"100644a\0" + b"\1" * 20,
    ],
)
def test_a_cut_tree_is_damaged(data: bytes) -> None:
    with pytest.raises(Rejected, match="damaged"):
        raw_entries(data, 40)


def test_an_object_of_another_kind_or_none_is_missing(trees: Trees) -> None:
    """A file that is a folder, a folder that is a file, a commit that is a file, and what is not here."""
    blob, folder = trees.blob(b"1\n"), trees.folder(trees.form)
    for tree in (
        trees.below((FILE, b"a", folder)),
        trees.below((FOLDER, b"a", blob)),
        trees.below((FILE, b"a", "ab" * 20)),
        trees.below((FOLDER, b"a", "ab" * 20)),
    ):
        with pytest.raises(KeyError):
            trees.check(tree)
    with pytest.raises(KeyError):
        trees.checks().commits([blob])


@pytest.mark.parametrize("kind", ["blob", "tree", "commit"])
def test_no_object_is_larger_than_the_limit(trees: Trees, kind: str) -> None:
    """Each kind; `allow_large` takes it."""
    trees.limits = Limits(object_bytes=300)
    small = trees.blob(b"1\n")
    many = [(FILE, b"a%d" % number, small) for number in range(20)]
    tree = trees.below(*many) if kind == "tree" else trees.root((FILE, b"a", trees.blob(b"1" * 301)))
    commit = trees.commit(trees.root(), "x" * 301)
    for large in (False, True):
        check = trees.checks(large=large)
        try:
            if kind == "commit":
                check.commits([commit])
            else:
                check.trees([tree], ())
        except Rejected as found:
            assert not large and "allow-large" in str(found)
        else:
            assert large


def test_folders_are_nested_no_deeper_than_the_limit(trees: Trees) -> None:
    trees.limits = Limits(depth=3)
    tree = trees.folder((FILE, b"a", trees.blob(b"1\n")))
    for _ in range(2):
        tree = trees.folder((FOLDER, b"d", tree))
    trees.check(trees.root((FOLDER, b"d", tree)))
    with pytest.raises(Rejected, match="deep"):
        trees.check(trees.root((FOLDER, b"d", trees.folder((FOLDER, b"d", tree)))))


def test_entries_are_counted_over_all_folders(trees: Trees) -> None:
    """Also those that are known: each of them has to be read."""
    trees.limits = Limits(rows=5)
    blob = trees.blob(b"1\n")
    rows = [(FILE, b"a%d" % number, blob) for number in range(4)]
    trees.check(trees.below(*rows[:3]))
    with pytest.raises(Rejected, match="more than 5 entries"):
        trees.check(trees.below(*rows))


@pytest.mark.parametrize(("limit", "most"), [("files", 2), ("lines", 3), ("bytes", 5)])
def test_what_is_new_is_limited_over_all_places_of_a_sync(trees: Trees, limit: str, most: int) -> None:
    """One file fits twice; what was counted or is known counts no more, what failed counts not."""
    trees.limits = Limits(**{limit: most})
    one, other = (trees.root((FILE, name + b".jsonl", trees.blob(name + b"\n"))) for name in (b"a", b"b"))
    check = trees.checks()
    known = trees.root()  # `format` is known, so each tree has one new file of two bytes and a line
    check.trees([one], [known])
    check.passed.clear()
    check.trees([one], [known])
    check.trees([other], [known])
    check.passed.clear()
    both = trees.root((FILE, b"c.jsonl", trees.blob(b"c\n")), (FILE, b"d.jsonl", trees.blob(b"d\n")))
    with pytest.raises(LimitExceeded, match="more than"):
        check.trees([both], [known])
    check.trees([one, other], [known])
    trees.check(both, known=(known,))
    trees.checks(large=True).trees([both, one, other], [known])


def test_lines_are_counted_where_bytes_are_too_many(trees: Trees) -> None:
    """A long line is one line, also without an end."""
    trees.limits = Limits(lines=3)
    known = trees.root()
    for fits in (b"x" * 99, b"x\n" * 3, b"x\n" * 2 + b"x"):
        trees.check(trees.root((FILE, b"a.jsonl", trees.blob(fits))), known=(known,))
    for much in (b"x\n" * 4, b"x\n" * 3 + b"x"):
        with pytest.raises(LimitExceeded, match="lines"):
            trees.check(trees.root((FILE, b"a.jsonl", trees.blob(much))), known=(known,))


def test_files_of_places_that_are_left_out_are_read_up_to_a_limit_to_count_their_lines(
    trees: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of 200 places costs as much as a sync takes in. What was counted is not read again."""
    trees.limits = Limits(lines=3, counted_bytes=25)
    known = (trees.root(),)
    fits, *bad = (trees.root((FILE, b"a.jsonl", trees.blob(b"%d\n" % at * 5))) for at in range(4))
    few = trees.root((FILE, b"a.jsonl", trees.blob(b"xxx\n")))
    check = trees.checks()
    read: list[str] = []
    real = trees.git.blob
    monkeypatch.setattr(trees.git, "blob", lambda oid: read.append(oid) or real(oid))
    check.trees([few], known, "few")
    check.forget("few")
    for root in (fits, bad[0], fits):
        with pytest.raises(LimitExceeded, match="more than 3 new lines"):
            check.trees([root], known, "bad")
        check.forget("bad")
    for root in bad[1:]:
        with pytest.raises(LimitExceeded, match="is unknown: 25 bytes"):
            check.trees([root], known, "bad")
        check.forget("bad")
    check.trees([few], known, "few")

    assert len(read) == 3


def test_only_segments_have_lines(trees: Trees) -> None:
    """Other files count as files and bytes."""
    trees.limits = Limits(lines=3)
    trees.check(trees.folder((FILE, b"format", trees.blob(b"[\n" * 50))))
    trees.check(trees.root((FILE, b"a", trees.blob(b"x\n" * 50))))


@pytest.mark.parametrize(("limit", "most"), [("files", 2), ("lines", 2), ("bytes", 4)])
def test_a_place_that_is_left_out_gives_back_what_it_took(trees: Trees, limit: str, most: int) -> None:
    """But not what another place has too; and its tree is looked at and counted again for the next place."""
    trees.limits = Limits(**{limit: most})
    a, b, c = ((FILE, name + b".jsonl", trees.blob(name + b"\n")) for name in (b"a", b"b", b"c"))
    known = [trees.root()]
    check = trees.checks()
    check.trees([trees.root(a)], known, "good")
    check.trees([trees.root(a, b)], known, "bad")
    with pytest.raises(LimitExceeded):
        check.trees([trees.root(c)], known, "third")
    check.forget("bad")
    check.trees([trees.root(c)], known, "third")
    for again in (trees.root(a, b), trees.root(b)):
        with pytest.raises(LimitExceeded):
            check.trees([again], known, "fourth")


def test_what_passed_is_looked_at_once(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what did not pass each time, though a part of it did."""
    bad = trees.below((FILE, b"A", trees.blob(b"1\n")))
    good, commit = trees.root(), trees.commit(trees.root())
    check = trees.checks()
    check.commits([commit])
    check.trees([good], ())
    for _ in range(2):
        with pytest.raises(Rejected):
            check.trees([bad], ())
    asked: list[object] = []
    monkeypatch.setattr(check.git, "heads", lambda oids: asked.extend(oids) or {})
    check.commits([commit])
    check.trees([good], ())
    assert not asked
