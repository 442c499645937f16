"""Bad input about roles and tasks, at the command line: a clear sentence each, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.conftest import run as run
from tests.cli.conftest import start as start
from tests.roles.test_client_agents import CODEX, MARKDOWN, PATHS, put

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., str]
ODD_HEADS = (
    "", "no head", "---", "---\nname:\n---", "---\nname: [a]\n---", "---\nname: " + "x" * 5_000 + "\n---", "---\n\tname: tab\n---",
    "---\nname: a/b\x1b[2J\n---", "---\nname: !!python/object:os.system\n---", "---\nname: a\nname: b\n---", "\ufeff---\nname: bom\n---",
    "---\nmodel: {a: 1}\ntools: *x\n---", "--- \r\nname: crlf\r\n---\r\n", "---\n" + "- " * 20_000 + "\n---", "---\nname: \u202eevil\n---",
)  # fmt: skip
ODD_TOML = (
    "",
    "name",
    "name = 7",
    'name = "a"\nname = "b"',
    "name = [",
    'name = "\\u202e"',
    "[name]\na = 1",
    "x = " + "[" * 2_000,
)


def tasks(run: Run) -> list[tuple[str, str]]:
    listed = run("task", "list", "--json", "--limit", "100").json["tasks"]
    return sorted((each["title"], each["state"]) for each in listed)


def test_an_unknown_role_is_accepted_with_a_warning_and_shown(run: Run, start: Start) -> None:
    """R5: kept as it was typed, in the task, in its list, and for whoever takes it."""
    planck, bohr = start("Planck"), start("Bohr", "--role", "implementer/test")
    said = run(
        "delegate", "Rhyme", "--to", "Bohr", "--role", "reviewer/poetry", "--wu", "WU-7", session=planck
    )

    assert said.status == 0
    assert "note: Unknown role: reviewer/poetry. It is recorded as it is. Similar: " in said.out
    id = said.out.split()[0]
    task = run("task", "show", id, "--json").json["task"]
    assert task["requested_role"] == {
        "lifecycle_role": "reviewer",
        "specialty_profile": "poetry",
        "capabilities": [],
    }
    taken = run("task", "take", id, session=bohr)
    assert taken.status == 0 and "asked as reviewer/poetry and works as implementer/test" in taken.out


@pytest.mark.parametrize(
    ("args", "sentence", "hint"),
    [
        (["--to", "Bohr", "--role", "reviewer/poetry"], "Unknown role: reviewer/poetry.", "`git config gitmem.roles warn` accepts others."),
        (["--to", "Bohr", "--role", "re viewer"], "Unknown role: re viewer.", "`git config gitmem.roles warn` accepts others."),
        (["--to", "Bohr", "--role", "x" * 1_000_000], f"Invalid role: {'x' * 80}.", "`gitmem role list` lists them."),
        (["--to", "role:auditor/tax"], "Unknown role: auditor/tax.", "Nobody holds this one; `.gitmem/roles.toml` adds roles."),
        (["--to", "role:"], "Invalid role: (empty).", ""),
        (["--to", "re\x1b[2Jviewer"], "Unknown recipient", ""),
    ],
)  # fmt: skip
def test_an_unknown_role_is_refused_by_the_setting(
    run: Run, start: Start, repo: Path, args: list[str], sentence: str, hint: str
) -> None:
    """R5: with exit status 2, and nothing is written."""
    planck, _ = start("Planck"), start("Bohr")
    with (repo / ".git" / "config").open("a") as file:
        file.write("[gitmem]\n\troles = refuse\n")
    said = run("delegate", "Rhyme", *args, "--wu", "WU-7", session=planck)

    assert (
        said.status == 2 and f"{sentence} Nothing was written." in said.err
    ) or sentence == "Unknown recipient", said
    assert said.status == 2 and hint in said.err and "\x1b" not in said.err, said
    assert tasks(run) == []


def test_a_roles_file_with_errors_takes_nothing_else_away(run: Run, start: Start, repo: Path) -> None:
    """Its good entries count, delegations go on, and `role check` names line and reason."""
    put(repo, ".gitmem/roles.toml", '[alias]\nours = "implementer"\nlint = "implementer/lint"\n')
    planck, bohr = start("Planck"), start("Bohr")
    assert (
        run("delegate", "One", "--to", "Bohr", "--role", "ours", "--wu", "WU-7", session=planck).status == 0
    )
    checked = run("role", "check")
    assert checked.status == 1
    assert ".gitmem/roles.toml:3: alias lint: unknown role implementer/lint;" in checked.out + checked.err

    put(repo, ".gitmem/roles.toml", "[alias\n")
    said = run(
        "delegate", "Two", "--to", "Bohr", "--role", "code-reviewer", "--wu", "WU-7", "--json", session=planck
    )
    assert said.json["task"]["requested_role"]["role_alias"] == "code-reviewer"
    assert ".gitmem/roles.toml:1: " in run("role", "check").out
    for each in run("task", "list", "--json").json["tasks"]:
        assert run("task", "take", each["task_id"], session=bohr).status == 0
    assert tasks(run) == [("One", "working"), ("Two", "working")]


def test_a_finished_task_is_not_taken(run: Run, start: Start) -> None:
    """The sentence has its state; the result stays, also against `seal --give-up`."""
    planck, bohr, curie = start("Planck"), start("Bohr"), start("Curie")
    given = ("--to", "role:implementer/test", "--wu", "WU-7")
    id = run("delegate", "One", *given, session=planck).out.split()[0]
    run("task", "take", id, session=bohr)
    run("task", "done", id, "12 cases", session=bohr)
    finished = f"gitmem: {id} is finished: completed (unconfirmed). Nothing was written.\nnext: gitmem task show {id}\n"
    for who in (bohr, curie, planck):
        said = run("task", "take", id, session=who)
        assert (said.status, said.err.replace(said.err.partition("show " + id)[2], "\n")) == (2, finished)
    said = run("task", "seal", id, "--give-up", "too late", session=planck)
    assert said.status == 2
    assert (
        f"{id} has an outcome, which is sealed without a reason: completed (unconfirmed). Nothing was written."
        in said.err
    )
    assert run("task", "seal", id, session=planck).status == 0
    shown = run("task", "show", id, "--json").json
    assert (shown["state"], shown["outcome"]["message"], shown["late"]) == ("completed", "12 cases", [])


def test_of_two_takes_at_once_one_wins_and_the_other_is_told(run: Run, start: Start, repo: Path) -> None:
    """R17: in processes of their own; exit status 1 with the name of the winner."""
    planck = start("Planck")
    workers = {start(name): f"test:worker:{name.lower()}" for name in ("Bohr", "Curie", "Dirac")}
    id = run("delegate", "One", "--to", "role:implementer/test", "--wu", "WU-7", session=planck).out.split()[
        0
    ]
    command = [sys.executable, "-m", "cli", "-C", str(repo)]
    started = [
        subprocess.Popen([*command, "--as", each, "task", "take", id], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for each in workers
    ]  # fmt: skip
    ended = [(each.communicate(timeout=60), each.returncode) for each in started]
    holder = run("task", "show", id, "--json").json["holder"]["sender_identity"]

    assert sorted(status for _, status in ended) == [0, 1, 1]
    for (_, err), status in ended:
        assert not status or f"gitmem: {id} was taken by {holder}, who has it until " in err, err
    assert run("task", "show", id, "--json").json["conflict"] is False


@pytest.mark.parametrize("client", PATHS)
def test_odd_agent_files_of_each_client_break_nothing(
    run: Run, start: Start, repo: Path, client: str
) -> None:
    """Each is read as far as it can be or named with its reason; a good one beside them counts."""
    folder, _, name = PATHS[client].rpartition("/")
    suffix = name.partition(".")[2]
    put(repo, PATHS[client], CODEX if client == "codex" else MARKDOWN)
    for number, head in enumerate(ODD_TOML if client == "codex" else ODD_HEADS):
        put(repo, f"{folder}/odd{number}.{suffix}", head)
    put(repo, f"{folder}/binary.{suffix}", b"---\n\0\xff\n---")
    listed, checked = run("role", "list"), run("role", "check")

    assert listed.status == 0 and "test-engineer" in listed.out, listed
    assert checked.status == 1 and f"{folder}/binary.{suffix}" in checked.out, checked
    for said in (listed, checked):
        assert not {"\x1b", "\u202e", "Traceback"} & {*said.out, *said.err}, said
    planck, _ = start("Planck"), start("Bohr")
    said = run("delegate", "One", "--to", "Bohr", "--role", "test-engineer", "--wu", "WU-7", session=planck)
    assert said.status == 0 and "as implementer/test" in said.out


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["delegate", "{}", "--to", "Bohr", "--role", "reviewer", "--wu", "WU-7"], "message is 1000000 bytes, and at most 65536 are allowed."),
        (["delegate", "x", "--to", "Bohr", "--role", "reviewer", "--wu", "{}"], "one line of up to "),
        (["delegate", "x", "--to", "Bohr", "--role", "reviewer", "--scope", "{}"], "one line of up to "),
        (["delegate", "x", "--to", "{}", "--role", "reviewer", "--wu", "WU-7"], ""),
        (["delegate", "x", "--to", "Bohr", "--role", "reviewer", "--wu", "WU-7", "--brief", "{}"], "Invalid brief: "),
        (["delegate", "x", "--to", "Bohr", "--role", "reviewer", "--wu", "WU-7", "--brief", "large.md"], "larger than 256 KiB."),
        (["task", "take", "{}"], "No such task in this log: "),
        (["thread", "{}"], "No such signal or thread in this log: "),
        (["task", "list", "--wu", "{}"], None),
    ],
)  # fmt: skip
def test_a_million_characters_are_refused_in_a_short_sentence(
    run: Run, start: Start, repo: Path, args: list[str], sentence: str | None
) -> None:
    """As text, as a name, as a path, and in a file; a list of nothing is no error."""
    planck, _ = start("Planck"), start("Bohr")
    put(repo, "large.md", "x" * 1_000_000)
    said = run(*(each.replace("{}", "x" * 1_000_000) for each in args), session=planck)

    assert len(said.out + said.err) < 2_000
    assert said.status == (0 if sentence is None else 2), said
    assert sentence is None or sentence in said.err, said
    assert args[0] != "delegate" or "Nothing was written." in said.err, said
    assert tasks(run) == []
