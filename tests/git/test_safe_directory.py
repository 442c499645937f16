"""A repository of somebody else: git is asked whether it trusts it, and nobody where it is ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git.repository import reject_untrusted
from gitmem.repo import Repo, find
from tests.conftest import Git


@pytest.fixture
def place(repo: Path) -> Repo:
    """One with a name that a shell would take apart."""
    return find(str(repo.rename(repo.parent / "it's mine")))


@pytest.fixture
def distrust(place: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on git takes everything for somebody else's."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")


def refused(place: Repo, folder: str, quoted: str) -> None:
    with pytest.raises(StoreError) as caught:
        reject_untrusted(place)
    allow = f"git config --global --add safe.directory {quoted}"
    assert caught.value.code == "dubious-ownership"
    assert caught.value.message.startswith(f"The repository {folder} belongs to another user")
    assert allow in caught.value.hint and caught.value.next == [allow]


@pytest.mark.usefixtures("distrust")
def test_our_own_is_used_without_a_question(place: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hook comes by here: no git is started for it."""
    monkeypatch.setenv("PATH", "/nowhere")
    reject_untrusted(place)
    reject_untrusted(Repo(place.common, place.common, None))
    reject_untrusted(Repo(place.common, place.common, "/nowhere"))


@pytest.mark.usefixtures("distrust")
@pytest.mark.parametrize("whose", ["common", "worktree"])
def test_another_s_is_refused_with_the_way_to_allow_it(
    place: Repo, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Whether its git folder is the other's or the work tree alone."""
    lstat, theirs = os.lstat, getattr(place, whose)

    def of_another(path: str) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10])) if path == theirs else found

    monkeypatch.setattr(os, "lstat", of_another)
    folder = place.worktree or ""
    refused(place, folder, "'" + folder.replace("'", "'\"'\"'") + "'")


@pytest.mark.usefixtures("distrust")
def test_a_bare_one_of_another_is_named_by_itself(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", "--quiet", "--bare", "bare.git")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    bare = str(tmp_path / "bare.git")
    refused(Repo(bare, bare, None), bare, bare)


def test_what_git_trusts_is_used(place: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whosever it is; also where git has something else to say against it."""
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    reject_untrusted(place)
    reject_untrusted(Repo(str(tmp_path), str(tmp_path), None))

    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    (tmp_path / "trusting").write_text(f'[safe]\n\tdirectory = "{place.worktree}"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "trusting"))
    reject_untrusted(place)


def test_a_git_file_of_another_is_refused(
    place: Repo, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a linked worktree the file `.git` says where everything is."""
    git("worktree", "add", "--quiet", str(tmp_path / "linked"), cwd=Path(place.worktree or ""))
    linked = find(str(tmp_path / "linked"))
    reject_untrusted(linked)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    lstat, theirs = os.lstat, str(tmp_path / "linked" / ".git")

    def of_another(path: str) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10])) if path == theirs else found

    monkeypatch.setattr(os, "lstat", of_another)
    with pytest.raises(StoreError, match="belongs to another user"):
        reject_untrusted(linked)


def explicit(how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Say that only a repository that is named may be bare, in one of the places that git heeds."""
    if how == "global":
        (folder / "explicit").write_text("[safe]\n\tbareRepository = explicit\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "explicit"))
    elif how == "environment":
        for name, value in (("COUNT", "1"), ("KEY_0", "safe.bareRepository"), ("VALUE_0", "explicit")):
            monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    else:
        monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'safe.barerepository'='explicit'")


@pytest.mark.parametrize("how", ["global", "environment", "option"])
def test_bare_repositories_must_be_named_where_the_user_says_so(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """`safe.bareRepository`, as git heeds it: GIT_DIR names one, the current folder does not."""
    git("init", "--quiet", "--bare", "bare.git")
    bare = str(tmp_path / "bare.git")
    reject_untrusted(find(bare))
    explicit(how, tmp_path, monkeypatch)

    for found in (find(bare), find(bare, named=True)):
        with pytest.raises(StoreError, match="is a bare repository, and safe") as caught:
            reject_untrusted(found)
        assert caught.value.code == "bare-repository"
    reject_untrusted(find(str(tmp_path), git_dir="bare.git"))


def test_a_bare_repository_can_not_allow_itself(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own config is not asked."""
    git("init", "--quiet", "--bare", "bare.git")
    git("config", "safe.bareRepository", "all", cwd=tmp_path / "bare.git")
    explicit("global", tmp_path, monkeypatch)

    with pytest.raises(StoreError, match="is a bare repository, and safe"):
        reject_untrusted(find(str(tmp_path / "bare.git")))


def test_worktrees_of_a_bare_repository_need_no_name(
    repo: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `.git` file leads to it, as in git."""
    git("clone", "--quiet", "--bare", str(repo), "bare.git")
    git("worktree", "add", "--quiet", str(tmp_path / "linked"), cwd=tmp_path / "bare.git")
    explicit("global", tmp_path, monkeypatch)

    reject_untrusted(find(str(tmp_path / "linked")))
