"""A repository of a stranger: nothing that a clone of it contains is executed.

The stranger has committed folders that look like bare repositories, with everything in them that gitmem or git would
start a program for. Whatever runs in the clone, the canary must not appear.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from cli.mcp.calls import McpSession
from gitmem.clients import client_scope, events
from gitmem.clients.clients import CLIENTS
from gitmem.errors import StoreError
from tests import in_process
from tests.conftest import Git

from ..hook_agents import said, user_state

GITMEM = Path(sys.executable).parent / "gitmem"
DEPTHS = (".", "docs", "a/b/c")
SESSION = "planted-session"
PUSHING = [client for client in events.EVENTS if client != "cline"]


class Clone:
    """A victim's clone of a hostile repository.

    Attributes:
        folder: Its top.
        canary: The file that exists once anything of the repository was executed.
    """

    def __init__(self, root: Path, git: Git) -> None:
        self.git = git
        self.root = root
        self.canary = root / "canary"
        hostile = root / "hostile"
        git("init", "--quiet", "--initial-branch=main", str(hostile))
        for depth in DEPTHS:
            self._plant(hostile / depth)
        git("add", "--force", ".", cwd=hostile)
        git("commit", "--quiet", "-m", "Documentation", cwd=hostile)
        self.folder = root / "clone"
        git("clone", "--quiet", str(hostile), str(self.folder))
        git("config", "user.email", "victim@example.org", cwd=self.folder)

    def _plant(self, folder: Path) -> None:
        """Everything that a bare repository with gitmem's files in it may name programs with."""
        state = folder / "gitmem"
        run = f"touch {shlex.quote(str(self.canary))}"
        files = {
            "HEAD": "ref: refs/heads/main\n",
            "objects/keep": "",
            "refs/keep": "",
            "hook": f"#!/bin/sh\n{run}\n",
            "hooks/pre-push": f"#!/bin/sh\n{run}\n",
            "config": f"[core]\n\trepositoryFormatVersion = 0\n\tbare = true\n\tfsmonitor = {run}\n\tsshCommand = {run}\n"
            f"\tpager = {run}\n\thooksPath = hooks\n[diff]\n\texternal = {run}\n[gpg]\n\tprogram = {run}\n"
            '[protocol "ext"]\n\tallow = always\n[remote "origin"]\n'
            f"\turl = ext::sh -c {run.replace(' ', '% ')}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
            "[gitmem]\n\tautosync = 1s\n",
            "gitmem/wal/00000000000000001.wal1": "\0wal1 e 0000000003 \n[]\n",
            "gitmem/autosync/next": "1\n",
            f"gitmem/flags/{SESSION}": "urgent\n",
        }
        for client in events.EVENTS:
            files[f"gitmem/here/{client}"] = SESSION
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        (folder / "hook").chmod(0o755)
        (folder / "hooks" / "pre-push").chmod(0o755)
        # Where the clone will be is known to whoever guesses, as /workspace in a container.
        guessed = self.root / "clone" / folder.relative_to(self.root / "hostile")
        (state / "program").write_text(f"{guessed / 'hook'}\n")

    def is_harmed(self) -> bool:
        return self.canary.exists()


@pytest.fixture
def clone(tmp_path: Path, git: Git) -> Clone:
    return Clone(tmp_path, git)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has gitmem on the PATH, and hooks for every client in the home folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("PATH", f"{GITMEM.parent}{os.pathsep}{os.environ['PATH']}")
    return folder


def program(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the installed program."""
    return subprocess.run(
        [str(GITMEM), *args],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def gitmem(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, as the installed program."""
    with mock.patch.object(sys, "argv", [str(GITMEM)]):
        done = in_process.gitmem(*args, cwd=folder)
    return subprocess.CompletedProcess(args, done.returncode, done.stdout.decode(), done.stderr.decode())


def connect(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run `setup` without a message through each hook, which takes longest."""
    with mock.patch.object(client_scope, "try_hooks", return_value=None):
        return gitmem(folder, "setup", *args)


def lines(client: str, home: Path, scope: str, folder: Path) -> dict[str, str]:
    """The command line of each event of a client, as it stands in the files that install has written."""
    known = CLIENTS[client]
    base = home / (known.home_base or known.base) if scope == "user" else folder / known.base
    if client == "cline":
        return {path.name: shlex.quote(str(path)) for path in (base / known.settings).iterdir()}
    script = base / "hooks" / "signal-received.sh"
    if client == "opencode":
        return {event: f"sh {shlex.quote(str(script))} {event}" for event in events.EVENTS[client]}
    hooks: dict[str, Any] = json.loads((base / known.settings).read_text())["hooks"]
    found = {}
    for event, groups in hooks.items():
        handler = groups[0]["hooks"][0] if "hooks" in groups[0] else groups[0]
        found[event] = handler.get("command") or handler["bash"]
    return found


def run_hook(line: str, client: str, event: str, cwd: Path, project: Path) -> None:
    """Run a command line as its client does, in a folder of a project."""
    env = {**os.environ}
    if client in events.SESSION_VARIABLES:
        env[events.SESSION_VARIABLES[client]] = SESSION
    if client in events.FOLDER_VARIABLES:
        env[events.FOLDER_VARIABLES[client]] = str(project)
    done = subprocess.run(
        ["sh", "-c", line], cwd=cwd, env=env, input=json.dumps(said(client, event, SESSION, cwd)).encode(),
        capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_no_hook_of_any_client_executes_what_a_clone_contains(clone: Clone, home: Path) -> None:
    """Every client, every event, at the top and in every folder that could pass for a repository."""
    named = [word for each in events.EVENTS for word in ("--client", each)]
    assert connect(home, "--scope", "user", *named).returncode == 0

    for client in events.EVENTS:
        found = lines(client, home, "user", clone.folder)
        assert found
        for event, line in found.items():
            for depth in DEPTHS:
                for project in {clone.folder, clone.folder / depth}:
                    run_hook(line, client, event, clone.folder / depth, project)
                    assert not clone.is_harmed(), (client, event, depth)
    time.sleep(0.3)  # a sync would run in the background
    assert not clone.is_harmed()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("folder", [".", "refs"])
def test_no_command_executes_what_a_clone_contains(clone: Clone, home: Path, depth: str, folder: str) -> None:
    """Nor does one take the planted folder for its repository."""
    at = clone.folder / depth / folder
    for args in (["signal", "hello", "--broadcast"], ["inbox"], ["whoami"], ["background", "autosync"], ["log"], ["doctor"],
                 ["mem", "create", "A note", "--type", "note"], ["gate"]):  # fmt: skip
        program(at, *args)
        assert not clone.is_harmed(), args
    assert (clone.folder / ".git" / "gitmem").is_dir()
    for planted in DEPTHS:
        changed = clone.git("status", "--porcelain", "--untracked-files=all", cwd=clone.folder)
        assert changed == "", planted


@pytest.mark.parametrize("depth", DEPTHS[1:])
def test_a_planted_repository_that_is_named_is_refused(clone: Clone, home: Path, depth: str) -> None:
    """Also where somebody names it with -C, a sync runs none of its programs; the sentence says what it is."""
    planted = clone.folder / depth
    config = planted / "config"
    config.write_text(
        config.read_text()
        + f'[protocol "ext"]\n\tallow = always\n[remote "origin"]\n\turl = ext::sh -c touch% {clone.canary}\n'
    )
    for args in (["sync"], ["sync", "--publish"], ["signal", "hello"], ["inbox"], ["whoami"], ["doctor"], ["setup"],
                 ["background", "autosync"], ["log"]):  # fmt: skip
        done = program(clone.folder, "-C", depth, *args)
        assert not clone.is_harmed(), args
        if args not in (["background", "autosync"],):
            assert done.returncode != 0, (args, done)
    done = program(clone.folder, "-C", depth, "sync")
    said = " ".join((done.stdout + done.stderr).split())
    assert f"{planted} is a bare repository inside the work tree {clone.folder}" in said, done
    assert f"GIT_DIR={planted}" in said
    assert not (planted / "gitmem" / "lock").exists()


@pytest.mark.parametrize("depth", DEPTHS[1:])
def test_automatic_sync_writes_nothing_into_a_planted_repository(
    clone: Clone, home: Path, depth: str
) -> None:
    """Also not the state that it keeps before it opens the log: its lock, its marks and why it failed."""
    folder = clone.folder / depth
    state = folder / "gitmem" / "autosync"
    (state / "asked").touch()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    done = program(clone.folder, "-C", depth, "background", "autosync")

    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert done.returncode == 4 and "Nothing was read or written" in done.stderr, done
    assert not clone.is_harmed()


def test_a_call_of_an_mcp_client_writes_nothing_into_a_planted_repository(clone: Clone, home: Path) -> None:
    """After each call the server asks whether an automatic sync is due."""
    folder = clone.folder / "docs"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    with pytest.raises(StoreError, match="Nothing was read or written"):
        McpSession(str(folder), None).do(lambda at: at.store())

    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_repository_that_is_named_and_no_commit_brought_is_used(repo: Path, home: Path, git: Git) -> None:
    """The folder `.git`, a bare one elsewhere, the one that a `.git` file leads to, and one that GIT_DIR names."""
    git("init", "--quiet", "--bare", str(repo / "inner.git"))
    git("init", "--quiet", "--bare", str(home / "hub.git"))
    project = home / "project"
    git("clone", "--quiet", "--bare", str(repo), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")
    git("worktree", "add", "--quiet", "--detach", str(project / "feature"), cwd=project / ".bare")

    for named in (repo / ".git", home / "hub.git", project / ".bare", project / ".bare/worktrees/feature"):
        done = program(home, "-C", str(named), "log")
        assert done.returncode == 0, (named, done)
    assert "inside the work tree" in program(repo, "-C", "inner.git", "log").stderr
    assert program(repo, "log", GIT_DIR="inner.git").returncode == 0


def test_a_hook_still_works_in_such_a_clone(clone: Clone, home: Path) -> None:
    """What protects must not silence: a signal reaches an agent that works in the planted folder."""
    connect(home, "--scope", "user", "--client", "claude-code")
    line = lines("claude-code", home, "user", clone.folder)
    env = {**os.environ, "CLAUDE_CODE_SESSION_ID": SESSION, "CLAUDE_PROJECT_DIR": str(clone.folder / "docs")}

    def run(event: str) -> str:
        given = json.dumps(said("claude-code", event, SESSION, clone.folder)).encode()
        return subprocess.run(
            ["sh", "-c", line[event]], cwd=clone.folder / "docs", env=env, input=given, capture_output=True, timeout=60,
            check=True,
        ).stdout.decode()  # fmt: skip

    program(clone.folder, "signal", "Is anybody there?", "--broadcast")
    assert "Is anybody there?" in run("SessionStart") + run("PostToolUse")
    assert not clone.is_harmed()


def test_a_program_in_the_git_folder_of_a_stranger_is_not_started(clone: Clone, home: Path) -> None:
    """An archive brings its `.git` along; what is in it says nothing about what this user has installed."""
    connect(home, "--scope", "user", "--client", "claude-code")
    program(clone.folder, "signal", "hello", "--broadcast")
    state = clone.folder / ".git" / "gitmem"
    (state / "program").write_text(f"{clone.folder / 'hook'}\n")
    (state / "flags").mkdir(exist_ok=True)
    (state / "flags" / SESSION).write_text("urgent\n")

    run_hook(
        lines("claude-code", home, "user", clone.folder)["PostToolUse"], "claude-code", "PostToolUse",
        clone.folder, clone.folder,
    )  # fmt: skip
    assert not clone.is_harmed()
    program(clone.folder, "setup", "--git", "pre-push")
    (state / "program").write_text(f"{clone.folder / 'hook'}\n")
    subprocess.run(
        [str(clone.folder / ".git/hooks/pre-push"), "origin", "x"], cwd=clone.folder, timeout=60, check=False
    )
    assert not clone.is_harmed()
    Path(user_state()).mkdir(exist_ok=True)
    Path(user_state(), "programs").write_text(f"{clone.folder / 'hook'}\n")  # and with the user's word it is
    subprocess.run(
        [str(clone.folder / ".git/hooks/pre-push"), "origin", "x"], cwd=clone.folder, timeout=60, check=False
    )
    assert clone.is_harmed()


@pytest.mark.parametrize("client", PUSHING)
@pytest.mark.parametrize("is_submodule", [False, True], ids=["folder", "submodule"])
def test_the_script_of_a_dependency_is_never_run(
    repo: Path, home: Path, tmp_path: Path, git: Git, client: str, is_submodule: bool
) -> None:
    """A project's hooks run the project's script, wherever in it the agent is; not one that lies nearer."""
    assert connect(repo, "--client", client).returncode == 0
    found = lines(client, home, "project", repo)
    canary = tmp_path / "canary"
    inner = repo / "vendor" / "dep"
    theirs = inner / CLIENTS[client].base / "hooks" / "signal-received.sh"
    theirs.parent.mkdir(parents=True)
    theirs.write_text(f"touch {shlex.quote(str(canary))}\n")
    if is_submodule:
        git("init", "--quiet", str(inner))

    for event, line in found.items():
        run_hook(line, client, event, inner, repo)
        assert not canary.exists(), event


@pytest.mark.parametrize("client", ["codex", "copilot", "cursor", "gemini"])
def test_a_script_that_was_changed_is_not_run(repo: Path, home: Path, tmp_path: Path, client: str) -> None:
    """The command line has the digest of the script that was installed: who has reviewed the one knows the other."""
    assert connect(repo, "--client", client).returncode == 0
    found = lines(client, home, "project", repo)
    canary = tmp_path / "canary"
    script = repo / CLIENTS[client].base / "hooks" / "signal-received.sh"
    whole = script.read_text()
    script.write_text(f"touch {shlex.quote(str(canary))}\n{whole}")

    for event, line in found.items():
        run_hook(line, client, event, repo, repo)
    assert not canary.exists()
    assert connect(repo, "--client", client).returncode == 0  # gives it its content back
    assert script.read_text() == whole


@pytest.mark.parametrize("is_linked", [False, True], ids=["main", "linked"])
@pytest.mark.parametrize("client", ["codex", "copilot", "cursor", "gemini"])
def test_a_script_is_checked_once_and_kept_in_the_git_folder(
    repo: Path, home: Path, tmp_path: Path, git: Git, client: str, is_linked: bool
) -> None:
    """Later events start no program to check it, and run what was checked, whatever is in the work tree by then."""
    assert connect(repo, "--client", client).returncode == 0
    git("add", "--all", cwd=repo)
    git("-c", "user.email=p@e.org", "-c", "user.name=P", "commit", "--quiet", "-m", "Hooks", cwd=repo)
    here = tmp_path / "linked" if is_linked else repo
    if is_linked:
        git("worktree", "add", "--quiet", str(here), cwd=repo)
    script = here / CLIENTS[client].base / "hooks" / "signal-received.sh"
    found = lines(client, home, "project", repo)
    (repo / ".git" / "gitmem").mkdir(exist_ok=True)
    event, line = next(iter(found.items()))
    run_hook(line, client, event, here, here)

    kept = list((repo / ".git" / "gitmem" / "hook-scripts").iterdir())
    assert [path.read_bytes() for path in kept] == [script.read_bytes()]
    canary, ran = tmp_path / "canary", tmp_path / "ran"
    script.write_text(f"touch {shlex.quote(str(canary))}\n")
    kept[0].write_text(f"touch {shlex.quote(str(ran))}\n")  # only to see which of the two runs
    run_hook(line, client, event, here, here)
    assert ran.exists() and not canary.exists()


def outside(folder: Path) -> Path:
    """A folder of the user's that no repository has any business in, with a file in it."""
    found = folder / "private"
    found.mkdir()
    (found / "file").write_text("{}\n")
    return found


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def reached(client: str) -> list[str]:
    """The paths in a project that an install for a client goes through, each of which may be a link."""
    known = CLIENTS[client]
    script = ["hooks", "hooks/signal-received.sh"] if known.has_script else []
    names = [
        "",
        known.settings,
        os.path.dirname(known.settings),
        *script,
        *(["hooks/PostToolUse"] if client == "cline" else []),
    ]
    return sorted({os.path.join(known.base, name).rstrip("/") for name in names})


LINKS = [
    (client.name, part)
    for client in CLIENTS.values()
    if client.form != "nothing"
    for part in reached(client.name)
]


@pytest.mark.parametrize(("client", "part"), LINKS)
def test_hooks_are_not_installed_through_a_link_of_the_repository(
    repo: Path, home: Path, tmp_path: Path, client: str, part: str
) -> None:
    """Whichever component it is, and whether what it leads to is there: nothing outside of the work tree changes."""
    private = outside(tmp_path)
    before = everything(private), everything(repo / ".git" / "hooks")
    (repo / part).parent.mkdir(parents=True, exist_ok=True)
    is_folder = (
        not os.path.splitext(part.removeprefix(CLIENTS[client].base))[1]
        and part.rpartition("/")[2] != "PostToolUse"
    )
    for target in (
        (private, private / "missing", repo / ".git")
        if is_folder
        else (private / "file", private / "missing")
    ):
        (repo / part).symlink_to(target)

        done = connect(repo, "--client", client)

        assert done.returncode == 2 and "NOT installed" in done.stdout and "link to" in done.stdout, done
        (repo / part).unlink()
    assert (everything(private), everything(repo / ".git" / "hooks")) == before


def test_hooks_are_not_taken_out_through_a_link_of_the_repository(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    """A folder that looks installed: of the clients that are meant, only this one is left as it is."""
    assert connect(repo, "--client", "claude-code", "--client", "gemini").returncode == 0
    (repo / ".claude").rename(tmp_path / "private")
    (repo / ".claude").symlink_to(tmp_path / "private")
    before = everything(tmp_path / "private")

    assert gitmem(repo, "remove", "--client", "claude-code").returncode == 2
    done = gitmem(repo, "remove", "--json")

    said = {each["client"]: each["state"] for each in json.loads(done.stdout)["clients"]["clients"]}
    assert (done.returncode, said) == (2, {"claude-code": "failed", "gemini": "removed"})
    assert everything(tmp_path / "private") == before and not (repo / ".gemini").exists()
    assert "outside of the work tree" in gitmem(repo, "doctor").stdout


def test_a_link_within_the_work_tree_is_followed(repo: Path, home: Path) -> None:
    """A project may keep its settings elsewhere in itself; the link stays one."""
    (repo / "config").mkdir()
    (repo / ".claude").symlink_to("config")

    assert connect(repo, "--client", "claude-code").returncode == 0
    assert (repo / "config" / "settings.json").exists() and (repo / ".claude").is_symlink()
    assert gitmem(repo, "remove", "--client", "claude-code").returncode == 0
    assert (repo / ".claude").is_symlink() and not (repo / "config" / "settings.json").exists()


def test_links_in_the_home_folder_are_the_users(home: Path, tmp_path: Path) -> None:
    """Many keep their settings in a repository of their own, and link to it."""
    (tmp_path / "dotfiles").mkdir()
    (home / ".claude").symlink_to(tmp_path / "dotfiles")

    assert connect(home, "--client", "claude-code", "--scope", "user").returncode == 0
    assert (tmp_path / "dotfiles" / "settings.json").exists()


@pytest.mark.parametrize("target", ["outside", "git"])
def test_the_lines_for_agents_are_not_written_through_a_link(
    repo: Path, home: Path, tmp_path: Path, target: str
) -> None:
    """Where it leads is the repository's choice; what is there already does not change that."""
    to = outside(tmp_path) / "file" if target == "outside" else repo / ".git" / "hooks" / "post-checkout"
    (repo / "AGENTS.md").symlink_to(to)

    for text in ("#!/bin/sh\n", "<!-- gitmem:begin -->\n<!-- gitmem:end -->\n"):
        to.write_text(text)
        for done in (connect(repo, "--client", "codex"), gitmem(repo, "remove", "--client", "codex")):
            assert done.returncode == (1 if "setup" in done.args else 0) and to.read_text() == text, done


def test_the_pre_push_hook_is_not_written_through_a_link(
    repo: Path, home: Path, tmp_path: Path, git: Git
) -> None:
    """In a folder of the work tree that core.hooksPath names; a file that carries our mark is no exception."""
    private = outside(tmp_path)
    (private / "pre-push").write_text("#!/bin/sh\n: # gitmem: added by gitmem setup --git pre-push\n")
    git("config", "core.hooksPath", ".githooks", cwd=repo)
    (repo / ".githooks").mkdir()
    (repo / ".githooks" / "pre-push").symlink_to(private / "pre-push")
    before = everything(private)

    for command in ("setup", "remove"):
        done = gitmem(repo, command, "--git", "pre-push")
        assert done.returncode == 1 and "outside of the work tree" in done.stdout, done
        assert everything(private) == before


def test_files_that_a_shell_made_get_the_mode_of_a_shared_repository(
    repo: Path, home: Path, git: Git
) -> None:
    """The check's copy and the heartbeat, under the strictest umask; nobody but its owner may change the copy."""
    git("config", "core.sharedRepository", "group", cwd=repo)
    git("config", "user.email", "p@e.org", cwd=repo)
    assert connect(repo, "--client", "codex").returncode == 0
    found = lines("codex", home, "project", repo)
    before = os.umask(0o077)
    try:
        for event in ("SessionStart", "PostToolUse"):
            run_hook(found[event], "codex", event, repo, repo)
    finally:
        os.umask(before)

    state = repo / ".git" / "gitmem"
    (copy,) = (state / "hook-scripts").iterdir()
    beats = list((state / "beats").iterdir())
    assert beats, "no hook has run"
    assert all(path.stat().st_mode & 0o060 == 0o060 for path in [state / "hook-scripts", *beats])
    assert copy.stat().st_mode & 0o060 == 0o040
