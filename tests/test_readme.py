"""The README cannot lie: its console blocks are run, and its output is compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
MARK = "@@@@"
STATUS = "= exit status "


def _steps(block: str) -> list[tuple[str, str]]:
    """(command, expected output) of a block."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def _pattern(expected: str) -> str:
    """Output as documented: `…` stands for anything in its line, and alone in a line for any lines."""
    lines = [
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in expected.splitlines()
    ]
    return "".join(lines)


@pytest.fixture
def shell(tmp_path: Path, repo: Path, git):  # type: ignore[no-untyped-def]  # a fixture
    """Runs commands in one shell, in a repository with a remote, a second worktree and two agents."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, module in (("gitmem", "cli"), ("gitmem-merge", "merge_driver")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m {module} "$@"\n')
        program.chmod(0o755)
    shop = tmp_path / "shop"
    repo.rename(shop)
    git("init", "--quiet", "--bare", str(tmp_path / "hub.git"))
    git("remote", "add", "origin", str(tmp_path / "hub.git"), cwd=shop)
    git("push", "--quiet", "origin", "main", cwd=shop)
    git("worktree", "add", "--quiet", str(tmp_path / "prices"), cwd=shop)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "GITMEM_MERGE": str(programs / "gitmem-merge"),
    }

    def run(commands: list[str]) -> list[str]:
        script = "".join(f"echo {MARK}\n{command}\necho {STATUS}$?\n" for command in commands)
        done = subprocess.run(
            ["bash", "-c", script], cwd=shop, env=environment, capture_output=True, text=True, timeout=120
        )
        assert "Traceback" not in done.stderr, done.stderr
        outputs = done.stdout.split(f"{MARK}\n")[1:]
        assert len(outputs) == len(commands), done.stderr
        for number, command in enumerate(commands):
            # Readers type more slowly than a commit takes; here every command commits at once.
            outputs[number] = re.sub(r"· commit [0-9a-f]{12}", "· recorded", outputs[number])
            outputs[number], status = outputs[number].rsplit(STATUS, 1)
            assert status == "0\n", f"$ {command}\n{outputs[number]}"
        if len(commands) == 1:
            outputs = [outputs[0] + done.stderr]
        return outputs

    run(["gitmem session start --name Planck --agent-identity claude:architect:shop"])
    run(["cd ../prices && gitmem session start --name Curie --agent-identity codex:implementer:prices"])
    return run


def _runs_alone(block: str) -> bool:
    return ".venv" in block


def test_the_blocks_after_the_set_up_do_what_they_show(shell) -> None:  # type: ignore[no-untyped-def]  # a fixture
    """Every command is run in the order of the page, and prints what the page says."""
    steps = [step for block in BLOCKS if not _runs_alone(block) for step in _steps(block)]
    commands = [f"{{ {command}\n}} 2>&1" if "eval" not in command else command for command, _ in steps]

    outputs = shell(commands)

    for (command, expected), output in zip(steps, outputs, strict=True):
        assert re.fullmatch(_pattern(expected), output), f"$ {command}\n{output}"


def test_the_two_set_up_commands_are_two() -> None:
    """One runs the demo, one the tests, and each makes its own environment."""
    alone = [block for block in BLOCKS if _runs_alone(block)]

    assert [len(_steps(block)) for block in alone] == [1, 1]
    assert "gitmem demo" in alone[0]
    assert "pytest" in alone[1]


def test_every_command_is_on_the_page(shell) -> None:  # type: ignore[no-untyped-def]  # a fixture
    """A command that `--help` lists is in the table."""
    (listed,) = shell(["gitmem --help"])
    commands = re.findall(r"^  ([a-z]+) {2,}", listed.split("Commands:")[1], re.MULTILINE)

    assert [command for command in commands if f"`gitmem {command}`" not in README] == []


def test_the_python_block_runs(shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]  # a fixture
    """The library does what the page shows."""
    (block,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path / "shop")

    exec(compile(block, "README.md", "exec"), {})
