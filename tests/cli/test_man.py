"""The man page and the reference have what the help has, and man can read the first."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from cli.parser_table import COMMANDS
from tools import compile_reference

ROOT = Path(__file__).resolve().parents[2]
SOURCE = compile_reference.MAN.read_text(encoding="utf-8")
HIDDEN = {"background", "whoami"}


def test_every_command_and_option_is_on_the_page() -> None:
    """Except for those that `--help` hides."""
    plain = SOURCE.replace(r"\-", "-")
    sections = dict(
        re.findall(r'^\.SS "gitmem ((?:[a-z0-9-]+ ?)+)[^\n]*\n(.*?)(?=^\.S)', plain, re.MULTILINE | re.DOTALL)
    )
    sections = {path.strip(): said for path, said in sections.items()}

    assert {path for path in COMMANDS if path not in HIDDEN} == set(sections)
    for path, said in sections.items():
        for option in re.findall(r"(?<= )--[a-z-]+", COMMANDS[path]):
            assert option in said or (path, option) == ("background", "autosync"), (path, option)


def test_the_wheel_installs_the_page() -> None:
    """For `man gitmem`."""
    files = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "data-files"
    ]

    assert files == {"share/man/man1": ["docs/man/gitmem.1"]}


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff")
def test_roff_has_no_complaints() -> None:
    """Dots, quotes and backslashes of the help are plain text on the page."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-K", "utf8", compile_reference.MAN],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stderr == ""
    assert "Record a finding" in " ".join(done.stdout.split())


def test_what_roff_would_obey_is_text() -> None:
    """roff does not run a line of the help that begins with a dot as a request."""
    assert compile_reference.roff(".TH x") == r"\&.TH x"
    assert compile_reference.roff("'so /etc/passwd") == r"\&'so /etc/passwd"
    assert compile_reference.roff("a\\fB -x `b`") == r"a\efB \-x \fBb\fR"
