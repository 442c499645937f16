"""The vocabulary of roles is data: one built-in file, and one of the repository that anybody may have written."""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path

import pytest

from gitmem.agents import vocabulary

LIFECYCLE_ROLES = ["orchestrator", "implementer", "reviewer", "finisher", "recovery"]
SPECIALTY_PROFILES = ["general", "delivery", "docs", "test", "triage", "compliance"]
RESPONSIBILITY_KINDS = ["coordinate", "plan", "implement", "verify", "finish", "recover", "document"]


def write(top: Path, text: str) -> None:
    folder = top / ".gitmem"
    folder.mkdir(exist_ok=True)
    (folder / "roles.toml").write_text(text)


def read(top: Path, text: str) -> vocabulary.Roles:
    write(top, text)
    return vocabulary.read(str(top))


def test_the_builtin_pack_has_the_vocabulary_of_the_contract(tmp_path: Path) -> None:
    """R2, R3, R4: it counts where a repository has no file, and in a bare repository."""
    for found in (vocabulary.read(str(tmp_path)), vocabulary.read(None)):
        assert found.pack.name == "software-delivery"
        assert list(found.pack.lifecycle_roles) == LIFECYCLE_ROLES
        assert list(found.pack.specialty_profiles) == SPECIALTY_PROFILES
        assert list(found.pack.responsibility_kinds) == RESPONSIBILITY_KINDS
        assert (found.path, found.problems, found.warning) == (None, [], None)


def test_each_lifecycle_role_has_responsibilities_of_its_own() -> None:
    """M10: a scope that states none has those of the role."""
    roles = vocabulary.builtin().lifecycle_roles

    assert all(roles.values())
    assert set().union(*roles.values()) <= set(RESPONSIBILITY_KINDS)


def test_a_file_adds_to_the_builtin_pack_without_a_change_of_code(tmp_path: Path) -> None:
    """R10: another team has roles of its own, and the built-in ones stay."""
    found = read(
        tmp_path,
        'pack = "shop"\nspecialty_profiles = ["tax"]\nresponsibility_kinds = ["audit"]\n'
        '[lifecycle_roles]\nauditor = ["audit", "verify"]\n[alias]\n'
        'tax-auditor = {role = "auditor/tax", capabilities = ["read ledgers"]}\n',
    )

    assert (found.problems, found.pack.name) == ([], "shop")
    assert found.pack.lifecycle_roles["auditor"] == ("audit", "verify")
    assert [*found.pack.lifecycle_roles][:5] == LIFECYCLE_ROLES
    alias = vocabulary.resolve(found, "Tax_Auditor")
    assert alias.as_json() == {
        "lifecycle_role": "auditor", "specialty_profile": "tax", "role_alias": "tax-auditor",
        "capabilities": ["read ledgers"], "resolved_by": "alias",
    }  # fmt: skip
    assert vocabulary.resolve(found, "code-reviewer").role_id == "reviewer/general"


def test_a_file_may_replace_the_builtin_pack(tmp_path: Path) -> None:
    """R10: with a vocabulary that shares no word with it."""
    found = read(
        tmp_path,
        'pack = "press"\nbuiltin = false\ndefault_specialty = "any"\nspecialty_profiles = ["any", "sports"]\n'
        "[lifecycle_roles]\nauthor = []\neditor = []\n",
    )

    assert found.problems == []
    assert list(found.pack.lifecycle_roles) == ["author", "editor"]
    assert not found.pack.aliases
    assert vocabulary.resolve(found, "editor").role_id == "editor/any"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[alias]\n\nours = "implementer/general"\nlint = "implementer/lint"\n', 4, "unknown role implementer/lint"),
        ('[alias]\nours = "implementer"\nyou = "reviewer"\n', 3, "reserved word"),
        ('[alias]\nours = "implementer"\n"a b" = "reviewer"\n', 3, "invalid alias"),
        ('[alias]\nours = "implementer"\nx = 7\n', 3, "(no text)"),
        ('[alias]\nours = {role = "implementer", rank = 1}\n', 2, "unknown key rank"),
        ('[alias]\nours = {role = "implementer", legacy = "no"}\n', 2, "true or false"),
        ('[alias]\nours = {role = "implementer", capabilities = ["a\\nb"]}\n', 2, "capabilities"),
        ('# ours\nspecialty_profiles = ["Tax"]\n[alias]\nours = "implementer"\n', 2, "invalid value Tax"),
        ('colour = "red"\n[alias]\nours = "implementer"\n', 1, "unknown key colour"),
        ('specialty_profiles = "tax"\n[alias]\nours = "implementer"\n', 1, "must be a list"),
        ('lifecycle_roles = 3\n[alias]\nours = "implementer"\n', 1, "must be a table"),
        ('[alias]\nours = "implementer"\n[lifecycle_roles]\nauditor = ["judge"]\n', 4, "unknown responsibility judge"),
        ('default_specialty = "none"\n[alias]\nours = "implementer"\n', 1, "default_specialty"),
        ('pack = "A b"\n[alias]\nours = "implementer"\n', 1, "invalid pack"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named_with_its_line_and_everything_else_counts(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    """One typing error must not take the roles of everybody away."""
    found = read(tmp_path, text)

    (problem,) = found.problems
    assert (problem.path, problem.line) == (".gitmem/roles.toml", line)
    assert words in problem.reason
    assert found.warning is not None and f".gitmem/roles.toml:{line}: " in found.warning
    assert vocabulary.resolve(found, "ours").role_id == "implementer/general"
    assert vocabulary.resolve(found, "code-reviewer").role_id == "reviewer/general"


@pytest.mark.parametrize("text", ["alias = [\n", "a = 1\na = 2\n", "x = " + "[" * 3_000])
def test_a_file_that_is_not_toml_leaves_the_builtin_roles(tmp_path: Path, text: str) -> None:
    """With the line, where the reader knows it."""
    found = read(tmp_path, text)

    assert not found.is_whole
    assert found.warning is not None and "Only the built-in roles count" in found.warning
    assert vocabulary.resolve(found, "code-reviewer").role_id == "reviewer/general"


def test_a_link_out_of_the_work_tree_is_not_followed(tmp_path: Path) -> None:
    """A committed link must not show what is in somebody's home."""
    top, outside = tmp_path / "top", tmp_path / "outside"
    outside.mkdir()
    (outside / "roles.toml").write_text('[alias]\nsecret = "implementer"\n')
    (top / ".gitmem").mkdir(parents=True)
    (top / ".gitmem" / "roles.toml").symlink_to(outside / "roles.toml")
    by_file = vocabulary.read(str(top))
    (top / ".gitmem" / "roles.toml").unlink()
    (top / ".gitmem").rmdir()
    (top / ".gitmem").symlink_to(outside)
    by_folder = vocabulary.read(str(top))

    for found in (by_file, by_folder):
        assert [each.reason for each in found.problems] == ["it points outside of the worktree"]
        assert "secret" not in found.pack.aliases


def test_what_is_no_text_of_moderate_size_is_not_read(tmp_path: Path) -> None:
    """A pipe, a folder, binary data, a megabyte."""
    path = tmp_path / ".gitmem" / "roles.toml"
    path.parent.mkdir()
    reasons = []
    os.mkfifo(path)
    reasons.append(vocabulary.read(str(tmp_path)).problems[0].reason)
    path.unlink()
    path.mkdir()
    reasons.append(vocabulary.read(str(tmp_path)).problems[0].reason)
    path.rmdir()
    for content in (b"\0", b"\xff\xfe", b"#" * (vocabulary.FILE_BYTES_MAX + 1)):
        path.write_bytes(content)
        reasons.append(vocabulary.read(str(tmp_path)).problems[0].reason)

    assert reasons[0] == "it is not a file"
    assert reasons[2:] == ["it is binary", "it is not UTF-8 (byte 0)", "it is larger than 64 KiB"]


@pytest.mark.parametrize(
    "text",
    [
        "a." * 30_000 + "a = 1",
        "\n".join(f"{'a.' * 900}b{number} = 1" for number in range(30)),
        "\n".join(f"k{number} = 1" for number in range(8_000)),
        "[alias]\n" + "\n".join(f"a{number} = 'x'" for number in range(5_000)),
        "specialty_profiles = [" + "'x'," * 15_000 + "]",
        "x = " + "{a = " * 9_000,
    ],
)
def test_a_hostile_file_takes_no_time_and_reports_little(tmp_path: Path, text: str) -> None:
    """Python's reader takes a quarter of a minute for one key of thirty thousand parts."""
    began = time.process_time()
    found = read(tmp_path, text)

    assert time.process_time() - began < 3
    assert len(found.problems) <= vocabulary.PROBLEMS_MAX
    assert vocabulary.resolve(found, "code-reviewer").role_id == "reviewer/general"


def test_the_builtin_file_is_toml_of_the_same_form_as_anybodys(tmp_path: Path) -> None:
    """So that it can be copied as the beginning of a pack of one's own."""
    text = (Path(vocabulary.__file__).parent / vocabulary.BUILTIN).read_text()
    found = read(tmp_path, text)

    assert found.problems == []
    assert len(tomllib.loads(text)["alias"]) == 8
