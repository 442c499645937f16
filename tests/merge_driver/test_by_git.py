"""Real git runs the driver: merge, rebase, cherry-pick, merge-tree, and what happens where it can't."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.log.union import canonical, union
from gitmem.repo import Repo
from merge_driver.install import install, uninstall
from merge_driver.main import main

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


# The driver's program, called as git calls it.

ROOT = Path(__file__).parents[2]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Base, ours, theirs, with a line of its own each and one in common."""
    folder = tmp_path / "top"
    folder.mkdir()
    paths = [folder / name for name in (".merge_file_O", ".merge_file_A", ".merge_file_B")]
    for path, content in zip(paths, (b"a\n", b"c\na\n", b"b\r\na\r\n"), strict=True):
        path.write_bytes(content)
    return paths


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["gitmem-merge", *map(str, arguments)])
    return main()


def test_the_union_is_left_in_ours(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 0, the union in %A, the other files and the folder as they were."""
    assert call(monkeypatch, *files) == 0
    assert [path.read_bytes() for path in files] == [b"a\n", b"a\nb\nc\n", b"b\r\na\r\n"]
    assert sorted(files[0].parent.iterdir()) == sorted(files)


def test_the_base_is_not_needed(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A union never takes away, so a base that can't be read stops nothing."""
    files[0].unlink()

    assert call(monkeypatch, *files) == 0
    assert files[1].read_bytes() == b"a\nb\nc\n"


def test_permissions_of_ours_are_kept(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Called by hand on a real file, the driver leaves its mode."""
    files[1].chmod(0o640)

    assert call(monkeypatch, *files) == 0
    assert files[1].stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("missing", [1, 2])
def test_an_unreadable_side_is_a_conflict_not_a_crash(
    files: list[Path], missing: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 1 to 128, a sentence that names the file, and %A as it was."""
    files[missing].unlink()

    assert 0 < call(monkeypatch, *files) <= 128
    assert str(files[missing]) in capsys.readouterr().err
    assert missing == 1 or files[1].read_bytes() == b"c\na\n"


@pytest.mark.parametrize("step", ["open", "replace"])
def test_a_full_disk_leaves_ours_as_it_was(
    files: list[Path], step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever write fails, %A is whole for the fallback, and nothing else is left behind."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, step, full)

    assert 0 < call(monkeypatch, *files) <= 128
    assert "No space left" in capsys.readouterr().err
    assert files[1].read_bytes() == b"c\na\n"
    assert sorted(files[0].parent.iterdir()) == sorted(files)


@pytest.mark.parametrize("arguments", [(), ("O", "A"), ("O", "A", "B", "L"), ("--help",)])
def test_bad_usage_says_what_it_is_for(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person who tries it learns who calls it and what installs it."""
    assert 0 < call(monkeypatch, *arguments) <= 128
    assert "gitmem setup" in capsys.readouterr().err


def test_nothing_but_the_union_is_imported(files: list[Path]) -> None:
    """Git runs it once for each path, so it brings in two small modules and the standard start."""
    probe = (
        "import sys; before = set(sys.modules); from merge_driver.main import main; main();"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert set(done.stdout.split()) == {
        "gitmem", "gitmem.log", "gitmem.log.union", "merge_driver", "merge_driver.main"
    }  # fmt: skip
    assert files[1].read_bytes() == union(b"a\nb\nc\n")
