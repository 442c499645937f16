"""Clones as agents in the cloud get them: cut histories, one branch, files left behind, borrowed objects."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.git import fetch, packs, processes
from gitmem.git.inprocess import DulwichGit
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import ref
from gitmem.repo import find

from .conftest import Desk
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
    found = make_hub(tmp_path)
    full = clone(found, "full")
    noether = desk.start("Noether", cwd=full)
    for number in range(3):
        desk.send(noether, f"Before, {number}", cwd=full)
    sync(desk, full)
    return found


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
