"""The libraries of the page are those that the manifest pins, with their licences, and nothing else lies beside them."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from gitmem.page.page_file import ASSETS

VENDOR = f"{ASSETS}/vendor"
with open(f"{VENDOR}/manifest.json", encoding="utf-8") as file:
    LIBRARIES = json.load(file)["libraries"]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda each: each["name"])
def test_the_files_are_those_of_the_manifest(library: dict) -> None:
    """A file that somebody has edited is not what npm has published under this version."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", library["version"])
    assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", library["integrity"])
    assert library["licence"] in ("MIT", "ISC", "BSD-3-Clause", "Apache-2.0")
    for name, about in library["files"].items():
        with open(f"{VENDOR}/{name}", "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == about["sha256"], name
    assert any(name.endswith(".LICENSE") for name in library["files"])
