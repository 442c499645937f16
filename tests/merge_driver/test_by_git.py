"""Real git runs the driver: merge, rebase, cherry-pick, merge-tree, and what happens where it can't."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.log.union import canonical, union
from gitmem.repo import Repo
from merge_driver.install import install, uninstall

Git = Callable[..., str]
SEGMENT = "signals/2026-11/21/gm-0123456789ab.jsonl"


def record(number: int) -> bytes:
    return b'{"at":"2026-11-21T20:00:00.%06dZ","kind":"signal","id":"sig-%d"}\n' % (number, number)


def records(*numbers: int) -> bytes:
    return b"".join(map(record, numbers))


BASE, OURS, THEIRS = records(1, 2), records(1, 2, 5, 6, 3), records(1, 2, 4, 5, 6)
BOTH = records(1, 2, 3, 4, 5, 6)


def commit(git: Git, top: Path, content: bytes, name: str = SEGMENT) -> str:
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    git("add", "-A", cwd=top)
    git("commit", "-q", "-m", f"{len(content)} bytes", cwd=top)
    return git("rev-parse", "HEAD", cwd=top).strip()


@pytest.fixture
def sides(repo: Path, git: Git) -> Path:
    """`main` (checked out) and `side` added different lines, and some equal ones, to one segment."""
    commit(git, repo, BASE)
    git("checkout", "-q", "-b", "side")
    commit(git, repo, THEIRS)
    git("checkout", "-q", "main")
    commit(git, repo, OURS)
    return repo


def clean(git: Git, top: Path) -> bool:
    return git("status", "--porcelain", cwd=top) == "" and git("ls-files", "-u", cwd=top) == ""


@pytest.fixture
def installed(place: Repo, program: str) -> Repo:
    install(place, program)
    return place


@pytest.mark.usefixtures("installed")
class TestInstalled:
    """The driver is there, in a folder whose name needs quoting."""

    def test_merge(self, sides: Path, git: Git) -> None:
        """The union, with equal lines once, and nothing left behind in the work tree."""
        git("merge", "-q", "side")

        assert (sides / SEGMENT).read_bytes() == BOTH
        assert clean(git, sides)

    def test_merge_from_either_side_gives_the_same_tree(self, sides: Path, git: Git) -> None:
        """Two people who merge each other's branch end with one tree, not two."""
        git("checkout", "-q", "-b", "there", "side")
        git("merge", "-q", "main")
        git("checkout", "-q", "main")
        git("merge", "-q", "side")

        assert git("rev-parse", "there^{tree}") == git("rev-parse", "main^{tree}")

    def test_rebase(self, sides: Path, git: Git) -> None:
        """Git swaps the sides here; union does not care."""
        git("rebase", "-q", "side")

        assert (sides / SEGMENT).read_bytes() == BOTH
        assert clean(git, sides)

    def test_cherry_pick(self, sides: Path, git: Git) -> None:
        """One commit of the other side brings its lines."""
        git("cherry-pick", "side")

        assert (sides / SEGMENT).read_bytes() == BOTH

    def test_merge_tree_without_a_work_tree(self, sides: Path, git: Git) -> None:
        """The merge that forges and scripts use, in a bare repository too."""
        tree = git("--git-dir", str(sides / ".git"), "merge-tree", "--write-tree", "main", "side").split()[0]

        assert git("cat-file", "blob", f"{tree}:{SEGMENT}").encode() == BOTH

    def test_add_add(self, repo: Path, git: Git) -> None:
        """A file that both sides made has an empty base."""
        git("checkout", "-q", "-b", "side")
        commit(git, repo, THEIRS)
        git("checkout", "-q", "main")
        commit(git, repo, OURS)
        git("merge", "-q", "side")

        assert (repo / SEGMENT).read_bytes() == BOTH

    def test_criss_cross(self, sides: Path, git: Git) -> None:
        """Git merges two bases first, with the driver, and then the sides."""
        git("branch", "old-main")
        git("merge", "-q", "side")
        git("checkout", "-q", "side")
        git("merge", "-q", "old-main")
        commit(git, sides, union(BOTH, record(7)))
        git("checkout", "-q", "main")
        commit(git, sides, union(BOTH, record(8)))
        assert len(git("merge-base", "--all", "main", "side").split()) == 2
        git("merge", "-q", "side")

        assert (sides / SEGMENT).read_bytes() == union(BOTH, record(7), record(8))

    def test_linked_worktree_and_subdirectory(self, sides: Path, git: Git, tmp_path: Path) -> None:
        """Config and attributes lie in the common folder, so every worktree has them."""
        linked = tmp_path / "linked"
        git("worktree", "add", "-q", "-b", "other", str(linked), "main")
        git("merge", "-q", "side", cwd=linked / "signals")

        assert (linked / SEGMENT).read_bytes() == BOTH

    def test_a_line_taken_away_by_one_side_comes_back(self, sides: Path, git: Git) -> None:
        """Union never drops: what the other side still has is there after the merge."""
        commit(git, sides, record(3))
        git("merge", "-q", "side")

        assert (sides / SEGMENT).read_bytes() == union(record(3), THEIRS)

    @pytest.mark.parametrize("theirs", [THEIRS.replace(b"\n", b"\r\n"), THEIRS + b"\0torn", THEIRS[:-9]])
    def test_odd_bytes(self, sides: Path, git: Git, theirs: bytes) -> None:
        """CRLF would double every line, a NUL would make git give up, a torn line is kept."""
        git("checkout", "-q", "side")
        commit(git, sides, theirs)
        git("checkout", "-q", "main")
        git("merge", "-q", "side")

        assert (sides / SEGMENT).read_bytes() == union(OURS, theirs)

    def test_other_files_are_merged_as_ever(self, sides: Path, git: Git) -> None:
        """Only the log's own names are ours, in any folder."""
        git("checkout", "-q", "side")
        commit(git, sides, b"theirs\n", "notes.jsonl")
        git("checkout", "-q", "main")
        commit(git, sides, b"ours\n", "notes.jsonl")
        git("merge", "-q", "side", check=False)

        assert git("diff", "--name-only", "--diff-filter=U").split() == ["notes.jsonl"]
        assert (sides / SEGMENT).read_bytes() == BOTH

    def test_a_folder_of_that_name_in_the_work_tree_is_not_run(self, sides: Path, git: Git) -> None:
        """A console script has its own folder first on the module path; `python -m` has the work tree."""
        for name in ("gitmem", "merge_driver", "gitmem_merge_driver"):
            commit(git, sides, b"open('hijacked', 'w')\nraise SystemExit(0)\n", f"{name}/__init__.py")
        git("merge", "-q", "side")

        assert not (sides / "hijacked").exists()
        assert (sides / SEGMENT).read_bytes() == BOTH


def test_a_worktree_of_a_bare_repository(sides: Path, git: Git, tmp_path: Path, program: str) -> None:
    """Bare repository plus worktrees: `config` and `info` lie at its top."""
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    git("clone", "-q", "--bare", str(sides), str(bare))
    git("worktree", "add", "-q", str(linked), "main", cwd=bare)
    install(Repo(str(bare), str(bare), None), program)
    git("merge", "-q", "side", cwd=linked)

    assert (linked / SEGMENT).read_bytes() == BOTH


BROKEN = {
    "missing": None,
    "fails": "#!/bin/sh\nexit 1\n",
    "not a program": "what is this?\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
}


@pytest.mark.parametrize("how", [*BROKEN, "not executable", "unreadable package"])
def test_a_broken_program_loses_nothing(
    sides: Path, git: Git, installed: Repo, program: str, how: str
) -> None:
    """The second half of the driver line is git's own union: all records, clean; canon makes it ours."""
    script = Path(program)
    if how == "missing":
        script.unlink()
    elif how == "not executable":
        script.chmod(stat.S_IRUSR | stat.S_IWUSR)
    elif how == "unreadable package":
        (script.parent / "driver.py").write_text("import no_such_module\n")
    else:
        script.write_text(BROKEN[how] or "")
    git("merge", "-q", "side")

    assert canonical((sides / SEGMENT).read_bytes()) == BOTH
    assert clean(git, sides)


def test_not_installed_leaves_markers_but_every_record(sides: Path, git: Git, installed: Repo) -> None:
    """An attribute without a driver: git writes a conflict, somebody commits it, readers take the records."""
    git("config", "--remove-section", "merge.gitmem")
    git("merge", "-q", "side", check=False)
    left = (sides / SEGMENT).read_bytes()

    assert b"<<<<<<<" in left
    assert {line for line in canonical(left).splitlines(True) if line.startswith(b"{")} == set(
        BOTH.splitlines(True)
    )


def test_the_trees_own_attribute_serves_where_nothing_is_installed(
    sides: Path, git: Git, installed: Repo
) -> None:
    """`merge=union` of the log's tree is git's own: other order, repeats, no line lost."""
    uninstall(installed)
    for branch in ("side", "main"):
        git("checkout", "-q", branch)
        commit(git, sides, b"gm-*.jsonl -text merge=union\n", ".gitattributes")
    git("merge", "-q", "side")

    assert canonical((sides / SEGMENT).read_bytes()) == BOTH


def test_installed_outranks_the_trees_own_attribute(sides: Path, git: Git, installed: Repo) -> None:
    """`info/attributes` is the highest, so the result is canonical."""
    for branch in ("side", "main"):
        git("checkout", "-q", branch)
        commit(git, sides, b"gm-*.jsonl -text merge=union\n", ".gitattributes")
    git("merge", "-q", "side")

    assert (sides / SEGMENT).read_bytes() == BOTH


def test_uninstalled_git_is_as_it_was(repo: Path, git: Git, installed: Repo) -> None:
    """No setting and no attribute of ours is left."""
    uninstall(installed)

    assert "gitmem" not in git("config", "--list")
    assert "unspecified" in git("check-attr", "merge", SEGMENT)
    assert not os.path.exists(repo / ".git" / "info" / "attributes")
