"""Anchors: a node is stale when its files moved on since, and only then."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest

from gitmem.errors import UsageError
from gitmem.memory import anchors, as_of, decay
from gitmem.repo import find

from ..conftest import Git
from ..sandbox import open_store, worktree
from .desk import Desk, raw

MISSING = "1234567890" * 4


def save(git: Git, repo: Path, message: str, **files: str | None) -> str:
    """A commit: files by name, None removes one; its id."""
    for name, content in files.items():
        path = repo / name
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "--allow-empty", "-m", message, cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo).strip()


def stale(desk: Desk, *ids: str) -> dict[str, str]:
    return anchors.stale(desk.store, [desk.node(id) for id in ids])


def test_a_node_is_stale_by_the_commits_that_changed_its_files(desk: Desk, repo: Path, git: Git) -> None:
    """How many, and in which file, most first; a node without files never, nor one whose files stand."""
    save(git, repo, "0", **{"log/union.py": "1\n", "b.py": "1\n", "c.py": "1\n"})
    one = desk.write("about one", paths=["log/union.py"])
    two = desk.write("about two", paths=["b.py", "log/union.py"])
    still = desk.write("about what stands", paths=["c.py"])
    none = desk.write("about no file")
    for number in range(3):
        save(git, repo, str(number), **{"log/union.py": f"{number} new\n"})
    save(git, repo, "last", **{"b.py": "2\n"})

    assert stale(desk, one, two, still, none) == {
        one: "stale (3 commits behind in log/union.py)",
        two: "stale (3 commits behind in log/union.py, 1 in b.py)",
    }
    desk.change(one, verified=True)
    assert stale(desk, one) == {}


def test_one_commit_is_no_plural_and_many_paths_are_counted(desk: Desk, repo: Path, git: Git) -> None:
    """Three paths are named, the rest are a number; a file that is gone is said with the commit that took it."""
    names = [f"{letter}.py" for letter in "abcde"]
    save(git, repo, "0", **dict.fromkeys(names, "1\n"))
    id = desk.write("about all", paths=names)
    one = desk.write("about one", paths=["a.py"])
    gone = desk.write("about two", paths=["b.py", "e.py"])
    save(git, repo, "1", **dict.fromkeys(names[:4], "2\n"))
    lost = save(git, repo, "2", **{"e.py": None})

    assert stale(desk, id, one, gone) == {
        id: "stale (1 commit behind in a.py, 1 in b.py, 1 in c.py and 2 more)",
        one: "stale (1 commit behind in a.py)",
        gone: f"stale (1 commit behind in b.py, e.py is gone since {lost[:8]})",
    }


def test_a_change_that_was_taken_back_is_none(desk: Desk, repo: Path, git: Git) -> None:
    """The file says again what it said when the node was written."""
    save(git, repo, "0", **{"a.py": "1\n"})
    id = desk.write("about it", paths=["a.py"])
    save(git, repo, "1", **{"a.py": "2\n"})
    assert id in stale(desk, id)
    git("revert", "--no-edit", "HEAD", cwd=repo)

    assert stale(desk, id) == {}


def test_what_only_the_work_tree_has_counts_on_neither_side(desk: Desk, repo: Path, git: Git) -> None:
    """Nor does the commit that brings a file that was new when the node was written; the next one does."""
    (repo / "new.py").write_text("1\n")
    id = desk.write("about a new file", paths=["new.py"])
    save(git, repo, "bring", **{"new.py": "1\n"})
    (repo / "new.py").write_text("not committed\n")
    assert stale(desk, id) == {}

    save(git, repo, "change", **{"new.py": "2\n"})
    assert stale(desk, id) == {id: "stale (1 commit behind in new.py)"}


def test_a_folder_stands_for_what_is_in_it(desk: Desk, repo: Path, git: Git) -> None:
    """Commits that changed two files of it count once; a neighbour whose name begins alike is not in it."""
    save(git, repo, "0", **{"src/a.py": "1\n", "src/b/c.py": "1\n", "srcs": "1\n"})
    id = desk.write("about a folder", paths=["src/"])
    save(git, repo, "1", **{"src/a.py": "2\n", "src/b/c.py": "2\n"})
    save(git, repo, "2", srcs="2\n")

    assert stale(desk, id) == {id: "stale (1 commit behind in src)"}


def test_another_branch_s_file_makes_nothing_stale(desk: Desk, repo: Path, tmp_path: Path, git: Git) -> None:
    """It differs there, but this HEAD has no commit of its own on it; once it has, it is stale."""
    save(git, repo, "0", **{"a.py": "1\n"})
    other = Desk(worktree(repo, tmp_path / "tree"), desk.clock)
    save(git, tmp_path / "tree", "there", **{"a.py": "there\n"})
    id = other.write("about it", paths=["a.py"])
    assert stale(desk, id) == {}

    save(git, repo, "here", **{"a.py": "here\n"})

    assert stale(desk, id) == {id: "stale (1 commit behind in a.py)"}
    assert stale(other, id) == {}
    other.store.close()


def test_a_rebase_leaves_what_did_not_change_current(desk: Desk, repo: Path, git: Git) -> None:
    """The commit is another one, the file is the same; and a commit that is pruned afterwards is unknown."""
    save(git, repo, "0", **{"a.py": "1\n", "b.py": "1\n"})
    git("checkout", "--quiet", "-b", "work", cwd=repo)
    save(git, repo, "work", **{"a.py": "2\n"})
    same = desk.write("about a", paths=["a.py"])
    moved = desk.write("about b", paths=["b.py"])
    git("checkout", "--quiet", "main", cwd=repo)
    save(git, repo, "main", **{"b.py": "2\n"})
    git("rebase", "--quiet", "main", "work", cwd=repo)

    assert stale(desk, same, moved) == {moved: "stale (1 commit behind in b.py)"}
    git("reflog", "expire", "--expire=now", "--all", cwd=repo)
    git("gc", "--quiet", "--prune=now", cwd=repo)
    assert stale(desk, same, moved) == {}
    assert anchors.since(desk.store, desk.node(same)).known is False  # type: ignore[union-attr]


def test_a_commit_that_this_clone_lacks_is_unknown(desk: Desk) -> None:
    """Another clone's unpushed work: nothing is claimed of it, whatever stands in the line."""
    raw(desk.store, "node", id="mem-far1", head=MISSING, paths=["README"])
    raw(
        desk.store,
        "node",
        id="mem-far2",
        head="a" * 64,
        paths=["README", "-x", "./a", "../b", "/etc", "a\nb"],
    )

    assert stale(desk, "mem-far1", "mem-far2") == {}


@pytest.mark.parametrize("path", ["spa ce.py", "-dash", "ünï.py", "new\nline", "*", ":(top)x"])
def test_any_name_can_be_stale(desk: Desk, repo: Path, git: Git, path: str) -> None:
    """Also names that only a foreign tool writes down; shown, they upset no terminal."""
    old = save(git, repo, "0", **{path: "1\n"})
    raw(desk.store, "node", id="mem-odd1", head=old, paths=[path])
    save(git, repo, "1", **{path: "2\n"})

    shown = path.replace("\n", "\\u000a")
    assert stale(desk, "mem-odd1") == {"mem-odd1": f"stale (1 commit behind in {shown})"}


def test_without_a_worktree_or_a_commit_nothing_is_stale(
    desk: Desk, repo: Path, tmp_path: Path, git: Git
) -> None:
    """A bare repository has no HEAD that anybody works at, an unborn one has nothing."""
    save(git, repo, "0", **{"a.py": "1\n"})
    id = desk.write("about it", paths=["a.py"])
    save(git, repo, "1", **{"a.py": "2\n"})
    node = desk.node(id)
    assert anchors.stale(desk.store, [node])
    git("clone", "--quiet", "--bare", str(repo), str(tmp_path / "bare"))
    bare = open_store(tmp_path / "bare", desk.clock)
    git("checkout", "--quiet", "--orphan", "unborn", cwd=repo)

    assert anchors.stale(bare, [node]) == {}
    assert anchors.stale(desk.store, [node]) == {}
    assert anchors.since(desk.store, node) is None
    bare.close()


def test_what_happened_since_is_told_harmlessly(desk: Desk, repo: Path, git: Git) -> None:
    """The newest ten subjects of all commits, and the files that are another now."""
    id = desk.write("before", type="checkpoint")
    nothing = anchors.since(desk.store, desk.node(id))
    assert nothing is not None
    assert (nothing.commits, nothing.files) == (0, [])
    for number in range(11):
        save(git, repo, f"commit {number}", **{f"file{number}": "1\n"})
    last = save(git, repo, "evil \x1b[31m", **{"a\nb": "1\n", "README": None})

    found = anchors.since(desk.store, desk.node(id))

    assert found is not None
    assert (found.known, found.commits, len(found.subjects)) == (True, 12, 10)
    assert found.subjects[:2] == [f"{last[:8]} evil \\u001b[31m", found.subjects[1]]
    assert found.subjects[1].endswith(" commit 10")
    assert {"README", "a\\u000ab", "file0"} <= set(found.files)
    assert found.more_files == 0


def test_files_beyond_the_twentieth_are_a_number(desk: Desk, repo: Path, git: Git) -> None:
    """The answer stays short and counts truthfully."""
    id = desk.write("before", type="checkpoint")
    save(git, repo, "many", **{f"file{number:02}": "1\n" for number in range(23)})

    found = anchors.since(desk.store, desk.node(id))

    assert found is not None
    assert (len(found.files), found.more_files) == (20, 3)


def test_typed_paths_are_taken_from_the_root(repo: Path, tmp_path: Path) -> None:
    """From a folder below, through links to the worktree, and never outside of it."""
    (repo / "src" / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to(repo)
    place = find(str(repo))

    assert anchors.from_root(place, str(repo / "src" / "in"), "../a.py") == "src/a.py"
    assert anchors.from_root(place, str(tmp_path / "link" / "src"), "a b") == "src/a b"
    assert anchors.from_root(place, str(tmp_path / "link" / "src"), str(repo / "x")) == "x"
    for outside in ("../../../x", "/etc/passwd", ".."):
        with pytest.raises(UsageError, match="outside"):
            anchors.from_root(place, str(repo / "src"), outside if outside != ".." else "../..")


def test_stale_counts_as_half_by_score_and_by_age() -> None:
    """Taking the age off gives what the factor gives."""
    assert exp(-decay.stale_age(1_000_000) / 1_000_000) == pytest.approx(decay.STALE, rel=1e-5)


@pytest.mark.usefixtures("commits")
def test_as_of_a_commit_of_the_project_its_files_count(desk: Desk, repo: Path, git: Git) -> None:
    """Not those of today; and as of a date nobody knows where HEAD was."""
    save(git, repo, "0", **{"a.py": "1\n"})
    id = desk.write("about it", paths=["a.py"])
    one = save(git, repo, "1", **{"a.py": "2\n"})
    save(git, repo, "2", **{"a.py": "3\n"})
    node = desk.node(id)

    for commit, expected in ((one, {id: "stale (1 commit behind in a.py)"}), (None, {})):
        past = as_of.StoreAsOf(desk.store, str(desk.tip()), desk.clock(), commit, all_of_it=True)
        assert anchors.stale(past, [node]) == expected
        past.close()
