"""How the cost of every fold grows with the lines of a hostile log: hardly faster than their number."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gitmem import place, records
from gitmem.index import catch_up, schema
from gitmem.index.schema import Index
from gitmem.operations import causality, mail, presence, store, threads, views
from gitmem.operations.causality import Conversation
from gitmem.operations.memory import relations, stored
from gitmem.operations.store import Store
from tests import hostile_logs
from tests.hostile_logs import FAMILIES, Victim

FEW, MANY = 1_000, 32_000  # lines
PROBE = 200_000  # bytes, to see how long the lines of a family are
EXPONENT = 1.25  # n log n has 1.1, with what the processor caches less of 1.15; a square of a tenth of the work has 1.4
TRIES = 3
LEAST_SECONDS = 0.03  # what is faster is done again, and counts by its average
NOW = 1_793_000_000_000_000
ME = Victim("sess-000000000001", "me:coder:x", NOW, "victim0000")
SHAPES = (
    "reply_cycle", "agree_chain", "deep_replies", "one_id", "receipts_of_one", "seen_broadcasts", "sessions_of_one_name",
    "sessions_of_this_clone", "numbered_names", "patch_cycle", "patch_chain", "one_node",
    "one_relation", "block_chain",
)  # fmt: skip


class AtOnce(Store):
    """A store whose index is in memory and has what it was given, and nothing of the repository's log."""

    def hold(self, index: Index) -> None:
        self._index = index

    def db(self) -> schema.sqlite3.Connection:
        return self.index.db


def lines(family: str, count: int) -> list[bytes]:
    """About so many lines of a family, each once."""
    probe = len(hostile_logs.lines(FAMILIES[family], ME, PROBE))
    found = hostile_logs.lines(FAMILIES[family], ME, PROBE * count // probe)
    return [line for _, line in found]


def index_of(found: list[bytes]) -> Index:
    index = schema.in_memory(views.VIEWS, records.read)
    index.reshape()
    catch_up.add_lines(index, 1, found)
    assert index.db.execute("SELECT count(*) FROM skipped").fetchone() == (0,)
    return index


def fold_thread(at: Store) -> None:
    """What `thread` and `converged` ask."""
    said = threads.load(at.db(), "thread-x")
    found = Conversation(said)
    if found.root is not None:
        threads._recipients(at.db(), found, found.root)
        causality.in_order(found.said, found.edges)
        for each in said.values():
            threads.is_conflicting(each)


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
    stored.load(at.db(), [id for (id,) in at.db().execute("SELECT id FROM node ORDER BY id")])


def fold_relations(at: Store) -> None:
    db = at.db()
    for triple in db.execute("SELECT DISTINCT from_id, to_id, type FROM relation_event").fetchall():
        relations.stands(db, triple)
    relations.of(db, "mem-000000")
    relations.path_of_blocks(db, "mem-000000", "mem-nowhere")


def fold_unread(at: Store) -> None:
    for reader, session in ((ME.identity, ME.session), ("sess-zzzz", "sess-zzzz"), ("nobody:a:b", None)):
        mail.unread_ids(at.db(), reader, session, None, NOW)


def fold_interrupts(at: Store) -> None:
    mail.unread_ids(at.db(), ME.identity, ME.session, None, NOW, directed=True)


FOLDS: tuple[Callable[[Store], None], ...] = (
    fold_thread, fold_names, fold_nodes, fold_relations, fold_unread, fold_interrupts,
)  # fmt: skip


def seconds(work: Callable[[], object]) -> float:
    """The CPU time of some work, done as often as it takes to be measured.

    Without the garbage collector: what it costs depends on what else the process holds.
    """
    gc.collect()
    gc.disable()
    try:
        started, done = time.process_time(), 0
        while done == 0 or time.process_time() - started < LEAST_SECONDS:
            work()
            done += 1
        return (time.process_time() - started) / done
    finally:
        gc.enable()


def exponent(few: Callable[[], object], many: Callable[[], object], ratio: float) -> float:
    """How cost grows with size: 1 where it is in proportion. What is too much is measured again: others use the CPU."""
    small, large = [], []
    for _ in range(TRIES):
        small.append(seconds(few))
        large.append(seconds(many))
        found = math.log(min(large) / min(small)) / math.log(ratio)
        if found <= EXPONENT:
            break
    return found


@pytest.fixture
def opened(repo: Path) -> Iterator[Callable[[Index], Store]]:
    """Give stores of one repository that have an index in memory."""
    base = store.open_store(place.find(str(repo)), machine="here", lives_on=False)

    def over(index: Index) -> Store:
        found = AtOnce(base.place, base.git, machine="here", now=lambda: NOW)
        found.hold(index)
        return found

    yield over
    base.close()


@pytest.mark.deep
@pytest.mark.parametrize("family", SHAPES)
def test_no_fold_grows_much_faster_than_the_log(opened: Callable[[Index], Store], family: str) -> None:
    """From a thousand lines to thirty-two thousand: taking them in, threads, names, nodes, relations, unread mail."""
    few, many = lines(family, FEW), lines(family, MANY)
    ratio = len(many) / len(few)
    assert ratio > MANY / FEW / 2
    found = {"catch_up": exponent(lambda: index_of(few).close(), lambda: index_of(many).close(), ratio)}
    small, large = opened(index_of(few)), opened(index_of(many))
    for fold in FOLDS:
        found[fold.__name__] = exponent(partial(fold, small), partial(fold, large), ratio)
    small.index.close()
    large.index.close()

    assert {name: round(each, 2) for name, each in found.items() if each > EXPONENT} == {}
