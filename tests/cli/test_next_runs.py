"""Every `next` of a day's commands, run as it is printed in a shell: by an agent that used --as, and by one with a session."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import Run, Said

Start = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]
# NAME, PATH, <id>, 'your reply': what a reader would have to replace
PLACES = re.compile(r"(?<![\w/.-])(?!HEAD\b)[A-Z]{2,}(?![\w.-])|<|…|(?<!\w)\.\.\.(?!$)|\b[Yy]our ")
FILLER = ("gitmem log", "gitmem whoami")
SYNCS = re.compile(r"gitmem( -C \S+| --as \S+)* sync$")  # there is no remote
OF_NOBODY = re.compile(r" (session start|view|doctor|setup|remove)\b")
WITHIN = re.compile(
    r"\bgitmem (?!-C )[a-z]+"
)  # a command within a text, that does not act in the caller's place
# What each of two agents does in a day; {1} is the id that the command marked with it has printed, and so on.
DAY = (
    "A whoami", "A roster", "A session note reading", "A session set --lane core", "A role", "A name",
    "A1 signal 'Split it?' --to Curie --intent propose --wu WU-7", "A converged {1}", "A thread {1}", "A receipts {1}", "C gate --wu WU-7",
    "C inbox --no-mark", "C inbox", "C reply {1} yes --agree", "A converged {1}", "A inbox", "A inbox", "C gate --wu WU-7",
    "A signal hello", "A signal hello --to Curi", "A2 delegate Review --to Curie", "A delegate Review", "A task list", "C task take {2}",
    "C task show {2}", "C task message --ask {2} which", "A task show {2}", "C task done {2} ok", "A task accept {2}", "A task list --tree", "A task list --stats",
    "A3 claim src", "C claim src", "C claim list src", "C claim list", "A claim release src", "A claim release", "C claim list",
    "A4 mem create 'A fact' --wu WU-7", "A mem list", "A mem ready --wu WU-7", "A mem search fact", "A mem search zebra",
    "A mem context --wu WU-7", "A mem checkpoint half", "A mem recover", "A mem update {4} --priority P1", "A mem show {4}",
    "A mem promote {4}", "A mem promote {4} --tag decision", "A mem profile", "A mem triage", "A mem archive", "A mem archive {4}",
    "A mem cleanup", "A mem delete {4}", "A log", "A show {1}", "A show {2}", "A show {3}", "A show tev-zzzzzz", "A verify", "A verify {1}", "A verify sig-zzzzzz", "A handoff --to Curie --dry-run",
    "A overlap", "A stats", "A wu:prep", "A mem:signal", "A thread {1}", "A why HEAD", "C gate --wu WU-7", "A gate --wu WU-7", "A doctor",
    "A thread thread-zzzzzz", "A task show task-zzzzzz", "A mem show mem-zzzzzz", "A converged sig-zzzzzz", "A receipts sig-zzzzzz",
    "A mem ready", "A mem ready --wu WU-9", "A mem update", "A mem list", "A setup --git pre-commit",
    "A remove --git pre-commit", "A delegate 'Say when' --to Curie", "C inbox", "A roster Curie", "A role reviewer", "A gate --anyway x",
)  # fmt: skip


@pytest.mark.parametrize("by", ["--as", "environment"])
def test_each_next_of_a_day_runs_as_it_is_printed(  # noqa: C901  (one branch for each rule)
    run: Run, shell: Run, start: Start, repo: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a whole command of gitmem, acts as whoever asked, and is no usage error. The day goes on as if it had not been run.

    With --as it is asked from another folder, by -C: no command within an answer may act there.
    """
    names = {"A": "Planck", "C": "Curie"}
    sessions = {who: start(name) for who, name in names.items()}
    elsewhere, kept = repo, repo.parent / "kept"
    monkeypatch.chdir(repo.parent)  # the repository is put back by another folder
    if by == "--as":
        elsewhere = repo.parent / "elsewhere"
        elsewhere.mkdir()
    ids: dict[str, str] = {}
    wrong: list[tuple[str, str, object]] = []
    seen = 0

    def tried(command: str, session: str | None) -> Said:
        """Run a command, and put back what was there before."""
        shutil.copytree(repo, kept, symlinks=True)
        done = shell(command, session=session, cwd=elsewhere)
        shutil.rmtree(repo, ignore_errors=True)
        kept.rename(repo)
        return done

    for line in DAY:
        who, _, rest = line.partition(" ")
        for number, id in ids.items():
            rest = rest.replace(f"{{{number}}}", id)
        session = None if by == "--as" else sessions[who[0]]
        asked = f"gitmem {rest}"
        if by == "--as":
            asked += f" -C {repo} --as {names[who[0]]}"
            wrong += [(rest, each, "a command without -C") for each in own_commands(tried(asked, session))]
        said = shell(f"{asked} --json", session=session, cwd=elsewhere)
        if who[1:]:
            ids[who[1:]] = re.findall(
                r'"(?:signal|task|claim)_id": "([a-z]+-\w+)"|"id": "(mem-\w+)"', said.out
            )[0][who[1:] == "4"]
        for step in said.json["next"]:
            if step.endswith(" --help") or step.startswith("export ") or " view" in step:  # no browser here
                continue
            seen += 1
            if step in FILLER or PLACES.search(step) or SYNCS.match(step):
                wrong.append((rest, step, "filler, or a place to fill in"))
            if by == "--as" and "--as" not in step and not OF_NOBODY.search(step):
                wrong.append((rest, step, "acts as somebody else"))
            done = tried(step.replace("--wait 60s", "--wait 0s"), session)
            if done.status not in (0, 1):
                wrong.append((rest, step, done))
    assert not wrong
    assert seen > 70


def own_commands(said: Said) -> list[str]:
    """Return gitmem's own lines with commands that would act elsewhere, or as somebody else.

    Peers' texts are behind bars, the lines of a document of the memory behind hyphens. A command line that can't be parsed has no -C, and help needs none.
    """
    lines = f"{said.out}\n{said.err}".splitlines()
    left_out = ("| ", "- ", "<!--", "Did you", "  gitmem ")
    return [
        each
        for each in lines
        if not each.startswith(left_out) and "--help" not in each and WITHIN.search(each)
    ]


def lists_of_next(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what becomes a `next`: `next=...`, `.next = ...`, and the bodies of functions that return one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "next":
            yield node.value
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(getattr(each, "attr", getattr(each, "id", "")) == "next" for each in targets):
                yield node.value
        elif isinstance(node, ast.FunctionDef) and re.fullmatch(
            r"_?(next|steps)(_steps|_commands)?|decide", node.name
        ):
            yield from node.body[1:]


def test_no_next_in_the_code_has_a_place_to_fill_in() -> None:
    """Also those that no day reaches."""
    found = [
        f"{path.relative_to(ROOT)}:{each.lineno}: {each.value}"
        for folder in ("gitmem", "cli")
        for path in (ROOT / folder).rglob("*.py")
        for value in lists_of_next(ast.parse(path.read_text()))
        for each in ast.walk(value)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and PLACES.search(each.value)
    ]
    assert not found
