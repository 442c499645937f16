"""What clients and pre-commit install from this repository: the checked-in files, and what their hooks do beside those of `gitmem setup`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gitmem.clients import client_scope, git_hook
from gitmem.clients.clients import CLIENTS
from tools import compile_plugins

from ...hook_agents import SHELL, note_program

ROOT = Path(__file__).parents[3]
CALLED = {"claude-code": "PostToolUse", "codex": "PostToolUse", "gemini": "AfterTool"}
WITHOUT = ":".join(each for each in os.environ["PATH"].split(":") if not Path(each, "gitmem").exists())
Run = Callable[..., subprocess.CompletedProcess[bytes]]


def test_the_checked_in_files_are_those_of_setup() -> None:
    """Of this version, and no others; what the scripts do where setup was not run is what setup's do."""
    wanted = compile_plugins.compile_plugins()
    for path, content in wanted.items():
        assert (ROOT / path).read_text(encoding="utf-8") == content, (
            f"{path}: python tools/compile_plugins.py"
        )
        assert os.access(ROOT / path, os.X_OK) == path.endswith(".sh")
    assert {str(each.relative_to(ROOT)) for each in (ROOT / "plugins").rglob("*") if each.is_file()} <= set(
        wanted
    )
    for client, (folder, _) in compile_plugins.FOLDERS.items():
        rest = wanted[f"{folder}/hooks/signal-received.sh"].replace(" && ! is_set_up", "")
        part = rest[
            rest.index("# Return whether `gitmem setup`") : rest.index("# Return whether $1 is a valid")
        ]
        assert rest.replace(part, "") == client_scope.script_text(client)


def hooks_of(client: str) -> dict[str, list[dict[str, object]]]:
    folder = compile_plugins.FOLDERS[client][0]
    path = "hooks/hooks.json" if client == "gemini" else f"{folder}/hooks/hooks.json"
    found: dict[str, list[dict[str, object]]] = json.loads((ROOT / path).read_text())["hooks"]
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home of the person"


@pytest.fixture
def run(repo: Path, tmp_path: Path, home: Path) -> Run:
    """Run the line of a client's plugin at a tool call, of which gitmem notes that it was asked."""
    state = repo / ".git" / "gitmem"
    for name in ("flags", "here"):
        (state / name).mkdir(parents=True)
    (state / "flags" / "0b1c-2d3e").write_text("urgent\n")
    for client in CALLED:
        (state / "here" / client).write_text("0b1c-2d3e\n")
    home.mkdir()
    program = Path(os.environ["XDG_STATE_HOME"], "program of the test")
    program.parent.mkdir(exist_ok=True)
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    note_program(state, program)
    plugins = tmp_path / "the plugin's $(place)"

    def line(client: str, cwd: Path = repo, **env: str) -> subprocess.CompletedProcess[bytes]:
        folder, variable = compile_plugins.FOLDERS[client]
        if not plugins.exists():
            plugins.symlink_to(ROOT)
        (handler,) = hooks_of(client)[CALLED[client]][0]["hooks"]  # type: ignore[attr-defined]
        command = handler["command"]
        if client == "gemini":  # which writes the path in itself
            command = command.replace("${extensionPath}", str(ROOT))
        given = {
            "PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
            "CLAUDE_CODE_SESSION_ID": "0b1c-2d3e", "GEMINI_SESSION_ID": "0b1c-2d3e",
            variable.strip("${}"): str(plugins / folder), **env,
        }  # fmt: skip
        return subprocess.run(
            [SHELL, "-c", command], cwd=cwd, env=given, input=b"{}", capture_output=True, timeout=30
        )

    return line


@pytest.mark.parametrize("client", CALLED)
def test_a_plugin_does_nothing_where_setup_has_installed_its_hooks(
    client: str, run: Run, repo: Path, home: Path, tmp_path: Path
) -> None:
    """In the project, for the user, or in the main worktree: the client runs both, and a message is for one of them.

    What counts is that the client's settings run them: a file of that name may be anybody's.
    """
    asked = f"hook {client} {CALLED[client]}\n".encode()
    assert run(client).stdout == asked
    deep = repo / "a" / "b"
    deep.mkdir(parents=True)
    base = CLIENTS[client].base
    moved = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}.get(client)
    places = [
        (repo / base, {}),
        (home / base, {}),
        *([(tmp_path / "moved", {moved: str(tmp_path / "moved")})] if moved else []),
    ]
    one = CLIENTS[client]
    files = [one.settings, *(["settings.local.json"] if client == "claude-code" else [])]
    for (folder, env), scope, file, name in zip(
        places, ("project", "user", "user"), [*files, *files * 2], [*client_scope.SCRIPTS, client_scope.SCRIPTS[0]], strict=False
    ):  # fmt: skip
        script, settings = folder / "hooks" / name, folder / file
        script.parent.mkdir(parents=True)
        script.touch()
        assert run(client, **env).stdout == asked, "a file that nothing names"
        hook = one.entries(scope, f'"{folder}/hooks/{name}"', b"")[0].value
        settings.write_text(json.dumps({"note": f"hooks/{name} of gitmem", "hooks": {}}, indent=2))
        assert run(client, **env).stdout == asked, "settings that do not run it"
        for indent in (2, None):
            settings.write_text(json.dumps({"hooks": {CALLED[client]: [hook]}}, indent=indent))
            for cwd in (repo, deep):
                done = run(client, cwd, **env)
                assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), (folder, cwd)
        script.unlink()
        assert run(client, **env).stdout == asked


@pytest.mark.parametrize("client", CALLED)
def test_without_gitmem_a_plugin_says_nothing_and_stops_nobody(client: str, run: Run, repo: Path) -> None:
    """Nor where the plugin is half removed, or this is no repository of gitmem."""
    Path(os.environ["XDG_STATE_HOME"], "program of the test").unlink()
    for env in ({}, {compile_plugins.FOLDERS[client][1].strip("${}"): "/nowhere"}):
        done = run(client, PATH=WITHOUT, **env)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = run(client, repo.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_hooks_for_pre_commit_stop_what_those_of_setup_stop(repo: Path, tmp_path: Path) -> None:
    """Once, where both are installed; without gitmem one sentence says that nothing was checked."""
    listed = {each["id"]: each for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert set(listed) == {"gitmem-pre-push", "gitmem-pre-commit"}
    claims = repo / ".git" / "gitmem" / "claims"
    claims.mkdir(parents=True)
    (claims / "claimed").touch()
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gitmem").write_text('#!/bin/sh\necho "$@"\nexit 1\n')
    (programs / "gitmem").chmod(0o755)
    for name in (git_hook.PRE_PUSH, git_hook.PRE_COMMIT):
        one = listed[f"gitmem-{name}"]
        assert (one["stages"], one["pass_filenames"], one["always_run"]) == ([name], False, True)

        def hook(path: str, entry: str = one["entry"]) -> tuple[int, str]:
            env = {"PATH": path, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
            words = [SHELL, str(ROOT / entry)]
            done = subprocess.run(words, cwd=repo, env=env, capture_output=True, text=True, timeout=30)
            assert done.stdout == ""
            return done.returncode, done.stderr

        usual = os.environ["PATH"]
        assert hook(f"{programs}:{usual}") == (1, f"gate --hook {name}\n")
        status, said = hook(WITHOUT)
        assert status == 0 and said.startswith("gitmem: no gitmem program found") and said.count("\n") == 1
        installed = repo / ".git" / "gitmem" / git_hook.FOLDER / name
        installed.parent.mkdir(exist_ok=True)
        installed.touch()
        assert hook(f"{programs}:{usual}") == (0, "")
