"""Three clones and a remote: whatever they do in whatever order, they end with the same log and the same answers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gitmem.agents.caller import Caller
from gitmem.git.port import Git as PlumbingGit
from gitmem.log import committer, ref
from gitmem.signals import inbox, send, threads
from gitmem.store import Store
from gitmem.sync import exchange
from tests.clones import BEGINNING, agreed, git
from tests.profiles import PROFILE_EXAMPLES

from .faults import check_index, fsck, open_store, texts

NAMES = "abc"
OF_THE_CLONE = ("warnings", "next")  # those name what this clone knows of others
EXAMPLES = max(3, PROFILE_EXAMPLES // 25)
READERS = [f"test:worker:{name}" for name in NAMES]
ACTS = ["say", "say", "propose", "agree", "reject", "read", "sync", "sync", "fetch", "wait", "roll", "commit", "plumb",
        "lose the index", "rewind the remote"]  # fmt: skip
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTS), st.integers(0, 2), st.integers(0, 5)), min_size=4, max_size=16
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare remote with three clones that have no log yet."""
    root = tmp_path_factory.mktemp("three")
    git("init", "--quiet", "--bare", "--initial-branch=main", "hub.git", cwd=root)
    git("clone", "--quiet", "hub.git", "first", cwd=root)
    git("checkout", "--quiet", "-b", "main", cwd=root / "first")
    git("-c", "user.name=P", "-c", "user.email=p@x", "commit", "--quiet", "--allow-empty", "-m", "First",
        cwd=root / "first")  # fmt: skip
    git("push", "--quiet", "origin", "main", cwd=root / "first")
    for name in NAMES:
        git("clone", "--quiet", "hub.git", name, cwd=root)
        git("remote", "set-url", "origin", "../hub.git", cwd=root / name)
    shutil.rmtree(root / "first")
    return root


def caller(identity: str) -> Caller:
    """An agent without a session, also where the log has not seen it."""
    found = Caller(identity, f"{identity} <{identity}@gitmem>", "as")
    found.identity = identity
    return found


class World:
    """The clones of one example, and what was acknowledged in them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.micros = BEGINNING
        self.stores = [self.open(number) for number in range(3)]
        self.said: list[str] = []
        self.signals: list[tuple[str, str]] = []  # thread, signal

    def now(self) -> int:
        self.micros += 1_000_000
        return self.micros

    def open(self, number: int) -> Store:
        return open_store(self.root / NAMES[number], now=self.now)

    def close(self) -> None:
        for store in self.stores:
            store.close()

    def do(self, step: str, who: int, pick: int) -> None:  # noqa: C901  (one branch for each step)
        store = self.stores[who]
        if step == "say":
            self._send(who, to=[READERS[(who + 1 + pick % 2) % 3]] if pick else ())
        elif step == "propose":
            self._send(
                who, to=[each for number, each in enumerate(READERS) if number != who], intent="PROPOSE"
            )
        elif step in ("agree", "reject"):
            self._answer(who, step.upper(), pick)
        elif step == "read":
            found = inbox.read(store, caller(READERS[who]))
            inbox.mark(store, found)
        elif step == "sync":
            self.sync(who)
        elif step == "fetch":
            git("fetch", "--quiet", "origin", cwd=self.root / NAMES[who])
        elif step == "wait":
            self._wait(who)
        elif step == "roll":
            store.log.new_token()
        elif step == "commit":
            committer.commit_waiting(store.log, deferred=bool(pick % 2))
        elif step == "plumb":  # the next steps here go through the other port
            store.close()
            self.stores[who] = open_store(self.root / NAMES[who], PlumbingGit, now=self.now)
        elif step == "lose the index":
            store.close()
            for path in Path(store.repo.state).glob("index-*"):
                path.unlink()
            self.stores[who] = self.open(who)
        else:
            self._rewind(pick)

    def _send(self, who: int, **options: object) -> None:
        store = self.stores[who]
        text = f"{len(self.said):03d}"
        sent = send.send(store, caller(READERS[who]), text, allow_unseen=True, **options)  # type: ignore[arg-type]
        self.said.append(text)
        if sent.signal.get("thread_id") and options.get("intent") == "PROPOSE":
            self.signals.append((str(sent.signal["thread_id"]), str(sent.signal["signal_id"])))

    def _answer(self, who: int, intent: str, pick: int) -> None:
        store = self.stores[who]
        known = [each for _, each in self.signals
                 if store.db().execute("SELECT 1 FROM signal WHERE signal_id = ?", (each,)).fetchone()]  # fmt: skip
        if known:
            self._send(who, reply_to=known[pick % len(known)], intent=intent)

    def _wait(self, who: int) -> None:
        """A signal that waits for its commit: no committer has come yet."""
        store = self.stores[who]
        store.commit_after = 3600.0
        self._send(who)
        store.commit_after = 0.0
        assert store.waits()

    def _rewind(self, pick: int) -> None:
        """Somebody forces the remote's branch back, or deletes it."""
        hub = self.root / "hub.git"
        older = git(
            "rev-parse", "--verify", "--quiet", f"{ref.BRANCH}~{1 + pick}", cwd=hub, check=False
        ).strip()
        if older:
            git("update-ref", ref.BRANCH, older, cwd=hub)
        elif pick == 5:
            git("update-ref", "-d", ref.BRANCH, cwd=hub)

    def sync(self, who: int) -> None:
        log = self.stores[who].log
        (found,) = exchange.exchange(
            log, ["origin"], may_send=agreed, timeout=30.0, pause=lambda seconds: None
        )
        assert found.state in ("synced", "up-to-date"), (found.state, found.message)
        self.stores[who].refresh()

    def answers(self, store: Store) -> list[object]:
        """What a clone says: who has not read what, and all that each thread says, but for where its signals are."""
        found: list[object] = []
        for reader in READERS:
            unread = inbox.read(store, caller(reader), limit=1000, max_bytes=10_000_000)
            found.append([(signal["signal_id"], signal["delivery_state"]) for signal in unread.signals])
        for thread, _ in self.signals:
            for answer in (threads.converged(store, thread), threads.thread(store, thread)):
                fields = answer.as_json().items()
                found.append({name: value for name, value in fields if name not in OF_THE_CLONE})
        return found


@pytest.fixture
def root(template: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=template.parent) as folder:
        yield Path(folder)


@pytest.mark.deep
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(
    [
        ("say", 0, 0),
        ("say", 1, 1),
        ("sync", 0, 0),
        ("fetch", 2, 0),
        ("say", 2, 0),
        ("rewind the remote", 0, 5),
    ]
)
@example([("wait", 0, 0), ("sync", 1, 0), ("propose", 1, 0), ("sync", 1, 0), ("sync", 0, 0), ("agree", 0, 0)])
@example([("propose", 0, 0), ("sync", 0, 0), ("sync", 1, 0), ("read", 1, 0), ("lose the index", 1, 0), ("reject", 1, 0),
          ("fetch", 0, 0), ("wait", 2, 0), ("plumb", 2, 0), ("sync", 2, 0), ("agree", 2, 0)])  # fmt: skip
def test_any_interleaving_ends_with_one_log(
    template: Path, root: Path, steps: list[tuple[str, int, int]]
) -> None:
    """The same bytes, the same unread mail and decisions on all clones, and every acknowledged line exactly once."""
    here = Path(tempfile.mkdtemp(dir=root))
    shutil.copytree(template, here, dirs_exist_ok=True, symlinks=True)
    world = World(here)
    try:
        for step, who, pick in steps:
            world.do(step, who, pick)
        for who in (0, 1, 2, 0, 1):
            world.sync(who)
        trees = {store.git.commit(store.git.tip(ref.LOG_REF) or "").tree for store in world.stores}
        assert len(trees) == 1
        for store in world.stores:
            found = texts(store)
            assert sorted(found) == world.said and set(found.values()) <= {1}
            assert not store.log.waiting(deferred=True)
            check_index(store)
        assert all(world.answers(store) == world.answers(world.stores[0]) for store in world.stores[1:])
        tip = git("rev-parse", ref.LOG_REF, cwd=here / "a").strip()
        assert not git("rev-list", "--merges", tip, cwd=here / "a")
        assert git("rev-parse", ref.BRANCH, cwd=here / "hub.git").strip() == tip
        fsck(here / "a")
    finally:
        world.close()
        shutil.rmtree(here)
