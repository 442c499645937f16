"""The project's tasks, each in an environment of its own: `nox` runs the default ones, `nox -l` lists all."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "lint", "types"]

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")


def install(session: nox.Session, group: str) -> None:
    """Install the checkout, editable, and one of its dependency groups."""
    session.install("--editable", ".", *nox.project.dependency_groups(PROJECT, group))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the default test profile. Arguments go to pytest."""
    install(session, "test")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def deep(session: nox.Session) -> None:
    """Run what the default profile leaves out, and property tests with more examples."""
    install(session, "test")
    profile = "(deep or hypothesis) and not soak and not clients and not network and not browser"
    session.run("python", "-m", "pytest", "-m", profile, *session.posargs, env={"HYPOTHESIS_PROFILE": "deep"})


@nox.session
def browser(session: nox.Session) -> None:
    """Show the page in Chromium, which must be installed."""
    install(session, "test")
    session.run("python", "-m", "pytest", "-n", "0", "-m", "browser", "tests/page", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check rules and format."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    install(session, "dev")
    session.run("mypy", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the distributions into `dist/`, check them, and run the demo of the wheel in an empty environment."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.install("build", "twine", "uv")
    session.run("python", "-m", "build", "--outdir", "dist")
    built = [str(path) for path in sorted(ROOT.glob("dist/*"))]
    session.run("twine", "check", "--strict", *built)
    session.chdir(session.create_tmp())  # not where the sources could be imported
    session.run("uvx", "--from", next(path for path in built if path.endswith(".whl")), "gitmem", "demo")


@nox.session
def docs(session: nox.Session) -> None:
    """Write the API reference of the library into `build/api/`."""
    install(session, "docs")
    session.run("python", "-m", "pdoc", "--docformat", "google", "--output-directory", "build/api", "gitmem")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure. Arguments are names of benchmarks, or `--quick`."""
    session.run("python", "-m", "benchmarks", *session.posargs)
