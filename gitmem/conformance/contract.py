"""The sentences of the contract. The docstring of each case begins with the sentence that it checks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TypeVar

# Group → its subject, and the module with its cases.
GROUPS = {
    "visibility": ("who sees which signal", "gitmem.conformance.test_visibility"),
    "routing": ("to whom a signal goes, and in which thread", "gitmem.conformance.test_routing"),
    "fields": ("what a signal carries", "gitmem.conformance.test_fields"),
    "roles": ("who does which part of the work", "gitmem.conformance.test_roles"),
    "tasks": ("what is asked of whom, who does it, and how it ends", "gitmem.conformance.test_tasks"),
    "claims": ("who changes what", "gitmem.conformance.test_claims"),
    "receipt": ("who has read a signal, and who has accepted it", "gitmem.conformance.test_receipt"),
    "convergence": ("whether all recipients agree", "gitmem.conformance.test_convergence"),
}
# A2A.V1: published; gitmem: gitmem's decisions where A2A.V1 has no rule.
SOURCES = ("A2A.V1", "gitmem")
_QUOTE = re.compile(rf"({'|'.join(map(re.escape, SOURCES))}): “(.+?)”", re.DOTALL)


F = TypeVar("F", bound=Callable[..., object])


def needs(*optional: str) -> Callable[[F], F]:
    """Return a decorator that notes which optional methods a case needs."""

    def note(case: F) -> F:
        vars(case)["needs"] = optional
        return case

    return note


def needed(case: Callable[..., object]) -> Sequence[str]:
    """Return the names from `adapter.OPTIONAL` that a case needs."""
    found: Sequence[str] = vars(case).get("needs", ())
    return found


class Case:
    """One case: its group, its name, its sentence, and the source of the sentence."""

    def __init__(self, group: str, name: str, function: Callable[..., object]) -> None:
        found = _QUOTE.match(inspect.getdoc(function) or "")
        if found is None:
            raise ValueError(f"{name} does not quote a sentence of the contract")
        self.group = group
        self.name = name
        self.source = found[1]
        self.sentence = " ".join(found[2].split())


def cases() -> Iterator[Case]:
    """Yield every case, in the order of the sources."""
    for group, (_, module) in GROUPS.items():
        for name, value in vars(import_module(module)).items():
            if name.startswith("test_"):
                yield Case(group, name.removeprefix("test_"), value)


def lines() -> Iterator[str]:
    """Yield the contract as lines of Markdown, for the terminal and for docs/conformance.md."""
    for group, (about, _) in GROUPS.items():
        yield f"### {group}: {about}"
        yield ""
        yield from (
            f"- `{case.name}` ({case.source}): {case.sentence}" for case in cases() if case.group == group
        )
        yield ""
