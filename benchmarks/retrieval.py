"""Whether `mem search` finds the right text, on texts that were not written for it.

`python -m benchmarks.retrieval [--history REPOSITORY] [--packages A,B]`: docstrings of installed packages and commit
messages become nodes. A rule makes questions of their names, first lines and subjects.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gitmem
from gitmem.memory import edit, search

from .measure import tell

PACKAGES = ("typer", "pydantic", "dulwich", "_pytest", "hypothesis", "asyncio", "email", "http", "importlib", "json",
            "logging", "sqlite3", "unittest", "urllib")  # fmt: skip
SEED = 7
QUESTIONS_MAX = 1_000
SHOWN = 10
DAY = 24 * 3600 * 1_000_000
NOW = 1_793_000_000_000_000
AGES_MAX = 180 * DAY  # of docstrings, which get a random age up to this
WORDS_LEAST = 20  # of a text without the first line, which becomes the question
BODY_LEAST = 8  # words of a commit's body
FOREVER = 10**30
_NAME_PARTS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TRAILER = re.compile(r"^[A-Za-z-]+: |^Merge |^\(cherry picked from")


class Task:
    """Texts with their times, and questions, each with the number of the text that it is about."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts: list[str] = []
        self.times: list[int] = []
        self.questions: list[tuple[str, int]] = []

    def add(self, text: str, at: int, question: str | None = None) -> None:
        """Add a text, and its question if it has one."""
        if question:
            self.questions.append((question, len(self.texts)))
        self.texts.append(text)
        self.times.append(at)

    def sampled(self) -> list[tuple[str, int]]:
        """Return a fixed random sample of the questions."""
        dice = random.Random(SEED)
        many = self.questions
        return many if len(many) <= QUESTIONS_MAX else dice.sample(many, QUESTIONS_MAX)


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
        tell(f"{package} is not installed: left out")
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
        task.add(rest if asks else text, _age(dice), _thinned(first, dice) if asks else None)
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
        question = _thinned(subject, dice) if asks else None
        task.add(body if asks else f"{subject}\n{body}", int(at) * 1_000_000, question)
    return task


def _age(dice: random.Random) -> int:
    return NOW - dice.randrange(AGES_MAX)


def _thinned(text: str, dice: random.Random) -> str:
    kept = [word for word in text.split() if dice.random() > 1 / 3]
    return " ".join(kept) if any(re.search(r"\w", word) for word in kept) else text


def measure(task: Task) -> list[tuple[str, float, float]]:
    """Return each ranking with its recall among the first five and mean reciprocal rank among the first ten."""
    newest = sorted(range(len(task.texts)), key=lambda number: -task.times[number])[:SHOWN]
    with tempfile.TemporaryDirectory(prefix="gitmem-retrieval-") as folder:
        number_of = _write(task, folder)
        now = max(task.times) + 60_000_000
        with gitmem.open(folder, now=lambda: now) as log:

            def ours(**options: Any) -> Callable[[str], list[int]]:
                return lambda question: [
                    number_of[hit.node.id]
                    for hit in search.recall(log.store, question, limit=SHOWN, **options)
                ]

            return [
                ("newest first", *_score(task, lambda question: newest)),
                ("BM25 alone, words as FTS5 splits them", *_score(task, _plain(task.texts))),
                ("`mem search` without decay", *_score(task, ours(half_life=FOREVER))),
                ("**`mem search`**", *_score(task, ours())),
                ("`mem search --by-decay`", *_score(task, ours(by_decay=True))),
            ]


def _write(task: Task, folder: str) -> dict[str, int]:
    """Write the texts as nodes, with one commit for each day; return the number of the text by node id."""
    for command in (("init", "-q"), ("config", "user.name", "A"), ("config", "user.email", "a@example.org")):
        subprocess.run(["git", "-C", folder, *command], check=True)
    subprocess.run(["git", "-C", folder, "commit", "-q", "--allow-empty", "-m", "First"], check=True)
    order = sorted(range(len(task.texts)), key=lambda number: task.times[number])
    days: dict[int, list[int]] = {}
    for number in order:
        days.setdefault(task.times[number] // DAY, []).append(number)
    at = task.times[order[0]]
    number_of: dict[str, int] = {}
    with gitmem.open(folder, now=lambda: at) as log:
        for many in days.values():
            at = task.times[many[0]]
            given = [{"content": task.texts[number]} for number in many]
            done = edit.append(log.store, log.caller, given, allow_secret=True)
            number_of |= {node.id: number for node, number in zip(done.nodes, many, strict=True)}
    return number_of


def _plain(texts: Sequence[str]) -> Callable[[str], list[int]]:
    """Return a search by FTS5 alone: its own tokenizer, any of the words, no decay."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE plain USING fts5(content)")
    db.executemany("INSERT INTO plain (rowid, content) VALUES (?, ?)", enumerate(texts))

    def ask(question: str) -> list[int]:
        words = ('"' + word.replace('"', '""') + '"' for word in question.split())
        rows = db.execute(
            "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?", (" OR ".join(words), SHOWN)
        )
        return [row for (row,) in rows]

    return ask


def _score(task: Task, ask: Callable[[str], list[int]]) -> tuple[float, float]:
    asked = task.sampled()
    within, reciprocal = 0, 0.0
    for question, number in asked:
        got = ask(question)
        within += number in got[:5]
        reciprocal += 1 / (got.index(number) + 1) if number in got else 0
    return within / len(asked), reciprocal / len(asked)


def main() -> int:
    """Parse the command line, measure and print the table; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument(
        "--history", default=".", metavar="REPOSITORY", help="whose commits to take; the one here"
    )
    parser.add_argument(
        "--packages", default=",".join(PACKAGES), metavar="A,B", help="whose docstrings to take"
    )
    asked = parser.parse_args()
    found = docstrings(asked.packages.split(","))
    tasks = (by_name(found), by_first_line(found), by_subject(asked.history))
    print("| what | nodes | questions | ranking | recall@5 | MRR |\n|---|--:|--:|---|--:|--:|")
    for task in tasks:
        if not task.questions:
            tell(f"{task.name}: no text asks anything")
            continue
        head = f"| {task.name} | {len(task.texts):,} | {len(task.sampled()):,}"
        for ranking, recall, rank in measure(task):
            print(f"{head} | {ranking} | {recall:.3f} | {rank:.3f} |", flush=True)
            head = "| | | "
        tell(f"{task.name}: done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
