"""What status and doctor say of hooks: whole, old, in part, broken, not trusted, without a program."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from gitmem.clients import hook_state, install
from gitmem.clients.client_scope import ClientScope
from gitmem.clients.clients import CLIENTS, PROJECT, USER, ClientFolders
from gitmem.doctor import doctor
from tests.clients.hooks.client_folders import at


@pytest.fixture
def folders(repo: Path, tmp_path: Path) -> ClientFolders:
    program = tmp_path / "gitmem"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = at(repo, tmp_path / "home")
    install.install(found, ["claude-code", "codex"], PROJECT, program=str(program))
    return found


def states(folders: ClientFolders) -> dict[str, str]:
    return {each.client: scope.state for each, scope in install.read_status(folders).installed}


def codes(folders: ClientFolders) -> set[str]:
    """What doctor finds."""
    installed = SimpleNamespace(hooks=lambda: install.read_status(folders))
    check = doctor.Hooks(SimpleNamespace(store=None, installed=installed))  # type: ignore[arg-type]
    return {f"{each.severity} {each.code}" for each in check.check()}


def test_what_is_whole_is_said_to_be(folders: ClientFolders) -> None:
    """Nothing for doctor but that nobody has reviewed them in Codex."""
    found = install.read_status(folders)

    assert states(folders) == {"claude-code": "installed", "codex": "installed"}
    assert found.program_works and found.last_error is None
    assert found.next == ["gitmem hooks test"]
    assert codes(folders) == {"note hooks-untrusted"}


def test_a_missing_script_is_said(folders: ClientFolders, repo: Path) -> None:
    """The settings name a file that is not there."""
    (repo / ".claude" / "hooks" / "signal-received.sh").unlink()

    assert states(folders)["claude-code"] == "incomplete"
    assert "problem hooks-incomplete" in codes(folders)


def test_settings_without_our_entries_are_said(folders: ClientFolders, repo: Path) -> None:
    """The script is there and nobody runs it."""
    (repo / ".claude" / "settings.json").write_text("{}")

    assert states(folders)["claude-code"] == "incomplete"


def test_an_old_script_is_said(folders: ClientFolders, repo: Path) -> None:
    """It works, and is that of another version."""
    script = repo / ".claude" / "hooks" / "signal-received.sh"
    script.write_text(script.read_text() + "# old\n")

    assert states(folders)["claude-code"] == "outdated"
    assert "note hooks-old" in codes(folders)


def test_broken_settings_are_said(folders: ClientFolders, repo: Path) -> None:
    """With the place in the file."""
    settings = repo / ".claude" / "settings.json"
    settings.write_text(settings.read_text()[:-3])

    found = install.read_status(folders)

    assert states(folders)["claude-code"] == "broken"
    assert any(f"{settings}, line" in scope.problem for _, scope in found.installed)
    assert "problem hooks-broken" in codes(folders)


def test_a_program_that_is_gone_is_said(folders: ClientFolders, tmp_path: Path) -> None:
    """Neither the one that was noted nor one on the PATH."""
    (tmp_path / "gitmem").unlink()

    assert not install.read_status(folders).program_works
    assert "problem hooks-program" in codes(folders)
    folders.programs["gitmem"] = "/usr/bin/gitmem"
    assert "problem hooks-program" not in codes(folders)


def test_the_last_trouble_is_said(folders: ClientFolders) -> None:
    """A hook is silent; here it is told."""
    hook_state.note_error(folders.state, 1_793_000_000_000_000, "codex Stop", "the disk is full")

    found = install.read_status(folders)

    assert found.last_error is not None and "the disk is full" in found.last_error
    assert "note hooks-error" in codes(folders)


def review(folders: ClientFolders, scope: str, *, trust: str | None = None) -> None:
    """What Codex writes when its user has reviewed every hook."""
    client = CLIENTS["codex"]
    base = folders.base(client, scope)
    folder = folders.base(client, USER)
    assert base is not None and folder is not None
    target = ClientScope(client, scope, folders, base)
    assert target.settings is not None
    digests = {each.command: install.digest(each) for each in target.wanted(False)}
    names = {"PostToolUse": "post_tool_use", "UserPromptSubmit": "user_prompt_submit", "SessionStart": "session_start",
             "Stop": "stop", "SessionEnd": "session_end", "PreCompact": "pre_compact", "SubagentStop": "subagent_stop",
             "PreToolUse": "pre_tool_use"}  # fmt: skip
    lines = [f'[projects."{folders.worktree}"]\ntrust_level = "{trust}"\n'] if trust else []
    for each in target.settings.ours():
        key = f"{target.settings.path}:{names[each.event]}:{each.group}:{each.handler}"
        lines.append(f'[hooks.state."{key}"]\ntrusted_hash = "{digests[each.command]}"\n')
    Path(folder).mkdir(exist_ok=True)
    Path(folder, "config.toml").write_text("\n".join(lines))


def trust(folders: ClientFolders, scope: str) -> str | None:
    found = [each for client, each in install.read_status(folders).installed if client.client == "codex"]
    return next(each.trust for each in found if each.scope == scope)


def test_codex_trusts_what_its_user_has_reviewed(folders: ClientFolders) -> None:
    """By place and digest; in a project only where the project is trusted."""
    install.install(folders, ["codex"], USER, program=None)
    assert (trust(folders, PROJECT), trust(folders, USER)) == ("untrusted", "untrusted")

    review(folders, USER)
    assert trust(folders, USER) == "trusted"
    review(folders, PROJECT)
    assert trust(folders, PROJECT) == "untrusted"
    review(folders, PROJECT, trust="trusted")
    assert trust(folders, PROJECT) == "trusted"


def test_codex_does_not_trust_what_has_changed(folders: ClientFolders, tmp_path: Path) -> None:
    """Or what it can't be asked about."""
    install.install(folders, ["codex"], USER, program=None)
    review(folders, USER)
    config = tmp_path / "home" / ".codex" / "config.toml"
    config.write_text(config.read_text().replace("sha256:", "sha256:0", 1))
    assert trust(folders, USER) == "changed"

    config.write_text("[broken")
    assert trust(folders, USER) == "unknown"


def test_codex_in_a_linked_worktree_reads_the_main_one(
    folders: ClientFolders, repo: Path, tmp_path: Path
) -> None:
    """What is installed in the linked one alone is never run."""
    other = tmp_path / "other"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(other)], cwd=repo, check=True)
    linked = at(other, tmp_path / "home")
    install.install(linked, ["codex"], PROJECT, program=None)
    review(folders, PROJECT, trust="trusted")
    assert trust(linked, PROJECT) == "trusted"

    install.uninstall(folders, ["codex"], PROJECT)

    assert trust(linked, PROJECT) == "elsewhere"


def test_the_digest_is_the_one_that_codex_shows() -> None:
    """The form that `hooks/list` of Codex 0.169 was seen to hash, computed here by hand."""
    import hashlib

    entries = CLIENTS["codex"].entries(USER, "x", b"", wake=False)
    (entry,) = (each for each in entries if each.event == "SessionEnd")
    command = entry.command.replace('"', '\\"')
    hook = f'{{"async":false,"command":"{command}","timeout":3,"type":"command"}}'
    form = f'{{"event_name":"session_end","hooks":[{hook}]}}'

    assert install.digest(entry) == "sha256:" + hashlib.sha256(form.encode()).hexdigest()
