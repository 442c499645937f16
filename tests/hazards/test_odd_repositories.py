"""Clones as agents in the cloud get them: cut histories, one branch, files left behind, borrowed objects."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from gitmem.git import fetch, packs, processes
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import ref
from gitmem.repo import find

from .. import newer_git, templates
from ..git_on_path import GitOnPath
from .conftest import ROOT, Desk, process
from .odd import check_whole, clone, converse, git, make_hub, pack, sync

SHALLOW = [["--depth=1"], ["--depth=1", "--no-single-branch"]]
NARROW = [["--single-branch"]]
FILTERED = [
    ["--filter=blob:none"],
    ["--filter=tree:0"],
    ["--filter=blob:none", "--depth=1", "--no-single-branch"],
]


@pytest.fixture
def hub(tmp_path: Path, desk: Desk) -> Path:
    """A remote with a log of some commits, made by a full clone named `full`."""

    def make(root: Path) -> None:
        full = clone(make_hub(root), "full")
        noether = desk.start("Noether", cwd=full)
        for number in range(3):
            desk.send(noether, f"Before, {number}", cwd=full)
        sync(desk, full)

    templates.copy("hub-of-full", tmp_path, make)
    return tmp_path / "hub.git"


def settings(where: Path) -> tuple[bytes, ...]:
    """What says how a clone was cut, to the byte."""
    paths = ("shallow", "config", "objects/info/alternates", "HEAD", "FETCH_HEAD")
    return tuple(
        path.read_bytes() if path.exists() else b"none" for path in (where / ".git" / name for name in paths)
    )


@pytest.fixture
def untouched() -> Iterator[dict[Path, tuple[bytes, ...]]]:
    """Clones and their settings, compared after the test."""
    known: dict[Path, tuple[bytes, ...]] = {}
    yield known
    assert {where: settings(where) for where in known} == known


@pytest.mark.deep
@pytest.mark.parametrize("options", [*SHALLOW, *NARROW, *FILTERED], ids=" ".join)
def test_a_clone_that_is_less_than_whole_works(
    hub: Path, desk: Desk, untouched: dict[Path, tuple[bytes, ...]], options: list[str]
) -> None:
    """Signals, answers and memory go both ways; its depth, refspec and filters stay as they were."""
    less, full = clone(hub, "less", *options), hub.parent / "full"
    untouched[less] = settings(less)
    converse(desk, less, full)
    said = [each.get("message") for each in desk("log", "--json", cwd=less).json["entries"]]
    assert [f"Before, {number}" in said for number in range(3)] == [True] * 3
    pack(less)
    git("gc", "--quiet", "--prune=now", cwd=less)
    assert desk("log", "--json", cwd=less).json == desk("log", "--json", cwd=full).json
    check_whole(desk, full, less)


@pytest.mark.parametrize("options", SHALLOW, ids=" ".join)
def test_a_shallow_clone_follows_what_others_push_meanwhile(
    hub: Path, desk: Desk, untouched: dict[Path, tuple[bytes, ...]], options: list[str]
) -> None:
    """Its unpublished commits are put on the new tip, and pushed from the shallow clone."""
    less, full = clone(hub, "less", *options), hub.parent / "full"
    untouched[less] = settings(less)
    planck, curie = desk.start("Planck", cwd=less), desk.start("Curie", cwd=full)
    for number in range(2):
        desk.send(planck, f"Here, {number}", cwd=less)
        desk.send(curie, f"There, {number}", cwd=full)
        for where in (full, less, full):
            sync(desk, where)
    check_whole(desk, full, less)
    assert git("rev-list", "--merges", ref.LOG_REF, cwd=full) == ""


def test_a_log_that_is_cut_is_known_by_its_tree(hub: Path, desk: Desk) -> None:
    """A log whose history ends where the clone was cut is adopted; another branch that is cut there is none."""
    first = hub.parent / "first"
    git("checkout", "--quiet", "-b", "other", cwd=first)
    git("push", "--quiet", "origin", "HEAD", cwd=first)
    less = clone(hub, "less", "--depth=1", "--no-single-branch")
    port = DulwichGit(find(str(less)).common)
    tip = git("rev-parse", "refs/remotes/origin/gitmem", cwd=less).strip()
    assert tip in (less / ".git/shallow").read_text()
    assert not port.has(ref.GENESIS)
    for each in (port, PlumbingGit(find(str(less)).common)):
        assert each.commit(tip).parents == []
        assert each.history(tip) == [tip]
        assert not each.contains(tip, ref.GENESIS)
        each.close()
    assert desk("log", "--json", cwd=less).json["entries"]
    git("update-ref", "refs/remotes/other/gitmem", "refs/remotes/origin/other", cwd=less)
    findings = desk("doctor", "--json", cwd=less).json["findings"]
    assert [each["where"] for each in findings if each["code"] == "not-a-log"] == [
        "refs/remotes/other/gitmem"
    ]


def test_a_cut_log_can_not_be_brought_to_a_new_remote(hub: Path, desk: Desk) -> None:
    """Git refuses a history without its beginning; that is said, and nothing is lost or rewritten."""
    less = clone(hub, "less", "--depth=1", "--no-single-branch")
    new = make_hub(_folder(hub.parent / "new"))
    git("remote", "add", "new", str(new), cwd=less)
    desk.send(desk.start("Planck", cwd=less), "hi", cwd=less)
    sync(desk, less)
    before = git("rev-parse", ref.LOG_REF, cwd=less)
    said = desk("sync", "new", "--publish", "--json", cwd=less)
    (remote,) = said.json["remotes"]
    assert (said.status, remote["state"]) == (5, "refused")
    assert "shallow" in remote["message"]
    assert git("rev-parse", ref.LOG_REF, cwd=less) == before


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


# Files that were left with a remote
def test_recording_and_reading_bring_nothing_from_the_network(
    hub: Path, desk: Desk, untouched: dict[Path, tuple[bytes, ...]]
) -> None:
    """A partial clone whose remote is away starts a log of its own; the sync unites it with the one that it left."""
    less, full = clone(hub, "less", "--filter=blob:none"), hub.parent / "full"
    untouched[less] = settings(less)
    hub.rename(hub.parent / "away")
    planck = desk.start("Planck", cwd=less)
    desk.send(planck, "Alone", cwd=less)
    for command in (["inbox"], ["roster"], ["log"], ["doctor"], ["mem", "context"]):
        assert desk(*command, session=planck, cwd=less).status in (0, 1)
    (hub.parent / "away").rename(hub)
    sync(desk, less)
    sync(desk, full)
    check_whole(desk, full, less)
    assert "Alone" in desk("log", cwd=full).out and "Before, 1" in desk("log", cwd=less).out


@pytest.mark.parametrize("implementation", [PlumbingGit, DulwichGit])
def test_a_promised_file_is_missing_and_not_waited_for(
    hub: Path, implementation: type[PlumbingGit] | type[DulwichGit]
) -> None:
    """Whichever git: no port asks a remote for what a partial clone lacks, and it reads on after that."""
    less = clone(hub, "less", "--filter=blob:none")
    port = implementation(find(str(less)).common)
    tip = git("rev-parse", "refs/remotes/origin/gitmem", cwd=less).strip()
    blob = port.tree(port.commit(tip).tree)["format"].oid
    packs = sorted((less / ".git/objects/pack").iterdir())
    assert not port.has(blob)
    with pytest.raises(KeyError):
        port.blob(blob)
    assert port.has(tip)
    assert sorted((less / ".git/objects/pack").iterdir()) == packs
    port.close()


def test_an_old_git_without_a_switch_for_it_stays_off_the_network_too(
    hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 2.45 git does not know GIT_NO_LAZY_FETCH; that no protocol is allowed it knows since ever."""
    monkeypatch.delitem(processes._OFFLINE, "GIT_NO_LAZY_FETCH")
    test_a_promised_file_is_missing_and_not_waited_for(hub, PlumbingGit)


@pytest.mark.deep
@pytest.mark.parametrize("options", FILTERED[:2], ids=" ".join)
def test_the_user_s_own_fetch_leaves_no_hole(
    hub: Path, desk: Desk, untouched: dict[Path, tuple[bytes, ...]], options: list[str]
) -> None:
    """A fetch brings the branch gitmem without its files, so ours has nothing to bring: they come all the same."""
    less, full = clone(hub, "less", *options), hub.parent / "full"
    untouched[less] = settings(less)
    sync(desk, less)
    desk.send(desk.start("Curie", cwd=full), "Later", cwd=full)
    sync(desk, full)
    git("fetch", "--quiet", "--no-write-fetch-head", "origin", cwd=less)
    tip = git("rev-parse", "refs/remotes/origin/gitmem", cwd=less, check=False).strip()
    common = find(str(less)).common
    assert fetch.missing_objects(common, [tip])
    assert desk("log", "--json", cwd=less).status == 0
    sync(desk, less)
    assert fetch.missing_objects(common, [tip]) == []
    assert "Later" in desk("log", cwd=less).out
    check_whole(desk, full, less)


def test_a_log_whose_files_can_not_be_brought_is_left_alone(hub: Path, desk: Desk) -> None:
    """The remote that promised them is away and another one is not: what is here goes there."""
    less = clone(hub, "less", "--filter=blob:none")
    other = make_hub(_folder(hub.parent / "other"))
    git("remote", "add", "other", str(other), cwd=less)
    desk.send(desk.start("Planck", cwd=less), "Alone", cwd=less)
    hub.rename(hub.parent / "away")
    assert sync(desk, less, "other") == {"other": "synced"}
    assert "Alone" in desk("log", cwd=less).out
    tip = git("rev-parse", "refs/remotes/origin/gitmem", cwd=less).strip()
    assert fetch.is_incomplete(find(str(less)).common, tip)
    (hub.parent / "away").rename(hub)
    sync(desk, less)
    assert "Before, 1" in desk("log", cwd=less).out


def test_a_gc_does_not_leave_files_of_the_log_to_the_remote_that_has_them_too(hub: Path, desk: Desk) -> None:
    """Once a promised commit names what was written here, git takes it for the remote's; a signal needs it offline."""
    less, full = clone(hub, "less", "--filter=blob:none"), hub.parent / "full"
    planck, curie = desk.start("Planck", cwd=less), desk.start("Curie", cwd=full)
    for where, who in ((less, planck), (full, curie)):
        desk.send(who, "More", cwd=where)
        sync(desk, where)
    git("fetch", "--quiet", "--no-write-fetch-head", "origin", cwd=less)
    sync(desk, less)
    pack(less)
    git("gc", "--quiet", "--prune=now", cwd=less)
    hub.rename(hub.parent / "away")
    assert fetch.missing_objects(find(str(less)).common, [ref.LOG_REF]) == []
    assert desk.send(planck, "Offline", cwd=less)["commit"]


# Objects that another repository has
@pytest.mark.parametrize("kind", ["--shared", "--reference"])
def test_a_gc_in_the_repository_that_lends_loses_no_line(hub: Path, desk: Desk, kind: str) -> None:
    """Also where that one has rewritten its log since, and where a gc of our own would give our copies up."""
    full = hub.parent / "full"
    planck = desk.start("Planck", cwd=full)
    desk.send(planck, "Not published", cwd=full)
    if kind == "--shared":
        less = hub.parent / "less"
        git("clone", "--quiet", "--shared", str(full), str(less), cwd=hub.parent)
        git("config", "user.email", "less@example.org", cwd=less)
    else:
        less = clone(hub, "less", f"--reference={full}")
        git("remote", "add", "full", str(full), cwd=less)
    remote = "origin" if kind == "--shared" else "full"
    curie = desk.start("Curie", cwd=less)
    desk.send(curie, "Of our own", cwd=less)
    sync(desk, less, remote)
    before = desk("log", "--json", cwd=less).json
    assert {"Not published", "Of our own"} <= {each.get("message") for each in before["entries"]}
    pack(less)
    git("gc", "--quiet", "--prune=now", cwd=full)
    git("gc", "--quiet", "--prune=now", cwd=less)
    _forget_the_log(full)
    assert desk("log", "--json", cwd=less).json == before
    desk.send(curie, "And after", cwd=less)
    (less / ".git/gitmem").rename(hub.parent / "put-aside")  # nothing that was remembered is needed
    assert desk("doctor", "--json", cwd=less).status == 0
    assert git("fsck", "--no-dangling", ref.LOG_REF, cwd=less) == ""


def _forget_the_log(where: Path) -> None:
    prefixes = ("refs/gitmem", "refs/heads/gitmem", "refs/remotes")
    for name in git("for-each-ref", "--format=%(refname)", *prefixes, cwd=where).split():
        git("update-ref", "-d", name, cwd=where)
    git("reflog", "expire", "--all", "--expire=now", cwd=where)
    git("gc", "--quiet", "--prune=now", cwd=where)


def test_an_adopted_log_does_not_stay_borrowed(hub: Path, desk: Desk) -> None:
    """Also where nothing was synced yet."""
    full = hub.parent / "full"
    less = clone(hub, "less", f"--reference={full}")
    assert "Before, 1" in desk("log", cwd=less).out
    shutil.rmtree(full / ".git/gitmem")
    _forget_the_log(full)
    desk.send(desk.start("Planck", cwd=less), "On", cwd=less)
    assert "Before, 1" in desk("log", cwd=less).out
    assert git("rev-list", "--objects", ref.LOG_REF, cwd=less)


def test_borrowed_objects_are_read_in_both_ways(hub: Path, desk: Desk) -> None:
    """Loose and packed ones, of a repository that borrows itself, by a path that is relative."""
    full = hub.parent / "full"
    middle, last = hub.parent / "middle", hub.parent / "last"
    git("clone", "--quiet", "--shared", str(full), str(middle), cwd=hub.parent)
    git("clone", "--quiet", "--shared", str(middle), str(last), cwd=hub.parent)
    (last / ".git/objects/info/alternates").write_text("# ours\n../../../middle/.git/objects\n")
    loose = git("hash-object", "-w", "--stdin", cwd=full).strip()
    packed = git("rev-parse", "main", cwd=full).strip()
    for implementation in (PlumbingGit, DulwichGit):
        port = implementation(find(str(last)).common)
        assert port.has(packed) and port.blob(loose) == b""
        port.close()


def test_what_was_made_our_own_up_to_a_commit_that_is_gone_is_made_so_anew(hub: Path, desk: Desk) -> None:
    """The note of it may be older than a gc, or torn."""
    full, less = hub.parent / "full", hub.parent / "less"
    git("clone", "--quiet", "--shared", str(full), str(less), cwd=hub.parent)
    git("config", "user.email", "less@example.org", cwd=less)
    (less / ".git/gitmem").mkdir()
    for note in ("", "torn", "12345678" * 5 + "\n\n"):
        (less / ".git/gitmem/own").write_text(note)
        desk.send(desk.start(f"Bohr-{len(note)}", cwd=full), "More", cwd=full)
        sync(desk, less)
    (less / ".git/objects/info/alternates").unlink()
    assert git("rev-list", "--objects", ref.LOG_REF, cwd=less)


def test_packs_of_borrowed_objects_do_not_pile_up(
    hub: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sync that borrows makes one that no gc takes; when there are many they are made one."""
    monkeypatch.setattr(packs, "LOCAL_PACKS_MAX", 3)
    full, less = hub.parent / "full", hub.parent / "less"
    git("clone", "--quiet", "--shared", str(full), str(less), cwd=hub.parent)
    git("config", "user.email", "less@example.org", cwd=less)
    noether = desk.start("Bohr", cwd=full)
    for number in range(5):
        desk.send(noether, f"More, {number}", cwd=full)
        sync(desk, less)
    kept = list((less / ".git/objects/pack").glob("*.keep"))
    assert 0 < len(kept) <= 3
    git("gc", "--quiet", "--prune=now", cwd=less)
    assert len(list((less / ".git/objects/pack").glob("*.pack"))) <= len(kept) + 1
    (less / ".git/objects/info/alternates").unlink()
    assert git("rev-list", "--objects", ref.LOG_REF, cwd=less)


# Repositories of other formats: reftables, sha256 and extensions work, or are refused with a sentence.


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
    assert desk("setup", "--client", "claude-code", cwd=a).status == 0
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
    for command in (["signal", "hi"], ["inbox"], ["sync"], ["doctor"], ["setup"]):
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


# One folder that a host and a container share, and remotes of which one takes nothing.


# A host and a container
def test_a_host_and_a_container_on_one_folder(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine's name and another path of the same folder: each has an index of its own, and hears the other."""
    hub = make_hub(tmp_path)
    (tmp_path / "home").mkdir()
    host, container = tmp_path / "home" / "project", tmp_path / "workspace"
    clone(hub, "home/project")
    inside = False

    def step(inside_now: bool) -> Path:
        nonlocal inside
        if inside_now != inside:
            (host if inside_now else container).rename(container if inside_now else host)
            inside = inside_now
        name = "c0ffee" if inside_now else "laptop"
        monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename=name))
        return container if inside_now else host

    planck, curie = desk.start("Planck", cwd=step(False)), desk.start("Curie", cwd=step(True))
    for number in range(2):
        desk.send(planck, f"From the host, {number}", "--to", "Curie", cwd=step(False))
        seen = desk("inbox", "--json", session=curie, cwd=step(True)).json["signals"]
        assert [each["message"] for each in seen] == [f"From the host, {number}"]
        desk.send(curie, f"From the container, {number}", "--to", "Planck", cwd=step(True))
        seen = desk("inbox", "--json", session=planck, cwd=step(False)).json["signals"]
        assert [each["message"] for each in seen] == [f"From the container, {number}"]
    assert sync(desk, step(True)) == {"origin": "synced"}
    state = container / ".git/gitmem"
    assert {path.name for path in state.glob("index-*.sqlite3")} == {
        "index-c0ffee.sqlite3",
        "index-laptop.sqlite3",
    }
    stories = [desk("log", "--json", cwd=step(at)).json for at in (True, False)]
    assert stories[0] == stories[1]
    check_whole(desk, host)


MACHINE = """
import sys
from cli import environment, main
machine, who = sys.argv[1:]
environment.machine = lambda: machine
for number in range(5):
    assert main.main(["--as", who, "signal", f"{machine} says {number}", "-q"]) == 0
assert main.main(["--as", who, "inbox"]) == 0
"""


def test_two_machines_write_to_one_folder_at_once(desk: Desk) -> None:
    """The lock and the write-ahead log are of the folder, whatever the machine is called: every line is there, once."""
    names = {"laptop": desk.start("Planck"), "c0ffee": desk.start("Curie")}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", MACHINE, machine, who],
            cwd=desk.repo, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
        )
        for machine, who in names.items()
    ]  # fmt: skip
    assert [writer.wait(60) for writer in writers] == [0, 0]
    said = [each.get("message") for each in desk("log", "--json").json["entries"]]
    wanted = [f"{machine} says {number}" for machine in names for number in range(5)]
    assert sorted(each for each in said if each) == sorted(wanted)
    assert {f"index-{machine}.sqlite3" for machine in names} <= set(os.listdir(desk.repo / ".git/gitmem"))


def test_a_repository_of_somebody_else_is_used_only_where_git_trusts_it(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its config could name programs that we would run; as in git, `safe.directory` says that this is fine."""
    planck = desk.start("Planck")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert desk("roster").status == 0  # git is asked only where the owner is another one
    own = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: own + 1)
    written = (["setup", "--client", "claude-code"], ["setup", "--scope", "user", "--client", "cline"], ["remove"],
               ["remove", "--git", "pre-commit"], ["setup", "--git", "pre-commit"])  # fmt: skip
    before = {path for path in tmp_path.rglob("*") if "gitmem" not in path.parts}
    for command in (["signal", "hi"], ["roster"], ["sync"], ["setup"], ["doctor"], *written):
        said = desk(*command, "--json", session=planck)
        assert (said.status, said.error["code"]) == (4, "dubious-ownership"), said
        assert said.json["next"] == [f"git config --global --add safe.directory {desk.repo}"]
    assert {path for path in tmp_path.rglob("*") if "gitmem" not in path.parts} == before
    trusting = tmp_path / "gitconfig"
    trusting.write_text(f"[safe]\n\tdirectory = {desk.repo}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(trusting))
    assert desk("roster", session=planck).status == 0
    said = desk("signal", "hi", "--json", session=planck)
    assert said.error["code"] == "key-file", said  # the key is that of the other user


# Two remotes, of which one takes nothing
@pytest.fixture
def two(tmp_path: Path, desk: Desk) -> tuple[Path, Path]:
    """A clone of `hub.git`, with the remote `upstream`, whose log somebody else keeps and which refuses every push."""
    (tmp_path / "up").mkdir()
    upstream = make_hub(tmp_path / "up")
    theirs = clone(upstream, "theirs")
    desk.send(desk.start("Noether", cwd=theirs), "From upstream", cwd=theirs)
    sync(desk, theirs)
    hook = upstream / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'you may only look' >&2\nexit 1\n")
    hook.chmod(0o755)
    hub = tmp_path / "hub.git"
    git("clone", "--quiet", "--bare", str(upstream), str(hub), cwd=tmp_path)
    git("update-ref", "-d", "refs/heads/gitmem", cwd=hub)
    mine = clone(hub, "mine")
    git("remote", "add", "upstream", str(upstream), cwd=mine)
    return mine, upstream


def test_a_remote_that_takes_nothing_is_read(two: tuple[Path, Path], desk: Desk) -> None:
    """`sync --all` says so once, fetches its lines, and stops pushing to it; that alone is not a failure."""
    mine, upstream = two
    planck = desk.start("Planck", cwd=mine)
    desk.send(planck, "From here", cwd=mine)
    before = git("for-each-ref", cwd=upstream)
    said = desk("sync", "--all", "--publish", "--json", cwd=mine)
    first, second = said.json["remotes"]
    assert said.status == 0, said
    assert (first["name"], first["state"]) == ("origin", "synced")
    assert (second["name"], second["state"], second["received"]) == ("upstream", "read-only", 2)
    assert "you may only look" in second["message"] and "gitmem sync upstream" in second["message"]
    assert "From upstream" in desk("log", cwd=mine).out
    (upstream / "hooks" / "pre-receive").write_text("#!/bin/sh\ntouch asked\nexit 1\n")
    desk.send(planck, "More", cwd=mine)
    said = desk("sync", "--all", "--json", cwd=mine)
    first, second = said.json["remotes"]
    assert (said.status, first["state"], second["state"], second["message"]) == (0, "synced", "read-only", "")
    assert not (upstream / "asked").exists()
    assert git("for-each-ref", cwd=upstream) == before
    texts = desk("sync", "--all", cwd=mine)
    assert "upstream: read-only" in texts.out
    check_whole(desk, mine)


def test_a_remote_that_took_nothing_and_is_named_is_tried_again(two: tuple[Path, Path], desk: Desk) -> None:
    """Named alone a refusal is a failure; once it takes our lines it is as any other."""
    mine, upstream = two
    desk.send(desk.start("Planck", cwd=mine), "From here", cwd=mine)
    assert desk("sync", "--all", "--publish", cwd=mine).status == 0
    said = desk("sync", "upstream", "--json", cwd=mine)
    assert (said.status, said.json["remotes"][0]["state"]) == (5, "refused")
    (upstream / "hooks" / "pre-receive").unlink()
    assert sync(desk, mine, "upstream") == {"upstream": "synced"}
    desk.send(desk.start("Curie", cwd=mine), "More", cwd=mine)
    assert sync(desk, mine, "--all") == {"origin": "synced", "upstream": "synced"}


def test_the_only_remote_that_takes_nothing_is_a_failure_each_time(
    two: tuple[Path, Path], desk: Desk
) -> None:
    """What is written here then is nowhere else: exit 5, also where it was forgiven before there was no other."""
    mine, _ = two
    desk.send(desk.start("Planck", cwd=mine), "From here", cwd=mine)
    assert desk("sync", "--all", "--publish", cwd=mine).status == 0
    git("remote", "remove", "origin", cwd=mine)
    desk.send(desk.start("Curie", cwd=mine), "And more", cwd=mine)
    for args in ([], ["--all"], []):
        said = desk("sync", *args, "--json", cwd=mine)
        assert (said.status, said.json["remotes"][0]["state"]) == (5, "refused")
    assert "From upstream" in desk("log", cwd=mine).out
