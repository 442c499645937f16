"""Memories of any size, in repositories whose files change while agents write nodes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice

from . import workbench as workbenches
from .workbench import Workbench

WU = "WU-1"
OTHERS = 100  # further work units
FILES = 50
PORTIONS = 20  # of nodes; after each of them a file of the project changes
NODES_LEAST = 25  # in each portion
VOCABULARY = 5_000
TYPES = {"discovery": 5, "note": 2, "checkpoint": 2, "summary": 1}
PRIORITIES = [None, None, "P0", "P1", "P2", "P3"]
TAGS = ["pitfall", "decision", "convention", "bug", "idea"]
SMALL = ["the", "of", "a", "to", "in", "is", "and", "it", "for", "with", "that", "this", "be", "on", "not"]
SYLLABLE = (("b", "br", "d", "f", "g", "k", "l", "m", "p", "pr", "s", "st", "t", "v"), "aeiou", "klmnrtvz")


@cache
def vocabulary() -> list[str]:
    """Return made-up words of two and three syllables, most common first; every tenth is a name in snake_case."""
    dice = random.Random(41)
    found: dict[str, None] = {}
    while len(found) < VOCABULARY:
        parts = ["".join(map(dice.choice, SYLLABLE)) for _ in range(dice.choice((2, 2, 3)))]
        found[("_" if len(found) % 10 == 9 else "").join(parts)] = None
    return list(found)


@cache
def _weights() -> list[float]:
    """Return the frequency of each word: the inverse of its rank, as in prose."""
    total = 0.0
    return [total := total + 1 / (place + 10) for place in range(VOCABULARY)]


def content(dice: random.Random) -> str:
    """Return 60 to 300 bytes in a few lines; one word in three is a function word."""
    wanted = dice.randint(60, 290)
    words: list[str] = []
    size = 0
    while size < wanted:
        some = [*dice.choices(vocabulary(), cum_weights=_weights(), k=2), dice.choice(SMALL)]
        words += some
        size += sum(map(len, some)) + 3
    text = " ".join(words)[: wanted + 10].rstrip()
    return text.replace(" ", "\n", dice.choice((0, 0, 0, 1)))


def nodes(count: int, *, kept: bool = True, seed: int = 3) -> Iterator[Mapping[str, object]]:
    """Yield arguments for `append_many`.

    Of ten nodes, one belongs to `WU`, one to the project, and the rest to other work units.

    Args:
        kept: Also yield what no archive pass takes: nodes of the project, checkpoints, P0 and P1.
    """
    dice = random.Random(seed)
    kinds = {name: share for name, share in TYPES.items() if kept or name != "checkpoint"}
    types, weights = list(kinds), list(kinds.values())
    priorities = [each for each in PRIORITIES if kept or each not in ("P0", "P1")]
    for number in range(count):
        found: dict[str, object] = {
            "content": content(dice),
            "type": dice.choices(types, weights)[0],
            "lifecycle": "wu",
            "wu": f"WU-{dice.randint(2, OTHERS + 1)}",
        }
        if number % 10 == 0:
            found["wu"] = WU
        elif number % 10 == 1 and kept:
            found["lifecycle"] = "project"
        if number % 10 == dice.randint(0, 9):
            found["paths"] = [file(dice.randrange(FILES))]
        if dice.random() < 0.3:
            found["tags"] = [dice.choice(TAGS)]
        priority = dice.choice(priorities)
        yield {**found, "priority": priority} if priority else found


def file(number: int) -> str:
    """Return the path of a file of the project."""
    return f"part{number % 5}/file{number}.py"


def memory(workbench: Workbench, name: str, count: int, *, kept: bool = True) -> str:
    """Return a repository with this many nodes of the last two months and an up-to-date index.

    It is created once for each name.

    Args:
        kept: As for `nodes`.
    """
    where = os.path.join(workbench.folder, name)
    if os.path.isdir(where):
        return where
    workbench.repository(name)
    for number in range(FILES):
        _change(workbench, where, number, "the first form")
    _commit(workbench, where, "Add the files")
    caller = workbenches.start(where, "Writer")
    every = nodes(count, kept=kept)
    span = workbenches.now() - workbenches.START
    at = workbenches.START

    def now() -> int:
        return at

    portions = min(PORTIONS, count // NODES_LEAST)
    for portion in range(portions):
        at = workbenches.START + span * portion // portions
        share = count * (portion + 1) // portions - count * portion // portions
        # Open the log anew for each portion: the store that creates a log keeps its index in memory.
        with workbenches.open_log(where, caller, now=now) as log:
            log.memory.append_many(islice(every, share))
        _change(workbench, where, portion, f"form {portion}")
        _commit(workbench, where, f"Change {file(portion)}")
    for number in range(0, FILES, 2):  # so some of the youngest nodes are stale, too
        _change(workbench, where, number, "the last form")
    _commit(workbench, where, "Change every other file")
    with workbenches.open_log(where, caller) as log:
        (found,) = log.store.db().execute("SELECT count(*) FROM node").fetchone()
    assert found == count, f"{found} nodes are in the memory"
    return where


def _change(workbench: Workbench, where: str, number: int, text: str) -> None:
    path = os.path.join(where, file(number))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(f"# {file(number)}: {text}\n")


def _commit(workbench: Workbench, where: str, message: str) -> None:
    workbench.git(where, "add", "--all")
    workbench.git(where, "commit", "--quiet", "-m", message)
