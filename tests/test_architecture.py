"""The declared order of packages: each imports only those before it, and no two modules import each other.

Imports inside functions and imports for types count as well.
"""

from __future__ import annotations

import functools

import pytest

from tests.test_house import fits, is_ours, modules

# From the lowest to the highest. `docs/ARCHITECTURE.md` says what each is responsible for.
ORDER = (
    "gitmem.outcome",
    "gitmem.text",
    "gitmem.errors",
    "gitmem.repo",
    "gitmem.local_files",
    "gitmem.settings",
    "gitmem.records",
    "gitmem.git",
    "gitmem.log",
    "gitmem.order",
    "gitmem.index",
    "gitmem.trust",
    "gitmem.commit_message",
    "gitmem.commit_process",
    "gitmem.store",
    "gitmem.sync",
    "gitmem.agents",
    "gitmem.signals",
    "gitmem.memory",
    "gitmem.work",
    "gitmem.calls",
    "gitmem.history",
    "gitmem.page",
    "gitmem.views",
    "gitmem.open_store",
    "gitmem.importers",
    "gitmem.clients",
    "gitmem.doctor",
    "gitmem.api",
    "gitmem",
    "gitmem.conformance",
    "merge_driver",
    "cli",
)
# What a package must not know although it comes later in the order.
NOT: dict[str, tuple[str, ...]] = {
    "gitmem.git": ("gitmem.records",),
    "gitmem.log": ("gitmem.records",),  # the log does not interpret what it carries
    "gitmem.index": ("gitmem.records",),  # the reader of lines is handed in
    "merge_driver": tuple(each for each in ORDER if each.startswith("gitmem.") and each not in
                          ("gitmem.git", "gitmem.log", "gitmem.text", "gitmem.errors", "gitmem.repo", "gitmem.local_files", "gitmem.settings")),  # git starts it for each file
}  # fmt: skip


def rank(name: str) -> int:
    """Return the place in `ORDER` of the longest entry that a module belongs to."""
    return max((len(each), place) for place, each in enumerate(ORDER) if fits(name, (each,)))[1]


@functools.cache
def imports() -> dict[str, set[str]]:
    """Return what each module imports of ours."""
    return {
        name: {each for each in module.imports() if is_ours(each) and each not in ("gitmem", name)}
        for name, module in modules().items()
    }


def test_a_package_imports_only_those_before_it() -> None:
    """An import against the order makes two packages one."""
    wrong = {
        f"{name} -> {each}" for name, found in imports().items() for each in found if rank(each) > rank(name)
    }
    assert not wrong


@pytest.mark.parametrize("package", NOT)
def test_a_package_does_not_know_what_it_must_not(package: str) -> None:
    """Being later in the order is not enough."""
    wrong = {
        f"{name} -> {each}"
        for name, found in imports().items()
        if fits(name, (package,))
        for each in found
        if fits(each, NOT[package])
    }
    assert not wrong


def test_no_modules_import_each_other() -> None:
    """Modules that import each other, in however many steps, can only be understood together."""
    left = {name: set(found) for name, found in imports().items()}
    while True:
        free = {name for name, found in left.items() if not found}
        if not free:
            break
        left = {name: found - free for name, found in left.items() if name not in free}
    while True:  # what is imported by nobody in a cycle is not part of one
        used = set().union(*left.values()) if left else set()
        if used >= left.keys():
            break
        left = {name: found for name, found in left.items() if name in used}
    assert not sorted(left)
