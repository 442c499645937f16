"""Init: a clone gets its log, once, and says where the log is published."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitmem.errors import UsageError
from gitmem.log import ref
from gitmem.sync import init, sync_remotes
from tests.clones import Hub, git


def test_a_repository_without_a_remote_gets_a_log_of_its_own(repo: Path, hub: Hub) -> None:
    """The second call changes nothing."""
    clone = hub.open(repo)
    first = init.init(clone.store)
    assert (first.state, first.publish, first.remote) == ("started", "branch", None)
    refs = clone.git.refs("refs/")
    second = init.init(clone.store)
    assert (second.state, second.tip) == ("present", first.tip)
    assert clone.git.refs("refs/") == refs


def test_the_remotes_log_is_brought_and_nothing_is_pushed(hub: Hub) -> None:
    """A new clone adopts it; own lines stay here until a sync."""
    a, b, c = hub.clone("a"), hub.clone("b"), hub.clone("c")
    a.add("one")
    a.exchange()
    found = init.init(b.store)
    assert (found.state, found.tip) == ("adopted", hub.tip())
    assert found.remote is not None and found.remote.received == 1
    c.add("two")
    before = hub.tip()
    found = init.init(c.store)
    assert found.state == "present"
    assert c.texts() == ["one", "two"] and hub.tip() == before
    refs = c.git.refs("refs/")
    init.init(c.store)
    assert c.git.refs("refs/") == refs


def test_a_remote_that_is_away_is_only_a_remark(hub: Hub) -> None:
    """The log is started all the same."""
    a = hub.clone("a")
    git("remote", "set-url", "origin", "/nowhere.git", cwd=a.path)
    found = init.init(a.store)
    assert found.state == "started"
    assert any("Cannot reach the remote" in remark for remark in found.remarks)


def test_what_git_fetched_before_is_adopted_offline(hub: Hub) -> None:
    """`refs/remotes/origin/gitmem` of an ordinary clone is the log."""
    a = hub.clone("a")
    a.add("one")
    a.exchange()
    b = hub.clone("b")
    git("remote", "set-url", "--push", "origin", "/nowhere.git", cwd=b.path)
    found = init.init(b.store)
    assert (found.state, found.tip) == ("adopted", hub.tip())


def test_where_the_log_is_published_is_a_field_of_the_log(hub: Hub) -> None:
    """All clones follow, each choice is one commit, and the same choice again is none."""
    a, b = hub.clone("a"), hub.clone("b")
    assert init.init(a.store, publish="hidden").publish == "hidden"
    a.add("one")
    sync_remotes.sync(a.store)
    assert hub.tip(ref.BRANCH) is None and hub.tip(ref.LOG_REF) == a.tip
    tip = a.tip
    assert init.init(a.store, publish="hidden").tip == tip
    b.add("two")
    sync_remotes.sync(b.store)
    assert hub.tip(ref.BRANCH) is None
    found = init.init(b.store, publish="branch")
    assert found.publish == "branch" and "every clone follows" in found.remarks[-1]
    sync_remotes.sync(b.store)
    sync_remotes.sync(a.store)
    assert a.tip == b.tip == hub.tip(ref.BRANCH)
    assert init.init(a.store).publish == "branch"
    with pytest.raises(UsageError):
        init.init(a.store, publish="everywhere")


def test_a_foreign_log_is_refused(hub: Hub, tmp_path: Path) -> None:
    """Before anything is made of it."""
    a = hub.clone("a")
    a.add("one")
    a.exchange()
    path = tmp_path / "foreign"
    git("init", "--quiet", str(path), cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "Another first", cwd=path)
    git("remote", "add", "origin", str(hub.path), cwd=path)
    other = hub.open(path)
    with pytest.raises(UsageError) as refused:
        init.init(other.store)
    assert refused.value.code == "foreign-log"
    assert init.init(other.store, allow_foreign=True).remote is not None


def test_uninstall_leaves_the_log_and_names_the_commands_that_delete_it(hub: Hub) -> None:
    """They are not in `next`, and they do what they say."""
    a = hub.clone("a")
    a.add("one")
    before = a.git.refs("refs/")
    found = init.uninstall(a.store)
    assert a.git.refs("refs/") == before
    assert "no remote is known to have" in found.remarks[0]
    assert found.next == ["gitmem hooks status"] and len(found.remove) == 2
    a.exchange()
    assert not init.uninstall(a.store).remarks
    for line in found.remove:
        subprocess.run(line, shell=True, check=True, cwd="/")
    assert not a.git.refs("refs/gitmem/")
    assert not (a.path / ".git/gitmem").exists()
