"""The vocabulary of roles is data: one built-in file, and one of the repository that anybody may have written."""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path

import pytest

from gitmem.agents import vocabulary
from gitmem.agents.vocabulary import ClientAgent

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


def test_a_wrong_entry_is_named_with_its_line_and_everything_else_counts(tmp_path: Path) -> None:
    """One typing error must not take the roles of everybody away."""
    for text, line, words in [
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
    ]:  # fmt: skip
        found = read(tmp_path, text)

        (problem,) = found.problems
        assert (problem.path, problem.line) == (".gitmem/roles.toml", line)
        assert words in problem.reason
        assert found.warning is not None and f".gitmem/roles.toml:{line}: " in found.warning
        assert vocabulary.resolve(found, "ours").role_id == "implementer/general"
        assert vocabulary.resolve(found, "code-reviewer").role_id == "reviewer/general"


def test_a_file_that_is_not_toml_leaves_the_builtin_roles(tmp_path: Path) -> None:
    """With the line, where the reader knows it."""
    for text in ["alias = [\n", "a = 1\na = 2\n", "x = " + "[" * 3_000]:
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


def test_a_hostile_file_takes_no_time_and_reports_little(tmp_path: Path) -> None:
    """Python's reader takes a quarter of a minute for one key of thirty thousand parts."""
    for text in [
        "a." * 30_000 + "a = 1",
        "\n".join(f"{'a.' * 900}b{number} = 1" for number in range(30)),
        "\n".join(f"k{number} = 1" for number in range(8_000)),
        "[alias]\n" + "\n".join(f"a{number} = 'x'" for number in range(5_000)),
        "specialty_profiles = [" + "'x'," * 15_000 + "]",
        "x = " + "{a = " * 9_000,
    ]:
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


# The files of clients are read as they are: odd ones never break, and nothing outside of the work tree is read.

MARKDOWN = """---
name: test-engineer
description: >
  Writes tests.
  Use it often.
model: "opus"
tools: Read, Grep
color: red
nested:
  a: 1
---
You write tests.
"""
CODEX = 'name = "test-engineer"\ndescription = "Writes tests."\nmodel = "gpt-5"\ndeveloper_instructions = """\nTest.\n"""\n'
PATHS = {
    "claude-code": ".claude/agents/team/test-engineer.md",
    "gemini": ".gemini/agents/test-engineer.md",
    "copilot": ".github/agents/test-engineer.agent.md",
    "opencode": ".opencode/agent/test-engineer.md",
    "codex": ".codex/agents/test_engineer.toml",
}


def put(top: Path, path: str, content: str | bytes) -> None:
    where = top / path
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_bytes(content if isinstance(content, bytes) else content.encode())


def only(top: Path) -> ClientAgent:
    found, problems = vocabulary.read_client_agents(str(top))
    assert problems == []
    (agent,) = found
    return agent


@pytest.mark.parametrize("client", PATHS)
def test_the_file_of_each_client_is_read(tmp_path: Path, client: str) -> None:
    """I1: its name, description and model."""
    put(tmp_path, PATHS[client], CODEX if client == "codex" else MARKDOWN)
    found = only(tmp_path)

    assert (found.name, found.client, found.path) == ("test-engineer", client, PATHS[client])
    if client == "codex":
        assert (found.model, found.description) == ("gpt-5", "Writes tests.")
    else:
        assert (found.model, found.description) == ("opus", "Writes tests. Use it often.")


@pytest.mark.parametrize(
    ("head", "description"),
    [
        ("description: |\n  One.\n    Two.\n\n  Three.", "One. Two. Three."),
        ("description: Use this when: always # a comment", "Use this when: always"),
        ("description: 'It''s \"it\"'", "It's \"it\""),
        ('description: "a\\tb \\"c\\""', 'a b "c"'),
        ("description: one\n  line more", "one line more"),
        ("description:\n  one\n  line", "one line"),
        ("tools:\n- Read\n- Grep\ndescription: x", "x"),
        ("description: [a, b]", "[a, b]"),
        ("description:\n", None),
        ("# only a comment", None),
        ("- a\n- b", None),
        (": : :\n\t\t\n%YAML", None),
        ("description: &anchor *alias !!python/object:os.system", "&anchor *alias !!python/object:os.system"),
        ("description: \x1b[31mred\x07", "\x1b[31mred\x07"),
        ("description: " + "long " * 5_000, ("long " * 200)),
    ],
)  # fmt: skip
def test_an_odd_head_gives_what_can_be_read(tmp_path: Path, head: str, description: str | None) -> None:
    """Clients accept much that is not YAML; nothing in it is ever executed."""
    put(tmp_path, ".claude/agents/odd.md", f"---\n{head}\n---\nbody\n")
    found = only(tmp_path)

    assert (found.name, found.description) == ("odd", description)


@pytest.mark.parametrize(
    "content", ["", "no head", "---", "---\n---\n", "--- \r\nmodel: a\r\n---\r\n", "﻿---\nmodel: a\n---"]
)
def test_a_file_without_a_whole_head_has_the_name_of_the_file(tmp_path: Path, content: str) -> None:
    """At worst it is reported."""
    put(tmp_path, ".gemini/agents/plain.md", content)
    found, problems = vocabulary.read_client_agents(str(tmp_path))

    assert [each.name for each in found] == ([] if problems else ["plain"])
    assert [each.reason for each in problems] in ([], ["the head that begins with --- has no end"])


def test_files_that_cannot_be_read_are_reported_and_the_others_are_read(tmp_path: Path) -> None:
    """With the line, where there is one."""
    put(tmp_path, ".claude/agents/ok.md", MARKDOWN)
    put(tmp_path, ".claude/agents/binary.md", b"---\n\0\n---")
    put(tmp_path, ".claude/agents/latin.md", b"---\nname: \xe9\n---")
    put(tmp_path, ".claude/agents/large.md", b"x" * (vocabulary.FILE_BYTES_MAX + 1))
    put(tmp_path, ".codex/agents/bad.toml", 'name = "a"\nname = "b"\n')
    put(tmp_path, ".codex/agents/odd.toml", "name = 7\nmodel = ['x']\ntools = {a = 1}\n")
    found, problems = vocabulary.read_client_agents(str(tmp_path))

    assert [(each.name, each.model) for each in found] == [("test-engineer", "opus"), ("odd", None)]
    assert {each.path.rpartition("/")[2]: each.line for each in problems} == {
        "binary.md": None, "latin.md": None, "large.md": None, "bad.toml": 2,
    }  # fmt: skip


def test_links_out_of_the_work_tree_are_not_followed(tmp_path: Path) -> None:
    """Neither of a file, nor of a folder, nor in a circle; one within the work tree is a file like others."""
    top, outside = tmp_path / "top", tmp_path / "outside"
    put(outside, "secret.md", "---\nname: secret\n---\n")
    put(top, "shared/agent.md", "---\nname: shared\n---\n")
    put(top, ".git/config.md", "---\nname: private\n---\n")
    agents = top / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "file.md").symlink_to(outside / "secret.md")
    (agents / "folder").symlink_to(outside)
    (agents / "circle").symlink_to(agents)
    (agents / "git.md").symlink_to(top / ".git" / "config.md")
    (agents / "inner.md").symlink_to(top / "shared" / "agent.md")
    (top / ".gemini").mkdir()
    (top / ".gemini" / "agents").symlink_to(outside)
    found, problems = vocabulary.read_client_agents(str(top))

    assert [each.name for each in found] == ["shared"]
    assert sorted((each.path, each.reason) for each in problems) == [
        (".claude/agents/file.md", "it points outside of the worktree"),
        (".claude/agents/git.md", "it belongs to git"),
        (".gemini/agents", "it points outside of the worktree"),
    ]


def test_many_files_deep_folders_and_time_have_limits(tmp_path: Path) -> None:
    """The rest is reported as not read."""
    for number in range(vocabulary.FILES_MAX + 5):
        put(tmp_path, f".claude/agents/a{number}.md", "")
    put(tmp_path, ".claude/agents/1/2/3/4/deep.md", "")
    put(tmp_path, ".claude/agents/1/2/3/4/5/deeper.md", "")
    found, problems = vocabulary.read_client_agents(str(tmp_path))
    ticks = iter(range(10**6))
    slow, late = vocabulary.read_client_agents(str(tmp_path), clock=lambda: float(next(ticks)))

    assert len(found) == vocabulary.FILES_MAX
    assert [each.reason for each in problems] == ["there are more than 200 agent files; the rest is not read"]
    assert "deep" in {each.name for each in found} and "deeper" not in {each.name for each in found}
    assert len(slow) < 5 and [each.reason for each in late] == [
        "reading takes too long; the rest is not read"
    ]


@pytest.mark.parametrize("head", ["a: " * 20_000, "a: [" + "," * 60_000 + "]", "- " * 30_000, 'a: "' + "\\" * 60_000 + '"',
                                  "a: |\n" + "\n" * 60_000, "\n".join(f"k{n}: v" for n in range(7_000))])  # fmt: skip
def test_a_hostile_head_takes_no_time(tmp_path: Path, head: str) -> None:
    """In the size of the file it is linear."""
    put(tmp_path, ".claude/agents/a.md", f"---\n{head}\n---\n"[: vocabulary.FILE_BYTES_MAX])
    began = time.process_time()
    vocabulary.read_client_agents(str(tmp_path))

    assert time.process_time() - began < 1
