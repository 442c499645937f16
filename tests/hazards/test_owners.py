"""Root writes in a repository of somebody else, as in a container: its owner is not locked out."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import pytest

from gitmem.api import log as api
from gitmem.calls import client_run
from gitmem.git import packs, plumbing
from gitmem.git.packs import PACKS_MAX

from .conftest import Desk, Said, powerless, process
from .peers import BRANCH, Town, git

OWNER = 12_345
KEEP_CAPABILITIES, AMBIENT, AMBIENT_RAISE, CAPABILITY_VERSION = 8, 47, 2, 0x2008_0522  # of Linux
pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act for others"
)


def give(folder: Path, owner: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


def everything_of_root(folder: Path) -> list[str]:
    """Except for what is that user's own."""
    own = {"config-0", "private-0"}
    found = [path for path in folder.rglob("*") if path.lstat().st_uid == 0]
    return sorted(
        str(path)
        for path in found
        if not own.intersection(path.parts) and not path.name.startswith("writer-0-")
    )


@pytest.fixture
def any_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may use everybody's repositories, as `safe.directory` in a container allows."""
    config = tmp_path / "any-owner"
    config.write_text("[safe]\n\tdirectory = *\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(config))
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    for folder in tmp_path.parents:  # a git of the owner goes through them
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)


@pytest.mark.usefixtures("any_owner")
def test_what_root_writes_belongs_to_the_owner_of_the_git_folder(desk: Desk) -> None:
    """State, index, refs, reflogs, packs and folders of objects."""
    give(desk.repo, OWNER)

    ada, ben = desk.start("Ada"), desk.start("Ben")
    desk.send(ada, "Tabs?", "--to", "Ben")
    assert "Tabs?" in desk("inbox", session=ben).out
    desk("claim", "src/*.py", session=ada)
    desk("mem", "create", "The parser drops tabs", session=ada)
    desk("mem", "create", "Mine", "--private", session=ada)
    assert desk("log", "--commit", session=ada).status == 0

    state = desk.repo / ".git" / "gitmem"
    assert (state.parent / "refs" / "gitmem" / "log").exists()
    assert everything_of_root(desk.repo) == []
    for number in range(PACKS_MAX + 1):
        desk("signal", f"number {number}", "--commit")
    assert plumbing.expire_broken(str(state.parent), "refs/gitmem/log")
    assert everything_of_root(desk.repo) == []
    assert packs.combine(str(state.parent)) > 1
    assert everything_of_root(desk.repo) == []


def test_the_owner_is_told_what_root_has_made_and_how_to_get_it_back(desk: Desk) -> None:
    """Where an older root process has left `.git/gitmem` to itself. Here the second user is the one who made it."""
    session = desk.start("Ada")
    state = desk.repo / ".git" / "gitmem"
    give(state, OWNER)
    for path in state.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)

    told = process(
        "signal",
        "Tabs?",
        "--to",
        session,
        "--json",
        cwd=desk.repo,
        env={"GITMEM_SESSION": session},
        before=powerless,
    )

    assert told.status == 4, told
    assert told.error["code"] == "read-only"
    assert f"{state} belongs to user {OWNER}" in told.error["message"]
    assert "Nothing was recorded" in told.error["message"]
    assert told.json["next"] == [f"sudo chown -R 0:0 {state}"]


def as_owner() -> None:
    """For `before`: this process is the owner's. It may read everything (the interpreter may be root's), but write only its own."""
    libc, read_search = ctypes.CDLL(None, use_errno=True), 2
    os.setgroups([])
    os.setgid(OWNER)
    libc.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setuid(OWNER)
    bit = 1 << read_search
    assert (
        libc.capset((ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)(bit, bit, bit)) == 0
    )
    assert libc.prctl(AMBIENT, AMBIENT_RAISE, read_search, 0, 0) == 0


@pytest.mark.usefixtures("any_owner")
def test_what_a_fetch_leaves_without_a_commit_belongs_to_the_owner(town: Town) -> None:
    """Copies of the remote's refs, packed ones and packs: of a log that is left out, too, and when the copies are removed."""
    clone = town.clone("a")
    clone.say("one")
    assert clone.sync().code == 0
    good = town.tip()
    git("pack-refs", "--all", cwd=clone.path)
    git("repack", "-adq", cwd=clone.path)
    give(clone.path, OWNER)

    town.break_with({"format": b"[", "signals/2026-11-21/gm-7d2kq0ze.jsonl": b'{"message":"x"}\n'}, box=True)
    town.break_with({"format": b"["})
    assert clone.sync().remote["left_out"]
    assert everything_of_root(clone.path) == []
    town.point(BRANCH, good)
    for name in town.outboxes():
        git("update-ref", "-d", name, cwd=town.hub)
    clone.sync()
    assert everything_of_root(clone.path) == []


@pytest.mark.usefixtures("any_owner")
def test_what_an_installer_writes_as_root_belongs_to_the_owner(desk: Desk) -> None:
    """New files and folders of the work tree and of git; those of others stay theirs."""
    (desk.repo / "AGENTS.md").write_text("# Agents\n")
    give(desk.repo, OWNER)
    os.chown(desk.repo / "AGENTS.md", OWNER + 1, OWNER + 1)

    for args in (
        ["setup", "--client", "claude-code", "--client", "cursor", "--client", "gemini"],
        ["setup", "--git", "pre-commit", "--git", "post-commit"],
    ):
        done = desk(*args)
        assert done.status == 0, done

    assert everything_of_root(desk.repo) == []
    assert (desk.repo / "AGENTS.md").stat().st_uid == OWNER + 1
    assert b"gitmem" in (desk.repo / "AGENTS.md").read_bytes()
    assert (desk.repo / ".claude" / "settings.json").stat().st_uid == OWNER
    told = process("remove", "--client", "claude-code", cwd=desk.repo, before=as_owner)
    assert told.status == 0, told
    assert not (desk.repo / ".claude").exists()


@pytest.mark.usefixtures("any_owner")
def test_roots_own_files_stay_roots(desk: Desk) -> None:
    """So root reads its copy of git's settings again, and its trust in a command is nobody else's."""
    give(desk.repo, OWNER)
    roles = desk.repo / ".gitmem" / "roles.toml"
    roles.parent.mkdir()
    roles.write_text("[alias]\nRev = { role = 'implementer/general', exec = 'true' }\n")
    ada = desk.start("Ada")
    time.sleep(2.7)  # a program keeps nothing of a file that changed in the last 2.5 seconds
    process("signal", "Tabs?", cwd=desk.repo)
    state = desk.repo / ".git" / "gitmem"
    cache = state / "config-0"
    assert (cache.stat().st_uid, cache.stat().st_mode & 0o777) == (0, 0o600)
    before = cache.stat().st_ino
    process("signal", "Tabs?", cwd=desk.repo)
    assert cache.stat().st_ino == before, "git was asked again"
    with api.open(str(desk.repo), session=ada) as log:
        client_run.trusted_command(log.store, "Rev", trust=True)
    (trust,) = (state / "trusted").iterdir()
    assert trust.stat().st_uid == 0
    refused = process("serve-agent", "Rev", "--json", cwd=desk.repo, before=as_owner)
    assert refused.error["code"] == "not-trusted", "root's trust is not the owner's"


@pytest.mark.usefixtures("any_owner")
def test_a_mark_that_is_another_users_keeps_no_claim_from_being_noted(desk: Desk) -> None:
    """The guard blocks by claims that this clone has noted."""
    give(desk.repo, OWNER)

    def owners(*args: str, session: str = "") -> Said:
        return process(*args, cwd=desk.repo, env={"GITMEM_SESSION": session}, before=as_owner)

    ada = str(owners("session", "start", "--name", "Ada", "--json").json["session_id"])
    claims = desk.repo / ".git" / "gitmem" / "claims"
    for number, path in enumerate(("src/*.py", "docs/*.md"), 1):
        assert owners("claim", path, session=ada).status == 0
        assert len([*(claims / "seen").iterdir()]) == number
        os.chown(claims / "claimed", 0, 0)
        (claims / "claimed").chmod(0o644)


LEFT = ("objects", "objects/pack", "refs/gitmem", "refs", "logs/refs/gitmem/log", "gitmem")


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.usefixtures("any_owner")
def test_the_owner_is_told_which_folder_root_has_left(left: str, desk: Desk) -> None:
    """By plain git, too: its owner and the command that gives it back, which works. Nothing that was recorded is lost."""
    give(desk.repo, OWNER)

    def owners(*args: str, session: str = "") -> Said:
        return process(*args, cwd=desk.repo, env={"GITMEM_SESSION": session}, before=as_owner)

    ada = str(owners("session", "start", "--name", "Ada", "--json").json["session_id"])
    assert owners("signal", "Tabs?", "--commit", session=ada).status == 0
    path = desk.repo / ".git" / left
    for each in (path, *path.rglob("*")) if path.is_dir() else (path,):
        os.chown(each, 0, 0)
        each.chmod(0o755 if each.is_dir() else 0o644)
    fix = f"sudo chown -R {OWNER}:{OWNER} {path}"

    told = owners("signal", "Spaces?", "--commit", session=ada)
    assert f"{path} belongs to user 0 (root), and you ({OWNER}) may not write there." in told.out + told.err
    assert told.status == 0 or told.next == [fix], told
    assert fix in owners("doctor").next

    give(path, OWNER)
    assert owners("signal", "Commas?", "--commit", session=ada).status == 0
    log = owners("log").out
    assert "Tabs?" in log and "Commas?" in log and ("Spaces?" in log) == (told.status == 0)


@pytest.mark.usefixtures("any_owner")
def test_no_link_to_a_folder_of_root_is_named_to_chown(desk: Desk, tmp_path: Path) -> None:
    """A command that was copied from the error would give away the folder behind it."""
    assert desk("signal", "Tabs?", "--broadcast", "--commit").status == 0
    give(desk.repo, OWNER)
    pack, theirs = desk.repo / ".git/objects/pack", tmp_path / "theirs"
    pack.rename(theirs)
    give(theirs, 0)
    theirs.chmod(0o755)
    pack.symlink_to(theirs)
    os.chown(pack, OWNER, OWNER, follow_symlinks=False)

    for args in (("signal", "Spaces?", "--broadcast", "--commit"), ("doctor",)):
        told = process(*args, cwd=desk.repo, env={}, before=as_owner)
        assert "chown" not in told.out + told.err and "Traceback" not in told.err, told
