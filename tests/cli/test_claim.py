"""`gitmem claim` and its group on the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import parser
from cli.render import claims as render
from gitmem.work.claims import ClaimRow
from gitmem.work.edit_guard import Guard

from .conftest import Run

Start = Callable[..., str]


def test_a_claim_is_made_listed_checked_and_released(run: Run, start: Start, repo: Path) -> None:
    """With the exit statuses that scripts need; paths are relative to the current folder."""
    (repo / "src").mkdir()
    (repo / "src" / "a.py").touch()
    bohr, curie = start("Bohr"), start("Curie")
    made = run(
        "claim",
        "--for",
        "2h",
        "a.py",
        "--wu",
        "WU-7",
        "--reason",
        "rounding",
        "--json",
        session=bohr,
        cwd=repo / "src",
    )
    assert (made.status, made.json["paths"], made.json["warnings"]) == (0, ["src/a.py"], [])

    refused = run("claim", "src", session=curie)
    assert refused.status == 1
    assert refused.err.startswith("gitmem: Already claimed: Bohr claims src/a.py until ")
    assert "next: gitmem signal 'May I change src?' --to test:worker:bohr" in refused.err
    assert run("claim", "list", "src/a.py", session=curie).status == 1
    assert run("claim", "list", "src/a.py", session=bohr).status == 0
    assert run("claim", "list", "docs", session=curie).out.startswith("Nobody else claims docs.\n")
    (line,) = run("claim", "list", session=curie).out.splitlines()
    assert line.startswith("Bohr claims src/a.py · until ")
    assert line.endswith(f' · "rounding" · WU-7 · {made.json["claim_id"]}')
    assert run("claim", "list", "--mine", session=curie).out.startswith("Nothing is claimed.\n")

    passed = run("claim", "src", "--anyway", "Bohr is away", session=curie)
    assert (passed.status, "note: Bohr claims src/a.py until " in passed.out) == (0, True)
    assert "Bohr is away" in run("log", "--audits").out
    assert run("claim", "release", session=curie).status == 0

    other = run("claim", "release", made.json["claim_id"], session=curie)
    assert (other.status, "--reason" in other.err) == (2, True)
    assert run("claim", "release", made.json["claim_id"], "--reason", "gone", session=curie).status == 0
    assert run("claim", "release", session=bohr).out.startswith("You have no claims.\n")


def test_a_gate_is_not_open_for_what_is_no_path(run: Run, start: Start, repo: Path) -> None:
    """Nobody claims a signal or a work unit: whoever has forgotten an option would have passed."""
    bohr = start("Bohr")
    sent = run("signal", "hi", "--broadcast", "--wu", "WU-7", "--json", session=bohr).json["signal"][
        "signal_id"
    ]
    for text, what, instead in (
        (sent, "a signal", f"gitmem converged {sent}"),
        ("WU-7", "a work unit", "gitmem gate --wu WU-7"),
        ("", "empty", "gitmem gate --help"),
    ):
        said = run("gate", text, session=bohr)
        assert (said.status, f"PATH is {what}: " in said.err, instead in said.err) == (2, True, True)
    assert run("gate", "new.py", session=bohr).out.startswith(
        "guard open: nobody else claims these paths; nothing is there yet: new.py\n"
    )
    (repo / "WU-7").touch()
    assert run("gate", "WU-7", session=bohr).out.startswith("guard open: nobody else claims these paths\n")


def test_the_gate_checks_claims_on_paths_as_the_setting_says(run: Run, start: Start, repo: Path) -> None:
    """Blocked with the next commands, only warned, not checked at all; and passed with a reason that is recorded."""
    bohr, curie = start("Bohr"), start("Curie")
    run("claim", "src", session=bohr)

    closed = run("gate", "src/new.py", session=curie)
    assert closed.status == 1
    assert closed.out.startswith(
        "guard closed: others claim paths that you change\n  Bohr claims src · until "
    )
    found = Guard([], [])
    found.open, found.blocks = False, run_list(run)
    assert render.guard(found, pre_commit=True)[0].startswith("The commit was stopped: others claim paths")
    assert run("gate", "src/new.py", session=bohr).out.startswith("guard open: nobody else claims")

    git_config(repo, "warn")
    warned = run("gate", "src/new.py", session=curie)
    assert (warned.status, "  warning: Bohr claims src · until " in warned.out) == (0, True)
    git_config(repo, "off")
    ignored = run("gate", "src/new.py", session=curie)
    assert (ignored.status, ignored.out.splitlines()[0]) == (
        0,
        "`git config gitmem.guard` is off: claims are not checked.",
    )
    git_config(repo, "blcok\u202e")
    unclear = run("gate", "src/new.py", session=curie)
    assert unclear.status == 1
    assert r"Invalid `git config gitmem.guard`: blcok\u202e; valid are block, warn, off." in unclear.out
    git_config(repo, "block")
    passed = run("gate", "src/new.py", "--anyway", "we agreed", session=curie)
    assert (passed.status, " · recorded\n" in passed.out, "next: gitmem show audit-" in passed.out) == (
        0,
        True,
        True,
    )
    assert "we agreed" in run("log", "--json", session=curie).out


def run_list(run: Run) -> list[ClaimRow]:
    """The claims that `claim list` shows, as rows."""
    rows = []
    for each in run("claim", "list", "--json").json["claims"]:
        row = ClaimRow.__new__(ClaimRow)
        for name, value in each.items():
            setattr(row, name, value)
        rows.append(row)
    return rows


def git_config(repo: Path, value: str) -> None:
    subprocess.run(["git", "-C", str(repo), "config", "gitmem.guard", value], check=True)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["claim", "../x"], "Path outside of the worktree: ../x."),
        (["claim", "src", "--for", "40d"], "--for 40d; it lasts more than 0 and at most 24h"),
        (["claim", "src", "--for", "0"], "--for 0; it lasts more than 0 and at most 24h"),
        (["claim", "src", "--for", ""], "Invalid duration: --for ''."),
        (["claim", ""], "Empty path."),
        (["claim", "src", ""], "Empty path."),
        (["claim", "/etc/passwd"], "Path outside of the worktree: /etc/passwd."),
        (["claim", "link/passwd"], "Path outside of the worktree: link/passwd."),
        (["claim", "src", "--for", "soon"], "Invalid duration: --for 'soon'."),
        (["claim"], "a path, list, release"),
    ],
)
def test_bad_input_is_exit_2_with_a_sentence(
    run: Run, start: Start, repo: Path, args: list[str], sentence: str
) -> None:
    """Nothing is written, and the answer says so."""
    (repo / "link").symlink_to("/etc")
    found = run(*args, session=start("Bohr"))
    assert (
        found.status,
        sentence in found.err,
        "Nothing was written." in found.err or "Invalid duration" in found.err,
    ) == (
        2,
        True,
        True,
    )


def test_a_claim_is_released_by_the_paths_that_were_claimed(run: Run, start: Start, repo: Path) -> None:
    """From any folder, and as a whole: a part of it, what nobody claimed and others' paths are refused."""
    planck, curie = start("Planck"), start("Curie")
    (repo / "src").mkdir()
    id = run("claim", "src/**", "docs", "--json", session=planck).json["claim_id"]
    run("claim", "lib", session=curie)
    for paths, code in (
        (["docs"], "part-of-claim"),
        (["other"], "unknown-claim"),
        (["lib"], "not-your-claim"),
    ):
        refused = run("claim", "release", *paths, "--json", session=planck)
        assert (refused.status, refused.json["error"]["code"]) == (2, code)
        assert "Nothing was written." in refused.json["error"]["message"]
    done = run("claim", "release", "**", "../docs/", "--json", cwd=repo / "src", session=planck).json
    assert [each["claim_id"] for each in done["released"]] == [id]
    assert run("claim", "src", session=curie).status == 0


def test_only_who_has_claims_is_told_how_to_release_them(run: Run, start: Start) -> None:
    """Others would copy a command that does nothing; one claim is named, more are the session's."""
    bohr, curie = start("Bohr"), start("Curie")
    id = run("claim", "src", "--json", session=bohr).json["claim_id"]

    def step(session: str) -> object:
        return run("claim", "list", "--json", session=session).json["next"]

    assert step(bohr) == [f"gitmem claim release {id}"]
    assert step(curie) == run("claim", "list", "--json").json["next"] == []
    run("claim", "docs", session=bohr)
    assert step(bohr) == ["gitmem claim release"]


def test_a_pattern_that_matches_nothing_is_a_note(run: Run, start: Start) -> None:
    """It may name files that are about to be made."""
    found = run("claim", "src/*.py", session=start("Bohr"))
    assert (found.status, "note: Nothing matches yet: src/*.py." in found.out) == (0, True)


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (["claim", "src"], ["claim", "paths", "src"]),
        (
            ["-C", "x", "--json", "claim", "--for", "2h", "src"],
            ["-C", "x", "--json", "claim", "paths", "--for", "2h", "src"],
        ),
        (["claim", "list"], ["claim", "list"]),
        (["claim", "paths", "list"], ["claim", "paths", "list"]),
        (["claim", "--help"], ["claim", "--help"]),
        (["signal", "claim", "src"], ["signal", "claim", "src"]),
    ],
)
def test_claim_with_a_path_is_claim_paths(args: list[str], meant: list[str]) -> None:
    """A file with the name of a command is claimed by the long form."""
    assert parser.claims_first(args) == meant


def test_a_claim_says_with_which_task_it_ends(run: Run, start: Start) -> None:
    """With the one that its session has."""
    bohr, curie = start("Bohr"), start("Curie")
    args = ("--to", "Curie", "--role", "implementer/test", "--scope", "src/**", "-q")
    task = run("delegate", "Write", *args, session=bohr).out.strip()
    assert run("task", "take", task, session=curie).status == 0
    (line, *_) = run("claim", "src", session=curie).out.splitlines()
    assert line.endswith(f" · src · ends with {task}")
    assert run("claim", "docs", "--json", session=bohr).json["task_id"] is None


def test_the_next_command_names_the_same_paths(run: Run, shell: Run, start: Start, repo: Path) -> None:
    """Also from a folder within the work tree, and of a file whose name begins with a dash."""
    folder = repo / "src"
    folder.mkdir()
    bohr, curie = start("Bohr"), start("Curie")
    assert run("claim", "a.py", "--", "-x.py", session=bohr).status == 0
    for cwd, up in ((folder, "../"), (repo, "")):
        refused = run("claim", "--json", "--", f"{up}a.py", f"{up}-x.py", session=curie, cwd=cwd)
        (again,) = [each for each in refused.json["next"] if each.endswith(" --anyway why")]
        passed = shell(f"{again} --json", session=curie, cwd=cwd)
        assert (passed.status, passed.json["paths"]) == (0, ["a.py", "-x.py"])
        assert run("claim", "release", session=curie).status == 0
        (repo / "a.py").write_text("1\n")
        (repo / "-x.py").write_text("1\n")
        sees = run("gate", "--json", "--", f"{up}-x.py", session=start(f"Noether{len(up)}"), cwd=cwd)
        assert "gate ./-x.py --anyway why" in sees.json["next"][1]
