"""Hooks that are committed, in clones whose git turns LF into CRLF: they work, and those of colleagues without gitmem are silent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from gitmem.clients import client_scope, events
from gitmem.clients.clients import CLIENTS

from .conftest import Run
from .test_hooks import home as home
from .test_hooks import hooks

NAMES = [name for name, client in CLIENTS.items() if client.form != "nothing"]
SHELLS = {
    name: [path, *words[1:]]
    for name in ("dash", "bash", "bash --posix", "busybox sh")
    if (path := shutil.which((words := name.split())[0]))
}


def git(*words: str, cwd: Path) -> None:
    subprocess.run(["/usr/bin/env", "git", *words], cwd=cwd, check=True, timeout=60)


def clone(repo: Path, *, kept: bool) -> Path:
    """Commit all hooks, and check them out with CRLF.

    Args:
        kept: Whether the files `.gitattributes` of gitmem are in the commit.
    """
    git("config", "core.autocrlf", "false", cwd=repo)
    git("add", "-A", cwd=repo)
    if not kept:
        git("rm", "--quiet", "--cached", "-r", "*.gitattributes", cwd=repo)
    git("commit", "--quiet", "-m", "Hooks", cwd=repo)
    git("clone", "--quiet", "--config", "core.autocrlf=true", str(repo), str(repo.parent / "clone"), cwd=repo)
    return repo.parent / "clone"


def named() -> list[str]:
    return [word for name in NAMES for word in ("--client", name)]


def install(run: Run) -> None:
    with mock.patch.object(client_scope, "try_hooks", return_value=None):
        assert run("setup", *named()).status == 0


def scripts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.parent.name == "hooks" and path.suffix in (".sh", "") and path.name[0] != "."
            and ".git" not in path.relative_to(folder).parts[:1]]  # fmt: skip


@pytest.mark.deep
def test_they_work_in_a_checkout_with_crlf(run: Run, home: Path, repo: Path) -> None:
    """Each client's own command shows a signal there, and setup has nothing to write."""
    install(run)
    there = clone(repo, kept=True)

    said = run("setup", *named(), "--json", cwd=there).json

    assert not [each["files"] for each in said["clients"]["clients"] if each["files"]]
    tried = said["tried"]
    names = [each["client"] for each in tried["trials"]]
    assert names == [name for name in NAMES if name != "windsurf"]
    assert [each["works"] for each in tried["trials"]] == [True] * len(names), tried


def test_only_our_scripts_keep_lf(run: Run, home: Path, repo: Path) -> None:
    """Another file beside them is checked out as git's config says; after uninstall nothing is left of ours."""
    beside = repo / ".claude" / "hooks" / "theirs.txt"
    beside.parent.mkdir(parents=True)
    beside.write_text("a\n")
    install(run)

    there = clone(repo, kept=True)

    found = scripts(there)
    assert len(found) == 6 + len(events.EVENTS["cline"])
    assert [path for path in found if b"\r" in path.read_bytes()] == []
    assert (there / ".claude" / "hooks" / "theirs.txt").read_bytes() == b"a\r\n"
    assert hooks(run, there)["clients"][0]["scopes"][0]["state"] == "installed"
    assert run("remove").status == 0
    assert list(repo.rglob(".gitattributes")) == []


def commands(folder: Path, shell: list[str]) -> Iterator[list[str]]:
    """What clients run, with a shell: the command lines of settings, and scripts that are run by their path."""
    for path in (".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json", ".cursor/hooks.json", ".github/hooks/gitmem.json"):  # fmt: skip
        for groups in json.loads((folder / path).read_text())["hooks"].values():
            for each in (handler for group in groups for handler in group.get("hooks", [group])):
                yield [*shell, "-c", each.get("command") or each["bash"]]
    for event in events.EVENTS["opencode"]:
        yield [*shell, str(folder / ".opencode" / "hooks" / "signal-received.sh"), event]
    for path in scripts(folder):
        yield [*shell, str(path), "Stop"]


@pytest.mark.parametrize("shell", SHELLS.values(), ids=SHELLS)
def test_with_crs_they_are_silent(shell: list[str], run: Run, home: Path, repo: Path, tmp_path: Path) -> None:
    """Without `.gitattributes`, and for a colleague who has no gitmem: status 0 and no output in every event."""
    install(run)
    there = clone(repo, kept=False)
    assert all(b"\r\n" in path.read_bytes() for path in scripts(there))
    tools = tmp_path / "colleague"
    tools.mkdir()
    (tools / "sh").symlink_to(str(shutil.which("sh")) if "busybox" in shell[0] else shell[0])
    (tools / "sha256sum").symlink_to(str(shutil.which("sha256sum")))
    env = {"PATH": str(tools), "HOME": str(home), "CLAUDE_PROJECT_DIR": str(there), "status": "2"}

    ran = 0
    for command in commands(there, shell):
        done = subprocess.run(command, cwd=there, env=env, input=b"{}", capture_output=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), command
        ran += 1

    assert ran > 40
    found = {each["client"]: each["scopes"][0]["state"] for each in hooks(run, there)["clients"] if each["scopes"]}  # fmt: skip
    assert found["claude-code"] == found["cline"] == "outdated"


def test_attributes_of_the_user_stay(run: Run, home: Path, repo: Path) -> None:
    """They are not changed, and the answer says what to add, unless they keep LF already."""
    theirs = repo / ".claude" / "hooks" / ".gitattributes"
    theirs.parent.mkdir(parents=True)
    for text, is_told in (("*.md linguist-generated\n", True), ("* text eol=lf\n", False)):
        theirs.write_text(text)
        said = run("setup", "--client", "claude-code")
        assert said.status == 0 and (f"{theirs} is yours" in said.out) is is_told
        assert hooks(run)["clients"][0]["scopes"][0]["state"] == "installed"
        run("remove", "--client", "claude-code")
        assert theirs.read_text() == text


@pytest.mark.parametrize("part", range(1, 10))
@pytest.mark.parametrize("client", events.EVENTS)
def test_a_script_that_was_cut_off_stops_nobody(part: int, client: str, tmp_path: Path) -> None:
    """Whatever a shell can't read in it, it ends with 0: Claude Code takes 2 for a refusal."""
    text = client_scope.script_text(client).encode()
    for name, damaged in {
        "cut": text[: len(text) * part // 10],
        "bom": b"\xef\xbb\xbf" + text,
        "crs": text[: len(text) * part // 10] + text[len(text) * part // 10 :].replace(b"\n", b"\r\n"),
    }.items():
        path = tmp_path / f"{name}.sh"
        path.write_bytes(damaged)
        for words in (["sh", str(path), "Stop"], ["sh", "-c", '[ ! -r "$0" ] || . "$0"', str(path), "Stop"]):
            done = subprocess.run(words, cwd=tmp_path, env={"PATH": os.environ["PATH"], "status": "2"}, capture_output=True, timeout=30)  # fmt: skip
            assert (done.returncode, done.stdout) == (0, b""), (name, words)
