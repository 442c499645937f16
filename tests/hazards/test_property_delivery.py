"""Signals, looks, drains and deaths in any order: every signal is shown, and its receipts are right."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.index import index_file
from tests.clones import git
from tests.profiles import PROFILE_EXAMPLES

from .faults import ALL_STEPS, SystemCall, age_locks, check_index, child, open_store
from .readers import CURIE, HARNESS, Reader

EXAMPLES = max(3, PROFILE_EXAMPLES // 20)
ACTS = ["send", "send", "broadcast", "look", "drain", "drain", "drain as twin", "die sending", "die draining",
        "full draining", "lose the index", "lose the queue", "resume"]  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(1, 60)), min_size=3, max_size=10)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deliveries")


class World:
    """One example: a reader with two sessions, and what was surely sent to it."""

    def __init__(self, where: Path) -> None:
        git("init", "--quiet", "--initial-branch=main", "repo", cwd=where)
        git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=where / "repo")
        self.reader = Reader(where / "repo")
        store = open_store(self.reader.repo)
        self.twin = lifecycle.start(store, CallerClaims(), name="Marie", agent_identity=CURIE).session_id
        store.close()
        self.said: list[str] = []

    def do(self, act: str, number: int) -> None:
        reader, text = self.reader, f"line {len(self.said)}"
        if act in ("send", "broadcast"):
            reader.send(text, to=[CURIE] if act == "send" else [])
            self.said.append(text)
        elif act == "look":
            reader.look()
        elif act.startswith("drain"):
            reader.drain(session=self.twin if "twin" in act else None)
        elif act == "die sending":
            child(lambda: reader.send(f"perhaps {number}"), SystemCall(number, ALL_STEPS, kills=True))
        elif act == "die draining":
            child(reader.drain, SystemCall(number, ALL_STEPS, kills=True))
        elif act == "full draining":
            child(
                self._tried, SystemCall(number, ("write", "fsync", "rename", "replace", "mkdir"), kills=False)
            )
        elif act == "lose the index":
            for path in Path(reader.state).glob("index-*.sqlite3"):
                index_file.remove(str(path))
        elif act == "lose the queue":
            shutil.rmtree(os.path.join(reader.state, "queue"), ignore_errors=True)
            shutil.rmtree(os.path.join(reader.state, "flags"), ignore_errors=True)
        else:
            store = open_store(reader.repo)
            who = CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", HARNESS))
            lifecycle.end(store, reader.caller(store))
            reader.session = lifecycle.start(store, who, agent_identity=CURIE).session_id
            store.close()
        age_locks(reader.repo)

    def _tried(self) -> str:
        try:
            self.reader.drain()
        except OSError:
            return "no room for the print"
        return "done"


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(
    steps=[("send", 1), ("lose the index", 1), ("die draining", 20), ("resume", 1), ("drain as twin", 1)]
)
@example(
    steps=[("send", 1), ("full draining", 3), ("lose the queue", 1), ("broadcast", 1), ("die sending", 30)]
)
def test_any_order_shows_every_signal(root: Path, steps: list[tuple[str, int]]) -> None:
    """At the end nothing is unread, every signal was shown and has one receipt, and no flag stands."""
    where = Path(tempfile.mkdtemp(dir=root))
    try:
        world = World(where)
        reader = world.reader
        for act, number in steps:
            world.do(act, number)
        reader.look()
        assert reader.is_told()
        reader.drain()
        assert reader.unread() == set() and reader.is_told()
        recorded = reader.receipts()
        assert len(recorded) == len(set(recorded))
        assert set(world.said) <= set(recorded) <= set(reader.printed())
        assert reader.drain() == [] and reader.drain(session=world.twin) == []
        store = open_store(reader.repo)
        check_index(store)
        store.close()
    finally:
        shutil.rmtree(where)
