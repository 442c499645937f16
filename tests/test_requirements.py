"""The pages of requirements: each requirement has a test that names it, or a decision that says why not."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"R": ("roles-requirements.md", 37), "I": ("invocation-requirements.md", 39)}
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
DECISION = re.compile(r"\]\((decisions/\d{4}-[\w-]+\.md)\)")


def rows(letter: str) -> dict[int, tuple[str, str, str]]:
    """Requirement number → its sentence, its source, and what proves it."""
    found: dict[int, tuple[str, str, str]] = {}
    page = ROOT / "docs" / PAGES[letter][0]
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [each.strip() for each in line.strip("| ").split(" | ")]
        if re.fullmatch(rf"{letter}\d+", cells[0]):
            assert len(cells) == 4 and int(cells[0][1:]) not in found, line
            found[int(cells[0][1:])] = (cells[1], cells[2], cells[3])
    return found


@functools.cache
def functions_of(path: str) -> list[ast.FunctionDef]:
    """Return all functions of a test file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]


def named(path: str, name: str, letter: str) -> set[int]:
    """The requirements that a test names in its name (`test_r17_…`) or its docstring; `I20 to I25` names six."""
    functions = [each for each in functions_of(path) if each.name == name]
    assert functions, f"{path} has no {name}"
    text = f"{name.upper().replace('_', ' ')} {ast.get_docstring(functions[0]) or ''}"
    found = {int(number) for number in re.findall(rf"\b{letter}(\d+)\b", text)}
    for first, last in re.findall(rf"\b{letter}(\d+) TO {letter}(\d+)\b", text):
        found.update(range(int(first), int(last) + 1))
    return found


@pytest.mark.parametrize("letter", PAGES)
def test_each_requirement_has_a_test_that_names_it_or_a_decision(letter: str) -> None:
    """A test that was renamed, removed or that is about something else is no proof."""
    page, last = PAGES[letter]
    assert [*rows(letter)] == [*range(1, last + 1)]
    for number, (sentence, source, proof) in rows(letter).items():
        tests, decisions = TEST.findall(proof), DECISION.findall(proof)
        assert sentence and source and (tests or decisions), f"{letter}{number} has no test and no decision"
        for path, name in tests:
            assert number in named(path, name, letter), f"{path}::{name} does not name {letter}{number}"
        for path in decisions:
            assert (ROOT / "docs" / path).exists(), f"{page}: {letter}{number} names {path}"
