"""`gitmem hooks`: what a person or an agent is told, and a try of the real scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.deep
def test_it_is_installed_tried_and_taken_out(run: Run, home: Path, repo: Path) -> None:
    """All that push, in one go; the try runs each as its client would."""
    names = ["claude-code", "codex", "gemini", "cursor", "opencode", "cline", "copilot"]
    wanted = [part for name in names for part in ("--client", name)]

    assert run("hooks", "install", *wanted).status == 0
    tried = run("hooks", "test", "--json")

    assert tried.status == 0, tried
    assert [(each["client"], each["works"], each["problem"]) for each in tried.json["trials"]] == [
        (name, True, "") for name in names
    ]
    assert run("hooks", "uninstall").status == 0
    assert [path.name for path in repo.iterdir() if path.name != ".git"] == ["README"]
    assert list(home.iterdir()) == []


def test_a_try_of_what_does_not_work_says_no(run: Run, home: Path, repo: Path) -> None:
    """Exit status 1, and why; a user's own files are run as they are."""
    run("hooks", "install", "--client", "codex", "--scope", "user")
    script = home / ".codex" / "hooks" / "signal-received.sh"
    script.write_text("\n".join([*script.read_text().splitlines()[:2], "exit 0", ""]))

    tried = run("hooks", "test")

    assert tried.status == 1
    assert "Codex CLI (user): FAILED · The hook did not show the signal" in tried.out


def test_nothing_to_try_is_said(run: Run, home: Path) -> None:
    """It is a question that was asked wrongly."""
    assert run("hooks", "test").status == 2


def test_install_says_what_it_found_and_what_to_do(run: Run, home: Path, repo: Path) -> None:
    """Which client and why, what was written, that it wants to be committed, and what comes next."""
    (repo / ".claude").mkdir()
    (home / ".codex").mkdir()

    said = run("hooks", "install")

    assert said.status == 0
    assert "Claude Code (.claude is in the project): installed for this project" in said.out
    assert f"Codex CLI ({home}/.codex exists): installed" in said.out
    assert f"wrote {repo}/.claude/hooks/signal-received.sh" in said.out
    assert "/hooks" in said.out and "writable_roots" in said.out
    assert "Commit these files" in said.out
    assert "next: gitmem hooks test" in said.out


@pytest.mark.parametrize(
    ("client", "said"), [("windsurf", "gitmem watch"), ("aider", "gitmem watch --session NAME --write")]
)
def test_a_client_without_hooks_is_sent_to_watch(client: str, said: str, run: Run, home: Path) -> None:
    """It is said plainly, and it is the next command."""
    answer = run("hooks", "install", "--client", client)

    assert answer.status == 0
    assert said in answer.out
    assert "next: gitmem watch" in answer.out


def test_broken_settings_are_a_sentence_with_a_place(run: Run, home: Path, repo: Path) -> None:
    """File, line, column; exit status 2; the file as it was."""
    (repo / ".claude").mkdir()
    settings = repo / ".claude" / "settings.json"
    settings.write_text('{\n  "a": 1\n  "b": 2\n}\n')

    said = run("hooks", "install", "--json")

    assert said.status == 2
    assert said.json["error"]["code"] == "broken-settings"
    assert f"{settings}, line 3, column 3: this is not valid JSON: " in said.err
    assert "Nothing was written" in said.err
    assert settings.read_text() == '{\n  "a": 1\n  "b": 2\n}\n'
    assert os.listdir(repo / ".claude") == ["settings.json"]


def test_status_says_what_is_where(run: Run, home: Path, repo: Path) -> None:
    """In JSON for programs, and with what a user has to do for Codex."""
    run("hooks", "install", "--client", "codex", "--scope", "user")

    said = run("hooks", "status", "--json").json
    text = run("hooks", "status").out

    (codex,) = said["clients"]
    assert [(each["scope"], each["state"], each["trust"]) for each in codex["scopes"]] == [
        ("user", "installed", "untrusted")
    ]
    assert "Codex CLI: installed · user scope · NOT trusted yet" in text
    assert not (repo / ".codex").exists()


def test_codex_folder_that_was_moved_is_heeded(run: Run, home: Path, tmp_path: Path) -> None:
    """CODEX_HOME."""
    run("hooks", "install", "--client", "codex", "--scope", "user", CODEX_HOME=str(tmp_path / "elsewhere"))

    assert json.loads((tmp_path / "elsewhere" / "hooks.json").read_text())["hooks"]["Stop"]
    assert list(home.iterdir()) == []


def test_the_gate_in_front_of_a_push(run: Run, home: Path, repo: Path) -> None:
    """By itself, without any client; the real gate lets a push pass that no work unit speaks against."""
    said = run("hooks", "install", "--git", "pre-push")

    hook = repo / ".git" / "hooks" / "pre-push"
    assert said.status == 0 and str(hook) in said.out
    done = subprocess.run([hook], cwd=repo, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "not checked for this push: branch main" in done.stderr
    assert "git pre-push: installed" in run("hooks", "status").out
    assert run("hooks", "uninstall", "--git", "pre-push").status == 0
    assert not hook.exists()
    assert run("hooks", "install", "--git", "post-merge").status == 2


def test_clients_and_the_gate_in_one_go_are_one_answer(run: Run, home: Path, repo: Path) -> None:
    """One line of JSON; and an uninstall of the clients says that the gate is still there."""
    said = run("hooks", "install", "--client", "codex", "--git", "pre-push", "--json").json

    assert [each["state"] for each in said["clients"]] == ["installed"]
    assert [each["state"] for each in said["git"]] == ["installed"]
    left = run("hooks", "uninstall", "--json").json
    assert left["git"] == [] and left["next"][0] == "gitmem hooks uninstall --git pre-push"
    assert (repo / ".git" / "hooks" / "pre-push").exists()


def test_several_of_gits_hooks_are_installed_and_removed_at_once(run: Run, home: Path, repo: Path) -> None:
    """Each of them, once; a wrong name among them changes nothing; the one that comes with another is named."""
    names = ("pre-commit", "pre-push", "post-commit")
    asked = [word for name in (*names, names[0]) for word in ("--git", name)]
    folder = repo / ".git" / "hooks"

    def there() -> set[str]:
        return {path.name for path in folder.glob("*") if path.suffix != ".sample"}

    refused = run("hooks", "install", *asked, "--git", "pre-rebase", "--git", "post-merge")
    assert refused.status == 2 and "Invalid git hook: pre-rebase, post-merge." in refused.err and not there()
    said = run("hooks", "install", *asked)
    assert said.status == 0 and there() == {*names, "post-merge"}
    assert all(str(folder / name) in said.out for name in there())
    assert len(run("hooks", "install", *asked, "--json").json["git"]) == 3
    said = run("hooks", "uninstall", *asked)
    assert said.status == 0 and not there()
    assert all(f"{name} hook" in said.out for name in (*names, "post-merge"))


@pytest.mark.parametrize("kind", ["husky", "lefthook", "own"])
def test_a_line_in_a_committed_file_guards_other_worktrees_once_it_is_committed(
    kind: str, run: Run, home: Path, repo: Path
) -> None:
    """Which file to commit is said, of each hook, and not again once nothing changes."""
    file = {"husky": ".husky/{}", "lefthook": "lefthook.yml", "own": "tools/hooks/{}"}[kind]
    path = {"husky": ".husky/_", "own": "tools/hooks"}.get(kind)
    if path is not None:
        subprocess.run(["git", "config", "core.hooksPath", path], cwd=repo, check=True)
    else:
        for name in ("pre-commit", "post-commit", "post-merge"):
            (repo / ".git" / "hooks" / name).write_text("#!/bin/sh\ncall_lefthook()\n{\n  true\n}\n")
        (repo / file).write_text("")

    said = run("hooks", "install", "--git", "pre-commit", "--git", "post-commit").out

    both = dict.fromkeys(file.format(name) for name in ("post-commit", "post-merge"))
    for each in (file.format("pre-commit"), " and ".join(both)):
        assert f"Commit {each}: other worktrees and clones run it only once they have it." in said
    assert "Commit" not in run("hooks", "install", "--git", "pre-commit", "--git", "post-commit").out

    shutil.rmtree(repo / ".git" / "gitmem" / "git-hooks")  # as in a clone that a checkout brought these files
    found = run("hooks", "status")
    for name in ("pre-commit", "post-commit"):
        assert (
            f"git {name}: a checkout brought the file that calls it; not installed in this clone" in found.out
        )
    assert "next: gitmem hooks install --git pre-commit --git post-commit\n" in found.out
    said = run("hooks", "install", "--git", "pre-commit", "--git", "post-commit").out
    assert said.count(" hook installed: ") == 2, said
    assert "git pre-commit: installed" in run("hooks", "status").out or kind != "own"


def test_what_was_changed_before_a_hook_is_refused_is_said(run: Run, home: Path, repo: Path) -> None:
    """The first of two is installed, the second is not ours to write."""
    hook = repo / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    for path in (hook, Path(f"{hook}.before-gitmem")):
        path.write_text("#!/bin/sh\n")

    said = run("hooks", "install", "--client", "codex", "--git", "pre-commit", "--git", "pre-push")

    assert said.status == 2 and "Before it, changed as asked: Codex CLI, pre-commit." in said.err
    assert "Nothing was written" not in said.err and (hook.parent / "pre-commit").exists()


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

    said = run("hooks", "install", "--git", "pre-commit")

    assert said.status == 2 and f"{folder}/pre-commit is outside of this repository" in said.err
    assert "gitmem gate --pre-commit" in said.err and not folder.exists()
    assert run("hooks", "status", "--json").json["pre_commit"] == "not installed"
    folder.mkdir()
    hook = folder / "pre-commit"
    (line,) = re.findall(f"Add this to {hook} yourself: (.*)", said.err)
    hook.write_text(f"#!/bin/sh -e\n{line}\necho user\nexit 3\n")
    hook.chmod(0o755)
    before = hook.read_bytes()
    assert run("hooks", "install", "--git", "pre-commit").status == 0
    assert run("hooks", "status", "--json").json["pre_commit"] == "installed"
    script = repo / ".git" / "gitmem" / "git-hooks" / "pre-commit"
    for answer, status in ((0, 3), (1, 1), (2, 3), (127, 3)):
        script.write_text(f"exit {answer}\n")
        done = subprocess.run([hook], cwd=repo, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (status, "" if status == 1 else "user\n", "")

    out = run("hooks", "uninstall", "--git", "pre-commit").out

    assert f"{hook} still has gitmem's line, which does nothing now" in out
    assert subprocess.run([hook], cwd=repo, timeout=30).returncode == 3
    assert hook.read_bytes() == before


def test_doctor_looks_at_the_hooks(run: Run, home: Path, repo: Path) -> None:
    """A script that is gone is a problem, with the command that mends it."""
    run("hooks", "install", "--client", "claude-code")
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
    """Installed, looked at, tried and taken out; a project's hooks still need a project."""
    said = run("hooks", "install", "--scope", "user", "--client", "claude-code", "--json", cwd=nowhere)

    assert said.status == 0, said
    assert said.json["program"] == str(home.parent / "tools" / "gitmem")
    assert said.json["remarks"] == []
    status = run("hooks", "status", cwd=nowhere)
    assert status.status == 0 and "Claude Code: installed · user scope" in status.out
    assert "gitmem from the PATH" in status.out and "where there is none" not in status.out
    assert run("hooks", "test", cwd=nowhere).status == 0
    assert run("hooks", "uninstall", "--scope", "user", cwd=nowhere).status == 0
    assert list(home.iterdir()) == [] and list(nowhere.iterdir()) == []

    refused = run("hooks", "install", "--client", "claude-code", cwd=nowhere)
    assert refused.status == 2
    assert "next: gitmem hooks install --scope user" in refused.err
    assert (
        "next: " not in run("hooks", "status", cwd=nowhere).out
    )  # no client is found, so an install is refused


def test_user_scope_without_a_gitmem_on_the_path_is_told(run: Run, home: Path, nowhere: Path) -> None:
    """The hooks would find none."""
    (home.parent / "tools" / "gitmem").unlink()

    said = run("hooks", "install", "--scope", "user", "--client", "claude-code", cwd=nowhere)

    assert said.status == 0
    assert "gitmem is not on the PATH" in said.out


def test_hooks_of_a_repository_without_a_log_can_be_looked_at(run: Run, home: Path, repo: Path) -> None:
    """A mirror clone: gitmem refuses to keep a log in it, and that is nothing to the user's hooks."""
    with (repo / ".git" / "config").open("a") as config:
        config.write('[remote "origin"]\n\turl = /nowhere\n\tmirror = true\n')

    assert run("hooks", "install", "--scope", "user", "--client", "codex").status == 0
    assert run("hooks", "status").status == 0
    assert run("hooks", "uninstall", "--scope", "user").status == 0


def test_status_names_broken_settings(run: Run, home: Path, repo: Path) -> None:
    """With line and column, also where nothing of ours was ever in them; exit status 1."""
    (repo / ".claude").mkdir()
    settings = repo / ".claude" / "settings.json"
    settings.write_text('{\n  "a": 1\n  "b": 2\n}\n')

    said = run("hooks", "status")

    assert said.status == 1
    assert "Claude Code: broken · project scope" in said.out
    assert f"{settings}, line 3, column 3: this is not valid JSON: expecting ',' delimiter." in said.out
    assert "nothing was written" not in said.out
    assert "next: gitmem hooks install --client claude-code --scope project" in said.out
    assert run("hooks", "test").status == 2  # nothing of ours is there to be tried
    codes = [each["code"] for each in run("doctor", "--json").json["findings"]]
    assert not [each for each in codes if each.startswith("hooks")]


def test_uninstall_leaves_broken_settings_and_the_script_alone(run: Run, home: Path, repo: Path) -> None:
    """Our entries in such a file can't be found: what they name must not go without them. Exit status 2."""
    run("hooks", "install", "--client", "claude-code")
    settings = repo / ".claude" / "settings.json"
    settings.write_text(settings.read_text()[:-3])
    before = {path: path.read_bytes() for path in (repo / ".claude").rglob("*") if path.is_file()}

    for options in ([], ["--client", "claude-code"]):
        said = run("hooks", "uninstall", *options)
        assert said.status == 2 and "this is not valid JSON" in said.err and "Nothing was written" in said.err

    assert {path: path.read_bytes() for path in (repo / ".claude").rglob("*") if path.is_file()} == before


def test_a_try_names_settings_that_broke(run: Run, home: Path, repo: Path) -> None:
    """One client's file is broken; the others are tried all the same."""
    run("hooks", "install", "--client", "claude-code", "--client", "codex")
    settings = repo / ".codex" / "hooks.json"
    settings.write_text(settings.read_text()[:-3])

    said = run("hooks", "test")

    assert said.status == 1
    assert "Claude Code (project): works" in said.out
    assert f"Codex CLI (project): FAILED · {settings}, line" in said.out


def test_one_broken_file_keeps_no_other_client_from_its_hooks(run: Run, home: Path, repo: Path) -> None:
    """All that are found: the others are installed, and the answer and exit status 2 say that one is not."""
    for name in (".claude", ".codex", ".gemini"):
        (repo / name).mkdir()
    settings = repo / ".codex" / "hooks.json"
    settings.write_text('{\n  // mine\n  "hooks": {}\n}\n')

    said = run("hooks", "install")
    found = run("hooks", "install", "--json")

    assert said.status == found.status == 2
    assert "Codex CLI (.codex is in the project): NOT installed" in said.out
    assert f"{settings}, line 2, column 3: this is not valid JSON: a comment" in said.out
    assert "Installed: Claude Code, Gemini CLI. Not installed: Codex CLI." in said.out
    assert "next: gitmem hooks install --client codex --scope project" in said.out
    states = {each["client"]: each["state"] for each in found.json["clients"]}
    assert states == {"claude-code": "unchanged", "codex": "failed", "gemini": "unchanged"}
    assert os.listdir(repo / ".codex") == ["hooks.json"]


def test_installing_again_says_it_in_a_line(run: Run, home: Path, repo: Path) -> None:
    """What was advised once is not said again, but that Codex does not run it."""
    names = ["--client", "claude-code", "--client", "codex", "--client", "copilot"]
    run("hooks", "install", *names)

    said = run("hooks", "install", *names)

    assert [line for line in said.out.splitlines() if not line.startswith("next:")] == [
        "Claude Code: already installed; nothing was changed",
        "Codex CLI: already installed; nothing was changed",
        "  NOT trusted yet: Codex skips the hooks until you review them: start codex and type /hooks.",
        "GitHub Copilot: already installed; nothing was changed",
    ]


def test_a_try_that_works_settles_the_last_trouble(run: Run, home: Path, repo: Path) -> None:
    """Of that client alone."""
    run("hooks", "install", "--client", "claude-code")
    state = str(repo / ".git" / "gitmem")
    hook_state.note_error(state, 1_793_000_000_000_000, "codex Stop", "the disk is full")
    assert run("hooks", "test").status == 0
    assert "the disk is full" in run("hooks", "status").out

    hook_state.note_error(state, 1_793_000_000_000_000, "claude-code Stop", "the disk is full")
    assert run("hooks", "test").status == 0

    assert "trouble" not in run("hooks", "status").out
    hook_state.note_error(state, 1_793_000_000_000_000, "claude-code Stop", "the disk is full")
    script = repo / ".claude" / "hooks" / "signal-received.sh"
    script.write_text("\n".join([*script.read_text().splitlines()[:2], "exit 0", ""]))
    failed = run("hooks", "test")
    assert failed.status == 1
    assert "next: gitmem hooks install --client claude-code --scope project" in failed.out
    assert "the disk is full" in run("hooks", "status").out


def test_a_bare_repository_has_the_users_hooks_alone(
    run: Run, home: Path, repo: Path, tmp_path: Path
) -> None:
    """Status suggests nothing that install refuses, and where a pre-push hook never runs."""
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repo), str(bare)], check=True)

    assert (
        "next: " not in run("hooks", "status", cwd=bare).out
    )  # no client is found, so an install is refused
    refused = run("hooks", "install", "--git", "pre-push", cwd=bare)

    assert refused.status == 2
    assert "where a pre-push hook never runs" in refused.err
    assert not (bare / "hooks" / "pre-push").exists()


def test_aider_is_told_whose_signals_and_which_file(run: Run, home: Path) -> None:
    """A terminal by itself would watch for the person."""
    said = run("hooks", "install", "--client", "aider").out

    assert "gitmem watch --session NAME --write .aider.signals.md" in said
    assert ".git/info/exclude" in said


def test_help_says_what_is_taken_without_a_client(run: Run) -> None:
    """Install takes what it finds, uninstall what is installed."""
    shown = {
        each: " ".join(run("hooks", each, "--help").out.replace("│", " ").split())
        for each in ("install", "uninstall", "test")
    }

    assert "all clients found" in shown["install"]
    assert "all installed" in shown["uninstall"] and "all installed" in shown["test"]


def test_doctor_names_a_git_hook_that_git_does_not_run(home: Path, run: Run, repo: Path) -> None:
    """Husky's folder is in no commit: a new worktree lacks it, and no claim is guarded there. The same of a line without our script."""
    dispatcher = repo / ".husky" / "_" / "pre-commit"
    dispatcher.parent.mkdir(parents=True)
    dispatcher.write_text('#!/usr/bin/env sh\n. "$(dirname "$0")/h"')
    dispatcher.chmod(0o755)
    (dispatcher.parent / "h").write_text("true\n")
    subprocess.run(["git", "config", "core.hooksPath", ".husky/_"], cwd=repo, check=True)
    assert run("hooks", "install", "--git", "pre-commit").status == 0
    assert "hooks-not-run" not in run("doctor").out
    dispatcher.unlink()
    said = run("doctor").out
    assert (
        "hooks-not-run" in said and "npm install" in said and "gitmem hooks install --git pre-commit" in said
    )
    dispatcher.write_text('#!/usr/bin/env sh\n. "$(dirname "$0")/h"')
    dispatcher.chmod(0o755)
    shutil.rmtree(repo / ".git" / "gitmem" / "git-hooks")
    assert "hooks-not-run" in run("doctor").out


def test_status_names_the_git_hooks_of_the_worktree_and_what_else_writes_them(
    home: Path, run: Run, repo: Path
) -> None:
    """The guard, a hook that was kept, a folder of another tool, and a hook that this has replaced; uninstall names what is left."""
    assert "git pre-commit" not in run("hooks", "status").out
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    assert "git pre-commit: another hook, without the guard of claims" in run("hooks", "status").out
    assert run("hooks", "install", "--git", "pre-commit").status == 0
    assert "git pre-commit: installed" in run("hooks", "status").out
    assert "git's pre-commit hook is still installed." in run("hooks", "uninstall").out
    hook.write_text("# File generated by pre-commit\n")
    out = run("hooks", "status").out
    assert (
        "git pre-commit: another tool has replaced gitmem's hook, and the guard of claims does not run" in out
    )
    assert "pre-commit writes git's hooks here; `gitmem hooks install --git` uses its form" in out
    assert "next: gitmem hooks install --git pre-commit" in out
    assert "hooks-replaced" in run("doctor").out
    subprocess.run(["git", "config", "core.hooksPath", ".husky/_"], cwd=repo, check=True)
    found = run("hooks", "status", "--json").json
    assert (found["pre_commit"], found["replaced"], found["hooks_path"], found["manager"]) == (
        "not installed", [], ".husky/_", "husky",
    )  # fmt: skip
    assert "core.hooksPath: .husky/_" in run("hooks", "status").out


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
    assert run("hooks", "status", "--json", cwd=linked).json["hooks_path"] == ".own-hooks"
    assert run("hooks", "status", "--json", cwd=repo).json["hooks_path"] is None

    written = run("hooks", "install", "--git", "pre-commit", "--json", cwd=linked).json["git"][0]["path"]

    assert written == os.path.join(linked, git("rev-parse", "--git-path", "hooks/pre-commit").strip())
    assert os.access(written, os.X_OK)
    assert not (repo / ".git" / "hooks" / "pre-commit").exists()
