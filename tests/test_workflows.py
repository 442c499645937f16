"""The workflow files and the tasks: they can't run here, so at least they are well-formed and name what exists."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load(path: Path) -> dict[str, Any]:
    """Return a workflow. YAML 1.1 reads its key `on` as true."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)
    return dict(found)


def sessions() -> set[str]:
    """Return the names of nox's sessions, without nox."""
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    return {
        each.name
        for each in tree.body
        if isinstance(each, ast.FunctionDef)
        and any("nox.session" in ast.unparse(by) for by in each.decorator_list)
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_well_formed(path: Path) -> None:
    """Every job ends in time, takes actions by their commit, and may only read unless it says so."""
    workflow = load(path)

    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert isinstance(job["timeout-minutes"], int), name
        assert set(job.get("needs", [])) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), f"{name}: {step}"
            assert "run" in step or re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]), step


def test_the_tests_of_the_page_have_a_browser_in_ci() -> None:
    """Without one they are skipped, and CI would be green."""
    steps = [
        each.get("run", "") for each in load(ROOT / ".github/workflows/ci.yml")["jobs"]["browser"]["steps"]
    ]
    installed = next(
        at for at, step in enumerate(steps) if {"chromium", "chromium-driver"} <= set(step.split())
    )
    assert installed < steps.index("nox -s browser")


def test_the_tasks_that_are_named_exist() -> None:
    """In the workflows, and in CONTRIBUTING.md; and each is named in one of them."""
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
    named = set(re.findall(r"nox -s (\w+)", "\n".join([*texts, CONTRIBUTING])))
    named |= set(load(ROOT / ".github/workflows/ci.yml")["jobs"]["checks"]["strategy"]["matrix"]["session"])

    assert named == sessions()


def test_the_matrix_covers_what_the_package_claims() -> None:
    """Every Python and system of the classifiers, and the oldest Python that it installs on; no release claims an untested one."""
    matrix = load(ROOT / ".github/workflows/ci.yml")["jobs"]["tests"]["strategy"]["matrix"]
    before_release = load(ROOT / ".github/workflows/release.yml")["jobs"]["tests"]["strategy"]["matrix"]
    systems = {"POSIX :: Linux": "ubuntu", "MacOS": "macos"}
    claims = [each.partition(" :: ") for each in PROJECT["classifiers"]]
    pythons = {rest.rpartition(" :: ")[2] for area, _, rest in claims if area == "Programming Language"} - {
        "Only"
    }
    claimed = {systems[rest] for area, _, rest in claims if area == "Operating System"}

    assert pythons == set(before_release["python"])
    assert pythons <= set(matrix["python"])
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"
    assert claimed <= {each.partition("-")[0] for each in matrix["os"]}


def test_only_a_tag_publishes() -> None:
    """With the identity of the workflow and no token, after the tests, and after the wheel was tried."""
    release = load(ROOT / ".github/workflows/release.yml")
    publish = release["jobs"]["publish"]

    assert release["on"] == {"push": {"tags": ["v*"]}}
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == ["tests", "build"]
    assert {"run": "nox -s tests"} in release["jobs"]["tests"]["steps"]
    assert {"run": "nox -s wheel"} in release["jobs"]["build"]["steps"]
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


def test_the_hooks_before_a_commit_are_well_formed() -> None:
    """Those that run a program of the environment run one that CI runs as well."""
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]

    assert {"end-of-file-fixer", "ruff-check", "ruff-format", "mypy"} <= {hook["id"] for hook in hooks}
    for hook in config["repos"][-1]["hooks"]:
        assert hook["entry"].split()[0] in {"ruff", "mypy"}
