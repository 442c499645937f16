"""A repository of somebody else: git is asked whether it trusts it, and nobody where it is ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import run
from gitmem.git.trust import refuse_foreign
from gitmem.place import Place, find
from tests.conftest import Git

pytestmark = pytest.mark.skipif(os.name == "nt", reason="owners")


@pytest.fixture
def place(repo: Path) -> Place:
    """One with a name that a shell would take apart."""
    return find(str(repo.rename(repo.parent / "it's mine")))


@pytest.fixture
def distrust(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on git takes everything for somebody else's."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")


def refused(place: Place, folder: str, quoted: str) -> None:
    with pytest.raises(StoreError) as caught:
        refuse_foreign(place)
    allow = f"git config --global --add safe.directory {quoted}"
    assert caught.value.code == "dubious-ownership"
    assert caught.value.message.startswith(f"The repository {folder} belongs to another user")
    assert allow in caught.value.hint and caught.value.next == [allow]


@pytest.mark.usefixtures("distrust")
def test_our_own_is_used_without_a_question(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hook comes by here: no git is started for it."""
    monkeypatch.setattr(run, "run", lambda *args, **more: pytest.fail("git was asked"))
    refuse_foreign(place)
    refuse_foreign(Place(place.common, place.common, None))
    refuse_foreign(Place(place.common, place.common, "/nowhere"))


@pytest.mark.usefixtures("distrust")
@pytest.mark.parametrize("whose", ["common", "worktree"])
def test_another_s_is_refused_with_the_way_to_allow_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Whether its git folder is the other's or the work tree alone."""
    stat, theirs = os.stat, getattr(place, whose)

    def of_another(path: str) -> os.stat_result:
        found = stat(path)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10])) if path == theirs else found

    monkeypatch.setattr(os, "stat", of_another)
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
    refused(Place(bare, bare, None), bare, bare)


def test_what_git_trusts_is_used(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whosever it is; also where git has something else to say against it."""
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    refuse_foreign(place)
    refuse_foreign(Place(str(tmp_path), str(tmp_path), None))

    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    (tmp_path / "trusting").write_text(f'[safe]\n\tdirectory = "{place.worktree}"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "trusting"))
    refuse_foreign(place)
