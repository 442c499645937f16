"""What `gitmem setup`, `doctor` and `remove` tell of hooks, and a try of the real scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gitmem.clients import hook_state

from .conftest import Run

_ABOVE = str(Path(__file__).resolve().parents[2])
_CODE = f"import sys; sys.path.insert(0, {_ABOVE!r}); from cli.main import main; sys.exit(main())"
PROGRAM = f'#!/bin/sh\nexec {sys.executable} -c "{_CODE}" "$@"\n'  # hooks drop PYTHONPATH


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, a gitmem that can be run, and no client on the PATH."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh", "cat", "dd", "head", "ls", "mv", "rm", "mkdir", "sha256sum"):
        found = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True, check=True)
        (tools / name).symlink_to(os.path.realpath(found.stdout.strip()))
    program = tools / "gitmem"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(sys, "argv", [str(program)])
    return folder


def hooks(run: Run, cwd: Path | None = None) -> Any:
    """What doctor says of the hooks."""
    return run("doctor", "--json", cwd=cwd).json["hooks"]


@pytest.mark.deep
def test_all_clients_are_connected_tried_and_taken_out(run: Run, home: Path, repo: Path) -> None:
    """All that push, in one go; the try runs each as its client would."""
    names = ["claude-code", "codex", "gemini", "cursor", "opencode", "cline", "copilot"]

    said = run("setup", *(part for name in names for part in ("--client", name)), "--json")

    assert said.status == 0, said
    assert [(each["client"], each["works"], each["problem"]) for each in said.json["tried"]["trials"]] == [
        (name, True, "") for name in names
    ]
    assert run("remove").status == 0
    assert [path.name for path in repo.iterdir() if path.name != ".git"] == ["README"]
    assert list(home.iterdir()) == []


def test_a_try_of_what_does_not_work_says_no(run: Run, home: Path, repo: Path) -> None:
    """Exit status 1, and why."""
    (home.parent / "tools" / "gitmem").write_text("#!/bin/sh\nexit 1\n")

    said = run("setup", "--client", "codex", "--scope", "user")

    assert said.status == 1
    assert "Codex CLI (user): FAILED · " in said.out


def test_install_says_what_it_found_and_what_to_do(run: Run, home: Path, repo: Path) -> None:
    """Which client and why, what was written, that it wants to be committed, and what comes next."""
    (repo / ".claude").mkdir()
    (home / ".codex").mkdir()

    said = run("setup")

    assert said.status == 0
    assert "Claude Code: installed for this project" in said.out
    assert "Codex CLI: installed" in said.out
    assert f"wrote {repo}/.claude/hooks/signal-received.sh" in said.out
    assert "/hooks" in said.out and "writable_roots" in said.out
    assert "Commit these files" in said.out


@pytest.mark.parametrize(
    ("client", "said"), [("windsurf", "gitmem watch"), ("aider", "gitmem watch --as NAME --write")]
)
def test_a_client_without_hooks_is_sent_to_watch(client: str, said: str, run: Run, home: Path) -> None:
    answer = run("setup", "--client", client)

    assert answer.status == 0
    assert said in answer.out


def test_doctor_says_what_is_where(run: Run, home: Path, repo: Path) -> None:
    """In JSON for programs, and with what a user has to do for Codex."""
    run("setup", "--client", "codex", "--scope", "user")

    (codex,) = hooks(run)["clients"]

    assert [(each["scope"], each["state"], each["trust"]) for each in codex["scopes"]] == [
        ("user", "installed", "untrusted")
    ]
    assert "Codex CLI: installed · user scope · NOT trusted yet" in run("doctor").out
    assert not (repo / ".codex").exists()


def test_codex_folder_that_was_moved_is_heeded(run: Run, home: Path, tmp_path: Path) -> None:
    """CODEX_HOME."""
    run("setup", "--client", "codex", "--scope", "user", CODEX_HOME=str(tmp_path / "elsewhere"))

    assert json.loads((tmp_path / "elsewhere" / "hooks.json").read_text())["hooks"]["Stop"]
    assert list(home.iterdir()) == []


def test_the_gate_in_front_of_a_push(run: Run, home: Path, repo: Path) -> None:
    """By itself, without any client; the real gate lets a push pass that no work unit speaks against."""
    said = run("setup", "--git", "pre-push")

    hook = repo / ".git" / "hooks" / "pre-push"
    assert said.status == 0 and str(hook) in said.out
    done = subprocess.run([hook], cwd=repo, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "not checked for this push: branch main" in done.stderr
    assert "git pre-push: installed" in run("doctor").out
    assert run("remove", "--git", "pre-push").status == 0
    assert not hook.exists()
    assert run("setup", "--git", "post-merge").status == 2


def test_what_is_named_goes_and_the_rest_stays(run: Run, home: Path, repo: Path) -> None:
    """Of a client and a hook of git, each is taken out by its name."""
    said = run("setup", "--client", "codex", "--git", "pre-push", "--json").json["clients"]
    assert [each["state"] for each in said["clients"]] == ["installed"]
    assert [each["state"] for each in said["git"]] == ["installed"]
    hook = repo / ".git" / "hooks" / "pre-push"

    assert run("remove", "--client", "codex").status == 0
    assert hook.exists() and not (repo / ".codex").exists()
    assert "gitmem" in (repo / ".git" / "config").read_text()
    run("setup", "--client", "codex")
    assert run("remove", "--git", "pre-push").status == 0
    assert not hook.exists() and (repo / ".codex").exists()


def test_several_of_gits_hooks_are_installed_and_removed_at_once(run: Run, home: Path, repo: Path) -> None:
    """Each of them, once; a wrong name among them changes nothing; the one that comes with another is named."""
    names = ("pre-commit", "pre-push", "post-commit")
    asked = [word for name in (*names, names[0]) for word in ("--git", name)]
    folder = repo / ".git" / "hooks"

    def there() -> set[str]:
        return {path.name for path in folder.glob("*") if path.suffix != ".sample"}

    refused = run("setup", *asked, "--git", "pre-rebase", "--git", "post-merge")
    assert refused.status == 2 and "Invalid git hook: pre-rebase, post-merge." in refused.err and not there()
    said = run("setup", *asked)
    assert said.status == 0 and there() == {*names, "post-merge"}
    assert all(str(folder / name) in said.out for name in there())
    assert len(run("setup", *asked, "--json").json["clients"]["git"]) == 3
    said = run("remove", *asked)
    assert said.status == 0 and not there()
    assert all(f"{name} hook" in said.out for name in (*names, "post-merge"))


@pytest.mark.parametrize("kind", ["husky", "own"])
def test_a_line_in_a_committed_file_guards_other_worktrees_once_it_is_committed(
    kind: str, run: Run, home: Path, repo: Path
) -> None:
    """Which file to commit is said, of each hook, and not again once nothing changes."""
    file, path = {"husky": (".husky/{}", ".husky/_"), "own": ("tools/hooks/{}", "tools/hooks")}[kind]
    subprocess.run(["git", "config", "core.hooksPath", path], cwd=repo, check=True)

    said = run("setup", "--git", "pre-commit", "--git", "post-commit").out

    both = dict.fromkeys(file.format(name) for name in ("post-commit", "post-merge"))
    for each in (file.format("pre-commit"), " and ".join(both)):
        assert f"Commit {each}: other worktrees and clones run it only once they have it." in said
    assert "Commit" not in run("setup", "--git", "pre-commit", "--git", "post-commit").out

    shutil.rmtree(repo / ".git" / "gitmem" / "git-hooks")  # as in a clone that a checkout brought these files
    found = run("doctor")
    for name in ("pre-commit", "post-commit"):
        assert (
            f"git {name}: a checkout brought the file that calls it; not installed in this clone" in found.out
        )
    assert "gitmem setup --git pre-commit\n" in found.out
    said = run("setup", "--git", "pre-commit", "--git", "post-commit").out
    assert said.count(" hook installed: ") == 2, said
    assert "git pre-commit: installed" in run("doctor").out or kind != "own"


def test_a_hook_that_is_refused_stops_no_other(run: Run, home: Path, repo: Path) -> None:
    """The first of two is installed, the second is not ours to write."""
    hook = repo / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/usr/bin/env python3\n")

    said = run("setup", "--client", "codex", "--git", "pre-push", "--git", "pre-commit")

    assert said.status == 1 and str(hook) in said.out and "Nothing was written" not in said.out
    assert (hook.parent / "pre-commit").exists() and (repo / ".codex").exists()


@pytest.mark.parametrize("everywhere", [False, True])
def test_hooks_of_all_repositories_are_left_alone(
    everywhere: bool, run: Run, home: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line for them is said; once the user has added it, it stops a commit at the status 1 of ours alone, and is known."""
    folder = home / "hooks"
    config = home / "gitconfig" if everywhere else repo / ".git" / "config"
    with config.open("a") as file:
        file.write("[core]\n\thooksPath = ~/hooks\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig") if everywhere else os.devnull)

    said = run("setup", "--git", "pre-commit")

    assert said.status == 1 and f"{folder}/pre-commit is outside of this repository" in said.out
    assert "gitmem gate --hook pre-commit" in said.out and not folder.exists()
    assert hooks(run)["pre_commit"] == "not installed"
    folder.mkdir()
    hook = folder / "pre-commit"
    (line,) = re.findall(f"Add this to {hook} yourself: (.*)", said.out)
    hook.write_text(f"#!/bin/sh -e\n{line}\necho user\nexit 3\n")
    hook.chmod(0o755)
    before = hook.read_bytes()
    assert run("setup", "--git", "pre-commit").status == 0
    assert hooks(run)["pre_commit"] == "installed"
    script = repo / ".git" / "gitmem" / "git-hooks" / "pre-commit"
    (repo / ".git" / "gitmem" / "claims").mkdir(exist_ok=True)
    (repo / ".git" / "gitmem" / "claims" / "claimed").touch()
    for answer, status in ((0, 3), (1, 1), (2, 3), (127, 3)):
        script.write_text(f"exit {answer}\n")
        done = subprocess.run([hook], cwd=repo, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (status, "" if status == 1 else "user\n", "")

    out = run("remove", "--git", "pre-commit").out

    assert f"{hook} still has gitmem's line, which does nothing now" in out
    assert subprocess.run([hook], cwd=repo, timeout=30).returncode == 3
    assert hook.read_bytes() == before


def test_doctor_looks_at_the_hooks(run: Run, home: Path, repo: Path) -> None:
    """A script that is gone is a problem, with the command that mends it."""
    run("setup", "--client", "claude-code")
    (repo / ".claude" / "hooks" / "signal-received.sh").unlink()

    found = {each["code"]: each for each in run("doctor", "--json").json["findings"]}

    assert found["hooks-incomplete"]["command"] == "gitmem doctor --fix"
    assert "fixed" in {
        each["state"]
        for each in run("doctor", "--fix", "--json").json["findings"]
        if each["code"] == "hooks-incomplete"
    }
    assert (repo / ".claude" / "hooks" / "signal-received.sh").exists()


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A folder in no repository."""
    folder = tmp_path / "nowhere"
    folder.mkdir()
    return folder


def test_user_scope_needs_no_repository(run: Run, home: Path, nowhere: Path) -> None:
    """Installed, tried and taken out; a project's hooks and the log still need a project."""
    said = run("setup", "--scope", "user", "--client", "claude-code", "--json", cwd=nowhere)

    assert said.status == 0, said
    assert said.json["clients"]["program"] == str(home.parent / "tools" / "gitmem")
    assert said.json["clients"]["remarks"] == [] and said.json["tried"]["works"] and not said.json["log"]
    assert "Claude Code: already installed" in run("setup", "--scope", "user", cwd=nowhere).out
    assert run("setup", "--scope", "user", "--client", "gemini", cwd=nowhere).status == 0
    assert run("remove", "--scope", "user", cwd=nowhere).status == 0
    assert list(home.iterdir()) == [] and list(nowhere.iterdir()) == []

    for refused in (["--client", "claude-code"], ["--scope", "user", "--publish"]):
        assert run("setup", *refused, cwd=nowhere).status == 2


def test_user_scope_without_a_gitmem_on_the_path_is_told(run: Run, home: Path, nowhere: Path) -> None:
    """The hooks would find none."""
    (home.parent / "tools" / "gitmem").unlink()

    said = run("setup", "--scope", "user", "--client", "claude-code", cwd=nowhere)

    assert said.status == 0
    assert "gitmem is not on the PATH" in said.out


def test_doctor_names_broken_settings(run: Run, home: Path, repo: Path) -> None:
    """With line and column, also where nothing of ours was ever in them: that is no problem of ours."""
    (repo / ".claude").mkdir()
    settings = repo / ".claude" / "settings.json"
    settings.write_text('{\n  "a": 1\n  "b": 2\n}\n')

    said = run("doctor")

    assert "Claude Code: broken · project scope" in said.out
    assert f"{settings}, line 3, column 3: this is not valid JSON: expecting ',' delimiter." in said.out
    assert "nothing was written" not in said.out
    codes = [each["code"] for each in run("doctor", "--json").json["findings"]]
    assert not [each for each in codes if each.startswith("hooks")]


def test_doctor_offers_no_setup_for_instructions_that_it_cannot_write(
    run: Run, home: Path, repo: Path
) -> None:
    run("setup", "--client", "codex")
    (repo / "AGENTS.md").write_bytes(b"\xff\xfe bad")
    (found,) = [
        each for each in run("doctor", "--json").json["findings"] if each["code"] == "instructions-old"
    ]
    assert "not text in UTF-8" in found["what"] and not found["command"]


def test_remove_leaves_broken_settings_and_the_script_alone(run: Run, home: Path, repo: Path) -> None:
    """Our entries in such a file can't be found: what they name must not go without them. Exit status 2."""
    run("setup", "--client", "claude-code")
    settings = repo / ".claude" / "settings.json"
    settings.write_text(settings.read_text()[:-3])
    before = {path: path.read_bytes() for path in (repo / ".claude").rglob("*") if path.is_file()}

    for options in ([], ["--client", "claude-code"]):
        said = run("remove", *options)
        assert said.status == 2 and "Claude Code: failed" in said.out and "this is not valid JSON" in said.out

    assert {path: path.read_bytes() for path in (repo / ".claude").rglob("*") if path.is_file()} == before


def test_one_broken_file_keeps_no_other_client_from_its_hooks(run: Run, home: Path, repo: Path) -> None:
    """All that are found: the others are installed, and the answer and exit status 2 say that one is not."""
    for name in (".claude", ".codex", ".gemini"):
        (repo / name).mkdir()
    settings = repo / ".codex" / "hooks.json"
    settings.write_text('{\n  // mine\n  "hooks": {}\n}\n')

    said = run("setup")

    assert said.status == 2
    assert "Codex CLI: NOT installed" in said.out
    assert f"{settings}, line 2, column 3: this is not valid JSON: a comment" in said.out
    assert "Installed: Claude Code, Gemini CLI. Not installed: Codex CLI." in said.out
    assert os.listdir(repo / ".codex") == ["hooks.json"]


def test_installing_again_says_it_in_a_line(run: Run, home: Path, repo: Path) -> None:
    """What was advised once is not said again, but that Codex does not run it."""
    names = ["--client", "claude-code", "--client", "codex"]
    run("setup", *names)

    said = run("setup", *names)

    lines = said.out.splitlines()
    assert lines[lines.index("Claude Code: already installed; nothing was changed") :][:3] == [
        "Claude Code: already installed; nothing was changed",
        "Codex CLI: already installed; nothing was changed",
        "  NOT trusted yet: Codex skips the hooks until you review them: start codex and type /hooks.",
    ]


def test_a_try_that_works_settles_the_last_trouble(run: Run, home: Path, repo: Path) -> None:
    """Of that client alone."""
    state = str(repo / ".git" / "gitmem")
    run("setup", "--client", "claude-code")
    for at, left in (("codex Stop", True), ("claude-code Stop", False)):
        hook_state.note_error(state, 1_793_000_000_000_000, at, "the disk is full")
        assert "the disk is full" in run("doctor").out
        assert run("setup", "--client", "claude-code").status == 0
        assert ("the disk is full" in run("doctor").out) == left


def test_a_bare_repository_has_the_users_hooks_alone(
    run: Run, home: Path, repo: Path, tmp_path: Path
) -> None:
    """A pre-push hook never runs there."""
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repo), str(bare)], check=True)

    refused = run("setup", "--git", "pre-push", cwd=bare)

    assert refused.status == 2
    assert "where a pre-push hook never runs" in refused.err
    assert not (bare / "hooks" / "pre-push").exists()


def test_aider_is_told_whose_signals_and_which_file(run: Run, home: Path) -> None:
    """A terminal by itself would watch for the person."""
    said = run("setup", "--client", "aider").out

    assert "gitmem watch --as NAME --write .aider.signals.md" in said
    assert ".git/info/exclude" in said


def test_help_says_what_is_taken_without_a_client(run: Run) -> None:
    """Setup takes what it finds, remove what is installed."""
    for command, what in (("setup", "all clients found"), ("remove", "all installed")):
        assert what in " ".join(run(command, "--help").out.replace("│", " ").split())


def test_doctor_names_a_git_hook_that_git_does_not_run(home: Path, run: Run, repo: Path) -> None:
    """Husky's folder is in no commit: a new worktree lacks it, and no claim is guarded there. The same of a line without our script."""
    dispatcher = repo / ".husky" / "_" / "pre-commit"
    dispatcher.parent.mkdir(parents=True)
    dispatcher.write_text('#!/usr/bin/env sh\n. "$(dirname "$0")/h"')
    dispatcher.chmod(0o755)
    (dispatcher.parent / "h").write_text("true\n")
    subprocess.run(["git", "config", "core.hooksPath", ".husky/_"], cwd=repo, check=True)
    assert run("setup", "--git", "pre-commit").status == 0
    assert "hooks-not-run" not in run("doctor").out
    dispatcher.unlink()
    said = run("doctor").out
    assert "hooks-not-run" in said and "npm install" in said and "gitmem setup --git pre-commit" in said
    dispatcher.write_text('#!/usr/bin/env sh\n. "$(dirname "$0")/h"')
    dispatcher.chmod(0o755)
    shutil.rmtree(repo / ".git" / "gitmem" / "git-hooks")
    assert "hooks-not-run" in run("doctor").out


def test_status_names_the_git_hooks_of_the_worktree_and_what_else_writes_them(
    home: Path, run: Run, repo: Path
) -> None:
    """The guard, a hook of the user's, a folder of another tool, and a hook that this has replaced; uninstall names what is left."""
    assert "git pre-commit" not in run("doctor").out
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    assert "git pre-commit: another hook, without the guard of claims" in run("doctor").out
    assert run("setup", "--git", "pre-commit").status == 0
    assert "git pre-commit: installed" in run("doctor").out
    hook.write_text("# File generated by pre-commit\n")
    out = run("doctor").out
    assert (
        "git pre-commit: another hook has the place of gitmem's, and the guard of claims does not run" in out
    )
    assert "pre-commit writes git's hooks here; `gitmem setup --git` uses its form" in out
    assert "gitmem setup --git pre-commit" in out and "hooks-replaced" in out
    subprocess.run(["git", "config", "core.hooksPath", ".husky/_"], cwd=repo, check=True)
    found = hooks(run)
    assert (found["pre_commit"], found["replaced"], found["hooks_path"], found["manager"]) == (
        "not installed", ["pre-commit"], ".husky/_", "husky",
    )  # fmt: skip
    assert "core.hooksPath: .husky/_" in run("doctor").out


def test_a_linked_worktree_s_own_folder_of_hooks_is_heeded(
    home: Path, run: Run, repo: Path, tmp_path: Path
) -> None:
    """`core.hooksPath` in config.worktree: the hook is where git looks for it, in this worktree and in the other."""
    linked = tmp_path / "linked"

    def git(*args: str, cwd: Path = linked) -> str:
        return subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, text=True).stdout

    git("worktree", "add", "--quiet", "-b", "side", str(linked), cwd=repo)
    git("config", "extensions.worktreeConfig", "true", cwd=repo)
    git("config", "--worktree", "core.hooksPath", ".own-hooks")
    assert hooks(run, linked)["hooks_path"] == ".own-hooks"
    assert hooks(run)["hooks_path"] is None

    written = run("setup", "--git", "pre-commit", "--json", cwd=linked).json["clients"]["git"][0]["path"]

    assert written == os.path.join(linked, git("rev-parse", "--git-path", "hooks/pre-commit").strip())
    assert os.access(written, os.X_OK)
    assert not (repo / ".git" / "hooks" / "pre-commit").exists()
