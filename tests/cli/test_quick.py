"""The quick way gives the same as the whole app, for every shape that it accepts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from cli import app, frequent, quick

from .conftest import Run, Said

IDS = re.compile(r"\b(sig|thread|sess)-[a-z0-9]{12}\b|\b[0-9a-f]{12,40}\b")
TIMES = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")

READS = (
    ["inbox"],
    ["inbox", "--json"],
    ["inbox", "--count"],
    ["inbox", "--count", "--json"],
    ["inbox", "--no-mark"],
    ["inbox", "--all", "--json", "--no-mark"],
    ["inbox", "--for", "Curie", "--no-mark"],
    ["inbox", "--wu=WU-7", "--limit", "3", "--no-mark"],
    ["inbox", "--intent", "propose,info", "--intent=agree", "--no-mark"],
    ["inbox", "--since", "1h", "--from", "Curie", "--no-mark"],
    ["inbox", "--max-bytes", "0"],
    ["inbox", "--since", "yesterday", "--json"],
    ["roster"],
    ["roster", "--json"],
    ["roster", "--all"],
    ["roster", "Cur"],
    ["-C", ".", "roster"],
    ["roster", "-C", "sub"],
    ["roster", "-C", "nowhere", "--json"],
    ["--json", "inbox", "--as", "Curie", "--no-mark"],
    ["inbox", "--as", "Nobody", "--json"],
    ["converged", "ROOT"],
    ["converged", "ROOT", "--json", "--strict"],
    ["converged", "sig-unknownunknown", "--json"],
)
WRITES = (
    ["signal", "Hello all", "--broadcast"],
    ["signal", "Hello Curie", "--to", "Curie", "--json"],
    ["signal", "Hello Curie", "--to=Curie", "--wu", "WU-7", "--intent", "propose", "--requires-ack"],
    ["signal", "-q", "Quiet", "--to", "Curie", "--to", "Planck"],
    ["signal", "--to", "Curie", "--", "--as if an option"],
    ["signal", "Keyed", "--to", "Curie", "--idempotency-key", "k1"],
    ["signal", "To nobody", "--to", "", "--json"],
    ["signal", "To a stranger", "--to", "Nobdy"],
    ["signal", "", "--to", "Curie", "--json"],
    ["signal", "In the thread", "--thread", "ROOT"],
    ["reply", "ROOT", "Yes.", "--agree"],
    ["reply", "ROOT", "No.", "--reject", "--json"],
    ["reply", "ROOT", "Both?", "--reject", "--agree"],
    ["--as", "Curie", "reply", "ROOT", "As Curie", "--counter", "-q"],
)


@pytest.fixture
def scene(run: Run, start: Callable[..., str], repo: Path) -> tuple[str, str]:
    """Planck and Curie at work, and a proposal of Curie's that Planck has not read."""
    (repo / "sub").mkdir()
    planck, curie = start("Planck"), start("Curie")
    sent = run("signal", "Shall we?", "--to", "Planck", "--intent", "propose", "--json", session=curie).json
    return planck, str(sent["signal"]["signal_id"])


def neutral(said: Said) -> tuple[int, str, str]:
    def same(text: str) -> str:
        return TIMES.sub("TIME", IDS.sub("ID", text))

    return said.status, same(said.out), same(said.err)


@pytest.mark.parametrize("args", [*READS, *WRITES], ids=" ".join)
def test_both_ways_give_the_same(
    args: list[str], run: Run, scene: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes and exit status, but for new ids and times."""
    planck, root = scene
    asked = [root if arg == "ROOT" else arg for arg in args]
    assert quick.parse(asked) is not None, "not taken by the quick way"
    if "--idempotency-key" in asked:
        run(*asked, session=planck)

    quickly = run(*asked, session=planck)
    if asked in (["inbox"], ["inbox", "--json"]):  # it has marked what it showed
        run("signal", "Shall we?", "--to", "Planck", "--intent", "propose", "--as", "Curie")
    monkeypatch.setattr(quick, "answer", lambda args: None)
    wholly = run(*asked, session=planck)

    assert neutral(quickly) == neutral(wholly)


@pytest.mark.parametrize(
    "args", [["inbox"], ["inbox", "--json"], ["inbox", "--count"], ["inbox", "--count", "--json"]]
)
def test_nothing_new_is_answered_from_the_index_alone(
    args: list[str], run: Run, scene: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a store, and with the bytes that the usual way gives."""
    planck, _ = scene
    assert run("inbox", session=planck).status == 0
    run("roster")  # what was marked is in the index now

    with monkeypatch.context() as patch:
        patch.setattr(frequent, "inbox", None)
        quickly = run(*args, session=planck)
    monkeypatch.setattr(quick, "answer", lambda args: None)
    wholly = run(*args, session=planck)

    assert quickly.status == 0
    assert (quickly.out, quickly.err) == (wholly.out, wholly.err)


def test_nothing_new_is_not_said_while_the_index_is_behind(
    run: Run, scene: tuple[str, str], git: Callable[..., str], repo: Path
) -> None:
    """Mail that git alone brought is seen at once."""
    planck, _ = scene
    run("inbox", session=planck)
    run("session", "set", "--wu", "WU-7", session=planck)  # commits the receipts, too
    before = git("rev-parse", "refs/gitmem/log", cwd=repo).strip()
    run("signal", "One more", "--broadcast", "--as", "Curie")
    after = git("rev-parse", "refs/gitmem/log", cwd=repo).strip()
    git("update-ref", "refs/gitmem/log", before, cwd=repo)
    assert run("inbox", "--count", session=planck).out == "0\n"
    git("update-ref", "refs/gitmem/log", after, cwd=repo)

    assert run("inbox", "--count", session=planck).out == "1\n"


def test_an_ended_session_is_refused_though_nothing_is_unread(run: Run, scene: tuple[str, str]) -> None:
    """The quick way does not answer for sessions that are over."""
    planck, _ = scene
    run("inbox", session=planck)
    run("session", "end", session=planck)

    assert run("inbox", session=planck).status == 2


def test_looking_is_a_sign_of_life(run: Run, scene: tuple[str, str], repo: Path) -> None:
    """An agent that only looks is live all the same."""
    import os

    planck, _ = scene
    run("inbox", session=planck)
    beat = repo / ".git" / "gitmem" / "sessions" / planck
    os.utime(beat, (1, 1))

    run("inbox", session=planck)

    assert beat.stat().st_mtime > 1


@pytest.mark.parametrize(
    "args",
    [[], ["--version"], ["--help"], ["inbox", "--help"], ["inbox", "--bogus"], ["inbox", "extra"],
     ["inbox", "--for"], ["inbox", "--for", "a", "--for", "b"], ["signal"], ["signal", "a", "b"],
     ["signal", "-1 for this"], ["signal", "x", "--to", "--json"], ["reply", "sig-1"], ["whoami"],
     ["converged"], ["converged", "--thread", "x"], ["session", "start"], ["-C"], ["--as", "--json", "inbox"]],
    ids=" ".join,
)  # fmt: skip
def test_other_shapes_are_left_to_the_app(args: list[str]) -> None:
    """Whatever is not plainly one of the shapes gets the app's own errors and help."""
    assert quick.parse(args) is None


@pytest.mark.parametrize("name", quick.SHAPES)
def test_the_shapes_are_those_of_the_app(name: str) -> None:
    """Every option of the quick way is an option of the app, of the same kind, under the same name."""
    command = typer.main.get_command(app.app).commands[name]  # type: ignore[attr-defined]
    least, most, flags, options, repeated = quick.SHAPES[name]
    known = {option: each for each in command.params for option in each.opts}
    arguments = [each for each in command.params if each.param_type_name == "argument"]

    assert len([each for each in arguments if each.required]) <= least
    assert most == (quick.MANY if any(each.nargs == -1 for each in arguments) else len(arguments))
    for kind, table in (("flag", flags), ("one", options), ("many", repeated)):
        for option, target in table.items():
            each = known[option]
            found = "flag" if each.is_flag else "many" if each.multiple else "one"
            assert (found, each.name) == (kind, target), option


def test_a_session_that_only_asks_for_mail_keeps_its_name(
    run: Run, start: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day after its last record the quick way steps aside, and the usual one writes another."""
    import time

    planck = start("Planck")
    run("inbox", session=planck)
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 25 * 3600 * 1_000_000_000)
    run("inbox", session=planck)

    kinds = [entry["kind"] for entry in run("log", "--json", session=planck).json["entries"]]
    assert kinds == ["session", "session"]


def test_an_inbox_with_nothing_new_needs_no_key_and_checks_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agents ask after every step: the session is found by the id of its client in a local file."""
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(repo)], check=True, timeout=60)
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "4f1d9f0e-1111-4222-8333-944445555666")
    commands = ["session", "start"], ["inbox"], ["inbox"]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "cli", *command, "-C", str(repo)],
            cwd=Path(quick.__file__).parents[1], capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    assert "Nothing new" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gitmem.operations.mail" in loaded
    assert loaded.isdisjoint(
        {"gitmem.agents.clone_key", "gitmem.agents.authenticity", "gitmem.mac", "gitmem.log.log"}
    )
