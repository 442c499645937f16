"""Rules for every module: what starting up may import, and how long things get. Its order: `test_architecture`."""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOUSES = ("gitmem", "cli", "merge_driver")
FUNCTION_LINES_MAX = 70
# How many modules of each package have statements of SQL; lower it whenever there are fewer.
SQL_MAX = {"gitmem": 1, "agents": 6, "conformance": 1, "doctor": 2, "history": 2, "importers": 1, "index": 7, "memory": 5,
           "page": 1, "signals": 1, "trust": 2, "work": 4}  # fmt: skip
SQL = re.compile(
    r"\b(SELECT .|INSERT (OR \w+ )?INTO |DELETE FROM |UPDATE \w+ SET |CREATE (TEMP )?(TABLE|INDEX|VIEW) )"
)
MAY_IMPORT_A2A = (
    "gitmem.calls.a2a_grpc", "gitmem.calls.a2a_remote", "gitmem.calls.a2a_server", "gitmem.calls.a2a_tasks",
    "gitmem.calls.http_guard",
    "gitmem.calls.push", "gitmem.page.live_page",
)  # fmt: skip
PATCHES_MAX = 60  # of our own names by tests; lower it whenever there are fewer

# What starting up may import beside ourselves: built in, or a millisecond at most.
LIGHT = {
    "__future__",
    "os",
    "stat",  # `os` imports it
    "sys",
    "time",
    "errno",
    "gc",
    "_json",
    "json.encoder",
    "_sqlite3",
    "_sha2",
    "_sha256",
    "fcntl",
}
STARTS = ("cli.main", "cli.commands.signals", "gitmem.signals.empty_inbox", "merge_driver.main")
ENTRIES = {"cli.main", "cli.__main__", "merge_driver.main",
           "gitmem.conformance.entry", "gitmem.conformance.plugin",  # pytest loads them
           "gitmem.conformance.command_line", "gitmem.conformance.over_http",
           "gitmem.conformance.mutants", "gitmem.conformance.reference"}  # `--adapter` names them  # fmt: skip


class Module:
    """A source file: its dotted name, its tree, and the modules that it imports."""

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = path.relative_to(ROOT).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @functools.cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its tree."""
        return list(ast.walk(self.tree))

    def imports(self, *, at_top: bool = False) -> Iterator[str]:
        """What it imports; `at_top`, only what runs when it is imported."""
        nodes = _run_on_import(self.tree.body) if at_top else self.nodes
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node)
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    yield inner if inner in NAMES else base

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        package = package[: len(package) - node.level + 1]
        return ".".join([*package, *([node.module] if node.module else [])])


def _run_on_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _run_on_import(node.orelse)
        elif isinstance(node, ast.Try):
            yield from _run_on_import(node.body)  # the handlers are for other systems
        elif isinstance(node, ast.If | ast.With | ast.ClassDef):
            yield from _run_on_import(node.body)
        else:
            yield from ast.walk(node)


PATHS = sorted(path for house in HOUSES for path in (ROOT / house).rglob("*.py"))
NAMES = {
    ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    for parts in (path.relative_to(ROOT).with_suffix("").parts for path in PATHS)
}


@functools.cache
def modules() -> dict[str, Module]:
    """Return every module by its dotted name, parsed when the first test asks: collection needs none.

    A million nodes of syntax trees stay: they are left out of every later scan for garbage, which would take two seconds.
    """
    found = {module.name: module for module in map(Module, PATHS)}
    gc.freeze()
    return found


def each_module(rule: Callable[[Module], None]) -> Callable[[], None]:
    """Make one test of a rule for every module: thousands of small ones would take minutes to collect and send around."""

    def test() -> None:
        broken = {}
        for name, module in modules().items():
            try:
                rule(module)
            except AssertionError as error:
                broken[name] = str(error).splitlines()[0]
        assert not broken

    test.__name__, test.__doc__ = rule.__name__, rule.__doc__
    return test


def fits(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def is_ours(name: str) -> bool:
    return fits(name, HOUSES)


@each_module
def test_siblings_are_imported_relatively_where_the_installed_name_differs(module: Module) -> None:
    """`import cli` works in the checkout and breaks installed, where the folder is `gitmem_cli`."""
    absolute = set()
    for node in module.nodes:
        if isinstance(node, ast.Import):
            absolute |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            absolute.add(node.module or "")
    typed = {
        name for name in absolute if module.name == "cli.commands.setup" and fits(name, ("merge_driver",))
    }

    assert {name for name in absolute - typed if fits(name, ("cli", "merge_driver"))} == set()


@pytest.mark.parametrize("start", STARTS)
def test_nothing_heavy_is_imported_at_the_front_door(start: str) -> None:
    """Reading the sources: what runs on import reaches neither third parties nor slow parts of the library."""
    seen: set[str] = set()
    heavy: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name in seen or name not in modules():
            continue
        seen.add(name)
        todo += [".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)]
        for imported in modules()[name].imports(at_top=True):
            if is_ours(imported):
                todo.append(imported)
            elif imported not in LIGHT:
                heavy.add(f"{name} → {imported}")

    assert heavy == set()


@pytest.mark.parametrize("start", STARTS)
def test_nothing_heavy_is_loaded_by_the_front_door(start: str) -> None:
    """Running it: a fresh interpreter has loaded nothing but ours and light modules after the import."""
    code = f"import os, sys; before = set(sys.modules); import {start}; print(*sorted(set(sys.modules) - before))"

    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert {name for name in done.stdout.split() if not is_ours(name)} <= LIGHT


@pytest.mark.parametrize("room", ["errors", "repo", "log.local_log", "index.index_file", "signals.send",
                                  "signals.inbox", "store", "git.plumbing", "records",
                                  "trust.keys"])  # fmt: skip
def test_what_a_write_imports_is_free_of_third_parties(room: str) -> None:
    """A signal is recorded without cryptography, pydantic, dulwich, typer, rapidfuzz and without the slow modules of Python."""
    slow = {"cryptography", "pydantic", "pydantic_core", "dulwich", "typer", "rapidfuzz", "filelock", "dataclasses", "pathlib",
            "logging", "typing", "importlib.metadata", "secrets", "tempfile", "argparse"}  # fmt: skip
    code = f"import sys; import gitmem.{room}; print(*sorted(sys.modules))"

    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert set(done.stdout.split()) & slow == set()


@each_module
def test_only_the_screen_imports_textual(module: Module) -> None:
    """Its packages come with the extra `top` alone."""
    found = {name.partition(".")[0] for name in module.imports()} & {"textual", "rich"}

    assert not found or fits(module.name, ("cli.top",))


@each_module
def test_functions_are_short(module: Module) -> None:
    """Seventy lines can be read at once."""
    functions = [node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    long = [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX]

    assert long == []


def test_no_module_is_forgotten() -> None:
    """Every module is imported by another one, named in a table of modules, or an entry."""
    used: set[str] = set()
    for module in modules().values():
        used |= {name for name in module.imports() if name != module.name}
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 80:
                named = node.value.partition(":")[0]
                used |= {named, f"gitmem.{named}", f"cli.commands.{named}", f"merge_driver{named}"}
    complete = {name for name, module in modules().items() if not module.is_package}

    assert complete - used - ENTRIES == set()


@each_module
def test_the_library_never_prints(module: Module) -> None:
    """Only `cli/render` writes to standard output."""
    if fits(module.name, ("cli.render",)):
        return
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            assert any(keyword.arg == "file" for keyword in node.keywords), f"line {node.lineno} prints"
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stdout":
            assert module.name == "cli.environment", f"line {node.lineno} reaches for standard output"


@each_module
def test_the_library_never_reads_the_environment(module: Module) -> None:
    """`cli` reads it and passes values in; `gitmem.git` copies it for git, or asks it which files git reads."""
    readers = ("cli", "gitmem.git.processes", "gitmem.git.config", "gitmem.conformance.library")
    if module.name == "merge_driver" or fits(module.name, readers):  # the driver leaves PYTHONPATH out
        return
    words = {"os.environ", "os.environb", "os.getenv", "os.path.expanduser", "Path.home"}

    found = {ast.unparse(node) for node in module.nodes if isinstance(node, ast.Attribute)} & words

    assert found == set()


@each_module
def test_versions_are_not_looked_up_at_import(module: Module) -> None:
    """`importlib.metadata` costs four times an empty Python."""
    assert "importlib.metadata" not in set(module.imports(at_top=True))


@each_module
def test_every_module_says_what_it_is_for(module: Module) -> None:
    """A docstring, and annotations that cost nothing at import."""
    assert ast.get_docstring(module.tree)
    if len(module.tree.body) > 1:
        assert "from __future__ import annotations" in module.text


@each_module
def test_only_the_gateways_packages_import_the_sdk(module: Module) -> None:
    """The A2A SDK takes over a second to import: only the gateway and calls to other servers do, also inside functions."""
    if not module.name.startswith(MAY_IMPORT_A2A):
        assert not [
            name
            for name in module.imports()
            if fits(name, ("a2a", "uvicorn", "starlette", "sse_starlette", "httpx", "google"))
        ]


def test_sql_stands_in_few_modules() -> None:
    """The queries of a noun stand together: a list or a state asks `index.entities`, or the module of its noun."""
    found: dict[str, list[str]] = {}
    for name, module in modules().items():
        texts = {id(node): node.value for node in module.nodes if isinstance(node, ast.Constant)}
        for node in module.nodes:  # docstrings are none
            if isinstance(node, ast.Expr):
                texts.pop(id(node.value), None)
        if any(isinstance(text, str) and SQL.search(text) for text in texts.values()):
            parts = name.split(".")
            found.setdefault(parts[1] if parts[2:] else parts[0], []).append(name)
    more = {room: names for room, names in found.items() if len(names) > SQL_MAX.get(room, 0)}
    assert not more


def test_tests_patch_few_names_of_ours() -> None:
    """A patch follows a private name instead of a promise: pass clocks, limits and runners as values."""
    count = sum(1 for path in (ROOT / "tests").rglob("*.py") for _ in _patches_of_ours(path))

    assert count <= PATCHES_MAX


def _patches_of_ours(path: Path) -> Iterator[ast.Call]:
    """Yield the calls of `setattr` of a fixture or context that replace a name of an imported module or class of ours."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text if ".setattr(" in text else "")
    ours: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or fits(node.module or "", (*HOUSES, "tests"))):
            ours |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            ours |= {
                (a.asname or a.name).split(".")[0] for a in node.names if fits(a.name, (*HOUSES, "tests"))
            }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "setattr"
        ):
            of = node.args[0]
            while isinstance(of, ast.Attribute):
                of = of.value
            if isinstance(of, ast.Constant):  # "package.module.name"
                is_patch = fits(str(of.value), (*HOUSES, "tests"))
            else:
                is_patch = isinstance(of, ast.Starred) or (isinstance(of, ast.Name) and of.id in ours)
            if is_patch:
                yield node


# Modules that handle objects of any form: JSON of other programs, values that are not validated yet, JSON of answers.
ANY_OBJECT = (
    "gitmem.outcome", "gitmem.records", "gitmem.importers", "gitmem.conformance", "gitmem.clients", "cli.hooks",
    "gitmem.memory.sources", "cli.render.output",
    "gitmem.api.memory", "gitmem.memory.edit", "gitmem.memory.edit", "gitmem.api",  # what callers give
    "cli.main", "cli.parser", "cli.commands.memory",  # options of any command
)  # fmt: skip
# And functions: their names end in one of these.
ANY_OBJECT_IN = ("as_json", "metadata", "fields", "error_object", "complete", "with_seen", "line", "relate")


ANY_OBJECTS = ("dict[str, object]", "Mapping[str, object]")


@each_module
def test_records_have_types(module: Module) -> None:
    """Records, answers and rows are TypedDicts or classes: mypy then follows each field from the shell to the line."""
    if fits(module.name, ANY_OBJECT):
        return
    left_out = {
        part
        for node in module.nodes
        if isinstance(node, ast.FunctionDef) and node.name.endswith(ANY_OBJECT_IN)
        for part in ast.walk(node)
    }
    for node in module.nodes:
        if node not in left_out:
            is_loose = isinstance(node, ast.Subscript) and ast.unparse(node) in ANY_OBJECTS
            assert not is_loose, f"line {node.lineno}"
            assert not _is_cast_of_field(node), f"line {node.lineno}: {ast.unparse(node)}"


def _is_cast_of_field(node: ast.AST) -> bool:
    """Return whether this is `str(record["message"])`, or the same with `get`, or of another field or record."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("str", "int") and node.args):
        return False
    found = node.args[0].values[0] if isinstance(node.args[0], ast.BoolOp) else node.args[0]
    names = ("record", "fields", "signal", "entry", "row", "each")
    if isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute) and found.func.attr == "get":
        found = ast.Subscript(found.func.value, found.args[0])
    is_named = isinstance(found, ast.Subscript) and isinstance(getattr(found.slice, "value", None), str)
    return is_named and ast.unparse(found.value).endswith(names)


@functools.cache
def _words() -> set[str]:
    """Return the identifiers of the code and its strings without docstrings, and the names of modules."""
    found = {part for name in NAMES for part in name.split(".")}
    for module in modules().values():
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(re.findall(r"\w+", node.value) if node.value not in _docstrings(module) else ())
            names = (getattr(node, each, None) for each in ("id", "attr", "arg", "name", "module"))
            found.update(part for name in names if isinstance(name, str) for part in name.split("."))
    return found


@functools.cache
def _docstrings(module: Module) -> set[str | None]:
    return {ast.get_docstring(node, clean=False) for node, _ in _documented(module)}


def _documented(module: Module) -> Iterator[tuple[ast.Module | ast.ClassDef | ast.FunctionDef, str]]:
    for node in module.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (doc := ast.get_docstring(node)):
            yield node, doc


@each_module
def test_docstrings_name_what_exists(module: Module) -> None:
    """Entries of `Args:` are parameters; exceptions, calls and dotted paths are somewhere in the code."""
    for node, doc in _documented(module):
        entries = {
            title: re.findall(r"^ {4}\*{0,2}(\w+):", text, re.MULTILINE)
            for title, text in re.findall(r"^(Args|Raises):\n((?:    .*\n?|\n)+)", doc, re.MULTILINE)
        }
        inits = [each for each in getattr(node, "body", []) if getattr(each, "name", "") == "__init__"]
        functions = [node] if isinstance(node, ast.FunctionDef) else inits
        known = {each.arg for f in functions for each in ast.walk(f.args) if isinstance(each, ast.arg)}
        assert set(entries.get("Args", ())) <= known, f"{getattr(node, 'name', '')}: {entries['Args']}"
        named = [*entries.get("Raises", ()), *re.findall(r"`([A-Za-z_]\w*(?:\.\w+)+|[\w.]+(?=\())", doc)]
        for name in named:
            if re.fullmatch(r"gitmem\.[a-z]+[A-Z]\w*", name):
                continue  # a setting of git's
            missing = set(name.split(".")) - _words() - sys.stdlib_module_names - set(dir(builtins))
            assert not missing, f"{getattr(node, 'name', '')}: {name}"


@functools.cache
def _pack() -> dict[str, Any]:
    return tomllib.loads((ROOT / "gitmem/agents/software-delivery.toml").read_text(encoding="utf-8"))


@each_module
def test_no_module_has_the_vocabulary_of_roles(module: Module) -> None:
    """R1: roles, profiles, responsibilities and aliases are data of a pack; code only carries them."""
    pack = _pack()
    names = {*pack["lifecycle_roles"], *pack["alias"]}
    lists = (set(pack["specialty_profiles"]), set(pack["responsibility_kinds"]))
    docs = _docstrings(module)
    texts = {node.value for node in module.nodes
             if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docs}  # fmt: skip
    shown = {
        text for text in texts if {*text.split("/")} & names or {*re.split(r"[\s,|'\"()]+", text)} & names
    }
    assert not shown
    for node in module.nodes:  # their other words are everyday ones: several of them together are the list
        parts = {each.value for each in ast.iter_child_nodes(node)
                 if isinstance(each, ast.Constant) and isinstance(each.value, str)}  # fmt: skip
        assert all(len(parts & each) < 3 for each in lists), f"line {node.lineno}"
