"""The roots of a repository: the same project from every worktree, and no other's."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git.repository import root_commits
from gitmem.repo import find

from ..conftest import Git


def root(git: Git, repo: Path, name: str) -> str:
    """A commit of its own history under a full ref name."""
    tree = git("mktree", cwd=repo, input="").strip()
    oid = git("commit-tree", "-m", name, tree, cwd=repo).strip()
    git("update-ref", name, oid, cwd=repo)
    return oid


def main(git: Git, repo: Path) -> str:
    return git("rev-parse", "main", cwd=repo).strip()


def test_an_orphan_branch_is_of_the_project(repo: Path, tmp_path: Path, git: Git) -> None:
    """From a worktree of `gh-pages` as from the one of `main`: both roots."""
    pages = root(git, repo, "refs/heads/gh-pages")
    git("worktree", "add", "--quiet", str(tmp_path / "pages"), "gh-pages", cwd=repo)

    assert root_commits(find(str(tmp_path / "pages"))) == {main(git, repo), pages}
    assert root_commits(find(str(repo))) == {main(git, repo), pages}


def test_what_only_the_remote_has_of_the_project_counts(repo: Path, git: Git) -> None:
    """A clone on `main` has the orphan branch of its origin under refs/remotes."""
    pages = root(git, repo, "refs/remotes/origin/gh-pages")
    git("update-ref", "refs/remotes/origin/main", "main", cwd=repo)

    assert root_commits(find(str(repo))) == {main(git, repo), pages}


def test_another_projects_remote_is_not_of_the_project(repo: Path, git: Git) -> None:
    """A vendor's branches do not make its log ours: a union can't be undone."""
    root(git, repo, "refs/remotes/vendor/main")
    pages = root(git, repo, "refs/remotes/origin/gh-pages")
    git("update-ref", "refs/remotes/origin/main", "main", cwd=repo)

    assert root_commits(find(str(repo))) == {main(git, repo), pages}


def test_every_remote_of_the_project_counts(repo: Path, git: Git) -> None:
    """A fork and the repository that it is of, each with an orphan branch; later commits are no roots."""
    first = main(git, repo)
    git("commit", "--quiet", "--allow-empty", "-m", "Second", cwd=repo)
    pages = [root(git, repo, f"refs/remotes/{name}/pages-of-{name}") for name in ("origin", "upstream")]
    for name in ("origin", "upstream"):
        git("update-ref", f"refs/remotes/{name}/main", "main", cwd=repo)

    assert root_commits(find(str(repo))) == {first, *pages}


def test_a_detached_head_is_of_the_project(repo: Path, git: Git) -> None:
    """No branch reaches it, and it is what this worktree has."""
    alone = root(git, repo, "refs/heads/alone")
    git("checkout", "--quiet", "--detach", "alone", cwd=repo)
    git("branch", "--quiet", "-D", "alone", cwd=repo)

    assert root_commits(find(str(repo))) == {main(git, repo), alone}


def test_logs_are_no_roots(repo: Path, git: Git) -> None:
    """Whatever branch named gitmem there is, and gitmem's own refs."""
    for name in ("refs/heads/gitmem", "refs/remotes/origin/gitmem", "refs/gitmem/log", "refs/tags/x"):
        root(git, repo, name)
    git("update-ref", "refs/remotes/origin/main", "main", cwd=repo)
    (repo / ".git" / "refs" / "remotes" / "origin" / "HEAD").write_text("ref: refs/remotes/origin/main\n")

    assert root_commits(find(str(repo))) == {main(git, repo)}


@pytest.mark.parametrize("has_remote", [False, True])
def test_an_unborn_head(tmp_path: Path, git: Git, has_remote: bool) -> None:
    """A clone without commits of its own has its remote's, if it has fetched."""
    git("init", "--quiet", str(tmp_path / "new"))
    expected = {root(git, tmp_path / "new", "refs/remotes/origin/main")} if has_remote else set()

    assert root_commits(find(str(tmp_path / "new"))) == expected


def test_a_shallow_clone_has_none(repo: Path, tmp_path: Path, git: Git) -> None:
    """Its roots are only where it was cut."""
    git("commit", "--quiet", "--allow-empty", "-m", "Second", cwd=repo)
    git("clone", "--quiet", "--depth=1", f"file://{repo}", str(tmp_path / "shallow"))

    assert root_commits(find(str(tmp_path / "shallow"))) == set()


def test_a_damaged_branch_costs_that_branch(repo: Path, git: Git) -> None:
    """What HEAD reaches is known nevertheless."""
    (repo / ".git" / "refs" / "heads" / "bad").write_text("1" * 40 + "\n")

    assert root_commits(find(str(repo))) == {main(git, repo)}


def test_a_history_with_a_hole_costs_that_branch(repo: Path, git: Git) -> None:
    """Git gives up on all of them; what HEAD reaches is known nevertheless, and nothing is where HEAD has the hole."""
    first = root(git, repo, "refs/heads/other")
    tree = git("mktree", cwd=repo, input="").strip()
    git(
        "update-ref",
        "refs/heads/other",
        git("commit-tree", "-p", first, "-m", "x", tree, cwd=repo).strip(),
        cwd=repo,
    )
    (repo / ".git/objects" / first[:2] / first[2:]).unlink()

    assert root_commits(find(str(repo))) == {main(git, repo)}
    git("symbolic-ref", "HEAD", "refs/heads/other", cwd=repo)
    assert root_commits(find(str(repo))) == set()


def test_names_in_foreign_bytes_are_names(repo: Path, git: Git) -> None:
    """A branch and a remote of somebody whose letters are not UTF-8."""
    pages, vendor = (root(git, repo, f"refs/heads/{name}") for name in ("pages", "vendor"))
    git("update-ref", "-d", "refs/heads/pages", cwd=repo)
    git("update-ref", "-d", "refs/heads/vendor", cwd=repo)
    rows = [(main(git, repo), "caf\udce9/main"), (pages, "caf\udce9/p\udce9"), (vendor, "vend\udce9/main")]
    (repo / ".git/packed-refs").write_bytes(
        b"".join(f"{oid} refs/remotes/{name}\n".encode("utf-8", "surrogateescape") for oid, name in rows)
    )

    assert root_commits(find(str(repo))) == {main(git, repo), pages}
