"""Repositories of other formats: reftables, sha256 and extensions work, or are refused with a sentence."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import ref
from gitmem.repo import find

from .. import newer_git
from ..git_on_path import GitOnPath
from .conftest import Desk, process
from .odd import check_whole, clone, converse, git, make_hub, pack, sync


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer_git.put_on_path(tmp_path, monkeypatch)


@pytest.mark.usefixtures("newer")
def test_reftables_work(tmp_path: Path, desk: Desk) -> None:
    """A clone with reftable and a usual one talk through a remote with reftable; nothing is laid beside the tables."""
    hub = make_hub(tmp_path, "--ref-format=reftable")
    a, b = clone(hub, "a", "--ref-format=reftable"), clone(hub, "b")
    converse(desk, a, b)
    git("worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "linked"), cwd=a)
    converse(desk, tmp_path / "linked", b, ("Bohr", "Dirac"))
    check_whole(desk, a, b)
    assert git("refs", "verify", cwd=a) == ""
    assert sorted(path.name for path in (a / ".git/refs").iterdir()) == ["heads"]
    pack(a)
    assert desk("hooks", "install", "--client", "claude-code", cwd=a).status == 0
    assert desk("hooks", "test", cwd=a).status == 0
    log = desk("log", "--json", cwd=a)
    assert log.json["entries"] == desk("log", "--json", cwd=b).json["entries"]


def test_sha256_works(tmp_path: Path, desk: Desk) -> None:
    """Clones of a remote with sha256 agree on the constant first commit of that format."""
    hub = make_hub(tmp_path, "--object-format=sha256")
    a, b = clone(hub, "a"), clone(hub, "b")
    desk.send(desk.start("Noether", cwd=b), "Started apart", cwd=b)
    converse(desk, a, b)
    pack(a)
    check_whole(desk, a, b)
    for where in (a, b):
        roots = git("rev-list", "--max-parents=0", ref.LOG_REF, cwd=where).split()
        assert roots == [ref.GENESES[64]]
    project = git("rev-list", "--max-parents=0", "main", cwd=a).strip()
    assert git("ls-tree", "--name-only", f"{ref.LOG_REF}:projects", cwd=a).split() == [project]


def test_a_sha256_clone_and_a_sha1_remote_is_git_s_own_refusal(tmp_path: Path, desk: Desk) -> None:
    """It is said in a sentence, and nothing is lost."""
    hub = make_hub(tmp_path)
    where = tmp_path / "a"
    git("init", "--quiet", "--object-format=sha256", str(where), cwd=tmp_path)
    git("remote", "add", "origin", str(hub), cwd=where)
    git("config", "user.email", "a@example.org", cwd=where)
    planck = desk.start("Planck", cwd=where)
    desk.send(planck, "Alone", cwd=where)
    said = desk("sync", "--publish", "--json", cwd=where)
    (remote,) = said.json["remotes"]
    assert (said.status, remote["state"]) == (5, "refused")
    assert "algorithm" in remote["message"]
    assert "Alone" in desk("log", cwd=where).out


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("implementation", [PlumbingGit, DulwichGit])
def test_an_open_store_follows_a_change_of_the_ref_format(
    repo: Path, implementation: type[PlumbingGit] | type[DulwichGit]
) -> None:
    """`git refs migrate` under a process that lives on: it reads and moves the ref where that is now."""
    port = implementation(find(str(repo)).common)
    (repo / ".git/gitmem").mkdir()
    head = git("rev-parse", "HEAD", cwd=repo).strip()
    for kind in ("reftable", "files"):
        old = port.tip(ref.LOG_REF)
        git("refs", "migrate", f"--ref-format={kind}", cwd=repo)
        assert port.tip(ref.LOG_REF) == old
        (new,) = port.write([], old) or [head]
        if old is None:
            assert port.swap(ref.LOG_REF, None, new, "start")
            assert not port.swap(ref.LOG_REF, None, new, "start")
        assert git("rev-parse", ref.LOG_REF, cwd=repo).strip() == new == port.tip(ref.LOG_REF)
    port.close()


@pytest.mark.usefixtures("newer")
def test_the_tip_in_a_reftable_is_never_an_old_one(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git said last is remembered for as long as the tables are the same, and not longer."""
    git("refs", "migrate", "--ref-format=reftable", cwd=repo)
    (repo / ".git/gitmem").mkdir()
    port = DulwichGit(find(str(repo)).common)
    tree = git("rev-parse", "HEAD^{tree}", cwd=repo).strip()
    for number in range(12):  # git unites its tables now and then
        oid = git("commit-tree", "-m", str(number), tree, cwd=repo).strip()
        git("update-ref", ref.LOG_REF, oid, cwd=repo)
        assert port.tip(ref.LOG_REF) == oid
        assert port.tip(ref.LOG_REF) == oid
    git("update-ref", "-d", ref.LOG_REF, cwd=repo)
    assert port.tip(ref.LOG_REF) is None
    git("update-ref", ref.PUBLISHED_REF, oid, cwd=repo)
    with monkeypatch.context() as patch:  # just after git has answered
        GitOnPath(tmp_path, patch).does(
            f'"$git" "$@"; "$git" -C "{repo}" update-ref {ref.LOG_REF} {oid}', to="for-each-ref"
        )
        assert port.tip(ref.LOG_REF) is None
    assert port.tip(ref.LOG_REF) == oid
    port.close()


@pytest.mark.usefixtures("newer")
def test_nothing_new_is_answered_without_git_in_a_reftable(tmp_path: Path, desk: Desk, git: object) -> None:
    """Hooks ask before every tool call: the quick answer starts no git there either."""
    where = tmp_path / "a"
    subprocess.run(["git", "init", "-q", "--ref-format=reftable", where], check=True)
    planck = desk.start("Planck", cwd=where)
    desk("inbox", session=planck, cwd=where)
    said = process("inbox", cwd=where, env={"GITMEM_SESSION": planck, "PATH": str(tmp_path)})
    assert (said.status, said.err) == (0, "")
    assert "Nothing new" in said.out or "nothing new" in said.out


@pytest.mark.usefixtures("newer")
def test_the_branch_of_a_reftable_is_told(tmp_path: Path, desk: Desk) -> None:
    """HEAD's own file has no branch there; git is asked for it, in every worktree."""
    hub = make_hub(tmp_path)
    where = clone(hub, "a", "--ref-format=reftable")
    other = tmp_path / "elsewhere.git"
    git("clone", "--quiet", "--bare", str(hub), str(other), cwd=tmp_path)
    git("remote", "add", "mine", str(other), cwd=where)
    git("checkout", "--quiet", "-b", "wu-123-cut", cwd=where)
    git("config", "branch.wu-123-cut.remote", "mine", cwd=where)
    desk.start("Planck", cwd=where)
    assert sync(desk, where) == {"mine": "synced"}
    git("worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "linked"), cwd=where)
    git("worktree", "add", "--quiet", "--detach", str(tmp_path / "detached"), cwd=where)
    head = git("rev-parse", "HEAD", cwd=where).strip()
    for folder, branch in (
        (where, "wu-123-cut"),
        (tmp_path / "linked", "topic"),
        (tmp_path / "detached", None),
    ):
        port = PlumbingGit(find(str(folder)).common)
        assert port.head(find(str(folder)).git_dir) == (head, branch)
        assert port.branch(find(str(folder)).git_dir) == branch


@pytest.mark.usefixtures("newer")
def test_an_older_git_that_does_not_know_reftables_is_named(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence says that git is too old, not that the disk is full."""
    where = tmp_path / "a"
    git("init", "--quiet", "--ref-format=reftable", str(where), cwd=tmp_path)
    old = tmp_path / "old"
    old.mkdir()
    (old / "git").write_text(
        "#!/bin/sh\necho 'fatal: unknown repository extension found:' >&2\nprintf '\\trefstorage\\n' >&2\nexit 128\n"
    )
    (old / "git").chmod(0o755)
    said = desk("signal", "hi", "--json", cwd=where, env={"PATH": f"{old}:/usr/bin:/bin"})
    assert (said.status, said.error["code"]) == (4, "old-git")
    assert "(refstorage)" in said.error["message"] and "newer git" in said.error["hint"]


@pytest.mark.usefixtures("newer")
def test_relative_worktrees_and_worktree_config(tmp_path: Path, desk: Desk) -> None:
    """A folder that was moved with its worktrees, as a container sees it under another path, is the same clone."""
    hub = make_hub(tmp_path)
    inside = tmp_path / "host"
    inside.mkdir()
    b = clone(hub, "b")
    a = clone(hub, "host/a")
    git("worktree", "add", "--quiet", "--relative-paths", "-b", "x", str(inside / "linked"), cwd=a)
    git("config", "extensions.worktreeConfig", "true", cwd=a)
    git("config", "--worktree", "core.sparseCheckout", "true", cwd=inside / "linked")
    assert "relativeworktrees" in (a / ".git/config").read_text().lower()
    converse(desk, inside / "linked", b)
    inside.rename(tmp_path / "container")
    linked = tmp_path / "container" / "linked"
    converse(desk, linked, b, ("Bohr", "Dirac"))
    check_whole(desk, linked, b)


@pytest.mark.parametrize("key", ["compatObjectFormat = sha1", "fromTheFuture = yes"])
def test_extensions_that_are_not_known_are_refused(tmp_path: Path, desk: Desk, key: str) -> None:
    """What an extension asks of whoever writes can't be guessed: exit 4, and nothing is written."""
    where = tmp_path / "a"
    git("init", "--quiet", "--object-format=sha256", str(where), cwd=tmp_path)
    with (where / ".git/config").open("a") as config:
        config.write(f"[extensions]\n\t{key}\n")
    for command in (["signal", "hi"], ["inbox"], ["sync"], ["doctor"], ["init"]):
        said = desk(*command, "--json", cwd=where)
        assert (said.status, said.error["code"]) == (4, "unsupported-repository"), said
        assert key.split(" ")[0].lower() in said.error["message"]
    assert not (where / ".git/gitmem").exists()


@pytest.mark.usefixtures("newer")
def test_a_lock_that_the_dead_left_on_a_reftable_stops_nothing_for_good(tmp_path: Path, desk: Desk) -> None:
    """An append and a sync break one that is old, and doctor names it."""
    hub = make_hub(tmp_path)
    where = clone(hub, "a", "--ref-format=reftable")
    planck = desk.start("Planck", cwd=where)
    lock = where / ".git/reftable/tables.list.lock"
    long_ago = time.time() - 60
    for command in (["signal", "one"], ["sync", "--publish"]):
        lock.touch()
        os.utime(lock, (long_ago, long_ago))
        assert desk(*command, session=planck, cwd=where).status == 0
        assert not lock.exists()
    lock.touch()
    os.utime(lock, (long_ago, long_ago))
    codes = {each["code"]: each["where"] for each in desk("doctor", "--json", cwd=where).json["findings"]}
    assert codes["stale-lock"] == str(lock)
