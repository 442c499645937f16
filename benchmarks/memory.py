"""The memory: context, search and archive in a large one, and many new nodes at once."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count as count_up

from gitmem.api.log import Log
from gitmem.log import ref
from gitmem.memory import fts, search
from gitmem.memory.fts import FtsQuery
from gitmem.text.addresses import of_writer

from . import nodes
from . import workbench as workbenches
from .background_processes import AdoptedProcesses
from .measure import Figure, Timing, cpu_of, in_turn, time_here, timings_in_turn, wall
from .workbench import Workbench

LATER = 400 * workbenches.DAY  # by then every node has decayed
LIMIT = search.LIMIT
TYPO_MAX = 60.0  # milliseconds


def context(workbench: Workbench) -> list[Figure]:
    """Measure `mem context` in a large memory and in a small one."""
    size = workbench.size
    large, small = (
        nodes.memory(workbench, f"memory-{count}", count) for count in (size.nodes, size.few_nodes)
    )
    readers = {where: workbenches.start(where, "Reader") for where in (large, small)}
    what, floor = f"`mem context` at {size.nodes:,} nodes", f"at {size.few_nodes:,}"
    command = [workbench.program("gitmem"), "mem", "context", "--wu", nodes.WU]
    ways = [
        cpu_of(command, where, {**workbench.environment, "GITMEM_SESSION": session})
        for where, session in readers.items()
    ]
    got, base = in_turn(size.rounds, ways[0], ways[1], warm=2)
    found = [Figure(f"{what}: the command, CPU", floor, got, base, 2, "ms")]
    logs = [workbenches.open_log(where, session) for where, session in readers.items()]
    calls = [partial(log.memory.context, nodes.WU) for log in logs]
    for call in calls:
        assert call().nodes
    one, other = timings_in_turn(size.rounds, *(partial(time_here, call) for call in calls), warm=2)
    found.append(Figure(f"{what}: in process, CPU", floor, one.cpu, other.cpu, 2, "ms"))
    for log in logs:
        log.close()
    return found


def questions() -> list[str]:
    """Return ten queries: common words, rare words, both, a name, a phrase, a prefix, and a whole English question."""
    words = nodes.vocabulary()
    names = [word for word in words if "_" in word]
    return [
        words[1],
        words[2_500],
        f"{words[0]} {words[3]}",
        f"{words[2]} {words[1_200]}",
        f"{words[3_000]} {words[4_000]}",
        f"{words[5]} {words[60]} {words[300]}",
        names[20],
        f'"{words[4]} {words[6]}"',
        words[150][:4],
        f"why does the {words[40]} not {words[7]} with this {words[700]}",
    ]


def recall(workbench: Workbench) -> list[Figure]:
    """Measure `mem search`, against FTS5's own query for any of the words: the median question."""
    asked = questions()
    with _searched(workbench, "Searcher") as log:
        took = [
            timings_in_turn(
                workbench.size.rounds,
                partial(time_here, partial(log.memory.search, each)),
                partial(time_here, partial(_by_fts5, log, each)),
            )
            for each in asked
        ]
    one, other = (statistics.median(each.cpu for each in way) for way in zip(*took, strict=True))
    what = f"`mem search` at {workbench.size.nodes:,} nodes, median of {len(asked)} questions, CPU"
    return [Figure(what, "FTS5 alone, any of the words, ten rows", one, other, 4, "ms")]


def recall_typo(workbench: Workbench) -> list[Figure]:
    """Measure `mem search` with a word that has a wrong letter, beside a common word."""
    words = nodes.vocabulary()
    question = f"{words[150][:-1]}x {words[3]}"
    with _searched(workbench, "Typist") as log:
        found = log.memory.search(question)
        assert found.similar, "no similar word was found"
        one, _ = timings_in_turn(
            workbench.size.rounds,
            partial(time_here, partial(log.memory.search, question)),
            partial(time_here, partial(_by_fts5, log, question)),
        )
    what = f"`mem search` at {workbench.size.nodes:,} nodes, a question with a wrong letter, CPU"
    return [Figure(what, "the limit", one.cpu, TYPO_MAX, 1, "ms")]


def _searched(workbench: Workbench, name: str) -> Log:
    """Return an open log whose full-text index is up to date."""
    where = nodes.memory(workbench, f"memory-{workbench.size.nodes}", workbench.size.nodes)
    log = workbenches.open_log(where, workbenches.start(where, name))
    log.memory.search(questions()[0])
    return log


def _by_fts5(log: Log, question: str) -> None:
    query = FtsQuery(question)
    log.store.db().execute(
        f"SELECT rowid, bm25({fts.TABLE}, {fts.WEIGHED}) AS score FROM {fts.TABLE}"
        f" WHERE {fts.TABLE} MATCH ? ORDER BY score LIMIT ?",
        (query.some or query.every, LIMIT),
    ).fetchall()


def archive(workbench: Workbench) -> list[Figure]:
    """Measure an archive pass over a fully decayed memory, against reading and writing all lines once."""
    count = workbench.size.nodes
    where = nodes.memory(workbench, f"memory-to-archive-{count}", count, kept=False)
    caller = workbenches.start(where, "Archivist")
    lines = os.path.join(workbench.folder, "nodes.jsonl")
    with workbenches.open_log(where, caller) as log, open(lines, "wb") as file:
        for (body,) in log.store.db().execute("SELECT body FROM line WHERE kind = 'node' ORDER BY body"):
            file.write(body.encode() + b"\n")
    copies = _copies(where)

    def ours() -> Timing:
        copy = next(copies)
        with workbenches.open_log(copy, caller, now=lambda: workbenches.now() + LATER) as log:
            log.store.db()
            before = _commits(workbench, copy)
            took = time_here(log.memory.archive)
            (archived,) = log.store.db().execute("SELECT count(*) FROM node WHERE state = 2").fetchone()
        assert (archived, _commits(workbench, copy)) == (count, before + 1)
        shutil.rmtree(copy)
        return took

    def floor() -> Timing:
        return time_here(partial(_mark_all, lines, lines + "-archived"))

    one, other = timings_in_turn(_few(workbench), ours, floor)
    what, base = f"archive pass over {count:,} nodes, one commit", "reading and writing their lines, fsynced"
    return [
        Figure(f"{what}, CPU", base, one.cpu, other.cpu, 3, "ms"),
        Figure(f"{what}, wall", base, one.wall, other.wall, None, "ms"),
    ]


def _mark_all(source: str, target: str) -> None:
    """Do the least work of a store in one JSON Lines file: rewrite each line without examining it."""
    with open(source, "rb") as file:
        records = [json.loads(line) for line in file]
    with open(target, "wb") as file:
        for record in records:
            record["archived"] = True
            file.write(_dumped(record) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def creates(workbench: Workbench) -> list[Figure]:
    """Measure many nodes in one call, against lines that are made by hand and appended to a file."""
    count = workbench.size.batch
    where = nodes.memory(workbench, "memory-to-fill", workbench.size.few_nodes)
    caller = workbenches.start(where, "Creator")
    given = list(nodes.nodes(count, seed=4))
    copies = _copies(where)
    path = os.path.join(workbench.folder, "appended.jsonl")
    with workbenches.open_log(where, caller) as log:
        sender = {
            "sender_identity": of_writer(workbenches.identity("Creator"), log.store.own_writer()),
            "sender_session": caller,
            "sender_name": "Creator",
        }
        same = dict(zip(("head", "branch"), log.store.head(), strict=True)) | sender
    made: dict[str, list[bytes]] = {}

    def ours() -> Timing:
        copy = next(copies)
        with AdoptedProcesses(), workbenches.open_log(copy, caller, commit_after=None) as log:
            log.store.db()
            took = time_here(
                lambda: made.update(ours=[each.line for each in log.memory.append_many(given).nodes])
            )
            (found,) = log.store.db().execute("SELECT count(*) FROM node").fetchone()
        assert found == count + workbench.size.few_nodes, f"{found} nodes are in the memory"
        shutil.rmtree(copy)
        return took

    def as_json_lines() -> None:
        made["json"] = [_as_json_line(each, same) for each in given]
        _append(path, made["json"])

    one, other = timings_in_turn(_few(workbench), ours, partial(time_here, as_json_lines))
    sizes = {name: sum(map(len, lines)) for name, lines in made.items()}
    assert abs(sizes["ours"] - sizes["json"]) < sizes["ours"] // 1_000, f"the lines are not the same: {sizes}"
    bare = statistics.median(wall(partial(_append, path, made["ours"])) for _ in range(_few(workbench)))
    what, floor = (
        f"{count:,} creates in a batch",
        "the same lines made with `json` and appended to a file, fsynced once",
    )
    return [
        Figure(f"{what}, wall", floor, one.wall, other.wall, 4, "ms"),
        Figure(f"{what}, CPU", floor, one.cpu, other.cpu, None, "ms"),
        Figure(f"{what}, wall", "the bytes alone appended to a file, fsynced once", one.wall, bare, None, "ms"),
    ]  # fmt: skip


def _as_json_line(given: Mapping[str, object], same: Mapping[str, object]) -> bytes:
    """Return the line of a node, without validation."""
    seconds, micros = divmod(time.time_ns() // 1000, 1_000_000)
    fields = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{micros:06}Z",
        "kind": "node",
        "writer": os.urandom(8).hex(),
        "schema_version": "A2A.V1",
        "id": "mem-" + os.urandom(11).hex(),
        "type": given["type"],
        "lifecycle": given["lifecycle"],
        "salt": os.urandom(13).hex(),
        "content": given["content"],
        "priority": given.get("priority"),
        "tags": given.get("tags"),
        "wu_id": given["wu"],
        "session_id": same["sender_session"],
        "paths": given.get("paths"),
        **same,
    }
    return _dumped({name: value for name, value in fields.items() if value})


def _dumped(record: Mapping[str, object]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def _append(path: str, lines: Sequence[bytes]) -> None:
    with open(path, "ab") as file:
        file.writelines(line + b"\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def _copies(where: str) -> Iterator[str]:
    """Yield copies of a repository for measurements that change it."""
    for number in count_up():
        copy = f"{where}-{number}"
        shutil.copytree(where, copy)
        yield copy


def _commits(workbench: Workbench, where: str) -> int:
    return int(workbench.git(where, "rev-list", "--count", ref.LOG_REF))


def _few(workbench: Workbench) -> int:
    """Return the number of rounds of a measurement that takes seconds."""
    return max(1, workbench.size.rounds // 5)
