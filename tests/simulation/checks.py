"""What must hold when a run has healed: one log, nothing acknowledged lost, one answer to every question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gitmem import records, views
from gitmem.agents import addressing, mailbox, presence
from gitmem.agents.caller import Caller
from gitmem.errors import UsageError
from gitmem.git.objects import Draft
from gitmem.git.port import Git
from gitmem.index import catch_up, index_file
from gitmem.log import attestations, ref
from gitmem.log.lines import is_attestation, line_hash, reduced, writer_of
from gitmem.open_store import DOMAIN
from gitmem.signals import inbox, threads
from gitmem.store import Store
from gitmem.work import task_state

from . import own_checks, quorum
from .faults import PERSON, segments
from .memory import MemoryConfig, MemoryGit, Repository
from .world import Clone, World

CPU_SECONDS_MAX = 5.0  # of one command, whatever peers have pushed
# Tables of the index that say the same in whatever order the lines came, and their columns.
TABLES = {
    "line": "key, at, kind, body",
    "held": "key, writer, line",
    "awaited": "*",
    "signal": "signal_id, thread, sender, intent, broadcast",
    "asked": "*",
    "mail": "*",
    "receipt": "*",
    "session": "*",
    "alive": "*",
    "task": "task_id, caller, agent, decided_by, state, holder, ended",
    "tenure": "session_id, claimed, until, name, shown, last",
}


def healed(world: World) -> list[str]:
    """What is wrong, as sentences."""
    wrong = [*world.wrong, *world.turns.crashes]
    wrong += _history(world)
    tips = {clone.name: world.local_tip(clone) for clone in world.clones}
    shared = world.hub.tip(ref.BRANCH)
    if shared is None:
        return [*wrong, "the remote has no log"]
    wrong += [
        f"{name} is at {tip}, the remote at {shared}"
        for name, tip in tips.items()
        if tip != shared and not _is_later(world, name, tip, shared)
    ]
    wrong += _lines(world, world.hub, world.hub.commit(shared).tree)
    if not world.weather.refuses_deletes:
        left = world.outboxes().items()
        wrong += [f"left on the remote: {name}" for name, oid in left if oid not in world.hostile]
    if world.cpu_seconds > CPU_SECONDS_MAX:
        wrong.append(f"a command took {world.cpu_seconds:.1f} s of CPU")
    if not wrong:
        wrong += _folds(world)
    if not wrong and world.hostile:
        for clone in world.clones:
            store = _store(clone)
            wrong += own_checks.own_sessions(world, clone, store)
            store.close()
        wrong += _without_the_rest(world)
        wrong += _without(
            world, "the adversary in its own name", lambda line: writer_of(line) != world.stranger
        )
        wrong += _without(world, "what names no writer", lambda line: bool(writer_of(line)), names=True)
    for clone in world.clones:
        wrong += [f"left in {clone.name}: {path}" for path in _waiting(clone)]
    return wrong


def _is_later(world: World, name: str, tip: str | None, shared: str) -> bool:
    """Whether a clone has all lines in a later epoch than the remote, which somebody has moved back."""
    if not world.forgetful or not world.tampered or tip is None:
        return False
    found = []
    for git, oid in ((world.places.port(name), tip), (world.hub, shared)):
        tree = git.commit(oid).tree
        form = ref.read_format(git, git.tree(tree))
        found.append((form.epoch if form else 0, {reduced(line) for line in world.lines(git, tree)}))
    return found[0][0] > found[1][0] and found[0][1] == found[1][1]


def _waiting(clone: Clone) -> list[Path]:
    """Files of write-ahead logs that have anything in them; what a fault of the disk has left is kept for doctor."""
    found = [*clone.root.rglob("[0-9]*.wal1"), *clone.root.rglob("[0-9]*.deferred1")]
    return sorted(path for path in found if path.stat().st_size)


def _history(world: World) -> list[str]:
    """One line of commits from the constant first one."""
    hub = world.hub
    at = hub.tip(ref.BRANCH)
    wrong = []
    while at is not None:
        parents = hub.commit(at).parents
        if len(parents) > 1:
            wrong.append(f"{at[:12]} is a merge")
        if not parents and at != ref.GENESIS:
            wrong.append(f"the history begins with {at}")
        at = parents[0] if parents else None
    return wrong


def _lines(world: World, git: Git, tree: str) -> list[str]:
    found: Counter[bytes] = Counter()
    for _, oid in segments(git, tree):
        found.update(line.rstrip(b"\r") for line in git.blob(oid).split(b"\n") if line.rstrip(b"\r"))
    wrong = [
        f"there {count} times: {line!r}"
        for line, count in found.items()
        if count > 1
        and line in world.begun
        and line not in world.forged  # who replays a line puts it elsewhere
    ]
    wrong += [f"acknowledged and lost: {line!r}" for line in world.acknowledged if not world.has(line, found)]
    short = {reduced(line) for line in world.begun} if world.forgetful else set()
    for line in found:
        if line in world.failed and line not in world.loose:
            wrong.append(f"reported as failed, and there: {line!r}")
        elif (
            line not in world.begun and line not in world.forged and line not in short and b"<<<" not in line
        ):
            wrong.append(f"nobody wrote {line!r}")
    return wrong


def _folds(world: World) -> list[str]:
    """The index of each clone says what one says that is built from nothing; so do the answers made from it."""
    wrong = []
    tables: dict[str, list[tuple[object, ...]]] = {}
    expected: dict[str, object] = {}
    for clone in world.clones:
        store = _store(clone)
        store.db()
        answers = _answers(store)
        if not tables:
            fresh = index_file.in_memory(views.VIEWS, records.read)
            catch_up.catch_up(fresh, store.log)
            tables = dump(fresh)
            fresh.close()
        for table, rows in dump(store.index).items():
            if rows != tables[table]:
                differs = set(rows) ^ set(tables[table])
                wrong.append(f"the table {table} of {clone.name} differs: {sorted(differs, key=repr)[:4]}")
        for question, answer in answers.items():
            if expected.setdefault(question, answer) != answer:
                wrong.append(
                    f"{clone.name} answers otherwise: {question}: {answer} instead of {expected[question]}"
                )
        wrong += own_checks.differs_anew(world, clone, store)
        if world.voting:
            yes, otherwise = quorum.look(clone.name, store)
            wrong += [*otherwise, *quorum.false_yes([*world.yes, *yes], quorum.lines_of(store))]
        store.close()
    return wrong


def _counting(lines: Sequence[bytes]) -> list[bytes]:
    """Return the records of lines that are attested by their writer or, if they name none, by anybody, and the valid attestations."""
    valid = [(line, found) for line in lines if (found := attestations.read(line)) is not None]
    attested = {
        (digest, writer) for _, found in valid for digest in found.digests for writer in (found.writer, None)
    }
    return [line for line, _ in valid] + [
        line
        for line in lines
        if not is_attestation(line)
        and (record := records.read(line)) is not None
        and (line_hash(line), record.get("writer")) in attested
    ]


def _without_the_rest(world: World) -> list[str]:
    """Return which answers differ from those of a log without unreadable lines and lines that their writers did not attest."""
    with_all, without = _store(world.clones[0]), _store_of(world, "counting", _counting)
    mine, others = _answers(with_all), _answers(without)
    wrong = [
        f"lines that do not count change an answer: {question}: {mine.get(question)} instead of {others.get(question)}"
        for question in sorted(mine.keys() | others.keys())
        if mine.get(question) != others.get(question)
    ]
    with_all.close()
    without.close()
    return wrong


def _without(world: World, what: str, keeps: Callable[[bytes], bool], *, names: bool = False) -> list[str]:
    """Return which answers about others differ where the log has only some of the lines that count.

    Args:
        what: What it lacks.
        keeps: Whether it has a line.
        names: Compare display names and who holds a role, too: anybody may take both in its own name.
    """
    with_all = _store_of(world, "all", _counting)
    without = _store_of(world, "without", lambda lines: list(filter(keeps, _counting(lines))))
    mine, others = _answers(with_all), _answers(without)
    known = {str(id) for (id,) in without.db().execute("SELECT signal_id FROM signal")}
    people = {one[0] for one in others["people"]}  # type: ignore[attr-defined]
    if not names:
        del others["names"]
    wrong = []
    for question, answer in others.items():
        if question.startswith(("thread ", "ambiguous ")) and question.endswith(f"@{world.stranger}"):
            continue  # the thread that it has named is its own
        found = mine.get(question)
        if isinstance(found, list) and not (
            names and question == "holders"
        ):  # what it has said itself is there, too
            key = people if question in ("people", "names", "holders") else known
            found = [each for each in found if not key.isdisjoint(each)]
        if found != answer:
            wrong.append(f"{what} changes an answer: {question}: {found} instead of {answer}")
    with_all.close()
    without.close()
    return wrong


def _store_of(world: World, name: str, select: Callable[[Sequence[bytes]], list[bytes]]) -> Store:
    """A store of the first clone whose log has the selected lines alone."""
    clone = world.clones[0]
    tip = world.local_tip(clone)
    assert tip is not None
    git = world.places.port(clone.name)
    lines = sorted({line.rstrip(b"\r") for line in world.lines(git, git.commit(tip).tree)})
    repository = Repository(clone.repo.common)
    good: Any = MemoryGit(repository)
    changes = {
        "format": git.blob(git.tree(git.commit(tip).tree)["format"].oid),
        "signals/all.jsonl": b"".join(line + b"\n" for line in select(lines)),
    }
    (repository.refs[ref.LOG_REF],) = good.write([Draft(changes, PERSON, PERSON, "Lines that count\n")], None)
    latest = max(each.now() for each in world.clones)
    return Store(clone.repo, good, DOMAIN, machine=name, now=lambda: latest, config=_config(clone))


def _store(clone: Clone) -> Store:
    """A store as an onlooker has it, whose clock is right in every clone alike."""
    world = clone.world
    latest = max(each.now() for each in world.clones)
    git = world.places.port(clone.name)
    return Store(clone.repo, git, DOMAIN, machine="sim", now=lambda: latest, config=_config(clone))


def _config(clone: Clone) -> MemoryConfig:
    return MemoryConfig(clone.repo.common, clone.repo.state)


def dump(index: index_file.Index) -> dict[str, list[tuple[object, ...]]]:
    found = {name: index.db.execute(f"SELECT {columns} FROM {name}") for name, columns in TABLES.items()}
    return {name: sorted(rows.fetchall(), key=repr) for name, rows in found.items()}


def _answers(store: Store) -> dict[str, object]:
    """What a clone says: who has not read what, what was agreed, and who is called what."""
    found: dict[str, object] = {}
    for (agent,) in store.db().execute("SELECT reader FROM reader").fetchall():
        unread = mailbox.unread_ids(store.db(), agent, None, None, store.now())
        found[f"unread by {agent}"] = sorted(unread)
        reader = Caller(agent, agent, "as")
        reader.identity = agent
        shown = inbox.read(store, reader, limit=10_000, max_bytes=100_000_000).signals
        found[f"inbox of {agent}"] = [(each["signal_id"], each["delivery_state"]) for each in shown]
    proposed = store.db().execute("SELECT DISTINCT thread FROM signal WHERE intent = 'PROPOSE'")
    for (thread,) in proposed.fetchall():
        found[f"thread {thread}"], found[f"ambiguous in {thread}"] = _agreed(store, thread)
    for task_id, body in (
        store.db().execute("SELECT task_id, agent FROM task WHERE agent IS NOT NULL").fetchall()
    ):
        found[f"task {task_id} for {body}"] = _done(store, task_id)
    people = presence.shown(store, all=True).values()
    found["people"] = sorted((one.session_id, one.reader, one.ended, one.held) for one in people)
    found["names"] = sorted((one.session_id, one.name) for one in people)
    found["holders"] = sorted((one.session_id,) for one in addressing.role_holders(store, "reviewer", None))
    return found


def _done(store: Store, task_id: str) -> object:
    """What came of a task that is for one agent."""
    task = task_state.load_task(store.db(), task_id)
    assert task is not None
    outcome = task.outcome and task.outcome.id
    return (
        task.state,
        task.decided_by,
        outcome,
        [each.id for each in task.held],
        [each.id for each in task.takes],
    )


def _agreed(store: Store, thread: str) -> tuple[object, list[tuple[str]]]:
    """What was agreed in a thread, and which ids have several texts."""
    try:
        state = threads.converged(store, thread)
    except UsageError as error:  # a forged reply made a broadcast the root, or nobody is asked
        return error.code, []
    each = [
        (one.identity, one.decision, one.signal_id, one.proposal, one.delivery_state)
        for one in state.recipients
    ]
    force = [one.signal_id for one in state.in_force]
    return (state.converged, force, each), [(id,) for id in state.ambiguous]
