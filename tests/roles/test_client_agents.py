"""The files of clients are read as they are: odd ones never break, and nothing outside of the work tree is read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gitmem.agents import role_list
from gitmem.agents.role_list import ClientAgent

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
    found, problems = role_list.read_client_agents(str(top))
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
        assert found.tools == ["Read", "Grep"]


@pytest.mark.parametrize(
    ("head", "description", "tools"),
    [
        ("description: |\n  One.\n    Two.\n\n  Three.", "One. Two. Three.", []),
        ("description: Use this when: always # a comment", "Use this when: always", []),
        ("description: 'It''s \"it\"'", "It's \"it\"", []),
        ('description: "a\\tb \\"c\\""', 'a b "c"', []),
        ("description: one\n  line more", "one line more", []),
        ("description:\n  one\n  line", "one line", []),
        ("tools:\n  - Read\n  - 'Grep'\n", None, ["Read", "Grep"]),
        ("tools:\n- Read\n- Grep\ndescription: x", "x", ["Read", "Grep"]),
        ("tools: [Read, \"Grep\"]", None, ["Read", "Grep"]),
        ("tools:\n  bash: false\n  read: true", None, []),
        ("description: [a, b]", None, []),
        ("description:\n", None, []),
        ("# only a comment", None, []),
        ("- a\n- b", None, []),
        (": : :\n\t\t\n%YAML", None, []),
        ("description: &anchor *alias !!python/object:os.system", "&anchor *alias !!python/object:os.system", []),
        ("description: \x1b[31mred\x07", "\x1b[31mred\x07", []),
        ("description: " + "long " * 5_000, ("long " * 200), []),
    ],
)  # fmt: skip
def test_an_odd_head_gives_what_can_be_read(
    tmp_path: Path, head: str, description: str | None, tools: list[str]
) -> None:
    """Clients accept much that is not YAML; nothing in it is ever executed."""
    put(tmp_path, ".claude/agents/odd.md", f"---\n{head}\n---\nbody\n")
    found = only(tmp_path)

    assert (found.name, found.description, found.tools) == ("odd", description, tools)


@pytest.mark.parametrize(
    "content", ["", "no head", "---", "---\n---\n", "--- \r\nmodel: a\r\n---\r\n", "﻿---\nmodel: a\n---"]
)
def test_a_file_without_a_whole_head_has_the_name_of_the_file(tmp_path: Path, content: str) -> None:
    """At worst it is reported."""
    put(tmp_path, ".gemini/agents/plain.md", content)
    found, problems = role_list.read_client_agents(str(tmp_path))

    assert [each.name for each in found] == ([] if problems else ["plain"])
    assert [each.reason for each in problems] in ([], ["the head that begins with --- has no end"])


def test_files_that_cannot_be_read_are_reported_and_the_others_are_read(tmp_path: Path) -> None:
    """With the line, where there is one."""
    put(tmp_path, ".claude/agents/ok.md", MARKDOWN)
    put(tmp_path, ".claude/agents/binary.md", b"---\n\0\n---")
    put(tmp_path, ".claude/agents/latin.md", b"---\nname: \xe9\n---")
    put(tmp_path, ".claude/agents/large.md", b"x" * (role_list.FILE_BYTES_MAX + 1))
    put(tmp_path, ".codex/agents/bad.toml", 'name = "a"\nname = "b"\n')
    put(tmp_path, ".codex/agents/odd.toml", "name = 7\nmodel = ['x']\ntools = {a = 1}\n")
    found, problems = role_list.read_client_agents(str(tmp_path))

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
    found, problems = role_list.read_client_agents(str(top))

    assert [each.name for each in found] == ["shared"]
    assert sorted((each.path, each.reason) for each in problems) == [
        (".claude/agents/file.md", "it points outside of the worktree"),
        (".claude/agents/git.md", "it belongs to git"),
        (".gemini/agents", "it points outside of the worktree"),
    ]


def test_many_files_deep_folders_and_time_have_limits(tmp_path: Path) -> None:
    """The rest is reported as not read."""
    for number in range(role_list.FILES_MAX + 5):
        put(tmp_path, f".claude/agents/a{number}.md", "")
    put(tmp_path, ".claude/agents/1/2/3/4/deep.md", "")
    put(tmp_path, ".claude/agents/1/2/3/4/5/deeper.md", "")
    found, problems = role_list.read_client_agents(str(tmp_path))
    ticks = iter(range(10**6))
    slow, late = role_list.read_client_agents(str(tmp_path), clock=lambda: float(next(ticks)))

    assert len(found) == role_list.FILES_MAX
    assert [each.reason for each in problems] == ["there are more than 200 agent files; the rest is not read"]
    assert "deep" in {each.name for each in found} and "deeper" not in {each.name for each in found}
    assert slow == [] and [each.reason for each in late] == ["reading takes too long; the rest is not read"]


@pytest.mark.parametrize("head", ["a: " * 20_000, "a: [" + "," * 60_000 + "]", "- " * 30_000, 'a: "' + "\\" * 60_000 + '"',
                                  "a: |\n" + "\n" * 60_000, "\n".join(f"k{n}: v" for n in range(7_000))])  # fmt: skip
def test_a_hostile_head_takes_no_time(tmp_path: Path, head: str) -> None:
    """In the size of the file it is linear."""
    put(tmp_path, ".claude/agents/a.md", f"---\n{head}\n---\n"[: role_list.FILE_BYTES_MAX])
    began = time.process_time()
    role_list.read_client_agents(str(tmp_path))

    assert time.process_time() - began < 1
