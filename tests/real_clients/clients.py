"""The clients, each as its own documentation says that it is pointed to another model, run once and kept quiet."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.real_clients import wire

RUN_SECONDS = 180


class Client:
    """One client.

    Args:
        name: What gitmem calls it.
        package: Its package on npm, with the version that these tests were written against.
        program: The program that the package brings.
        dialect: What it speaks with its model.
        shell: The tool call that runs a command in its shell.
        edit: The tool call that writes a new file.
        hears_start: Whether its model reads what a hook says when a session begins, as whom its user started it.
        hands_over: Whether it can be kept going at the end of a turn.
        says_end: Whether it tells its hooks that a session is over.
    """

    def __init__(
        self,
        name: str,
        package: str,
        program: str,
        dialect: wire.Dialect,
        shell: Callable[[str], wire.Step],
        edit: Callable[[str], wire.Step],
        *,
        hears_start: bool = True,
        hands_over: bool = True,
        says_end: bool = True,
    ) -> None:
        self.name = name
        self.package = package
        self.program = program
        self.dialect = dialect
        self.shell = shell
        self.edit = edit
        self.hears_start = hears_start
        self.hands_over = hands_over
        self.says_end = says_end

    def variables(self, url: str) -> Mapping[str, str]:
        """What its environment needs: where the model is, and no calls home."""
        raise NotImplementedError

    def prepare(self, program: Path, work: Path, home: Path, env: Mapping[str, str], url: str) -> None:
        """Its settings, and the consent that a person would have given to its questions."""

    def arguments(self, prompt: str) -> Sequence[str]:
        """One turn without a terminal, in which everything is allowed."""
        raise NotImplementedError


def _tool(name: str, argument: str, **more: str) -> Callable[[str], wire.Step]:
    return lambda command: wire.Step(tool=name, arguments={argument: command, **more})


def _patch(path: str) -> wire.Step:
    """The tool of Codex's own models, whose argument is a text and no object."""
    return wire.Step(tool="apply_patch", text=f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch")


def _settle(path: Path, settings: Mapping[str, Any]) -> None:
    """Settings beside those that a file has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, **settings}, indent=2))


class ClaudeCode(Client):
    key = "no key is needed here"

    def variables(self, url: str) -> Mapping[str, str]:
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": self.key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",  # all may be allowed to root too
        }

    def prepare(self, program: Path, work: Path, home: Path, env: Mapping[str, str], url: str) -> None:
        answers = {
            "hasCompletedOnboarding": True,
            "hasSeenAutoDefaultNotice": True,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [self.key[-20:]], "rejected": []},
            "projects": {str(work): {"hasTrustDialogAccepted": True}},
        }
        _settle(home / ".claude.json", answers)
        _settle(home / ".claude" / "settings.json", {"skipDangerousModePermissionPrompt": True})

    def arguments(self, prompt: str) -> Sequence[str]:
        return "-p", "--dangerously-skip-permissions", prompt


class Codex(Client):
    sandbox: Sequence[str] = ("--dangerously-bypass-approvals-and-sandbox",)
    model = "scripted"

    def variables(self, url: str) -> Mapping[str, str]:
        return {"SCRIPTED_KEY": "none"}

    def prepare(self, program: Path, work: Path, home: Path, env: Mapping[str, str], url: str) -> None:
        config = home / ".codex" / "config.toml"
        config.parent.mkdir(exist_ok=True)
        known = config.read_text() if config.exists() else ""
        settings = f"""\
model = "{self.model}"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[feedback]
enabled = false
[projects."{work}"]
trust_level = "trusted"
"""
        settings += "".join(
            re.findall(r"^\[(?:marketplaces|plugins)\..*\n(?:[^\[].*\n)*", known, re.MULTILINE)
        )
        config.write_text(settings)
        for hook in hooks_of_codex(program, work, env):
            line, _, content = hook["currentHash"].partition(
                "/"
            )  # that of a plugin's hook also names what comes with it
            settings += f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{line}"\n'
            settings += f'trusted_content_hash = "{content}"\n' if content else ""
        config.write_text(settings)

    def arguments(self, prompt: str) -> Sequence[str]:
        return "exec", *self.sandbox, prompt


def hooks_of_codex(program: Path, work: Path, env: Mapping[str, str]) -> list[dict[str, Any]]:
    """What its own dialog `/hooks` would show, with the hash that a consent writes down."""
    asked = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(work)]}},
    )
    with subprocess.Popen(
        [program, "app-server"],
        cwd=work,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        for each in asked:
            server.stdin.write(json.dumps(each) + "\n")
        server.stdin.flush()
        try:
            for line in server.stdout:
                said = json.loads(line)
                if said.get("id") == 2:
                    return [hook for each in said["result"]["data"] for hook in each["hooks"]]
        finally:
            server.kill()
    raise AssertionError("codex app-server did not list its hooks")


class Gemini(Client):
    def variables(self, url: str) -> Mapping[str, str]:
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}

    def prepare(self, program: Path, work: Path, home: Path, env: Mapping[str, str], url: str) -> None:
        folder = home / ".gemini"
        _settle(folder / "trustedFolders.json", {str(work): "TRUST_FOLDER"})
        quiet = {
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
        }
        _settle(folder / "settings.json", quiet)

    def arguments(self, prompt: str) -> Sequence[str]:
        return "--yolo", "-m", "gemini-2.5-flash", "-p", prompt  # "auto" asks a model which model


class OpenCode(Client):
    def variables(self, url: str) -> Mapping[str, str]:
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        return {f"OPENCODE_DISABLE_{each}": "1" for each in off}

    def prepare(self, program: Path, work: Path, home: Path, env: Mapping[str, str], url: str) -> None:
        model = {"name": "scripted", "tool_call": True, "limit": {"context": 100_000, "output": 10_000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
            "models": {"scripted": model},
        }
        _settle(
            home / ".config" / "opencode" / "opencode.json",
            {
                "autoupdate": False,
                "share": "disabled",
                "model": "scripted/scripted",
                "small_model": "scripted/scripted",
                "enabled_providers": ["scripted"],
                "permission": {"bash": "allow", "edit": "allow", "doom_loop": "allow"},
                "provider": {"scripted": provider},
            },
        )

    def arguments(self, prompt: str) -> Sequence[str]:
        return "run", prompt


class Copilot(Client):
    def variables(self, url: str) -> Mapping[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_MODEL": "scripted",
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "none",
        }

    def arguments(self, prompt: str) -> Sequence[str]:
        return "--allow-all", "--trust-folder", "-p", prompt


class Cline(Client):
    def variables(self, url: str) -> Mapping[str, str]:
        return {"CLINE_NO_AUTO_UPDATE": "1", "CLINE_TELEMETRY_DISABLED": "1"}

    def prepare(self, program: Path, work: Path, home: Path, env: Mapping[str, str], url: str) -> None:
        chosen = ("-p", "openai-compatible", "-k", "none", "-m", "scripted", "-b", f"{url}/v1")
        subprocess.run(
            [program, "auth", *chosen],
            cwd=work,
            env=env,
            check=True,
            capture_output=True,
            timeout=RUN_SECONDS,
        )

    def arguments(self, prompt: str) -> Sequence[str]:
        return (prompt,)


CLIENTS: Sequence[Client] = (
    ClaudeCode("claude-code", "@anthropic-ai/claude-code@2.1.330", "claude", wire.messages, _tool("Bash", "command"), _tool("Write", "file_path", content="x")),
    Codex("codex", "@openai/codex@0.169.0", "codex", wire.responses, _tool("exec_command", "cmd"), _patch),
    Gemini("gemini", "@google/gemini-cli@0.61.0", "gemini", wire.contents, _tool("run_shell_command", "command"), _tool("write_file", "file_path", content="x")),
    OpenCode(
        "opencode",
        "opencode-ai@1.18.33",
        "opencode",
        wire.completions,
        _tool("bash", "command", description="A command"),
        _tool("write", "filePath", content="x"),
        hands_over=False,
        says_end=False,
    ),
    Copilot(
        "copilot", "@github/copilot@1.0.102", "copilot", wire.completions, _tool("bash", "command", description="A command"),
        _tool("create", "path", file_text="x"),
    ),
    Cline(
        "cline",
        "cline@3.0.65",
        "cline",
        wire.completions,
        lambda command: wire.Step(tool="run_commands", arguments={"commands": [command]}),
        _tool("editor", "path", new_text="x"),
        hears_start=False,
        hands_over=False,
        says_end=False,
    ),
)  # fmt: skip
