"""Each answer to a session says how many signals wait for it, and costs nothing while none does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import background

from .conftest import Run

LINE = "2 unread (1 wants an answer): gitmem inbox"
COMMANDS = [
    ["roster"], ["whoami"], ["log"], ["signal", "hello", "--to", "Curie"], ["session", "set", "--wu", "WU-9"],
    ["mem", "create", "Prices round per line"], ["mem", "search", "prices"], ["mem", "checkpoint", "Tests pass"],
]  # fmt: skip


@pytest.fixture
def planck(run: Run, start: Callable[..., str]) -> str:
    """Planck has two unread signals; one of them asks."""
    planck, curie = start("Planck"), start("Curie")
    assert run("inbox", session=planck).status == 0
    asks = run("signal", "Shall we?", "--to", "Planck", "--intent", "propose", "--json", session=curie)
    assert asks.status == 0, asks
    assert run("signal", "The parser is merged", "--to", "Planck", session=curie).status == 0
    return planck


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_every_command_says_how_many_signals_wait(run: Run, planck: str, args: list[str]) -> None:
    """One line on standard error; the answer itself is unchanged. In JSON it is a field."""
    said = run(*args, session=planck)
    assert said.status == 0, said
    assert said.err.splitlines().count(LINE) == 1
    assert "unread (" not in said.out

    said = run(*args, "--json", session=planck)
    assert said.json["notice"] == {"unread": 2, "wants_answer": 1, "next": ["gitmem inbox"]}
    assert "unread" not in said.err


def test_a_session_that_is_named_by_as_gets_its_own_notice(run: Run, planck: str) -> None:
    """The command that it names acts as the same session."""
    assert "2 unread (1 wants an answer): gitmem --as Planck inbox" in run("whoami", "--as", "Planck").err
    assert "unread" not in run("whoami", "--as", "Curie").err


@pytest.mark.parametrize(
    "args", [["inbox", "--no-mark"], ["inbox", "--count"], ["gate", "--wu", "WU-1"], ["mem", "context"], ["mem", "recover"]]
)  # fmt: skip
def test_a_command_that_shows_the_signals_has_no_notice(run: Run, planck: str, args: list[str]) -> None:
    """It would say the same twice."""
    assert LINE not in run(*args, session=planck).err


def test_a_quiet_answer_has_its_result_alone(run: Run, planck: str) -> None:
    """Scripts read it, often with standard error."""
    said = run("signal", "one", "-q", session=planck)
    assert (said.status, said.err) == (0, "")


def test_without_a_session_nothing_is_said(run: Run, planck: str, start: Callable[..., str]) -> None:
    """A script's output has nobody's mail."""
    assert "unread" not in run("log").err
    assert "unread" not in run("schema", session=planck).err


def test_nothing_is_said_once_all_is_read(run: Run, planck: str) -> None:
    """Also if a flag was left behind: it goes then."""
    run("inbox", session=planck)
    assert "unread" not in run("whoami", session=planck).err


def test_an_obsolete_flag_is_removed(run: Run, planck: str, repo: Path) -> None:
    """Or each command would read the index for it."""
    run("inbox", session=planck)
    flag = repo / ".git" / "gitmem" / "flags" / planck
    flag.touch()

    assert "unread" not in run("whoami", session=planck).err
    assert not flag.exists()


def test_where_hooks_show_the_signals_there_is_no_notice(run: Run, planck: str, repo: Path) -> None:
    """The command is a tool call, after which the hook shows them. Where a hook ran in vain, there is one."""
    state = repo / ".git" / "gitmem"
    (state / "here").mkdir()
    (state / "here" / "claude-code").write_text(f"{planck}\n")
    (state / "beats").mkdir(exist_ok=True)
    beat = state / "beats" / planck
    beat.touch()
    raised = (state / "flags" / planck).stat().st_mtime
    os.utime(beat, (raised - 5, raised - 5))
    assert LINE not in run("whoami", session=planck).err
    assert "notice" not in run("whoami", "--json", session=planck).json

    os.utime(beat, (raised + 60, raised + 60))
    assert LINE in run("whoami", session=planck).err


def test_a_name_in_a_variable_is_not_a_path(run: Run, planck: str, repo: Path) -> None:
    """A client's id may be any text; it names a flag only if it is safe as a file name."""
    (repo / ".git" / "gitmem" / "flags" / "sub").mkdir()
    assert "unread" not in run("log", CLAUDE_CODE_SESSION_ID="sub/../" + planck).err


@pytest.mark.parametrize("args", [["whoami"], ["roster"], ["mem", "search", "prices"]], ids=" ".join)
def test_with_nothing_unread_no_module_is_loaded_for_it(
    run: Run, start: Callable[..., str], repo: Path, args: list[str]
) -> None:
    """One look at a file is the whole cost."""
    planck = start("Planck")
    run("inbox", session=planck)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cli", *args, "-C", str(repo)],
        cwd=Path(background.__file__).parents[1], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "GITMEM_SESSION": planck},
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "gitmem.agents.heartbeats" in loaded
    assert loaded.isdisjoint({"gitmem.signals.unread_counts", "gitmem.clients.hook_state"})


def test_done_tells_everybody_and_ends_the_session(run: Run, start: Callable[..., str]) -> None:
    """Without a work unit the session goes on: nothing is written."""
    planck, curie = start("Planck"), start("Curie")
    assert run("session", "end", "--done", session=planck).status == 2
    assert run("session", "set", "--wu", "WU-7", session=planck).status == 0
    said = run("session", "end", "--done", session=planck)
    assert said.status == 0, said
    assert "Everybody is told that WU-7 is done (sig-" in said.out
    assert "WU-7 is done." in run("inbox", session=curie).out


def test_done_without_a_checkpoint_exits_with_one_at_the_gate(
    run: Run, start: Callable[..., str], git: Callable[..., str], repo: Path
) -> None:
    """As text and JSON; a reason is the way past it."""
    planck, curie = start("Planck"), start("Curie")
    git("config", "gitmem.checkpointGate", "block", cwd=repo)
    run("session", "set", "--wu", "WU-7", session=planck)
    for words in ([], ["--json"]):
        said = run("session", "end", "--done", *words, session=planck)
        assert said.status == 1 and "WU-7 has no checkpoint" in said.err
    assert said.json["next"][0] == "gitmem mem checkpoint 'what is done' --wu WU-7"
    passing = ["--anyway", "one word"]
    assert run("inbox", "--json", session=curie).json["signals"] == []

    said = run("session", "end", "--done", *passing, session=planck)
    assert said.status == 0 and "the reason is recorded (audit-" in said.out
    assert [each["message"] for each in run("inbox", "--json", session=curie).json["signals"]] == [
        "WU-7 is done."
    ]


def test_only_milestones_are_told(run: Run, start: Callable[..., str]) -> None:
    """The session has the note in any case."""
    planck, curie = start("Planck"), start("Curie")
    assert run("session", "note", "reading", session=planck).status == 0
    assert run("session", "note", "split", "--milestone", session=planck).status == 0

    assert [each["message"] for each in run("inbox", "--json", session=curie).json["signals"]] == ["split"]
    assert "split" in run("roster", "--json").out


@pytest.mark.parametrize("identity", [None, "claude:architect:shop"])
def test_the_end_of_a_session_says_what_it_has_not_read(
    run: Run, start: Callable[..., str], identity: str | None
) -> None:
    """And who will: the next session of its identity, or nobody."""
    own = ["--agent-identity", identity] if identity else []
    planck = run("session", "start", "--name", "Planck", *own, "--json").json["session_id"]
    curie = start("Noether")
    assert run("signal", "Shall we?", "--to", "Planck", "--intent", "propose", session=curie).status == 0
    said = run("session", "end", session=planck)
    assert said.status == 0, said
    assert "1 unread (1 wants an answer)." in said.out
    reads = f"The next session of {identity} reads it." if identity else f"gitmem inbox --for {planck}"
    assert reads in said.out
    assert "unread" not in run("session", "end", session=curie).out
