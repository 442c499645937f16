"""`gitmem role` and the options of roles, from the command line to the reader."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Run


def write(repo: Path, path: str, text: str) -> None:
    where = repo / path
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(text)


def test_roles_are_listed_with_holders_aliases_and_agent_files(run: Run, repo: Path) -> None:
    """Held ones first; R12: a legacy alias only where a holder has it."""
    write(repo, ".codex/agents/test_engineer.toml", 'name = "test-engineer"\nmodel = "gpt-5"\n')
    write(repo, ".claude/agents/poet.md", "---\nname: poet\n---\n")
    assert "lumenflow-doc-sync" not in run("role").out
    run("session", "start", "--name", "Lovelace", "--role", "lumenflow-doc-sync", "--agent-identity", "a:b:c")
    said = run("role")
    _, second, *rest = said.out.splitlines()

    assert said.status == 0
    assert second.split("  ")[0] == "reviewer/docs"
    assert "Lovelace (a:b:c) · live" in second and "alias: lumenflow-doc-sync" in second
    assert any(line.startswith("implementer/test ") and "nobody" in line and ".codex/agents/test_engineer.toml" in line
               for line in rest)  # fmt: skip
    assert "agents without a role: .claude/agents/poet.md" in rest
    assert not any(line.startswith("next:") for line in rest)
    assert run("role", "--json").json["roles"][0]["holders"][0]["role_alias"] == "lumenflow-doc-sync"


def test_a_role_is_shown_with_the_step_that_found_it(run: Run, repo: Path) -> None:
    """Without holders too; an unknown one is refused with suggestions."""
    found = run("role", "code-rev", "--json").json
    assert (found["resolved_by"], found["entry"]["role"], found["responsibility_kinds"]) == (
        "prefix", "reviewer/general", ["verify"],
    )  # fmt: skip
    assert "held by nobody" in run("role", "reviewer/docs").out
    said = run("role", "revewer", "--json")
    assert (said.status, json.loads(said.out)["error"]["code"]) == (2, "unknown-role")


def test_the_files_are_checked_with_line_and_reason(run: Run, repo: Path) -> None:
    """Exit status 1 for a finding."""
    assert run("role", "--check").status == 0
    write(repo, ".gitmem/roles.toml", "[alias]\n\nlint = 'linter'\n")
    write(repo, ".codex/agents/bad.toml", "name = \n")
    said = run("role", "--check")

    assert said.status == 1
    assert ".gitmem/roles.toml:3: alias lint: unknown role linter" in said.out
    assert ".codex/agents/bad.toml:1: Invalid value" in said.out


def test_what_files_contain_is_shown_without_acting_on_the_terminal(run: Run, repo: Path) -> None:
    """They are anybody's."""
    write(repo, ".claude/agents/a\x1b[31m.md", "---\nname: \x1b]0;x\x07\n---\n")
    write(repo, ".gitmem/roles.toml", '"\\u001b[31m" = 1\n')

    for command in ("list", "check"):
        assert "\x1b" not in run("role", command).out


def test_a_session_says_its_role_and_a_signal_reaches_it(run: Run, repo: Path) -> None:
    """The whole way: stated, shown, addressed, delivered, cleared."""
    one = run("session", "start", "--name", "Curie", "--agent-identity", "a:b:c", "--role", "code-reviewer", "--scope",
              "src/**", "--scope", "wu=WU-7", "--model", "opus", "--capabilities", "python,sql", "--json").json  # fmt: skip
    assert (one["role"], one["role_alias"], one["capabilities"]) == (
        "reviewer/general",
        "code-reviewer",
        ["python", "sql"],
    )
    assert one["actual_ownership_scope"] == {
        "responsibility_kinds": ["verify"], "wu_ids": ["WU-7"], "paths": ["src/**"],
    }  # fmt: skip
    two = run("session", "start", "--name", "Planck", "--json").json["session_id"]

    sent = run("signal", "Please review.", "--to", "role:reviewer", "--json", session=two).json
    assert sent["signal"]["recipients"] == ["a:b:c"]
    assert "for role reviewer" in run("inbox", session=one["session_id"]).out
    roster = run("roster", session=two).out
    assert "reviewer/general" in roster.splitlines()[1] and "ROLE" in roster.splitlines()[0]
    assert "role: reviewer/general" in run("whoami", session=one["session_id"]).out.splitlines()

    run(
        "session",
        "set",
        "--role",
        "",
        "--scope",
        "",
        session=one["session_id"],
    )
    found = run("whoami", "--json", session=one["session_id"]).json
    assert (found["role"], found["actual_ownership_scope"]) == (None, None)
    said = run("signal", "Please review.", "--to", "role:reviewer", session=two)
    assert said.status == 2 and "nobody holds role:reviewer" in said.err
    assert "ROLE" not in run("roster", session=two).out


def test_the_log_is_filtered_by_role(run: Run, repo: Path) -> None:
    """R35: sessions that state one, and signals of it or for it; a lifecycle role is every profile."""
    one = run("session", "start", "--name", "Curie", "--role", "reviewer/docs", "--json").json["session_id"]
    two = run("session", "start", "--name", "Planck", "--role", "implementer/test", "--json").json[
        "session_id"
    ]
    run("signal", "to the reviewers", "--to", "role:reviewer", session=two)
    run("signal", "from the implementer", session=two)
    run("signal", "from the reviewer", session=one)

    def shown(role: str) -> list[str]:
        lines = [line for line in run("log", "--role", role).out.splitlines() if not line.startswith("next:")]
        return [words for words in ("Curie starts", "Planck starts", "to the reviewers", "from the implementer", "from the reviewer")
                if any(words in line for line in lines)]  # fmt: skip

    assert shown("reviewer") == ["Curie starts", "to the reviewers", "from the reviewer"]
    assert shown("Reviewer/Docs") == ["Curie starts", "from the reviewer"]
    assert shown("implementer/test") == ["Planck starts", "to the reviewers", "from the implementer"]
    assert shown("review") == shown("reviewer/") == shown("%") == []


def test_a_role_that_is_not_there_is_shown_as_such(run: Run) -> None:
    """A look writes nothing anyway, and no setting finds it."""
    for name, sentence in (
        ("nope", "Unknown role: nope."),
        ("lumenflow", "Ambiguous role: lumenflow is the beginning of"),
    ):
        said = run("role", name)
        assert said.status == 2 and sentence in said.err, said
        assert "Nothing was written" not in said.err and "git config" not in said.err


def test_the_setting_refuses_what_is_not_in_the_vocabulary(run: Run, repo: Path) -> None:
    """R5: a warning, or exit status 2."""
    assert (
        "Unknown role: reviewer/poetry."
        in run("session", "start", "--name", "A", "--role", "reviewer/poetry").out
    )
    with (repo / ".git" / "config").open("a") as file:
        file.write("[gitmem]\n\troles = refuse\n")
    said = run("session", "start", "--name", "B", "--role", "reviewer/poetry")

    assert said.status == 2 and "Unknown role: reviewer/poetry. Nothing was written." in said.err


def test_the_scope_that_is_printed_can_be_stated(run: Run) -> None:
    """As one text, by sessions, tasks and in MCP: `initiative=X wu=Y` is two values."""
    said = run(
        "session", "start", "--name", "Ada", "--agent-identity", "a:b:ada", "--scope", "initiative=X wu=WU-7"
    )
    assert "\nscope: wu=WU-7 initiative=X" in said.out or "\nscope: initiative=X wu=WU-7" in said.out
    printed = next(each for each in said.out.split("\n") if each.startswith("scope: ")).removeprefix(
        "scope: "
    )
    again = run(
        "session", "start", "--name", "Bob", "--agent-identity", "a:b:bob", "--scope", printed, "--json"
    ).json
    assert again["actual_ownership_scope"] == {
        "responsibility_kinds": [],
        "initiative_id": "X",
        "wu_ids": ["WU-7"],
    }
    task = run(
        "delegate", "x", "--to", "Bob", "--role", "reviewer", "--scope", printed, "--as", "Ada", "--json"
    ).json["task"]
    assert task["requested_ownership_scope"]["wu_ids"] == ["WU-7"]
    assert task["requested_ownership_scope"]["initiative_id"] == "X"
