"""Trees: the union of two logs' trees is the same from either side, and reads only what differs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.git.inprocess import DulwichGit
from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import ref, tree_union

NOBODY = Signature("n", "n@n", 1)
Port = DulwichGit | PlumbingGit
Files = dict[str, bytes]


@pytest.fixture(params=[DulwichGit, PlumbingGit])
def port(repo: Path, request: pytest.FixtureRequest) -> Iterator[Port]:
    """Each implementation of the port."""
    found = request.param(str(repo / ".git"))
    yield found
    found.close()


@pytest.fixture
def dulwich(repo: Path) -> DulwichGit:
    return DulwichGit(str(repo / ".git"))


def tree_of(port: Port, files: Files) -> str:
    changes: dict[str, bytes | TreeEntry | None] = dict(files)
    (commit,) = port.write([Draft(changes, NOBODY, NOBODY, "x")], None)
    return port.commit(commit).tree


def united(port: Port, *given: str) -> str:
    """The tree that the first becomes."""
    changes = tree_union.union_changes(port, given[0], given[1:])
    (commit,) = port.write([Draft(changes, NOBODY, NOBODY, "x", tree=given[0])], None)
    return port.commit(commit).tree


def files_of(port: Port, tree: str, path: str = "") -> Files:
    found: Files = {}
    for name, entry in port.tree(tree).items():
        if entry.is_tree:
            found.update(files_of(port, entry.oid, f"{path}{name}/"))
        else:
            found[path + name] = port.blob(entry.oid)
    return found


def format_of(**fields: object) -> bytes:
    return json.dumps({"format": 1, "epoch": 0, "turn": 0, "publish": "refs/heads/gitmem", **fields}).encode()


def test_segments_are_united_and_everything_else_is_kept(port: Port) -> None:
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


def test_the_greatest_format_wins_with_the_files_beside_it(port: Port) -> None:
    """Rank decides, not bytes; a README of the loser is not taken, were it greater."""
    old = {"format": format_of(turn=9), "README.md": b"zzz", ".gitattributes": b"zzz"}
    new = {"format": format_of(turn=10), "README.md": b"aaa", ".gitattributes": b"aaa"}
    a, b = tree_of(port, old), tree_of(port, new)
    assert united(port, a, b) == united(port, b, a) == b


def test_between_equal_formats_the_greater_readme_is_kept(port: Port) -> None:
    """Also against a tree that has lost it."""
    form = {"format": format_of()}
    a, b, c = (tree_of(port, {**form, **more}) for more in ({"README.md": b"a"}, {"README.md": b"b"}, {}))
    assert united(port, a, b, c) == united(port, c, b, a) == b


def test_a_tree_that_has_everything_has_nothing_to_change(port: Port) -> None:
    """Also of the fixed files: else every sync would write a commit that changes nothing."""
    form = {"format": format_of(), "README.md": b"a", ".gitattributes": b"a"}
    a, b = tree_of(port, {**form, "s/gm-a.jsonl": b"1\n"}), tree_of(port, form)

    assert tree_union.union_changes(port, a, [b]) == {}
    assert list(tree_union.union_changes(port, b, [a])) == ["s"]


def test_a_damaged_format_loses_against_any_other(port: Port) -> None:
    """What can't be read has no rank."""
    a, b = tree_of(port, {"format": b"{torn"}), tree_of(port, {"format": format_of()})
    assert united(port, a, b) == united(port, b, a) == b


def test_a_file_and_a_folder_of_one_name_are_both_kept(port: Port) -> None:
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


def test_an_executable_segment_is_the_same_segment(port: Port, repo: Path) -> None:
    """A mode that a work tree changed makes no difference that lasts."""
    a = tree_of(port, {"s/gm-a.jsonl": b"1\n"})
    blob = port.tree(port.tree(a)["s"].oid)["gm-a.jsonl"].oid
    (commit,) = port.write([Draft({"s/gm-a.jsonl": TreeEntry("100755", blob)}, NOBODY, NOBODY, "x")], None)
    b = port.commit(commit).tree
    assert a != b
    assert united(port, a, b) == united(port, b, a) == a


def test_folders_that_are_equal_are_never_read(dulwich: DulwichGit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A union of two big logs that differ in one file reads the few folders above it."""
    many: Files = {f"s/{month:02d}/{day:02d}/gm-a.jsonl": b"1\n" for month in range(9) for day in range(9)}
    a = tree_of(dulwich, many)
    b = tree_of(dulwich, {**many, "s/03/03/gm-b.jsonl": b"2\n"})
    asked: list[str] = []
    real = dulwich.tree

    def tree(oid: str) -> dict[str, TreeEntry]:
        asked.append(oid)
        return real(oid)

    monkeypatch.setattr(dulwich, "tree", tree)
    assert list(tree_union.union_changes(dulwich, a, [b])) == ["s/03/03/gm-b.jsonl"]
    assert len(asked) == 8  # root, stream, month and day of each


def _random_tree(port: Port, draw: random.Random) -> str:
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
def test_union_of_trees_keeps_the_four_laws(dulwich: DulwichGit, seed: int) -> None:
    """Commutative, associative, idempotent and absorbing, on arbitrary trees."""
    draw = random.Random(seed)
    for _ in range(10):
        a, b, c = (_random_tree(dulwich, draw) for _ in range(3))
        ab = united(dulwich, a, b)
        assert ab == united(dulwich, b, a)
        assert united(dulwich, ab, c) == united(dulwich, a, united(dulwich, b, c)) == united(dulwich, c, a, b)
        assert united(dulwich, a, a) == a
        assert united(dulwich, ab, a) == united(dulwich, ab, b) == ab


PATHS = ("s/gm-a.jsonl", "s/gm-b.jsonl", "t/gm-a.jsonl")


def _crowded_tree(port: Port, draw: random.Random) -> str:
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


def _lines_in(port: Port, *given: str) -> dict[str, set[bytes]]:
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
    dulwich: DulwichGit, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has every line, is the same from any side, and takes in none of its parts again."""
    monkeypatch.setattr(ref, "UNION_BYTES_MAX", 40)
    draw = random.Random(seed)
    crowded = 0
    for _ in range(12):
        given = [_crowded_tree(dulwich, draw) for _ in range(3)]
        whole = united(dulwich, *given)
        assert whole == united(dulwich, *given[::-1]) == united(dulwich, *given[1:], given[0])
        assert _lines_in(dulwich, whole) == _lines_in(dulwich, *given)
        for each in given:
            assert united(dulwich, whole, each) == whole
        sizes = [len(content) for content in files_of(dulwich, whole).values()]
        assert max(sizes) <= 40
        crowded += len(sizes) > len({path for tree in given for path in files_of(dulwich, tree)})
        step = united(dulwich, united(dulwich, *given[:2]), given[2])
        for _ in range(4):  # two clones that united them in another order come to one tree
            step, whole = united(dulwich, step, whole), united(dulwich, whole, step)
        assert step == whole and _lines_in(dulwich, whole) == _lines_in(dulwich, *given)
    assert crowded > 3


def test_a_content_that_has_all_lines_stays_however_large(dulwich: DulwichGit) -> None:
    """A file that was taken in is nothing that a union makes larger: it isn't split, and nothing is put beside it."""
    content = b"1\n2\n3\n4\n" + b"5" * ref.UNION_BYTES_MAX + b"\n"
    large, small = (tree_of(dulwich, {"s/gm-a.jsonl": each}) for each in (content, b"2\n4\n"))
    assert united(dulwich, large, small) == united(dulwich, small, large) == large


def test_differing_tells_what_was_there_before(dulwich: DulwichGit) -> None:
    """Only files, with what each of the other trees has in their place."""
    old = tree_of(dulwich, {"s/a": b"1", "s/b": b"1", "t": b"1"})
    new = tree_of(dulwich, {"s/a": b"1", "s/b": b"2", "u/v": b"3"})
    found = {path: len(there) for path, _, there in tree_union.differing(dulwich, new, [old])}
    assert found == {"s/b": 1, "u/v": 0}


def test_new_lines_are_counted_as_sets(dulwich: DulwichGit) -> None:
    """Order, repeats and CRLF are no new lines."""
    old = tree_of(dulwich, {"s/gm-a.jsonl": b"2\n1\n1\n"})
    new = tree_of(dulwich, {"s/gm-a.jsonl": b"1\r\n2\r\n3\r\n", "s/gm-b.jsonl": b"4\n5\n"})
    assert tree_union.new_lines(dulwich, new, [old]) == 3
    assert tree_union.new_lines(dulwich, old, [new]) == 0


def test_a_log_without_a_readable_format_has_no_rank(dulwich: DulwichGit) -> None:
    """A tree of no log takes no part in choosing the fixed files."""
    a = tree_of(dulwich, {"README.md": b"zzz"})
    b = tree_of(dulwich, {"README.md": b"aaa", "format": ref.Format.make().content})
    assert united(dulwich, a, b) == b


def test_of_any_other_file_the_greater_bytes_are_kept(port: Port) -> None:
    """Not the greater object id: what is kept can be told by looking at the files."""
    for pair in ((b"a", b"b"), (b"c", b"d"), (b"e", b"f"), (b"g", b"h")):  # ids in both orders
        a, b = (tree_of(port, {"other": content}) for content in pair)
        assert united(port, a, b) == united(port, b, a) == b


def test_a_file_of_another_repository_is_compared_by_its_name(port: Port) -> None:
    """A submodule's commit is nothing that could be read here; beside lines of ours it is left alone."""
    module = TreeEntry("160000", "f" * 40)
    (commit,) = port.write([Draft({"s/gm-a.jsonl": module, "other": module}, NOBODY, NOBODY, "x")], None)
    a, b = port.commit(commit).tree, tree_of(port, {"s/gm-a.jsonl": b"1\n", "other": b"1"})

    assert united(port, a, b) == united(port, b, a)
    assert tree_union.new_lines(port, b, [a]) == 1
    assert tree_union.new_lines(port, a, [b]) == 0


def test_only_segments_have_new_lines_and_each_of_them_is_looked_at(dulwich: DulwichGit) -> None:
    """A fixed file before them, or a file that is no segment, neither counts nor ends the count."""
    new = tree_of(
        dulwich, {"README.md": b"1\n2\n", "a": b"3\n", "s/gm-a.jsonl": b"4\n", "t/gm-b.jsonl": b"5\n"}
    )

    assert tree_union.new_lines(dulwich, new, []) == 2


def test_lines_that_are_known_from_elsewhere_are_not_new(dulwich: DulwichGit) -> None:
    """Each in its own segment: a segment's lines are not those of another."""
    new = tree_of(dulwich, {"s/gm-a.jsonl": b"1\n2\n", "s/gm-b.jsonl": b"3\n"})

    assert tree_union.new_lines(dulwich, new, [], {"s/gm-a.jsonl": {b"1", b"3"}, "elsewhere": {b"2"}}) == 2
