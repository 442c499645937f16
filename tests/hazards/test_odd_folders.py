"""One folder that a host and a container share, and remotes of which one takes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from .conftest import ROOT, Desk
from .odd import check_whole, clone, git, make_hub, sync

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
    written = (["hooks", "install", "--client", "claude-code"], ["hooks", "install", "--scope", "user", "--client", "cline"],
               ["hooks", "uninstall"], ["agents-md", "--write"], ["agents-md", "AGENTS.md", "--remove"], ["hooks", "status"],
               ["hooks", "install", "--git", "pre-commit"])  # fmt: skip
    before = {path for path in tmp_path.rglob("*") if "gitmem" not in path.parts}
    for command in (["signal", "hi"], ["roster"], ["sync"], ["init"], ["doctor"], *written):
        said = desk(*command, "--json", session=planck)
        assert (said.status, said.error["code"]) == (4, "dubious-ownership"), said
        assert said.json["next"] == [f"git config --global --add safe.directory {desk.repo}"]
    assert {path for path in tmp_path.rglob("*") if "gitmem" not in path.parts} == before
    trusting = tmp_path / "gitconfig"
    trusting.write_text(f"[safe]\n\tdirectory = {desk.repo}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(trusting))
    assert desk("signal", "hi", session=planck).status == 0


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
    """`sync --all` says so once, brings its lines, and asks it to take ours no more; that alone is no failure."""
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
