"""The libraries of the page are those that the manifest pins, with their licences, and nothing else lies beside them."""

from __future__ import annotations

import hashlib
import json
import os
import re

import pytest

from gitmem.page.page_file import ASSETS, Assets

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


def test_the_page_uses_each_library_and_no_other_file_is_there() -> None:
    """What nobody uses is not shipped."""
    named = {name for library in LIBRARIES for name in library["files"]}
    assert set(os.listdir(VENDOR)) == {*named, "manifest.json"}
    with open(f"{ASSETS}/page.html", encoding="utf-8") as file:
        template = file.read()
    used = set(re.findall(r"<!-- (?:script|style) vendor/([\w.]+) -->", template))
    assert used == {name for name in named if not name.endswith(".LICENSE")}
    own = set(re.findall(r"<!-- (?:script|style) ([\w.]+) -->", template))
    assert own == {name for name in os.listdir(ASSETS) if name.endswith((".js", ".css"))}


def test_the_page_without_data_is_small_enough() -> None:
    """The rest of 4 MB is for ten thousand signals."""
    assert len(Assets().page(None)) < 1_100_000
