"""Retrieval tasks: texts as nodes of a temporary repository, questions about them, and the rankings to compare."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Collection, Sequence
from typing import Any

import gitmem
from gitmem.memory import edit, search
from gitmem.memory.fts import STOP

SEED = 7
QUESTIONS_MAX = 1_000
SHOWN = 10
READ_ON = 50  # places in which the first five sessions are looked for
DAY = 24 * 3600 * 1_000_000
FOREVER = 10**30
OURS = "**`mem search`**"

Ranking = Callable[[str], list[int]]


class Task:
    """Texts with their times and sessions, and questions, each with the numbers of the texts that it is about.

    Args:
        asked_after: Microseconds from the newest text to the questions.
    """

    def __init__(self, name: str, asked_after: int = 60_000_000) -> None:
        self.name = name
        self.asked_after = asked_after
        self.texts: list[str] = []
        self.times: list[int] = []
        self.sessions: list[str | None] = []
        self.questions: list[tuple[str, frozenset[int]]] = []

    def add(self, text: str, at: int, question: str | None = None, session: str | None = None) -> None:
        """Add a text, and its question if it has one."""
        if question:
            self.questions.append((question, frozenset((len(self.texts),))))
        self.texts.append(text)
        self.times.append(at)
        self.sessions.append(session)

    def sampled(self) -> list[tuple[str, frozenset[int]]]:
        """Return a fixed random sample of the questions."""
        dice = random.Random(SEED)
        many = self.questions
        return many if len(many) <= QUESTIONS_MAX else dice.sample(many, QUESTIONS_MAX)


class Score:
    """Sums over questions: the share of what is meant among the first five, and 1 / the place of the first of it.

    Where texts belong to sessions, also the share of the sessions that are meant among the first five sessions, each at the
    place of its first text.
    """

    def __init__(self) -> None:
        self.questions = 0
        self.within = 0.0
        self.reciprocal = 0.0
        self.within_sessions: float | None = None

    def add(self, got: Sequence[int], meant: Collection[int], sessions: Sequence[str | None] = ()) -> None:
        """Add a question, with the ranked texts, those that are meant, and the session of each text."""
        self.questions += 1
        self.within += sum(number in meant for number in got[:5]) / len(meant)
        places = enumerate(got[:SHOWN], 1)
        self.reciprocal += next((1 / place for place, number in places if number in meant), 0)
        if any(sessions):
            first = list(dict.fromkeys(sessions[number] for number in got))[:5]
            wanted = {sessions[number] for number in meant}
            self.within_sessions = (self.within_sessions or 0) + len(wanted.intersection(first)) / len(wanted)

    def merge(self, other: Score) -> None:
        """Add the questions of another task."""
        self.questions += other.questions
        self.within += other.within
        self.reciprocal += other.reciprocal
        if other.within_sessions is not None:
            self.within_sessions = (self.within_sessions or 0) + other.within_sessions

    @property
    def recall(self) -> float:
        """Recall among the first five."""
        return self.within / self.questions

    @property
    def recall_sessions(self) -> float | None:
        """Recall of sessions among the first five sessions; None where texts have none."""
        return None if self.within_sessions is None else self.within_sessions / self.questions

    @property
    def rank(self) -> float:
        """Mean reciprocal rank among the first ten."""
        return self.reciprocal / self.questions


def measure(task: Task, *, only: Collection[str] | None = None) -> dict[str, Score]:
    """Return the score of each ranking, by its name.

    Args:
        only: The names of the rankings to measure; None measures all.
    """
    newest = sorted(range(len(task.texts)), key=lambda number: -task.times[number])[:READ_ON]
    with tempfile.TemporaryDirectory(prefix="gitmem-retrieval-") as folder:
        number_of = _write(task, folder)
        now = max(task.times) + task.asked_after
        with gitmem.open(folder, now=lambda: now) as log:

            def ours(**options: Any) -> Ranking:
                return lambda question: [
                    number_of[hit.node.id]
                    for hit in search.recall(log.store, question, limit=READ_ON, **options)
                ]

            rankings = {
                "newest first": lambda question: newest,
                "FTS5, any of the words (`unicode61`)": _plain(task.texts, "unicode61"),
                "FTS5, `porter`, without small words": _plain(task.texts, "porter unicode61", STOP),
                "`mem search` without decay": ours(half_life=FOREVER),
                OURS: ours(),
                "`mem search --by-decay`": ours(by_decay=True),
            }
            wanted = rankings if only is None else {name: rankings[name] for name in only}
            return {name: _score(task, ranking) for name, ranking in wanted.items()}


def _score(task: Task, ranking: Ranking) -> Score:
    score = Score()
    for question, meant in task.sampled():
        score.add(ranking(question), meant, task.sessions)
    return score


def _write(task: Task, folder: str) -> dict[str, int]:
    """Write the texts as nodes, with one commit for each session or day; return the number of the text by node id."""
    for command in (("init", "-q"), ("config", "user.name", "A"), ("config", "user.email", "a@example.org")):
        subprocess.run(["git", "-C", folder, *command], check=True)
    subprocess.run(["git", "-C", folder, "commit", "-q", "--allow-empty", "-m", "First"], check=True)
    order = sorted(range(len(task.texts)), key=lambda number: task.times[number])
    portions: dict[str | int, list[int]] = {}
    for number in order:
        portions.setdefault(task.sessions[number] or task.times[number] // DAY, []).append(number)
    at = task.times[order[0]]
    number_of: dict[str, int] = {}
    with gitmem.open(folder, now=lambda: at, allow_secret=True) as log:
        for many in portions.values():
            at = task.times[many[0]]
            given = [{"content": task.texts[number], "session": task.sessions[number]} for number in many]
            done = edit.append(log.store, log.caller, given)
            number_of |= {node.id: number for node, number in zip(done.nodes, many, strict=True)}
    return number_of


def _plain(texts: Sequence[str], tokenizer: str, ignored: Collection[str] = ()) -> Ranking:
    """Return a search by FTS5 alone: its own tokenizer, any of the words, no decay."""
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE plain USING fts5(content, tokenize = '{tokenizer}')")
    db.executemany("INSERT INTO plain (rowid, content) VALUES (?, ?)", enumerate(texts))

    def ask(question: str) -> list[int]:
        asked = question.split()
        words = [word for word in asked if word.lower().strip("?.,!'\"") not in ignored] or asked
        quoted = " OR ".join('"' + word.replace('"', '""') + '"' for word in words)
        rows = db.execute(
            "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?", (quoted, READ_ON)
        )
        return [row for (row,) in rows]

    return ask
