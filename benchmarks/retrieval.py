"""Whether `mem search` finds the right text, on texts that were not written for it.

`python -m benchmarks.retrieval [--locomo FILE] [--history REPOSITORY] [--packages A,B]`: turns of conversations, docstrings
of installed packages and commit messages become nodes. LoCoMo has questions; for the others a rule makes them of names,
first lines and subjects. The control has docstrings in random order in sessions: neighbours are unrelated there.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from . import locomo
from .measure import show_progress
from .retrieval_task import DAY, OURS, SEED, Score, Task, measure

PACKAGES = ("typer", "pydantic", "dulwich", "_pytest", "hypothesis", "asyncio", "email", "http", "importlib", "json",
            "logging", "sqlite3", "unittest", "urllib")  # fmt: skip
NOW = 1_793_000_000_000_000
AGES_MAX = 180 * DAY  # of docstrings, which get a random age up to this
WORDS_LEAST = 20  # of a text without the first line, which becomes the question
BODY_LEAST = 8  # words of a commit's body
SESSION = 60  # docstrings in a session of the control
_NAME_PARTS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TRAILER = re.compile(r"^[A-Za-z-]+: |^Merge |^\(cherry picked from")

Scores = Mapping[str, Score]


def docstrings(packages: Sequence[str]) -> list[tuple[str, str]]:
    """Return the name and docstring of every function and class; each text once."""
    found: dict[str, str] = {}
    for path in (path for package in packages for path in _sources(package)):
        try:
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read())
        except (SyntaxError, ValueError, OSError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                text = ast.get_docstring(node)
                if text and text.strip():
                    found.setdefault(text, node.name)
    return [(name, text) for text, name in found.items()]


def _sources(package: str) -> Iterator[str]:
    spec = importlib.util.find_spec(package)
    if spec is None:
        show_progress(f"{package} is not installed: left out")
        return
    for root in spec.submodule_search_locations or ():
        for folder, inner, names in os.walk(root):
            inner[:] = sorted(name for name in inner if name not in ("test", "tests"))
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))


def by_name(found: Sequence[tuple[str, str]]) -> Task:
    """Ask for a docstring by its name in words; the text does not contain the name.

    Names of one word, or of two texts, are not used.
    """
    task, dice = Task("docstring, by its name"), random.Random(SEED)
    often = Counter(name for name, _ in found)
    for name, text in found:
        parts = _NAME_PARTS.findall(name)
        asks = len(parts) > 1 and often[name] == 1 and not name.startswith("__")
        task.add(text.replace(name, "") or "-", _age(dice), " ".join(parts) if asks else None)
    return task


def by_first_line(found: Sequence[tuple[str, str]]) -> Task:
    """Ask for a docstring by its first paragraph without every third word; the text is the rest."""
    task, dice = Task("docstring, by its first lines"), random.Random(SEED)
    for _, text in found:
        first, _, rest = text.partition("\n\n")
        asks = len(rest.split()) >= WORDS_LEAST and len(first.split()) > 3
        task.add(rest if asks else text, _age(dice), _drop_words(first, dice) if asks else None)
    return task


def by_subject(history: str) -> Task:
    """Ask for a commit by its subject without every third word; the text is the body, with the real date."""
    task, dice = Task("commit, by its subject"), random.Random(SEED)
    log = subprocess.run(
        ["git", "-C", history, "log", "--no-merges", "--reverse", "--format=%ct%x00%s%x00%b%x01"],
        capture_output=True, text=True, check=True, errors="replace",
    ).stdout  # fmt: skip
    for entry in filter(str.strip, log.split("\x01")):
        at, subject, body = entry.strip("\n").split("\0")
        body = "\n".join(line for line in body.splitlines() if not _TRAILER.match(line)).strip()
        asks = len(body.split()) >= BODY_LEAST and len(subject.split()) > 2
        question = _drop_words(subject, dice) if asks else None
        task.add(body if asks else f"{subject}\n{body}", int(at) * 1_000_000, question)
    return task


def control(task: Task, *, in_sessions: bool) -> Task:
    """Return a task with its texts in random order, each 60 of them within an hour and perhaps in one session."""
    dice = random.Random(SEED)
    order = list(range(len(task.texts)))
    dice.shuffle(order)
    of = {old: new for new, old in enumerate(order)}
    mixed = Task(f"control: {task.name}, {'in sessions' if in_sessions else 'without sessions'}")
    for new, old in enumerate(order):
        if new % SESSION == 0:
            at = _age(dice)
        session = f"sess-control{new // SESSION}" if in_sessions else None
        mixed.add(task.texts[old], at, session=session)
    mixed.questions = [(asked, frozenset(of[old] for old in meant)) for asked, meant in task.questions]
    return mixed


def _age(dice: random.Random) -> int:
    return NOW - dice.randrange(AGES_MAX)


def _drop_words(text: str, dice: random.Random) -> str:
    kept = [word for word in text.split() if dice.random() > 1 / 3]
    return " ".join(kept) if any(re.search(r"\w", word) for word in kept) else text


def measure_conversations(path: str) -> Iterator[tuple[str, int, Scores]]:
    """Yield a name, the number of texts and the scores: of the conversations that tuned the ranking, and of the others."""
    tasks = locomo.tasks(path)
    for name, chosen in (
        (
            f"LoCoMo, {', '.join(locomo.TUNED_ON)} (tuned on)",
            [key for key in tasks if key in locomo.TUNED_ON],
        ),
        ("LoCoMo, the others", [key for key in tasks if key not in locomo.TUNED_ON]),
    ):
        if chosen:
            yield (
                name,
                sum(len(tasks[key].texts) for key in chosen),
                merged(measure(tasks[key]) for key in chosen),
            )


def merged(many: Iterable[Scores]) -> Scores:
    """Return the scores of several tasks as one."""
    total: dict[str, Score] = {}
    for scores in many:
        for name, score in scores.items():
            total.setdefault(name, Score()).merge(score)
    return total


def _measurements(asked: argparse.Namespace) -> Iterator[tuple[str, int, Scores]]:
    if asked.locomo:
        yield from measure_conversations(asked.locomo)
    found = docstrings(asked.packages.split(","))
    of_docstrings = (by_name(found), by_first_line(found))
    for task in (*of_docstrings, by_subject(asked.history)):
        if task.questions:
            yield task.name, len(task.texts), measure(task)
        else:
            show_progress(f"{task.name}: no text asks anything")
    for task in of_docstrings:
        for mixed in (control(task, in_sessions=False), control(task, in_sessions=True)):
            if mixed.questions:
                yield mixed.name, len(mixed.texts), measure(mixed, only=(OURS,))


def main() -> int:
    """Parse the command line, measure and print the table; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument(
        "--locomo", metavar="FILE", help="locomo10.zip of github.com/snap-research/locomo, or the JSON in it"
    )
    parser.add_argument(
        "--history", default=".", metavar="REPOSITORY", help="whose commits to take; the one here"
    )
    parser.add_argument(
        "--packages", default=",".join(PACKAGES), metavar="A,B", help="whose docstrings to take"
    )
    asked = parser.parse_args()
    print(
        "| what | nodes | questions | ranking | recall@5 | recall@5 of sessions | MRR |\n|---|--:|--:|---|--:|--:|--:|"
    )
    for name, texts, scores in _measurements(asked):
        questions = next(iter(scores.values())).questions
        head = f"| {name} | {texts:,} | {questions:,}"
        for ranking, score in scores.items():
            sessions = "" if score.recall_sessions is None else f"{score.recall_sessions:.3f}"
            print(f"{head} | {ranking} | {score.recall:.3f} | {sessions} | {score.rank:.3f} |", flush=True)
            head = "| | | "
        show_progress(f"{name}: done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
