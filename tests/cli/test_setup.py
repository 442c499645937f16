"""`gitmem setup` and `gitmem remove`: everything of a first day in one command, and out again to the byte."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem.log.lock import Lock
from gitmem.sync import consent
from tests.conftest import Git

from .conftest import Run

INSTRUCTIONS = ("CLAUDE.md", "AGENTS.md", "GEMINI.md")
GUIDE = b"# Guide\r\n\r\nWrite tests.\r\n"


@pytest.fixture
def repo(repo: Path, git: Git) -> Path:
    """With what people have: a settings file of Claude Code, instructions with CRLF, a hook of git."""
    (repo / ".claude").mkdir()
    (repo / ".claude" / "settings.json").write_bytes(b'{\r\n  "model": "opus"\r\n}')
    (repo / "CLAUDE.md").write_bytes(GUIDE)
    (repo / "AGENTS.md").write_bytes(b"Be brief.")
    (repo / ".codex").mkdir()
    hook = repo / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    return repo


@pytest.fixture
def remote(repo: Path, git: Git) -> str:
    """A remote with a branch, of which nothing was agreed."""
    hub = repo.parent / "hub.git"
    git("init", "--quiet", "--bare", str(hub))
    git("remote", "add", "origin", str(hub), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)
    return str(hub)


def files(top: Path) -> dict[str, tuple[bytes, int]]:
    """All files and folders of a repository that are not the log's, git's objects or its logs."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if name.startswith((".git/gitmem", ".git/objects", ".git/refs/gitmem", ".git/logs", ".git/packed")):
            continue
        found[name] = (path.read_bytes() if path.is_file() else b"", stat.S_IMODE(path.stat().st_mode))
    return found


@pytest.mark.parametrize("git_hook", [False, True], ids=["clients", "and git's hook"])
def test_all_that_setup_adds_remove_takes_out_to_the_byte(run: Run, repo: Path, git_hook: bool) -> None:
    """Hooks, instructions, merge driver, interval, git's hook; also when both are run twice."""
    before = files(repo)
    named = ["--client", "all-found", "--git", "pre-push"] if git_hook else []
    for _ in range(2):
        said = run("setup", "--autosync", "1h", *named, "--json")
        assert said.status == 0, said
        assert {each["client"] for each in said.json["clients"]["clients"]} >= {"claude-code", "codex"}
        assert said.json["tried"]["works"] is True
    assert b"gitmem" in (repo / "CLAUDE.md").read_bytes() and b"gitmem" in (repo / "AGENTS.md").read_bytes()
    assert files(repo) != before

    for _ in range(2):
        assert run("remove").status == 0
        assert files(repo) == before


def test_a_second_setup_changes_nothing_and_repairs_what_went(run: Run, repo: Path) -> None:
    run("setup")
    whole = files(repo)
    assert run("setup").status == 0
    assert files(repo) == whole
    (repo / ".claude" / "settings.json").write_bytes(b'{\r\n  "model": "opus"\r\n}')
    (repo / ".git" / "info" / "attributes").unlink()
    said = run("setup")
    assert said.status == 0 and "Claude Code: updated" in said.out
    assert files(repo) == whole


def test_what_was_edited_since_stays(run: Run, repo: Path) -> None:
    """Only what is ours goes."""
    run("setup")
    with (repo / "CLAUDE.md").open("ab") as file:
        file.write(b"Mine.\r\n")
    settings = repo / ".claude" / "settings.json"
    settings.write_bytes(settings.read_bytes().replace(b"opus", b"haiku"))
    assert run("remove").status == 0
    assert (repo / "CLAUDE.md").read_bytes() == GUIDE + b"Mine.\r\n"
    assert settings.read_bytes() == b'{\r\n  "model": "haiku"\r\n}'


@pytest.mark.parametrize("line", ["@AGENTS.md", "See @./AGENTS.md first."])
def test_instructions_are_written_once(run: Run, repo: Path, line: str) -> None:
    """Into the file that is imported."""
    (repo / "CLAUDE.md").write_text(f"{line}\n")
    assert run("setup").status == 0
    assert (repo / "CLAUDE.md").read_text() == f"{line}\n"
    assert (repo / "AGENTS.md").read_text().count("gitmem:begin") == 1


def test_instructions_lead_out_of_the_work_tree_by_no_link(run: Run, repo: Path, tmp_path: Path) -> None:
    """A repository may bring a link in the place of a file that setup writes."""
    mine = tmp_path / "mine"
    mine.write_text("mine\n")
    (repo / "CLAUDE.md").unlink()
    (repo / "CLAUDE.md").symlink_to(mine)
    said = run("setup")
    assert mine.read_text() == "mine\n"
    assert "is a link to" in said.out
    assert run("remove").status == 0 and mine.read_text() == "mine\n"


def test_hooks_that_the_repository_brought_are_not_run(
    run: Run, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the project are not tried by a setup for the user, and are replaced by one for the project."""
    home, mark = tmp_path / "home", tmp_path / "mark"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    run("setup", "--client", "claude-code")
    settings = repo / ".claude" / "settings.json"
    evil = settings.read_text().replace("signal-received.sh", f"signal-received.sh; touch {mark}; :")
    settings.write_text(evil)
    run("setup", "--client", "claude-code", "--scope", "user")
    assert not mark.exists() and settings.read_text() == evil
    run("setup", "--client", "claude-code")
    assert not mark.exists() and str(mark) not in settings.read_text()


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md", "GEMINI.md"])
def test_a_file_that_never_ends_stops_nothing(run: Run, repo: Path, name: str) -> None:
    """A pipe in the place of what a model reads; the other files are written, and taken out again."""
    (repo / ".gemini").mkdir()
    (repo / name).unlink(missing_ok=True)
    os.mkfifo(repo / name)
    said = run("setup")
    assert said.status == 1 and name in said.out
    assert (
        sum((repo / each).is_file() and b"gitmem" in (repo / each).read_bytes() for each in INSTRUCTIONS) == 2
    )
    assert run("remove").status == 0
    assert not any(
        (repo / each).is_file() and b"gitmem" in (repo / each).read_bytes() for each in INSTRUCTIONS
    )


def test_instructions_that_cannot_be_taken_out_are_no_success(run: Run, repo: Path) -> None:
    """Half of the markers is gone: each command says so, also the one that only looks."""
    run("setup")
    guide = repo / "AGENTS.md"
    guide.write_bytes(guide.read_bytes().replace(b"<!-- gitmem:end -->", b""))
    for args in (["setup", "--dry-run"], ["setup"], ["remove"]):
        said = run(*args)
        assert "AGENTS.md are not a pair" in said.out, args
        assert said.status == (0 if args[-1] == "--dry-run" else 1), args


def test_a_dry_run_names_the_command_that_does_it(run: Run, repo: Path) -> None:
    said = run("setup", "--dry-run", "--client", "codex", "--json")
    assert said.json["next"] == ["gitmem setup --client codex"]


def test_hooks_that_a_clone_brought_are_tried_only_as_this_program_writes_them(
    run: Run, repo: Path, tmp_path: Path
) -> None:
    """They are written anew before."""
    mark, script = tmp_path / "mark", repo / ".claude" / "hooks" / "signal-received.sh"
    run("setup", "--client", "claude-code")
    script.write_text(f"#!/bin/sh\ntouch {mark}\n{script.read_text()}")
    said = run("setup", "--client", "claude-code", "--json")
    assert said.json["tried"]["works"] and not mark.exists()


@pytest.mark.parametrize("args", [["setup", "--git", "pre-push"], ["remove"]], ids=" ".join)
def test_a_scope_that_does_not_exist_is_refused(run: Run, repo: Path, args: list[str]) -> None:
    before = files(repo)
    said = run(*args, "--scope", "team", "--json")
    assert (said.status, said.json["error"]["code"]) == (2, "unknown-scope") and files(repo) == before


def test_doctor_says_how_to_connect_a_client(run: Run, repo: Path) -> None:
    assert (
        "Claude Code: not installed (.claude is in the project); `gitmem setup` installs it"
        in run("doctor").out
    )


def test_remove_goes_on_beside_a_file_that_it_cannot_read(run: Run, repo: Path) -> None:
    run("setup")
    hooks = repo / ".codex" / "hooks.json"
    hooks.write_text(hooks.read_text() + "{")
    said = run("remove")
    assert said.status != 0 and "Codex CLI: failed" in said.out and "hooks.json" in said.out
    assert b"gitmem" not in (repo / "CLAUDE.md").read_bytes()
    assert "gitmem" not in (repo / ".git" / "config").read_text()


def test_who_leaves_the_questions_has_written_nothing(repo: Path, remote: str) -> None:
    """All are asked before anything is done."""
    before = files(repo)
    theirs, ours = os.openpty()
    program = str(Path(sys.executable).with_name("gitmem"))
    with subprocess.Popen([program, "setup"], cwd=repo, stdin=ours, stderr=ours, stdout=subprocess.DEVNULL) as process:  # fmt: skip
        os.close(ours)
        os.write(theirs, b"y\ny\n")
        shown = b""
        while b"Sync by itself" not in shown:
            shown += os.read(theirs, 1_000)
        process.send_signal(signal.SIGINT)
    os.close(theirs)
    assert process.returncode == 130
    assert files(repo) == before and not (repo / ".git" / "gitmem" / consent.FOLDER).exists()


@pytest.mark.parametrize("args", [(), ("--git", "post-commit")], ids=["all", "git"])
def test_a_dry_run_names_the_files_and_writes_none(run: Run, repo: Path, args: tuple[str, ...]) -> None:
    before = files(repo)
    said = run("setup", "--dry-run", *args)
    assert said.status == 0 and "Nothing was written" in said.out
    assert files(repo) == before and not (repo / ".git" / "gitmem" / "program").exists()
    named = {line.strip() for line in said.out.splitlines() if line.startswith("  ")}
    assert run("setup", *args).status == 0
    written = {str(repo / name) for name, state in files(repo).items() if before.get(name) != state}
    assert {path for path in written if os.path.isfile(path)} <= named


def test_settings_that_cannot_be_read_stay_and_are_named(run: Run, repo: Path) -> None:
    """The other clients are connected, and the exit status says that not all is well."""
    settings = repo / ".claude" / "settings.json"
    settings.write_text("{oops")
    dry, said = run("setup", "--dry-run"), run("setup")
    for each in (dry, said):
        assert f"{settings}, line 1, column 2: this is not valid JSON: " in each.out
    assert said.status != 0
    assert "Claude Code" in said.out and "NOT installed" in said.out and "Codex" in said.out
    assert (repo / ".claude" / "settings.json").read_text() == "{oops"
    assert (repo / ".codex" / "hooks.json").exists()


def test_a_bare_repository_gets_a_log_and_no_project_files(run: Run, tmp_path: Path, git: Git) -> None:
    bare = tmp_path / "bare.git"
    git("init", "--quiet", "--bare", str(bare))
    said = run("setup", cwd=bare)
    assert said.status == 0, said
    assert "Created the log" in said.out and "No client was connected" in said.out
    assert "gitmem" in (bare / "config").read_text()
    assert run("remove", cwd=bare).status == 0
    assert "gitmem" not in (bare / "config").read_text()


def at_terminal(repo: Path, *answers: str) -> tuple[dict[str, Any], list[str]]:
    """Return the answer of setup and the questions that it asks a person at a terminal, who types these lines."""
    theirs, ours = os.openpty()
    program = str(Path(sys.executable).with_name("gitmem"))
    with subprocess.Popen([program, "setup", "--json"], cwd=repo, stdin=ours, stderr=ours, stdout=subprocess.PIPE) as process:  # fmt: skip
        os.close(ours)
        os.write(theirs, "".join(f"{each}\n" for each in answers).encode())
        assert process.stdout is not None
        out = process.stdout.read()
    shown = os.read(theirs, 100_000).decode()
    os.close(theirs)
    assert process.returncode == 0, (out, shown)
    return json.loads(out), re.findall(r"(\w+) [^\[\n]*\[[yYnN/]+\]", shown)


def test_a_person_is_asked_at_most_three_questions(repo: Path, remote: str) -> None:
    """Whether to connect the clients that were found, to publish, and to sync by itself; an empty line takes the default."""
    said, questions = at_terminal(repo, "", "yes", "")
    assert questions == ["Connect", "Publish", "Sync"]
    assert (said["log"]["publishes_to"], said["log"]["autosync"]) == (remote, "30s")
    assert {each["client"] for each in said["clients"]["clients"]} >= {"claude-code", "codex"}
    assert at_terminal(repo, "")[1] == ["Connect"]  # what was agreed is not asked again


def test_who_says_no_gets_a_log_alone(repo: Path, remote: str) -> None:
    """What is no answer is asked for again."""
    before = files(repo)
    said, questions = at_terminal(repo, "later", "n", "")
    assert questions == ["Connect", "Connect", "Publish"]
    assert (said["log"]["publishes_to"], said["log"]["autosync"]) == (None, None)
    changed = {name for name, state in files(repo).items() if before.get(name) != state}
    assert changed <= {".git", ".git/config", ".git/info", ".git/info/attributes"}


def test_nobody_is_asked_without_a_terminal_or_with_yes(run: Run, repo: Path, remote: str) -> None:
    """Nothing is published then."""
    for args in ([], ["--yes"]):
        said = run("setup", *args, "--json")
        assert (said.status, said.json["log"]["publishes_to"]) == (0, None)


def test_an_agent_is_not_told_to_publish(run: Run, repo: Path, remote: str) -> None:
    said = run("setup", "--json", CLAUDECODE="1")
    assert said.status == 0 and not any("--publish" in each for each in said.json["next"])


def test_setup_in_a_linked_worktree_connects_it(run: Run, repo: Path, git: Git) -> None:
    """The driver is every worktree's; hooks and instructions are files of this one."""
    linked = repo.parent / "linked"
    git("worktree", "add", "--quiet", str(linked), cwd=repo)
    assert run("setup", "--client", "claude-code", cwd=linked).status == 0
    assert (linked / ".claude" / "settings.json").exists() and (linked / "CLAUDE.md").exists()
    assert "merge: gitmem" in git("check-attr", "merge", "signals/gm-x.jsonl", cwd=repo)
    said = run("remove", cwd=repo)
    assert f"Files of gitmem stay in another worktree: {linked}." in said.out
    assert f"next: gitmem -C {linked} remove" in said.out
    assert run("remove", cwd=linked).status == 0
    assert git("status", "--porcelain", cwd=linked) == ""
    assert "another worktree" not in run("remove", cwd=repo).out


def test_two_setups_at_once_are_one(run: Run, repo: Path) -> None:
    """The second begins to write when the first has ended."""
    state = Path(os.environ["XDG_STATE_HOME"]) / "gitmem"
    state.mkdir(parents=True, exist_ok=True)
    before, seen = files(repo / ".claude"), []

    def ended() -> None:
        seen.append(files(repo / ".claude") == before)
        first.release()

    with Lock(str(state / "setup-lock")) as first:
        assert first.take()
        threading.Timer(1, ended).start()
        assert run("setup").status == 0
    assert seen == [True] and files(repo / ".claude") != before


def test_a_file_in_the_place_of_a_clients_folder_is_no_client(run: Run, repo: Path) -> None:
    (repo / ".gemini").write_text("mine\n")
    said = run("setup")
    assert said.status == 0 and "Gemini" not in said.out
    assert (repo / ".gemini").read_text() == "mine\n"


def test_remove_says_how_to_delete_what_stays(run: Run, repo: Path, start: Callable[..., str]) -> None:
    start("Planck")
    run("setup")
    said = run("remove", "--json")
    for each in said.json["left"]["remove"]:
        subprocess.run(each, shell=True, cwd=repo.parent, check=True, capture_output=True)
    assert not (repo / ".git" / "gitmem").exists()


def test_remove_takes_the_consent_back(run: Run, repo: Path, remote: str) -> None:
    run("setup", "--publish", "yes", "--autosync", "off")
    assert (repo / ".git" / "gitmem" / consent.FOLDER).exists()
    run("remove")
    assert run("setup", "--json").json["log"]["publishes_to"] is None
