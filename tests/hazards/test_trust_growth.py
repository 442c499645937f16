"""How the cost of every fold grows with the lines of a hostile log: hardly faster than their number.

Steps are counted, so that a busy machine changes nothing: calls of functions, those of C too, and instructions of SQLite.
What one call does in C is not counted. CPU time shows that, and only roughly: caches alone add a tenth.
"""

from __future__ import annotations

import cProfile
import gc
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gitmem import open_store, records, views
from gitmem import repo as place
from gitmem.agents import forgeries, mailbox, presence
from gitmem.digests import Mac
from gitmem.index import index_file, insert
from gitmem.index.index_file import Index
from gitmem.memory import load, relations, triage
from gitmem.order.thread import FoldedThread
from gitmem.signals import threads
from gitmem.signals.thread_outcomes import Converged
from gitmem.store import Store
from gitmem.trust import sender_tables
from gitmem.trust.clone_key import CloneKey
from tests import hostile_logs
from tests.hostile_logs import FAMILIES, Victim, Writer

FEW, MANY = 1_000, 16_000  # lines
PROBE = 200_000  # bytes, to see how long the lines of a family are
STEPS_EXPONENT = 1.2  # n log n has 1.12
CPU_EXPONENT = 1.3  # with what others do to the caches; a square of a tenth of the work has 1.4
REPEATS = 2  # of the few lines, which take milliseconds; the least counts
SQLITE_STEPS = 100  # instructions that count together, as one step
LEAST_STEPS, LEAST_SECONDS = 2_000, 0.05  # what costs less than that for the many lines costs nothing
NOW = 1_793_000_000_000_000
ME = Victim("sess-000000000001", "me:coder:x", NOW, "victim0000")
SHAPES = (
    "reply_cycle", "agree_chain", "deep_replies", "one_id", "receipts_of_one", "seen_broadcasts", "sessions_of_one_name",
    "sessions_of_this_clone", "numbered_names", "patch_cycle", "patch_chain", "one_node",
    "one_relation", "two_successors", "block_chain", "own_answers", "old_own_answers", "one_task", "task_handoffs",
    "replaced_tasks", "one_claim",
)  # fmt: skip


class AtOnce(Store):
    """A store whose index is in memory and has what it was given, and nothing of the repository's log."""

    def hold(self, index: Index) -> None:
        self._index = index

    def db(self) -> index_file.sqlite3.Connection:
        return self.index.db


def lines(family: str, count: int) -> list[bytes]:
    """About so many lines of a family, each once."""
    probe = len(hostile_logs.lines(FAMILIES[family], ME, PROBE))
    found = hostile_logs.lines(FAMILIES[family], ME, PROBE * count // probe)
    return [line for _, line in found]


def filled(found: list[bytes]) -> Callable[[Index], None]:
    """Return what puts lines into an empty index."""

    def fill(index: Index) -> None:
        insert.lines(index, 1, found)
        assert index.db.execute("SELECT count(*) FROM skipped").fetchone() == (0,)

    return fill


def empty() -> Index:
    """Return the index of a clone in which the victim's session was started, and nothing else was said."""
    key = CloneKey("")
    key.mac = Mac(bytes(range(32)))
    index = index_file.in_memory((*views.VIEWS[:-1], views.sender_view(lambda: key)), records.read)
    index.reshape()
    begun = Writer(ME, 1_000, start=NOW - 1_000_000)
    begun.session(ME.session, agent_identity=ME.identity, clone_id=ME.clone, display_name="Curie")
    insert.lines(index, 1, [key.mac.signed(begun.lines[0][1])])
    assert sender_tables.is_ours(index.db, ME.identity)
    return index


def fold_thread(at: Store) -> None:
    """What `thread` and `converged` ask."""
    said = threads.load(at.db(), "thread-x")
    found = FoldedThread(said)
    if found.root is not None:
        Converged("thread-x", found, None, found.root)
        found.asks_about([ME.identity], found.root.id)
        found.order.shown()


def fold_names(at: Store) -> None:
    """What `roster` and every headline ask."""
    shown = presence.shown(at, all=True)
    by_session, by_reader = presence.names_by_session(at.db()), presence.names_by_reader(at.db())
    for one in shown.values():
        assert by_session.get(one.session_id)
    by_reader.get(ME.identity)
    presence.of_published_client(at, "harness-1")
    presence.of_name(at, "planck")


def fold_nodes(at: Store) -> None:
    load.load(at.db(), [id for (id,) in at.db().execute("SELECT id FROM node ORDER BY id")])


def fold_relations(at: Store) -> None:
    db = at.db()
    for relation_key in db.execute("SELECT DISTINCT from_id, to_id, type FROM relation_event").fetchall():
        relations.exists(db, relation_key)
    relations.relations_of(db, "mem-000000")
    relations.path(db, "blocks", "mem-000000", "mem-nowhere")


def find_contradictions(at: Store) -> None:
    """What `mem triage` proposes."""
    triage.find_contradictions(at.db(), 100)


def fold_unread(at: Store) -> None:
    for reader, session in ((ME.identity, ME.session), ("sess-zzzz", "sess-zzzz"), ("nobody:a:b", None)):
        mailbox.unread_ids(at.db(), reader, session, None, NOW)


def fold_interrupts(at: Store) -> None:
    mailbox.unread_ids(at.db(), ME.identity, ME.session, None, NOW, directed=True)


def fold_marks(at: Store) -> None:
    """What `thread` and the inbox say of who wrote each signal."""
    said = threads.load(at.db(), "thread-x")
    forgeries.in_thread(at.db(), said)
    marks = forgeries.SenderWarnings(at, None)
    for each in said.values():
        marks.put(dict(each.record), each.line)


FOLDS: tuple[Callable[[Store], None], ...] = (
    fold_thread, fold_names, fold_nodes, fold_relations, find_contradictions, fold_unread, fold_interrupts, fold_marks,
)  # fmt: skip


class Cost:
    """What some work took: steps, and seconds of CPU time while they were counted."""

    def __init__(self, db: index_file.sqlite3.Connection, work: Callable[[], object]) -> None:
        calls = cProfile.Profile()
        db.set_progress_handler(_step, SQLITE_STEPS)
        gc.disable()  # what it costs depends on what else the process holds
        try:
            started = time.process_time()
            calls.runcall(work)
            self.seconds = time.process_time() - started
        finally:
            gc.enable()
            db.set_progress_handler(None, 0)
        self.steps = sum(each.callcount for each in calls.getstats())


def _step() -> int:
    """Go on; this call is counted as any other."""
    return 0


def exponents(few: list[Cost], many: Cost, ratio: float) -> tuple[float, float]:
    """How steps and CPU time grow with size: 1 where they are in proportion."""
    return (
        _exponent(min(each.steps for each in few), many.steps, ratio, LEAST_STEPS),
        _exponent(min(each.seconds for each in few), many.seconds, ratio, LEAST_SECONDS),
    )


def _exponent(few: float, many: float, ratio: float, least: float) -> float:
    return math.log(max(many, least) / max(few, least / ratio)) / math.log(ratio)


@pytest.fixture
def opened(repo: Path) -> Iterator[Callable[[Index], Store]]:
    """Give stores of one repository that have an index in memory."""
    base = open_store.open_store(place.find(str(repo)), machine="here", long_lived=False)

    def over(index: Index) -> Store:
        found = AtOnce(base.repo, base.git, base.domain, machine="here", now=lambda: NOW)
        found.hold(index)
        return found

    yield over
    base.close()


@pytest.mark.deep
@pytest.mark.parametrize("family", SHAPES)
def test_no_fold_grows_much_faster_than_the_log(opened: Callable[[Index], Store], family: str) -> None:
    """From a thousand lines to sixteen thousand: taking them in, threads, names, nodes, relations, unread mail."""
    few, many = lines(family, FEW), lines(family, MANY)
    ratio = len(many) / len(few)
    assert ratio > MANY / FEW / 2
    smalls, large = [empty() for _ in range(REPEATS)], empty()
    steps, seconds = {}, {}
    fill = [Cost(each.db, partial(filled(few), each)) for each in smalls]
    steps["catch_up"], seconds["catch_up"] = exponents(
        fill, Cost(large.db, partial(filled(many), large)), ratio
    )
    small_store, large_store = opened(smalls[0]), opened(large)
    for fold in FOLDS:
        costs = [Cost(smalls[0].db, partial(fold, small_store)) for _ in range(REPEATS)]
        found = exponents(costs, Cost(large.db, partial(fold, large_store)), ratio)
        steps[fold.__name__], seconds[fold.__name__] = found
    for index in (*smalls, large):
        index.close()

    assert {name: round(each, 2) for name, each in steps.items() if each > STEPS_EXPONENT} == {}
    assert {name: round(each, 2) for name, each in seconds.items() if each > CPU_EXPONENT} == {}


def test_what_two_nodes_supersede_takes_triage_linear_time(opened: Callable[[Index], Store]) -> None:
    found = [lines("two_successors", count) for count in (200, 3_200)]
    small, large = empty(), empty()
    for index, some in zip((small, large), found, strict=True):
        filled(some)(index)

    few, many = (Cost(index.db, partial(find_contradictions, opened(index))) for index in (small, large))
    steps, _ = exponents([few], many, len(found[1]) / len(found[0]))

    assert len(triage.find_contradictions(large.db, 100)) == 1
    for index in (small, large):
        index.close()
    assert steps <= STEPS_EXPONENT


def test_a_square_of_a_tenth_of_the_work_is_noticed() -> None:
    """What the measure would say of a fold that looks at a thousandth of all pairs of lines."""

    def work(count: int) -> None:
        for _ in range(10 * count + count * count // 1_000):
            len("")

    index = empty()
    few, many = (Cost(index.db, partial(work, count)) for count in (FEW, MANY))
    steps, _ = exponents([few], many, MANY / FEW)
    index.close()

    assert steps > STEPS_EXPONENT
