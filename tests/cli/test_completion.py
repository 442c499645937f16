"""Shells complete the commands and options that there are, by the script that `gitmem completion` prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Run

ROOT = Path(__file__).resolve().parents[2]
Complete = Callable[[str], list[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `gitmem` is an installed program."""
    program = tmp_path / "programs" / "gitmem"
    program.parent.mkdir()
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.main import main; sys.exit(main())"
    program.write_text(f"#!{sys.executable} -P\n{code}\n")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def output_of(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("gitmem sig", ["signal"]),
        ("gitmem mem cr", ["create"]),
        ("gitmem inbox --li", ["--limit"]),
        ("gitmem mem create --lif", ["--lifecycle"]),
        ("gitmem -C sub ros", ["roster"]),
        ("gitmem upk", [""]),
    ],
)
def test_bash_completes_commands_and_options(
    line: str, completed: list[str], environment: dict[str, str]
) -> None:
    """As bash does at a TAB: it calls the function that the script registers. Hidden commands are not offered."""
    words = line.split()
    script = (
        'eval "$(gitmem completion bash)"; complete -p gitmem | grep -q -- "-F _gitmem_completion gitmem" || exit 1; '
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _gitmem_completion gitmem {words[-1]}; "
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )

    assert output_of(["bash", "--norc", "-c", script], environment).splitlines() == completed


@pytest.mark.parametrize(
    ("shell", "answer"), [("zsh", '_arguments \'*: :(("create":'), ("fish", "create\tRecord a finding")]
)
def test_zsh_and_fish_get_their_form(shell: str, answer: str, environment: dict[str, str]) -> None:
    """The variables are those that their scripts set."""
    asked = {
        "_GITMEM_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "gitmem mem cr",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    script = output_of(["gitmem", "completion", shell], environment)
    assert f"=complete_{shell}" in script and "_TYPER_COMPLETE_ARGS=" in script

    assert output_of(["gitmem"], {**environment, **asked}).startswith(answer)


def test_another_shell_is_refused_with_those_that_work(run: Run) -> None:
    """And nothing is printed that a start-up file would run."""
    said = run("completion", "tcsh")

    assert (said.status, said.out) == (2, "")
    assert "choose from bash, zsh, fish" in said.err


def test_in_json_the_script_is_a_text(run: Run) -> None:
    """With the line for the start-up file as the next command."""
    said = run("completion", "bash", "--json").json

    assert said["script"].startswith("_gitmem_completion()")
    assert said["next"] == ['eval "$(gitmem completion bash)"']
