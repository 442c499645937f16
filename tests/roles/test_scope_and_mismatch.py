"""What was requested and what a worker is stand apart; the difference is computed from the parts alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.agents import descriptors, vocabulary
from gitmem.agents.descriptors import OwnershipScope
from gitmem.agents.vocabulary import Roles
from gitmem.errors import UsageError

from ..each import each as one_test_for


def role(lifecycle: str, specialty: str | None = "general", alias: str | None = None) -> dict[str, object]:
    return {
        "lifecycle_role": lifecycle, "specialty_profile": specialty, "role_alias": alias, "capabilities": [],
    }  # fmt: skip


def of_task(asked: dict[str, object], actual: dict[str, object]) -> dict[str, object]:
    return descriptors.fields_of({"requested_role": asked}, {"actual_role": actual})


def test_a_reviewer_session_picking_up_implementer_work_is_a_mismatch() -> None:
    """R27: the first example of the contract."""
    asked, actual = role("implementer"), role("reviewer")
    found = descriptors.compare(asked, actual)

    assert found.role_mismatch is True and found.is_any
    assert descriptors.mismatch_sentence("Curie", of_task(asked, actual)) == (
        "Curie was asked as implementer/general and works as reviewer/general"
    )


def test_a_recovery_actor_reusing_a_stale_implementer_alias_is_a_mismatch() -> None:
    """R27: the second example. The alias made it an implementer."""
    asked, actual = role("recovery"), role("implementer", "test", "test-engineer")
    found = descriptors.compare(asked, actual)

    assert found.role_mismatch is True
    assert descriptors.mismatch_sentence("Bohr", of_task(asked, actual)) == (
        "Bohr was asked as recovery/general and works as implementer/test (as test-engineer)"
    )


def test_whoever_took_a_task_over_was_not_asked() -> None:
    """The role is asked for by the task; the agent that it was asked of is named."""
    asked, actual = role("implementer", "delivery"), role("implementer")
    assert descriptors.mismatch_sentence("Gauss", of_task(asked, actual), "Curie") == (
        "The task asks for implementer/delivery; Gauss, who took it over from Curie, works as implementer/general"
    )
    of_model = descriptors.fields_of({"requested_model": "opus"}, {"model": "haiku"})
    assert descriptors.mismatch_sentence("Gauss", of_model, "Curie") == (
        "Gauss, who took it over from Curie, runs haiku instead of opus"
    )


def test_the_alias_and_what_one_could_do_are_no_part_of_the_role() -> None:
    """R26: only the split fields count. R9: capabilities are not a substitute."""
    assert (
        descriptors.compare(role("reviewer"), role("reviewer", alias="code-reviewer")).role_mismatch is False
    )
    able = {"capabilities": ["review"], "role_alias": "code-reviewer"}
    assert descriptors.compare(role("reviewer"), able).role_mismatch is None


@one_test_for(
    [
        (role("reviewer", None), role("reviewer", "docs"), False),
        (role("reviewer", "docs"), role("reviewer", None), True),
        (role("reviewer", "docs"), role("reviewer", "test"), True),
        (None, role("reviewer"), None),
        (role("reviewer"), None, None),
        ({"lifecycle_role": 7}, role("reviewer"), None),
        ({"lifecycle_role": ["reviewer"]}, {"lifecycle_role": {}}, None),
    ]
)
def test_what_one_side_does_not_say_is_no_mismatch(
    asked: object, actual: object, expected: bool | None
) -> None:
    """And what is no text was not said: records are anybody's."""
    assert descriptors.compare(asked, actual).role_mismatch is expected


@one_test_for(
    [
        (["wu=WU-7"], ["wu=wu-7,WU-8"], []),
        (["wu=WU-7,WU-9"], ["wu=WU-7"], ["wu_ids"]),
        (["lane=Docs"], ["lane=docs"], []),
        (["lane=docs", "initiative=A"], ["lane=code", "initiative=B"], ["initiative_id", "lane"]),
        (["kinds=verify"], ["kinds=implement"], ["responsibility_kinds"]),
        (["src/tax/a.py"], ["src/tax/**"], []),
        (["src/tax"], ["src"], []),
        (["src/taxes"], ["src/tax"], ["paths"]),
        (["anything"], ["**"], []),
        (["src"], ["lane=docs"], []),
    ]
)
def test_a_scope_differs_where_the_worker_lacks_something_of_it(
    asked: list[str], actual: list[str], fields: list[str]
) -> None:
    """R26, also for scope."""
    found = descriptors.compare(None, None, descriptors.parse_scope(asked), descriptors.parse_scope(actual))

    assert (found.scope_fields, found.scope_mismatch) == (fields, bool(fields))
    assert descriptors.compare(None, None, descriptors.parse_scope(asked), None).scope_mismatch is None


@one_test_for(
    [
        ("opus", "claude-opus-4-1", False),
        ("Opus", "sonnet", True),
        ("gpt-5", "gpt-50", True),
        ("opus", None, None),
    ]
)
def test_a_model_may_be_named_by_its_family(asked: str, actual: str | None, expected: bool | None) -> None:
    """Whole words of it."""
    assert (
        descriptors.compare(None, None, requested_model=asked, actual_model=actual).model_mismatch is expected
    )


def test_a_scope_names_paths_units_lane_initiative_and_kinds() -> None:
    """R7, M10."""
    found = descriptors.parse_scope(
        ["docs/**,README.md", "wu=WU-7,#12", "lane=docs", "initiative=INIT-1", "kinds=verify", "paths=a=b/"]
    )

    assert found.as_json() == {
        "responsibility_kinds": ["verify"], "initiative_id": "INIT-1", "wu_ids": ["WU-7", "#12"], "lane": "docs",
        "paths": ["docs/**", "README.md", "a=b"],
    }  # fmt: skip
    assert found.text == "paths=docs/**,README.md,a=b wu=WU-7,#12 initiative=INIT-1 lane=docs kinds=verify"
    assert descriptors.read_scope(found.as_json()).as_json() == found.as_json()


def test_the_kinds_of_responsibility_come_from_the_role_unless_stated() -> None:
    """M10, R7: the field is always there."""
    pack = vocabulary.builtin()

    assert descriptors.with_default_kinds(
        descriptors.parse_scope(["docs"]), "reviewer", pack
    ).responsibility_kinds == ["verify"]
    assert descriptors.with_default_kinds(
        descriptors.parse_scope(["kinds=plan"]), "reviewer", pack
    ).responsibility_kinds == ["plan"]
    assert descriptors.with_default_kinds(descriptors.parse_scope(["docs"]), None, pack).as_json() == {
        "responsibility_kinds": [], "paths": ["docs"],
    }  # fmt: skip
    assert descriptors.unknown_kinds(descriptors.parse_scope(["kinds=plan,judge"]), pack) == ["judge"]
    assert descriptors.parse_scope(["paths=a=b", "./c=d/e"]).paths == ["a=b", "c=d/e"]


@one_test_for([" ", ",", ", ", "  "])
def test_a_scope_that_was_printed_is_read_as_it_was(between: str) -> None:
    """In one text, as `session start` prints it, or in several; spaces within a value stay."""
    texts = ["paths=docs/my notes,src/**", "wu=WU-1,WU-2", "initiative=X", "lane=Core UI", "kinds=plan"]
    one = descriptors.parse_scope(texts)

    assert descriptors.parse_scope([between.join(texts)]).as_json() == one.as_json()
    assert descriptors.parse_scope([one.text]).as_json() == one.as_json()
    assert (
        descriptors.parse_scope(["src/** wu=WU-1"]).as_json()
        == descriptors.parse_scope(["src/**", "wu=WU-1"]).as_json()
    )


@one_test_for(["", "a,,b", "wu=", "lane=a,b", "/etc", "../x", "a/../b", "a//b", "~/x", "C:/x", "a\\b", "wu=a b", "wu=unlinked",
     "kinds=Plan!", "path=docs/**", "WU=WU-7", "initiative=X team=Y", "wu=WU-1,team=Y", "lane=\x1b[31m", "x" * 2_000, "a\nb", ",".join(map(str, range(100)))])  # fmt: skip
def test_a_scope_that_means_nothing_here_is_refused(text: str) -> None:
    """Paths out of the work tree, and signs that act on a terminal."""
    with pytest.raises(UsageError) as caught:
        descriptors.parse_scope([text])

    assert caught.value.code == "bad-scope"
    assert "\x1b" not in caught.value.message


def test_a_recorded_scope_of_any_form_is_read() -> None:
    """Records are untrusted."""
    for value in (None, [], "x", 7, {}):
        assert descriptors.read_scope(value) is None
    odd = descriptors.read_scope(
        {"paths": "a", "lane": ["b"], "wu_ids": [1, "WU-1", None], "responsibility_kinds": {"a": 1}}
    )
    assert isinstance(odd, OwnershipScope)
    assert odd.as_json() == {"responsibility_kinds": [], "wu_ids": ["WU-1"]}
    assert (
        len(descriptors.read_scope({"paths": [str(n) for n in range(10_000)]}).paths)
        == descriptors.VALUES_MAX
    )


# A text names a role exactly, folded, by an alias or by its beginning; the step is always told.

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


def test_each_alias_of_the_contract_has_its_role(roles: Roles) -> None:
    """R11; R13: with the parts that are stored beside it."""
    for alias in ALIASES:
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


def test_the_steps_come_in_their_order_and_are_told(roles: Roles) -> None:
    """R14: exact, folded, alias, prefix."""
    for typed, role, step in [
        ("reviewer/docs", "reviewer/docs", "exact"),
        ("reviewer", "reviewer/general", "exact"),
        ("Reviewer/DOCS", "reviewer/docs", "folded"),
        ("Code_Reviewer", "reviewer/general", "alias"),
        ("rev/doc", "reviewer/docs", "prefix"),
        ("impl", "implementer/general", "prefix"),
        ("code-rev", "reviewer/general", "prefix"),
        ("reviewer/security", "reviewer/security", "unknown"),
        ("Auditor", "auditor/general", "unknown"),
    ]:  # fmt: skip
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


def test_what_cannot_be_a_role_is_refused_in_any_case(roles: Roles) -> None:
    """The words are shown to others: no signs that act on a terminal."""
    for typed in ["", "/", "reviewer/", "/docs", "a b:c", "rev/iew/er", "x" * 70, "\x1b[31m", "r,s"]:
        with pytest.raises(UsageError) as caught:
            vocabulary.resolve(roles, typed)

        assert caught.value.code == "bad-role"
        assert "\x1b" not in caught.value.message
