"""`gitmem setup` and `remove`: may be repeated, may be taken back to the byte, and say where the log is published."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from ..conftest import Git
from .conftest import Desk, check_text

CONFIGS = {
    "as git made it": None,
    "empty": b"",
    "without an end of line": b"[core]\n\trepositoryformatversion = 0\n\tbare = false",
    "with CRLF": b"[core]\r\n\trepositoryformatversion = 0\r\n\tbare = false\r\n",
    "with comments and odd spaces": b"# mine\n[core]   ; yes\n\trepositoryformatversion=0\n\n\n\tbare  =  false\n\n# end\n\n",
    "with other merge drivers": (
        b'[core]\n\trepositoryformatversion = 0\n\tbare = false\n[merge "other"]\n\tdriver = true %A\n'
        b'[merge "gitmem"]\n\tname = mine\n'
    ),
    "not UTF-8": b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n[user]\n\tname = Ren\xe9\n",
}
ATTRIBUTES = {
    "none": None,
    "empty": b"",
    "a rule": b"*.png binary\n",
    "without an end of line": b"*.png binary",
    "with CRLF": b"*.png binary\r\n",
    "a rule like ours": b"gm-*.jsonl -diff\n# end\n",
}


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A merge program beside the one that runs, in a folder whose name needs quotes."""
    folder = tmp_path / 'it\'s 100% "mine"'
    folder.mkdir()
    merge = folder / "gitmem-merge"
    merge.write_text("#!/bin/sh\nexit 1\n")
    merge.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(folder / "gitmem")])
    return merge


def _given(repo: Path) -> dict[str, tuple[bytes, int]]:
    """The files of the git folder that `setup` may touch, and all that lie beside them."""
    common = repo / ".git"
    files = (
        [common / "config", *sorted((common / "info").glob("*"))]
        if (common / "info").is_dir()
        else [common / "config"]
    )
    return {str(file): (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) for file in files} | {
        "info": (b"", int((common / "info").is_dir()))
    }


def _prepare(common: Path, config: bytes | None, attributes: bytes | None) -> None:
    if config is not None:
        (common / "config").write_bytes(config)
    (common / "config").chmod(0o640)
    if attributes is not None:
        (common / "info").mkdir(exist_ok=True)
        (common / "info" / "attributes").write_bytes(attributes)


@pytest.mark.parametrize(
    ("config", "attributes"),
    [
        *((name, "a rule") for name in CONFIGS),
        *(("as git made it", name) for name in ATTRIBUTES if name != "a rule"),
    ],
)
def test_remove_gives_every_file_back(desk: Desk, config: str, attributes: str) -> None:
    """After setup and remove, config and attributes are what they were to the byte, mode and all."""
    _prepare(desk.repo / ".git", CONFIGS[config], ATTRIBUTES[attributes])
    before = _given(desk.repo)
    first = desk("setup", "--json")
    assert first.status == 0, first
    assert len(first.json["changed"]) == 2
    after = _given(desk.repo)
    assert after != before
    again = desk("setup", "--json")
    assert again.status == 0 and again.json["changed"] == [] and again.json["log"]["state"] == "present"
    assert _given(desk.repo) == after
    gone = desk("remove", "--json")
    assert gone.status == 0 and len(gone.json["changed"]) == 2
    assert _given(desk.repo) == before
    nothing = desk("remove", "--json")
    assert nothing.status == 0 and nothing.json["changed"] == []
    assert _given(desk.repo) == before


def test_remove_in_a_repository_without_info(desk: Desk, git: Git) -> None:
    """A folder `info` that setup made goes with it."""
    info = desk.repo / ".git" / "info"
    for file in info.glob("*"):
        file.unlink()
    info.rmdir()
    before = _given(desk.repo)
    assert desk("setup").status == 0
    assert (info / "attributes").exists()
    assert desk("remove").status == 0
    assert _given(desk.repo) == before


def test_what_others_wrote_since_survives(desk: Desk, git: Git) -> None:
    """What the user adds between setup and remove stays, and only ours goes."""
    assert desk("setup").status == 0
    git("config", "user.name", "Changed", cwd=desk.repo)
    with (desk.repo / ".git" / "info" / "attributes").open("a") as file:
        file.write("*.png binary\n")
    assert desk("remove").status == 0
    assert git("config", "user.name", cwd=desk.repo) == "Changed\n"
    text = (desk.repo / ".git" / "info" / "attributes").read_text()
    assert text.endswith("*.png binary\n") and "gitmem" not in text
    assert "gitmem" not in (desk.repo / ".git" / "config").read_text()


def test_setup_in_a_linked_worktree_serves_all(tmp_path: Path, desk: Desk, git: Git) -> None:
    """The driver is installed once, for every worktree; removing it anywhere takes it out."""
    linked = tmp_path / "linked"
    git("worktree", "add", "--quiet", "-b", "x", str(linked), cwd=desk.repo)
    before = _given(desk.repo)
    assert desk("setup", cwd=linked).status == 0
    assert "merge: gitmem" in git("check-attr", "merge", "signals/gm-x.jsonl", cwd=desk.repo)
    assert desk("remove").status == 0
    assert _given(desk.repo) == before


def test_a_locked_config_is_left_as_it_is(desk: Desk) -> None:
    """While git holds the config's lock nothing is written, and the lock is not broken."""
    lock = desk.repo / ".git" / "config.lock"
    lock.write_text("")
    before = (desk.repo / ".git" / "config").read_bytes()
    said = desk("setup", "--json")
    assert said.status == 4, said
    assert said.error["message"]
    assert (desk.repo / ".git" / "config").read_bytes() == before and lock.exists()
    lock.unlink()
    assert desk("setup").status == 0


def test_without_its_program_setup_changes_nothing(
    desk: Desk, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the merge program is missing, setup says where it looked, and installs no driver that would fail."""
    program.unlink()
    monkeypatch.setattr("sysconfig.get_path", lambda name: os.fspath(program.parent))
    before = _given(desk.repo)
    said = desk("setup", "--json")
    assert (said.status, said.error["code"]) == (4, "no-merge-program")
    assert _given(desk.repo) == before


def test_setup_brings_the_remote_s_log_and_pushes_nothing(tmp_path: Path, desk: Desk, git: Git) -> None:
    """A second clone has the first one's story after setup; the remote is as before."""
    hub, other = tmp_path / "hub.git", tmp_path / "other"
    git("init", "--quiet", "--bare", str(hub))
    git("remote", "add", "origin", str(hub), cwd=desk.repo)
    git("push", "--quiet", "origin", "HEAD:main", cwd=desk.repo)
    planck = desk.start("Planck")
    desk.send(planck, "Hello")
    assert desk("sync", "--publish").status == 0
    git("clone", "--quiet", "--branch", "main", str(hub), str(other))
    before = git("for-each-ref", cwd=hub)
    said = desk("setup", "--json", cwd=other)
    assert said.status == 0 and said.json["log"]["state"] == "adopted", said
    assert git("for-each-ref", cwd=hub) == before
    assert [
        each["message"] for each in desk("log", "--json", cwd=other).json["entries"] if "message" in each
    ] == ["Hello"]


def test_hidden_is_agreed_by_all_clones(tmp_path: Path, desk: Desk, git: Git) -> None:
    """`--ref hidden` moves the log off the branches for every clone, and `branch` brings it back."""
    hub, other = tmp_path / "hub.git", tmp_path / "other"
    git("init", "--quiet", "--bare", str(hub))
    git("remote", "add", "origin", str(hub), cwd=desk.repo)
    git("push", "--quiet", "origin", "HEAD:main", cwd=desk.repo)
    assert desk("setup", "--ref", "hidden", "--publish", "yes", "--json").json["log"]["publish"] == "hidden"
    planck = desk.start("Planck")
    desk.send(planck, "Hello")
    assert desk("sync").status == 0
    assert "refs/gitmem/log" in git("for-each-ref", cwd=hub)
    assert "refs/heads/gitmem" not in git("for-each-ref", cwd=hub)
    git("clone", "--quiet", "--branch", "main", str(hub), str(other))
    assert git("branch", "--all", "--list", "*gitmem*", cwd=other) == ""
    said = desk("setup", "--publish", "yes", "--json", cwd=other)
    assert said.json["log"]["publish"] == "hidden"
    curie = desk.start("Curie", cwd=other)
    desk.send(curie, "Hi", cwd=other)
    assert desk("sync", cwd=other).status == 0
    assert "refs/heads/gitmem" not in git("for-each-ref", cwd=hub)
    said = desk("setup", "--ref", "branch", "--json")
    assert said.json["log"]["publish"] == "branch" and said.json["log"]["remarks"]
    assert desk("sync").status == 0
    assert desk("sync", cwd=other).status == 0
    assert "refs/heads/gitmem" in git("for-each-ref", cwd=hub)
    assert desk("setup", "--json", cwd=other).json["log"]["publish"] == "branch"
    said = desk("setup", "--ref", "branch", "--json")
    assert said.json["changed"] == []


def test_what_remove_names_really_removes_all(tmp_path: Path, desk: Desk, git: Git) -> None:
    """The commands that it prints, run by a shell, leave nothing of gitmem in the clone."""
    assert desk("setup").status == 0
    desk.send(desk.start("Planck"), "Hello")
    text = desk("remove")
    check_text(text)
    said = desk("remove", "--json").json
    assert said["remarks"], "lines that no remote has are worth a word"
    for command in said["left"]["remove"]:
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
    assert git("for-each-ref", "refs/gitmem/", cwd=desk.repo) == ""
    assert not (desk.repo / ".git" / "gitmem").exists()
