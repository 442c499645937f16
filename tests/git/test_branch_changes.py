"""Comparing branches in a temporary repository: nothing of the user's is written or run, whatever is compared."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from gitmem.git import branches as changes
from gitmem.git import processes
from gitmem.git.fetch import OLD_SECONDS, PREFIX, ScratchRepository

from ..conftest import Git
from ..git_on_path import GitOnPath


def branch(git: Git, repo: Path, name: str, files: dict[str, str], start: str = "main") -> str:
    """A branch with one commit that writes these files; its id."""
    git("switch", "--quiet", "-c", name, start, cwd=repo)
    for path, text in files.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "-m", name, cwd=repo)
    oid = git("rev-parse", "HEAD", cwd=repo).strip()
    git("switch", "--quiet", "main", cwd=repo)
    return oid


def forever() -> float:
    return 60.0


def merged(
    repo: Path, tmp_path: Path, *pairs: tuple[str, str], attributes: str | None = None, seconds: float = 5
) -> list[int | None]:
    """The states of merging these pairs."""
    common = repo / ".git" if (repo / ".git").exists() else repo
    with ScratchRepository(str(common), str(tmp_path)) as scratch:
        if attributes:
            scratch.use_attributes(attributes)
        trees = changes.tips(scratch, [oid for pair in pairs for oid in pair], 10)
        found = changes.merges(scratch, pairs, trees, forever, batch_seconds=seconds)
    return [found[pair].state if pair in found else None for pair in pairs]


def everything(folder: Path) -> dict[str, bytes]:
    """The content of each file below a folder. Git may renew the time of an object that a merge makes again."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_clean_conflicts_or_is_contained(git: Git, repo: Path, tmp_path: Path) -> None:
    one = branch(git, repo, "one", {"README": "one\n"})
    other = branch(git, repo, "other", {"README": "other\n"})
    apart = branch(git, repo, "apart", {"apart": "apart\n"})
    above = branch(git, repo, "above", {"more": "more\n"}, "one")
    before = everything(repo)

    states = merged(repo, tmp_path, (one, other), (one, apart), (one, above), (other, above))

    assert states == [changes.CONFLICT, changes.CLEAN, changes.CONTAINED, changes.CONFLICT]
    assert everything(repo) == before, "no object, ref, index or file of the user's changes"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(PREFIX)]


def test_names_that_break_lines_or_are_not_utf_8(git: Git, repo: Path, tmp_path: Path) -> None:
    odd = os.fsdecode(b'new\nline\t"\\\x1b[2J\xff')
    one = branch(git, repo, "one", {odd: "one\n"})
    other = branch(git, repo, "other", {odd: "other\n"})
    base = git("rev-parse", "main", cwd=repo).strip()

    with ScratchRepository(str(repo / ".git"), str(tmp_path)) as scratch:
        assert changes.changed_files(scratch, base, one, 10) == [odd]
        found = changes.merges(scratch, [(one, other)], {}, forever)
    assert found[one, other].paths == [odd]


def test_nothing_that_is_configured_runs(git: Git, repo: Path, tmp_path: Path) -> None:
    """Merge drivers, text conversion, external diffs and hooks, by attributes of the repository or of the user."""
    ran = tmp_path / "ran"
    for key in ("merge.evil.driver", "diff.evil.textconv", "diff.evil.command", "diff.external", "core.fsmonitor",
                "filter.evil.smudge"):  # fmt: skip
        git("config", key, f"touch {ran}; false", cwd=repo)
    (repo / ".git" / "info" / "attributes").write_text("* merge=evil diff=evil\n")
    one = branch(git, repo, "one", {"README": "one\n", ".gitattributes": "* merge=evil diff=evil\n"})
    other = branch(git, repo, "other", {"README": "other\n", ".gitattributes": "* merge=evil diff=evil\n"})
    ran.unlink(missing_ok=True)

    with ScratchRepository(str(repo / ".git"), str(tmp_path)) as scratch:
        changes.changed_files(scratch, one, other, 10)
    assert merged(repo, tmp_path, (one, other), attributes=one) == [changes.CONFLICT]
    assert not ran.exists()


def test_files_that_merge_by_union_do_not_conflict(git: Git, repo: Path, tmp_path: Path) -> None:
    start = branch(git, repo, "start", {".gitattributes": "README merge=union\n"})
    one = branch(git, repo, "one", {"README": "one\n"}, "start")
    other = branch(git, repo, "other", {"README": "other\n"}, "start")

    assert merged(repo, tmp_path, (one, other), attributes=start) == [changes.CLEAN]


def test_one_pair_that_git_cannot_merge_leaves_the_others(git: Git, repo: Path, tmp_path: Path) -> None:
    """A missing commit, and histories without a common one."""
    one = branch(git, repo, "one", {"README": "one\n"})
    other = branch(git, repo, "other", {"README": "other\n"})
    git("switch", "--quiet", "--orphan", "alone", cwd=repo)
    git("commit", "--quiet", "--allow-empty", "-m", "alone", cwd=repo)
    alone = git("rev-parse", "HEAD", cwd=repo).strip()

    states = merged(repo, tmp_path, (one, "f" * 40), (one, alone), (one, other))

    assert states == [changes.UNKNOWN, changes.UNKNOWN, changes.CONFLICT]


def test_pairs_that_git_cannot_merge_end_it(
    git: Git, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs a process: in a partial clone it may be all."""
    one = branch(git, repo, "one", {"README": "one\n"})
    started = GitOnPath(tmp_path, monkeypatch)

    states = merged(repo, tmp_path, *((one, f"{number:040x}") for number in range(100)))

    assert (states.count(changes.UNKNOWN), states.count(None)) == (changes.UNKNOWN_MAX, 80)
    assert len(started.started) < 2 * changes.UNKNOWN_MAX


def test_one_slow_pair_leaves_the_others(
    git: Git, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = branch(git, repo, "one", {"README": "one\n"})
    other = branch(git, repo, "other", {"README": "other\n"})
    slow = branch(git, repo, "slow", {"README": "slow\n"})
    GitOnPath(tmp_path, monkeypatch).does(
        f'cat >{tmp_path}/in; grep -q {slow} {tmp_path}/in && sleep 9; exec "$git" "$@" <{tmp_path}/in',
        to="merge-tree",
    )

    states = merged(repo, tmp_path, (one, other), (one, slow), seconds=0.5)

    assert states == [changes.CONFLICT, changes.SLOW]


def test_an_old_git_is_told_apart(
    git: Git, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = branch(git, repo, "one", {"README": "one\n"})
    GitOnPath(tmp_path, monkeypatch).says(129, err="usage: git merge-tree", to="merge-tree")

    with pytest.raises(changes.NoMergeTreeError):
        merged(repo, tmp_path, (one, one))


def test_a_branch_with_too_many_files_or_too_long_names(
    git: Git, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 changed files are not read into memory."""
    blob = git("hash-object", "-w", "README", cwd=repo).strip()
    listed = "".join(f"100644 {blob}\tfolder/{number}\n" for number in range(100_000))
    git("update-index", "--index-info", cwd=repo, input=listed)
    git("commit", "--quiet", "-m", "many", cwd=repo)
    tip, base = git("rev-parse", "HEAD", "HEAD~1", cwd=repo).split()
    with ScratchRepository(str(repo / ".git"), str(tmp_path)) as scratch:
        assert changes.changed_files(scratch, "main~1", "HEAD", 10) is None, "it has no refs"
        with pytest.raises(changes.TooManyFilesError):
            changes.changed_files(scratch, base, tip, 10)


def test_output_beyond_a_limit_ends_git(repo: Path) -> None:
    endless = ["-c", "alias.endless=!yes", "endless"]
    began = time.monotonic()
    with pytest.raises(processes.GitOutputError, match="more than 1,000 bytes"):
        processes.run(str(repo / ".git"), endless, out_max=1_000)
    assert time.monotonic() - began < 10


def test_a_partial_clone_fetches_nothing(git: Git, repo: Path, tmp_path: Path) -> None:
    one = branch(git, repo, "one", {"README": "one\n"})
    other = branch(git, repo, "other", {"README": "other\n"})
    git("config", "uploadpack.allowFilter", "true", cwd=repo)
    less = tmp_path / "less"
    git("clone", "--quiet", "--bare", "--filter=blob:none", f"file://{repo}", str(less))
    before = everything(less)

    assert merged(less, tmp_path, (one, other)) == [changes.UNKNOWN]
    with ScratchRepository(str(less), str(tmp_path)) as scratch:
        assert changes.changed_files(scratch, one, other, 10) == ["README"]
    assert everything(less) == before


def test_a_shallow_clone(git: Git, repo: Path, tmp_path: Path) -> None:
    """Beyond its boundary there is no common commit."""
    one = branch(git, repo, "one", {"README": "one\n"})
    branch(git, repo, "other", {"README": "other\n"})
    git(
        "clone",
        "--quiet",
        "--bare",
        "--depth=1",
        "--no-single-branch",
        f"file://{repo}",
        str(tmp_path / "cut"),
    )
    main = git("rev-parse", "main", cwd=repo).strip()
    with ScratchRepository(str(tmp_path / "cut"), str(tmp_path)) as scratch:
        assert changes.merge_base(scratch, one, [main], 10) is None
        assert set(changes.tips(scratch, [one, main, "f" * 40], 10)) == {one, main}


def test_criss_cross_merges_have_one_base(git: Git, repo: Path, tmp_path: Path) -> None:
    branch(git, repo, "one", {"one": "1\n"})
    branch(git, repo, "other", {"other": "1\n"})
    for name, into in (("other", "one"), ("one~1", "other")):
        git("switch", "--quiet", into, cwd=repo)
        git("merge", "--quiet", "--no-ff", "-m", "criss-cross", name if into == "one" else "one^1", cwd=repo)
    one, other = git("rev-parse", "one", "other", cwd=repo).split()
    with ScratchRepository(str(repo / ".git"), str(tmp_path)) as scratch:
        assert changes.merge_base(scratch, one, [other], 10)
    assert merged(repo, tmp_path, (one, other)) != [changes.UNKNOWN]


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "new\nline", "co:lon", "späße"])
def test_folders_with_any_name(git: Git, repo: Path, tmp_path: Path, name: str) -> None:
    one = branch(git, repo, "one", {"README": "one\n"})
    other = branch(git, repo, "other", {"README": "other\n"})
    odd = tmp_path / name
    repo.rename(odd)
    assert merged(odd, tmp_path, (one, other)) == [changes.CONFLICT]


def test_sha256(git: Git, tmp_path: Path) -> None:
    wide = tmp_path / "wide"
    wide.mkdir()
    git("init", "--quiet", "-b", "main", "--object-format=sha256", cwd=wide)
    (wide / "README").write_text("first\n")
    git("add", "README", cwd=wide)
    git("commit", "--quiet", "-m", "first", cwd=wide)
    one = branch(git, wide, "one", {"README": "one\n"})
    other = branch(git, wide, "other", {"README": "other\n"})
    assert merged(wide, tmp_path, (one, other)) == [changes.CONFLICT]


def test_what_a_killed_process_left_is_removed(repo: Path, tmp_path: Path) -> None:
    """Not what another process may be using, nor what a link leads to."""
    old, new, kept = tmp_path / f"{PREFIX}1-1", tmp_path / f"{PREFIX}2-2", tmp_path / "kept"
    for folder in (old, new, kept):
        folder.mkdir()
    (tmp_path / f"{PREFIX}3-3").symlink_to(kept)
    past = time.time() - OLD_SECONDS - 60
    for folder in (old, kept):
        os.utime(folder, (past, past))
    with ScratchRepository(str(repo / ".git"), str(tmp_path)):
        pass
    assert not old.exists()
    assert new.exists()
    assert kept.exists()


def test_uncommitted_files_by_name_leave_the_index(git: Git, repo: Path) -> None:
    (repo / "README").write_text("changed\n")
    (repo / "new\nname").write_text("new\n")
    index = (repo / ".git" / "index").read_bytes()
    found = changes.uncommitted_files(str(repo / ".git"), str(repo / ".git"), str(repo), 10)
    assert found is not None
    assert sorted(found) == ["README", "new\nname"]
    assert (repo / ".git" / "index").read_bytes() == index
    assert subprocess.run(["git", "status", "--porcelain"], cwd=repo, capture_output=True, check=True).stdout


def test_pairs_of_a_group_without_an_answer_are_not_merged_again(
    git: Git, repo: Path, tmp_path: Path
) -> None:
    """If there is no time to find the slow one, none of them may hold up the next call."""
    one = branch(git, repo, "one", {"README": "one\n"})
    other = branch(git, repo, "other", {"README": "other\n"})
    above = branch(git, repo, "above", {"more": "more\n"}, "one")
    pairs = [(one, other), (other, above)]
    left = iter([60.0, 60.0, 0.0])
    with ScratchRepository(str(repo / ".git"), str(tmp_path)) as scratch:
        trees = changes.tips(scratch, [one, other, above], 10)
        found = changes.merges(scratch, pairs, trees, lambda: next(left), batch_seconds=0.000_001)
    assert [found[pair].state for pair in pairs] == [changes.SLOW, changes.SLOW]
