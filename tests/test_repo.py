"""Where a repository is found, and which kinds are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError, UsageError
from gitmem.repo import Repo, find, read_config, reject_unsupported

Run = Callable[..., str]


def parts(place: Repo) -> tuple[str, str, str | None]:
    return place.common, place.git_dir, place.worktree


def agrees_with_git(folder: Path, git: Run) -> Repo:
    """The place of a folder, after a comparison with what git itself says there."""
    place = find(str(folder))
    said = git("rev-parse", "--path-format=absolute", "--git-common-dir", "--absolute-git-dir", cwd=folder)
    assert [place.common, place.git_dir] == said.splitlines()
    if git("rev-parse", "--is-inside-work-tree", cwd=folder) == "true\n":
        assert place.worktree == git("rev-parse", "--show-toplevel", cwd=folder).rstrip("\n")
    return place


def test_main_worktree_and_below(repo: Path, git: Run) -> None:
    """Any folder of a worktree belongs to it."""
    deep = repo / "a" / "b"
    deep.mkdir(parents=True)
    for folder in (repo, deep):
        place = agrees_with_git(folder, git)
        assert parts(place) == (str(repo / ".git"), str(repo / ".git"), str(repo))
    assert place.state == str(repo / ".git" / "gitmem")


def test_linked_worktree(repo: Path, tmp_path: Path, git: Run) -> None:
    """A linked worktree has a git folder of its own and shares the common one."""
    linked = tmp_path / "linked"
    git("worktree", "add", "--quiet", str(linked), cwd=repo)
    (linked / "a").mkdir()

    place = agrees_with_git(linked / "a", git)
    assert parts(place) == (str(repo / ".git"), str(repo / ".git/worktrees/linked"), str(linked))
    assert find(str(repo / ".git/worktrees/linked"), named=True).worktree == str(linked)


def test_linked_worktree_with_relative_paths(repo: Path, tmp_path: Path, git: Run) -> None:
    """Newer gits write the links of worktrees relative to each other."""
    linked = tmp_path / "linked"
    git("worktree", "add", "--quiet", str(linked), cwd=repo)
    (linked / ".git").write_text("gitdir: ../repo/.git/worktrees/linked\n")
    (repo / ".git/worktrees/linked/gitdir").write_text("../../../../linked/.git\n")

    place = agrees_with_git(linked, git)
    assert place.worktree == str(linked)
    assert find(str(repo / ".git/worktrees/linked"), named=True).worktree == str(linked)


def test_bare_repository(tmp_path: Path, git: Run) -> None:
    """A bare repository is found by its top alone: nothing below it is searched from, as no `.git` leads to it."""
    git("init", "--quiet", "--bare", "hub.git")
    hub = tmp_path / "hub.git"

    place = agrees_with_git(hub, git)

    assert parts(place) == (str(hub), str(hub), None)
    assert place.by_folder
    assert not find(str(tmp_path), git_dir="hub.git").by_folder
    with pytest.raises(UsageError, match="Not a git repository"):
        find(str(hub / "refs"))


@pytest.mark.parametrize("inner", [".", "docs", "a/b/c"])
def test_a_bare_repository_inside_of_a_worktree_is_not_found(repo: Path, git: Run, inner: str) -> None:
    """A checkout may contain one. Only who names its folder means it, and at the top there is a `.git`."""
    git("init", "--quiet", "--bare", str(repo / inner))
    ours = (str(repo / ".git"), str(repo / ".git"), str(repo))

    for folder in (repo / inner, repo / inner / "refs"):
        assert parts(find(str(folder))) == ours
    named = find(str(repo / inner), named=True)
    assert parts(named) == (ours if inner == "." else (str(repo / inner), str(repo / inner), None))
    assert named.by_folder is (inner != ".")


def test_bare_repository_with_worktrees(repo: Path, tmp_path: Path, git: Run) -> None:
    """The layout with `.bare` and a `.git` file: the folder above is no worktree, its children are."""
    home = tmp_path / "project"
    home.mkdir()
    git("clone", "--quiet", "--bare", str(repo), str(home / ".bare"))
    (home / ".git").write_text("gitdir: ./.bare\n")
    git("worktree", "add", "--quiet", "feature", cwd=home)

    assert parts(agrees_with_git(home, git)) == (str(home / ".bare"), str(home / ".bare"), None)
    place = agrees_with_git(home / "feature", git)
    assert parts(place) == (str(home / ".bare"), str(home / ".bare/worktrees/feature"), str(home / "feature"))


def test_inside_the_git_folder(repo: Path, git: Run) -> None:
    """A hook may run there; the worktree is the one around it."""
    for folder in (repo / ".git", repo / ".git" / "hooks"):
        assert agrees_with_git(folder, git).worktree == str(repo)


def test_submodule(repo: Path, tmp_path: Path, git: Run) -> None:
    """A submodule is a repository of its own."""
    git("init", "--quiet", "super")
    above = tmp_path / "super"
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(repo), "sub", cwd=above)

    place = agrees_with_git(above / "sub", git)
    assert parts(place) == (
        str(above / ".git/modules/sub"),
        str(above / ".git/modules/sub"),
        str(above / "sub"),
    )
    assert find(str(above / ".git/modules/sub"), named=True).worktree == str(above / "sub")


def test_worktree_config(repo: Path, git: Run) -> None:
    """With extensions.worktreeConfig the main worktree's own file says where it is."""
    git("config", "extensions.worktreeConfig", "true", cwd=repo)
    git("config", "--worktree", "core.bare", "true", cwd=repo)

    assert agrees_with_git(repo, git).worktree is None


def test_symbolic_links_are_resolved(repo: Path, tmp_path: Path, git: Run) -> None:
    """Two spellings of a place are one place."""
    (tmp_path / "link").symlink_to(repo)

    assert parts(agrees_with_git(tmp_path / "link", git)) == parts(find(str(repo)))


def test_variables_name_the_repository(repo: Path, tmp_path: Path, git: Run) -> None:
    """GIT_DIR, GIT_WORK_TREE and GIT_COMMON_DIR outrank the search, and are relative to the start."""
    git("worktree", "add", "--quiet", "../linked", cwd=repo)
    (tmp_path / "elsewhere").mkdir()
    start = str(tmp_path / "elsewhere")
    own = str(repo / ".git/worktrees/linked")

    assert parts(find(start, git_dir="../repo/.git")) == (str(repo / ".git"), str(repo / ".git"), start)
    assert find(str(repo), git_dir=".git").worktree == str(repo)
    assert find(start, git_dir="../repo/.git", work_tree="../linked").worktree == str(tmp_path / "linked")
    assert parts(find(start, git_dir="../linked/.git")) == (str(repo / ".git"), own, str(tmp_path / "linked"))
    assert find(str(repo), common_dir="../repo/.git").common == str(repo / ".git")
    for named in ({"git_dir": "nowhere"}, {"git_dir": "../repo/.git", "common_dir": "nowhere"}):
        with pytest.raises(UsageError, match="is not a git repository"):
            find(start, **named)


def test_where_there_is_none(tmp_path: Path) -> None:
    """The sentence says where it looked and what to do; the exit status is that of a wrong question."""
    (tmp_path / "a").mkdir()
    with pytest.raises(UsageError, match="Not a git repository: ") as caught:
        find(str(tmp_path / "a"))
    assert (caught.value.code, caught.value.status) == ("not-a-repository", 2)


@pytest.mark.parametrize("content", ["gitdir: /nowhere\n", "nonsense", ""])
def test_a_git_file_that_leads_nowhere(repo: Path, content: str) -> None:
    """As in git it ends the search: the repository around it is not meant."""
    inner = repo / "inner"
    inner.mkdir()
    (inner / ".git").write_text(content)

    with pytest.raises(UsageError, match="does not point to a git repository"):
        find(str(inner))


def test_an_empty_git_folder_is_passed_over(repo: Path, git: Run) -> None:
    """As in git: a folder named `.git` with nothing in it is no repository."""
    (repo / "inner" / ".git").mkdir(parents=True)

    assert agrees_with_git(repo / "inner", git).worktree == str(repo)


def test_usual_repositories_are_accepted(repo: Path, tmp_path: Path, git: Run) -> None:
    """Remotes, branches, narrow refspecs, worktree config and words in values refuse nobody."""
    git("clone", "--quiet", str(repo), "clone")
    clone = tmp_path / "clone"
    git("config", "extensions.worktreeConfig", "true", cwd=clone)
    git("config", "--add", "remote.origin.fetch", "+refs/pull/*/head:refs/remotes/origin/pr/*", cwd=clone)
    git("config", "--add", "remote.origin.fetch", "^refs/*", cwd=clone)
    git("config", "--add", "remote.origin.fetch", "refs/gitmem/log", cwd=clone)
    git("config", "remote.origin.mirror", "false", cwd=clone)
    git("config", "alias.mirror", "push --mirror", cwd=clone)
    for folder in (repo, clone):
        reject_unsupported(find(str(folder)))


@pytest.mark.parametrize(
    "settings",
    [
        "extensions.refStorage=reftable",
        "extensions.objectFormat=SHA256",
        "extensions.relativeWorktrees=true",
        "extensions.preciousObjects=true",
        "extensions.partialClone=origin",
        "remote.origin.promisor=true",
        "remote.origin.partialclonefilter=blob:none",
    ],
)
def test_kinds_that_git_knows_are_accepted(repo: Path, settings: str) -> None:
    """Whether they work is shown by tests on real ones (`hazards/test_odd_*`)."""
    key, _, value = settings.partition("=")
    section, _, last = key.rpartition(".")
    head = section.replace("remote.origin", 'remote "origin"')
    with (repo / ".git/config").open("a") as config:
        config.write(f"[{head}]\n\t{last} = {value}\n")

    reject_unsupported(find(str(repo)))


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (["extensions.refStorage=sqlite"], "extensions.refstorage = sqlite"),
        (["extensions.objectFormat=sha3"], "extensions.objectformat = sha3"),
        (["extensions.compatObjectFormat=sha1"], "extensions.compatobjectformat = sha1"),
        (["extensions.fromTheFuture=true"], "extensions.fromthefuture = true"),
        (["remote.origin.mirror=true"], "mirror"),
        (["remote.a.B.fetch=+refs/*:refs/*"], "mirror"),
        (
            ["remote.origin.fetch=refs/heads/x:refs/heads/x", "remote.origin.fetch=+refs/*:refs/gitmem/*"],
            "mirror",
        ),
        (["remote.origin.fetch=+refs/*:refs/g*"], "mirror"),
        (["remote.origin.fetch=refs/gitmem/log:refs/gitmem/log"], "mirror"),
    ],
)
def test_odd_configurations_are_refused(repo: Path, git: Run, settings: list[str], kind: str) -> None:
    """Each with the kind in the sentence, before anything is written."""
    place = find(str(repo))
    for setting in settings:
        key, _, value = setting.partition("=")
        git("config", "--add", key, value, cwd=repo)

    with pytest.raises(StoreError, match=kind) as caught:
        reject_unsupported(place)
    assert (caught.value.code, caught.value.status) == ("unsupported-repository", 4)
    assert caught.value.hint


def test_a_mirror_clone_is_refused(repo: Path, tmp_path: Path, git: Run) -> None:
    """As git itself makes it: its next fetch would delete the log."""
    git("clone", "--quiet", "--mirror", str(repo), "clone")

    with pytest.raises(StoreError, match="mirror"):
        reject_unsupported(find(str(tmp_path / "clone")))


CONFIG = r"""
; comment
# [core] bare = true
[core]
	bare = false # why
	Editor = "vi # not a comment" ; a comment
	long = one \
  two\\ \"q\" \tt
	empty =
	flag
[Remote "Or\"ig.in"] url = x
	fetch = +refs/heads/*:refs/remotes/o/*
	fetch=^refs/heads/x
[branch.Main]
	remote = .
	a = "spaced  "  b c
[url "https://a/#;=["]
	insteadOf = "g:"
"""


def test_the_config_reader_agrees_with_git(tmp_path: Path, git: Run) -> None:
    """Sections, subsections, quotes, escapes, comments and continued lines mean what git takes them for."""
    (tmp_path / "config").write_text(CONFIG)
    said = git("config", "--file", "config", "--list", "-z").split("\0")[:-1]
    theirs = [tuple(row.split("\n", 1)) if "\n" in row else (row, "true") for row in said]

    assert list(read_config(CONFIG.encode())) == theirs


@pytest.mark.parametrize(
    "data", [b"\xff\xfe[", b"[a", b'[a "b', b"[]\nx=1", b"x = 1", b'[a "b"x]\ny=1', b"[a]\nb = \\"]
)
def test_a_broken_config_is_no_crash(data: bytes) -> None:
    """What git would refuse is git's to complain about."""
    assert len(list(read_config(data))) <= 1


def test_finding_a_place_imports_nothing_heavy() -> None:
    """Every command begins here, so it costs two small modules."""
    code = "import os, sys; before = set(sys.modules); import gitmem.repo; print(*set(sys.modules) - before)"
    root = Path(__file__).parents[1]
    out = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, check=True
    )

    assert set(out.stdout.split()) <= {"gitmem", "gitmem.errors", "gitmem.repo", "__future__"}
