"""The instructions that setup writes for agents, and whether what they teach is true."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from cli import app
from gitmem.clients.managed_files import installed_content
from tests.conftest import Git

from .conftest import Run

TEXT = installed_content("agents.md")
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


def test_it_is_short() -> None:
    """It is read at every start of every agent: about 20 lines, under 500 tokens."""
    assert TEXT.isascii()
    assert len(TEXT) < CHARACTERS_MAX
    assert len(TEXT.splitlines()) < LINES_MAX
    assert max(map(len, TEXT.splitlines())) <= 110


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
    known = commands(TEXT)
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
    assert "gitmem watch --as NAME" in known  # without it a person watches for themselves
    assert {each.split()[1] for each in known} <= {path.partition(" ")[0] for path in app.COMMANDS}
