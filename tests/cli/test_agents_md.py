"""`gitmem agents-md`, and whether what it teaches is true."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import app
from tests.conftest import Git

from .conftest import Run

# Tokenizers make at most 0.3 tokens of a character of it: 360 by that of Claude 2, 348 by o200k, of 1,264.
CHARACTERS_MAX = 1_660
LINES_MAX = 25


# The options that stand alone in it, and the command that each belongs to.
ALONE = {
    "--broadcast": "gitmem signal 'Parser is merged'",
    "--agree": "gitmem reply ID 'agreed'",
    "--reject": "gitmem reply ID 'a reason'",
    "--counter": "gitmem reply ID 'a proposal'",
    "--json": "gitmem roster",
    "--help": "gitmem roster",
}


def commands(text: str) -> list[str]:
    """The commands in it, each once."""
    words = [word for word in re.findall(r"`([^`]+)`", text) if word != "gitmem"]
    return list(dict.fromkeys(f"{ALONE[word]} {word}" if word in ALONE else word for word in words))


def test_it_is_short(run: Run) -> None:
    """It is read at every start of every agent: about 20 lines, under 500 tokens."""
    said = run("agents-md")

    assert said.status == 0
    assert said.out.isascii()
    assert len(said.out) < CHARACTERS_MAX
    assert len(said.out.splitlines()) < LINES_MAX
    assert max(map(len, said.out.splitlines())) <= 110


def test_every_command_in_it_runs(
    run: Run, shell: Run, start: Callable[..., str], repo: Path, git: Git
) -> None:
    """As it stands, with a name and an id in the places of NAME and ID."""
    hub = repo.parent / "hub.git"
    git("init", "--quiet", "--bare", str(hub))
    git("remote", "add", "origin", str(hub), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)
    run("sync", "--publish")
    start("Curie")
    me = start("Planck")
    asked = run(
        "signal",
        "Ready?",
        "--to",
        "Planck",
        "--requires-ack",
        "--intent",
        "PROPOSE",
        "--json",
        "--as",
        "Curie",
    )
    ids = {"reply": asked.json["signal"]["signal_id"], "converged": asked.json["signal"]["thread_id"]}
    task = run(
        "delegate", "x", "--to", "Planck", "--role", "reviewer", "--wu", "WU-1", "-q", "--as", "Curie"
    ).out.strip()
    run("inbox", session=me)
    text = run("agents-md").out
    known = commands(text)
    assert len(known) >= 18
    assert all(each.startswith("gitmem ") for each in known)
    runnable = [each for each in known if "gitmem watch" not in each and "session end" not in each]

    for each in [*runnable, "gitmem session end"]:
        words = shlex.split(each.removesuffix(" - <<'EOF'"))[1:]
        words = [
            {"NAME": "Curie", "ID": ids.get(words[0], ""), "TASK": task, "2m": "1s"}.get(word, word)
            for word in words
        ]
        options = {} if words[:2] == ["session", "start"] else {"session": me}

        if each.endswith("EOF'"):
            done = shell(f"{shlex.join(['gitmem', *words])} - <<'EOF'\nDone\nEOF\n", **options)
        else:
            done = run(*words, **options)  # type: ignore[arg-type]

        statuses = {"converged": (0, 1), "gate": (0, 1), "call": (6,)}  # Curie does not answer
        assert done.status in statuses.get(words[0], (0,)), f"{each}\n{done}"
    assert "gitmem watch --session NAME" in known  # without it a person watches for themselves
    assert {each.split()[1] for each in known} <= set(app.ORDER)


def test_it_is_kept_in_the_work_tree(run: Run, repo: Path) -> None:
    """From a folder below, too; with the commands to run next, and statuses that a script can use."""
    below = repo / "docs"
    below.mkdir()

    missing = run("agents-md", "--check", "--json", cwd=below)
    written = run("agents-md", "--write", "--json", cwd=below)

    assert (missing.status, missing.json["state"]) == (1, "missing")
    assert missing.json["next"] == ["gitmem agents-md --write"]
    assert written.json["state"] == "created"
    assert written.json["path"] == str(repo / "AGENTS.md")
    assert written.json["next"] == ["git add ../AGENTS.md"]
    assert run("agents-md", "--check").status == 0
    assert run("agents-md", "--write").out.startswith(
        f"{repo / 'AGENTS.md'}: gitmem's instructions are already up to date"
    )
    assert run("agents-md", "--remove", cwd=below).status == 0
    assert not (repo / "AGENTS.md").exists()


def test_another_file_is_named(run: Run, repo: Path) -> None:
    """Relative to where one is; commands name it again."""
    written = run("agents-md", "--write", "GEMINI.md", "--json")

    assert written.json["path"] == str(repo / "GEMINI.md")
    assert run("agents-md", "--remove", "GEMINI.md", "--json").json["next"] == [
        "gitmem agents-md --write GEMINI.md"
    ]
    assert not (repo / "GEMINI.md").exists()


def test_it_needs_no_repository_to_be_shown(run: Run, tmp_path: Path) -> None:
    """And a file of one's own can be anywhere."""
    outside = tmp_path / "outside"
    outside.mkdir()

    assert run("agents-md", cwd=outside).status == 0
    assert run("agents-md", "--json", cwd=outside).json["next"] == ["gitmem agents-md --write"]
    assert run("agents-md", "--write", "RULES.md", cwd=outside).status == 0
    refused = run("agents-md", "--write", cwd=outside)
    assert (refused.status, refused.out) == (2, "")


@pytest.mark.parametrize("relative", [False, True])
def test_a_file_outside_of_the_work_tree_is_refused(
    run: Run, repo: Path, tmp_path: Path, relative: bool
) -> None:
    """A mistyped path, or one that a repository's text names; what an older version wrote there can be removed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    other = outside / "RULES.md"
    other.write_text("Rules\n")
    named = os.path.relpath(other, repo) if relative else str(other)

    refused = run("agents-md", "--write", named)

    assert refused.status == 2 and "outside of the work tree" in refused.err
    assert other.read_text() == "Rules\n"
    assert run("agents-md", "--write", "RULES.md", cwd=outside).status == 0
    assert run("agents-md", "--remove", named).status == 0
    assert other.read_text() == "Rules\n"


def test_what_is_not_clear_is_refused(run: Run, repo: Path) -> None:
    """Two verbs, or a file and none."""
    assert run("agents-md", "--write", "--remove").status == 2
    assert run("agents-md", "AGENTS.md").status == 2
    assert not (repo / "AGENTS.md").exists()
