"""docs/page-data.md has every field of the page's data."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("gitmem/page/contract.py", "gitmem/page/contract.py", "gitmem/history/figures.py")
TYPES = ("TypedDict", "Statistics", "Spread", "DayFigures")


def test_every_field_is_documented_and_no_other() -> None:
    """Those that may be missing have a question mark."""
    import ast

    declared: set[tuple[str, bool]] = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse((ROOT / source).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any(
                ast.unparse(base) == "TypedDict" for base in node.bases
            ):
                declared |= {
                    (each.target.id, "NotRequired" in ast.unparse(each.annotation))
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                }
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "TypedDict":
                fields = node.args[1]
                assert isinstance(fields, ast.Dict)
                declared |= {
                    (str(key.value), "NotRequired" in ast.unparse(value))
                    for key, value in zip(fields.keys, fields.values, strict=True)
                    if isinstance(key, ast.Constant)
                }
    page = (ROOT / "docs/page-data.md").read_text(encoding="utf-8")
    cells = [row.rpartition(" | ")[2] for row in page.splitlines() if row.startswith("| ")]
    shown = {(name, mark == "?") for cell in cells for name, mark in re.findall(r"`(\w+)`(\??)", cell)}

    assert shown == declared
