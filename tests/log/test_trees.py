"""Each guard over a peer's tree by itself: a tree that breaks one rule, and the same tree without that."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.git.port import DulwichGit
from gitmem.log import ref, tree_union
from gitmem.log.tree_checks import LimitExceeded, Limits, Rejected, TreeCheck, raw_entries
from gitmem.log.union import canonical, union

from ..hazards.peers import git
from .logs import limit_unions

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
    good = trees.root()
    check = trees.checks()
    check.trees([good], ())
    for _ in range(2):
        with pytest.raises(Rejected):
            check.trees([bad], ())
    asked: list[object] = []
    monkeypatch.setattr(check.git, "heads", lambda oids: asked.extend(oids) or {})
    check.trees([good], ())
    assert not asked


# Trees: the union of two logs' trees is the same from either side, and reads only what differs.

NOBODY = Signature("n", "n@n", 1)
Files = dict[str, bytes]


@pytest.fixture
def port(repo: Path) -> Iterator[DulwichGit]:
    """One implementation of the port: `tests/contracts/test_git_port.py` shows that both are alike."""
    found = DulwichGit(str(repo / ".git"))
    yield found
    found.close()


def tree_of(port: DulwichGit, files: Files) -> str:
    changes: dict[str, bytes | TreeEntry | None] = dict(files)
    (commit,) = port.write([Draft(changes, NOBODY, NOBODY, "x")], None)
    return port.commit(commit).tree


def united(port: DulwichGit, *given: str) -> str:
    """The tree that the first becomes."""
    changes = tree_union.union_changes(port, given[0], given[1:])
    (commit,) = port.write([Draft(changes, NOBODY, NOBODY, "x", tree=given[0])], None)
    return port.commit(commit).tree


def files_of(port: DulwichGit, tree: str, path: str = "") -> Files:
    found: Files = {}
    for name, entry in port.tree(tree).items():
        if entry.is_tree:
            found.update(files_of(port, entry.oid, f"{path}{name}/"))
        else:
            found[path + name] = port.blob(entry.oid)
    return found


def format_of(**fields: object) -> bytes:
    return json.dumps({"format": 1, "epoch": 0, "turn": 0, "publish": "refs/heads/gitmem", **fields}).encode()


def test_segments_are_united_and_everything_else_is_kept(port: DulwichGit) -> None:
    """Lines of both, files of both; of an unknown file that differs the greater bytes."""
    a = tree_of(
        port, {"s/1/gm-a.jsonl": b"1\n2\n", "s/1/gm-b.jsonl": b"x\n", "projects/p": b"", "other": b"a"}
    )
    b = tree_of(port, {"s/1/gm-a.jsonl": b"2\n3\n", "t/gm-c.jsonl": b"y\n", "projects/q": b"", "other": b"b"})
    both = united(port, a, b)
    assert both == united(port, b, a)
    assert files_of(port, both) == {
        "s/1/gm-a.jsonl": b"1\n2\n3\n",
        "s/1/gm-b.jsonl": b"x\n",
        "t/gm-c.jsonl": b"y\n",
        "projects/p": b"",
        "projects/q": b"",
        "other": b"b",
    }


def test_the_greatest_format_wins_with_the_files_beside_it(port: DulwichGit) -> None:
    """Rank decides, not bytes; a README of the loser is not taken, were it greater."""
    old = {"format": format_of(turn=9), "README.md": b"zzz", ".gitattributes": b"zzz"}
    new = {"format": format_of(turn=10), "README.md": b"aaa", ".gitattributes": b"aaa"}
    a, b = tree_of(port, old), tree_of(port, new)
    assert united(port, a, b) == united(port, b, a) == b


def test_between_equal_formats_the_greater_readme_is_kept(port: DulwichGit) -> None:
    """Also against a tree that has lost it."""
    form = {"format": format_of()}
    a, b, c = (tree_of(port, {**form, **more}) for more in ({"README.md": b"a"}, {"README.md": b"b"}, {}))
    assert united(port, a, b, c) == united(port, c, b, a) == b


def test_a_tree_that_has_everything_has_nothing_to_change(port: DulwichGit) -> None:
    """Also of the fixed files: else every sync would write a commit that changes nothing."""
    form = {"format": format_of(), "README.md": b"a", ".gitattributes": b"a"}
    a, b = tree_of(port, {**form, "s/gm-a.jsonl": b"1\n"}), tree_of(port, form)

    assert tree_union.union_changes(port, a, [b]) == {}
    assert list(tree_union.union_changes(port, b, [a])) == ["s"]


def test_a_damaged_format_loses_against_any_other(port: DulwichGit) -> None:
    """What can't be read has no rank."""
    a, b = tree_of(port, {"format": b"{torn"}), tree_of(port, {"format": format_of()})
    assert united(port, a, b) == united(port, b, a) == b


def test_a_file_and_a_folder_of_one_name_are_both_kept(port: DulwichGit) -> None:
    """The file goes into the folder, whichever side has it."""
    a = tree_of(port, {"s/x.jsonl": b"1\n", "k": b"1"})
    b = tree_of(port, {"s/x.jsonl/gm-a.jsonl": b"2\n", "k/l": b"2"})
    both = united(port, a, b)
    assert both == united(port, b, a) == united(port, both, a, b)
    assert files_of(port, both) == {
        "s/x.jsonl/gm-a.jsonl": b"2\n",
        "s/x.jsonl/gm-file.jsonl": b"1\n",
        "k/l": b"2",
        "k/gm-file": b"1",
    }


def test_an_executable_segment_is_the_same_segment(port: DulwichGit, repo: Path) -> None:
    """A mode that a work tree changed makes no difference that lasts."""
    a = tree_of(port, {"s/gm-a.jsonl": b"1\n"})
    blob = port.tree(port.tree(a)["s"].oid)["gm-a.jsonl"].oid
    (commit,) = port.write([Draft({"s/gm-a.jsonl": TreeEntry("100755", blob)}, NOBODY, NOBODY, "x")], None)
    b = port.commit(commit).tree
    assert a != b
    assert united(port, a, b) == united(port, b, a) == a


def test_folders_that_are_equal_are_never_read(port: DulwichGit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A union of two big logs that differ in one file reads the few folders above it."""
    many: Files = {f"s/{month:02d}/{day:02d}/gm-a.jsonl": b"1\n" for month in range(9) for day in range(9)}
    a = tree_of(port, many)
    b = tree_of(port, {**many, "s/03/03/gm-b.jsonl": b"2\n"})
    asked: list[str] = []
    real = port.tree

    def tree(oid: str) -> dict[str, TreeEntry]:
        asked.append(oid)
        return real(oid)

    monkeypatch.setattr(port, "tree", tree)
    assert list(tree_union.union_changes(port, a, [b])) == ["s/03/03/gm-b.jsonl"]
    assert len(asked) == 8  # root, stream, month and day of each


def _random_tree(port: DulwichGit, draw: random.Random) -> str:
    files: Files = {}
    for _ in range(draw.randrange(6)):
        name = draw.choice(
            ["s/1/gm-a.jsonl", "s/1/gm-b.jsonl", "s/gm-c.jsonl", "s/1", "u", "u/v", "w.jsonl", "projects/p"]
        )
        if any(other.startswith(name + "/") or name.startswith(other + "/") for other in files):
            continue
        files[name] = b"".join(draw.choices([b"1\n", b"2\n", b"3\r\n", b"\n", b"torn"], k=draw.randrange(4)))
    if draw.random() < 0.8:
        files["format"] = format_of(
            turn=draw.randrange(3), publish=draw.choice(["refs/heads/gitmem", "refs/gitmem/log"])
        )
        files["README.md"] = draw.choice([b"a", b"b"])
    return tree_of(port, files)


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(3, 8))]
)
def test_union_of_trees_keeps_the_four_laws(port: DulwichGit, seed: int) -> None:
    """Commutative, associative, idempotent and absorbing, on arbitrary trees."""
    draw = random.Random(seed)
    for _ in range(10):
        a, b, c = (_random_tree(port, draw) for _ in range(3))
        ab = united(port, a, b)
        assert ab == united(port, b, a)
        assert united(port, ab, c) == united(port, a, united(port, b, c)) == united(port, c, a, b)
        assert united(port, a, a) == a
        assert united(port, ab, a) == united(port, ab, b) == ab


PATHS = ("s/gm-a.jsonl", "s/gm-b.jsonl", "t/gm-a.jsonl")


def _crowded_tree(port: DulwichGit, draw: random.Random) -> str:
    """Segments near the limit, which the tests make small, some of them where others go that have no room."""
    files: Files = {}
    for path in draw.sample(PATHS, draw.randrange(1, 4)):
        content = b"".join(
            b"%02d" % number + draw.choice([b"\n", b"\r\n"]) for number in draw.sample(range(30), 9)
        )
        files[path] = content
        if draw.random() < 0.3:
            other = b"".join(b"%02d\n" % number for number in sorted(draw.sample(range(30), 9)))
            files[tree_union.overflow_path(path, other)] = draw.choice([other, content])
    return tree_of(port, files)


def _lines_in(port: DulwichGit, *given: str) -> dict[str, set[bytes]]:
    """Lines by folder."""
    found: dict[str, set[bytes]] = {}
    for tree in given:
        for path, content in files_of(port, tree).items():
            found.setdefault(path.partition("/")[0], set()).update(tree_union.lines_of(content))
    return found


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(3, 8))]
)
def test_no_union_makes_a_file_that_is_too_large(
    port: DulwichGit, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has every line, is the same from any side, and takes in none of its parts again."""
    limit_unions(monkeypatch, 40)
    draw = random.Random(seed)
    crowded = 0
    for _ in range(12):
        given = [_crowded_tree(port, draw) for _ in range(3)]
        whole = united(port, *given)
        assert whole == united(port, *given[::-1]) == united(port, *given[1:], given[0])
        assert _lines_in(port, whole) == _lines_in(port, *given)
        for each in given:
            assert united(port, whole, each) == whole
        sizes = [len(content) for content in files_of(port, whole).values()]
        assert max(sizes) <= 40
        crowded += len(sizes) > len({path for tree in given for path in files_of(port, tree)})
        step = united(port, united(port, *given[:2]), given[2])
        for _ in range(4):  # two clones that united them in another order come to one tree
            step, whole = united(port, step, whole), united(port, whole, step)
        assert step == whole and _lines_in(port, whole) == _lines_in(port, *given)
    assert crowded > 3


def test_a_content_that_has_all_lines_stays_however_large(
    port: DulwichGit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was taken in is nothing that a union makes larger: it isn't split, and nothing is put beside it."""
    limit_unions(monkeypatch)
    content = b"1\n2\n3\n4\n" + b"5" * ref.UNION_BYTES_MAX + b"\n"
    large, small = (tree_of(port, {"s/gm-a.jsonl": each}) for each in (content, b"2\n4\n"))
    assert united(port, large, small) == united(port, small, large) == large


def test_differing_tells_what_was_there_before(port: DulwichGit) -> None:
    """Only files, with what each of the other trees has in their place."""
    old = tree_of(port, {"s/a": b"1", "s/b": b"1", "t": b"1"})
    new = tree_of(port, {"s/a": b"1", "s/b": b"2", "u/v": b"3"})
    found = {path: len(there) for path, _, there in tree_union.differing(port, new, [old])}
    assert found == {"s/b": 1, "u/v": 0}


def test_new_lines_are_counted_as_sets(port: DulwichGit) -> None:
    """Order, repeats and CRLF are no new lines."""
    old = tree_of(port, {"s/gm-a.jsonl": b"2\n1\n1\n"})
    new = tree_of(port, {"s/gm-a.jsonl": b"1\r\n2\r\n3\r\n", "s/gm-b.jsonl": b"4\n5\n"})
    assert tree_union.new_lines(port, new, [old]) == 3
    assert tree_union.new_lines(port, old, [new]) == 0


def test_a_log_without_a_readable_format_has_no_rank(port: DulwichGit) -> None:
    """A tree of no log takes no part in choosing the fixed files."""
    a = tree_of(port, {"README.md": b"zzz"})
    b = tree_of(port, {"README.md": b"aaa", "format": ref.Format.make().content})
    assert united(port, a, b) == b


def test_of_any_other_file_the_greater_bytes_are_kept(port: DulwichGit) -> None:
    """Not the greater object id: what is kept can be told by looking at the files."""
    for pair in ((b"a", b"b"), (b"c", b"d"), (b"e", b"f"), (b"g", b"h")):  # ids in both orders
        a, b = (tree_of(port, {"other": content}) for content in pair)
        assert united(port, a, b) == united(port, b, a) == b


def test_a_file_of_another_repository_is_compared_by_its_name(port: DulwichGit) -> None:
    """A submodule's commit is nothing that could be read here; beside lines of ours it is left alone."""
    module = TreeEntry("160000", "f" * 40)
    (commit,) = port.write([Draft({"s/gm-a.jsonl": module, "other": module}, NOBODY, NOBODY, "x")], None)
    a, b = port.commit(commit).tree, tree_of(port, {"s/gm-a.jsonl": b"1\n", "other": b"1"})

    assert united(port, a, b) == united(port, b, a)
    assert tree_union.new_lines(port, b, [a]) == 1
    assert tree_union.new_lines(port, a, [b]) == 0


def test_only_segments_have_new_lines_and_each_of_them_is_looked_at(port: DulwichGit) -> None:
    """A fixed file before them, or a file that is no segment, neither counts nor ends the count."""
    new = tree_of(port, {"README.md": b"1\n2\n", "a": b"3\n", "s/gm-a.jsonl": b"4\n", "t/gm-b.jsonl": b"5\n"})

    assert tree_union.new_lines(port, new, []) == 2


# Union's laws, on arbitrary bytes.

# Few letters make equal lines likely; the odd pieces are those that a merge or a work tree leaves.
_PIECES = st.sampled_from(
    [b"a", b"b", b'{"at":"x"}', b"\n", b"\n", b"\r\n", b"\r", b"\r\r\n", b"\0", b"\xff", b" ", b"\t", b"\x0b",
     b"\xc2\x85", b"\xe2\x80\xa8", b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> side\n"]
)  # fmt: skip
contents = st.one_of(st.binary(max_size=200), st.lists(_PIECES, max_size=30).map(b"".join))


def _lines(content: bytes) -> set[bytes]:
    """What a reader takes for the lines of a file, found without the code under test."""
    found = set()
    for line in content.split(b"\n"):
        while line[-1:] == b"\r":
            line = line[:-1]
        if line:
            found.add(line)
    return found


@given(contents, contents)
def test_commutative(a: bytes, b: bytes) -> None:
    """Rebase swaps the sides; the bytes are the same."""
    assert union(a, b) == union(b, a)


@given(contents, contents, contents)
def test_associative(a: bytes, b: bytes, c: bytes) -> None:
    """Three clones that meet in any order end with the same bytes."""
    assert union(union(a, b), c) == union(a, union(b, c)) == union(a, b, c)


@given(contents)
def test_idempotent(a: bytes) -> None:
    """Merging what is there already changes nothing, however often."""
    once = union(a, a)

    assert once == canonical(a) == canonical(once) == union(once, a)


@given(contents, contents)
def test_no_line_is_dropped_or_invented(a: bytes, b: bytes) -> None:
    """Every line of either side is there, whatever it is made of, and no other."""
    assert _lines(union(a, b)) == _lines(a) | _lines(b)


@given(contents, contents)
def test_canonical(a: bytes, b: bytes) -> None:
    """Sorted, once each, a LF after every line, and nothing else."""
    merged = union(a, b)
    lines = merged.split(b"\n")

    assert lines.pop() == b""
    assert lines == sorted(set(lines))
    assert not any(line == b"" or line.endswith(b"\r") for line in lines)


def test_a_torn_last_line_is_not_glued_to_the_other_side() -> None:
    """A side without LF at its end keeps its last line apart from the other's first."""
    assert union(b"b\na", b"c\n") == b"a\nb\nc\n"


def test_several_carriage_returns_go_at_once() -> None:
    """CRLF converted twice: were one CR taken at a time, a second union would differ from the first."""
    assert canonical(b"a\r\r\nb\r") == b"a\nb\n"


def test_a_carriage_return_inside_a_line_is_kept() -> None:
    """Only the end of a line belongs to the conversion."""
    assert canonical(b"a\rb\r\n") == b"a\rb\n"


def test_only_lf_ends_a_line() -> None:
    """Other line separators of Unicode are content."""
    assert canonical("b\u2028a\x0b\x85\n".encode()) == "b\u2028a\x0b\x85\n".encode()


def test_nothing() -> None:
    """No content, and content without lines, are the empty file."""
    assert union() == union(b"", b"\n\r\n\n") == b""


def test_what_git_leaves_in_a_conflict_becomes_the_union_of_the_records() -> None:
    """Markers stay as lines (readers report them); each record is there once."""
    conflict = b"a\n<<<<<<< HEAD\nb\nc\n=======\nc\nd\n>>>>>>> side\n"

    assert [line for line in canonical(conflict).split() if len(line) == 1] == [b"a", b"b", b"c", b"d"]


def test_only_the_crs_at_its_end_are_taken_off_a_line() -> None:
    """Whatever letter stands before them."""
    assert canonical(b"endX\r\r\nX\r\n\rX\n") == b"\rX\nX\nendX\n"
