"""What is built is what lies in the folders."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import gitmem
from gitmem.clients.managed_files import installed_content

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(TEXT)
FOLDERS = {"gitmem": "gitmem", "cli": "gitmem_cli", "merge_driver": "gitmem_merge_driver"}


def test_every_folder_of_code_is_a_package_of_the_wheel() -> None:
    """The list is written by hand: a forgotten folder would be missing from the wheel."""
    # These have no modules, but what install writes, and what pages consist of.
    on_disk = {"gitmem.clients.files", "gitmem.page.assets", "gitmem.page.assets.vendor"}
    for folder, installed in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            inner = path.parent.relative_to(ROOT / folder).parts
            on_disk.add(".".join([installed, *inner]))

    assert set(PROJECT["tool"]["setuptools"]["packages"]) == on_disk


def test_the_folders_are_mapped_to_names_that_are_ours_alone() -> None:
    """`cli` and `merge_driver` are too common for site-packages."""
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {
        installed: folder for folder, installed in FOLDERS.items()
    }


def test_every_dependency_has_its_reason_on_the_line() -> None:
    """Whoever adds one says what for."""
    listed = [*PROJECT["project"]["dependencies"]]
    for group in [
        *PROJECT["project"]["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]:
        listed += [each for each in group if isinstance(each, str)]

    for each in listed:
        line = next(line for line in TEXT.splitlines() if f'"{each}"' in line)
        assert re.search(r"#\s*\S+", line.partition(f'"{each}"')[2]), f"no reason for {each}"


def test_every_lint_exception_has_its_reason() -> None:
    """An ignored rule without a reason is a rule that nobody wanted."""
    ignored = PROJECT["tool"]["ruff"]["lint"]["ignore"]

    bare = [rule for rule in ignored if not re.search(rf'"{rule}",\s*#\s*\S', TEXT)]

    assert bare == []


def test_the_scripts_exist() -> None:
    """Each console script names a module of the wheel and a function in it."""
    back = {installed: folder for folder, installed in FOLDERS.items()}
    for target in PROJECT["project"]["scripts"].values():
        module, _, function = target.partition(":")
        package, _, rest = module.partition(".")
        path = ROOT / back[package] / f"{rest.replace('.', '/')}.py"
        assert f"\ndef {function}(" in path.read_text(encoding="utf-8")


def test_what_every_pytest_loads_is_named_as_its_module_is() -> None:
    """So that `-p gitmem.conformance.entry` and the entry point are one plugin, not two."""
    (name,) = PROJECT["project"]["entry-points"]["pytest11"]

    assert PROJECT["project"]["entry-points"]["pytest11"][name] == name
    assert (ROOT / f"{name.replace('.', '/')}.py").exists()


def test_the_version_has_one_place() -> None:
    """`gitmem.__version__` is a constant, because looking it up costs four times an empty Python."""
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "gitmem.__version__"}
    assert f'\n__version__ = "{gitmem.__version__}"\n' in (ROOT / "gitmem/__init__.py").read_text(
        encoding="utf-8"
    )


def test_the_library_is_marked_as_typed() -> None:
    """Type checkers of those who import it look for this file."""
    assert (ROOT / "gitmem" / "py.typed").exists()
    assert PROJECT["tool"]["setuptools"]["package-data"]["gitmem"] == ["py.typed"]


def test_what_install_writes_is_in_the_package() -> None:
    """Scripts, a plugin and texts, each a file in its own language."""
    found = sorted(path.name for path in (ROOT / "gitmem" / "clients" / "files").iterdir())

    assert found == [
        "agents.md",
        "git-hook-repository.sh",
        "hook.sh",
        "opencode.js",
        "post-commit.sh",
        "pre-commit.sh",
        "pre-push.sh",
        "windsurf.md",
    ]
    assert all(installed_content(name) for name in found)


def test_the_builtin_roles_are_in_the_package() -> None:
    """The only file with the vocabulary is data, which setuptools adds only if it is told to."""
    (path,) = (ROOT / "gitmem" / "agents").glob("*.toml")

    assert path.name == "software-delivery.toml"
    assert PROJECT["tool"]["setuptools"]["package-data"]["gitmem.agents"] == ["*.toml"]


def test_the_mutants_of_the_contract_are_in_the_package() -> None:
    """For authors of buses and suites, who have the wheel alone."""
    (path,) = (ROOT / "gitmem" / "conformance").glob("*.txt")

    assert path.name == "mutants.txt"
    assert PROJECT["tool"]["setuptools"]["package-data"]["gitmem.conformance"] == ["*.txt"]


def test_windows_is_told_to_use_wsl() -> None:
    """Locks, hooks and signals are POSIX: one sentence instead of a traceback."""
    code = "import sys; sys.platform = 'win32'; import cli"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "gitmem needs Linux or macOS. On Windows, use WSL.\n"


def test_the_command_line_is_imported_under_the_name_that_the_wheel_gives_it() -> None:
    """In the wheel `cli` is `gitmem_cli`: a module that is named in a text must be relative."""
    named = {
        f"{path.name}:{node.lineno}"
        for path in (ROOT / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.match(r"cli(\.\w+)+\.?$", node.value)
    }
    assert not named
