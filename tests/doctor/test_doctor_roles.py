"""Doctor reports each kind of problem with roles once, as a note: nothing is lost by it."""

from __future__ import annotations

from pathlib import Path

from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.doctor import doctor

from ..sandbox import Clock, open_store


def test_files_and_sessions_with_unknown_roles_are_reported_once_each(repo: Path) -> None:
    """R5: with the line, and however many there are."""
    store = open_store(repo, Clock())
    (repo / ".gitmem").mkdir()
    (repo / ".gitmem" / "roles.toml").write_text("[alias]\nlint = 'linter'\nspell = 'speller'\n")
    for name in ("Planck", "Curie"):
        lifecycle.start(store, CallerClaims(), name=name, role="auditor")
    found = {each.code: each for each in doctor.examine(store).findings}

    assert {each.severity for each in found.values()} == {"note"}
    assert found["roles-file"].what.startswith(".gitmem/roles.toml:2: alias lint: unknown role linter")
    assert found["roles-file"].what.endswith(" 1 more.")
    assert found["unknown-role"].what.endswith(
        "has the role auditor/general, which is not known here. 1 more."
    )
    assert found["unknown-role"].command == "gitmem role check"


def test_roles_without_a_fault_are_no_finding(repo: Path) -> None:
    """Nor is a work tree without any file."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), name="Planck", role="code-reviewer")

    assert not {"roles-file", "unknown-role"} & {each.code for each in doctor.examine(store).findings}
