"""What ssh alone does: it would ask for passphrases and about strange hosts, and reads the user's own files."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clones import Hub, git

from .conftest import Agent, at_terminal
from .sites import Ssh
from .test_sync import ASKED

pytestmark = pytest.mark.network


@pytest.fixture
def site(tmp_path: Path, hub: Hub) -> Iterator[Ssh]:
    found = Ssh(tmp_path, hub.path)
    yield found
    found.end()


@pytest.fixture
def planck(site: Ssh, agent: Callable[..., Agent]) -> Agent:
    found = agent("Planck")
    found.log.signals.send("Is anybody there?")
    return found


def plain_ssh(site: Ssh, folder: Path, key: str, *more: str) -> str:
    """A PATH whose `ssh` has these settings, as a user's own config file would give them."""
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(
        f'#!/bin/sh\nexec {site.command(key, *more).replace("ssh", shutil.which("ssh") or "", 1)} "$@"\n'
    )
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("key", "more", "words"),
    [
        ("locked", (), "Permission denied"),
        ("right", ("-oUserKnownHostsFile=/dev/null",), "Host key verification failed"),
    ],
)
def test_the_plain_ssh_asks_nothing(
    site: Ssh, planck: Agent, tmp_path: Path, key: str, more: tuple[str, ...], words: str
) -> None:
    """A key with a passphrase and a strange host are failures at once, at a terminal too."""
    git("config", "--unset", "core.sshCommand", cwd=planck.path)
    shown = at_terminal(planck.path, "gitmem", "sync", PATH=plain_ssh(site, tmp_path / "bin", key, *more))
    assert (shown.status, shown.seconds < 20) == (5, True), shown
    assert words in shown.text and "ocal records are kept" in shown.text
    assert not any(word in shown.text for word in ASKED), shown
    assert (
        at_terminal(
            planck.path, "gitmem", "sync", "--publish", PATH=plain_ssh(site, tmp_path / "bin2", "right")
        ).status
        == 0
    )


def test_an_ssh_of_the_users_own_has_no_terminal_to_ask_at(site: Ssh, planck: Agent) -> None:
    """`core.sshCommand` and `$GIT_SSH_COMMAND` are used as they are; whatever they start can't wait for an answer."""
    command = site.command("locked")
    git("config", "core.sshCommand", command, cwd=planck.path)
    by_variable = at_terminal(
        planck.path, "gitmem", "sync", GIT_SSH_COMMAND=command + " -oNumberOfPasswordPrompts=3"
    )
    for shown in (at_terminal(planck.path, "gitmem", "sync"), by_variable):
        assert (shown.status, shown.seconds < 20) == (5, True), shown
        assert "Permission denied" in shown.text
        assert not any(word in shown.text for word in ASKED), shown
    assert (
        at_terminal(planck.path, "gitmem", "sync", "--publish", GIT_SSH_COMMAND=site.command("right")).status
        == 0
    )


def test_the_users_own_ssh_folder_is_as_it_was(planck: Agent) -> None:
    """These tests themselves touch nothing there: ssh finds it by the password file, whatever $HOME says."""
    theirs = Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"
    before = _of(theirs)
    assert planck.sync().state == "synced"
    assert _of(theirs) == before
    assert shlex.split(git("config", "core.sshCommand", cwd=planck.path))[:3] == ["ssh", "-F", "none"]


def _of(folder: Path) -> list[tuple[str, int]]:
    return sorted(
        (str(each), each.stat().st_mtime_ns) for each in (folder, *folder.rglob("*")) if each.exists()
    )
