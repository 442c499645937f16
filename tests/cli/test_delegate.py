"""`gitmem delegate`: the task, the role and scope that it asks for, the signal about it, and what its taker is instead."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.agents.descriptors import COMPARED

from .conftest import Run

Start = Callable[..., str]


@pytest.mark.usefixtures("commits")
def test_the_task_and_its_signal_are_one_entry(
    run: Run, start: Start, git: Callable[..., str], repo: Path
) -> None:
    """D11: the addressee's inbox has it, it asks for an answer, and one commit has both."""
    planck, bohr = start("Planck"), start("Bohr", "--role", "implementer/test")
    before = int(git("rev-list", "--count", "gitmem/log", cwd=repo))
    said = run("delegate", "Write the tests", "--to", "Bohr", "--wu", "WU-7", "--deadline", "2h", "--json", "--commit",
               session=planck)  # fmt: skip
    assert said.status == 0, said
    task = said.json["task"]
    assert int(git("rev-list", "--count", "gitmem/log", cwd=repo)) == before + 1
    (signal,) = run("inbox", "--json", session=bohr).json["signals"]

    assert (signal["signal_id"], signal["task_id"], signal["delegation_id"], signal["thread_id"]) == (
        said.json["signal_id"], task["task_id"], task["task_id"], task["thread_id"],
    )  # fmt: skip
    assert (signal["intent"], signal["requires_ack"], signal["wu_id"]) == ("PROPOSE", True, "WU-7")
    assert (task["purpose"], task["agent"]) == ("delegation", "test:worker:bohr")
    assert said.json["signaled"] == ["Bohr"] and task["deadline"]
    assert said.json["next"] == [f"gitmem task show {task['task_id']}"]


def test_the_role_and_scope_asked_for_are_those_named_else_those_of_the_addressee(
    run: Run, start: Start
) -> None:
    """R16, M10: what nobody states is requested by a default, and said."""
    planck = start("Planck")
    start("Bohr", "--role", "implementer/test", "--scope", "src/**")
    start("Curie")

    stated = run("delegate", "x", "--to", "Bohr", "--json", session=planck).json["task"]
    assert stated["requested_role"] == {
        "lifecycle_role": "implementer",
        "specialty_profile": "test",
        "capabilities": [],
    }
    assert stated["requested_ownership_scope"]["paths"] == ["src/**"]
    named = run("delegate", "x", "--to", "Bohr", "--role", "reviewer/docs", "--scope", "docs/**", "--json",
                session=planck).json["task"]  # fmt: skip
    assert named["requested_role"] == {
        "lifecycle_role": "reviewer",
        "specialty_profile": "docs",
        "capabilities": [],
    }
    assert named["requested_ownership_scope"] == {"responsibility_kinds": ["verify"], "paths": ["docs/**"]}

    general, implement = "implementer/general is requested.", "kinds=implement is requested."
    for args, role, kinds, said in [
        (["--to", "Curie"], "general", "implement", [general, implement]),
        (["--to", "Curie", "--wu", "WU-7"], "general", "implement", [general]),
        (["--to", "Curie", "--role", "reviewer"], "general", "verify", ["kinds=verify is requested."]),
        (["--to", "role:implementer/test"], "test", "implement", [implement]),
    ]:
        found = run("delegate", "x", *args, "--json", session=planck).json
        assert found["task"]["requested_role"]["specialty_profile"] == role
        assert found["task"]["requested_ownership_scope"]["responsibility_kinds"] == [kinds]
        notes = [each for each in found["warnings"] if "is requested." in each]
        assert [any(each in note for note in notes) for each in said] == [True] * len(notes), found

    for args, sentence in [
        (["--to", "Bohr,Curie", "--role", "reviewer", "--wu", "WU-7"], "has one addressee"),
        (["--to", "role:revewer", "--wu", "WU-7"], "Unknown role: revewer."),
        (["--wu", "WU-7"], "needs somebody who may take it"),
        (
            ["--to", "Bohr", "--wu", "WU-7", "--priority", "P9"],
            "priority must be P0 or P1 or P2 or P3, not 'P9'",
        ),
        (["--to", "Nobody", "--wu", "WU-7"], "Nobody"),
    ]:
        said = run("delegate", "x", *args, session=planck)
        assert (said.status, sentence in said.err, "Nothing was written." in said.err) == (2, True, True), (
            said
        )
    assert len(run("task", "list", "--json").json["tasks"]) == 6
    own = run("delegate", "x", "--to", "Planck", "--role", "reviewer", "--wu", "WU-7", session=planck).out
    assert "You are one of the recipients" in own and "told" not in own


def test_all_holders_of_a_role_are_told_and_one_takes_it(run: Run, start: Start) -> None:
    """`role:` and an alias; the second taker is refused."""
    planck = start("Planck")
    bohr, curie = (start(name, "--role", "code-reviewer") for name in ("Bohr", "Curie"))
    said = run("delegate", "Review it", "--to", "role:reviewer", "--wu", "WU-7", session=planck)
    assert said.status == 0 and " · to whoever is reviewer · WU-7 · told " in said.out
    id = said.out.split(" ")[0]
    for session in (bohr, curie):
        assert id in run("inbox", session=session).out
    assert run("task", "take", id, session=bohr).status == 0
    assert run("task", "take", id, session=curie).status == 1


def test_a_role_that_nobody_holds_gets_the_task_and_no_signal(run: Run, start: Start) -> None:
    """Such a task is listed, without a signal, until somebody takes it (M5)."""
    planck = start("Planck")
    said = run(
        "delegate", "Write it", "--to", "role:implementer/test", "--wu", "WU-7", "--json", session=planck
    ).json
    assert (said["signal_id"], said["signaled"], said["task"]["target_role"]) == (
        None,
        [],
        "implementer/test",
    )
    assert "Nobody holds implementer/test now: no signal was sent." in " ".join(said["warnings"])
    bohr = start("Bohr")
    assert run("inbox", "--count", session=bohr).out == "0\n"
    assert run("task", "take", said["task"]["task_id"], session=bohr).status == 0


@pytest.mark.parametrize("to", ["Bohr", "role:implementer/test"])
def test_a_message_about_a_task_that_nobody_has_taken_reaches_whom_it_was_asked_of(
    run: Run, start: Start, to: str
) -> None:
    """The inbox shows it after the request, so an agent knows of the change before it takes the task."""
    planck, bohr = start("Planck"), start("Bohr", "--role", "implementer/test")
    task = run("delegate", "Write the tests", "--to", to, "--json", session=planck).json["task"]
    said = run("task", "message", task["task_id"], "Only for parse()", "--json", session=planck)
    assert (said.status, said.json["told"]) == (0, ["Bohr"]), said
    asked, more = run("inbox", "--json", session=bohr).json["signals"]
    assert (more["message"], more["task_id"], more["thread_id"]) == (
        "Only for parse()", task["task_id"], asked["thread_id"],
    )  # fmt: skip


def test_whoever_is_something_else_than_asked_is_shown_as_a_mismatch(run: Run, start: Start) -> None:
    """R28: to the taker and in `task show`; the exit status stays 0."""
    planck = start("Planck")
    bohr = start("Bohr", "--role", "implementer/general", "--scope", "src/**", "--model", "opus")
    id = run("delegate", "x", "--to", "Bohr", "--role", "reviewer/docs", "--scope", "docs/**", "--model", "haiku", "-q",
             session=planck).out.strip()  # fmt: skip
    taken = run("task", "take", id, session=bohr)
    text = "Bohr was asked as reviewer/docs and works as implementer/general; has the responsibilities"
    assert taken.status == 0 and f"note: {text}" in taken.out
    shown = run("task", "show", id, session=planck)
    assert shown.status == 0 and f"mismatch: {text}" in shown.out
    (found,) = run("task", "show", id, "--json", session=planck).json["mismatches"]
    assert (found["role_mismatch"], found["scope_fields"], found["model_mismatch"]) == (
        True, ["responsibility_kinds", "paths"], True,
    )  # fmt: skip
    listed = run("task", "list", session=planck)
    assert listed.status == 0 and "working, other role, scope, model" in listed.out
    (row,) = run("task", "list", "--json", session=planck).json["tasks"]
    renewed = run("task", "take", id, "--json", session=bohr).json
    for answer in (row, found, renewed):
        assert {name: answer[name] for name in COMPARED} == {
            "requested_role": {"lifecycle_role": "reviewer", "specialty_profile": "docs", "capabilities": []},
            "requested_ownership_scope": {"responsibility_kinds": ["verify"], "paths": ["docs/**"]},
            "requested_model": "haiku", "model": "opus",
            "actual_role": {"lifecycle_role": "implementer", "specialty_profile": "general", "capabilities": []},
            "actual_ownership_scope": {"responsibility_kinds": ["implement"], "paths": ["src/**"]},
            "role_mismatch": True, "scope_mismatch": True, "scope_fields": ["responsibility_kinds", "paths"],
            "model_mismatch": True,
        }  # fmt: skip


def test_a_brief_is_attested_and_a_change_of_it_is_shown(run: Run, start: Start, repo: Path) -> None:
    """R18: path, SHA-256 and length."""
    planck = start("Planck")
    start("Bohr", "--role", "implementer/test")
    (repo / "brief.md").write_text("twelve cases\n")
    asked = ("delegate", "Write it", "--to", "Bohr", "--wu", "WU-7", "--json", "--brief")
    task = run(*asked, "brief.md", session=planck).json["task"]
    assert (task["artifact_path"], task["payload"]) == ("brief.md", {"brief": {"length": 13}})
    assert task["brief_digest"] == hashlib.sha256(b"twelve cases\n").hexdigest()
    assert "The brief" not in run("task", "show", task["task_id"], session=planck).out
    (repo / "brief.md").write_text("one case\n")
    shown = run("task", "show", task["task_id"], session=planck).out
    assert "note: The brief brief.md differs in this work tree" in shown


@pytest.mark.parametrize("hostile", ["missing", "link", "pipe", "binary", "large"])
def test_a_brief_that_is_no_text_file_of_the_work_tree_is_refused(
    hostile: str, run: Run, start: Start, repo: Path, tmp_path: Path
) -> None:
    """Without waiting for a pipe, and without reading outside."""
    import os

    brief = repo / "brief"
    (tmp_path / "secret").write_text("s")
    {
        "missing": lambda: None,
        "link": lambda: brief.symlink_to(tmp_path / "secret"),
        "pipe": lambda: os.mkfifo(brief),
        "binary": lambda: brief.write_bytes(b"a\0b"),
        "large": lambda: brief.write_bytes(b"a" * (1024 * 1024 + 1)),
    }[hostile]()
    start("Bohr", "--role", "implementer/test")
    said = run("delegate", "x", "--to", "Bohr", "--wu", "WU-7", "--brief", "brief", session=start("Planck"))
    assert said.status == 2 and "Invalid brief: brief: " in said.err
    assert run("task", "list").out == "No tasks.\n"


def test_a_workers_delegations_are_within_the_task_it_was_started_for(run: Run, start: Start) -> None:
    """R19: GITMEM_TASK names it, else it is the one that the session has; `--again` allows an agent twice."""
    planck, bohr = (start(name, "--role", "implementer", "--scope", "src/**") for name in ("Planck", "Bohr"))
    start("Curie", "--role", "implementer", "--scope", "src/**")
    top, other = (run("delegate", "x", "--to", "Bohr", "-q", session=planck).out.strip() for _ in "ab")
    assert run("task", "take", top, session=bohr).status == 0
    inner = run("delegate", "y", "--to", "Curie", "--json", session=bohr)
    assert inner.json["task"]["chain"] == [top]
    named = run("delegate", "z", "--to", "Curie", "--json", session=bohr, GITMEM_TASK=other)
    assert named.json["task"]["chain"] == [other]
    wrong = run("delegate", "z", "--to", "Curie", session=bohr, GITMEM_TASK="task-nothing000")
    assert (wrong.status, "No such task" in wrong.err, "GITMEM_TASK" in wrong.err) == (2, True, True), wrong

    twice = run("delegate", "back", "--to", "Planck", session=bohr)
    assert (twice.status, "--again" in twice.err) == (2, True), twice
    back = run("delegate", "back", "--to", "Planck", "--again", "-q", session=bohr).out.strip()
    assert run("task", "take", back, session=planck).status == 0
    assert f"  {inner.json['task']['task_id']}" in run("task", "list", "--tree", top).out


def test_the_command_of_the_readme_works_for_whoever_has_just_started(
    run: Run, shell: Run, start: Start
) -> None:
    """Text and addressee are enough; without the addressee the answer has the whole command for each agent at work."""
    planck, curie = start("Planck"), start("Curie")
    text = "It's `touch ran`"
    refused = run("delegate", text, "--as", "Planck", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "no-addressee")

    said = shell(refused.json["next"][0])
    assert (said.status, " · to Curie · as implementer/general · told Curie\n" in said.out) == (0, True), said
    assert f"| {text}\n" in run("inbox", session=curie).out
    assert "Usage: gitmem delegate 'what to do' --to NAME" in run("delegate", session=planck).err


def test_a_vocabulary_may_have_another_default_role_or_none(run: Run, repo: Path, start: Start) -> None:
    """Of `.gitmem/roles.toml`; one that is no role of it does not count."""
    planck = start("Planck")
    start("Curie")
    file = repo / ".gitmem" / "roles.toml"
    file.parent.mkdir()
    own = 'builtin = false\ndefault_specialty = "any"\nspecialty_profiles = ["any"]\n[lifecycle_roles]\neditor = []\n'
    for text, role in (
        ('default_lifecycle = "reviewer"\n', "reviewer"),
        ('default_lifecycle = "editor"\n' + own, "editor"),
    ):
        file.write_text(text)
        found = run("delegate", "x", "--to", "Curie", "--json", session=planck).json
        assert found["task"]["requested_role"]["lifecycle_role"] == role
    for text in (own, 'default_lifecycle = "reviewer"\n' + own):
        file.write_text(text)
        refused = run("delegate", "x", "--to", "Curie", "--json", session=planck)
        assert (refused.status, refused.json["error"]["code"]) == (2, "no-role")
        assert refused.json["next"][0] == "gitmem delegate x --to Curie --role editor"
