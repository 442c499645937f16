"""A text names a role exactly, folded, by an alias or by its beginning; the step is always told."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.agents import vocabulary
from gitmem.agents.vocabulary import Roles
from gitmem.errors import UsageError

ALIASES = {
    "general-purpose": "implementer/general",
    "lumenflow-pm": "orchestrator/delivery",
    "initiative-architect": "orchestrator/delivery",
    "test-engineer": "implementer/test",
    "code-reviewer": "reviewer/general",
    "bug-triage": "reviewer/triage",
    "lumenflow-enforcer": "finisher/compliance",
    "lumenflow-doc-sync": "reviewer/docs",
}


@pytest.fixture
def roles(tmp_path: Path) -> Roles:
    return vocabulary.read(str(tmp_path))


@pytest.mark.parametrize("alias", ALIASES)
def test_each_alias_of_the_contract_has_its_role(roles: Roles, alias: str) -> None:
    """R11; R13: with the parts that are stored beside it."""
    found = vocabulary.resolve(roles, alias)

    assert (found.role_id, found.role_alias, found.resolved_by) == (ALIASES[alias], alias, "alias")


def test_a_legacy_alias_is_understood_and_never_offered(roles: Roles) -> None:
    """R12: not by a prefix, not by a suggestion."""
    assert vocabulary.resolve(roles, "lumenflow-doc-sync").role_id == "reviewer/docs"
    assert "lumenflow-doc-sync" not in [each.name for each in roles.pack.offered()]
    for typed in ("lumenflow-doc-syn", "lumenflow-doc", "lumenflow-doc-sync2"):
        assert "lumenflow-doc-sync" not in vocabulary.similar_roles(roles.pack, typed)
        found = vocabulary.resolve(roles, typed)
        assert (found.resolved_by, found.role_alias) == ("unknown", None)


@pytest.mark.parametrize(
    ("typed", "role", "step"),
    [
        ("reviewer/docs", "reviewer/docs", "exact"),
        ("reviewer", "reviewer/general", "exact"),
        ("Reviewer/DOCS", "reviewer/docs", "folded"),
        ("Code_Reviewer", "reviewer/general", "alias"),
        ("rev/doc", "reviewer/docs", "prefix"),
        ("impl", "implementer/general", "prefix"),
        ("code-rev", "reviewer/general", "prefix"),
        ("reviewer/security", "reviewer/security", "unknown"),
        ("Auditor", "auditor/general", "unknown"),
    ],
)  # fmt: skip
def test_the_steps_come_in_their_order_and_are_told(roles: Roles, typed: str, role: str, step: str) -> None:
    """R14: exact, folded, alias, prefix."""
    found = vocabulary.resolve(roles, typed)

    assert (found.role_id, found.resolved_by) == (role, step)


def test_a_lifecycle_role_comes_before_an_alias_of_that_name(tmp_path: Path) -> None:
    """The vocabulary is what counts; an alias is only a name."""
    (tmp_path / ".gitmem").mkdir()
    (tmp_path / ".gitmem" / "roles.toml").write_text('[alias]\nreviewer = "finisher"\n')

    found = vocabulary.resolve(vocabulary.read(str(tmp_path)), "Reviewer")

    assert (found.lifecycle_role, found.role_alias) == ("reviewer", None)


def test_the_beginning_of_several_is_refused(roles: Roles) -> None:
    """And names them."""
    with pytest.raises(UsageError) as caught:
        vocabulary.resolve(roles, "lumenflow")

    assert caught.value.code == "ambiguous-role"
    assert sorted(caught.value.suggestions) == ["lumenflow-enforcer", "lumenflow-pm"]


def test_an_unknown_role_warns_or_is_refused_by_the_setting(roles: Roles) -> None:
    """R5, on writing."""
    found = vocabulary.resolve(roles, "reviewr/docs")
    warning = vocabulary.warning(roles, found, "reviewr/docs")
    assert warning is not None
    assert warning.startswith("Unknown role: reviewr/docs. It is recorded as it is. Similar: reviewer/docs")

    with pytest.raises(UsageError) as caught:
        vocabulary.resolve(roles, "reviewr/docs", policy="refuse")
    assert (caught.value.code, caught.value.status) == ("unknown-role", 2)
    assert caught.value.suggestions[0] == "reviewer/docs"


@pytest.mark.parametrize(
    "typed", ["", "/", "reviewer/", "/docs", "a b:c", "rev/iew/er", "x" * 70, "\x1b[31m", "r,s"]
)
def test_what_cannot_be_a_role_is_refused_in_any_case(roles: Roles, typed: str) -> None:
    """The words are shown to others: no signs that act on a terminal."""
    with pytest.raises(UsageError) as caught:
        vocabulary.resolve(roles, typed)

    assert caught.value.code == "bad-role"
    assert "\x1b" not in caught.value.message
