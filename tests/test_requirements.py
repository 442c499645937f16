"""docs/roles-requirements.md: each requirement has a test that names it, or a decision that says why not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "roles-requirements.md"
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
DECISION = re.compile(r"\]\((decisions/\d{4}-[\w-]+\.md)\)")
LAST = 37


def rows() -> dict[int, tuple[str, str, str]]:
    """Requirement number → its sentence, its source, and what proves it."""
    found: dict[int, tuple[str, str, str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [each.strip() for each in line.strip("| ").split(" | ")]
        if re.fullmatch(r"R\d+", cells[0]):
            assert len(cells) == 4 and int(cells[0][1:]) not in found, line
            found[int(cells[0][1:])] = (cells[1], cells[2], cells[3])
    return found


def named(path: str, name: str) -> set[int]:
    """The requirements that a test names in its name (`test_r17_…`) or its docstring."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name]
    assert functions, f"{path} has no {name}"
    texts = [name.upper().replace("_", " "), ast.get_docstring(functions[0]) or ""]
    return {int(number) for text in texts for number in re.findall(r"\bR(\d+)\b", text)}


def test_each_requirement_has_a_test_that_names_it_or_a_decision() -> None:
    """A test that was renamed, removed or that is about something else is no proof."""
    assert [*rows()] == [*range(1, LAST + 1)]
    for number, (sentence, source, proof) in rows().items():
        tests, decisions = TEST.findall(proof), DECISION.findall(proof)
        assert sentence and source and (tests or decisions), f"R{number} has no test and no decision"
        for path, name in tests:
            assert number in named(path, name), f"{path}::{name} does not name R{number}"
        for path in decisions:
            assert (PAGE.parent / path).exists(), f"R{number} names {path}"
