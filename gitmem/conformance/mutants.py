"""Mutants of the reference, buses that break one sentence of the contract each: `--adapter gitmem.conformance.mutants:NAME`.

`mutants.txt` has them: below the case that has to catch it the name of each, and what it takes out of the source of
`reference.py` or `reference_lines.py` and puts in its place.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
from collections.abc import Iterable
from importlib.abc import InspectLoader
from pathlib import Path
from typing import Any

from ..outcome import Struct
from . import reference, reference_lines
from .adapter import Factory


class Change(Struct):
    """Lines of the source, and those in their place; none if they are left out."""

    old: list[str] = []
    new: list[str] = []


class Mutant(Struct):
    """A mutant.

    Attributes:
        case: The name of the case that has to fail; the sentence that it quotes is the one that the mutant breaks.
    """

    name: str
    case: str
    changes: list[Change] = []


def read(lines: Iterable[str]) -> dict[str, Mutant]:
    """Return the mutants of `mutants.txt` by their names."""
    found: dict[str, Mutant] = {}
    case, mutant = "", Mutant("", "")
    for line in lines:
        mark, text = line[:6], line[6:]
        if mark == "    - ":
            if not mutant.changes or mutant.changes[-1].new:
                mutant.changes.append(Change())
            mutant.changes[-1].old.append(text)
        elif mark == "    + ":
            mutant.changes[-1].new.append(text)
        elif line.startswith("  "):
            mutant = Mutant(line.strip(), case)
            if mutant.name in found:
                raise ValueError(
                    f"mutants.txt has two mutants with the name {mutant.name}; each needs its own."
                )
            found[mutant.name] = mutant
        elif line and not line.startswith("#"):
            case = line
    return found


MUTANTS = read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines())


class _Changed(InspectLoader):
    """Loads a module from a text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_source(self, fullname: str) -> str:
        return self.text


@functools.cache
def bus_of(mutant: Mutant) -> Factory:
    """Return the class of a mutant.

    Raises:
        ValueError: The source has what the mutant takes out not at all, or several times.
    """
    changes = [("\n".join(each.old), "\n".join(each.new)) for each in mutant.changes]
    module = reference if changes[0][0] in inspect.getsource(reference) else reference_lines
    text = inspect.getsource(module)
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{mutant.name} takes out what must be in {module.__name__} once: {old}")
        text = text.replace(old, new)
    loader = _Changed(text)
    spec = importlib.util.spec_from_loader(module.__name__, loader)
    assert spec is not None
    made: Any = importlib.util.module_from_spec(spec)
    loader.exec_module(made)
    bases = (made.Reference,) if module is reference else (made.SignedLines, reference.Reference)
    bus: Any = type(mutant.name, bases, {})
    return bus  # type: ignore[no-any-return]


def __getattr__(name: str) -> Factory:
    if name not in MUTANTS:
        raise AttributeError(f"Unknown mutant: {name}; gitmem/conformance/mutants.txt has the names")
    return bus_of(MUTANTS[name])
